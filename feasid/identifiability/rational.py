"""Exact linear algebra on spatial vectors: rational geometry of robots, and subspaces.

Numbers are ``fractions.Fraction``, or python-flint's when it is installed, which is faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.inertia import SYMBOLS, UPPER

Number = Any
"""Fraction or flint.fmpq."""

Vector = list[Number]
Matrix = list[Vector]

DIGITS = 15
"""Decimal digits of a double that carry information: lengths are the decimals they print as."""

LARGEST_DENOMINATOR = 10_000
"""Rotation matrices with larger denominators count as irrational."""

COARSE_DENOMINATOR = 64
"""Denominators of matrices that may be turned by a small angle."""

LARGEST_TILT = 1e-2
"""Sine of the largest such angle."""

ROUNDING = 4e-16
"""How far a double may be from the rational it stands for, relative to 1."""


class NotRational(Exception):  # noqa: N818  (a signal inside this module, not an error)
    """The geometry has no exact rational form; the message says where."""


@cache
def rational_type() -> tuple[Any, str]:
    """The rational type, and its name."""
    try:
        from flint import fmpq
    except ImportError:
        return Fraction, "fractions"
    return (lambda f: fmpq(f.numerator, f.denominator)), "python-flint"


def to_number(value: Fraction | int) -> Number:
    """A Fraction as the rational type in use."""
    return rational_type()[0](Fraction(value))


def decimal(value: float) -> Fraction:
    """The decimal that a double prints as, with 15 digits."""
    return Fraction(f"{value:.{DIGITS}g}")


def rational_rotation(rotation: Array, what: str) -> list[list[Fraction]]:
    """Exactly orthogonal rational matrix that rounds to this one.

    Either its entries have small denominators, or it is such a matrix turned by a small angle,
    as when a right angle is off by 1e-7.
    """
    exact = _orthogonal(rotation, LARGEST_DENOMINATOR)
    if exact is None or _distance(exact, rotation) > ROUNDING:
        coarse = _orthogonal(rotation, COARSE_DENOMINATOR)
        exact = None if coarse is None else _tilted(coarse, rotation)
    if exact is None or _distance(exact, rotation) > ROUNDING:
        raise NotRational(f"{what} is not a rotation matrix of rationals")
    return exact


def _orthogonal(rotation: Array, denominator: int) -> list[list[Fraction]] | None:
    """Entries with denominators up to this, if they make an orthogonal matrix."""
    near = [[Fraction(float(v)).limit_denominator(denominator) for v in row] for row in rotation]
    products = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in near] for r in near]
    return near if products == [[int(i == j) for j in range(3)] for i in range(3)] else None


def _distance(exact: list[list[Fraction]], rotation: Array) -> float:
    return float(np.abs(np.array([[float(v) for v in row] for row in exact]) - rotation).max())


def _tilted(coarse: list[list[Fraction]], rotation: Array) -> list[list[Fraction]] | None:
    """The coarse matrix turned by the small angle that leads to this one."""
    small = np.array([[float(v) for v in row] for row in coarse]).T @ rotation
    sines = (
        np.array([small[2, 1] - small[1, 2], small[0, 2] - small[2, 0], small[1, 0] - small[0, 1]])
        / 2
    )
    size = float(np.linalg.norm(sines))
    if not 0 < size < LARGEST_TILT:
        return None
    half = np.tan(np.arcsin(size) / 2) / size * sines
    x, y, z = (decimal(float(h)) if abs(h) > ROUNDING else Fraction(0) for h in half)
    n = 1 + x * x + y * y + z * z
    turn = [
        [(1 + x * x - y * y - z * z) / n, 2 * (x * y - z) / n, 2 * (x * z + y) / n],
        [2 * (x * y + z) / n, (1 - x * x + y * y - z * z) / n, 2 * (y * z - x) / n],
        [2 * (x * z - y) / n, 2 * (y * z + x) / n, (1 - x * x - y * y + z * z) / n],
    ]
    return [
        [sum((a * c[j] for a, c in zip(row, turn, strict=True)), Fraction(0)) for j in range(3)]
        for row in coarse
    ]


def screw_size(screw: Array) -> float:
    """Largest entry of a screw's direction: what `rational_screw` divides by."""
    size = float(np.abs(screw[:3]).max())
    return size if size >= ROUNDING else float(np.abs(screw[3:]).max())


def rational_screw(screw: Array, what: str) -> list[Fraction]:
    """A rational multiple of a screw: its direction in rationals, its moment in decimals."""
    size = screw_size(screw)
    near = [Fraction(float(v) / size).limit_denominator(LARGEST_DENOMINATOR) for v in screw[:3]]
    rest = [float(v) / size for v in screw[3:]]
    if any(near):
        linear = [decimal(v) for v in rest]
    else:
        linear = [Fraction(v).limit_denominator(LARGEST_DENOMINATOR) for v in rest]
    off = max(abs(float(a) - float(b) / size) for a, b in zip([*near, *linear], screw, strict=True))
    if off > ROUNDING * max(1.0, float(np.abs(screw).max()) / size):
        raise NotRational(f"the axis of {what} has no rational direction")
    pitch = sum((a * b for a, b in zip(near, linear, strict=True)), Fraction(0))
    if pitch and abs(float(pitch)) < 1e-12 * max(abs(float(v)) for v in linear):
        raise NotRational(f"the axis of {what} has a rounded position")
    return near + linear


def skew(v: Sequence[Number]) -> Matrix:
    """Matrix of the cross product."""
    zero = v[0] - v[0]
    return [[zero, -v[2], v[1]], [v[2], zero, -v[0]], [-v[1], v[0], zero]]


