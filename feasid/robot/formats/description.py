"""Descriptions of robots, in one form for every format.

A reader turns a file, or a model in memory, into a `Description`: links with their places, joints
and inertial parameters, and whatever else the file says. Everything else works on it:
`feasid.robot.formats.build` makes a `Robot`, `feasid.applications.inspection` judges the links,
`feasid.parameters.identifiability.rounding` recovers exact geometry, and
`feasid.robot.formats.rewrite` puts numbers back. Numbers of links are kept as the exact rationals
that the file's decimals are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from feasid.core.arrays import Array
from feasid.core.exact import poses
from feasid.core.exact.numbers import Number
from feasid.core.exact.poses import PrecisePose, is_possible_inertia
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits
from feasid.robot.drives import Drive
from feasid.robot.formats.shapes import DRAWN, Drawing, Shape, primitives
from feasid.robot.formats.terms import NO_TERMS, JointTerms, LeftOut, UnmodelledEffect
from feasid.robot.formats.xml import Element, XmlText, shortest_decimal
from feasid.robot.rotations import from_rpy

if TYPE_CHECKING:
    from feasid.robot.description import Robot

MAX_NAME = 256  #: Largest number of characters of a name.

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""Names of six moments in URDF and SDF, in the order of `feasid.robot.inertia.UPPER`."""

DRAKE = {"xmlns:drake": "http://drake.mit.edu"}
"""Attribute of a root element that holds elements of Drake."""


class NeedsCompilerError(Exception):
    """Only the format's own compiler can compute a value; the message names it and its place."""


@dataclass(frozen=True, eq=False)
class ExactPose:
    """A frame in another frame: as floats, and to sixty digits when asked."""

    #: Shape (3, 3): columns of `rotation` are the frame's axes; position in [m].
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))  #: Shape (3,): see `rotation`.
    #: Computes rotation and position to sixty digits.
    precise: Callable[[], PrecisePose] = field(
        default=lambda: (poses.identity(), [Decimal(0)] * 3), repr=False
    )
    #: The angles [rad] from which the rotation follows, as the file writes them.
    angles: tuple[str, ...] = ()
    #: The rotation for other angles; None where it does not follow from `angles` alone.
    from_angles: Callable[[Sequence[float]], Array] | None = field(default=from_rpy, repr=False)


def pose_of_numbers(xyz: Sequence[Number], rpy: Sequence[Number]) -> ExactPose:
    """The pose of a position [m] and fixed-axis roll, pitch and yaw [rad] from a file."""

    def precise() -> PrecisePose:
        turned = poses.from_rpy([n.exact for n in rpy])
        return turned, [poses.to_decimal(n.exact) for n in xyz]

    rotation = from_rpy([n.value for n in rpy])
    position = np.array([n.value for n in xyz])
    return ExactPose(rotation, position, precise, tuple(n.text for n in rpy))


def pose_of_decimals(
    pose: PrecisePose,
    angles: tuple[str, ...] = (),
    from_angles: Callable[[Sequence[float]], Array] | None = None,
) -> ExactPose:
    """The pose of sixty digits."""
    rotation, position = (np.array(part, dtype=np.float64) + 0.0 for part in pose)
    return ExactPose(rotation, position, lambda: pose, angles, from_angles)


def pose_of_floats(rotation: Array, position: Array) -> ExactPose:
    """A pose that is known from floats only."""

    def precise() -> PrecisePose:
        turned = [[Decimal(x) for x in row] for row in rotation.tolist()]
        return turned, [Decimal(x) for x in position.tolist()]

    return ExactPose(rotation, position, precise, from_angles=None)


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint that moves a link, in the link's frame."""

    name: str
    kind: str  #: One of "revolute", "prismatic", "spherical", "planar", "floating".
    #: Shape (3,): of any length but zero; of planar joints the normal.
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    #: Shape (3,): a point on the axis, or the centre of a spherical joint [m].
    position: Array = field(default_factory=lambda: np.zeros(3))
    reference: float = 0.0  #: Position at which the link is at `Link.home` [rad or m].
    limits: Limits = field(default_factory=Limits)
    terms: JointTerms = NO_TERMS
    place: str = ""  #: File and line, for messages.

    @property
    def one_dof(self) -> bool:
        """Whether the joint has one degree of freedom."""
        return self.kind in ("revolute", "prismatic")

    @property
    def motion(self) -> Array:
        """Motion subspace in the link's frame, angular part first, shape (6, n_d)."""
        if self.kind == "floating":
            return np.eye(6)
        if self.kind == "spherical":
            return np.vstack([np.eye(3), inertia.skew(self.position)])
        axis = self.axis / np.linalg.norm(self.axis)
        if self.kind == "planar":  # rotation about the normal and translation in the plane
            across = np.linalg.svd(axis[None, :])[2][1:]
            motion = np.zeros((6, 3))
            motion[:3, 0], motion[3:, 1:] = axis, across.T
            return motion
        motion = np.zeros((6, 1))
        if self.kind == "prismatic":
            motion[3:, 0] = axis
        else:
            motion[:3, 0] = axis
            if self.position.any():
                motion[3:, 0] = np.cross(self.position, axis)
        return motion


