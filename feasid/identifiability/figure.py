"""What can be known of each parameter, as a map of bodies and symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from feasid.core.display import shortened
from feasid.core.figures import BLUE, CYAN, GREEN, GREY, legend, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "★": ("known alone", GREEN, "*"),
    "●": ("in a sum that it leads", BLUE, "o"),
    "○": ("in sums of others", CYAN, "$\\circ$"),
    "✕": ("not at all", GREY, "x"),
    "=": ("given", GREY, "_"),
}


def identifiability_map(rows: Mapping[str, Sequence[str]], owners: Sequence[str]) -> Figure:
    """The marks of `feasid.identifiability.tables.symbol_rows` as a picture."""
    symbols = [*rows]
    figure = picture(
        1.6 + 0.42 * len(owners), 1.9 + 0.26 * len(symbols), "what can be known of each parameter"
    )
    axis = figure.subplots()
    for mark, (label, color, shape) in KINDS.items():
        places = [(x, y) for y, s in enumerate(symbols) for x, m in enumerate(rows[s]) if m == mark]
        if places:
            x, y = zip(*places, strict=True)
            axis.scatter(x, y, s=45, marker=shape, color=color, label=label, lw=1.2)
    axis.set_xticks(range(len(owners)), [shortened(o, 24) for o in owners], rotation=60, ha="right",
                    rotation_mode="anchor", fontsize=8, parse_math=False)  # fmt: skip
    axis.set_yticks(range(len(symbols)), symbols, fontsize=8)
    axis.invert_yaxis()
    axis.grid(alpha=0.2)
    axis.margins(x=0.5 / max(len(owners), 2), y=0.04)
    legend(figure, axis, 2)
    return figure