def product(a: Matrix, b: Matrix) -> Matrix:
    """Matrix product, skipping zeros."""
    out = []
    for row in a:
        used = [(k, v) for k, v in enumerate(row) if v]
        out.append(
            [sum((v * b[k][j] for k, v in used if b[k][j]), row[0] * 0) for j in range(len(b[0]))]
        )
    return out


def transposed(a: Matrix) -> Matrix:
    """Rows to columns."""
    return [list(column) for column in zip(*a, strict=True)]


def cross(screw: Vector) -> Matrix:
    """Motion cross product, 6 x 6."""
    w, v = skew(screw[:3]), skew(screw[3:])
    zero = [w[0][0]] * 3
    return [r + zero for r in w] + [a + b for a, b in zip(v, w, strict=True)]


def motion_transform(rotation: Matrix, position: Vector) -> Matrix:
    """Velocities of the parent seen in the child, 6 x 6."""
    turned = transposed(rotation)
    zero = [rotation[0][0] * 0] * 3
    lower = [[-x for x in row] for row in product(turned, skew(position))]
    return [r + zero for r in turned] + [a + b for a, b in zip(lower, turned, strict=True)]


def inertia(k: int) -> list[tuple[int, int, int]]:
    """Entries (row, column, sign) of the spatial inertia per unit of parameter k."""
    if k < 6:
        r, c = UPPER[k]
        return [(r, c, 1)] if r == c else [(r, c, 1), (c, r, 1)]
    if k == 9:
        return [(3, 3, 1), (4, 4, 1), (5, 5, 1)]
    a, b = [(1, 2), (2, 0), (0, 1)][k - 6]
    # of S(e) for axis e: S[b][a] = 1, S[a][b] = -1; upper right S, lower left -S
    return [(b, 3 + a, 1), (a, 3 + b, -1), (3 + a, b, 1), (3 + b, a, -1)]


INERTIAS = [inertia(k) for k in range(len(SYMBOLS))]


def bilinear(left: Vector, right: Vector) -> Vector:
    """The functional left' I(delta) right on the ten parameters."""
    zero = left[0] * 0
    return [
        sum((s * left[r] * right[c] for r, c, s in INERTIAS[k] if left[r] and right[c]), zero)
        for k in range(10)
    ]


def parameter_map(transform: Matrix) -> Matrix:
    """B with vee(X' I(delta) X) = B delta, 10 x 10, for the parameters' own entries.

    Wensing et al. (2024) eq. (39).
    """
    columns = [[row[j] for row in transform] for j in range(6)]
    picks = [*UPPER, (2, 4), (0, 5), (1, 3), (5, 5)]
    return [bilinear(columns[r], columns[c]) for r, c in picks]


def parameter_rate(screw: Vector) -> Matrix:
    """A with vee((Phi x)' I + I (Phi x)) = A delta, 10 x 10; Wensing et al. (2024) eq. (40)."""
    s = cross(screw)
    one = [[s[0][0] * 0 + int(i == j) for j in range(6)] for i in range(6)]
    columns = [[row[j] for row in s] for j in range(6)]
    picks = [*UPPER, (2, 4), (0, 5), (1, 3), (5, 5)]
    return [
        [
            a + b
            for a, b in zip(bilinear(columns[r], one[c]), bilinear(one[r], columns[c]), strict=True)
        ]
        for r, c in picks
    ]


# -- spans ---------------------------------------------------------------------------------------


def to_float(value: Number) -> float:
    """The double nearest to a rational."""
    if isinstance(value, Fraction):
        return float(value)
    return float(Fraction(int(value.p), int(value.q)))


class Subspace:
    """A subspace by a reduced basis, grown vector by vector."""

    def __init__(self, vectors: Iterable[Vector] = ()) -> None:
        self.rows: dict[int, Vector] = {}
        for vector in vectors:
            self.add(vector)

    def add(self, vector: Vector) -> bool:
        """Add a vector; whether it was outside."""
        rest = list(vector)
        for known, row in self.rows.items():
            factor = rest[known]
            if factor:
                rest = [a - factor * b if b else a for a, b in zip(rest, row, strict=True)]
        pivot = next((k for k, v in enumerate(rest) if v), None)
        if pivot is None:
            return False
        lead = rest[pivot]
        rest = [v / lead if v else v for v in rest]
        for other, row in self.rows.items():
            factor = row[pivot]
            if factor:
                self.rows[other] = [
                    a - factor * b if b else a for a, b in zip(row, rest, strict=True)
                ]
        self.rows[pivot] = rest
        return True

    def close(self, generators: Sequence[Matrix]) -> Subspace:
        """Grow until every generator maps the subspace into itself."""
        waiting = list(self.rows.values())
        while waiting:
            vector = waiting.pop()
            for matrix in generators:
                image = [row[0] for row in product(matrix, [[v] for v in vector])]
                if self.add(image):
                    waiting.append(image)
        return self

    @property
    def basis(self) -> Matrix:
        """The reduced basis."""
        return list(self.rows.values())


def apply(matrix: Matrix, vectors: Iterable[Vector]) -> Matrix:
    """Images of vectors."""
    columns = list(vectors)
    if not columns:
        return []
    return transposed(product(matrix, transposed(columns)))


def beside(a: Matrix, b: Matrix) -> Matrix:
    """Block diagonal matrix."""
    zero = a[0][0] * 0
    return [r + [zero] * len(b) for r in a] + [[zero] * len(a) + r for r in b]
