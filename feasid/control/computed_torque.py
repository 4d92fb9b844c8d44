"""Computed torque: the torques that a model needs for a commanded acceleration.

``tau = Y(q, dq, ddq) Theta``, eq. (37) of the Valkyrie identification paper, on code generated for
the robot: see `feasid.codegen`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from feasid.codegen.c import compile_routines, find_compiler
from feasid.codegen.routine import CodedModel, python_function
from feasid.core.arguments import Measured, Vector, checked
from feasid.core.arrays import Array
from feasid.dynamics.regressor import mass_matrix
from feasid.errors import InputError
from feasid.identifiability.base import BaseParameters
from feasid.robot.description import Robot

KINDS = ("inverse_dynamics", "gravity", "friction", "mass_matrix")


@checked
class ComputedTorque:
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
        Machine code through the system's C compiler, or a function of Python floats; "auto" takes
        a compiler that is there and works. ``backend`` tells which it is. Either way one instance
        belongs to one thread.

    Attributes
    ----------
    beta : ndarray, shape (nb,)
        Base parameters in use.
    refused : int
        Calls whose numbers were not finite.

    Raises
    ------
    InputError
        Names what cannot be used.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        effort: Vector | None = None,
        base: BaseParameters | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
    ) -> None:
        nominal = CodedModel.from_robot(robot, base)
        source = CodedModel.from_robot(robot, nominal.base, argument=True)
        self.robot = robot
        self.base = source.base
        self.refused = 0
        self._code, self.backend = _functions(source, backend)
        self._bound = _efforts(robot, effort)
        self._still = np.zeros(robot.dof)
        self._last: Array | None = None
        assert nominal.beta is not None
        self.beta = nominal.beta
        self._beta: Any = None
        self.use(nominal.beta)

    def use(self, beta: npt.ArrayLike) -> None:
        """Take other base parameters from now on.

        Parameters
        ----------
        beta : array_like, shape (nb,)

        Raises
        ------
        InputError
            When there are not nb of them, or one is not finite.
        """
        values = np.array(beta, dtype=np.float64)
        if values.shape != (self.base.size,):
            raise InputError(f"beta must be {self.base.size} finite base parameters")
        self.beta = values
        self._beta = values if self.backend == "c" else values.tolist()

    # -- torques -----------------------------------------------------------------------------

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
            Always finite. When an input is not, the torques that hold the arm still where it last
            was, and `refused` counts.

        Raises
        ------
        InputError
            An input has another shape; or it is not finite, and no call before says where the arm
            could be held.
        """
        inputs = {"q": q, "dq": dq, "ddq": ddq}
        self._check_shapes(**inputs)
        out = np.array(self._code["inverse_dynamics"](self._beta, q, dq, ddq))
        if not all(map(math.isfinite, out.tolist())):
            return self._hold(inputs)
        position = np.array(q, dtype=np.float64)
        if np.isfinite(position).all():
            self._last = position
        return self._limit_torque(out)

    def _check_shapes(self, **inputs: npt.ArrayLike) -> None:
        for name, values in inputs.items():
            shape = np.shape(values)
            if shape != (self.robot.dof,):
                raise InputError(
                    f"{name} has shape {shape}, needed is ({self.robot.dof},): one number for "
                    f"each of {', '.join(self.robot.coordinates)}"
                )

    def _hold(self, inputs: Mapping[str, npt.ArrayLike]) -> Array:
        """Torques that hold the arm where it last was; refused where that is not known."""
        self.refused += 1
        if self._last is None:
            bad = [
                f"{name} of {joint}"
                for name, values in inputs.items()
                for joint, value in zip(
                    self.robot.coordinates, np.asarray(values, np.float64), strict=True
                )
                if not math.isfinite(value)
            ]
            reason = f"{', '.join(bad)} is not finite" if bad else "the torques are not finite"
            raise InputError(
                f"{reason}, and this is the first call: there is no position at which the arm "
                f"could be held"
            )
        return self._limit_torque(self.gravity(self._last))

    def _limit_torque(self, torque: Array) -> Array:
        """Clip the torques in place to the bounds, where there are any."""
        if self._bound is not None:
            np.minimum(torque, self._bound, out=torque)
            np.maximum(torque, -self._bound, out=torque)
        return torque

    def inverse_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """`torque` without limits.

        Parameters
        ----------
        q, dq, ddq : array_like, shape (dof,)
            [rad or m, per s, per s^2]

        Returns
        -------
        ndarray, shape (dof,)
            [N m or N]
        """
        self._check_shapes(q=q, dq=dq, ddq=ddq)
        return np.array(self._code["inverse_dynamics"](self._beta, q, dq, ddq))

    def gravity(self, q: npt.ArrayLike) -> Array:
        """Torques that hold the bodies still.

        Parameters
        ----------
        q : array_like, shape (dof,)
            [rad or m]

        Returns
        -------
        ndarray, shape (dof,)
            [N m or N]
        """
        self._check_shapes(q=q)
        return np.array(self._code["gravity"](self._beta, q))

    def friction(self, q: npt.ArrayLike, dq: npt.ArrayLike) -> Array:
        """Torques of friction and springs.

        Parameters
        ----------
        q, dq : array_like, shape (dof,)
            [rad or m, per s]

        Returns
        -------
        ndarray, shape (dof,)
            [N m or N]
        """
        self._check_shapes(q=q, dq=dq)
        return np.array(self._code["friction"](self._beta, q, dq, self._still))

    # -- dynamics ----------------------------------------------------------------------------

    def mass_matrix(self, q: npt.ArrayLike) -> Array:
        """Mass matrix M, drive inertia included.

        Parameters
        ----------
        q : array_like, shape (dof,)
            [rad or m]

        Returns
        -------
        ndarray, shape (dof, dof)
        """
        self._check_shapes(q=q)
        dof = self.robot.dof
        return np.array(self._code["mass_matrix"](self._beta, q)).reshape(dof, dof)

    def forward_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, tau: npt.ArrayLike) -> Array:
        """Accelerations that torques cause, ``M^-1 (tau - h)``.

        Parameters
        ----------
        q, dq, tau : array_like, shape (dof,)
            [rad or m, per s; N m or N]

        Returns
        -------
        ndarray, shape (dof,)
            [per s^2]

        Raises
        ------
        InputError
            Where the mass matrix is singular: then the model cannot exist.
        """
        self._check_shapes(tau=tau)
        bias = self.inverse_dynamics(q, dq, self._still)
        try:
            push = np.asarray(tau, dtype=np.float64) - bias
            return np.asarray(np.linalg.solve(self.mass_matrix(q), push))
        except np.linalg.LinAlgError as error:
            raise InputError("the mass matrix is singular: this model is infeasible") from error

    def __repr__(self) -> str:
        return (
            f"<ComputedTorque of {self.robot.name!r}: {self.base.size} parameters, {self.backend}>"
        )


