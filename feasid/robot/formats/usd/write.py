"""USD out: a layer with other masses and joint terms and everything else as it was, or a new layer.

Text layers are edited in their text, binary ones through the library. Either way the result is
compared with the library's own edit of the layer, so that no other change goes unnoticed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.formats.description import Changes, Description, Extras, NewInertial
from feasid.robot.formats.rewrite import (
    inertial_in_body_axes,
    joint_kind_axis_position,
    verification_error,
)
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.usd.read import (
    AXES,
    BINARY,
    INSTANCES,
    StageUnits,
    UsdDocument,
    open_layer,
    term_attributes,
    usd_module,
)
from feasid.robot.rotations import to_quaternion

MASS_API = "PhysicsMassAPI"
JOINT_API = "PhysxJointAxisAPI"

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

    @property
    def text(self) -> str:
        """The value as the library writes it: shortest decimals of 32 bits."""
        texts = (str(np.float32(x)) for x in self.numbers)
        words = [text.removesuffix(".0").replace("e+", "e") for text in texts]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"


def patch_usd(description: Description, changes: Changes) -> bytes:
    """The layer with these inertials and joint terms, everything else as it was.

    Raises InputError: a link would have to be without mass, which USD takes for its shapes' mass.
    Raises OutputError: the new text differs from the library's own edit of the layer.
    """
    document: UsdDocument = description.document
    edits: list[Edit] = []
    for name, new in changes.inertials.items():
        place = description.link(name).place
        axes = np.eye(3) if place is None or new.reset_axes else place.rotation
        com = description.link(name).com if new.com is None else np.array(new.com)
        edits += _mass_edits(document.links[name], new, axes, com, document.units)
    old_terms = {joint.name: joint.terms for joint in description.joints}
    for name, terms in changes.terms.items():
        if name in document.joints:
            edits += _term_edits(*document.joints[name], terms, old_terms[name], document.units)
    if not edits:
        return document.data
    wanted = open_layer(document.data, description.path)
    _edit_layer(wanted, edits)
    if document.data.startswith(BINARY):
        return _exported(wanted, ".usdc")
    out = _edit_text(document.data.decode(), edits).encode()
    if open_layer(out, description.path).ExportToString() != wanted.ExportToString():
        raise verification_error("the text is not the library's own edit of the layer")
    return out


def _mass_edits(
    path: str, new: NewInertial, axes: Array, com: Array, units: StageUnits
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
        turn = turn if np.linalg.det(turn) > 0 else -turn
    scale = units.mass * units.length**2
    diagonal = _possible_moments(new.mass / units.mass, moments / scale)
    values: tuple[tuple[str, str, Any], ...] = (
        ("physics:mass", "float", (new.mass / units.mass,)),
        ("physics:centerOfMass", "point3f", com / units.length),
        ("physics:diagonalInertia", "float3", diagonal),
        ("physics:principalAxes", "quatf", to_quaternion(turn)),
    )
    return [
        Edit(path, MASS_API, name, kind, tuple(float(x) + 0.0 for x in x))
        for name, kind, x in values
    ]


def _possible_moments(mass: float, moments: Array) -> Array:
    """Moments of 32 bits that some body with volume has exactly."""
    exact_mass = Fraction(str(np.float32(mass)))
    for lift in LIFTS:
        rounded = [Fraction(str(np.float32(x))) for x in moments + lift * moments.sum()]
        zero = Fraction(0)
        six = (rounded[0], zero, zero, rounded[1], zero, rounded[2])
        if is_possible_inertia(exact_mass, six):
            return np.array([float(x) for x in rounded])
    raise OutputError(f"principal moments {moments} are those of no body in 32 bits")


def _term_edits(
    path: str, kind: str, terms: JointTerms, old_terms: JointTerms, units: StageUnits
) -> Iterator[Edit]:
    """Terms of a joint that differ from the old ones."""
    schema = f"{JOINT_API}:{INSTANCES[kind]}"
    for field, (attribute, unit) in term_attributes(units, kind).items():
        value = getattr(terms, field)
        if value != getattr(old_terms, field):
            yield Edit(path, schema, attribute, "float", (value / unit,))
            if field == "coulomb":
                static = attribute.replace("dynamic", "static")
                yield Edit(path, schema, static, "float", (value / unit,))


# -- edits through the library --------------------------------------------------------------------


def _edit_layer(layer: Any, edits: Sequence[Edit]) -> None:
    """Values and schemas, by the library."""
    sdf, gf = usd_module("Sdf"), usd_module("Gf")
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
            kind = sdf.ValueTypeNames.Find(edit.kind)
            attribute = sdf.AttributeSpec(prim, edit.name, kind)
        attribute.default = makers[edit.kind](edit.numbers)


def _exported(layer: Any, suffix: str) -> bytes:
    """A layer's file of this kind."""
    if suffix == ".usda":
        return str(layer.ExportToString()).encode()
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"layer{suffix}"
        layer.Export(str(file))
        return read_whole(file)


