"""Where a body's mass may be: centre of mass and mass distribution within given shapes.

The centre of mass c = l / m lies in a shape exactly when l and m satisfy inequalities that are
linear in them (boxes, convex hulls) or ask a matrix to be positive (ellipsoids, cylinders), after
multiplication by m > 0, as in Sousa and Cortesao (2014) eq. (26).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.robot import inertia

Index = npt.NDArray[np.intp]

FLAT = 1e-12
"""Relative thickness below which a shape has no inside."""


def com_ellipsoid(
    name: str, body: int, columns: Index, centre: npt.ArrayLike, axes: npt.ArrayLike
) -> Block:
    """Centre of mass in an ellipsoid: ``|A^-1 (l - m centre)| <= m``.

    Parameters
    ----------
    name : str
        Of the body.
    body : int
    columns : ndarray of int, shape (10,)
    centre : array_like, shape (3,)
        In the body's frame [m].
    axes : array_like, shape (3,) or (3, 3)
        Semi-axes [m]: lengths along the body's axes, or the columns of a matrix.
    """
    middle, inverse, _ = _ellipsoid(f"com ellipsoid of {name}", centre, axes)
    return _second_order(f"com of {name} in ellipsoid", body, columns, inverse, inverse @ middle)


def com_cylinder(
    name: str,
    body: int,
    columns: Index,
    start: npt.ArrayLike,
    end: npt.ArrayLike,
    radius: float,
) -> tuple[Block, list[Linear]]:
    """Centre of mass in the cylinder between two points [m] in the body's frame."""
    what = f"com cylinder of {name}"
    a, b = _point(what, start), _point(what, end)
    height = float(np.linalg.norm(b - a))
    if not (np.isfinite(radius) and radius > 0 and height > FLAT):
        raise InputError(f"the {what} needs a positive radius and two different points")
    along = (b - a) / height
    across = np.linalg.svd(along[None])[2][1:] / radius
    block = _second_order(f"com of {name} in cylinder", body, columns, across, across @ a)
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
    middle, inverse, scale = _ellipsoid(f"inertia ellipsoid of {name}", centre, axes)
    shape = inverse.T @ inverse
    quadric = np.zeros((4, 4))
    quadric[:3, :3] = -shape
    quadric[:3, 3] = quadric[3, :3] = shape @ middle
    quadric[3, 3] = 1.0 - middle @ shape @ middle
    # In units of the ellipsoid's size squared, so that the coefficients are near one.
    weights = np.einsum("cij,ij->c", inertia.pseudo_inertia(np.eye(10)), quadric) * scale**2
    return Linear(f"mass of {name} in ellipsoid", columns, weights)


def _point(what: str, value: npt.ArrayLike) -> Array:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InputError(f"the {what} needs finite points of 3 numbers, got {point.tolist()}")
    return point


def _ellipsoid(what: str, centre: npt.ArrayLike, axes: npt.ArrayLike) -> tuple[Array, Array, float]:
    """Centre, inverse of the matrix of semi-axes, and the longest of them."""
    middle, matrix = _point(what, centre), np.asarray(axes, dtype=np.float64)
    if matrix.shape == (3,):
        matrix = np.diag(matrix)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        raise InputError(f"the {what} needs 3 semi-axes or a 3x3 matrix of them")
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if not sizes[-1] > FLAT * sizes[0]:
        raise InputError(f"the {what} has no inside: its semi-axes are {sizes.tolist()}")
    inverse: Array = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return middle, inverse, float(sizes[0])


def _second_order(name: str, body: int, columns: Index, A: Array, offset: Array) -> Block:
    """``|A l - m offset| <= m`` as [[m 1, A l - m offset], [., m]] >= 0."""
    size = len(A) + 1
    basis = np.zeros((4, size, size))
    basis[:3, :-1, -1] = basis[:3, -1, :-1] = A.T
    basis[3] = np.eye(size)
    basis[3, :-1, -1] = basis[3, -1, :-1] = -offset
    zero = np.zeros((size, size))
    return Block(name, "matrix", body, columns[6:], basis, zero, (0,) * size, strict=False)
