"""Correct a file in place: infeasible numbers are replaced in its own text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from feasid.applications.inspection import judge
from feasid.applications.inspection.file_check import FileCheck, check_description
from feasid.core.arguments import Positive, checked, checked_methods, number
from feasid.core.display import Display, Displayed, Measure, plain
from feasid.core.errors import InputError, OutputError
from feasid.core.files import document_output, write_atomically
from feasid.robot.formats.description import Changes, Description, Link, NewInertial
from feasid.robot.formats.programs import find_program
from feasid.robot.formats.registry import format_of_text
from feasid.robot.formats.xml import XmlText, parse_xml, read_bytes
from feasid.robot.inertia import rotational_inertia

FILL_MASS = 1e-6  #: Mass [kg] given to a moving link that has none, on request.
FILL_RADIUS = 1e-3  #: Its extent [m]: square root of second moment over mass.


@dataclass(frozen=True, eq=False)
class Change:
    """One corrected link: before, after, and how far apart."""

    link: Link
    new: judge.CorrectedInertia

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        link, new = self.link, self.new
        before = {"mass": float(link.mass or 0), "moments": _inertial_floats(link)}
        after = {"mass": new.mass, "moments": list(new.moments)}
        where = {"link": link.name, "line": link.line, "before": before, "after": after}
        return {**where, "distance": new.distance, "note": new.note}


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class FileCorrection(Displayed):
    """A corrected file, not yet written."""

    before: FileCheck  #: Verdicts on the file as it was and as it will be.
    after: FileCheck  #: See `before`.
    changes: tuple[Change, ...]  #: The corrected links.
    data: bytes  #: The new file; equal to the old one when nothing had to change.

    def display(self) -> Display:
        """A short display of the correction."""
        remarks = [
            f"{c.link.path}:{c.link.line}: {c.link.name!r} by {100 * c.new.distance:.3g} %"
            for c in self.changes
        ]
        verified = Measure("physically consistent", "yes, verified", "exactly proved")
        changed = Measure("changed links", f"{len(self.changes)} of {len(self.before.links)}")
        title = f"correction of {self.before.description.path}"
        more = "more: correction.write(path), correction.changes, correction.after"
        return Display(title, [verified, changed], remarks, more=more)

    @document_output
    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the file."""
        write_atomically(os.fspath(path), self.data, overwrite=overwrite)


def correction_lines(correction: FileCorrection) -> Iterator[str]:
    """A table of the corrected links, with mass and moments before and after."""
    width = max((len(plain(c.link.name)) for c in correction.changes), default=0)
    if correction.changes:
        moments = "principal moments [kg m^2]"
        yield f"{'link':{width}}  {'':6}  {'mass':>9}  {moments:33}  change"
    for change in correction.changes:
        link, new = change.link, change.new
        tensor = rotational_inertia([*new.moments, 0, 0, 0, 0])
        size = f"{100 * new.distance:.3g} %" if new.distance < 10 else "new"
        before, after = (
            f"{mass:9.4g}  " + "  ".join(f"{x:9.3g}" for x in moments)
            for mass, moments in (
                (float(link.mass or 0), judge.principal_moments(link.moments or ())),
                (new.mass, np.linalg.eigvalsh(tensor)),
            )
        )
        yield f"{plain(link.name):{width}}  before  {before}"
        yield f"{'':{width}}  after   {after}  {size}"
        if new.note:
            yield f"{'':{width}}  {new.note}"


