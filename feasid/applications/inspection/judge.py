"""Exact verdicts on whether the inertia of a link or a moving body is physically consistent.

A link is judged by its decimals alone (see `feasid.core.exact.poses`). A moving body is the sum of
its links' pseudo-inertias, enclosed to 40 digits, and is called infeasible or feasible only where
the enclosure decides; bodies of possible links need no arithmetic.

The closest possible inertia keeps mass, centre of mass and principal axes, on which the distances
do not depend. With s the eigenvalues of ``Sigma = tr(I)/2 1 - I``, "euclidean" is the Frobenius
norm subject to ``s'_k >= margin * sum |s|`` (and `SMALLEST`): a projection on a cone of three
faces. "barrier" minimises ``1/2 |Sigma' - Sigma|^2 - w log det Sigma'`` with ``w = (ENTROPY sum
|s|)^2``, distance against entropy: ``s' = (s + sqrt(s^2 + 4 w)) / 2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Literal, TypeAlias

import numpy as np

from feasid.certificate import definiteness
from feasid.core.errors import OutputError
from feasid.core.exact.poses import (
    PrecisePose,
    compose,
    definiteness_within,
    identity,
    pseudo_inertia,
    second_moments,
    symmetric_matrix,
)
from feasid.robot import inertia
from feasid.robot.formats.description import (
    Description,
    ExactPose,
    Link,
    NewInertial,
    pose_of_floats,
)

FEASIBLE = "feasible"
SINGULAR = "boundary"
ZERO = "zero"
UNSTATED = "none"
GEOMETRY = "by geometry"
INFEASIBLE = "infeasible"
INCONCLUSIVE = "inconclusive"

FLOAT_WIDTH = 1e-11
"""Relative half-width around sums of poses known in double precision: 1e-16 each, and to spare."""


@dataclass(frozen=True)
class LinkVerdict:
    """Verdict of exact arithmetic on a link."""

    #: "feasible" (positive definite), "boundary" (a valid limit: rod, disc, point mass), "zero"
    #: (mass and inertia zero), "none" (no inertia given), "by geometry", "infeasible", or
    #: "inconclusive" (bodies only: closer to singular than 40 digits).
    status: str
    #: For infeasible links "mass-negative", "massless", "inertia-negative" or "triangle"; for those
    #: on the boundary "point", "rod" or "flat".
    code: str = ""
    #: By how much, relative: for "triangle" the excess of the largest principal moment over the sum
    #: of the others, for "inertia-negative" the negative moment, both over the largest.
    violation: float = 0.0

    @property
    def possible(self) -> bool:
        """Whether the link is neither infeasible nor undecided."""
        return self.status not in (INFEASIBLE, INCONCLUSIVE)


@dataclass(frozen=True, eq=False)
class PlacedLink:
    """A link of a body, and where it is.

    ``parent`` is the position in `LinkGroup.parts` of the part that `place` refers to; -1 for the
    body's own frame.
    """

    link: Link
    parent: int = -1
    place: ExactPose | None = None
    """Pose in the parent's frame; None for the same frame."""


@dataclass(frozen=True, eq=False)
class LinkGroup:
    """Links that move as one, parents first; the moving link's frame is the body's."""

    name: str
    joint: str | None
    """Name of the joint that moves it; None for what stands on the ground, or floats."""
    parts: tuple[PlacedLink, ...]

    @property
    def links(self) -> tuple[Link, ...]:
        """The links, the moving one first."""
        return tuple(part.link for part in self.parts)


def group_links(description: Description) -> tuple[LinkGroup, tuple[LinkGroup, ...]]:
    """Links fixed to the ground, and the moving bodies in the order of their first links."""
    bodies: dict[str, tuple[str | None, list[PlacedLink]]] = {}
    member: dict[str, tuple[str, int]] = {}
    if description.world:
        ground = Link(description.world, description.path, 0, lambda: (0, 0))
        bodies[ground.name] = (None, [PlacedLink(ground)])
        member[ground.name] = (ground.name, 0)
    for link in description.parents_first():
        parent = link.parent or description.world
        if parent and not link.joints:
            carrier, index = member[parent]
            part = PlacedLink(link, index, link.home)
        else:
            carrier, part = link.name, PlacedLink(link)
            bodies[carrier] = (link.joints[-1].name if link.joints else None, [])
        parts = bodies[carrier][1]
        member[link.name] = (carrier, len(parts))
        parts.append(part)
    base, *moving = (LinkGroup(n, joint, tuple(p)) for n, (joint, p) in bodies.items())
    return base, tuple(moving)


