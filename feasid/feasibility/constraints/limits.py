"""The constraints that a caller can ask for, by the name of their option.

`CONSTRAINTS` holds one builder per option of `feasid.options.tables.BoundOptions`. A builder takes
the robot and the option's value, and returns blocks, rows and equalities over the robot's standard
parameters. To add a constraint, write a builder here, decorate it with the option's name, and add
the option to the table.

The centre of mass c = l / m lies in a shape exactly when l and m satisfy inequalities that are
linear in them (boxes, convex hulls) or require a matrix to be positive (ellipsoids, cylinders),
after multiplication by m > 0, as in Sousa and Cortesao (2014) eq. (26).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.feasibility.constraints.affine import Block, Linear, bound_constraints, com_box
from feasid.options.forms import arrays_to_lists, is_number
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.known import Equality, body_index, equalities, parameter_index

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class AffineConstraints:
    """A constraint's matrices, numbers that must not be negative, and equalities.

    ``convex`` are inequalities that are not affine,
    see `feasid.feasibility.constraints.user_constraints`.
    """

    blocks: Sequence[Block] = ()
    linear: Sequence[Linear] = ()
    equalities: Sequence[Equality] = ()
    convex: Sequence[Any] = ()


Builder: TypeAlias = Callable[[Robot, Any], AffineConstraints]

CONSTRAINTS: dict[str, Builder] = {}
"""Builders by the name of their option; blocks and rows of a feasible set follow this order."""


def constraint(option: str) -> Callable[[Builder], Builder]:
    """Register a builder under the name of its option."""

    def register(builder: Builder) -> Builder:
        CONSTRAINTS[option] = builder
        return builder

    return register


@constraint("known")
def known_parameters(robot: Robot, value: Any) -> AffineConstraints:
    """Parameters with known values, and the zeros of bodies without mass."""
    return AffineConstraints(equalities=equalities(robot, value))


@constraint("equal")
def equal_bodies(robot: Robot, value: Any) -> AffineConstraints:
    """Pairs of bodies with the same parameters."""
    return _pair_equalities(robot, equal=value)


@constraint("mirrored")
def mirrored_bodies(robot: Robot, value: Any) -> AffineConstraints:
    """Pairs of bodies that are mirror images."""
    return _pair_equalities(robot, mirrored=value)


@constraint("mass")
def body_masses(robot: Robot, value: Any) -> AffineConstraints:
    """Bounds on masses of single bodies."""
    sums = {f"mass of {name}": ([name], *limits) for name, limits in (value or {}).items()}
    return mass_sums(robot, sums)


@constraint("total_mass")
def total_mass(robot: Robot, value: Any) -> AffineConstraints:
    """An upper bound, or two, on the mass of all moving bodies."""
    if value is None:
        return AffineConstraints()
    limits = (None, value) if is_number(value) else arrays_to_lists(value)
    return mass_sums(robot, {"total mass": ([b.name for b in robot.bodies], *limits)})


@constraint("mass_sums")
def mass_sums(robot: Robot, value: Any) -> AffineConstraints:
    """Bounds on sums of masses; equal ones make an equality."""
    rows: list[Linear] = []
    ties: list[Equality] = []
    for label, (names, lower, upper) in (value or {}).items():
        columns = [int(robot.inertial_columns[body_index(robot, name), 9]) for name in names]
        ones = np.ones(len(columns))
        if lower is not None and lower == upper and np.isfinite(lower):
            ties.append(Equality(label, tuple(columns), tuple(ones), float(lower)))
        else:
            rows += bound_constraints(label, columns, ones, lower, upper)
    return AffineConstraints(linear=rows, equalities=ties)


@constraint("com_box")
def com_boxes(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in boxes."""
    rows: list[Linear] = []
    for name, (corner, opposite) in (value or {}).items():
        columns = robot.inertial_columns[body_index(robot, name)]
        rows += com_box(name, columns, corner, opposite)
    return AffineConstraints(linear=rows)


