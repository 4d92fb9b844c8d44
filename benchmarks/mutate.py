"""Mutation testing: do the tests notice a change of one token?

    python benchmarks/mutate.py [--mutants 200] [--seed 0] [--modules statistics,nullspace]

Draws changes (`mutants.changes`: an operator, comparison, number, truth value, condition, function
or statement) at random from all changes of the modules, and tries each in a copy of the project, in
a process forked from one that has imported every library. Only tests that call the changed function
run, those first that noticed a change before, then the quickest. Prints every change that no test
notices; `HARMLESS` says of some why they make no difference. What is killed counts against all that
were drawn, the harmless ones included.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mutants import changes, difference

ROOT = Path(__file__).resolve().parent.parent

BUDGET = 5.0
"""Processor time of the tests of one change [s]; of those that call it, the quickest are taken."""

HANGS = 60
"""Processor time beyond which a change counts as noticed [s]: without it tests take far less."""

MODULES = {
    "statistics": "identification/statistics.py",
    "noise": "identification/noise.py",
    "result": "identification/result.py",
    "fitted": "identification/fitted.py",
    "triangle": "reduction/triangle.py",
    "strata": "reduction/strata.py",
    "fleet": "reduction/fleet.py",
    "nullspace": "identifiability/nullspace.py",
    "step": "identifiability/step.py",
    "regressor": "dynamics/regressor.py",
    "derive": "logs/signals/derive.py",
    "filters": "logs/signals/filters.py",
    "smoothers": "logs/signals/smoothers.py",
    "grid": "logs/signals/grid.py",
}
"""What is changed: the modules of the way from a log to its fit, with those that replaced them."""

TESTS = (
    "logs/test_signals.py", "logs/test_derivatives.py", "logs/test_grid.py", "logs/test_frame.py",
    "dynamics/test_regressor.py", "dynamics/test_coupled.py", "dynamics/test_floating.py",
    "dynamics/test_energy.py", "dynamics/test_algorithm_1.py", "identifiability/test_nullspace.py",
    "identifiability/test_confirm.py", "identifiability/test_base.py", "reduction",
    "identification/test_statistics.py", "identification/test_noise.py",
    "identification/test_saved.py",
)  # fmt: skip
"""Of the default suite, those that are about these modules and quick: a lower bound is found."""

HARMLESS: dict[tuple[str, str, str], str] = {
    (
        "derive",
        "slopes = smooth(part['dq'], 0 if 'ddq' in part else 1, cutoff, rate, how.smoothing)",
        "slopes = smooth(part['dq'], 0 if 'ddq' in part else 2, cutoff, rate, how.smoothing)",
    ): "a derivative more than is wanted is left out when names are given",
    (
        "strata",
        "k = parts[0].triangles.shape[-1]",
        "k = parts[0].triangles.shape[-2]",
    ): "triangles are square",
    (
        "grid",
        "@dataclass(frozen=True, eq=False)",
        "@dataclass(frozen=False, eq=False)",
    ): "nobody writes into one",
    (
        "grid",
        "count = max(1, round((t[-1] - t[0]) / slope))",
        "count = max(2, round((t[-1] - t[0]) / slope))",
    ): "two stamps are always even, three have two steps",
    ("derive", "JUDGED = 9", "JUDGED = 10"): "how many spectra are looked at is a question of time",
}
"""Changes by module, line before and after, that no test can notice, and why."""


class Site(NamedTuple):
    """Where a change is: of a module, the node of its tree, and which of the node's changes."""

    module: str
    node: int
    which: int
    line: int
    what: str

    def changed(self, source: str) -> str:
        """The module's text with the change."""
        tree = ast.parse(source)
        node = next(n for k, n in enumerate(ast.walk(tree)) if k == self.node)
        list(changes(node))[self.which][1](node)
        return ast.unparse(ast.fix_missing_locations(tree))


def sites(module: str, source: str) -> Iterator[Site]:
    """All changes of a module."""
    tree = ast.parse(source)
    for k, node in enumerate(ast.walk(tree)):
        for which, (what, _) in enumerate(changes(node)):
            yield Site(module, k, which, getattr(node, "lineno", 0), what)


def function_at(source: str, line: int) -> int | None:
    """First line of the innermost function around a line, as its code object has it."""
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= node.end_lineno
    ]
    if not around:
        return None
    inner = max(around, key=lambda node: node.lineno)
    return min([inner.lineno, *(d.lineno for d in inner.decorator_list)])


