"""Pages of HTML that need nothing else. Needs the extra "report".

Everything that comes from outside passes the template's escaping; the page's own script is named by
its hash, so that a browser runs no other.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from feasid import __version__
from feasid.core.charts import PALETTE, STYLE
from feasid.core.display import plain
from feasid.core.errors import missing_extra
from feasid.results.report.robots import HALF_WIDTH, robot_drawings
from feasid.robot.joint_terms import TERMS

DUST = 1e-6  #: Share of a column's largest number below which another is a zero that a solver left.


def page_environment() -> Any:
    """The environment of Jinja in which pages are rendered."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("writing a report", "jinja2", "report") from error
    loader = FunctionLoader(_read_page_file)
    made = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    made.filters |= {
        "number": format_number,
        "percent": lambda x: "" if x is None else f"{100 * float(x):.3g} %",
        "said": plain,
        "term": lambda k: f"{k} {TERMS[k].formula} ({TERMS[k].name})" if k in TERMS else plain(k),
    }
    return made


def _read_page_file(name: str) -> str:
    """Text of one of the page's files, which are in the folder of this module."""
    return files("feasid.results.report").joinpath("templates", name).read_text(encoding="utf-8")


def render_page(environment: Any, template: str, **values: Any) -> bytes:
    """A page with these values, and the style, script and robots that all pages have."""
    from markupsafe import Markup

    script = _read_page_file("page.js")
    page = environment.get_template(template).render(
        style=Markup(_read_page_file("page.css") + STYLE),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        robot_drawings=robot_drawings,
        half=HALF_WIDTH,
        skins=PALETTE,
        version=__version__,
        **values,
    )
    return str(page).encode()


def format_number(value: Any, form: str = ".4g", column: Sequence[Any] = ()) -> str:
    """A number as text; one far below the largest of its column is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else plain(value)
    most = max((abs(x) for x in column if isinstance(x, float)), default=0.0)
    return format(0.0 if abs(value) < DUST * most else value, form)
