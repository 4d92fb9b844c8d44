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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.parameters.feasibility.constraints.affine import (
    Block,
    Linear,
    bound_constraints,
    com_box,
)
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.known import Equality, Index, body_index, equalities, parameter_index


@dataclass(frozen=True, eq=False)
class AffineConstraints:
    """A constraint's matrices, numbers that must not be negative, and equalities.

    ``convex`` are inequalities that are not affine,
    see `feasid.parameters.feasibility.constraints.user_constraints`.
    """

    blocks: Sequence[Block] = ()
    linear: Sequence[Linear] = ()
    equalities: Sequence[Equality] = ()
    convex: Sequence[Any] = ()


Builder: TypeAlias = Callable[[Robot, Any], AffineConstraints]

CONSTRAINTS: dict[str, Builder] = {
    "known": lambda robot, value: AffineConstraints(equalities=equalities(robot, value)),
    "equal": lambda robot, value: _pair_equalities(robot, equal=value),
    "mirrored": lambda robot, value: _pair_equalities(robot, mirrored=value),
}
"""Builders by the name of their option; blocks and rows of a feasible set follow this order."""


def constraint(option: str) -> Callable[[Builder], Builder]:
    """Register a builder under the name of its option."""

    def register(builder: Builder) -> Builder:
        CONSTRAINTS[option] = builder
        return builder

    return register


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
    limits = (None, value) if np.ndim(value) == 0 else value
    return mass_sums(robot, {"total mass": ([b.name for b in robot.bodies], *limits)})


@constraint("mass_sums")
def mass_sums(robot: Robot, value: Any) -> AffineConstraints:
    """Bounds on sums of masses; equal ones make an equality."""
    rows: list[Linear] = []
    ties: list[Equality] = []
    for label, (names, lower, upper) in (value or {}).items():
        columns = [int(robot.inertial_columns[body_index(robot, name), 9]) for name in names]
        if len({*columns}) < len(columns):
            raise InputError(f"mass_sums {label!r} names a body twice: {', '.join(names)}")
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
        rows += com_box(name, robot.inertial_columns[body_index(robot, name)], corner, opposite)
    return AffineConstraints(linear=rows)


