"""Robots back into the MJCF they came from: its own text with other numbers.

Only ``<inertial>`` elements and the terms of joints change; every other byte stays. A body that
MuJoCo would derive from its geoms gets an ``<inertial>``, which takes precedence. See
`feasid.formats.rewrite` for bodies that are welded together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.formats.mjcf.inertia import NeedsCompilerError, body_parameters
from feasid.formats.mjcf.model import Mjcf, MjcfBody, MjcfJoint
from feasid.formats.mjcf.read import mjcf_of
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
from feasid.formats.terms import JointTerms
from feasid.formats.xml import Element, Patch, XmlText, parse_xml, representable, written
from feasid.robot.bodies import Body, Member, lumped
from feasid.robot.description import GRAVITY, Robot

HELD = {"Ia": "armature", "fv": "damping", "fc": "frictionloss", "k": "stiffness"}
"""Attribute of ``<joint>`` per drive symbol; MJCF has no place for offset friction."""


def mjcf_bytes(robot: Robot) -> bytes:
    """The MJCF that the robot was read from, with its parameters; read back and verified.

    Bodies without parameters and joints whose drives have no values keep what the file says.

    Raises
    ------
    InputError
        No MJCF source; a body that the file has no place for; parameters that cannot exist.
    OutputError
        What would be written does not read back as the robot.
    """
    if robot.source is None or robot.source.format != "mjcf":
        raise InputError(
            f"robot {robot.name!r} was not read from an MJCF file, so there is no text to write "
            f"its parameters into"
        )
    mjcf = mjcf_of(parse_xml(robot.source.text, robot.source.path))
    own = _own_parameters(mjcf)
    patch = Patch(mjcf.files.main)
    changed: dict[str, NewInertial] = {}
    for body in robot.bodies:
        changed.update(_new_inertials(mjcf, own, body))
    if changed:
        _check_settings(mjcf)
    for name, new in changed.items():
        _set_inertial(patch, mjcf, _body(mjcf, name), new)
    terms = mjcf_terms(robot)
    joints = {j.name: j for b in mjcf.bodies for j in b.joints}
    for name, wanted in terms.items():
        if name in joints:
            _set_terms(patch, mjcf, joints[name], wanted)
    _set_gravity(patch, mjcf, robot)
    data = patch.apply()
    _verify(robot, parse_xml(data, robot.source.path), changed, terms)
    return data


def mjcf_terms(robot: Robot) -> dict[str, dict[str, float]]:
    """Attributes of ``<joint>`` per joint, in SI units and radians.

    A spring's rest position is kept where the drive says it; see `summed` for how drives of one
    joint count.
    """
    out = wanted_terms(robot, HELD)
    for terms in out.values():
        if terms["stiffness"]:
            terms["springref"] = 0.0
    for drive in robot.drives:
        if len(drive.coupling) == 1 and "k" in drive.symbols:
            ((joint, factor),) = drive.coupling.items()
            if "springref" in out.get(joint, {}):
                out[joint]["springref"] = representable(drive.rest / factor)
    return out


def _set_gravity(patch: Patch, mjcf: Mjcf, robot: Robot) -> None:
    """The robot's gravity, where the file has another."""
    if tuple(robot.gravity) == tuple(GRAVITY if mjcf.gravity is None else mjcf.gravity):
        return
    root = mjcf.files.main.root
    for option in root.all("option"):
        if "gravity" in option.attributes:
            patch.numbers(option, "gravity", robot.gravity.tolist())
            return
    numbers = " ".join(map(written, robot.gravity.tolist()))
    patch.insert_first(root, [f'<option gravity="{numbers}"/>'])


# -- which numbers change -------------------------------------------------------------------------


def _own_parameters(mjcf: Mjcf) -> dict[str, Array | None]:
    """Parameters that the file gives each body; empty where only MuJoCo's compiler knows."""
    try:
        return {body.name: body_parameters(mjcf, body) for body in mjcf.bodies}
    except NeedsCompilerError:
        return {}


def _check_settings(mjcf: Mjcf) -> None:
    """Refuse compiler settings under which a written ``<inertial>`` would not count as it is."""
    settings = mjcf.compiler
    trouble = next(iter(mjcf.unknown), "")
    if settings.from_geoms == "true":
        trouble = 'compiler inertiafromgeom="true" ignores <inertial>: make it "auto"'
    if settings.total_mass:
        trouble = "compiler settotalmass rescales every mass: delete it"
    if trouble:
        path = mjcf.files.main.path
        raise InputError(f"{path}: parameters cannot be written: {trouble}", path=path)


