"""The Barrett WAM of Sousa and Cortesao (2014): reconstructed from its tables, or as recorded.

The recorded logs are not freely licensed; `recorded` reads a download of them. Without it, Table
5's motion is taken as the robot's motion, with torques made so that ordinary least squares returns
exactly the published estimate of Table 6 and leaves the published relative residual of 6.60 %
(Table 8): tau = W beta_OLS + e, with e seeded noise made orthogonal to every column of W.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import is_regular, open_for_reading, read_whole
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import regressor

if TYPE_CHECKING:
    import pandas as pd

RELATIVE_RESIDUAL = 0.0660
"""Relative residual of ordinary least squares on the identification log, Table 8."""

SEED = 2014  #: Seed of the simulated torque errors, so that every copy of the log is the same.
BLOCK = 8192  #: Samples handled at a time.
REPOSITORY = "github.com/cdsousa/wam7_dyn_ident"
"""Where the authors publish their logs and the datasheet's parameters, under CC BY-NC-SA 4.0."""

COLUMNS = 15  #: Columns of the authors' logs: time, seven positions and seven torques, in SI units.
LONGEST_LINE = 10_000  #: Number of bytes of a file's first line that are inspected.
LARGEST_LOG, LARGEST_JSON = 2**27, 2**20
"""Largest sizes in bytes of a log and of the datasheet's parameters."""


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


def load(folder: str | Path | None = None) -> pd.DataFrame:
    """The reconstructed log, or those of a folder; the robot travels in ``attrs``."""
    return reconstructed() if folder is None else recorded(folder)


def recorded(folder: str | Path) -> pd.DataFrame:
    """The authors' own logs, from a folder with a download of their repository.

    `folder`: a clone of the repository, or the folder of the logs themselves: text files without a
    header, whose lines have `COLUMNS` numbers. ``data/robotparams/wam7_cad.json``, or a file of
    that name beside the logs, gives the robot the datasheet's inertial parameters. Returns: columns
    ``t`` [s], ``q_1`` to ``q_7`` [rad], ``tau_1`` to ``tau_7`` [N m] and ``run``, the file's name
    without its ending. Raises InputError: the folder has no such log; names the file and what is
    wrong with it.
    """
    import pandas as pd

    root = Path(folder)
    place = next((p for p in (root / "data" / "recdata", root) if p.is_dir()), None)
    paths = [] if place is None else [p for p in sorted(place.iterdir()) if _is_recorded_log(p)]
    if not paths:
        raise InputError(
            f"{root} has no log of the WAM: text files with {COLUMNS} numbers in each line (time, "
            f"positions, torques), in this folder or its data/recdata; clone {REPOSITORY}, whose "
            "licence, CC BY-NC-SA 4.0, does not allow commercial use",
            path=str(root),
        )
    joints = [str(k) for k in range(1, 8)]
    names = ["t", *(f"q_{j}" for j in joints), *(f"tau_{j}" for j in joints)]
    parts = [pd.DataFrame(_recorded_numbers(p), columns=names).assign(run=p.stem) for p in paths]
    frame = pd.concat(parts, ignore_index=True)
    sheets = (root / "data" / "robotparams" / "wam7_cad.json", root / "wam7_cad.json")
    sheet = next((p for p in sheets if is_regular(p)), None)
    frame.attrs["robot"] = robot() if sheet is None else _with_datasheet(robot(), sheet)
    frame.attrs["origin"] = REPOSITORY
    frame.attrs["licence"] = "CC BY-NC-SA 4.0"
    return frame


def _is_recorded_log(path: Path) -> bool:
    """Whether the first line of a file has as many numbers as those of the authors' logs."""
    if not is_regular(path):
        return False
    with open_for_reading(path) as file:
        words = file.readline(LONGEST_LINE).split()
    try:
        return len([float(word) for word in words]) == COLUMNS
    except ValueError:
        return False


def _recorded_numbers(path: Path) -> Array:
    """The numbers of a log, shape (samples, COLUMNS)."""
    try:
        return np.loadtxt(io.BytesIO(read_whole(path, LARGEST_LOG)), ndmin=2, comments=None)
    except ValueError as error:
        raise InputError(f"{path}: {error}", path=str(path)) from error


def _with_datasheet(arm: Robot, path: Path) -> Robot:
    """The arm with masses, centres and central inertias of the authors' file."""
    try:
        sheet = json.loads(read_whole(path, LARGEST_JSON))["dyn_parms_com"]
        # Table 6's column of the datasheet follows with products of inertia of the other sign.
        sign = -1.0 if sheet.get("inertia_values_symmetric_to_tensor_elements") else 1.0
        bodies = []
        for k, body in enumerate(arm.bodies, 1):
            centre = np.array([float(sheet[f"r_{k}{axis}"]) for axis in "xyz"])
            names = [[f"sI_{k}{min(a, b)}{max(a, b)}" for a in "xyz"] for b in "xyz"]
            tensor = np.array([[float(sheet[name]) for name in row] for row in names])
            tensor *= np.where(np.eye(3, dtype=bool), 1.0, sign)
            ten = inertia.from_mass_com_inertia(float(sheet[f"m_{k}"]), centre, tensor)
            bodies.append(replace(body, inertial=ten))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is not the datasheet of the WAM: 'dyn_parms_com' must have numbers m_1, r_1x, "
            f"sI_1xx and so on of seven links; {type(error).__name__}: {error}",
            path=str(path),
        ) from error
    return replace(arm, bodies=tuple(bodies))


def reconstructed() -> pd.DataFrame:
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
