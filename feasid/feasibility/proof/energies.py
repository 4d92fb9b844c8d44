"""Energies of random motions to sixty digits: what K and the faces of the cone are when angles are.

Whatever can be known of a robot's inertias is a combination of the kinetic and potential energies
of its motions (Gautier and Khalil, 1990). The rows of the energies of a few motions are computed
here in decimal arithmetic; a linear relation between their columns that holds to fifty digits on
more rows than it has coefficients holds.

A home rotation stands for the rotation that is nearest to the nine doubles that describe it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node, nodes
from feasid.dynamics.spatial import ROUNDING_TOLERANCE
from feasid.exact.poses import CONTEXT, cos_sin
from feasid.robot.description import Robot

Precise = npt.NDArray[np.object_]
"""Arrays of `decimal.Decimal`."""

ANGLES = 24
"""Different angles among the random ones: cosines of sixty digits are made once."""

POLAR_STEPS = 5
"""Each doubles the digits to which a rotation is one."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_context(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function count in sixty digits."""

    @wraps(work)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with localcontext(CONTEXT):
            return work(*args, **kwargs)

    return wrapped


def precise(numbers: Any) -> Precise:
    """Doubles as the decimals that Python prints for them."""
    array = np.asarray(numbers, dtype=np.float64)
    return np.array([Decimal(repr(float(x))) for x in array.ravel()], dtype=object).reshape(
        array.shape
    )


def largest(numbers: Precise) -> Decimal:
    """Largest absolute value; zero of nothing."""
    return max((abs(x) for x in numbers.ravel().tolist()), default=Decimal(0))


@dataclass(frozen=True, eq=False)
class Energies:
    """Of random motions of a robot.

    Attributes
    ----------
    robot : Robot
    rows : ndarray of Decimal, shape (2 samples, n)
        Twice the kinetic energies, then differences of potential energy, by parameter.
    turns, shifts : tuple of ndarray of Decimal, shape (3, samples)
        Angular and linear velocity of each node, in its own frame.
    columns : tuple of tuple of int
        Parameters of each node.
    """

    robot: Robot
    rows: Precise
    turns: tuple[Precise, ...]
    shifts: tuple[Precise, ...]
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    @in_context
    def of(cls, robot: Robot, samples: int) -> Energies | None:
        """None for mechanisms that are no trees: their dependent joints are irrational."""
        if not robot.is_tree or robot.axes != robot.dof:
            return None
        rng = np.random.default_rng(0)
        rows = np.full((2 * samples, robot.size), Decimal(0), dtype=object)
        speeds = precise(np.round(rng.uniform(-1, 1, size=(robot.dof, samples)), 3))
        tree = nodes(robot)
        done: list[tuple[Precise, ...]] = []
        for node in tree:
            base = done[node.parent] if node.parent >= 0 else _ground(samples)
            done.append(_moved(node, base, speeds[node.own], rng))
            place, turned, turn, shift = done[-1]
            columns, reduction = list(node.columns), precise(node.reduction)
            rows[:samples, columns] = _kinetic(turn, shift).T @ reduction
            height = _potential(robot.gravity, place, turned)
            rows[samples:, columns] = (height - height[:, :1]).T @ reduction
        for k in range(len(robot.drives)):
            column = robot.drive_columns(k).get("Ia")
            if column is not None:
                rows[:samples, column] = (precise(robot.coupling(k)) @ speeds) ** 2
        turns, shifts = (tuple(state[i] for state in done) for i in (2, 3))
        return cls(robot, rows, turns, shifts, tuple(node.columns for node in tree))


def _ground(samples: int) -> tuple[Precise, ...]:
    zero = np.full((3, samples), Decimal(0), dtype=object)
    turn = np.stack([precise(np.eye(3))] * samples, axis=-1)
    return zero, turn, zero, zero


def _moved(
    node: Node, base: tuple[Precise, ...], speeds: Precise, rng: np.random.Generator
) -> tuple[Precise, ...]:
    """Position (3, N) and rotation (3, 3, N) in the world, and velocities, twice (3, N)."""
    place, turned, turn, shift = base
    home = _rotation(node.rotation)
    poses = [_exponential(node.motion, rng) for _ in range(turn.shape[1])]
    inner = np.stack([home @ R for R, _ in poses], axis=-1)
    offset = np.stack([precise(node.position) + home @ p for _, p in poses], axis=-1)
    motion = precise(node.motion)
    omega = _across(inner, turn) + motion[:3] @ speeds
    velocity = _across(inner, shift + _cross(turn, offset)) + motion[3:] @ speeds
    world = np.stack([(turned[:, k, None] * inner[None, k]) for k in range(3)]).sum(axis=0)
    return place + _along(turned, offset), world, omega, velocity


