"""The Barrett WAM of Sousa and Cortesao (2014), reconstructed from its tables.

The recorded logs are not freely licensed; ``examples/wam7_recorded.py`` reads a download of them.
Here Table 5's motion is taken as the robot's motion, with torques made so that ordinary least
squares returns exactly the published estimate of Table 6 and leaves the published relative residual
of 6.60 % (Table 8): tau = W beta_OLS + e, with e seeded noise made orthogonal to every column of W.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import regressor

if TYPE_CHECKING:
    import pandas as pd

RELATIVE_RESIDUAL = 0.0660
"""Relative residual of ordinary least squares on the identification log, Table 8."""

SEED = 2014  #: Seed of the simulated torque errors, so that every copy of the log is the same.
BLOCK = 8192  #: Samples handled at a time.


@cache
def tables() -> dict[str, Any]:
    """Tables 2 and 5 to 8 of the paper."""
    text = files("feasid.datasets").joinpath("wam7.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def robot() -> Robot:
    """Table 2's arm with friction and drive inertia: 98 standard parameters."""
    rows = [(np.deg2rad(alpha), a, d, 0.0) for alpha, a, d in tables()["table2_dh"]]
    return Robot.from_dh(rows, name="wam7").with_joint_terms(drive_inertia=True)


def motion() -> tuple[Array, Array, Array, Array]:
    """Time (N,) and position, velocity, acceleration (N, 7) of eq. (78), exactly derived."""
    table = tables()["table5"]
    t = np.arange(table["samples"]) * table["sample_time_s"]
    frequency = 0.1 * np.pi * np.arange(1, 6)
    phase = np.outer(t, frequency)
    sin, cos = np.sin(phase), np.cos(phase)
    a, b = np.array(table["a"]).T, np.array(table["b"]).T
    q = sin / frequency @ a - cos / frequency @ b + np.array(table["q0"])
    return t, q, cos @ a + sin @ b, (cos * frequency) @ b - (sin * frequency) @ a


def estimate(column: str) -> Array:
    """A column of Table 6, shape (69,): "ols" or "feasible_bounded"."""
    return np.array([row[column] for row in tables()["table6"]])


def load() -> pd.DataFrame:
    """The reconstructed log, 57 656 samples at 1 kHz; the robot travels in ``attrs``."""
    import pandas as pd

    arm = robot()
    t, q, dq, ddq = motion()
    columns = [int(c) for c in base_parameters(arm).independent]
    fitted = _torques_from_beta(arm, q, dq, ddq, columns, estimate("ols"))
    error: Array = np.random.default_rng(SEED).standard_normal(fitted.shape)
    for _ in range(2):  # the second projection removes the rounding of the first
        reduced = Reduced.from_samples(arm, q, dq, ddq, error, columns=columns)
        beta = np.linalg.solve(*reduced.triangle()[:2])
        error -= _torques_from_beta(arm, q, dq, ddq, columns, np.asarray(beta))
    # The residual is relative to W beta + e, whose two parts are orthogonal.
    share = RELATIVE_RESIDUAL / np.sqrt(1 - RELATIVE_RESIDUAL**2)
    error *= float(share * np.linalg.norm(fitted) / np.linalg.norm(error))
    signals = {"q": q, "dq": dq, "ddq": ddq, "tau": fitted + error}
    data = {"t": t}
    for kind, values in signals.items():
        data |= {f"{kind}_{joint}": values[:, k] for k, joint in enumerate(arm.joints)}
    frame = pd.DataFrame(data)
    frame.attrs["robot"] = arm
    frame.attrs["origin"] = "reconstructed from the published tables"
    return frame


def _torques_from_beta(
    arm: Robot, q: Array, dq: Array, ddq: Array, columns: list[int], beta: Array
) -> Array:
    parts = (slice(a, a + BLOCK) for a in range(0, len(q), BLOCK))
    return np.concatenate(
        [regressor(arm, q[p], dq[p], ddq[p], columns=columns) @ beta for p in parts]
    )
