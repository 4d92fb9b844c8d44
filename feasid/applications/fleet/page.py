"""One page in HTML: a result at a glance, a picture and a table, nothing from outside."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from feasid.core.display import Display, plain, svg
from feasid.core.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STYLE = "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em}</style>"


def write_page(
    path: str | Path, shown: Display, figure: Figure, table: pd.DataFrame, overwrite: bool
) -> None:
    """Write the page to a file."""
    cells, title = table.to_html(border=0, float_format="{:.3g}".format), escape(plain(shown.title))
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
    text = f"{head}{STYLE}<h1>{title}</h1>{shown.html()}{svg(figure)}{cells}</html>"
    write_atomically(path, text.encode(), overwrite=overwrite)
