"""Collision geometries: volume, bounding box, and the capsule around each.

A mesh, read only where the caller names its folder, is replaced by two shapes that contain its
convex hull: a capsule for large distances, and a polytope of few faces for small ones. Links whose
capsules or polytopes are apart do not meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import is_regular, read_whole
from feasid.core.text import quote
from feasid.robot.inertia import from_mass_com_inertia


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh that a description names, in its link's frame: ``rotation (scale p) + position``."""

    name: str
    scale: Array
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Shape:
    """A primitive in its link's frame.

    ``half`` are the half extents along the shape's own axes [m], ``volume`` its volume [m^3].
    """

    kind: str
    half: Array
    volume: float
    rotation: Array
    position: Array

    @property
    def size(self) -> Array:
        """The numbers of which `primitive_shape` makes it."""
        ends = 2 * self.half[0] if self.kind == "capsule" else 0.0
        long = np.array([self.half[0], 2 * self.half[2] - ends])
        sizes = {"box": 2 * self.half, "sphere": self.half[:1], "ellipsoid": self.half}
        return sizes.get(self.kind, long)

    @property
    def second_moments(self) -> Array:
        """Second moments about the centre of a uniform body, per mass [m^2], shape (3, 3)."""
        half, radius = self.half, self.half[0]
        if self.kind == "capsule":
            straight = half[2] - radius
            part = np.pi * radius**2 * 2 * straight / self.volume  # the rest are two half balls
            # Their centres of mass are 3/8 of the radius beyond the straight part.
            ends = radius**2 / 5 + straight**2 + 0.75 * straight * radius
            along = part * straight**2 / 3 + (1 - part) * ends
            across = part * radius**2 / 4 + (1 - part) * radius**2 / 5
            moments = np.array([across, across, along])
        else:
            moments = half**2 / {"box": [3, 3, 3], "cylinder": [4, 4, 3]}.get(self.kind, [5, 5, 5])
        return np.asarray(self.rotation @ np.diag(moments) @ self.rotation.T)

    def uniform_body(self, mass: float) -> Array:
        """The ten parameters of the shape, filled uniformly with a mass [kg]."""
        second = mass * self.second_moments
        return from_mass_com_inertia(mass, self.position, np.trace(second) * np.eye(3) - second)

    def half_extents(self) -> Array:
        """Half extents of the bounding box along the link's axes, shape (3,)."""
        if self.kind == "sphere":
            return self.half
        if self.kind == "ellipsoid":
            return np.asarray(np.sqrt((self.rotation**2) @ self.half**2))
        if self.kind in ("cylinder", "capsule"):
            axis, radius = np.abs(self.rotation[:, 2]), self.half[0]
            if self.kind == "capsule":
                return np.asarray(axis * (self.half[2] - radius) + radius)
            return np.asarray(axis * self.half[2] + radius * np.sqrt(np.clip(1 - axis**2, 0, 1)))
        return np.asarray(np.abs(self.rotation) @ self.half)

    def enclosing_capsule(self) -> tuple[Array, Array, float]:
        """End points (3,) and radius of a capsule that contains the shape, in the link's frame.

        Spheres and capsules are unchanged; a cylinder gets round ends, and a box the capsule along
        its longest axis through its edges.
        """
        longest = int(np.argmax(self.half)) if self.kind in ("box", "ellipsoid") else 2
        across = np.delete(self.half, longest)
        reach = float(self.half[longest])
        radius = float(np.linalg.norm(across) if self.kind == "box" else across.max())
        half = reach if self.kind in ("box", "cylinder") else reach - radius
        along = half * self.rotation[:, longest]
        return self.position - along, self.position + along, radius


DRAWN = ("visual", "collision")


@dataclass(frozen=True, eq=False)
class Drawing:
    """One shape of a link: what is drawn of it, or what collides."""

    tag: str  #: One of `DRAWN`.
    shape: Shape | Mesh | None  #: In the link's frame; None for one that is not known.
    colour: tuple[float, ...] = ()  #: Red, green, blue and opacity, if the file says them.


def primitives(drawings: Sequence[Drawing], tag: str) -> list[Shape | None]:
    """Shapes with this tag; None stands for one that is no known primitive, such as a mesh."""
    shapes = (drawing.shape for drawing in drawings if drawing.tag == tag)
    return [shape if isinstance(shape, Shape) else None for shape in shapes]


