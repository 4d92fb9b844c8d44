"""Which refusals of the package tests reach, and whether each names what it is about.

    python -m benchmarks.refusals [--list] [--write] [tests, as pytest takes them]

A refusal is a place in the package that makes a `FeasidError`. What it carries (the option, joint,
column, row, file, ...) must be in its message. Printed are refusals about an option that no test
reaches, and messages that do not name what they carry. By default the tests are those
whose names speak of refusals.
"""

import argparse
import ast
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks.faults_page import write_row
from feasid.core import errors
from feasid.core.text import escape_controls

ROOT = Path(__file__).parents[1]
WORDS = (
    *("refus", "named", "error", "bad", "wrong", "option", "unknown", "damaged", "invalid", "said"),
    *("cannot", "no_", "without", "reject", "must", "needs", "conflict"),
)
TESTS = ("tests", "-m", "slow or not slow", "-k", " or ".join(WORDS))
"""Tests whose names speak of refusals."""
NAMED = ("option", "joint", "column", "row", "path", "body", "link", "line")
"""What errors carry and say."""


def refusals(about=None):
    """Places that make an error of the package, by file and line; those that carry `about`."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    for path in sorted((ROOT / "feasid").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", None) not in kinds:
                continue
            if about is None or about in {word.arg for word in node.keywords}:
                yield str(path.relative_to(ROOT)), node.lineno, node.end_lineno


class Watch:
    """A plugin of pytest that notes every error of the package that is made."""

    def __init__(self):
        self.reached = defaultdict(set)
        """Line and end of the name of what was not said, by file."""
        self.unsaid = {}
        self.made = errors.FeasidError.__init__

    def pytest_sessionstart(self):
        watch, made = self, self.made

        def note(error, message, **data):
            made(error, message, **data)
            frame = sys._getframe(1)
            while frame.f_code.co_filename == __file__:  # of another watch, in a test
                frame = frame.f_back
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(ROOT):
                watch.note(str(file.relative_to(ROOT)), frame.f_lineno, str(error), data)

        errors.FeasidError.__init__ = note

    def pytest_sessionfinish(self):
        errors.FeasidError.__init__ = self.made

    def note(self, file, line, message, data):
        self.reached[file].add(line)
        for what in {*NAMED} & {*data}:
            value = data[what]
            parts = value if isinstance(value, list | tuple) else () if value is None else (value,)
            if missing := [p for p in parts if escape_controls(str(p)) not in message]:
                self.unsaid[file, line, what] = f"{what} {missing} is not in: {message[:200]}"


def main(argv=None):
    """Returns 0 where every refusal about an option is reached and all name what they carry."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m benchmarks.refusals", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--list", action="store_true", help="print every place not reached")
    parser.add_argument("--write", action="store_true", help="put the counts into docs/faults.md")
    given, tests = parser.parse_known_args(argv)
    watch = Watch()
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *(tests or TESTS)], plugins=[watch])

    def reached(places):
        return [any(first <= line <= last for line in watch.reached[file])
                for file, first, last in places]  # fmt: skip

    every, optional = [*refusals()], [*refusals("option")]
    here = reached(optional)
    left = [place for place, there in zip(optional, here, strict=True) if not there]
    for file, line, _ in left:
        print(f"{file}:{line}: no test reaches this refusal of an option")
    for place, there in zip(every, reached(every), strict=True):
        if given.list and not there:
            print("{}:{}-{}: not reached".format(*place))
    for (file, line, _), text in watch.unsaid.items():
        print(f"{file}:{line}: {text}")
    of_options = f"{sum(here)} of {len(optional)} refusals of options"
    of_all = f"{sum(reached(every))} of all {len(every)} are reached"
    outcome = f"{of_options} and {of_all}; {len(watch.unsaid)} do not name what they carry"
    print(outcome)
    if given.write:
        write_row("a refusal that does not name its option or input", len(every), outcome)
    return int(bool(left or watch.unsaid))


if __name__ == "__main__":
    sys.exit(main())
