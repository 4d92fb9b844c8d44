"""Small changes of a module, one at a time: what mutation testing tries.

`own` changes one operator, number, comparison, condition or statement; `cosmic_ray` gives what the
package of that name does (`pip install cosmic-ray`), which has more operators and no statements.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}
SWAPPED = {"any": "all", "all": "any", "min": "max", "max": "min", "abs": "float"}

Change = Callable[[Any], object]


class Mutant(NamedTuple):
    """A module with one change."""

    line: int
    what: str
    source: str


def own(source: str) -> Iterator[Mutant]:
    """Each single change of the syntax tree."""
    tree = ast.parse(source)
    for index, node in enumerate(ast.walk(tree)):
        for what, change in changes(node):
            other = copy.deepcopy(tree)
            change(nth(other, index))
            text = ast.unparse(ast.fix_missing_locations(other))
            yield Mutant(getattr(node, "lineno", 0), what, text)


def nth(tree: ast.AST, index: int) -> ast.AST:
    """A node by its place in `ast.walk`."""
    return next(node for k, node in enumerate(ast.walk(tree)) if k == index)


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Names of the changes of one node, and functions that make them."""
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            if type(op) in COMPARED:
                to = COMPARED[type(op)]
                yield f"comparison {k}", lambda n, k=k, to=to: n.ops.__setitem__(k, to())
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and/or", lambda n: setattr(n, "op", other())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATED:
        yield "operator", lambda n: setattr(n, "op", OPERATED[type(n.op)]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", lambda n: setattr(n, "value", not n.value)
    if isinstance(node, ast.Name) and node.id in SWAPPED:
        yield "function", lambda n: setattr(n, "id", SWAPPED[n.id])
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
        yield "never raised", lambda n: setattr(n, "test", ast.Constant(False))
    if isinstance(node, ast.AugAssign):
        yield "left out", lambda n: setattr(n, "value", nothing(n.op))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "left out", lambda n: setattr(n, "value", ast.Constant(None))


def nothing(op: ast.operator) -> ast.Constant:
    """The number with which an augmented assignment does nothing."""
    return ast.Constant(1 if isinstance(op, ast.Mult | ast.Div | ast.FloorDiv) else 0)


def cosmic_ray(source: str) -> Iterator[Mutant]:
    """Each change that every operator of the package cosmic-ray makes."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    for name in operator_names():
        try:
            operator = get_operator(name)()
        except TypeError:  # an operator on two variables, which must be told which
            continue
        for k in count():
            text = mutate_code(source, operator, k)
            if text is None:
                break
            yield Mutant(first_difference(source, text), name.removeprefix("core/"), text)


def first_difference(before: str, after: str) -> int:
    """The number of the first line that is not the same."""
    pairs = enumerate(zip(before.splitlines(), after.splitlines(), strict=False), 1)
    return next((k for k, (one, two) in pairs if one != two), 0)


def difference(before: str, after: str) -> tuple[str, str]:
    """The lines that were taken out, and those that came in their place."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0))[3:]
    old = " ".join(line[1:].strip() for line in lines if line[0] == "-")
    return old, " ".join(line[1:].strip() for line in lines if line[0] == "+")