@dataclass(frozen=True, eq=False)
class Link:
    """One link of a description."""

    name: str  #: Name, file, and line of the link's inertia, or of the link.
    path: str  #: See `name`.
    line: int  #: See `name`.
    #: Line and column, computed when asked: a column costs a look at its whole line.
    locate: Callable[[], tuple[int, int]] = field(repr=False)
    #: The link on which it hangs; None for a root link, or one that hangs in the world.
    parent: str | None = None
    home: ExactPose = field(default_factory=ExactPose)  #: In the parent's frame, or in the world's.
    #: What moves it, from the parent on; empty for a link that is fixed to its parent.
    joints: tuple[Joint, ...] = ()
    mass: Fraction | None = None  #: The file's numbers [kg]; None where the file gives no inertia.
    #: Six numbers xx xy xz yy yz zz about the centre of mass [kg m^2].
    moments: tuple[Fraction, ...] | None = None
    place: ExactPose | None = None  #: Centre of mass and axes of `moments`, in the link's frame.
    #: Shapes that collide and that are drawn; empty where a format does not tell.
    drawings: Callable[[], Sequence[Drawing]] = field(default=tuple, repr=False)
    #: The link's inertia is that of all that is drawn, not only of what collides.
    solid_visuals: bool = False
    #: The format derives the inertia from geometry: there are no decimals to judge.
    by_geometry: bool = False
    #: Computes the ten parameters where they do not follow from mass, moments and place; raises
    #: `NeedsCompilerError` where only the format's compiler can.
    derive: Callable[[], Array | None] | None = field(default=None, repr=False)

    @cached_property
    def column(self) -> int:
        """Column of the link's inertia, or of the link, from 1."""
        return self.locate()[1]

    @cached_property
    def shapes(self) -> tuple[Shape, ...] | None:
        """Shapes with which the inertia is compared; None unless there are some, all known."""
        counted = DRAWN if self.solid_visuals else ("collision",)
        each = {id(x): x for tag in counted for x in primitives(self.drawings(), tag)}
        known = tuple(shape for shape in each.values() if shape is not None)
        return known if len(known) == len(each) > 0 else None

    @cached_property
    def com(self) -> Array:
        """Centre of mass in the link's frame [m], shape (3,)."""
        return np.zeros(3) if self.place is None else self.place.position

    @cached_property
    def tensor(self) -> Array:
        """Inertia about the centre of mass in the link's axes [kg m^2], shape (3, 3)."""
        if self.moments is None or self.place is None:
            return np.zeros((3, 3))
        raw = inertia.rotational_inertia([*map(float, self.moments), 0, 0, 0, 0])
        rotation = self.place.rotation
        out: Array = rotation @ raw @ rotation.T
        return out

    @cached_property
    def parameters(self) -> Array | None:
        """The ten parameters in the link's frame, shape (10,); None when none are given."""
        if self.derive is not None:
            return self.derive()
        if self.mass is None or self.moments is None:
            return None
        return inertia.from_mass_com_inertia(float(self.mass), self.com, self.tensor)

    @property
    def is_harmless(self) -> bool:
        """Whether simulators accept it: exactly possible, or without inertia."""
        if self.mass is None or self.moments is None:
            return True
        return is_possible_inertia(self.mass, self.moments) or not (self.mass or any(self.moments))


@dataclass(frozen=True, eq=False)
class Bond:
    """One equality constraint, by the names of the file."""

    kind: str  #: One of "joint", "connect", "weld".
    name: str
    first: str  #: Joints, or links ("world" for the base); no second joint holds the first one.
    second: str  #: See `first`.
    factors: tuple[float, float] = (0.0, 1.0)  #: Of a joint: q1 - ref1 = a0 + a1 (q2 - ref2).
    #: Shape (3,): in each link's frame; what is None follows from the home pose.
    first_point: Array | None = None
    second_point: Array | None = None  #: See `first_point`.
    turn: Array | None = None  #: Shape (3, 3): of a weld: the second link's axes in the first's.


