"""What the numbers of a link were meant to be: single mistakes are undone, and what fits is named.

Each reading is scored by how often people make the mistake, and by how usual the body is that
remains, as 572 links of 60 published robots are, or whether it equals another that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

import numpy as np

from feasid.core.arrays import Array
from feasid.robot import inertia
from feasid.robot.formats.description import MOMENTS, Link
from feasid.robot.formats.shapes import (
    Shape,
    bounding_box,
    farthest_distance,
    second_moments_of_shapes,
)

UNITS = {
    (1, 1e-3): "g m^2", (1, 1e-4): "kg cm^2", (1, 1e-6): "kg mm^2", (1, 1e-7): "g cm^2",
    (1, 1e-9): "g mm^2", (1e-3, 1): "g", (1e-3, 1e-3): "g and g m^2", (1e-3, 1e-9): "g and g mm^2",
}  # fmt: skip
"""Units that people write, by the factors of mass and moments that undo them."""

LISTS = ("xx yy zz xy xz yz", "xx xy yy xz yz zz", "xx yy zz xy yz xz", "xx yy zz yz xz xy")
"""Orders in which other tools list six moments."""

# How often each mistake is made: logarithms of frequencies, but for a constant. Numbers that are
# repeated to the last digit speak for themselves.
PRIORS = {
    "product-sign": -2.0, "sign": -2.5, "decimal": -3.0, "order": -3.0, "misplaced": 1.0,
    "inertia-unit": -3.0, "mass-unit": -3.0, "frame": -3.0, "axes": -4.0,
}  # fmt: skip
RARER = 1.5  #: By how much a reading of two numbers or units at once is rarer.

# Median and spread (of the logarithm) of measures of 572 links of published robots.
DENSITY = 830.0, 1.6  #: Mean density [kg/m^3] of the ellipsoid with a link's second moments.
SIZE = 0.17, 0.9  #: Radius of gyration over the longest offset between joints.
REACH = 0.5, 0.35  #: Radius of gyration over the farthest point of the collision shapes.
THINNESS = 0.1, 1.5  #: Smallest over largest second moment, where it is below a tenth.
MARKER = 0.005  #: Collision shapes that reach no farther than this [m] only mark a frame.
# Second moments count as at least this share of the largest: files neglect the thickness of rods.
SLENDER = 1e-2
TINY = 1e-200  #: Value in place of zero.
WORST = -25.0  #: Least score of one measure.
BEYOND = -8.0  #: Score of a radius of gyration beyond every shape, which no mass inside has.
EQUAL = 14.0  #: Score of the moments of the mirrored link, or of a uniform body of the shapes.
EQUAL_RTOL = {"twin": 1e-3, "uniform": 1e-2}  #: Relative difference of moments that are equal.
ALIKE = 2e-2  #: The same for numbers of twins as they are: smaller differences are no mistake.
MIRROR_COM = 1e-2  #: The same for the centre of mass, which is often rounded to mm.
BETTER = 7.0  #: A possible link is doubted where a reading is a thousand times as likely.
WORSE = 4.0  #: Readings of an impossible link are named up to this below the best.


@dataclass(frozen=True, eq=False)
class Reading:
    """A link's mass [kg] and moments about the centre of mass [kg m^2], one mistake undone."""

    code: str  #: The mistake, a key of `PRIORS`; empty for the numbers as they are.
    text: str
    mass: float
    tensor: Array  #: Shape (3, 3): in the axes of the link's inertial.
    rarity: float = 0.0  #: By how much it is rarer than others with this code.


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A link and what its numbers are compared with."""

    offset: float  #: Longest offset between joints of the robot [m]; 0 for none.
    link: Link
    joints: Sequence[Array] = ()  #: Places of the joints that the link carries [m].
    twin: Link | None = None  #: The link on the other side.

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Collision shapes, but for those that only mark a frame."""
        shapes = self.link.shapes or ()
        lower, upper = bounding_box(shapes) if shapes else (np.zeros(3), np.zeros(3))
        return shapes if np.linalg.norm(upper - lower) >= 2 * MARKER else ()

    @cached_property
    def bound(self) -> float:
        """What no radius of gyration exceeds [m]."""
        return farthest_distance(self.shapes, self.link.com) if self.shapes else self.offset

    @property
    def words(self) -> str:
        """The bound in words."""
        if self.shapes:
            return f"collision shape is farther than {self.bound:.3g} m from the centre of mass"
        return f"joint is farther than {self.bound:.3g} m from the next"

    def gyration(self, found: Reading | None = None) -> float:
        """Largest radius of gyration of the link, or of a reading [m]."""
        tensor, mass = self.link.tensor, float(self.link.mass or 1)
        if found is not None:
            tensor, mass = found.tensor, found.mass
        return float(np.sqrt(max(np.linalg.eigvalsh(tensor)[-1], 0.0) / mass))


