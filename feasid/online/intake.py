"""Samples gathered into blocks: short gaps bridged, shapes checked, time stamps kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError

BRIDGED = 5
"""Missing samples over which a straight line is drawn: at 1 kHz it is off by less than an encoder's
step; longer gaps begin a new run."""

Sample = npt.ArrayLike


class Intake:
    """Takes one sample at a time and hands over full blocks.

    Parameters
    ----------
    dof : int
    rate : float
        [Hz]
    block : int
        Samples per block.
    deliver : callable
        Called without arguments when `q`, `tau`, `dq` and `t` are full, shape (block, dof) and
        (block,); `has_speed` says whether `dq` was measured.

    Attributes
    ----------
    received, bridged : int
        Samples that came, and those that were put into gaps.
    """

    def __init__(self, dof: int, rate: float, block: int, deliver: Callable[[], None]) -> None:
        self.q, self.tau, self.dq = (np.zeros((block, dof)) for _ in range(3))
        self.t = np.full(block, np.nan)
        self.has_speed: bool | None = None
        self.received = self.bridged = 0
        self._rate, self._block, self._deliver = rate, block, deliver
        self._fill = 0
        self._stamp = np.nan

    @property
    def newest(self) -> Array:
        """Position of the newest sample, shape (dof,); zero before the first."""
        return np.asarray(self.q[self._fill - 1])

    def put(self, q: Sample, tau: Sample, dq: Sample | None, t: float | None) -> None:
        """Take a sample."""
        if self.has_speed is not (dq is not None):
            if self.has_speed is not None:
                raise InputError("velocities must be given with every sample or with none")
            self.has_speed = dq is not None
        if t is not None:
            missing = (t - self._stamp) * self._rate - 1.0
            if 0.5 < missing < BRIDGED + 0.5:
                self._bridge(q, tau, dq, t, round(missing))
            self._stamp = t
        self._write(q, tau, dq, np.nan if t is None else t)
        self.received += 1

    def _bridge(self, q: Sample, tau: Sample, dq: Sample | None, t: float, missing: int) -> None:
        pairs = [(self.q[self._fill - 1].copy(), q), (self.tau[self._fill - 1].copy(), tau)]
        if dq is not None:
            pairs.append((self.dq[self._fill - 1].copy(), dq))
        try:
            ends = [(a, np.asarray(b, dtype=np.float64) - a) for a, b in pairs]
        except (ValueError, TypeError):
            return  # `_write` says what is wrong with the sample
        start = self._stamp
        for k in range(1, missing + 1):
            share = k / (missing + 1)
            mixed = [a + share * way for a, way in ends]
            speed = mixed[2] if dq is not None else None
            self._write(mixed[0], mixed[1], speed, start + share * (t - start))
        self.bridged += missing

    def _write(self, q: Sample, tau: Sample, dq: Sample | None, t: float) -> None:
        k = self._fill
        try:
            self.q[k] = q
            self.tau[k] = tau
            if dq is not None:
                self.dq[k] = dq
        except (ValueError, TypeError) as error:
            raise InputError(
                f"a sample needs {self.q.shape[1]} numbers of each kind: {error}"
            ) from error
        self.t[k] = t
        self._fill = k + 1
        if self._fill == self._block:
            self._fill = 0
            self._deliver()
