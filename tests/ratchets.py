"""What may only get smaller (or, of comments, larger): how it is measured.

``python -m tests.ratchets`` prints every number beside its limit. The limits stand in
``ratchets.json`` and are changed by hand, with the reason in the commit: no command writes them.
"""

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "feasid"
NUMBERS = TESTS / "ratchets.json"

AT_LEAST = {"comments per thousand lines"}
"""Numbers that may rise and not fall."""

VAGUE = {
    *("found", "own", "told", "said", "whole", "kept", "given", "asked", "chosen", "wanted"),
    *("rest", "left", "near", "seen", "taken", "plain", "completed", "believed", "unlike"),
}
"""Adjectives and participles that do not say what a local variable is."""

MAIN_PATH = {
    "identification/fit.py": {
        "identify",
        "_fit_torques",
        "_identify",
        "_fit_with_effects",
        "_solve",
    },
    "identification/effects/selection.py": {"enter_effects", "correct_selection"},
    "identification/estimation/estimator.py": {"fit"},
}
"""Functions that a reader of a fit follows from arguments to parameters."""

FIT = """
import sys, feasid
log, entered = feasid.datasets.load("kuka_lwr4"), set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_globals.get("__name__", ""))
sys.setprofile(note)
feasid.fit(log)
sys.setprofile(None)
print(sum(name.startswith("feasid.") for name in entered))
"""


@cache
def sources(folder=SOURCE):
    """Text of every module, by path from the folder."""
    paths = sorted(folder.rglob("*.py"))
    return {path.relative_to(folder): path.read_text(encoding="utf-8") for path in paths}


@cache
def trees():
    return {path: ast.parse(text) for path, text in sources().items()}


def area_of(path):
    return path.parts[0] if len(path.parts) > 1 else "face"


def areas():
    return sorted({area_of(path) for path in sources()})


def count_lines(area=None, folder=SOURCE):
    every = sources(folder).items()
    return sum(text.count("\n") for path, text in every if area in (None, area_of(path)))


def count_vague():
    """Per thousand names of locals that the package stores."""
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return round(1000 * sum(name in VAGUE for name in names) / len(names))


def count_comments():
    """Comments on lines of their own, per thousand lines."""
    total = 0
    for text in sources().values():
        lines = text.splitlines()
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = (t for t in tokens if t.type == tokenize.COMMENT)
        total += sum(lines[t.start[0] - 1].strip().startswith("#") for t in comments)
    return round(1000 * total / count_lines(), 1)


def count_single_use():
    """Functions that one place of the package names, in percent of all functions."""
    functions, uses = Counter(), Counter()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[node.name] += 1
            elif isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
    single = (n for n, k in functions.items() if k == uses[n] == 1 and not n.startswith("__"))
    return round(100 * len([*single]) / functions.total(), 1)


def count_text(*texts):
    """How often these texts stand in the package: calls, or parts of formulas."""
    return sum(source.count(text) for source in sources().values() for text in texts)


def count_files(text):
    """Files of the package that hold a text."""
    return sum(text in source for source in sources().values())


def count_classes(folder):
    every = (node for p, t in trees().items() if p.is_relative_to(folder) for node in ast.walk(t))
    return sum(isinstance(node, ast.ClassDef) for node in every)


def count_main_path():
    """Lines of code of `MAIN_PATH`, without docstrings, comments and empty lines."""
    total = 0
    for path, names in MAIN_PATH.items():
        for node in ast.walk(ast.parse(sources()[Path(path)])):
            if isinstance(node, ast.FunctionDef) and node.name in names:
                node.body = node.body[1:] if ast.get_docstring(node) else node.body
                total += len({n.lineno for n in ast.walk(node) if hasattr(n, "lineno")})
    return total


@cache
def count_entered_modules():
    """Modules of which a default fit of a packaged log calls a function."""
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=TESTS.parent)
    return int(done.stdout)


def measure():
    """Every number of the text of the package and of the tests, by name."""
    return {f"lines of {area}": count_lines(area) for area in areas()} | {
        "lines of feasid": count_lines(),
        "lines of tests": count_lines(folder=TESTS),
        "lines of the main path": count_main_path(),
        "vague names of locals, per mille": count_vague(),
        "functions with one caller, percent": count_single_use(),
        "comments per thousand lines": count_comments(),
        "classes of effects": count_classes(Path("identification", "effects")),
        "files that name stribeck": count_files('"stribeck"'),
        "places that build an EstimationProblem": count_text("EstimationProblem.from_reduced("),
        "clocks of folds": count_text("/ FOLD_SECONDS +"),
    }


def limits():
    """What each number may be at most, or at least for those of `AT_LEAST`."""
    return json.loads(NUMBERS.read_text())


if __name__ == "__main__":
    for name, now in {**measure(), "modules that a fit enters": count_entered_modules()}.items():
        print(f"{now:8} {limits().get(name, '-'):>8}  {name}")