class Session:
    """Pytest's hooks in a forked process: which tests run, how long, and what they call."""

    def __init__(self, where: Path, known: dict[str, Any] | None, wanted: list[str]) -> None:
        self.where, self.known, self.wanted = where, known, wanted
        self.seconds: dict[str, float] = {}
        self.called: dict[str, list[str]] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are wanted, in their order."""
        if self.known is not None:
            place = {name: k for k, name in enumerate(self.wanted)}
            items[:] = sorted(
                (i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid]
            )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test calls of the modules that are changed."""
        if self.known is not None:
            yield
            return
        files = {str(self.where / "feasid" / file): name for name, file in MODULES.items()}
        seen: set[str] = set()

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename in files:
                code = frame.f_code
                seen.add(f"{files[code.co_filename]}:{code.co_firstlineno}")

        start = time.process_time()
        sys.setprofile(note)
        yield
        sys.setprofile(None)
        self.seconds[item.nodeid] = time.process_time() - start
        self.called[item.nodeid] = sorted(seen)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what failed."""
        if report.failed:
            self.failed.append(report.nodeid)


def forked(where: Path, known: dict[str, Any] | None, wanted: list[str]) -> dict[str, Any]:
    """What the tests in the copy say, run by a child of this process."""
    told = where / "told.json"
    told.unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        try:
            tested(where, known, wanted, told)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if told.exists():
        return json.loads(told.read_text())
    if ended in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGSEGV):
        return {"status": ended, "failed": []}
    raise SystemExit((where / "said.txt").read_text())


def tested(where: Path, known: dict[str, Any] | None, wanted: list[str], told: Path) -> None:
    """Run tests in this process, and write what they say."""
    os.chdir(where)
    sys.path[:0] = [str(where), str(where / "tests")]
    said = os.open(where / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1), os.dup2(said, 2)
    if known is not None:
        limit = int(time.process_time()) + HANGS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    session = Session(where, known, wanted)
    files = sorted({name.split("::")[0] for name in wanted}) or [f"tests/{t}" for t in TESTS]
    order = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files, *(["-x"] if known else [])]
    status = int(pytest.main(order, plugins=[session]))
    names = [n for n in sys.modules if not n.startswith(AGAIN) and n.split(".")[0] not in OURS]
    text = {"status": status, "failed": session.failed, "modules": names}
    text |= {"seconds": session.seconds, "called": session.called}
    told.write_text(json.dumps(text))


OURS = {
    "feasid",
    "tests",
    "conftest",
    "__main__",
    *(p.stem for p in (ROOT / "tests").rglob("*.py")),
}
"""Top-level modules that a forked process imports itself."""

AGAIN = ("pytest", "_pytest", "hypothesis", "_hypothesis", "xdist", "pluggy", "py.")
"""And those that make themselves at home in pytest."""


def copied(where: Path) -> None:
    """The project as its tests need it."""
    shutil.copytree(ROOT / "feasid", where / "feasid")
    shutil.copytree(ROOT / "tests", where / "tests")
    for part in ("examples", "docs", "datasets", "pyproject.toml", "README.md"):
        (where / part).symlink_to(ROOT / part)


def prepared(where: Path, kept: Path | None) -> dict[str, Any]:
    """Run the tests without a change: their cost, what they call, and the libraries they need."""
    known = json.loads(kept.read_text()) if kept and kept.exists() else forked(where, None, [])
    for name in known["failed"]:
        print(f"not used, it fails without any change: {name}")
        known["seconds"].pop(name, None), known["called"].pop(name, None)
    if kept:
        kept.write_text(json.dumps(known))
    for name in known["modules"]:
        try:
            importlib.import_module(name)
        except Exception:  # made while a library was imported, and no module of its own
            continue
    quickest = sorted(known["seconds"], key=known["seconds"].get)[:20]
    if forked(where, known, quickest)["status"]:
        raise SystemExit((where / "said.txt").read_text() + "\nthe tests fail without any change")
    return known


def noticed(
    site: Site, source: str, where: Path, known: dict[str, Any], kills: Counter[str]
) -> bool:
    """Whether a test notices a change."""
    target = where / "feasid" / MODULES[site.module]
    around = function_at(source, site.line)
    users = [
        name for name, called in known["called"].items()
        if (any(c.startswith(f"{site.module}:") for c in called) if around is None
            else f"{site.module}:{around}" in called)
    ]  # fmt: skip
    if not users:
        return False
    users.sort(key=lambda name: (-kills[name], known["seconds"][name]))
    spent = accumulate(known["seconds"][name] for name in users)
    users = [name for name, total in zip(users, spent, strict=True) if total < BUDGET] or users[:1]
    try:
        target.write_text(site.changed(source))
        for cached in target.parent.glob(f"__pycache__/{target.stem}.*"):
            cached.unlink()
        told = forked(where, known, users)
    finally:
        target.write_text(source)
    kills.update(told["failed"][:1])
    return bool(told["status"])


def main(argv: list[str] | None = None) -> int:
    """Returns 0 when at least nine of ten changes are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--known", type=Path, help="keep here what the unchanged tests call")
    given = parser.parse_args(argv)
    names = given.modules.split(",")
    sources = {name: (ROOT / "feasid" / MODULES[name]).read_text() for name in names}
    every = [site for name in names for site in sites(name, sources[name])]
    drawn = random.Random(given.seed).sample(every, min(given.mutants, len(every)))
    kills, killed, total = Counter[str](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder).resolve()
        copied(where)
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(where)}
        known = prepared(where, given.known)
        print(f"{len(known['seconds'])} tests, {sum(known['seconds'].values()):.0f} s", flush=True)
        for number, site in enumerate(drawn):
            source = sources[site.module]
            if number and number % 10 == 0:
                print(f"so far {killed.total()} of {number}", flush=True)
            total[site.module] += 1
            if noticed(site, source, where, known, kills):
                killed[site.module] += 1
                continue
            old, new = difference(ast.unparse(ast.parse(source)), site.changed(source))
            why = HARMLESS.get((site.module, old, new), "SURVIVES")
            place = f"{number}: {site.module}, line {site.line}, {site.what}"
            print(f"{place}: {old}  ->  {new}: {why}", flush=True)
    for name in total:
        print(f"{name}: {killed[name]} of {total[name]}")
    print(f"all: {killed.total()} of {total.total()} changes noticed, {len(every)} in all")
    return int(killed.total() < 0.9 * total.total())


if __name__ == "__main__":
    sys.exit(main())
