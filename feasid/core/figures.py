"""Figures of Matplotlib: charts for files, notebooks and papers, each with a text alternative."""

from __future__ import annotations

import base64
import io
from functools import cache
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

from feasid.core.charts import MARKS, Chart, Panel
from feasid.core.display import plain, truncate
from feasid.core.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TITLE_CHARACTERS = 44  #: Characters of a panel's title, and of a name at an axis.
LETTERS = 12  #: Letters of an inch, beyond which names at an axis are turned.

DPI = 110  #: Resolution of pictures in notebooks.


def new_figure(width: float, height: float, alt: str) -> Figure:
    """An empty figure that no window belongs to.

    `width`, `height`: [inch]; `alt`: what it shows, for readers who cannot see it. Raises
    MissingExtraError: without matplotlib.
    """
    figure: Figure = figure_class()(figsize=(width, height), layout="constrained")
    figure.set_label(alt)
    return figure


TITLE = 8  #: Size of titles and legends [points].


@cache
def figure_class() -> Any:
    """Matplotlib's figure with displays for notebooks."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plotting", "matplotlib", "plot") from error

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=DPI)
            return buffer.getvalue()

        def _repr_html_(self) -> str:
            data = base64.b64encode(self._repr_png_()).decode()
            alt = escape(str(self.get_label()))
            return f'<img alt="{alt}" src="data:image/png;base64,{data}" style="max-width:100%">'

    return NotebookFigure


def draw(chart: Chart) -> Figure:
    """The chart as a Matplotlib figure; see `new_figure`."""
    count = len(chart.panels)
    columns = min(chart.columns, count)
    rows = -(-count // columns)
    figure = new_figure(chart.width, 0.6 + chart.height * rows, f"{chart.title}; {chart.shows}")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    kinds: dict[str, Any] = {}
    for k, axis in enumerate(axes):
        if k >= count:
            axis.set_axis_off()
            continue
        panel = chart.panels[k]
        _draw_panel(axis, panel)
        # Rows of equal panels share titles and labels.
        if k < columns or panel.title != chart.panels[k - columns].title:
            title = truncate(panel.title, MAX_TITLE_CHARACTERS)
            axis.set_title(title, fontsize=9, loc="left", parse_math=False)
        if k >= count - columns:
            axis.set_xlabel(plain(panel.below), fontsize=8)
        if k % columns == 0:
            axis.set_ylabel(plain(panel.beside), fontsize=8, parse_math=False)
        handles, labels = axis.get_legend_handles_labels()
        kinds |= dict(zip(labels, handles, strict=True))
    title = fill(plain(chart.title), int(figure.get_figwidth() * 110 / TITLE))
    if not kinds:
        figure.suptitle(title, fontsize=TITLE, fontweight="bold", parse_math=False)
    head = {"title": title, "title_fontproperties": {"size": TITLE, "weight": "bold"}}
    # The title stands above the legend, which has as many columns as fit.
    for across in range(4, 0, -1) if kinds else ():
        legend = figure.legend([*kinds.values()], [*kinds], loc="outside upper center",
                               ncols=across, fontsize=TITLE, frameon=False, **head)  # fmt: skip
        for text in (legend.get_title(), *legend.get_texts()):
            text.set_parse_math(False)  # names of joints, which may hold dollar signs
        if across == 1 or legend.get_window_extent().width < figure.bbox.width:
            break
        legend.remove()
    return figure


def _draw_panel(axis: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogFormatter

    for s in panel.series:
        style: dict[str, Any] = {"lw": s.width}
        if s.mark:
            style = {"marker": MARKS[s.mark][0], "ls": "", "ms": 2 if s.mark == "." else 5}
        axis.plot(s.x, s.y, color=s.color, alpha=s.opacity, label=s.label or None, **style)
    for across, place, color in panel.lines:
        (axis.axhline if across else axis.axvline)(place, color=color, lw=0.8, ls="--")
    if panel.scales[0] == panel.scales[1] == "" and not any(panel.names):
        axis.margins(x=0)
    for name, scale, names in zip("xy", panel.scales, panel.names, strict=True):
        if scale == "log":
            getattr(axis, f"set_{name}scale")("log")
            getattr(axis, f"{name}axis").set_major_formatter("{x:g}")
            # Less than a decade may have no major tick: then the minor ones are labelled.
            getattr(axis, f"{name}axis").set_minor_formatter(LogFormatter())
        elif scale:
            getattr(axis, f"set_{name}scale")("symlog", linthresh=scale)
        if names:
            most = MAX_TITLE_CHARACTERS if name == "y" else 24
            labels = [truncate(text, most) for text in names]
            getattr(axis, f"set_{name}ticks")(range(len(labels)), labels, parse_math=False)
            if name == "x" and sum(map(len, labels)) > LETTERS * axis.get_figure().get_figwidth():
                axis.tick_params(axis="x", labelrotation=60)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