def encode_usd(content: bytes, suffix: str) -> bytes:
    """Binary for ``.usdc``, text for ``.usda``, and for ``.usd`` as the existing file."""
    binary = content.startswith(BINARY)
    if (suffix == ".usdc") == binary or suffix not in (".usda", ".usdc"):
        return content
    return _exported(open_layer(content, "the layer"), suffix)


# -- edits in text --------------------------------------------------------------------------------

TOKENS = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|@@@.*?@@@|@[^@\n]*@|\#[^\n]*|[{}()\[\]=\n]|[^\s{}()\[\]=\"'@\#]+",
    re.S,
)
"""Strings, asset paths, comments, brackets, ends of lines and words of a text layer."""

PRIM = ("def", "over", "class")


@dataclass(frozen=True)
class _PrimText:
    """Place of a prim in the text of its layer."""

    header: int  #: Offset after the name.
    metadata: tuple[int, int] | None  #: Inside the parentheses after the name.
    body: int  #: Offset after the opening brace.
    indent: str
    values: Mapping[str, tuple[int, int]]  #: Of its attributes.


def _edit_text(text: str, edits: Sequence[Edit]) -> str:
    """The layer's text with these values, all other characters as they were."""
    prims = _scan_prims(text)
    pieces: list[tuple[int, int, str]] = []
    by_prim: dict[str, list[Edit]] = {}
    for edit in edits:
        by_prim.setdefault(edit.path, []).append(edit)
    for path, own in by_prim.items():
        place = prims.get(path)
        if place is None:
            raise InputError(f"{path} is not written out in the layer: flatten it first")
        inside = f"{place.indent}    "
        new = [e for e in own if e.name not in place.values]
        lines = "".join(f"\n{inside}{e.kind} {e.name} = {e.text}" for e in new)
        pieces += [(*place.values[e.name], e.text) for e in own if e.name in place.values]
        pieces += [(place.body, place.body, lines)] if lines else []
        pieces += _schema_piece(text, place, dict.fromkeys(e.schema for e in own))
    for start, end, value in sorted(pieces, reverse=True):
        text = text[:start] + value + text[end:]
    return text


def _schema_piece(
    text: str, place: _PrimText, schemas: Mapping[str, None]
) -> list[tuple[int, int, str]]:
    """Text to insert for schemas that a prim does not have yet."""
    start, end = place.metadata or (place.header, place.header)
    listed = re.search(r"\bapiSchemas\s*=\s*\[", text[start:end])
    missing = [s for s in schemas if f'"{s}"' not in text[start:end]]
    if not missing:
        return []
    names = ", ".join(f'"{s}"' for s in missing)
    if listed:
        at = start + listed.end()
        more = "" if text[at:end].lstrip().startswith("]") else ", "
        return [(at, at, names + more)]
    line = f"\n{place.indent}    prepend apiSchemas = [{names}]"
    if place.metadata:
        return [(start, start, line)]
    return [(place.header, place.header, f" ({line}\n{place.indent})")]


def _scan_prims(text: str) -> dict[str, _PrimText]:
    """Prims of a layer's text by path."""
    tokens = [(m[0], *m.span()) for m in TOKENS.finditer(text) if not m[0].startswith("#")]
    prims: dict[str, _PrimText] = {}
    stack: list[str] = []
    k = 0
    while k < len(tokens):
        word = tokens[k][0]
        if word in PRIM and (k == 0 or tokens[k - 1][0] in ("\n", "{", "}")):
            k = _scan_prim(text, tokens, k, stack, prims)
        elif word == "{":
            stack.append("")
            k += 1
        elif word == "}":
            stack.pop()
            k += 1
        elif word == "(" or word == "[":
            k = _closing(tokens, k) + 1
        else:
            k = _scan_attribute(tokens, k, stack, prims)
    return prims


