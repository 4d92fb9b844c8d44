"""Recover exact geometry from rounded decimals.

A file that writes 1.5708 for a right angle turns a structural null direction into one that is
felt with 4e-6 of the usual strength. The count of base parameters in floating point then
follows the rounding, not the robot. Here a direction that is perpendicular or parallel to an
axis, or an offset that vanishes, *within the rounding that the file's own numbers show*, is treated
as exact. Every change is reported.

The rounding is derived from the numbers that place a joint: the angles of its own origin, and of
fixed joints between it and the body before. An angle that is a multiple of 90 degrees (or of 15,
with enough decimals) up to a unit in its last place shows how far off it is; each number speaks for
itself only, and zero is never the rounding of another number.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.formats.description import Link
from feasid.robot.formats.registry import reread_description
from feasid.robot.inertia import skew
from feasid.robot.rotations import compose

MEANT = ((np.pi / 2, 2), (np.pi / 4, 3), (np.pi / 12, 4), (np.pi / 8, 5))
"""Multiples of these are meant exactly when they are written with so many decimals."""

NEGLIGIBLE = 1e-15  #: Smaller differences are rounding of the computation and not reported.
ROUNDED = 4e-16  #: Entries of a rotation below this are zero.
ACCUMULATION = 1.5
"""Entries of a rotation may be off by the sum of its angles' roundings, and a little more."""

COARSEST = 2e-3  #: Larger differences [rad or m] never count as rounding.
PROJECTIONS = 80  #: Each step halves the remainder of an entry that should vanish.


@dataclass(frozen=True, eq=False)
class PoseRounding:
    """Rounding error of the angles of each body's home pose [rad], and what the file means.

    Both empty where nothing is rounded. ``meant`` has a rotation (3, 3) that goes before the home
    rotation and a shift (3,) of the position [m]; None where only the bound is known.
    """

    angles: tuple[float, ...] = ()
    meant: tuple[tuple[Array, Array] | None, ...] = ()


EXACT = PoseRounding()  #: A description that rounds nothing.


@dataclass(frozen=True)
class RoundedNumber:
    """One number that was replaced by zero, or by a unit.

    ``what`` is "angle" or "offset"; ``value`` the number in the file [rad or m].
    """

    joint: str
    what: str
    value: float

    def __str__(self) -> str:
        if self.what == "angle":
            return f"joint {self.joint!r}: an axis is off by {self.value:.2g} rad"
        return f"joint {self.joint!r}: an offset is {self.value:.2g} m"


def choose_rounding(robot: Robot, snap: str | float | None) -> PoseRounding:
    """Rounding of the numbers that place a robot's joints: as its file shows, none, or as given."""
    if snap is None:
        return EXACT
    if not isinstance(snap, str):
        if not 0 <= snap <= COARSEST:
            raise InputError(f"snap is {snap}: an angle between 0 and {COARSEST} rad")
        return PoseRounding((float(snap),) * len(robot.bodies))
    if snap != "file":
        raise InputError(f"snap {snap!r} is not known: 'file', None or an angle [rad]")
    description = reread_description(robot)
    if description is None:
        return EXACT
    links, angles, exact_angles = description.by_name, [], []
    for body in robot.bodies:
        moved = (k.name for k in description.links if any(j.name == body.joint for j in k.joints))
        name: str | None = body.name if body.name in links else next(moved, None)
        chain: dict[str, Link] = {}  # to the body before
        while name is not None and name != body.parent and name not in chain:
            chain[name] = links[name]
            name = links[name].parent
        texts = (text for link in chain.values() for text in link.home.angles)
        errors = [angle_rounding_error(text) for text in texts]
        angles.append(min(ACCUMULATION * sum(map(abs, errors)), COARSEST))
        exact_angles.append(_intended_pose([*chain.values()]) if angles[-1] else None)
    return PoseRounding(tuple(angles), tuple(exact_angles)) if any(angles) else EXACT