@constraint("com_ellipsoid")
def com_ellipsoids(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in ellipsoids."""
    blocks = []
    for name, (middle, axes) in (value or {}).items():
        i = body_index(robot, name)
        blocks.append(com_ellipsoid(name, i, robot.inertial_columns[i], middle, axes))
    return AffineConstraints(blocks)


@constraint("com_cylinder")
def com_cylinders(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in cylinders."""
    blocks = []
    rows: list[Linear] = []
    for name, (start, end, radius) in (value or {}).items():
        i = body_index(robot, name)
        block, ends = com_cylinder(name, i, robot.inertial_columns[i], start, end, radius)
        blocks.append(block)
        rows += ends
    return AffineConstraints(blocks, rows)


@constraint("com_hull")
def com_hulls(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in convex hulls of points."""
    rows: list[Linear] = []
    for name, points in (value or {}).items():
        rows += com_hull(name, robot.inertial_columns[body_index(robot, name)], points)
    return AffineConstraints(linear=rows)


@constraint("inertia_ellipsoid")
def inertia_ellipsoids(robot: Robot, value: Any) -> AffineConstraints:
    """Whole mass distributions in ellipsoids."""
    rows = [
        inertia_ellipsoid(name, robot.inertial_columns[body_index(robot, name)], middle, axes)
        for name, (middle, axes) in (value or {}).items()
    ]
    return AffineConstraints(linear=rows)


@constraint("linear")
def linear_bounds(robot: Robot, value: Any) -> AffineConstraints:
    """Bounds on any linear form of parameters."""
    rows: list[Linear] = []
    given: Mapping[str, Any] = value or {}
    for label, (coefficients, lower, upper) in given.items():
        index = [parameter_index(robot, key) for key in coefficients]
        rows += bound_constraints(label, index, [*coefficients.values()], lower, upper)
    return AffineConstraints(linear=rows)


def _pair_equalities(robot: Robot, **pairs: Any) -> AffineConstraints:
    """Equalities of pairs of bodies, without the zeros of bodies that have no mass."""
    implied = len(equalities(robot))
    return AffineConstraints(equalities=equalities(robot, None, **pairs)[implied:])


FLAT = 1e-12
"""Relative thickness below which a shape has no inside."""


def com_ellipsoid(
    name: str, body: int, columns: Index, centre: npt.ArrayLike, axes: npt.ArrayLike
) -> Block:
    """Centre of mass in an ellipsoid: ``|A^-1 (l - m centre)| <= m``.

    `name`: of the body; `columns` (10,); `centre` (3,): in the body's frame [m]; `axes` (3,) or (3,
    3): semi-axes [m]: lengths along the body's axes, or the columns of a matrix.
    """
    middle, inverse, _ = _check_ellipsoid(f"com ellipsoid of {name}", centre, axes)
    return _second_order_block(
        f"com of {name} in ellipsoid", body, columns, inverse, inverse @ middle
    )


def com_cylinder(
    name: str, body: int, columns: Index, start: npt.ArrayLike, end: npt.ArrayLike, radius: float
) -> tuple[Block, list[Linear]]:
    """Centre of mass in the cylinder between two points [m] in the body's frame."""
    what = f"com cylinder of {name}"
    a, b = _check_point(what, start), _check_point(what, end)
    height = float(np.linalg.norm(b - a))
    if not (np.isfinite(radius) and radius > 0 and height > FLAT):
        raise InputError(f"the {what} needs a positive radius and two different points")
    along = (b - a) / height
    across = np.linalg.svd(along[None])[2][1:] / radius
    block = _second_order_block(f"com of {name} in cylinder", body, columns, across, across @ a)
    moments = columns[6:]
    ends = [
        Linear(f"com of {name} above start of cylinder", moments, np.r_[along, -along @ a], 0.0, 1),
        Linear(f"com of {name} below end of cylinder", moments, np.r_[-along, along @ b], 0.0, -1),
    ]
    return block, ends


def com_hull(name: str, columns: Index, points: npt.ArrayLike) -> list[Linear]:
    """Centre of mass in the convex hull of points (k, 3) [m] in the body's frame.

    One inequality per facet with outward normal n: ``n . l + offset m <= 0``.
    """
    from scipy.spatial import ConvexHull, QhullError

    what = f"com hull of {name}"
    cloud = np.asarray(points, dtype=np.float64)
    if cloud.ndim != 2 or cloud.shape[1] != 3 or not np.isfinite(cloud).all():
        raise InputError(f"the {what} needs finite points of shape (k, 3), got {cloud.shape}")
    try:
        facets = ConvexHull(cloud).equations
    except (QhullError, ValueError) as error:
        raise InputError(f"the {what} has no inside: its {len(cloud)} points are flat") from error
    rounded = np.unique(facets.round(12), axis=0)  # triangles of one flat face are one inequality
    return [
        Linear(f"com of {name} in hull, facet {k + 1}", columns[6:], -facet)
        for k, facet in enumerate(rounded)
    ]


def inertia_ellipsoid(
    name: str, columns: Index, centre: npt.ArrayLike, axes: npt.ArrayLike
) -> Linear:
    """Some distribution of mass inside the ellipsoid has this inertia: ``trace(J Q) >= 0``.

    With J the pseudo-inertia and Q the ellipsoid's quadric, 1 - |A^-1 (x - centre)|^2 in
    homogeneous coordinates: necessary, and together with J > 0 sufficient (Wensing, Kim and
    Slotine 2017, Theorem 4). Parameters as in `com_ellipsoid`.
    """
    middle, inverse, scale = _check_ellipsoid(f"inertia ellipsoid of {name}", centre, axes)
    shape = inverse.T @ inverse
    quadric = np.zeros((4, 4))
    quadric[:3, :3] = -shape
    quadric[:3, 3] = quadric[3, :3] = shape @ middle
    quadric[3, 3] = 1.0 - middle @ shape @ middle
    # In units of the ellipsoid's size squared, so that the coefficients are near one.
    weights = np.einsum("cij,ij->c", inertia.pseudo_inertia(np.eye(10)), quadric) * scale**2
    return Linear(f"mass of {name} in ellipsoid", columns, weights)


def _check_point(what: str, value: npt.ArrayLike) -> Array:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InputError(f"the {what} needs finite points of 3 numbers, got {point.tolist()}")
    return point


def _check_ellipsoid(
    what: str, centre: npt.ArrayLike, axes: npt.ArrayLike
) -> tuple[Array, Array, float]:
    """Centre, inverse of the matrix of semi-axes, and the longest of them."""
    middle, matrix = _check_point(what, centre), np.asarray(axes, dtype=np.float64)
    if matrix.shape == (3,):
        matrix = np.diag(matrix)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        raise InputError(f"the {what} needs 3 semi-axes or a 3x3 matrix of them")
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if not sizes[-1] > FLAT * sizes[0]:
        raise InputError(f"the {what} has no inside: its semi-axes are {sizes.tolist()}")
    inverse: Array = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return middle, inverse, float(sizes[0])


def _second_order_block(name: str, body: int, columns: Index, A: Array, offset: Array) -> Block:
    """``|A l - m offset| <= m`` as [[m 1, A l - m offset], [., m]] >= 0."""
    size = len(A) + 1
    basis = np.zeros((4, size, size))
    basis[:3, :-1, -1] = basis[:3, -1, :-1] = A.T
    basis[3] = np.eye(size)
    basis[3, :-1, -1] = basis[3, -1, :-1] = -offset
    zero = np.zeros((size, size))
    return Block(name, "matrix", body, columns[6:], basis, zero, (0,) * size, strict=False)
