"""The formats of description files, and the descriptions of robots that were read from them.

Every package in ``feasid/robot/formats`` with a `feasid.robot.formats.description.Format` named
``FORMAT`` is a format; nothing else names it.
"""

from __future__ import annotations

import pkgutil
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

import feasid.robot.formats
from feasid.core.arguments import call_user_function
from feasid.core.arrays import Array
from feasid.core.errors import FeasidError
from feasid.robot.bodies import Member
from feasid.robot.formats.description import Description, Format
from feasid.robot.formats.shapes import Drawing, Mesh, Shape, primitives
from feasid.robot.formats.xml import XmlText, parse_xml

if TYPE_CHECKING:
    from feasid.robot.description import Robot, Source

MAX_REMEMBERED = 4
"""Number of parsed descriptions that are kept, so that a text is not parsed again for each
query."""

_REMEMBERED: OrderedDict[tuple[str, str, bytes, str], Description | None] = OrderedDict()


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        module.name: import_module(f"feasid.robot.formats.{module.name}").FORMAT
        for module in pkgutil.iter_modules(feasid.robot.formats.__path__)
        if module.ispkg
    }
)
"""The formats by name, which is that of the package."""


def format_of_text(text: XmlText) -> Format:
    """The format of a parsed file, which its root element decides.

    Raises DescriptionError: no format has such a root element.
    """
    for form in FORMATS.values():
        if text.root.tag in form.roots:
            return form
    expected = [f"<{form.roots[0]}> ({form.title})" for form in FORMATS.values()]
    text.fail(f"root is <{text.root.tag}>, expected {join_with_or(expected)}", text.root)


def join_with_or(words: Sequence[str]) -> str:
    """Words of a list in a sentence."""
    *others, last = words
    return f"{', '.join(others)} or {last}"


def read_description(text: XmlText) -> Description:
    """The description of a parsed file.

    Raises DescriptionError, UnsupportedJointError: names file, line, column, link or joint, and
    what is wrong there. Raises SecurityError, LimitError, InputError: an include from elsewhere; a
    file beyond its limits; an include that is missing.
    """
    return format_of_text(text).read(text)


def remember_description(source: Source, description: Description) -> None:
    """Keep the description of a source for `reread_description`."""
    key = source.path, source.format, source.text, source.reading.get("model", "")
    _REMEMBERED[key] = description
    _REMEMBERED.move_to_end(key)
    while len(_REMEMBERED) > MAX_REMEMBERED:
        _REMEMBERED.popitem(last=False)


def reread_description(robot: Robot) -> Description | None:
    """Description of the file from which a robot was read.

    None for a robot that came from no text, or from one that cannot be read any more, as when the
    files that it includes are gone.
    """
    source = robot.source
    if source is None or source.format not in FORMATS or not source.text:
        return None
    key = source.path, source.format, source.text, source.reading.get("model", "")
    if key not in _REMEMBERED:
        try:
            description = read_description(parse_xml(source.text, source.path, model=key[3]))
        except FeasidError:
            return None
        remember_description(source, description)
    return _REMEMBERED[key]


# -- shapes of links -----------------------------------------------------------------------------


def _drawings(robot: Robot) -> dict[str, Sequence[Drawing]]:
    """Shapes of the links of the file from which a robot was read."""
    description = reread_description(robot)
    links = () if description is None else description.links
    return {x.name: call_user_function(f"the shape of link {x.name!r}", x.drawings) for x in links}


def collision_shapes(robot: Robot) -> dict[str, list[Shape | None]]:
    """Collision geometries per link, in the link's frame; None for a mesh.

    Links without geometry are left out; for a robot that no file describes, the result is empty.
    """
    shapes = {name: primitives(x, "collision") for name, x in _drawings(robot).items()}
    return {name: several for name, several in shapes.items() if several}


def collision_meshes(robot: Robot) -> dict[str, list[Mesh]]:
    """Collision meshes per link, if the format of the robot's file gives them."""
    meshes = {
        name: [x.shape for x in drawings if x.tag == "collision" and isinstance(x.shape, Mesh)]
        for name, drawings in _drawings(robot).items()
    }
    return {name: several for name, several in meshes.items() if several}


def shape_boxes_by_body(robot: Robot) -> dict[int, tuple[Array, Array, float]]:
    """Per body the box around its links' shapes in its frame, and the sum of their volumes.

    Collision geometries, or visual ones if a link has none. Bodies are left out if a link with mass
    has a mesh or no shape.
    """
    shapes_by_link = {
        name: primitives(x, "collision") or primitives(x, "visual")
        for name, x in _drawings(robot).items()
    }
    out = {}
    for i, body in enumerate(robot.bodies):
        members = body.members or (Member(body.name, inertial=body.inertial),)
        heavy = [m for m in members if m.inertial is not None and m.inertial[9] > 0]
        shapes = [shapes_by_link.get(m.name) or [None] for m in heavy]
        pairs = zip(heavy, shapes, strict=True)
        solid = [(m, s) for m, several in pairs for s in several if s is not None]
        if not heavy or len(solid) < sum(map(len, shapes)):
            continue
        middle = [m.rotation @ s.position + m.position for m, s in solid]
        # A turned box reaches along an axis as far as its edges' absolute parts along it add up.
        reach = [np.abs(m.rotation) @ s.half_extents() for m, s in solid]
        low = np.min([c - r for c, r in zip(middle, reach, strict=True)], axis=0)
        high = np.max([c + r for c, r in zip(middle, reach, strict=True)], axis=0)
        out[i] = low, high, float(sum(s.volume for _, s in solid))
    return out
