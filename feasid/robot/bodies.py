"""Bodies on screw joints, their rotors and limits, and the links they consist of.

Body i has a parent, a home transform and a motion subspace Phi_i (constant in its own frame,
angular part first), so that its pose is ``iX_p(q) = exp(-(Phi_i x) q) iX_p(0)``. Revolute,
prismatic and helical joints on any axis, spherical, planar and floating joints are all this one
thing. For joints of several degrees of freedom, q are exponential coordinates and dq is the
velocity of the body relative to its parent in the body's own frame, ``Phi_i dq``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Numbers, checked
from feasid.core.arrays import Array, require_finite
from feasid.core.errors import DescriptionError, did_you_mean
from feasid.robot import inertia
from feasid.robot.rotations import axis_rotation, compose

ROTOR_SYMBOLS = tuple(f"rotor_{s}" for s in inertia.SYMBOLS)
SYMMETRIC_ROTOR_SYMBOLS = ("rotor_Lxx", "rotor_Lzz", "rotor_lz", "rotor_m")

SYMMETRIC_ROTOR = np.zeros((10, 4))
"""The ten parameters of a balanced rotor from its four: Lyy = Lxx, and products and lx, ly zero."""
SYMMETRIC_ROTOR[[0, 3, 5, 8, 9], [0, 0, 1, 2, 3]] = 1.0

ROTATION_TOLERANCE = 1e-6
"""Largest entry of R'R - 1 that rounding in a hand-written matrix may leave."""


def read_only_array(value: npt.ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only finite array of this shape; an error names `what`."""
    array = require_finite(value, shape, what, DescriptionError)
    array.setflags(write=False)
    return array


def _check_rotation(value: npt.ArrayLike, what: str) -> Array:
    array = read_only_array(value, (3, 3), what)
    error = np.abs(array.T @ array - np.eye(3)).max()
    if error > ROTATION_TOLERANCE or np.linalg.det(array) < 0:
        raise DescriptionError(
            f"{what} is not a rotation matrix (R'R differs from 1 by {error:.2g}, "
            f"determinant {np.linalg.det(array):.3g})"
        )
    return array


@checked
@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor on the joint's parent that turns at ``gear * q`` about its own z axis."""

    gear: float  #: Signed ratio of rotor angle to joint position.
    #: Shape (3, 3): rotor frame in the frame of the joint's *parent* body, z along the spin axis.
    rotation: Numbers = field(default_factory=lambda: np.eye(3))
    position: Numbers = field(default_factory=lambda: np.zeros(3))  #: Shape (3,): see `rotation`.
    #: A balanced rotor has four parameters (Lxx = Lyy, Lzz, lz, m), a general one ten.
    symmetric: bool = True
    #: Shape (4,) or (10,): the parameters that the description gives, in the order of `symbols`.
    values: Numbers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", _check_rotation(self.rotation, "a rotor's rotation"))
        position = read_only_array(self.position, (3,), "a rotor's position")
        object.__setattr__(self, "position", position)
        if self.values is not None:
            values = read_only_array(self.values, (len(self.symbols),), "values of a rotor")
            object.__setattr__(self, "values", values)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Parameter symbols, in order."""
        return SYMMETRIC_ROTOR_SYMBOLS if self.symmetric else ROTOR_SYMBOLS

    @property
    def reduction(self) -> Array:
        """The ten parameters of any body from its own, shape (10, number of symbols)."""
        return SYMMETRIC_ROTOR if self.symmetric else np.eye(10)


@dataclass(frozen=True, eq=False)
class Member:
    """A link that moves rigidly with a body: the body's own link or one fixed to it.

    ``rotation`` and ``position`` place the link's frame in the body's; ``inertial`` are the
    link's own ten in *its* frame, None when the description gives none.
    """

    name: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    inertial: Array | None = None


UNLIMITED = 1e16
"""Limits of this size or larger count as no limit: SDF's default, below what others print."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Range of a one-degree-of-freedom joint; None where it is not stated below `UNLIMITED`."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None
    #: Whether the lower position was stated above the upper one: they are exchanged.
    exchanged: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            # Written so that NaN, which some files have, is no limit either.
            if value is not None and not abs(value) < UNLIMITED:
                object.__setattr__(self, name, None)
        low, high = self.lower, self.upper
        if low is not None and high is not None and low > high:
            vars(self).update(lower=high, upper=low, exchanged=True)


@checked
@dataclass(frozen=True, eq=False)
class Body:
    """One moving body and the joint that carries it."""

    name: str  #: Unique; the first level of the parameter names.
    parent: str | None  #: Name of the parent body, None for the base.
    #: Shape (3, 3): home pose of the body's frame in its parent's: columns of `rotation` are the
    #: body's axes in the parent's coordinates, `position` is its origin [m].
    rotation: Numbers = field(default_factory=lambda: np.eye(3))
    position: Numbers = field(default_factory=lambda: np.zeros(3))  #: Shape (3,): see `rotation`.
    #: Shape (6, n_d): motion subspace in the body's frame, angular part first. A column's unit is
    #: what makes ``motion @ dq`` [rad/s, m/s]: rad-joints have a unit angular part, prismatic ones
    #: a unit linear part.
    motion: Numbers = field(default_factory=lambda: np.array([[0.0], [0], [1], [0], [0], [0]]))
    joint: str = ""  #: Name of the joint, by default the body's.
    #: Shape (10,): inertial parameters that the description gives for the whole moving body.
    inertial: Numbers | None = None
    rotor: Rotor | None = None  #: The rotor of its joint's motor.
    limits: Limits = field(default_factory=Limits)  #: Of its joint.
    #: The links lumped into this body, the body's own first; empty when it is a single link.
    members: tuple[Member, ...] = ()
    massless: bool = False  #: A virtual link: its ten parameters are zero and no unknowns.

    def __post_init__(self) -> None:
        what = f"body {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a body's name must be a non-empty string, not {self.name!r}")
        motion = np.asarray(self.motion, dtype=np.float64)
        if motion.ndim == 1:
            motion = motion[:, None]
        columns = motion.shape[-1] if motion.ndim else 1
        motion = read_only_array(motion, (6, columns), f"the motion subspace of {what}")
        if not 1 <= motion.shape[1] <= 6 or np.linalg.matrix_rank(motion) < motion.shape[1]:
            raise DescriptionError(
                f"the motion subspace of {what} needs 1 to 6 independent columns (a body without "
                f"a joint belongs to its parent), got {motion.tolist()}"
            )
        set_ = object.__setattr__
        set_(self, "motion", motion)
        set_(self, "rotation", _check_rotation(self.rotation, f"the home rotation of {what}"))
        set_(self, "position", read_only_array(self.position, (3,), f"the home position of {what}"))
        set_(self, "joint", self.joint or self.name)
        if self.inertial is not None:
            ten = read_only_array(self.inertial, (10,), f"inertial parameters of {what}")
            set_(self, "inertial", ten)
        if self.massless:
            if self.inertial is not None and self.inertial.any():
                raise DescriptionError(f"{what} is massless, but has {self.inertial.tolist()}")
            set_(self, "inertial", read_only_array(np.zeros(10), (10,), what))

    @property
    def dof(self) -> int:
        """Degrees of freedom of the joint."""
        return int(self.motion.shape[1])

    @property
    def floats(self) -> bool:
        """Whether the body is a floating base: six degrees of freedom relative to the world."""
        return self.parent is None and self.dof == 6


