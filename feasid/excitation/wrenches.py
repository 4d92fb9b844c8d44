"""What moves a body, parameter by parameter: wrenches linear in twelve numbers of its motion.

In the body's frame, with omega, alpha and the acceleration a of its origin minus gravity, the
inertia L about the origin, the first moment h and the mass m need the wrench

    moment = L alpha + omega x L omega + h x a,    force = m a + alpha x h + omega x (omega x h),

bilinear in (L, h, m) and in alpha, the six products of omega's components, and a. So its ten
columns are one constant matrix times twelve numbers, and going back is its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.excitation.links import Flow
from feasid.excitation.spatial import cross, rotated, rotated_back
from feasid.robot.inertia import UPPER

SPIN, TURN, PUSH = slice(0, 3), slice(3, 9), slice(9, 12)
"""Places of alpha, of omega's products and of a among the twelve numbers."""

LEVERS, FORCES = slice(6, 9), slice(9, 13)
"""Of 13 columns of three, nine are moments, by L and h; four are forces, by h and m."""


def _constants() -> Array:
    """The 13 columns of three from the twelve numbers, shape (39, 12)."""
    axes = np.eye(3)
    skew = np.stack([np.cross(axis, axes) for axis in axes])  # skew[a, b] = a x b
    out = np.zeros((3, 13, 12))
    for k, (r, c) in enumerate(UPPER):
        inertia = np.outer(axes[r], axes[c])
        inertia = np.maximum(inertia, inertia.T)
        out[:, k, SPIN] = inertia
        for j, (u, v) in enumerate(UPPER):
            both = np.cross(axes[u], inertia[v]), np.cross(axes[v], inertia[u])
            out[:, k, TURN][:, j] = both[0] + both[1] * (u != v)
    for k in range(3):
        out[:, LEVERS, PUSH][:, k] = skew[k].T
        out[:, FORCES, SPIN][:, k] = -skew[k].T
        for j, (u, v) in enumerate(UPPER):
            both = np.cross(axes[u], skew[v, k]), np.cross(axes[v], skew[u, k])
            out[:, FORCES, TURN][:, k, j] = both[0] + both[1] * (u != v)
    out[:, FORCES, PUSH][:, 3] = axes
    return out.reshape(39, 12)


CONSTANTS = _constants()


@dataclass(frozen=True, eq=False)
class Wrenches:
    """Wrenches in the base frame that the ten parameters of every node need.

    ``columns`` (6, 10, N, n); ``spins`` (3, 3, N, n) are omega, alpha and a in the base frame and
    ``own`` the same in the nodes' frames; ``drift`` (3, N, n) is the velocity of the origins.
    """

    flow: Flow
    columns: Array
    spins: Array
    own: Array
    drift: Array

    @classmethod
    def of(cls, flow: Flow) -> Wrenches:
        """Of a motion."""
        place, (count, nodes) = flow.place, flow.rate.shape
        omega, alpha = flow.velocity[:3], flow.acceleration[:3]
        drift = flow.velocity[3:] + cross(omega, place)
        spins = np.empty((3, 3, count, nodes))
        spins[:, 0], spins[:, 1] = omega, alpha
        spins[:, 2] = flow.acceleration[3:] + cross(alpha, place) + cross(omega, drift)
        own = rotated_back(flow.turn, spins)
        numbers = np.empty((12, count, nodes))
        numbers[SPIN], numbers[PUSH] = own[:, 1], own[:, 2]
        for k, (r, c) in enumerate(UPPER):
            np.multiply(own[r, 0], own[c, 0], out=numbers[TURN][k])
        parts = (CONSTANTS @ numbers.reshape(12, -1)).reshape(3, 13, count, nodes)
        parts = rotated(flow.turn, parts)
        columns = np.zeros((6, 10, count, nodes))
        columns[:3, :9], columns[3:, 6:] = parts[:, :9], parts[:, FORCES]
        columns[:3, 6:] += cross(place[:, None], parts[:, FORCES])
        return cls(flow, columns, spins, own, drift)

    def pull(self, bar: Array) -> tuple[Array, Array, Array]:
        """Derivatives by poses, V and A, each (6, N, n), from those by the columns."""
        flow, (count, nodes) = self.flow, self.flow.rate.shape
        parts = np.empty((3, 13, count, nodes))
        parts[:, :9], parts[:, FORCES] = bar[:3, :9], bar[3:, 6:]
        parts[:, FORCES] += cross(bar[:3, 6:], flow.place[:, None])
        parts = rotated_back(flow.turn, parts)
        numbers = (CONSTANTS.T @ parts.reshape(39, -1)).reshape(12, count, nodes)
        own = np.zeros((3, 3, count, nodes))
        own[:, 1], own[:, 2] = numbers[SPIN], numbers[PUSH]
        for k, (r, c) in enumerate(UPPER):
            own[r, 0] += numbers[TURN][k] * self.own[c, 0]
            own[c, 0] += numbers[TURN][k] * self.own[r, 0]
        return self._pulled(self._poses(bar), rotated(flow.turn, own))

    def _poses(self, bar: Array) -> Array:
        """Derivatives by poses through the columns alone."""
        moments, forces = self.columns[:3], self.columns[3:, 6:]
        pose = np.empty((6, *self.flow.rate.shape))
        pose[:3] = cross(moments, bar[:3]).sum(axis=1) + cross(forces, bar[3:, 6:]).sum(axis=1)
        pose[3:] = cross(forces, bar[:3, 6:]).sum(axis=1)
        return pose

    def _pulled(self, pose: Array, spins: Array) -> tuple[Array, Array, Array]:
        """Through omega, alpha and a, whose derivatives are `spins` (3, 3, N, n)."""
        place, (omega, alpha) = self.flow.place, (self.spins[:, 0], self.spins[:, 1])
        push = spins[:, 2]
        drift = cross(push, omega)
        shift = cross(push, alpha) + cross(drift, omega)
        velocity, acceleration = np.empty_like(pose), np.empty_like(pose)
        velocity[:3] = spins[:, 0] + cross(self.drift, push) + cross(place, drift)
        acceleration[:3] = spins[:, 1] + cross(place, push)
        velocity[3:], acceleration[3:] = drift, push
        pose[:3] += cross(spins, self.spins).sum(axis=1) + cross(place, shift)
        pose[3:] += shift
        return pose, velocity, acceleration
