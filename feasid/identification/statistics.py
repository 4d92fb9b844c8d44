"""Standard deviations of base parameters from the triangle of a fit."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array

RANK_TOLERANCE = 1e-10
"""Singular values of the column-scaled triangle below this share of the largest are zero: the
data say nothing about the directions they belong to."""


def standard_deviations(triangle: Array, residual: float, rows: int) -> Array:
    """Standard deviations of least-squares estimates.

    Parameters
    ----------
    triangle : ndarray, shape (nb, nb)
        R with R'R = W'W.
    residual : float
        Norm of the residual of the estimate, |omega - W beta|.
    rows : int
        Rows of W.

    Returns
    -------
    ndarray, shape (nb,)
        ``sqrt(diag(s^2 (W'W)^-1))`` with ``s^2 = |omega - W beta|^2 / (rows - nb)``, eq. (81) and
        (82) of Sousa and Cortesao (2014). Infinite for a parameter that the data do not fix. The
        formula assumes independent errors; filtered logs have fewer independent samples than
        rows, so these are lower bounds.
    """
    size = len(triangle)
    if rows <= size:
        return np.full(size, np.inf)
    norms = np.linalg.norm(triangle, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    _, singular, right = np.linalg.svd(triangle / scale)
    seen = singular > RANK_TOLERANCE * max(singular[0], 1e-300)
    variance = ((right[seen] / singular[seen, None]) ** 2).sum(axis=0)
    # A parameter is fixed when its axis has no part in the unseen directions.
    blind = (right[~seen] ** 2).sum(axis=0) > RANK_TOLERANCE
    deviation = residual / np.sqrt(rows - size) * np.sqrt(variance) / scale
    return np.where(blind, np.inf, deviation)


def condition_number(triangle: Array) -> float:
    """Condition number of W, from its triangle; infinite when columns are dependent."""
    singular = np.linalg.svd(triangle, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")