def readings(link: Link) -> Iterator[Reading]:
    """The numbers as they are, and all readings of them."""
    mass, six = float(link.mass or 0), [float(x) for x in link.moments or ()]
    tensor = _tensor(six)
    yield Reading("", "", mass, tensor)
    for code, text, moments, rarity in (*_entries(six), *_orders(six)):
        yield Reading(code, text, mass, _tensor(moments), rarity)
    for axes in [*permutations(range(3))][1:]:
        text = f"the axes in the order {' '.join('xyz'[k] for k in axes)}"
        yield Reading("axes", text, mass, tensor[np.ix_(axes, axes)])
    for (light, small), unit in UNITS.items():
        code = "inertia-unit" if light == 1 else "mass-unit"
        rarity = RARER * (1 not in (light, small))
        right = " and ".join(["kg"] * (light != 1) + ["kg m^2"] * (small != 1))
        yield Reading(code, f"{unit} instead of {right}", mass * light, tensor * small, rarity)
    if link.place is not None and link.com.any():
        cross = inertia.skew(link.place.rotation.T @ link.com)
        steiner = -mass * cross @ cross
        text = (
            "the parallel-axis term m (c x c) added (it was subtracted once too often, or the "
            "inertia belongs to another frame than the centre of mass)"
        )
        yield Reading("frame", text, mass, tensor + steiner)
        text = "the parallel-axis term taken away (it is given about the link frame)"
        yield Reading("frame", text, mass, tensor - steiner)


def _tensor(moments: Sequence[float]) -> Array:
    return inertia.rotational_inertia([*moments, 0, 0, 0, 0])


def _entries(six: list[float]) -> Iterator[tuple[str, str, list[float], float]]:
    """Powers of ten of one number, and signs: code, text, six moments and rarity of a reading."""
    for k, name in enumerate(MOMENTS):
        for power in (*range(-9, 0), *range(1, 10)) if six[k] else ():
            changed = [x * 10.0**power if n == k else x for n, x in enumerate(six)]
            text = f"{name} times {10.0**power:g}, {changed[k]:.6g}"
            # A point that slipped by many digits is rarer.
            yield "decimal", text, changed, 0.15 * abs(power)
        if six[k] and k in (0, 3, 5):
            changed = [-x if n == k else x for n, x in enumerate(six)]
            yield "sign", f"{name} with its sign turned", changed, 0.0
    yield "sign", "all six signs turned", [-x for x in six], 0.0
    for some in ((1, 2, 4), (1,), (2,), (4,), (1, 2), (1, 4), (2, 4)):
        names = " and ".join(MOMENTS[k] for k in some)
        text = f"the sign{'s' * (len(some) > 1)} of {names} turned"
        text += " (or that of one)" * (len(some) == 3)
        # Integrals in place of moments turn all three.
        changed = [-x if k in some else x for k, x in enumerate(six)]
        yield "product-sign", text, changed, float(len(some) < 3)


def _orders(six: list[float]) -> Iterator[tuple[str, str, list[float], float]]:
    names = [name[1:] for name in MOMENTS]
    for listed in LISTS:
        order = [listed.split().index(name) for name in names]
        yield "order", f"the six numbers read in the order {listed}", [six[k] for k in order], 0.0
        inverse = [six[order.index(k)] for k in range(6)]
        text = f"the order {' '.join(names)}, written to a list of {listed}"
        yield "order", text, inverse, 0.5
    if six[3] == six[1] != 0:  # xx xy xz / yx yy yz: the third row is missing
        xx, xy, xz, _, yy, yz = six
        text = (
            "the numbers read as rows xx xy xz, yx yy yz of the matrix (iyy repeats ixy to the "
            f"last digit; iyy is {yy:g}, iyz {yz:g}, and izz is not given)"
        )
        # Two numbers that agree to the last digit are no accident.
        yield "order", text, [xx, xy, xz, yy, yz, max(xx, yy)], -5.0
    for k in (1, 2, 4):
        same = [MOMENTS[d] for d in (0, 3, 5) if six[d] == six[k] != 0]
        if same:
            text = f"0 for {MOMENTS[k]} (it equals {same[0]} to the last digit: a wrong attribute?)"
            yield "misplaced", text, [0.0 if n == k else x for n, x in enumerate(six)], 0.0
    for a, b in combinations(range(6), 2):
        swapped = [*six]
        swapped[a], swapped[b] = six[b], six[a]
        yield "order", f"{MOMENTS[a]} and {MOMENTS[b]} exchanged", swapped, RARER


