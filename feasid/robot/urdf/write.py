"""Robots back into the URDF they came from: its own text with other inertial numbers.

Only numbers of ``<inertial>`` (and of ``<dynamics>`` when asked) change; every other byte stays.
A link with fixed children moves with them as one body whose parameters only make sense together:
the moving link gets the body's parameters minus those of its children. When what remains could not
exist, or a child could not, the children's mass and inertia become zero and the moving link carries
all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feasid.arrays import Array
from feasid.errors import InputError, OutputError
from feasid.exact.inertia import can_exist
from feasid.files import check_writable, write_aside
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.lump import lumped, parameters_in_body
from feasid.robot.parts import Body, Drive, Member
from feasid.robot.rotations import is_signed_permutation
from feasid.robot.urdf.read import MOMENTS, Urdf, UrdfInertial, UrdfLink, parse_urdf
from feasid.robot.urdf.tree import parameters
from feasid.robot.xml.patch import Patch, written

UNCHANGED = 1e-14
"""Relative difference that is rounding: the file keeps its own digits."""

AGREEMENT = 1e-9
"""Relative to the body's scale, how well a written file must reproduce the robot."""

_LIFTS = (0.0, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""Multiples of tr(I) that may be added to the diagonal to make the decimals exactly definite."""


@dataclass(frozen=True)
class NewInertial:
    """Numbers to write for one link, in the axes of its ``<inertial>``'s origin.

    ``com`` None leaves the origin as it is; `reset_axes` writes ``rpy="0 0 0"``.
    """

    mass: float
    moments: tuple[float, ...]
    com: tuple[float, ...] | None = None
    reset_axes: bool = False

    def is_possible(self) -> bool:
        """Whether the decimals, as written, are the inertia of some body with volume."""
        exact = [Fraction(written(v)) for v in (self.mass, *self.moments)]
        return can_exist(exact[0], exact[1:])


def write_urdf(
    robot: Robot,
    path: str | os.PathLike[str],
    joint_dynamics: bool = False,
    overwrite: bool = False,
) -> None:
    """Write the robot's inertial parameters into the text of the URDF it was read from.

    Parameters
    ----------
    robot : Robot
        With a URDF `source`. Bodies without parameters keep what the file says.
    path : str or path
        Written aside, then renamed into place.
    joint_dynamics : bool
        Also write viscous and Coulomb friction as ``<dynamics damping= friction=>``. URDF has no
        place for offset friction and drive inertia.
    overwrite : bool
        Allow `path` to exist.

    Raises
    ------
    InputError
        The robot has no URDF source, or a body's parameters cannot exist; names the body.
    OutputError
        The file exists or cannot be written, or what would be written does not reproduce the
        robot to 1e-9; nothing was written.
    """
    check_writable(os.fspath(path), overwrite=overwrite)
    write_aside(os.fspath(path), urdf_bytes(robot, joint_dynamics), overwrite=overwrite)


def urdf_bytes(robot: Robot, joint_dynamics: bool = False) -> bytes:
    """The file that `write_urdf` writes, read back and verified."""
    urdf = source_urdf(robot)
    patch = Patch(urdf.text)
    changed: dict[str, NewInertial] = {}
    for body in robot.bodies:
        changed.update(_new_inertials(urdf, body))
    for name, new in changed.items():
        set_inertial(patch, urdf.links[name], new)
    if joint_dynamics:
        for drive in robot.drives:
            _set_dynamics(patch, urdf, robot, drive)
    data = patch.apply()
    _verify(robot, urdf, data, changed)
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
    """What to write for the links of one body; empty when its parameters are the file's."""
    links = _links(urdf, body)
    before = lumped(links)
    if (
        body.inertial is None
        or body.massless
        or (before is not None and disagreement(before, body.inertial) <= UNCHANGED)
    ):
        return {}
    own, children = links[0], [m for m in links[1:] if m.inertial is not None]
    target = body.inertial
    kept = [_is_harmless(urdf.links[m.name].inertial) for m in children]
    if all(kept):
        rest = target - sum((parameters_in_body(m) for m in children), start=np.zeros(10))
        new = inertial_of(rest, urdf.links[own.name].inertial)
        if new is not None:
            return {own.name: new}
    new = inertial_of(target, urdf.links[own.name].inertial)
    if new is None:
        raise InputError(
            f"the parameters of body {body.name!r} cannot exist: its pseudo-inertia is not "
            f"positive definite, so no simulator would load the file; correct them first",
            body=body.name,
        )
    return {own.name: new} | {m.name: NewInertial(0.0, (0.0,) * 6) for m in children}


def _is_harmless(inertial: UrdfInertial | None) -> bool:
    """Whether a fixed child can stay as it is: possible, or without mass and inertia."""
    if inertial is None:
        return True
    mass, moments = inertial.mass.exact, [n.exact for n in inertial.moments]
    return can_exist(mass, moments) or not (mass or any(moments))


def inertial_of(delta: Array, old: UrdfInertial | None) -> NewInertial | None:
    """Numbers for a link with these ten parameters, exactly possible; None when they are not.

    The axes of the file's ``<inertial>`` are kept when turning into them does not round.
    """
    if not delta[9] > 0:
        return None
    mass, com, about_com = inertia.to_mass_com_inertia(delta)
    axes = np.eye(3) if old is None else old.origin.rotation
    reset = not is_signed_permutation(axes)
    if not reset:
        about_com = axes.T @ about_com @ axes
    trace = float(np.trace(about_com))
    for lift in _LIFTS:
        lifted = about_com + lift * trace * np.eye(3)
        moments = tuple(float(lifted[r, c]) for r, c in inertia.UPPER)
        new = NewInertial(float(mass), moments, tuple(float(x) for x in com), reset)
        if new.is_possible():
            return new
    return None


def disagreement(a: Array, b: Array) -> float:
    """Largest difference of two bodies' parameters, relative to mass and size of `b`."""
    mass = abs(b[9]) or 1.0
    gyration = float(np.sqrt(abs(b[0] + b[3] + b[5]) / mass)) or 1.0
    scale = mass * np.array([gyration**2] * 6 + [gyration] * 3 + [1.0])
    return float((np.abs(a - b) / scale).max())


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


def _set_dynamics(patch: Patch, urdf: Urdf, robot: Robot, drive: Drive) -> None:
    """Viscous and Coulomb friction of a drive on one joint, as its ``<dynamics>``."""
    if drive.values is None or len(drive.coupling) != 1:
        return
    ((name, factor),) = drive.coupling.items()
    values = dict(zip(drive.symbols, drive.values, strict=True))
    wanted = {}
    if "fv" in values:
        wanted["damping"] = float(values["fv"] * factor**2)
    if "fc" in values:
        wanted["friction"] = float(values["fc"] * abs(factor))
    joint = urdf.joints.get(name)
    if joint is None or not wanted:
        return
    for attribute, value in wanted.items():
        if value < 0:
            raise InputError(f"joint {name!r}: {attribute} {value:.3g} is negative", joint=name)
    element = joint.element.find("dynamics")
    if element is None:
        text = " ".join(f'{k}="{written(v)}"' for k, v in wanted.items())
        patch.insert_after(joint.element.children[-1], f"<dynamics {text}/>")
        return
    for attribute, value in wanted.items():
        patch.numbers(element, attribute, [value])


# -- believing nothing ----------------------------------------------------------------------------


def _verify(robot: Robot, before: Urdf, data: bytes, changed: Iterable[str]) -> None:
    """Read the new text back: changed links exactly possible, the robot's values reproduced."""
    after = parse_urdf(data, before.text.path)
    touched = set(changed)
    for name, link in after.links.items():
        new = _texts(link)
        if name not in touched:
            if new != _texts(before.links[name]):
                raise _not_verified(f"link {name!r} changed although it should not")
        elif link.inertial is None or not _is_harmless(link.inertial):
            raise _not_verified(f"link {name!r} is not exactly positive definite")
    for body in robot.bodies:
        if body.inertial is None or body.massless:
            continue
        links = [
            Member(m.name, m.rotation, m.position, parameters(after.links[m.name].inertial))
            for m in body.members or (Member(body.name),)
        ]
        found = lumped(links)
        if found is None or disagreement(found, body.inertial) > AGREEMENT:
            raise _not_verified(f"body {body.name!r} does not read back as it was written")


def _texts(link: UrdfLink) -> Sequence[str] | None:
    if link.inertial is None:
        return None
    old = link.inertial
    return [n.text for n in (old.mass, *old.moments, *old.origin.xyz, *old.origin.rpy)]


def _not_verified(what: str) -> OutputError:
    return OutputError(f"nothing was written, since the new file failed verification: {what}")
