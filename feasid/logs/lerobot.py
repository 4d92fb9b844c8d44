"""LeRobot datasets: names of their lists, and units, which follow from the encoders' steps.

Positions are counts of an encoder in degrees, or over the range that was calibrated, in -100 .. 100
or 0 .. 100, and the dataset does not say which. The smallest step of a state is one count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note, as_notes
from feasid.logs.units import COMMAND

if TYPE_CHECKING:
    import pandas as pd

LISTS = {
    "observation.state": "q",
    "action": COMMAND,
    **{f"observation.{word}": "tau" for word in ("effort", "torque", "current")},
}
"""Lists of a dataset, joint by joint, and the kinds of columns that they are."""

NAMES = {"timestamp": "t", "episode_index": "run"}

COUNTS = 4096
"""Counts in a turn of the encoders of joints whose unit is a share of the range: those of Feetech's
STS and of Dynamixel's XL and XM series."""

RESOLUTIONS = {float(2**k - less) for k in range(9, 21) for less in (0, 1)}
"""Counts that are a turn of joints in degrees: the resolution, and in later versions one less."""

LEAST_RANGE = 200  #: Counts of a joint's range from which a unit may be a share of it: 18 degrees.
LEAST_VALUES = 20  #: Different positions from which a joint's smallest step is one count.

DECIMAL = 500
"""Ranges of multiples of this number of counts have the steps of rounded decimals: no unit."""

OFF_STEP = 0.05
"""Distance from a whole number of counts up to which a value is one; that of all counts of a range
is shorter than float32 leaves it: 1e-4."""

SINGLE = 6e-8  #: Relative rounding of float32, as which datasets are stored.


@dataclass(frozen=True)
class EncoderScale:
    """Unit and scale of a joint's numbers."""

    factor: float  #: [rad] of one of its units
    zero: str  #: where its zero is: "middle" or "lower" end of the joint's range; empty: as logged
    counts: int = 0  #: of its range; 0: numbers are degrees and do not say it

    def __str__(self) -> str:
        if not self.counts:
            return "degrees"
        low = 0 if self.zero == "lower" else -100
        degrees = 360 * self.counts / COUNTS
        return f"{low} .. 100 of {self.counts} counts ({degrees:.0f} degrees)"

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Ends of the joint's range by its calibration, else those of the description [rad]."""
        if not self.counts:
            return low, high
        size, start = 2 * np.pi * self.counts / COUNTS, self.offset(low, high)
        return (
            (start, start + size) if self.zero == "lower" else (start - size / 2, start + size / 2)
        )

    def offset(self, low: float, high: float) -> float:
        """Position of the zero between these ends of the description [rad]; 0 without ends."""
        place = {"middle": (low + high) / 2, "lower": low}.get(self.zero, 0.0)
        return place if np.isfinite(place) else 0.0


def encoder_scale(values: Array) -> EncoderScale | None:
    """What a joint's numbers are, by their smallest step; None where it does not say it."""
    values = values[np.isfinite(values)]
    distinct = np.unique(values)
    steps = np.diff(distinct)
    # Differences within the rounding of float32 are no steps of an encoder.
    steps = steps[steps > 4 * SINGLE * np.abs(distinct).max(initial=0.0)]
    if len(steps) < LEAST_VALUES:
        return None
    step = float(steps.min())
    for _ in range(2):  # the mean of many steps is more precise than one
        counts = np.round(steps / step)
        step = float(steps.sum() / counts.sum())
    if np.abs(steps / step - counts).max() > OFF_STEP:
        return None
    turn = min(RESOLUTIONS, key=lambda n: abs(n - 360 / step))
    if abs(360 / step - turn) < OFF_STEP:
        # Versions with one count less have zero at the middle of the range.
        return EncoderScale(np.pi / 180, "middle" if turn % 2 else "")
    low, high = float(distinct[0]), float(distinct[-1])
    slack = OFF_STEP * step
    for start, zero in ((0.0, "lower"), (-100.0, "middle")):  # of the calibrated range, percent
        share = (100.0 - start) / step
        inside = low > start - slack and high < 100.0 + slack
        places = np.r_[share, (distinct - start) / step]
        on_steps = np.abs(places - np.round(places)).max() < OFF_STEP
        if inside and on_steps and LEAST_RANGE <= share < COUNTS and round(share) % DECIMAL:
            return EncoderScale(2 * np.pi / COUNTS / step, zero, round(share))
    return None


