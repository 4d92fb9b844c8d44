"""SDF out: a file's own text with other numbers, or a new file.

In an own text only the numbers of ``<inertial>`` and the terms of joints change; every other byte
stays. Drive inertia is written as Drake's ``<drake:rotor_inertia>``, which Gazebo does not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from xml.sax.saxutils import escape, quoteattr

from feasid.errors import InputError, UnsupportedJointError
from feasid.exact.decimals import Number
from feasid.formats.description import Changes, Description, NewInertial
from feasid.formats.rewrite import decimals, generated_inertial, joint_shape, single_leader, to_rpy
from feasid.formats.sdf.read import MOMENTS
from feasid.formats.terms import NO_TERMS, JointTerms
from feasid.formats.xml import Element, Patch, shortest_decimal
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot

DYNAMICS = {
    "damping": "viscous",
    "friction": "coulomb",
    "spring_stiffness": "stiffness",
    "spring_reference": "rest",
}
"""Field of `JointTerms` per child of ``<dynamics>``."""

TYPES = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball"}

NAMESPACE = 'xmlns:drake="http://drake.mit.edu"'


def patch_sdf(description: Description, changes: Changes) -> bytes:
    """The file with these inertials and joint terms, every other byte as it was."""
    document = description.document
    patch = Patch(document.text)
    for name, new in changes.inertials.items():
        _set_inertial(patch, document.links[name], new)
    drives = False
    for name, terms in changes.terms.items():
        if name in document.joints:
            drives |= _set_terms(patch, document.joints[name], terms)
    root = document.text.root
    if drives and "xmlns:drake" not in root.attributes:
        at = root.start + 1 + len(root.tag)
        patch.changes.append((at, at, f" {NAMESPACE}".encode()))
    return patch.apply()


def _set_inertial(patch: Patch, link: Element, new: NewInertial) -> None:
    """Write one link's numbers; those that do not change keep their text."""
    old = link.find("inertial")
    if old is None:
        patch.insert_first(link, _inertial_lines(new))
        return
    pose = old.find("pose")
    for child in old.children:
        if child.tag == "mass":
            patch.content(child, [new.mass])
        elif child.tag == "inertia":
            _set_children(patch, child, dict(zip(MOMENTS, new.moments, strict=True)))
    if new.com is None:
        return
    if pose is None:
        if any(new.com):
            patch.insert_first(old, [f"<pose>{decimals(new.com)} 0 0 0</pose>"])
        return
    angles = [Number.parse(t).value for t in patch.text.content(pose).split()[3:]]
    patch.content(pose, [*new.com, *([0.0] * 3 if new.reset_axes else angles)])


def _set_children(patch: Patch, parent: Element, values: Mapping[str, float]) -> None:
    """Numbers of an element's children; children that are not there are zero until inserted."""
    missing = []
    for tag, value in values.items():
        child = parent.find(tag)
        if child is not None:
            patch.content(child, [value])
        elif value:
            missing.append(f"<{tag}>{shortest_decimal(value)}</{tag}>")
    if missing:
        patch.insert_first(parent, missing)


def _set_terms(patch: Patch, joint: Element, wanted: JointTerms) -> bool:
    """The terms of a joint; returns whether drive inertia was inserted."""
    gear, rotor = joint.find("drake:gear_ratio"), joint.find("drake:rotor_inertia")
    ratio = 1.0 if gear is None else Number.parse(patch.text.content(gear)).value
    inserted = []
    inertia = wanted.inertia / ratio**2 if ratio else wanted.inertia
    if rotor is not None:
        said = Number.parse(patch.text.content(rotor)).value
        if said * ratio**2 != wanted.inertia:
            patch.content(rotor, [inertia])
    elif wanted.inertia:
        inserted.append(f"<drake:rotor_inertia>{shortest_decimal(inertia)}</drake:rotor_inertia>")
    given = {tag: getattr(wanted, field) for tag, field in DYNAMICS.items()}
    if not wanted.stiffness:
        del given["spring_reference"]
    axis = joint.find("axis")
    dynamics = None if axis is None else axis.find("dynamics")
    if dynamics is not None:
        _set_children(patch, dynamics, given)
    elif any(given.values()):
        lines = ["<dynamics>", *(f"  {x}" for x in _elements(given)), "</dynamics>"]
        if axis is not None:
            patch.insert_first(axis, lines)
        else:
            inserted += ["<axis>", *(f"  {x}" for x in lines), "</axis>"]
    if inserted:
        patch.insert_first(joint, inserted)
    return rotor is None and bool(wanted.inertia)


def _elements(values: Mapping[str, float | None]) -> list[str]:
    return [f"<{tag}>{shortest_decimal(v)}</{tag}>" for tag, v in values.items() if v is not None]


