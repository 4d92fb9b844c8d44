"""What a model file says about its links, in one form for every format.

Numbers are kept as the exact rationals that the file's decimals are. A link's inertia is about its
centre of mass, in axes that `Link.place` turns and places in the link's frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.poses import PrecisePose
from feasid.formats.primitives import Shape
from feasid.robot import inertia


@dataclass(frozen=True, eq=False)
class Place:
    """A pose: as floats, and to sixty digits when asked."""

    rotation: Array
    position: Array
    precise: Callable[[], PrecisePose] = field(repr=False)

    def precise_pose(self) -> PrecisePose:
        """Rotation and position to sixty digits."""
        return self.precise()


@dataclass(frozen=True, eq=False)
class Link:
    """One link of a file.

    Attributes
    ----------
    mass, moments : Fraction and six Fractions, or None
        The file's numbers; xx xy xz yy yz zz about the centre of mass [kg m^2]. None where the
        file gives no inertia.
    place : Place
        Centre of mass and axes of `moments`, in the link's frame.
    shapes : tuple of Shape, or None
        Collision primitives in the link's frame; None when a shape is not known (a mesh).
    by_geometry : bool
        The format derives the inertia from geometry: nothing to judge here.
    """

    name: str
    path: str
    line: int
    locate: Callable[[], tuple[int, int]] = field(repr=False)
    """Line and column, computed when asked: a column costs a look at its whole line."""
    mass: Fraction | None = None
    moments: tuple[Fraction, ...] | None = None
    place: Place | None = None
    shapes: tuple[Shape, ...] | None = None
    by_geometry: bool = False

    @cached_property
    def column(self) -> int:
        """Column of the link's inertia, or of the link, from 1."""
        return self.locate()[1]

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


@dataclass(frozen=True, eq=False)
class Part:
    """A link of a body, and where it is.

    ``parent`` is the position in `LinkGroup.parts` of the part that `place` refers to; -1 for the
    body's own frame.
    """

    link: Link
    parent: int = -1
    place: Place | None = None
    """Pose in the parent's frame; None for the same frame."""


@dataclass(frozen=True, eq=False)
class LinkGroup:
    """Links that move as one, parents first; the moving link's frame is the body's."""

    name: str
    joint: str | None
    """Name of the joint that moves it; None for what stands on the ground, or floats."""
    parts: tuple[Part, ...]

    @property
    def links(self) -> tuple[Link, ...]:
        """The links, the moving one first."""
        return tuple(part.link for part in self.parts)


def grouped(links: Iterable[tuple[Link, str | None, Place | None, str | None]]) -> list[LinkGroup]:
    """Gather links into bodies, in the order in which their first links appear.

    Each link comes after its parent, with the parent's name, its place in the parent's frame, and
    the joint that moves it; None for the joint of a link that is fixed to its parent.
    """
    bodies: dict[str, tuple[str | None, list[Part]]] = {}
    member: dict[str, tuple[str, int]] = {}
    for link, parent, place, joint in links:
        if joint is None and parent is not None:
            carrier, index = member[parent]
            part = Part(link, index, place)
        else:
            carrier, part = link.name, Part(link)
            bodies[carrier] = (joint, [])
        parts = bodies[carrier][1]
        member[link.name] = (carrier, len(parts))
        parts.append(part)
    return [LinkGroup(name, joint, tuple(parts)) for name, (joint, parts) in bodies.items()]


@dataclass(frozen=True, eq=False)
class Model:
    """A file: its links, the moving bodies that they make, and the base."""

    path: str
    format: str
    name: str
    links: tuple[Link, ...]
    base: LinkGroup
    bodies: tuple[LinkGroup, ...]
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """What hides bodies from a reader without the format's own compiler."""

    def link(self, name: str) -> Link:
        """The link with this name."""
        return next(link for link in self.links if link.name == name)

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)