def _new_inertials(mjcf: Mjcf, own: dict[str, Array | None], body: Body) -> dict[str, NewInertial]:
    """What to write for the bodies that move as one."""
    links = body.members or (Member(body.name, inertial=own.get(body.name)),)
    emptied = NewInertial(0.0, (0.0,) * 6, (0.0, 0.0, 0.0))
    held = {m.name for m in links[1:] if _body(mjcf, m.name).joints}

    def harmless(name: str) -> bool:
        return _is_harmless(_body(mjcf, name))

    return new_inertials(body, links, harmless, lambda _: None, emptied, held)


def _is_harmless(body: MjcfBody) -> bool:
    """Whether a welded body can stay as it is."""
    given = body.inertial
    return given is None or is_harmless(given.mass, given.moments)


def _body(mjcf: Mjcf, name: str) -> MjcfBody:
    return next(body for body in mjcf.bodies if body.name == name)


# -- writing them ---------------------------------------------------------------------------------


def _set_inertial(patch: Patch, mjcf: Mjcf, body: MjcfBody, new: NewInertial) -> None:
    """Write one body's inertia about its centre of mass, in the body's axes."""
    xx, xy, xz, yy, yz, zz = new.moments
    values: dict[str, tuple[float, ...]] = {
        "pos": new.com or (0.0, 0.0, 0.0),
        "mass": (new.mass,),
        "fullinertia": (xx, yy, zz, xy, xz, yz),
    }
    if not any((xy, xz, yz)):
        del values["fullinertia"]
        values["diaginertia"] = (xx, yy, zz)
    tag = " ".join(f'{k}="{" ".join(map(written, v))}"' for k, v in values.items())
    given = body.inertial
    if given is None:
        _check_main(mjcf, body.element, f"body {body.name!r}")
        patch.insert_first(body.element, [f"<inertial {tag}/>"])
        return
    _check_main(mjcf, given.element, f"body {body.name!r}")
    if given.element.parent is not None and given.element.parent.tag == "frame":
        raise InputError(
            f"the <inertial> of body {body.name!r} on line {given.element.line} stands in a "
            f"<frame>: move it out of the frame to have it written",
            body=body.name,
        )
    end = patch.text.spans(given.element)[1]
    close = "/>" if patch.text.closes_itself(given.element) else ">"
    patch.changes.append((given.element.start, end, f"<inertial {tag}{close}".encode()))


def _set_terms(patch: Patch, mjcf: Mjcf, joint: MjcfJoint, wanted: Mapping[str, float]) -> None:
    """Joint terms that the file does not already say, by itself or by a default class."""
    said = attributes_of(joint.terms)
    new = {k: v for k, v in wanted.items() if said[k] != v}
    if new:
        _check_main(mjcf, joint.element, f"joint {joint.name!r}")
    for attribute, value in new.items():
        if attribute == "springref" and mjcf.compiler.degrees and joint.type == "hinge":
            value = math.degrees(value)
        patch.numbers(joint.element, attribute, [value])


def attributes_of(terms: JointTerms) -> dict[str, float]:
    """Joint terms by the names that MJCF has for them."""
    return {
        "armature": terms.inertia,
        "damping": terms.viscous,
        "frictionloss": terms.coulomb,
        "stiffness": terms.stiffness,
        "springref": terms.rest,
    }


def _check_main(mjcf: Mjcf, element: Element, what: str) -> None:
    text = mjcf.files.text(element)
    if text is not mjcf.files.main:
        raise InputError(
            f"{what} stands in the included file {text.path}:{element.line}; only the main file is "
            f"written",
            path=text.path,
            line=element.line,
        )


# -- believing nothing ----------------------------------------------------------------------------


def _verify(
    robot: Robot,
    text: XmlText,
    changed: Mapping[str, NewInertial],
    terms: Mapping[str, Mapping[str, float]],
) -> None:
    """Read the new text back: changed bodies exactly possible, the robot's values reproduced."""
    mjcf = mjcf_of(text)
    if tuple(robot.gravity) != tuple(GRAVITY if mjcf.gravity is None else mjcf.gravity):
        raise not_verified("gravity does not read back as it was written")
    for name in changed:
        if not _is_harmless(_body(mjcf, name)):
            raise not_verified(f"body {name!r} is not positive definite")
    for body in robot.bodies:
        written_here = {body.name, *(m.name for m in body.members)} & set(changed)
        if body.inertial is None or not written_here:
            continue
        members = body.members or (Member(body.name),)
        links = [_read_back(mjcf, m) for m in members]
        found = lumped(links)
        if found is None or disagreement(found, body.inertial) > AGREEMENT:
            raise not_verified(f"body {body.name!r} does not read back as it was written")
    for joint in (j for b in mjcf.bodies for j in b.joints):
        if joint.name in terms:
            check_terms(attributes_of(joint.terms), terms[joint.name], joint.name)


def _read_back(mjcf: Mjcf, member: Member) -> Member:
    body = _body(mjcf, member.name)
    try:
        values = body_parameters(mjcf, body)
    except NeedsCompilerError:
        values = member.inertial
    return Member(member.name, member.rotation, member.position, values)
