"""Second moments moved so that a file serves one purpose better; masses and centres stay.

A file that lacks a term, such as the armature in URDF, can have the bodies' second moments stand
for part of it. This makes bodies that nobody measured, so it is done only for a purpose that the
caller names, within the set of bodies in which the fit itself looked for its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.regressor import regressor
from feasid.errors import FeasidError, InputError
from feasid.feasibility.constraints.affine import bound_constraints
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import feasible_least_squares
from feasid.formats.write import unrepresentable_columns
from feasid.robot.description import Robot
from feasid.robot.inertia import to_mass_com_inertia
from feasid.robot.known import Equality
from feasid.uncertainty.ranges import ResidualRegion

PURPOSES = ("simulation", "gravity", "torque")

NEAR = 1e-2
"""Weight of staying with the fit's second moments, relative to the equations' size."""

GYRATION = 2.0
"""Factor within which radii of gyration stay: equations alone would let bodies shrink to points."""


@dataclass(frozen=True, eq=False)
class _AllParameters:
    """All standard parameters, as `feasible_least_squares` asks for them."""

    robot: Robot
    K: Array


def parameters_for_purpose(
    robot: Robot, equations: ResidualRegion, kind: str, purpose: str, postures: Array
) -> Array:
    """Standard parameters for a file of a format, serving a purpose.

    ``"simulation"``: the mass matrix, drive inertia included, is as close as possible over the
    postures, its rows scaled by the joints' own inertia. ``"torque"``: the torques of the
    fitted log are. ``"gravity"``: nothing moves, since masses and first moments decide it.

    Parameters
    ----------
    robot : Robot
        With the parameters that the file would have else.
    equations : Residual
        The weighted equations that were solved, and the plausible set of the fit.
    kind : str
        Name of the format.
    purpose : {"simulation", "gravity", "torque"}
    postures : ndarray, shape (N, dof)

    Raises
    ------
    InputError
        Nothing of the set has the fit's masses and centres.
    """
    values, lacking = robot.values, unrepresentable_columns(robot, kind)
    lost = np.where(lacking, values, 0.0)
    if purpose == "gravity":
        return np.asarray(values)
    if purpose == "simulation":
        A = _inertia_rows(robot, postures)
        target = A @ values
    else:
        A = equations.r @ equations.base.K
        offsets = [c for k in range(len(robot.drives))
                   for s, c in robot.drive_columns(k).items() if s == "fo"]  # fmt: skip
        target = equations.rho - A[:, offsets] @ values[offsets]
        lost[offsets] = 0.0
    if not np.abs(A @ lost).max() > 0:
        return values
    second = robot.inertial_columns[:, :6].ravel()
    free = np.zeros(robot.size, dtype=bool)
    free[second] = True
    for k, drive in enumerate(robot.drives if purpose == "torque" else ()):
        columns = robot.drive_columns(k)
        alone = len(drive.coupling) == 1
        free[[c for s, c in columns.items() if alone and s in ("fv", "fc")]] = True
    massless = [i for i, body in enumerate(robot.bodies) if body.massless]
    free[robot.inertial_columns[massless].ravel()] = False
    fixed = np.where(lacking, 0.0, values)
    ties = (e for e in equations.believed.equalities if free[list(e.columns)].all())
    held = (
        Equality(f"{'.'.join(robot.parameter_names[j])} of the fit", (int(j),), (1.0,), fixed[j])
        for j in np.flatnonzero(~free)
    )
    feasible = replace(
        _within_gyration_factor(equations.believed, robot), equalities=(*ties, *held)
    )
    size = np.linalg.norm(A[:, second], axis=0).reshape(-1, 6).max(axis=1).repeat(6)
    stay = NEAR * size[:, None] * np.eye(robot.size)[second]
    rows, wanted = np.vstack([A, stay]), np.concatenate([target, stay @ values])
    try:
        whole = _AllParameters(robot, np.eye(robot.size))
        found = feasible_least_squares(rows, wanted, whole, feasible, friction_ridge=0.0)
    except FeasidError as error:
        raise InputError(
            f"purpose={purpose!r}: no plausible second moments were found beside the fit's masses "
            f"and centres ({error}); write the file without a purpose",
            option="purpose",
        ) from error
    return np.where(free, found.delta, values)


def _within_gyration_factor(feasible: FeasibleSet, robot: Robot) -> FeasibleSet:
    """The set with radii of gyration within a factor of the robot's; masses and centres are its."""
    blocks, limits = [], []
    for block in feasible.blocks:
        J = block.matrix(robot.values)
        if J.shape == (4, 4) and J[3, 3] > 0:  # second moments, first moments and mass
            about_com = np.zeros((4, 4))
            about_com[:3, :3] = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]
            least = block.constant - about_com / GYRATION**2
            block = replace(block, constant=least, strict=False)
        blocks.append(block)
    for body, columns in zip(robot.bodies, robot.inertial_columns, strict=True):
        mass = robot.values[columns[9]]
        if body.massless or not mass > 0:
            continue
        trace = robot.values[columns[[0, 3, 5]]].sum()
        about_origin = 2 * (robot.values[columns[6:9]] ** 2).sum() / mass
        most = about_origin + GYRATION**2 * (trace - about_origin)
        name = f"radius of gyration of {body.name}"
        limits += bound_constraints(name, columns[[0, 3, 5]], np.ones(3), None, most)
    return replace(feasible, blocks=tuple(blocks), linear=(*feasible.linear, *limits))


