"""What a robot's description says about the shapes of its links."""

from __future__ import annotations

from feasid.robot.description import Robot
from feasid.robot.mjcf.read import mjcf_of
from feasid.robot.mjcf.shapes import collisions as mjcf_collisions
from feasid.robot.primitives import Shape
from feasid.robot.urdf.read import urdf_of
from feasid.robot.urdf.shapes import collisions as urdf_collisions
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
