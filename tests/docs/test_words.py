"""Words between backquotes are promises too: options exist and take the values, flags exist."""

import argparse
import ast
import re
from pathlib import Path
from typing import is_typeddict

import pytest

from feasid.cli import COMMANDS, load_command
from feasid.options import tables
from feasid.options.complete import option_table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

SPECIAL = ("league", "equations", "faults", "experiments", "extending", "design")
VOICED = [p for p in PAGES if p.stem not in SPECIAL and "_build" not in p.parts]
"""Pages for users, besides generated ones and those for developers."""

OPTIONS = {
    name: option
    for table in vars(tables).values()
    if is_typeddict(table)
    for name, option in option_table(table).items()
}

OTHERS = {
    "--arguments", "--counts", "--help", "--help-all", "--keep-going", "--minutes", "--moments",
    "--user",
}  # fmt: skip
OTHERS |= {"--python", "--write"}
"""Flags of the package as a whole, of its campaign and versions, and of pip and Sphinx."""


def spans(page):
    """Inline code of a page, outside of blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return re.findall(r"`([^`]+)`", text)


def flags():
    """Every flag of every command."""
    found = set(OTHERS)
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        load_command(name).add_arguments(parser)
        found |= {flag for action in parser._actions for flag in action.option_strings}
    return found


def test_options_are_shown_with_values_that_they_take():
    wrong, seen = [], 0
    for page in PAGES:
        if page.name == "excitation.md":  # whose `rest` is another
            continue
        for span in spans(page):
            name, mark, value = span.partition("=")
            try:
                value = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                continue
            if mark and name in OPTIONS:
                seen += 1
                try:
                    OPTIONS[name].check(name, value)
                except ValueError as error:
                    wrong.append(f"{page.name}: {span}: {error}")
    assert seen > 20
    assert not wrong


def test_flags_exist():
    known, wrong = flags(), []
    for page in PAGES:
        for span in spans(page):
            if re.search(r"benchmarks|pytest|-m (tests\.|build)", span):
                continue
            wrong += [
                f"{page.name}: {span}"
                for flag in re.findall(r"(?<!\S)--[a-z][\w-]*", span)
                if flag not in known and "--no-" not in flag
            ]
    assert not wrong


def test_findings_have_the_codes_that_a_table_lists():
    known = re.findall("^### (.+)$", (ROOT / "feasid/cli/codes.md").read_text(), re.M)
    table = re.search(r"\| code \|.*?\n\n", (ROOT / "docs/logs.md").read_text(), re.S).group()
    codes = re.findall("`([a-z-]+)`", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.M)))
    assert len(codes) > 5
    assert {*codes} <= {*known}


def avoided():
    """Words that CONTRIBUTING.md tells messages and pages to avoid, as patterns of whole words."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("### Words that messages avoid")[2]
    cells = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table.partition("\n## ")[0], re.M)[1:]
    words = [word for cell in cells for word in cell.split(", ")]
    return [rf"(?<!\w){re.escape(w)}(?!\w)".replace(r"\.\.\.", ".*") for w in words]


def messages(tree):
    """Text of a module besides docstrings."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if text and id(node) not in bare:
            yield node.lineno, node.value


def test_messages_use_the_words_of_the_glossary():
    pattern = re.compile("|".join(avoided()))
    found = [
        f"{path}:{line}: {text}"
        for path in sorted((ROOT / "feasid").rglob("*.py"))
        for line, text in messages(ast.parse(path.read_text()))
        if pattern.search(text)
    ]
    assert len(avoided()) > 8
    assert found == []


@pytest.mark.parametrize("page", VOICED, ids=lambda p: p.name)
def test_pages_use_the_words_of_the_glossary(page):
    pattern = re.compile("|".join(avoided()))
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.M | re.S)
    assert [line for line in text.splitlines() if pattern.search(line)] == []


REMEDIES = "add check choose convert give install load make name pass please provide read record"
REMEDIES += " save say set try use write"


def first_words(tree):
    """Beginnings of the messages of all errors that a module raises."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            said = node.exc.args[0]
            while isinstance(said, ast.BinOp):
                said = said.left
            said = said.values[0] if isinstance(said, ast.JoinedStr) else said
            if isinstance(said, ast.Constant) and isinstance(said.value, str):
                yield node.lineno, said.value


def test_errors_begin_with_what_is_wrong_and_not_with_what_to_do():
    pattern = re.compile(rf"(?:{REMEDIES.replace(' ', '|')}) ", re.I)
    found, seen = [], 0
    for path in sorted((ROOT / "feasid").rglob("*.py")):
        for line, text in first_words(ast.parse(path.read_text())):
            seen += 1
            if pattern.match(text) or text[:4] in ("The ", "You "):
                found.append(f"{path}:{line}: {text}")
    assert seen > 300
    assert found == []
