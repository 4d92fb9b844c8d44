"""Whether a log repeats its motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.logs.checks.findings import Finding
from feasid.logs.motion import Rows
from feasid.logs.raw import Signals

MOST_SAMPLES = 2000
"""Samples of a run that are compared with later ones, evenly spread."""

SAME_PLACE = 1e-3
"""Largest mean square of the differences of positions, over twice their variance: 4 % of the
motion's size."""

REPEATED = 0.6
"""Least share of samples whose position recurs a period later; approach and stop do not recur."""

ELSEWHERE = 0.1
"""Share of recurring samples below which the motion has moved on; before, it is only slow."""

STILL = 1e-6
"""Share of the largest joint's motion below which a joint stands."""

SHORTEST, LONGEST = 16, 0.7
"""Samples of a period at least, and its share of the log at most."""


def check_period(raw: Signals, runs: Sequence[Rows]) -> list[Finding]:
    """A note where the longest run repeats its motion: what is held out was fitted, too."""
    longest = max(runs, key=len, default=np.zeros(0, dtype=np.int64))
    rows = longest[:: max(1, -(-len(longest) // MOST_SAMPLES))]
    q = raw.values["q"][rows]
    if len(rows) < 4 * SHORTEST or not np.isfinite(q).all():
        return []
    size = q.std(axis=0)
    moved = size > STILL * size.max(initial=0.0)
    lag = _repetition(q[:, moved] / size[moved]) if moved.any() else None
    if lag is None:
        return []
    period = float(lag * np.median(np.diff(raw.t[rows])))
    times = len(rows) / lag
    text = (
        f"the motion repeats every {period:.3g} s, {times:.1f} times: held-out segments "
        "resemble the fitted ones, so the errors hold for this motion only; test with another one"
    )
    return [Finding("periodic", "note", text, values={"period": period, "repetitions": times})]


def _repetition(q: Array) -> int | None:
    """Period in samples of positions of shape (N, dof) with standard deviation one; None without
    repetition.

    The lag at which most of them do, after one at which hardly any does.
    """
    lags = range(SHORTEST, int(LONGEST * len(q)))
    share = np.array([(((q[k:] - q[:-k]) ** 2).mean(axis=1) < 2 * SAME_PLACE).mean() for k in lags])
    left = np.flatnonzero(share < ELSEWHERE)
    if not left.size:
        return None
    best = int(left[0] + share[left[0] :].argmax())
    return lags[best] if share[best] > REPEATED else None
