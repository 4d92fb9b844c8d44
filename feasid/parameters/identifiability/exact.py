"""The recursion in exact rational arithmetic, where a robot's geometry is rational.

Rank decisions in floating point need a tolerance. When rotations are orthogonal matrices of
rationals (right angles, or 3-4-5 triangles) and lengths are decimals, the recursion of Wensing et
al. (2024), Alg. 1 and 2, can be run as it is written, with powers and without tolerances. That
certifies a result of `feasid.parameters.identifiability.recursion`. Numbers are
``fractions.Fraction``, or python-flint's when it is installed, which is faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.parameters.identifiability.echelon import Echelon, JointNullspace
from feasid.parameters.identifiability.invariant_subspaces import PICKS
from feasid.robot.bodies import SYMMETRIC_ROTOR, Body
from feasid.robot.inertia import spatial_inertia

Number = Any  #: Fraction or flint.fmpq.

Vector = list[Number]
Matrix = list[Vector]

DIGITS = 15
"""Decimal digits of a double that carry information: lengths are the decimals they print as."""

MAX_DENOMINATOR = 10_000  #: Rotation matrices with larger denominators count as irrational.
MAX_COARSE_DENOMINATOR = 64  #: Largest denominator of a matrix that may be turned by a small angle.

MAX_TILT = 1e-2  #: Sine of the largest such angle.
ROUNDING = 4e-16
"""Largest difference between a double and the rational that it approximates, relative to 1."""


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


def to_rational(value: Fraction | int) -> Number:
    """A Fraction as the rational type in use."""
    return rational_type()[0](Fraction(value))


def printed_decimal(value: float) -> Fraction:
    """The decimal that a double prints as, with 15 digits."""
    return Fraction(f"{value:.{DIGITS}g}")


def rational_rotation(rotation: Array, what: str) -> list[list[Fraction]]:
    """Exactly orthogonal rational matrix that rounds to this one.

    Either its entries have small denominators, or it is such a matrix turned by a small angle,
    as when a right angle is off by 1e-7.
    """
    exact, coarse = _orthogonal(rotation, MAX_DENOMINATOR), None
    if exact is None or np.abs(np.array(exact, dtype=float) - rotation).max() > ROUNDING:
        exact, coarse = None, _orthogonal(rotation, MAX_COARSE_DENOMINATOR)
    if coarse is not None:
        small = np.array(coarse, dtype=float).T @ rotation
        twice = small - small.T
        sines = np.array([twice[2, 1], twice[0, 2], twice[1, 0]]) / 2
        size = float(np.linalg.norm(sines))
        if 0 < size < MAX_TILT:  # the angle that leads from the coarse matrix to this one
            half = (np.tan(np.arcsin(size) / 2) / size * sines).tolist()
            x, y, z = (printed_decimal(h) if abs(h) > ROUNDING else Fraction(0) for h in half)
            n = 1 + x * x + y * y + z * z
            turn = [
                [(1 + x * x - y * y - z * z) / n, 2 * (x * y - z) / n, 2 * (x * z + y) / n],
                [2 * (x * y + z) / n, (1 - x * x + y * y - z * z) / n, 2 * (y * z - x) / n],
                [2 * (x * z - y) / n, 2 * (y * z + x) / n, (1 - x * x - y * y + z * z) / n],
            ]
            exact = matrix_product(coarse, turn)
    if exact is None or np.abs(np.array(exact, dtype=float) - rotation).max() > ROUNDING:
        raise NotRational(f"{what} is not a rotation matrix of rationals")
    return exact


def _orthogonal(rotation: Array, denominator: int) -> list[list[Fraction]] | None:
    """Entries with denominators up to this, if they make an orthogonal matrix."""
    fractions = [
        [Fraction(float(v)).limit_denominator(denominator) for v in row] for row in rotation
    ]
    products = matrix_product(fractions, transpose(fractions))
    return fractions if products == np.eye(3).tolist() else None


def screw_size(screw: Array) -> float:
    """Largest entry of a screw's direction, by which `rational_screw` divides."""
    size = float(np.abs(screw[:3]).max())
    return size if size >= ROUNDING else float(np.abs(screw[3:]).max())


