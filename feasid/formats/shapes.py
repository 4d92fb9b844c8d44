"""Collision primitives: volume, bounding box, and the capsule around each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array


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

    def reach(self) -> Array:
        """Half extents of the bounding box along the link's axes, shape (3,)."""
        if self.kind == "sphere":
            return self.half
        if self.kind == "ellipsoid":
            return np.asarray(np.sqrt((self.rotation**2) @ self.half**2))
        if self.kind in ("cylinder", "capsule"):
            axis, radius = np.abs(self.rotation[:, 2]), self.half[0]
            round_part = np.full(3, radius)
            if self.kind == "cylinder":
                round_part = radius * np.sqrt(np.clip(1 - axis**2, 0, 1))
                return np.asarray(axis * self.half[2] + round_part)
            return np.asarray(axis * (self.half[2] - radius) + round_part)
        return np.asarray(np.abs(self.rotation) @ self.half)

    def capsule(self) -> tuple[Array, Array, float]:
        """End points (3,) and radius of a capsule that contains the shape, in the link's frame.

        Spheres and capsules are their own; a cylinder gets round ends, a box the capsule along
        its longest axis through its edges.
        """
        longest = int(np.argmax(self.half)) if self.kind in ("box", "ellipsoid") else 2
        across = np.delete(self.half, longest)
        reach = float(self.half[longest])
        if self.kind == "sphere":
            radius, half = reach, 0.0
        elif self.kind == "box":
            radius, half = float(np.linalg.norm(across)), reach
        elif self.kind == "ellipsoid":
            radius = float(across.max())
            half = reach - radius
        else:
            radius = float(self.half[0])
            half = reach - radius if self.kind == "capsule" else reach
        along = half * self.rotation[:, longest]
        return self.position - along, self.position + along, radius


def primitive(kind: str, size: Sequence[float], rotation: Array, position: Array) -> Shape | None:
    """A shape of a kind: box (x, y, z), sphere (r), cylinder or capsule (r, length of its straight
    part), ellipsoid (semi-axes); None for a size that is not positive.
    """  # fmt: skip
    if not size or min(size) <= 0 or not np.isfinite(size).all():
        return None
    if kind == "box":
        half, volume = np.array(size) / 2, math.prod(size)
    elif kind == "sphere":
        half, volume = np.full(3, size[0]), 4 / 3 * math.pi * size[0] ** 3
    elif kind == "ellipsoid":
        half, volume = np.array(size), 4 / 3 * math.pi * math.prod(size)
    else:
        radius, length = size
        volume = math.pi * radius**2 * length
        ends = radius if kind == "capsule" else 0.0
        volume += 4 / 3 * math.pi * radius**3 if kind == "capsule" else 0.0
        half = np.array([radius, radius, length / 2 + ends])
    return Shape(kind, np.asarray(half, dtype=np.float64), volume, rotation, position)


def bounding_box(shapes: Sequence[Shape]) -> tuple[Array, Array]:
    """Lower and upper corner of the box around all shapes, in the link's axes."""
    lower = np.min([s.position - s.reach() for s in shapes], axis=0)
    upper = np.max([s.position + s.reach() for s in shapes], axis=0)
    return lower, upper


def farthest(shapes: Sequence[Shape], point: Array) -> float:
    """Upper bound of the distance from a point to any part of the shapes [m]."""
    lower, upper = bounding_box(shapes)
    return float(np.linalg.norm(np.maximum(np.abs(upper - point), np.abs(lower - point))))
