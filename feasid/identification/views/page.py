"""A fit on one HTML page without links: text, tables and plots. Needs the extra "report"."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid import __version__
from feasid.errors import missing_extra
from feasid.files import check_writable, write_aside
from feasid.identification.fitted import Fitted
from feasid.identification.views.text import summary
from feasid.identification.views.torques import torques
from feasid.logs.recording import Recording
from feasid.reduction.reduce import Source, opened

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(
    fit: Fitted, path: str | Path, *, test: Any = None, log: Any = None, overwrite: bool = False
) -> None:
    """Write the page; see `Fit.report`."""
    check_writable(path, overwrite=overwrite)
    write_aside(path, render(fit, test=test, log=log).encode(), overwrite=overwrite)


def render(fit: Fitted, *, test: Any = None, log: Any = None) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise missing_extra("writing a report", "jinja2", "report") from error
    import pandas as pd

    tests = [] if test is None or isinstance(test, pd.Series) else opened(test)
    found = test if isinstance(test, pd.Series) else fit.errors(tests) if tests else None
    errors = {"fitted": 100 * fit.relative_error}
    if found is not None:
        errors["test"] = 100 * found
    # Names of links and joints are an outsider's text: everything but the drawings is escaped.
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = files("feasid").joinpath("page.html").read_text(encoding="utf-8")
    page = environment.from_string(template)
    return page.render(
        title=f"Feasible fit of {fit.robot.name}",
        fit=fit,
        errors=pd.DataFrame(errors),
        figures=_figures(fit, tests, opened(log) if log is not None else fit.recordings),
        text=summary(fit, found),
        version=__version__,
    )


def _figures(
    fit: Fitted, tests: Sequence[Source], fitted: Sequence[Source]
) -> list[tuple[str, str]]:
    """A caption and a drawing for every log that has samples; reduced data have none."""
    drawn = []
    for caption, logs in (("Fitted log", fitted), ("Test log, not fitted", tests)):
        for log in logs:
            if isinstance(log, Recording):
                drawn.append((f"{caption} {Path(log.name).name}".strip(), _svg(torques(fit, log))))
    return drawn


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
