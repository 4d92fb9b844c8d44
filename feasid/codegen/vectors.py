"""Vectors and symmetric matrices of expressions: what the recursions need of algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.codegen.expression import Expression, Graph
from feasid.core.arrays import Array

Vector = tuple[Expression, Expression, Expression]

SIGNED_PERMUTATION = 1e-15
"""Entries of a rotation this close to 0 and 1 are rounding of a turn by right angles."""


def vector(graph: Graph, values: Sequence[Expression | float]) -> Vector:
    """Three numbers or expressions."""
    x, y, z = (graph.of(v if isinstance(v, Expression) else float(v)) for v in values)
    return x, y, z


def plus(a: Vector, b: Vector) -> Vector:
    """A + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def scaled(factor: Expression, v: Sequence[float]) -> Vector:
    """A constant vector times an expression."""
    return float(v[0]) * factor, float(v[1]) * factor, float(v[2]) * factor


def cross(a: Vector, b: Vector) -> Vector:
    """A x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def dot(a: Vector, b: Vector) -> Expression:
    """A . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def turned(rotation: Array, v: Vector) -> Vector:
    """A constant rotation of a vector; turns by right angles cost nothing."""
    rows = np.where(np.abs(rotation) < SIGNED_PERMUTATION, 0.0, rotation)
    rows = np.where(np.abs(np.abs(rows) - 1.0) < SIGNED_PERMUTATION, np.sign(rows), rows)
    x, y, z = (float(r[0]) * v[0] + float(r[1]) * v[1] + float(r[2]) * v[2] for r in rows.tolist())
    return x, y, z


@dataclass(frozen=True, eq=False)
class Turn:
    """A rotation by an angle about the z axis, of which only cosine and sine are known."""

    cosine: Expression
    sine: Expression

    def apply(self, v: Vector) -> Vector:
        """The vector, turned."""
        c, s = self.cosine, self.sine
        return c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]

    def back(self, v: Vector) -> Vector:
        """The vector, turned the other way."""
        return Turn(self.cosine, -self.sine).apply(v)

    def congruence(self, L: Symmetric) -> Symmetric:
        """R L R', in eight products."""
        c, s = self.cosine, self.sine
        shear = L.xy * s
        part = c * (L.xx - L.yy) - (shear + shear)
        swing, lift = s * part, c * part
        return Symmetric(
            L.yy + lift, L.xy + swing, c * L.xz - s * L.yz,
            L.xx - lift, s * L.xz + c * L.yz, L.zz,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Symmetric:
    """A symmetric 3 x 3 matrix."""

    xx: Expression
    xy: Expression
    xz: Expression
    yy: Expression
    yz: Expression
    zz: Expression

    @property
    def entries(self) -> tuple[Expression, ...]:
        """In the order of the first six inertial parameters."""
        return self.xx, self.xy, self.xz, self.yy, self.yz, self.zz

    @property
    def rows(self) -> tuple[Vector, Vector, Vector]:
        """Three rows."""
        return (
            (self.xx, self.xy, self.xz),
            (self.xy, self.yy, self.yz),
            (self.xz, self.yz, self.zz),
        )

    def times(self, v: Vector) -> Vector:
        """L v."""
        x, y, z = (dot(row, v) for row in self.rows)
        return x, y, z

    def plus(self, other: Symmetric) -> Symmetric:
        """The sum of two."""
        return Symmetric(*(a + b for a, b in zip(self.entries, other.entries, strict=True)))

    def turned(self, rotation: Array) -> Symmetric:
        """R L R' with a constant rotation."""
        half = [turned(rotation, column) for column in self.rows]
        full = [turned(rotation, (half[0][k], half[1][k], half[2][k])) for k in range(3)]
        return Symmetric(full[0][0], full[0][1], full[0][2], full[1][1], full[1][2], full[2][2])
