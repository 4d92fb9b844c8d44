"""A fit on one HTML page without links: text, tables and plots. Needs the extra "report"."""

from __future__ import annotations

import io
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from feasid.errors import InputError, missing_extra
from feasid.files import check_writable, write_aside
from feasid.identification.result import Fit
from feasid.identification.views.text import summary


def write_report(
    fit: Fit, path: str | Path, *, test: Any = None, log: Any = None, overwrite: bool = False
) -> None:
    """Write the page; see `Fit.report`."""
    check_writable(path, overwrite=overwrite)
    write_aside(path, render(fit, test=test, log=log).encode(), overwrite=overwrite)


def render(fit: Fit, *, test: Any = None, log: Any = None) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise missing_extra("writing a report", "jinja2", "report") from error
    import pandas as pd

    from feasid import __version__

    errors = {"fitted": 100 * fit.relative_error}
    if test is not None:
        found = test if isinstance(test, pd.Series) else fit.errors(test)
        errors["test"] = 100 * found
    # Names of links and joints are an outsider's text: everything but the drawings is escaped.
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = files("feasid").joinpath("page.html").read_text(encoding="utf-8")
    page = environment.from_string(template)
    return page.render(
        title=f"Feasible fit of {fit.robot.name}",
        fit=fit,
        errors=pd.DataFrame(errors),
        figures=_figures(fit, test, log),
        text=summary(fit, None if test is None else errors["test"] / 100),
        version=__version__,
    )


def _figures(fit: Fit, test: Any, log: Any) -> list[tuple[str, str]]:
    import pandas as pd

    figures = []
    with suppress(InputError):  # reduced data hold no samples; the tables stand by themselves
        figures.append(("Fitted log", _svg(fit, log)))
    if test is not None and not isinstance(test, pd.Series):
        figures.append(("Test log, not fitted", _svg(fit, test)))
    return figures


def _svg(fit: Fit, log: Any) -> str:
    from feasid.identification.views.plots import torques

    figure = torques(fit, log)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
