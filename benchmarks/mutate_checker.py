"""Mutation testing of the certificate checker: every small change of it must be noticed.

    python benchmarks/mutate_checker.py [FIRST [STEP]]

Changes one operator, number, comparison, condition or statement of `feasid/certificate.py` at a
time, in a process of its own, and runs the checker's own tests against it. Prints every mutant that
no test notices; those that change no behaviour are named, with the reason, in `EQUIVALENT`.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from feasid import certificate

ROOT = Path(__file__).resolve().parent.parent
TESTS = [f"tests/feasibility/test_{name}.py" for name in ("certificate", "checkers", "verdict")]
ARGUMENTS = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--rootdir", str(ROOT)]
ARGUMENTS += [str(ROOT / test) for test in TESTS]
SECONDS = 100
"""Of processor time for the tests of one mutant."""

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}

EQUIVALENT = {
    "LARGEST_FILE": "how much is read of a file is a question of memory",
    "MOST_WORK": "a budget: another factor of two is another budget",
    "bits": "the estimate of work",
    "work": "the estimate of work",
    "60": "how much of a wrong value an error shows",
    "20": "how much of a wrong value an error shows",
    "200": "how long an error is",
    "1e-09": "rounding of what is printed",
}
"""Parts of a mutated line that make no difference to what is accepted, and why."""


def mutants(tree: ast.Module) -> Iterator[tuple[int, str, ast.Module]]:
    """(line, what, tree) for each single change."""
    for index, node in enumerate(ast.walk(tree)):
        for what, change in changes(node):
            other = copy.deepcopy(tree)
            twin = next(n for k, n in enumerate(ast.walk(other)) if k == index)
            change(twin)
            yield getattr(node, "lineno", 0), what, ast.fix_missing_locations(other)


def changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Names of the changes of one node, and functions that make them."""
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            if type(op) in COMPARED:
                yield (
                    f"comparison {k}",
                    lambda n, k=k, op=op: n.ops.__setitem__(k, COMPARED[type(op)]()),
                )
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and/or", lambda n, other=other: setattr(n, "op", other())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield (
            "not",
            lambda n: (
                setattr(n, "op", ast.Not()),
                setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand)),
            ),
        )
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATED:
        yield "operator", lambda n: setattr(n, "op", OPERATED[type(n.op)]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", lambda n: setattr(n, "value", not n.value)
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
        yield "never raised", lambda n: setattr(n, "test", ast.Constant(False))


class Prepared:
    """Gives the tests the certificates that the unchanged checker made: they cost seconds."""

    def __init__(self) -> None:
        sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "feasibility")]
        tests = importlib.import_module("test_checkers")
        self.certificates = json.dumps(tests.originals())
        for name in ("test_checkers", "test_certificate", "second_checker"):
            sys.modules.pop(name, None)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Pytest's hook: what makes certificates returns those that there are."""
        for item in items:
            module = item.getparent(pytest.Module).obj
            if hasattr(module, "originals"):
                module.originals = lambda: json.loads(self.certificates)


def survives(source: str, prepared: Prepared) -> bool:
    """True when no test notices, in a process of its own."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # what hangs is noticed
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            exec(compile(source, certificate.__file__, "exec"), certificate.__dict__)
            done = pytest.main(ARGUMENTS, plugins=[prepared])
        except BaseException:
            done = 1
        os._exit(int(done != 0))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main(argv: list[str]) -> int:
    """Try every STEPth mutant from FIRST; the number that survive without a reason."""
    source = (ROOT / "feasid" / "certificate.py").read_text()
    every = list(mutants(ast.parse(source)))
    first, step = [*map(int, argv), *(0, 1)[len(argv) :]][:2]
    chosen = list(enumerate(every))[first::step]
    lines, alive = source.splitlines(), 0
    prepared = Prepared()
    assert survives(source, prepared), "the unchanged checker fails its own tests"
    for number, (line, what, tree) in chosen:
        text = lines[line - 1].strip()
        if any(part in text for part in EQUIVALENT):
            continue
        if survives(ast.unparse(tree), prepared):
            alive += 1
            print(f"{number}: line {line}, {what}: {text}", flush=True)
    print(f"{alive} of {len(chosen)} mutants survive ({len(every)} in all)")
    return alive


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
