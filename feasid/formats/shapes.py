"""What a robot's description says about the shapes of its links and bodies."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.formats.primitives import Shape
from feasid.formats.registry import description_of
from feasid.robot.bodies import Member
from feasid.robot.description import Robot


def collision_shapes(robot: Robot) -> dict[str, list[Shape | None]]:
    """Collision geometries per link, in the link's frame; None stands for a mesh.

    Links without any are left out; a robot that was not read from a file has none.
    """
    description = description_of(robot)
    links = () if description is None else description.links
    shapes = ((link.name, [*link.collisions()]) for link in links)
    return {name: found for name, found in shapes if found}


def shape_boxes(robot: Robot) -> dict[int, tuple[Array, Array, float]]:
    """Per body the box around its links' shapes in its frame, and the sum of their volumes.

    Collision geometries, or what is drawn of a link that has none. Bodies are left out of which a
    link with mass has a mesh, or nothing.
    """
    description = description_of(robot)
    links = () if description is None else description.links
    known = {link.name: [*link.collisions()] or [*link.visuals()] for link in links}
    out = {}
    for i, body in enumerate(robot.bodies):
        members = body.members or (Member(body.name, inertial=body.inertial),)
        heavy = [m for m in members if m.inertial is not None and m.inertial[9] > 0]
        shapes = [known.get(m.name) or [None] for m in heavy]
        solid = [(m, s) for m, own in zip(heavy, shapes, strict=True) for s in own if s is not None]
        if not heavy or len(solid) < sum(map(len, shapes)):
            continue
        middle = [m.rotation @ s.position + m.position for m, s in solid]
        reach = [np.abs(m.rotation) @ s.reach() for m, s in solid]
        low = np.min([c - r for c, r in zip(middle, reach, strict=True)], axis=0)
        high = np.max([c + r for c, r in zip(middle, reach, strict=True)], axis=0)
        out[i] = low, high, float(sum(s.volume for _, s in solid))
    return out
