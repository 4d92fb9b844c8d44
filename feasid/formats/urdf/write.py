"""URDF out: a file's own text with other numbers, or a new file.

In an own text only numbers of ``<inertial>`` and ``<dynamics>`` change; every other byte stays. In
a new file link frames are on their joints' axes, as URDF wants them: where a body's frame is
elsewhere (as in the standard Denavit-Hartenberg convention), the link's is moved there, see
`feasid.robot.variants`. Joints and q stay. Nothing is drawn and nothing touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, UnsupportedJointError
from feasid.formats.description import Changes, Description, NewInertial
from feasid.formats.rewrite import decimals, generated_inertial, single_leader, to_rpy
from feasid.formats.terms import NO_TERMS, JointTerms
from feasid.formats.urdf.read import MOMENTS, Urdf, UrdfInertial, UrdfLink
from feasid.formats.xml import Patch, shortest_decimal
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot
from feasid.robot.variants import SCREW_TOLERANCE

DYNAMICS = {"damping": "viscous", "friction": "coulomb"}
"""Field of `JointTerms` per attribute of ``<dynamics>``; URDF has no place for the others."""

UNLIMITED = 1e9
"""Stands in a ``<limit>`` for what the robot does not say: URDF's readers want every number."""


def patch_urdf(description: Description, changes: Changes) -> bytes:
    """The file with these inertials and joint terms, every other byte as it was."""
    urdf: Urdf = description.document
    patch = Patch(urdf.text)
    for name, new in changes.inertials.items():
        _set_inertial(patch, urdf.links[name], new)
    for joint, terms in changes.terms.items():
        if joint in urdf.joints:
            _set_dynamics(patch, urdf, joint, terms)
    return patch.apply()


def _set_inertial(patch: Patch, link: UrdfLink, new: NewInertial) -> None:
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
            xyz = " ".join(map(shortest_decimal, new.com))
            patch.insert_before(old.mass_element, f'<origin xyz="{xyz}" rpy="0 0 0"/>')
        return
    if tuple(new.com) != old.origin.position:
        patch.numbers(element, "xyz", new.com)
    if new.reset_axes:
        patch.numbers(element, "rpy", [0.0, 0.0, 0.0])


def _inertial_lines(new: NewInertial) -> list[str]:
    com = " ".join(map(shortest_decimal, new.com or (0.0, 0.0, 0.0)))
    moments = (f'{k}="{shortest_decimal(v)}"' for k, v in zip(MOMENTS, new.moments, strict=True))
    return [
        "<inertial>",
        f'  <origin xyz="{com}" rpy="0 0 0"/>',
        f'  <mass value="{shortest_decimal(new.mass)}"/>',
        f"  <inertia {' '.join(moments)}/>",
        "</inertial>",
    ]


def _dynamics_line(terms: JointTerms) -> str:
    values = (f'{k}="{shortest_decimal(getattr(terms, field))}"' for k, field in DYNAMICS.items())
    return f"<dynamics {' '.join(values)}/>"


def _set_dynamics(patch: Patch, urdf: Urdf, name: str, wanted: JointTerms) -> None:
    """Viscous and Coulomb friction of a joint, as its ``<dynamics>``."""
    joint = urdf.joints[name]
    element = joint.element.find("dynamics")
    if element is None:
        if wanted.values:
            patch.insert_after(joint.element.children[-1], _dynamics_line(wanted))
        return
    for attribute, field in DYNAMICS.items():
        value = getattr(wanted, field)
        if joint.dynamics.get(attribute, 0.0) != value:
            patch.numbers(element, attribute, [value])


# -- new files ------------------------------------------------------------------------------------


