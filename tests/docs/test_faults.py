"""Every fault of docs/faults.md and promise of SECURITY.md has a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/faults.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| .* \| `(.*?)::(.*?)` \|$", PAGE, re.M)
FAULTS = 87
PROMISES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())


@cache
def functions_of(file):
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_fault_has_a_row():
    assert len(PROMISES) > 15
    assert [int(number) for number, _, _ in ROWS] == list(range(1, FAULTS + 1))


@pytest.mark.parametrize(("file", "name"), sorted({*(row[1:] for row in ROWS), *PROMISES}))
def test_the_test_exists(file, name):
    assert name in functions_of(file)
