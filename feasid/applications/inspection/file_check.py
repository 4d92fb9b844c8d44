"""Verdicts and causes of a whole file, as one value."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from feasid.applications.inspection import judge
from feasid.applications.inspection.causes import Cause, causes
from feasid.core.arguments import checked_methods
from feasid.core.display import Display, Displayed, Measure, plain
from feasid.core.errors import FeasidError
from feasid.robot.description import Robot
from feasid.robot.formats.description import Description, Link
from feasid.robot.formats.load import load_robot
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.terms import EFFECTS, negative_notes
from feasid.robot.formats.xml import parse_xml, read_bytes


@dataclass(frozen=True, eq=False)
class LinkReport:
    """One link: its place in the file, its inertial, and possible causes."""

    link: Link
    verdict: judge.LinkVerdict
    causes: tuple[Cause, ...]
    body: str
    """The moving body to which the link belongs."""

    def closest_possible_inertia(self) -> judge.CorrectedInertia | None:
        """The closest possible inertia of an infeasible link that states a mass."""
        link = self.link
        if self.verdict.possible or not link.mass or link.moments is None:
            return None
        return judge.closest_inertia(link.mass, link.moments)


@dataclass(frozen=True, eq=False)
class BodyReport:
    """Links that move as one body, and the verdict on their sum."""

    body: judge.LinkGroup
    verdict: judge.LinkVerdict


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class FileCheck(Displayed):
    """Verdicts on one file."""

    description: Description  #: The file as read.
    links: tuple[LinkReport, ...]  #: Every link with its verdict and what may have caused it.
    base: BodyReport  #: Links fixed to the world.
    bodies: tuple[BodyReport, ...]  #: Links that move as one, together.

    @property
    def notes(self) -> tuple[str, ...]:
        """Corrections made while reading, and negative joint terms."""
        joints = ((joint.place, joint.name, joint.terms) for joint in self.description.joints)
        return (*self.description.all_notes, *negative_notes(joints))

    @property
    def status(self) -> str:
        """Status of the worst link: "infeasible", "inconclusive", "boundary" or "feasible".

        "boundary": a moving body has mass and no volume, as `check` says of a robot.
        """
        statuses = {r.verdict.status for r in (*self.bodies, self.base)}
        statuses |= {r.verdict.status for r in self.links}
        statuses |= {judge.INCONCLUSIVE} if self.description.hidden else set()
        order = [judge.INFEASIBLE, judge.INCONCLUSIVE]
        order += [judge.SINGULAR] * any(r.verdict.status == judge.SINGULAR for r in self.bodies)
        return next((s for s in order if s in statuses), judge.FEASIBLE)

    @property
    def feasible(self) -> bool | None:
        """Whether every link is physically consistent; None if this is undecided."""
        return None if self.status == judge.INCONCLUSIVE else self.status == judge.FEASIBLE

    def explain(self) -> str:
        """Verdicts and causes, in sentences."""
        return "\n".join(report_lines(self, verbose=True))

    def display(self) -> Display:
        """A short display of the verdicts."""
        wrong, weightless = len(self.infeasible), len(self.weightless)
        suspect = sum(bool(r.causes) and r.verdict.possible is True for r in self.links)
        named = [f"{r.link.name!r}: {describe_infeasible(r)}" for r in self.infeasible]
        measures = [
            Measure("infeasible links", f"{wrong} of {len(self.links)}", "0", not wrong),
            Measure("moving bodies without volume", f"{weightless} of {len(self.bodies)}"),
            Measure("links that look wrong", f"{suspect} of {len(self.links)}"),
        ]
        undecided = [f"undecided: {n} needs MuJoCo's compiler" for n in self.description.hidden]
        more = "more: check.explain(); the closest feasible model: feasid.correct(path)"
        title = f"{self.description.path}: {self.status}"
        return Display(title, measures, [*named, *undecided], more=more)

    @property
    def infeasible(self) -> tuple[LinkReport, ...]:
        """Links that are not physically consistent."""
        return tuple(r for r in self.links if r.verdict.status == judge.INFEASIBLE)

    @property
    def weightless(self) -> tuple[BodyReport, ...]:
        """Moving bodies without mass or volume: limiting cases that simulators reject."""
        limits = (judge.SINGULAR, judge.ZERO, judge.UNSTATED)
        return tuple(r for r in self.bodies if r.verdict.status in limits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        Returns
        -------
        dict
            "path", "format", "robot", "status", "notes", "links" and "bodies".
        """
        links = []
        for report in self.links:
            link, verdict = report.link, report.verdict
            out: dict[str, Any] = {"name": link.name, "body": report.body, "path": link.path}
            out |= {"line": link.line, "status": verdict.status}
            if verdict.code:
                out["code"] = verdict.code
            if not verdict.possible:
                out["column"] = link.column
                out["violation"] = verdict.violation
                nearest = report.closest_possible_inertia()
                if nearest is not None:
                    out["nearest"] = {"mass": nearest.mass, "moments": list(nearest.moments)}
                    out["nearest"]["distance"] = nearest.distance
            if link.mass is not None and link.moments is not None:
                out["mass"] = float(link.mass)
                out["com"] = [float(x) for x in link.com]
                out["moments"] = [float(x) for x in link.moments]
            if report.causes:
                out["causes"] = [vars(cause) for cause in report.causes]
            links.append(out)
        return {
            "path": self.description.path,
            "format": self.description.format,
            "robot": self.description.name,
            "status": self.status,
            "notes": [*self.notes, *self.description.hidden],
            "links": links,
            "bodies": [
                {
                    "name": part.body.name,
                    "joint": part.body.joint,
                    "links": [link.name for link in part.body.links],
                    "status": part.verdict.status,
                }
                for part in (self.base, *self.bodies)
            ],
        }


