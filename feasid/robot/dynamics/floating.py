"""The motion of a robot whose base floats, from poses, twists or an IMU, as q, dq and ddq.

`feasid.regressor` and `feasid.inverse_dynamics` take the base like any joint of six degrees of
freedom: exponential coordinates, the twist in the base's own axes (angular part first, linear
velocity of its origin), and the rate of change of that twist's coordinates. This module computes
them from logged signals. With R the base's orientation, omega and v in its own axes,

    omega = R' omega_w,   omega' = R' omega_w'
    v = R' v_w,           v' = R' a_w - omega x v

as the axes turn themselves. Rows of the regressor come out as six for the base, the moment about
its origin and the force on it in its own axes, then one per joint.

Forces from outside, as generalised forces by the Jacobians of where they act.

Equations of motion of a robot that touches something are ``Y delta = tau + sum J_c' f_c``. Forces
that are measured are added to the torques; rows in the null space of all J_c hold without them:
with Z J_c' = 0, ``Z Y delta = Z tau``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from feasid.core.arguments import checked
from feasid.core.arrays import Array, require_finite
from feasid.core.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import nodes, propagate
from feasid.robot.dynamics.spatial import as_samples_last
from feasid.robot.layout import find_link

UNIT = 1e-3  #: Largest difference of a logged quaternion's norm from 1; four decimals lose less.
SMALL = 1e-3  #: Angle [rad] below which the series is used; it is exact to rounding there.


@dataclass(frozen=True, eq=False)
class FloatingMotion:
    """Generalised positions, velocities and accelerations, each of shape (samples, dof)."""

    q: Array
    dq: Array
    ddq: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.q, self.dq, self.ddq))


@checked
def rotation_matrices(quaternion: npt.ArrayLike, order: Literal["xyzw", "wxyz"] = "xyzw") -> Array:
    """Rotations (samples, 3, 3) of unit quaternions (samples, 4).

    Parameters
    ----------
    quaternion : array_like, shape (samples, 4)
    order : {"xyzw", "wxyz"}
        Scalar part last (ROS, Pinocchio) or first (MuJoCo).

    Returns
    -------
    ndarray, shape (samples, 3, 3)

    Raises
    ------
    InputError
        A sample is not a unit quaternion; the message names the first one.
    """
    values = _check_samples(quaternion, (4,), "quaternion")
    norm = np.linalg.norm(values, axis=1)
    bad = np.flatnonzero(np.abs(norm - 1) > UNIT)
    if bad.size:
        raise InputError(
            f"quaternion[{bad[0]}] has norm {norm[bad[0]]:.6g}, not 1: which columns hold it, and "
            "in which order?",
            row=int(bad[0]),
        )
    x, y, z, w = (values / norm[:, None])[:, [*map(order.index, "xyzw")]].T
    out = np.empty((len(values), 3, 3))
    out[:, 0] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], 1)
    out[:, 1] = np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], 1)
    out[:, 2] = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1)
    return out


@checked
def floating_motion(
    robot: Robot,
    joints: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    *,
    rotation: npt.ArrayLike,
    twist: npt.ArrayLike,
    acceleration: npt.ArrayLike,
    position: npt.ArrayLike | None = None,
    axes: Literal["body", "world"] = "body",
) -> FloatingMotion:
    """Motion of a floating robot from its base's pose, twist and acceleration.

    Parameters
    ----------
    robot : Robot
        With a floating base: ``load_robot(path, floating=True)``.
    joints : three array_like, shape (samples, dof - 6)
        Positions, velocities and accelerations of the other joints, in their order.
    rotation : array_like, shape (samples, 3, 3)
        Orientation of the base in the world; `rotation_matrices` makes it of quaternions.
    twist : array_like, shape (samples, 6)
        Angular velocity [rad/s], then linear velocity of the base's origin [m/s].
    acceleration : array_like, shape (samples, 6)
        Angular acceleration [rad/s^2], then the ordinary acceleration of the base's origin, the
        derivative of its velocity in the world [m/s^2].
    position : array_like, shape (samples, 3), optional
        Of the base's origin [m]; torques do not depend on it.
    axes : {"body", "world"}
        Axes of the vectors in `twist` and `acceleration`.

    Returns
    -------
    FloatingMotion
        Unpacks into q, dq and ddq, each of shape (samples, dof).

    Raises
    ------
    InputError
        The robot is fixed, or an array has the wrong shape.
    """
    rows = robot.rows[base_index(robot)]
    turn = _check_samples(rotation, (3, 3), "rotation")
    count = len(turn)
    if np.abs(np.swapaxes(turn, 1, 2) @ turn - np.eye(3)).max(initial=0.0) > UNIT:
        raise InputError("rotation holds matrices that are not orthogonal")
    position = np.zeros((count, 3)) if position is None else position
    place = _check_samples(position, (3,), "position", count)
    speed = _check_samples(twist, (6,), "twist", count).reshape(count, 2, 3)
    push = _check_samples(acceleration, (6,), "acceleration", count).reshape(count, 2, 3)
    if axes == "world":
        speed, push = speed @ turn, push @ turn
    push = push.copy()
    push[:, 1] -= np.cross(speed[:, 0], speed[:, 1])
    base = robot.bodies[base_index(robot)]
    inner = base.rotation.T @ turn
    # The twists whose exponentials these poses are, angle at most pi.
    position = (place - base.position) @ base.rotation
    turn = Rotation.from_matrix(inner).as_rotvec()
    angle = np.linalg.norm(turn, axis=1)
    safe = np.where(angle > SMALL, angle, 1.0)
    # inverse of the left Jacobian: 1 - S/2 + (1/angle^2 - cot(angle/2) / (2 angle)) S^2
    factor = np.where(
        angle > SMALL, 1 / safe**2 - 1 / (2 * safe * np.tan(safe / 2)), 1 / 12 + angle**2 / 720
    )
    once = np.cross(turn, position)
    shift = position - once / 2 + factor[:, None] * np.cross(turn, once)
    pose = np.hstack([turn, shift])
    base_inverse = np.linalg.inv(base.motion)
    out = []
    parts = (pose, speed.reshape(count, 6), push.reshape(count, 6))
    for name, part, joint_values in zip(("q", "dq", "ddq"), parts, joints, strict=True):
        full = np.empty((count, robot.dof))
        full[:, rows] = part @ base_inverse.T
        values = _check_samples(joint_values, (robot.dof - 6,), f"the joints' {name}", count)
        full[:, np.delete(np.arange(robot.dof), rows)] = values
        out.append(full)
    return FloatingMotion(*out)


@checked
def imu_motion(
    robot: Robot,
    joints: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    *,
    gyro: npt.ArrayLike,
    accelerometer: npt.ArrayLike,
    angular_acceleration: npt.ArrayLike,
    rotation: npt.ArrayLike = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1)),
    position: npt.ArrayLike = (0.0, 0.0, 0.0),
) -> FloatingMotion:
    """Motion of a floating robot from an IMU on its base; neither pose nor velocity is needed.

    An accelerometer shows ordinary acceleration minus gravity, and that is all that torques
    depend on: the base is put at its home pose, at rest, with the acceleration that gives it the
    same feeling.

    Parameters
    ----------
    robot, joints
        As for `floating_motion`.
    gyro : array_like, shape (samples, 3)
        Angular velocity in the IMU's axes [rad/s].
    accelerometer : array_like, shape (samples, 3)
        Specific force in the IMU's axes [m/s^2]: at rest it points up.
    angular_acceleration : array_like, shape (samples, 3)
        Derivative of `gyro`, in the IMU's axes [rad/s^2].
    rotation, position : array_like, shapes (3, 3) and (3,)
        Pose of the IMU in the base's frame.

    Returns
    -------
    FloatingMotion
        Unpacks into q, dq and ddq, each of shape (samples, dof).

    Raises
    ------
    InputError
        The robot is fixed, or an array has the wrong shape or an entry that is not finite.
    """
    rate = _check_samples(gyro, (3,), "gyro")
    count = len(rate)
    turn = np.asarray(rotation, dtype=np.float64)
    if turn.shape != (3, 3) or np.abs(turn.T @ turn - np.eye(3)).max() > UNIT:
        raise InputError("the IMU's rotation is not a rotation matrix of shape (3, 3)")
    lever = require_finite(position, (3,), "position")
    omega = rate @ turn.T
    alpha = _check_samples(angular_acceleration, (3,), "angular_acceleration", count) @ turn.T
    measured = _check_samples(accelerometer, (3,), "accelerometer", count) @ turn.T
    measured = measured - np.cross(alpha, lever) - np.cross(omega, np.cross(omega, lever))
    home = robot.bodies[base_index(robot)].rotation
    none = np.zeros((count, 3))
    return floating_motion(
        robot,
        joints,
        rotation=np.broadcast_to(home, (count, 3, 3)),
        twist=np.hstack([omega, none]),
        acceleration=np.hstack([alpha, measured + robot.gravity @ home]),
    )


def base_index(robot: Robot) -> int:
    """Index of the body that floats; `InputError` if none does."""
    floating = [i for i, b in enumerate(robot.bodies) if b.floats]
    if len(floating) != 1:
        raise InputError(
            f"the base of robot {robot.name!r} is fixed: a motion of its base needs "
            "load_robot(path, floating=True)"
        )
    return floating[0]


def _check_samples(
    values: npt.ArrayLike, shape: tuple[int, ...], what: str, count: int | None = None
) -> Array:
    """Return a finite array of this shape per sample; `InputError` names the sample otherwise."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[1:] != shape or (count is not None and len(array) != count):
        raise InputError(
            f"{what} has shape {array.shape}, expected ({count or 'samples'}, "
            f"{', '.join(map(str, shape))})"
        )
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        raise InputError(
            f"{what}[{bad[0][0]}] holds a number that is not finite", row=int(bad[0][0])
        )
    return array


