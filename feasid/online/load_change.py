"""Sudden changes of the robot, a load picked up or put down, by errors of prediction.

Every block of rows is predicted before it is learnt. The logarithm of its whitened error against
what has been usual is summed as long as the sum is positive (Page 1954, Continuous inspection
schemes, Biometrika 41): a change by a factor shows at once, an ordinary scatter never.

After a change, everything stays known that a load cannot have changed (`LoadInvariantEquations`).
A load delta_L fixed to a body changes the base parameters by K_L delta_L, K_L the body's columns
of K (Khalil, Gautier and Lemoine 2007). The equations before the change, R beta = rho, say of the
parameters beta' = beta + K_L delta_L after it

    min over delta_L of |R beta' - R K_L delta_L - rho|^2,

which is a triangle again: that of [R K_L | R | rho] below its first ten rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.identifiability.base import BaseParameters

LOG_USUAL_SCATTER = np.log(1.5)
"""Drift of the sum: errors of blocks that are this much larger than usual count as ordinary."""

MIN_CHANGED_BLOCKS = 2.5
"""Blocks that a change takes at least, less a half: one bad block, a joint that sticks, is none."""

LEARNING, RELIEF = 0.1, 0.3
"""Share of a block in what is usual, when its error is larger and when it is smaller: errors that
fall while a model is learnt shall not hide a change."""


@dataclass(frozen=True)
class ModelChange:
    """A sudden change.

    Attributes
    ----------
    time : float
        When it was noticed, by the samples' clock [s].
    size : float
        Error of the last block over the usual one.
    joints : tuple of str
        Those whose error grew most.
    """

    time: float
    size: float
    joints: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(self.joints)
        return f"{self.time:.2f} s: errors are {self.size:.1f} times the usual ones, at {where}"


class ChangeDetector:
    """One per robot.

    Parameters
    ----------
    joints : tuple of str
    threshold : float
        Of the sum of logarithms: log 20 is three blocks of four times the usual error.
    settle : int
        Blocks before anything is usual; a quarter of them after a change.
    """

    def __init__(self, joints: tuple[str, ...], threshold: float, settle: int) -> None:
        self.joints, self.threshold, self.settle = joints, threshold, settle
        self.reset()
        self._left = settle

    def reset(self) -> None:
        """Begin to learn what is usual."""
        self.level = 0.0
        self._usual: Array | None = None
        self._left = self.settle // 4

    def update(self, errors: Array, time: float) -> ModelChange | None:
        """Take the whitened errors of a block, shape (dof,); a change when there is one.

        What is usual is learnt, as logarithms of squares, from blocks that raise no suspicion;
        errors within the noise count as noise.
        """
        squares = np.log(np.maximum(np.asarray(errors, dtype=np.float64), 1.0)) * 2
        self._left -= 1
        if self._usual is None:
            self._usual = squares
        grown = squares - self._usual
        ratio = 0.5 * float(np.log(np.mean(np.exp(grown))))
        self.level = max(
            0.0, self.level + min(ratio - LOG_USUAL_SCATTER, self.threshold / MIN_CHANGED_BLOCKS)
        )
        if self._left >= 0 or self.level == 0.0:
            self.level = 0.0
            self._usual = self._usual + np.where(grown > 0, LEARNING, RELIEF) * grown
        if self.level <= self.threshold:
            return None
        worst = [k for k in np.argsort(-grown)[:3] if grown[k] > grown.max() - np.log(4.0)]
        return ModelChange(time, float(np.exp(ratio)), tuple(self.joints[k] for k in worst))


class LoadInvariantEquations:
    """Equations from before the last change; they fade over a window.

    Parameters
    ----------
    base : BaseParameters
    carrier : str or None
        Body that a load is fixed to; default the last.
    fading : int
        Samples after which their squares have fallen to 1/e.
    """

    def __init__(self, base: BaseParameters, carrier: str | None, fading: int) -> None:
        robot = base.robot
        names = [b.name for b in robot.bodies]
        if carrier is not None and carrier not in names:
            raise InputError(
                f"robot {robot.name!r} has no body {carrier!r}{did_you_mean(carrier, names)}"
            )
        body = len(names) - 1 if carrier is None else names.index(carrier)
        self._load = np.asarray(base.K)[:, robot.inertial_columns[body]]
        self.fading = fading
        self._rows: tuple[Array, Array] | None = None
        self._left = 1.0

    def set_from(self, R: Array, rho: Array) -> None:
        """Take over whitened equations, without what a load may have changed."""
        wide = np.column_stack([R @ self._load, R, rho])
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        kept = triangle[self._load.shape[1] :]
        self._rows = kept[:, self._load.shape[1] : -1], kept[:, -1]
        self._left = 1.0

    def fade(self, samples: int) -> None:
        """Lower the weight of the rows before the change by ``exp(-samples / fading)``."""
        if self._rows is not None:
            self._left *= float(np.exp(-samples / self.fading))

    def combined_with(self, R: Array, rho: Array) -> tuple[Array, Array]:
        """Equations with those from before the change, R and rho of their triangle."""
        if self._rows is None:
            return R, rho
        factor = np.sqrt(self._left)
        wide = np.vstack(
            [np.column_stack([R, rho]), factor * np.column_stack([self._rows[0], self._rows[1]])]
        )
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        size = R.shape[1]
        return triangle[:size, :size], triangle[:size, size]
