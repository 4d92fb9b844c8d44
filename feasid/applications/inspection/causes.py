"""Why a link looks wrong: the mistakes that people make, each named with its evidence.

These are hints in floating point; the exact verdicts are those of
`feasid.applications.inspection.judge`. A hint is given only with numbers that speak for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from feasid.applications.inspection.judge import FEASIBLE, INFEASIBLE, LinkVerdict
from feasid.applications.inspection.readings import (
    BETTER,
    WORSE,
    Reading,
    Surroundings,
    ellipsoid_density,
    likeness,
    readings,
    scores,
)
from feasid.core.arrays import Array
from feasid.core.exact.poses import is_possible_inertia
from feasid.core.text import quote
from feasid.robot.formats.description import MOMENTS, Description, Link, NamedElements
from feasid.robot.formats.shapes import bounding_box

DENSITIES = 50.0, 25_000.0  #: Plausible densities of a link [kg/m^3]: hollow shells to tungsten.
RESIDUE = 1e-12  #: Moments below this times the mass (1 um of gyration) are what rounding left.
BESIDE = 0.02  #: Distance of the centre of mass from the shapes' box, over its diagonal.
TOO_WIDE = 1.5  #: Radius of gyration over the farthest point of the shapes that raises a hint.
# Distance of the centre of mass from the joints of its link over the longest offset between joints
# of the robot; the largest of 60 published robots is 1.5.
FAR = 2.0


@dataclass(frozen=True)
class Cause:
    """A probable mistake in one link."""

    code: str
    message: str
    evidence: Mapping[str, float | str | Sequence[float]] = field(default_factory=dict)


def causes(description: Description, verdicts: Mapping[str, LinkVerdict]) -> dict[str, list[Cause]]:
    """Probable mistakes per link name, the most probable first; links without any are absent."""
    # Links that share mass and inertia to the last digit although their shapes differ.
    groups: dict[tuple[Fraction | int, ...], list[Link]] = {}
    for link in description.links:
        if link.mass and link.moments and any(link.moments):
            groups.setdefault((link.mass, *link.moments), []).append(link)
    copies = {}
    for group in groups.values():
        # Volumes of equal shapes differ by rounding.
        sizes = {round(sum(s.volume for s in link.shapes), 12) for link in group if link.shapes}
        few = [link.name for link in group[:_FEW]]
        for link in group if len(group) >= _MANY and len(sizes) > 1 else ():
            others = ", ".join([n for n in few if n != link.name][: _FEW - 1])
            others += ", ..." if len(group) > _FEW else ""
            count, text = len(group), "mass and inertia equal those of"
            text = f"{text} {count - 1} other links ({others}), whose shapes differ: copied?"
            copies[link.name] = Cause("copied", text, {"count": count, "links": ", ".join(few)})
    places: dict[str, list[Array]] = {link.name: [] for link in description.links}
    for link in description.links:
        if link.parent in places and link.joints:
            places[link.parent].append(link.home.position)
    longest = max((float(np.linalg.norm(x)) for part in places.values() for x in part), default=0.0)
    causes_by_link: dict[str, list[Cause]] = {}
    for link in description.links:
        mass, moments = link.mass, link.moments
        if mass is None or moments is None:
            continue
        twin = description.by_name.get(twin_name(link.name, description.by_name) or "")
        usable = twin is not None and twin.mass and twin.mass > 0 and twin.moments
        around = Surroundings(longest, link, places[link.name], twin if usable else None)
        hints = [*_contradicting_triangle(description, link)]
        hints += _causes_in_numbers(mass, moments, verdicts[link.name])
        if mass > 0:
            silent = any(c.code in ("placeholder", "residue") for c in hints)
            named = [*_causes_by_reading(around, verdicts, silent)]
            hints += [*named, *_causes_in_geometry(around, named, silent)]
            hints += _causes_by_twin(around, verdicts, named)
        if link.name in copies:
            hints.append(copies[link.name])
        if hints:
            causes_by_link[link.name] = hints
    return causes_by_link


# -- the numbers themselves -----------------------------------------------------------------------


def _causes_in_numbers(
    mass: Fraction, moments: Sequence[Fraction], verdict: LinkVerdict
) -> Iterator[Cause]:
    xx, xy, xz, yy, yz, zz = moments
    size, peak, text = float(xx), float(max(map(abs, moments))), ""
    if len(set(moments)) == 1 and xx:
        text = f"all six moments are {size:g}: a placeholder? Products of inertia are usually zero"
    # Nobody measures a power of ten about all axes.
    elif xx == yy == zz > 0 and not (xy or xz or yz) and f"{size:e}".startswith("1.000000e"):
        text = f"the inertia is {size:g} times the identity: a placeholder?"
    if text:
        yield Cause("placeholder", text, {"moment": size})
    if mass > 0 and 0 < peak < RESIDUE * float(mass):
        text = f"the largest moment is {peak:.1g} kg m^2 for {float(mass):g} kg: rounding residue"
        yield Cause("residue", f"{text} of a zero inertia", {"moment": peak})
    elif verdict.code == "mass-negative" and is_possible_inertia(-mass, moments):
        yield Cause("sign", "with the sign of the mass turned the link is possible")


def _contradicting_triangle(description: Description, link: Link) -> Iterator[Cause]:
    """Numbers below the diagonal, which formats with six moments do not read."""
    document = description.document
    inertial = document.links[link.name] if isinstance(document, NamedElements) else None
    for element in inertial.walk() if inertial is not None else ():
        for name in ("ixy", "ixz", "iyz") if element.tag == "inertia" else ():
            mirrored = f"i{name[2]}{name[1]}"
            below = element.attributes.get(mirrored, "")
            if below and below != (stated := element.attributes.get(name, "0")):
                yield Cause(
                    "asymmetric",
                    f"{mirrored}={quote(below)} contradicts {name}={quote(stated)}: the format has "
                    f"six moments, programs read {name} only",
                    {"attribute": name},
                )


# -- mistakes that are undone, see `readings` -----------------------------------------------------

BY_SIZE = ("inertia-unit", "mass-unit", "frame")
"""Readings of a possible link for which its size speaks; others need a body that it equals."""

TIE = 0.5  #: Difference of scores that does not decide which of two mirrored links is wrong.

ENDINGS = {
    "decimal": ": a decimal point or an exponent?",
    "sign": ": a lost or an added sign?",
    "product-sign": ": some tools write the integrals of xy, xz, yz, URDF and MJCF their negatives",
    "order": ": copied from a tool that lists them so?",
    "axes": ": are they those of another axis?",
}
"""End of the sentence per code of a reading."""


def _causes_by_reading(
    around: Surroundings, verdicts: Mapping[str, LinkVerdict], silent: bool
) -> Iterator[Cause]:
    """What the numbers were meant to be, if one mistake explains them."""
    possible, twin = verdicts[around.link.name].possible, around.twin
    if silent and possible:
        return
    candidates = [*readings(around.link)]
    values = scores(candidates, around)
    best = values.max()
    if possible and best < values[0] + BETTER:
        return
    if possible and twin is not None and verdicts[twin.name].possible:
        # Of two links that contradict each other the less usual one is wrong.
        back = Surroundings(around.offset, twin, (), around.link)
        if scores([*readings(twin)], back).max() > best + TIE:
            return
    named: set[str] = set()
    for k in np.argsort(-values, kind="stable"):
        reading = candidates[k]
        cause = _cause_of_reading(reading, around, possible)
        # Impossible readings have a score of -inf, which may be the best of all.
        if not values[k] >= max(best - WORSE, -1e300) or (possible and named) or cause is None:
            return
        if reading.code not in named:
            named.add(reading.code)
            yield cause


def _cause_of_reading(reading: Reading, around: Surroundings, possible: bool) -> Cause | None:
    """A reading with what speaks for it; None where nothing does that a possible link needs."""
    evidence: dict[str, float | str | Sequence[float]] = {"reading": reading.text}
    like, gyration, bound = likeness(reading, around), around.gyration(), around.bound
    if possible and not like:
        small = reading.code == "frame" and gyration <= bound
        if small or reading.code not in BY_SIZE or around.gyration(reading) > bound:
            return None
        evidence |= {"radius_of_gyration": gyration, "reach": bound}
    now = f"the radius of gyration is {gyration:.3g} m, but no {around.words}"
    if reading.code in ("inertia-unit", "mass-unit"):
        if gyration <= bound:
            evidence["density"] = density = ellipsoid_density(around.link)
            now = f"mass and moments are those of a body of {density:.2g} kg/m^3"
        return Cause(reading.code, f"{now}: {reading.text}?", evidence)
    result = f"fits; now {now}" if possible else "is possible"
    result = "is that of a uniform body of its shapes" if like else result
    if like == "twin" and around.twin is not None:
        result = f"equals that of its mirror image {around.twin.name!r}"
        evidence["twin"] = around.twin.name
    text = f"with {reading.text} the inertia {result}{ENDINGS.get(reading.code, '')}"
    return Cause(reading.code, text, evidence)


# -- against collision shapes and joints ----------------------------------------------------------


def _causes_in_geometry(around: Surroundings, hints: list[Cause], silent: bool) -> Iterator[Cause]:
    link, shapes, (low, high) = around.link, around.shapes, DENSITIES
    has_cause = silent or any(c.code in BY_SIZE for c in hints)
    mass, density = float(link.mass or 1), 0.0
    if shapes:
        volume = sum(shape.volume for shape in shapes)
        density, words = mass / volume, f"in collision shapes of {volume:.3g} m^3"
    elif not link.shapes and not has_cause:
        # Of all bodies that are nowhere denser than rho, the ellipsoid of density rho has the
        # smallest determinant of second moments: a link with a denser one cannot be built.
        density = ellipsoid_density(link)
        volume = mass / (density or 1)
        words = f"with these moments of inertia, in at most {volume:.2g} m^3,"
    if density and not low * bool(shapes) <= density <= high:
        grams = low <= density * 1e-3 <= high and mass > 1
        yield Cause(
            "density",
            f"{mass:g} kg {words} is {density:.3g} kg/m^3, outside {low:g} to {high:g}"
            + (": g instead of kg?" if grams else ""),
            {"density": density, "volume": volume},
        )
    if shapes:
        lower, upper = bounding_box(shapes)
        outside = np.maximum(np.maximum(lower - link.com, link.com - upper), 0)
        distance, size = float(np.linalg.norm(outside)), float(np.linalg.norm(upper - lower))
        far, place = BESIDE, "outside the box around the collision shapes"
    else:  # the offsets between joints say how large the robot is
        distance = min(float(np.linalg.norm(link.com - x)) for x in (np.zeros(3), *around.joints))
        far, size = FAR, around.offset * (not link.shapes)
        place = f"from every joint of the link, but no {around.words}"
    if size and distance > far * size:
        unit = " (mm instead of m?)" if distance > 50 * far**0.2 * size else ""
        yield Cause(
            "com-outside",
            f"the centre of mass lies {distance:.3g} m {place}{unit}",
            {"distance": distance, "com": link.com.tolist()},
        )
    if shapes and not has_cause and around.gyration() > TOO_WIDE * around.bound:
        yield Cause(
            "inertia-unit",
            f"the radius of gyration is {around.gyration():.3g} m, but no {around.words}",
            {"radius_of_gyration": around.gyration(), "reach": around.bound},
        )


# -- against other links --------------------------------------------------------------------------

_SIDES = (
    ("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"), ("l", "r"), ("L", "R"),
    ("lf", "rf"), ("lh", "rh"), ("LF", "RF"), ("LH", "RH"), ("fl", "fr"), ("FL", "FR"),
    ("hl", "hr"), ("HL", "HR"), ("rl", "rr"), ("RL", "RR"), ("bl", "br"), ("BL", "BR"),
)  # fmt: skip


def twin_name(name: str, known: Mapping[str, Link]) -> str | None:
    """Name of the link on the other side: left for right, l for r, FL for FR and so on."""
    for a, b in _SIDES:
        for old, new in ((a, b), (b, a)):
            if old not in name:
                continue
            if len(old) > 2:
                candidate = re.sub(re.escape(old), new, name)
            else:
                # A short side counts only as a word of its own or as CamelCase's first letter.
                word = rf"(?<![A-Za-z]){old}(?=[_\-.0-9]|$|[A-Z][a-z])|(?<=_){old}(?=_|$)"
                candidate = re.sub(word, new, name, count=1)
            if candidate != name and candidate in known:
                return candidate
    return None


def _causes_by_twin(
    around: Surroundings, verdicts: Mapping[str, LinkVerdict], found: Sequence[Cause]
) -> Iterator[Cause]:
    link, twin = around.link, around.twin
    if twin is None or any("twin" in cause.evidence for cause in found):
        return
    name = twin.name
    if verdicts[link.name].status == INFEASIBLE and verdicts[name].status == FEASIBLE:
        differences = ", ".join(
            f"{n} ({float(a):g} here, {float(b):g} there)"
            for n, a, b in zip(MOMENTS, link.moments or (), twin.moments or (), strict=True)
            if abs(abs(a) - abs(b)) * 100 > max(abs(a), abs(b))
        )
        text = f"its mirror image {name!r} is possible; they differ in {differences}"
        yield from [Cause("twin", text, {"twin": name})] if differences else ()


_FEW = 4  #: Largest number of links that a message names.
_MANY = 3  #: Number of links with equal inertia and different shapes from which there is a hint.
