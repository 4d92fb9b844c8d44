"""What the resolution of logged positions makes of the parameters.

Rounded positions make noise of accelerations, dW of the regressor W, which biases least squares
towards smaller inertias: by ``-P dW' S^-1 dW beta`` to first order, P the covariance of the base
parameters and S that of the rows (Fuller 1987, section 2.5, with noise of known variance). Here
dW is the difference that samples make which are moved at random within the resolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.diagnosis.log_rows import LogRows
from feasid.identification.trial import CorrectedLog
from feasid.logs.motion import Run

BIASED = 1.0
"""Deviations of a base parameter from which a bias makes a fit doubtful: encoders of 12 bits at
1 kHz make 1.4 to 1.5 on arms in simulation, of 14 bits a sixteenth."""


@dataclass(frozen=True, eq=False)
class ResolutionBias:
    """The bias by a log's resolution.

    Attributes
    ----------
    spread : ndarray, shape (n,)
        Of the standard parameters.
    deviations : float
        The largest of a base parameter, in deviations of its own.
    """

    spread: Array
    deviations: float

    @property
    def notes(self) -> list[Note]:
        """What is said where the bias counts."""
        if self.deviations <= BIASED:
            return []
        text = (
            "positions are logged in steps so coarse that their derivatives bias base parameters "
            f"by up to {self.deviations:.2g} deviations, which deviations and foretold errors "
            "count: log positions with more digits, or measured velocities"
        )
        return [Note(text, "coarse", deviations=self.deviations, confirmed=True)]


def resolution_bias(trial: CorrectedLog) -> ResolutionBias | None:
    """The bias of a fit by the resolution of its logs; None where it is fine."""
    setup, robot = trial.setup, trial.base.robot
    if not setup.blurred:
        return None
    runs: list[Run] = [trial.correction.correct_run(run) for run in setup.blurred]
    known = trial.rows
    rows = LogRows(robot, known.base_columns, known.cutoff, runs, known.joints)
    change = (rows.regressor - known.regressor) / trial.row_deviations[:, None]
    missed = change @ trial.beta
    K = np.asarray(trial.base.K, dtype=np.float64)
    spread = -trial.followed @ (K.T @ (change.T @ missed))
    bias, deviation = K @ spread, np.sqrt(np.diag(K @ trial.followed @ K.T))
    return ResolutionBias(spread, float(np.max(np.abs(bias) / np.maximum(deviation, 1e-300))))