def _inertia_rows(robot: Robot, postures: Array) -> Array:
    """Regressor of the mass matrix over postures, rows and columns in the joints' own units."""
    weightless = replace(robot, gravity=np.zeros(3))
    n, rows = robot.dof, []
    for q in postures:
        still = np.zeros((n, n))
        rows.append(regressor(weightless, np.tile(q, (n, 1)), still, np.eye(n)))
    Y = np.array(rows)  # posture, accelerating joint, row, parameter
    moving = np.zeros(robot.size, dtype=bool)
    moving[robot.inertial_columns] = True
    for k in range(len(robot.drives)):
        moving[[c for s, c in robot.drive_columns(k).items() if s == "Ia"]] = True
    for i in range(len(robot.bodies)):
        moving[robot.rotor_columns(i)] = True
    Y *= moving
    inertia = np.sqrt(np.einsum("pjjc,c->j", Y, robot.values) / len(postures))
    scaled = Y / inertia[:, None, None] / inertia[:, None]
    return np.asarray(scaled.reshape(-1, robot.size))


def describe_changes(
    robot: Robot, fitted: Array, before: Array, after: Array, postures: Array
) -> list[str]:
    """Errors of mass matrix and gravity torques, and every body, before and after.

    Parameters
    ----------
    robot : Robot
    fitted, before, after : ndarray, shape (n,)
        Standard parameters of the fit, and of the file without and with the purpose.
    postures : ndarray, shape (N, dof)
    """
    still, lines = np.zeros_like(postures), []
    weights = np.zeros(robot.size)
    weights[robot.inertial_columns] = 1.0
    gravity = regressor(robot, postures, still, still).reshape(-1, robot.size) * weights
    inertia = _inertia_rows(robot.with_values(fitted), postures)
    for name, A in (("mass matrix", inertia), ("gravity torques", gravity)):
        size = float(np.linalg.norm(A @ fitted)) or 1.0
        off = [float(np.linalg.norm(A @ (x - fitted))) / size for x in (before, after)]
        lines.append(f"{name}: {100 * off[0]:.3g} % off the fit's -> {100 * off[1]:.3g} %")
    for i, body in enumerate(robot.bodies):
        if body.massless:
            continue
        columns = robot.inertial_columns[i]
        said = []
        for ten in (before[columns], after[columns]):
            mass, com, about = to_mass_com_inertia(ten)
            radii = np.sqrt(np.maximum(np.linalg.eigvalsh(about), 0.0) / mass)
            place, radius = (", ".join(f"{x:.4g}" for x in v) for v in (com, radii))
            said.append(f"{mass:.4g} kg, centre ({place}) m, radii of gyration ({radius}) m")
        lines.append(f"{body.name}: {said[0]} -> {said[1]}")
    return lines
