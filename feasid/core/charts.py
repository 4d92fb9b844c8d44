"""Charts: curves and marks in panels, as plain data, and as SVG of a page.

`feasid.core.figures` draws the same charts with Matplotlib, for files, notebooks and papers. In a
page HTML lays out panels, titles and legend, so that nothing overlaps on screens of any width, and
`STYLE` has the colours on light and on dark ground.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.display import plain, truncate

BLUE, RED, GREEN, YELLOW, CYAN, GREY = (
    "#4477aa", "#cc3311", "#228833", "#aa7700", "#0077aa", "#777777",
)  # fmt: skip
"""Paul Tol's palettes: distinguishable for the colour-blind and in print."""

PALETTE = ("#4477aa", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#0077bb", "#999933")
"""Colours of things in their order, from the same palettes."""

ON_BLACK = {BLUE: "#7fb0e6", RED: "#ff8a65", GREEN: "#6fd195", YELLOW: "#e6b450", GREY: "#a8a8a8"}
"""Lighter colours for pages on a dark ground."""

STYLE = (
    ".chart{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));"
    "gap:.6rem}.chart figure{margin:0;min-width:0;max-width:42rem}.chart svg{display:block;"
    "width:100%}"
    ".chart text{font:12px system-ui,sans-serif;fill:currentColor}"
    ".chart path,.key path{fill:none;stroke:currentColor}.chart .grid{opacity:.2}"
    ".key span{margin-right:1rem;white-space:nowrap}"
    ".key svg{width:1.6rem;height:.8rem;margin-right:.3rem;vertical-align:middle}"
    + "".join(f".c{c[1:]}{{color:{c}}}" for c in dict.fromkeys((*PALETTE, *ON_BLACK, CYAN)))
    + "@media(prefers-color-scheme:dark){"
    + "".join(f".c{color[1:]}{{color:{light}}}" for color, light in ON_BLACK.items())
    + "}"
)
"""Style sheet of charts in a page."""

MARKS = {
    ".": (".", "h0", 3.0),
    "o": ("o", "h0", 7.0),
    "ring": ("$\\circ$", "m-3,0a3,3 0 1 0 6,0a3,3 0 1 0-6,0", 1.4),
    "s": ("s", "m-2.5-2.5h5v5h-5z", 1.6),
    "^": ("^", "m0-3.5l3.5 6h-7z", 1.6),
    "x": ("x", "m-3-3l6 6m0-6l-6 6", 1.6),
    "_": ("_", "m-4 0h8", 1.6),
    "*": ("*", "m0-4v8m-4-4h8m-7-3l6 6m0-6l-6 6", 1.4),
}
"""Marks: Matplotlib's name, the path of a page from the middle of the mark, and its width."""


@dataclass(frozen=True, eq=False)
class Series:
    """A curve, whose gaps are NaN, or a mark at every point."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    color: str = BLUE
    label: str = ""  #: Of the legend, which has every label once.
    mark: str = ""  #: One of `MARKS`, or empty for a curve.
    width: float = 1.2  #: Of a curve [points].
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Panel:
    """Series over common axes."""

    series: Sequence[Series]
    title: str = ""
    below: str = ""  #: Quantity and unit of the horizontal axis.
    beside: str = ""  #: Of the vertical axis.
    scales: tuple[str | float, str | float] = ("", "")
    """Of both axes: linear (empty), "log", or the number up to which a logarithmic axis of both
    signs is linear."""
    names: tuple[Sequence[str], Sequence[str]] = ((), ())  #: Of the places 0, 1, ... of both axes.
    lines: Sequence[tuple[int, float, str]] = ()  #: Dashed: axis, place and colour.


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels with one legend under a title that says what they show."""

    title: str  #: What is seen, with a number.
    shows: str  #: What is drawn, for readers who cannot see it.
    panels: Sequence[Panel]
    columns: int = 2
    height: float = 2.1  #: Of a panel of a figure [inch].
    width: float = 11.0  #: Of a figure [inch].


def motion_chart(
    title: str,
    joints: Sequence[str],
    curves: Mapping[str, Sequence[tuple[Array, Array]]],
    limits: Mapping[str, Array],
) -> Chart:
    """A row of panels for each joint, one per quantity.

    `curves`: by quantity with its unit, times (n,) and values (n, joints) of every run; `limits`:
    by quantity, shape (2, joints), drawn where they are finite.
    """
    panels = []
    for j, joint in enumerate(joints):
        for quantity, runs in curves.items():
            series = [Series(t, values[:, j], BLUE, width=0.9) for t, values in runs]
            edges = limits[quantity][:, j] if quantity in limits else ()
            lines = [(1, float(edge), RED) for edge in edges if np.isfinite(edge)]
            panels.append(Panel(series, quantity, "time [s]", truncate(joint, 16), lines=lines))
    count = len(curves)
    return Chart(title, "motion of every joint; dashed: limits", panels, count, 1.3, 3.0 * count)


def segments(
    places: Sequence[float] | Array, low: Sequence[float] | Array, high: Sequence[float] | Array
) -> tuple[Array, Array]:
    """Coordinates of lines from `low` to `high` at every place, along and across them.

    Each of shape (3 n,): two ends and a gap.
    """
    across = np.repeat(np.asarray(places, float), 3)
    along = np.column_stack([low, high, np.full(len(across) // 3, np.nan)]).astype(float)
    return along.ravel(), across


# -- pages -----------------------------------------------------------------------------------------

WIDTH, HEIGHT = 420, 190  #: Of a panel, in units of the picture; a single one is wider.
WIDER = 520
BELOW, RIGHT, ABOVE = 34, 10, 6  #: Room around the axes.
MAX_NAME, LETTER = 30, 6.3  #: Characters of a name at an axis, and the width of one.
ROOM = 0.05  #: Share of the range left free on both sides.
TICKS = 5  #: Largest number of steps between ticks.
MOST_POINTS = 1500  #: Points of one series; longer ones are thinned, as no screen shows more.


def _transform(values: Any, scale: str | float) -> Array:
    """Places on an axis with this scale."""
    numbers = np.asarray(values, dtype=np.float64)
    if not scale:
        return numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            return np.log10(np.where(numbers > 0, numbers, np.nan))
        size = np.abs(numbers) / float(scale)
        return np.sign(numbers) * np.where(size <= 1, size, 1 + np.log10(size))


@dataclass(frozen=True)
class _Axis:
    """Where numbers stand between the two ends of an axis in a page."""

    scale: str | float
    low: float
    high: float

    @classmethod
    def around(cls, values: Array, scale: str | float) -> _Axis:
        """The axis that has all these numbers on it."""
        places = _transform(values, scale)
        places = places[np.isfinite(places)]
        low, high = (float(places.min()), float(places.max())) if len(places) else (0.0, 1.0)
        # A constant stands in the middle of an axis of length 1.
        room = ROOM * (high - low) or 0.5
        return cls(scale, low - room, high + room)

    def labels(self, names: Sequence[str], most: int) -> list[tuple[str, float]]:
        """Names, of at most so many characters, and their places, or else round numbers."""
        named = [(truncate(name, most), float(place)) for place, name in enumerate(names)]
        ticks = self.ticks().tolist()
        # So many digits that no two labels are the same.
        enough = (d for d in range(6, 17) if len({f"{v:.{d}g}" for v in ticks}) == len(ticks))
        digits = next(enough, 17)
        return named or [(f"{v:.{digits}g}", v) for v in ticks]

    def share(self, values: Any) -> Array:
        """From 0 at the low end to 1 at the high end."""
        return (_transform(values, self.scale) - self.low) / (self.high - self.low)

    def ticks(self) -> Array:
        """Round numbers on the axis."""
        if not self.scale:
            rough = (self.high - self.low) / TICKS
            power = 10.0 ** math.floor(math.log10(rough))
            # Rounding of `rough` must not double the step of an axis whose ticks are round.
            step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
            steps = np.arange(math.ceil(self.low / step), math.floor(self.high / step) + 1)
            return np.asarray(steps * step)
        if self.scale == "log":
            decades = np.arange(math.floor(self.low), math.floor(self.high) + 1)
            within: tuple[float, ...] = (1.0, 2.0, 5.0) if len(decades) < 4 else (1.0,)
            both = np.outer(10.0 ** decades[:: 1 + len(decades) // (TICKS + 2)], within).ravel()
        else:
            last = math.floor(max(abs(self.low), abs(self.high), 1.0))
            powers = float(self.scale) * 10.0 ** np.arange(0, last, 1 + last // TICKS)
            both = np.concatenate([-powers[::-1], [0.0], powers])
        return both[(self.share(both) >= 0) & (self.share(both) <= 1)]


def svg(chart: Chart) -> str:
    """The chart as part of a page with the style sheet `STYLE`; all names are escaped."""
    kinds = {s.label: s for panel in chart.panels for s in panel.series if s.label}
    key = "".join(
        f'<span><svg class="c{s.color[1:]}" viewBox="0 0 26 12" aria-hidden="true">'
        f"{_path(s, [6, 20] if not s.mark else [13], [6, 6] if not s.mark else [6])}</svg>"
        f"{escape(plain(label))}</span>"
        for label, s in kinds.items()
    )
    panels = "".join(_panel_svg(panel, chart) for panel in chart.panels)
    return f'<p class="key">{key}</p>' * bool(key) + f'<div class="chart">{panels}</div>'


def _panel_svg(panel: Panel, chart: Chart) -> str:
    """Axes with their ticks, then lines, then series, in a picture that takes any width."""
    ends = [[place for k, place, _ in panel.lines if k == axis] for axis in (0, 1)]
    values = [
        np.concatenate([*(np.asarray(getattr(s, name), float) for s in panel.series), more])
        for name, more in zip("xy", ends, strict=True)
    ]
    x, y = (_Axis.around(v, scale) for v, scale in zip(values, panel.scales, strict=True))
    below_axis, left_of_axis = x.labels(panel.names[0], 16), y.labels(panel.names[1], MAX_NAME)
    lengths = [len(label) for label, _ in below_axis]
    width = WIDER if len(chart.panels) == 1 else WIDTH
    start = (
        26 * bool(panel.beside) + 10 + LETTER * max((len(t) for t, _ in left_of_axis), default=0)
    )
    wide = width - start - RIGHT
    tilted = sum(lengths) * LETTER > wide
    # Names turned by 38 degrees reach down by sin(38) = 0.6 of their length.
    below = BELOW + 0.6 * LETTER * max(lengths, default=0) * tilted
    # Each name at the vertical axis takes a line of 15 units.
    height = max(HEIGHT, ABOVE + BELOW + 15 * len(panel.names[1]))
    high = height - ABOVE - below

    def right(values: Any) -> Array:
        return np.asarray(start + wide * x.share(values))

    def down(values: Any) -> Array:
        return np.asarray(ABOVE + high * (1 - y.share(values)))

    def across(b: Any) -> str:
        return f"M{start:.1f},{b:.1f}h{wide:.1f}"

    def upright(a: Any) -> str:
        return f"M{a:.1f},{ABOVE}v{high:.1f}"

    parts, foot, middle = [], ABOVE + high + 14, ABOVE + high / 2
    for label, place in below_axis:
        a = right(place)
        turn = f' transform="rotate(-38 {a:.0f} {foot:.0f})"' if tilted else ""
        parts.append(f'<path class="grid" d="{upright(a)}"/>')
        parts.append(_text(label, a, foot, "end" if tilted else "middle", turn))
    for label, place in left_of_axis:
        parts.append(f'<path class="grid" d="{across(down(place))}"/>')
        parts.append(_text(label, start - 5, down(place) + 4, "end"))
    parts.append(_text(panel.below, start + wide / 2, height - 4, "middle"))
    turn = f' transform="rotate(-90 13 {middle:.0f})"'
    parts.append(_text(panel.beside, 13, middle, "middle", turn))
    for axis, place, color in panel.lines:
        line = across(down(place)) if axis else upright(right(place))
        parts.append(f'<path class="c{color[1:]}" stroke-dasharray="5 3" d="{line}"/>')
    for s in panel.series:
        step = max(1, np.size(s.x) // MOST_POINTS)
        curve = _path(s, right(np.asarray(s.x)[::step]), down(np.asarray(s.y)[::step]))
        parts.append(f'<g class="c{s.color[1:]}">{curve}</g>')
    title = escape(plain(panel.title))
    return (
        f'<figure><figcaption>{title}</figcaption><svg viewBox="0 0 {width} {height:.0f}" '
        f'role="img" aria-label="{title or escape(plain(chart.shows))}">{"".join(parts)}</svg>'
        "</figure>"
    )


def _text(label: str, x: Any, y: Any, anchor: str, turn: str = "") -> str:
    """Text of a picture; nothing for an empty one."""
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{turn}'
    return f"<text {place}>{escape(plain(label))}</text>" * bool(label)


def _path(series: Series, x: Any, y: Any) -> str:
    """The curve or marks of a series at places of the picture."""
    mark = MARKS.get(series.mark)
    places = zip(np.asarray(x, float).tolist(), np.asarray(y, float).tolist(), strict=True)
    drawn, pen = [], "M"
    for a, b in places:
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        drawn.append(f"{pen}{a:.1f},{b:.1f}{mark[1] if mark else ''}")
        pen = "M" if mark else "L"
    cap = ' stroke-linecap="round"' if mark else ""
    faint = f' stroke-opacity="{series.opacity:g}"' if series.opacity < 1 else ""
    width = mark[2] if mark else series.width
    return f'<path d="{"".join(drawn)}" stroke-width="{width:g}"{cap}{faint}/>'