def name_lists(
    df: pd.DataFrame, known: Mapping[str, EncoderScale] | None = None
) -> tuple[pd.DataFrame, list[Note]]:
    """A dataset by the names of this package, positions and commands in degrees.

    `known`: scales by joint that other rows of the dataset determined. Numbers without a unit get
    an unknown one, so that reading them raises an error that asks for it.
    """
    columns = [c for c in df.columns if isinstance(c, str)]
    by_list = {name: [c for c in columns if c.startswith(f"{name}_")] for name in LISTS}
    if not by_list["observation.state"]:
        return df, []
    torque = next((n for n, k in LISTS.items() if k == "tau" and by_list[n]), "")
    members = {n: m for n, m in by_list.items() if m and (LISTS[n] != "tau" or n == torque)}
    names: dict[Any, Any] = {old: new for old, new in NAMES.items() if new not in columns}
    scales, changed = dict(known or {}), {}
    for column in members["observation.state"] if known is None else ():
        if (scale := encoder_scale(df[column].to_numpy(np.float64))) is not None:
            scales[column.removeprefix("observation.state_")] = scale
    for name, parts in members.items():
        for column in parts:
            joint = column.removeprefix(f"{name}_")
            scale = scales.get(joint) if LISTS[name] in ("q", COMMAND) else None
            names[column] = f"{LISTS[name]}_{joint} [{'LeRobot' if scale is None else 'deg'}]"
            if scale is not None:
                changed[column] = df[column] * float(np.degrees(scale.factor))
    text = ", ".join(f"{name} as {LISTS[name]}" for name in members)
    text = f"LeRobot dataset: {text}, timestamp as t, episode_index as run"
    if scales:
        units = "; ".join(f"{joint} {scale}" for joint, scale in scales.items())
        text += f"; units by the steps of the encoders: {units}"
    if len(scales) < len(members["observation.state"]):
        text += (
            "; where it does not show them, units are degrees or percents of each joint's range, "
            "and those of the motors' bus"
        )
    note = Note(text, "lerobot", columns=[*members], scales=scales)
    return df.assign(**changed).rename(columns=names), [note]


def scales_of(notes: Iterable[Any]) -> dict[str, EncoderScale]:
    """Scales by joint that the notes of a table say."""
    parts = (n.values["scales"] for n in as_notes(notes) if n.code == "lerobot")
    return {joint: scale for part in parts for joint, scale in part.items()}


def add_zeros(
    values: Mapping[str, Array],
    scales: Mapping[str, EncoderScale],
    joints: Sequence[str],
    ends: Array,
    kinds: Sequence[str],
) -> list[Note]:
    """Positions and commands by the zeros of the description, in place; ends of ranges, too.

    `joints`: as the columns name them; `ends` (dof, 2): of the description, and of the calibrated
    range afterwards.
    """
    moved = {}
    for k, scale in ((k, scales[j]) for k, j in enumerate(joints) if j in scales):
        offset = scale.offset(*ends[k])
        ends[k] = scale.ends(*ends[k])
        for kind in kinds if offset else ():
            values[kind][:, k] += offset
            moved[joints[k]] = offset
    if not moved:
        return []
    shown = ", ".join(f"{joint} {offset:+.3g}" for joint, offset in moved.items())
    text = (
        f"zeros of LeRobot are put where the description's ranges say they are: {shown} rad; "
        "offsets= corrects them"
    )
    return [Note(text, "lerobot-zeros", offsets=moved)]