def _scan_prim(
    text: str,
    tokens: Sequence[tuple[str, int, int]],
    k: int,
    stack: list[str],
    prims: dict[str, _PrimText],
) -> int:
    """One prim's head; returns the token behind its opening brace."""
    start = tokens[k][1]
    while not tokens[k][0].startswith(('"', "'")):
        k += 1
    name, header = tokens[k][0].strip("\"'"), tokens[k][2]
    metadata = None
    k += 1
    while tokens[k][0] != "{":
        if tokens[k][0] == "(":
            last = _closing(tokens, k)
            metadata = tokens[k][2], tokens[last][1]
            k = last
        k += 1
    line = text.rfind("\n", 0, start) + 1
    path = f"{next((p for p in reversed(stack) if p), '')}/{name}"
    stack.append(path)
    prims[path] = _PrimText(header, metadata, tokens[k][2], text[line:start], {})
    return k + 1


def _scan_attribute(
    tokens: Sequence[tuple[str, int, int]],
    k: int,
    stack: Sequence[str],
    prims: Mapping[str, _PrimText],
) -> int:
    """A statement inside a prim: the value of an attribute; returns the token behind it."""
    if k + 1 >= len(tokens) or tokens[k + 1][0] != "=" or not (stack and stack[-1]):
        return k + 1
    name, first = tokens[k][0], k + 2
    opening = tokens[first][0] in "([{"
    last = _closing(tokens, first) if opening else first
    if tokens[first][0] != "{":
        values = prims[stack[-1]].values
        assert isinstance(values, dict)
        values[name] = tokens[first][1], tokens[last][2]
    return last + 1


def _closing(tokens: Sequence[tuple[str, int, int]], k: int) -> int:
    """The token that closes the bracket of this one."""
    depth = 0
    while True:
        depth += tokens[k][0] in ("(", "[", "{")
        depth -= tokens[k][0] in (")", "]", "}")
        if not depth:
            return k
        k += 1


# -- new layers -----------------------------------------------------------------------------------


def generate_usd(robot: Robot, terms: Mapping[str, JointTerms], extras: Extras) -> bytes:
    """The robot as a layer in metres and kilograms, with the z axis up.

    Raises UnsupportedJointError: a helical or planar joint. Raises InputError: a coupling, which
    the schema does not have; a floating body beside others without a parent; a name that is not an
    identifier; a body without parameters.
    """
    usd, geom, physics = (usd_module(name) for name in ("Usd", "UsdGeom", "UsdPhysics"))
    if robot.couplings:
        raise InputError(
            f"joint {robot.couplings[0].joint!r} follows others, which USD does not support"
        )
    roots = [body for body in robot.bodies if body.parent is None]
    floating = [body.name for body in roots if body.floats]
    if floating and len(roots) > 1:
        raise InputError(
            f"{floating[0]} floats beside other bodies without a parent: a file of USD holds one "
            "robot, with one base"
        )
    stage = usd.Stage.CreateInMemory()
    geom.SetStageUpAxis(stage, geom.Tokens.z)
    geom.SetStageMetersPerUnit(stage, 1.0)
    physics.SetStageKilogramsPerUnit(stage, 1.0)
    root = geom.Xform.Define(stage, f"/{_identifier(robot.name, strict=False)}")
    stage.SetDefaultPrim(root.GetPrim())
    physics.ArticulationRootAPI.Apply(root.GetPrim())
    physics.Scene.Define(stage, root.GetPath().AppendChild("physicsScene"))
    paths: dict[str | None, Any] = {}
    if not floating:
        paths[None] = base = root.GetPath().AppendChild("base_fixed_to_world")
        physics.RigidBodyAPI.Apply(geom.Xform.Define(stage, base).GetPrim())
        anchor = physics.FixedJoint.Define(stage, root.GetPath().AppendChild("world_joint"))
        anchor.CreateBody1Rel().SetTargets([base])
    edits: list[Edit] = []
    units = StageUnits(1.0, 1.0)
    for body in robot.bodies:
        path = root.GetPath().AppendChild(_identifier(body.name))
        prim = geom.Xform.Define(stage, path).GetPrim()
        physics.RigidBodyAPI.Apply(prim)
        paths[body.name] = path
        new = inertial_in_body_axes(body)
        if new is not None:
            edits += _mass_edits(str(path), new, np.eye(3), np.array(new.com), units)
        if body.floats:
            shape, gf = geom.Xformable(prim), usd_module("Gf")
            shape.AddTranslateOp().Set(gf.Vec3d(*map(float, body.position)))
            shape.AddOrientOp().Set(gf.Quatf(*map(float, to_quaternion(body.rotation))))
            continue
        joint, kind = _define_joint(stage, root, physics, body, paths)
        if kind in INSTANCES:
            new_terms = terms.get(body.joint, NO_TERMS)
            edits += _term_edits(str(joint.GetPath()), kind, new_terms, NO_TERMS, units)
    layer = stage.GetRootLayer()
    _edit_layer(layer, edits)
    return str(layer.ExportToString()).encode()


