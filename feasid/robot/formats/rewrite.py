"""New inertials for the links of a file: which numbers to write, exactly possible as decimals.

Links that move as one body share one set of parameters that only make sense together: the moving
link gets the body's parameters minus those of the links fixed to it. If the remainder or a fixed
link would be infeasible, the fixed links' mass and inertia become zero, or a speck where programs
give a link without mass one of their own, and the moving link gets everything. Links on joints that
are only held (``lock=``) still move for other programs, which refuse moving links without mass:
these keep their inertial, or a share of it where the whole is more than the body has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, OutputError, UnsupportedJointError
from feasid.robot import inertia
from feasid.robot.bodies import Body, Member, lumped_parameters, parameters_in_body
from feasid.robot.couplings import Coupling
from feasid.robot.description import GRAVITY, Robot, Source
from feasid.robot.drives import Drive
from feasid.robot.formats.build import build_robot
from feasid.robot.formats.description import (
    NO_EXTRAS,
    Changes,
    Description,
    Extras,
    Format,
    Link,
    NeedsCompilerError,
    NewInertial,
)
from feasid.robot.formats.shapes import Drawing, Mesh
from feasid.robot.formats.terms import TERM_FIELDS, JointTerms, sum_drives
from feasid.robot.formats.xml import flush_to_zero, parse_xml
from feasid.robot.joint_terms import TERMS
from feasid.robot.rotations import compose
from feasid.robot.variants import SCREW_TOLERANCE

UNCHANGED = 1e-14  #: Relative difference that is rounding: the file keeps its own digits.
EMPTIED = NewInertial(0.0, (0.0,) * 6)  #: Inertial of a fixed link if the moving one has everything

SPECK = 1e-9
"""Share of a body for a link fixed to it, where programs would give one without mass more."""

HELD_SHARES = (*(0.5**k for k in range(20)), 1e-9)
"""Shares of the inertials of held links that are tried until the body's own link is consistent."""

