"""The judge: prediction errors on a motion that nobody has fitted, over those of the truth.

Participants get positions, speeds and accelerations that the judge has derived from the encoders,
and return torques. Predicted and measured torques go through one and the same filter, the
judge's: what a participant filters, drops or weights cannot change what it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfiltfilt

import feasid

from .description import Array
from .simulation import RATE
from .world import TORQUE_NOISE, World

MOTION_CUTOFF, TORQUE_CUTOFF = 30.0, 5.0
"""Cut-off frequencies [Hz] of the judge's zero-phase Butterworth filters of third order."""
MARGIN = RATE
"""Rows left out at both ends, where filters have not settled: one second."""
THINNED = 50
"""One filtered row in so many is compared: 20 per second, twice the torque's bandwidth and more."""
MIN_RATIO = 0.7
"""Errors below this share of the truth's need knowledge of the measured torques.

What the truth misses is noise of the test log, which no model can predict, and MuJoCo's
friction near standstill; a fit was never seen below 0.9 of it.
"""
COVERAGE_DEVIATIONS = 1.96

Predictor = Callable[[Array, Array, Array, Array], Array]
"""From times (N,) and q, dq, ddq (N, joints) to torques (N, joints)."""


@dataclass(frozen=True)
class Score:
    """Errors on the test log over the measured torque's norm, both filtered by the judge.

    `distance` is that between the prediction and the truth's.
    """

    error: float
    truth_error: float
    distance: float

    @property
    def ratio(self) -> float:
        """Error over the truth's error."""
        return self.error / self.truth_error

    @property
    def credible(self) -> bool:
        """Whether a prediction that has not seen the measured torques can be this good."""
        return bool(np.isfinite(self.error)) and self.ratio >= MIN_RATIO

    def passes(self, limit: float) -> bool:
        """Whether the error is credible and at most `limit` times the truth's."""
        return self.credible and self.ratio <= limit


def judge(world: World, predict: Predictor) -> Score:
    """Score of a participant's predictions of the world's test log."""
    return score(world, predict(*given_motion(world)))


def given_motion(world: World) -> tuple[Array, Array, Array, Array]:
    """Times (N,) and q, dq, ddq (N, joints) of the test log, by which torques are predicted."""
    t = world.test_log["t"].to_numpy().copy()
    return t, *differentiated(_columns(world, "q"), RATE)


def score(world: World, predicted: Array) -> Score:
    """Score of predicted torques (N, joints) of the world's test log."""
    measured, predicted = _columns(world, "tau"), np.asarray(predicted, float)
    if predicted.shape != measured.shape:
        raise ValueError(f"predicted torques of shape {predicted.shape}, not {measured.shape}")
    t, q, dq, ddq = given_motion(world)
    physics, start = world.truth.physics, world.truth.test_motion.t[0]
    best = physics.torque(start + t, q - world.truth.joint_zeros, dq, ddq)
    kept = slice(MARGIN, -MARGIN, THINNED)
    torque, best, predicted = (
        low_pass(x, TORQUE_CUTOFF)[kept] for x in (measured, best, predicted)
    )
    size = np.linalg.norm(torque)
    return Score(
        error=float(np.linalg.norm(predicted - torque) / size),
        truth_error=float(np.linalg.norm(best - torque) / size),
        distance=float(np.linalg.norm(predicted - best) / size),
    )


def predictor(robot: feasid.Robot) -> Predictor:
    """Predictions of an identified robot."""
    return lambda t, q, dq, ddq: feasid.inverse_dynamics(robot, q, dq, ddq)


def coverage(world: World, fit: feasid.Fit) -> float:
    """Share of base parameters whose true value is inside their 95 % intervals."""
    off = fit.beta - world.truth.base_parameters(fit.base)
    deviations = fit.base_table["std"].to_numpy()
    return float(np.mean(np.abs(off) < COVERAGE_DEVIATIONS * deviations))


def information(world: World) -> Array:
    """Fisher information of the true robot's parameters from the log to fit, noise known.

    The log's torques are independent with the deviation `TORQUE_NOISE` of their RMS. The inverse
    on the identifiable part is the Cramer-Rao bound of the covariance.
    """
    truth, motion = world.truth, world.truth.motion
    rows = np.searchsorted(motion.t, world.log["t"].to_numpy() - 0.5 / RATE)[::THINNED]
    ddq = np.gradient(motion.dq, 1 / RATE, axis=0)[rows]
    columns = feasid.regressor(
        truth.robot.with_transition(0.0), motion.q[rows], motion.dq[rows], ddq
    )
    deviation = TORQUE_NOISE * np.sqrt(np.mean(motion.torque**2, axis=0))
    W = (columns.reshape(len(rows), len(deviation), -1) / deviation[:, None]).reshape(
        -1, columns.shape[-1]
    )
    return np.asarray(len(world.log) / len(rows) * W.T @ W)


def efficiency(world: World, off: Array) -> float:
    """Error of the true robot's parameters over the Cramer-Rao bound, 1 where it is reached.

    ``sqrt(e' F e / n)`` with the errors ``off`` (parameters,), the Fisher information F and the
    number n of identifiable parameters: its mean square is 1 for an efficient estimator.
    """
    n = len(feasid.base_parameters(world.truth.robot).K)
    return float(np.sqrt(off @ information(world) @ off / n))


def differentiated(q: Array, rate: float) -> tuple[Array, Array, Array]:
    """Positions behind the judge's filter, and their first two derivatives."""
    q = low_pass(q, MOTION_CUTOFF, rate)
    dq = np.gradient(q, 1 / rate, axis=0)
    return q, dq, np.gradient(dq, 1 / rate, axis=0)


def low_pass(x: Array, cutoff: float, rate: float = RATE) -> Array:
    """The judge's filter."""
    return np.asarray(sosfiltfilt(butter(3, cutoff, fs=rate, output="sos"), x, axis=0))


def _columns(world: World, kind: str) -> Array:
    return np.asarray(world.test_log[[f"{kind}_{j}" for j in world.truth.robot.joints]])
