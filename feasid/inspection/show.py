"""Reports as text: for the terminal, for GitHub annotations and as SARIF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from feasid.core.text import escape_controls
from feasid.errors import FeasidError
from feasid.inspection.causes import Cause
from feasid.inspection.judge import (
    INCONCLUSIVE,
    INFEASIBLE,
    SINGULAR,
    UNSTATED,
    ZERO,
    principal_moments,
)

if TYPE_CHECKING:
    from feasid.inspection.report import LinkReport, Report

RULES = {
    "mass-negative": "The mass is negative",
    "inertia-negative": "A principal moment of inertia is negative",
    "triangle": "The largest principal moment exceeds the sum of the others",
    "error": "The file cannot be read",
    "weightless": "A moving body has no mass or no volume",
    "frame": "The inertia seems to be given about another frame",
    "product-sign": "The products of inertia seem to have the wrong sign",
    "misplaced": "A product of inertia repeats a moment",
    "order": "The six moments seem to be listed in another order",
    "placeholder": "The inertia looks like a placeholder",
    "residue": "The inertia is rounding residue",
    "massless": "Inertia without mass",
    "density": "The density is implausible for the collision shapes",
    "com-outside": "The centre of mass is outside the collision shapes",
    "inertia-unit": "The inertia is too large for the collision shapes",
    "twin": "The mirrored link differs",
    "mirror-sign": "Mirrored links disagree in the signs of products of inertia",
    "copied": "Mass and inertia are copied between different links",
}


def plain(text: str) -> str:
    """Text from a file for a table, on one line."""
    return escape_controls(text, keep="")


def headline(report: Report) -> str:
    """One line per file."""
    links, bodies = len(report.links), len(report.bodies)
    wrong = len(report.infeasible)
    moving = sum(r.verdict.status == INFEASIBLE for r in report.bodies)
    if report.status == INFEASIBLE:
        text = f"{wrong} of {links} links cannot exist, {moving} of {bodies} moving bodies"
    else:
        text = f"{links} links in {bodies} moving bodies"
    return f"{report.description.path}: {report.status} ({text})"


def lines(report: Report, verbose: bool = False) -> Iterator[str]:
    """The report for people; warnings are summed up unless `verbose`."""
    yield headline(report)
    for found in report.infeasible:
        yield from _infeasible(report, found)
    for body in report.bodies:
        if body.verdict.status == INCONCLUSIVE:
            yield f"  body {body.body.name!r}: undecided, closer to singular than 40 digits"
    if report.weightless:
        yield from _weightless(report)
    yield from _warnings(report, verbose)
    for note in report.description.hidden:
        yield f"  undecided: {note} needs MuJoCo's compiler"
    for note in report.notes:
        yield f"  note: {note}"


def _infeasible(report: Report, found: LinkReport) -> Iterator[str]:
    link = found.link
    yield f"  {link.path}:{link.line}: link {link.name!r}: {complaint(found)}"
    if link.mass is not None and link.moments is not None:
        moments = ", ".join(f"{x:.4g}" for x in principal_moments(link.moments))
        yield f"      mass {float(link.mass):g} kg, principal moments {moments} kg m^2"
    for cause in found.causes:
        yield f"      {cause.code}: {cause.message}"
    nearest = found.nearest()
    if nearest is not None and nearest.distance < 10:
        change = f"{100 * nearest.distance:.3g} %"
        yield f"      the closest possible inertia differs by {change} (feasid correct)"
    yield from _as_body(report, found)


def _as_body(report: Report, found: LinkReport) -> Iterator[str]:
    body = next((b for b in (report.base, *report.bodies) if b.body.name == found.body), None)
    if body is None or sum(link.line > 0 for link in body.body.links) <= 1:
        return
    state = {True: "is possible", False: "is impossible too"}[body.verdict.possible]
    others = sum(link.line > 0 for link in body.body.links) - 1
    kind = "stands fixed" if body.body.joint is None else "moves"
    plural = "s" if others > 1 else ""
    yield f"      it {kind} with {others} other link{plural} as {found.body!r}, which {state}"


def complaint(found: LinkReport) -> str:
    """What is wrong with an infeasible link."""
    percent = f"{100 * found.verdict.violation:.3g} %"
    return {
        "mass-negative": "negative mass",
        "inertia-negative": f"negative principal moment ({percent} of the largest)",
        "triangle": f"triangle inequality violated by {percent} of the largest moment",
    }[found.verdict.code] + f" [{found.verdict.code}]"


_LIMITS = {
    SINGULAR: "without volume (rod, disc or point mass)",
    ZERO: "with zero mass and inertia",
    UNSTATED: "without any inertia",
}


def _weightless(report: Report) -> Iterator[str]:
    for status, text in _LIMITS.items():
        names = [r.body.name for r in report.weightless if r.verdict.status == status]
        if names:
            yield f"  warning: moving bodies {text}: {_some(names)} [weightless]"


def _warnings(report: Report, verbose: bool) -> Iterator[str]:
    groups: dict[str, list[tuple[LinkReport, Cause]]] = {}
    for found in report.links:
        for cause in found.causes if found.verdict.possible else ():
            groups.setdefault(cause.code, []).append((found, cause))
    for code, group in groups.items():
        if verbose or len(group) == 1:
            for found, cause in group:
                place = f"{found.link.path}:{found.link.line}"
                yield f"  warning: {place}: link {found.link.name!r}: {cause.message} [{code}]"
        else:
            names = _some([found.link.name for found, _ in group])
            yield f"  warning: {RULES[code].lower()} in {len(group)} links: {names} [{code}]"


def _some(names: Sequence[str], count: int = 4) -> str:
    shown = ", ".join(map(repr, names[:count]))
    return shown + (f" and {len(names) - count} more" if len(names) > count else "")


# -- annotations ----------------------------------------------------------------------------------

Finding = tuple[str, str, str, int, int, str]
"""Level, rule, path, line, column, message."""


def findings(report: Report) -> Iterator[Finding]:
    """Everything that was found, one entry each."""
    for found in report.links:
        link = found.link
        place = (link.path, link.line, link.column)
        if not found.verdict.possible:
            hints = "; ".join(c.message for c in found.causes)
            message = f"link {link.name!r}: {complaint(found)}" + (f"; {hints}" if hints else "")
            yield ("error", found.verdict.code, *place, message)
        else:
            for cause in found.causes:
                yield ("warning", cause.code, *place, f"link {link.name!r}: {cause.message}")
    for body in report.weightless:
        link = body.body.links[0]
        message = f"moving body {link.name!r} {_LIMITS[body.verdict.status]}"
        yield ("warning", "weightless", link.path, link.line, link.column, message)


def of_error(error: FeasidError, path: str) -> Finding:
    """A file that cannot be read, as a finding."""
    line, column = error.data.get("line", 1), error.data.get("column", 1)
    return "error", "error", error.data.get("path", path), line, column, str(error)


def github(found: Iterable[Finding]) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the lines."""
    for level, rule, path, line, column, message in found:
        place = f"file={_escape(path, True)},line={line},col={column},title=feasid {rule}"
        yield f"::{level} {place}::{_escape(message)}"


def _escape(text: str, is_property: bool = False) -> str:
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    for old, new in pairs + ([(":", "%3A"), (",", "%2C")] if is_property else []):
        text = text.replace(old, new)
    return text


def sarif(found: Iterable[Finding], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log, for code scanning."""
    results = [
        {
            "ruleId": rule,
            "level": level,
            "message": {"text": message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(PurePath(path).as_posix())},
                        "region": {"startLine": line, "startColumn": column},
                    }
                }
            ],
        }
        for level, rule, path, line, column, message in found
    ]
    rules = [{"id": k, "shortDescription": {"text": v}} for k, v in RULES.items()]
    driver = {"name": "feasid", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
