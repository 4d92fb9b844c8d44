"""Write MJCF: a file's own text with other numbers, or a new file.

In a file's own text only ``<inertial>`` elements, the terms of joints and gravity change; every
other byte stays. A body that MuJoCo would derive from its geoms gets an ``<inertial>``, which takes
precedence. Dry friction gets solver settings that hold a joint at rest, unless the file has its
own, and a constant force on a joint becomes an actuator that needs no control. In a new file
frames, joint positions and axes are the robot's, so that q means the same; links that are fixed to
another are bodies without joints and without mass, with their shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot import inertia
from feasid.robot.bodies import Body, Member
from feasid.robot.description import GRAVITY, Robot
from feasid.robot.drives import Drive
from feasid.robot.formats import rewrite
from feasid.robot.formats.build import LIGHTEST, WORLD
from feasid.robot.formats.description import Changes, Description, Extras, JointServo, NewInertial
from feasid.robot.formats.mjcf.model import HIDDEN, TENDON_TERMS, TERMS, Mjcf, MjcfBody, MjcfJoint
from feasid.robot.formats.shapes import NUMBERS_OF_SIZE, Shape
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.xml import Element, Patch, decimals, markup
from feasid.robot.rotations import to_quaternion

HOLDING = {"solreffriction": (0.002, 1.0), "solimpfriction": (0.999, 0.9999, 0.001)}
"""Solver settings of dry friction. MuJoCo's are soft: half the breakaway torque of 1 N m moves a
joint of .01 kg m^2 by 52 mrad/s, with these by .1 (measured)."""

SHORTEST_STEP = 5e-4  #: Time step [s] down to which MuJoCo remembers enough controls for a delay.

TYPES = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball"}
"""Type of ``<joint>`` per kind of joint."""


def patch_mjcf(description: Description, changes: Changes) -> bytes:
    """The main file with these numbers, every other byte as it was.

    Raises InputError: a body or joint stands in an included file, or the compiler's settings make
    the numbers not count as they are.
    """
    mjcf: Mjcf = description.document
    patch = Patch(mjcf.files.main)
    if any(new.com is not None for new in changes.inertials.values()):
        # Under these settings MuJoCo would change a written <inertial>.
        trouble, path = next(iter(description.unknown), ""), description.path
        if mjcf.compiler.from_geoms == "true":
            trouble = 'compiler inertiafromgeom="true" ignores <inertial>: make it "auto"'
        if description.total_mass:
            trouble = "compiler settotalmass rescales every mass: delete it"
        if trouble:
            raise InputError(f"{path}: parameters cannot be written: {trouble}", path=path)
    for name, new in changes.inertials.items():
        _set_inertial(patch, mjcf, mjcf.bodies[name], new)
    for name, terms in changes.terms.items():
        if name in mjcf.joints:
            _set_terms(patch, mjcf, mjcf.joints[name], terms)
    now = GRAVITY if description.gravity is None else description.gravity
    if changes.gravity is not None and tuple(changes.gravity) != tuple(now):
        options = [o for o in patch.text.root.all("option") if "gravity" in o.attributes]
        if options:
            patch.numbers(options[0], "gravity", changes.gravity.tolist())
        else:
            text = f'<option gravity="{decimals(changes.gravity)}"/>'
            patch.insert_first(patch.text.root, [text])
    # Constant forces replace those that this package wrote before; gains go to the file's own
    # position actuators. What the file lacks of both is added.
    forces, servos = dict(changes.extras.forces), dict(changes.extras.servos)
    for element in (e for part in patch.text.root.all("actuator") for e in part.children):
        joint, name = (element.attributes.get(k, "") for k in ("joint", "name"))
        if name == _force_name(joint):
            patch.numbers(element, "biasprm", [forces.pop(joint, 0.0)])
        elif element.tag in ("position", "general") and joint in servos:
            # Either would multiply the written gains.
            for attribute in element.attributes.keys() & {"gear", "dampratio"}:
                raise InputError(
                    f"{patch.text.path}:{element.line}: the servo of joint {joint!r} cannot be "
                    f"written to actuator {name!r}, which has {attribute}: delete this attribute"
                )
            _set_servo(patch, element, servos.pop(joint))
    if forces or servos:
        patch.insert_last(patch.text.root, _actuator_lines(forces, servos))
    # Drives along several joints are tendons, and elastic joints have motors with bodies.
    for drive in (d for d in changes.shared if d.name in mjcf.tendons):
        for name, value in _tendon_numbers(drive).items():
            patch.numbers(mjcf.tendons[drive.name], name, [value])
    if changes.motors:
        motors = [_motor_lines(body, changes.terms[body.joint]) for body in changes.motors]
        patch.insert_first(patch.text.root, markup("worldbody", *motors))
    if lines := _tendon_lines(d for d in changes.shared if d.name not in mjcf.tendons):
        patch.insert_last(patch.text.root, lines)
    return patch.apply()


def _motor_lines(body: Body, terms: JointTerms) -> list[str]:
    """The motor of an elastic joint: drive inertia and friction on a body as light as a file may
    have. Everything is said, so that no default class of the file adds to it.
    """
    kind, axis, _ = rewrite.joint_kind_axis_position(body, "MJCF")
    values = {k: getattr(terms, field) for k, field in TERMS.items()}
    holding = HOLDING if terms.coulomb else {}
    return markup(
        "body",
        markup("joint", name=body.joint, type=TYPES[kind], axis=axis, pos=np.zeros(3), ref=0.0,
               limited="false", **values, **holding),
        markup("inertial", pos=np.zeros(3), mass=LIGHTEST, diaginertia=np.full(3, LIGHTEST)),
        name=body.name,
    )  # fmt: skip


def _tendon_numbers(drive: Drive) -> dict[str, float]:
    """Attributes of the tendon of a drive along several joints, those that are zero, too."""
    numbers = [] if drive.values is None else drive.values.tolist()
    values = dict(zip(drive.symbols, numbers, strict=True))
    return {name: values.get(symbol, 0.0) for name, symbol in TENDON_TERMS.items()}


def _tendon_lines(drives: Iterable[Drive]) -> list[str]:
    lines = []
    for drive in drives:
        ends = [markup("joint", joint=j, coef=c) for j, c in drive.coupling.items()]
        numbers = _tendon_numbers(drive)
        holding = HOLDING if numbers["frictionloss"] else {}
        lines += markup("fixed", *ends, name=drive.name, limited="false", springlength=drive.rest,
                        **numbers, **holding)  # fmt: skip
    return markup("tendon", lines) if lines else []


def _set_servo(patch: Patch, element: Element, servo: JointServo) -> None:
    """Write gains, delay and limit of an actuator, which override those of its default class."""
    if element.tag == "position":
        numbers = {"kp": [servo.kp], "kv": [servo.kd]}
    else:
        numbers = {"gainprm": [servo.kp], "biasprm": [0.0, -servo.kp, -servo.kd]}
        if "biastype" not in element.attributes:
            patch.new_attribute(element, "biastype", "affine")
    if servo.delay or "delay" in element.attributes:
        numbers["delay"] = [servo.delay]
    if math.isfinite(servo.limit):
        numbers["forcerange"] = [-servo.limit, servo.limit]
    for name, values in numbers.items():
        patch.numbers(element, name, values)
    if servo.delay and "nsample" not in element.attributes:
        patch.new_attribute(element, "nsample", _delay_steps(servo.delay))


def _delay_steps(delay: float) -> str:
    """Steps that an actuator remembers its control for, so that it acts later [s]."""
    return str(math.ceil(delay / SHORTEST_STEP) + 2)


def _force_name(joint: str) -> str:
    return f"constant force on {joint}"


def _actuator_lines(forces: Mapping[str, float], servos: Mapping[str, JointServo]) -> list[str]:
    """Constant forces and position servos of joints."""
    # The force of the former is their bias alone, whatever their control.
    parts = [
        markup("general", name=_force_name(joint), joint=joint, gainprm=0.0, biastype="affine",
               biasprm=force)
        for joint, force in forces.items()
    ]  # fmt: skip
    parts += [
        markup(
            "position",
            name=f"servo of {joint}",
            joint=joint,
            kp=servo.kp,
            kv=servo.kd or None,
            forcerange=(-servo.limit, servo.limit) if math.isfinite(servo.limit) else None,
            delay=servo.delay or None,
            nsample=_delay_steps(servo.delay) if servo.delay else None,
        )
        for joint, servo in servos.items()
    ]
    return markup("actuator", *parts) if parts else []


def _set_inertial(patch: Patch, mjcf: Mjcf, body: MjcfBody, new: NewInertial) -> None:
    """Write one body's inertia; without a new centre of mass only its mass and moments."""
    old = next(iter(body.inertials), None)
    element = body.element if old is None else old.element
    _check_in_main_file(mjcf, element, f"body {body.name!r}")
    if old is None:
        patch.insert_first(element, _inertial_lines(new, np.eye(3)))
        return
    if new.com is None:
        xx, xy, xz, yy, yz, zz = new.moments
        patch.numbers(element, "mass", [new.mass])
        if "fullinertia" in element.attributes:
            patch.numbers(element, "fullinertia", [xx, yy, zz, xy, xz, yz])
        else:
            patch.numbers(element, "diaginertia", [xx, yy, zz])
        return
    if element.parent is not None and element.parent.tag == "frame":
        raise InputError(
            f"the <inertial> of body {body.name!r} on line {element.line} stands in a "
            f"<frame>: move it out of the frame to have it written",
            body=body.name,
        )
    axes = np.eye(3) if new.reset_axes else old.place.rotation
    end = patch.text.spans(element)[1]
    tag = _inertial_lines(new, axes)[0]
    if not patch.text.closes_itself(element):  # the end tag in the file stays
        tag = tag.replace("/>", ">")
    patch.changes.append((element.start, end, tag.encode()))


