"""Routines: named outputs of a robot's expressions, with a model's parameters; as text and Python.

Statements come in an order in which they can be computed. The Python functions take and return
plain floats; they are compiled from source that is written here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.parameters.identifiability.rounding import with_exact_geometry
from feasid.results.codegen import expression
from feasid.results.codegen.algorithms import Algorithms
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import require_values

ROUTINES = ("inverse_dynamics", "gravity", "friction", "mass_matrix", "regressor")
"""Names of the generated routines."""

FORWARD = "forward_dynamics"
"""Generated on request only: it needs a feasible model, and the others accept any numbers."""

MOTION = ("q", "dq", "ddq")
GIVEN = {"gravity": ("q",), "mass_matrix": ("q",), FORWARD: ("q", "dq", "tau")}
"""Inputs of those routines that do not take the whole motion."""

MAX_NESTING = 12
"""Largest nesting of parentheses in one statement; deeper expressions get a variable."""


@dataclass(frozen=True, eq=False)
class Routine:
    """A function: inputs by name and length, and outputs.

    ``inputs`` are the arguments of its signature, also unused ones.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[expression.Expression, ...]

    @cached_property
    def needed_expressions(self) -> list[expression.Expression]:
        """Everything that the outputs depend on, arguments first."""
        return expression.dependencies(self.outputs)

    @property
    def operations(self) -> expression.Operations:
        """Number of operations."""
        return expression.count_operations(self.outputs)

    @property
    def used_inputs(self) -> frozenset[str]:
        """Inputs that matter."""
        return frozenset(n.name.split("[")[0] for n in self.needed_expressions if n.kind == "input")


@dataclass(frozen=True, eq=False)
class BaseParameterModel:
    """A robot's base parameters, on the geometry for which they are exact, and their values."""

    robot: Robot  #: With roundings of the description taken as `base` takes them.
    base: BaseParameters
    beta: Array | None  #: Shape (nb,): none: they are an argument of the code.

    @classmethod
    def from_robot(
        cls, robot: Robot, base: BaseParameters | None = None, *, argument: bool = False
    ) -> BaseParameterModel:
        """The model of a robot; `argument` leaves its parameters open."""
        base = base_parameters(robot) if base is None else base
        if base.robot.parameter_names != robot.parameter_names:
            raise InputError("these base parameters belong to another robot")
        exact, _ = with_exact_geometry(robot, base.rounding)
        beta = None
        if not argument:
            remedy = "give it some by robot.with_values(parameters)"
            beta = base.values(require_values(robot, remedy))
        return cls(exact, base, beta)

    def routine(self, kind: str) -> Routine:
        """Make one of `ROUTINES` in a new graph."""
        graph = expression.Graph()
        arguments = {} if self.beta is not None else {"beta": self.base.size}
        columns = self.base.independent.tolist()
        return _make_routine(kind, self.robot, graph, self._parameters(graph), columns, arguments)

    def _parameters(self, graph: expression.Graph) -> Sequence[expression.Expression]:
        """Standard parameters: leading ones are the base parameters, the others zero."""
        beta = graph.inputs("beta", self.base.size) if self.beta is None else self.beta.tolist()
        out = [graph.as_expression(0.0)] * self.robot.size
        for column, value in zip(self.base.independent.tolist(), beta, strict=True):
            out[column] = graph.as_expression(value)
        return out


@dataclass(frozen=True, eq=False)
class StandardParameterModel:
    """A robot as it is described, its standard parameters folded into the code."""

    robot: Robot  #: With values for all parameters.
    columns: tuple[int, ...] = ()  #: Standard parameters whose columns the regressor has.

    def routine(self, kind: str) -> Routine:
        """Make one of `ROUTINES` in a new graph."""
        graph = expression.Graph()
        delta = [graph.as_expression(float(v)) for v in require_values(self.robot, "")]
        return _make_routine(kind, self.robot, graph, delta, self.columns, {})


