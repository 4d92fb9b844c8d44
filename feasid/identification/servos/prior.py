"""What is known of gains and robot before a log: the description, trusted gains, weighed moments.

Motion determines all gains and parameters up to one common factor, so this module also describes
what to weigh, and how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.identification.estimation.torque_scale import FACTOR_SHARE
from feasid.identification.servos.evidence import GainPrior
from feasid.parameters.identifiability.base import BaseParameters, servo_scale_groups
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics, regressor
from feasid.robot.formats.load import describe_mjmodel
from feasid.robot.formats.registry import reread_description
from feasid.robot.known import weighed_parameters

DESCRIPTION = "the description"  #: Source of the common factor if nothing was weighed.

SHAPE = 0.4
"""Deviation of a body's shape, of its size, over that of its mass: most of what descriptions are
wrong by are masses, which move all ten parameters of a body."""

FILE_SHARE = 0.6
"""Relative deviation of a gain that a description states: published ones of one arm are 17.8 and
998 N m / rad."""

WEIGHED = 33
"""Positions of a joint of which the one with the largest moment is proposed for weighing."""

SMALLEST_MOMENT = 1e-9
"""Gravity moment [N m] below which there is nothing to weigh; a vertical axis gives 1e-17."""

LARGE_MOMENT = 5.0
"""Gravity moment [N m] from which the scale is proposed half a metre from the axis."""


def gain_prior(base: BaseParameters, options: Mapping[str, Any]) -> GainPrior:
    """Knowledge from the description and the options.

    Raises InputError: a joint or standard deviation is impossible, nothing fixes the common factor,
    or a parameter was weighed by itself.
    """
    robot = base.robot
    for weighed in weighed_parameters(robot, options["known"]):
        text = f"known {weighed.name} has a standard error, which a fit of commands does not take"
        raise InputError(f"{text}: weigh moments=, or give the number alone", option="known")
    known = bool(np.isfinite(robot.values[robot.inertial_columns]).all())
    trusted = {}
    for joint, (kp, deviation) in (options["gains"] or {}).items():
        if joint not in robot.joints or not (kp > 0 and deviation > 0):
            text = (f"gains of {joint!r} must be (kp, relative deviation), both above zero, of a "
                    f"joint among {', '.join(robot.joints)}")  # fmt: skip
            raise InputError(text, option="gains")
        trusted[robot.joints.index(joint)] = float(kp), float(deviation)
    sources = {
        "a known load": options["loaded"] is not None,
        "trusted gains": bool(trusted),
        "moments that were weighed": bool(options["moments"]),
    }
    by = [what for what, use in sources.items() if use]
    if not known and not by:
        raise InputError(
            f"the description of robot {robot.name!r} lacks inertials, so that nothing fixes the "
            "common factor of gains and parameters: give gains=, moments= or loaded= and load="
        )
    unknowns = np.asarray(base.K, dtype=np.float64) if known else np.eye(len(base.independent))
    rows = [_moment_row(base, *m) for m in options["moments"] or ()]
    moments = np.array(rows).reshape(-1, len(base.independent) + 1)
    # Gains of position servos that the robot's file or compiled model states.
    source = robot.source
    if source is not None and source.format == "mujoco":
        description = describe_mjmodel(source.reading["compiled"])
    else:
        description = reread_description(robot)
    motors = {} if description is None else description.motors
    stated = {robot.joints.index(j): kp for j, kp in motors.items()
              if kp > 0 and j in robot.joints}  # fmt: skip
    return GainPrior(
        unknowns,
        _description_rows(robot) if known else np.zeros((0, unknowns.shape[1] + 1)),
        moments[:, :-1] @ unknowns,
        moments[:, -1],
        trusted,
        {j: (kp, FILE_SHARE) for j, kp in stated.items() if j not in trusted},
        FACTOR_SHARE if by else 0.0,
        " and ".join(by) or DESCRIPTION,
    )


def _description_rows(robot: Robot) -> Array:
    """Rows [parameters | factor]: each body's ten parameters near the description's times a factor.

    Their covariance, over the squared width, is that of the mass and of the shape.
    """
    rows = []
    for columns in robot.inertial_columns:
        ten = robot.values[columns]
        # Bodies without mass or extent still need sizes to divide by.
        mass, trace = max(ten[9], 1e-6), max(ten[0] + ten[3] + ten[5], 1e-12)
        size = np.r_[[trace / 2] * 6, [mass * np.sqrt(trace / (2 * mass))] * 3, mass]
        covariance = np.outer(ten, ten) + SHAPE**2 * np.diag(size**2)
        inverse = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(size, size))) / size
        block = np.zeros((10, robot.size + 1))
        block[:, columns], block[:, -1] = inverse, -inverse @ ten
        rows.append(block)
    return np.vstack(rows)


def _moment_row(
    base: BaseParameters, joint: str, posture: Mapping[str, float], moment: float, deviation: float
) -> Array:
    """A weighed gravity moment by base parameters, with its value last, in its deviations."""
    robot = base.robot
    if joint not in robot.joints or set(posture) - set(robot.joints) or not deviation > 0:
        raise InputError(
            f"moments has ({joint!r}, {posture!r}, {moment!r}, {deviation!r}): it needs a joint of "
            f"{', '.join(robot.joints)}, positions by joint [rad or m], the moment that holds it "
            "[N m or N] and its deviation",
            option="moments",
        )
    q = np.array([[posture.get(j, 0.0) for j in robot.joints]])
    columns = np.array([int(c) for c in base.independent])
    row = regressor(robot, q, 0 * q, 0 * q)[0, robot.joints.index(joint), columns]
    weight = row * np.isin(columns, robot.inertial_columns)
    return np.asarray(np.r_[weight, moment] / deviation)


def describe_factors(robot: Robot) -> list[str]:
    """What positions and commands of a robot's servos leave unknown, and how to measure it with a
    scale.

    A sentence on the factors, and for each of them the steps of weighing, one by one, at the joint
    and the posture with the largest gravity moment, where there is one.

    Raises InputError: as `feasid.servo_scale_groups`.
    """
    groups = servo_scale_groups(robot)
    shared = "; ".join(", ".join(group) for group in groups)
    count = "one factor" if len(groups) == 1 else f"{len(groups)} factors"
    lines = [
        f"positions and commands determine gains and parameters up to {count}, shared by: "
        f"{shared}. Motion does not depend on it; torques, payloads and contact forces do. The "
        f"description fixes it to about {100 * FACTOR_SHARE:.0f} %, the robot's total mass does not"
    ]
    return lines + [step for group in groups for step in weighing_instructions(robot, group)]


def weighing_instructions(robot: Robot, group: Sequence[str]) -> list[str]:
    """Steps by which a scale fixes the factor of these joints."""
    limits = [(b.limits.lower, b.limits.upper) for b in robot.bodies]
    ends = np.array([[-np.pi if a is None else a, np.pi if b is None else b] for a, b in limits])
    # One turn holds all postures of a joint.
    low, high = np.clip(ends, -np.pi, np.pi).T
    zero = np.clip(0.0, low, high)
    bare, best = robot.without_joint_terms(), (0.0, 0, 0.0)
    described = np.isfinite(robot.values[robot.inertial_columns]).all()
    for j in (robot.joints.index(name) for name in group if described):
        q = np.tile(zero, (WEIGHED, 1))
        q[:, j] = np.linspace(low[j], high[j], WEIGHED)
        moments = inverse_dynamics(bare, q, 0 * q, 0 * q)[:, j]
        k = int(np.argmax(np.abs(moments)))
        best = max(best, (float(abs(moments[k])), j, float(q[k, j])))
    moment, j, position = best
    if not moment > SMALLEST_MOMENT or not robot.bodies[j].motion[:3].any():
        return [
            f"to fix the factor of {', '.join(group)}: a gain that is trusted (gains=), or a "
            "second log with a known load (loaded= and load=)"
        ]
    joint = robot.joints[j]
    posture = {n: round(float(x), 4) for n, x in zip(robot.joints, zero, strict=True) if x}
    posture[joint] = round(position, 4)
    shown = ", ".join(f"{name} at {x:g}" for name, x in posture.items())
    entry, arm = json.dumps([joint, posture])[1:-1], 0.1 if moment < LARGE_MOMENT else 0.5
    return [
        "to fix the factor by a scale:",
        f"(1) bring the robot to {shown} [rad or m], all other joints to 0;",
        f"(2) switch off the servo of {joint!r} and hold it by a scale that pushes at right "
        "angles, r metres from the joint's axis;",
        "(3) read it while lifting and while lowering slowly: the mean is free of friction, about "
        f"{moment / 9.81 / arm:.2g} kg at r = {arm:g};",
        f"(4) fit with moments=[[{entry}, M, D]]: M = 9.81 * kg * r [N m], positive where the "
        "scale pushes towards larger positions, D its standard deviation",
    ]