def scores(candidates: list[Reading], around: Surroundings) -> Array:
    """Prior and measures of each reading, shape (n,); -inf for an impossible one."""
    masses = np.array([x.mass for x in candidates])
    tensors = np.array([x.tensor for x in candidates])
    sigma = np.trace(tensors, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - tensors
    second = np.linalg.eigvalsh(sigma)
    size = np.maximum(second[:, 2], TINY)
    possible = second[:, 0] > 1e-12 * size
    share = np.maximum(second, SLENDER * size[:, None])
    out = np.array([PRIORS.get(x.code, 0.0) - x.rarity for x in candidates])
    gyration = np.sqrt(share.sum(axis=1) / masses)
    out += _usual(_log_density(masses, share), DENSITY)
    if around.offset > 0:
        out += _usual(np.log(gyration / around.offset), SIZE)
    out += _usual(np.log(np.clip(second[:, 0] / size, 1e-12, 0.1)), THINNESS)
    if around.shapes:
        largest = np.sqrt(np.maximum(np.linalg.eigvalsh(tensors)[:, 2], 0) / masses)
        out += _usual(np.log(np.maximum(largest, TINY) / around.bound), REACH)
        out += np.where(largest > around.bound, BEYOND, 0.0)
    for kind in EQUAL_RTOL:
        out += EQUAL * _equal(tensors / masses[:, None, None], around, kind)
    return np.where(possible, out, -np.inf)


def likeness(found: Reading, around: Surroundings) -> str:
    """What a reading equals: "twin", "uniform", or "" for neither."""
    one = found.tensor[None] / found.mass
    return next((kind for kind in EQUAL_RTOL if _equal(one, around, kind)[0]), "")


def _equal(tensors: Array, around: Surroundings, kind: str) -> Array:
    """Whether inertias per mass (n, 3, 3) are those of the twin, or of a uniform body."""
    link, twin, others = around.link, around.twin, []
    rotation = np.eye(3) if link.place is None else link.place.rotation
    turned = rotation @ tensors @ rotation.T
    if kind == "uniform" and around.shapes:
        sigma = second_moments_of_shapes(around.shapes, link.com)
        others = [np.trace(sigma) * np.eye(3) - sigma]
    elif kind == "twin" and twin is not None and twin.mass and twin.tensor.any():
        # Which axes are mirrored, the centres of mass say.
        tolerance = MIRROR_COM * max(float(np.abs(link.com).max()), 1e-6)
        mirrors = [np.array(signs) * 2 - 1 for signs in np.ndindex(2, 2, 2)]
        placed = (s for s in mirrors if np.abs(link.com - s * twin.com).max() <= tolerance)
        others = [np.outer(s, s) * twin.tensor / float(twin.mass) for s in placed]
    out = np.zeros(len(tensors), dtype=bool)
    for other in others:
        apart = np.abs(turned - other).max(axis=(1, 2)) / np.abs(other).max()
        out |= apart <= EQUAL_RTOL[kind]
        out[0] |= kind == "twin" and apart[0] <= ALIKE
    return out


def ellipsoid_density(link: Link) -> float:
    """Density [kg/m^3] of the ellipsoid with a link's second moments; 0 for one without."""
    moments = np.linalg.eigvalsh(link.tensor)
    second = moments.sum() / 2 - moments
    share = np.maximum(second, SLENDER * second.max())[None]
    mass = np.array([float(link.mass or 1)])
    solid = second.min() >= 0 and second.max() > 1e-12 * mass[0]
    return float(np.exp(_log_density(mass, share)[0])) if solid else 0.0


def _log_density(masses: Array, second: Array) -> Array:
    axes = np.log(5 * np.maximum(second, TINY) / masses[:, None]) / 2
    return np.asarray(np.log(masses) - np.log(4 / 3 * np.pi) - axes.sum(axis=1))


def _usual(logarithms: Array, law: tuple[float, float]) -> Array:
    """Logarithm of a log-normal density over its largest value, not below `WORST`."""
    median, spread = law
    return np.asarray(np.maximum(-0.5 * ((logarithms - np.log(median)) / spread) ** 2, WORST))
