"""What a robot's description says about the shapes of its links and bodies."""

from __future__ import annotations

import numpy as np

from feasid.arrays import Array
from feasid.robot.description import Robot
from feasid.robot.mjcf.read import mjcf_of
from feasid.robot.mjcf.shapes import collisions as mjcf_collisions
from feasid.robot.mjcf.shapes import solid_primitive
from feasid.robot.parts import Member
from feasid.robot.primitives import Shape
from feasid.robot.urdf.read import urdf_of
from feasid.robot.urdf.shapes import collisions as urdf_collisions
from feasid.robot.urdf.shapes import visuals as urdf_visuals
from feasid.robot.xml.text import parse_xml


def collision_shapes(robot: Robot) -> dict[str, list[Shape | None]]:
    """Collision geometries per link, in the link's frame; None stands for a mesh.

    Links without any are left out; a robot that was not read from a file has none.
    """
    source = robot.source
    if source is None or source.format not in ("urdf", "mjcf"):
        return {}
    text = parse_xml(source.text, source.path)
    if source.format == "urdf":
        links = urdf_of(text).links
        found = {name: urdf_collisions(link.element) for name, link in links.items()}
    else:
        mjcf = mjcf_of(text)
        found = {body.name: mjcf_collisions(mjcf, body) for body in mjcf.bodies}
    return {name: shapes for name, shapes in found.items() if shapes}


def visual_shapes(robot: Robot) -> dict[str, list[Shape | None]]:
    """What is drawn of each link, as `collision_shapes`; of MJCF all geoms."""
    source = robot.source
    if source is None or source.format not in ("urdf", "mjcf"):
        return {}
    text = parse_xml(source.text, source.path)
    if source.format == "urdf":
        links = urdf_of(text).links
        found = {name: urdf_visuals(link.element) for name, link in links.items()}
    else:
        mjcf = mjcf_of(text)
        found = {b.name: [solid_primitive(mjcf, b, g) for g in b.geoms] for b in mjcf.bodies}
    return {name: shapes for name, shapes in found.items() if shapes}


def shape_boxes(robot: Robot) -> dict[int, tuple[Array, Array, float]]:
    """Per body the box around its links' shapes in its frame, and the sum of their volumes.

    Collision geometries, or what is drawn of a link that has none. Bodies are left out of which a
    link with mass has a mesh, or nothing.
    """
    collisions, drawn = collision_shapes(robot), visual_shapes(robot)
    out = {}
    for i, body in enumerate(robot.bodies):
        members = body.members or (Member(body.name, inertial=body.inertial),)
        heavy = [m for m in members if m.inertial is not None and m.inertial[9] > 0]
        shapes = [collisions.get(m.name) or drawn.get(m.name) or [None] for m in heavy]
        solid = [(m, s) for m, own in zip(heavy, shapes, strict=True) for s in own if s is not None]
        if not heavy or len(solid) < sum(map(len, shapes)):
            continue
        middle = [m.rotation @ s.position + m.position for m, s in solid]
        reach = [np.abs(m.rotation) @ s.reach() for m, s in solid]
        low = np.min([c - r for c, r in zip(middle, reach, strict=True)], axis=0)
        high = np.max([c + r for c, r in zip(middle, reach, strict=True)], axis=0)
        out[i] = low, high, float(sum(s.volume for _, s in solid))
    return out