def _inertial_lines(new: NewInertial, axes: Array) -> list[str]:
    """An ``<inertial>`` in the body's axes; `axes` are those of the moments."""
    tensor = axes @ inertia.rotational_inertia([*new.moments, 0, 0, 0, 0]) @ axes.T
    xx, xy, xz, yy, yz, zz = (float(tensor[r, c]) for r, c in inertia.UPPER)
    diagonal = not any((xy, xz, yz))
    return markup(
        "inertial",
        pos=new.com or np.zeros(3),
        mass=new.mass,
        diaginertia=(xx, yy, zz) if diagonal else None,
        fullinertia=None if diagonal else (xx, yy, zz, xy, xz, yz),
    )


def _set_terms(patch: Patch, mjcf: Mjcf, old: MjcfJoint, wanted: JointTerms) -> None:
    """Joint terms that the file does not already say, by itself or by a default class."""
    joint, element = old.joint, old.element
    fields = {k: v for k, v in TERMS.items() if k != "springref" or wanted.stiffness}
    new = {k: getattr(wanted, v) for k, v in fields.items()
           if getattr(wanted, v) != getattr(joint.terms, v)}  # fmt: skip
    holds = wanted.coulomb and not old.holding
    if new or holds:
        _check_in_main_file(mjcf, element, f"joint {joint.name!r}")
    for attribute, value in new.items():
        if attribute == "springref" and mjcf.compiler.degrees and joint.kind == "revolute":
            value = math.degrees(value)
        patch.numbers(element, attribute, [value])
    if holds:
        for attribute, settings in HOLDING.items():
            patch.numbers(element, attribute, settings)


