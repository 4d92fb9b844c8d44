"""The site: every public name and command has its place and its example; pictures are small.

The pages run when the site is built (``sphinx-build -W docs docs/_build/html``), which also
checks every link between them.
"""

import ast
import doctest
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import feasid
from feasid.cli import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = {p.name: p.read_text() for p in sorted((DOCS / "reference").glob("*.md"))}
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
MODULES = ("datasets", "errors", "floating", "problems")
"""Public names that are modules; all but `floating` have pages, too."""

NAMES = [n for n in feasid.__all__ if not n.startswith("_") and n not in MODULES]
NAMES += [f"floating.{n}" for n in feasid.floating.__all__]

LARGEST = 300_000
"""Bytes of a picture."""


def cells(text):
    return "\n".join(
        re.findall(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", text, re.S | re.M)
    )


def page_of(name):
    kind = inspect.isclass(attrgetter(name)(feasid))
    last = name.rpartition(".")[2].lower().replace("_", "-")
    return f"class-{last}.md" if kind else f"{last}.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_its_page_and_an_example(name):
    page = REFERENCE[page_of(name)]
    assert re.search(rf"auto\w+:: feasid\.{name}\n", page)
    assert ">>> " in page.partition("## Example")[2]
    assert (attrgetter(name)(feasid).__doc__ or "").strip()
    assert name in REFERENCE["index.md"]


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("page", [n for n in REFERENCE if ">>> " in REFERENCE[n]])
def test_the_example_of_a_page_runs(page, here):
    text = REFERENCE[page].replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    printed = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.DocTestRunner(optionflags=flags).run(example, out=printed.append)
    assert tried
    assert not failed, "".join(printed)


def test_every_page_is_in_the_tree():
    trees = {p: p.read_text() for p in DOCS.rglob("*.md") if "_build" not in p.parts}
    listed = {
        (page.parent / entry).resolve()
        for page, text in trees.items()
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
        for entry in re.findall(r"^(?!:)(?:.* <)?([^<>\s]+)>?$", tree, re.M)
    }
    pages = {p.with_suffix("").resolve() for p in trees} - {(DOCS / "index").resolve()}
    assert pages == listed


def test_pages_run_and_say_more_than_their_code():
    assert len(TUTORIALS) > 6
    for page in TUTORIALS:
        if page.stem != "index":
            text = page.read_text()
            assert cells(text)
            compile(cells(text), page.name, "exec")
            assert len(re.sub(r"```.*?```", "", text, flags=re.S).split()) > 40


def test_equations_stand_in_the_middle_as_the_theme_would_not_have_them():
    css = (DOCS / "_static" / "site.css").read_text()
    rule = dict(re.findall(r"([^{}\n]+?) \{([^}]*)\}", css))[".bd-article div.math"]
    assert "display: block" in rule
    assert "text-align: center" in rule


@pytest.mark.slow  # as the site is built, which runs the page: .ci/run
def test_the_first_tutorial_explains_the_lines_that_it_prints(here):
    text, names, printed = (DOCS / "tutorials" / "first_fit.md").read_text(), {}, ""
    explained = []
    for cell, prose in re.findall(
        r"^```\{code-cell\}\n(.*?)^```(.*?)(?=^```|\Z)", text, re.S | re.M
    ):
        *before, last = ast.parse(cell).body
        exec(compile(ast.Module(before, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            printed += repr(
                eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            ).lower()
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
        told = [word.lower() for word in re.findall(r"^- \*([^*]+)\*", prose, re.M)]
        assert [word for word in told if word not in printed] == []
        explained += told
    lines = names["fit"].display().measures
    shown = [m.value.partition(".")[0] if m.folded else m.name for m in lines]
    assert [line for line in shown if line.lower() not in explained] == []


def test_the_prompt_has_its_own_list():
    assert "```{command-list}" in REFERENCE["commands.md"]
    assert all(COMMANDS.values())


def test_pictures_are_small_and_described():
    for picture in (DOCS / "pictures").glob("*.png"):
        assert picture.stat().st_size < LARGEST
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            assert not re.findall(r"!\[\s*\]\(", page.read_text())


@pytest.mark.slow  # two episodes in MuJoCo and two fits
def test_the_tutorial_of_servos_runs(here):
    pytest.importorskip("mujoco")
    pytest.importorskip("pyarrow")
    names = {}
    exec(compile(cells((DOCS / "tutorials" / "servos.md").read_text()), "servos.md", "exec"), names)
    kp = names["known"].servo.table["kp"].to_numpy()
    assert abs(kp / (60.0, 40.0, 5.0) - 1).max() < 0.05
    assert names["fit"].simulate(horizon=0.3).rms.max() < 1e-3


def test_every_picture_of_the_gallery_has_its_page_and_its_notebook(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    books = pytest.importorskip("_gallery").notebooks()
    lines = (DOCS / "gallery.md").read_text().split("```{gallery}\n")[1].split("```")[0]
    entries = [[part.strip() for part in line.split("|")] for line in lines.splitlines()]
    assert len({title for title, *_ in entries}) == 24
    for _, page, picture, book in entries:
        assert (DOCS / f"{page}.md").exists()
        assert picture.isdigit() or (DOCS / picture).exists()
        first, install, *others = books[book].cells
        assert first.source.startswith("# ")
        assert install.source.startswith("%pip install -q ")
        assert any(cell.cell_type == "code" for cell in others)
