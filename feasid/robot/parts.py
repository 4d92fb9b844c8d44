"""The parts of a robot: bodies on screw joints, rotors, drives and the links they consist of.

Body i has a parent, a home transform and a motion subspace Phi_i (constant in its own frame,
angular part first), so that its pose is ``iX_p(q) = exp(-(Phi_i x) q) iX_p(0)``. Revolute,
prismatic and helical joints on any axis, spherical, planar and floating joints are all this one
thing. For joints of several degrees of freedom, q are exponential coordinates and dq is the
velocity of the body relative to its parent in the body's own frame, ``Phi_i dq``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, finite
from feasid.errors import DescriptionError, InputError
from feasid.robot import inertia
from feasid.robot.joint_terms import (
    DRIVE_SYMBOLS,
    FEATURE_SYMBOLS,
    FREE_FEATURES,
    TERMS,
    USUAL_SYMBOLS,
    JointState,
)

ROTOR_SYMBOLS = tuple(f"rotor_{s}" for s in inertia.SYMBOLS)
SYMMETRIC_ROTOR_SYMBOLS = ("rotor_Lxx", "rotor_Lzz", "rotor_lz", "rotor_m")

ROTATION_TOLERANCE = 1e-6
"""Largest entry of R'R - 1 that rounding in a hand-written matrix may leave."""


def constant(value: npt.ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only finite array of this shape, or say what is wrong with `what`."""
    array = finite(value, shape, what, DescriptionError)
    array.setflags(write=False)
    return array


def _rotation(value: npt.ArrayLike, what: str) -> Array:
    array = constant(value, (3, 3), what)
    error = np.abs(array.T @ array - np.eye(3)).max()
    if error > ROTATION_TOLERANCE or np.linalg.det(array) < 0:
        raise DescriptionError(
            f"{what} is not a rotation matrix (R'R differs from 1 by {error:.2g}, "
            f"determinant {np.linalg.det(array):.3g})"
        )
    return array


@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor on the joint's parent that turns at ``gear * q`` about its own z axis.

    Attributes
    ----------
    gear : float
        Signed ratio of rotor angle to joint position.
    rotation, position : ndarray, shapes (3, 3) and (3,)
        Rotor frame in the frame of the joint's *parent* body, z along the spin axis.
    symmetric : bool
        A balanced rotor has four parameters (Lxx = Lyy, Lzz, lz, m), a general one ten.
    values : ndarray, shape (4,) or (10,), or None
        The parameters that the description gives, in the order of `symbols`.
    """

    gear: float
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    symmetric: bool = True
    values: Array | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.gear):
            raise DescriptionError(f"the gear ratio of a rotor is {self.gear}")
        object.__setattr__(self, "rotation", _rotation(self.rotation, "a rotor's rotation"))
        object.__setattr__(self, "position", constant(self.position, (3,), "a rotor's position"))
        if self.values is not None:
            values = constant(self.values, (len(self.symbols),), "values of a rotor")
            object.__setattr__(self, "values", values)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Parameter symbols, in order."""
        return SYMMETRIC_ROTOR_SYMBOLS if self.symmetric else ROTOR_SYMBOLS


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

    def in_body(self) -> Array:
        """Parameters in the body's frame, shape (10,); zeros when the link has none."""
        if self.inertial is None:
            return np.zeros(10)
        return np.asarray(
            inertia.change_frame(self.rotation, self.position) @ self.inertial, dtype=np.float64
        )


