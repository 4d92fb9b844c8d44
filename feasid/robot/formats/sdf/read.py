"""SDF files, read strictly: one model with its links, joints, frames and poses.

Poses are given in frames by name (``relative_to``), which may be links, joints, frames or models
inside the model; they are composed to sixty digits. What a model inside the model holds has names
that begin with its, as in ``gripper::finger``. Refused by name: included models, joints that no
tree of links has, quaternions in poses, and inertias that Gazebo computes itself (``auto``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import UnsupportedJointError, did_you_mean
from feasid.core.exact import poses
from feasid.core.exact.numbers import Number, quote
from feasid.robot.bodies import Limits
from feasid.robot.formats import description, shapes
from feasid.robot.formats.sdf import DYNAMICS
from feasid.robot.formats.terms import JointTerms, LeftOut, UnmodelledEffect
from feasid.robot.formats.xml import Element, XmlText
from feasid.robot.rotations import from_rpy

MODEL, WORLD = "__model__", "world"

KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
         "ball": "spherical", "fixed": ""}  # fmt: skip
"""Kind of joint per type of SDF; the other types are refused by name."""

LIMITED = ("lower", "upper", "velocity", "effort")

DEFAULTS = {"mass": "1", **{k: "1" if k[1] == k[2] else "0" for k in description.MOMENTS}}
"""What a link has that does not state it, by sdformat.org/spec: [kg] and [kg m^2]."""

NEAR = 8  #: Frames between a link and its parent that are composed without a detour over the model.

MODEL_FRAME_AXES, EXPRESSED_AXES = (1, 5), (1, 7)
"""Versions before which axes are in the model's frame; from which ``expressed_in`` says so."""

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
         "capsule": ("radius", "length"), "ellipsoid": ("radii",), "mesh": ("scale",)}  # fmt: skip
"""Elements of a shape's size."""

KNOWN = {
    "model": ("link", "joint", "frame", "pose", "static", "self_collide", "allow_auto_disable",
              "enable_wind", "model"),
    "link": ("inertial", "visual", "collision", "pose", "gravity", "self_collide", "kinematic",
             "must_be_base_link", "enable_wind"),
    "joint": ("parent", "child", "pose", "axis", "drake:rotor_inertia", "drake:gear_ratio"),
}  # fmt: skip
"""Children that are read, or do not change how the model moves; all others are listed."""

Rigid = poses.PrecisePose


@dataclass(frozen=True, eq=False)
class _Frame:
    """A named frame: its pose in another frame, and for all but links what it is attached to."""

    base: str
    pose: Rigid
    angles: tuple[str, ...]
    element: Element
    attached: str = ""


def describe_sdf(text: XmlText) -> description.Description:
    """The description of a parsed SDF file's model; errors as of `registry.read_description`."""
    return _SdfReader(text).read()


