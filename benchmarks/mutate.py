"""Mutation testing: do the tests notice a change of one token?

    python benchmarks/mutate.py [--packages robot,control] [--mutants 20] [--seed 0]

Draws changes (`mutants.changes`: an operator, comparison, number, truth value, condition, function
or statement) at random from all changes of each package, by default of all and with a seed from the
clock, and tries each in a fork of a process that has collected the tests (`tried`). Only tests that
reach the changed statement run (`reached`), for some seconds: those of the file that reaches it
most, then what noticed a change before, then the quickest, then the others. Prints every change
that no test notices; `HARMLESS` says of some why they make no difference. What is killed counts
against all that were drawn, the harmless ones included.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
from multiprocessing import SimpleQueue
from pathlib import Path
from typing import NamedTuple

import pytest
from mutants import changes, difference, nth
from reached import Known, kept, marked, reaching
from tried import Tried, apart, put

ROOT = Path(__file__).resolve().parent.parent

BUDGET = 12.0
"""Processor time of the tests of one change [s]: of what reaches it, first its package's."""

FIRST = 2.0
"""Processor time of those of one file that are tried before others are collected [s]."""

LAST = 40.0
"""Of the costlier ones, for what none of these notices [s]."""

TESTS = (
    "tests/test_structure.py", "tests/core/test_archives.py", "tests/core/test_display.py",
    "tests/core/test_files.py", "tests/applications/test_saved_files.py", "tests/cli",
    "tests/codegen",
    "tests/control", "tests/datasets", "tests/diagnosis", "tests/dynamics", "tests/estimation",
    "tests/excitation", "tests/feasibility", "tests/formats", "tests/identifiability",
    "tests/identification", "tests/inspection", "tests/logs", "tests/online", "tests/options",
    "tests/regression", "tests/robot", "tests/security",
)  # fmt: skip
"""The default suite without documentation, papers and campaigns: a lower bound is found."""

PARTS = ("examples", "docs", "datasets")
"""Folders that tests read besides the package and their own."""

UNUSED = ("cacheprovider", "xdist", "randomly")
"""Plugins of Pytest that are left out."""

STRUCTURE = "tests/test_structure.py::test_dataclasses"
"""Tests of what stands outside functions, which reach nothing."""

SPEED = "a question of time only"

ALL = "power = np.array([np.sum(t[:, -1] ** 2) for t in reduced.triangles])"
SIGNS = "r *= np.where(np.diag(r) {} 0, -1.0, 1.0)[:, None]"

