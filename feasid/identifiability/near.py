"""Near-degenerate geometry: which joint, and which angle or offset makes it so."""

from __future__ import annotations

import numpy as np

from feasid.identifiability.echelon import Echelon
from feasid.identifiability.frames import Frames

VISIBLE = (1e-14, 1e-3)
"""Sines and relative offsets in between are suspects: neither zero nor meant."""


def near_degeneracies(echelon: Echelon) -> tuple[str, ...]:
    """One sentence per joint whose rank hangs on a tiny singular value."""
    echelon.blocks  # noqa: B018  (fills the notes)
    worst: dict[int, float] = {}
    for note in echelon.run.near_notes:
        worst[note.body] = min(worst.get(note.body, 1.0), note.value)
    return tuple(
        f"joint {echelon.run.robot.bodies[i].joint!r}: nearly degenerate geometry (a singular "
        f"value of {value:.1e}){_cause(echelon.run.frames, i, value)}: the count of base "
        "parameters hangs on it"
        for i, value in sorted(worst.items())
    )


def _cause(frames: Frames, i: int, value: float) -> str:
    """The suspect at a joint, or on the way to it, whose size is nearest to a singular value."""
    found: list[tuple[float, str]] = []
    for k in frames.robot.ancestors[i]:
        joint = repr(frames.robot.bodies[k].joint)
        for sine in _suspects(frames.rotations[k]):
            found.append((sine, f"the axes of joint {joint} are off by {sine:.2g} rad"))
        for arm in _suspects(frames.positions[k]):
            size = arm * frames.length
            found.append((arm, f"the axis of joint {joint} is offset by {size:.2g} m"))
    root = frames.robot.ancestors[i][0]
    for sine in _suspects(frames.rotations[root].T @ frames.gravity):
        found.append((sine, f"gravity is off by {sine:.2g} rad"))
    if not found:
        return ""
    return ", because " + min(found, key=lambda item: abs(np.log(item[0] / value)))[1]


def _suspects(values: np.ndarray) -> list[float]:
    size = np.abs(values).ravel()
    return [float(v) for v in size[(size > VISIBLE[0]) & (size < VISIBLE[1])]]
