"""USD out: a layer with other masses and joint terms and everything else as it was, or a new layer.

Text layers are edited in their text, binary ones through the library. Either way the result is
compared with the library's own edit of the layer, so that no other change goes unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, OutputError, UnsupportedJointError
from feasid.core.exact.poses import is_possible_inertia
from feasid.core.files import read_whole
from feasid.robot import inertia
from feasid.robot.bodies import Body, Member, lumped_parameters
from feasid.robot.description import Robot
from feasid.robot.formats import rewrite
from feasid.robot.formats.description import Changes, Description, Extras, NewInertial
from feasid.robot.formats.shapes import Shape
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.usd import read
from feasid.robot.rotations import to_quaternion

MASS_API = "PhysicsMassAPI"
JOINT_API = "PhysxJointAxisAPI"
MIMIC_API = "PhysxMimicJointAPI:rotX"  #: Schema of a joint that follows another.
SI = read.StageUnits(1.0, 1.0)  #: Units of new layers: metres and kilograms.

LIFTS = (0.0, *(2.0**k * 1e-8 for k in range(8)))
"""Multiples of the trace that are added to principal moments until their 32 bits are exactly those
of a body with volume."""


@dataclass(frozen=True)
class Edit:
    """A value of one attribute of a prim, and the schema that it belongs to."""

    path: str
    schema: str
    name: str
    kind: str  #: Type as in text: "float", "float3", "point3f", "quatf".
    numbers: tuple[float, ...]


def patch_usd(description: Description, changes: Changes) -> bytes:
    """The layer with these inertials and joint terms, everything else as it was.

    Raises InputError: a link would have to be without mass, which USD takes for its shapes' mass.
    Raises OutputError: the new text differs from the library's own edit of the layer.
    """
    document: read.UsdDocument = description.document
    edits: list[Edit] = []
    for name, new in changes.inertials.items():
        place = description.link(name).place
        axes = np.eye(3) if place is None or new.reset_axes else place.rotation
        com = description.link(name).com if new.com is None else np.array(new.com)
        edits += _mass_edits(document.links[name], new, axes, com, document.units)
    old_terms = {joint.name: joint.terms for joint in description.joints}
    for name, terms in changes.terms.items():
        if name in document.joints:
            edits += _term_edits(document.joints[name], terms, old_terms[name], document.units)
    if not edits:
        return document.data
    layer = read.open_layer(document.data, description.path)
    _edit_layer(layer, edits)
    if document.data.startswith(read.BINARY):
        return _exported(layer, ".usdc")
    text = str(layer.ExportToString())
    old = str(read.open_layer(document.data, description.path).ExportToString())
    out = _edit_text(document.data.decode(), old, text).encode()
    if read.open_layer(out, description.path).ExportToString() != text:
        raise rewrite.verification_error("the text is not the library's own edit of the layer")
    return out


def _mass_edits(
    path: str, new: NewInertial, axes: Array, com: Array, units: read.StageUnits
) -> list[Edit]:
    """Mass, centre of mass, principal moments and their axes of a link."""
    if not new.mass > 0:
        raise InputError(
            f"{path} would be without mass, which USD takes for the mass of its shapes: give the "
            "links that are fixed to it masses of their own"
        )
    tensor = axes @ inertia.rotational_inertia([*new.moments, 0, 0, 0, 0]) @ axes.T
    moments, turn = np.diag(tensor), np.eye(3)
    if (tensor - np.diag(moments)).any():
        moments, turn = np.linalg.eigh(tensor)
        turn = turn if np.linalg.det(turn) > 0 else -turn  # eigenvectors may form a reflection
    moments = moments / (units.mass * units.length**2)
    # Moments of 32 bits that some body with volume has exactly.
    exact_mass, zero = Fraction(str(np.float32(new.mass / units.mass))), Fraction(0)
    for lift in LIFTS:
        x, y, z = (Fraction(str(np.float32(m))) for m in moments + lift * moments.sum())
        if is_possible_inertia(exact_mass, (x, zero, zero, y, zero, z)):
            break
    else:
        raise OutputError(f"principal moments {moments} are those of no body in 32 bits")
    values: tuple[tuple[str, str, Any], ...] = (
        ("physics:mass", "float", (new.mass / units.mass,)),
        ("physics:centerOfMass", "point3f", com / units.length),
        ("physics:diagonalInertia", "float3", (x, y, z)),
        ("physics:principalAxes", "quatf", to_quaternion(turn)),
    )
    return [
        Edit(path, MASS_API, name, kind, tuple(float(number) + 0.0 for number in numbers))
        for name, kind, numbers in values
    ]


def _term_edits(
    joint: read.UsdJoint, terms: JointTerms, old_terms: JointTerms, units: read.StageUnits
) -> Iterator[Edit]:
    """Terms of a joint that differ from the old ones."""
    path, schema = joint.path, f"{JOINT_API}:{joint.instance}"
    for field, (attribute, unit) in read.term_attributes(units, joint).items():
        value = getattr(terms, field)
        if value != getattr(old_terms, field):
            yield Edit(path, schema, attribute, "float", (value / unit,))
            if field == "coulomb":  # PhysX has another effort at rest, the terms have one for both
                static = attribute.replace("dynamic", "static")
                yield Edit(path, schema, static, "float", (value / unit,))


# -- edits through the library --------------------------------------------------------------------


def _edit_layer(layer: Any, edits: Sequence[Edit]) -> None:
    """Values and schemas, by the library."""
    sdf, gf = read.usd_module("Sdf"), read.usd_module("Gf")
    makers = {
        "float": lambda x: x[0],
        "float3": lambda x: gf.Vec3f(*x),
        "point3f": lambda x: gf.Vec3f(*x),
        "quatf": lambda x: gf.Quatf(*x),
    }
    for edit in edits:
        prim = layer.GetPrimAtPath(edit.path)
        if prim is None:
            raise InputError(f"{edit.path} is not written out in the layer: flatten it first")
        schemas = prim.GetInfo("apiSchemas")
        if edit.schema not in schemas.GetAddedOrExplicitItems():
            items = "explicitItems" if schemas.isExplicit else "prependedItems"
            setattr(schemas, items, [edit.schema, *getattr(schemas, items)])
            prim.SetInfo("apiSchemas", schemas)
        attribute = prim.attributes.get(edit.name)
        if attribute is None:
            attribute = sdf.AttributeSpec(prim, edit.name, sdf.ValueTypeNames.Find(edit.kind))
        attribute.default = makers[edit.kind](edit.numbers)


def _exported(layer: Any, suffix: str) -> bytes:
    if suffix == ".usda":
        return str(layer.ExportToString()).encode()
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"layer{suffix}"
        layer.Export(str(file))
        return read_whole(file)


def encode_usd(content: bytes, suffix: str) -> bytes:
    """Binary for ``.usdc``, text for ``.usda``, and for ``.usd`` as the existing file."""
    binary = content.startswith(read.BINARY)
    if (suffix == ".usdc") == binary or suffix not in (".usda", ".usdc"):
        return content
    return _exported(read.open_layer(content, "the layer"), suffix)


# -- edits in text --------------------------------------------------------------------------------


def _edit_text(text: str, old: str, new: str) -> str:
    """The layer's text with the changes between the library's texts of it, comments as they were.

    Where a change has no place in a text that is laid out otherwise, it is the library's new text.
    """
    lines, before, after = (x.splitlines(keepends=True) for x in (text, old, new))
    place = {
        block.a + k: block.b + k
        for block in SequenceMatcher(None, before, lines).get_matching_blocks()
        for k in range(block.size)
    }
    changes = [x for x in SequenceMatcher(None, before, after).get_opcodes() if x[0] != "equal"]
    # From the end on, so that the places of changes before stay what they are.
    for _, i1, i2, j1, j2 in reversed(changes):
        at = [place.get(i, -1) for i in range(i1 - 1, i2)]
        if at != [*range(at[0], at[0] + len(at))] or at[0] < 0:
            return new
        lines[at[0] + 1 : at[-1] + 1] = after[j1:j2]
    return "".join(lines)


# -- new layers -----------------------------------------------------------------------------------


def generate_usd(robot: Robot, terms: Mapping[str, JointTerms], extras: Extras) -> bytes:
    """The robot as a layer in metres and kilograms, with the z axis up.

    Links that are fixed to another are frames below it, with their shapes. Joints that follow one
    other get PhysX's schema of mimic joints. Names that USD does not take are display names.

    Raises UnsupportedJointError: a helical or planar joint. Raises InputError: a joint that follows
    several; a floating body beside others without a parent; a body without parameters.
    """
    roots = [body for body in robot.bodies if body.parent is None]
    floating = [body.name for body in roots if body.floats]
    if floating and len(roots) > 1:
        raise InputError(
            f"{floating[0]} floats beside other bodies without a parent: a file of USD holds one "
            "robot, with one base"
        )
    layer = _NewLayer(robot.name)
    if not floating:
        links = rewrite.with_base_link(robot, "base_fixed_to_world")
        base = layer.add_body(links[0].name, links, extras)
        layer.bodies[None] = base.GetPath()
        anchor = layer.define("FixedJoint", layer.root, "world_joint")
        anchor.CreateBody1Rel().SetTargets([base.GetPath()])
        ten = lumped_parameters(links)
        layer.add_mass(base, None if ten is None else rewrite.exact_inertial(ten))
    for body in robot.bodies:
        prim = layer.add_body(body.name, body.members or (Member(body.name),), extras)
        layer.bodies[body.name] = prim.GetPath()
        layer.add_mass(prim, rewrite.inertial_in_body_axes(body))
        if body.floats:
            layer.place(prim, body.rotation, body.position)
            continue
        path, kind = layer.add_joint(body)
        if kind in read.INSTANCES:
            joint = read.UsdJoint(path, kind, read.INSTANCES[kind])
            layer.edits += _term_edits(joint, terms.get(body.joint, NO_TERMS), NO_TERMS, SI)
    for coupling in robot.couplings:
        # PhysX keeps q + gearing q_leader + offset = 0, angles in degrees.
        leader, factor = rewrite.single_leader(coupling, "USD")
        prim = layer.joints[coupling.joint]
        bodies = [robot.bodies[robot.joint_index(name)] for name in (coupling.joint, leader)]
        ours, theirs = (180 / math.pi if b.motion[:3].any() else 1.0 for b in bodies)
        prim.AddAppliedSchema(MIMIC_API)
        layer.set_float(prim, f"{read.MIMIC}gearing", -factor * ours / theirs)
        layer.set_float(prim, f"{read.MIMIC}offset", -coupling.offset * ours)
        reference = prim.CreateRelationship(f"{read.MIMIC}referenceJoint")
        reference.SetTargets([layer.joints[leader].GetPath()])
    out = layer.stage.GetRootLayer()
    _edit_layer(out, layer.edits)
    return str(out.ExportToString()).encode()


class _NewLayer:
    """A stage while a robot is added to it."""

    def __init__(self, name: str) -> None:
        self.geom, self.physics = read.usd_module("UsdGeom"), read.usd_module("UsdPhysics")
        self.gf, self.sdf = read.usd_module("Gf"), read.usd_module("Sdf")
        self.stage = read.usd_module("Usd").Stage.CreateInMemory()
        self.geom.SetStageUpAxis(self.stage, self.geom.Tokens.z)
        self.geom.SetStageMetersPerUnit(self.stage, 1.0)
        self.physics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.edits: list[Edit] = []
        self.bodies: dict[str | None, Any] = {}
        self.joints: dict[str, Any] = {}
        self.root = self.define("Xform", self.stage.GetPseudoRoot(), name)
        self.stage.SetDefaultPrim(self.root.GetPrim())
        self.physics.ArticulationRootAPI.Apply(self.root.GetPrim())
        self.define("Scene", self.root, "physicsScene")

    def define(self, schema: str, parent: Any, name: str) -> Any:
        """A prim below another; a name that is no identifier becomes its display name."""
        path = parent.GetPath().AppendChild(str(read.usd_module("Tf").MakeValidIdentifier(name)))
        while self.stage.GetPrimAtPath(path):
            path = path.ReplaceName(f"{path.name}_")
        kind = getattr(self.geom, schema, None) or getattr(self.physics, schema)
        made = kind.Define(self.stage, path)
        if path.name != name:
            made.GetPrim().SetDisplayName(name)
        return made

    def place(
        self, prim: Any, rotation: Array, position: Array, scale: Array | None = None
    ) -> None:
        """The pose of a prim in the one above, in 64 bits."""
        shape, double = self.geom.Xformable(prim), self.geom.XformOp.PrecisionDouble
        shape.AddTranslateOp().Set(self.gf.Vec3d(*map(float, position)))
        shape.AddOrientOp(double).Set(self.gf.Quatd(*map(float, to_quaternion(rotation))))
        if scale is not None:
            shape.AddScaleOp(double).Set(self.gf.Vec3d(*map(float, scale)))

    def add_body(self, name: str, links: Sequence[Member], extras: Extras) -> Any:
        """A body with its shapes, and the links that are fixed to it with theirs."""
        body = self.define("Xform", self.root, name)
        self.physics.RigidBodyAPI.Apply(body.GetPrim())
        for k, member in enumerate(links):
            link, frame = body, member
            if k:
                link, frame = self.define("Xform", body, member.name), Member(member.name)
                self.place(link, member.rotation, member.position)
            for label, drawing in rewrite.placed_drawings((frame,), extras.drawings):
                shape = drawing.shape
                if not isinstance(shape, Shape):
                    continue
                schema = {"box": "Cube", "ellipsoid": "Sphere"}.get(shape.kind)
                made = self.define(schema or shape.kind.capitalize(), link, label)
                scale = {"box": shape.size, "ellipsoid": shape.half}.get(shape.kind)
                self.place(made, shape.rotation, shape.position, scale)
                if shape.kind == "box":
                    made.CreateSizeAttr(1.0)
                else:
                    made.CreateRadiusAttr(1.0 if scale is not None else float(shape.half[0]))
                if shape.kind in ("cylinder", "capsule"):
                    made.CreateHeightAttr(float(shape.size[1]))
                    made.CreateAxisAttr("Z")
                if drawing.tag == "collision":  # what collides is not drawn
                    self.physics.CollisionAPI.Apply(made.GetPrim())
                    made.CreatePurposeAttr(self.geom.Tokens.guide)
                elif drawing.colour:
                    *colour, opacity = map(float, drawing.colour)
                    made.CreateDisplayColorAttr([self.gf.Vec3f(*colour)])
                    made.CreateDisplayOpacityAttr([opacity])
        return body

    def add_mass(self, body: Any, new: NewInertial | None) -> None:
        """Mass, centre of mass and inertia of a body."""
        if new is not None:
            self.edits += _mass_edits(str(body.GetPath()), new, np.eye(3), np.array(new.com), SI)

    def add_joint(self, body: Body) -> tuple[str, str]:
        """A joint between a body and its parent; its frames lie on its axis."""
        kind, axis, place = rewrite.joint_kind_axis_position(body, "USD")
        if kind not in (*read.INSTANCES, "spherical"):
            raise UnsupportedJointError(f"joint {body.joint!r} is {kind}, which USD does not hold")
        joint = self.define(f"{kind.capitalize()}Joint", self.root, body.joint)
        prim = self.joints[body.joint] = joint.GetPrim()
        joint.CreateBody0Rel().SetTargets([self.bodies[body.parent]])
        joint.CreateBody1Rel().SetTargets([self.bodies[body.name]])
        letter, turn = "X", np.eye(3)
        if axis is not None:  # the nearest of X, Y and Z, and a rotation from it to the axis
            k = int(np.abs(axis).argmax())
            letter = "XYZ"[k]
            start, half = np.array(read.AXES[letter]), np.eye(3)
            if start @ axis < 0:  # first half a turn about another axis
                half = np.diag(np.where(np.arange(3) == (k + 1) % 3, 1.0, -1.0))
            middle = half @ start
            cross = inertia.skew(np.cross(middle, axis))
            shortest_turn = np.eye(3) + cross + cross @ cross / (1.0 + float(middle @ axis))
            turn = shortest_turn @ half
        frames = ((body.rotation @ place + body.position, body.rotation @ turn), (place, turn))
        for end, (point, rotation) in enumerate(frames):
            quaternion = map(float, to_quaternion(rotation))
            getattr(joint, f"CreateLocalPos{end}Attr")(self.gf.Vec3f(*map(float, point)))
            getattr(joint, f"CreateLocalRot{end}Attr")(self.gf.Quatf(*quaternion))
        joint.CreateAxisAttr(letter)
        if kind in read.INSTANCES:
            unit, limits = 180 / math.pi if kind == "revolute" else 1.0, body.limits
            if limits.lower is not None:
                joint.CreateLowerLimitAttr(limits.lower * unit)
            if limits.upper is not None:
                joint.CreateUpperLimitAttr(limits.upper * unit)
            if limits.effort is not None:
                drive = self.physics.DriveAPI.Apply(prim, read.INSTANCES[kind])
                drive.CreateMaxForceAttr(limits.effort)
            if limits.velocity is not None:
                prim.AddAppliedSchema("PhysxJointAPI")
                self.set_float(prim, "physxJoint:maxJointVelocity", limits.velocity * unit)
        return str(joint.GetPath()), kind

    def set_float(self, prim: Any, name: str, value: float) -> None:
        """An attribute of a schema that this library does not know."""
        prim.CreateAttribute(name, self.sdf.ValueTypeNames.Float).Set(value)
