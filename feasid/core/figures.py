"""Figures with a text alternative, displayed in notebooks."""

from __future__ import annotations

import base64
import io
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from feasid.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREEN, YELLOW, CYAN, GREY = (
    "#4477aa", "#cc3311", "#228833", "#aa7700", "#0077aa", "#777777",
)  # fmt: skip
"""After Paul Tol's palettes: told apart by the colour-blind and in print."""

DPI = 110
"""Of pictures in notebooks."""


def new_figure(width: float, height: float, alt: str) -> Figure:
    """An empty figure that no window belongs to.

    Parameters
    ----------
    width, height : float
        [inch]
    alt : str
        What it shows, for readers who cannot see it.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    """
    figure: Figure = figure_class()(figsize=(width, height), layout="constrained")
    figure.set_label(alt)
    return figure


def add_legend(figure: Figure, axis: Any, columns: int) -> None:
    """What the axis shows, above it."""
    shown = axis.get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper center", ncols=columns, fontsize=8, frameon=False)


@cache
def figure_class() -> Any:
    """Matplotlib's figure, with what notebooks ask for."""
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


def svg(figure: Figure) -> str:
    """The figure as text for a page, without date or identifiers that differ between runs."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "feasid"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
