"""One page in HTML: a result at a glance, a picture and a table, nothing from outside."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from feasid.core import charts
from feasid.core.display import Display, plain
from feasid.core.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

STYLE = (
    "<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:1rem auto;"
    "max-width:70rem;padding:0 1rem}td,th{padding:.2em .6em;white-space:nowrap}h1{font-size:1.4rem}"
    f".scroll{{overflow-x:auto}}{charts.STYLE}</style>"
)


def write_page(
    path: str | Path, shown: Display, chart: charts.Chart, table: pd.DataFrame, overwrite: bool
) -> None:
    """Write the page to a file."""
    cells = table.to_html(border=0, index_names=False, float_format="{:.3g}".format)
    title = escape(plain(shown.title))
    head = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
    )
    text = (
        f"{head}{STYLE}<main>{shown.html('h1')}<h2>{escape(plain(chart.title))}</h2>"
        f"{charts.svg(chart)}<div class='scroll' tabindex='0'>{cells}</div></main></html>"
    )
    write_atomically(path, text.encode(), overwrite=overwrite)