HARMLESS: dict[tuple[str, str, str], str] = {
    (
        "derivatives",
        "slopes = smooth(part['dq'], 0 if 'ddq' in part else 1, cutoff, rate)",
        "slopes = smooth(part['dq'], 0 if 'ddq' in part else 2, cutoff, rate)",
    ): "a derivative more than is wanted is left out when names are given",
    (
        "derivatives",
        "rate = (len(grid.t) - 1) / (grid.t[-1] - grid.t[0]) if len(grid.t) > 1 else stretch.rate",
        "rate = (len(grid.t) - 1) / (grid.t[-1] - grid.t[0]) if len(grid.t) > 2 else stretch.rate",
    ): "two samples make no run",
    (
        "strata",
        "k = parts[0].triangles.shape[-1]",
        "k = parts[0].triangles.shape[-2]",
    ): "triangles are square",
    ("strata", "TOGETHER = 512", "TOGETHER = 513"): SPEED,
    (
        "clock",
        "count = max(1, round((t[-1] - t[0]) / slope))",
        "count = max(2, round((t[-1] - t[0]) / slope))",
    ): "two stamps are always even, three have two steps",
    (
        "clock",
        "whole = np.abs(distinct / unit - np.rint(distinct / unit)) < EVEN",
        "whole = np.abs(distinct / unit - np.rint(distinct / unit)) <= EVEN",
    ): "no ratio is the tolerance to the last bit",
    (
        "filters",
        "highest = frequencies[int(np.searchsorted(share, POWER * share[-1]))]",
        "highest = frequencies[int(np.searchsorted(share, POWER * share[-2]))]",
    ): "the highest frequency of all carries none of it",
    (
        "noise",
        "seen = singular > RANK_TOLERANCE * max(singular[0], 1e-300)",
        "seen = singular >= RANK_TOLERANCE * max(singular[0], 1e-300)",
    ): "no singular value is the tolerance to the last bit",
    (
        "noise",
        "blind = (right[~seen] ** 2).sum(axis=0) > RANK_TOLERANCE",
        "blind = (right[~seen] ** 2).sum(axis=0) >= RANK_TOLERANCE",
    ): "no sum is the tolerance to the last bit",
    (
        "recursion",
        "pairs = [cross(a) @ b for k, a in enumerate(own) for b in own[k + 1:]]",
        "pairs = [cross(a) @ b for k, a in enumerate(own) for b in own[k - 1:]]",
    ): "the other order spans the same, and with itself nothing",
    (
        "recursion",
        "if len(self.actions[0]) == 1:",
        "if len(self.actions[1]) == 1:",
    ): "one action per axis, of motions and of forces",
    (
        "triangle",
        "for start in range(0, len(arrays[0]), CHUNK):",
        "for start in range(0, len(arrays[1]), CHUNK):",
    ): "all arrays have one length",
    (
        "strata",
        "return triangular(self.triangles.reshape(-1, self.triangles.shape[-1])[:, :-1])",
        "return triangular(self.triangles.reshape(-2, self.triangles.shape[-1])[:, :-1])",
    ): "any negative number stands for what is left",
    ("noise", SIGNS.format("<"), SIGNS.format("<").replace("< 0", "< 1")): "signs of rows are free",
    ("noise", "ROUNDS = 4", "ROUNDS = 5"): "one more changes weights by less than 1 %",
    (
        "noise",
        ALL + " / max(reduced.rows, 1)",
        ALL + " / max(reduced.rows, 2)",
    ): "nothing is estimated from one row",
    ("regressor", "CHUNK = 1700", "CHUNK = 1701"): SPEED,
    (
        "regressor",
        "work = np.empty((10, q.shape[1]))",
        "work = np.empty((11, q.shape[1]))",
    ): "room to work in",
    ("triangle", "LARGEST_FILE = 2 ** 28", "LARGEST_FILE = 2 ** 29"): "no file is near the limit",
    ("triangle", "LARGEST_FILE = 2 ** 28", "LARGEST_FILE = 3 ** 28"): "no file is near the limit",
    ("triangle", "rows: int = -1", "rows: int = -2"): "any negative number stands for none",
    (
        "recursion",
        "if motion is not WHOLE_SPACE[6] and motion.shape[1]:",
        "if motion is not WHOLE_SPACE[6] or motion.shape[1]:",
    ): "the basis of all or of nothing is itself",
    ("triangle", "if count < CHUNK:", "if count <= CHUNK:"): SPEED,
    (
        "shapes",
        "radius = float(self.half[0])",
        "radius = float(self.half[1])",
    ): "what is round has one radius",
    (
        "whole_robot",
        "status = 'indefinite' if smallest < -ROUNDING else status",
        "status = 'indefinite' if smallest <= -ROUNDING else status",
    ): "no eigenvalue is the tolerance to the last bit",
    (
        "closure",
        "closed = np.abs(residual).max(axis=0) <= self._floor",
        "closed = np.abs(residual).max(axis=0) < self._floor",
    ): "no residual is the tolerance to the last bit",
    (
        "derivatives",
        "return np.asarray(np.convolve(mask, np.ones(2 * by + 1), 'same') > 0.5)",
        "return np.asarray(np.convolve(mask, np.ones(2 * by + 1), 'same') >= 0.5)",
    ): "what is added is whole",
    (
        "closure",
        "if not left <= ROUNDED_CLOSURE_TOLERANCE:",
        "if not left < ROUNDED_CLOSURE_TOLERANCE:",
    ): "no residual is the tolerance to the last bit",
    (
        "judge",
        "if (_FACES @ point >= least - tolerance).all() and distance < best_distance:",
        "if (_FACES @ point > least - tolerance).all() and distance < best_distance:",
    ): "no second moment is the least to the last bit, beside a tolerance",
    (
        "read",
        "while name != outer and name in self.frames and steps < NEAR:",
        "while name != outer and name in self.frames and (steps <= NEAR):",
    ): "how long a chain of frames is walked before the poses in the model are taken",
    ("triangle", SIGNS.format("<"), SIGNS.format("<=")): "a row whose diagonal is zero has no sign",
    ("noise", SIGNS.format("<"), SIGNS.format("<=")): "a row whose diagonal is zero has no sign",
}  # fmt: skip
"""Changes by file, line before and after, that no test can notice, and why."""


