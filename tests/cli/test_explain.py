"""`feasid explain` knows every code that the package gives a finding, and no other."""

import ast
import re
from pathlib import Path
from typing import is_typeddict

import feasid
from feasid.applications.inspection.file_check import RULES
from feasid.cli import main
from feasid.cli.explain import ENTRY
from feasid.identification.effects.table import EFFECTS
from feasid.options import tables as options
from feasid.options.complete import option_table

PACKAGE = Path(feasid.__file__).parent
TEXTS = dict(ENTRY.findall((PACKAGE / "cli/codes.md").read_text()))

PLACES = {"Note": 1, "Finding": 0, "_finding": 0, "_make_finding": 0, "finding": 0, "check": 0,
          "_finding_of_error": 0, "Cause": 0}  # fmt: skip
"""Place of the code among the arguments, by function."""

INDIRECT = {"unknown-units", "gravity compensation", "feed-forward", "force-sign", "force-unit",
            "mass-bound", "shape-bound", "mass-released", "shape-released",
            "bound-excluded"}  # fmt: skip
"""Codes that reach these functions by a variable."""


def codes_in_source():
    for path in PACKAGE.rglob("*.py"):
        for call in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)):
            place = PLACES.get(getattr(call.func, "id", getattr(call.func, "attr", "")))
            if place is not None and len(call.args) > place:
                parts = [n for n in ast.walk(call.args[place]) if isinstance(n, ast.Constant)]
                yield from (n.value for n in parts if n.value not in ("kind", ""))


def test_every_code_of_the_source_has_a_text_and_every_text_a_code():
    codes = {c for c in codes_in_source() if isinstance(c, str)} | {*EFFECTS} | {*RULES} | INDIRECT
    assert codes == {*TEXTS}
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert all(f'"{code}"' in source for code in INDIRECT)
    assert all("\n*What to do:* " in text for text in TEXTS.values())
    tables = [option_table(t) for t in vars(options).values() if is_typeddict(t)]
    assert {*re.findall("`([a-z_]+)=", str(TEXTS))} <= {name for t in tables for name in t}


def test_codes_of_real_findings_are_known():
    fit = feasid.fit(feasid.datasets.load("arm"))
    diagnosis = feasid.diagnose(feasid.datasets.load("arm"))
    notes = [*fit.notes, *fit.quality.reasons]
    assert {n.code for n in notes if n.code} | {f.code for f in diagnosis} <= {*TEXTS}
    assert all(f"[{n.code}]" in str(fit.summary()) for n in fit.notes if n.code)


def test_a_code_is_explained_and_a_wrong_one_gets_the_nearest(capsys):
    assert main(["explain", "short"]) == 0
    said = capsys.readouterr().out
    assert "record a longer motion" in said
    assert "*" not in said
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TEXTS)
    assert main(["explain", "shrot"]) == 2
    assert re.search(r"did you mean 'short'", capsys.readouterr().err)