@checked
def correct_file(
    path: str | os.PathLike[str],
    metric: judge.Metric = "euclidean",
    margin: Annotated[float, number(0.0, 0.333, open=True)] = judge.MARGIN,
    fill: bool = False,
    total_mass: Positive | None = None,
    for_: str | None = None,
    model: str = "",
) -> FileCorrection:
    """Correct the infeasible links of a file, see `feasid.correct`; all others keep every byte.

    Parameters
    ----------
    path : path
        The file.
    metric : {"euclidean", "barrier"}
        Distance to minimise: of the entries, or with an entropy (thicker bodies).
    margin : float
        Smallest second moment of a corrected link over their sum, by default 1e-6.
    fill : bool
        Also give massless or point-like moving bodies a mass and an extent; see `FILL_MASS`.
    total_mass : float, optional
        Mass of all links, to which they are scaled in proportion [kg].
    for_ : {"gazebo", "drake", "mujoco", "isaac", "pinocchio", "bullet"}, optional
        A program that shall load the file, and what it rejects is thickened, too.
    model : str
        Which of several models of an SDF or USD file.

    Raises
    ------
    InputError
        The file cannot be read, or an infeasible link cannot be corrected in this file; names it.
    OutputError
        The new text did not pass verification.
    """
    text = parse_xml(read_bytes(path), os.fspath(path), model=model)
    form = format_of_text(text)
    description = form.read(text)
    old_check = check_description(description)
    changes: tuple[Change, ...] = ()
    # MuJoCo computes principal moments in floats and rejects A + B < C; others test the numbers.
    share, size = find_program(for_).thin if for_ else (0.0, 0.0)
    for report in old_check.links:
        link, wrong = report.link, report.verdict.status == judge.INFEASIBLE
        if report.verdict.possible and link.mass and link.moments:
            principal = judge.principal_moments(link.moments)
            wrong = principal.sum() / 2 - principal[2] < max(share * principal.sum(), size)
        if not wrong:
            continue
        # Exact arithmetic takes the decimals that are written, not the double.
        mass = link.mass or (Fraction(repr(FILL_MASS)) if fill or for_ else None)
        if not mass or link.moments is None:
            what = f"has an inertia but no mass: give it one (fill gives {FILL_MASS:g} kg)"
            where = f"{link.path}:{link.line}: link {link.name!r}"
            raise InputError(f"{where} {what}", link=link.name, line=link.line)
        changes += (Change(link, judge.closest_inertia(mass, link.moments, metric, margin)),)
    if fill or for_:
        # Mass and volume for moving links whose bodies have none.
        corrected = {c.link.name for c in changes}
        for link in (body.body.links[0] for body in old_check.weightless):
            if link.name in corrected:
                continue
            mass = link.mass if link.mass and link.mass > 0 else Fraction(repr(FILL_MASS))
            least = max(float(mass) * FILL_RADIUS**2, judge.SMALLEST)
            six = link.moments or (Fraction(0),) * 6
            new = judge.closest_inertia(mass, six, margin=margin, smallest=least)
            note = "filled: the moving body had no mass or volume"
            changes += (Change(link, replace(new, note=note)),)
    if total_mass is not None:
        changes = _scaled_links(old_check, changes, total_mass)
    data, new_check = _patched(text, form, description, changes)
    if total_mass is not None and new_check.infeasible:  # plates, whose decimals were rounded
        flat = {r.link.name for r in new_check.infeasible}
        for k, (link, old) in enumerate((c.link, c.new) for c in changes):
            if link.name in flat:
                mass, *moments = (Fraction(repr(x)) for x in (old.mass, *old.moments))
                new = judge.closest_inertia(mass, moments, metric, margin)
                new = replace(new, distance=max(new.distance, old.distance), note=old.note)
                changes = (*changes[:k], Change(link, new), *changes[k + 1 :])
        data, new_check = _patched(text, form, description, changes)
    _verify(old_check, new_check, changes)
    return FileCorrection(old_check, new_check, changes, data)


def _patched(
    text: XmlText, form: Any, description: Description, changes: Sequence[Change]
) -> tuple[bytes, FileCheck]:
    """The file's text with these changes, and the verdict on it."""
    inertials = {c.link.name: NewInertial(c.new.mass, c.new.moments) for c in changes}
    data = form.patch(description, Changes(inertials))
    return data, check_description(form.read(parse_xml(data, text.path, model=text.model)))


def _scaled_links(before: FileCheck, changes: Sequence[Change], total: float) -> tuple[Change, ...]:
    """All links with a mass, corrected ones as they will be, scaled to a total mass [kg]."""
    corrected = {c.link.name: c.new for c in changes}
    now: dict[str, judge.CorrectedInertia] = {}
    for link in before.description.links:
        if link.name in corrected:
            now[link.name] = corrected[link.name]
        elif link.mass:
            moments = (*_inertial_floats(link),)
            now[link.name] = judge.CorrectedInertia(float(link.mass), moments, 0.0)
    weight = sum(inertia.mass for inertia in now.values())
    if not weight > 0:
        raise InputError("total_mass needs a link with a mass: there is none", option="total_mass")
    factor = total / weight
    note = f"scaled by {factor:.6g} to {total:g} kg in all"
    return tuple(
        Change(
            before.description.link(name),
            replace(
                inertia,
                mass=inertia.mass * factor,
                moments=tuple(x * factor for x in inertia.moments),
                distance=max(inertia.distance, abs(factor - 1)),
                note="; ".join(filter(None, (inertia.note, note))),
            ),
        )
        for name, inertia in now.items()
    )


def _verify(before: FileCheck, after: FileCheck, changes: Sequence[Change]) -> None:
    """Check that all links are exactly consistent and nothing else changed."""
    if after.infeasible:
        names = [r.link.name for r in after.infeasible]
        raise OutputError(f"nothing was written: {names} would still be infeasible")
    changed_names = {c.link.name for c in changes}
    for old, new in zip(before.links, after.links, strict=True):
        a, b = old.link, new.link
        same = (a.name, a.mass, a.moments) == (b.name, b.mass, b.moments)
        if (a.com != b.com).any() or not (same or a.name in changed_names):
            raise OutputError(f"nothing was written: link {a.name!r} would change")


def _inertial_floats(link: Link) -> list[float]:
    return [float(x) for x in link.moments or ()]
