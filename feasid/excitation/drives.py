"""Joint terms of a motion's regressor: friction, springs and drive inertias, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.excitation.links import Gradient, Places
from feasid.robot.description import Robot
from feasid.robot.parts import STRIBECK

OVERSHOOT = (np.sqrt(55.0) - 5.0) / 2
"""The c for which ``s = tanh u (1 + c / cosh^2 u)`` loses no square: the integral of 1 - s^2 over
all u, ``2 - 4 c / 3 - 4 c^2 / 15``, is zero. So a smoothed sign tells as much of friction as the
sign, up to the square of its width, where tanh alone tells less by the width."""

TINY = 1e-150
"""Where the root of a speed is divided by."""


@dataclass(frozen=True, eq=False)
class DriveTerms:
    """One symbol of all drives that have it.

    Attributes
    ----------
    symbol : str
    owners : ndarray of int
        The drives.
    values : ndarray, shape (owners, 1)
        The description's; zero where it does not say.
    wanted, places : ndarray of int
        Those drives whose column is wanted, and where it stands.
    """

    symbol: str
    owners: Places
    values: Array
    wanted: Places
    places: Places


@dataclass(frozen=True, eq=False)
class DriveColumns:
    """The drives' columns among those that are wanted.

    Attributes
    ----------
    coupling : ndarray, shape (drives, dof)
        Joint velocities to the drives'.
    widths : ndarray, shape (drives, 1)
        Over which velocity each drive's sign changes; 0 for the sign.
    overshoot : ndarray, shape (drives, 1)
        `OVERSHOOT` where a smoothed sign stands in for one that changes faster, else zero.
    rests : ndarray, shape (drives, 1)
        Where each drive's spring is slack.
    terms : tuple of DriveTerms
    """

    coupling: Array
    widths: Array
    overshoot: Array
    rests: Array
    terms: tuple[DriveTerms, ...]

    @classmethod
    def of(cls, robot: Robot, columns: Sequence[int], smoothing: Array | None) -> DriveColumns:
        """Of a robot's drives."""
        rows = [robot.coupling(k) for k in range(len(robot.drives))]
        own = np.array([drive.transition for drive in robot.drives])
        widths = own if smoothing is None else np.maximum(own, smoothing)
        return cls(
            np.array(rows).reshape(-1, robot.dof),
            widths[:, None],
            np.where(widths > own, OVERSHOOT, 0.0)[:, None],
            np.array([[drive.rest] for drive in robot.drives]),
            _terms(robot, columns),
        )

    def at(self, q: Array, dq: Array, ddq: Array) -> DriveSignals:
        """Of a motion, (dof, N) arrays."""
        return DriveSignals(self, q, dq, ddq)


def _terms(robot: Robot, columns: Sequence[int]) -> tuple[DriveTerms, ...]:
    place = {c: k for k, c in enumerate(columns)}
    known = np.nan_to_num(robot.values)
    owners: dict[str, list[tuple[int, int]]] = {}
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            owners.setdefault(symbol, []).append((k, column))
    return tuple(
        DriveTerms(
            symbol,
            np.array([k for k, _ in own]),
            known[[c for _, c in own]][:, None],
            np.array([k for k, c in own if c in place], dtype=np.intp),
            np.array([place[c] for _, c in own if c in place], dtype=np.intp),
        )
        for symbol, own in owners.items()
    )


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """What multiplies the drives' parameters in a motion (dof, N)."""

    columns: DriveColumns
    q: Array
    dq: Array
    ddq: Array

    def add(self, regressor: Array, torques: Array) -> None:
        """Columns along every drive's coupling (N, dof, columns), and torques (dof, N)."""
        coupling = self.columns.coupling
        for terms in self.columns.terms:
            signal, *_ = self._signals(terms.symbol)
            along = coupling[terms.wanted].T
            regressor[:, :, terms.places] = along * signal[terms.wanted].T[:, None]
            torques += coupling[terms.owners].T @ (terms.values * signal[terms.owners])

    def pull(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        """Add what derivatives by both mean for the motion."""
        coupling = self.columns.coupling
        for terms in self.columns.terms:
            _, *slopes = self._signals(terms.symbol)
            bar = np.zeros_like(self._velocities)
            if torque_bar is not None:
                bar[terms.owners] = terms.values * (coupling[terms.owners] @ torque_bar)
            along = coupling[terms.wanted].T
            bar[terms.wanted] += (along * regressor_bar[:, :, terms.places]).sum(axis=1).T
            for part, slope in zip(out.parts, slopes, strict=True):
                if slope is not None:
                    part += coupling.T @ (bar * slope)

    @cached_property
    def _velocities(self) -> Array:
        """c.dq of every drive, shape (drives, N)."""
        return np.asarray(self.columns.coupling @ self.dq)

    @cached_property
    def _signs(self) -> tuple[Array, Array]:
        """The smoothed signs of the drives' velocities, and their slopes."""
        velocity, columns = self._velocities, self.columns
        smooth = columns.widths > 0
        width = np.where(smooth, columns.widths, 1.0)
        tanh = np.tanh(velocity / width)
        peak, over = 1 - tanh**2, columns.overshoot
        sign = np.where(smooth, tanh * (1 + over * peak), np.sign(velocity))
        slope = peak * (1 + over * (peak - 2 * tanh**2)) / width
        return sign, np.where(smooth, slope, 0.0)

    def _signals(self, symbol: str) -> tuple[Array, Array | None, Array | None, Array | None]:
        """What multiplies a parameter of every drive (drives, N), and its derivatives by c.q, c.dq
        and c.ddq, None where there are none.
        """
        coupling, velocity = self.columns.coupling, self._velocities
        if symbol == "Ia":
            return coupling @ self.ddq, None, None, np.ones_like(velocity)
        if symbol == "fv":
            return velocity, None, np.ones_like(velocity), None
        if symbol == "fo":
            return np.ones_like(velocity), None, None, None
        sign, steep = self._signs
        if symbol == "fc":
            return sign, None, steep, None
        if symbol == "fs":
            root = np.sqrt(np.abs(velocity))
            flat = np.abs(sign) / (2 * np.maximum(root, TINY))
            return sign * root, None, steep * root + flat, None
        if symbol == "fd":
            return np.abs(velocity), None, np.sign(velocity), None
        if symbol == "fb":
            fading = np.exp(-((velocity / STRIBECK) ** 2))
            slope = fading * (steep - 2 * velocity / STRIBECK**2 * sign)
            return sign * fading, None, slope, None
        return *_of_place(symbol, coupling @ self.q, self.columns.rests), None, None


def _of_place(symbol: str, place: Array, rests: Array) -> tuple[Array, Array]:
    """Signals of springs and compensators, and their derivatives by the place."""
    x, one = place - rests, np.ones_like(place)
    sin, cos = np.sin(place), np.cos(place)
    return {
        "k": (x, one),
        "k2": (x**2, 2 * x),
        "k3": (x**3, 3 * x**2),
        "gs": (sin, cos),
        "gc": (cos, -sin),
    }[symbol]
