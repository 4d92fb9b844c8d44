"""Verdicts and causes of a whole file, as one value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from feasid.core.display import Display, Displayed, Measure
from feasid.formats.description import Description, Link
from feasid.formats.registry import read_description
from feasid.formats.terms import negative_notes
from feasid.formats.xml import LIMITS, ReadLimits, parse_xml, read_bytes
from feasid.inspection import show
from feasid.inspection.causes import Cause, causes
from feasid.inspection.judge import (
    FEASIBLE,
    INCONCLUSIVE,
    INFEASIBLE,
    SINGULAR,
    UNSTATED,
    ZERO,
    LinkGroup,
    LinkVerdict,
    group_links,
    judge_body,
    judge_link,
)
from feasid.inspection.nearest import Corrected, closest_inertia


@dataclass(frozen=True, eq=False)
class LinkReport:
    """One link: where it stands, what it is, and why it may look wrong."""

    link: Link
    verdict: LinkVerdict
    causes: tuple[Cause, ...]
    body: str
    """The moving body that it belongs to."""

    def nearest(self) -> Corrected | None:
        """The closest possible inertia of an infeasible link."""
        link = self.link
        if self.verdict.possible or not link.mass or link.moments is None:
            return None
        return closest_inertia(link.mass, link.moments)


@dataclass(frozen=True, eq=False)
class BodyReport:
    """Links that move as one, and whether they are possible together."""

    body: LinkGroup
    verdict: LinkVerdict


@dataclass(frozen=True, eq=False, repr=False)
class Report(Displayed):
    """What was found in one file.

    Attributes
    ----------
    description : Description
        The file as read.
    links : tuple of LinkReport
        Every link with its verdict and what may have caused it.
    base : BodyReport
        What is fixed to the world.
    bodies : tuple of BodyReport
        Links that move as one, together.
    """

    description: Description
    links: tuple[LinkReport, ...]
    base: BodyReport
    bodies: tuple[BodyReport, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was repaired while reading, and joint terms that no passive joint has."""
        joints = ((joint.place, joint.name, joint.terms) for joint in self.description.joints)
        return (*self.description.notes, *negative_notes(joints))

    @property
    def status(self) -> str:
        """The word "infeasible" when a link is, "inconclusive" when one is, or "feasible"."""
        found = {r.verdict.status for r in (*self.bodies, self.base)}
        found |= {r.verdict.status for r in self.links}
        found |= {INCONCLUSIVE} if self.description.hidden else set()
        return next((s for s in (INFEASIBLE, INCONCLUSIVE) if s in found), FEASIBLE)

    @property
    def feasible(self) -> bool | None:
        """Whether every link can exist; None when that could not be decided."""
        return {FEASIBLE: True, INFEASIBLE: False}.get(self.status)

    def explain(self) -> str:
        """What was found, in sentences."""
        return "\n".join(show.lines(self, verbose=True))

    def display(self) -> Display:
        """The report at a glance."""
        wrong, weightless = len(self.infeasible), len(self.weightless)
        suspect = sum(bool(r.causes) and r.verdict.possible is True for r in self.links)
        named = [f"{r.link.name!r}: {show.complaint(r)}" for r in self.infeasible]
        measures = [
            Measure("links that cannot exist", f"{wrong} of {len(self.links)}", "0", not wrong),
            Measure("moving bodies without volume", f"{weightless} of {len(self.bodies)}"),
            Measure("links that look wrong", f"{suspect} of {len(self.links)}"),
        ]
        undecided = [f"undecided: {n} needs MuJoCo's compiler" for n in self.description.hidden]
        return Display(
            f"{self.description.path}: {self.status}",
            measures,
            [*named, *undecided],
            more="more: report.explain(); the closest model that can exist: feasid.repair(path)",
        )

    @property
    def infeasible(self) -> tuple[LinkReport, ...]:
        """Links that cannot exist."""
        return tuple(r for r in self.links if r.verdict.status == INFEASIBLE)

    @property
    def weightless(self) -> tuple[BodyReport, ...]:
        """Moving bodies without mass, or without volume: valid limits that simulators refuse."""
        limits = (SINGULAR, ZERO, UNSTATED)
        return tuple(r for r in self.bodies if r.verdict.status in limits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        Returns
        -------
        dict
            "path", "format", "robot", "status", "notes", "links" and "bodies".
        """
        return {
            "path": self.description.path,
            "format": self.description.format,
            "robot": self.description.name,
            "status": self.status,
            "notes": [*self.notes, *self.description.hidden],
            "links": [_link_dict(r) for r in self.links],
            "bodies": [_body_dict(r) for r in (self.base, *self.bodies)],
        }


def inspect(path: str | os.PathLike[str], limits: ReadLimits = LIMITS) -> Report:
    """Read a description file and judge every link and moving body of it, exactly.

    Parameters
    ----------
    path : path
    limits : ReadLimits
        What the file may grow to.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        The file cannot be read: with line, link and attribute where there are.
    LimitError
        It is larger or deeper than `limits`.
    """
    text = parse_xml(read_bytes(path, limits), os.fspath(path), limits)
    return inspect_description(read_description(text, limits))


def inspect_description(description: Description) -> Report:
    """Judge every link and moving body of a description exactly, and look for causes."""
    verdicts = {link.name: judge_link(link) for link in description.links}
    hints = causes(description, verdicts)
    base, moving = group_links(description)
    bodies = [_body_report(body, verdicts) for body in (base, *moving)]
    owner = {link.name: r.body.name for r in bodies for link in r.body.links}
    links = tuple(
        LinkReport(
            link, verdicts[link.name], tuple(hints.get(link.name, ())), owner.get(link.name, "")
        )
        for link in description.links
    )
    return Report(description, links, bodies[0], tuple(bodies[1:]))


def _body_report(body: LinkGroup, verdicts: dict[str, LinkVerdict]) -> BodyReport:
    known = [verdicts.get(link.name, LinkVerdict(UNSTATED)) for link in body.links]
    return BodyReport(body, judge_body(body, known))


def _link_dict(report: LinkReport) -> dict[str, Any]:
    link, verdict = report.link, report.verdict
    out: dict[str, Any] = {
        "name": link.name,
        "body": report.body,
        "path": link.path,
        "line": link.line,
        "status": verdict.status,
    }
    if verdict.code:
        out["code"] = verdict.code
    if not verdict.possible:
        out["column"] = link.column
        out["violation"] = verdict.violation
        nearest = report.nearest()
        if nearest is not None:
            out["nearest"] = {"mass": nearest.mass, "moments": list(nearest.moments)}
            out["nearest"]["distance"] = nearest.distance
    if link.mass is not None and link.moments is not None:
        out["mass"] = float(link.mass)
        out["com"] = [float(x) for x in link.com]
        out["moments"] = [float(x) for x in link.moments]
    if report.causes:
        out["causes"] = [_cause_dict(c) for c in report.causes]
    return out


def _cause_dict(cause: Cause) -> dict[str, Any]:
    return {"code": cause.code, "message": cause.message, "evidence": dict(cause.evidence)}


def _body_dict(report: BodyReport) -> dict[str, Any]:
    return {
        "name": report.body.name,
        "joint": report.body.joint,
        "links": [link.name for link in report.body.links],
        "status": report.verdict.status,
    }


def worst(statuses: Sequence[str]) -> str:
    """The status of several files together."""
    return next((s for s in (INFEASIBLE, INCONCLUSIVE) if s in statuses), FEASIBLE)
