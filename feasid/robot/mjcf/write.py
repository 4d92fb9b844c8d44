"""Robots back into the MJCF they came from: its own text with other inertial numbers.

Only ``<inertial>`` elements (and ``damping``, ``frictionloss`` and ``armature`` of joints when
asked) change; every other byte stays. A body that MuJoCo would derive from its geoms gets an
``<inertial>``, which takes precedence. Welded bodies share one set of parameters: the moving body
gets what remains after theirs, or all of it where the remainder could not exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from feasid.arrays import Array
from feasid.errors import InputError, OutputError
from feasid.exact.inertia import can_exist
from feasid.files import check_writable, write_aside
from feasid.robot.description import Robot
from feasid.robot.lump import lumped, parameters_in_body
from feasid.robot.mjcf.inertia import NeedsCompilerError, body_parameters
from feasid.robot.mjcf.model import Mjcf, MjcfBody
from feasid.robot.mjcf.read import mjcf_of
from feasid.robot.parts import Body, Drive, Member
from feasid.robot.urdf.write import AGREEMENT, UNCHANGED, NewInertial, disagreement, inertial_of
from feasid.robot.xml.patch import Patch, written
from feasid.robot.xml.text import Element, XmlText, parse_xml

DRIVE_ATTRIBUTES = {"fv": "damping", "fc": "frictionloss", "Ia": "armature"}
"""Attribute of ``<joint>`` per drive symbol; MJCF has no place for offset friction."""


def write_mjcf(
    robot: Robot,
    path: str | os.PathLike[str],
    joint_dynamics: bool = False,
    overwrite: bool = False,
) -> None:
    """Write the robot's inertial parameters into the text of the MJCF it was read from.

    Parameters
    ----------
    robot : Robot
        With an MJCF `source`. Bodies without parameters keep what the file says.
    path : str or path
        In the folder of the original, when that includes or names other files.
    joint_dynamics : bool
        Also write viscous and Coulomb friction and drive inertia of joints.
    overwrite : bool
        Allow `path` to exist.

    Raises
    ------
    InputError
        No MJCF source; a body that the file has no place for; parameters that cannot exist.
    OutputError
        The file exists or cannot be written, or does not read back as the robot.
    """
    check_writable(os.fspath(path), overwrite=overwrite)
    write_aside(os.fspath(path), mjcf_bytes(robot, joint_dynamics), overwrite=overwrite)


def mjcf_bytes(robot: Robot, joint_dynamics: bool = False) -> bytes:
    """The file that `write_mjcf` writes, read back and verified."""
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
    if joint_dynamics:
        for drive in robot.drives:
            _set_dynamics(patch, mjcf, drive)
    data = patch.apply()
    _verify(robot, parse_xml(data, robot.source.path), changed)
    return data


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
    """What to write for the bodies that move as one; empty when nothing changed."""
    links = body.members or (Member(body.name, inertial=own.get(body.name)),)
    before = lumped(links)
    target = body.inertial
    if target is None or (before is not None and disagreement(before, target) <= UNCHANGED):
        return {}
    if body.massless:
        return {}
    children = [m for m in links[1:] if m.inertial is not None]
    if all(_is_harmless(_body(mjcf, m.name)) for m in children):
        rest = target - sum((parameters_in_body(m) for m in children), start=np.zeros(10))
        new = inertial_of(rest, None)
        if new is not None:
            return {body.name: new}
    new = inertial_of(target, None)
    if new is None:
        raise InputError(
            f"the parameters of body {body.name!r} cannot exist: its pseudo-inertia is not "
            f"positive definite, so MuJoCo would refuse the file; correct them first",
            body=body.name,
        )
    zero = NewInertial(0.0, (0.0,) * 6, (0.0, 0.0, 0.0))
    return {body.name: new} | {m.name: zero for m in children}


def _is_harmless(body: MjcfBody) -> bool:
    """Whether a welded body can stay as it is."""
    given = body.inertial
    if given is None:
        return True
    mass, moments = given.mass.exact, [n.exact for n in given.moments]
    return can_exist(mass, moments) or not (mass or any(moments))


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


def _set_dynamics(patch: Patch, mjcf: Mjcf, drive: Drive) -> None:
    """Friction and drive inertia of a drive on one joint, as the joint's attributes."""
    if drive.values is None or len(drive.coupling) != 1:
        return
    ((name, factor),) = drive.coupling.items()
    found = [j for b in mjcf.bodies for j in b.joints if j.name == name]
    if not found:
        return
    element = found[0].element
    _check_main(mjcf, element, f"joint {name!r}")
    for symbol, value in zip(drive.symbols, drive.values, strict=True):
        if symbol not in DRIVE_ATTRIBUTES:
            continue
        weight = abs(factor) if symbol == "fc" else factor**2
        number = float(value * weight)
        if number < 0:
            raise InputError(f"joint {name!r}: {symbol} {number:.3g} is negative", joint=name)
        patch.numbers(element, DRIVE_ATTRIBUTES[symbol], [number])


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


def _verify(robot: Robot, text: XmlText, changed: Iterable[str]) -> None:
    """Read the new text back: changed bodies exactly possible, the robot's values reproduced."""
    mjcf = mjcf_of(text)
    changed = tuple(changed)
    for name in changed:
        if not _is_harmless(_body(mjcf, name)):
            raise OutputError(f"nothing was written: body {name!r} is not positive definite")
    for body in robot.bodies:
        written_here = {body.name, *(m.name for m in body.members)} & set(changed)
        if body.inertial is None or not written_here:
            continue
        members = body.members or (Member(body.name),)
        links = [_read_back(mjcf, m) for m in members]
        found = lumped(links)
        if found is None or disagreement(found, body.inertial) > AGREEMENT:
            raise OutputError(
                f"nothing was written, since the new file failed verification: body "
                f"{body.name!r} does not read back as it was written"
            )


def _read_back(mjcf: Mjcf, member: Member) -> Member:
    body = _body(mjcf, member.name)
    try:
        values = body_parameters(mjcf, body)
    except NeedsCompilerError:
        values = member.inertial
    return Member(member.name, member.rotation, member.position, values)
