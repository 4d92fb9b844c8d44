"""From an MJCF model, read here or compiled by MuJoCo, to a robot of moving bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import DescriptionError, InputError, missing_extra
from feasid.robot import inertia
from feasid.robot.description import GRAVITY, Robot
from feasid.robot.lump import compose, lumped
from feasid.robot.mjcf.inertia import NeedsCompilerError, body_parameters
from feasid.robot.mjcf.model import Compiler, Mjcf
from feasid.robot.parts import Body, Limits, Member, Source
from feasid.robot.rotations import exponential
from feasid.robot.xml.text import TEXT, XmlText


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint in its body's frame; `reference` is its position at the home pose."""

    name: str
    type: str
    position: Array
    axis: Array
    reference: float = 0.0
    limits: Limits = field(default_factory=Limits)

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


def robot_from_mjcf(mjcf: Mjcf, gravity: npt.ArrayLike | None = None) -> Robot:
    """Build the robot of an MJCF file.

    Bodies without joints are lumped into what carries them. Of a body with several joints, the
    last one carries it, and the others carry bodies without mass named ``body/joint``. Armature,
    damping and friction loss are joint terms: add them with `Robot.with_joint_terms`.

    Raises
    ------
    MissingExtraError
        Masses come from meshes or from elements that only MuJoCo's compiler expands.
    """
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
    source = Source(main.path, "mjcf", main.data)
    return build(bodies, GRAVITY if given is None else given, mjcf.name, source)


def _scaled(values: list[Array | None], compiler: Compiler) -> list[Array | None]:
    """All bodies scaled to the total mass that the compiler sets, if it does."""
    total = sum(float(v[9]) for v in values if v is not None)
    if not compiler.total_mass or total <= 0:
        return values
    return [None if v is None else v * (compiler.total_mass / total) for v in values]


def robot_from_mjmodel(
    model: Any, gravity: npt.ArrayLike | None = None, source: Source | None = None
) -> Robot:
    """Build the robot of a compiled ``mujoco.MjModel``; inertias are MuJoCo's own."""
    names = [model.body(i).name or f"body{i}" for i in range(model.nbody)]
    kinds = ("free", "ball", "slide", "hinge")
    bodies = []
    for i in range(1, model.nbody):
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        joints = []
        for j in range(first, first + count):
            kind = kinds[int(model.jnt_type[j])]
            angle = float(model.qpos0[model.jnt_qposadr[j]]) if kind in ("slide", "hinge") else 0.0
            limits = Limits(*map(float, model.jnt_range[j])) if model.jnt_limited[j] else Limits()
            default = names[i] if j == first else f"{names[i]}_joint{j - first + 1}"
            name = model.joint(j).name or default
            joints.append(TreeJoint(name, kind, model.jnt_pos[j], model.jnt_axis[j], angle, limits))
        axes = _from_quaternion(model.body_iquat[i])
        tensor = axes @ np.diag(model.body_inertia[i]) @ axes.T
        values = inertia.from_mass_com_inertia(model.body_mass[i], model.body_ipos[i], tensor)
        parent = int(model.body_parentid[i])
        bodies.append(
            TreeBody(
                names[i],
                names[parent] if parent else None,
                _from_quaternion(model.body_quat[i]),
                np.array(model.body_pos[i]),
                tuple(joints),
                values if model.body_mass[i] or model.body_inertia[i].any() else None,
            )
        )
    given = model.opt.gravity if gravity is None else gravity
    return build(bodies, np.array(given), "mujoco", source)


def compile_mjcf(text: XmlText) -> Any:
    """A file compiled by MuJoCo, which may open the meshes and textures that it names."""
    try:
        import mujoco  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_extra("compiling MJCF", "mujoco", "mujoco") from error
    path = text.path
    try:
        if path == TEXT:
            return mujoco.MjModel.from_xml_string(text.data.decode())
        return mujoco.MjModel.from_xml_path(path)
    except ValueError as error:
        message = " ".join(str(error).split())
        raise DescriptionError(f"{path}: MuJoCo refuses the file: {message}", path=path) from error


def build(
    bodies: Iterable[TreeBody], gravity: npt.ArrayLike, name: str, source: Source | None
) -> Robot:
    """Lump bodies without joints, and unfold bodies with several."""
    places: dict[str, tuple[str | None, Array, Array]] = {}
    members: dict[str | None, list[Member]] = {None: []}
    moving: list[Body] = []
    for body in bodies:
        carrier, rotation, position = (None, np.eye(3), np.zeros(3))
        if body.parent is not None:
            carrier, rotation, position = places[body.parent]
        home = compose(rotation, position, body.rotation, body.position)
        for k, joint in enumerate(body.joints):
            last = k == len(body.joints) - 1
            label = body.name if last else f"{body.name}/{joint.name}"
            moving.append(_moving(label, carrier, home, joint, None if last else np.zeros(10)))
            carrier, home = label, (np.eye(3), np.zeros(3))
        places[body.name] = (carrier, *home)
        link = Member(body.name, *home, body.inertial)
        members.setdefault(carrier, []).append(link)
    if not moving:
        raise InputError(f"robot {name!r} has no moving joint")
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
        source=source,
        fixed=tuple(members[None]),
    )


def _moving(
    name: str,
    parent: str | None,
    home: tuple[Array, Array],
    joint: TreeJoint,
    ten: Array | None,
) -> Body:
    motion = joint.motion
    if joint.reference:
        back = exponential(motion[:, 0] * -joint.reference)
        home = compose(*home, *back)
    return Body(name, parent, *home, motion, joint.name, inertial=ten, limits=joint.limits)


def _from_quaternion(q: Array) -> Array:
    """Rotation of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (float(v) for v in q)
    cross = inertia.skew([x, y, z])
    out: Array = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return out