_LIFTS = (0.0, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""Multiples of tr(I) that may be added to the diagonal to make the decimals exactly definite."""


def inertials_to_write(
    description: Description, body: Body, form: Format
) -> dict[str, NewInertial]:
    """Inertials to write for the links of one body; empty when its parameters are the file's.

    Raises InputError: the body is infeasible, or the file has no link of its name; names it.
    """
    if body.inertial is None or body.massless:
        return {}
    if body.name not in description.by_name:
        raise InputError(
            f"{description.path} has no link {body.name!r} to write parameters into", body=body.name
        )
    alone = Member(body.name)
    links = body.members or (replace(alone, inertial=_stated_parameters(description, alone)),)
    jointed = {m.name for m in links[1:] if description.link(m.name).joints}

    def inertial_axes(name: str) -> Array | None:
        place = description.link(name).place
        return None if place is None else place.rotation

    before, target = lumped_parameters(links), body.inertial
    if before is not None and relative_difference(before, target) <= UNCHANGED:
        return {}
    link, children = links[0], [m for m in links[1:] if m.inertial is not None]
    size = float(target[0] + target[3] + target[5])
    speck = SPECK * inertia.from_mass_com_inertia(target[9], np.zeros(3), size * np.eye(3))
    places = {frame.name for frame in description.frames}
    bare = [m for m in links[1:] if m.inertial is None and m.name not in places]
    light = [replace(m, inertial=speck) for m in bare if form.default_mass]
    if all(description.link(m.name).is_harmless for m in children):
        others = sum((parameters_in_body(m) for m in (*children, *light)), start=np.zeros(10))
        new = exact_inertial(target - others, inertial_axes(link.name))
        if new is not None:
            return {link.name: new} | _scaled_inertials(light, 1.0, inertial_axes)
    carried = [m for m in children if m.name in jointed]
    fixed = [m for m in children if m.name not in jointed]
    light += [replace(m, inertial=speck) for m in fixed] if form.default_mass else []
    remainder = target - sum((parameters_in_body(m) for m in light), start=np.zeros(10))
    for member in carried:
        if not description.link(member.name).is_harmless:
            raise InputError(
                f"link {member.name!r}, whose joint is held, is infeasible: correct them first",
                link=member.name,
            )
    carried_parameters = sum((parameters_in_body(m) for m in carried), start=np.zeros(10))
    for share in HELD_SHARES if carried else (1.0,):
        new = exact_inertial(remainder - share * carried_parameters, inertial_axes(link.name))
        if new is not None:
            out = {link.name: new} | {m.name: EMPTIED for m in fixed}
            out |= _scaled_inertials(light, 1.0, inertial_axes)
            return out if share == 1 else out | _scaled_inertials(carried, share, inertial_axes)
    raise InputError(
        f"body {body.name!r} is infeasible: no mass distribution has its inertia, and no simulator "
        "would load the file; fit with consistency='full', or correct the body first",
        body=body.name,
    )


def _scaled_inertials(
    members: Sequence[Member], share: float, axes: Callable[[str], Array | None]
) -> dict[str, NewInertial]:
    """The share of each link's inertial; links without mass stay as they are."""
    out = {}
    for member in members:
        ten = np.zeros(10) if member.inertial is None else share * member.inertial
        new = exact_inertial(ten, axes(member.name)) if ten[9] > 0 else None
        if new is not None:
            out[member.name] = new
    return out


def exact_inertial(delta: Array, axes: Array | None = None) -> NewInertial | None:
    """Numbers for a link with these ten parameters, exactly possible; None when they are not.

    The `inertial_axes` of the file's inertial are kept when turning into them does not round.
    """
    if not delta[9] > 0:
        return None
    mass, com, about_com = inertia.to_mass_com_inertia(delta)
    turn = np.eye(3) if axes is None else axes
    # Quarter turns exchange numbers and change signs; other turns would round them.
    reset = not bool(np.isin(turn, (-1.0, 0.0, 1.0)).all())
    if not reset:
        about_com = turn.T @ about_com @ turn
    trace = float(np.trace(about_com))
    for lift in _LIFTS:
        lifted = about_com + lift * trace * np.eye(3)
        moments = tuple(flush_to_zero(lifted[r, c]) for r, c in inertia.UPPER)
        new = NewInertial(float(mass), moments, tuple(map(flush_to_zero, com)), reset)
        if new.is_possible():
            return new
    return None


def relative_difference(a: Array, b: Array) -> float:
    """Largest difference of two bodies' parameters, relative to mass and size of `b`."""
    mass = abs(b[9]) or 1.0
    gyration = float(np.sqrt(abs(b[0] + b[3] + b[5]) / mass)) or 1.0
    scale = mass * np.array([gyration**2] * 6 + [gyration] * 3 + [1.0])
    return float((np.abs(a - b) / scale).max())


# -- joint terms ----------------------------------------------------------------------------------


def joint_terms_to_write(robot: Robot, holds: Collection[str]) -> dict[str, JointTerms]:
    """Per joint the terms to write, of the symbols that a format `holds`.

    Joints of one degree of freedom without a drive get zeros, so that the file agrees with the
    model. Joints with a drive without values keep the values of the file. A spring's rest position
    is kept where the drive says it; see `sum_drives` for how drives of one joint count.

    Raises InputError: a term is negative; names the joint.
    """
    values = sum_drives(robot.drives)
    unsaid = {joint for d in robot.drives if d.values is None for joint in d.coupling}
    rests = {}
    for drive in robot.drives:
        if len(drive.coupling) == 1 and "k" in drive.symbols:
            ((joint, factor),) = drive.coupling.items()
            rests[joint] = drive.rest / factor
    out = {}
    for body in robot.bodies:
        if body.dof == 1 and body.joint not in unsaid:
            coefficients = values.get(((body.joint, 1.0),), {})
            terms = {s: flush_to_zero(coefficients.get(s, 0.0)) for s in TERM_FIELDS if s in holds}
            for symbol, value in terms.items():
                if value < 0 and symbol != "k":  # a spring may push away from its rest position
                    raise InputError(
                        f"joint {body.joint!r}: {TERMS[symbol].name} {value:.3g} is negative",
                        joint=body.joint,
                    )
            slack = flush_to_zero(rests.get(body.joint, 0.0)) if terms.get("k") else 0.0
            by_field = {TERM_FIELDS[s]: v for s, v in terms.items()}
            out[body.joint] = JointTerms(**by_field, slack=slack)
    return out


# -- a robot's numbers in its own file ------------------------------------------------------------


def patch_source(robot: Robot, source: Source, form: Format, extras: Extras = NO_EXTRAS) -> bytes:
    """The text that the robot was read from, with its parameters; read back and verified.

    Bodies without parameters and joints whose drives have no values keep the values of the file.

    Raises InputError: a body that the file has no place for, or infeasible parameters; names the
    body. Raises OutputError: the new text does not read back as the robot, to `Format.agreement`.
    """
    text = parse_xml(source.text, source.path, model=source.reading.get("model", ""))
    old_description = form.read(text)
    inertials: dict[str, NewInertial] = {}
    for body in robot.bodies:
        inertials.update(inertials_to_write(old_description, body, form))
    terms = joint_terms_to_write(robot, form.holds)
    gravity = robot.gravity if form.holds_gravity else None
    new_motors = {*robot.elastic.values()} - {joint.name for joint in old_description.joints}
    motors = tuple(b for b in robot.bodies if b.joint in new_motors)
    shared = tuple(d for d in robot.drives if len(d.coupling) > 1)
    data = form.patch(old_description, Changes(inertials, terms, gravity, extras, motors, shared))
    new_description = form.read(parse_xml(data, text.path, model=text.model))
    _require_shared(shared, new_description, form)
    read_back = (x for x in new_description.links if x.name not in {b.name for b in motors})
    for old, new in zip(old_description.links, read_back, strict=True):
        if new.name in inertials:
            if new.mass is None or not new.is_harmless:
                raise verification_error(f"link {new.name!r} is not exactly positive definite")
        elif _inertial_numbers(old) != _inertial_numbers(new):
            raise verification_error(f"link {new.name!r} changed although it should not")
    # The robot's parameters reproduced by the links that changed.
    for body in robot.bodies:
        if body.inertial is None or not {body.name, *(m.name for m in body.members)} & {*inertials}:
            continue
        links = [
            replace(m, inertial=_stated_parameters(new_description, m))
            for m in body.members or (Member(body.name),)
        ]
        total = lumped_parameters(links)
        if total is None or relative_difference(total, body.inertial) > form.agreement:
            raise verification_error(f"body {body.name!r} does not read back as it was written")
    for joint in new_description.joints:
        target = terms.get(joint.name)
        if target is None:
            continue
        fields = [TERM_FIELDS[s] for s in TERM_FIELDS if s in form.holds]
        for name in [*fields, *(["slack"] if target.stiffness else [])]:
            written, value = getattr(joint.terms, name), getattr(target, name)
            if abs(written - value) > form.agreement * abs(value):
                raise verification_error(
                    f"{name} of joint {joint.name!r} reads back as {written:g}, not {value:g}"
                )
    stated = GRAVITY if new_description.gravity is None else new_description.gravity
    if gravity is not None and tuple(gravity) != tuple(stated):
        raise verification_error("gravity does not read back as it was written")
    return data


def _require_shared(drives: Iterable[Drive], description: Description, form: Format) -> None:
    """Raise unless a written file has these drives along several joints."""
    values = sum_drives(description.shared)
    for key, coefficients in sum_drives(drives).items():
        got = values.get(key, {})
        for symbol, value in coefficients.items() if form.holds_shared else ():
            if abs(got.get(symbol, 0.0) - value) > form.agreement * abs(value):
                raise verification_error(f"{symbol} of {key} reads back as {got.get(symbol)}")


def _inertial_numbers(link: Link) -> object:
    place = link.place
    where = None if place is None else (place.rotation.tolist(), place.position.tolist())
    return link.name, link.mass, link.moments, where


def _stated_parameters(description: Description, member: Member) -> Array | None:
    """Parameters of a link from the description, or from the robot if only a compiler knows
    them.
    """
    try:
        return description.link(member.name).parameters
    except NeedsCompilerError:
        return member.inertial


# -- a robot in a new file ------------------------------------------------------------------------


def generate_file(robot: Robot, form: Format, extras: Extras = NO_EXTRAS) -> bytes:
    """A new file for a robot that came from elsewhere; read back and verified.

    Raises UnsupportedJointError: a joint that the format does not have. Raises InputError: a closed
    loop; a body without parameters, or with infeasible ones; a joint that follows several.
    Raises OutputError: the new text does not read back as the robot.
    """
    if robot.loops:
        raise InputError(
            f"robot {robot.name!r} has closed loops, which are not written to a new {form.title} "
            f"file; write the format it came from"
        )
    for body in robot.bodies:
        if form.default_mass and body.inertial is not None and not body.inertial.any():
            raise InputError(
                f"body {body.name!r} has no mass, which {form.title} would read as "
                f"{form.default_mass}: give it a small one, as feasid correct --fill does",
                body=body.name,
            )
    data = form.generate(robot, joint_terms_to_write(robot, form.holds), extras)
    again = form.read(parse_xml(data))
    _require_shared((d for d in robot.drives if len(d.coupling) > 1), again, form)
    floats = any(body.floats for body in robot.bodies) or None
    bodies = build_robot(again, Source("", form.name, data), floats).bodies
    bodies_by_joint = {b.name if b.floats else b.joint: b for b in bodies}
    for body in robot.bodies:
        written_body = bodies_by_joint.get(body.name if body.floats else body.joint)
        if written_body is None:
            raise verification_error(f"body {body.name!r} is not read back")
        for name in ("rotation", "position", "motion", "inertial"):
            target, got = getattr(body, name), getattr(written_body, name)
            got = np.zeros(10) if got is None else got
            if np.abs(target - got).max() > form.agreement * max(1.0, np.abs(target).max()):
                raise verification_error(
                    f"the {name} of body {body.name!r} reads back as {got.tolist()}"
                )
    return data


def inertial_in_body_axes(body: Body) -> NewInertial | None:
    """Numbers for a body in a new file, in its own axes; None for one without mass and inertia.

    Raises InputError: the body has no parameters, or infeasible ones.
    """
    if body.inertial is None:
        raise InputError(
            f"body {body.name!r} has no inertial parameters: fit them, or describe them",
            body=body.name,
        )
    if not body.inertial.any():
        return None
    new = exact_inertial(body.inertial)
    if new is None:
        raise InputError(
            f"body {body.name!r} is infeasible, so other programs would refuse "
            f"the file; correct them first",
            body=body.name,
        )
    return new


def with_base_link(robot: Robot, name: str = "world") -> tuple[Member, ...]:
    """Links of the base of a new file; the first is at its origin, and is `name` if none was."""
    first = next(iter(robot.fixed), None)
    if first and (first.rotation == np.eye(3)).all() and not first.position.any():
        return robot.fixed
    names = {*(b.name for b in robot.bodies), *(m.name for m in robot.fixed)}
    while name in names:
        name += "_"
    return (Member(name), *robot.fixed)


def placed_drawings(
    members: Iterable[Member], drawings: Mapping[str, Sequence[Drawing]]
) -> Iterator[tuple[str, Drawing]]:
    """Known shapes of links in the frame of the body that carries them, each with a name."""
    for member in members:
        for k, drawing in enumerate(drawings.get(member.name, ())):
            shape = drawing.shape
            if shape is not None and not (isinstance(shape, Mesh) and not shape.name):
                at = compose(member.rotation, member.position, shape.rotation, shape.position)
                placed = replace(shape, rotation=at[0], position=at[1])
                yield f"{member.name}_{drawing.tag}_{k}", replace(drawing, shape=placed)


def joint_kind_axis_position(body: Body, title: str) -> tuple[str, Array | None, Array]:
    """Kind, axis and position of a body's joint, in the body's frame.

    Raises UnsupportedJointError: the joint is helical, planar, or floats on a moving body.
    """
    angular, linear = body.motion[:3], body.motion[3:]
    if body.floats and (body.motion == np.eye(6)).all():
        return "floating", None, np.zeros(3)
    if body.dof == 3 and (angular == np.eye(3)).all() and np.allclose(linear, -linear.T, atol=0):
        return "spherical", None, np.array([linear[2, 1], linear[0, 2], linear[1, 0]])
    if body.dof == 1:
        w, v = angular[:, 0], linear[:, 0]
        if not w.any() and abs(np.linalg.norm(v) - 1) < SCREW_TOLERANCE:
            return "prismatic", v, np.zeros(3)
        pitch = abs(float(w @ v)) <= SCREW_TOLERANCE * max(1.0, float(np.linalg.norm(v)))
        if abs(np.linalg.norm(w) - 1) < SCREW_TOLERANCE and pitch:
            return "revolute", w, np.cross(w, v)
    raise UnsupportedJointError(
        f"joint {body.joint!r} has no counterpart in {title}: only hinges, slides, balls and "
        f"bodies that float in the world, per radian and metre",
        joint=body.joint,
    )


def single_leader(coupling: Coupling, title: str, held: bool = False) -> tuple[str, float]:
    """The joint that a joint follows, and the factor; ("", 0.0) for one that may be `held`.

    Raises InputError: it follows several, or none, which a file of this format does not have.
    """
    if len(coupling.factors) != 1 and (coupling.factors or not held):
        raise InputError(
            f"joint {coupling.joint!r} follows {len(coupling.factors)} joints; in {title} a joint "
            f"follows one other",
            joint=coupling.joint,
        )
    return next(iter(coupling.factors.items()), ("", 0.0))


def to_rpy(rotation: Array) -> Array:
    """Roll, pitch and yaw of a rotation: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    r = rotation
    across = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], across)
    if across < SCREW_TOLERANCE:  # the first and last axis are one: yaw stays zero
        return np.array([math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0])
    return np.array([math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])])


def verification_error(what: str) -> OutputError:
    """The error of a written file that does not read back as intended."""
    return OutputError(f"nothing was written, since the new file failed verification: {what}")
