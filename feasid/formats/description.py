"""What a description says of a robot, in one form for every format.

A reader turns a file, or a model in memory, into a `Description`: links with their places, joints
and inertial parameters, and whatever else the file says. Everything else works on it:
`feasid.formats.build` makes a `Robot`, `feasid.inspection` judges the links,
`feasid.identifiability.rounding` recovers exact geometry, and `feasid.formats.rewrite` puts numbers
back. Numbers of links are kept as the exact rationals that the file's decimals are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from feasid.core.arrays import Array
from feasid.exact import poses
from feasid.exact.numbers import Number
from feasid.exact.poses import PrecisePose, is_possible_inertia
from feasid.formats.shapes import Mesh, Shape
from feasid.formats.terms import NO_TERMS, JointTerms, LeftOut, UnmodelledEffect
from feasid.formats.xml import Element, ReadLimits, XmlText, shortest_decimal
from feasid.robot import inertia
from feasid.robot.bodies import Limits
from feasid.robot.rotations import from_rpy

if TYPE_CHECKING:
    from feasid.robot.description import Robot

MAX_NAME = 256
"""Characters that a name may have."""


class NeedsCompilerError(Exception):
    """What only the format's own compiler can work out; the message says what and where."""


def _identity_pose() -> PrecisePose:
    return poses.identity(), [Decimal(0)] * 3


@dataclass(frozen=True, eq=False)
class ExactPose:
    """A frame in another frame: as floats, and to sixty digits when asked.

    Attributes
    ----------
    rotation, position : ndarray, shapes (3, 3) and (3,)
        Columns of `rotation` are the frame's axes; position in [m].
    precise : callable
        Rotation and position to sixty digits.
    angles : tuple of str
        The angles [rad] from which the rotation follows, as the file writes them.
    from_angles : callable or None
        The rotation for other angles; None where it does not follow from `angles` alone.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    precise: Callable[[], PrecisePose] = field(default=_identity_pose, repr=False)
    angles: tuple[str, ...] = ()
    from_angles: Callable[[Sequence[float]], Array] | None = field(default=from_rpy, repr=False)

    def precise_pose(self) -> PrecisePose:
        """Rotation and position to sixty digits."""
        return self.precise()


def pose_of_numbers(xyz: Sequence[Number], rpy: Sequence[Number]) -> ExactPose:
    """The pose of a position [m] and fixed-axis roll, pitch and yaw [rad] from a file."""

    def precise() -> PrecisePose:
        turned = poses.from_rpy([n.exact for n in rpy])
        return turned, [poses.to_decimal(n.exact) for n in xyz]

    rotation = from_rpy([n.value for n in rpy])
    position = np.array([n.value for n in xyz])
    return ExactPose(rotation, position, precise, tuple(n.text for n in rpy))


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint that moves a link, in the link's frame.

    Attributes
    ----------
    name : str
    kind : {"revolute", "prismatic", "spherical", "planar", "floating"}
    axis : ndarray, shape (3,)
        Of any length but zero; of planar joints the normal.
    position : ndarray, shape (3,)
        A point on the axis, or the centre of a spherical joint [m].
    reference : float
        Position at which the link is at `Link.home` [rad or m].
    limits : Limits
    terms : JointTerms
    place : str
        File and line, for messages.
    """

    name: str
    kind: str
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    position: Array = field(default_factory=lambda: np.zeros(3))
    reference: float = 0.0
    limits: Limits = field(default_factory=Limits)
    terms: JointTerms = NO_TERMS
    place: str = ""

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


def _no_shapes() -> Sequence[Shape | None]:
    return ()


def _no_meshes() -> Sequence[Mesh]:
    return ()


