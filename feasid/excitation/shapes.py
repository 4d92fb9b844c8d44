"""Frames and capsules of a robot's links, each on the body that carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.formats.shapes import collision_shapes
from feasid.robot.description import Robot
from feasid.robot.parts import Member

INSIDE = 1e-9
"""A capsule within another of the same body by this [m] says nothing new."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A link's frame: index of the body that carries it (-1: the ground) and its pose there."""

    name: str
    body: int
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Capsule:
    """All points within `radius` of a segment, on a body (-1: the ground), in its frame [m]."""

    link: str
    body: int
    start: Array
    end: Array
    radius: float

    def holds(self, other: Capsule) -> bool:
        """Whether the other is inside."""
        return all(
            _distance(p, self) + other.radius <= self.radius + INSIDE
            for p in (other.start, other.end)
        )


def _distance(point: Array, capsule: Capsule) -> float:
    """From a point to a capsule's segment."""
    along = capsule.end - capsule.start
    length = float(along @ along)
    share = np.clip((point - capsule.start) @ along / length, 0, 1) if length else 0.0
    return float(np.linalg.norm(point - capsule.start - share * along))


def frames(robot: Robot) -> dict[str, Frame]:
    """Every link's frame by name."""
    out: dict[str, Frame] = {}
    placed: list[tuple[int, Sequence[Member]]] = [(-1, robot.fixed)]
    placed += [(i, b.members or (Member(b.name),)) for i, b in enumerate(robot.bodies)]
    for body, members in placed:
        for m in members:
            out[m.name] = Frame(m.name, body, m.rotation, m.position)
    return out


def frame(robot: Robot, name: str) -> Frame:
    """A link's frame, or an error with the closest name."""
    known = frames(robot)
    if name not in known:
        raise InputError(
            f"robot {robot.name!r} has no frame {name!r}{did_you_mean(name, known)}; its links: "
            f"{', '.join(known)}",
            frame=name,
        )
    return known[name]


def capsules_of(
    robot: Robot, given: Mapping[str, Sequence[Any]] | None, notes: list[str]
) -> tuple[Capsule, ...]:
    """Capsules around all links: the caller's, and elsewhere the description's primitives.

    ``given`` maps a link to its capsules (start, end, radius) in the link's frame; spheres have
    start and end alike. Links whose shapes are meshes only are left out and noted.
    """
    known = frames(robot)
    out: list[Capsule] = []
    unknown = []
    for name, entries in (given or {}).items():
        out += [_placed(frame(robot, name), *_entry(name, entry)) for entry in entries]
    for name, shapes in collision_shapes(robot).items():
        if name in known and name not in (given or {}):
            out += [_placed(known[name], *shape.capsule()) for shape in shapes if shape is not None]
            if any(shape is None for shape in shapes):
                unknown.append(name)
    if unknown:
        notes.append(
            f"meshes are not looked at: {', '.join(unknown)}; give their capsules in capsules="
        )
    return _largest(out)


def _entry(name: str, entry: Any) -> tuple[Array, Array, float]:
    try:
        start, end, radius = entry
        ends = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        size = float(radius)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"capsules of link {name!r} are (start, end, radius), not {entry!r}", link=name
        ) from error
    if ends[0].shape != (3,) or ends[1].shape != (3,) or not size > 0:
        raise InputError(
            f"a capsule of link {name!r} needs two points and a positive radius, not {entry!r}",
            link=name,
        )
    return ends[0], ends[1], size


def _placed(at: Frame, start: Array, end: Array, radius: float) -> Capsule:
    to_body = [at.rotation @ p + at.position for p in (start, end)]
    return Capsule(at.name, at.body, to_body[0], to_body[1], radius)


def _largest(found: list[Capsule]) -> tuple[Capsule, ...]:
    """Those that are not inside another of the same body."""
    kept: list[Capsule] = []
    for capsule in sorted(found, key=lambda c: -c.radius):
        if not any(k.body == capsule.body and k.holds(capsule) for k in kept):
            kept.append(capsule)
    return tuple(kept)