def place_member(member: Member, rotation: Array, position: Array) -> Member:
    """Express the link in another frame, in which the present one has this pose."""
    turned, moved = compose(rotation, position, member.rotation, member.position)
    return replace(member, rotation=turned, position=moved)


def parameters_in_body(member: Member) -> Array:
    """A link's ten parameters in its body's frame: its own where the frames are one, or zeros."""
    if member.inertial is None:
        return np.zeros(10)
    if (member.rotation == np.eye(3)).all() and not member.position.any():
        return member.inertial
    return np.asarray(inertia.change_frame(member.rotation, member.position) @ member.inertial)


def lumped_parameters(members: Iterable[Member]) -> Array | None:
    """Sum of the links' parameters in the body's frame; None when no link has any."""
    parts = [parameters_in_body(m) for m in members if m.inertial is not None]
    return np.sum(parts, axis=0) if parts else None


FIELDS = ("alpha", "a", "d", "theta", "type")


def bodies_from_dh(
    rows: Sequence[Sequence[Any] | Mapping[str, Any]],
    *,
    convention: str = "standard",
    names: Sequence[str] | None = None,
) -> tuple[Body, ...]:
    """The bodies of a serial arm from a Denavit-Hartenberg table.

    Arguments are those of `Robot.from_dh`; theta of a revolute joint and d of a prismatic one are
    offsets added to q; link frames of the standard convention (distal, Paul) lie after their joint,
    of the modified one (proximal, Craig) on it. Raises DescriptionError: the message names row and
    entry.
    """
    if convention not in ("standard", "modified"):
        hint = did_you_mean(convention, ("standard", "modified"))
        raise DescriptionError(f"DH convention {convention!r} is not standard or modified{hint}")
    labels = [str(k + 1) for k in range(len(rows))] if names is None else list(names)
    if len(labels) != len(rows):
        raise DescriptionError(f"{len(rows)} DH rows but {len(labels)} names")
    bodies = []
    for k, row in enumerate(rows):
        if isinstance(row, Mapping):
            unknown = [key for key in row if key not in FIELDS]
            if unknown:
                hint = did_you_mean(unknown[0], FIELDS)
                raise DescriptionError(f"DH row {k + 1}: unknown entry {unknown[0]!r}{hint}")
            values = [row.get(f, "revolute" if f == "type" else 0.0) for f in FIELDS]
        else:
            values = [*row, "revolute"] if len(row) == 4 else [*row]
            if len(values) != 5:
                raise DescriptionError(
                    f"DH row {k + 1} has {len(row)} entries, expected alpha, a, d, theta[, type]"
                )
        *entries, kind = values
        numbers = []
        for entry, value in zip(FIELDS, entries, strict=False):
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if not np.isfinite(number):
                what = f"{entry} = {value!r} is not a finite number"
                raise DescriptionError(f"DH row {k + 1}: {what}")
            numbers.append(number)
        if kind not in ("revolute", "prismatic"):
            hint = did_you_mean(kind, ("revolute", "prismatic"))
            raise DescriptionError(f"DH row {k + 1}: joint type {kind!r} is not known{hint}")
        alpha, a, d, theta = numbers
        axis = np.array([0.0, 0.0, 1.0])
        turn = axis_rotation(2, theta), np.array([0.0, 0.0, d])
        link = axis_rotation(0, alpha), np.array([a, 0.0, 0.0])
        if convention == "modified":
            turn, link = link, turn
        rotation, position = compose(*turn, *link)
        # The joint turns about the z axis that its frame had before the link's own part.
        if convention == "modified":
            screw = np.r_[axis, 0, 0, 0] if kind == "revolute" else np.r_[0, 0, 0, axis]
        elif kind == "revolute":
            screw = np.r_[rotation.T @ axis, rotation.T @ np.cross(axis, position)]
        else:
            screw = np.r_[0, 0, 0, rotation.T @ axis]
        parent = labels[k - 1] if k else None
        bodies.append(Body(labels[k], parent, rotation, position, screw[:, None]))
    return tuple(bodies)
