"""Limits of a motion per joint: position, velocity, acceleration, jerk and torque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from feasid.core.arguments import as_numbers
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.text import quote
from feasid.robot.description import Robot

LARGEST_LIMIT = 1e9  #: Beyond any machine, and small enough that products of limits stay finite.

UNITS = {
    "position": "rad or m",
    "velocity": "per s",
    "acceleration": "per s^2",
    "jerk": "per s^3",
    "torque": "N m or N",
}


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper limits, each of shape (2, dof); infinite where there is none."""

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    torque: Array

    @property
    def derivative_limits(self) -> tuple[Array, ...]:
        """Limits of q and its first three derivatives, in this order."""
        return self.position, self.velocity, self.acceleration, self.jerk

    @property
    def middle_posture(self) -> Array:
        """Middle of the position range, shape (dof,)."""
        return np.asarray(self.position.mean(axis=0))

    def limits_by_name(self) -> list[tuple[str, Array]]:
        """Kinds of limits by name."""
        return [(f.name, getattr(self, f.name)) for f in fields(self)]


def resolve_bounds(robot: Robot, **given: Any) -> tuple[Bounds, list[str]]:
    """The limits of a motion, and notes on assumptions.

    The robot gives the limits that the caller leaves out; others are `feasid.excite`'s, or of shape
    (2, dof). Raises InputError: names the joint whose limits are missing or exclude each other.
    """
    notes: list[str] = []
    limits = {kind: np.tile([[-np.inf], [np.inf]], robot.dof) for kind in UNITS}
    for j, stated in enumerate(body.limits for body in robot.bodies):
        limits["position"][0, j] = -np.inf if stated.lower is None else stated.lower
        limits["position"][1, j] = np.inf if stated.upper is None else stated.upper
        for kind, bound in (("velocity", stated.velocity), ("torque", stated.effort)):
            if bound:  # zero is how files leave a limit out
                limits[kind][:, j] = -bound, bound
    lacks_inertials = np.isnan(robot.values[robot.inertial_columns]).any()
    if given.get("torque") is None:
        if np.isfinite(limits["torque"]).any() and lacks_inertials:
            notes.append("torque limits are ignored, because the description has no inertials")
            limits["torque"] = np.tile([[-np.inf], [np.inf]], robot.dof)
    elif lacks_inertials:
        raise InputError(
            f"torque limits need inertials, which the description of {robot.name!r} lacks for "
            f"some bodies: leave torque out"
        )
    for kind, value in given.items():
        if isinstance(value, Mapping):
            for joint, entry in value.items():
                limits[kind][:, robot.joint_index(joint)] = _limit_pair(kind, entry, 1, joint)[:, 0]
        elif value is not None:
            limits[kind] = _limit_pair(kind, value, robot.dof, None)
    bounds = Bounds(**limits)
    placed = np.asarray(np.isfinite(bounds.position).all(axis=0))
    rated = np.asarray(np.isfinite([bounds.velocity, bounds.acceleration]).all(axis=1).any(axis=0))
    rates = {"velocity": "bound", "acceleration": "bound"}
    # All joints of one remedy at once: a robot may have several that turn without end.
    for known, lack, ways in (
        (placed, "no position", {"position": "(low, high)"}),
        (rated, "neither velocity nor acceleration", rates),
    ):
        joints = [joint for joint, there in zip(robot.joints, known, strict=True) if not there]
        if joints:
            who = "joint {} has" if len(joints) == 1 else "joints {} have"
            remedy = " or ".join(
                f"{kind}={{{', '.join(f'{joint!r}: {form}' for joint in joints)}}}"
                for kind, form in ways.items()
            )
            names = ", ".join(map(repr, joints))
            raise InputError(f"{who.format(names)} {lack} limits: pass {remedy}", joint=joints[0])
    for kind, (low, high) in bounds.limits_by_name():
        for j, joint in enumerate(robot.joints):
            # Postures need not include zero, and a joint's weight may need torques of one sign.
            allows_rest = kind in ("position", "torque") or low[j] < 0 < high[j]
            if not low[j] < high[j] or not allows_rest:
                why = "leave no room" if allows_rest else "exclude standstill, which a period needs"
                raise InputError(
                    f"{kind} limits of joint {joint!r}, {low[j]:g} to {high[j]:g} "
                    f"[{UNITS[kind]}], {why}",
                    joint=joint,
                )
    return bounds, notes


def _limit_pair(kind: str, value: Any, count: int, joint: str | None) -> Array:
    """Lower and upper limits of `count` joints, shape (2, count)."""
    what = f"{kind} of joint {joint!r}" if joint else kind
    message = f"{what} must be a bound, a tuple (low, high) or an array of shape ({count},)"
    try:
        if isinstance(value, tuple) and len(value) == 2:
            ends = [as_numbers(v, finite=False) for v in value]
        else:
            array = as_numbers(value, finite=False)
            ends = [array[0], array[1]] if array.ndim == 2 and len(array) == 2 else [-array, array]
        pair = np.stack([np.broadcast_to(end, (count,)) for end in ends])
    except (TypeError, ValueError) as error:
        raise InputError(f"{message}, not {quote(value)}") from error
    if np.isnan(pair).any():
        raise InputError(f"{what} has an entry that is NaN: {value!r}")
    if (np.isfinite(pair) & (np.abs(pair) > LARGEST_LIMIT)).any():
        raise InputError(f"{what} is larger than {LARGEST_LIMIT:g}: {value!r}; inf is no limit")
    return pair