class _SdfReader:
    def __init__(self, text: XmlText) -> None:
        self.text = text
        self.frames: dict[str, _Frame] = {}
        self.absolute: dict[str, Rigid] = {}
        self.notes: list[str] = []
        root = text.root
        worlds = root.all("world")
        models = [m for place in (root, *worlds) for m in place.all("model")]
        movable = [m for m in models if not self.child_flag(m, "static")] or models
        if text.model:
            movable = [m for m in models if m.attributes.get("name") == text.model]
        for element in root.walk() if not models else ():
            if element.tag == "include":
                self.fail_include(element)
        if len(worlds) > 1 or len(movable) != 1:
            which = f"called {text.model!r}" if text.model else "that may move"
            names = ", ".join(quote(m.attributes.get("name", "")) for m in models[:6])
            text.fail(
                f"{len(worlds)} worlds and {len(movable)} models {which}, of {names}: one of each "
                "is read: say which -> load_robot(..., model='name')",
                root,
            )
        self.model = movable[0]
        name = self.model.attributes.get("name", "")
        for joint in (j for world in worlds for j in world.all("joint")):
            ends = [text.content(e).strip() for e in joint.children if e.tag in ("parent", "child")]
            if name in {end.split("::")[0] for end in ends}:
                text.fail(f"model {name!r} hangs on a joint of the world: not read", joint)
        version = text.root.attributes.get("version", "")
        parts = version.split(".")
        if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) < 4 for p in parts):
            text.fail(f"version {quote(version)} is not one of SDF, such as '1.9'", text.root)
        self.version = (int(parts[0]), int(parts[1]))

    def fail_include(self, element: Element) -> NoReturn:
        uri = quote(self.child_text(element, "uri", "model"))
        what = f"<include> {uri} is not read: only the file itself is opened"
        self.text.fail(f"{what}; gz sdf -p FILE writes all into one", element)

    def read(self) -> description.Description:
        model, self.models = self.model, [self.model]
        for part in self.models:  # grows by the models inside each
            self.models += part.all("model")
            if "placement_frame" in part.attributes:
                self.text.fail("placement_frame= is not read", part, "placement_frame")
            for element in part.all("include"):
                self.fail_include(element)
        links, joints = self.named_elements("link"), self.named_elements("joint")
        self.place_frames(links, joints)
        self.joints = joints
        self.kinds = {name: self.joint_kind(name, element) for name, element in joints.items()}
        above: dict[str, tuple[str, str]] = {}
        for name, element in joints.items():
            ends = [self.child_text(element, end, f"joint {name}") for end in ("parent", "child")]
            if not all(ends):
                self.fail(f"joint {name}", "needs a <parent> and a <child>", element)
            parent, child = (self.link_of_frame(self.expand(x, element), element) for x in ends)
            if child == WORLD or child in above:
                what = "the world" if child == WORLD else f"{child!r}, as {above[child][1]!r} does"
                advice = "loops are not read from SDF: move this joint into FILE.loops.json"
                self.fail(f"joint {name}", f"carries {what}: {advice}", element)
            above[child] = (parent, name)
        roots = [name for name in links if name not in above]
        order = self.parents_first(links, roots, above)
        if not links:
            self.text.fail("the model has no links", model)
        static, to_world = self.child_flag(model, "static"), WORLD in {p for p, _ in above.values()}
        if len(roots) > (0 if to_world and not static else 1):
            hanging = ", ".join(map(repr, roots[:6]))
            self.text.fail(f"no joint carries links {hanging}: they would float apart", model)
        self.moving = {name for name in roots if not static}
        for name in order:  # parents first
            parent, joint = above.get(name, (WORLD, ""))
            if parent in self.moving or (joint and self.kinds[joint]):
                self.moving.add(name)
        read = {n: self.link(n, e, above.get(n), joints) for n, e in links.items()}
        if not (static or to_world):
            self.notes.append(
                f"{self.text.path}: the model is not attached to the world: root link "
                f"{roots[0]!r} is held (floating=True lets it float)"
            )
        gravity = next((w.find("gravity") for w in self.text.root.all("world")), None)
        vector = None if gravity is None else self.numbers(gravity, 3, "world")
        return description.Description(
            "sdf",
            self.text.path,
            model.attributes.get("name", "model"),
            tuple(read.values()),
            tuple(order),
            world=WORLD if to_world else "",
            gravity=None if vector is None else tuple(n.value for n in vector),
            bonds=tuple(self.mimic_bonds(joints)),
            notes=tuple(self.notes),
            effects=tuple(self.unmodelled_effects(links)),
            left_out=tuple(self.unread_elements()),
            has_frames=True,
            frames=tuple(self.read_frames()),
            document=description.NamedElements(self.text, links, joints),
        )

    # -- numbers and names ----------------------------------------------------------------------

    def expand(self, name: str, element: Element) -> str:
        """The full name of what an element names: that of its model inside the model, and its."""
        scope, above = "", element.parent
        while element is not self.model and above is not None and above is not self.model:
            if above.tag == "model":
                scope = f"{above.attributes.get('name', '')}::{scope}"
            above = above.parent
        if name == MODEL:
            return scope.removesuffix("::") or MODEL
        return name if name in ("", WORLD) else scope + name

    def named_elements(self, tag: str) -> dict[str, Element]:
        elements: dict[str, Element] = {}
        for element in (e for part in self.models for e in part.all(tag)):
            name = element.attributes.get("name", "")
            if not name or len(name) > description.MAX_NAME:
                self.text.fail(
                    f"a <{tag}> needs a name of 1 to {description.MAX_NAME} characters", element
                )
            name = self.expand(name, element)
            if name in elements or name in self.frames or name in (WORLD, MODEL):
                self.text.fail(f"{tag} {name!r}: the name is defined twice, or reserved", element)
            elements[name] = element
        return elements

    def fail(self, owner: str, message: str, element: Element, **data: Any) -> NoReturn:
        kind, _, name = owner.partition(" ")
        data[kind] = name
        self.text.fail(f"{kind} {name!r}: <{element.tag}> {message}", element, **data)

    def numbers(self, element: Element, count: int, owner: str) -> tuple[Number, ...]:
        tokens = self.text.content(element).split() if not element.children else []
        if len(tokens) != count:
            self.fail(owner, f"has {len(tokens)} numbers, expected {count}", element)
        parse = Number.limit if element.tag in LIMITED else Number.parse
        try:
            return tuple(parse(token) for token in tokens)
        except ValueError as error:
            self.fail(owner, str(error), element)

    def child_number(self, parent: Element | None, tag: str, owner: str, default: str) -> Number:
        element = None if parent is None else self.single_child(parent, tag, owner)
        if element is not None:
            return self.numbers(element, 1, owner)[0]
        return Number.parse(default)

    def single_child(self, parent: Element, tag: str, owner: str) -> Element | None:
        children = parent.all(tag)
        if len(children) > 1:
            self.fail(owner, f"is there twice, first on line {children[0].line}", children[1])
        return children[0] if children else None

    def child_text(self, parent: Element, tag: str, owner: str) -> str:
        element = self.single_child(parent, tag, owner)
        return "" if element is None or element.children else self.text.content(element).strip()

    def child_flag(self, parent: Element, tag: str) -> bool:
        element = parent.find(tag)
        content = "" if element is None or element.children else self.text.content(element)
        return content.strip() in ("1", "true")

    # -- poses ----------------------------------------------------------------------------------

    def pose(self, parent: Element, owner: str) -> tuple[Rigid, tuple[str, ...], str]:
        """A ``<pose>``, its angles [rad] as text, and the frame that it is relative to."""
        element = self.single_child(parent, "pose", owner)
        if element is None:
            return (poses.identity(), [Decimal(0)] * 3), (), ""
        attributes = element.attributes
        if attributes.get("rotation_format", "euler_rpy") != "euler_rpy":
            what = f"rotation_format={quote(attributes['rotation_format'])}"
            self.fail(owner, f"{what} is not read", element)
        if attributes.get("frame"):
            self.fail(owner, "frame= is of SDF 1.6: write relative_to=", element)
        empty = not self.text.content(element).strip()  # it only says what it is relative to
        values = (Number.parse("0"),) * 6 if empty else self.numbers(element, 6, owner)
        degrees = attributes.get("degrees", "false") in ("1", "true")
        angles = [n.exact for n in values[3:]]
        if degrees:
            angles = [Fraction(poses.PI) * a / 180 for a in angles]
        place = [poses.to_decimal(n.exact) for n in values[:3]]
        tokens = () if degrees else tuple(n.text for n in values[3:])
        base = self.expand(attributes.get("relative_to", ""), parent)
        return (poses.from_rpy(angles), place), tokens, base

    def place_frames(self, links: dict[str, Element], joints: dict[str, Element]) -> None:
        """Collect all frames, and place each in the model's."""
        for name, element in links.items():
            pose, angles, base = self.pose(element, f"link {name}")
            self.frames[name] = _Frame(base or self.expand(MODEL, element), pose, angles, element)
        for name, element in self.named_elements("model").items():
            pose, angles, base = self.pose(element, f"model {name}")
            first = next((n for n in links if n.startswith(f"{name}::")), MODEL)
            stated = element.attributes.get("canonical_link", "")
            attached = f"{name}::{stated}" if stated else first
            base = base or self.expand(MODEL, element)
            self.frames[name] = _Frame(base, pose, angles, element, attached)
        for name, element in joints.items():
            if name in self.frames:
                self.text.fail(f"joint {name!r} has the name of a link", element, joint=name)
            pose, angles, base = self.pose(element, f"joint {name}")
            child = self.expand(self.child_text(element, "child", f"joint {name}"), element)
            self.frames[name] = _Frame(base or child, pose, angles, element, child)
        for name, element in self.named_elements("frame").items():
            pose, angles, base = self.pose(element, f"frame {name}")
            attached = self.expand(element.attributes.get("attached_to", "") or MODEL, element)
            self.frames[name] = _Frame(base or attached, pose, angles, element, attached)
        pose, _, base = self.pose(self.model, "model pose")
        if base and base != WORLD:
            self.text.fail(f"the model's pose is relative to {quote(base)}", self.model)
        self.absolute[MODEL] = pose
        for name in self.frames:
            chain: dict[str, _Frame] = {}  # to the first one that is placed
            while name not in self.absolute:
                frame = self.frames[name]
                if name in chain:
                    self.text.fail(f"the poses of {quote(name)} form a circle", frame.element)
                chain[name] = frame
                if frame.base != MODEL and frame.base not in self.frames:
                    hint = did_you_mean(frame.base, self.frames)
                    what = f"{quote(frame.base)}, which does not exist{hint}"
                    self.text.fail(f"{quote(name)} is relative to {what}", frame.element)
                name = frame.base
            for inner, frame in reversed(chain.items()):
                self.absolute[inner] = poses.compose(self.absolute[frame.base], frame.pose)

    def relative_pose(self, outer: str, inner: str, near: int = NEAR) -> description.ExactPose:
        """The pose of a frame in another one."""
        name, steps = inner, 0
        pose: Rigid | None = None
        angles: tuple[str, ...] = ()
        while name != outer and name in self.frames and steps < near:
            frame = self.frames[name]
            pose = frame.pose if pose is None else poses.compose(frame.pose, pose)
            name, angles, steps = frame.base, (*frame.angles, *angles), steps + 1
        if name != outer:
            turn, place = self.absolute[outer]
            back = [list(row) for row in zip(*turn, strict=True)]
            moved = poses.rotate(back, place)
            pose = poses.compose((back, [-x for x in moved]), self.absolute[inner])
            angles = (*self.frames[outer].angles, *self.frames[inner].angles)
        pose = pose or (poses.identity(), [Decimal(0)] * 3)
        # Of several turns in a row no one set of angles is rounded.
        return description.pose_of_decimals(pose, angles, from_rpy if steps <= 1 else None)

    def link_of_frame(self, name: str, element: Element) -> str:
        """The link to which a name of a link, joint or frame is attached."""
        visited: set[str] = set()
        while name in self.frames and self.frames[name].attached and name not in visited:
            visited.add(name)
            name = self.frames[name].attached
        if name == MODEL:
            first = next((n for n, f in self.frames.items() if not f.attached), "")
            name = self.model.attributes.get("canonical_link", first)
        if name != WORLD and (name not in self.frames or self.frames[name].attached):
            hint = did_you_mean(name, [n for n, f in self.frames.items() if not f.attached])
            self.text.fail(f"there is no link {quote(name)}{hint}", element)
        return name

    # -- links and joints -----------------------------------------------------------------------

    def parents_first(
        self, links: dict[str, Element], roots: list[str], above: dict[str, tuple[str, str]]
    ) -> list[str]:
        """Names of all links; fails where joints form a cycle."""
        parents = {child: parent for child, (parent, _) in above.items()}
        hanging = [child for child, parent in parents.items() if parent == WORLD]
        order = [*description.depth_first([*roots, *hanging], parents)]
        reached = {*order}
        for name, element in links.items():
            if name not in reached:
                held = {child: f"joint {joint!r}" for child, (_, joint) in above.items()}
                self.text.fail(description.describe_cycle(parents, reached, held), element)
        return order

    def read_frames(self) -> Iterator[description.Link]:
        """Frames on links, in these, and those that stand in the world."""
        for name, frame in self.frames.items():
            if frame.element.tag == "frame":
                link, place = self.link_of_frame(name, frame.element), self.absolute[name]
                parent, home = None, description.pose_of_decimals(place)
                if link != WORLD:
                    parent, home = link, self.relative_pose(link, name, 1)
                where, line = partial(self.text.place, frame.element), frame.element.line
                yield description.Link(name, self.text.path, line, where, parent, home)

    def joint_kind(self, name: str, element: Element) -> str:
        type_name = element.attributes.get("type", "")
        if type_name not in KINDS:
            self.text.fail(
                f"joint {name!r} has type {quote(type_name)}{did_you_mean(type_name, KINDS)}; "
                f"{', '.join(KINDS)} are read",
                element,
                "type",
                UnsupportedJointError,
                joint=name,
            )
        return KINDS[type_name]

    def link(
        self, name: str, element: Element, above: tuple[str, str] | None, joints: dict[str, Element]
    ) -> description.Link:
        owner = f"link {name}"
        parent, joint = above or (WORLD, "")
        absolute = description.pose_of_decimals(self.absolute[name], self.frames[name].angles)
        home = absolute if parent == WORLD else self.relative_pose(parent, name)
        moves = (self.joint(joint, joints[joint], name),) if joint and self.kinds[joint] else ()
        inertial = self.single_child(element, "inertial", owner)
        stated = element if inertial is None else inertial
        if stated.attributes.get("auto", "false") in ("1", "true"):
            self.fail(owner, "auto= is not read: state mass and inertia", stated)
        matrix = None if inertial is None else self.single_child(inertial, "inertia", owner)
        holders = {"mass": inertial, **dict.fromkeys(description.MOMENTS, matrix)}
        mass, *moments = (
            self.child_number(holder, k, owner, DEFAULTS[k]).exact for k, holder in holders.items()
        )
        stated_tags = {k for k, holder in holders.items() if holder and holder.find(k)}
        absent = [k for k, value in DEFAULTS.items() if value != "0" and k not in stated_tags]
        if absent and (inertial or name in self.moving):
            self.notes.append(
                f"{self.text.path}:{stated.line}: link {name!r} states no {', '.join(absent)}: "
                "SDF's defaults, 1 kg and 1 kg m^2, count as in Gazebo and Drake; state its own"
            )
        place = description.ExactPose()
        if inertial is not None:
            pose, angles, base = self.pose(inertial, owner)
            if base and base != name:
                self.fail(owner, "takes no relative_to", inertial)
            place = description.pose_of_decimals(pose, angles, from_rpy)
        return description.Link(
            name,
            self.text.path,
            stated.line,
            partial(self.text.place, stated),
            None if parent == WORLD else parent,
            home,
            moves,
            mass,
            tuple(moments),
            place,
            drawings=lambda: [
                shapes.Drawing(x.tag, self.shape(x), self.colour(x))
                for x in element.children
                if x.tag in shapes.DRAWN
            ],
        )

    def joint(self, name: str, element: Element, child: str) -> description.Joint:
        owner = f"joint {name}"
        frame = self.relative_pose(child, name)
        axis = self.single_child(element, "axis", owner)
        limit = None if axis is None else self.single_child(axis, "limit", owner)
        gear = self.child_number(element, "drake:gear_ratio", owner, "1").value
        rotor = self.child_number(element, "drake:rotor_inertia", owner, "0").value
        dynamics = None if axis is None else self.single_child(axis, "dynamics", owner)
        terms = {
            field: self.child_number(dynamics, tag, owner, "0").value
            for tag, field in DYNAMICS.items()
        }
        ends = [None if limit is None else self.single_child(limit, k, owner) for k in LIMITED]
        bounds = [None if end is None else self.numbers(end, 1, owner)[0].value for end in ends]
        if element.attributes["type"] == "continuous":
            bounds[:2] = None, None
        # A negative speed or effort is SDF's default, and means no limit.
        bounds[2:] = (None if b is None or b < 0 else b for b in bounds[2:])
        one = self.kinds[name] in ("revolute", "prismatic")
        return description.Joint(
            name,
            self.kinds[name],
            self.axis(axis, name, frame, child, owner) if one else np.array([0.0, 0.0, 1.0]),
            frame.position,
            limits=Limits(*bounds) if one else Limits(),
            terms=JointTerms(inertia=rotor * gear**2, **terms),
            place=f"{self.text.path}:{element.line}",
        )

    def axis(
        self, axis: Element | None, name: str, frame: description.ExactPose, child: str, owner: str
    ) -> Array:
        """A joint's axis in the child link's frame."""
        xyz = None if axis is None else self.single_child(axis, "xyz", owner)
        direction = np.array([0.0, 0.0, 1.0])
        if xyz is not None:
            direction = np.array([n.value for n in self.numbers(xyz, 3, owner)])
            if not direction.any():
                self.fail(owner, "the axis is zero", xyz)
        frame_name = "" if xyz is None else self.expand(xyz.attributes.get("expressed_in", ""), xyz)
        asks = axis is not None and self.child_flag(axis, "use_parent_model_frame")
        if self.version < MODEL_FRAME_AXES or (asks and self.version < EXPRESSED_AXES):
            frame_name = self.expand(MODEL, self.joints[name])
        if frame_name and frame_name not in self.absolute:
            hint = did_you_mean(frame_name, self.frames)
            self.fail(
                owner, f"expressed_in={quote(frame_name)} does not exist{hint}", xyz or self.model
            )
        if not frame_name or frame_name == name:
            return np.asarray(frame.rotation @ direction)
        to, of = (np.array(self.absolute[f][0], dtype=np.float64) for f in (child, frame_name))
        return np.asarray(to.T @ of @ direction)

    def mimic_bonds(self, joints: dict[str, Element]) -> Iterator[description.Bond]:
        for name, element in joints.items():
            axis, owner = element.find("axis"), f"joint {name}"
            mimic = None if axis is None else self.single_child(axis, "mimic", owner)
            if mimic is None:
                continue
            leader = self.expand(mimic.attributes.get("joint", ""), mimic)
            if leader not in joints or self.kinds[leader] not in ("revolute", "prismatic"):
                hint = did_you_mean(leader, joints)
                self.fail(owner, f"follows {quote(leader)}, not a moving joint{hint}", mimic)
            factor, offset, reference = (
                self.child_number(mimic, tag, owner, "0").value
                for tag in ("multiplier", "offset", "reference")
            )
            factors = (offset - factor * reference, factor)
            yield description.Bond("joint", f"mimic of {name}", name, leader, factors)

    # -- the rest -------------------------------------------------------------------------------

    def unmodelled_effects(self, links: dict[str, Element]) -> Iterator[UnmodelledEffect]:
        """Gravity that is off, and fluids."""
        for name, element in links.items():
            gravity = element.find("gravity")
            if gravity is not None and not self.child_flag(element, "gravity"):
                text = f"link {name!r} without gravity"
                yield UnmodelledEffect("gravcomp", self.text.path, gravity.line, text)
            inertial = element.find("inertial")
            fluid = None if inertial is None else inertial.find("fluid_added_mass")
            if fluid is not None:
                text = f"link {name!r} has added mass"
                yield UnmodelledEffect("fluid", self.text.path, fluid.line, text)

    def unread_elements(self) -> Iterator[LeftOut]:
        for element in (e for part in self.models for e in (part, *part.children)):
            for child in element.children if element.tag in KNOWN else ():
                if child.tag not in KNOWN[element.tag]:
                    owner = element.attributes.get("name", "")
                    yield LeftOut(f"<{child.tag}>", child.attributes.get("name", owner))

    def colour(self, element: Element) -> tuple[float, ...]:
        """The colour of a visual in diffuse light, if the file says it."""
        material = element.find("material")
        diffuse = None if material is None else material.find("diffuse")
        try:
            tokens = [] if diffuse is None else self.text.content(diffuse).split()
            return tuple(Number.parse(token).value for token in tokens)
        except ValueError:
            return ()

    def shape(self, element: Element) -> shapes.Shape | shapes.Mesh | None:
        """A shape in its link's frame, None for an unknown one."""
        geometry = element.find("geometry")
        solid = geometry.children[0] if geometry is not None and geometry.children else None
        if solid is None or solid.tag not in SIZES:
            return None
        owner = f"{element.tag} {element.attributes.get('name', '')}"
        try:
            pose, _, base = self.pose(element, owner)
            parts = [solid.find(tag) for tag in SIZES[solid.tag]]
            size = [Number.parse(x).value for part in parts if part is not None
                    for x in self.text.content(part).split()]  # fmt: skip
        except ValueError:
            return None
        if base:
            return None
        placed = description.pose_of_decimals(pose)
        if solid.tag == "mesh":
            uri, scale = self.child_text(solid, "uri", owner), np.array(size or [1.0] * 3)
            named = uri if scale.shape == (3,) and solid.find("submesh") is None else ""
            return shapes.Mesh(named, np.resize(scale, 3), placed.rotation, placed.position)
        if len(size) != shapes.NUMBERS_OF_SIZE[solid.tag]:
            return None
        return shapes.primitive_shape(solid.tag, size, placed.rotation, placed.position)
