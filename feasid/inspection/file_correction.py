"""Correct a file in place: infeasible numbers are replaced in its own text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from feasid.core.arguments import checked_methods
from feasid.core.display import Display, Displayed, Measure
from feasid.core.files import write_atomically
from feasid.errors import InputError, OutputError
from feasid.formats.description import Changes, Link, NewInertial
from feasid.formats.registry import format_of_text
from feasid.formats.xml import LIMITS, ReadLimits, parse_xml, read_bytes
from feasid.inspection.file_check import FileCheck, LinkReport, check_description
from feasid.inspection.judge import (
    MARGIN,
    SMALLEST,
    CorrectedInertia,
    check_distance,
    closest_inertia,
)

FILL_MASS = 1e-6
"""Mass [kg] given to a moving link that has none, when asked."""

FILL_RADIUS = 1e-3
"""Its extent [m]: square root of second moment over mass."""


@dataclass(frozen=True, eq=False)
class Change:
    """One corrected link: before, after, and how far apart."""

    link: Link
    new: CorrectedInertia

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        link, new = self.link, self.new
        return {
            "link": link.name,
            "line": link.line,
            "before": {"mass": float(link.mass or 0), "moments": _inertial_floats(link)},
            "after": {"mass": new.mass, "moments": list(new.moments)},
            "distance": new.distance,
            "note": new.note,
        }


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class FileCorrection(Displayed):
    """A corrected file, not yet written."""

    before: FileCheck  #: Verdicts on the file as it was and as it will be.
    after: FileCheck  #: See `before`.
    changes: tuple[Change, ...]  #: The corrected links.
    data: bytes  #: The new file; equal to the old one when nothing had to change.

    def display(self) -> Display:
        """The correction at a glance."""
        remarks = [
            f"{c.link.path}:{c.link.line}: {c.link.name!r} by {100 * c.new.distance:.3g} %"
            for c in self.changes
        ]
        return Display(
            f"correction of {self.before.description.path}",
            [
                Measure("physically consistent", "yes, verified", "exactly proved"),
                Measure("changed links", f"{len(self.changes)} of {len(self.before.links)}"),
            ],
            remarks,
            more="more: correction.write(path), correction.changes, correction.after",
        )

    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the file aside, then rename it into place.

        Parameters
        ----------
        path : path
        overwrite : bool
            Whether a file that exists is replaced.

        Raises
        ------
        OutputError
            `path` exists and `overwrite` is False, or cannot be written; nothing is lost.
        """
        write_atomically(os.fspath(path), self.data, overwrite=overwrite)


def correct_file(
    path: str | os.PathLike[str],
    metric: str = "euclidean",
    margin: float = MARGIN,
    fill: bool = False,
    limits: ReadLimits = LIMITS,
) -> FileCorrection:
    """Correct the links of a file that cannot exist; all others keep every byte.

    `metric`: {"euclidean", "barrier"}, what "closest" means; see `feasid.inspection.judge`;
    `margin`: smallest second moment over their sum in a corrected link; `fill`: also give moving
    bodies without mass or volume a little of both (`FILL_MASS`, `FILL_RADIUS`): they are valid
    limits, but simulators refuse them. Raises InputError: the file cannot be read, or an infeasible
    link cannot be corrected in this file; names it. Raises OutputError: the new text did not pass
    verification.
    """
    check_distance(metric, margin)
    text = parse_xml(read_bytes(path, limits), os.fspath(path), limits)
    form = format_of_text(text)
    description = form.read(text, limits)
    before = check_description(description)
    changes = tuple(Change(r.link, _correct_link(r, metric, margin)) for r in before.infeasible)
    if fill:
        changes += tuple(_fill_weightless(before, margin, {c.link.name for c in changes}))
    inertials = {c.link.name: NewInertial(c.new.mass, c.new.moments) for c in changes}
    data = form.patch(description, Changes(inertials))
    after = check_description(form.read(parse_xml(data, text.path, limits), limits))
    _verify(before, after, changes)
    return FileCorrection(before, after, changes, data)


def _correct_link(report: LinkReport, metric: str, margin: float) -> CorrectedInertia:
    link = report.link
    if not link.mass or link.moments is None:
        raise InputError(
            f"{link.path}:{link.line}: link {link.name!r} has an inertia but no mass: give it one",
            link=link.name,
            line=link.line,
        )
    return closest_inertia(link.mass, link.moments, metric, margin)


def _fill_weightless(before: FileCheck, margin: float, done: set[str]) -> Iterator[Change]:
    """Mass and volume for moving links whose bodies have none."""
    for report in before.weightless:
        link = report.body.links[0]
        if link.name in done:
            continue
        note = "filled: the moving body had no mass or volume"
        mass = link.mass if link.mass and link.mass > 0 else Fraction(repr(FILL_MASS))
        moments = link.moments or (Fraction(0),) * 6
        least = max(float(mass) * FILL_RADIUS**2, SMALLEST)
        yield Change(
            link, replace(closest_inertia(mass, moments, margin=margin, smallest=least), note=note)
        )


def _verify(before: FileCheck, after: FileCheck, changes: Sequence[Change]) -> None:
    """Exactly possible everywhere, and nothing else changed."""
    if after.infeasible:
        names = [r.link.name for r in after.infeasible]
        raise OutputError(f"nothing was written: {names} would still be infeasible")
    touched = {c.link.name for c in changes}
    for old, new in zip(before.links, after.links, strict=True):
        a, b = old.link, new.link
        kept = (a.name, a.mass, a.moments) == (b.name, b.mass, b.moments)
        if (a.com != b.com).any() or not (kept or a.name in touched):
            raise OutputError(f"nothing was written: link {a.name!r} would change")


def _inertial_floats(link: Link) -> list[float]:
    return [float(x) for x in link.moments or ()]
