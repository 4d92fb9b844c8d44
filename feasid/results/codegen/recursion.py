"""The kinematic recursion on expressions: how every node is placed, moves and pushes its parent.

Vectors and matrices are NumPy arrays of expressions, in the node's own frame. A joint's axis passes
through a point that is fixed in both bodies (sliding along the axis apart), so that the
acceleration of the node's origin, and the moment about the parent's, take two constant lever arms:
``a = E (a_p + U_p p) + U c``, with U = S(alpha) + S(omega)^2. `feasid.robot.dynamics.kinematics` is
the same recursion for batches of numbers; `tests/codegen/test_code.py` compares them on random
trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.results.codegen.expression import Expression, Graph
from feasid.robot.dynamics.kinematics import Node
from feasid.robot.dynamics.spatial import ROUNDING_TOLERANCE

Expressions = npt.NDArray[Any]
"""An array of expressions: shape (3,) for a vector, (3, 3) for a matrix."""

LARGE_COMPONENT = 0.5
"""Components of a unit axis of at least this size are used to clear an entry of a lever arm by
sliding the point along the axis; smaller ones would lengthen the lever arm."""

RIGHT_ANGLE_TOLERANCE = 1e-15
"""Entries of a constant rotation this close to 0 and 1 are rounding of a turn by right angles."""


def constant_vector(graph: Graph, values: Sequence[float] | Array) -> Expressions:
    """Constants as expressions."""
    return np.array([graph.as_expression(float(v)) for v in values], dtype=object)


def symmetric_matrix(xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> Expressions:
    """A symmetric matrix by its entries, in the order of the first six inertial parameters."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)


def rotate_symmetric(rotation: Array, matrix: Expressions) -> Expressions:
    """``R L R'`` of a symmetric matrix with a constant rotation."""
    return symmetric_matrix(*(rotation @ matrix @ rotation.T)[np.triu_indices(3)])


@dataclass(frozen=True, eq=False)
class JointTransform:
    """The pose of a node in its parent."""

    #: Shape (3, 3): constant rotations: parent's coordinates to those of the axis, and on to the
    #: node's.
    before: Array
    after: Array  #: See `before`.
    #: Shape (3, 3): rotation about the axis, the z axis of its coordinates; None for joints that
    #: only slide. Of joints of several degrees of freedom any rotation.
    turn: Expressions | None
    #: Shape (3,): from the parent's origin to the point on the axis, in the parent's frame.
    arm: Expressions
    lever: Expressions  #: Shape (3,): from that point to the node's origin, in the node's frame.
    #: Shape (3, k): angular velocity and velocity along the axis per unit of the joint's k, in the
    #: node's frame.
    spin: Array
    slide: Array  #: See `spin`.

    def to_node(self, v: Expressions) -> Expressions:
        """A vector's coordinates in the node's frame."""
        v = self.before @ v
        return np.asarray(self.after @ (v if self.turn is None else self.turn.T @ v))

    def to_parent(self, v: Expressions) -> Expressions:
        """A vector's coordinates in the parent's frame."""
        v = self.after.T @ v
        return np.asarray(self.before.T @ (v if self.turn is None else self.turn @ v))

    def wrench_to_parent(
        self, moment: Expressions, force: Expressions
    ) -> tuple[Expressions, Expressions]:
        """A wrench about the node's origin, about the parent's and in its coordinates."""
        at_axis = moment + np.cross(self.lever, force)
        pushed = self.to_parent(force)
        return self.to_parent(at_axis) + np.cross(self.arm, pushed), pushed

    def axis_torques(self, moment: Expressions, force: Expressions) -> list[Expression]:
        """Torques at the joint of a wrench about the node's origin."""
        at_axis = moment + np.cross(self.lever, force)
        graph: Graph = moment[0].graph
        axes = zip(self.spin.T, self.slide.T, strict=True)
        return [graph.sum_terms([*(spin * at_axis), *(slide * force)]) for spin, slide in axes]

    @cached_property
    def axes(self) -> list[tuple[Expressions, Expressions]]:
        """Angular velocity, and velocity of the node's origin, per unit of each coordinate."""
        graph: Graph = self.lever[0].graph
        out = []
        for spin, slide in zip(self.spin.T, self.slide.T, strict=True):
            turning = constant_vector(graph, spin)
            out.append((turning, constant_vector(graph, slide) + np.cross(turning, self.lever)))
        return out

    def inertia_to_parent(self, inertia: Expressions) -> Expressions:
        """A symmetric matrix in the parent's axes; a turn about one axis takes eight products."""
        inertia = rotate_symmetric(self.after.T, inertia)
        if self.turn is not None and self.spin.shape[1] > 1:
            inertia = rotate_symmetric(self.turn, inertia)
        elif self.turn is not None:
            xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)]
            c, s = self.turn[0, 0], self.turn[1, 0]
            # xx + yy is the same in turned axes, which saves products.
            shear = xy * s
            part = c * (xx - yy) - (shear + shear)
            swing, lift = s * part, c * part
            inertia = symmetric_matrix(
                yy + lift, xy + swing, c * xz - s * yz, xx - lift, s * xz + c * yz, zz
            )
        return rotate_symmetric(self.before.T, inertia)


