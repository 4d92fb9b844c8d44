"""What may only get smaller: how it is measured, and the numbers of today in ``ratchets.json``.

``python -m tests.ratchets`` writes smaller numbers down; with ``--up NAME...`` or ``--up all`` also
larger ones, for a change that is worth its lines and says so. Rooms may grow a little at the cost
of each other, the total may not.
"""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "feasid"
NUMBERS = TESTS / "ratchets.json"

ROOM_SHARE = 0.02
"""Of a room's lines, by which it may grow at the cost of another."""

VAGUE = {
    *("found", "own", "told", "said", "whole", "kept", "given", "asked", "chosen", "wanted"),
    *("rest", "left", "near", "seen", "taken"),
}
"""Names of locals that do not say what they are."""

MAIN_PATH = {
    "identification/fit.py": {"fit", "_fit_torques", "_identify", "_fit_with_effects", "_solve"},
    "effects/selection.py": {"enter_effects", "correct_selection"},
    "estimation/estimator.py": {"fit"},
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


def room_of(path):
    return path.parts[0] if len(path.parts) > 1 else "face"


def rooms():
    return sorted({room_of(path) for path in sources()})


def count_lines(room=None, folder=SOURCE):
    every = sources(folder).items()
    return sum(text.count("\n") for path, text in every if room in (None, room_of(path)))


def count_vague(room):
    """Per thousand names of locals that a room stores."""
    trees = (ast.parse(text) for path, text in sources().items() if room_of(path) == room)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    names = [node.id for node in nodes if isinstance(node.ctx, ast.Store)]
    return round(1000 * sum(name in VAGUE for name in names) / max(len(names), 1))


def count_text(*texts):
    """How often these texts stand in the package: calls, or parts of formulas."""
    return sum(source.count(text) for source in sources().values() for text in texts)


def count_main_path():
    """Lines of code of `MAIN_PATH`, without docstrings, comments and empty lines."""
    total = 0
    for path, names in MAIN_PATH.items():
        for node in ast.walk(ast.parse(sources()[Path(path)])):
            if isinstance(node, ast.FunctionDef) and node.name in names:
                node.body = node.body[1:] if ast.get_docstring(node) else node.body
                total += len({n.lineno for n in ast.walk(node) if hasattr(n, "lineno")})
    return total


def count_parents_of_fit():
    from feasid import Fit

    return sum(c.__module__.startswith("feasid.") for c in Fit.__mro__[1:])


@cache
def count_entered_modules():
    """Modules of which a default fit of a packaged log calls a function."""
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=TESTS.parent)
    return int(done.stdout)


def measure():
    """Every number, by name."""
    numbers = {f"lines of {room}": count_lines(room) for room in rooms()}
    numbers |= {f"vague names of {room}, per mille": count_vague(room) for room in rooms()}
    return numbers | {
        "lines of feasid": count_lines(),
        "lines of tests": count_lines(folder=TESTS),
        "places that build an EstimationProblem": count_text("EstimationProblem.from_reduced("),
        "clocks of folds": count_text("/ FOLD_SECONDS +"),
        "parents of Fit": count_parents_of_fit(),
        "lines of the main path": count_main_path(),
    }


def limits():
    """The numbers of today."""
    return json.loads(NUMBERS.read_text())


def write(up=()):
    """Write down what became smaller, and what is named though it became larger."""
    old = limits() if NUMBERS.exists() else {}
    new = measure() | {"modules that a fit enters": count_entered_modules()}
    for name in new:
        if name.startswith("lines of ") and name.removeprefix("lines of ") in rooms():
            new[name] = round(new[name] * (1 + ROOM_SHARE))
        if name not in up and "all" not in up:
            new[name] = min(new[name], old.get(name, new[name]))
    NUMBERS.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    write(up=sys.argv[sys.argv.index("--up") + 1 :] if "--up" in sys.argv else ())
