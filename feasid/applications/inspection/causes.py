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
from feasid.core.arrays import Array
from feasid.core.exact.poses import is_possible_inertia
from feasid.robot import inertia
from feasid.robot.formats.description import MOMENTS, Description, Link
from feasid.robot.formats.shapes import Shape, bounding_box, farthest_distance

DENSITIES = (50.0, 25_000.0)
"""Plausible mean densities of a link [kg/m^3]: from hollow shells to tungsten."""

SLENDER = 1e-2
"""Second moments count as at least this share of the largest (a body ten times as long as thick):
files neglect the thickness of rods and plates."""

RESIDUE = 1e-12
"""Moments below this times the mass (a radius of gyration of 1 um) are what rounding left."""

MARKER = 0.005
"""Collision shapes that reach no farther than this [m] mark a frame and do not describe a link."""

BESIDE = 0.02
"""Distance of the centre of mass from the shapes' box, over its diagonal, that is still fine."""

INERTIA_FACTORS = {
    1e-3: "g m^2 instead of kg m^2",
    1e-4: "kg cm^2 instead of kg m^2",
    1e-6: "kg mm^2 instead of kg m^2",
    1e-7: "g cm^2 instead of kg m^2",
    1e-9: "g mm^2 instead of kg m^2",
}

TOO_WIDE = 1.5
"""Radius of gyration over the farthest point of the collision shapes, above which there is a
hint."""

ORDERS = {"xx yy zz xy xz yz": (0, 3, 4, 1, 5, 2), "xx xy yy xz yz zz": (0, 1, 3, 2, 4, 5)}
"""Orders in which other tools list six moments: place of xx xy xz yy yz zz in the file's list."""


@dataclass(frozen=True)
class Cause:
    """A probable mistake in one link."""

    code: str
    message: str
    evidence: Mapping[str, float | str | Sequence[float]] = field(default_factory=dict)


def causes(description: Description, verdicts: Mapping[str, LinkVerdict]) -> dict[str, list[Cause]]:
    """Probable mistakes per link name; links without any are absent."""
    copies = _copied_inertials(description)
    causes_by_link: dict[str, list[Cause]] = {}
    for link in description.links:
        verdict = verdicts[link.name]
        mass, moments = link.mass, link.moments
        if mass is None or moments is None:
            continue
        hints = list(_causes_in_numbers(link, mass, moments, verdict))
        if mass > 0:
            hints += list(_causes_in_geometry(link, float(mass), moments))
            hints += list(_causes_by_twin(description.by_name, link, mass, moments, verdicts))
        if link.name in copies:
            hints.append(copies[link.name])
        if hints:
            causes_by_link[link.name] = hints
    return causes_by_link


# -- the numbers themselves -----------------------------------------------------------------------


def _causes_in_numbers(
    link: Link, mass: Fraction, moments: Sequence[Fraction], verdict: LinkVerdict
) -> Iterator[Cause]:
    yield from _placeholder_cause(moments)
    largest = float(max(map(abs, moments)))
    if mass > 0 and 0 < largest < RESIDUE * float(mass):
        yield Cause(
            "residue",
            f"the largest moment is {largest:.1g} kg m^2 for {float(mass):g} kg: rounding residue "
            f"of a zero inertia",
            {"moment": largest},
        )
        return
    if verdict.code == "mass-negative":
        return
    if verdict.code == "massless":
        yield Cause("massless", "has inertia but no mass, which no mass distribution has")
    if verdict.possible:
        return
    if link.com.any():
        yield from _parallel_axis_cause(link, float(mass))
    flipped = [-x if k in (1, 2, 4) else x for k, x in enumerate(moments)]
    if is_possible_inertia(mass, flipped):
        yield Cause(
            "product-sign",
            "with the signs of ixy, ixz and iyz turned the inertia is possible: some tools write "
            "the integrals of xy, xz, yz, URDF and MJCF their negatives",
        )
    yield from _misplaced_product_cause(mass, moments)
    for name, order in ORDERS.items():
        listed = [moments[k] for k in order]
        if listed != list(moments) and is_possible_inertia(mass, listed):
            yield Cause(
                "order",
                f"read in the order {name} the six numbers are possible: they may have been "
                f"copied from a tool that lists them so",
                {"order": name},
            )


def _parallel_axis_cause(link: Link, mass: float) -> Iterator[Cause]:
    """Whether adding the parallel-axis term makes the inertia possible."""
    cross = inertia.skew(link.com)
    added = link.tensor - mass * cross @ cross
    if _is_tensor_possible(added):
        yield Cause(
            "frame",
            "adding m (c x c), the parallel-axis term, makes the inertia possible: it may have "
            "been subtracted once too often, or the inertia belongs to another frame than the "
            "centre of mass",
            {"mass": mass, "com": link.com.tolist()},
        )


