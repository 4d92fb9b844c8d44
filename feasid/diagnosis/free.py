"""What each joint's own base parameters can explain: a sharper model, which anything can bend.

It believes nothing of the description but its geometry. That tells a delay of a few milliseconds,
and a torque that has nothing to do with the motion; it does not tell wrong signs.
"""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.screen import ScreenSamples
from feasid.dynamics.regressor import regressor
from feasid.identifiability.base import base_parameters
from feasid.robot.description import Robot

RANK = 1e-6
"""Singular values of a row of the regressor below this share of the largest count as zero."""

NEGLIGIBLE = 1e-9
"""Columns below this share of the largest are rounding."""

FOLDS = 4
"""Stretches of the log, each predicted from the others."""

RIDGE = 1e-3
"""Pull of the scaled coefficients to zero in held-out predictions, where folds see too little."""


class Free:
    """Base parameters and joint terms of every joint by itself, on thinned samples.

    Parameters
    ----------
    robot : Robot
        With the joint terms that torques are explained by.
    samples : ScreenSamples
    """

    def __init__(self, robot: Robot, samples: ScreenSamples) -> None:
        self.robot, self.samples = robot, samples
        columns = [int(c) for c in base_parameters(robot).independent]
        rows = regressor(robot, samples.q, samples.dq, samples.ddq, columns=columns)
        self.columns = [_scaled(rows[:, j]) for j in range(robot.dof)]
        self.bases = [_basis(c) for c in self.columns]

    def delayed(self) -> Array:
        """Relative residual of every joint for every lag of its torque, shape (dof, lags)."""
        out = []
        for j, basis in enumerate(self.bases):
            tau = self.samples.tau[:, :, j].T
            size = np.einsum("ij,ij->j", tau, tau)
            seen = basis.T @ tau
            rest = np.maximum(size - np.einsum("ij,ij->j", seen, seen), 0.0)
            out.append(np.sqrt(rest / np.where(size > 0, size, 1.0)))
        return np.array(out)

    def held_out(self) -> Array:
        """Relative error of every joint's torque, each stretch predicted from the others."""
        torque = self.samples.torque.T
        return np.array([held_out(c, tau) for c, tau in zip(self.columns, torque, strict=True)])


def held_out(columns: Array, torque: Array) -> float:
    """Relative error of a torque, each stretch predicted from the others."""
    whole, right = columns.T @ columns, columns.T @ torque
    pull = RIDGE * np.eye(len(whole)) * max(float(np.trace(whole)) / len(whole), 1e-300)
    rest = 0.0
    for fold in np.array_split(np.arange(len(torque)), FOLDS):
        part = columns[fold]
        found = np.linalg.solve(whole - part.T @ part + pull, right - part.T @ torque[fold])
        rest += float(np.sum((torque[fold] - part @ found) ** 2))
    return float(np.sqrt(rest)) / max(float(np.linalg.norm(torque)), 1e-300)


def _scaled(columns: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    seen = size > NEGLIGIBLE * max(float(size.max(initial=0.0)), 1e-300)
    return np.asarray(columns[:, seen] / size[seen])


def _basis(columns: Array) -> Array:
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, singular > RANK * singular.max(initial=0.0)])