@constraint("com_ellipsoid")
def com_ellipsoids(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in ellipsoids: ``|A^-1 (l - m centre)| <= m``."""
    blocks = []
    for name, (centre, axes) in (value or {}).items():
        i = body_index(robot, name)
        inverse, _ = _invert_axes(f"com ellipsoid of {name}", axes)
        label, columns = f"com of {name} in ellipsoid", robot.inertial_columns[i]
        blocks.append(_second_order_block(label, i, columns, inverse, inverse @ _floats(centre)))
    return AffineConstraints(blocks)


@constraint("com_cylinder")
def com_cylinders(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in cylinders between two points [m] in the body's frame."""
    blocks = []
    rows: list[Linear] = []
    for name, (start, end, radius) in (value or {}).items():
        i = body_index(robot, name)
        columns, a, b = robot.inertial_columns[i], _floats(start), _floats(end)
        height = float(np.linalg.norm(b - a))
        if not (radius > 0 and height > FLAT):
            raise InputError(
                f"the com cylinder of {name} needs a positive radius and two different points"
            )
        along = (b - a) / height
        across = np.linalg.svd(along[None])[2][1:] / radius
        label = f"com of {name} in cylinder"
        blocks.append(_second_order_block(label, i, columns, across, across @ a))
        above, below = np.r_[along, -along @ a], np.r_[-along, along @ b]
        rows += [
            Linear(f"com of {name} above start of cylinder", columns[6:], above, 0.0, 1),
            Linear(f"com of {name} below end of cylinder", columns[6:], below, 0.0, -1),
        ]
    return AffineConstraints(blocks, rows)


@constraint("com_hull")
def com_hulls(robot: Robot, value: Any) -> AffineConstraints:
    """Centres of mass in convex hulls of points (k, 3) [m] in the body's frame.

    One inequality per facet with outward normal n: ``n . l + offset m <= 0``.
    """
    if not value:
        return AffineConstraints()
    from scipy.spatial import ConvexHull, QhullError

    rows: list[Linear] = []
    for name, points in value.items():
        columns, cloud = robot.inertial_columns[body_index(robot, name), 6:], _floats(points)
        try:
            facets = ConvexHull(cloud).equations
        except (QhullError, ValueError) as error:
            raise InputError(
                f"the com hull of {name} has no inside: its {len(cloud)} points are flat"
            ) from error
        # Triangles of one flat face are one inequality.
        for k, facet in enumerate(np.unique(facets.round(12), axis=0)):
            rows.append(Linear(f"com of {name} in hull, facet {k + 1}", columns, -facet))
    return AffineConstraints(linear=rows)


@constraint("inertia_ellipsoid")
def inertia_ellipsoids(robot: Robot, value: Any) -> AffineConstraints:
    """Some distribution of mass inside the ellipsoid has this inertia: ``trace(J Q) >= 0``.

    With J the pseudo-inertia and Q the ellipsoid's quadric, 1 - |A^-1 (x - centre)|^2 in
    homogeneous coordinates: necessary, and together with J > 0 sufficient (Wensing, Kim and
    Slotine 2017, Theorem 4).
    """
    rows = []
    for name, (centre, axes) in (value or {}).items():
        columns, middle = robot.inertial_columns[body_index(robot, name)], _floats(centre)
        inverse, scale = _invert_axes(f"inertia ellipsoid of {name}", axes)
        shape = inverse.T @ inverse
        quadric = np.zeros((4, 4))
        quadric[:3, :3] = -shape
        quadric[:3, 3] = quadric[3, :3] = shape @ middle
        quadric[3, 3] = 1.0 - middle @ shape @ middle
        # In units of the ellipsoid's size squared, so that the coefficients are near one.
        weights = np.einsum("cij,ij->c", inertia.pseudo_inertia(np.eye(10)), quadric) * scale**2
        rows.append(Linear(f"mass of {name} in ellipsoid", columns, weights))
    return AffineConstraints(linear=rows)


@constraint("linear")
def linear_bounds(robot: Robot, value: Any) -> AffineConstraints:
    """Bounds on any linear form of parameters."""
    rows: list[Linear] = []
    for label, (coefficients, lower, upper) in (value or {}).items():
        index = [parameter_index(robot, key) for key in coefficients]
        rows += bound_constraints(label, index, [*coefficients.values()], lower, upper)
    return AffineConstraints(linear=rows)


def _pair_equalities(robot: Robot, **pairs: Any) -> AffineConstraints:
    """Equalities of pairs of bodies, without the zeros of bodies that have no mass."""
    return AffineConstraints(equalities=equalities(robot, None, **pairs)[len(equalities(robot)) :])


FLAT = 1e-12  #: Relative thickness below which a shape has no inside.


def _floats(values: npt.ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


def _invert_axes(what: str, axes: npt.ArrayLike) -> tuple[Array, float]:
    """Inverse of the matrix of an ellipsoid's semi-axes [m], and the longest of them.

    `axes` (3,) or (3, 3): lengths along the body's axes, or the columns of a matrix.
    """
    matrix = _floats(axes)
    if matrix.shape == (3,):
        matrix = np.diag(matrix)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if not sizes[-1] > FLAT * sizes[0]:
        raise InputError(f"the {what} has no inside: its semi-axes are {sizes.tolist()}")
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64), float(sizes[0])


def _second_order_block(name: str, body: int, columns: Index, A: Array, offset: Array) -> Block:
    """``|A l - m offset| <= m`` as [[m 1, A l - m offset], [., m]] >= 0."""
    size = len(A) + 1
    basis = np.zeros((4, size, size))
    basis[:3, :-1, -1] = basis[:3, -1, :-1] = A.T
    basis[3] = np.eye(size)
    basis[3, :-1, -1] = basis[3, -1, :-1] = -offset
    zero = np.zeros((size, size))
    return Block(name, "matrix", body, columns[6:], basis, zero, (0,) * size, strict=False)
