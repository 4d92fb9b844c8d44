"""Orientations of MJCF, to sixty digits, and inertia of its primitive geoms."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

from feasid.core.exact import poses

ORIENTATIONS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
"""Attributes of an element's orientation, and their number of values; at most one is given."""

Decimals = Sequence[Decimal]


def rotation_from_attribute(
    kind: str, numbers: Decimals, degrees: bool, sequence: str
) -> poses.Rotation:
    """Rotation of one of the `ORIENTATIONS`; ``ValueError`` for a direction of zero length.

    `degrees` and `sequence` are the compiler's angle unit and eulerseq: lower case letters turn
    about the moving axes, capitals about the fixed ones.
    """
    with localcontext(poses.CONTEXT):
        unit = poses.PI / 180 if degrees else Decimal(1)
        if kind == "quat":
            return _from_quaternion(numbers)
        if kind == "axisangle":
            half = numbers[3] * unit / 2
            c, s = poses.cos_sin(half)
            return _from_quaternion([c, *(s * x for x in _normalise(numbers[:3]))])
        if kind == "xyaxes":
            x = _normalise(numbers[:3])
            along = _dot(x, numbers[3:])
            y = _normalise([b - along * a for a, b in zip(x, numbers[3:], strict=True)])
            return [list(row) for row in zip(x, y, _cross(x, y), strict=True)]
        if kind == "zaxis":
            a, b, c = _normalise(numbers)
            if c < 0 and not (a or b):
                return poses.axis_rotation(0, poses.PI)
            # Quaternion of the half angle: (1 + cos, axis sin) up to length.
            return _from_quaternion([1 + c, -b, a, Decimal(0)])
        out = poses.identity()
        for letter, angle in zip(sequence, numbers, strict=True):
            step = poses.axis_rotation("xyz".index(letter.lower()), angle * unit)
            out = poses.multiply(out, step) if letter.islower() else poses.multiply(step, out)
        return out


def _from_quaternion(q: Decimals) -> poses.Rotation:
    """Rotation of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = q
    n = w * w + x * x + y * y + z * z
    if not n:
        raise ValueError("the quaternion is zero")
    return [
        [(w * w + x * x - y * y - z * z) / n, 2 * (x * y - w * z) / n, 2 * (x * z + w * y) / n],
        [2 * (x * y + w * z) / n, (w * w - x * x + y * y - z * z) / n, 2 * (y * z - w * x) / n],
        [2 * (x * z - w * y) / n, 2 * (y * z + w * x) / n, (w * w - x * x - y * y + z * z) / n],
    ]


def _dot(a: Decimals, b: Decimals) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _cross(a: Decimals, b: Decimals) -> list[Decimal]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _normalise(v: Decimals) -> list[Decimal]:
    length = _dot(v, v).sqrt()
    if not length:
        raise ValueError("the direction is zero")
    return [x / length for x in v]


# -- primitive geoms of uniform density ------------------------------------------------------------

DENSITY = 1000.0  #: MuJoCo's default density [kg/m^3].

WEIGHTLESS = ("plane", "hfield")
