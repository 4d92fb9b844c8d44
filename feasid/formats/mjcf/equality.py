"""``<equality>`` sections of MJCF files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from feasid.exact.decimals import Number
from feasid.formats.mjcf.bonds import WORLD, Bond
from feasid.formats.mjcf.effects import Attributes, Effect
from feasid.formats.mjcf.files import MjcfFiles
from feasid.formats.xml import Element
from feasid.robot.rotations import from_quaternion

LINEAR = 2
"""Coefficients of a polynomial beyond this are not linear."""

Numbers = Callable[[Element, str, int, dict[str, str]], Sequence[Number]]
Floats = Callable[[Element, str, int, dict[str, str]], tuple[float, ...]]
"""So many numbers of an attribute, none when it is absent."""


def read_equality(
    files: MjcfFiles, sections: Sequence[Element], attributes: Attributes, of: Numbers
) -> tuple[list[Bond], list[Effect]]:
    """Constraints that are active, and those that are not modelled."""

    def numbers(
        element: Element, name: str, count: int, values: dict[str, str]
    ) -> tuple[float, ...]:
        return tuple(n.value for n in of(element, name, count, values))

    bonds, others = [], []
    for section in sections:
        if section.tag != "equality":
            continue
        for element in files.children(section):
            values = attributes(element, ("equality", element.tag))
            if values.get("active", "true") != "false":
                found = _bond(files, element, values, numbers)
                if isinstance(found, Bond):
                    bonds.append(found)
                else:
                    others.append(found)
    return bonds, others


def _bond(
    files: MjcfFiles, element: Element, values: dict[str, str], numbers: Floats
) -> Bond | Effect:
    name = values.get("name") or f"{element.tag} on line {element.line}"
    if element.tag == "joint":
        return _joint(files, element, name, values, numbers)
    if element.tag not in ("connect", "weld") or "site1" in values:
        what = "sites, which only MuJoCo's compiler places" if "site1" in values else element.tag
        text = f"equality {name!r} of {what}"
        return Effect("equality", files.text(element).path, element.line, text)
    if "body1" not in values:
        files.fail(f"<{element.tag}> lacks 'body1'", element, "body1")
    bodies = values["body1"], values.get("body2", WORLD)
    anchor = numbers(element, "anchor", 3, values)
    if element.tag == "connect":
        if len(anchor) == 0:
            files.fail("<connect> lacks 'anchor'", element, "anchor")
        return Bond("connect", name, *bodies, first_point=np.array(anchor))
    second = np.array(anchor if len(anchor) else (0.0, 0.0, 0.0))
    pose = numbers(element, "relpose", 7, values)
    if len(pose) == 0 or not any(pose[3:]):
        return Bond("weld", name, *bodies, second_point=second)
    turn = from_quaternion(np.array(pose[3:]))
    first = np.array(pose[:3]) + turn @ second
    return Bond("weld", name, *bodies, first_point=first, second_point=second, turn=turn)


def _joint(
    files: MjcfFiles, element: Element, name: str, values: dict[str, str], numbers: Floats
) -> Bond | Effect:
    if "joint1" not in values:
        files.fail("<joint> of <equality> lacks 'joint1'", element, "joint1")
    given = values.get("polycoef", "0 1 0 0 0").split()
    factors = numbers(element, "polycoef", len(given), values) or (0.0, 1.0)
    factors = (*factors, *(0.0,) * (5 - len(factors)))
    if any(factors[LINEAR:]):
        text = f"equality {name!r} is not linear: polycoef={values['polycoef']}"
        return Effect("equality", files.text(element).path, element.line, text)
    second = values.get("joint2", "")
    return Bond("joint", name, values["joint1"], second, (factors[0], factors[1]))


def motors(files: MjcfFiles, sections: Sequence[Element], attributes: Attributes) -> list[str]:
    """Joints that actuators drive."""
    out = []
    for section in sections:
        if section.tag == "actuator":
            for element in files.children(section):
                joint = attributes(element, (element.tag,)).get("joint", "")
                out += [joint] if joint else []
    return out