def judge_link(link: Link) -> LinkVerdict:
    """Exact verdict on one link from the file's decimals."""
    if link.by_geometry:
        return LinkVerdict(GEOMETRY)
    if link.mass is None or link.moments is None:
        return LinkVerdict(UNSTATED)
    mass, moments = link.mass, link.moments
    if mass == 0 and not any(moments):
        return LinkVerdict(ZERO)
    if mass < 0:
        return LinkVerdict(INFEASIBLE, "mass-negative", 1.0)
    sigma = definiteness(second_moments(moments))
    if sigma == "indefinite":
        a, b, c = values = principal_moments(moments)
        if definiteness(symmetric_matrix(moments)) == "indefinite":
            return LinkVerdict(INFEASIBLE, "inertia-negative", float(-a / np.abs(values).max()))
        return LinkVerdict(INFEASIBLE, "triangle", float((c - a - b) / c))
    if mass == 0:
        return LinkVerdict(INFEASIBLE, "massless", 1.0)
    if sigma == "singular":  # the rank of the second moments is 0, 1 or 2
        s = second_moments(moments)
        minors = (s[i][i] * s[j][j] - s[i][j] ** 2 for i, j in ((0, 1), (0, 2), (1, 2)))
        return LinkVerdict(SINGULAR, "flat" if any(minors) else "rod" if any(moments) else "point")
    return LinkVerdict(FEASIBLE)


def judge_body(body: LinkGroup, verdicts: Sequence[LinkVerdict]) -> LinkVerdict:
    """LinkVerdict on a moving body, given those on its links."""
    status = {v.status for v in verdicts}
    if len(verdicts) == 1:
        return verdicts[0]
    if not verdicts:
        return LinkVerdict(UNSTATED)
    if INFEASIBLE not in status:
        if GEOMETRY in status:
            return LinkVerdict(GEOMETRY)
        if FEASIBLE in status:
            return LinkVerdict(FEASIBLE)
        if SINGULAR not in status:
            return LinkVerdict(ZERO if ZERO in status else UNSTATED)
    elif GEOMETRY in status:
        return LinkVerdict(INCONCLUSIVE, "geometry")
    # Floats decide where an enclosure far wider than their rounding does, else sixty digits.
    matrix, scale = _sum_pseudo_inertias(
        body, lambda pose: pose_of_floats(pose.rotation, pose.position).precise()
    )
    width = Fraction(max(FLOAT_WIDTH, 1e-13 * len(body.parts)))
    decided = definiteness_within(matrix, scale, width)
    if decided == "undecided":
        matrix, scale = _sum_pseudo_inertias(body, lambda pose: pose.precise())
        decided = definiteness_within(matrix, scale)
    if decided == "positive definite":
        return LinkVerdict(FEASIBLE)
    if INFEASIBLE not in status:
        return LinkVerdict(SINGULAR)
    if decided == "indefinite":
        return LinkVerdict(INFEASIBLE, "lumped")
    return LinkVerdict(INCONCLUSIVE)


def _sum_pseudo_inertias(
    body: LinkGroup, pose_of: Callable[[ExactPose], PrecisePose]
) -> tuple[list[list[Fraction]], Fraction]:
    """Sum of pseudo-inertias (4x4), and a bound of every number on the way to it."""
    poses: list[tuple[PrecisePose, Fraction]] = []
    parts, scale = [], Fraction(0)
    start: PrecisePose = (identity(), [Decimal(0)] * 3)
    for part in body.parts:
        pose, length = poses[part.parent] if part.parent >= 0 else (start, Fraction(1))
        if part.place is not None:
            pose, length = _follow(pose, length, pose_of(part.place))
        poses.append((pose, length))
        link = part.link
        if link.mass is None or link.moments is None or link.place is None:
            continue
        pose, length = _follow(pose, length, pose_of(link.place))
        sigma = second_moments(link.moments)
        parts.append(pseudo_inertia(link.mass, sigma, pose))
        scale += abs(link.mass) * length**2 + sum(abs(x) for row in sigma for x in row)
    total = [[sum(Fraction(part[r][c]) for part in parts) for c in range(4)] for r in range(4)]
    return [[Fraction(total[r][c] + total[c][r]) / 2 for c in range(4)] for r in range(4)], scale