def _identifier(name: str, *, strict: bool = True) -> str:
    """A name as a prim's."""
    valid = str(usd_module("Tf").MakeValidIdentifier(name))
    if strict and valid != name:
        raise InputError(
            f"{name!r} is no name of a prim: USD has letters, digits and underscores; rename it to "
            f"{valid!r}"
        )
    return valid


def _define_joint(
    stage: Any, root: Any, physics: Any, body: Body, paths: Mapping[str | None, Any]
) -> tuple[Any, str]:
    """A joint between a body and its parent; its frames lie on its axis."""
    gf = usd_module("Gf")
    kind, axis, place = joint_kind_axis_position(body, "USD")
    schema = {"revolute": physics.RevoluteJoint, "prismatic": physics.PrismaticJoint,
              "spherical": physics.SphericalJoint}.get(kind)  # fmt: skip
    if schema is None:
        raise UnsupportedJointError(f"joint {body.joint!r} is {kind}, which is not written to USD")
    joint = schema.Define(stage, root.GetPath().AppendChild(_identifier(body.joint)))
    joint.CreateBody0Rel().SetTargets([paths[body.parent]])
    joint.CreateBody1Rel().SetTargets([paths[body.name]])
    letter, turn = ("X", np.eye(3)) if axis is None else _frame_on_axis(axis)
    frames = ((body.rotation @ place + body.position, body.rotation @ turn), (place, turn))
    for end, (point, rotation) in enumerate(frames):
        quaternion = map(float, to_quaternion(rotation))
        getattr(joint, f"CreateLocalPos{end}Attr")(gf.Vec3f(*map(float, point)))
        getattr(joint, f"CreateLocalRot{end}Attr")(gf.Quatf(*quaternion))
    joint.CreateAxisAttr(letter)
    if kind in INSTANCES:
        unit, limits = 180 / math.pi if kind == "revolute" else 1.0, body.limits
        if limits.lower is not None:
            joint.CreateLowerLimitAttr(limits.lower * unit)
        if limits.upper is not None:
            joint.CreateUpperLimitAttr(limits.upper * unit)
        if limits.effort is not None:
            drive = physics.DriveAPI.Apply(joint.GetPrim(), INSTANCES[kind])
            drive.CreateMaxForceAttr(limits.effort)
        if limits.velocity is not None:
            (prim := joint.GetPrim()).AddAppliedSchema("PhysxJointAPI")
            speed = usd_module("Sdf").ValueTypeNames.Float
            prim.CreateAttribute("physxJoint:maxJointVelocity", speed).Set(limits.velocity * unit)
    return joint, kind


def _frame_on_axis(axis: Array) -> tuple[str, Array]:
    """The nearest of X, Y and Z, and a rotation from it to the axis."""
    k = int(np.abs(axis).argmax())
    start, half = np.array(AXES["XYZ"[k]]), np.eye(3)
    if start @ axis < 0:  # first half a turn about another axis
        half = np.diag(np.where(np.arange(3) == (k + 1) % 3, 1.0, -1.0))
    end = half @ start
    cross = inertia.skew(np.cross(end, axis))
    shortest_turn = np.eye(3) + cross + cross @ cross / (1.0 + float(end @ axis))
    return "XYZ"[k], shortest_turn @ half
