"""Robots back into the URDF they came from: its own text with other numbers.

Only numbers of ``<inertial>`` and ``<dynamics>`` change; every other byte stays. See
`feasid.formats.rewrite` for links that move as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.formats.rewrite import (
    AGREEMENT,
    NewInertial,
    check_terms,
    disagreement,
    is_harmless,
    new_inertials,
    not_verified,
    wanted_terms,
)
from feasid.formats.urdf.read import MOMENTS, Urdf, UrdfInertial, UrdfLink, parse_urdf
from feasid.formats.urdf.tree import parameters
from feasid.formats.xml import Patch, written
from feasid.robot.bodies import Body, Member, lumped
from feasid.robot.description import Robot

HELD = {"fv": "damping", "fc": "friction"}
"""Attribute of ``<dynamics>`` per drive symbol; URDF has no place for the others."""


def urdf_bytes(robot: Robot) -> bytes:
    """The URDF that the robot was read from, with its parameters; read back and verified.

    Bodies without parameters and joints whose drives have no values keep what the file says.

    Raises
    ------
    InputError
        The robot has no URDF source, or a body's parameters cannot exist; names the body.
    OutputError
        What would be written does not reproduce the robot to 1e-9.
    """
    urdf = source_urdf(robot)
    patch = Patch(urdf.text)
    changed: dict[str, NewInertial] = {}
    for body in robot.bodies:
        changed.update(_new_inertials(urdf, body))
    for name, new in changed.items():
        set_inertial(patch, urdf.links[name], new)
    terms = wanted_terms(robot, HELD)
    for joint, wanted in terms.items():
        if joint in urdf.joints:
            _set_dynamics(patch, urdf, joint, wanted)
    data = patch.apply()
    _verify(robot, urdf, data, changed, terms)
    return data


def source_urdf(robot: Robot) -> Urdf:
    """The URDF file that a robot was read from."""
    if robot.source is None or robot.source.format != "urdf":
        raise InputError(
            f"robot {robot.name!r} was not read from a URDF file, so there is no text to write its "
            f"parameters into"
        )
    return parse_urdf(robot.source.text, robot.source.path)


# -- which numbers change -------------------------------------------------------------------------


def _links(urdf: Urdf, body: Body) -> tuple[Member, ...]:
    """The body's links with the parameters that the file gives."""
    if body.members:
        return body.members
    return (Member(body.name, inertial=parameters(urdf.links[body.name].inertial)),)


def _new_inertials(urdf: Urdf, body: Body) -> dict[str, NewInertial]:
    """What to write for the links of one body."""
    links = _links(urdf, body)
    above = urdf.joint_above()
    held = {m.name for m in links[1:] if above[m.name].type != "fixed"}

    def axes(name: str) -> Array | None:
        own = urdf.links[name].inertial
        return None if own is None else own.origin.rotation

    emptied = NewInertial(0.0, (0.0,) * 6)
    return new_inertials(body, links, lambda n: _is_harmless(urdf, n), axes, emptied, held)


def _is_harmless(urdf: Urdf, name: str) -> bool:
    inertial = urdf.links[name].inertial
    return inertial is None or is_harmless(inertial.mass, inertial.moments)


# -- writing them ---------------------------------------------------------------------------------


def set_inertial(patch: Patch, link: UrdfLink, new: NewInertial) -> None:
    """Write one link's numbers; those that do not change keep their text."""
    old = link.inertial
    if old is None:
        patch.insert_first(link.element, _inertial_lines(new))
        return
    patch.numbers(old.mass_element, "value", [new.mass])
    for name, value, number in zip(MOMENTS, new.moments, old.moments, strict=True):
        if number.value != value:
            patch.numbers(old.inertia_element, name, [value])
    _set_origin(patch, old, new)


def _set_origin(patch: Patch, old: UrdfInertial, new: NewInertial) -> None:
    if new.com is None:
        return
    element = old.origin.element
    if element is None:
        if any(new.com):
            xyz = " ".join(map(written, new.com))
            patch.insert_before(old.mass_element, f'<origin xyz="{xyz}" rpy="0 0 0"/>')
        return
    if tuple(new.com) != old.origin.position:
        patch.numbers(element, "xyz", new.com)
    if new.reset_axes:
        patch.numbers(element, "rpy", [0.0, 0.0, 0.0])


def _inertial_lines(new: NewInertial) -> list[str]:
    com = " ".join(map(written, new.com or (0.0, 0.0, 0.0)))
    moments = (f'{k}="{written(v)}"' for k, v in zip(MOMENTS, new.moments, strict=True))
    return [
        "<inertial>",
        f'  <origin xyz="{com}" rpy="0 0 0"/>',
        f'  <mass value="{written(new.mass)}"/>',
        f"  <inertia {' '.join(moments)}/>",
        "</inertial>",
    ]


def _set_dynamics(patch: Patch, urdf: Urdf, name: str, wanted: Mapping[str, float]) -> None:
    """Viscous and Coulomb friction of a joint, as its ``<dynamics>``."""
    joint = urdf.joints[name]
    element = joint.element.find("dynamics")
    if element is None:
        if any(wanted.values()):
            text = " ".join(f'{k}="{written(v)}"' for k, v in wanted.items())
            patch.insert_after(joint.element.children[-1], f"<dynamics {text}/>")
        return
    for attribute, value in wanted.items():
        if joint.dynamics.get(attribute, 0.0) != value:
            patch.numbers(element, attribute, [value])


# -- believing nothing ----------------------------------------------------------------------------


def _verify(
    robot: Robot,
    before: Urdf,
    data: bytes,
    changed: Iterable[str],
    terms: Mapping[str, Mapping[str, float]],
) -> None:
    """Read the new text back: changed links exactly possible, the robot's values reproduced."""
    after = parse_urdf(data, before.text.path)
    touched = set(changed)
    for name, link in after.links.items():
        new = _texts(link)
        if name not in touched:
            if new != _texts(before.links[name]):
                raise not_verified(f"link {name!r} changed although it should not")
        elif link.inertial is None or not _is_harmless(after, name):
            raise not_verified(f"link {name!r} is not exactly positive definite")
    for body in robot.bodies:
        if body.inertial is None or body.massless:
            continue
        links = [
            Member(m.name, m.rotation, m.position, parameters(after.links[m.name].inertial))
            for m in body.members or (Member(body.name),)
        ]
        found = lumped(links)
        if found is None or disagreement(found, body.inertial) > AGREEMENT:
            raise not_verified(f"body {body.name!r} does not read back as it was written")
    for joint, wanted in terms.items():
        if joint in after.joints:
            given = after.joints[joint].dynamics
            check_terms({k: given.get(k, 0.0) for k in wanted}, wanted, joint)


def _texts(link: UrdfLink) -> Sequence[str] | None:
    if link.inertial is None:
        return None
    old = link.inertial
    return [n.text for n in (old.mass, *old.moments, *old.origin.xyz, *old.origin.rpy)]
