"""The logs that Sousa and Cortesao recorded on a Barrett WAM, from a download of them.

    pip install feasid
    git clone https://github.com/cdsousa/wam7_dyn_ident
    python examples/wam7_recorded.py wam7_dyn_ident     # fit the first log
    python examples/wam7.py wam7_dyn_ident              # the whole study

Their licence, CC BY-NC-SA 4.0, does not allow commercial use, so that they are not in this
repository. ``load(folder)`` returns a log for `feasid.fit`; the robot is in ``attrs["robot"]``.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import feasid
from feasid import Robot
from feasid.core.errors import InputError
from feasid.datasets import wam
from feasid.robot.inertia import from_mass_com_inertia

REPOSITORY = "github.com/cdsousa/wam7_dyn_ident"

COLUMNS = 15
"""Columns of the authors' logs: time, seven positions and seven torques, in SI units."""

LONGEST_LINE = 10_000
"""Number of bytes of a file's first line that are inspected."""


def load(folder: str | Path) -> pd.DataFrame:
    """The authors' own logs, from a folder with a download of their repository.

    `folder`: a clone of the repository, or the folder of the logs themselves: text files without a
    header, whose lines have `COLUMNS` numbers. ``data/robotparams/wam7_cad.json``, or a file of
    that name beside the logs, gives the robot the datasheet's inertial parameters. Returns: columns
    ``t`` [s], ``q_1`` to ``q_7`` [rad], ``tau_1`` to ``tau_7`` [N m] and ``run``, the file's name
    without its ending. Raises InputError: the folder has no such log; names the file and what is
    wrong with it.
    """
    root = Path(folder)
    place = next((p for p in (root / "data" / "recdata", root) if p.is_dir()), None)
    paths = [] if place is None else [p for p in sorted(place.iterdir()) if is_log(p)]
    if not paths:
        raise InputError(
            f"{root} has no log of the WAM: text files with {COLUMNS} numbers in each line (time, "
            f"positions, torques), in this folder or its data/recdata; clone {REPOSITORY}, whose "
            "licence, CC BY-NC-SA 4.0, does not allow commercial use",
            path=str(root),
        )
    joints = [str(k) for k in range(1, 8)]
    names = ["t", *(f"q_{j}" for j in joints), *(f"tau_{j}" for j in joints)]
    parts = [pd.DataFrame(read_numbers(p), columns=names).assign(run=p.stem) for p in paths]
    frame = pd.concat(parts, ignore_index=True)
    sheets = (root / "data" / "robotparams" / "wam7_cad.json", root / "wam7_cad.json")
    sheet = next((p for p in sheets if p.is_file()), None)
    frame.attrs["robot"] = wam.robot() if sheet is None else with_datasheet(wam.robot(), sheet)
    frame.attrs["origin"] = REPOSITORY
    frame.attrs["licence"] = "CC BY-NC-SA 4.0"
    return frame


def is_log(path: Path) -> bool:
    """Whether the first line of a file has as many numbers as those of the authors' logs."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        words = file.readline(LONGEST_LINE).split()
    try:
        return len([float(word) for word in words]) == COLUMNS
    except ValueError:
        return False


def read_numbers(path: Path) -> np.ndarray:
    """The numbers of a log, shape (samples, COLUMNS)."""
    try:
        return np.loadtxt(io.BytesIO(Path(path).read_bytes()), ndmin=2, comments=None)
    except ValueError as error:
        raise InputError(f"{path}: {error}", path=str(path)) from error


def with_datasheet(arm: Robot, path: Path) -> Robot:
    """The arm with masses, centres and central inertias of the authors' file."""
    try:
        sheet = json.loads(Path(path).read_text())["dyn_parms_com"]
        # Table 6's column of the datasheet follows with products of inertia of the other sign.
        sign = -1.0 if sheet.get("inertia_values_symmetric_to_tensor_elements") else 1.0
        bodies = []
        for k, body in enumerate(arm.bodies, 1):
            centre = np.array([float(sheet[f"r_{k}{axis}"]) for axis in "xyz"])
            names = [[f"sI_{k}{min(a, b)}{max(a, b)}" for a in "xyz"] for b in "xyz"]
            tensor = np.array([[float(sheet[name]) for name in row] for row in names])
            tensor *= np.where(np.eye(3, dtype=bool), 1.0, sign)
            ten = from_mass_com_inertia(float(sheet[f"m_{k}"]), centre, tensor)
            bodies.append(replace(body, inertial=ten))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is not the datasheet of the WAM: 'dyn_parms_com' must have numbers m_1, r_1x, "
            f"sI_1xx and so on of seven links; {type(error).__name__}: {error}",
            path=str(path),
        ) from error
    return replace(arm, bodies=tuple(bodies))


if __name__ == "__main__":
    log = load(sys.argv[1])
    print(feasid.fit(log[log["run"] == log["run"].iloc[0]]))
