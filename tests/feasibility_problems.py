"""Random robots with known feasible parameters, for the tests of feasibility."""

from dataclasses import dataclass

import numpy as np

from feasid import Body, Robot, base_parameters
from feasid.robot import inertia
from feasid.robot.dynamics.regressor import regressor


def random_rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def random_robot(rng, n_bodies, *, mass=1.0, length=1.0, drives=False):
    """A serial arm of revolute joints on arbitrary axes, without inertials of its own."""
    bodies = []
    for k in range(n_bodies):
        axis = rng.normal(size=3)
        motion = np.r_[axis / np.linalg.norm(axis), 0, 0, 0][:, None]
        position = length * rng.uniform(0.2, 1.0) * random_rotation(rng)[:, 0] * (k > 0)
        parent = f"b{k - 1}" if k else None
        bodies.append(Body(f"b{k}", parent, random_rotation(rng), position, motion))
    robot = Robot(tuple(bodies))
    return robot.with_joint_terms(drive_inertia=True) if drives else robot


def planar(rng, bodies):
    """A chain of revolute joints on parallel or perpendicular axes, lengths in centimetres."""
    turns = [np.eye(3), np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])]
    parts = []
    for k in range(bodies):
        position = rng.integers(-5, 6, size=3) / 10 * (k > 0)
        turn = turns[int(rng.integers(2))]
        parts.append(Body(f"b{k}", f"b{k - 1}" if k else None, rotation=turn, position=position))
    return Robot(tuple(parts))


def random_parameters(rng, robot, *, mass=1.0, length=1.0):
    """Strictly feasible standard parameters: each body a cloud of random mass points."""
    delta = np.zeros(robot.size)
    for columns in robot.inertial_columns:
        points = length * rng.uniform(-0.5, 0.5, size=(12, 3))
        weights = mass * rng.uniform(0.2, 2.0) * rng.dirichlet(np.ones(12))
        homogeneous = np.c_[points, np.ones(12)]
        delta[columns] = inertia.from_pseudo_inertia(
            homogeneous.T @ (weights[:, None] * homogeneous)
        )
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            unit = mass * length**2 if symbol == "Ia" else mass * length
            delta[column] = unit * rng.uniform(0.1, 1.0)
    return delta


def triangle(rng, base):
    """Triangular factor of the base parameters' columns along random motions."""
    samples = 4 * base.robot.size
    q, dq, ddq = rng.uniform(-2, 2, size=(3, samples, base.robot.dof))
    rows = regressor(base.robot, q, dq, ddq).reshape(-1, base.robot.size)
    return np.linalg.qr(rows[:, base.independent], mode="r")


def with_noise(rng, rho, share):
    """With white noise of a share of the root mean square."""
    return rho + share * np.linalg.norm(rho) / np.sqrt(len(rho)) * rng.normal(size=len(rho))


def noisy(seed, bodies=3):
    """Base parameters, noisy data of a fit and the true standard parameters behind them."""
    rng = np.random.default_rng(seed)
    base = base_parameters(random_robot(rng, bodies, drives=seed % 2 == 0))
    R = triangle(rng, base)
    truth = random_parameters(rng, base.robot)
    return base, R, with_noise(rng, R @ base.K @ truth, 0.3), truth


@dataclass(frozen=True)
class Base:
    """What feasibility needs of base parameters."""

    robot: Robot
    K: np.ndarray
    independent: np.ndarray


def base_of(robot):
    base = base_parameters(robot)
    return Base(robot, base.K, base.independent)


def energy(rng, robot, base):
    """Coefficients y of a kinetic energy y.beta, from random positions and velocities."""
    still = robot.with_gravity((0.0, 0.0, 0.0))
    q, rate = rng.uniform(-np.pi, np.pi, size=(2, 1, robot.dof))
    columns = [int(c) for c in base.independent]
    return 0.5 * (rate[0] @ regressor(still, q, 0 * q, rate, columns=columns)[0])
