"""One sample at a time: a robot's dynamics as code that is generated for it.

`feasid.inverse_dynamics` and `feasid.regressor` are made for logs; for a single sample they take a
thousand times longer than the arithmetic.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Measured, Vector, checked, kind_from_annotation
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import Function
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.results.codegen import routine
from feasid.results.codegen.c import compile_routines, find_compiler
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import require_values

KINDS = ("inverse_dynamics", "gravity", "friction", "mass_matrix")
"""Routines that are generated immediately; the others are generated at their first use."""

MOST_COMPILED = 20
"""Coordinates up to which "auto" compiles: gcc takes a fifth of a second for an arm of seven, a
second for a quadruped's eighteen, and eight for a humanoid's 38."""

GATEWAY = kind_from_annotation(Measured)  #: Convert arguments that are not the usual arrays.

INPUTS = {"q": "[rad or m]", "dq": "[per s]", "ddq": "[per s^2]", "tau": "[N m or N]"}

TORQUES = "ndarray, shape (dof,)\n    [N m or N]"
REGRESSOR = """ndarray, shape (dof, nb)
    Its product with ``base.values(parameters)`` is the vector of torques."""

SECTIONS = """

Parameters
----------
{}

Returns
-------
{}

Raises
------
InputError
    An input has another shape.
