"""What an MJCF file says: bodies, joints, geoms, inertias and the compiler settings that matter.

What only MuJoCo's own compiler can work out (meshes, replicated or attached parts, masses that
it bounds) is listed in `Mjcf.unknown` rather than guessed or ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from feasid.exact.decimals import Number
from feasid.formats.mjcf.bonds import Bond
from feasid.formats.mjcf.effects import Effect
from feasid.formats.mjcf.files import MjcfFiles
from feasid.formats.mjcf.pose import MjcfPose
from feasid.formats.terms import NO_TERMS, JointTerms, LeftOut
from feasid.formats.xml import Element

JOINT_TYPES = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}

ROOTS = ("mujoco", "mujocoinclude")

HIDING = ("attach", "composite", "flexcomp")
"""Elements whose bodies only MuJoCo's compiler makes."""

NEEDS_COMPILER = ("replicate", *HIDING)
"""Elements that only MuJoCo's compiler expands."""


@dataclass(frozen=True, eq=False)
class MjcfInertial:
    """An ``<inertial>``: mass, and moments about the centre of mass in the axes of `pose`."""

    element: Element
    pose: MjcfPose
    mass: Number
    moments: tuple[Number, ...]
    """xx xy xz yy yz zz [kg m^2]."""


@dataclass(frozen=True, eq=False)
class Geom:
    """A ``<geom>`` with its class's attributes filled in."""

    element: Element
    attributes: dict[str, str]
    pose: MjcfPose


@dataclass(frozen=True, eq=False)
class MjcfJoint:
    """A ``<joint>``: type, position and axis in the body's frame, reference [rad or m]."""

    name: str
    element: Element
    type: str
    position: tuple[float, float, float]
    axis: tuple[float, float, float]
    reference: float
    range: tuple[float, float] | None
    terms: JointTerms = NO_TERMS


@dataclass(frozen=True, eq=False)
class MjcfBody:
    """A ``<body>``, its pose in its parent's frame, and what hangs on it."""

    name: str
    element: Element
    parent: str | None
    pose: MjcfPose
    joints: tuple[MjcfJoint, ...]
    inertial: MjcfInertial | None
    geoms: tuple[Geom, ...]


@dataclass(frozen=True)
class Compiler:
    """The settings of ``<compiler>`` that matter here."""

    degrees: bool = True
    eulerseq: str = "xyz"
    from_geoms: str = "auto"
    group_range: tuple[int, int] = (0, 5)
    balances: bool = False
    total_mass: float = 0.0


@dataclass(frozen=True, eq=False)
class Mjcf:
    """An MJCF model: its files, bodies in the order of the text, and what is left to MuJoCo."""

    files: MjcfFiles
    name: str
    compiler: Compiler
    bodies: tuple[MjcfBody, ...]
    gravity: tuple[float, ...] | None
    unknown: tuple[str, ...] = ()
    """Why only MuJoCo's compiler knows all masses, each naming file and line."""
    hidden: tuple[str, ...] = ()
    """Those among them that hide bodies."""
    effects: tuple[Effect, ...] = ()
    """Forces and inertias that are not modelled."""
    left_out: tuple[LeftOut, ...] = ()
    bonds: tuple[Bond, ...] = ()
    """Equality constraints that are modelled."""
    motors: tuple[str, ...] = ()
    """Joints that actuators drive."""
    """What the file holds besides bodies, joints and geoms, by name."""
