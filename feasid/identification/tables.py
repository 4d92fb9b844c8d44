"""Tables of a fit: base parameters, bodies and joint terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.estimation.noise import least_squares
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot
from feasid.robot.inertia import to_mass_com_inertia
from feasid.robot.joint_terms import DRIVE_SYMBOLS

if TYPE_CHECKING:
    import pandas as pd


def base_table(
    base: BaseParameters, beta: Array, covariance: Array, triangle: tuple[Array, Array, float]
) -> pd.DataFrame:
    """See `Fit.base_table`."""
    import pandas as pd

    r, rho, _ = triangle
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = 100 * deviation / np.abs(beta)
    columns = {
        "value": beta,
        "std": deviation,
        "relative_std_percent": relative,
        "ols": least_squares(r, rho)[0],
    }
    return pd.DataFrame(columns, index=pd.Index(base.expressions, name="base parameter"))


def bodies_table(robot: Robot) -> pd.DataFrame:
    """See `Fit.bodies`."""
    import pandas as pd

    heavy = [i for i, body in enumerate(robot.bodies) if not body.massless]
    mass, com, inertia = to_mass_com_inertia(robot.values[robot.inertial_columns[heavy]])
    columns = {"mass": mass} | {f"com_{a}": com[:, k] for k, a in enumerate("xyz")}
    for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        columns[f"I{'xyz'[r]}{'xyz'[c]}"] = inertia[:, r, c]
    names = [robot.bodies[i].name for i in heavy]
    return pd.DataFrame(columns, index=pd.Index(names, name="body"))


def joint_terms_table(robot: Robot) -> pd.DataFrame:
    """See `Fit.joint_terms`."""
    import pandas as pd

    rows = {
        drive.name: {s: robot.values[c] for s, c in robot.drive_columns(k).items()}
        for k, drive in enumerate(robot.drives)
    }
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*DRIVE_SYMBOLS])
    return frame.rename_axis(index="drive").dropna(axis="columns", how="all")