def _check_in_main_file(mjcf: Mjcf, element: Element, what: str) -> None:
    text = mjcf.files.text(element)
    if text is not mjcf.files.main:
        raise InputError(
            f"{what} stands in the included file {text.path}:{element.line}; only the main file is "
            f"written; correct that one",
            path=text.path,
            line=element.line,
        )


# -- new files ------------------------------------------------------------------------------------


def generate_mjcf(robot: Robot, terms: Mapping[str, JointTerms], extras: Extras) -> bytes:
    """The robot as MJCF.

    Raises UnsupportedJointError: a joint that MJCF does not have: helical, planar, or floating on a
    moving body. Raises InputError: a body without parameters, or with infeasible ones; names
    it. A joint that follows several.
    """
    roots = [i for i, p in enumerate(robot.parents) if p < 0]
    followers = []
    for coupling in robot.couplings:
        leader, factor = rewrite.single_leader(coupling, "MJCF", held=True)
        curve = [coupling.offset, factor, 0, 0, 0]
        followers += markup("joint", joint1=coupling.joint, joint2=leader or None, polycoef=curve)
    trees = {i: _body_lines(robot, i, terms, extras) for i in roots}
    free = [lines for i, lines in trees.items() if robot.bodies[i].floats]
    inside = [lines for i, lines in trees.items() if not robot.bodies[i].floats]
    base, *others = rewrite.with_base_link(robot, WORLD)
    # Pinocchio reads the first body of the world alone, which is therefore the base, or one on it.
    inside += [_link_lines(m, m.inertial, extras) for m in others if m.name != WORLD]
    if base.name == WORLD:
        inside.append(_geom_lines((base,), extras))
    elif base.name in {m.name for m in robot.fixed}:
        inside = [_link_lines(base, base.inertial, extras, *inside)]
    lines = markup(
        "mujoco",
        markup("compiler", angle="radian", inertiafromgeom="false"),
        markup("option", gravity=robot.gravity),
        markup("worldbody", *inside, *free),
        markup("equality", followers) if followers else [],
        _tendon_lines(d for d in robot.drives if len(d.coupling) > 1),
        _actuator_lines(extras.forces, extras.servos),
        model=robot.name,
    )
    return "\n".join([*lines, ""]).encode()


