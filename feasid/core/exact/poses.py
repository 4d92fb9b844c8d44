"""Poses to sixty digits, for verdicts on links that are turned by angles.

A file's decimals are rational, but the cosine of its angles is not. Here poses are computed in
`decimal` arithmetic with 60 digits; verdicts use an enclosure far wider than the rounding
(`ENCLOSURE`).

Exact questions about an inertia given in decimals: no floating point, no trigonometry.

A link's mass m, its inertia I about the centre of mass and the second moments
``Sigma = tr(I)/2 1 - I`` about it say whether the link is feasible: the 4x4 pseudo-inertia is
positive definite exactly when m > 0 and Sigma is (Schur complement; Wensing, Kim and Slotine 2017,
Sec. III). This does not depend on the axes in which I is given, so a file's decimals decide it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from feasid.certificate import definiteness
from feasid.core.exact.numbers import Exact

DIGITS = 60  #: Significant digits of poses; see `ENCLOSURE` for their accuracy.

ENCLOSURE = Fraction(1, 10**40)
"""Relative half-width around a matrix computed with 60 digits: 20 digits to spare."""

PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862")

CONTEXT = Context(prec=DIGITS)

QUARTER_TOLERANCE = 1e-12
"""An angle this close to a multiple of 90 degrees [rad] is that multiple: rounding of pi/2."""

Rotation = list[list[Decimal]]
Position = list[Decimal]
PrecisePose = tuple[Rotation, Position]

_ONE, _ZERO = Decimal(1), Decimal(0)


def quarter_turns(angle: float) -> int | None:
    """The multiple of 90 degrees (mod 4) that the angle [rad] is; None for other angles."""
    turns = round(angle / (math.pi / 2))
    if abs(angle - turns * (math.pi / 2)) <= QUARTER_TOLERANCE * max(1, abs(turns)):
        return turns % 4
    return None


def to_decimal(value: Fraction) -> Decimal:
    """A rational rounded to 60 digits."""
    return CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def cos_sin(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine; multiples of 90 degrees as written in double precision are exact."""
    quarter = quarter_turns(float(angle))
    if quarter is not None:
        return [(_ONE, _ZERO), (_ZERO, _ONE), (-_ONE, _ZERO), (_ZERO, -_ONE)][quarter]
    with localcontext(CONTEXT):
        x = angle % (2 * PI)
        term, k, sums = _ONE, 0, [_ZERO, _ZERO]
        while abs(term) > Decimal(10) ** -(DIGITS + 5) or k < 8:
            sums[k % 2] += term if k % 4 < 2 else -term
            k += 1
            term *= x / k
        return sums[0], sums[1]


def axis_rotation(axis: int, angle: Decimal) -> Rotation:
    """Rotation about a coordinate axis (0, 1, 2) by an angle [rad]."""
    c, s = cos_sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out = identity()
    out[i][i] = out[j][j] = c
    out[j][i], out[i][j] = s, -s
    return out


def identity() -> Rotation:
    """The unit rotation."""
    return [[_ONE if r == c else _ZERO for c in range(3)] for r in range(3)]


def multiply(a: Sequence[Sequence[Decimal]], b: Sequence[Sequence[Decimal]]) -> Rotation:
    """Product of two 3x3 matrices."""
    with localcontext(CONTEXT):
        return [
            [sum((a[r][k] * b[k][c] for k in range(3)), _ZERO) for c in range(3)] for r in range(3)
        ]


def rotate(a: Sequence[Sequence[Decimal]], v: Sequence[Decimal]) -> Position:
    """A 3x3 matrix times a vector."""
    with localcontext(CONTEXT):
        return [sum((a[r][k] * v[k] for k in range(3)), _ZERO) for r in range(3)]


def from_rpy(rpy: Sequence[Fraction]) -> Rotation:
    """URDF's Rz(yaw) Ry(pitch) Rx(roll)."""
    turns = [axis_rotation(axis, to_decimal(angle)) for axis, angle in enumerate(rpy)]
    return multiply(multiply(turns[2], turns[1]), turns[0])


def compose(outer: PrecisePose, inner: PrecisePose) -> PrecisePose:
    """Pose of a frame given in another frame that itself has a pose."""
    rotated = rotate(outer[0], inner[1])
    with localcontext(CONTEXT):
        position = [a + b for a, b in zip(outer[1], rotated, strict=True)]
    return multiply(outer[0], inner[0]), position


def pseudo_inertia(
    mass: Fraction, sigma: Sequence[Sequence[Fraction]], pose: PrecisePose
) -> list[list[Decimal]]:
    """4x4 second moments in a frame, of a body given about its centre of mass.

    `pose` places the centre of mass, and the axes in which `sigma` (3x3) is given, in that frame.
    """
    rotation, c = pose
    inner = [[to_decimal(x) for x in row] for row in sigma]
    turned = multiply(multiply(rotation, inner), [list(x) for x in zip(*rotation, strict=True)])
    with localcontext(CONTEXT):
        m = to_decimal(mass)
        out = [[turned[r][k] + m * c[r] * c[k] for k in range(3)] + [m * c[r]] for r in range(3)]
        return [*out, [*(m * x for x in c), m]]


def definiteness_within(matrix: Exact, scale: Fraction, width: Fraction = ENCLOSURE) -> str:
    """Definiteness of a matrix known to ``width * scale`` per entry, or "undecided".

    `scale` bounds every number that was added on the way to an entry.
    """
    # Entries that move by w move the eigenvalues of a matrix of n rows by at most n w.
    radius = 4 * width * scale

    def shift_diagonal(by: Fraction) -> Exact:
        return [
            [x + (by if r == c else 0) for c, x in enumerate(row)] for r, row in enumerate(matrix)
        ]

    if definiteness(shift_diagonal(-radius)) == "positive definite":
        return "positive definite"
    return "indefinite" if definiteness(shift_diagonal(radius)) == "indefinite" else "undecided"


def symmetric_matrix(moments: Sequence[Fraction]) -> Exact:
    """Symmetric 3x3 matrix of (xx, xy, xz, yy, yz, zz)."""
    xx, xy, xz, yy, yz, zz = moments
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def second_moments(moments: Sequence[Fraction]) -> Exact:
    """Sigma = tr(I)/2 1 - I of an inertia given by (xx, xy, xz, yy, yz, zz)."""
    inertia = symmetric_matrix(moments)
    half = (inertia[0][0] + inertia[1][1] + inertia[2][2]) / 2
    return [[(half if r == c else 0) - inertia[r][c] for c in range(3)] for r in range(3)]


def is_possible_inertia(mass: Fraction, moments: Sequence[Fraction]) -> bool:
    """Whether the link is the inertia of some body with volume: m > 0 and Sigma > 0."""
    return mass > 0 and definiteness(second_moments(moments)) == "positive definite"
