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

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from feasid.applications.loads.payload import Payload
from feasid.core.arguments import array, checked, checked_methods, number, one_per
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import read_whole
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.estimation import torque_scale
from feasid.identification.regression.reduce import Log, open_sources, reduce_groups
from feasid.identification.regression.triangle import Reduced
from feasid.logs.recording import Recording, read_signals
from feasid.logs.units import unit_factor
from feasid.options.complete import document_options, select_options
from feasid.options.tables import LoadOptions, ReadOptions
from feasid.parameters.identifiability.base import BaseParameters, load_columns, load_parameters
from feasid.robot.description import Robot
from feasid.robot.inertia import from_mass_com_inertia


@checked_methods
@dataclass(frozen=True, eq=False)
class TorqueConstants:
    """Torque per unit of current, per joint."""

    joints: Annotated[tuple[str, ...], one_per("joints")]  #: Names of the joints.
    #: [N m / A] and their standard deviations, which from a description alone count
    #: what it may be wrong by; NaN where the logs do not determine them.
    constants: Annotated[Array, array("joints", finite=False)]
    deviations: Annotated[Array, array("joints", finite=False)]  #: See `constants`.
    beta: Array  #: Shape (nb,): base parameters identified with them.
    #: Whether a known load fixes them, rather than the description's inertials.
    from_load: bool = True
    #: What one unit of each joint's column is [A], 1e-3 where ``units={"tau": "mA"}``; empty for
    #: amperes.
    ampere: tuple[float, ...] = ()

    @property
    def units(self) -> dict[str, float]:
        """Value of the option `units` of `feasid.fit` with which the same columns are read as
        torques.

        Joints in `undetermined` have no entry; their columns remain currents.
        """
        ampere = self.ampere or (1.0,) * len(self.joints)
        rows = zip(self.joints, self.constants, ampere, strict=True)
        return {f"tau_{j}": float(k * unit) for j, k, unit in rows if k > 0}

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Joints whose constant the log does not show, or shows as negative."""
        return tuple(j for j, k in zip(self.joints, self.constants, strict=True) if not k > 0)

    def __repr__(self) -> str:
        lines, rows = [], zip(self.joints, self.constants, self.deviations, strict=True)
        for joint, constant, deviation in rows:
            text = f"{constant:10.4g} +- {deviation:.2g} N m/A"
            if not np.isfinite(constant):
                text = f"not determined to {torque_scale.UNSEEN:.0%}"
            elif constant < 0:
                text += ": negative: its column has the opposite sign, or the load is on another "
                text += "body (body=)"
            lines.append(f"  {joint:20} {text}")
        if names := self.undetermined:
            measured = [j for j in self.joints if j not in names]
            lines.append(
                f"{', '.join(names)} cannot be read as torques: leave them out of a fit, measured="
                f"{measured}"
            )
        if not self.from_load:
            lines.append(
                "They rely on the description's inertials, assumed to be right to "
                f"{torque_scale.FACTOR_SHARE:.0%} in common and {torque_scale.INERTIAL_SHARE:.0%} "
                "per body; a log with a known load (loaded=, load=) determines them better."
            )
        return "\n".join(["torque constants", *lines])


@checked
@document_options(LoadOptions)
@one_thread()
@step("identifying torque constants")
def torque_constants(
    log: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    *,
    loaded: Log | Reduced | Sequence[Log | Reduced] | None = None,
    load: Payload | float | npt.ArrayLike | None = None,
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
        A log of the robot with a known load. Without it, the constants rely on the description's
        inertials, with the uncertainty assumed in `feasid.identification.servos.gains`.
    load : Payload, float or array_like, shape (10,), optional
        The known load: its mass [kg], or its parameters in the frame of the body that carries it,
        as `feasid.robot.inertia.from_mass_com_inertia` makes them of mass, centre and inertia.
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
        Only one of `loaded` and `load` is given, or both are missing and the description has no
        inertials.
    """
    if (loaded is None) != (load is None):
        text = "a known load needs both loaded= (a log with it) and load= (its parameters)"
        raise InputError(text)
    groups = [log] if loaded is None else [log, loaded]
    base, parts, _ = reduce_groups(groups, robot, options, "torque_constants")
    # What one unit of each column is [A]; 1 where a header says it, which is converted already.
    units, headers = options.get("units"), [""] * len(base.robot.coordinates)
    first = open_sources(log)[0]
    if units and isinstance(first, Recording):
        layout = read_signals(first, base.robot, **select_options(ReadOptions, options)).layout
        headers = [layout.header_unit("tau", k) for k in range(len(headers))]
    pairs = zip(base.robot.coordinates, headers, strict=True)
    ampere = tuple(unit_factor(units, "tau", j, h) for j, h in pairs)
    if load is None:
        names, described = base.robot.coordinates, base.robot.inertial_columns.ravel()
        rigid = base.K[:, described] @ base.robot.values[described]
        constants = torque_scale.constants_of_description(parts[0], base)
        return TorqueConstants(names, *constants, rigid, from_load=False, ampere=ampere)
    return replace(constants_of_load(parts[0], parts[1], load, base, body), ampere=ampere)


