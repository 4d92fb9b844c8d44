"""Computed torque: the torques that a model needs for a commanded acceleration.

``tau = Y(q, dq, ddq) Theta``, eq. (37) of the Valkyrie identification paper, on code generated for
the robot: see `feasid.results.codegen`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from feasid.core.arguments import Measured, Vector, checked
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.results.codegen.compiled import CompiledDynamics
from feasid.robot.description import Robot


class ComputedTorque(CompiledDynamics):
    """A robot's model, ready to be evaluated in a control loop.

    Parameters
    ----------
    robot : Robot
        A tree of joints of one degree of freedom. Its values are the nominal model.
    effort : array_like, shape (dof,), optional
        Largest torque per joint [N m or N]; default the description's limits, where it has some.
    base : BaseParameters, optional
        Of this robot; default `feasid.base_parameters`.
    backend : {"auto", "c", "python"}
        Machine code through the system's C compiler, or a function of Python floats; "auto" uses
        the compiler if there is one that works. The attribute ``backend`` says which one is used.
        Use an instance in one thread only.

    Attributes
    ----------
    beta : ndarray, shape (nb,)
        Base parameters in use.
    refused : int
        Number of calls whose input was not finite.

    Raises
    ------
    InputError
        An argument cannot be used; the message names it.
    """

    @checked
    def __init__(
        self,
        robot: Robot,
        *,
        effort: Vector | None = None,
        base: BaseParameters | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
    ) -> None:
        robot.require_motors()
        super().__init__(robot, base=base or base_parameters(robot), backend=backend)
        self.refused = 0
        self._bound: Array | None = None
        if effort is not None:
            self._bound = bound = np.array(effort, dtype=np.float64)
            if bound.shape != (robot.dof,) or not (bound > 0).all():
                text = f"{robot.dof} positive numbers, not {bound.tolist()}"
                raise InputError(f"effort must be {text}")
        elif any(efforts := [body.limits.effort for body, _ in robot.moving_bodies]):
            # Files also write a limit of 0 where none is known.
            self._bound = np.array([e if e else np.inf for e in efforts])
        self._last: Array | None = None

    def torque(self, q: Measured, dq: Measured, ddq: Measured) -> Array:
        """Joint torques for a commanded acceleration, shape (dof,), within the limits.

        Parameters
        ----------
        q, dq : array_like, shape (dof,)
            Measured positions and velocities.
        ddq : array_like, shape (dof,)
            Commanded accelerations.

        Returns
        -------
        ndarray, shape (dof,)
            Always finite. If an input is not finite, the call returns the torques that hold the arm
            at its last valid posture, and increments `refused`.

        Raises
        ------
        InputError
            An input has another shape, or the first input is not finite, so that there is no
            posture at which to hold the arm.
        """
        out = self.inverse_dynamics(q, dq, ddq)
        # Inputs as well: torques need not depend on a joint's position.
        inputs = np.array([q, dq, ddq], dtype=np.float64)
        if not (np.isfinite(inputs).all() and np.isfinite(out).all()):
            self.refused += 1
            if self._last is None:
                bad = [
                    f"{name} of {joint}"
                    for name, values in zip(("q", "dq", "ddq"), inputs, strict=True)
                    for joint, value in zip(self.robot.coordinates, values, strict=True)
                    if not np.isfinite(value)
                ]
                reason = f"{', '.join(bad)} is not finite" if bad else "the torques are not finite"
                raise InputError(
                    f"{reason}, and this is the first call: there is no position at which the arm "
                    f"could be held"
                )
            return self._limit_torque(self.gravity(self._last))
        self._last = np.array(q, dtype=np.float64)
        return self._limit_torque(out)

    def _limit_torque(self, torque: Array) -> Array:
        """Clip the torques in place to the bounds, where there are any."""
        if self._bound is not None:
            np.minimum(torque, self._bound, out=torque)
            np.maximum(torque, -self._bound, out=torque)
        return torque