"""
"""End of the docstring of a method that takes one sample and returns an array."""


def document_sample(returns: str) -> Callable[[Function], Function]:
    """Add `SECTIONS` to the docstring of a method; its inputs are `INPUTS`."""

    def document(function: Function) -> Function:
        names = [*inspect.signature(function).parameters][1:]
        inputs = [f"{name} : array_like, shape (dof,)\n    {INPUTS[name]}" for name in names]
        sections = SECTIONS.format("\n".join(inputs), returns)
        function.__doc__ = f"{inspect.getdoc(function)}{sections}"
        return function

    return document


class CompiledDynamics:
    """A robot's dynamics, ready to be evaluated for single samples.

    Parameters
    ----------
    robot : Robot
        A tree, its base fixed or floating, with values for all its parameters.
    base : BaseParameters, optional
        Base parameters of this robot. With them, the code takes base parameters as arguments, which
        `use` changes, and uses the geometry for which they are exact. By default the code has the
        robot's standard parameters and the literal geometry of its description.
    backend : {"auto", "c", "python"}
        Machine code through the system's C compiler, or a function of Python floats; "auto" uses
        the compiler if there is one that works, for robots of up to twenty coordinates; compiling
        larger code takes many seconds. The attribute ``backend`` says which one is used. Use an
        instance in one thread only.

    Attributes
    ----------
    robot : Robot
    backend : str

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
        base: BaseParameters | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
    ) -> None:
        self.robot = robot
        self._adjustable = base is not None
        self._base = base
        self._still = np.zeros(robot.dof)
        self._shape = (robot.dof,)
        self._code: Functions = {}
        self.backend: str = backend
        self._generate_routines(KINDS)
        self._arguments: tuple[Any, ...] = ()
        if base is not None:
            self.use(base.values(require_values(robot, "give it some by robot.with_values")))

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the robot; the regressor has one column for each."""
        if self._base is None:
            self._base = base_parameters(self.robot)
        return self._base

    def _generate_routines(self, kinds: tuple[str, ...]) -> None:
        """Generate routines, and compile them where the backend does."""
        source: routine.BaseParameterModel | routine.StandardParameterModel
        if self._adjustable:
            source = routine.BaseParameterModel.from_robot(self.robot, self.base, argument=True)
        else:
            columns = self.base.independent.tolist() if "regressor" in kinds else ()
            source = routine.StandardParameterModel(self.robot, tuple(columns))
        small = self.robot.dof <= MOST_COMPILED
        if self.backend == "c" or (self.backend == "auto" and small and find_compiler()):
            try:
                self._code |= compile_routines(source, kinds)
                self.backend = "c"
                return
            except InputError:
                if self.backend == "c":
                    raise
        self.backend = "python"
        for kind in kinds:
            self._code[kind] = _call_with_lists(routine.python_function(source.routine(kind)))

    def _find_or_generate_routine(self, kind: str) -> Callable[..., Sequence[float] | Array]:
        """A routine; it is generated at its first use."""
        if kind not in self._code:
            self._generate_routines((kind,))
        return self._code[kind]

    @checked
    def use(self, beta: Vector) -> None:
        """Use these base parameters from the next call on.

        Parameters
        ----------
        beta : array_like, shape (nb,)

        Raises
        ------
        InputError
            `beta` does not have nb entries, or the model was made without base parameters.
        """
        values = np.array(beta, dtype=np.float64)
        if not self._adjustable:
            raise InputError("the parameters are folded into the code: give base= to change them")
        if values.shape != (self.base.size,):
            raise InputError(f"beta must be {self.base.size} finite base parameters")
        self.beta = values
        self._arguments = (values if self.backend == "c" else values.tolist(),)

    def _vector_inputs(self, **inputs: npt.ArrayLike) -> tuple[Array, ...]:
        """The inputs as arrays of one number per coordinate, without the gateway where they are."""
        out = []
        for name, values in inputs.items():
            if type(values) is not np.ndarray or values.dtype != np.float64:
                values = GATEWAY.convert_argument(name, values)
            if values.shape != self._shape:
                raise InputError(
                    f"{name} has shape {values.shape}, needed is ({self.robot.dof},): one number "
                    f"for each of {', '.join(self.robot.coordinates)}"
                )
            out.append(values)
        return tuple(out)

    @document_sample(TORQUES)
    def inverse_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """Torques of a motion, friction included."""
        q, dq, ddq = self._vector_inputs(q=q, dq=dq, ddq=ddq)
        # A copy: compiled code overwrites its outputs at the next call.
        return np.array(self._code["inverse_dynamics"](*self._arguments, q, dq, ddq))

    @document_sample(TORQUES)
    def gravity(self, q: npt.ArrayLike) -> Array:
        """Torques that hold the bodies still."""
        (q,) = self._vector_inputs(q=q)
        return np.array(self._code["gravity"](*self._arguments, q))

    @document_sample(TORQUES)
    def friction(self, q: npt.ArrayLike, dq: npt.ArrayLike) -> Array:
        """Torques of friction and springs."""
        q, dq = self._vector_inputs(q=q, dq=dq)
        return np.array(self._code["friction"](*self._arguments, q, dq, self._still))

    @document_sample(REGRESSOR)
    def regressor(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """Regressor of the base parameters; the first call prepares the code."""
        inputs = self._vector_inputs(q=q, dq=dq, ddq=ddq)
        flat = self._find_or_generate_routine("regressor")(*inputs)
        return np.array(flat).reshape(self.robot.dof, self.base.size)

    @document_sample("ndarray, shape (dof, dof)")
    def mass_matrix(self, q: npt.ArrayLike) -> Array:
        """Mass matrix M, drive inertia included."""
        (q,) = self._vector_inputs(q=q)
        dof = self.robot.dof
        return np.array(self._code["mass_matrix"](*self._arguments, q)).reshape(dof, dof)

    @document_sample("ndarray, shape (dof,)\n    [per s^2]")
    def forward_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, tau: npt.ArrayLike) -> Array:
        """Accelerations that torques cause, ``M^-1 (tau - h)``; the first call prepares the code.

        Raises `InputError`, too, for an infeasible model, whose mass matrix is singular.
        """
        q, dq, tau = self._vector_inputs(q=q, dq=dq, tau=tau)
        function = self._find_or_generate_routine(routine.FORWARD)
        out = np.array(function(*self._arguments, q, dq, tau))
        if not np.isfinite(out).all() and np.isfinite([q, dq, tau]).all():
            raise InputError("the mass matrix is singular: this model is infeasible")
        return out

    def __getstate__(self) -> dict[str, Any]:
        """The state without compiled functions, which are compiled again on loading."""
        return vars(self) | {"_code": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._generate_routines(KINDS)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} of {self.robot.name!r}: {self.robot.dof} coordinates, {self.backend}>"


Functions = dict[str, Callable[..., Sequence[float] | Array]]


def _call_with_lists(function: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """The function for arrays, called with lists: Python floats are several times faster."""

    def call(beta: list[float], *arguments: npt.ArrayLike) -> list[float]:
        rows = (np.asarray(x, dtype=np.float64).tolist() for x in arguments)
        try:
            return function(beta, *rows)
        except (ValueError, OverflowError):
            # Of an input that is infinite: C returns NaN, and so does this.
            if all(np.isfinite(np.asarray(x, dtype=np.float64)).all() for x in arguments):
                raise
            return [math.nan]

    return call
