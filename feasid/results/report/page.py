"""A report as one HTML page that needs nothing else. Needs the extra "report".

Everything that comes from outside passes the template's escaping; the page's own script is named
by its hash, so that a browser runs no other.

Curves are SVG in the data's own coordinates, which the page's script can zoom.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid import __version__
from feasid.core.display import plain
from feasid.core.errors import InputError, missing_extra
from feasid.core.files import check_writable, with_ending, write_atomically, write_together
from feasid.core.progress import step
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log, simulate_fit
from feasid.identification.regression.reduce import measured_rows, open_sources
from feasid.logs.recording import Recording
from feasid.results.report.contents import SCHEMA, VERSION, report_contents
from feasid.results.report.figures import SKINS, Plots
from feasid.results.report.robots import HALF_WIDTH, robot_drawings
from feasid.results.report.summary import summary
from feasid.robot.joint_terms import TERMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feasid.identification.assessment.simulation import Simulation

WIDTH, HEIGHT = 1000, 240
"""Of the picture, in its own units; it takes the width of the page."""

ROOM = 0.06  #: Share of the range left free above and below.


def torque_curves(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Paths of measured and predicted torque and their difference, and their ranges.

    `runs`: with numbers ``t``, ``measured`` and ``predicted``. Returns: ``paths``, a mapping from a
    name to SVG path data in units of the picture, and ``x`` and ``y``, the ranges that correspond
    to width and height.
    """
    times = [float(t) for run in runs for t in run["t"]]
    if not times:
        return {"paths": {}, "x": (0.0, 1.0), "y": (-1.0, 1.0), "size": (WIDTH, HEIGHT)}
    curves = {
        "measured": [[*map(float, run["measured"])] for run in runs],
        "predicted": [[*map(float, run["predicted"])] for run in runs],
    }
    pairs = zip(curves["measured"], curves["predicted"], strict=True)
    curves["difference"] = [[a - b for a, b in zip(m, p, strict=True)] for m, p in pairs]
    values = [v for runs_of in curves.values() for run in runs_of for v in run]
    low, high = min(values), max(values)
    extra = ROOM * (high - low) or 1.0
    x, y = (min(times), max(max(times), min(times) + 1e-9)), (low - extra, high + extra)
    wide, high = WIDTH / (x[1] - x[0]), HEIGHT / (y[1] - y[0])

    def path_of(t: Sequence[float], v: Sequence[float]) -> str:
        pairs = zip(t, v, strict=True)
        return "M" + " ".join(f"{(a - x[0]) * wide:.1f},{(y[1] - b) * high:.1f}" for a, b in pairs)

    starts = [[*map(float, run["t"])] for run in runs]
    return {
        "paths": {
            name: "".join(path_of(t, v) for t, v in zip(starts, parts, strict=True))
            for name, parts in curves.items()
        },
        "x": x,
        "y": y,
        "size": (WIDTH, HEIGHT),
    }


PICTURES = {
    "parameters": "Base parameters with intervals, compared with the description and least squares",
    "eigenvalues": "How far every body is from an infeasible one",
}
"""Plots of a fit that a page shows, and friction where there are samples."""

DPI = 80  #: Dots per inch of pictures in a page.

MISSING_GLYPH = "Glyph .* missing from font"
"""Matplotlib's warning of a character that its font cannot draw."""

DUST = 1e-6  #: Share of a column's largest number below which another is a zero that a solver left.
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

    numbers = report_json_path(path)
    for target in (path, numbers):
        check_writable(target, overwrite=overwrite)
    template = _template_environment()
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
    told = report_contents(fit, tested, tests, fitted, command, simulation)
    plots = Plots(fit)
    figures = {caption: getattr(plots, name)() for name, caption in PICTURES.items()}
    drawn = next((log for log in fitted if isinstance(log, Recording)), None)
    if drawn is not None and measured_rows(fit.reduced).all():
        figures["Friction: what rigid bodies do not explain, and the fitted law"] = plots.friction(
            drawn
        )
    if not isinstance(simulation, str):
        figures["Simulation: errors of windows of the log, joint by joint"] = simulation.plot()
    pictures = [_encode_figure(figure, caption) for caption, figure in figures.items()]
    page = _render(template, "page.html", told, pictures, str(summary(fit, tested)))
    data = json.dumps(told, allow_nan=False).encode()
    write_together({path: page.encode(), numbers: data}, overwrite=overwrite)


