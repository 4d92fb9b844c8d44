"""A fit's report as one HTML page that needs nothing else. Needs the extra "report".

Curves are SVG in the data's own coordinates, which the page's script can zoom.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.charts import svg
from feasid.core.errors import InputError
from feasid.core.files import check_writable, with_ending, write_atomically, write_together
from feasid.core.progress import step
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log, simulate_fit
from feasid.identification.regression.reduce import measured_rows, open_sources
from feasid.logs.recording import Recording
from feasid.results.report.contents import SCHEMA, VERSION, report_contents
from feasid.results.report.figures import eigenvalue_chart, friction_chart, parameter_chart
from feasid.results.report.summary import summary
from feasid.results.report.template import page_environment, render_page

if TYPE_CHECKING:
    from feasid.identification.assessment.simulation import Simulation

WIDTH, HEIGHT = 1000, 240  #: Of the picture, in its own units; it takes the width of the page.

ROOM = 0.06  #: Share of the range left free above and below.


def torque_curves(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Paths of measured and predicted torque and their difference, and their ranges.

    `runs`: with numbers ``t``, ``measured`` and ``predicted``. Returns: ``paths``, a mapping from a
    name to SVG path data in units of the picture, and ``x`` and ``y``, the ranges that correspond
    to width and height.
    """
    if not any(len(run["t"]) for run in runs):
        return {"paths": {}, "x": (0.0, 1.0), "y": (-1.0, 1.0), "size": (WIDTH, HEIGHT)}
    times, measured, predicted = (
        [np.asarray(run[name], float) for run in runs] for name in ("t", "measured", "predicted")
    )
    difference = [a - b for a, b in zip(measured, predicted, strict=True)]
    curves = {"measured": measured, "predicted": predicted, "difference": difference}
    (start, end), (low, high) = (
        (float(min(values)), float(max(values)))
        for values in (np.concatenate(times), np.concatenate([*measured, *predicted, *difference]))
    )
    # One sample, or a constant, has no range, and the picture needs one.
    extra = ROOM * (high - low) or 1.0
    x, y = (start, max(end, start + 1e-9)), (low - extra, high + extra)
    wide, tall = WIDTH / (x[1] - x[0]), HEIGHT / (y[1] - y[0])

    def path_of(t: Array, values: Array) -> str:
        places = zip((wide * (t - x[0])).tolist(), (tall * (y[1] - values)).tolist(), strict=True)
        return "M" + " ".join(f"{a:.1f},{b:.1f}" for a, b in places)

    paths = {k: "".join(map(path_of, times, parts)) for k, parts in curves.items()}
    return {"paths": paths, "x": x, "y": y, "size": (WIDTH, HEIGHT)}


PARAMETER_ROWS = 20  #: Base parameters of the page's chart; its table has all.
REPORT_WINDOWS = 24  #: Windows of the log that a page simulates.


@step("drawing the report")
def write_report(
    fit: FittedModel,
    path: str | Path,
    *,
    test: Any = None,
    log: Any = None,
    command: str = "",
    overwrite: bool = False,
) -> None:
    """Write the page and its numbers; see `Fit.report`."""
    import pandas as pd

    numbers = with_ending(path, ".json")  # of report.html: report.json
    if numbers == Path(path):
        raise InputError(f"{path}: the page needs another name than its numbers, say report.html")
    for target in (path, numbers):
        check_writable(target, overwrite=overwrite)
    template = page_environment()
    tests = [] if test is None or isinstance(test, pd.Series) else open_sources(test)
    tested = errors_on_log(fit, tests, fit.test_options()) if tests else test
    fitted = open_sources(log) if log is not None else fit.logs
    # Windows of the first log that has samples, or why none can be simulated.
    sampled = next((log for log in (*tests, *fitted) if isinstance(log, Recording)), None)
    simulation: Simulation | str = "reduced data hold no samples to simulate"
    if sampled is not None:
        drive, windows = dict.fromkeys(("command", "kp", "kd")), {"windows": REPORT_WINDOWS}
        try:
            simulation = simulate_fit(fit, sampled, (0.1, 0.3), None, drive, windows)
        except InputError as error:
            simulation = str(error)
    contents = report_contents(fit, tested, tests, fitted, command, simulation)
    drawn = next((log for log in fitted if isinstance(log, Recording)), None)
    has_torques = drawn is not None and measured_rows(fit.reduced).all()
    charts = [
        *([friction_chart(fit, drawn)] if has_torques else []),
        parameter_chart(fit, PARAMETER_ROWS),
        eigenvalue_chart(fit),
        *([simulation.chart()] if not isinstance(simulation, str) else []),
    ]
    pictures = [{"title": chart.title, "shows": chart.shows, "svg": svg(chart)} for chart in charts]
    text = str(summary(fit, tested))
    page = render_page(template, "page.html", told=contents, pictures=pictures, text=text,
                       drawing=torque_curves)  # fmt: skip
    data = json.dumps(contents, allow_nan=False).encode()
    write_together({path: page, numbers: data}, overwrite=overwrite)


def write_report_contents(
    reports: Sequence[Mapping[str, Any]], path: str | Path, *, overwrite: bool
) -> None:
    """Write the page of one report that was kept, or of two side by side."""
    for contents in reports:
        if not isinstance(contents, Mapping) or contents.get("schema") != SCHEMA:
            raise InputError("a report that was kept is damaged, or of another format")
        if contents.get("version") not in range(1, VERSION + 1):
            raise InputError("a report of another format, or of a newer feasid: update it")
    name = "page.html" if len(reports) == 1 else "beside.html"
    check_writable(path, overwrite=overwrite)
    environment = page_environment()
    from jinja2 import TemplateError

    damages = (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    try:
        page = render_page(environment, name, reports=reports, told=reports[0], pictures=[],
                           text="", drawing=torque_curves)  # fmt: skip
    except damages as error:
        raise InputError(f"a report that was kept is damaged: {error!r}") from error
    write_atomically(path, page, overwrite=overwrite)
