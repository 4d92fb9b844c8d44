"""Closed loops: points or frames of two bodies that stay together, and their velocities.

A loop's condition depends on the joints between its two ends only. With both ends' poses seen from
the body where the two ways part, twists (angular, linear) about that body's origin give, for every
sample, the condition's residual, its Jacobian and what is left of its second derivative when
nothing accelerates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import DescriptionError, did_you_mean
from feasid.robot.inertia import skew
from feasid.robot.parts import constant

if TYPE_CHECKING:
    from feasid.robot.structure import Structure

Index = npt.NDArray[np.intp]

KINDS = {"connect": 3, "weld": 6}
"""Points that coincide (three conditions), or frames (six)."""


@dataclass(frozen=True, eq=False)
class Loop:
    """Two bodies that are joined by more than the tree: a point or a frame that they share.

    Attributes
    ----------
    name : str
    first, second : str or None
        Bodies; None for the base.
    first_position, second_position : ndarray, shape (3,)
        The point in each body's frame [m].
    kind : {"connect", "weld"}
    first_rotation, second_rotation : ndarray, shape (3, 3)
        The frame's axes in each body's frame; only a weld asks them to agree.
    """

    name: str
    first: str | None
    second: str | None
    first_position: Array
    second_position: Array
    kind: str = "connect"
    first_rotation: Array = field(default_factory=lambda: np.eye(3))
    second_rotation: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        what = f"loop {self.name!r}"
        if self.kind not in KINDS:
            raise DescriptionError(f"{what} is {self.kind!r}, expected one of {[*KINDS]}")
        if self.first == self.second:
            raise DescriptionError(f"{what} joins {self.first!r} with itself")
        for end in ("first", "second"):
            for part, shape in (("position", (3,)), ("rotation", (3, 3))):
                name = f"{end}_{part}"
                value = constant(getattr(self, name), shape, f"{name} of {what}")
                object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class _End:
    """One end of a loop as seen from where the ways part, for N samples.

    ``rotation`` (3, 3, N), ``point`` (3, N), ``twists`` (6, k, N) of the coordinates `rows`.
    """

    rotation: Array
    point: Array
    twists: Array
    rows: list[int]

    def jacobian(self, kind: str) -> Array:
        """Velocity of the point, and for a weld the angular velocity; shape (c, k, N)."""
        linear = self.twists[3:] + np.cross(self.twists[:3], self.point[:, None], axis=0)
        return linear if kind == "connect" else np.concatenate([linear, self.twists[:3]])

    def drift(self, kind: str, dq: Array) -> Array:
        """Acceleration when no joint accelerates, (c, N)."""
        twist = np.zeros((6, self.point.shape[1]))
        rate = np.zeros_like(twist)
        for k, row in enumerate(self.rows):
            own = self.twists[:, k] * dq[row]
            rate[:3] += np.cross(twist[:3], own[:3], axis=0)
            rate[3:] += np.cross(twist[:3], own[3:], axis=0) + np.cross(twist[3:], own[:3], axis=0)
            twist += own
        velocity = twist[3:] + np.cross(twist[:3], self.point, axis=0)
        linear = rate[3:] + np.cross(rate[:3], self.point, axis=0)
        linear += np.cross(twist[:3], velocity, axis=0)
        return linear if kind == "connect" else np.concatenate([linear, rate[:3]])


@dataclass(frozen=True, eq=False)
class Conditions:
    """All loops of a robot as functions of the tree's coordinates q, shape (axes, N)."""

    robot: Structure

    def __post_init__(self) -> None:
        names = {b.name: i for i, b in enumerate(self.robot.bodies)}
        for loop in self.robot.loops:
            for end in (loop.first, loop.second):
                if end is not None and end not in names:
                    hint = did_you_mean(end, names)
                    raise DescriptionError(f"loop {loop.name!r}: there is no body {end!r}{hint}")
            for i in [i for way in self.ways(loop) for i in way]:
                if self.robot.bodies[i].dof > 1:
                    joint = self.robot.bodies[i].joint
                    raise DescriptionError(
                        f"loop {loop.name!r} goes through joint {joint!r}, which has several "
                        "degrees of freedom: describe it by joints of one degree of freedom",
                        joint=joint,
                    )

    def ways(self, loop: Loop) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bodies from where the ways part to either end."""
        index = {b.name: i for i, b in enumerate(self.robot.bodies)}
        first, second = (
            () if end is None else self.robot.ancestors[index[end]]
            for end in (loop.first, loop.second)
        )
        shared = set(first) & set(second)
        return (
            tuple(i for i in first if i not in shared),
            tuple(i for i in second if i not in shared),
        )

    @property
    def count(self) -> int:
        """Number of scalar conditions."""
        return sum(KINDS[loop.kind] for loop in self.robot.loops)

    @property
    def rows(self) -> Index:
        """Coordinates of the tree that any loop depends on."""
        bodies = {i for loop in self.robot.loops for way in self.ways(loop) for i in way}
        return np.array(sorted(self.robot.rows[i].start for i in bodies), dtype=np.intp)

    def at(self, q: Array) -> tuple[Array, Array]:
        """Residual (c, N) and Jacobian (c, axes, N)."""
        residual, jacobian = [], []
        for loop, first, second in self._ends(q):
            size = KINDS[loop.kind]
            j = np.zeros((size, q.shape[0], q.shape[1]))
            for end, sign in ((first, 1.0), (second, -1.0)):
                j[:, end.rows] += sign * end.jacobian(loop.kind)
            jacobian.append(j)
            residual.append(first.point - second.point)
            if loop.kind == "weld":
                off = np.einsum("ikn,jkn->ijn", first.rotation, second.rotation)
                twice = [off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]]
                residual.append(0.5 * np.stack(twice))
        return np.concatenate(residual), np.concatenate(jacobian)

    def drift(self, q: Array, dq: Array) -> Array:
        """What is left of the conditions' second derivative without accelerations, (c, N)."""
        return np.concatenate(
            [a.drift(loop.kind, dq) - b.drift(loop.kind, dq) for loop, a, b in self._ends(q)]
        )

    def _ends(self, q: Array) -> list[tuple[Loop, _End, _End]]:
        out = []
        for loop in self.robot.loops:
            first, second = self.ways(loop)
            out.append(
                (
                    loop,
                    self._end(first, q, loop.first_rotation, loop.first_position, loop.first),
                    self._end(second, q, loop.second_rotation, loop.second_position, loop.second),
                )
            )
        return out

    def _end(
        self, way: Sequence[int], q: Array, turn: Array, place: Array, name: str | None
    ) -> _End:
        count = q.shape[1]
        rotation = np.repeat(np.eye(3)[:, :, None], count, axis=2)
        position = np.zeros((3, count))
        twists, rows = np.zeros((6, len(way), count)), []
        for k, i in enumerate(way):
            body, row = self.robot.bodies[i], self.robot.rows[i].start
            position = position + np.einsum("ijn,j->in", rotation, body.position)
            rotation = np.einsum("ijn,jk->ikn", rotation, body.rotation)
            screw = body.motion[:, 0]
            angular = np.einsum("ijn,j->in", rotation, screw[:3])
            linear = np.einsum("ijn,j->in", rotation, screw[3:])
            twists[:3, k], twists[3:, k] = angular, linear + np.cross(position, angular, axis=0)
            rows.append(row)
            moved, shifted = _screw(screw, q[row])
            position = position + np.einsum("ijn,jn->in", rotation, shifted)
            rotation = np.einsum("ijn,jkn->ikn", rotation, moved)
        point = position + np.einsum("ijn,j->in", rotation, place)
        return _End(np.einsum("ijn,jk->ikn", rotation, turn), point, twists, rows)


def _screw(screw: Array, q: Array) -> tuple[Array, Array]:
    """Rotation (3, 3, N) and displacement (3, N) along a screw by q, shape (N,)."""
    rate = float(np.linalg.norm(screw[:3]))
    eye = np.eye(3)[:, :, None]
    if rate == 0.0:
        return np.repeat(eye, len(q), axis=2), screw[3:, None] * q
    u, v = screw[:3] / rate, screw[3:] / rate
    angle = rate * q
    cross = skew(u)
    square = cross @ cross
    rotation = eye + np.sin(angle) * cross[:, :, None] + (1 - np.cos(angle)) * square[:, :, None]
    shift = np.outer(v, angle) + np.outer(cross @ v, 1 - np.cos(angle))
    return rotation, shift + np.outer(square @ v, angle - np.sin(angle))