@dataclass(frozen=True, eq=False)
class Description:
    """Description of a robot by a file or a model in memory."""

    format: str
    path: str
    name: str
    links: tuple[Link, ...]  #: In the order of the file.
    #: Names of all links, parents first; default the order of the file.
    order: tuple[str, ...] = ()
    #: Name of the frame in which links without parent hang; empty where the one link without parent
    #: is the base itself.
    world: str = ""
    gravity: tuple[float, ...] | None = None  #: Where the file states it [m/s^2].
    bonds: tuple[Bond, ...] = ()  #: Equality constraints.
    shared: tuple[Drive, ...] = ()  #: Springs, friction and inertia along several joints.
    #: Joints that actuators drive, with the gains of position servos [N m / rad, N / m], zero for
    #: other actuators.
    motors: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  #: What was repaired while reading, naming file and line.
    #: What hides links from a reader without the format's own compiler.
    hidden: tuple[str, ...] = ()
    #: Why only the format's compiler knows all masses, naming file and line.
    unknown: tuple[str, ...] = ()
    effects: tuple[UnmodelledEffect, ...] = ()  #: Forces and inertias that are not modelled.
    left_out: tuple[LeftOut, ...] = ()  #: Further elements of the file, by name.
    #: The mass to which all links are scaled together; 0 for as they are [kg].
    total_mass: float = 0.0
    #: Links without mass and shape between joints are mere frames in this format.
    has_frames: bool = False
    frames: tuple[Link, ...] = ()  #: Named places on links, which are no links in the file.
    #: Data that the format's reader keeps for patches of the text.
    document: Any = field(default=None, repr=False)

    @cached_property
    def by_name(self) -> dict[str, Link]:
        """Links and frames by name."""
        return {link.name: link for link in (*self.frames, *self.links)}

    def link(self, name: str) -> Link:
        """The link with this name."""
        return self.by_name[name]

    def parents_first(self) -> Iterator[Link]:
        """All links, each after its parent, and the frames on them."""
        yield from (self.by_name[name] for name in self.order or (x.name for x in self.links))
        yield from (frame for frame in self.frames if self.by_name[frame.name] is frame)

    @property
    def joints(self) -> Iterator[Joint]:
        """All joints, in the order of the links."""
        return (joint for link in self.links for joint in link.joints)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What was repaired while reading, and limits of joints that are exchanged."""
        units = ((j, "m" if j.kind == "prismatic" else "rad") for j in self.joints)
        return *self.notes, *(
            f"{j.place}: joint {j.name!r}: the lower limit {j.limits.upper:g} {unit} is above the "
            f"upper limit {j.limits.lower:g} {unit}: they are read as exchanged"
            for j, unit in units
            if j.limits.exchanged
        )


def describe_cycle(
    parents: Mapping[str, str], carried: Collection[str], joints: Mapping[str, str]
) -> str:
    """The links of a cycle that no `carried` link holds; `joints` says what holds each."""
    name, passed = next(name for name in parents if name not in carried), [""]
    while name not in passed:
        passed.append(name)
        name = parents[name]
    cycle = (f"{x!r} hangs on {parents[x]!r} by {joints[x]}" for x in passed[passed.index(name) :])
    return f"joints form a cycle: {', '.join(cycle)}"


def depth_first(roots: Iterable[str], parents: Mapping[str, str]) -> Iterator[str]:
    """Names of links that hang on the roots, parents first, children in the order of `parents`."""
    below: dict[str, list[str]] = {}
    for child, parent in parents.items():
        below.setdefault(parent, []).append(child)
    waiting = [*roots][::-1]
    while waiting:
        name = waiting.pop()
        yield name
        waiting.extend(reversed(below.get(name, [])))


@dataclass(frozen=True, eq=False)
class NamedElements:
    """The elements of a file's links and joints by name, as its writer needs them."""

    text: XmlText
    links: Mapping[str, Element]
    joints: Mapping[str, Element]


@dataclass(frozen=True)
class NewInertial:
    """Numbers to write for one link, in the axes that its inertial already has.

    ``com`` None leaves the centre of mass as it is; `reset_axes` turns the axes into the link's.
    """

    mass: float
    moments: tuple[float, ...]
    com: tuple[float, ...] | None = None
    reset_axes: bool = False

    def is_possible(self) -> bool:
        """Whether the decimals, as written, are the inertia of some body with volume."""
        exact = [Fraction(shortest_decimal(v)) for v in (self.mass, *self.moments)]
        return is_possible_inertia(exact[0], exact[1:])