def _intended_pose(chain: list[Link]) -> tuple[Array, Array] | None:
    """Change of a home pose by the exact angles.

    None if a joint in between is held, or where a pose does not follow from its angles alone.
    """
    if any(link.joints for link in chain[1:]):
        return None
    poses = []
    for exact in (False, True):
        rotation, position = np.eye(3), np.zeros(3)
        for link in reversed(chain):
            pose = link.home
            if pose.from_angles is None:
                return None
            values = [float(t) - (angle_rounding_error(t) if exact else 0.0) for t in pose.angles]
            turned = pose.from_angles(values or [0.0] * 3)
            rotation, position = compose(rotation, position, turned, pose.position)
        poses.append((rotation, position))
    (turn, at), (exact_turn, exact_at) = poses
    return exact_turn @ turn.T, exact_at - at


def with_exact_geometry(
    robot: Robot, rounding: PoseRounding, literal: Collection[str] = ()
) -> tuple[Robot, tuple[RoundedNumber, ...]]:
    """The robot with exact geometry, and the changes.

    `literal`: joints whose numbers are not rounded.
    """
    notes: list[RoundedNumber] = []
    bodies: list[Body] = []
    if not rounding.angles:
        return robot, ()
    meant = rounding.meant or (None,) * len(robot.bodies)
    for body, angle, change in zip(robot.bodies, rounding.angles, meant, strict=True):
        if body.joint in literal or angle == 0.0:
            bodies.append(body)
            continue
        if change is None:  # entries that vanish within a rounding of its angles are zero
            rotation, off = exact_rotation(body.rotation, angle)
            turned = rotation.T @ body.rotation
            motion, off_axis = _zero_tiny_axis_entries(body.motion, turned, angle)
            # So far does an angle that is off move the end of an offset.
            reach = angle * float(np.linalg.norm(body.position)) if off > NEGLIGIBLE else 0.0
            position, off = body.position, max(off, off_axis)
            small = (position != 0) & (np.abs(position) <= reach)
        else:  # where its file means it
            turn, shift = change
            rotation, _ = exact_rotation(turn @ body.rotation, ROUNDED)
            motion, position = body.motion, body.position + shift
            small = np.abs(position) <= ROUNDED * np.linalg.norm(position)
            skewed = turn - turn.T
            off = float(np.linalg.norm([skewed[2, 1], skewed[0, 2], skewed[1, 0]])) / 2
        shifted = change is None or change[1].any()
        offset = float(np.abs(body.position[small]).max(initial=0.0)) if shifted else 0.0
        position = np.where(small, 0.0, position)
        if off > NEGLIGIBLE:
            notes.append(RoundedNumber(body.joint, "angle", off))
        if offset > NEGLIGIBLE:
            notes.append(RoundedNumber(body.joint, "offset", offset))
        bodies.append(replace(body, rotation=rotation, position=position, motion=motion))
    if not notes:
        return robot, ()
    return replace(robot, bodies=tuple(bodies)), tuple(notes)


def exact_rotation(rotation: Array, tolerance: float) -> tuple[Array, float]:
    """Nearest rotation whose entries next to zero are zero, and the largest of them."""
    zero = np.abs(rotation) <= tolerance
    off = float(np.abs(rotation[zero]).max(initial=0.0))
    if off == 0.0:
        return rotation, 0.0
    out = rotation.copy()
    # The nearest rotation has no zeros there again: making both in turns converges to one that has.
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


def _zero_tiny_axis_entries(motion: Array, turned: Array, tolerance: float) -> tuple[Array, float]:
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
            start, end = motion[part, k] / size, exact / size
            axis = skew(np.cross(start, end))
            turn = np.eye(3) + axis + axis @ axis / (1 + start @ end)
        out[:3, k], out[3:, k] = turn @ motion[:3, k], turn @ motion[3:, k]
        out[part, k] = exact
    return out, off


def angle_rounding_error(token: str) -> float:
    """By how much a number exceeds the multiple of 15 degrees that it rounds, 0 for any other."""
    match = re.fullmatch(r"[+-]?\d*\.(\d{1,20})", token)  # fixed notation
    if match is None:
        return 0.0
    value, decimals = float(token), len(match[1])
    for step, enough in MEANT:
        error = value - round(value / step) * step
        close = abs(error) <= min(10.0**-decimals, COARSEST)
        if round(value / step) and decimals >= enough and close:
            return float(error)
    return 0.0
