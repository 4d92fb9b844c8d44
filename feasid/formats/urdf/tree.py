"""From a URDF file's links and joints to a robot of moving bodies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.formats.terms import LeftOut, left_out_notes, term_notes
from feasid.formats.urdf.followers import couplings
from feasid.formats.urdf.read import Urdf, UrdfInertial, UrdfJoint, depth_first
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits, Member, lumped
from feasid.robot.description import GRAVITY, Robot, Source
from feasid.robot.rotations import compose

FLOATING_JOINT = "floating_base"

ONE_DOF = ("revolute", "continuous", "prismatic")

AXIS_TOLERANCE = 1e-5
"""An axis whose length is off by more than this is noted; the rest is rounding in the file."""


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a link is: in which body (None: fixed to the world), and its pose there."""

    body: str | None
    rotation: Array
    position: Array


def robot_from_urdf(
    urdf: Urdf,
    floating: bool | None = None,
    gravity: npt.ArrayLike | None = None,
) -> Robot:
    """Build the robot: links on fixed joints are lumped into the body that carries them.

    Parameters
    ----------
    urdf : Urdf
    floating : bool, optional
        Let the root link float on a six-degree-of-freedom joint "floating_base", or fix it to the
        world; by default it floats where no joint moves, with a note.
    gravity : array_like, shape (3,), optional
        Default (0, 0, -9.81).

    Returns
    -------
    Robot
        Bodies are named after their moving link and have its frame; joints keep their names.
        `Body.members` lists the links of a body that has several, `Robot.fixed` those that do
        not move.
    """
    above = urdf.joint_above()
    places: dict[str, _Place] = {}
    members: dict[str | None, list[Member]] = {None: []}
    moving: dict[str, tuple[str | None, Array, Array, UrdfJoint | None]] = {}
    followers, said = couplings(urdf)
    notes = [*urdf.notes, *said]
    floating = _floats(urdf, floating, notes)
    for name in depth_first(urdf):
        joint = above.get(name)
        if joint is None:
            place = _Place(None, np.eye(3), np.zeros(3))
        else:
            on = places[joint.parent]
            home = compose(
                on.rotation, on.position, joint.origin.rotation, np.array(joint.origin.position)
            )
            place = _Place(on.body, *home)
        if (joint is None and floating) or (joint is not None and joint.type != "fixed"):
            moving[name] = (place.body, place.rotation, place.position, joint)
            place = _Place(name, np.eye(3), np.zeros(3))
        places[name] = place
        link = Member(name, place.rotation, place.position, parameters(urdf.links[name].inertial))
        members.setdefault(place.body, []).append(link)
    bodies = [
        _body(urdf, name, *place, tuple(members[name]), notes) for name, place in moving.items()
    ]
    drives = [
        drive
        for name, (*_, joint) in moving.items()
        if joint is not None and joint.type in ONE_DOF
        for drive in joint.terms.drives(name, joint.name)
    ]
    left = [*urdf.left_out, *_unheard(moving.values())]
    notes += [*term_notes(drives), *left_out_notes(left)]
    return Robot(
        tuple(_without_frames(urdf, bodies, members)),
        np.array(GRAVITY) if gravity is None else np.asarray(gravity, dtype=np.float64),
        urdf.name,
        tuple(drives),
        source=Source(urdf.text.path, "urdf", urdf.text.data, tuple(notes)),
        fixed=tuple(members[None]),
        couplings=followers,
    )


def _floats(urdf: Urdf, asked: bool | None, notes: list[str]) -> bool:
    """Whether the root link floats: as asked, else where nothing else could move."""
    path = urdf.text.path
    still = all(joint.type == "fixed" for joint in urdf.joints.values())
    if still and asked is False:
        raise InputError(
            f"{path}: robot {urdf.name!r} has no moving joint: it can only float", path=path
        )
    if still and asked is None:
        notes.append(f"{path}: no joint moves: the root link {urdf.root.name!r} floats")
    return asked or still


def parameters(inertial: UrdfInertial | None) -> Array | None:
    """The ten parameters of a link in its own frame; None without ``<inertial>``."""
    if inertial is None:
        return None
    tensor = inertia.rotational_inertia([*(n.value for n in inertial.moments), 0, 0, 0, 0])
    rotation = inertial.origin.rotation
    about_com = rotation @ tensor @ rotation.T
    return inertia.from_mass_com_inertia(
        inertial.mass.value, np.array(inertial.origin.position), about_com
    )


def _unheard(
    moving: Iterable[tuple[str | None, Array, Array, UrdfJoint | None]],
) -> Iterator[LeftOut]:
    """Joint terms of joints with several degrees of freedom."""
    for *_, joint in moving:
        if joint is not None and joint.type not in ONE_DOF and joint.terms.values:
            yield LeftOut(f"<dynamics> of a {joint.type} joint", joint.name)


def _without_frames(
    urdf: Urdf, bodies: Sequence[Body], members: Mapping[str | None, Iterable[Member]]
) -> Iterator[Body]:
    """The bodies, those that are mere frames between joints massless.

    They have neither mass nor geometry and carry others, in a file that gives links a mass. Of a
    last body without mass nothing is said: it could not be moved.
    """
    carrying = {b.parent for b in bodies}
    weighed = any(link.inertial is not None for link in urdf.links.values())
    for body in bodies:
        frame = weighed and body.name in carrying and _is_frame(urdf, members[body.name])
        yield replace(body, massless=frame)


def _is_frame(urdf: Urdf, members: Iterable[Member]) -> bool:
    elements = [urdf.links[m.name].element for m in members]
    shaped = any(e.find(tag) is not None for e in elements for tag in ("visual", "collision"))
    heavy = any(m.inertial is not None and m.inertial.any() for m in members)
    return not shaped and not heavy


def _body(
    urdf: Urdf,
    name: str,
    parent: str | None,
    rotation: Array,
    position: Array,
    joint: UrdfJoint | None,
    members: tuple[Member, ...],
    notes: list[str],
) -> Body:
    body = Body(
        name,
        parent,
        rotation,
        position,
        np.eye(6) if joint is None else _motion(urdf, joint, notes),
        FLOATING_JOINT if joint is None else joint.name,
        inertial=lumped(members),
        members=members if len(members) > 1 else (),
    )
    return body if joint is None else replace(body, limits=_limits(joint))


def _motion(urdf: Urdf, joint: UrdfJoint, notes: list[str]) -> Array:
    """Motion subspace in the child's frame, angular part first."""
    if joint.type == "floating":
        return np.eye(6)
    axis = np.array(joint.axis)
    length = math.sqrt(float(axis @ axis))
    if abs(length - 1) > AXIS_TOLERANCE:
        element = joint.element.find("axis") or joint.element
        notes.append(
            f"{urdf.text.path}:{element.line}: joint {joint.name!r}: the axis has length "
            f"{length:.6g} and was normalised"
        )
    axis = axis / length
    if joint.type == "planar":
        # Rotation about the normal and translation in the plane.
        across = np.linalg.svd(axis[None, :])[2][1:]
        motion = np.zeros((6, 3))
        motion[:3, 0], motion[3:, 1:] = axis, across.T
        return motion
    motion = np.zeros((6, 1))
    motion[3 if joint.type == "prismatic" else 0 :][:3, 0] = axis
    return motion


def _limits(joint: UrdfJoint) -> Limits:
    given = dict(joint.limits)
    if joint.type == "continuous":
        given.pop("lower", None)
        given.pop("upper", None)
    return Limits(**given)
