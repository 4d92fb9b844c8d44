"""Which statements of a module a test reaches, and which of them a change needs.

Statements go by their text, so that what was noted holds after changes elsewhere in the module.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

Known = dict[str, tuple[float, set[str]]]
"""By test its processor time [s] and the statements that it reaches."""


def statements(tree: ast.AST) -> Iterator[tuple[ast.stmt, ast.FunctionDef]]:
    """Every statement inside a function, docstrings left out, with the innermost function."""
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        waiting: list[ast.AST] = [function]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                said = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.stmt) and not said:
                    yield child, function
                if not isinstance(child, ast.FunctionDef):
                    waiting.append(child)


def named(module: str, statement: ast.stmt) -> str:
    """What a statement goes by."""
    return f"{module}:{crc32(ast.unparse(statement).encode())}"


def marked(module: str, source: str) -> str:
    """A module that notes in ``sys.reached`` which of its statements are reached."""
    tree = ast.parse(source)
    names = {id(statement): named(module, statement) for statement, _ in statements(tree)}
    for node in list(ast.walk(tree)):
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(getattr(node, part, None), list):
                continue
            longer: list[ast.stmt] = []
            for statement in getattr(node, part):
                if id(statement) in names:
                    longer += ast.parse(f"_reached.add({names[id(statement)]!r})").body
                longer.append(statement)
            setattr(node, part, longer)
    after = sum(isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in tree.body) + 1
    where = "_reached = vars(__import__('sys')).setdefault('reached', set())"
    tree.body[after:after] = ast.parse(where).body
    return ast.unparse(ast.fix_missing_locations(tree))


def reaching(module: str, tree: ast.Module, node: ast.AST, refusal: bool) -> set[str]:
    """The statements of which a test must reach one to notice a change of a node.

    The innermost around it, or what a condition refuses; for a default all of its function, for a
    constant what uses it. None are known of what stands outside functions otherwise.
    """
    inside = list(statements(tree))
    if refusal:
        return {named(module, node.body[0])}
    if around := [s for s, _ in inside if node in ast.walk(s)]:
        return {named(module, max(around, key=lambda s: s.lineno))}
    if around := [f for _, f in inside if node in ast.walk(f.args)]:
        return {named(module, s) for s, f in inside if f is around[0]}
    given = [s for s in tree.body if isinstance(s, ast.Assign | ast.AnnAssign)]
    constants = {name for s in given if node in ast.walk(s) for name in names_in(s)}
    return {named(module, s) for s, _ in inside if constants & names_in(s)}


def names_in(node: ast.AST) -> set[str]:
    """The names that a piece of a module uses."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


class Reached:
    """A plugin of Pytest that notes what each test costs and reaches."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, set[str]] = {}
        self.made: dict[Any, set[str]] = {}
        self.failed: set[str] = set()
        vars(sys)["reached"] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run only tests of which nothing is known yet."""
        items[:] = [item for item in items if item.nodeid not in self.known]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test reaches of the modules that are changed."""
        sys.reached.clear()
        start = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - start
        fixtures = (d[-1] for d in item._fixtureinfo.name2fixturedefs.values())
        shared = (self.made.get(fixture, set()) for fixture in fixtures)
        self.reached[item.nodeid] = sys.reached.union(*shared)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a fixture reaches, each test reaches that takes it, not only the first."""
        before = set(sys.reached)
        sys.reached.clear()
        yield
        self.made.setdefault(fixturedef, set()).update(sys.reached)
        sys.reached.update(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fails without any change: nothing can be learnt from it."""
        if report.failed:
            self.failed.add(report.nodeid)

    def told(self) -> Known:
        """Seconds and statements by test."""
        return {
            name: (self.seconds[name], self.reached[name])
            for name in self.seconds
            if name not in self.failed
        }


def kept(file: Path) -> Known:
    """What a file tells of tests."""
    if not file.exists():
        return {}
    told = json.loads(file.read_text())
    out: Known = {name: (cost, set()) for name, cost in told["tests"]}
    sets = [lines for _, lines in out.values()]
    for statement, numbers in told["reached"].items():
        for k in numbers:
            sets[k].add(statement)
    return out


def keep(known: Known, file: Path) -> None:
    """Write a file for `kept`: each statement once, with the numbers of the tests."""
    reached: dict[str, list[int]] = {}
    for k, (_, lines) in enumerate(known.values()):
        for statement in lines:
            reached.setdefault(statement, []).append(k)
    tests = [(name, cost) for name, (cost, _) in known.items()]
    file.write_text(json.dumps({"tests": tests, "reached": reached}))


if __name__ == "__main__":
    file = Path(sys.argv[1])
    known = kept(file)
    plugin = Reached(set(known))
    order = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    pytest.main([*order, *sys.argv[2:]], [plugin])
    keep(known | plugin.told(), file)