class Site(NamedTuple):
    """Where a change is: of a module, the node of its tree, and which of the node's changes.

    A module goes by its path in the package, without the suffix: ``identification/noise``.
    """

    module: str
    node: int
    which: int
    line: int
    what: str

    @property
    def package(self) -> str:
        """The first part of the module's path."""
        return self.module.split("/")[0]

    def changed(self, source: str) -> str:
        """The module's text with the change."""
        tree = ast.parse(source)
        node = nth(tree, self.node)
        list(changes(node))[self.which][1](node)
        return ast.unparse(ast.fix_missing_locations(tree))


def sites(module: str, source: str) -> Iterator[Site]:
    """All changes of a module."""
    tree = ast.parse(source)
    for k, node in enumerate(ast.walk(tree)):
        for which, (what, _) in enumerate(changes(node)):
            yield Site(module, k, which, getattr(node, "lineno", 0), what)


def copied(where: Path) -> None:
    """The project as its tests need it."""
    shutil.copytree(ROOT / "feasid", where / "feasid")
    shutil.copytree(ROOT / "tests", where / "tests")
    for part in (*PARTS, "pyproject.toml", "README.md", "action.yml", ".pre-commit-hooks.yaml"):
        (where / part).symlink_to(ROOT / part)


def known_of(where: Path, sources: dict[str, str], file: Path) -> Known:
    """What each test costs and reaches: a file tells, and tests unknown to it are added there.

    What a test of the file reached is not asked again, whatever has changed since.
    """
    for name, source in sources.items():
        (where / "feasid" / f"{name}.py").write_text(marked(name, source))
    script = Path(__file__).with_name("reached.py")
    subprocess.run([sys.executable, script, file, *TESTS], cwd=where, check=True)
    for name, source in sources.items():
        (where / "feasid" / f"{name}.py").write_text(source)
    return kept(file)


