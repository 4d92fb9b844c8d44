"""The regressor in the form of the Valkyrie paper: inverse dynamics with unit parameters.

Algorithm 1, on spatial vectors (Featherstone 2008, Table 5.1): six-vectors and 6 x 6 matrices,
angular part first, nothing shared with the library but the description and the spatial inertia of
ten parameters.
"""

import numpy as np
from scipy.linalg import expm

from feasid.robot import inertia


def motion_cross(v):
    w, u = inertia.skew(v[:3]), inertia.skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def transform(body, q):
    """Plucker transform from the parent's coordinates to the body's."""
    home = np.zeros((6, 6))
    E = body.rotation.T
    home[:3, :3] = home[3:, 3:] = E
    home[3:, :3] = -E @ inertia.skew(body.position)
    return expm(-motion_cross(body.motion @ q)) @ home


class SpatialDynamics:
    """Recursive Newton-Euler on spatial vectors; ``visits`` counts bodies passed on the way out."""

    def __init__(self, robot):
        self.robot = robot
        self.visits = 0

    def inverse_dynamics(self, q, dq, ddq, ten):
        """Torques of one sample for parameters (bodies, 10)."""
        robot = self.robot
        v, a, f, X = [], [], [], []
        for i, body in enumerate(robot.bodies):
            self.visits += 1
            p, own, phi = robot.parents[i], robot.rows[i], body.motion
            X.append(transform(body, q[own]))
            base = np.zeros(6) if p < 0 else v[p]
            push = np.r_[np.zeros(3), -robot.gravity] if p < 0 else a[p]
            v.append(X[i] @ base + phi @ dq[own])
            a.append(X[i] @ push + phi @ ddq[own] + motion_cross(v[i]) @ (phi @ dq[own]))
            I = inertia.spatial_inertia(ten[i])  # noqa: E741
            f.append(I @ a[i] - motion_cross(v[i]).T @ (I @ v[i]))
        tau = np.zeros(robot.axes)
        for i in range(len(robot.bodies) - 1, -1, -1):
            tau[robot.rows[i]] = robot.bodies[i].motion.T @ f[i]
            if robot.parents[i] >= 0:
                f[robot.parents[i]] += X[i].T @ f[i]
        return tau

    def regressor(self, q, dq, ddq):
        """Algorithm 1: one parameter after the other is one, all others zero."""
        count = len(self.robot.bodies)
        out = np.zeros((self.robot.axes, count, 10))
        ten = np.zeros((count, 10))
        for i in range(count):
            for j in range(10):
                ten[i, j] = 1.0
                out[:, i, j] = self.inverse_dynamics(q, dq, ddq, ten)
                ten[i, j] = 0.0
        return out.reshape(self.robot.axes, -1)
