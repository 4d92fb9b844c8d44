"""Joints held still: their bodies become part of the parents'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.lump import compose, lumped, placed
from feasid.robot.parts import Body, Drive, Member
from feasid.robot.rotations import exponential


def hold(
    bodies: tuple[Body, ...],
    drives: tuple[Drive, ...],
    fixed: tuple[Member, ...],
    joint: str,
    q: Array,
) -> tuple[tuple[Body, ...], tuple[Drive, ...], tuple[Member, ...]]:
    """A robot's bodies, drives and fixed links with one joint held at q, shape (n_d,)."""
    held = next(body for body in bodies if body.joint == joint)
    turn, shift = exponential(held.motion @ q)
    rotation, position = compose(held.rotation, held.position, turn, shift)
    joined = [placed(m, rotation, position) for m in _links(held)]
    left = []
    for body in bodies:
        if body is held:
            continue
        if body.name == held.parent:
            body = _joined(body, held, joined)
        elif body.parent == held.name:
            body = _moved(body, held.parent, rotation, position)
        left.append(body)
    return (
        tuple(left),
        tuple(d for old in drives if (d := _without(old, joint)) is not None),
        fixed if held.parent is not None else (*fixed, *joined),
    )


def _links(body: Body) -> tuple[Member, ...]:
    """The links of a body; its own alone when it does not list any."""
    return body.members or (Member(body.name, inertial=body.inertial),)


def _joined(parent: Body, held: Body, joined: list[Member]) -> Body:
    """The parent with the held body's links, inertia and rotor added to its own."""
    whole = Member(
        held.name,
        rotation=joined[0].rotation,
        position=joined[0].position,
        inertial=held.inertial,
    )
    parts = [Member(parent.name, inertial=parent.inertial), whole]
    if held.rotor is not None and held.rotor.values is not None:
        parts.append(
            Member(
                f"{held.name} rotor",
                rotation=held.rotor.rotation,
                position=held.rotor.position,
                inertial=_rotor_parameters(held.rotor.values),
            )
        )
    return replace(
        parent,
        inertial=lumped(parts),
        members=(*_links(parent), *joined),
        massless=parent.massless and held.massless and held.rotor is None,
    )


def _moved(body: Body, parent: str | None, rotation: Array, position: Array) -> Body:
    """A child of the held body, hung on the held body's parent."""
    home = compose(rotation, position, body.rotation, body.position)
    rotor = body.rotor
    if rotor is not None:
        turned, moved = compose(rotation, position, rotor.rotation, rotor.position)
        rotor = replace(rotor, rotation=turned, position=moved)
    return replace(body, parent=parent, rotation=home[0], position=home[1], rotor=rotor)


def _without(drive: Drive, joint: str) -> Drive | None:
    coupling = {name: factor for name, factor in drive.coupling.items() if name != joint}
    return replace(drive, coupling=coupling) if coupling else None


def _rotor_parameters(values: Array) -> Array:
    """Ten parameters of a rotor; a symmetric one gives Lxx = Lyy, Lzz, lz and m."""
    if values.shape == (10,):
        return values
    full = np.zeros(10)
    full[[0, 3, 5, 8, 9]] = values[[0, 0, 1, 2, 3]]
    return full
