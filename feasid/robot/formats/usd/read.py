"""USD in: rigid bodies and joints of UsdPhysics, one layer by itself.

Numbers of UsdPhysics have 32 bits. They are read as the shortest decimals that give the same 32
bits, which are those of the file that they came from where it had at most seven digits. Layers that
refer to other files are refused, so that nothing else is opened.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from feasid.core.arguments import call_user_function
from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, InputError, UnsupportedJointError, missing_extra
from feasid.core.files import write_atomically
from feasid.robot import inertia
from feasid.robot.bodies import Limits
from feasid.robot.formats import description
from feasid.robot.formats.shapes import Drawing, Mesh, Shape, primitive_shape
from feasid.robot.formats.terms import FLOATING_JOINT, NO_TERMS, JointTerms, LeftOut
from feasid.robot.formats.xml import XmlText
from feasid.robot.rotations import from_quaternion

NEAT = 1e-6
"""Quaternions this close to one of halves and square roots of a half are those: right angles."""

BINARY = b"PXR-USDC"  #: First bytes of a binary layer.
TRIAL = (
    "import sys; sys.path[:] = sys.argv[2:]; from pxr import Sdf; "
    "Sdf.Layer.OpenAsAnonymous(sys.argv[1]).ExportToString()"
)
ZEROS = (0.0, 0.0, 0.0)  #: What the library does not give of a schema that a prim lacks.
GRAVITY = 9.81  #: Gravity if the scene does not give it [m/s^2].

KINDS = {f"Physics{kind.capitalize()}Joint": kind
         for kind in ("revolute", "prismatic", "spherical", "fixed")}  # fmt: skip
SIX = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")  #: Axes of a ``PhysicsJoint``.
INSTANCES = {"revolute": "angular", "prismatic": "linear"}
"""Names of a joint's only direction in schemas of drives and of PhysX."""

MIMIC = "physxMimicJoint:rotX:"  #: Beginning of a mimic joint's attributes, in new files.
DENSITY = 1000.0  #: Of shapes where a file states none, by UsdPhysics [kg/m^3].

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
            at = int.from_bytes(data[16:24], "little")  # of the table of sections, which ends it
            if at + 8 + 32 * int.from_bytes(data[at : at + 8], "little") != len(data):
                raise ValueError(f"its {len(data)} bytes are not those of its table; copy it again")
            with TemporaryDirectory() as folder:
                file = str(Path(folder) / "layer.usdc")
                write_atomically(file, data)
                # Damage may end the process that reads it; no module of a relative folder runs.
                trial = [sys.executable, "-P", "-c", TRIAL, file, *filter(os.path.isabs, sys.path)]
                if subprocess.run(trial, capture_output=True).returncode:
                    raise ValueError("USD's own library cannot read it; copy it again")
                layer.TransferContent(sdf.Layer.OpenAsAnonymous(file))
        elif not layer.ImportFromString(data.decode()):
            raise ValueError("no layer of USD")
    except Exception as error:  # errors of the library and of decoding have no common base
        raise refused_layer(path, f"damaged or no USD: {error}") from error
    if others := sorted({*layer.GetCompositionAssetDependencies()}):
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
    q = np.array([quaternion.GetReal(), *quaternion.GetImaginary()], np.float64)
    if not (size := float(np.linalg.norm(q))) > 0:
        return np.eye(3)
    q, entries = q / size, np.array([0.0, 0.5, math.sqrt(0.5), 1.0])
    neat = np.copysign(entries[np.abs(np.abs(q)[:, None] - entries).argmin(axis=1)], q)
    if np.abs(neat - q).max() < NEAT and abs(neat @ neat - 1) < NEAT**2:
        q = neat
    turn = from_quaternion(q)
    return np.where(np.abs(turn - np.rint(turn)) < NEAT**2, np.rint(turn), turn)


@dataclass(frozen=True)
class StageUnits:
    """Lengths and masses of a stage in SI."""

    length: float
    mass: float


@dataclass(frozen=True)
class UsdJoint:
    """A joint with one degree of freedom."""

    path: str
    kind: str  #: "revolute" or "prismatic".
    instance: str  #: Its only direction in schemas of drives and of PhysX.
    letter: str = "X"  #: Its axis in its frames.