NUMBERS_OF_SIZE = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
"""Kinds of primitives, and how many numbers say their size."""


def primitive_shape(
    kind: str, size: Sequence[float] | Array, rotation: Array, position: Array
) -> Shape | None:
    """A shape of a kind: box (x, y, z), sphere (r), cylinder or capsule (r, length of its straight
    part), ellipsoid (semi-axes); None for a size that is not positive.
    """  # fmt: skip
    if not len(size) or min(size) <= 0 or not np.isfinite(size).all():
        return None
    if kind == "box":
        half, volume = np.array(size) / 2, math.prod(size)
    elif kind == "sphere":
        half, volume = np.full(3, size[0]), 4 / 3 * math.pi * size[0] ** 3
    elif kind == "ellipsoid":
        half, volume = np.array(size), 4 / 3 * math.pi * math.prod(size)
    else:
        radius, length = size
        ends = radius if kind == "capsule" else 0.0
        volume = math.pi * radius**2 * (length + 4 / 3 * ends)
        half = np.array([radius, radius, length / 2 + ends])
    return Shape(kind, np.asarray(half, dtype=np.float64), volume, rotation, position)


def bounding_box(shapes: Sequence[Shape]) -> tuple[Array, Array]:
    """Lower and upper corner of the box around all shapes, in the link's axes."""
    lower = np.min([s.position - s.half_extents() for s in shapes], axis=0)
    upper = np.max([s.position + s.half_extents() for s in shapes], axis=0)
    return lower, upper


def farthest_distance(shapes: Sequence[Shape], point: Array) -> float:
    """Upper bound of the distance from a point to any part of the shapes [m]."""
    lower, upper = bounding_box(shapes)
    return float(np.linalg.norm(np.maximum(np.abs(upper - point), np.abs(lower - point))))


def second_moments_of_shapes(shapes: Sequence[Shape], point: Array) -> Array:
    """Second moments about a point of a uniform body of the shapes, per mass [m^2], (3, 3)."""
    volume = sum(shape.volume for shape in shapes)
    away = [(shape, shape.position - point) for shape in shapes]
    parts = [s.volume / volume * (s.second_moments + np.outer(d, d)) for s, d in away]
    return np.asarray(np.sum(parts, axis=0))


MOST_BYTES = 2**28  #: Size beyond which no mesh is read.

CIRCLE_STEPS = 300
"""Steps towards the centre of the smallest circle: its radius is then 0.3 % too large at most."""

ROUNDING = 1e-9
"""Margins by which capsules (a share) and polytopes [m] are larger than the shapes inside."""

RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
"""A triangle of a binary STL file."""


def hull_corners(mesh: Mesh, folder: str | Path) -> Array:
    """Corners of a mesh's convex hull in its link's frame, shape (N, 3) [m].

    Raises InputError: it is not there, in no format that is read, damaged or flat.
    """
    from scipy.spatial import ConvexHull, QhullError

    path = find_mesh(folder, mesh.name)
    points = read_points(path)
    try:
        corners = points[ConvexHull(points).vertices]
    except QhullError:
        raise InputError(f"mesh {path.name} has no volume", path=str(path)) from None
    return np.asarray((corners * mesh.scale) @ mesh.rotation.T + mesh.position)


def find_mesh(folder: str | Path, name: str) -> Path:
    """The file of a mesh below a folder, by the longest end of its name that exists there.

    ``package://arm/meshes/link.stl`` is looked for as ``arm/meshes/link.stl``, ``meshes/link.stl``
    and ``link.stl``.

    Raises InputError: no such file exists.
    """
    parts = [p for p in PurePosixPath(name.split("://")[-1]).parts if p != "/"]
    if ".." not in parts:
        for k in range(len(parts)):
            path = Path(folder).joinpath(*parts[k:])
            if is_regular(path):
                return path
    raise InputError(f"mesh {quote(name)} is not below folder {quote(str(folder))}", path=name)