def _exponential(motion: Array, rng: np.random.Generator) -> tuple[Precise, Precise]:
    """Rotation and displacement of a random motion of a joint."""
    twist = precise(motion) @ precise(np.round(rng.uniform(0.5, 1, size=motion.shape[1]), 3))
    axis, linear = twist[:3], twist[3:]
    rate = (axis @ axis).sqrt()
    which = int(rng.integers(ANGLES))
    angle, cosine, sine = _angles()[which]
    if not rate:
        return precise(np.eye(3)), linear * angle
    axis, linear = axis / rate, linear / rate
    x, y, z = axis
    none = Decimal(0)
    S = np.array([[none, -z, y], [z, none, -x], [-y, x, none]], dtype=object)
    square, one = S @ S, precise(np.eye(3))
    rotation = one + sine * S + (1 - cosine) * square
    return rotation, (angle * one + (1 - cosine) * S + (angle - sine) * square) @ linear


@lru_cache(maxsize=1)
def _angles() -> list[tuple[Decimal, Decimal, Decimal]]:
    angles = [Decimal(k * 37 % 101) / 17 + Decimal("0.1") for k in range(1, ANGLES + 1)]
    return [(angle, *cos_sin(angle)) for angle in angles]


def _rotation(matrix: Array) -> Precise:
    """The rotation nearest to one in doubles, by Newton's iteration for its polar factor."""
    out = precise(np.where(np.abs(matrix) < ROUNDING_TOLERANCE, 0.0, matrix))
    for _ in range(POLAR_STEPS):
        out = out @ (3 * precise(np.eye(3)) - out.T @ out) / 2
    return out


def _across(rotations: Precise, vectors: Precise) -> Precise:
    """R' v per sample."""
    return np.asarray((rotations * vectors[:, None]).sum(axis=0))


def _along(rotations: Precise, vectors: Precise) -> Precise:
    """R v per sample."""
    return np.asarray((rotations * vectors[None]).sum(axis=1))


def _cross(a: Precise, b: Precise) -> Precise:
    (ax, ay, az), (bx, by, bz) = a, b
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def _kinetic(turn: Precise, shift: Precise) -> Precise:
    """Twice the kinetic energy by the ten parameters, shape (10, N)."""
    x, y, z = turn
    first = 2 * _cross(shift, turn)
    squares = [x * x, 2 * x * y, 2 * x * z, y * y, 2 * y * z, z * z]
    return np.stack([*squares, *first, (shift * shift).sum(axis=0)])


def _potential(gravity: Array, place: Precise, turned: Precise) -> Precise:
    """Potential energy by the ten parameters, shape (10, N)."""
    down = -precise(gravity)
    zero = np.full((6, place.shape[1]), Decimal(0), dtype=object)
    first = (turned * down[:, None, None]).sum(axis=0)
    return np.concatenate([zero, first, (place * down[:, None]).sum(axis=0)[None]])


def spanned(columns: Precise, nothing: Decimal) -> tuple[Precise, tuple[int, ...]]:
    """A basis (s, r) of the span of columns (s, c), the identity on the rows that are returned.

    What is below `nothing`, as a fraction of the largest entry, is rounding.
    """
    left, lead = columns.copy(), list[int]()
    basis = np.empty((len(columns), 0), dtype=object)
    limit = nothing * largest(left)
    while left.size:
        row, column = np.unravel_index(int(np.abs(left).argmax()), left.shape)
        if abs(left[row, column]) <= limit:
            break
        pivot = left[:, column] / left[row, column]
        left = left - pivot[:, None] * left[row][None]
        left[row] = Decimal(0)
        basis = basis - pivot[:, None] * basis[row][None]
        basis = np.concatenate([basis, pivot[:, None]], axis=1)
        lead.append(int(row))
    basis[lead] = precise(np.eye(len(lead)))
    return basis, tuple(lead)