def check_file(path: str | os.PathLike[str], model: str = "") -> FileCheck:
    """Read a description file and judge every link and moving body of it, exactly.

    `model`: which of several models of an SDF or USD file.

    Raises InputError: the file cannot be read. Raises LimitError: it is too large.
    """
    text = parse_xml(read_bytes(path), os.fspath(path), model=model)
    return check_description(read_description(text))


def check_description(description: Description) -> FileCheck:
    """Judge every link and moving body of a description exactly, and look for causes."""
    verdicts = {link.name: judge.judge_link(link) for link in description.links}
    hints = causes(description, verdicts)
    base, moving = judge.group_links(description)
    bodies = []
    for body in (base, *moving):
        known = [verdicts.get(link.name, judge.LinkVerdict(judge.UNSTATED)) for link in body.links]
        bodies.append(BodyReport(body, judge.judge_body(body, known)))
    owner = {link.name: r.body.name for r in bodies for link in r.body.links}
    links = tuple(
        LinkReport(x, verdicts[x.name], tuple(hints.get(x.name, ())), owner.get(x.name, ""))
        for x in description.links
    )
    return FileCheck(description, links, bodies[0], tuple(bodies[1:]))


# -- as text, SARIF and annotations of GitHub ---------------------------------------------------

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
    "decimal": "One number seems to be off by a power of ten",
    "sign": "A sign seems to be wrong",
    "axes": "The moments seem to be those of other axes",
    "asymmetric": "Numbers below the diagonal contradict those above",
    "mass-unit": "The mass seems to be in another unit",
    "placeholder": "The inertia looks like a placeholder",
    "residue": "The inertia is rounding residue",
    "massless": "A link has inertia and no mass",
    "density": "The density is implausible for the collision shapes or the inertia",
    "com-outside": "The centre of mass is outside the collision shapes",
    "inertia-unit": "The moments of inertia seem to be in another unit",
    "twin": "The mirrored link differs",
    "copied": "Mass and inertia are copied between different links",
}


