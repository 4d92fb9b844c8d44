"""Expressions of numbers, inputs, sums, products and a few functions, each one stored once.

Two expressions of the same graph that are built alike are the same object, numbers are folded, and
signs are pulled out of products, so that ``-(a b)``, ``(-a) b`` and ``a (-b)`` share one product.
Nothing is reordered that would change rounding by more than the order of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partialmethod

SERIES_BELOW = 0.1
"""Below this square of an angle, its powers up to the fifth give `_sinc_remainder` to 3e-15."""


def _sinc(square: float) -> float:
    x = math.sqrt(square)
    return math.sin(x) / x if x else 1.0


def _sinc_remainder(s: float) -> float:
    """(1 - sin(x) / x) / x^2 by the square s of x."""
    if s < SERIES_BELOW:
        return (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110 * (1 - s / 156))))) / 6
    return (1 - _sinc(s)) / s


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "abs": abs,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "inverse": lambda x: 1.0 / x if x else math.inf,
    "sinc": _sinc,
    "sinc_rest": _sinc_remainder,
}
"""`_sinc` and `_sinc_remainder` are the coefficients of rotations by exponential coordinates."""


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """A node: ``kind`` is "number", "input", "mul", "add", "sub", "neg" or one of `FUNCTIONS`."""

    graph: Graph = field(repr=False)
    index: int
    kind: str
    args: tuple[Expression, ...] = ()
    value: float = 0.0
    name: str = ""

    def __add__(self, other: Expression | float) -> Expression:
        return self.graph.add(self, self.graph.as_expression(other))

    __radd__ = __add__

    def __sub__(self, other: Expression | float) -> Expression:
        return self.graph.add(self, -self.graph.as_expression(other))

    def __rsub__(self, other: float) -> Expression:
        return self.graph.add(self.graph.as_expression(other), -self)

    def __mul__(self, other: Expression | float) -> Expression:
        return self.graph.multiply(self, self.graph.as_expression(other))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Expression:
        return self.graph.multiply(self, self.graph.as_expression(1.0 / divisor))

    def __neg__(self) -> Expression:
        return self.graph.negate(self)

    def _apply(self, function: str) -> Expression:
        return self.graph.apply_function(function, self)

    # NumPy's functions call these methods: np.sqrt(expression) is expression.sqrt().
    __abs__ = partialmethod(_apply, "abs")
    sqrt = partialmethod(_apply, "sqrt")
    exp = partialmethod(_apply, "exp")
    sin = partialmethod(_apply, "sin")
    cos = partialmethod(_apply, "cos")

    def clip(self, low: float, high: float, out: None = None) -> Expression:
        """Within these bounds."""
        if not math.isfinite(high - low):
            return self
        return (abs(self - low) - abs(self - high) + (low + high)) * 0.5

    @property
    def is_zero(self) -> bool:
        """Whether it is the number zero."""
        return self.kind == "number" and self.value == 0.0


class Graph:
    """Container of expressions, in which equal expressions are created once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Expression] = {}

    def _find_or_make(
        self, kind: str, args: tuple[Expression, ...] = (), value: float = 0.0, name: str = ""
    ) -> Expression:
        key = (kind, *(a.index for a in args), value, name)
        if key not in self._known:
            self._known[key] = Expression(self, len(self._known), kind, args, value, name)
        return self._known[key]

    def as_expression(self, value: Expression | float) -> Expression:
        """A number as an expression; expressions pass."""
        if isinstance(value, Expression):
            return value
        # Plus zero, -0.0 and 0.0 are one number.
        return self._find_or_make("number", value=float(value) + 0.0)

    def input(self, name: str) -> Expression:
        """An input, by the name that the code gives it."""
        return self._find_or_make("input", name=name)

    def inputs(self, name: str, count: int) -> list[Expression]:
        """``name[0]``, ``name[1]``, ..."""
        return [self.input(f"{name}[{k}]") for k in range(count)]

    def negate(self, a: Expression) -> Expression:
        """-a; differences turn round instead."""
        if a.kind == "number":
            return self.as_expression(-a.value)
        if a.kind == "neg":
            return a.args[0]
        if a.kind == "sub":
            return self._find_or_make("sub", a.args[::-1])
        return self._find_or_make("neg", (a,))

    def add(self, a: Expression, b: Expression) -> Expression:
        """A + b."""
        if a.kind == "number" and b.kind == "number":
            return self.as_expression(a.value + b.value)
        if a.is_zero or b.is_zero:
            return b if a.is_zero else a
        if a.kind == "neg" and b.kind == "neg":
            return self.negate(self.add(a.args[0], b.args[0]))
        if a.kind == "neg" or b.kind == "neg":
            minuend, subtrahend = (b, a.args[0]) if a.kind == "neg" else (a, b.args[0])
            if minuend is subtrahend:
                return self.as_expression(0.0)
            return self._find_or_make("sub", (minuend, subtrahend))
        return self._find_or_make("add", (a, b) if a.index < b.index else (b, a))

    def multiply(self, a: Expression, b: Expression) -> Expression:
        """The factor b without its sign, which moves in front of the product."""
        if b.kind == "number":
            a, b = b, a
        if a.kind == "number":
            return self._multiply_by_number(a.value, b)
        negative = (a.kind == "neg") != (b.kind == "neg")
        a, b = (x.args[0] if x.kind == "neg" else x for x in (a, b))
        product = self._find_or_make("mul", (a, b) if a.index < b.index else (b, a))
        return self.negate(product) if negative else product

    def _multiply_by_number(self, factor: float, a: Expression) -> Expression:
        if factor == 0.0:
            return self.as_expression(0.0)
        if a.kind == "number":
            return self.as_expression(factor * a.value)
        if factor < 0.0:
            return self.negate(self._multiply_by_number(-factor, a))
        if a.kind == "neg":
            return self.negate(self._multiply_by_number(factor, a.args[0]))
        if factor == 1.0:
            return a
        if a.kind == "mul" and a.args[0].kind == "number":
            return self._multiply_by_number(factor * a.args[0].value, a.args[1])
        return self._find_or_make("mul", (self.as_expression(factor), a))

    def apply_function(self, function: str, a: Expression) -> Expression:
        """One of `FUNCTIONS`, applied to a; signs move out of odd and even functions."""
        if a.kind == "number" and math.isfinite(value := FUNCTIONS[function](a.value)):
            return self.as_expression(value)
        if a.kind == "neg" and function in ("cos", "abs"):
            return self.apply_function(function, a.args[0])
        if a.kind == "neg" and function in ("sin", "tanh", "sign"):
            return self.negate(self.apply_function(function, a.args[0]))
        return self._find_or_make(function, (a,))

    def sum_terms(self, terms: Iterable[Expression]) -> Expression:
        """Their sum."""
        out = self.as_expression(0.0)
        for term in terms:
            out = self.add(out, term)
        return out


@dataclass(frozen=True)
class Operations:
    """Number of operations in generated code."""

    multiplications: int = 0
    additions: int = 0
    functions: int = 0


def dependencies(outputs: Sequence[Expression]) -> list[Expression]:
    """Everything that outputs depend on, arguments first."""
    reached: dict[int, Expression] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in reached:
            reached[node.index] = node
            stack.extend(node.args)
    return [reached[k] for k in sorted(reached)]


def count_operations(outputs: Sequence[Expression]) -> Operations:
    """Operations that outputs take; a change of sign counts as an addition."""
    kinds = [node.kind for node in dependencies(outputs)]
    return Operations(
        kinds.count("mul"),
        sum(map(kinds.count, ("add", "sub", "neg"))),
        sum(map(kinds.count, FUNCTIONS)),
    )
