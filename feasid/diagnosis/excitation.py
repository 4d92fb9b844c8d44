"""Diagnosis of what a log can show: rank, conditioning, and what stays unseen."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.errors import FeasidError
from feasid.identifiability.base import base_parameters
from feasid.logs.motion import Motion
from feasid.reduction.triangle import Reducer
from feasid.robot.description import Robot

UNSEEN = 1e-4
"""Directions whose signal is below this share of the strongest are taken for unseen."""

WEAK = 1e-3
"""Below this reciprocal condition number a better motion is advised."""

DOMINANT = 0.35
"""Entries of a unit vector of parameters from which they are named."""

MOST_SAMPLES = 4000


def check_excitation(motion: Motion, robot: Robot) -> list[Finding]:
    """Effective rank of the log against the structural number of base parameters.

    The columns of the triangle R are scaled to the size that they have in a random motion with
    the log's own ranges of position, velocity and acceleration, so that grams and metres do not
    decide what counts as seen.
    """
    try:
        base = base_parameters(robot)
    except FeasidError:
        return []
    columns = [int(c) for c in base.independent]
    step = max(1, motion.samples // MOST_SAMPLES)
    reducer, other = Reducer(robot, columns), Reducer(robot, columns)
    parts = [[getattr(r, k)[::step] for k in ("q", "dq", "ddq")] for r in motion.runs]
    q, dq, ddq = (np.concatenate([p[k] for p in parts]) for k in range(3))
    reducer.add(q, dq, ddq, np.zeros_like(q))
    rng = np.random.default_rng(0)
    speed, push = (rng.uniform(-1, 1, q.shape) * np.abs(x).max() for x in (dq, ddq))
    other.add(rng.uniform(-np.pi, np.pi, q.shape), speed, push, np.zeros_like(q))
    triangle, reference = reducer.result().triangle()[0], other.result().triangle()[0]
    scale = np.linalg.norm(reference, axis=0)
    scale[scale == 0] = 1.0
    _, singular, right = np.linalg.svd(triangle / scale)
    rank = int((singular > UNSEEN * singular[0]).sum()) if singular.size else 0
    if rank < len(columns):
        return [_unexcited_finding(robot, rank, right[rank:], base.expressions, dq)]
    return [
        _weakest_direction_finding(float(singular[-1] / singular[0]), right[-1], base.expressions)
    ]


def _dominant_expressions(vector: Array, expressions: tuple[str, ...]) -> str:
    large = np.argsort(-np.abs(vector))[:3]
    return ", ".join(_leading_term(expressions[k]) for k in large if abs(vector[k]) > DOMINANT)


def _leading_term(expression: str) -> str:
    """The leading term of a base parameter's expression."""
    head = expression.split(" ")[0]
    return head + (" ..." if head != expression else "")


def _weakest_direction_finding(
    ratio: float, vector: Array, expressions: tuple[str, ...]
) -> Finding:
    """All base parameters are excited; the finding names the direction with the least."""
    weak = ratio < WEAK
    return Finding(
        "excitation",
        "note",
        f"all {len(expressions)} base parameters are seen, the weakest direction "
        f"{1 / ratio:.2g} times less than the strongest: "
        f"{_dominant_expressions(vector, expressions)}",
        "a longer or richer motion would help: feasid.excite(robot)" if weak else "",
    )


def _unexcited_finding(
    robot: Robot, rank: int, hidden: Array, expressions: tuple[str, ...], dq: Array
) -> Finding:
    worst = "; ".join(
        filter(None, (_dominant_expressions(v, expressions) for v in hidden[::-1][:4]))
    )
    names = robot.coordinates
    speed = np.abs(dq).max(axis=0)
    idle = tuple(n for n, v in zip(names, speed, strict=True) if v < 0.05 * speed.max())
    alike = _moving_alike(dq, names)
    advice = ""
    if idle:
        advice = f"move {', '.join(idle)}"
    elif alike:
        advice = f"move {alike[0]} and {alike[1]} independently of each other"
    return Finding(
        "excitation",
        "note",
        f"{rank} of {len(expressions)} base parameters are seen; unseen combinations lean on "
        f"{worst or 'many parameters'}",
        f"{advice or 'a richer motion'}: feasid.excite(robot)",
        idle,
    )


def _moving_alike(dq: Array, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Two joints whose velocities are multiples of each other."""
    size = np.linalg.norm(dq, axis=0)
    likeness = np.abs(dq.T @ dq) / np.maximum(np.outer(size, size), 1e-300) - np.eye(len(names))
    i, j = np.unravel_index(int(np.argmax(likeness)), likeness.shape)
    return (names[i], names[j]) if likeness[i, j] > 0.97 else None