def headline(report: FileCheck) -> str:
    """One line per file."""
    links, bodies = len(report.links), len(report.bodies)
    wrong = len(report.infeasible)
    moving_count = sum(r.verdict.status == judge.INFEASIBLE for r in report.bodies)
    if report.status == judge.INFEASIBLE:
        text = f"{wrong} of {links} links are infeasible, {moving_count} of {bodies} moving bodies"
    else:
        text = f"{links} links in {bodies} moving bodies"
    return f"{report.description.path}: {report.status} ({text})"


def report_lines(report: FileCheck, verbose: bool = False) -> Iterator[str]:
    """The report for people; warnings are summed up unless `verbose`."""
    yield headline(report)
    for entry in report.infeasible:
        link = entry.link
        yield f"  {link.path}:{link.line}: link {link.name!r}: {describe_infeasible(entry)}"
        if link.mass is not None and link.moments is not None:
            moments = ", ".join(f"{x:.4g}" for x in judge.principal_moments(link.moments))
            yield f"      mass {float(link.mass):g} kg, principal moments {moments} kg m^2"
        for cause in entry.causes:
            yield f"      {cause.code}: {cause.message}"
        nearest = entry.closest_possible_inertia()
        # A change of many times its size, or of a negative mass, says nothing of the mistake.
        if nearest is not None and nearest.distance < 10 and entry.verdict.code != "mass-negative":
            change = f"{100 * nearest.distance:.3g} %"
            yield f"      the closest physically consistent inertia differs by {change}"
        body = next((b for b in (report.base, *report.bodies) if b.body.name == entry.body), None)
        other_count = 0 if body is None else sum(link.line > 0 for link in body.body.links) - 1
        if body is not None and other_count > 0:
            state = "is possible" if body.verdict.possible else "is impossible too"
            others = f"{other_count} other link{'s' if other_count > 1 else ''}"
            kind = "stands fixed" if body.body.joint is None else "moves"
            yield f"      it {kind} with {others} as {entry.body!r}, which {state}"
    if report.infeasible:
        yield f"  corrected by: {correction_command(report)}"
    for body in report.bodies:
        if body.verdict.status == judge.INCONCLUSIVE:
            yield f"  body {body.body.name!r}: undecided, closer to singular than 40 digits"
    for status, text in _LIMITS.items():
        names = [r.body.name for r in report.weightless if r.verdict.status == status]
        if names:
            yield f"  warning: moving bodies {text}: {_join_first(names)} [weightless]"
    groups: dict[str, list[tuple[LinkReport, Cause]]] = {}
    for link_report in report.links:
        for cause in link_report.causes if link_report.verdict.possible else ():
            groups.setdefault(cause.code, []).append((link_report, cause))
    for code, group in groups.items():
        if verbose or len(group) == 1:
            for link_report, cause in group:
                link = link_report.link
                place = f"{link.path}:{link.line}"
                yield f"  warning: {place}: link {link.name!r}: {cause.message} [{code}]"
        else:
            link_names = _join_first([link_report.link.name for link_report, _ in group])
            yield f"  warning: {RULES[code].lower()} in {len(group)} links: {link_names} [{code}]"
            yield f"      {group[0][0].link.name!r}: {group[0][1].message}"
    bare = sum(bool(r.link.mass) and not r.link.shapes for r in report.links)
    unseen = "links have no primitive shapes: the distances between joints alone showed their size"
    yield from [f"  note: {bare} {unseen} (meshes are not opened)"] if bare else ()
    for note in report.description.hidden:
        yield f"  undecided: {note} needs MuJoCo's compiler"
    for note in report.notes:
        yield f"  note: {note}"