class JointServo(NamedTuple):
    """A joint's position servo: kp, kd [N m / rad, N m s / rad; N, m], delay [s], torque limit."""

    kp: float
    delay: float = 0.0
    kd: float = 0.0
    limit: float = math.inf


@dataclass(frozen=True)
class Extras:
    """Additions of a file to bodies and joint terms."""

    #: Constant force on a joint [N m or N], in formats that have a place for it.
    forces: Mapping[str, float] = field(default_factory=dict)
    #: Drive inertia of joints, for extension elements of formats that have no place for it.
    armatures: Mapping[str, float] = field(default_factory=dict)
    #: Programs whose extension elements are wanted, see `Format.extensions`.
    extensions: tuple[str, ...] = ()
    #: Position servos of joints, in formats that have a place for them.
    servos: Mapping[str, JointServo] = field(default_factory=dict)
    #: Shapes of links, in formats whose new files have them.
    drawings: Mapping[str, Sequence[Drawing]] = field(default_factory=dict)


NO_EXTRAS = Extras()


@dataclass(frozen=True, eq=False)
class Changes:
    """Numbers to put into a file, by link and by joint; `gravity` where it is to be written."""

    inertials: Mapping[str, NewInertial] = field(default_factory=dict)
    terms: Mapping[str, JointTerms] = field(default_factory=dict)
    gravity: Array | None = None
    extras: Extras = NO_EXTRAS
    motors: tuple[Body, ...] = ()  #: Of elastic joints, that the file does not have yet.
    shared: tuple[Drive, ...] = ()  #: Drives along several joints.


def import_when_called(place: str) -> Callable[..., Any]:
    """The function ``module:name``, whose module is imported when it is first called."""

    def call(*arguments: Any) -> Any:
        module, name = place.split(":")
        return getattr(import_module(module), name)(*arguments)

    return call


@dataclass(frozen=True, eq=False)
class Format:
    """A format of description files: how it is recognised, read, patched and generated.

    A package ``feasid.robot.formats.NAME`` with a `Format` named ``FORMAT`` is found by
    `feasid.robot.formats.registry`; nothing else has to know it.
    """

    name: str  #: As in `Source.format` and for people: "urdf" and "URDF".
    title: str  #: See `name`.
    roots: tuple[str, ...]  #: Tags of root elements.
    suffixes: tuple[str, ...]  #: Of paths, in lower case, with the dot.
    #: Symbols of the joint terms for which the format has a place, of ``Ia fv fc k``.
    holds: tuple[str, ...]
    read: Callable[[XmlText], Description]  #: ``read(text)`` returns a `Description`.
    #: ``patch(description, changes)`` returns the file with these numbers and every other byte as
    #: it was.
    patch: Callable[[Description, Changes], bytes]
    #: ``generate(robot, terms, extras)`` returns a new file for a robot that came from elsewhere,
    #: with these `JointTerms` per joint.
    generate: Callable[[Robot, Mapping[str, JointTerms], Extras], bytes]
    #: ``compiled(text)`` returns the `Description` by the format's own compiler.
    compiled: Callable[[XmlText], Description] | None = None
    #: Whether a file has closed loops, or couplings of several joints; gravity; and constant forces
    #: on joints.
    holds_loops: bool = False
    holds_gravity: bool = False  #: See `holds_loops`.
    holds_forces: bool = False  #: See `holds_loops`.
    holds_servos: bool = False  #: See `holds_loops`.
    holds_shared: bool = False  #: Whether a file has springs and friction along several joints.
    several: bool = False  #: Whether a file may have several models, of which one is read.
    #: What programs give a link that states no mass; empty where it has none.
    default_mass: str = ""
    #: What programs do with a moving link without mass, of a file that may have one.
    massless: str = ""
    #: Programs for whose extension elements the format has a place.
    extensions: tuple[str, ...] = ()
    #: ``prepare(robot)`` returns the robot with the frames or names that a new file needs; q means
    #: the same.
    prepare: Callable[[Robot], Robot] | None = None
    #: ``encode(content, suffix)`` returns a file's bytes as its suffix wants them.
    encode: Callable[[bytes, str], bytes] | None = None
    #: Relative to a body's scale, how well a written file must reproduce the robot: the format's
    #: own numbers may be short.
    agreement: float = 1e-9