def _link_lines(
    member: Member, inertial: Array | None, extras: Extras, *inside: list[str]
) -> list[str]:
    """A link that is fixed to the body or the world around it, with its shapes."""
    new = (None if inertial is None else rewrite.exact_inertial(inertial)) or rewrite.EMPTIED
    return markup(
        "body",
        _inertial_lines(new, np.eye(3)),
        _geom_lines((Member(member.name),), extras),
        *inside,
        **_placement(member.name, member.rotation, member.position),
    )


def _placement(name: str, rotation: Array, position: Array) -> dict[str, object]:
    turned = (rotation != np.eye(3)).any()
    return {"name": name, "pos": position, "quat": to_quaternion(rotation) if turned else None}


def _geom_lines(members: Sequence[Member], extras: Extras) -> list[str]:
    """Primitive shapes of links: one geom for what is drawn and collides alike.

    What is only drawn collides with nothing, and what only collides is in a group that MuJoCo does
    not show. Meshes stay out: MuJoCo refuses a file whose meshes it does not find.
    """
    boxes = {
        (d.tag, s.kind, *np.round([*s.half, *s.position, *s.rotation.ravel()], 12)): (s, d.colour)
        for _, d in rewrite.placed_drawings(members, extras.drawings)
        if isinstance(s := d.shape, Shape)
    }
    lines = []
    for (tag, *place), (shape, colour) in boxes.items():
        both = ("collision", *place) in boxes and ("visual", *place) in boxes
        if both and tag == "collision":
            continue
        # MJCF's length of a capsule is that of its straight part.
        half = shape.half - shape.half[0] * (shape.kind == "capsule") * np.array([0, 0, 1])
        count = NUMBERS_OF_SIZE[shape.kind]
        # What touches the robot stops it; its own shapes overlap at joints and do not collide.
        silent = "0" if tag == "visual" and not both else None
        lines += markup(
            "geom",
            type=shape.kind,
            size=half[[0, 2]] if count == 2 else half[:count],
            pos=shape.position,
            quat=to_quaternion(shape.rotation),
            rgba=colour or None,
            group=str(HIDDEN) if tag == "collision" else None,
            contype=silent,
            conaffinity="0",
        )
    return lines


def _body_lines(robot: Robot, i: int, terms: Mapping[str, JointTerms], extras: Extras) -> list[str]:
    """A body and those on it; massless bodies between joints become joints of the next one."""
    body = robot.bodies[i]
    if body.joint in robot.elastic.values():
        return _motor_lines(body, terms.get(body.joint, NO_TERMS))
    home, joints = (body.rotation, body.position), [body]
    children = [k for k, p in enumerate(robot.parents) if p == i]
    while body.inertial is not None and not body.inertial.any() and len(children) == 1:
        i = children[0]
        body = robot.bodies[i]
        if (body.rotation != np.eye(3)).any() or body.position.any():
            body = joints[-1]  # the next one is at another place
            break
        joints.append(body)
        children = [k for k, p in enumerate(robot.parents) if p == i]
    new = rewrite.inertial_in_body_axes(body)
    if new is None:
        raise InputError(
            f"body {body.name!r} has no mass, so MuJoCo would refuse the file", body=body.name
        )
    link, *fixed = body.members or (Member(body.name),)
    return markup(
        "body",
        *(_joint_lines(joint, terms.get(joint.joint, NO_TERMS)) for joint in joints),
        _inertial_lines(new, np.eye(3)),
        _geom_lines((link,), extras),
        *(_link_lines(member, None, extras) for member in fixed),
        *(_body_lines(robot, child, terms, extras) for child in children),
        **_placement(body.name, *home),
    )


def _joint_lines(body: Body, terms: JointTerms) -> list[str]:
    kind, axis, position = rewrite.joint_kind_axis_position(body, "MJCF")
    if kind == "floating":
        return markup("freejoint", name=body.joint)
    low, high = body.limits.lower, body.limits.upper
    limited = low is not None and high is not None and low < high
    values = {k: getattr(terms, field) or None for k, field in TERMS.items()}
    return markup(
        "joint",
        name=body.joint,
        type=TYPES[kind],
        axis=axis,
        pos=position if position.any() else None,
        limited="true" if limited else None,
        range=(low, high) if limited else None,
        **values,
        **(HOLDING if terms.coulomb else {}),
    )
