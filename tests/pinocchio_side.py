"""Motions and torques of our robots in Pinocchio's model of the same URDF."""

from __future__ import annotations

import numpy as np
import pytest

from feasid.robot import inertia
from feasid.robot.rotations import exponential


class PinocchioModel:
    """Pinocchio's dynamics of a robot in our order; what mimics others is a joint of its own."""

    def __init__(self, robot, path):
        self.pin = pytest.importorskip("pinocchio")
        floats = robot.bodies[0].dof == 6
        root = [self.pin.JointModelFreeFlyer()] if floats else []
        self.model = self.pin.buildModelFromUrdf(str(path), *root)
        self.model.gravity.linear = np.array(robot.gravity)
        self.data = self.model.createData()
        self.ids = [self.model.getJointId(j) for j in robot.joints[len(root) :]]
        self.joints = [self.model.joints[i] for i in self.ids]
        self.base = [3, 4, 5, 0, 1, 2] if floats else []
        self.rows = [*self.base, *(j.idx_v for j in self.joints)]
        order = np.argsort(inertia.PINOCCHIO)
        bodies = [1, *self.ids] if floats else self.ids
        self.columns = np.concatenate([10 * (i - 1) + order for i in bodies])

    def configuration(self, q):
        """Our positions as Pinocchio's: continuous joints are (cos, sin) there."""
        out = self.pin.neutral(self.model)
        if self.base:
            out[:7] = self.pin.SE3ToXYZQUAT(self.pin.SE3(*exponential(q[:6])))
        for joint, value in zip(self.joints, q[len(self.base) :], strict=True):
            place = slice(joint.idx_q, joint.idx_q + joint.nq)
            out[place] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        return out

    def vector(self, ours):
        """Our velocities or torques as Pinocchio's."""
        out = np.zeros(self.model.nv)
        out[self.rows] = ours
        return out

    def motion(self, q, dq, ddq):
        return self.configuration(q), self.vector(dq), self.vector(ddq)

    def torques(self, q, dq, ddq):
        return self.pin.rnea(self.model, self.data, *self.motion(q, dq, ddq))[self.rows]

    def regressor(self, q, dq, ddq):
        motion = self.motion(q, dq, ddq)
        full = self.pin.computeJointTorqueRegressor(self.model, self.data, *motion)
        return full[self.rows][:, self.columns]

    def mass_matrix(self, q):
        upper = np.triu(self.pin.crba(self.model, self.data, self.configuration(q)))
        return (upper + np.triu(upper, 1).T)[np.ix_(self.rows, self.rows)]

    def accelerations(self, q, dq, tau):
        motion = self.motion(q, dq, tau)
        return self.pin.aba(self.model, self.data, *motion)[self.rows]
