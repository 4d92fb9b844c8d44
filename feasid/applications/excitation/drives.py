"""Joint terms of a motion's regressor: friction, springs and drive inertias, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.robot.description import Robot
from feasid.robot.joint_terms import TERMS, JointState, deflections

OVERSHOOT = (np.sqrt(55.0) - 5.0) / 2
"""The c with which ``s = tanh u (1 + c / cosh^2 u)`` keeps the mean square: the integral of 1 - s^2
over all u, ``2 - 4 c / 3 - 4 c^2 / 15``, is zero. So a smoothed sign carries as much information on
friction as the sign, up to the square of its width; tanh alone loses information in proportion to
the width."""

Places = npt.NDArray[np.intp]

TINY = 1e-150  #: Smallest root of a speed in divisions.


class MotionGradient(NamedTuple):
    """Derivatives by q, dq and ddq, each of shape (dof, N)."""

    q: Array
    dq: Array
    ddq: Array

    @classmethod
    def zeros(cls, dof: int, count: int) -> MotionGradient:
        """Nothing yet; parts are added in place."""
        return cls(*np.zeros((3, dof, count)))


@dataclass(frozen=True, eq=False)
class DriveTerms:
    """One kind of joint term, for all drives that have it."""

    symbol: str
    owners: Places  #: The drives.
    values: Array  #: Shape (owners, 1): the description's; zero where it does not say.
    members: Places  #: Those drives whose column is wanted, and where it stands.
    places: Places  #: See `members`.

    @property
    def is_friction(self) -> bool:
        """Whether a real joint may have less of it, so that limits are to hold without it, too."""
        return TERMS[self.symbol].kind == "friction"


@dataclass(frozen=True, eq=False)
class DriveColumns:
    """The drives' columns among those that are wanted."""

    coupling: Array  #: Shape (drives, dof): joint velocities to the drives'.
    #: Shape (drives, 1): over which velocity each drive's sign changes; 0 for the sign.
    widths: Array
    #: Shape (drives, 1): `OVERSHOOT` where a smoothed sign stands in for one that changes faster,
    #: else zero.
    overshoot: Array
    rests: Array  #: Shape (drives, 1): where each drive's spring is slack.
    ranges: Array  #: Shape (2, drives, 1): `Drive.spring_range`, infinite where there is none.
    ripple: Array  #: Shape (2, drives, 1): `Drive.ripple`, zero where there is none.
    terms: tuple[DriveTerms, ...]

    @classmethod
    def from_robot(
        cls, robot: Robot, columns: Sequence[int], smoothing: Array | None
    ) -> DriveColumns:
        """Columns of a robot's drives."""
        rows = [robot.coupling(k) for k in range(len(robot.drives))]
        transitions = np.array([drive.transition for drive in robot.drives])
        widths = transitions if smoothing is None else np.maximum(transitions, smoothing)
        place = {c: k for k, c in enumerate(columns)}
        values = np.nan_to_num(robot.values)
        owners: dict[str, list[tuple[int, int]]] = {}
        for k in range(len(robot.drives)):
            for symbol, column in robot.drive_columns(k).items():
                owners.setdefault(symbol, []).append((k, column))
        terms = tuple(
            DriveTerms(
                symbol,
                np.array([k for k, _ in owner_list]),
                values[[c for _, c in owner_list]][:, None],
                np.array([k for k, c in owner_list if c in place], dtype=np.intp),
                np.array([place[c] for _, c in owner_list if c in place], dtype=np.intp),
            )
            for symbol, owner_list in owners.items()
        )
        return cls(
            np.array(rows).reshape(-1, robot.dof),
            widths[:, None],
            np.where(widths > transitions, OVERSHOOT, 0.0)[:, None],
            np.array([[drive.rest] for drive in robot.drives]),
            np.array([d.spring_ends for d in robot.drives]).T[..., None],
            # A drive without ripple has an empty tuple.
            np.array([(*d.ripple, 0.0, 0.0)[:2] for d in robot.drives]).T[..., None],
            terms,
        )


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Factors of the drives' parameters in a motion (dof, N)."""

    columns: DriveColumns
    q: Array
    dq: Array
    ddq: Array

    def add_to_equations(self, regressor: Array, torques: Array) -> Array:
        """Set columns along every drive's coupling (N, dof, columns); add to torques (dof, N).

        Returns torques with all terms and, where there is friction, those without it below them.
        """
        coupling, friction = self.columns.coupling, np.zeros_like(torques)
        for terms in self.columns.terms:
            signal, *_ = self._term_factors(terms.symbol)
            along = coupling[terms.members].T
            regressor[:, :, terms.places] = along * signal[terms.members].T[:, None]
            drive_torques = coupling[terms.owners].T @ (terms.values * signal[terms.owners])
            if terms.is_friction:
                friction += drive_torques
            else:
                torques = torques + drive_torques
        # Once more without friction, if the description gives friction that is not zero.
        rubs = any(t.values.any() for t in self.columns.terms if t.is_friction)
        return np.concatenate([torques + friction, torques][: 1 + rubs])

    def pull_back(
        self, regressor_bar: Array, torque_bar: Array | None, out: MotionGradient
    ) -> None:
        """Add the gradient by the motion, from derivatives by both."""
        coupling = self.columns.coupling
        rows = None if torque_bar is None else torque_bar.reshape(-1, *self.q.shape)
        for terms in self.columns.terms:
            _, *slopes = self._term_factors(terms.symbol)
            bar = np.zeros_like(self._drive_velocities)
            if rows is not None:
                # The second set of torques lacks friction, and does not depend on it.
                pushed = rows[0] if terms.is_friction else rows.sum(axis=0)
                bar[terms.owners] = terms.values * (coupling[terms.owners] @ pushed)
            along = coupling[terms.members].T
            bar[terms.members] += (along * regressor_bar[:, :, terms.places]).sum(axis=1).T
            for part, slope in zip(out, slopes, strict=True):
                if slope is not None:
                    part += coupling.T @ (bar * slope)

    @cached_property
    def _drive_velocities(self) -> Array:
        """c.dq of every drive, shape (drives, N)."""
        return np.asarray(self.columns.coupling @ self.dq)

    def _term_factors(self, symbol: str) -> tuple[Array, Array | None, Array | None, Array | None]:
        """Factor of a coefficient of every drive (drives, N), and its derivatives by c.q,
        c.dq and c.ddq, None where there are none.
        """
        factor = TERMS[symbol].factor(self._joint_state)
        if not isinstance(factor, DualNumber):
            return np.full_like(self._drive_velocities, factor), None, None, None
        return factor.value, *factor.slopes

    @cached_property
    def _joint_state(self) -> JointState:
        """The drives' state with derivatives."""
        velocity, columns, coupling = self._drive_velocities, self.columns, self.columns.coupling
        # The smoothed signs of the velocities, and their slopes.
        smooth = columns.widths > 0
        width = np.where(smooth, columns.widths, 1.0)
        tanh = np.tanh(velocity / width)
        peak, over = 1 - tanh**2, columns.overshoot
        sign = np.where(smooth, tanh * (1 + over * peak), np.sign(velocity))
        steep = np.where(smooth, peak * (1 + over * (peak - 2 * tanh**2)) / width, 0.0)
        one = np.ones_like(velocity)
        q = DualNumber(coupling @ self.q, (one, None, None))
        dq = DualNumber(self._drive_velocities, (None, one, None))
        ddq = DualNumber(coupling @ self.ddq, (None, None, one))
        s = DualNumber(sign, (None, steep, None))
        low, high = self.columns.ranges
        springs = deflections(q, self.columns.rests, low, high, DualNumber.clip)
        return JointState(q, *springs, self.columns.ripple, dq, ddq, s, None, np)