@dataclass(frozen=True, eq=False)
class Link:
    """One link of a description.

    Attributes
    ----------
    name, path, line : str, str, int
        Name, file, and line of the link's inertia, or of the link.
    locate : callable
        Line and column, computed when asked: a column costs a look at its whole line.
    parent : str or None
        The link on which it hangs; None for a root link, or one that hangs in the world.
    home : Pose
        In the parent's frame, or in the world's.
    joints : tuple of Joint
        What moves it, from the parent on; empty for a link that is fixed to its parent.
    mass, moments : Fraction and six Fractions, or None
        The file's numbers; xx xy xz yy yz zz about the centre of mass [kg m^2]. None where the
        file gives no inertia.
    place : Pose or None
        Centre of mass and axes of `moments`, in the link's frame.
    collisions, visuals : callable
        Shapes in the link's frame that collide and that are drawn; None stands for one that is no
        known primitive, such as a mesh.
    meshes : callable
        Meshes that collide, by name, in the link's frame; empty where a format does not tell.
    has_geometry : bool
        Whether it has any shape, known or not.
    solid_visuals : bool
        The link's inertia is that of all that is drawn, not only of what collides.
    by_geometry : bool
        The format derives the inertia from geometry: there are no decimals to judge.
    derive : callable or None
        Computes the ten parameters where they do not follow from mass, moments and place; raises
        `NeedsCompilerError` where only the format's compiler can.
    """

    name: str
    path: str
    line: int
    locate: Callable[[], tuple[int, int]] = field(repr=False)
    parent: str | None = None
    home: ExactPose = field(default_factory=ExactPose)
    joints: tuple[Joint, ...] = ()
    mass: Fraction | None = None
    moments: tuple[Fraction, ...] | None = None
    place: ExactPose | None = None
    collisions: Callable[[], Sequence[Shape | None]] = field(default=_no_shapes, repr=False)
    visuals: Callable[[], Sequence[Shape | None]] = field(default=_no_shapes, repr=False)
    meshes: Callable[[], Sequence[Mesh]] = field(default=_no_meshes, repr=False)
    has_geometry: bool = False
    solid_visuals: bool = False
    by_geometry: bool = False
    derive: Callable[[], Array | None] | None = field(default=None, repr=False)

    @cached_property
    def column(self) -> int:
        """Column of the link's inertia, or of the link, from 1."""
        return self.locate()[1]

    @cached_property
    def shapes(self) -> tuple[Shape, ...] | None:
        """Shapes with which the inertia is compared; None unless there are some, all known."""
        found = self.visuals() if self.solid_visuals else self.collisions()
        known = tuple(shape for shape in found if shape is not None)
        return known if known and len(known) == len(found) else None

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
    """One equality constraint, by the names of the file.

    Attributes
    ----------
    kind : {"joint", "connect", "weld"}
    name : str
    first, second : str
        Joints, or links ("world" for the base); no second joint holds the first one.
    factors : tuple of float
        Of a joint: q1 - ref1 = a0 + a1 (q2 - ref2).
    first_point, second_point : ndarray, shape (3,), or None
        In each link's frame; what is None follows from the home pose.
    turn : ndarray, shape (3, 3), or None
        Of a weld: the second link's axes in the first's.
    """

    kind: str
    name: str
    first: str
    second: str
    factors: tuple[float, float] = (0.0, 1.0)
    first_point: Array | None = None
    second_point: Array | None = None
    turn: Array | None = None