@dataclass(frozen=True, eq=False)
class UsdDocument:
    """The layer's file, its units, and paths of links and joints by name, for the writer."""

    data: bytes
    units: StageUnits
    links: Mapping[str, str]
    joints: Mapping[str, UsdJoint]


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
        mass = physics.GetStageKilogramsPerUnit(self.stage)
        if not all(1e-9 <= unit <= 1e9 for unit in (length, mass)):  # products fit doubles
            units = f"metersPerUnit {length:g} and kilogramsPerUnit {mass:g}"
            raise refused_layer(self.path, f"{units} must be from 1e-9 to 1e9")
        self.units = StageUnits(length, mass)
        prims = [*self.stage.Traverse()]
        every = [p for p in prims if p.HasAPI(physics.RigidBodyAPI)]
        if text.model:
            prims = [p for p in prims if text.model in str(p.GetPath()).split("/")]
        bodies = [p for p in prims if p.HasAPI(physics.RigidBodyAPI)]
        if not bodies:
            there = ", ".join(str(p.GetPath()) for p in every[:4])
            below = f" below {text.model!r}; there are {there}" if text.model else ""
            raise refused_layer(self.path, f"no prim with PhysicsRigidBodyAPI{below}")
        self.names = _distinct_names(bodies)
        self.bodies = {str(p.GetPath()): p for p in bodies}
        self.others = {str(p.GetPath()) for p in every} - {*self.bodies}
        joints = [p for p in prims if p.IsA(physics.Joint)]
        self.joint_names = _distinct_names(joints)
        self.left_out: list[LeftOut] = []
        self.hinges, self.anchors = self._hinges(joints)
        self.joints: dict[str, UsdJoint] = {}

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
            kind = self._kind(prim)
            if not all(ends) and kind.kind in ("fixed", "floating"):
                anchors |= {*ends} - {""} if kind.kind == "fixed" else set()
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
                targets = relations[k].GetTargets()
                if targets and not ends[k] and (still := self.stage.GetPrimAtPath(targets[0])):
                    (turn, place), (rotation, at) = self._world_pose(still), frames[k]
                    frames[k] = turn @ rotation, turn @ at + place
            turned = not ends[1]
            (parent, before), (child, after) = zip(ends, frames, strict=True)
            if turned:
                (parent, before), (child, after) = (child, after), (parent, before)
            if child in hinges:
                raise self.fail(prim, f"{child} hangs on two joints: a closed loop")
            hinges[child] = _Hinge(prim, parent, child, before, after, turned)
        return hinges, anchors

    def _kind(self, prim: Any) -> UsdJoint:
        """Kind and axis of a joint; of a joint of six axes by those that are not locked."""
        path, name = str(prim.GetPath()), str(prim.GetTypeName())
        if name in KINDS:
            axis = prim.GetAttribute("physics:axis")
            letter = str(axis.Get()) if axis.IsValid() else "X"
            if letter not in AXES:
                raise self.fail(prim, f"turns about {letter!r}, which is not X, Y or Z")
            return UsdJoint(path, KINDS[name], INSTANCES.get(KINDS[name], ""), letter)
        free = []
        for axis in SIX if name == "PhysicsJoint" else ():  # locked: limits exclude each other
            ends = [prim.GetAttribute(f"limit:{axis}:physics:{x}").Get() for x in ("low", "high")]
            free += [] if None not in ends and ends[0] > ends[1] else [axis]
        kinds = {(): "fixed", SIX[3:]: "spherical", SIX: "floating"}
        if len(free) == 1:
            kind = "revolute" if free[0].startswith("rot") else "prismatic"
            return UsdJoint(path, kind, free[0], free[0][-1])
        if name != "PhysicsJoint" or tuple(free) not in kinds:
            what = f"free in {', '.join(free)}" if free else f"a {name}"
            raise self.fail(
                prim,
                f"is {what}: only revolute, prismatic, spherical and fixed joints, and joints of "
                "six axes with one of them free, are read",
                UnsupportedJointError,
            )
        return UsdJoint(path, kinds[tuple(free)], "")

    def _body_of(self, relation: Any) -> str:
        target = next(iter(relation.GetTargets()), None)
        while target is not None and str(target) not in self.bodies and not target.isEmpty:
            if str(target) in self.others:
                raise refused_layer(self.path, f"a joint hangs on {target}, of another model")
            if target.IsAbsoluteRootPath():
                return ""
            target = target.GetParentPath()
        return "" if target is None else str(target)

    def describe(self) -> description.Description:
        """All of it."""
        roots = [p for p in self.bodies if p not in self.hinges]
        hung = [p for p, hinge in self.hinges.items() if not hinge.parent]
        if len(roots) != 1 and not (hung and self.anchors.issuperset(roots)):
            raise refused_layer(
                self.path,
                f"{len(roots)} bodies hang on no joint ({', '.join(roots[:4])}); a robot has one: "
                "say which -> load_robot(..., model='prim')",
            )
        parents = {path: hinge.parent for path, hinge in self.hinges.items()}
        order = [*description.depth_first([*roots, *hung], parents)]
        if len(order) < len(self.bodies):
            joints = {path: str(hinge.prim.GetPath()) for path, hinge in self.hinges.items()}
            raise refused_layer(self.path, description.describe_cycle(parents, order, joints))
        links = tuple(self._link(path) for path in self.bodies)
        below = [
            (p, path, self._pose_in(p, body)[:2])
            for path, body in self.bodies.items()
            for p in self._below(body)
            if p.GetTypeName() == "Xform"
        ]
        placed = [x for x in below if np.isfinite(x[2][1]).all()]
        lost = [p.GetName() for p, _, pose in below if not np.isfinite(pose[1]).all()]
        self.left_out += [LeftOut("frame at no finite place", name) for name in lost]
        frame_names = _distinct_names([p for p, *_ in placed])
        frames = tuple(
            description.Link(
                frame_names[str(p.GetPath())], self.path, 1, lambda: (1, 1), self.names[path],
                description.pose_of_floats(*pose),
            )
            for p, path, pose in placed
        )  # fmt: skip
        free = bool(hung) or roots[0] not in self.anchors
        stands = np.eye(3) if free else self._world_pose(self.bodies[roots[0]])[0]
        gravity = stands.T @ self._gravity() + 0.0
        return description.Description(
            "usd",
            self.path,
            self.text.model or self.stage.GetRootLayer().defaultPrim or "robot",
            links,
            tuple(self.names[p] for p in order),
            world=WORLD if free else "",
            gravity=tuple(gravity.tolist()),
            bonds=tuple(self._mimic_bonds()),
            left_out=tuple(self.left_out),
            frames=frames,
            document=UsdDocument(
                self.text.data, self.units, {self.names[p]: p for p in self.bodies}, self.joints
            ),
        )

    def _world_pose(self, prim: Any) -> tuple[Array, Array]:
        # Matrices of USD multiply rows from the right.
        matrix = np.array(self.geom.XformCache().GetLocalToWorldTransform(prim))
        turn, place = matrix[:3, :3].T, self.units.length * matrix[3, :3]
        if np.abs(turn @ turn.T - np.eye(3)).max() > NEAT:
            raise self.fail(prim, "is scaled, which its inertia and joints do not resolve")
        return np.where(np.abs(turn - np.rint(turn)) < NEAT, np.rint(turn), turn), place + 0.0

    def _gravity(self) -> Array:
        """In the world [m/s^2]."""
        direction, size = -np.array(AXES[str(self.geom.GetStageUpAxis(self.stage))]), GRAVITY
        for prim in self.stage.Traverse():
            if not prim.IsA(self.physics.Scene):
                continue
            scene = self.physics.Scene(prim)
            stated = np.array(scene.GetGravityDirectionAttr().Get(), dtype=np.float64)
            magnitude = float(scene.GetGravityMagnitudeAttr().Get())
            direction = stated / np.linalg.norm(stated) if stated.any() else direction
            size = shortest(magnitude) * self.units.length if magnitude >= 0 else size
        return np.asarray(direction * size) + 0.0

    def _link(self, path: str) -> description.Link:
        prim, hinge = self.bodies[path], self.hinges.get(path)
        home, parent = description.ExactPose(), None
        joints: tuple[description.Joint, ...] = ()
        if hinge is not None:
            parent = self.names.get(hinge.parent)
            turn = hinge.before[0] @ hinge.after[0].T
            home = description.pose_of_floats(turn, hinge.before[1] - turn @ hinge.after[1] + 0.0)
            joints = self._joints(hinge)
        elif path not in self.anchors:
            home = description.pose_of_floats(*self._world_pose(prim))
            joints = (description.Joint(FLOATING_JOINT, "floating", place=self.path),)
        elif any(not other.parent for other in self.hinges.values()):
            home = description.pose_of_floats(*self._world_pose(prim))
        mass, moments, place = self._inertial(prim)
        ten = self._by_shapes(prim) if mass is None else None
        if ten is not None:
            # Parameters by shapes, with the mass, centre or inertia that the body states.
            api, units = self.physics.MassAPI(prim), self.units
            stated = self._physics_number(prim, "mass") * units.mass
            scale = stated / ten[9] if stated else 1.0
            weight, com, tensor = inertia.to_mass_com_inertia(ten * scale)
            diagonal = shortest_vector(api.GetDiagonalInertiaAttr().Get() or ZEROS)
            if diagonal.any():
                turn = rotation_of(api.GetPrincipalAxesAttr().Get())
                tensor = turn @ np.diag(diagonal * units.mass * units.length**2) @ turn.T
            centre = api.GetCenterOfMassAttr()
            if centre.HasAuthoredValue() and np.isfinite(np.array(centre.Get())).all():
                com = shortest_vector(centre.Get()) * units.length
            ten = inertia.from_mass_com_inertia(weight, com, tensor)
        elif mass is None:
            self.left_out.append(LeftOut("mass by shapes", prim.GetName()))
        return description.Link(
            self.names[path], self.path, 1, lambda: (1, 1), parent, home, joints,
            mass, moments, place,
            lambda: call_user_function(f"{self.path}: USD", self._drawings, prim),
            by_geometry=ten is not None, derive=None if ten is None else lambda: ten,
        )  # fmt: skip

    def _inertial(
        self, prim: Any
    ) -> tuple[Fraction | None, tuple[Fraction, ...] | None, description.ExactPose | None]:
        """Mass, principal moments and their axes; None where they follow from shapes."""
        api, units = self.physics.MassAPI(prim), self.units
        mass = shortest(api.GetMassAttr().Get() or 0.0)
        diagonal = shortest_vector(api.GetDiagonalInertiaAttr().Get() or ZEROS)
        com = shortest_vector(api.GetCenterOfMassAttr().Get() or ZEROS)
        if not np.isfinite([mass, *diagonal]).all():
            raise self.fail(prim, f"mass {mass:g} or inertia {diagonal} is not a finite number")
        # UsdPhysics' defaults, zeros and an infinite centre, say that shapes give the values.
        if mass == 0 or not diagonal.any() or not np.isfinite(com).all():
            return None, None, None
        turn = rotation_of(api.GetPrincipalAxesAttr().Get())
        factor = units.mass * units.length**2
        xx, yy, zz = (_times(x, factor) for x in diagonal)
        zero = Fraction(0)
        place = description.pose_of_floats(turn, com * units.length + 0.0)
        return _times(mass, units.mass), (xx, zero, zero, yy, zero, zz), place

    def _joints(self, hinge: _Hinge) -> tuple[description.Joint, ...]:
        prim = hinge.prim
        joint = self._kind(prim)
        if joint.kind == "fixed":
            return ()
        name = self.joint_names[joint.path]
        turn, place = hinge.after
        if joint.kind == "spherical":
            return (description.Joint(name, "spherical", position=place, place=self.path),)
        if joint.kind == "floating":
            raise self.fail(prim, "floats on a moving body", UnsupportedJointError)
        self.joints[name] = joint
        axis = turn @ AXES[joint.letter] * (1 - 2 * hinge.turned)
        values = {}
        for field, (attribute, factor) in term_attributes(self.units, joint).items():
            stated = prim.GetAttribute(attribute)
            if not stated.HasAuthoredValue() and field == "inertia":  # of older files
                stated = prim.GetAttribute("physxJoint:armature")
            if stated.HasAuthoredValue():
                values[field] = shortest(stated.Get()) * factor
        terms = JointTerms(**values) if any(values.values()) else NO_TERMS
        factor, instance = self._unit(joint.kind), joint.instance

        def number(attribute: str, unit: float) -> float | None:
            value = prim.GetAttribute(attribute).Get() if prim.HasAttribute(attribute) else None
            return None if value is None else shortest(value) * unit

        ends = [f"limit:{instance}:physics:{x}" if instance in SIX else f"physics:{y}Limit"
                for x, y in (("low", "lower"), ("high", "upper"))]  # fmt: skip
        unit = term_attributes(self.units, joint)["coulomb"][1]
        effort = number(f"drive:{instance}:physics:maxForce", unit)
        lower, upper, speed = (number(x, factor) for x in (*ends, "physxJoint:maxJointVelocity"))
        limits = Limits(lower, upper, speed, effort)
        parts = name, joint.kind, axis, place if joint.kind == "revolute" else np.zeros(3)
        return (description.Joint(*parts, limits=limits, terms=terms, place=self.path),)

    def _mimic_bonds(self) -> Iterator[description.Bond]:
        """Joints that follow others, by PhysX's schema: q + gearing q_leader + offset = 0."""
        for name, joint in self.joints.items():
            prim = self.stage.GetPrimAtPath(joint.path)
            for relation in prim.GetRelationships():
                schema, _, word = relation.GetName().rpartition(":")
                if not schema.startswith("physxMimicJoint:") or word != "referenceJoint":
                    continue
                target = str(next(iter(relation.GetTargets()), ""))
                leader = self.joint_names.get(target, "")
                if leader not in self.joints:
                    raise self.fail(prim, f"follows {target}, which is no joint that is read")
                gearing, offset = (
                    shortest(prim.GetAttribute(f"{schema}:{k}").Get() or 0.0)
                    for k in ("gearing", "offset")
                )
                ours, theirs = (self._unit(j.kind) for j in (joint, self.joints[leader]))
                factors = (-offset * ours, -gearing * ours / theirs)
                yield description.Bond("joint", f"mimic of {name}", name, leader, factors)

    def _unit(self, kind: str) -> float:
        """Unit of a joint's position in SI."""
        return math.pi / 180 if kind == "revolute" else self.units.length

    # -- shapes ---------------------------------------------------------------------------------

    def _below(self, body: Any) -> Iterator[Any]:
        """Prims below a body that move with it."""
        waiting = [*body.GetChildren()]
        while waiting:
            prim = waiting.pop(0)
            if str(prim.GetPath()) not in self.bodies:
                yield prim
                waiting += prim.GetChildren()

    def _drawings(self, body: Any) -> list[Drawing]:
        """Shapes of a body: those of the usual purposes are drawn, and some collide."""
        out = []
        for prim in self._below(body):
            if not prim.IsA(self.geom.Gprim):
                continue
            shape, gprim = self._shape(prim, body), self.geom.Gprim(prim)
            if gprim.ComputePurpose() in ("default", "render"):
                colour, opacity = gprim.GetDisplayColorAttr().Get(), gprim.GetDisplayOpacityAttr()
                clear = [*(opacity.Get() or ()), 1.0][:1]
                paint = (*map(shortest, colour[0]), *map(shortest, clear)) if colour else ()
                out.append(Drawing("visual", shape, paint))
            if prim.HasAPI(self.physics.CollisionAPI):
                out.append(Drawing("collision", shape))
        return out

    def _pose_in(self, prim: Any, body: Any) -> tuple[Array, Array, Array]:
        """Rotation, position [m] and scale of a prim in a body's frame."""
        matrix, _ = self.geom.XformCache().ComputeRelativeTransform(prim, body)
        rows = np.array(matrix)
        scale = np.linalg.norm(rows[:3, :3], axis=1)
        turn = (rows[:3, :3] / scale[:, None]).T
        turn = np.where(np.abs(turn - np.rint(turn)) < NEAT**2, np.rint(turn), turn)
        return turn, self.units.length * rows[3, :3], scale

    def _shape(self, prim: Any, body: Any) -> Shape | Mesh | None:
        """A primitive in its body's frame; a mesh without a name, since its points are its own."""
        turn, at, scale = self._pose_in(prim, body)
        if prim.IsA(self.geom.Mesh):
            return Mesh("", scale, turn, at)
        kind = str(prim.GetTypeName()).lower()
        sizes = [
            float(x.Get()) if (x := prim.GetAttribute(name)).IsValid() else 0.0
            for name in {"cube": ("size",), "sphere": ("radius",)}.get(kind, ("radius", "height"))
        ]
        if kind == "cube":
            return primitive_shape("box", sizes[0] * scale * self.units.length, turn, at)
        if kind == "sphere" and np.ptp(scale) > NEAT * scale.max():
            return primitive_shape("ellipsoid", sizes[0] * scale * self.units.length, turn, at)
        if kind not in ("sphere", "cylinder", "capsule") or np.ptp(scale) > NEAT * scale.max():
            return None
        if kind != "sphere":  # whose axis is the third column of a rotation
            k = "XYZ".find(str(prim.GetAttribute("axis").Get()))
            turn = np.roll(turn, 2 - k, axis=1)
        return primitive_shape(kind, np.array(sizes) * scale[0] * self.units.length, turn, at)

    def _by_shapes(self, body: Any) -> Array | None:
        """Ten parameters by a body's colliding primitives and their densities.

        None where it has no such shapes, or others.
        """
        shade, parts = usd_module("UsdShade"), []
        for prim in self._below(body):
            if not (prim.IsA(self.geom.Gprim) and prim.HasAPI(self.physics.CollisionAPI)):
                continue
            shape = self._shape(prim, body)
            if not isinstance(shape, Shape):
                return None
            material = shade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0].GetPrim()
            # A shape's own density counts before its body's, and that before its material's.
            densities = [self._physics_number(p, "density") for p in (prim, body, material) if p]
            unit = self.units.mass / self.units.length**3
            density = next((x * unit for x in densities if x > 0), DENSITY)
            mass = self._physics_number(prim, "mass") * self.units.mass or density * shape.volume
            parts.append(shape.uniform_body(mass))
        return np.sum(parts, axis=0) if parts else None

    def _physics_number(self, prim: Any, name: str) -> float:
        """A number of UsdPhysics, 0 where it is not stated."""
        value = prim.GetAttribute(f"physics:{name}").Get()
        return 0.0 if value is None else shortest(value)