def generate_urdf(robot: Robot, terms: Mapping[str, JointTerms]) -> bytes:
    """The robot as URDF; frames are on axes, see `feasid.robot.variants.with_axis_frames`.

    Raises
    ------
    UnsupportedJointError
        A joint that URDF does not have: helical, spherical, or floating on a moving body.
    InputError
        A body without parameters, or with ones that cannot exist; a joint that follows several.
    """
    root = "world"
    while root in {b.name for b in robot.bodies}:
        root += "_"
    follow = {c.joint: c for c in robot.couplings}
    lines = [f"<robot name={quoteattr(robot.name)}>", f"  <link name={quoteattr(root)}/>"]
    for body in robot.bodies:
        lines += _link(body)
    for body in robot.bodies:
        lines += _joint(body, root, terms.get(body.joint, NO_TERMS), follow.get(body.joint))
    return "\n".join([*lines, "</robot>", ""]).encode()


def _link(body: Body) -> Iterator[str]:
    new = generated_inertial(body)
    if new is None:
        yield f"  <link name={quoteattr(body.name)}/>"
        return
    yield f"  <link name={quoteattr(body.name)}>"
    yield from (f"    {line}" for line in _inertial_lines(new))
    yield "  </link>"


def _joint(body: Body, root: str, terms: JointTerms, follows: Coupling | None) -> Iterator[str]:
    kind, axis = _kind(body)
    yield f'  <joint name={quoteattr(body.joint)} type="{kind}">'
    yield f"    <parent link={quoteattr(body.parent or root)}/>"
    yield f"    <child link={quoteattr(body.name)}/>"
    yield f'    <origin xyz="{decimals(body.position)}" rpy="{decimals(to_rpy(body.rotation))}"/>'
    if axis is not None:
        yield f'    <axis xyz="{decimals(axis)}"/>'
        yield from _limit(body, kind)
    if terms.values:
        yield f"    {_dynamics_line(terms)}"
    if follows is not None:
        yield f"    {_mimic(follows)}"
    yield "  </joint>"


def _kind(body: Body) -> tuple[str, Array | None]:
    """Type and axis of a body's joint."""
    w, v = body.motion[:3, 0], body.motion[3:, 0]
    if body.dof == 6 and body.parent is None and (body.motion == np.eye(6)).all():
        return "floating", None
    if body.dof == 1 and not w.any() and abs(np.linalg.norm(v) - 1) < SCREW_TOLERANCE:
        return "prismatic", v
    if body.dof == 1 and not v.any() and abs(np.linalg.norm(w) - 1) < SCREW_TOLERANCE:
        bounded = body.limits.lower is not None and body.limits.upper is not None
        return ("revolute" if bounded else "continuous"), w
    raise UnsupportedJointError(
        f"joint {body.joint!r} has no counterpart in URDF: only revolute and prismatic joints, per "
        f"radian and metre, and bodies that float in the world",
        joint=body.joint,
    )


def _limit(body: Body, kind: str) -> Iterator[str]:
    limits = body.limits
    given = {"effort": limits.effort, "velocity": limits.velocity}
    if kind == "continuous":
        if any(v is not None for v in given.values()):
            yield _limits_written(given)
        return
    lower = -UNLIMITED if limits.lower is None else limits.lower
    upper = UNLIMITED if limits.upper is None else limits.upper
    yield _limits_written({"lower": lower, "upper": upper, **given})


def _limits_written(given: Mapping[str, float | None]) -> str:
    numbers = {k: UNLIMITED if v is None else v for k, v in given.items()}
    return (
        "    <limit " + " ".join(f'{k}="{shortest_decimal(v)}"' for k, v in numbers.items()) + "/>"
    )


def _mimic(coupling: Coupling) -> str:
    leader, factor = single_leader(coupling, "URDF")
    if not leader:
        raise InputError(
            f"joint {coupling.joint!r} is held by a coupling; in URDF a joint mimics another one",
            joint=coupling.joint,
        )
    numbers = (
        f'multiplier="{shortest_decimal(factor)}" offset="{shortest_decimal(coupling.offset)}"'
    )
    return f"<mimic joint={quoteattr(leader)} {numbers}/>"