def report_json_path(path: str | Path) -> Path:
    """The file with the numbers of a page: ``report.json`` for ``report.html``."""
    numbers = with_ending(path, ".json")
    if numbers == Path(path):
        raise InputError(f"{path}: the page needs another name than its numbers, say report.html")
    return numbers


def write_report_contents(
    reports: Sequence[Mapping[str, Any]], path: str | Path, *, overwrite: bool
) -> None:
    """Write the page of one report that was kept, or of two side by side."""
    for told in reports:
        if not isinstance(told, Mapping) or told.get("schema") != SCHEMA:
            raise InputError("a report that was kept is damaged, or of another format")
        if told.get("version") not in range(1, VERSION + 1):
            raise InputError("a report of another format, or of a newer feasid: update it")
    name = "page.html" if len(reports) == 1 else "beside.html"
    check_writable(path, overwrite=overwrite)
    environment = _template_environment()
    from jinja2 import TemplateError

    damages = (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    try:
        page = _render(environment, name, reports[0], [], "", reports=reports)
    except damages as error:
        raise InputError(f"a report that was kept is damaged: {error!r}") from error
    write_atomically(path, page.encode(), overwrite=overwrite)


def _template_environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("writing a report", "jinja2", "report") from error
    made = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_read_page_file)
    )
    made.filters |= {
        "number": _format_number,
        "percent": lambda x: "" if x is None else f"{100 * float(x):.3g} %",
        "said": plain,
        "term": lambda k: f"{k} {TERMS[k].formula} ({TERMS[k].name})" if k in TERMS else plain(k),
    }
    return made


def _read_page_file(name: str) -> str:
    """Text of one of the page's files, which are in the folder of this module."""
    place = files("feasid.results.report").joinpath("templates", name)
    return place.read_text(encoding="utf-8")


def _render(
    environment: Any,
    template: str,
    told: Mapping[str, Any],
    pictures: Sequence[Mapping[str, str]],
    text: str,
    **more: Any,
) -> str:
    from markupsafe import Markup

    script = _read_page_file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template)
    return str(
        page.render(
            told=told,
            style=Markup(_read_page_file("page.css")),
            script=Markup(script),
            digest=digest,
            drawing=torque_curves,
            robot_drawings=robot_drawings,
            half=HALF_WIDTH,
            skins=SKINS,
            pictures=pictures,
            text=text,
            version=__version__,
            **more,
        )
    )


def _encode_figure(figure: Figure, caption: str) -> dict[str, str]:
    """A figure as data; the caption reports characters that the font lacks."""
    import io

    buffer = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", MISSING_GLYPH, UserWarning)
        figure.savefig(buffer, format="png", dpi=DPI)
    missing = [w for w in caught if re.match(MISSING_GLYPH, str(w.message))]
    for other in caught:
        if other not in missing:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if missing:
        caption += " (boxes stand for characters that the font of figures lacks)"
    data = base64.b64encode(buffer.getvalue()).decode()
    return {"caption": caption, "alt": escape(str(figure.get_label())), "data": data}


def _format_number(value: Any, form: str = ".4g", column: Sequence[Any] = ()) -> str:
    """A number as text; one far below the largest of its column is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else plain(value)
    most = max((abs(x) for x in column if isinstance(x, float)), default=0.0)
    return format(0.0 if abs(value) < DUST * most else value, form)
