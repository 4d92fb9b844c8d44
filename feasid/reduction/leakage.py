"""Whether a test log is a test at all: the same rows, or the same motion, prove little."""

from __future__ import annotations

import numpy as np

from feasid.arrays import Array
from feasid.reduction.triangle import Reduced

SAME_ROWS = 1e-9
"""Relative difference of all second moments below which two logs are one."""

SAME_MOTION = 0.1
"""Relative difference of the regressors' second moments that two runs of one motion leave."""

ROUNDING = 1e-20
"""Second moment below which, beside the largest, a column is rounding."""


def leakage(fitted: Reduced, test: Reduced) -> str | None:
    """Say so when a test log holds the fitted rows or repeats the fitted motion.

    Parameters
    ----------
    fitted, test : Reduced
        Of one robot and the same base parameters.

    Returns
    -------
    str or None
        A sentence for the reader of the errors.
    """
    if fitted.fingerprint != test.fingerprint:
        return None
    whole = max(_distance(a, b) for a, b in zip(fitted.triangles, test.triangles, strict=True))
    if whole < SAME_ROWS:
        return "the test log is the fitted log: its errors say nothing about other motions"
    motion = max(
        _distance(a[:, :-1], b[:, :-1])
        for a, b in zip(fitted.triangles, test.triangles, strict=True)
        if a.shape[1] > 1
    )
    if motion < SAME_MOTION:
        return (
            "the test log repeats the fitted motion: its errors show that the fit repeats, not "
            "that it extrapolates"
        )
    return None


def _distance(a: Array, b: Array) -> float:
    """Relative difference of mean second moments a'a / n and b'b / n."""
    left, right = a.T @ a, b.T @ b
    power = np.diag(left)
    power = np.where(power > ROUNDING * power.max(), power, np.inf)  # columns that are nothing
    scale = np.sqrt(np.outer(power, power))
    ratio = np.trace(left / scale) / max(float(np.trace(right / scale)), 1e-300)
    return float(np.abs((left - ratio * right) / scale).max())
