"""What the description may have wrong: the direction of gravity, a length, a load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.joint_models import Hypothesis, Screen, all_explained, contradicts
from feasid.diagnosis.positions import FEW
from feasid.robot.bodies import Body
from feasid.robot.description import Robot

LEAST_TILT = 12.0
"""Angles between logged and described gravity that are reported [degrees]."""

GRAVITY_SHARE = 0.6
"""What the direction must leave of the product of all residuals."""

AXIS_SHARE = 1.5
"""An axis of the base frame is taken when it leaves at most this much more."""

LEAST_GRAVITY = 0.2
"""Below this share of the described gravity nothing is said of its direction."""


def find_gravity(screen: Screen, robot: Robot) -> Iterator[Hypothesis]:
    """Direction of gravity in which the description explains the torques best."""
    given = float(np.linalg.norm(robot.gravity))
    equations = _gravity_equations(screen, robot) if given else None
    if equations is None:
        return
    matrix, vector = equations
    sizes = np.linalg.norm(matrix, axis=0)
    found = np.linalg.lstsq(matrix / sizes, vector, rcond=None)[0] / sizes
    size = float(np.linalg.norm(found))
    if size < LEAST_GRAVITY * given or _angle_between(found, robot.gravity) < LEAST_TILT:
        return
    k = int(np.argmax(np.abs(found)))
    axis = np.sign(found[k]) * np.eye(3)[k]
    free, neat = (screen.with_gravity(d * given) for d in (found / size, axis))
    snaps = screen.share(neat) < AXIS_SHARE * screen.share(free)
    other, direction = (neat, axis) if snaps else (free, found / size)
    share, angle = screen.share(other), _angle_between(direction, robot.gravity)
    if angle < LEAST_TILT or share > GRAVITY_SHARE:
        return
    shown = tuple(round(float(x), 2) + 0.0 for x in direction * given)
    finding = Finding(
        "gravity",
        "error",
        f"gravity seems to point along {shown} in the base frame, {angle:.0f} degrees from "
        f"the description's {tuple(round(float(x), 2) for x in robot.gravity)}",
        f"load_robot(..., gravity={shown})",
        values={"gravity": shown, "degrees": angle, "share": share},
    )
    yield Hypothesis(share, finding, lambda: other, unknowns=2.0)


def _angle_between(a: Array, b: Array) -> float:
    """Angle between two directions [degrees]."""
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _gravity_equations(screen: Screen, robot: Robot) -> tuple[Array, Array] | None:
    """What is left for gravity to explain, all joints weighted by their residuals."""
    unit = screen.gravity_torques
    if unit is None or screen.cad is None:
        return None
    moving = screen.cad - unit @ robot.gravity
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(robot.dof):
        clear = screen.own_terms_projector(j)
        weight = 1.0 / max(float(np.linalg.norm(clear(tau[:, j] - screen.cad[:, j]))), 1e-9)
        rows.append(weight * clear(unit[:, j]))
        right.append(weight * clear(tau[:, j] - moving[:, j]))
    matrix = np.vstack(rows)
    sizes = np.linalg.norm(matrix, axis=0)
    if sizes.min() == 0 or np.linalg.cond(matrix / sizes) > 1e3:
        return None
    return matrix, np.concatenate(right)


SHORTEST_LENGTH = 0.02
"""Shorter distances do not matter [m]."""

LENGTH_FACTORS = (0.5, 2.0)
"""Factors of a distance at the first look; the best is refined."""

LENGTH_RANGE = 2.3
"""Factors are sought within so many times the first."""

LENGTH_SHARE = 0.3
"""Another length must leave at most this share of the product of all residuals."""

LEAST_LENGTH_FACTOR = 1.2
"""Lengths that are off by less are not told from masses that are off."""


def find_lengths(screen: Screen) -> Iterator[Hypothesis]:
    """A body whose joint stands nearer to, or farther from, its parent's than described."""
    if screen.cad is None or all_explained(screen):
        return
    few = Screen(screen.robot, screen.samples.subsample(max(1, len(screen.samples.t) // FEW)))
    long = [
        k
        for k, body in enumerate(screen.robot.bodies)
        if body.parent is not None and np.linalg.norm(body.position) > SHORTEST_LENGTH
    ]
    shares = {
        (k, f): few.share(_scale_body_position(few, k, f)) for k in long for f in LENGTH_FACTORS
    }
    if not shares:
        return
    k, first = min(shares, key=lambda key: shares[key])
    if shares[k, first] > 2 * LENGTH_SHARE:
        return
    best = minimize_scalar(
        lambda x: few.share(_scale_body_position(few, k, float(np.exp(x)))),
        bounds=(np.log(first / LENGTH_RANGE), np.log(first * LENGTH_RANGE)),
        method="bounded",
        options={"xatol": 0.02, "maxiter": 15},
    )
    factor = float(np.exp(best.x))
    other = _scale_body_position(screen, k, factor)
    share = screen.share(other)
    if (
        share > LENGTH_SHARE
        or 1 / LEAST_LENGTH_FACTOR < factor < LEAST_LENGTH_FACTOR
        or contradicts(screen, other.residuals)
    ):
        return
    body = screen.robot.bodies[k]
    described = float(np.linalg.norm(body.position))
    finding = Finding(
        "length",
        "warning",
        f"the joint looks {factor * described:.3g} m away from the one before it, the "
        f"description says {described:.3g} m: the product of all residuals falls to {share:.0%}",
        "measure it and mend the description: geometry is not fitted",
        (body.joint,),
        values={"factor": factor, "share": share},
    )
    yield Hypothesis(share, finding, lambda: other, unknowns=3.0)


def _scale_body_position(screen: Screen, k: int, factor: float) -> Screen:
    """The screen of a robot whose k-th body stands this many times as far from its parent."""
    robot: Robot = screen.robot
    body = robot.bodies[k]
    moved = replace(body, position=factor * np.asarray(body.position))
    bodies = (*robot.bodies[:k], moved, *robot.bodies[k + 1 :])
    return Screen(replace(robot, bodies=bodies), screen.samples)


LEAST_LOAD = 0.05
"""Masses below this share of the robot's are not reported."""

LOAD_SHARE = 0.87
"""A load must leave at most this share of the residual of the joints that carry it."""


@dataclass(frozen=True, eq=False)
class PointMass:
    """Mass [kg] and first moment [kg m] at the last body, and the residual that they leave."""

    mass: float
    moment: Array
    left: float

    @property
    def centre(self) -> tuple[float, ...]:
        """Centre of mass in the body's frame [m]."""
        return tuple(float(x) for x in self.moment / self.mass)


def missing_mass(screen: Screen) -> PointMass | None:
    """The point mass at the last body that explains most of what the description does not."""
    if screen.cad is None or screen.described is None:
        return None
    columns = screen.point_mass()
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(screen.robot.dof):
        clear = screen.own_terms_projector(j)
        target, parts = clear(tau[:, j] - screen.cad[:, j]), clear(columns[:, j])
        size = float(np.linalg.norm(target))
        if size > 0:
            rows.append(parts / size)
            right.append(target / size)
    if not rows:
        return None
    matrix, vector = np.vstack(rows), np.concatenate(right)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    found, _, rank, _ = np.linalg.lstsq(matrix / scale, vector, rcond=1e-6)
    left = float(np.linalg.norm(matrix / scale @ found - vector) / np.sqrt(len(rows)))
    found = found / scale
    return PointMass(float(found[0]), found[1:], left) if rank == 4 else None


def find_load(screen: Screen) -> Iterator[Hypothesis]:
    """A mass at the last body that the description lacks; a negative one is no load."""
    point = _significant_missing_mass(screen)
    if point is None or screen.cad is None:
        return
    carried = screen.point_mass() @ np.r_[point.mass, point.moment]
    other = Screen(screen.robot, screen.samples, screen.cad + carried)
    finding = (_payload_finding if point.mass > 0 else _negative_load_finding)(
        point, screen.robot.bodies[-1]
    )
    yield Hypothesis(screen.share(other), finding, lambda: other, unknowns=4.0)


def _payload_finding(point: PointMass, body: Body) -> Finding:
    centre = ", ".join(f"{x:.2f}" for x in point.centre)
    return Finding(
        "payload",
        "warning",
        f"the description lacks {point.mass:.2g} kg at {body.name!r}, centred at ({centre}) m in "
        f"its frame: with it the unexplained torque falls to {point.left:.0%}",
        "add the tool or load to the description; a fit finds it in any case",
        (body.joint,),
        values={"mass": point.mass, "centre": point.centre, "left": point.left},
    )


def _negative_load_finding(point: PointMass, body: Body) -> Finding:
    return Finding(
        "class",
        "warning",
        f"a load of {point.mass:.2g} kg at {body.name!r} would explain what the description "
        "does not, and no load has a negative mass: the model lacks something else, or the "
        "description's masses are too large",
        "look at the torques' unit, at joint terms (drive_inertia=True, friction=) and at "
        "springs or counterweights",
        (body.joint,),
        values={"mass": point.mass, "left": point.left},
    )


def _significant_missing_mass(screen: Screen) -> PointMass | None:
    """The missing mass, when it matters."""
    point, described = missing_mass(screen), screen.described
    if point is None or described is None or point.left > LOAD_SHARE:
        return None
    total = float(described.values[described.inertial_columns[:, 9]].sum())
    return point if abs(point.mass) >= LEAST_LOAD * total else None