RANK_TOLERANCE = 1e-8
"""Singular values of contact Jacobians below this, relative to the largest, are zero."""


@checked
@dataclass(frozen=True, eq=False)
class Contact:
    """A point of a body that is touched, and the force it gets."""

    body: str  #: A body, or a link that is fixed to one.
    position: npt.ArrayLike = (0.0, 0.0, 0.0)  #: Shape (3,): in the frame of that body or link [m].
    #: Shape (samples, 3): on the robot, in world axes [N]; needed where it counts as known.
    force: npt.ArrayLike | None = None
    #: Shape (samples, 3): on the robot about the point, in world axes [N m].
    moment: npt.ArrayLike | None = None


def frame_jacobian(
    robot: Robot, q: npt.ArrayLike, body: str, position: npt.ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """Angular velocity of a body, then linear velocity of a point, per generalised velocity.

    Shape (samples, 6, dof), in world axes; `body` and `position` as in `Contact`. Raises
    InputError: no such body; joints that are coupled or in loops.
    """
    i, link = find_link(robot, body)
    if not robot.is_tree:
        raise InputError(f"contacts of robot {robot.name!r}: its joints are coupled or in loops")
    positions = as_samples_last(np.atleast_2d(np.asarray(q, dtype=np.float64)))
    if positions.shape[0] != robot.dof:
        raise InputError(f"q has {positions.shape[0]} columns, expected {robot.dof}")
    point = link.position + link.rotation @ np.asarray(position, dtype=np.float64)
    zeros = np.zeros_like(positions)
    tree = nodes(robot)
    states = list(propagate(tree[: i + 1], robot.gravity, positions, zeros, zeros))
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


@checked
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


@checked
def contact_free_projector(
    robot: Robot,
    q: npt.ArrayLike,
    contacts: Sequence[Contact],
    touching: npt.ArrayLike | None = None,
) -> Array:
    """Orthogonal projectors P with ``P J' = 0`` for the points that touch.

    Multiplied with regressor and torques, unknown contact forces drop out.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (samples, dof)
        As for `feasid.regressor`.
    contacts : sequence of Contact
        Points of contact, at least one; forces are not needed.
    touching : array_like, shape (samples, contacts), optional
        Which of them touch, 1 or 0; default all of them.

    Returns
    -------
    ndarray, shape (samples, dof, dof)

    Raises
    ------
    InputError
        No such body; joints that are coupled or in loops; `q` of the wrong shape.
    """
    if not len(contacts):
        raise InputError("contacts must name at least one point of contact")
    if np.ndim(q) != 2:
        raise InputError(f"q must be of shape (samples, dof), not of {np.ndim(q)} dimensions")
    jacobians = [frame_jacobian(robot, q, c.body, c.position)[:, 3:] for c in contacts]
    stacked = np.concatenate(jacobians, axis=1)
    if touching is not None:
        flags = _check_samples(touching, (len(contacts),), "touching", len(stacked))
        stacked *= np.repeat(flags, 3, axis=1)[:, :, None]
    _, s, vt = np.linalg.svd(stacked, full_matrices=False)
    held = vt * (s > RANK_TOLERANCE * s[:, :1])[:, :, None]
    return np.asarray(np.eye(robot.dof) - held.transpose(0, 2, 1) @ held)
