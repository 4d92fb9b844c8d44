"""Curves as SVG that a page's script can zoom: drawn in the data's own coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 1000, 240
"""Of the picture, in its own units; it takes the width of the page."""

ROOM = 0.06
"""Share of the range left free above and below."""


def drawing(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Paths of measured and predicted torque and their difference, and their ranges.

    Parameters
    ----------
    runs : sequence of mapping
        With numbers ``t``, ``measured`` and ``predicted``.

    Returns
    -------
    dict
        ``paths``, a mapping from a name to SVG path data in units of the picture, and ``x`` and
        ``y``, the ranges that width and height stand for.
    """
    times = [float(t) for run in runs for t in run["t"]]
    if not times:
        return {"paths": {}, "x": (0.0, 1.0), "y": (-1.0, 1.0), "size": (WIDTH, HEIGHT)}
    curves = {
        "measured": [_numbers(run["measured"]) for run in runs],
        "predicted": [_numbers(run["predicted"]) for run in runs],
    }
    pairs = zip(curves["measured"], curves["predicted"], strict=True)
    curves["difference"] = [[a - b for a, b in zip(m, p, strict=True)] for m, p in pairs]
    values = [v for runs_of in curves.values() for run in runs_of for v in run]
    low, high = min(values), max(values)
    extra = ROOM * (high - low) or 1.0
    x, y = (min(times), max(max(times), min(times) + 1e-9)), (low - extra, high + extra)
    starts = [_numbers(run["t"]) for run in runs]
    return {
        "paths": {
            name: "".join(_path(t, v, x, y) for t, v in zip(starts, parts, strict=True))
            for name, parts in curves.items()
        },
        "x": x,
        "y": y,
        "size": (WIDTH, HEIGHT),
    }


def _numbers(values: Sequence[Any]) -> list[float]:
    return [float(v) for v in values]


def _path(
    t: Sequence[float], v: Sequence[float], x: tuple[float, float], y: tuple[float, float]
) -> str:
    """One run, in the units of the picture."""
    wide, high = WIDTH / (x[1] - x[0]), HEIGHT / (y[1] - y[0])
    points = (f"{(a - x[0]) * wide:.1f},{(y[1] - b) * high:.1f}" for a, b in zip(t, v, strict=True))
    return f"M{' '.join(points)}"
