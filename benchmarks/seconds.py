"""What tests cost: seconds of processor time by file, test and fixture, child processes included.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.seconds tests/effects tests/cli/test_cli.py

Other arguments are pytest's (``-m slow``, ``--randomly-seed=7``). Times of the wall are of no use
on a machine that others use; processor time is the same there, up to a tenth.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

MOST = 30
"""Number of files, of tests and of fixtures that are printed."""


def processor_time() -> float:
    """Of this process and of its children that have ended [s]."""
    return sum(os.times()[:4])


class Clock:
    """A plugin of pytest that adds up what files, tests and fixtures take."""

    def __init__(self) -> None:
        self.files, self.tests, self.fixtures = (defaultdict[str, float](float) for _ in range(3))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Set-up, call and tear-down of a test."""
        start = processor_time()
        result = yield
        spent = processor_time() - start
        self.files[item.nodeid.split("::")[0]] += spent
        self.tests[item.nodeid] += spent
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """A fixture, with those that it asks for."""
        start = processor_time()
        result = yield
        name = f"{fixturedef.baseid}::{fixturedef.argname} ({fixturedef.scope})"
        self.fixtures[name] += processor_time() - start
        return result

    def pytest_terminal_summary(self) -> None:
        """Print what took longest."""
        print(f"\n\n{sum(self.files.values()):.1f} s of processor time in {len(self.tests)} tests")
        for title, spent in (
            ("file", self.files),
            ("test", self.tests),
            ("fixture", self.fixtures),
        ):
            print(f"\n{'seconds':>9}  {title}")
            for name, seconds in sorted(spent.items(), key=lambda entry: -entry[1])[:MOST]:
                print(f"{seconds:9.1f}  {name}")


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-n", "0", *sys.argv[1:]], plugins=[Clock()]))