def _placeholder_cause(moments: Sequence[Fraction]) -> Iterator[Cause]:
    xx, xy, xz, yy, yz, zz = moments
    size = float(xx)
    digits = f"{size:e}".split("e")[0].rstrip("0").rstrip(".")
    if len(set(moments)) == 1 and xx:
        yield Cause(
            "placeholder",
            f"all six moments are {size:g}: a placeholder? Products of inertia are usually zero",
            {"moment": size},
        )
    elif xx == yy == zz and not (xy or xz or yz) and xx > 0 and digits == "1":
        yield Cause(
            "placeholder",
            f"the inertia is {size:g} times the identity: a placeholder?",
            {"moment": size},
        )


def _misplaced_product_cause(mass: Fraction, moments: Sequence[Fraction]) -> Iterator[Cause]:
    """A product that repeats a moment to the last digit, and without which all is well."""
    for k in (1, 2, 4):
        equal_moments = [MOMENTS[d] for d in (0, 3, 5) if moments[d] == moments[k] != 0]
        without = [Fraction(0) if n == k else x for n, x in enumerate(moments)]
        if equal_moments and is_possible_inertia(mass, without):
            yield Cause(
                "misplaced",
                f"{MOMENTS[k]} equals {equal_moments[0]} to the last digit, and without it the "
                f"inertia is possible: written to the wrong attribute?",
                {"attribute": MOMENTS[k], "equals": equal_moments[0]},
            )


# -- against collision shapes ---------------------------------------------------------------------


def _causes_in_geometry(link: Link, mass: float, moments: Sequence[Fraction]) -> Iterator[Cause]:
    placeholder = bool(list(_placeholder_cause(moments)))
    if not link.shapes and not placeholder:
        yield from _density_cause(link, mass)
    if not link.shapes:
        return
    lower, upper = bounding_box(link.shapes)
    if float(np.linalg.norm(upper - lower)) < 2 * MARKER:
        return
    volume = sum(shape.volume for shape in link.shapes)
    density = mass / volume
    low, high = DENSITIES
    if not low <= density <= high:
        yield Cause(
            "density",
            f"{mass:g} kg in collision shapes of {volume:.3g} m^3 is {density:.3g} kg/m^3, outside "
            f"{low:g} to {high:g}{_gram_hint(mass, density)}",
            {"density": density, "volume": volume},
        )
    yield from _com_outside_cause(link, link.shapes)
    if not placeholder:
        yield from _gyration_radius_cause(link, mass, link.shapes)


def _gram_hint(mass: float, density: float) -> str:
    low, high = DENSITIES
    return ": g instead of kg?" if low <= density * 1e-3 <= high and mass > 1 else ""


def _density_cause(link: Link, mass: float) -> Iterator[Cause]:
    """Whether mass and moments of inertia imply more than any material's density.

    Of all bodies that are nowhere denser than rho, the ellipsoid of density rho has the smallest
    determinant of second moments, so that a link whose ellipsoid is denser cannot be built.
    """
    moments = np.linalg.eigvalsh(link.tensor)
    second = moments.sum() / 2 - moments
    if second.min() < 0 or moments.max() < RESIDUE * mass:
        return
    axes = np.sqrt(5.0 * np.maximum(second, SLENDER * second.max()) / mass)
    volume = float(4.0 / 3.0 * np.pi * np.prod(axes))
    density = mass / volume
    if density > DENSITIES[1]:
        yield Cause(
            "density",
            f"{mass:g} kg with these moments of inertia fill at most {volume:.2g} m^3, "
            f"{density:.2g} kg/m^3, denser than any material{_gram_hint(mass, density)}",
            {"density": density, "volume": volume},
        )


def _com_outside_cause(link: Link, shapes: Sequence[Shape]) -> Iterator[Cause]:
    lower, upper = bounding_box(shapes)
    outside = np.maximum(np.maximum(lower - link.com, link.com - upper), 0)
    distance = float(np.linalg.norm(outside))
    size = float(np.linalg.norm(upper - lower))
    if distance > BESIDE * size:
        unit = " (mm instead of m?)" if distance > 100 * size else ""
        yield Cause(
            "com-outside",
            f"the centre of mass lies {distance:.3g} m outside the box around the collision "
            f"shapes{unit}",
            {"distance": distance, "com": link.com.tolist()},
        )


