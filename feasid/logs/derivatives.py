"""From one segment of a log to runs: filter, differentiate, cut the ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array, Mask, interpolate
from feasid.core.errors import LogError
from feasid.core.notes import Note
from feasid.logs import filters as signals
from feasid.logs.clock import Stretch, even_grid
from feasid.logs.filters import smooth_and_differentiate
from feasid.logs.motion import ExcludedRows, Run, excluded_blocks

MIN_SAMPLES = 8  #: Samples that a segment must keep after its ends are trimmed.
SHORTEST_REST = 0.05  #: A joint that is slow for a shorter time [s] is taken to be turning round.

EQUATION_CUTOFF = 8.0
"""Where both sides of the equations are cut off [Hz] unless the caller says otherwise: 3 to 12 Hz
give the same on logs of arms, and a constant does not jump."""

DERIVATIVE_CUTOFF = 40.0
"""Cut-off [Hz] of the low-pass before positions and velocities are differentiated, when the
equations are filtered afterwards: it only keeps the quantisation of encoders small ..."""

DERIVATIVE_SHARE = 0.4  #: ... and at most this share of the sampling rate.

EQUATION_SHARE = 0.2
"""The default cut-off of the equations stays below this share of the sampling rate."""

BRIDGED_SHARE = 0.25
"""Gaps of at most this share of a period of the equations' cut-off are bridged."""

PIECE, PIECES = 4096, 8  #: Length and number of the pieces of a segment whose spectra are computed.

FAINT = 1e-6
"""Share of a signal's power above the usual low-pass with which it is as smooth as behind it: the
equations' low-pass leaves less than a tenth of that."""

MAX_JUDGED_STRETCHES = 9  #: Number of segments whose spectra are computed for the automatic cut-off


def find_cutoff(
    values: Mapping[str, Array], stretches: Sequence[Stretch], cutoff: float | bool | None
) -> tuple[float | None, list[Note]]:
    """The cut-off [Hz], None for no filter, and how it was found.

    A log that has velocities and accelerations needs no derivative and is used as it is.
    """
    longest = max(stretches, key=lambda s: len(s.rows), default=None)
    if cutoff is False or longest is None or len(longest.rows) < 2:
        return None, []
    if cutoff is None:
        if "dq" in values and "ddq" in values:
            return None, []
        # The median of the cut-offs that the longest segments need.
        longer = sorted(stretches, key=lambda s: len(s.rows), reverse=True)[:MAX_JUDGED_STRETCHES]
        judged = [s for s in longer if len(s.rows) >= len(longest.rows) / 2]
        cutoffs = [signals.choose_cutoff(values["q"][s.rows], s.rate) for s in judged]
        middle = sorted(cutoffs, key=lambda c: c.frequency)[len(cutoffs) // 2]
        text = f"cut-off {middle.frequency:g} Hz: {middle.reason}"
        return middle.frequency, [Note(text, "cutoff", cutoff=middle.frequency)]
    frequency = float(cutoff)
    signals.check_cutoff(frequency, longest.rate)
    return frequency, []


def equation_cutoff(stretches: Sequence[Stretch], cutoff: float | None) -> float:
    """The cut-off of both sides of the equations [Hz], below half the sampling rate."""
    longest = max(stretches, key=lambda s: len(s.rows), default=None)
    rate = longest.rate if longest is not None else np.nan
    if cutoff is None:
        if rate < 2 * EQUATION_CUTOFF:
            raise LogError(
                f"the log's rate of {rate:.4g} Hz is below twice the equations' bandwidth of "
                f"{EQUATION_CUTOFF:g} Hz: record faster, or give a lower one, "
                f"cutoff={EQUATION_SHARE * rate:.2g}",
                rate=rate,
            )
        return float(np.fmin(EQUATION_CUTOFF, EQUATION_SHARE * rate))  # single samples have none
    if isinstance(cutoff, bool):
        raise LogError(
            "cutoff must be a frequency [Hz] where the equations are filtered; filtering='signals' "
            "with cutoff=False filters nothing"
        )
    if np.isfinite(rate):
        signals.check_cutoff(float(cutoff), rate)
    return float(cutoff)


@dataclass(frozen=True)
class SignalProcessing:
    """Processing of every segment; the fields are parameters of `feasid.logs.frame.prepare`."""

    cutoff: float | None
    filter_torque: bool = True
    trim: float | None = None
    decimate: int = 1
    delay: float = 0.0
    rest: float = 1e-3
    filtering: str = "signals"
    derivatives: float | None = None
    complete: bool = False

    def low_pass_cutoff(self, rate: float) -> float | None:
        """Cut-off [Hz] of the filter before signals are differentiated."""
        if self.filtering == "signals":
            return self.cutoff
        if self.derivatives is not None:
            return self.derivatives
        if self.complete:  # velocities and accelerations are in the log: nothing is derived
            return None
        return min(DERIVATIVE_CUTOFF, DERIVATIVE_SHARE * rate)


def process_stretch(
    t: Array, values: Mapping[str, Array], stretch: Stretch, how: SignalProcessing, mask: Mask
) -> tuple[list[Run], list[ExcludedRows]]:
    """Filter and differentiate one segment, then cut its ends and the excluded rows."""
    rows, rate = stretch.rows, stretch.rate
    times, part = t[rows], {kind: signal[rows] for kind, signal in values.items()}
    if how.filtering != "signals":  # on an even grid if necessary
        grid = even_grid(times)
        times, rows = grid.t, rows[grid.nearest]
        if len(times) > 1:
            rate = float((len(times) - 1) / (times[-1] - times[0]))
        part = {kind: grid.resample(kind, x) for kind, x in part.items()}
    cutoff = how.low_pass_cutoff(rate)
    ends = _trim_length(how, rate, derived="ddq" not in values)
    if len(rows) < 2 * ends + MIN_SAMPLES:
        text = "segment too short for the filter and its trimmed ends"
        return [], excluded_blocks(stretch.rows, text)
    # What a controller has: signals with their noise, velocities or differences of positions.
    part["live_q"] = part["q"]
    if "dq" in values:
        part["live_dq"] = values["dq"][rows]
    else:
        before = 2 * part["q"][:1] - part["q"][1:2]  # the first velocity is that of the second
        steps = np.diff(part["q"], axis=0, prepend=before)
        part["live_dq"] = np.asarray(steps * (rate if np.isfinite(rate) else 0.0))
    _differentiate(part, how, cutoff, rate)
    if cutoff is not None and how.rest:
        part["dq"][_find_rest(part["dq"], how.rest, rate)] = 0.0
    if "tau" not in part:
        part["tau"] = np.full_like(part["q"], np.nan)
    elif how.delay:
        samples = np.arange(len(part["tau"]), dtype=np.float64)
        part["tau"] = interpolate(samples - how.delay * rate, samples, part["tau"])
    keep = np.zeros(len(rows), dtype=bool)
    keep[ends : len(rows) - ends] = True
    left_out = excluded_blocks(np.unique(rows[~keep]), "end of a segment, trimmed") if ends else []
    smear = 0 if cutoff is None else signals.settling_samples(cutoff, rate)
    excluded = mask[rows]
    # The filter carries what is excluded into its neighbours.
    if smear and excluded.any():
        excluded = np.convolve(excluded, np.ones(2 * smear + 1), "same") > 0.5
    unwanted = keep & excluded
    left_out += excluded_blocks(np.unique(rows[unwanted]), "excluded by hand")
    keep &= ~unwanted
    band = cutoff
    if cutoff is None and how.complete:
        usual = min(DERIVATIVE_CUTOFF, DERIVATIVE_SHARE * rate)
        band = usual if _is_smooth(part, usual, rate) else None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], keep, [False]]).astype(np.int8)))
    runs = []
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        take = slice(int(a), int(b), how.decimate)
        names = ("q", "dq", "ddq", "tau", "live_q", "live_dq")
        q, dq, ddq, tau, *live = (np.ascontiguousarray(part[k][take]) for k in names)
        at, anchor = np.ascontiguousarray(times[take]), int(rows[a]) // int(how.decimate)
        head = stretch.label, rate / how.decimate, rows[take], at
        runs.append(Run(*head, q, dq, ddq, tau, anchor, live=(live[0], live[1]), band=band))
    return runs, left_out


