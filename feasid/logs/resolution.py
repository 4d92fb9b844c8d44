"""The resolution of logged positions: its size, and signals that it cannot tell from the logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.logs.raw import Signals

MOST_ROWS = 20_000
"""Rows that are searched for the smallest step, evenly spread."""

ORDERS = {"q": 2, "dq": 1, "ddq": 0}
"""Derivatives that lie between a logged signal and the acceleration."""


def signal_resolution(raw: Signals) -> dict[str, Array]:
    """Smallest step of every signal of the motion, by kind, shape (dof,) each, in its unit [SI]."""
    every = -(-max(len(raw.t), 1) // MOST_ROWS)
    out = {}
    for kind in ORDERS:
        if kind in raw.values:
            levels = [np.unique(x[np.isfinite(x)]) for x in raw.values[kind][::every].T]
            out[kind] = np.array([np.diff(x).min() if len(x) > 1 else 0.0 for x in levels])
    return out


def acceleration_noise(steps: Mapping[str, Array], rate: float, cutoff: float) -> Array:
    """Deviation of accelerations by rounding alone, below a cut-off, shape (dof,).

    Rounding to steps h is white noise of variance h^2 / 12 where a signal crosses many of them; its
    n-th derivative has below f the variance ``h^2 / 12 (2 pi)^2n 2 f^(2n + 1) / ((2n + 1) rate)``.

    Parameters
    ----------
    steps : mapping of str to ndarray, shape (dof,)
        As of `signal_resolution`.
    rate, cutoff : float
        [Hz]
    """
    kind = max(steps, key=lambda k: -ORDERS[k])
    n = ORDERS[kind]
    gain = (2 * np.pi) ** (2 * n) * 2 * cutoff ** (2 * n + 1) / ((2 * n + 1) * rate)
    return np.asarray(steps[kind] * np.sqrt(gain / 12.0))


def blur_signals(raw: Signals, steps: Mapping[str, Array], seed: int) -> Signals:
    """The signals with every sample of the motion moved at random within half a step."""
    rng = np.random.default_rng(seed)
    moved = {k: raw.values[k] + h * rng.uniform(-0.5, 0.5, raw.values[k].shape)
             for k, h in steps.items()}  # fmt: skip
    return replace(raw, values={**raw.values, **moved})
