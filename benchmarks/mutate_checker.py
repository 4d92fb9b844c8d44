"""Mutation testing of the certificate checker: every small change of it must be noticed.

    python benchmarks/mutate_checker.py [--cosmic-ray] [--first 0] [--every 1] [--only 12,101]

Changes `feasid/certificate.py` in one place at a time and runs the checker's own tests against it:
tests are collected once and run in order of their time, every mutant in a fork of its own. Prints
every mutant that no test notices, unless `EQUIVALENT` says why nothing changes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

import pytest
from mutants import Mutant, cosmic_ray, difference, own

from feasid import certificate

ROOT = Path(__file__).resolve().parent.parent
SOURCE = (ROOT / "feasid" / "certificate.py").read_text()
TESTS = ("refusals", "certificate", "checkers", "verdict")
ARGUMENTS = ["-s", "-p", "no:terminal", "-p", "no:cacheprovider", "-m", "not slow"]
ARGUMENTS += ["--rootdir", str(ROOT), *(f"{ROOT}/tests/feasibility/test_{t}.py" for t in TESTS)]
SECONDS = 60
"""Of processor time for the tests of one mutant: what hangs is noticed."""
BYTES = 6 << 30
"""Of address space for the tests of one mutant: so is what eats all memory."""

ITSELF = "what stands in the pivot's own place is zero there"
FULL = "it is full or semi"
FIRST = "no other outcome stands before it in the alphabet"

EQUIVALENT = {
    ("strict=True", "strict=False"): "lists that are as long as each other by what was read before",
    ("if floor > 0", "if floor >= 0"): "the root of zero is zero",
    ("[k + 1 :]", "[k * 1 :]"): ITSELF,
    ("[k + 1 :]", "[k // 1 :]"): ITSELF,
    ("[k + 1 :]", "[k ** 1 :]"): ITSELF,
    ("[k + 1 :]", "[k | 1 :]"): ITSELF,
    ("LARGEST_MATRIX + 1", "LARGEST_MATRIX | 1"): "the same number",
    ("LARGEST_MATRIX + 1", "LARGEST_MATRIX ^ 1"): "the same number",
    ("(pivot == 0 and", "(pivot <= 0 and"): "it is not negative there",
    ("== len(BALANCED)", "<= len(BALANCED)"): "there are four columns or ten",
    ('kind == "full"', 'kind <= "full"'): FULL,
    ('role == "body"', 'role <= "body"'): "it is body, rotor or sign",
    ("len(row) == 1", "len(row) <= 1"): "rows have entries",
    ('== "indefinite"', '<= "indefinite"'): FIRST,
    ('claim == "bound"', 'claim <= "bound"'): "no other claim stands before it in the alphabet",
    ('claim == "boundary"', 'claim <= "boundary"'): "a bound, which is before it, has left already",
    ('__name__ == "__main__"', '__name__ <= "__main__"'): "modules have names in small letters",
}
"""Changes of a line, old and new, that change nothing, and why."""


def harmless(old: str, new: str) -> str:
    """Why a change of these lines changes nothing; empty when it may."""
    for (part, other), why in EQUIVALENT.items():
        pieces = old.split(part)
        ways = range(1, len(pieces))
        if new in (part.join(pieces[:k]) + other + part.join(pieces[k:]) for k in ways):
            return why
    return ""


class Server:
    """A pytest plugin: collects the tests once, then runs them on each mutant."""

    def __init__(self, mutants: list[tuple[int, Mutant]], before: str, folder: Path) -> None:
        self.mutants, self.before, self.folder = mutants, before, folder
        self.seconds: dict[str, float] = {}
        self.failed = False
        self.alive = self.equal = 0
        sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "feasibility")]
        self.certificates = json.dumps(importlib.import_module("test_checkers").originals())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What makes certificates returns those that the unchanged checker's tests made."""
        for item in items:
            module = item.getparent(pytest.Module).obj
            if hasattr(module, "originals"):
                module.originals = lambda: json.loads(self.certificates)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember how long a test took, and whether one failed."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        self.run(session)
        if self.failed:
            raise pytest.UsageError("the unchanged checker fails its own tests")
        session.items.sort(key=lambda item: self.seconds[item.nodeid])
        for number, mutant in self.mutants:
            if not self.survives(session, mutant.source):
                continue
            old, new = difference(self.before, mutant.source)
            why = harmless(old, new)
            self.alive, self.equal = self.alive + (not why), self.equal + bool(why)
            said = f"nothing changes, {why}" if why else "SURVIVES"
            print(f"{number}: {mutant.what}: {old}  ->  {new}: {said}", flush=True)
        return True

    def run(self, session: pytest.Session) -> None:
        """Every test, up to the first that fails."""
        for item in session.items:
            if not self.failed:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def survives(self, session: pytest.Session, source: str) -> bool:
        """True when no test notices."""
        (self.folder / "certificate.py").write_text(source)
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                users = {item.getparent(pytest.Module).obj for item in session.items}
                replace(source, self.folder / "certificate.py", users)
                self.run(session)
            except BaseException:
                self.failed = True
            os._exit(int(self.failed))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def replace(source: str, path: Path, users: set[object]) -> None:
    """Put a changed checker in the place of the unchanged one, also under names that tests took."""
    before = dict(vars(certificate))
    exec(compile(source, str(path), "exec"), certificate.__dict__)
    certificate.__file__ = str(path)
    for user in users:
        for name, value in vars(user).items():
            if name in before and value is before[name]:
                setattr(user, name, vars(certificate)[name])


def main(argv: list[str] | None = None) -> int:
    """The number of mutants that survive without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cosmic-ray", action="store_true", help="that package's changes")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", help="numbers of mutants, separated by commas")
    given = parser.parse_args(argv)
    every = list(enumerate((cosmic_ray if given.cosmic_ray else own)(SOURCE)))
    chosen = every[given.first :: given.every]
    if given.only:
        chosen = [every[int(number)] for number in given.only.split(",")]
    before = SOURCE if given.cosmic_ray else ast.unparse(ast.parse(SOURCE))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(chosen, before, Path(folder))
        pytest.main(ARGUMENTS, plugins=[server])
    tried = f"{len(server.mutants)} mutants of {len(every)} tried"
    print(f"{tried}: {server.equal} change nothing, {server.alive} survive without a reason")
    return server.alive


if __name__ == "__main__":
    sys.exit(main() > 0)
