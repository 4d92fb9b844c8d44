"""Units in which a problem's numbers are near one, so that tolerances mean the same everywhere.

In SI numbers a finger's pseudo-inertia is 1e-7 and a leg's is 1, and solvers that stop at 1e-8
call either of them feasible when it is not. Every body therefore gets a mass and a length; its
parameters, its matrices and its margins are counted in them. All units scale with the robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.identifiability.frames import LENGTH_POWER
from feasid.robot import inertia
from feasid.robot.description import Robot

SMALLEST_LENGTH = 1e-3
"""A lever arm shorter than this fraction of the robot's longest says nothing about a body."""

ROUNDING = 1e-9
"""Coefficients smaller than this, relative to the largest of their row, are rounding."""

THINNEST = 1e-6
"""Relative smallest principal second moment below which a described body is degenerate."""


@dataclass(frozen=True, eq=False)
class Units:
    """Size of one unit of everything."""

    mass: Array  #: Shape (n_bodies,): [kg] and [m]
    length: Array  #: See `mass`.
    parameters: Array  #: Shape (n,): SI value of one unit of each standard parameter.
    #: Shape (s,): square root of the unit of each block's diagonal: a block C has the normalised
    #: value ``C / outer(blocks[k], blocks[k])``.
    blocks: tuple[Array, ...]
    linear: Array  #: Shape (m,): unit of each linear constraint.

    def block_margins(self, feasible: FeasibleSet, delta: Array) -> Array:
        """Smallest eigenvalue of each normalised block, shape (len(blocks),)."""
        pairs = zip(feasible.blocks, self.blocks, strict=True)
        matrices = (block.matrix(delta) / np.outer(unit, unit) for block, unit in pairs)
        return np.array([np.linalg.eigvalsh(matrix)[0] for matrix in matrices])

    def margins(self, feasible: FeasibleSet, delta: Array) -> Array:
        """`block_margins`, and the normalised value of each linear constraint."""
        linear = feasible.linear_values(delta) / self.linear
        return np.concatenate([self.block_margins(feasible, delta), linear])


def usable_inertials(robot: Robot) -> Mask:
    """Whether each body's described inertials are usable as a prior, shape (n_bodies,).

    Finite, of positive mass, and with a positive definite pseudo-inertia whose second moments
    about the centre of mass are not degenerate (a rod, a plate or a point is).
    """
    values = robot.values[robot.inertial_columns]
    usable = np.zeros(len(values), dtype=bool)
    for i, body in enumerate(values):
        if not np.isfinite(body).all() or body[9] <= 0:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            pseudo = inertia.pseudo_inertia(body / body[9])
            about_com = pseudo[:3, :3] - np.outer(pseudo[:3, 3], pseudo[:3, 3])
        if not np.isfinite(about_com).all():
            continue
        moments = np.linalg.eigvalsh(about_com)
        usable[i] = moments[0] > THINNEST * max(moments[2], 0.0)
    return usable


def body_lengths(robot: Robot) -> Array:
    """A length per body [m], shape (n_bodies,): its longest lever arm to a neighbouring joint.

    Bodies without one (intersecting axes, the last link) get the mean of the others, and a robot
    without any length gets 1 m.
    """
    arms = np.zeros(len(robot.bodies))
    for i, (body, parent) in enumerate(zip(robot.bodies, robot.parents, strict=True)):
        reach = float(np.linalg.norm(body.position))
        arms[i] = max(arms[i], reach)
        if parent >= 0:
            arms[parent] = max(arms[parent], reach)
    longest = arms.max()
    if longest <= 0:
        return np.ones(len(arms))
    usable = arms > SMALLEST_LENGTH * longest
    typical = float(np.exp(np.log(arms[usable]).mean()))
    return np.where(usable, arms, typical)


