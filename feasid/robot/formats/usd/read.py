"""USD in: rigid bodies and joints of UsdPhysics, one layer by itself.

Numbers of UsdPhysics have 32 bits. They are read as the shortest decimals that give the same 32
bits, which are those of the file that they came from where it had at most seven digits. Layers that
refer to other files are refused, so that nothing else is opened.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, InputError, UnsupportedJointError, missing_extra
from feasid.core.files import write_atomically
from feasid.robot.bodies import Limits
from feasid.robot.formats.description import Description, ExactPose, Joint, Link, pose_of_floats
from feasid.robot.formats.terms import FLOATING_JOINT, NO_TERMS, JointTerms, LeftOut
from feasid.robot.formats.xml import ReadLimits, XmlText
from feasid.robot.rotations import from_quaternion

BINARY = b"PXR-USDC"  #: First bytes of a binary layer.
GRAVITY = 9.81  #: Gravity if the scene does not give it [m/s^2].

NEAT = 1e-6
"""Quaternions this close to one of halves and square roots of a half are those: right angles."""

NEAT_ENTRIES = np.array([0.0, 0.5, math.sqrt(0.5), 1.0])

KINDS = {"PhysicsRevoluteJoint": "revolute", "PhysicsPrismaticJoint": "prismatic"}
INSTANCES = {"revolute": "angular", "prismatic": "linear"}
"""Names of a joint's only direction in schemas of drives and of PhysX."""

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

WORLD = "world"


def usd_module(name: str) -> Any:
    """A module of the library, such as "UsdPhysics".

    Raises MissingExtraError: usd-core is not installed.
    """
    try:
        return import_module(f"pxr.{name}")
    except ImportError as error:
        raise missing_extra("reading USD", "usd-core", "usd") from error


def refused_layer(path: str, message: str) -> DescriptionError:
    """The error of a layer that holds no robot, or none that can be read."""
    return DescriptionError(f"{path}: {message}", path=path, line=1, column=1)


def open_layer(data: bytes, path: str) -> Any:
    """A layer of its bytes, in memory.

    Raises DescriptionError: it is damaged. Raises InputError: the layer refers to other files.
    """
    sdf = usd_module("Sdf")
    layer = sdf.Layer.CreateAnonymous(".usda")
    try:
        if data.startswith(BINARY):
            with TemporaryDirectory() as folder:
                file = Path(folder) / "layer.usdc"
                write_atomically(file, data)
                layer.TransferContent(sdf.Layer.OpenAsAnonymous(str(file)))
        elif not layer.ImportFromString(data.decode()):
            raise ValueError("no layer of USD")
    except Exception as error:  # errors of the library and of decoding have no common base
        raise refused_layer(path, f"damaged or no USD: {error}") from error
    others = sorted({*layer.GetCompositionAssetDependencies()})
    if others:
        raise InputError(
            f"{path} refers to {', '.join(others[:4])}, and other files are not opened: write it "
            f"into one with usdcat --flatten {path} --out robot.usda",
            path=path,
        )
    return layer


def shortest(value: Any) -> float:
    """A number of 32 bits as the shortest decimal that gives it."""
    return float(str(np.float32(value)))


def shortest_vector(values: Any) -> Array:
    """Numbers of 32 bits as the shortest decimals, shape (3,)."""
    return np.array([shortest(x) for x in values])


def rotation_of(quaternion: Any) -> Array:
    """Rotation of a quaternion of 32 bits; right angles and halves of them are exact."""
    q = np.array([quaternion.GetReal(), *quaternion.GetImaginary()], dtype=np.float64)
    size = float(np.linalg.norm(q))
    if not size > 0:
        return np.eye(3)
    q = q / size
    nearest = NEAT_ENTRIES[np.abs(np.abs(q)[:, None] - NEAT_ENTRIES).argmin(axis=1)]
    neat = np.copysign(nearest, q)
    if np.abs(neat - q).max() < NEAT and abs(neat @ neat - 1) < NEAT**2:
        q = neat
    turn = from_quaternion(q)
    return np.where(np.abs(turn - np.rint(turn)) < NEAT**2, np.rint(turn), turn)


@dataclass(frozen=True)
class StageUnits:
    """Lengths and masses of a stage in SI."""

    length: float
    mass: float


