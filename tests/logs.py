"""Logs of a simulated arm, with its true parameters."""

from fractions import Fraction

import numpy as np
import pandas as pd
from robots import ARM, read_arm

import feasid
from feasid.robot import inertia


def waves(t, rates, a, b):
    """``sin(rates t) a + cos(rates t) b`` and its two derivatives, shapes (samples, joints)."""
    angle = np.outer(t, rates)
    sin, cos = np.sin(angle), np.cos(angle)
    speed = (cos * rates) @ a - (sin * rates) @ b
    return sin @ a + cos @ b, speed, -(sin * rates**2) @ a - (cos * rates**2) @ b


def log_frame(t, joints, **signals):
    """A log of signals by kind, shapes (samples, joints)."""
    columns = {f"{kind}_{j}": x[:, k] for kind, x in signals.items() for k, j in enumerate(joints)}
    return pd.DataFrame({"t": t, **columns})


def write_log(folder, text, name="log.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def simulate(robot, delta, seed, samples=2000, noise=0.0):
    """A log with measured derivatives, so that nothing is filtered."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * 0.005
    a, b = rng.uniform(-0.4, 0.4, (2, 4, robot.dof))
    q, dq, ddq = waves(t, np.arange(1, 5), a, b)
    tau = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=delta)
    tau += noise * np.std(tau, axis=0) * rng.standard_normal(tau.shape)
    return log_frame(t, robot.coordinates, q=q, dq=dq, ddq=ddq, tau=tau)


def arm_parameters(robot):
    """The arm's own inertials, a small ball where the file gives none, and some friction."""
    delta = robot.values.copy()
    ball = inertia.from_mass_com_inertia(0.4, [0.02, 0.01, 0.05], np.eye(3) * 1e-3)
    for columns in robot.inertial_columns:
        if np.isnan(delta[columns]).any():
            delta[columns] = ball
    for k in range(len(robot.drives)):
        delta[list(robot.drive_columns(k).values())] = 0.7, 0.3, 0.05
    return delta


def with_terms(robot, **coefficients):
    """The robot with these in every drive, numbers or one per drive."""
    delta = robot.values.copy()
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            delta[column] = np.broadcast_to(coefficients[symbol], len(robot.drives))[k]
    return robot.with_values(delta)


def values_for(robot, source, default=0.0):
    """Values of a robot in the order of another's parameters, a default for those it lacks."""
    known = dict(zip(source.parameter_names, source.values, strict=True))
    return np.array([known.get(name, default) for name in robot.parameter_names])


def inertia_matrix(delta):
    """Pseudo-inertia in rationals, from the definition."""
    xx, xy, xz, yy, yz, zz, x, y, z, m = (Fraction(float(v)) for v in delta)
    half = (xx + yy + zz) / 2
    return [
        [half - xx, -xy, -xz, x], [-xy, half - yy, -yz, y], [-xz, -yz, half - zz, z],
        [x, y, z, m],
    ]  # fmt: skip


def arm_log(seed, samples, noise):
    """The arm with its joint terms, and a log of it."""
    robot = feasid.load_robot(ARM).with_joint_terms()
    return robot, simulate(robot, arm_parameters(robot), seed, samples, noise)


def arm_and_log(folder, samples, noise):
    """arm.urdf and log.csv in a folder; the arm, and its log without accelerations."""
    robot = read_arm(folder)
    true = robot.with_joint_terms()
    log = simulate(true, arm_parameters(true), 3, samples=samples, noise=noise)
    log = log.drop(columns=[c for c in log if c.startswith("ddq_")])
    log.to_csv(folder / "log.csv", index=False)
    return robot, log


def gram(reduced, weights=None):
    """Products of a reduced log's equations and torques."""
    r, rho, residual = reduced.triangle(weights)
    full = np.vstack([np.column_stack([r, rho]), np.r_[0.0 * rho, residual]])
    return full.T @ full


def relative(a, b):
    """The largest difference of two of them, in units of the second's columns."""
    scale = np.sqrt(np.diag(b))
    return np.abs((a - b) / np.outer(scale, scale)).max()