def _inertial_lines(new: NewInertial) -> list[str]:
    moments = _elements(dict(zip(MOMENTS, new.moments, strict=True)))
    return [
        "<inertial>",
        f"  <pose>{decimals(new.com or (0.0, 0.0, 0.0))} 0 0 0</pose>",
        f"  <mass>{shortest_decimal(new.mass)}</mass>",
        f"  <inertia>{''.join(moments)}</inertia>",
        "</inertial>",
    ]


# -- new files ------------------------------------------------------------------------------------


def with_distinct_names(robot: Robot) -> Robot:
    """The robot with other names for bodies that are called like a joint, which SDF forbids."""
    taken = {*robot.joints, *(b.name for b in robot.bodies)}
    new = {}
    for body in robot.bodies:
        if body.name in robot.joints:
            name = f"{body.name}_link"
            while name in taken:
                name += "_"
            taken.add(name)
            new[body.name] = name
    bodies = (
        replace(b, name=new.get(b.name, b.name), parent=new.get(b.parent or "", b.parent))
        for b in robot.bodies
    )
    drives = (replace(d, name=new.get(d.name, d.name)) for d in robot.drives)
    return replace(robot, bodies=tuple(bodies), drives=tuple(drives)) if new else robot


def generate_sdf(robot: Robot, terms: Mapping[str, JointTerms]) -> bytes:
    """The robot as SDF; frames, joint positions and axes are the robot's own.

    Raises
    ------
    UnsupportedJointError
        A joint that SDF does not have: helical, planar or floating.
    InputError
        A body without mass, without parameters, or with ones that cannot exist; a joint that
        follows several.
    """
    follow = {c.joint: c for c in robot.couplings}
    drake = f" {NAMESPACE}" if any(t.inertia for t in terms.values()) else ""
    version = "1.11" if follow else "1.9"
    lines = [f'<sdf version="{version}"{drake}>', f"  <model name={quoteattr(robot.name)}>"]
    for body in robot.bodies:
        lines += (f"    {line}" for line in _link(body))
        given = terms.get(body.joint, NO_TERMS)
        lines += (f"    {line}" for line in _joint(body, given, follow.get(body.joint)))
    return "\n".join([*lines, "  </model>", "</sdf>", ""]).encode()


def _link(body: Body) -> Iterator[str]:
    new = generated_inertial(body)
    if new is None:
        raise InputError(
            f"body {body.name!r} has no mass, which SDF would read as 1 kg", body=body.name
        )
    base = "__model__" if body.parent is None else body.parent
    yield f"<link name={quoteattr(body.name)}>"
    numbers = f"{decimals(body.position)} {decimals(to_rpy(body.rotation))}"
    yield f"  <pose relative_to={quoteattr(base)}>{numbers}</pose>"
    yield from (f"  {line}" for line in _inertial_lines(new))
    yield "</link>"


def _joint(body: Body, terms: JointTerms, follows: Coupling | None) -> Iterator[str]:
    kind, axis, position = joint_shape(body, "SDF")
    if kind == "floating":
        raise UnsupportedJointError(
            f"joint {body.joint!r} floats, which is not written to SDF", joint=body.joint
        )
    yield f'<joint name={quoteattr(body.joint)} type="{TYPES[kind]}">'
    yield f"  <parent>{escape(body.parent or 'world')}</parent>"
    yield f"  <child>{escape(body.name)}</child>"
    if position.any():
        yield f"  <pose>{decimals(position)} 0 0 0</pose>"
    if terms.inertia:
        yield f"  <drake:rotor_inertia>{shortest_decimal(terms.inertia)}</drake:rotor_inertia>"
    if axis is not None:
        yield "  <axis>"
        yield f"    <xyz>{decimals(axis)}</xyz>"
        bounds = {k: getattr(body.limits, k) for k in ("lower", "upper", "effort", "velocity")}
        yield f"    <limit>{''.join(_elements(bounds))}</limit>"
        given = {tag: getattr(terms, field) or None for tag, field in DYNAMICS.items()}
        if any(given.values()):
            yield f"    <dynamics>{''.join(_elements(given))}</dynamics>"
        if follows is not None:
            yield from _mimic(follows)
        yield "  </axis>"
    yield "</joint>"


def _mimic(coupling: Coupling) -> Iterator[str]:
    leader, factor = single_leader(coupling, "SDF")
    if not leader:
        raise InputError(
            f"joint {coupling.joint!r} is held by a coupling; in SDF a joint mimics another one",
            joint=coupling.joint,
        )
    numbers = _elements({"multiplier": factor, "offset": coupling.offset, "reference": 0.0})
    yield f"    <mimic joint={quoteattr(leader)}>{''.join(numbers)}</mimic>"
