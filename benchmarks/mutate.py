"""Mutation testing: does a module's own test file notice a change of one token?

    python benchmarks/mutate.py [--modules statistics,nullspace] [--every 7] [--first 0]

Changes one operator, comparison, number, truth value, condition or `not` of a module at a time, in
a copy, runs the tests that belong to the module against the copy, and prints every change that none
of them notices. `HARMLESS` names the places where a change makes no difference, and why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutants import own

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300.0

MODULES = {
    "statistics": ("identification/statistics.py", ["identification/test_statistics.py"]),
    "result": (
        "identification/result.py",
        ["identification/test_fit.py", "identification/test_saved.py"],
    ),
    "triangle": ("reduction/triangle.py", ["reduction/test_reduction.py"]),
    "fleet": ("reduction/fleet.py", ["reduction/test_fleet.py", "reduction/test_workers.py"]),
    "nullspace": ("identifiability/nullspace.py", ["identifiability/test_nullspace.py"]),
    "regressor": ("dynamics/regressor.py", ["dynamics/test_regressor.py"]),
    "derive": ("logs/signals/derive.py", ["logs/test_signals.py"]),
    "filters": ("logs/signals/filters.py", ["logs/test_signals.py"]),
    "smoothers": ("logs/signals/smoothers.py", ["logs/test_signals.py"]),
    "grid": ("logs/signals/grid.py", ["logs/test_grid.py"]),
}  # fmt: skip
"""What is changed, and the tests that are to notice."""

HARMLESS: dict[str, str] = {
    "CHUNK": "how many samples are handled at a time is a question of speed",
    "strict=True": "a check of our own arrays against each other",
}
"""Parts of a changed line that make no difference to what is computed, and why."""


def copied(where: Path) -> None:
    """The project without what tests do not need."""
    for part in ("feasid", "tests", "pyproject.toml", "docs", "README.md"):
        from_ = ROOT / part
        (shutil.copytree if from_.is_dir() else shutil.copy)(from_, where / part)


def noticed(where: Path, tests: list[str]) -> bool:
    """Whether a test fails in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(where), "OPENBLAS_NUM_THREADS": "1"}
    order = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*order, *(f"tests/{t}" for t in tests)],
            cwd=where,
            env=environment,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def tried(name: str, where: Path, first: int, every: int) -> tuple[int, int]:
    """Changes that were tried and noticed, of one module."""
    file, tests = MODULES[name]
    target = where / "feasid" / file
    source = (ROOT / "feasid" / file).read_text()
    lines = source.splitlines()
    chosen = list(own(source))[first::every]
    seen = count = 0
    try:
        for line, what, changed in chosen:
            text = lines[line - 1].strip()
            if any(part in text for part in HARMLESS):
                continue
            target.write_text(changed)
            count += 1
            if noticed(where, tests):
                seen += 1
            else:
                print(f"  {name}, line {line}, {what}: {text}", flush=True)
    finally:
        target.write_text(source)
    return count, seen


def main(argv: list[str] | None = None) -> int:
    """Returns 0 when at least nine of ten changes are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(argv)
    counts = seen = 0
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        copied(where)
        for name in given.modules.split(","):
            if not noticed(where, ["no_such_test.py"]) or noticed(where, MODULES[name][1]):
                print(f"{name}: its tests fail without any change")
                return 2
            count, own = tried(name, where, given.first, given.every)
            print(f"{name}: {own} of {count} changes noticed", flush=True)
            counts, seen = counts + count, seen + own
    print(f"all: {seen} of {counts} changes noticed ({100 * seen / max(counts, 1):.0f} %)")
    return int(seen < 0.9 * counts)


if __name__ == "__main__":
    sys.exit(main())
