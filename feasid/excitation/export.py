"""A motion as a table, as CSV, as a ROS 2 message, and as a figure."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.files import write_aside
from feasid.core.text import harmless
from feasid.dynamics.regressor import inverse_dynamics
from feasid.errors import InputError, missing_extra

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from feasid.excitation.trajectory import Trajectory
    from feasid.robot.description import Robot

LINE, LIMIT = "#4477aa", "#ee6677"
"""Paul Tol's bright palette, told apart by the colour-blind and in print."""

DRAWN = 600
"""Points drawn per line."""

UNITS = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s²", "m/s²"),
    "torque": ("N m", "N"),
}
"""Of joints that turn and of those that slide."""

DIGITS = 9
"""Decimals of positions, velocities and accelerations in files."""


def frame(motion: Trajectory, periods: int) -> pd.DataFrame:
    """See `Trajectory.to_frame`."""
    import pandas as pd

    if periods < 1:
        raise InputError(f"periods must be at least 1, not {periods}")
    count = len(motion.t)
    t = np.arange(count * periods) / motion.rate
    data = {"t": t}
    for kind, values in zip(("q", "dq", "ddq"), motion.at(t), strict=True):
        data |= {f"{kind}_{j}": values[:, k] for k, j in enumerate(motion.robot.joints)}
    out = pd.DataFrame(data)
    out.attrs["robot"] = motion.robot
    return out


def write_csv(motion: Trajectory, path: str | Path, periods: int, *, overwrite: bool) -> None:
    """See `Trajectory.to_csv`."""
    text = frame(motion, periods).to_csv(index=False, float_format=f"%.{DIGITS}f")
    write_aside(path, text.encode(), overwrite=overwrite)


def write_ros(motion: Trajectory, path: str | Path, rate: float | None, *, overwrite: bool) -> None:
    """See `Trajectory.to_ros`; the last point closes the period."""
    chosen = motion.rate if rate is None else rate
    if not chosen > 0:
        raise InputError(f"rate must be positive, not {chosen}")
    t = np.append(np.arange(0, motion.period - 0.5 / chosen, 1 / chosen), motion.period)
    values = motion.at(t)
    out = io.StringIO()
    out.write("header:\n  stamp: {sec: 0, nanosec: 0}\n  frame_id: ''\njoint_names:\n")
    out.writelines(f"  - {_quoted(joint)}\n" for joint in motion.robot.joints)
    out.write("points:\n")
    for k, time in enumerate(t):
        seconds, nanoseconds = divmod(round(time * 1e9), 10**9)
        for lead, name, array in zip(
            ("- ", "  ", "  "), ("positions", "velocities", "accelerations"), values, strict=True
        ):
            row = ", ".join(f"{x:.{DIGITS}f}" for x in array[k])
            out.write(f"  {lead}{name}: [{row}]\n")
        out.write("    effort: []\n")
        out.write(f"    time_from_start: {{sec: {seconds}, nanosec: {nanoseconds}}}\n")
    write_aside(path, out.getvalue().encode(), overwrite=overwrite)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _unit(kind: str, robot: Robot) -> str:
    """Of joints that turn, slide, or both."""
    turn, slide = UNITS[kind]
    turning = {bool(body.motion[:3].any()) for body in robot.bodies}
    return " or ".join([turn] * (True in turning) + [slide] * (False in turning))


def figure(motion: Trajectory) -> Figure:
    """See `Trajectory.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plotting", "matplotlib", "plot") from error
    t = np.linspace(0, motion.period, DRAWN)
    values = dict(zip(("position", "velocity", "acceleration"), motion.at(t), strict=True))
    robot = motion.robot
    if not np.isnan(robot.values[robot.inertial_columns]).any():
        known = np.nan_to_num(robot.values)
        values["torque"] = inverse_dynamics(robot, *motion.at(t), parameters=known)
    limits = dict(motion.bounds.items())
    joints = robot.joints
    out = Figure(figsize=(3.2 * len(values), 0.6 + 1.3 * len(joints)), layout="constrained")
    axes = out.subplots(len(joints), len(values), sharex=True, squeeze=False)
    for c, (kind, curves) in enumerate(values.items()):
        for j, joint in enumerate(joints):
            axis = axes[j, c]
            axis.plot(t, curves[:, j], color=LINE, lw=1.1)
            for edge in limits[kind][:, j]:
                if np.isfinite(edge):
                    axis.axhline(edge, color=LIMIT, lw=0.8, ls="--")
            axis.tick_params(labelsize=7)
            axis.margins(x=0)
            axis.grid(alpha=0.25)
            if c == 0:
                axis.set_ylabel(harmless(joint, keep=""), fontsize=8, parse_math=False)
        axes[0, c].set_title(f"{kind} [{_unit(kind, robot)}]", fontsize=9)
        axes[-1, c].set_xlabel("time [s]", fontsize=8)
    return out
