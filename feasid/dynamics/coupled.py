"""All joints' motion from the independent coordinates: couplings and closed loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.description import Robot


@dataclass(frozen=True, eq=False)
class Carried:
    """The map from independent coordinates s to joint coordinates q of one robot.

    Attributes
    ----------
    robot : Robot
    rows : tuple of tuple of int
        Per independent coordinate the joint coordinates that it can move.
    """

    robot: Robot
    rows: tuple[tuple[int, ...], ...]

    def motion(self, s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq, shape (axes, N), and dq/ds, (axes, dof, N) or (axes, dof, 1).

        Raises
        ------
        InputError
            Where a loop cannot close, or is singular.
        """
        closure, coupled = self.robot.closure, self.robot.coupled
        if closure is not None:
            return closure.motion(s, ds, dds)
        A = coupled.A
        return A @ s + coupled.b[:, None], A @ ds, A @ dds, A[:, :, None]


def carried(robot: Robot) -> Carried:
    """The map of a robot."""
    A, closure = robot.coupled.A, robot.closure
    moves = A != 0
    if closure is not None:
        moves = moves[:, closure.active] | (moves[:, closure.passive] @ closure.follows.T)
    return Carried(robot, tuple(tuple(np.flatnonzero(m).tolist()) for m in moves.T))