def _is_smooth(part: Mapping[str, Array], frequency: float, rate: float) -> bool:
    """Whether measured motion holds next to nothing above a frequency, on pieces of it."""
    size = min(PIECE, len(part["q"]))
    starts = np.linspace(0, len(part["q"]) - size, PIECES).astype(np.intp)
    high = np.fft.rfftfreq(size, 1.0 / rate) > frequency
    for kind in ("q", "dq", "ddq"):
        pieces = np.stack([part[kind][a : a + size] for a in starts], axis=1)
        waves = np.fft.rfft((pieces - pieces.mean(axis=0)).T * np.hanning(size))
        power = np.sum(np.abs(waves) ** 2, axis=1)
        if not (np.sum(power[:, high], axis=1) <= FAINT * power.sum(axis=1)).all():
            return False
    return True


def _differentiate(
    part: dict[str, Array], how: SignalProcessing, cutoff: float | None, rate: float
) -> None:
    """Filter the logged signals and derive the missing ones, in place."""
    if "tau" in part and how.filter_torque and how.filtering == "signals":
        (part["tau"],) = smooth_and_differentiate(part["tau"], 0, cutoff, rate)
    if "ddq" in part:
        (part["ddq"],) = smooth_and_differentiate(part["ddq"], 0, cutoff, rate)
    if "dq" in part:
        (part["q"],) = smooth_and_differentiate(part["q"], 0, cutoff, rate)
        slopes = smooth_and_differentiate(part["dq"], 0 if "ddq" in part else 1, cutoff, rate)
        part |= dict(zip(("dq", "ddq"), slopes, strict=False))
    else:
        motion = smooth_and_differentiate(part["q"], 1 if "ddq" in part else 2, cutoff, rate)
        part |= dict(zip(("q", "dq", "ddq"), motion, strict=False))


def _find_rest(velocity: Array, speed: float, rate: float) -> Mask:
    """Where a joint is slower than `speed` for at least SHORTEST_REST: its sign is noise."""
    slow = np.abs(velocity) < speed
    least = max(2, int(np.ceil(SHORTEST_REST * rate - signals.WHOLE)))
    out = np.zeros_like(slow)
    for k in np.flatnonzero(slow.any(axis=0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], slow[:, k].view(np.int8), [0]])))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            if b - a >= least:
                out[a:b, k] = True
    return out


def _trim_length(how: SignalProcessing, rate: float, derived: bool) -> int:
    """Samples to cut from each end of a segment."""
    least = 1 if derived else 0
    if not np.isfinite(rate):
        return least
    if how.delay:
        least += int(np.ceil(abs(how.delay) * rate - signals.WHOLE))
    if how.trim is not None:
        return max(least, int(np.ceil(how.trim * rate - signals.WHOLE)))
    cutoff = how.low_pass_cutoff(rate)
    return least if cutoff is None else max(least, signals.settling_samples(cutoff, rate))