def rational_screw(screw: Array, what: str) -> list[Fraction]:
    """A rational multiple of a screw: its direction in rationals, its moment in decimals."""
    size = screw_size(screw)
    direction = [Fraction(float(v) / size).limit_denominator(MAX_DENOMINATOR) for v in screw[:3]]
    linear_part = [float(v) / size for v in screw[3:]]
    if any(direction):
        linear = [printed_decimal(v) for v in linear_part]
    else:
        linear = [Fraction(v).limit_denominator(MAX_DENOMINATOR) for v in linear_part]
    off = max(
        abs(float(a) - float(b) / size) for a, b in zip([*direction, *linear], screw, strict=True)
    )
    if off > ROUNDING * max(1.0, float(np.abs(screw).max()) / size):
        raise NotRational(f"the axis of {what} has no rational direction")
    pitch = sum((a * b for a, b in zip(direction, linear, strict=True)), Fraction(0))
    if pitch and abs(float(pitch)) < 1e-12 * max(abs(float(v)) for v in linear):
        raise NotRational(f"the axis of {what} has a rounded position")
    return direction + linear


def skew(v: Sequence[Number]) -> Matrix:
    """Matrix of the cross product."""
    zero = v[0] - v[0]  # in the rational type in use
    return [[zero, -v[2], v[1]], [v[2], zero, -v[0]], [-v[1], v[0], zero]]


def matrix_product(a: Matrix, b: Matrix) -> Matrix:
    """Matrix product, skipping zeros."""
    out = []
    for row in a:
        pairs = [(v, b[k]) for k, v in enumerate(row) if v]
        out.append(
            [sum((v * r[j] for v, r in pairs if r[j]), row[0] * 0) for j in range(len(b[0]))]
        )
    return out


def transpose(a: Matrix) -> Matrix:
    """Rows to columns."""
    return [list(column) for column in zip(*a, strict=True)]


def cross(screw: Vector) -> Matrix:
    """Motion cross product, 6 x 6."""
    w, v = skew(screw[:3]), skew(screw[3:])
    zero = [w[0][0]] * 3
    return [r + zero for r in w] + [a + b for a, b in zip(v, w, strict=True)]


def motion_transform(rotation: Matrix, position: Vector) -> Matrix:
    """Velocities of the parent seen in the child, 6 x 6."""
    turned = transpose(rotation)
    zero = [rotation[0][0] * 0] * 3
    lower = [[-x for x in row] for row in matrix_product(turned, skew(position))]
    return [r + zero for r in turned] + [a + b for a, b in zip(lower, turned, strict=True)]


INERTIAS = [
    [(r, c, int(unit[r, c])) for r, c in np.argwhere(unit).tolist()]
    for unit in spatial_inertia(np.eye(10))
]
"""Entries (row, column, sign) of the spatial inertia per unit of each parameter."""


def bilinear_functional(left: Vector, right: Vector) -> Vector:
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
    columns = transpose(transform)
    return [bilinear_functional(columns[r], columns[c]) for r, c in PICKS]


def parameter_rate(screw: Vector) -> Matrix:
    """A with vee((Phi x)' I + I (Phi x)) = A delta, 10 x 10; Wensing et al. (2024) eq. (40)."""
    s = cross(screw)
    one = [[s[0][0] * 0 + int(i == j) for j in range(6)] for i in range(6)]
    columns, out = transpose(s), []
    for r, c in PICKS:
        moved_left = bilinear_functional(columns[r], one[c])
        moved_right = bilinear_functional(one[r], columns[c])
        out.append([a + b for a, b in zip(moved_left, moved_right, strict=True)])
    return out


# -- spans ---------------------------------------------------------------------------------------