@dataclass(frozen=True, eq=False)
class Limits:
    """Range of a one-degree-of-freedom joint; None where the description does not say."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, eq=False)
class Body:
    """One moving body and the joint that carries it.

    Attributes
    ----------
    name : str
        Unique; the first level of the parameter names.
    parent : str or None
        Name of the parent body, None for the base.
    rotation, position : ndarray, shapes (3, 3) and (3,)
        Home pose of the body's frame in its parent's: columns of `rotation` are the body's axes
        in the parent's coordinates, `position` is its origin [m].
    motion : ndarray, shape (6, n_d)
        Motion subspace in the body's frame, angular part first. A column's unit is what makes
        ``motion @ dq`` [rad/s, m/s]: rad-joints have a unit angular part, prismatic ones a unit
        linear part.
    joint : str
        Name of the joint, by default the body's.
    inertial : ndarray, shape (10,), or None
        Inertial parameters that the description gives for the whole moving body.
    rotor : Rotor or None
    limits : Limits
    members : tuple of Member
        The links lumped into this body, the body's own first; empty when it is a single link.
    massless : bool
        A virtual link: its ten parameters are zero and no unknowns.
    """

    name: str
    parent: str | None
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    motion: Array = field(default_factory=lambda: np.array([[0.0], [0], [1], [0], [0], [0]]))
    joint: str = ""
    inertial: Array | None = None
    rotor: Rotor | None = None
    limits: Limits = field(default_factory=Limits)
    members: tuple[Member, ...] = ()
    massless: bool = False

    def __post_init__(self) -> None:
        what = f"body {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a body's name must be a non-empty string, not {self.name!r}")
        motion = np.asarray(self.motion, dtype=np.float64)
        if motion.ndim == 1:
            motion = motion[:, None]
        motion = constant(motion, (6, motion.shape[-1]), f"the motion subspace of {what}")
        if not 1 <= motion.shape[1] <= 6 or np.linalg.matrix_rank(motion) < motion.shape[1]:
            raise DescriptionError(
                f"the motion subspace of {what} needs 1 to 6 independent columns (a body without "
                f"a joint belongs to its parent), got {motion.tolist()}"
            )
        set_ = object.__setattr__
        set_(self, "motion", motion)
        set_(self, "rotation", _rotation(self.rotation, f"the home rotation of {what}"))
        set_(self, "position", constant(self.position, (3,), f"the home position of {what}"))
        set_(self, "joint", self.joint or self.name)
        if self.inertial is not None:
            set_(self, "inertial", constant(self.inertial, (10,), f"inertial parameters of {what}"))
        if self.massless:
            if self.inertial is not None and self.inertial.any():
                raise DescriptionError(f"{what} is massless, but has {self.inertial.tolist()}")
            set_(self, "inertial", constant(np.zeros(10), (10,), what))

    @property
    def dof(self) -> int:
        """Degrees of freedom of the joint."""
        return int(self.motion.shape[1])


@dataclass(frozen=True, eq=False)
class Feature:
    """A torque of the caller's own, linear in one coefficient that is fitted.

    Attributes
    ----------
    name : str
    function : callable
        ``function(q, dq, ddq, load)`` of arrays (N,) of the drive's own coordinate and of the rigid
        bodies' torque at its joint by the description (None unless `load`); returns (N,).
    positive : bool
        The coefficient is at least zero, as of a torque that dissipates.
    load : bool
        The function looks at the load.
    """

    name: str
    function: Callable[[Array, Array, Array, Array | None], Array]
    positive: bool = False
    load: bool = False

    def values(self, q: Array, dq: Array, ddq: Array, load: Array | None) -> Array:
        """The feature for a motion.

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (N,)
            Of the drive's joint.
        load : ndarray, shape (N,), or None
            What the function gets besides.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        InputError
            The function does not return one finite number per sample.
        """
        found = np.asarray(self.function(q, dq, ddq, load), dtype=np.float64)
        if found.shape != q.shape or not np.isfinite(found).all():
            raise InputError(
                f"feature {self.name!r} must return {q.shape[0]} finite numbers, one per sample; "
                f"got an array of shape {found.shape}",
                feature=self.name,
            )
        return found


@dataclass(frozen=True, eq=False)
class Drive:
    """Drive inertia, friction and springs along a combination c . q of joint positions.

    The drive adds ``c`` times the sum of its coefficients, each times its factor, to the joint
    torques; c is one joint's unit vector except for motors that move several joints. The factors of
    the usual terms are those of eq. (27) of Sousa and Cortesao (2014),
    ``Ia c.ddq + fv v + fc sign(v) + fo`` with v = c.dq; all terms are in
    `feasid.robot.joint_terms.JOINT_TERMS`. With a transition, tanh(v / transition) takes the place
    of sign(v); the load of load-dependent friction is the rigid bodies' torque at the joint, see
    ``Robot.load_model``.

    Attributes
    ----------
    name : str
        First level of its parameter names: the body's name for an ordinary joint.
    coupling : dict of str to float
        Factor per joint name.
    symbols : tuple of str
        Which of `feasid.robot.joint_terms.DRIVE_SYMBOLS` it has; kept in that order, whatever
        the order given.
    values : ndarray, shape (len(symbols),), or None
        One per symbol, given in the order in which the symbols are given.
    transition : float
        Speed [rad/s or m/s] over which Coulomb friction changes its sign; 0 for at once.
    rest : float
        Where the spring is slack [rad or m].
    from_file : bool
        The terms are those for which a description file gives values; `feasid.fit` takes the
        usual friction besides.
    features : tuple of Feature
        What ``p1 p2 ...`` (positive ones, in order) and ``u1 u2 ...`` (the others) multiply.
    """

    name: str
    coupling: Mapping[str, float]
    symbols: tuple[str, ...] = USUAL_SYMBOLS
    values: Array | None = None
    transition: float = 0.0
    rest: float = 0.0
    from_file: bool = False
    features: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.transition) and self.transition >= 0):
            raise DescriptionError(
                f"drive {self.name!r}: the transition must be a speed of at least 0, not "
                f"{self.transition!r}"
            )
        unknown = [s for s in self.symbols if s not in DRIVE_SYMBOLS]
        if unknown or not self.symbols:
            raise DescriptionError(f"drive {self.name!r} needs some of {DRIVE_SYMBOLS}: {unknown}")
        if len(set(self.symbols)) < len(self.symbols):
            raise DescriptionError(f"drive {self.name!r} has a symbol twice: {[*self.symbols]}")
        self._check_terms()
        self._check_features()
        ordered = tuple(s for s in DRIVE_SYMBOLS if s in self.symbols)
        if not self.coupling or not all(np.isfinite(c) and c for c in self.coupling.values()):
            raise DescriptionError(f"drive {self.name!r} needs finite non-zero factors per joint")
        if not np.isfinite(self.rest):
            raise DescriptionError(f"drive {self.name!r}: its spring rests at {self.rest}")
        if self.values is not None:
            values = constant(self.values, (len(ordered),), f"values of drive {self.name!r}")
            by_symbol = dict(zip(self.symbols, values, strict=True))
            sorted_values = constant([by_symbol[s] for s in ordered], values.shape, "")
            object.__setattr__(self, "values", sorted_values)
        object.__setattr__(self, "symbols", ordered)

    def _check_terms(self) -> None:
        for term in (TERMS[s] for s in self.symbols if s in TERMS):
            if term.bounded_by and term.bounded_by not in self.symbols:
                raise DescriptionError(
                    f"drive {self.name!r}: {term.name} ({term.symbol}) is bounded by "
                    f"{TERMS[term.bounded_by].name} ({term.bounded_by}), which it lacks"
                )
            if term.needs_load and len(self.coupling) > 1:
                raise DescriptionError(
                    f"drive {self.name!r} moves several joints: {term.name} is of one joint"
                )

    def _check_features(self) -> None:
        known = set(feature_symbols(self.features))
        named = {s for s in self.symbols if s in FEATURE_SYMBOLS}
        if named - known:
            raise DescriptionError(
                f"drive {self.name!r} has {sorted(named - known)}, but no such feature"
            )

    def loaded(self, symbol: str) -> bool:
        """Whether the term `symbol` depends on load; `InputError` for a feature it lacks."""
        return self.feature(symbol).load if symbol not in TERMS else TERMS[symbol].needs_load

    def factor(
        self, symbol: str, q: Array, dq: Array, ddq: Array, *, load: Array | None = None
    ) -> Array:
        """What multiplies the coefficient `symbol` in this drive's torque.

        Friction as in Sousa and Cortesao (2014) eq. (27), and the further terms of
        `feasid.robot.joint_terms.JOINT_TERMS`.

        Parameters
        ----------
        symbol : str
        q, dq, ddq : ndarray, shape (N,)
            The drive's coordinate ``c . q`` [rad or m], its velocity and acceleration.
        load : ndarray, shape (N,), optional
            Torque of the rigid bodies at the joint, for terms that depend on it [N m or N].

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        InputError
            There is no such term or feature, or it depends on the load, which is not given.
        """
        if symbol not in DRIVE_SYMBOLS:
            raise InputError(f"unknown drive symbol {symbol!r}")
        if self.loaded(symbol) and load is None:
            raise InputError(f"drive {self.name!r}: {symbol} needs the load, which is not given")
        if symbol not in TERMS:
            return self.feature(symbol).values(q, dq, ddq, load)
        sign = np.tanh(dq / self.transition) if self.transition else np.sign(dq)
        value = TERMS[symbol].factor(JointState(q, q - self.rest, dq, ddq, sign, load, np))
        return np.asarray(value) if np.shape(value) else np.full_like(dq, value)

    def feature(self, symbol: str) -> Feature:
        """The feature that `symbol` multiplies; `InputError` when there is none."""
        own = feature_symbols(self.features)
        if symbol not in own:
            has = f"it has {', '.join(own)}" if own else "it has none"
            raise InputError(f"drive {self.name!r} has no feature {symbol!r}; {has}")
        return self.features[own.index(symbol)]


def feature_symbols(features: Sequence[Feature]) -> list[str]:
    """The symbol of each feature: ``p1 p2 ...`` of positive ones, ``u1 u2 ...`` of the others."""
    counts = {"p": 0, "u": 0}
    out = []
    for feature in features:
        kind = "p" if feature.positive else "u"
        counts[kind] += 1
        out.append(f"{kind}{counts[kind]}")
    if max(counts.values()) > len(FREE_FEATURES):
        raise DescriptionError(f"a joint has at most {len(FREE_FEATURES)} features of a kind")
    return out


def drive_like(
    known: Drive | None, body: Body, symbols: tuple[str, ...], features: tuple[Feature, ...]
) -> Drive:
    """A joint's drive with `symbols`, features and its spring, keeping the values that it had.

    A file that gives some terms says that the others are zero.
    """
    symbols = (*symbols, *feature_symbols(features))
    if known is None:
        return Drive(body.name, {body.joint: 1.0}, symbols, features=features)
    symbols = (*symbols, *(s for s in known.symbols if s == "k" and s not in symbols))
    values = None
    if known.values is not None:
        had = dict(zip(known.symbols, known.values, strict=True))
        if known.from_file or all(s in had for s in symbols):
            values = np.array([had.get(s, 0.0) for s in symbols])
    return replace(known, symbols=symbols, values=values, from_file=False, features=features)


@dataclass(frozen=True)
class Source:
    """The text a robot was read from, kept so that it can be written back with few changes."""

    path: str
    format: str
    text: bytes = field(repr=False)
    notes: tuple[str, ...] = ()
    """What was repaired while reading, each naming file, line and joint; which joint terms were
    read; and in one line everything in the file that the robot leaves out, by name."""
    reading: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Options of `load_robot` with which it was read."""