def joint_transform(graph: Graph, node: Node, positions: Sequence[Expression]) -> JointTransform:
    """The pose of a node whose joint has this position."""
    if len(positions) > 1:
        return _exponential(graph, node, np.array(positions, dtype=object))
    (q,) = positions
    angular, linear = node.motion[:3, 0], node.motion[3:, 0]
    rate = float(np.linalg.norm(angular))
    to_body = node.rotation.T
    if rate == 0.0:
        slide = _without_rounding(linear)
        arm = constant_vector(graph, _without_rounding(node.position))
        arm = arm + _without_rounding(node.rotation @ slide).astype(object) * q
        none = constant_vector(graph, np.zeros(3))
        to_axis = _without_right_angle_rounding(to_body)
        return JointTransform(to_axis, np.eye(3), None, arm, none, np.zeros((3, 1)), slide[:, None])
    axis = angular / rate
    pitch = float(axis @ linear)
    point = _sparsest_point(axis, np.cross(axis, linear / rate), node)
    # A rotation that takes the axis to z; a signed permutation where it can be one.
    z = _without_rounding(axis)
    x = np.roll(np.array([1.0, 0.0, 0.0]), int(np.argmax(np.abs(z))) + 1)
    x = x - z * float(z @ x)
    x /= np.linalg.norm(x)
    aligned = np.stack([x, np.cross(z, x), z])
    angle = rate * q
    c, s = graph.apply_function("cos", angle), graph.apply_function("sin", angle)
    zero, one = graph.as_expression(0.0), graph.as_expression(1.0)
    turn = np.array([[c, -s, zero], [s, c, zero], [zero, zero, one]], dtype=object)
    arm = constant_vector(graph, _without_rounding(node.position + node.rotation @ point))
    return JointTransform(
        _without_right_angle_rounding(aligned @ to_body),
        _without_right_angle_rounding(aligned.T),
        turn,
        arm + _without_rounding(pitch * (node.rotation @ axis)).astype(object) * q,
        constant_vector(graph, _without_rounding(-point)),
        _without_rounding(angular)[:, None],
        _without_rounding(pitch * axis)[:, None],
    )


def _exponential(graph: Graph, node: Node, positions: Expressions) -> JointTransform:
    """The pose by exponential coordinates: with w the turn, v the shift and S the square of |w|,

    R = 1 + a [w] + b [w]^2,  p = v + b w x v + c w x (w x v),
    a = sin|w| / |w|,  b = (1 - cos|w|) / S,  c = (1 - a) / S.
    """
    spin, slide = node.motion[:3], node.motion[3:]
    w: Expressions = spin @ positions
    v: Expressions = slide @ positions
    square = graph.sum_terms(w * w)
    a, half = graph.apply_function("sinc", square), graph.apply_function("sinc", square * 0.25)
    # 1 - cos|w| is 2 sin^2(|w| / 2), which keeps its digits at small angles.
    b, c = half * half * 0.5, graph.apply_function("sinc_rest", square)
    none = constant_vector(graph, np.zeros(3))
    skewed: Expressions = np.stack([np.cross(unit, w) for unit in np.eye(3)])
    squared: Expressions = np.outer(w, w) - np.diag([square] * 3)
    turn = constant_vector(graph, np.eye(3).ravel()).reshape(3, 3) + skewed * a + squared * b
    once: Expressions = np.cross(w, v)
    twice: Expressions = np.cross(w, once)
    shift = v + once * b + twice * c
    arm = constant_vector(graph, _without_rounding(node.position)) + node.rotation @ shift
    before = _without_right_angle_rounding(node.rotation.T)
    return JointTransform(before, np.eye(3), turn, arm, none, spin, slide)


