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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.threads import one_thread
from feasid.errors import InputError
from feasid.estimation import noise
from feasid.identifiability.base import BaseParameters
from feasid.loads.payload import Payload, load_parameters
from feasid.logs.units import unit_factor
from feasid.options.complete import document_options
from feasid.options.tables import LoadOptions
from feasid.regression.reduce import Log, reduce_groups
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot

INERTIAL_SHARE = 0.3
"""Standard deviation of the description's inertials from a common factor, as a share."""

FACTOR_SHARE = 0.2
"""Standard deviation of that factor: CAD models err in common, by coverings, cables, and infill."""

UNSEEN = 0.5
"""A constant with a larger relative deviation is not told by the logs."""


@checked_methods
@dataclass(frozen=True, eq=False)
class TorqueConstants:
    """Torque per unit of current, per joint.

    Attributes
    ----------
    joints : tuple of str
    constants, deviations : ndarray, shape (dof,)
        [N m / A] and their standard deviations, which from a description alone count what it may
        be wrong by; NaN where the logs do not determine them.
    beta : ndarray, shape (nb,)
        Base parameters identified with them.
    from_load : bool
        Whether a known load fixes them, rather than the description's inertials.
    ampere : tuple of float
        What one unit of each joint's column is [A], 1e-3 where ``units={"tau": "mA"}``; empty
        for amperes.
    """

    joints: tuple[str, ...]
    constants: Array
    deviations: Array
    beta: Array
    from_load: bool = True
    ampere: tuple[float, ...] = ()

    @property
    def units(self) -> dict[str, float]:
        """As option of `feasid.fit`, with which the same columns are read as torques."""
        ampere = self.ampere or (1.0,) * len(self.joints)
        rows = zip(self.joints, self.constants, ampere, strict=True)
        return {f"tau_{j}": float(k * unit) for j, k, unit in rows if np.isfinite(k)}

    def __repr__(self) -> str:
        lines = [
            f"  {j:20} {k:10.4g} +- {s:.2g} N m/A"
            if np.isfinite(k)
            else f"  {j:20} not determined to {UNSEEN:.0%}"
            for j, k, s in zip(self.joints, self.constants, self.deviations, strict=True)
        ]
        if not self.from_load:
            lines.append(
                f"The description's inertials fix them, taken as right to {FACTOR_SHARE:.0%} in "
                f"common and {INERTIAL_SHARE:.0%} per body; a log with a known load (loaded=, "
                "load=) fixes them better."
            )
        return "\n".join(["torque constants", *lines])


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
        for p in _whitened_joint_equations(r)
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
    return _build_torque_constants(robot, found.x[size:], spread, found.x[:size] / scale)


def constants_of_description(log: Reduced, base: BaseParameters) -> TorqueConstants:
    """Constants that make a log of currents agree with the description's inertials."""
    robot = base.robot
    values = robot.values.copy()
    inertial = robot.inertial_columns.ravel()
    if np.isnan(values[inertial]).any():
        raise InputError(
            f"the description of robot {robot.name!r} lacks inertials: give a known load, loaded= "
            "and load="
        )
    own = np.zeros(robot.size)
    own[inertial] = values[inertial]
    K = np.asarray(base.K, dtype=np.float64)
    rigid, others = K @ own, np.setdiff1d(np.arange(robot.size), inertial)
    constants, spread = np.full(robot.dof, np.nan), np.full(robot.dof, np.nan)
    for j, r, rho in _whitened_joint_equations(log):
        columns = np.c_[r @ rigid, r @ K[:, others]]
        size = np.linalg.norm(columns, axis=0)
        columns = columns[:, size > 0] / size[size > 0]
        if size[0] == 0:
            continue
        found = np.linalg.lstsq(columns, rho, rcond=1e-10)[0]
        per = found[0] / size[0]
        constants[j] = 1.0 / per if per else np.nan
        deviation = np.sqrt(np.linalg.pinv(columns.T @ columns)[0, 0]) / size[0]
        projection = np.linalg.pinv(columns, rcond=1e-10)[0] / size[0]
        bodies = [projection @ (r @ (K[:, c] @ own[c])) for c in robot.inertial_columns]
        wrong = np.hypot(FACTOR_SHARE, INERTIAL_SHARE * np.linalg.norm(bodies))
        noisy = deviation / abs(per) if per else np.nan
        spread[j] = abs(constants[j]) * np.hypot(noisy, wrong)
    return _build_torque_constants(robot, constants, spread, rigid, from_load=False)


def _whitened_joint_equations(reduced: Reduced) -> list[tuple[int, Array, Array]]:
    """Per joint its equations of all base parameters, in units of the noise of its current."""
    _, beta = noise.estimate_noise(reduced)
    spread = reduced.residuals(beta) / np.sqrt(max(reduced.rows, 1))
    spread = np.maximum(
        spread, noise.SMALLEST_DEVIATION * reduced.torque_norms / np.sqrt(max(reduced.rows, 1))
    )
    out = []
    for j, (support, triangle) in enumerate(zip(reduced.supports, reduced.triangles, strict=True)):
        r = np.zeros((len(support), len(reduced.columns)))
        r[:, list(support)] = triangle[:-1, :-1] / max(spread[j], noise.TINY)
        out.append((j, r, triangle[:-1, -1] / max(spread[j], noise.TINY)))
    return out


def _build_torque_constants(
    robot: Robot, constants: Array, spread: Array, beta: Array, from_load: bool = True
) -> TorqueConstants:
    """The constants; those that the log hardly shows are NaN."""
    known = spread < UNSEEN * np.abs(constants)
    return TorqueConstants(
        robot.coordinates,
        np.where(known, constants, np.nan),
        np.where(known, spread, np.nan),
        beta,
        from_load,
    )