class Subspace:
    """A subspace by a reduced basis, grown vector by vector."""

    def __init__(self, vectors: Iterable[Vector] = ()) -> None:
        self.rows: dict[int, Vector] = {}
        for vector in vectors:
            self.add(vector)

    def add(self, vector: Vector) -> bool:
        """Add a vector; whether it was outside."""
        remainder = list(vector)
        for known, row in self.rows.items():
            factor = remainder[known]
            if factor:
                remainder = [
                    a - factor * b if b else a for a, b in zip(remainder, row, strict=True)
                ]
        pivot = next((k for k, v in enumerate(remainder) if v), None)
        if pivot is None:
            return False
        lead = remainder[pivot]
        remainder = [v / lead if v else v for v in remainder]
        for column, row in self.rows.items():
            factor = row[pivot]
            if factor:
                self.rows[column] = [
                    a - factor * b if b else a for a, b in zip(row, remainder, strict=True)
                ]
        self.rows[pivot] = remainder
        return True

    def close(self, generators: Sequence[Matrix]) -> Subspace:
        """Grow until every generator maps the subspace into itself."""
        waiting = list(self.rows.values())
        while waiting:
            vector = waiting.pop()
            for matrix in generators:
                image = map_vectors(matrix, [vector])[0]
                if self.add(image):
                    waiting.append(image)
        return self

    @property
    def basis(self) -> Matrix:
        """The reduced basis."""
        return list(self.rows.values())


def map_vectors(matrix: Matrix, vectors: Iterable[Vector]) -> Matrix:
    """Images of vectors."""
    columns = list(vectors)
    if not columns:
        return []
    return transpose(matrix_product(matrix, transpose(columns)))


def block_diagonal(a: Matrix, b: Matrix) -> Matrix:
    """Block diagonal matrix."""
    zero = a[0][0] * 0
    return [r + [zero] * len(b) for r in a] + [[zero] * len(a) + r for r in b]


@dataclass(frozen=True)
class RankCheck:
    """Whether the ranks and the leading parameters were confirmed exactly.

    ``rank_check`` with ``reason`` empty, or not certified and the reason why. ``arithmetic`` names
    the library that did it.
    """

    rank_check: bool
    reason: str = ""
    arithmetic: str = ""

    def __bool__(self) -> bool:
        return self.rank_check


def certify(echelon: Echelon, blocks: Sequence[JointNullspace]) -> RankCheck:
    """Repeat the recursion in rationals and compare every joint's rank and leading parameters."""
    try:
        exact = exact_blocks(echelon)
    except NotRational as missing:
        return RankCheck(False, str(missing))
    for body, ours, block in zip(echelon.run.robot.bodies, blocks, exact, strict=True):
        if ours.independent.tolist() != block.independent.tolist():
            count, float_count = block.independent.size, ours.independent.size
            return RankCheck(
                False,
                f"joint {body.joint!r}: {count} base parameters in exact arithmetic, "
                f"{float_count} in floating point{', others lead' if count == float_count else ''}",
            )
    return RankCheck(True, "", rational_type()[1])


def exact_blocks(echelon: Echelon) -> tuple[JointNullspace, ...]:
    """The blocks of an echelon form from exact arithmetic.

    Raises NotRational: the geometry of a joint is not rational, or the case is not covered; the
    message names it.
    """
    run = echelon.run
    if run.measured is not None or run.shared_drive_columns:
        raise NotRational("only for all joints measured and drives of single joints")
    if any(step.state.virtual.shape[1] for step in run.joint_conditions):
        raise NotRational("only for joints whose free directions form a group")
    zero = to_rational(0)
    gravity = [to_rational(-printed_decimal(float(g))) for g in run.robot.gravity]
    ground = ExactSpans([], [zero, zero, zero, *gravity], [], [])
    states: list[ExactSpans] = []
    out = []
    for i, (body, p) in enumerate(zip(run.robot.bodies, run.robot.parents, strict=True)):
        state, rows = _propagate_exactly(echelon, i, body, states[p] if p >= 0 else ground)
        states.append(state)
        # Null vectors of exact rows, the leading parameters first in the order of preference.
        columns, units, _, inertial = echelon.block_layout(i)
        order = echelon.preference_order(i, len(columns)).tolist()
        span = Subspace([[row[k] for k in order] for row in rows])
        leading = sorted(order[k] for k in span.rows)
        bound = [k for k in range(len(columns)) if k not in leading]
        vectors = np.zeros((len(columns), len(bound)))
        vectors[bound, np.arange(len(bound))] = 1.0
        place = {column: at for at, column in enumerate(order)}
        for pivot, row in span.rows.items():
            lead = order[pivot]
            for k, column in enumerate(bound):
                value = row[place[column]]
                if value:
                    if not isinstance(value, Fraction):
                        value = Fraction(int(value.p), int(value.q))
                    vectors[lead, k] = -float(value) * units[column] / units[lead]
        places = np.array(bound, dtype=np.intp), np.array(leading, dtype=np.intp)
        drive, noise = echelon.run.drive_symbols(i), np.zeros(len(bound))
        out.append(JointNullspace(columns, units, vectors, *places, inertial, drive, noise))
    return tuple(out)


