"""From what an MJCF file says to a robot of moving bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError, missing_extra
from feasid.formats.mjcf.bonds import Bond, Bonds, bound
from feasid.formats.mjcf.effects import check_ignored, refuse
from feasid.formats.mjcf.inertia import NeedsCompilerError, body_parameters
from feasid.formats.mjcf.model import Compiler, Mjcf
from feasid.formats.terms import NO_TERMS, JointTerms, left_out_notes, term_notes
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits, Member, lumped
from feasid.robot.description import GRAVITY, Robot, Source
from feasid.robot.drives import Drive
from feasid.robot.rotations import compose, exponential

ONE_DOF = ("hinge", "slide")


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint in its body's frame; `reference` is its position at the home pose."""

    name: str
    type: str
    position: Array
    axis: Array
    reference: float = 0.0
    limits: Limits = field(default_factory=Limits)
    terms: JointTerms = NO_TERMS

    @property
    def motion(self) -> Array:
        """Motion subspace in the body's frame, angular part first."""
        if self.type == "free":
            return np.eye(6)
        out = np.zeros((6, 3 if self.type == "ball" else 1))
        if self.type == "ball":
            out[:3], out[3:] = np.eye(3), inertia.skew(self.position)
            return out
        axis = self.axis / np.linalg.norm(self.axis)
        if self.type == "slide":
            out[3:, 0] = axis
        else:
            out[:3, 0], out[3:, 0] = axis, np.cross(self.position, axis)
        return out


@dataclass(frozen=True, eq=False)
class TreeBody:
    """A body with its pose in its parent's frame, joints in order, and parameters."""

    name: str
    parent: str | None
    rotation: Array
    position: Array
    joints: tuple[TreeJoint, ...]
    inertial: Array | None


def robot_from_mjcf(
    mjcf: Mjcf, gravity: npt.ArrayLike | None = None, ignore: Iterable[str] = ()
) -> Robot:
    """Build the robot of an MJCF file.

    Bodies without joints are lumped into what carries them. Of a body with several joints, the
    last one carries it, and the others carry bodies without mass named ``body/joint``. Armature,
    damping, friction loss and springs of joints become drives with these values.

    Raises
    ------
    DescriptionError
        Something changes the dynamics that is not modelled and that `ignore` does not name; see
        `feasid.formats.mjcf.effects`.
    MissingExtraError
        Masses come from meshes or from elements that only MuJoCo's compiler expands.
    """
    notes = left_out_notes((*refuse(mjcf.effects, check_ignored(ignore)), *mjcf.left_out))
    try:
        if mjcf.unknown:
            raise NeedsCompilerError("; ".join(mjcf.unknown[:3]))
        values = _scaled([body_parameters(mjcf, b) for b in mjcf.bodies], mjcf.compiler)
        bodies = [
            TreeBody(
                b.name,
                b.parent,
                b.pose.rotation,
                b.pose.position,
                tuple(
                    TreeJoint(
                        j.name,
                        j.type,
                        np.array(j.position),
                        np.array(j.axis),
                        j.reference,
                        Limits(*j.range) if j.range else Limits(),
                        j.terms,
                    )
                    for j in b.joints
                ),
                own,
            )
            for b, own in zip(mjcf.bodies, values, strict=True)
        ]
    except NeedsCompilerError as error:
        need = missing_extra(str(error), "MuJoCo's compiler", "mujoco")
        hint = "then load_robot(path, use_mujoco=True)"
        raise type(need)(f"{need}, {hint}", **need.data) from error
    main = mjcf.files.main
    given = mjcf.gravity if gravity is None else gravity
    source = Source(main.path, "mjcf", main.data, tuple(notes))
    robot = build(bodies, GRAVITY if given is None else given, mjcf.name, source)
    return constrained(robot, bodies, mjcf.bonds, mjcf.motors)


def constrained(
    robot: Robot, bodies: Iterable[TreeBody], bonds: Sequence[Bond], motors: Sequence[str]
) -> Robot:
    """The robot with a model's equality constraints."""
    references = {j.name: j.reference for b in bodies for j in b.joints if j.type in ONE_DOF}
    return bound(robot, Bonds(tuple(bonds), tuple(motors), references))


def _scaled(values: list[Array | None], compiler: Compiler) -> list[Array | None]:
    """All bodies scaled to the total mass that the compiler sets, if it does."""
    total = sum(float(v[9]) for v in values if v is not None)
    if not compiler.total_mass or total <= 0:
        return values
    return [None if v is None else v * (compiler.total_mass / total) for v in values]


def build(
    bodies: Iterable[TreeBody], gravity: npt.ArrayLike, name: str, source: Source | None
) -> Robot:
    """Lump bodies without joints, and unfold bodies with several."""
    places: dict[str, tuple[str | None, Array, Array]] = {}
    members: dict[str | None, list[Member]] = {None: []}
    moving: list[Body] = []
    drives: list[Drive] = []
    for body in bodies:
        carrier, rotation, position = (None, np.eye(3), np.zeros(3))
        if body.parent is not None:
            carrier, rotation, position = places[body.parent]
        home = compose(rotation, position, body.rotation, body.position)
        for k, joint in enumerate(body.joints):
            last = k == len(body.joints) - 1
            label = body.name if last else f"{body.name}/{joint.name}"
            moving.append(_moving(label, carrier, home, joint, massless=not last))
            carrier, home = label, (np.eye(3), np.zeros(3))
            drives += joint.terms.drives(label, joint.name) if joint.type in ONE_DOF else ()
        places[body.name] = (carrier, *home)
        link = Member(body.name, *home, body.inertial)
        members.setdefault(carrier, []).append(link)
    if not moving:
        raise InputError(f"robot {name!r} has no moving joint")
    if source is not None:
        source = replace(source, notes=(*term_notes(drives), *source.notes))
    finished = [
        replace(
            b,
            inertial=lumped(members[b.name]),
            members=tuple(members[b.name]) if len(members[b.name]) > 1 else (),
        )
        if b.name in members
        else b
        for b in moving
    ]
    return Robot(
        tuple(finished),
        np.asarray(gravity, dtype=np.float64),
        name,
        tuple(drives),
        source=source,
        fixed=tuple(members[None]),
    )


def _moving(
    name: str,
    parent: str | None,
    home: tuple[Array, Array],
    joint: TreeJoint,
    *,
    massless: bool,
) -> Body:
    motion = joint.motion
    if joint.reference:
        back = exponential(motion[:, 0] * -joint.reference)
        home = compose(*home, *back)
    return Body(name, parent, *home, motion, joint.name, limits=joint.limits, massless=massless)
