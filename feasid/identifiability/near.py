"""Near-degenerate geometry: which joint, and which angle or offset makes it so.

Singular values between 1e-12 and 1e-5 show it where an effect is as large as its cause. Some
effects are of second order in a small angle and vanish in rounding, so angles and offsets that
are small themselves count too, unless enlarging them leaves every rank as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from feasid.arrays import Array
from feasid.identifiability.frames import Frames
from feasid.identifiability.nullspace import Recursion
from feasid.identifiability.snap import exact_rotation
from feasid.robot.inertia import skew

if TYPE_CHECKING:
    from feasid.identifiability.coefficients import Coefficients

VISIBLE = (1e-14, 1e-3)
"""Sines and relative offsets in between may be the cause of a small singular value."""

DOUBTFUL = (1e-14, 1e-5)
"""Sines and relative offsets in between are in doubt whatever the singular values."""

ENLARGED = 0.05
"""Angle [rad] or relative offset to which doubtful ones are enlarged to see if they matter."""


def doubtful_joints(frames: Frames) -> tuple[int, ...]:
    """Joints with an angle or offset that is nearly but not quite exact."""
    parents = np.array(frames.robot.parents)
    n = len(parents)
    inner = parents >= 0
    sizes = np.zeros((n, 17))
    sizes[:, :9] = frames.rotations.reshape(n, 9)
    sizes[inner, 9:12] = frames.positions[inner]
    turned = np.where(frames.single[:, :3].any(axis=1, keepdims=True), *_halves(frames.single))
    there = np.einsum("nij,nj->ni", frames.rotations[inner], turned[inner])
    sizes[inner, 12:14] = _relation(there, turned[parents[inner]])
    pulled = np.einsum("nji,j->ni", frames.rotations[~inner], frames.gravity)
    sizes[~inner, 12:14] = _relation(pulled, turned[~inner])
    sizes[~inner, 14:17] = pulled
    sizes = np.abs(sizes)
    return tuple(
        np.flatnonzero(((sizes > DOUBTFUL[0]) & (sizes < DOUBTFUL[1])).any(axis=1)).tolist()
    )


def _halves(screws: Array) -> tuple[Array, Array]:
    return screws[:, :3], screws[:, 3:]


def _relation(a: Array, b: Array) -> Array:
    """Cosine and sine of the angle between directions, (n, 3) and (n, 3) to (n, 2)."""
    sine = np.sqrt((np.cross(a, b) ** 2).sum(axis=1))
    return np.stack([np.einsum("ni,ni->n", a, b), sine], axis=1)


def near_degeneracies(coefficients: Coefficients) -> tuple[str, ...]:
    """One sentence per joint whose rank hangs on a tiny singular value or a tiny angle."""
    run = coefficients.echelon.run
    blocks = coefficients.blocks
    worst: dict[int, float] = {}
    for note in run.near_notes:
        worst[note.body] = min(worst.get(note.body, 1.0), note.value)
    floating = [b.independent.size for b in coefficients.echelon.blocks]
    if coefficients.exact is not None:
        settled = floating == [b.independent.size for b in blocks]
    else:
        settled = not doubtful_joints(run.frames) or floating == _count_if_meant(coefficients)
    out = {
        i: f"a singular value of {value:.1e}{_because(_suspects_on_the_way(run.frames, i), value)}"
        for i, value in worst.items()
    }
    for i in () if settled else doubtful_joints(run.frames):
        suspects = _own_suspects(run.frames, i)
        if suspects:
            out.setdefault(i, min(suspects)[1])
    return tuple(
        f"joint {run.robot.bodies[i].joint!r}: nearly degenerate geometry ({cause}): the count of "
        "base parameters hangs on it"
        for i, cause in sorted(out.items())
    )


def _count_if_meant(coefficients: Coefficients) -> list[int]:
    """Counts per joint with the tiny angles and offsets enlarged, so that they can be felt."""
    echelon = coefficients.echelon
    frames = echelon.run.frames
    bodies = [*frames.robot.bodies]
    for i in doubtful_joints(frames):
        arm = frames.positions[i]
        push = np.where(np.abs(arm) < DOUBTFUL[1], ENLARGED * frames.length * np.sign(arm), 0.0)
        rotation = _enlarged(bodies[i].rotation)
        bodies[i] = replace(
            bodies[i], rotation=rotation, position=bodies[i].position + np.where(arm, push, 0.0)
        )
    pull = frames.gravity
    off = np.where(np.abs(pull) < DOUBTFUL[1], ENLARGED * frames.pull * np.sign(pull), 0.0)
    robot = replace(frames.robot, bodies=tuple(bodies), gravity=frames.robot.gravity + off)
    run = Recursion.of(robot, echelon.run.measured, echelon.run.static)
    return [b.independent.size for b in replace(echelon, run=run).blocks]


def _enlarged(rotation: Array) -> Array:
    """The rotation with its tiny deviation from an exact one made `ENLARGED`."""
    exact, _ = exact_rotation(rotation, DOUBTFUL[1])
    small = exact.T @ rotation
    sines = np.array([small[2, 1], small[0, 2], small[1, 0]])
    size = float(np.linalg.norm(sines))
    if size < DOUBTFUL[0]:
        return rotation
    axis = skew(sines / size)
    turn = np.eye(3) + np.sin(ENLARGED) * axis + (1 - np.cos(ENLARGED)) * axis @ axis
    return np.asarray(exact @ turn, dtype=np.float64)


def _because(found: list[tuple[float, str]], value: float) -> str:
    """The suspect whose size is nearest to a singular value."""
    if not found:
        return ""
    return ", because " + min(found, key=lambda item: abs(np.log(item[0] / value)))[1]


def _suspects_on_the_way(frames: Frames, i: int) -> list[tuple[float, str]]:
    return [found for k in frames.robot.ancestors[i] for found in _own_suspects(frames, k)]


def _own_suspects(frames: Frames, k: int) -> list[tuple[float, str]]:
    """Small angles and offsets at one joint: relative size and description."""
    joint = repr(frames.robot.bodies[k].joint)
    parent = frames.robot.parents[k]
    found: list[tuple[float, str]] = []
    angles = _small(frames.rotations[k])
    if parent >= 0:
        angles += _small(_between(frames, k, parent))
    for sine in angles:
        found.append((sine, f"the axes of joint {joint} are off by {sine:.2g} rad"))
    for arm in _small(frames.positions[k]) if parent >= 0 else []:
        size = arm * frames.length
        found.append((arm, f"the axis of joint {joint} is offset by {size:.2g} m"))
    if parent < 0:
        turned = frames.rotations[k].T @ frames.gravity
        sines = np.r_[turned, _relation(turned[None], _axis(frames, k)[None])[0]]
        for sine in _small(sines):
            found.append((sine, f"gravity is off by {sine:.2g} rad"))
    return found


def _axis(frames: Frames, k: int) -> Array:
    """Direction of a joint's first screw."""
    screw = frames.screws[k][0]
    return np.asarray(screw[:3] if screw[:3].any() else screw[3:])


def _between(frames: Frames, k: int, parent: int) -> Array:
    """Cosine and sine of the angle between a joint's axis and its parent's, at home."""
    own, other = frames.rotations[k] @ _axis(frames, k), _axis(frames, parent)
    return np.asarray(_relation(own[None], other[None])[0])


def _small(values: Array) -> list[float]:
    size = np.abs(values).ravel()
    return [float(v) for v in size[(size > VISIBLE[0]) & (size < VISIBLE[1])]]