def read_points(path: Path) -> Array:
    """Corners of a mesh in STL or OBJ, shape (N, 3).

    Raises InputError: another format, or a damaged file.
    """
    content, kind = read_whole(path, MOST_BYTES), path.suffix.lower()
    try:
        if kind == ".obj":
            vertices = _numbers_after(content, b"v")
        elif kind != ".stl":
            raise InputError(
                f"mesh {path.name} is neither STL nor OBJ: convert it, or give capsules=",
                path=str(path),
            )
        # A binary STL may begin with "solid", as text does, but says its size behind a header.
        elif len(content) == 84 + RECORD.itemsize * int.from_bytes(content[80:84], "little"):
            vertices = np.frombuffer(content, RECORD, offset=84)["corners"].reshape(-1, 3)
        else:
            vertices = _numbers_after(content, b"vertex")
    except ValueError as error:
        raise InputError(f"mesh {path.name} is damaged: {error}", path=str(path)) from error
    points = np.unique(np.asarray(vertices, dtype=np.float64).reshape(-1, 3), axis=0)
    if len(points) < 4 or not np.isfinite(points).all():
        raise InputError(f"mesh {path.name} is damaged: it has no body", path=str(path))
    return points


def _numbers_after(content: bytes, word: bytes) -> Array:
    lines = (line.split() for line in content.splitlines())
    return np.array([[float(x) for x in line[1:4]] for line in lines if line[:1] == [word]])


@dataclass(frozen=True, eq=False)
class Polytope:
    """A convex body: all points p with ``normals @ p <= offsets``, in its link's frame [m]."""

    normals: Array  #: Shape (k, 3): of length one, outward.
    offsets: Array  #: Shape (k,).
    corners: Array  #: Shape (m, 3).

    def transform(self, rotation: Array, position: Array) -> Polytope:
        """Move the body to another frame, ``rotation p + position``."""
        normals = self.normals @ rotation.T
        return Polytope(
            normals, self.offsets + normals @ position, self.corners @ rotation.T + position
        )


def enclosing_polytope(points: Array) -> Polytope:
    """A body of at most 74 faces around the convex hull of points (N, 3) [m].

    Every face touches the hull; their directions are those of a grid along its principal axes, in
    units of one over its extents: long bodies have more faces around them.
    """
    from scipy.spatial import HalfspaceIntersection

    axes = _principal_axes(points)
    normals = DIRECTIONS / np.ptp(points @ axes.T, axis=0)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True) @ axes
    offsets = (points @ normals.T).max(axis=0) + ROUNDING
    cut = HalfspaceIntersection(np.column_stack([normals, -offsets]), points.mean(axis=0))
    # Where more than three faces meet, the corner comes several times, up to rounding.
    return Polytope(normals, offsets, np.unique(cut.intersections.round(12), axis=0))


_GRID = np.array([*product(range(-2, 3), repeat=3)])
_GRID = _GRID[(np.gcd.reduce(_GRID, axis=1) == 1) & ((_GRID**2).sum(axis=1) <= 6)]
DIRECTIONS = _GRID / np.linalg.norm(_GRID, axis=1, keepdims=True)
"""Directions of all whole numbers up to two but for multiples of others, shape (74, 3)."""


def enclosing_capsule(points: Array) -> tuple[Array, Array, float]:
    """A capsule (start, end, radius) that contains points (N, 3), along a principal axis [m].

    Its radius is that of a circle around all points, whose centre is found by steps towards the
    farthest point (Badoiu and Clarkson, 2003).
    """
    capsules = []
    for axis in _principal_axes(points):
        height = points @ axis
        flat = points - height[:, None] * axis
        centre = flat.mean(axis=0)
        for k in range(1, CIRCLE_STEPS):
            away = flat - centre
            centre = centre + away[np.argmax(np.einsum("ij,ij->i", away, away))] / (k + 1)
        across = np.linalg.norm(flat - centre, axis=1)
        radius = float(across.max()) * (1 + ROUNDING)
        reach = np.sqrt(np.maximum(radius**2 - across**2, 0.0))
        low, high = float(np.min(height + reach)), float(np.max(height - reach))
        if low > high:  # the two balls hold all points without a straight part: one is enough
            low = high = 0.5 * (low + high)
        capsules.append((centre + low * axis, centre + high * axis, radius))
    return min(capsules, key=lambda c: c[2] ** 2 * (np.linalg.norm(c[1] - c[0]) + 4 / 3 * c[2]))


def _principal_axes(points: Array) -> Array:
    """Principal axes of points as rows, shape (3, 3)."""
    return np.asarray(np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[2])
