"""Friction that changes with the temperatures of a log.

Lubricants thin as they warm. Around a temperature T0 the friction of a joint with speed v is, to
first order in T,

    f(v, T) = f(v, T0) + (T - T0) (c sign v + d v),

with slopes c of dry and d of viscous friction. The option ``friction_per_kelvin`` has (c, d, T0) by
joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.signal import savgol_filter

from feasid.core.arrays import Array
from feasid.core.errors import LogError, did_you_mean
from feasid.core.notes import Note
from feasid.logs.motion import Rows, Run
from feasid.robot.formats.fit_robot import FIT_TRANSITION_SPEED

WINDOW = 7
"""Seconds over which a temperature is taken as a straight line: motors take minutes to warm up, and
sensors repeat values for a second, count half or whole degrees and are as noisy."""

FrictionPerKelvin = Mapping[str, tuple[float, float, float]]
"""By joint c [N m / K], d [N m s / (rad K)] and T0 [degrees C]; of sliding joints N and m."""


def smooth_temperatures(t: Array, cells: Array, codes: Rows) -> Array:
    """Temperatures without noise, steps of sensors and missing cells, run by run, (N, dof).

    `t`: (N,), times [s]; `cells`: (N, dof); `codes`: (N,), numbers of the runs.
    """
    import pandas as pd

    out = np.full_like(cells, np.nan)
    for code in np.unique(codes):
        rows = codes == code
        for k, column in enumerate(cells.T):
            known = rows & np.isfinite(column)
            if not known.any():
                continue
            # Means of every second, those between them where one has no cell, and lines through.
            means = pd.Series(column[known]).groupby(np.floor(t[known])).mean()
            seconds = np.arange(means.index[0], means.index[-1] + 1.0)
            values = np.interp(seconds, means.index, means)
            values = savgol_filter(values, WINDOW, 1) if len(values) >= WINDOW else values
            out[rows, k] = np.interp(t[rows], seconds + 0.5, values)
    return out


def friction_per_kelvin(run: Run, joint: int, origin: float) -> Array:
    """Torques of slopes c and d of 1 at a joint of a run, (2, N); 0 without its temperature."""
    if run.temperature is None:
        return np.zeros((2, len(run)))
    v, warmth = run.dq[:, joint], np.nan_to_num(run.temperature[:, joint] - origin)
    return np.stack([warmth * np.tanh(v / FIT_TRANSITION_SPEED), warmth * v])


def friction_change(run: Run, law: FrictionPerKelvin, names: Sequence[str]) -> Array:
    """Torques by which friction differs from that at T0, shape (N, dof)."""
    out = np.zeros_like(run.q)
    for joint, (dry, viscous, origin) in law.items():
        k = names.index(joint)
        out[:, k] = np.array([dry, viscous]) @ friction_per_kelvin(run, k, origin)
    return out


def at_one_temperature(
    runs: Sequence[Run], law: FrictionPerKelvin, names: Sequence[str]
) -> tuple[list[Run], list[Note]]:
    """Runs with the torques that they would have at T0, and a note on temperatures that lack.

    Raises LogError: a joint of the law is none of these `names`.
    """
    for joint in (j for j in law if j not in names):
        hint = did_you_mean(joint, names)
        text = f"friction_per_kelvin names {joint!r}, which is no joint of the robot{hint}"
        raise LogError(text, joint=joint)
    cells = [r.temperature for r in runs if r.temperature is not None]
    lacking = [j for j in law if all(np.isnan(x[:, names.index(j)]).all() for x in cells)]
    listed = ", ".join(f"{joint} ({law[joint][2]:g} degrees C)" for joint in lacking)
    text = (
        "the log has no temperatures of joints whose friction changes with them: it is taken as "
        f"that at the model's temperature, {listed}. Add columns temperature_<joint>"
    )
    notes = [Note(text, "no-temperature", joints=lacking)] * bool(lacking)
    return [replace(r, tau=r.tau - friction_change(r, law, names)) for r in runs], notes
