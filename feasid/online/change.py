"""Sudden changes of the robot, a load picked up or put down, by errors of prediction.

Every block of rows is predicted before it is learnt. The logarithm of its whitened error against
what has been usual is summed as long as the sum is positive (Page 1954, Continuous inspection
schemes, Biometrika 41): a change by a factor shows at once, an ordinary scatter never.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.arrays import Array

USUAL_SCATTER = np.log(1.5)
"""Drift of the sum: errors of blocks that are this much larger than usual count as ordinary."""

LEARNING = 0.1
"""Share of a block in what is usual."""


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
        Blocks before anything is usual.
    """

    def __init__(self, joints: tuple[str, ...], threshold: float, settle: int) -> None:
        self.joints, self.threshold, self.settle = joints, threshold, settle
        self.reset()

    def reset(self) -> None:
        """Begin to learn what is usual."""
        self.level = 0.0
        self._usual: Array | None = None
        self._seen = 0

    def see(self, errors: Array, time: float) -> ModelChange | None:
        """Take the whitened errors of a block, shape (dof,); a change when there is one.

        What is usual is learnt from blocks that raise no suspicion.
        """
        squares = np.maximum(np.asarray(errors, dtype=np.float64) ** 2, 1e-12)
        self._seen += 1
        if self._usual is None or self._seen <= self.settle:
            last = squares if self._usual is None else self._usual
            self._usual = last + (squares - last) / min(self._seen, 1 / LEARNING)
            return None
        ratio = 0.5 * float(np.log(squares.mean() / self._usual.mean()))
        self.level = max(0.0, self.level + ratio - USUAL_SCATTER)
        if self.level > self.threshold:
            grown = squares / self._usual
            worst = np.flatnonzero(grown > 0.25 * grown.max())
            names = tuple(self.joints[k] for k in worst[np.argsort(-grown[worst])][:3])
            return ModelChange(time, float(np.exp(ratio)), names)
        if self.level == 0.0:
            self._usual = self._usual + LEARNING * (squares - self._usual)
        return None
