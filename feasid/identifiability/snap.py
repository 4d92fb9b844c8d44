"""Geometry as it was meant: undoing the rounding that a description file shows.

A file that writes 1.5708 for a right angle turns a structural null direction into one that is
felt with 4e-6 of the usual strength. The count of base parameters in floating point then
follows the rounding, not the robot. Here a direction that is perpendicular or parallel to an
axis, or an offset that vanishes, *within the rounding that the file's own numbers show*, is taken
for exactly that. Every change is reported.

The rounding is read off the file's text. An angle that is a multiple of 90 degrees (or of 15, with
enough decimals) up to a unit in its last place shows how far off the file's right angles are. The
finest offset of at least a millimetre, say 0.1234, shows where its lengths end.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from feasid.arrays import Array
from feasid.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.inertia import skew
from feasid.robot.parts import Body

ANGLE_ATTRIBUTES = re.compile(rb"""\b(?:rpy|euler)\s*=\s*["']([^"'<]{1,200})["']""")
OFFSET_ATTRIBUTES = re.compile(rb"""<origin\b[^>]{0,400}?\bxyz\s*=\s*["']([^"'<]{1,200})["']""")

MEANT = ((np.pi / 2, 2), (np.pi / 4, 3), (np.pi / 12, 4))
"""Multiples of these are meant exactly when they are written with so many decimals."""

NEGLIGIBLE = 1e-15
"""What is off by less is rounding of our own and not worth a word."""

ACCUMULATION = 3.0
"""Roundings that may add up between two axes, over links that are fixed to each other."""

SHORTEST = 1e-3
"""Offsets below this [m] do not show where a file's decimals end."""

COARSEST = 2e-3
"""Nothing beyond this [rad or m] is taken for rounding."""

PROJECTIONS = 80
"""Each one halves what is left of an entry that is to vanish."""


@dataclass(frozen=True)
class Rounding:
    """Rounding that a description shows: of angles [rad] and of lengths [m]; 0 where none."""

    angle: float
    length: float


EXACT = Rounding(0.0, 0.0)
"""A description that rounds nothing."""


@dataclass(frozen=True)
class Snapped:
    """One number that was taken for zero, or for a unit.

    ``what`` is "angle" or "offset"; ``value`` what the file says [rad or m].
    """

    joint: str
    what: str
    value: float

    def __str__(self) -> str:
        if self.what == "angle":
            return f"joint {self.joint!r}: an axis is off by {self.value:.2g} rad"
        return f"joint {self.joint!r}: an offset is {self.value:.2g} m"


def file_rounding(robot: Robot) -> Rounding:
    """What rounding the text shows that the robot was read from."""
    if robot.source is None:
        return Rounding(0.0, 0.0)
    text = robot.source.text
    angle = 0.0
    for match in ANGLE_ATTRIBUTES.finditer(text):
        for token in match[1].split():
            angle = max(angle, _angle_error(token))
    finest = None
    for match in OFFSET_ATTRIBUTES.finditer(text):
        for token in match[1].split():
            unit = _last_place(token)
            value = _float(token)
            if unit is not None and value is not None and abs(value) >= SHORTEST:
                finest = unit if finest is None else min(finest, unit)
    length = 0.0 if finest is None else finest / 2
    return Rounding(min(ACCUMULATION * angle, COARSEST), min(length, COARSEST))


def snapped(
    robot: Robot, rounding: Rounding, literal: Collection[str] = ()
) -> tuple[Robot, tuple[Snapped, ...]]:
    """The robot with exact geometry, and what was changed for it.

    Parameters
    ----------
    robot : Robot
    rounding : Rounding
    literal : collection of str
        Joints whose numbers stay as they are.
    """
    notes: list[Snapped] = []
    bodies: list[Body] = []
    if rounding.angle == 0.0 and rounding.length == 0.0:
        return robot, ()
    for body in robot.bodies:
        if body.joint in literal:
            bodies.append(body)
            continue
        rotation, off = exact_rotation(body.rotation, rounding.angle)
        motion, off_axis = _exact_axes(body.motion, rotation.T @ body.rotation, rounding.angle)
        small = (body.position != 0) & (np.abs(body.position) <= rounding.length)
        if max(off, off_axis) > NEGLIGIBLE:
            notes.append(Snapped(body.joint, "angle", max(off, off_axis)))
        if small.any():
            notes.append(Snapped(body.joint, "offset", float(np.abs(body.position[small]).max())))
        position = np.where(small, 0.0, body.position)
        bodies.append(replace(body, rotation=rotation, position=position, motion=motion))
    if not notes:
        return robot, ()
    return replace(robot, bodies=tuple(bodies)), tuple(notes)


