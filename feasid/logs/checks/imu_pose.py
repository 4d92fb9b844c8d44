"""Axes and delay of an IMU, from the change of a logged orientation.

A gyroscope whose axes R in the base's frame are not quite those that were given, with an offset,
and late by d, shows ``omega(t) = R gyro(t + d) + c`` with an orientation that changes by omega.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from feasid.core.arrays import Array, interpolate
from feasid.logs.checks.findings import Finding
from feasid.logs.floating import Imu
from feasid.robot.rotations import exponential

STEPS = 8  #: Of Gauss-Newton: turns of 40 degrees take five.
LONGEST = 0.1  #: Delays beyond this [s] are none.

BLOCKS = 20
"""Parts of a log whose errors are taken as independent of each other: filtered ones are not within
a few samples, and orientations of an estimator not within a second."""

SMALL, MISSED = np.deg2rad(45.0), 0.5
"""Largest turn [rad], and share of the rates that it may leave: beyond them axes are exchanged."""

TOLD, LEAST_TURN, LEAST_DELAY = 4.0, np.deg2rad(0.5), 1e-3
"""Turns [rad] and delays [s] from so many deviations and this size are findings."""


@dataclass(frozen=True, eq=False)
class ImuPose:
    """What the rates of an IMU and of an orientation say about the IMU."""

    rotation: Array  #: Shape (3, 3): its axes in the base's frame.
    turn: Array  #: Shape (3,): from the given axes to these, in the IMU's axes [rad].
    delay: float  #: Beyond the given one [s].
    deviation: Array  #: Shape (4,): of `turn` and of `delay`.
    missed: float  #: Share of the orientation's rates that is left.

    def findings(self, imu: Imu) -> list[Finding]:
        """What is not as `imu` says, with the option that says it."""
        angle, parts = float(np.linalg.norm(self.turn)), []
        if angle > LEAST_TURN and np.linalg.norm(self.turn / self.deviation[:3]) > TOLD:
            size, spread = np.rad2deg([angle, float(np.linalg.norm(self.deviation[:3]))])
            parts.append(f"its axes are turned by {size:.3g} +- {spread:.1g} degrees")
            imu = replace(imu, rotation=np.round(self.rotation, 5).tolist())
        if abs(self.delay) > max(LEAST_DELAY, TOLD * float(self.deviation[3])):
            way, spread = "late" if self.delay > 0 else "early", float(self.deviation[3])
            parts.append(f"it is {1e3 * abs(self.delay):.3g} +- {1e3 * spread:.1g} ms {way}")
            imu = replace(imu, delay=round(imu.delay + self.delay, 5))
        if not parts:
            return []
        text = f"the IMU is not as described: by the logged orientation, {' and '.join(parts)}"
        values = {"rotation": self.rotation.tolist(), "delay": self.delay}
        return [Finding("imu-pose", "warning", text, imu_option(imu), values=values)]


def imu_option(imu: Imu) -> str:
    """The option that describes an IMU, to be pasted in Python and at a command line."""
    usual, entries = Imu(imu.link), {"link": imu.link}
    for name in ("rotation", "position", "delay"):
        value = np.asarray(getattr(imu, name))
        entries |= {} if np.array_equal(value, getattr(usual, name)) else {name: value.tolist()}
    return f"imu={entries}"


def find_imu_pose(gyro: Array, omega: Array, mounting: Array, rate: float) -> ImuPose:
    """The axes and the delay that explain an orientation's rates best, by Gauss-Newton.

    `gyro`, `omega`: (N, 3) [rad/s], in the IMU's and the base's axes; `mounting`: the given axes
    (3, 3); `rate`: [Hz].
    """
    times = np.arange(len(gyro)) / rate
    slope = np.gradient(gyro, axis=0) * rate
    rotation, delay, offset = mounting, 0.0, np.zeros(3)
    for _ in range(STEPS):
        rates, change = (interpolate(times + delay, times, x) for x in (gyro, slope))
        error = omega - rates @ rotation.T - offset
        # Small angles a in the IMU's axes change R g by R (a x g).
        turned = [np.cross(axis, rates) @ rotation.T for axis in np.eye(3)]
        constant = [np.broadcast_to(axis, error.shape) for axis in np.eye(3)]
        jacobian = np.stack([*turned, change @ rotation.T, *constant], axis=2)
        inverse = np.linalg.pinv(np.einsum("nij,nik->jk", jacobian, jacobian), hermitian=True)
        step = inverse @ np.einsum("nij,ni->j", jacobian, error)
        rotation = rotation @ np.asarray(exponential(np.r_[step[:3], np.zeros(3)])[0])
        delay = float(np.clip(delay + step[3], -LONGEST, LONGEST))
        offset = offset + step[4:]
    # Errors within a part of the log may depend on each other: deviations are those of its parts.
    parts = np.array_split(np.einsum("nij,ni->nj", jacobian, error), BLOCKS)
    scores = np.array([part.sum(axis=0) for part in parts]) @ inverse
    spread = np.sqrt(np.sum(scores**2, axis=0) * BLOCKS / (BLOCKS - scores.shape[1]))
    turn = Rotation.from_matrix(mounting.T @ rotation).as_rotvec()
    missed = float(np.linalg.norm(error) / max(float(np.linalg.norm(omega)), 1e-300))
    return ImuPose(rotation, turn, delay, spread[:4], missed)