class Trial:
    """All changes, one after another."""

    def __init__(self, where: Path, sources: dict[str, str], known: Known) -> None:
        self.where, self.sources, self.known = where, sources, known
        self.kills = Counter[str]()

    def tests(self, site: Site) -> tuple[bool, tuple[list[str], ...]]:
        """Which tests may notice a change: those to try first, and those after them.

        Before them whether they reach it; what none reaches runs while modules are imported, and
        is tried with the tests of its package.
        """
        tree = ast.parse(self.sources[site.module])
        node = nth(tree, site.node)
        wanted = reaching(site.module, tree, node, site.what == "never raised")
        folder = f"tests/{site.package}/"
        users = [name for name, (_, lines) in self.known.items() if lines & wanted]
        reached = bool(users) or not wanted
        users = users or [
            name for name, (_, lines) in self.known.items()
            if name.startswith((STRUCTURE, folder))
            or any(x.startswith(f"{site.module}:") for x in lines)
        ]  # fmt: skip
        files = Counter(name.split("::")[0] for name in users)
        nearest = max(files, key=lambda f: (f.startswith(folder), files[f]), default="")
        nearest = nearest if wanted else STRUCTURE
        users.sort(key=lambda name: (-self.kills[name], self.known[name][0]))
        first = [name for name in users if name.startswith(nearest)]
        first = self.affordable(first, FIRST) or first[:1]
        rest = [name for name in users if name not in set(first)]
        rest.sort(key=lambda name: not name.startswith(folder))
        quick = self.affordable(rest, BUDGET)
        dear = self.affordable(rest[len(quick) :], LAST)
        by_file = [
            sorted(names, key=lambda name: (not name.startswith(folder), name))
            for names in (quick, dear)
        ]
        return reached, (first, *by_file)

    def affordable(self, names: list[str], budget: float) -> list[str]:
        """As many tests as take so long, from the front."""
        spent = accumulate(self.known[name][0] for name in names)
        return [name for name, total in zip(names, spent, strict=True) if total < budget]

    def noticed(self, site: Site, tried: Tried) -> str | None:
        """The test that notices a change."""
        before = self.sources[site.module]
        after = site.changed(before)
        file = Path("feasid") / f"{site.module}.py"
        parts = file.with_suffix("").parts
        module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        reached, tests = self.tests(site)
        for names in filter(None, tests):
            try:
                found = tried.failing(names, lambda: reached and put(module, plain(before), after))
            except LookupError:
                with (self.where / "lock").open("w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    (self.where / file).write_text(after)
                    found = apart(self.where, names)
                    (self.where / file).write_text(before)
            if found:
                self.kills[found] += 1
                return found
        return None

    def answer(self, number: int, site: Site, tried: Tried) -> bool:
        """Whether a change is noticed; one that is not is printed."""
        if self.noticed(site, tried):
            return True
        before = self.sources[site.module]
        old, new = difference(plain(before), site.changed(before))
        why = HARMLESS.get((Path(site.module).name, old, new), "SURVIVES")
        if new == old.replace("strict=True", "strict=False"):
            why = "a guard against mistakes of ours: what is zipped has one length"
        place = f"{number}: {site.module}, line {site.line}, {site.what}"
        print(f"{place}: {old}  ->  {new}: {why}", flush=True)
        return False


def shared(jobs: int, count: int, answer: Callable[[int], bool]) -> dict[int, bool]:
    """Answers by number, from so many forks of this process that work on them in turn."""
    numbers, results = SimpleQueue(), SimpleQueue()
    for k in range(count):
        numbers.put(k)
    for _ in range(jobs):
        numbers.put(None)
    children = []
    for _ in range(jobs):
        if (child := os.fork()) == 0:
            while (k := numbers.get()) is not None:
                results.put((k, answer(k)))
            os._exit(0)
        children.append(child)
    out: dict[int, bool] = {}
    while len(out) < count:
        k, noticed = results.get()
        out[k] = noticed
        if len(out) % 10 == 0:
            print(f"so far {sum(out.values())} of {len(out)}", flush=True)
    for child in children:
        os.waitpid(child, 0)
    return out


def plain(source: str) -> str:
    """A module's text as a changed one is written."""
    return ast.unparse(ast.parse(source))


def draw(packages: list[str], count: int, seed: int) -> tuple[dict[str, str], list[Site]]:
    """The text of every module, and so many changes per package."""
    folder, rng = ROOT / "feasid", random.Random(seed)
    files = [f.relative_to(folder).with_suffix("").as_posix() for f in folder.rglob("*.py")]
    sources, drawn = {f: (folder / f"{f}.py").read_text() for f in sorted(files)}, []
    for package in packages:
        own = [m for m in sources if m.split("/")[0] == package]
        every = [site for m in own for site in sites(m, sources[m])]
        if not every:
            raise SystemExit(f"nothing can be changed in {package!r}")
        drawn += rng.sample(every, min(count, len(every)))
    return sources, drawn


def packages_of() -> list[str]:
    """All packages and single modules in which something can be changed."""
    names = {f.relative_to(ROOT / "feasid").with_suffix("").parts[0] for f in
             (ROOT / "feasid").rglob("*.py")}  # fmt: skip
    return sorted(names - {"__init__", "__main__"})


def main(argv: list[str] | None = None) -> int:
    """Returns 0 when at least nine of ten changes are noticed in every package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", default=",".join(packages_of()))
    parser.add_argument("--mutants", type=int, default=20, help="per package")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--known", type=Path, help="keep here what the unchanged tests reach")
    parser.add_argument("--jobs", type=int, default=2, help="changes tried at a time")
    given = parser.parse_args(argv)
    packages = given.packages.split(",")
    sources, drawn = draw(packages, given.mutants, given.seed)
    print(f"{len(drawn)} changes of {len(packages)} packages, --seed {given.seed}", flush=True)
    answers: dict[int, bool] = {}

    def work(tried: Tried) -> None:
        quickest = sorted(known, key=lambda name: known[name][0])[:50]
        if failed := tried.failing(quickest, lambda: True):
            raise SystemExit(f"{failed} fails without any change")
        answers.update(shared(given.jobs, len(drawn), lambda k: trial.answer(k, drawn[k], tried)))

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder).resolve()
        copied(where)
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(where)}
        known = known_of(where, sources, (given.known or where / "known.json").resolve())
        trial = Trial(where, sources, known)
        os.chdir(where)
        sys.path[:0] = [str(where), str(where / "tests")]
        order = ["-qq", "-s", *(f"-pno:{name}" for name in UNUSED), *TESTS]
        pytest.main(order, plugins=[Tried(work)])
    shares = []
    for package in packages:
        own = [answers[k] for k, site in enumerate(drawn) if site.package == package]
        shares.append(sum(own) / len(own))
        print(f"{package}: {sum(own)} of {len(own)}")
    print(f"all: {sum(answers.values())} of {len(answers)} changes noticed")
    return int(min(shares) < 0.9)


if __name__ == "__main__":
    sys.exit(main())