def _gyration_radius_cause(link: Link, mass: float, shapes: Sequence[Shape]) -> Iterator[Cause]:
    """Mass inside the collision shapes cannot have a larger radius of gyration than they reach."""
    reach = farthest_distance(shapes, link.com)
    largest = float(np.linalg.eigvalsh(link.tensor)[-1])
    gyration = float(np.sqrt(max(largest, 0.0) / mass))
    if gyration <= TOO_WIDE * reach:
        return
    evidence = {"radius_of_gyration": gyration, "reach": reach}
    cross = inertia.skew(link.com)
    shifted = link.tensor + mass * cross @ cross
    if link.com.any() and _is_tensor_possible(shifted):
        smaller = float(np.sqrt(np.linalg.eigvalsh(shifted)[-1] / mass))
        if smaller <= reach:
            yield Cause(
                "frame",
                f"the radius of gyration is {gyration:.3g} m, but no collision shape is farther "
                f"than {reach:.3g} m from the centre of mass; taken about the link's origin the "
                f"inertia fits (radius {smaller:.3g} m): it may be given about the link frame",
                evidence,
            )
            return
    fits = (t for f, t in INERTIA_FACTORS.items() if 0.05 < gyration * f**0.5 / reach < 1)
    unit = next(fits, "")
    yield Cause(
        "inertia-unit",
        f"the radius of gyration is {gyration:.3g} m, but no collision shape is farther than "
        f"{reach:.3g} m from the centre of mass" + (f": {unit}?" if unit else ""),
        evidence,
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
    known: Mapping[str, Link],
    link: Link,
    mass: Fraction,
    moments: Sequence[Fraction],
    verdicts: Mapping[str, LinkVerdict],
) -> Iterator[Cause]:
    name = twin_name(link.name, known)
    if name is None:
        return
    twin = known[name]
    if twin.mass is None or twin.mass <= 0 or twin.moments is None:
        return
    if verdicts[link.name].status == INFEASIBLE and verdicts[name].status == FEASIBLE:
        differences = ", ".join(
            f"{n} ({float(a):g} here, {float(b):g} there{_decimal_shift_hint(a, b)})"
            for n, a, b in zip(MOMENTS, moments, twin.moments, strict=True)
            if abs(abs(a) - abs(b)) * 100 > max(abs(a), abs(b))
        )
        if differences:
            yield Cause(
                "twin", f"its mirror image {name!r} is possible; they differ in {differences}",
                {"twin": name},
            )  # fmt: skip
    same = abs(mass - twin.mass) <= _MIRROR_RTOL * mass
    if same and twin_name(name, known) == link.name and _mirror_disagrees(link, twin):
        yield Cause(
            "mirror-sign",
            f"the products of inertia have signs that no mirroring of {name!r} gives, although "
            f"mass, centre of mass and principal diagonal agree",
            {"twin": name},
        )


def _decimal_shift_hint(a: Fraction, b: Fraction) -> str:
    """A hint if two numbers differ by a power of ten: a misplaced decimal point."""
    if not a or not b:
        return ""
    decades = float(np.log10(abs(float(a / b))))
    near = round(decades)
    return f": a factor {10.0**near:g}" if near and abs(decades - near) < 0.01 else ""


_MIRROR_RTOL = 1e-3
"""Mirrored links are mirrored by hand or by CAD: they agree to three digits."""

_MIRROR_COM = 1e-2
"""The same for the largest coordinate of the centre of mass, which is often rounded to mm."""


def _mirror_disagrees(link: Link, twin: Link) -> bool:
    """Same centre of mass and moments up to axes' signs, but products with other signs."""
    a, b = link.tensor, twin.tensor
    scale = float(np.abs(np.diag(a)).max())
    apart = max(np.abs(np.diag(a - b)).max(), np.abs(np.abs(a) - np.abs(b)).max())
    if apart > _MIRROR_RTOL * scale:
        return False
    if np.abs(a - np.diag(np.diag(a))).max() < 10 * _MIRROR_RTOL * scale:
        return False
    size = max(float(np.abs(link.com).max()), 1e-6)
    mirrored = [np.array(signs) * 2 - 1 for signs in np.ndindex(2, 2, 2)]
    placed = [s for s in mirrored if np.abs(link.com - s * twin.com).max() <= _MIRROR_COM * size]
    return bool(placed) and all(
        np.abs(a - np.outer(s, s) * b).max() > 3 * _MIRROR_RTOL * scale for s in placed
    )


_FEW = 4
"""Largest number of links that a message names."""

_MANY = 3
"""Number of links with equal inertia and different shapes from which there is a hint."""


def _copied_inertials(description: Description) -> dict[str, Cause]:
    """Links that share mass and inertia to the last digit although their shapes differ."""
    groups: dict[tuple[Fraction | int, ...], list[Link]] = {}
    for link in description.links:
        if link.mass and link.moments and any(link.moments):
            groups.setdefault((link.mass, *link.moments), []).append(link)
    copies = {}
    for group in groups.values():
        sizes = {round(sum(s.volume for s in link.shapes), 12) for link in group if link.shapes}
        if len(group) >= _MANY and len(sizes) > 1:
            few = [link.name for link in group[:_FEW]]
            for link in group:
                listed_names = ", ".join([n for n in few if n != link.name][: _FEW - 1])
                more = ", ..." if len(group) > _FEW else ""
                copies[link.name] = Cause(
                    "copied",
                    f"mass and inertia equal those of {len(group) - 1} other links "
                    f"({listed_names}{more}), whose shapes differ: copied?",
                    {"count": len(group), "links": ", ".join(few)},
                )
    return copies


# -- small questions ------------------------------------------------------------------------------


def _is_tensor_possible(tensor: Array) -> bool:
    sigma = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    return bool(np.linalg.eigvalsh(sigma)[0] > 0)