def describe_lost_freedom(report: FileCheck) -> str:
    """Freedom or bodies that the robot lacks; empty if no robot can be built from the file.

    A robot is only built if joints are tied, a moving body has no mass, or another file may add
    something.
    """
    path = report.description.path
    weighed = all(any(link.mass for link in group.body.links) for group in report.bodies)
    if weighed and not report.description.bonds and not glob.glob(f"{glob.escape(path)}.*.json"):
        return ""
    try:
        return load_bodies(path).constraint_summary
    except FeasidError:
        return ""


def load_bodies(path: str) -> Robot:
    """The robot of a file, whatever acts on its joints."""
    return load_robot(path, ignore=EFFECTS)


def correction_command(report: FileCheck) -> str:
    """The command that writes the closest possible model."""
    path = PurePath(report.description.path)
    new = plain(f"{path.stem}_corrected{path.suffix}")
    return f"feasid correct {shlex.join([plain(str(path)), '--out', new])}"


def describe_infeasible(found: LinkReport) -> str:
    """Violation of an infeasible link, in words."""
    percent = f"{100 * found.verdict.violation:.3g} %"
    return {
        "mass-negative": "negative mass",
        "massless": "inertia without mass, which no mass distribution has",
        "inertia-negative": f"negative principal moment ({percent} of the largest)",
        "triangle": f"triangle inequality violated by {percent} of the largest moment",
    }[found.verdict.code] + f" [{found.verdict.code}]"


_LIMITS = {
    judge.SINGULAR: "without volume (rod, disc or point mass)",
    judge.ZERO: "with zero mass and inertia",
    judge.UNSTATED: "without any inertia",
}


def _join_first(names: Sequence[str], count: int = 4) -> str:
    shown = ", ".join(map(repr, names[:count]))
    return shown + (f" and {len(names) - count} more" if len(names) > count else "")


Finding = tuple[str, str, str, int, int, str]
"""Level, rule, path, line, column, message."""


def findings(report: FileCheck | FeasidError, path: str = "") -> Iterator[Finding]:
    """All findings, one entry each; of a file that cannot be read, the error."""
    if isinstance(report, FeasidError):
        line, column = report.data.get("line", 1), report.data.get("column", 1)
        yield "error", "error", report.data.get("path", path), line, column, str(report)
        return
    for link_report in report.links:
        link = link_report.link
        place = (link.path, link.line, link.column)
        if not link_report.verdict.possible:
            message = f"link {link.name!r}: {describe_infeasible(link_report)}"
            message = "; ".join([message, *(c.message for c in link_report.causes)])
            yield ("error", link_report.verdict.code, *place, message)
        else:
            for cause in link_report.causes:
                yield ("warning", cause.code, *place, f"link {link.name!r}: {cause.message}")
    for body in report.weightless:
        link = body.body.links[0]
        message = f"moving body {link.name!r} {_LIMITS[body.verdict.status]}"
        yield ("warning", "weightless", link.path, link.line, link.column, message)


def github_commands(found: Iterable[Finding]) -> Iterator[str]:
    """Workflow commands that GitHub shows at the lines concerned."""
    for level, rule, path, line, column, message in found:
        place = f"file={_escape(path, True)},line={line},col={column},title=feasid {rule}"
        yield f"::{level} {place}::{_escape(message)}"


def _escape(text: str, is_property: bool = False) -> str:
    # The percent sign comes first: the codes of the others have one.
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    for old, new in pairs + ([(":", "%3A"), (",", "%2C")] if is_property else []):
        text = text.replace(old, new)
    return text


def sarif_log(found: Iterable[Finding], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log, for code scanning."""
    results = []
    for level, rule, path, line, column, message in found:
        uri, region = quote(PurePath(path).as_posix()), {"startLine": line, "startColumn": column}
        place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
        result = {"ruleId": rule, "level": level, "message": {"text": message}}
        results.append({**result, "locations": [place]})
    rules = [{"id": k, "shortDescription": {"text": v}} for k, v in RULES.items()]
    driver = {"name": "feasid", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