def exact_rotation(rotation: Array, tolerance: float) -> tuple[Array, float]:
    """Nearest rotation whose entries next to zero are zero, and the largest of them."""
    small = (np.abs(rotation) <= tolerance) & (rotation != 0)
    off = float(np.abs(rotation[small]).max()) if small.any() else 0.0
    if off == 0.0:
        return rotation, 0.0
    zero = np.abs(rotation) <= tolerance
    out = rotation.copy()
    for _ in range(PROJECTIONS):
        out[zero] = 0.0
        u, _, vt = np.linalg.svd(out)
        out = u @ vt
        if np.abs(out[zero]).max() == 0.0:
            break
    out[zero] = 0.0
    units = np.abs(np.abs(out) - 1.0) < 1e-15
    out[units] = np.sign(out[units])
    return out + 0.0, off


def _exact_axes(motion: Array, turned: Array, tolerance: float) -> tuple[Array, float]:
    """Screws along coordinate axes or planes of the body when they nearly are.

    The whole screw is turned, so that its pitch stays: with the body (by `turned`) if that is what
    makes its direction exact, as for an axis that is meant in the parent; else by the smallest
    rotation.
    """
    out, off = motion.copy(), 0.0
    for k in range(motion.shape[1]):
        part = slice(0, 3) if motion[:3, k].any() else slice(3, 6)
        size = float(np.linalg.norm(motion[part, k]))
        small = (motion[part, k] != 0) & (np.abs(motion[part, k]) <= tolerance * size)
        if not small.any():
            continue
        off = max(off, float(np.abs(motion[part, k][small]).max()) / size)
        exact = np.where(small, 0.0, motion[part, k])
        exact *= size / np.linalg.norm(exact)
        turn = turned
        if np.abs(turned @ motion[part, k] - exact).max() > NEGLIGIBLE * size:
            turn = _smallest_rotation(motion[part, k] / size, exact / size)
        out[:3, k], out[3:, k] = turn @ motion[:3, k], turn @ motion[3:, k]
        out[part, k] = exact
    return out, off


def _smallest_rotation(start: Array, end: Array) -> Array:
    """Rotation of one unit vector to another close by."""
    axis = skew(np.cross(start, end))
    return np.asarray(np.eye(3) + axis + axis @ axis / (1 + start @ end), dtype=np.float64)


def _float(token: bytes) -> float | None:
    try:
        value = float(token)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _last_place(token: bytes) -> float | None:
    """Unit of the last decimal of a number in fixed notation, None for other notations."""
    match = re.fullmatch(rb"[+-]?\d*\.(\d{1,20})", token)
    return None if match is None else 10.0 ** -len(match[1])


def _angle_error(token: bytes) -> float:
    """How far off a rounded multiple of 15 degrees is, 0 for anything else."""
    value, unit = _float(token), _last_place(token)
    if value is None or unit is None or value == 0.0:
        return 0.0
    for step, decimals in MEANT:
        error = abs(value - round(value / step) * step)
        enough = round(-np.log10(unit)) >= decimals
        if enough and 1e-12 < error <= unit and error < COARSEST:
            return float(error)
    return 0.0


def rounding_of(robot: Robot, snap: str | float | None) -> Rounding:
    """How coarse a robot's numbers are: as its file shows, not at all, or as the caller says."""
    if snap is None:
        return EXACT
    if isinstance(snap, str):
        if snap != "file":
            raise InputError(f"snap {snap!r} is not known: 'file', None or an angle [rad]")
        return file_rounding(robot)
    if not 0 <= snap <= COARSEST:
        raise InputError(f"snap is {snap}: an angle between 0 and {COARSEST} rad")
    return Rounding(float(snap), 0.0)
