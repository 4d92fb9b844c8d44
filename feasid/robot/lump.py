"""Links that move as one body: their poses composed, their inertial parameters added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.parts import Member


def compose(
    rotation: Array, position: Array, inner_rotation: Array, inner_position: Array
) -> tuple[Array, Array]:
    """Pose (rotation, position) of a frame given in another frame that itself has a pose."""
    return rotation @ inner_rotation, position + rotation @ inner_position


def placed(member: Member, rotation: Array, position: Array) -> Member:
    """The same link seen from another frame, in which the present one has this pose."""
    turned, moved = compose(rotation, position, member.rotation, member.position)
    return replace(member, rotation=turned, position=moved)


def parameters_in_body(member: Member) -> Array:
    """A link's ten parameters in its body's frame; exactly its own when the frames are one."""
    if member.inertial is not None and _is_identity(member):
        return member.inertial
    return member.in_body()


def lumped(members: Iterable[Member]) -> Array | None:
    """Sum of the links' parameters in the body's frame; None when no link has any."""
    parts = [parameters_in_body(m) for m in members if m.inertial is not None]
    return np.sum(parts, axis=0) if parts else None


def _is_identity(member: Member) -> bool:
    return bool((member.rotation == np.eye(3)).all()) and not member.position.any()