def constants_of_load(
    log: Reduced, loaded: Reduced, load: Any, base: BaseParameters, body: str | None = None
) -> TorqueConstants:
    """Constants from reduced currents without and with a known load, or a load of known mass."""
    robot, free = base.robot, np.zeros((len(base.independent), 0))
    if isinstance(load, int | float):  # its centre and inertia are further unknowns
        columns = load_columns(base, body)[1]
        added, free = load_parameters(base, load * np.eye(10)[9], body), columns[:, :9]
    else:
        added = load_parameters(base, load, body)
    parts = [
        (j, np.hstack([r, share * r @ free]), rho, np.r_[share * added, np.zeros(free.shape[1])])
        for reduced, share in ((log, 0.0), (loaded, 1.0))
        for j, r, rho in torque_scale.whitened_joint_equations(reduced)
    ]
    size, dof = len(added) + free.shape[1], robot.dof
    scale = np.sqrt(sum(np.sum(r**2, axis=0) for _, r, _, _ in parts))
    scale = np.where(scale > 0, scale, 1.0)

    # Equations that are linear in beta and k are a start; noise of currents biases them a little.
    linear = np.vstack([np.c_[r / scale, -np.outer(rho, np.eye(dof)[j])] for j, r, rho, _ in parts])
    known = np.concatenate([-r @ shift for _, r, _, shift in parts])
    start = np.linalg.lstsq(linear, known, rcond=1e-12)[0]
    # Equations are divided by constants: none may begin at zero.
    start[size:] = np.where(np.abs(start[size:]) > 0, start[size:], 1.0)

    def currents(x: Array) -> list[Array]:
        return [r @ (x[:size] / scale + shift) / x[size + j] for j, r, _, shift in parts]

    def residuals(x: Array) -> Array:
        return np.concatenate([i - rho for i, (*_, rho, _) in zip(currents(x), parts, strict=True)])

    def jacobian(x: Array) -> Array:
        rows = zip(currents(x), parts, strict=True)
        return np.vstack([np.c_[r / scale, -np.outer(i, np.eye(dof)[j])] / x[size + j]
                          for i, (j, r, *_) in rows])  # fmt: skip

    solution = least_squares(residuals, start, jac=jacobian, x_scale="jac", method="trf")
    J = jacobian(solution.x)
    covariance = np.linalg.pinv(J.T @ J, rcond=1e-13)
    spread = np.sqrt(np.maximum(np.diag(covariance)[size:], 0.0))
    constants = torque_scale.where_determined(solution.x[size:], spread)
    return TorqueConstants(robot.coordinates, *constants, (solution.x[:size] / scale)[: len(added)])


LOAD = {"mass": number(), "centre": array(3), "inertia": array(3, 3)}
"""What a file has of a load that is known."""


def read_load(text: str) -> tuple[Array | float, str | None]:
    """A mass, or the ten parameters of the load in a file, and the body in whose frame they are.

    Raises InputError: names the file and what it lacks.
    """
    with suppress(ValueError):
        return float(text.removesuffix("kg")), None
    content = read_whole(text)
    try:
        data: Any = json.loads(content)
        parts = {key: data[key] for key in LOAD}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{text}: a load is JSON with {', '.join(LOAD)}") from error
    load = [LOAD[key].convert_argument(f"{text}: {key}", part) for key, part in parts.items()]
    body = data.get("body")
    return from_mass_com_inertia(*load), None if body is None else str(body)
