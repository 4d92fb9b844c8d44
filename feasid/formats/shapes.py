"""What a robot's description says about the shapes of its links and bodies."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.formats.mjcf.read import mjcf_of
from feasid.formats.mjcf.shapes import collisions as mjcf_collisions
from feasid.formats.mjcf.shapes import solid_primitive
from feasid.formats.primitives import Shape
from feasid.formats.urdf.read import urdf_of
from feasid.formats.urdf.shapes import collisions as urdf_collisions
from feasid.formats.urdf.shapes import visuals as urdf_visuals
from feasid.formats.xml import parse_xml
from feasid.robot.bodies import Member
from feasid.robot.description import Robot


def collision_shapes(robot: Robot) -> dict[str, list[Shape | None]]:
    """Collision geometries per link, in the link's frame; None stands for a mesh.

    Links without any are left out; a robot that was not read from a file has none.
    """
    return {name: shapes for name, (shapes, _) in _shapes(robot).items() if shapes}


def _shapes(robot: Robot) -> dict[str, tuple[list[Shape | None], list[Shape | None]]]:
    """Per link what collides and what is drawn of it; of MJCF all geoms are drawn."""
    source = robot.source
    if source is None or source.format not in ("urdf", "mjcf"):
        return {}
    text = parse_xml(source.text, source.path)
    if source.format == "urdf":
        links = {name: link.element for name, link in urdf_of(text).links.items()}
        return {name: (urdf_collisions(e), urdf_visuals(e)) for name, e in links.items()}
    mjcf = mjcf_of(text)
    return {
        body.name: (
            mjcf_collisions(mjcf, body),
            [solid_primitive(mjcf, body, geom) for geom in body.geoms],
        )
        for body in mjcf.bodies
    }


def shape_boxes(robot: Robot) -> dict[int, tuple[Array, Array, float]]:
    """Per body the box around its links' shapes in its frame, and the sum of their volumes.

    Collision geometries, or what is drawn of a link that has none. Bodies are left out of which a
    link with mass has a mesh, or nothing.
    """
    known = {name: collide or drawn for name, (collide, drawn) in _shapes(robot).items()}
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