def _follow(pose: PrecisePose, length: Fraction, step: PrecisePose) -> tuple[PrecisePose, Fraction]:
    return compose(pose, step), length + sum(abs(Fraction(x)) for x in step[1])


# -- how much, in floating point: for messages only ------------------------------------------------


def principal_moments(moments: Sequence[Fraction]) -> np.ndarray:
    """Principal moments in ascending order, as floats."""
    return np.linalg.eigvalsh(np.array(symmetric_matrix(moments), dtype=np.float64))


Metric: TypeAlias = Literal["euclidean", "barrier"]

# Smallest second moment over the sum of all, by default: a plate a thousand times as wide as thick
# passes, and rounding in simulators does no harm.
MARGIN = 1e-6
DIGITS = 12  #: Significant digits of corrected moments: short to read.
SMALLEST = 1e-13  #: Second moment [kg m^2] of a corrected link: below 1e-15 simulators see zero.
ENTROPY = 1e-2  #: How much entropy counts against distance: a flat body becomes about 1 : 10 thick.

_FACES = np.full((3, 3), 0.5) - np.eye(3)  # s = _FACES @ principal moments


@dataclass(frozen=True)
class CorrectedInertia:
    """A feasible inertia near an infeasible one."""

    mass: float
    #: xx xy xz yy yz zz about the centre of mass, in the file's axes [kg m^2].
    moments: tuple[float, ...]
    distance: float  #: Frobenius norm of the inertia's change over that of the inertia.
    note: str = ""  #: Remark on properties that the distance does not decide.


def closest_inertia(
    mass: Fraction,
    moments: Sequence[Fraction],
    metric: Metric = "euclidean",
    margin: float = MARGIN,
    smallest: float = SMALLEST,
) -> CorrectedInertia:
    """The closest possible inertia; its decimals, as written, are exactly possible.

    The mass is not zero; a negative one changes its sign, because the closest non-negative mass is
    zero. `metric` and `margin`: see `correct_file`; `smallest`: smallest second moment [kg m^2].
    """
    old = np.array(symmetric_matrix(moments), dtype=np.float64)
    values, axes = np.linalg.eigh(old)
    second = _FACES @ values
    size = float(np.abs(second).sum())
    least = max(margin * size, smallest)
    if metric == "euclidean":
        # The nearest point that satisfies all three faces is the projection on the planes of some.
        new, shortest = np.full(3, np.inf), np.inf
        tolerance = 1e-12 * (least + float(np.abs(values).max()))
        for active in product((False, True), repeat=3):
            faces = _FACES[np.array(active)]
            step = faces.T @ np.linalg.solve(faces @ faces.T, least - faces @ values)
            point, distance = values + step, float(step @ step)
            if (_FACES @ point >= least - tolerance).all() and distance < shortest:
                new, shortest = point, distance
    else:
        weight = max((ENTROPY * size) ** 2, least**2)
        raised = (second + np.sqrt(second**2 + 4 * weight)) / 2
        new = raised.sum() - raised
    note = "the mass was negative and its sign was turned: check it" if mass < 0 else ""
    positive = abs(float(mass))
    # Decimals near the border may lie outside: moments rise until those that are written do not.
    for lift in (0.0, 1e-15, 1e-12, 1e-9):
        nearby = axes @ np.diag(new + lift * max(size, least)) @ axes.T
        # To `DIGITS` digits; what differs by rounding keeps its value.
        digit, entries = 10.0**-DIGITS * float(np.abs(nearby).max()), []
        for entry, moment in ((old[k], nearby[k]) for k in inertia.UPPER):
            rounded = 0.0 if abs(moment) <= digit else float(f"{moment:.{DIGITS}g}")
            entries.append(float(entry) if abs(moment - entry) <= 0.1 * digit else rounded)
        if NewInertial(positive, tuple(entries)).is_possible():
            norm = float(np.linalg.norm(old)) or float(np.linalg.norm(nearby))
            distance = float(np.linalg.norm(nearby - old)) / norm
            return CorrectedInertia(positive, tuple(entries), distance, note)
    raise OutputError("no exactly possible decimals were found near this inertia")