# -- the recursion -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactSpans:
    """Spans at a body: velocities, gravity's point and differences, functionals."""

    motion: Matrix
    point: Vector
    differences: Matrix
    functionals: Matrix


def _propagate_exactly(
    echelon: Echelon, i: int, body: Body, parent: ExactSpans
) -> tuple[ExactSpans, Matrix]:
    run = echelon.run
    zero = to_rational(0)
    what = f"joint {body.joint!r}"

    def to_rationals(values: Iterable[Fraction]) -> Vector:
        return [to_rational(v) for v in values]

    rotation = [
        to_rationals(r) for r in rational_rotation(body.rotation, f"the home rotation of {what}")
    ]
    position = to_rationals(printed_decimal(float(v)) for v in body.position)
    screws = [to_rationals(rational_screw(s, what)) for s in body.motion.T]
    size = printed_decimal(screw_size(body.motion[:, 0]))
    lift = motion_transform(rotation, position)
    lower = transpose(parameter_map(lift))
    turns = [cross(s) for s in screws]
    maps = [transpose(parameter_rate(s)) for s in screws]
    stacked = [list(s) for s in screws]
    rotor = body.rotor
    if rotor is not None:
        turn = [to_rationals(r) for r in rational_rotation(rotor.rotation, f"the rotor of {what}")]
        place = to_rationals(printed_decimal(float(v)) for v in rotor.position)
        spin = [zero, zero, to_rational(printed_decimal(rotor.gear) / size), zero, zero, zero]
        view = motion_transform(turn, place)
        lift, lower = lift + view, lower + transpose(parameter_map(view))
        turns = [block_diagonal(turns[0], cross(spin))]
        maps = [block_diagonal(maps[0], transpose(parameter_rate(spin)))]
        stacked[0] += spin
    carried = Subspace(map_vectors(lift, parent.motion)).close(turns).basis
    point = map_vectors(lift, [parent.point])[0]
    moved = [image for t in turns for image in map_vectors(t, [point])]
    differences = Subspace([*map_vectors(lift, parent.differences), *moved]).close(turns).basis
    kept_functionals = Subspace(map_vectors(lower, parent.functionals)).close(maps).basis
    rows = [[*r, zero, zero] for m in maps for r in map_vectors(m, kept_functionals)]
    arriving = [*carried, *differences]
    rows += [[*_momentum_functional(v, s), zero, zero] for s in stacked for v in arriving]
    # a screw is divided by its size, so a drive's terms are divided by it too
    unit = to_rational(1 / size) if len(stacked) == 1 else zero
    for s in stacked:
        rows.append([*_momentum_functional(point, s), zero, unit])
        if not run.static:
            rows += [[*_momentum_functional(v, s), unit * unit, zero] for v in stacked]
    functionals = Subspace([*(k[:10] for k in kept_functionals), *(r[:10] for r in rows)]).basis
    velocities = [] if run.static else [s[:6] for s in stacked]
    motion = Subspace([*(v[:6] for v in carried), *velocities]).basis
    differences = Subspace([d[:6] for d in differences]).basis
    # Rows on the block's columns: symmetric rotors are reduced, absent drive terms left out.
    reduction = [[to_rational(int(v)) for v in row] for row in SYMMETRIC_ROTOR]
    block_rows, symbols = [], run.drive_symbols(i)
    for *x, inertia, offset in rows:
        if rotor is not None and rotor.symmetric:
            x = x[:10] + matrix_product([x[10:]], reduction)[0]
        terms = {"Ia": inertia, "fo": offset}
        block_rows.append(x + [terms[symbol] for symbol in symbols])
    return ExactSpans(motion, point[:6], differences, functionals), block_rows


def _momentum_functional(vector: Vector, screw: Vector) -> Vector:
    """The momentum functional of a body, or of a body and its rotor, stacked."""
    out = bilinear_functional(vector[:6], screw[:6])
    return out + bilinear_functional(vector[6:], screw[6:]) if len(vector) > 6 else out