def _make_routine(
    kind: str,
    robot: Robot,
    graph: expression.Graph,
    delta: Sequence[expression.Expression],
    columns: Sequence[int],
    given: Mapping[str, int],
) -> Routine:
    """One of `ROUTINES` for standard parameters, with additional inputs first."""
    names = (*ROUTINES, FORWARD)
    if kind not in names:
        raise InputError(f"no routine {kind!r}{did_you_mean(kind, names)}: choose of {[*names]}")
    motion = {x: graph.inputs(x, robot.dof) for x in MOTION}
    lengths = dict(given) | dict.fromkeys(GIVEN.get(kind, MOTION), robot.dof)
    # Its bias is the inverse dynamics without acceleration.
    if kind == FORWARD:
        motion["ddq"] = [graph.as_expression(0.0)] * robot.dof
    algorithms = Algorithms(graph, robot, delta, **motion)
    if kind == "regressor":
        lengths = dict.fromkeys(MOTION, robot.dof)
        outputs = algorithms.regressor(columns)
    elif kind == FORWARD:
        outputs = algorithms.forward_dynamics(graph.inputs("tau", robot.dof))
    else:
        outputs = getattr(algorithms, kind)()
    return Routine(kind, tuple(lengths.items()), tuple(outputs))


# -- as text -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Language:
    """Syntax of numbers and functions."""

    number: Callable[[float], str]
    function: Callable[[str, str], str]
    input: Callable[[str], str] = str


@dataclass(frozen=True)
class ExpressionText:
    """An expression's text, the kind of its outermost operation (0 atom, 1 product, 2 sum), and its
    nesting.
    """

    text: str
    binds: int = 0
    depth: int = 0

    def in_parentheses(self, limit: int) -> str:
        """The text, in parentheses if its operation binds more loosely than this."""
        return self.text if self.binds <= limit else f"({self.text})"


def statements(routine: Routine, language: Language) -> Iterator[tuple[str, str]]:
    """(variable, expression) pairs, then (``""``, expression) for each output in order.

    An expression that is used once is written in place; one that is used more often gets a
    variable.
    """
    uses = Counter(a.index for node in routine.needed_expressions for a in node.args)
    uses.update(node.index for node in routine.outputs)
    texts: dict[int, ExpressionText] = {}
    count = 0
    for node in routine.needed_expressions:
        text = _expression_text(node, texts, language)
        leaf = node.kind in ("number", "input")
        if not leaf and (uses[node.index] > 1 or text.depth >= MAX_NESTING):
            name = f"x{count}"
            count += 1
            yield name, text.text
            text = ExpressionText(name)
        texts[node.index] = text
    for node in routine.outputs:
        yield "", texts[node.index].text


INFIX = {"mul": ("*", 1), "add": (" + ", 2), "sub": (" - ", 2)}
"""Sign between two operands, and how loosely it binds; the right operand must bind more tightly."""


def _expression_text(
    node: expression.Expression, written: dict[int, ExpressionText], language: Language
) -> ExpressionText:
    if node.kind == "number":
        text = language.number(node.value)
        return ExpressionText(text, 2 if text.startswith("-") else 0)
    if node.kind == "input":
        return ExpressionText(language.input(node.name))
    args = [written[a.index] for a in node.args]
    depth = 1 + max(a.depth for a in args)
    if node.kind == "neg":
        return ExpressionText(f"-{args[0].in_parentheses(0)}", 2, depth)
    if node.kind in INFIX:
        sign, binds = INFIX[node.kind]
        first, second = args[0].in_parentheses(binds), args[1].in_parentheses(binds - 1)
        return ExpressionText(f"{first}{sign}{second}", binds, depth)
    return ExpressionText(language.function(node.kind, args[0].text), 0, depth)


# -- as Python functions -------------------------------------------------------------------------

PYTHON = Language(
    number=repr,
    function=lambda name, x: f"{name}({x})",
    input=lambda name: name.replace("[", "").replace("]", ""),
)

PYTHON_FUNCTIONS = {
    name: getattr(math, name, function) for name, function in expression.FUNCTIONS.items()
}


def python_function(routine: Routine) -> Callable[..., list[float]]:
    """The function itself; inputs must be sequences of Python floats."""
    # The source can call these functions only.
    space: dict[str, object] = {**PYTHON_FUNCTIONS, "__builtins__": {"abs": abs}}
    lines = [f"def {routine.name}({', '.join(name for name, _ in routine.inputs)}):"]
    for name, length in routine.inputs:
        if name in routine.used_inputs:
            lines.append(f"    [{', '.join(f'{name}{k}' for k in range(length))}] = {name}")
    results = []
    for variable, text in statements(routine, PYTHON):
        if variable:
            lines.append(f"    {variable} = {text}")
        else:
            results.append(text)
    source = "\n".join([*lines, f"    return [{', '.join(results)}]", ""])
    exec(compile(source, f"<feasid {routine.name}>", "exec"), space)
    function: Callable[..., list[float]] = space[routine.name]  # type: ignore[assignment]
    return function