def term_attributes(units: StageUnits, joint: UsdJoint) -> dict[str, tuple[str, float]]:
    """Attribute and unit in SI of every joint term that PhysX's schema holds.

    Viscous friction of hinges is per degree.
    """
    instance, kind = joint.instance, joint.kind
    force = units.mass * units.length ** (2 if kind == "revolute" else 1)
    per_speed = 180 / math.pi if kind == "revolute" else 1 / units.length
    mass = units.mass * (units.length**2 if kind == "revolute" else 1.0)
    return {
        "inertia": (f"physxJointAxis:{instance}:armature", mass),
        "viscous": (f"physxJointAxis:{instance}:viscousFrictionCoefficient", force * per_speed),
        "coulomb": (f"physxJointAxis:{instance}:dynamicFrictionEffort", force),
    }


def _times(value: float, factor: float) -> Fraction:
    return Fraction(repr(float(value))) * Fraction(repr(float(factor)))


def _distinct_names(prims: list[Any]) -> dict[str, str]:
    """Names of prims by path; of equal names the path."""
    names = {str(p.GetPath()): p.GetDisplayName() or p.GetName() for p in prims}
    count = Counter(names.values())
    return {path: name if count[name] == 1 else path.strip("/") for path, name in names.items()}


def describe_usd(text: XmlText) -> description.Description:
    """The description of a layer of USD.

    Raises DescriptionError: damaged, without rigid bodies, with several robots or loops. Raises
    InputError: it refers to other files. Raises UnsupportedJointError: a joint of another kind.
    """
    return call_user_function(f"{text.path}: USD", lambda: _Reader(text).describe())  # type: ignore[no-any-return]