Functions = dict[str, Callable[..., Sequence[float] | Array]]


def _functions(source: CodedModel, backend: str) -> tuple[Functions, str]:
    """The routines, and which backend they came from."""
    if backend == "c" or (backend == "auto" and find_compiler() is not None):
        try:
            return dict(compile_routines(source, KINDS)), "c"
        except InputError:
            if backend == "c":
                raise
    return {
        kind: _call_with_lists(python_function(source.routine(kind))) for kind in KINDS
    }, "python"


def _call_with_lists(function: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """The function for arrays, called with lists: Python floats are several times faster."""

    def call(beta: list[float], *arguments: npt.ArrayLike) -> list[float]:
        rows = (np.asarray(x, dtype=np.float64).tolist() for x in arguments)
        try:
            return function(beta, *rows)
        except (ValueError, OverflowError):
            if all(np.isfinite(np.asarray(x, dtype=np.float64)).all() for x in arguments):
                raise
            return [math.nan]

    return call


def _efforts(robot: Robot, effort: npt.ArrayLike | None) -> Array | None:
    """Largest torques, infinite where none is known; None when none is known at all."""
    if effort is not None:
        bound = np.array(effort, dtype=np.float64)
        if bound.shape != (robot.dof,) or not (bound > 0).all():
            raise InputError(f"effort must be {robot.dof} positive numbers, not {bound.tolist()}")
        return bound
    known = [body.limits.effort for body, _ in robot.moving_bodies]
    if not any(known):
        return None
    return np.array([e if e else np.inf for e in known])


def mass_function(base: BaseParameters) -> Callable[[Array, Array], Array]:
    """The mass matrix as a function of standard parameters (n,) and a posture (dof,).

    By generated code where there can be some, else by inverse dynamics of unit accelerations.
    """
    robot = base.robot
    if robot.loops or any(body.dof != 1 for body in robot.bodies):
        return lambda delta, q: mass_matrix(robot, delta, q)
    code = python_function(CodedModel.from_robot(robot, base, argument=True).routine("mass_matrix"))

    def mass(delta: Array, q: Array) -> Array:
        return np.array(code((base.K @ delta).tolist(), q.tolist())).reshape(robot.dof, robot.dof)

    return mass
