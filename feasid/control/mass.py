"""Mass matrices of one robot with changing parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from feasid.codegen.python import python_function
from feasid.codegen.routine import CodedModel
from feasid.core.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics
from feasid.identifiability.base import BaseParameters
from feasid.robot.description import Robot


def mass_function(base: BaseParameters) -> Callable[[Array, Array], Array]:
    """The mass matrix as a function of standard parameters (n,) and a posture (dof,).

    By generated code where there can be some, else by inverse dynamics of unit accelerations.
    """
    robot = base.robot
    if robot.loops or any(body.dof != 1 for body in robot.bodies):
        return lambda delta, q: mass_matrix(robot, delta, q)
    code = python_function(CodedModel.of(robot, base, argument=True).routine("mass_matrix"))

    def mass(delta: Array, q: Array) -> Array:
        return np.array(code((base.K @ delta).tolist(), q.tolist())).reshape(robot.dof, robot.dof)

    return mass


def mass_matrix(robot: Robot, delta: Array, q: Array) -> Array:
    """Mass matrix at a posture, drive inertia included; shape (dof, dof)."""
    posture = np.tile(q, (robot.dof + 1, 1))
    push = np.vstack([np.zeros(robot.dof), np.eye(robot.dof)])
    tau = inverse_dynamics(robot, posture, 0 * posture, push, parameters=delta)
    return np.asarray(tau[1:] - tau[0]).T