@dataclass(frozen=True, eq=False)
class Description:
    """What a file, or a model in memory, says of a robot.

    Attributes
    ----------
    format, path, name : str
    links : tuple of Link
        In the order of the file.
    order : tuple of str
        Names of all links, parents first; default the order of the file.
    world : str
        Name of the frame in which links without parent hang; empty where the one link without
        parent is the base itself.
    gravity : tuple of float, or None
        Where the file states it [m/s^2].
    bonds, motors : tuples of Bond and of str
        Equality constraints, and the joints that actuators drive.
    notes : tuple of str
        What was repaired while reading, naming file and line.
    hidden : tuple of str
        What hides links from a reader without the format's own compiler.
    unknown : tuple of str
        Why only the format's compiler knows all masses, naming file and line.
    effects : tuple of Effect
        Forces and inertias that are not modelled.
    left_out : tuple of LeftOut
        What the file holds besides, by name.
    total_mass : float
        The mass to which all links are scaled together; 0 for as they are [kg].
    has_frames : bool
        Links without mass and shape between joints are mere frames in this format.
    text : XmlText or None
        The main file.
    document : object
        What the format's reader keeps for its own patches.
    """

    format: str
    path: str
    name: str
    links: tuple[Link, ...]
    order: tuple[str, ...] = ()
    world: str = ""
    gravity: tuple[float, ...] | None = None
    bonds: tuple[Bond, ...] = ()
    motors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    effects: tuple[UnmodelledEffect, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    total_mass: float = 0.0
    has_frames: bool = False
    text: XmlText | None = field(default=None, repr=False)
    document: Any = field(default=None, repr=False)

    @cached_property
    def by_name(self) -> dict[str, Link]:
        """The links by name."""
        return {link.name: link for link in self.links}

    def link(self, name: str) -> Link:
        """The link with this name."""
        return self.by_name[name]

    def parents_first(self) -> Iterator[Link]:
        """All links, each after its parent."""
        return (self.by_name[name] for name in self.order) if self.order else iter(self.links)

    @property
    def joints(self) -> Iterator[Joint]:
        """All joints, in the order of the links."""
        return (joint for link in self.links for joint in link.joints)


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
    """What a file may say besides bodies and joint terms.

    Attributes
    ----------
    forces : mapping of str to float
        Constant force on a joint [N m or N], in formats that have a place for it.
    armatures : mapping of str to float
        Drive inertia of joints, for extension elements of formats that have no place for it.
    extensions : tuple of str
        Programs whose extension elements are wanted, see `Format.extensions`.
    servos : mapping of str to JointServo
        Position servos of joints, in formats that have a place for them.
    """

    forces: Mapping[str, float] = field(default_factory=dict)
    armatures: Mapping[str, float] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()
    servos: Mapping[str, JointServo] = field(default_factory=dict)


NO_EXTRAS = Extras()


@dataclass(frozen=True, eq=False)
class Changes:
    """Numbers to put into a file, by link and by joint; `gravity` where it is to be written."""

    inertials: Mapping[str, NewInertial] = field(default_factory=dict)
    terms: Mapping[str, JointTerms] = field(default_factory=dict)
    gravity: Array | None = None
    extras: Extras = NO_EXTRAS


def import_when_called(place: str) -> Callable[..., Any]:
    """The function ``module:name``, whose module is imported when it is first called."""

    def call(*arguments: Any) -> Any:
        module, name = place.split(":")
        return getattr(import_module(module), name)(*arguments)

    return call


@dataclass(frozen=True, eq=False)
class Format:
    """A format of description files: how it is recognised, read, patched and generated.

    A package ``feasid.formats.NAME`` with a `Format` named ``FORMAT`` is found by
    `feasid.formats.registry`; nothing else has to know it.

    Attributes
    ----------
    name, title : str
        As in `Source.format` and for people: "urdf" and "URDF".
    roots : tuple of str
        Tags of root elements.
    suffixes : tuple of str
        Of paths, in lower case, with the dot.
    holds : tuple of str
        Symbols of the joint terms for which the format has a place, of ``Ia fv fc k``.
    read : callable
        ``read(text, limits)`` returns a `Description`.
    patch : callable
        ``patch(description, changes)`` returns the file with these numbers and every other byte as
        it was.
    generate : callable
        ``generate(robot, terms, extras)`` returns a new file for a robot that came from elsewhere,
        with these `JointTerms` per joint.
    compiled : callable or None
        ``compiled(text)`` returns the `Description` by the format's own compiler.
    holds_loops, holds_gravity, holds_forces, holds_servos : bool
        Whether a file has closed loops, or couplings of several joints; gravity; and constant
        forces on joints.
    extensions : tuple of str
        Programs for whose extension elements the format has a place.
    prepare : callable or None
        ``prepare(robot)`` returns the robot with the frames or names that a new file needs; q means
        the same.
    """

    name: str
    title: str
    roots: tuple[str, ...]
    suffixes: tuple[str, ...]
    holds: tuple[str, ...]
    read: Callable[[XmlText, ReadLimits], Description]
    patch: Callable[[Description, Changes], bytes]
    generate: Callable[[Robot, Mapping[str, JointTerms], Extras], bytes]
    compiled: Callable[[XmlText], Description] | None = None
    holds_loops: bool = False
    holds_gravity: bool = False
    holds_forces: bool = False
    holds_servos: bool = False
    extensions: tuple[str, ...] = ()
    prepare: Callable[[Robot], Robot] | None = None