def problem_units(
    robot: Robot,
    feasible: FeasibleSet,
    A: Array,
    b: Array,
    *,
    torques: bool = False,
    inertials: bool = True,
) -> Units:
    """Units for a robot whose parameters delta have ``A delta`` near `b`.

    `A` (rows, n): K, or R K when there are data; `b` (rows,): beta, or rho; it sets the mass unit
    of bodies without usable inertials; `torques`: the rows of `A` are torques, so that its columns
    can be compared: then the unit of a joint term is the value that would explain all of `b` by
    itself; `inertials`: whether the description's inertials count; without them all bodies have one
    mass, from `b`.
    """
    n_bodies = len(robot.bodies)
    length, mass = body_lengths(robot), np.full(n_bodies, np.nan)
    usable = usable_inertials(robot) & inertials
    values = robot.values[robot.inertial_columns]
    for i in np.flatnonzero(usable):
        pseudo = inertia.pseudo_inertia(values[i])
        mass[i] = values[i, 9]
        length[i] = np.sqrt(np.trace(pseudo[:3, :3]) / mass[i])
    if usable.all():
        typical = float(np.exp(np.log(mass).mean()))
    else:
        # The smallest mass that explains b, spread over the best visible direction [kg]. Only the
        # strongest direction is used, because weak ones contain mostly noise.
        per_mass = _inertial_units(robot, np.ones(n_bodies), length)
        inertial = per_mass > 0
        columns, target = A[:, inertial] * per_mass[inertial], b
        if not torques:  # rows in different units: compare them by what one unit of mass gives
            sizes = np.abs(columns).max(axis=1, initial=0.0)
            counted = sizes > ROUNDING * np.abs(A).max(axis=1, initial=0.0)
            columns = columns[counted] / sizes[counted, None]
            target = target[counted] / sizes[counted]
        visible = float(np.linalg.norm(columns, 2)) if columns.size else 0.0
        size = float(np.linalg.norm(target))
        typical = size / visible if size > 0 and visible > 0 else 1.0
    mass = np.where(usable, mass, typical)
    parameters = _inertial_units(robot, mass, length)
    inertia_like = float((mass * length**2).mean())
    torque = float((mass * length).mean()) * (float(np.linalg.norm(robot.gravity)) or 1.0)
    sizes = np.linalg.norm(A, axis=0)
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            parameters[column] = inertia_like if symbol == "Ia" else torque
            if torques and sizes[column] > 0 and b.any():
                parameters[column] = np.linalg.norm(b) / sizes[column]
    return constraint_units(feasible, mass, length, parameters)


def constraint_units(feasible: FeasibleSet, mass: Array, length: Array, parameters: Array) -> Units:
    """Units of the constraints that follow from those of bodies and parameters."""
    blocks = tuple(
        np.sqrt(mass[b.body]) * length[b.body] ** np.array(b.powers, dtype=np.float64)
        for b in feasible.blocks
    )
    rows, constants = feasible.linear_matrix, feasible.linear_constant
    linear = np.abs(rows) @ parameters
    for i, constraint in enumerate(feasible.linear):
        if constraint.opposite:  # two bounds: their sum is the width of the gap between them
            j = i + constraint.opposite
            width = np.abs(rows[i] + rows[j]) @ parameters + abs(constants[i] + constants[j])
            linear[i] = min(linear[i], width)
    return Units(mass, length, parameters, blocks, np.where(linear > 0, linear, 1.0))


def denser_bodies(feasible: FeasibleSet, scale: Units, factor: float) -> Units:
    """Units with bodies `factor` times heavier and smaller: first moments stay, inertias shrink."""
    parameters = scale.parameters.copy()
    for block in feasible.blocks:
        if len(block.columns) == len(LENGTH_POWER) and block.kind in ("full", "semi"):
            parameters[block.columns] *= factor ** (1.0 - LENGTH_POWER)
    return constraint_units(feasible, scale.mass * factor, scale.length / factor, parameters)


def _inertial_units(robot: Robot, mass: Array, length: Array) -> Array:
    """Unit of each inertial parameter, m l^p; 0 for joint terms; shape (n,)."""
    out = np.zeros(robot.size)
    for i, columns in enumerate(robot.inertial_columns):
        out[columns] = mass[i] * length[i] ** LENGTH_POWER
        rotor = robot.bodies[i].rotor
        if rotor is not None:
            powers = LENGTH_POWER[[0, 5, 8, 9]] if rotor.symmetric else LENGTH_POWER
            out[robot.rotor_columns(i)] = mass[i] * length[i] ** powers
    return out
