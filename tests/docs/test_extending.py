"""The page on extending the package is followed to the letter, in a copy of the package.

A Python block that begins with ``# feasid/<path>: new file``, ``... at the end`` or
``... at the end of NAME`` is written there; NAME is a class, or a constant that is a literal. A
block that begins with ``# use`` is run with what all blocks of its section have added.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import feasid

PACKAGE = Path(feasid.__file__).parent
PAGE = PACKAGE.parent / "docs" / "extending.md"
PLACE = re.compile(r"# (feasid/\S+): (new file|at the end(?: of (\w+))?)\n")


def sections():
    """Title and Python blocks of each section that shows how something is used."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        fences = re.findall(r"^([ ]*)```python\n(.*?)^\1```$", text, flags=re.M | re.S)
        blocks = [re.sub(f"^{indent}", "", body, flags=re.M) for indent, body in fences]
        if any(block.startswith("# use") for block in blocks):
            yield title, blocks


def insertion(text, name):
    """Offset in `text` before which a new entry of `name` goes, and the entry's indentation."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, ast.ClassDef) and node.name == name:
            return sum(map(len, lines[: node.end_lineno])), "    "
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            value = node.value
            while isinstance(value, ast.Call):
                value = value.args[0]
            end = value.end_col_offset - 1
            return sum(map(len, lines[: value.end_lineno - 1])) + end, ""
    raise AssertionError(f"no {name}")


def apply(block, root):
    """Write a block where its first line says; the file's path."""
    path, where, name = PLACE.match(block).groups()
    body = block.split("\n", 1)[1]
    file = root / path
    if where == "new file":
        assert not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)
    elif name is None:
        file.write_text(file.read_text() + "\n\n" + body)
    else:
        text = file.read_text()
        at, indent = insertion(text, name)
        entry = "".join(indent + line for line in body.splitlines(keepends=True))
        gap = "" if indent or text[:at].rstrip().endswith((",", "(", "[", "{")) else ", "
        file.write_text(text[:at] + gap + entry + text[at:])
    return path


FILES_TOUCHED = {
    "A joint term": 2, "A constraint on parameters": 2, "A format of logs": 1,
    "A format of description files": 1, "A field of a description file": 1,
    "A check of a log": 1, "A prior": 1, "A check of the verdict": 1, "A solver": 0,
}  # fmt: skip
"""How many files of the package each exercise may touch."""


def test_every_exercise_is_on_the_page():
    assert {title for title, _ in sections()} == set(FILES_TOUCHED)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("title", FILES_TOUCHED)
def test_what_the_page_adds_can_be_used(title, tmp_path):
    blocks = dict(sections())[title]
    shutil.copytree(PACKAGE, tmp_path / "feasid", ignore=shutil.ignore_patterns("__pycache__"))
    touched = {apply(block, tmp_path) for block in blocks if PLACE.match(block)}
    assert len(touched) == FILES_TOUCHED[title]
    program = "\n".join(block for block in blocks if block.startswith("# use"))
    command = [sys.executable, "-W", "error", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert str(tmp_path) in done.stdout
