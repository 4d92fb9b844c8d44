"""Nearly degenerate geometry: the joint, and the angle or offset that causes it.

Some effects are of second order in a small angle and vanish in rounding, so singular values alone
do not show which ranks are doubtful. Angles and offsets between 1e-14 and 1e-5 are: between
neighbouring axes, whatever the frames. An answer hangs on them if it changes when all of them are
made exact, or made as large as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.parameters.identifiability.echelon import Echelon, JointNullspace
from feasid.parameters.identifiability.frames import (
    DEGENERACY_RANGE,
    Frames,
    cosine_and_sine,
    nearly_degenerate_joints,
)
from feasid.parameters.identifiability.rounding import exact_rotation
from feasid.robot.bodies import Body
from feasid.robot.rotations import exponential

SUSPECT_RANGE = (1e-14, 1e-3)
"""Sines and relative offsets in between may be the cause of a small singular value."""

ENLARGED_SIZE = 0.05
"""Angle [rad] or relative offset to which doubtful ones are enlarged to see if they matter."""

MAX_DOUBTFUL_VALUE = 1e-9
"""Singular values below this are doubtful, even if no small angle explains them."""


def find_near_degeneracies(echelon: Echelon, blocks: Sequence[JointNullspace]) -> dict[int, str]:
    """Joints whose result depends on a tiny angle, offset or singular value, and this cause.

    `echelon`: computed in floating point; `blocks`: the blocks in use, perhaps from exact
    arithmetic.
    """
    frames = echelon.run.frames
    worst, doubtful = echelon.run.doubtful_values, nearly_degenerate_joints(frames)
    if not doubtful:
        return {
            i: f"a singular value of {value:.1e}{_nearest_small_quantity(frames, i, value)}): "
            "the count of base parameters"
            for i, value in worst.items()
            if value < MAX_DOUBTFUL_VALUE
        }
    variants = []  # the joints' blocks when doubtful angles and offsets have another size
    for size in (0.0, ENLARGED_SIZE):
        bodies, down = [*frames.robot.bodies], _resize_small_entries(frames.gravity, size)
        for i in doubtful:
            bodies[i] = _resize_degeneracies(frames, i, bodies[i], size, down)
        resized = replace(frames.robot, bodies=tuple(bodies), gravity=down * frames.gravity_size)
        variants.append(replace(echelon, run=echelon.run.with_robot(resized)).joint_nullspaces)
    out = {}
    for i, three in enumerate(zip(blocks, *variants, strict=True)):
        suspects = [
            s for k in reversed(frames.robot.ancestors[i]) for s in _small_quantities_at(frames, k)
        ]
        cause = min(suspects)[1] if suspects else "an angle or offset on the way to it is tiny"
        if i in worst:
            quantity = _nearest_small_quantity(frames, i, worst[i])
            cause = f"a singular value of {worst[i]:.1e}{quantity}"
        if len({b.independent.size for b in three}) > 1:
            out[i] = f"{cause}): the count of base parameters"
        elif blocks is echelon.joint_nullspaces and len({tuple(b.independent) for b in three}) > 1:
            out[i] = f"{cause}): which parameters lead"
    return out


def _nearest_small_quantity(frames: Frames, i: int, value: float) -> str:
    """The suspect whose size is nearest to a singular value."""
    quantities = [s for k in frames.robot.ancestors[i] for s in _small_quantities_at(frames, k)]
    if not quantities:
        return ""
    return ", because " + min(quantities, key=lambda item: abs(np.log(item[0] / value)))[1]


# -- the same robot with doubtful features of another size ---------------------------------------


def _resize_degeneracies(frames: Frames, i: int, body: Body, size: float, down: Array) -> Body:
    """A body whose doubtful home angles and offsets have this size."""
    p = frames.robot.parents[i]
    parent_axis = down if p < 0 else _joint_axis(frames, p)
    rotation = body.rotation
    exact, _ = exact_rotation(rotation, DEGENERACY_RANGE[1])
    small = exact.T @ rotation
    sines = np.array([small[2, 1], small[0, 2], small[1, 0]])
    deviation = float(np.linalg.norm(sines))
    if deviation >= DEGENERACY_RANGE[0]:
        twist = np.r_[size * sines / deviation, np.zeros(3)]
        rotation = np.asarray(exact @ exponential(twist)[0], dtype=np.float64)
    # Two axes that are off parallel or perpendicular get this angle, too.
    there = rotation @ _joint_axis(frames, i)
    normal = np.cross(parent_axis, there)
    cosine, sine = float(parent_axis @ there), float(np.linalg.norm(normal))
    angle = 0.0
    if DEGENERACY_RANGE[0] <= sine < DEGENERACY_RANGE[1]:
        angle = (size - sine) * np.sign(cosine)
    elif DEGENERACY_RANGE[0] < abs(cosine) < DEGENERACY_RANGE[1]:
        angle = cosine - size * np.sign(cosine)
    if angle:
        twist = np.r_[angle * normal / sine, np.zeros(3)]
        rotation = np.asarray(exponential(twist)[0] @ rotation, dtype=np.float64)
    if p < 0:
        return replace(body, rotation=rotation)
    arm = frames.positions[i]
    push = _resize_small_entries(arm, size) - arm
    # Axes along the parent's, the common normal of both, and across both.
    normal = np.cross(parent_axis, frames.rotations[i] @ _joint_axis(frames, i))
    if np.linalg.norm(normal) < DEGENERACY_RANGE[1]:
        normal = np.cross(parent_axis, np.eye(3)[int(np.argmin(np.abs(parent_axis)))])
    normal = normal / np.linalg.norm(normal)
    basis = np.stack([parent_axis, normal, np.cross(parent_axis, normal)], axis=1)
    inner = basis.T @ (arm + push)
    push = push + basis @ (_resize_small_entries(inner, size) - inner)
    return replace(body, rotation=rotation, position=body.position + frames.length * push)


def _resize_small_entries(values: Array, size: float) -> Array:
    small = (np.abs(values) > DEGENERACY_RANGE[0]) & (np.abs(values) < DEGENERACY_RANGE[1])
    return np.where(small, size * np.sign(values), values)


# -- suspects ------------------------------------------------------------------------------------


def _small_quantities_at(frames: Frames, k: int) -> list[tuple[float, str]]:
    """Small angles and offsets at one joint: relative size and description."""
    joint = repr(frames.robot.bodies[k].joint)
    parent = frames.robot.parents[k]
    quantities: list[tuple[float, str]] = []
    angles = _nearly_zero_sizes(frames.rotations[k])
    if parent >= 0:
        axis, base = frames.rotations[k] @ _joint_axis(frames, k), _joint_axis(frames, parent)
        angles += _nearly_zero_sizes(cosine_and_sine(axis[None], base[None])[0])
    for sine in angles:
        quantities.append((sine, f"the axes of joint {joint} are off by {sine:.2g} rad"))
    for arm in _nearly_zero_sizes(frames.positions[k]) if parent >= 0 else []:
        size = arm * frames.length
        quantities.append((arm, f"the axis of joint {joint} is offset by {size:.2g} m"))
    if parent < 0:
        turned = frames.rotations[k].T @ frames.gravity
        sines = np.r_[turned, cosine_and_sine(turned[None], _joint_axis(frames, k)[None])[0]]
        for sine in _nearly_zero_sizes(sines):
            quantities.append((sine, f"gravity is off by {sine:.2g} rad"))
    return quantities


def _joint_axis(frames: Frames, k: int) -> Array:
    """Direction of a joint's first screw."""
    screw = frames.screws[k][0]
    axis = screw[:3] if screw[:3].any() else screw[3:]
    return np.asarray(axis / np.linalg.norm(axis))


def _nearly_zero_sizes(values: Array) -> list[float]:
    size = np.abs(values).ravel()
    return [float(v) for v in size[(size > SUSPECT_RANGE[0]) & (size < SUSPECT_RANGE[1])]]