@dataclass(frozen=True, eq=False)
class UsdDocument:
    """The layer's file, its units, and paths of links and joints by name, for the writer."""

    data: bytes
    units: StageUnits
    links: Mapping[str, str]
    joints: Mapping[str, tuple[str, str]]
    """Path and kind."""


@dataclass(frozen=True, eq=False)
class _Hinge:
    """A joint prim: the joined bodies and the two frames."""

    prim: Any
    parent: str
    child: str
    before: tuple[Array, Array]
    after: tuple[Array, Array]
    turned: bool  #: Whether the file names the carried body first: its motion counts backwards.


class _Reader:
    """Reads one stage."""

    def __init__(self, text: XmlText) -> None:
        self.geom, self.physics = geom, physics = usd_module("UsdGeom"), usd_module("UsdPhysics")
        self.text, self.path = text, text.path
        self.stage = usd_module("Usd").Stage.Open(open_layer(text.data, text.path))
        length = geom.GetStageMetersPerUnit(self.stage)
        self.units = StageUnits(length, physics.GetStageKilogramsPerUnit(self.stage))
        prims = [*self.stage.Traverse()]
        bodies = [p for p in prims if p.HasAPI(physics.RigidBodyAPI)]
        if not bodies:
            raise refused_layer(self.path, "no prim with PhysicsRigidBodyAPI")
        self.names = _distinct_names(bodies)
        self.bodies = {str(p.GetPath()): p for p in bodies}
        joints = [p for p in prims if p.IsA(physics.Joint)]
        self.joint_names = _distinct_names(joints)
        self.left_out: list[LeftOut] = []
        self.hinges, self.anchors = self._hinges(joints)
        self.joints: dict[str, tuple[str, str]] = {}

    def fail(
        self, prim: Any, message: str, kind: type[InputError] = DescriptionError
    ) -> InputError:
        return kind(f"{self.path}: {prim.GetPath()}: {message}", path=self.path)

    def _hinges(self, joints: list[Any]) -> tuple[dict[str, _Hinge], set[str]]:
        """Joints by the body that they carry, and bodies that are fixed to the world."""
        hinges: dict[str, _Hinge] = {}
        anchors: set[str] = set()
        for prim in joints:
            joint = self.physics.Joint(prim)
            if joint.GetExcludeFromArticulationAttr().Get():
                self.left_out.append(LeftOut("joint outside the articulation", prim.GetName()))
                continue
            relations = joint.GetBody0Rel(), joint.GetBody1Rel()
            ends = [self._body_of(r) for r in relations]
            if not any(ends):
                raise self.fail(prim, "joins no rigid body")
            if not all(ends) and prim.IsA(self.physics.FixedJoint):
                anchors |= {*ends} - {""}
                continue
            places = (
                (joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
                (joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
            )
            frames = [
                (rotation_of(turn.Get()), self.units.length * shortest_vector(place.Get()))
                for place, turn in places
            ]
            for k in (0, 1):  # an absent body is the world, or a prim that stands in it
                target = next(iter(relations[k].GetTargets()), None)
                if (
                    not ends[k]
                    and target is not None
                    and (still := self.stage.GetPrimAtPath(target))
                ):
                    (turn, place), (own, at) = self._world_pose(still), frames[k]
                    frames[k] = turn @ own, turn @ at + place
            turned = not ends[1]
            (parent, before), (child, after) = zip(ends, frames, strict=True)
            if turned:
                (parent, before), (child, after) = (child, after), (parent, before)
            if child in hinges:
                raise self.fail(prim, f"{child} hangs on two joints: a closed loop")
            hinges[child] = _Hinge(prim, parent, child, before, after, turned)
        return hinges, anchors

    def _body_of(self, relation: Any) -> str:
        """Path of a joint's body; empty for the world."""
        target = next(iter(relation.GetTargets()), None)
        while target is not None and str(target) not in self.bodies and not target.isEmpty:
            if target.IsAbsoluteRootPath():
                return ""
            target = target.GetParentPath()
        return "" if target is None else str(target)

    def describe(self) -> Description:
        """All of it."""
        roots = [p for p in self.bodies if p not in self.hinges]
        hung = [p for p, hinge in self.hinges.items() if not hinge.parent]
        if len(roots) != 1 and not (hung and self.anchors.issuperset(roots)):
            names = ", ".join(roots[:4])
            raise refused_layer(
                self.path, f"{len(roots)} bodies hang on no joint ({names}); a robot has one"
            )
        order, waiting = [], [*roots, *hung]
        children: dict[str, list[str]] = {}
        for child, hinge in self.hinges.items():
            children.setdefault(hinge.parent, []).append(child)
        while waiting:
            path = waiting.pop(0)
            order.append(path)
            waiting += children.get(path, [])
        if len(order) < len(self.bodies):
            raise refused_layer(self.path, "joints form a loop")
        links = tuple(self._link(path) for path in self.bodies)
        free = bool(hung) or roots[0] not in self.anchors
        gravity = self._gravity()
        if not free:
            gravity = self._world_pose(self.bodies[roots[0]])[0].T @ gravity
        return Description(
            "usd",
            self.path,
            self.stage.GetDefaultPrim().GetName() if self.stage.HasDefaultPrim() else "robot",
            links,
            tuple(self.names[p] for p in order),
            world=WORLD if free else "",
            gravity=tuple(gravity.tolist()),
            left_out=tuple(self.left_out),
            document=UsdDocument(
                self.text.data, self.units, {self.names[p]: p for p in self.bodies}, self.joints
            ),
        )

    def _world_pose(self, prim: Any) -> tuple[Array, Array]:
        matrix = np.array(self.geom.XformCache().GetLocalToWorldTransform(prim))
        turn, place = matrix[:3, :3].T, self.units.length * matrix[3, :3]
        if np.abs(turn @ turn.T - np.eye(3)).max() > NEAT:
            raise self.fail(prim, "is scaled, which its inertia and joints do not resolve")
        return np.where(np.abs(turn - np.rint(turn)) < NEAT, np.rint(turn), turn), place + 0.0

    def _gravity(self) -> Array:
        """In the world [m/s^2]."""
        up = AXES[str(self.geom.GetStageUpAxis(self.stage))]
        direction, size = -np.array(up), GRAVITY
        for prim in self.stage.Traverse():
            if not prim.IsA(self.physics.Scene):
                continue
            scene = self.physics.Scene(prim)
            stated = np.array(scene.GetGravityDirectionAttr().Get(), dtype=np.float64)
            magnitude = float(scene.GetGravityMagnitudeAttr().Get())
            direction = stated / np.linalg.norm(stated) if stated.any() else direction
            size = shortest(magnitude) * self.units.length if magnitude >= 0 else size
        return np.asarray(direction * size) + 0.0

    def _link(self, path: str) -> Link:
        prim, hinge = self.bodies[path], self.hinges.get(path)
        home, parent = ExactPose(), None
        joints: tuple[Joint, ...] = ()
        if hinge is not None:
            parent = self.names.get(hinge.parent)
            turn = hinge.before[0] @ hinge.after[0].T
            home = pose_of_floats(turn, hinge.before[1] - turn @ hinge.after[1] + 0.0)
            joints = self._joints(hinge)
        elif path not in self.anchors:
            home = pose_of_floats(*self._world_pose(prim))
            joints = (Joint(FLOATING_JOINT, "floating", place=self.path),)
        elif any(not other.parent for other in self.hinges.values()):
            home = pose_of_floats(*self._world_pose(prim))
        mass, moments, place = self._inertial(prim)
        return Link(
            self.names[path], self.path, 1, lambda: (1, 1), parent, home, joints,
            mass, moments, place,
        )  # fmt: skip

    def _inertial(
        self, prim: Any
    ) -> tuple[Fraction | None, tuple[Fraction, ...] | None, ExactPose | None]:
        """Mass, principal moments and their axes; None where they follow from shapes."""
        if not prim.HasAPI(self.physics.MassAPI):
            self.left_out.append(LeftOut("mass by shapes", prim.GetName()))
            return None, None, None
        api, units = self.physics.MassAPI(prim), self.units
        mass = shortest(api.GetMassAttr().Get() or 0.0)
        diagonal = shortest_vector(api.GetDiagonalInertiaAttr().Get())
        com = shortest_vector(api.GetCenterOfMassAttr().Get())
        if not mass > 0 or not diagonal.any() or not np.isfinite(com).all():
            self.left_out.append(LeftOut("inertia by shapes", prim.GetName()))
            return None, None, None
        turn = rotation_of(api.GetPrincipalAxesAttr().Get())
        factor = units.mass * units.length**2
        xx, yy, zz = (_times(x, factor) for x in diagonal)
        zero = Fraction(0)
        place = pose_of_floats(turn, com * units.length + 0.0)
        return _times(mass, units.mass), (xx, zero, zero, yy, zero, zz), place

    def _joints(self, hinge: _Hinge) -> tuple[Joint, ...]:
        prim = hinge.prim
        if prim.IsA(self.physics.FixedJoint):
            return ()
        name = self.joint_names[str(prim.GetPath())]
        turn, place = hinge.after
        if prim.IsA(self.physics.SphericalJoint):
            return (Joint(name, "spherical", position=place, place=self.path),)
        kind = KINDS.get(str(prim.GetTypeName()))
        if kind is None:
            raise self.fail(
                prim,
                f"is a {prim.GetTypeName()}: only revolute, prismatic, spherical and fixed joints "
                "are read",
                UnsupportedJointError,
            )
        self.joints[name] = str(prim.GetPath()), kind
        axis = turn @ AXES[str(prim.GetAttribute("physics:axis").Get())] * (1 - 2 * hinge.turned)
        limits, terms = self._limits(prim, kind), self._terms(prim, kind)
        at = place if kind == "revolute" else np.zeros(3)
        return (Joint(name, kind, axis, at, limits=limits, terms=terms, place=self.path),)

    def _limits(self, prim: Any, kind: str) -> Limits:
        turn = math.pi / 180 if kind == "revolute" else self.units.length

        def number(name: str, factor: float) -> float | None:
            value = prim.GetAttribute(name).Get() if prim.HasAttribute(name) else None
            return None if value is None else shortest(value) * factor

        lower, upper = number("physics:lowerLimit", turn), number("physics:upperLimit", turn)
        instance = INSTANCES[kind]
        effort = number(f"drive:{instance}:physics:maxForce", torque_unit(self.units, kind))
        speed = number("physxJoint:maxJointVelocity", turn)
        return Limits(lower, upper, speed, effort)

    def _terms(self, prim: Any, kind: str) -> JointTerms:
        """Friction and armature of PhysX's schema of joint axes; older files have the armature."""
        values = {}
        for field, (name, factor) in term_attributes(self.units, kind).items():
            given = prim.GetAttribute(name)
            if not given.HasAuthoredValue() and field == "inertia":
                given = prim.GetAttribute("physxJoint:armature")
            if given.HasAuthoredValue():
                values[field] = shortest(given.Get()) * factor
        return JointTerms(**values) if any(values.values()) else NO_TERMS


def torque_unit(units: StageUnits, kind: str) -> float:
    """Unit of a joint's torque or force in SI."""
    return units.mass * units.length ** (2 if kind == "revolute" else 1)


def term_attributes(units: StageUnits, kind: str) -> dict[str, tuple[str, float]]:
    """Attribute and unit in SI of every joint term that PhysX's schema holds.

    Viscous friction of hinges is per degree.
    """
    instance, force = INSTANCES[kind], torque_unit(units, kind)
    per_speed = 180 / math.pi if kind == "revolute" else 1 / units.length
    mass = units.mass * (units.length**2 if kind == "revolute" else 1.0)
    return {
        "inertia": (f"physxJointAxis:{instance}:armature", mass),
        "viscous": (f"physxJointAxis:{instance}:viscousFrictionCoefficient", force * per_speed),
        "coulomb": (f"physxJointAxis:{instance}:dynamicFrictionEffort", force),
    }


def _times(value: float, factor: float) -> Fraction:
    """A decimal times a unit that is a decimal."""
    return Fraction(repr(float(value))) * Fraction(repr(float(factor)))


def _distinct_names(prims: list[Any]) -> dict[str, str]:
    """Names of prims by path; of equal names the path."""
    count = Counter(p.GetName() for p in prims)
    return {
        str(p.GetPath()): p.GetName() if count[p.GetName()] == 1 else str(p.GetPath()).strip("/")
        for p in prims
    }


def describe_usd(text: XmlText, limits: ReadLimits) -> Description:
    """The description of a layer of USD.

    Raises DescriptionError: damaged, without rigid bodies, with several robots or loops. Raises
    InputError: it refers to other files. Raises UnsupportedJointError: a joint of another kind.
    """
    return _Reader(text).describe()
