"""Offline identification of the Valkyrie paper, eq. (29)-(36): least squares by pseudo-inverse.

    pip install feasid                       # nothing else is needed
    python examples/pseudo_inverse.py

For reproducing the paper: samples are not filtered, and nothing keeps the parameters physically
consistent. `feasid.fit` is meant for logs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

import feasid

SMALLEST = 1e-10
"""Singular values below this share of the largest are directions that no sample determines."""


@dataclass(frozen=True, eq=False)
class PseudoInverseFit:
    """Standard parameters (n,), their rank, torques (samples, dof) and the samples used."""

    robot: feasid.Robot
    theta: np.ndarray
    rank: int
    tau: np.ndarray
    predicted: np.ndarray
    samples: np.ndarray

    @property
    def r2(self) -> pd.Series:
        """Coefficient of determination, eq. (32), per joint and "all"."""
        joints = r_squared(self.tau, self.predicted)
        values = [*joints, r_squared(self.tau.ravel(), self.predicted.ravel())]
        return pd.Series(values, index=[*self.robot.coordinates, "all"], name="R2")


def r_squared(tau: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """``1 - e'e / u'u`` per column, eq. (32): compared with zero torque, not with the mean."""
    return 1.0 - ((tau - predicted) ** 2).sum(axis=0) / (tau**2).sum(axis=0)


def pseudo_inverse(robot, q, dq, ddq, tau, *, guess=None, alpha=0.5, stacked=False, samples=None):
    """Fit standard parameters to torques (samples, dof) by the pseudo-inverse of the regressor.

    With a `guess` Theta_0 eq. (33) is minimised, ``alpha |U - Y Theta|^2 + (1 - alpha) |Theta -
    Theta_0|^2``. `stacked` is eq. (34)-(35), whose rows carry alpha and 1 - alpha themselves: the
    squares of both weigh the two terms, which is another problem unless alpha is 1/2. `samples` is
    the number of samples to use, chosen by `select_samples`; eq. (36) for noise-free torques.
    """
    Y = feasid.regressor(robot, q, dq, ddq)
    chosen = np.arange(len(Y)) if samples is None else select_samples(Y, samples)
    A, b = Y[chosen].reshape(-1, robot.size), tau[chosen].ravel()
    rank = int(np.linalg.matrix_rank(A, tol=SMALLEST * np.linalg.norm(A, 2)))
    if guess is not None:
        data, prior = (alpha, 1 - alpha) if stacked else np.sqrt([alpha, 1 - alpha])
        A = np.vstack([data * A, prior * np.eye(robot.size)])
        b = np.concatenate([data * b, prior * np.asarray(guess)])
    theta = np.linalg.pinv(A, rcond=SMALLEST) @ b
    return PseudoInverseFit(robot, theta, rank, tau, Y @ theta, chosen)


def select_samples(Y: np.ndarray, count: int) -> np.ndarray:
    """Samples in the order of what their rows (dof, n) add to the span of those before them."""
    rows = Y / np.maximum(np.sqrt((Y**2).sum(axis=(0, 1))), np.finfo(float).tiny)
    out: list[int] = []
    for _ in range(count):
        remaining = (rows**2).sum(axis=(1, 2))
        remaining[out] = -1.0
        out.append(int(np.argmax(remaining)))
        _, singular, directions = np.linalg.svd(rows[out[-1]], full_matrices=False)
        directions = directions[singular > SMALLEST]
        rows = rows - (rows @ directions.T) @ directions
    return np.array(out)


def main() -> None:
    """A simulated arm: as many samples as its rank needs, and what R2 does not show."""
    robot = feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.2, 0), (0, 0.5, 0, 0), (0, 0.4, 0, 0)])
    rng = np.random.default_rng(0)
    theta, motion = rng.uniform(0.2, 1.0, robot.size), rng.uniform(-2, 2, (3, 80, 3))
    tau = feasid.inverse_dynamics(robot, *motion, parameters=theta)
    fit = pseudo_inverse(robot, *motion, tau)
    few = pseudo_inverse(robot, *motion, tau, samples=fit.rank)
    print(f"{fit.rank} of {robot.size} parameters are determined; R2 {fit.r2['all']:.6f}")
    print(f"from {len(few.samples)} of {len(tau)} samples: rank {few.rank}, R2 {few.r2['all']:.6f}")
    print(f"R2 of a model that is wrong by 8.5 %: {r_squared(tau, 1.085 * tau).min():.4f}")


if __name__ == "__main__":
    main()