Slopes = tuple[Array | None, Array | None, Array | None]
"""Derivatives by c.q, c.dq and c.ddq; None for zero."""


@dataclass(frozen=True, eq=False)
class DualNumber:
    """A number with its derivatives, for the factors of joint terms.

    NumPy's functions call the methods of the same name: np.sqrt(dual) is dual.sqrt().
    """

    value: Array
    slopes: Slopes

    def _apply_chain_rule(self, value: Array, slope: Array) -> DualNumber:
        """A function of this number, by the function's value and derivative."""
        first, second, third = (None if s is None else slope * s for s in self.slopes)
        return DualNumber(value, (first, second, third))

    def __add__(self, other: DualNumber | Array | float) -> DualNumber:
        if not isinstance(other, DualNumber):
            return DualNumber(self.value + other, self.slopes)
        first, second, third = map(_sum_or_none, self.slopes, other.slopes)
        return DualNumber(self.value + other.value, (first, second, third))

    __radd__ = __add__

    def __neg__(self) -> DualNumber:
        return self * -1.0

    def __sub__(self, other: DualNumber | Array | float) -> DualNumber:
        return self + (-other)

    def __rsub__(self, other: float) -> DualNumber:
        return -self + other

    def __mul__(self, other: DualNumber | float) -> DualNumber:
        if not isinstance(other, DualNumber):
            return self._apply_chain_rule(self.value * other, np.asarray(other))
        first_part = self._apply_chain_rule(self.value * other.value, other.value)
        right = other._apply_chain_rule(first_part.value, self.value)
        first, second, third = map(_sum_or_none, first_part.slopes, right.slopes)
        return DualNumber(first_part.value, (first, second, third))

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> DualNumber:
        return self._apply_chain_rule(self.value / other, np.asarray(1.0 / other))

    def __abs__(self) -> DualNumber:
        return self._apply_chain_rule(np.abs(self.value), np.sign(self.value))

    def clip(self, low: Array, high: Array, out: None = None) -> DualNumber:
        """Within these bounds."""
        inside = (low <= self.value) & (self.value <= high)
        return self._apply_chain_rule(np.clip(self.value, low, high), inside.astype(np.float64))

    def sqrt(self) -> DualNumber:
        """The square root."""
        root = np.sqrt(self.value)
        return self._apply_chain_rule(root, 1 / (2 * np.maximum(root, TINY)))

    def exp(self) -> DualNumber:
        """The exponential."""
        value = np.exp(self.value)
        return self._apply_chain_rule(value, value)

    def sin(self) -> DualNumber:
        """The sine."""
        return self._apply_chain_rule(np.sin(self.value), np.cos(self.value))

    def cos(self) -> DualNumber:
        """The cosine."""
        return self._apply_chain_rule(np.cos(self.value), -np.sin(self.value))


def _sum_or_none(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b
