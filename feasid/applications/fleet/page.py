"""One page and one picture of all robots of a fleet. Needs the extra "report"."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.display import Display, new_figure, plain, svg

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STYLE = "body{font:15px sans-serif;max-width:1100px;margin:2em auto}td,th{padding:.2em .8em}"


def draw(
    errors: pd.DataFrame, friction: Mapping[str, Sequence[float]], outliers: Collection[str]
) -> Figure:
    """Errors by robot, and friction by robot and joint."""
    names = [plain(name) for name in errors.index]
    width = max(7.0, 0.45 * len(names) + 3.0)
    figure = new_figure(width, 6.0, f"errors and friction of {len(names)} robots")
    upper, lower = figure.subplots(2, 1, sharex=True)
    table = 100.0 * errors[["alone", "error", "predicted"]].to_numpy()
    places = np.arange(len(names))
    labels = ("fit alone", "fit in the fleet", "predicted on all motions")
    for k, (label, marker) in enumerate(zip(labels, "osx", strict=True)):
        upper.plot(places, table[:, k], marker, label=label)
    upper.set_yscale("log")
    upper.yaxis.set_major_formatter("{x:g}")
    upper.yaxis.set_minor_formatter("{x:g}")
    upper.set_ylabel("torque error [%]")
    upper.legend(loc="best", fontsize="small")
    for name, place in zip(friction, places, strict=True):
        factors = np.array(friction[name])
        color = "#b3261e" if name in outliers else "#4477aa"
        lower.plot(np.full(len(factors), place), factors, "o", color=color, alpha=0.7)
    lower.axhline(1.0, color="#888888", linewidth=0.8)
    lower.set_ylabel("Coulomb friction\nover the type's, by joint")
    lower.set_xticks(places, names, rotation=60 if len(names) > 8 else 0)
    return figure


def page(display: Display, table: pd.DataFrame, figure: Figure) -> str:
    """All robots as HTML, in which everything from outside is escaped."""
    table = table.copy()
    for name in ("alone", "error", "predicted"):
        table[name] = [f"{100 * value:.3g} %" for value in table[name]]
    table.index = table.index.map(plain)
    shown = table.to_html(border=0, float_format="{:.3g}".format)
    title = escape(plain(display.title))
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
    body = f"<h1>{title}</h1>{display.html()}{svg(figure)}{shown}"
    return f"{head}<style>{STYLE}</style>{body}</html>"
