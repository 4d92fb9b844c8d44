"""Routines: named outputs of a robot's expressions, and how a model's parameters enter them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from feasid.codegen.algorithms import Algorithms
from feasid.codegen.expression import Expression, Graph, Operations, needed, operations
from feasid.core.arrays import Array
from feasid.dynamics.regressor import described_values
from feasid.errors import InputError, did_you_mean
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identifiability.rounding import snapped
from feasid.robot.description import Robot

ROUTINES = ("inverse_dynamics", "gravity", "friction", "mass_matrix", "regressor")
"""What code can be generated for."""

MOTION = ("q", "dq", "ddq")
GIVEN = {"gravity": ("q",), "mass_matrix": ("q",)}
"""Inputs of those routines that do not take the whole motion."""


@dataclass(frozen=True, eq=False)
class Routine:
    """A function: inputs by name and length, and outputs.

    ``inputs`` are those of its signature, whether they are used or not.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[Expression, ...]

    @cached_property
    def nodes(self) -> list[Expression]:
        """Everything that the outputs depend on, arguments first."""
        return needed(self.outputs)

    @property
    def operations(self) -> Operations:
        """How many operations it takes."""
        return operations(self.outputs)

    @property
    def used(self) -> frozenset[str]:
        """Inputs that matter."""
        return frozenset(n.name.split("[")[0] for n in self.nodes if n.kind == "input")


@dataclass(frozen=True, eq=False)
class CodedModel:
    """A robot's base parameters, on the geometry for which they are exact, and their values.

    Attributes
    ----------
    robot : Robot
        With roundings of the description taken as `base` takes them.
    base : BaseParameters
    beta : ndarray, shape (nb,), or None
        None: they are an argument of the code.
    """

    robot: Robot
    base: BaseParameters
    beta: Array | None

    @classmethod
    def of(
        cls, robot: Robot, base: BaseParameters | None = None, *, argument: bool = False
    ) -> CodedModel:
        """The model of a robot; `argument` leaves its parameters open."""
        base = base_parameters(robot) if base is None else base
        if base.robot.parameter_names != robot.parameter_names:
            raise InputError("these base parameters belong to another robot")
        exact, _ = snapped(robot, base.rounding)
        beta = None
        if not argument:
            remedy = "give it some by robot.with_values(parameters)"
            beta = base.values(described_values(robot, remedy))
        return cls(exact, base, beta)

    def routine(self, kind: str) -> Routine:
        """One of `ROUTINES`, in a graph of its own."""
        if kind not in ROUTINES:
            raise InputError(
                f"no routine {kind!r}{did_you_mean(kind, ROUTINES)}: choose of {[*ROUTINES]}"
            )
        graph = Graph()
        given = GIVEN.get(kind, MOTION)
        lengths = dict.fromkeys(given, self.robot.dof)
        parameters = self._parameters(graph)
        motion = {x: graph.inputs(x, self.robot.dof) for x in MOTION}
        algorithms = Algorithms(graph, self.robot, parameters, **motion)
        if kind == "regressor":
            outputs = algorithms.regressor([int(c) for c in self.base.independent])
        else:
            outputs = getattr(algorithms, kind)()
            if self.beta is None:
                lengths = {"beta": self.base.size, **lengths}
        return Routine(kind, tuple(lengths.items()), tuple(outputs))

    def _parameters(self, graph: Graph) -> Sequence[Expression]:
        """Standard parameters: leading ones are the base parameters, the others zero."""
        out = [graph.of(0.0)] * self.robot.size
        for k, column in enumerate(self.base.independent.tolist()):
            value = graph.input(f"beta[{k}]") if self.beta is None else graph.of(self.beta[k])
            out[column] = value
        return out
