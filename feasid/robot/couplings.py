"""Connections of bodies beyond the tree: joints that move together, and closed loops.

A coupling is linear, ``q_i = sum_j a_ij q_j + b_i``. All of a robot's couplings together say
``q = A s + b`` with the coordinates s of the joints that are left independent; velocities and
accelerations follow by A, and the torques of the independent coordinates are ``A' tau``. Mimic
joints, belts, differentials and rotors on gears are of this kind. A loop is a point or a frame that
two bodies share; `feasid.robot.closure` solves its conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, did_you_mean
from feasid.robot.bodies import read_only_array

Index = npt.NDArray[np.intp]

LOOP_KINDS = {"connect": 3, "weld": 6}  #: Points that coincide (three conditions), or frames (six).


@checked
@dataclass(frozen=True, eq=False)
class Coupling:
    """``q[joint] = sum of factors[other] q[other] + offset``."""

    joint: str  #: The joint that follows; it has one degree of freedom.
    #: Factor per joint that leads; empty for a joint that is held at `offset`.
    factors: Mapping[str, float]
    offset: float = 0.0  #: [rad or m]


@dataclass(frozen=True, eq=False)
class CouplingMap:
    """``q = A s + b``: all coordinates of the tree from the independent ones."""

    A: Array  #: Shape (axes, independent).
    b: Array  #: Shape (axes,).
    independent: Index  #: Coordinates of the tree that are the independent ones s.

    def positions(self, s: Array) -> Array:
        """All coordinates (axes, N) from the independent ones (independent, N)."""
        return np.asarray(self.A @ s + self.b[:, None])


def resolve_couplings(
    joints: Sequence[str], rows: Sequence[slice], couplings: Sequence[Coupling]
) -> CouplingMap:
    """Resolve couplings, also of joints that follow followers.

    `joints`: one per body; `rows`: coordinates of each joint. Raises DescriptionError: names joints
    that do not exist, have several degrees of freedom, are coupled twice, or follow each other in a
    circle.
    """
    axes = rows[-1].stop
    place = {joint: row.start for joint, row in zip(joints, rows, strict=True)}
    several = {j for j, row in zip(joints, rows, strict=True) if row.stop - row.start > 1}
    by_joint: dict[str, Coupling] = {}
    for coupling in couplings:
        for joint in (coupling.joint, *coupling.factors):
            what = f"coupling of joint {coupling.joint!r}"
            if joint not in place:
                hint = did_you_mean(joint, joints)
                raise DescriptionError(f"{what}: there is no joint {joint!r}{hint}")
            if joint in several:
                raise DescriptionError(f"{what}: joint {joint!r} has several degrees of freedom")
        if coupling.joint in by_joint:
            raise DescriptionError(f"{coupling.joint!r} is coupled twice", joint=coupling.joint)
        by_joint[coupling.joint] = coupling
    A, b = np.eye(axes), np.zeros(axes)
    try:  # leaders first
        order = [*TopologicalSorter({j: c.factors for j, c in by_joint.items()}).static_order()]
    except CycleError as error:
        circle = error.args[1][::-1]
        raise DescriptionError(
            f"couplings form a circle: {' -> '.join(circle)}", joint=circle[0]
        ) from None
    for joint in order:
        if joint not in by_joint:
            continue
        coupling, i = by_joint[joint], place[joint]
        leaders = [place[other] for other in coupling.factors]
        factors = np.array([*coupling.factors.values()])
        A[i] = factors @ A[leaders]
        b[i] = factors @ b[leaders] + coupling.offset
    following = {place[j] for j in by_joint}
    independent = np.array([k for k in range(axes) if k not in following], dtype=np.intp)
    return CouplingMap(A[:, independent], b, independent)


def without_joint(
    couplings: Sequence[Coupling], joint: str, position: float
) -> tuple[Coupling, ...]:
    """The couplings of the other joints when one is held at this position."""
    out = []
    for coupling in couplings:
        if coupling.joint == joint:
            continue
        if joint in coupling.factors:
            factors = {j: a for j, a in coupling.factors.items() if j != joint}
            moved = coupling.offset + coupling.factors[joint] * position
            coupling = Coupling(coupling.joint, factors, moved)
        out.append(coupling)
    return tuple(out)


@checked
@dataclass(frozen=True, eq=False)
class Loop:
    """A loop closure: a point or a frame that two bodies share."""

    name: str  #: As messages call it.
    first: str | None  #: Bodies; None for the base.
    second: str | None  #: See `first`.
    first_position: Array  #: Shape (3,): the point in each body's frame [m].
    second_position: Array  #: See `first_position`.
    kind: str = "connect"  #: One of "connect", "weld".
    #: Shape (3, 3): the frame's axes in each body's frame; only a weld makes them coincide.
    first_rotation: Array = field(default_factory=lambda: np.eye(3))
    second_rotation: Array = field(default_factory=lambda: np.eye(3))  #: See `first_rotation`.

    def __post_init__(self) -> None:
        what = f"loop {self.name!r}"
        if self.kind not in LOOP_KINDS:
            raise DescriptionError(f"{what} is {self.kind!r}, expected one of {[*LOOP_KINDS]}")
        if self.first == self.second:
            raise DescriptionError(f"{what} joins {self.first!r} with itself")
        for end in ("first", "second"):
            for part, shape in (("position", (3,)), ("rotation", (3, 3))):
                name = f"{end}_{part}"
                value = read_only_array(getattr(self, name), shape, f"{name} of {what}")
                object.__setattr__(self, name, value)
