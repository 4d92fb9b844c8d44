"""Torque constants from logs of motor currents: joint torque is constant times current.

Currents alone fix a robot's parameters up to one factor per joint. A known load, carried in one
log and not in another, fixes the factors (Gautier and Briot 2014, "Global identification of joint
drive gains and dynamic parameters of robots", J. Dyn. Sys. Meas. Control 136(5)): with current i,
constant k and the load's part b of the base parameters,

    i_j = W_j beta / k_j  without the load,    i_j = W_j (beta + b) / k_j  with it,

for all joints and both logs at once. A description does the same with one log, as far as its
inertials are right: the deviations count that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.threads import one_thread
from feasid.errors import InputError
from feasid.identifiability.base import BaseParameters
from feasid.loads.description import (
    TorqueConstants,
    build_torque_constants,
    constants_of_description,
    whitened_joint_equations,
)
from feasid.loads.payload import Payload, load_parameters
from feasid.logs.units import unit_factor
from feasid.options.complete import document_options
from feasid.options.tables import LoadOptions
from feasid.regression.reduce import Log, reduce_groups
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot


@checked
@document_options(LoadOptions)
@one_thread()
def torque_constants(
    log: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    *,
    loaded: Log | Reduced | Sequence[Log | Reduced] | None = None,
    load: Payload | npt.ArrayLike | None = None,
    body: str | None = None,
    **options: Unpack[LoadOptions],
) -> TorqueConstants:
    """Identify torque constants, jointly with the robot's parameters.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
        Its torque columns hold currents.
    robot : Robot or path, optional
    loaded : the same, optional
        A log of the robot with a known load. Without it the description's inertials fix the
        constants, with the deviations of `feasid.servos.gains`.
    load : Payload or array_like, shape (10,), optional
        The known load: its parameters in the frame of the body that carries it, as
        `feasid.robot.inertia.from_mass_com_inertia` makes them of mass, centre and inertia.
    body : str, optional
        The body that carries it; default the last one.
    **options
        How the logs are read and reduced.

    Returns
    -------
    TorqueConstants

    Raises
    ------
    InputError
        When only one of `loaded` and `load` is given, or without them the description has no
        inertials.
    """
    if (loaded is None) != (load is None):
        raise InputError("a known load needs both: the log with it (loaded) and what it is (load)")
    groups = [log] if loaded is None else [log, loaded]
    base, parts, _ = reduce_groups(groups, robot, options, "torque_constants")
    units = options.get("units")
    ampere = tuple(unit_factor(units, "tau", j) for j in base.robot.coordinates)
    if load is None:
        return replace(constants_of_description(parts[0], base), ampere=ampere)
    ten = load.parameters if isinstance(load, Payload) else np.asarray(load, dtype=np.float64)
    return replace(constants_of_load(parts[0], parts[1], ten, base, body), ampere=ampere)


def constants_of_load(
    log: Reduced, loaded: Reduced, load: Array, base: BaseParameters, body: str | None = None
) -> TorqueConstants:
    """Constants from reduced currents without and with a known load."""
    robot = base.robot
    added = load_parameters(base, load, body)
    parts = [
        (*p, shift)
        for r, shift in ((log, 0.0 * added), (loaded, added))
        for p in whitened_joint_equations(r)
    ]
    size, dof = len(added), robot.dof
    scale = np.sqrt(sum(np.sum(r**2, axis=0) for _, r, _, _ in parts))
    scale = np.where(scale > 0, scale, 1.0)

    # Equations that are linear in beta and k are a start; noise of currents biases them a little.
    linear = np.vstack([np.c_[r / scale, -np.outer(rho, np.eye(dof)[j])] for j, r, rho, _ in parts])
    known = np.concatenate([-r @ shift for _, r, _, shift in parts])
    start = np.linalg.lstsq(linear, known, rcond=1e-12)[0]
    start[size:] = np.where(np.abs(start[size:]) > 0, start[size:], 1.0)

    def residuals(x: Array) -> Array:
        beta, constant = x[:size] / scale, x[size:]
        return np.concatenate(
            [r @ (beta + shift) / constant[j] - rho for j, r, rho, shift in parts]
        )

    def jacobian(x: Array) -> Array:
        beta, constant = x[:size] / scale, x[size:]
        return np.vstack(
            [
                np.c_[
                    r / scale / constant[j],
                    -np.outer(r @ (beta + shift), np.eye(dof)[j]) / constant[j] ** 2,
                ]
                for j, r, _, shift in parts
            ]
        )

    found = least_squares(residuals, start, jac=jacobian, x_scale="jac", method="trf")
    J = jacobian(found.x)
    covariance = np.linalg.pinv(J.T @ J, rcond=1e-13)
    spread = np.sqrt(np.maximum(np.diag(covariance)[size:], 0.0))
    return build_torque_constants(robot, found.x[size:], spread, found.x[:size] / scale)
