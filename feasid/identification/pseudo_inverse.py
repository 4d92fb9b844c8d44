"""Plain least squares on unfiltered samples, with and without an initial guess.

The offline identification of the Valkyrie paper (simultaneous identification and control of a
humanoid by spatial vector algebra), eq. (29)-(36): for reproducing it. `feasid.fit` is what logs
deserve; nothing here knows which parameters can exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.dynamics.regressor import regressor
from feasid.errors import InputError
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

PROBLEMS = ("weighted", "stacked")

SEEN = 1e-10
"""Singular values below this share of the largest are directions that no sample shows."""


@dataclass(frozen=True, eq=False)
class PseudoInverseFit:
    """Parameters and how well they explain the torques that they were fitted to.

    Attributes
    ----------
    robot : Robot
    theta : ndarray, shape (n,)
        Standard parameters; without a guess the shortest of all that fit alike.
    rank : int
        Directions that the samples show.
    tau, predicted : ndarray, shape (samples, dof)
        Measured torques and eq. (31).
    samples : ndarray of int
        Which samples were used.
    """

    robot: Robot
    theta: Array
    rank: int
    tau: Array
    predicted: Array
    samples: npt.NDArray[np.intp]

    @property
    def r2(self) -> pd.Series[float]:
        """Coefficient of determination per joint and "all", eq. (32): against zero."""
        import pandas as pd

        values = [*r_squared(self.tau, self.predicted), r_squared(*self._as_single_column)[0]]
        index = pd.Index([*self.robot.coordinates, "all"], name="joint")
        return pd.Series(values, index=index, name="R2")

    @property
    def _as_single_column(self) -> tuple[Array, Array]:
        return self.tau.reshape(-1, 1), self.predicted.reshape(-1, 1)


def r_squared(tau: npt.ArrayLike, predicted: npt.ArrayLike) -> Array:
    """``1 - e'e / u'u`` per column, eq. (32).

    It compares with zero torque, not with the mean: a model that is wrong by a tenth everywhere has
    0.99.
    """
    u = np.asarray(tau, dtype=np.float64)
    e = u - np.asarray(predicted, dtype=np.float64)
    return np.asarray(1.0 - (e * e).sum(axis=0) / (u * u).sum(axis=0))


def pseudo_inverse(
    robot: Robot,
    q: npt.ArrayLike,
    dq: npt.ArrayLike,
    ddq: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    guess: npt.ArrayLike | None = None,
    alpha: float = 0.5,
    problem: str = "weighted",
    samples: int | None = None,
) -> PseudoInverseFit:
    """Fit standard parameters by the pseudo-inverse of the stacked regressor.

    Parameters
    ----------
    robot : Robot
    q, dq, ddq, tau : array_like, shape (samples, dof)
        As measured and derived; nothing is filtered.
    guess : array_like, shape (n,), optional
        Initial guess Theta_0; without it eq. (30) solves (29).
    alpha : float
        Weight of the data against the guess, in (0, 1).
    problem : {"weighted", "stacked"}
        "weighted" minimises eq. (33), ``alpha |U - Y Theta|^2 + (1 - alpha) |Theta - Theta_0|^2``.
        "stacked" is eq. (34)-(35), whose rows carry alpha and 1 - alpha themselves and which
        therefore minimises ``alpha^2 |...|^2 + (1 - alpha)^2 |...|^2``: another problem unless
        alpha is 1/2. Eq. (33) with alpha is (34) with sqrt(alpha) and sqrt(1 - alpha).
    samples : int, optional
        Use only so many, chosen one after the other as the one that shows most that the others do
        not; see `select_samples`. For noise-free torques the prediction stays the same, eq. (36),
        once they have the rank of all.

    Returns
    -------
    PseudoInverseFit

    Raises
    ------
    InputError
        Names the argument that cannot be.
    """
    if problem not in PROBLEMS:
        raise InputError(f"problem must be one of {[*PROBLEMS]}, not {problem!r}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    Y = regressor(robot, q, dq, ddq)
    u = np.asarray(tau, dtype=np.float64)
    if u.shape != Y.shape[:2] or not np.isfinite(u).all():
        raise InputError(f"tau needs {Y.shape[:2]} finite numbers, has shape {u.shape}")
    chosen = np.arange(len(Y)) if samples is None else select_samples(Y, samples)
    A, b = Y[chosen].reshape(-1, robot.size), u[chosen].ravel()
    rank = int(np.linalg.matrix_rank(A, tol=SEEN * np.linalg.norm(A, 2)))
    if guess is not None:
        start = robot.check_parameters(guess)
        both = alpha, 1.0 - alpha
        first, second = both if problem == "stacked" else np.sqrt(both)
        A = np.vstack([first * A, second * np.eye(robot.size)])
        b = np.concatenate([first * b, second * start])
    theta = np.linalg.pinv(A, rcond=SEEN) @ b
    return PseudoInverseFit(robot, theta, rank, u, np.asarray(Y @ theta), chosen)


def select_samples(Y: npt.ArrayLike, count: int) -> npt.NDArray[np.intp]:
    """Samples that show most, in the order of their choice.

    Parameters
    ----------
    Y : array_like, shape (samples, dof, n)
    count : int

    Returns
    -------
    ndarray of int, shape (count,)
        Each is the one with the largest part of its rows, in units of the columns, that those
        before it do not span; when nothing is left, the first ones that remain.
    """
    rows = np.array(Y, dtype=np.float64)
    if not 1 <= count <= len(rows):
        raise InputError(f"samples must be between 1 and {len(rows)}, not {count!r}")
    size = np.sqrt((rows**2).sum(axis=(0, 1)))
    rows /= np.where(size > 0, size, 1.0)
    out: list[int] = []
    for _ in range(count):
        left = (rows**2).sum(axis=(1, 2))
        left[out] = -1.0
        best = int(np.argmax(left))
        out.append(best)
        _, singular, new = np.linalg.svd(rows[best], full_matrices=False)
        new = new[singular > SEEN]
        rows -= (rows @ new.T) @ new
    return np.array(out)
