"""Forces from outside, as generalised forces by the Jacobians of where they act.

Equations of motion of a robot that touches something are ``Y delta = tau + sum J_c' f_c``. Forces
that are measured are added to the torques; rows in the null space of all J_c hold without them:
with Z J_c' = 0, ``Z Y delta = Z tau``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import nodes, propagate
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import InputError, did_you_mean
from feasid.robot.description import Robot

RANK_TOLERANCE = 1e-8
"""Singular values of contact Jacobians below this, relative to the largest, are zero."""


@dataclass(frozen=True, eq=False)
class Contact:
    """A point of a body that is touched, and the force it gets.

    Parameters
    ----------
    body : str
    position : array_like, shape (3,)
        In the body's frame [m].
    force : array_like, shape (samples, 3), optional
        On the robot, in world axes [N]; needed where it counts as known.
    moment : array_like, shape (samples, 3), optional
        On the robot about the point, in world axes [N m].
    """

    body: str
    position: npt.ArrayLike = (0.0, 0.0, 0.0)
    force: npt.ArrayLike | None = None
    moment: npt.ArrayLike | None = None


def frame_jacobian(robot: Robot, q: npt.ArrayLike, body: str, position: npt.ArrayLike) -> Array:
    """Velocity of a body's point per generalised velocity, (samples, 6, dof), in world axes.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (samples, dof)
        As for `feasid.regressor`.
    body : str
    position : array_like, shape (3,)
        Of the point in the body's frame [m].

    Returns
    -------
    ndarray, shape (samples, 6, dof)
        Angular velocity of the body, then linear velocity of the point.

    Raises
    ------
    InputError
        No such body; joints that are coupled or in loops.
    """
    names = [b.name for b in robot.bodies]
    if body not in names:
        raise InputError(f"robot {robot.name!r} has no body {body!r}{did_you_mean(body, names)}")
    if not robot.is_tree:
        raise InputError(f"contacts of robot {robot.name!r}: its joints are coupled or in loops")
    positions = as_samples_last(np.atleast_2d(np.asarray(q, dtype=np.float64)))
    if positions.shape[0] != robot.dof:
        raise InputError(f"q has {positions.shape[0]} columns, expected {robot.dof}")
    point = np.asarray(position, dtype=np.float64)
    i = names.index(body)
    still = np.zeros_like(positions)
    tree = nodes(robot)
    states = []
    for state in propagate(tree[: i + 1], robot.gravity, positions, still, still):
        states.append(state)
    turns = states[i].angular_axes
    moved = np.cross(turns, point[:, None, None], axis=0) + states[i].linear_axes
    both = np.concatenate([turns, moved], axis=1)
    for k in reversed(robot.ancestors[i]):
        both = states[k].pose.to_parent(both)
    out = np.zeros((positions.shape[1], 6, robot.dof))
    rows = list(tree[i].rows)
    out[:, :3, rows] = both[:, : len(rows)].transpose(2, 0, 1)
    out[:, 3:, rows] = both[:, len(rows) :].transpose(2, 0, 1)
    return out


def contact_torques(robot: Robot, q: npt.ArrayLike, contacts: Sequence[Contact]) -> Array:
    """Generalised forces of known contacts, ``sum J' f``, to be added to torques.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (samples, dof)
        As for `feasid.regressor`.
    contacts : sequence of Contact
        Each with its force, its moment, or both, shape (samples, 3) [N, N m].

    Returns
    -------
    ndarray, shape (samples, dof)
        [N m or N]

    Raises
    ------
    InputError
        Names the contact whose force is missing, not finite or of the wrong shape.
    """
    count = len(np.atleast_2d(np.asarray(q, dtype=np.float64)))
    out = np.zeros((count, robot.dof))
    for contact in contacts:
        if contact.force is None and contact.moment is None:
            raise InputError(f"the contact on body {contact.body!r} has neither force nor moment")
        jacobian = frame_jacobian(robot, q, contact.body, contact.position)
        for part, values in ((slice(0, 3), contact.moment), (slice(3, 6), contact.force)):
            if values is None:
                continue
            array = np.asarray(values, dtype=np.float64)
            what = "force" if part.start else "moment"
            if array.shape != (count, 3) or not np.isfinite(array).all():
                raise InputError(
                    f"the {what} on body {contact.body!r} must be finite, of shape ({count}, 3), "
                    f"not {array.shape}"
                )
            out += np.einsum("nij,ni->nj", jacobian[:, part], array)
    return out


def free_projector(
    robot: Robot, q: npt.ArrayLike, contacts: Sequence[Contact], touching: npt.ArrayLike
) -> Array:
    """Orthogonal projectors P (samples, dof, dof) with ``P J' = 0`` for the points that touch.

    Multiplied with regressor and torques, unknown contact forces drop out; see `free_rows`.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (samples, dof)
    contacts : sequence of Contact
        Without forces.
    touching : array_like of bool, shape (samples, contacts)
    """
    flags = np.asarray(touching, dtype=np.float64)
    jacobians = [frame_jacobian(robot, q, c.body, c.position)[:, 3:] for c in contacts]
    parts = [j * flags[:, k, None, None] for k, j in enumerate(jacobians)]
    _, s, vt = np.linalg.svd(np.concatenate(parts, axis=1), full_matrices=False)
    held = vt * (s > RANK_TOLERANCE * s[:, :1])[:, :, None]
    return np.asarray(np.eye(robot.dof) - held.transpose(0, 2, 1) @ held)


def free_rows(robot: Robot, q: npt.ArrayLike, contacts: Sequence[Contact]) -> list[Array]:
    """Per sample Z with ``Z J' = 0`` for the points touched.

    Multiplied with regressor and torques, unknown contact forces drop out.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (samples, dof)
        As for `feasid.regressor`.
    contacts : sequence of Contact
        Points that are touched, at least one; forces are not needed.

    Returns
    -------
    list of ndarray, shape (dof - rank, dof)
        One per sample, with orthonormal rows.

    Raises
    ------
    InputError
        No such body; joints that are coupled or in loops; `q` of the wrong shape.
    """
    stacked = np.concatenate(
        [frame_jacobian(robot, q, c.body, c.position)[:, 3:] for c in contacts], axis=1
    )
    pad = max(0, robot.dof - stacked.shape[1])
    stacked = np.concatenate([stacked, np.zeros((len(stacked), pad, robot.dof))], axis=1)
    _, s, vt = np.linalg.svd(stacked, full_matrices=False)
    ranks = (s > RANK_TOLERANCE * s[:, :1]).sum(axis=1)
    return [v[rank:] for v, rank in zip(vt, ranks, strict=True)]