def _sparsest_point(axis: Array, point: Array, node: Node) -> Array:
    """The point on the axis, in the node's frame, whose two lever arms have most zeros."""
    home = node.position + node.rotation @ point
    direction = node.rotation @ axis
    size = max(float(np.abs(home).max()), float(np.abs(point).max()))
    shifts = [0.0]
    # Every shift clears an entry of a lever arm.
    for arm, along in ((point, axis), (home, direction)):
        pairs = zip(arm.tolist(), along.tolist(), strict=True)
        shifts += [-p / a for p, a in pairs if abs(a) > LARGE_COMPONENT]

    def nonzeros(shift: float) -> int:
        both = np.concatenate([point + shift * axis, home + shift * direction])
        return int(np.count_nonzero(np.abs(both) > ROUNDING_TOLERANCE * max(size, abs(shift))))

    return np.asarray(point + min(shifts, key=nonzeros) * axis)


def _without_rounding(values: Array) -> Array:
    """Entries that are rounding of zero made zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= ROUNDING_TOLERANCE * largest, 0.0, values)


def _without_right_angle_rounding(rotation: Array) -> Array:
    """Entries close to 0 and 1 made exact, so that they need no operation."""
    rows = np.where(np.abs(rotation) < RIGHT_ANGLE_TOLERANCE, 0.0, rotation)
    return np.where(np.abs(np.abs(rows) - 1.0) < RIGHT_ANGLE_TOLERANCE, np.sign(rows), rows)


@dataclass(frozen=True, eq=False)
class NodeMotion:
    """Motion of a node in its own frame: omega, alpha, and the origin's acceleration less gravity.

    Each has shape (3,).
    """

    omega: Expressions
    alpha: Expressions
    acceleration: Expressions

    @cached_property
    def velocity_products(self) -> tuple[Expression, ...]:
        """x^2, y^2, z^2, x y, x z, y z of omega."""
        x, y, z = self.omega
        return x * x, y * y, z * z, x * y, x * z, y * z

    @cached_property
    def acceleration_matrix(self) -> Expressions:
        """U = S(alpha) + S(omega)^2, shape (3, 3).

        U r is the acceleration of a point r relative to the origin's.
        """
        (x, y, z), (xx, yy, zz, xy, xz, yz) = self.alpha, self.velocity_products
        rows = [
            [-(yy + zz), xy - z, xz + y],
            [xy + z, -(xx + zz), yz - x],
            [xz - y, yz + x, -(xx + yy)],
        ]
        return np.array(rows, dtype=object)

    def moment(self, ten: Expressions) -> Expressions:
        """L alpha + omega x L omega + l x a, on the products that U shares."""
        lxx, lxy, lxz, lyy, lyz, lzz = ten[:6]
        (x, y, z), (xx, yy, zz, xy, xz, yz) = self.alpha, self.velocity_products
        rotational = [
            lxx * x + (lzz - lyy) * yz + lxy * (y - xz) + lxz * (z + xy) + lyz * (yy - zz),
            lyy * y + (lxx - lzz) * xz + lxy * (x + yz) + lyz * (z - xy) + lxz * (zz - xx),
            lzz * z + (lyy - lxx) * xy + lxz * (x - yz) + lyz * (y + xz) + lxy * (xx - yy),
        ]
        out = np.array(rotational, dtype=object) + np.cross(ten[6:9], self.acceleration)
        return np.asarray(out)

    def force(self, ten: Expressions) -> Expressions:
        """M a + U l."""
        return np.asarray(self.acceleration * ten[9] + self.acceleration_matrix @ ten[6:9])

    @cached_property
    def parameter_columns(self) -> tuple[tuple[Expressions, Expressions], ...]:
        """Moment and force of each of the ten parameters at unit value."""
        graph: Graph = self.alpha[0].graph
        units = [constant_vector(graph, row) for row in np.eye(10)]
        return tuple((self.moment(unit), self.force(unit)) for unit in units)
