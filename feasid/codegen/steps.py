"""From a node's parent to the node: constant turns, one turn about an axis, and a point on it.

The joint's axis passes through a point that is fixed in both bodies (sliding along the axis apart),
so that the acceleration of the node's origin, and the moment about the parent's, take two lever
arms of constants: ``a = E (a_p + U_p p) + U c``, with U = S(alpha) + S(omega)^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.codegen.expression import Expression, Graph
from feasid.codegen.vectors import Turn, Vector, cross, plus, scaled, turned, vector
from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node

STEEP = 0.5
"""Components of a unit axis from which sliding along it clears an entry of a lever arm."""

NEGLIGIBLE = 4e-16
"""Entries of a constant below this, relative to its largest, are rounding of zero."""


@dataclass(frozen=True, eq=False)
class JointStep:
    """The pose of a node in its parent, as expressions.

    Attributes
    ----------
    before, after : ndarray, shape (3, 3)
        Constant rotations: parent's coordinates to those of the axis, and on to the node's.
    turn : Turn or None
        By the joint's angle; None for joints that only slide.
    arm : Vector
        From the parent's origin to the point on the axis, in the parent's frame.
    lever : Vector
        From that point to the node's origin, in the node's frame.
    spin, slide : ndarray, shape (3,)
        Angular velocity and velocity along the axis per unit of the joint's, in the node's frame.
    """

    before: Array
    after: Array
    turn: Turn | None
    arm: Vector
    lever: Vector
    spin: Array
    slide: Array

    def to_node(self, v: Vector) -> Vector:
        """A vector's coordinates in the node's frame."""
        v = turned(self.before, v)
        return turned(self.after, v if self.turn is None else self.turn.back(v))

    def to_parent(self, v: Vector) -> Vector:
        """A vector's coordinates in the parent's frame."""
        v = turned(self.after.T, v)
        return turned(self.before.T, v if self.turn is None else self.turn.apply(v))

    def wrench_to_parent(self, moment: Vector, force: Vector) -> tuple[Vector, Vector]:
        """A wrench about the node's origin, about the parent's and in its coordinates."""
        at_axis = plus(moment, cross(self.lever, force))
        pushed = self.to_parent(force)
        return plus(self.to_parent(at_axis), cross(self.arm, pushed)), pushed

    def along(self, moment: Vector, force: Vector) -> Expression:
        """Torque of a wrench about the node's origin at the joint."""
        graph = moment[0].graph
        at_axis = plus(moment, cross(self.lever, force))
        terms = [float(s) * n for s, n in zip(self.spin, at_axis, strict=True)]
        terms += [float(s) * f for s, f in zip(self.slide, force, strict=True)]
        return graph.total(terms)


def step_of(graph: Graph, node: Node, q: Expression) -> JointStep:
    """The step to a node whose joint has this position."""
    angular, linear = node.motion[:3, 0], node.motion[3:, 0]
    rate = float(np.linalg.norm(angular))
    to_body = node.rotation.T
    if rate == 0.0:
        slide = _clean(linear)
        arm = plus(
            vector(graph, _clean(node.position).tolist()),
            scaled(q, _clean(node.rotation @ slide).tolist()),
        )
        none = vector(graph, (0.0, 0.0, 0.0))
        return JointStep(to_body, np.eye(3), None, arm, none, np.zeros(3), slide)
    axis = angular / rate
    pitch = float(axis @ linear)
    point = _sparsest(axis, np.cross(axis, linear / rate), node)
    aligned = _aligned(axis)
    angle = rate * q
    turn = Turn(graph.apply("cos", angle), graph.apply("sin", angle))
    arm = vector(graph, _clean(node.position + node.rotation @ point).tolist())
    arm = plus(arm, scaled(q, _clean(pitch * (node.rotation @ axis)).tolist()))
    return JointStep(
        aligned @ to_body,
        aligned.T,
        turn,
        arm,
        vector(graph, _clean(-point).tolist()),
        _clean(angular),
        _clean(pitch * axis),
    )


def _sparsest(axis: Array, point: Array, node: Node) -> Array:
    """The point on the axis, in the node's frame, whose two lever arms have most zeros."""
    home = node.position + node.rotation @ point
    direction = node.rotation @ axis
    size = max(float(np.abs(home).max()), float(np.abs(point).max()))
    shifts = [0.0]
    for arm, along in ((point, axis), (home, direction)):
        pairs = zip(arm.tolist(), along.tolist(), strict=True)
        shifts += [-p / a for p, a in pairs if abs(a) > STEEP]

    def arms(shift: float) -> int:
        both = np.concatenate([point + shift * axis, home + shift * direction])
        return int(np.count_nonzero(np.abs(both) > NEGLIGIBLE * max(size, abs(shift))))

    return np.asarray(point + min(shifts, key=arms) * axis)


def _aligned(axis: Array) -> Array:
    """A rotation that takes this unit axis to z; a signed permutation where it can be one."""
    axis = _clean(axis)
    k = int(np.argmax(np.abs(axis)))
    first = np.roll(np.array([1.0, 0.0, 0.0]), k + 1)
    first = first - axis * float(axis @ first)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(axis, first), axis])


def _clean(values: Array) -> Array:
    """Without entries that are rounding of zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= NEGLIGIBLE * largest, 0.0, values)


def zeros(graph: Graph) -> Vector:
    """The zero vector."""
    return vector(graph, (0.0, 0.0, 0.0))


def combination(rows: Array, values: Sequence[Expression], graph: Graph) -> list[Expression]:
    """``rows @ values`` with constant rows; zeros are skipped."""
    return [
        graph.total(float(r) * v for r, v in zip(row, values, strict=True) if r != 0.0)
        for row in rows.tolist()
    ]
