"""Friction that changes with the temperatures of a log.

Lubricants thin as they warm. Around a temperature T0 the friction of a joint with speed v is, to
first order in T,

    f(v, T) = f(v, T0) + (T - T0) (c sign v + d v),

with slopes c of dry and d of viscous friction. The option ``friction_per_kelvin`` has (c, d, T0) by
joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.signal import savgol_filter

from feasid.core.arrays import Array
from feasid.core.errors import LogError, did_you_mean
from feasid.core.notes import Note
from feasid.logs.motion import Rows, Run
from feasid.robot.formats.fit_robot import FIT_TRANSITION_SPEED

WINDOWS = (5, 9, 17, 33)
"""Seconds over which a temperature is taken as a parabola; which of them, the values decide.
Gears take minutes to warm up, but windings follow each motion within seconds: there a straight line
through seven seconds was off by .6 K, and the cold arm missed 1.7 times as much as a clean one."""

MOST_REPEATED = 2.0
"""Seconds between readings of the slowest sensor whose repetitions are told from slow changes."""

LEAST_WARMING = 2.0
"""Change of a temperature [K] from which friction may change with it: sensors count whole degrees,
and a slope over less is no statement about a robot that warms up by thirty."""

FrictionPerKelvin = Mapping[str, tuple[float, ...]]
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
            known = np.flatnonzero(rows & np.isfinite(column))
            if not known.size:
                continue
            read = known[rows_of_readings(t[known], column[known])]
            table = pd.DataFrame({"t": t[read], "T": column[read]})
            means = table.groupby(np.floor(t[read])).mean().to_numpy()
            seconds = np.arange(means[0, 0], means[-1, 0] + 1e-6, 1.0)
            values = smooth_by_parabolas(np.interp(seconds, *means.T))
            out[rows, k] = np.interp(t[rows], seconds, values)
    return out


def rows_of_readings(t: Array, column: Array) -> Rows:
    """Rows at which a sensor was read: the first of those that repeat a value until the next one.

    In the middle of the second for which it stands, a reading would be half a second late.
    """
    news = np.flatnonzero(np.diff(column)) + 1
    every = int(np.diff(news).min()) if len(news) > 1 else 1
    if every == 1 or t[-1] - t[0] > MOST_REPEATED * len(t) / every:
        return np.arange(len(t))
    starts, ends = np.r_[0, news], np.r_[news, len(t)]
    counts = np.maximum((ends - starts + every // 2) // every, 1)
    return np.concatenate([a + every * np.arange(n) for a, n in zip(starts, counts, strict=True)])


def smooth_by_parabolas(values: Array) -> Array:
    """The smoothed value of every second, with the window that the values themselves prefer."""
    best, least = values, np.inf
    for n in (n for n in WINDOWS if n <= len(values)):
        smooth = savgol_filter(values, n, 2)
        weight = 3 * (3 * n**2 - 7) / (4 * n * (n**2 - 4))  # of a value in its own parabola
        error = float(np.sum((values - smooth) ** 2)) / (1 - weight) ** 2
        if error < least:
            best, least = smooth, error
    return best


def temperature_note(cells: Array, names: Sequence[str], law: Iterable[str]) -> Note:
    """Ranges of the temperatures of joints; `law`: those with friction at one temperature."""
    known = {j: x[np.isfinite(x)] for j, x in zip(names, cells.T, strict=True)}
    ranges = {j: (float(x.min()), float(x.max())) for j, x in known.items() if x.size}
    return _range_note(ranges, [j for j in ranges if j in law])


def join_temperature_notes(notes: Iterable[Note], *, searched: bool) -> tuple[Note, ...]:
    """Notes of parts of a log, or of several, with one range of the temperatures of each joint.

    Unless it is `searched` for the change of friction with them, the joints that need it are named.
    """
    every = tuple(notes)
    parts = [n for n in every if n.code == "temperatures" and "ranges" in n.values]
    if not parts:
        return every
    ranges: dict[str, tuple[float, float]] = {}
    for low, high, joint in ((*r, j) for n in parts for j, r in n.values["ranges"].items()):
        least, most = ranges.get(joint, (low, high))
        ranges[joint] = min(low, least), max(high, most)
    known = [j for j in ranges if all(j in n.values["known"] for n in parts)]
    changing = [j for j, (low, high) in ranges.items() if high - low >= LEAST_WARMING]
    mean = [] if searched else [j for j in changing if j not in known]
    return (_range_note(ranges, known, mean), *(n for n in every if n not in parts))


def _range_note(
    ranges: Mapping[str, tuple[float, float]], known: Sequence[str], mean: Sequence[str] = ()
) -> Note:
    listed = ", ".join(f"{j} {low:.3g} to {high:.3g}" for j, (low, high) in ranges.items())
    text = f"temperatures [degrees C]: {listed or 'none in any row'}"
    if mean:
        text += (
            f"; friction of {', '.join(mean)} is taken as the same at all of them. If it changes, "
            "fit one log with the default options, and read all of them with "
            "friction_per_kelvin=fit.log_options['friction_per_kelvin']"
        )
    return Note(text, "temperatures", ranges=dict(ranges), known=[*known], mean=[*mean])


def friction_per_kelvin(run: Run, joint: int, origin: float, fall: float = 0.0) -> Array:
    """Torques of slopes c and d of 1 at a joint of a run, (2, N); 0 without its temperature."""
    if run.temperature is None:
        return np.zeros((2, len(run)))
    v, warmth = run.dq[:, joint], np.nan_to_num(run.temperature[:, joint] - origin)
    warmth = -np.expm1(-fall * warmth) / fall if fall else warmth
    return np.stack([warmth * np.tanh(v / FIT_TRANSITION_SPEED), warmth * v])


def friction_change(run: Run, law: FrictionPerKelvin, names: Sequence[str]) -> Array:
    """Torques by which friction differs from that at T0, shape (N, dof)."""
    out = np.zeros_like(run.q)
    for joint, (dry, viscous, *place) in law.items():
        k = names.index(joint)
        out[:, k] = np.array([dry, viscous]) @ friction_per_kelvin(run, k, *place)
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
