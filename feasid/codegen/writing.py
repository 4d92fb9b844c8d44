"""Expressions as text: statements in an order in which they can be computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from feasid.codegen.expression import Expression
from feasid.codegen.routine import Routine

DEEPEST = 12
"""Nested parentheses in one statement."""


@dataclass(frozen=True)
class Language:
    """How numbers and functions are written."""

    number: Callable[[float], str]
    function: Callable[[str, str], str]
    input: Callable[[str], str] = str


@dataclass(frozen=True)
class Text:
    """An expression's text, what binds in it (0 atom, 1 product, 2 sum), and its nesting."""

    text: str
    binds: int = 0
    depth: int = 0

    def inside(self, limit: int) -> str:
        """In parentheses unless it binds at most this loosely."""
        return self.text if self.binds <= limit else f"({self.text})"


def statements(routine: Routine, language: Language) -> Iterator[tuple[str, str]]:
    """(variable, expression) pairs, then (``""``, expression) for each output in order.

    What is used once stands where it is used; what is used more often gets a variable.
    """
    uses = Counter(a.index for node in routine.nodes for a in node.args)
    uses.update(node.index for node in routine.outputs)
    written: dict[int, Text] = {}
    count = 0
    for node in routine.nodes:
        text = _text(node, written, language)
        leaf = node.kind in ("number", "input")
        if not leaf and (uses[node.index] > 1 or text.depth >= DEEPEST):
            name = f"x{count}"
            count += 1
            yield name, text.text
            text = Text(name)
        written[node.index] = text
    for node in routine.outputs:
        yield "", written[node.index].text


def _text(node: Expression, written: dict[int, Text], language: Language) -> Text:
    if node.kind == "number":
        text = language.number(node.value)
        return Text(text, 2 if text.startswith("-") else 0)
    if node.kind == "input":
        return Text(language.input(node.name))
    args = [written[a.index] for a in node.args]
    depth = 1 + max(a.depth for a in args)
    if node.kind == "neg":
        return Text(f"-{args[0].inside(0)}", 2, depth)
    if node.kind == "mul":
        return Text(f"{args[0].inside(1)}*{args[1].inside(0)}", 1, depth)
    if node.kind == "add":
        return Text(f"{args[0].inside(2)} + {args[1].inside(1)}", 2, depth)
    if node.kind == "sub":
        return Text(f"{args[0].inside(2)} - {args[1].inside(1)}", 2, depth)
    return Text(language.function(node.kind, args[0].text), 0, depth)
