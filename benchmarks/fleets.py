"""Arms of one type with parameters that nobody knows, and logs of them, by seeds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import feasid

PERIOD = 0.005
POSITION_NOISE = 2e-5
TORQUE_NOISE = 0.01
"""Of the joint's largest torque on a rich motion."""
TYPE_MASS, TYPE_FRICTION = (0.75, 1.3), (0.6, 1.6)
"""Factors of a type on the description."""
ARM_MASS, ARM_FRICTION = 0.02, 0.25
"""Deviations between arms: of a factor on each body, and of logarithms of friction."""
COULOMB, VISCOUS, INERTIA = 1.5, 1.5, 0.3


@dataclass(frozen=True)
class Motion:
    """Three sines at every joint."""

    seconds: float
    speed: float = 1.0
    width: float = 1.0


RICH, POOR, TEST = Motion(25.0, 1.2), Motion(4.0, 0.6, 0.35), Motion(30.0, 1.3)


@dataclass(frozen=True, eq=False)
class ArmType:
    """A type of arms around a description, drawn by a seed."""

    robot: feasid.Robot  #: as described, with joint terms
    delta: np.ndarray
    noise: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def draw(cls, name: str, seed: int) -> ArmType:
        robot = feasid.datasets.load(name).attrs["robot"].with_joint_terms(
            friction=("viscous", "coulomb", "offset"), drive_inertia=True
        )  # fmt: skip
        rng, delta = np.random.default_rng([seed, 1]), np.array(robot.values, float)
        usual = {"fv": VISCOUS, "fc": COULOMB, "Ia": INERTIA, "fo": 0.0}
        scale = np.linspace(1.0, 0.3, robot.dof)
        for k in range(len(robot.drives)):
            for symbol, column in robot.drive_columns(k).items():
                delta[column] = usual[symbol] * scale[min(k, robot.dof - 1)]
        kind = cls(robot, delta)
        delta = kind.changed(rng.uniform(*TYPE_MASS, len(robot.bodies)),
                             rng.uniform(*TYPE_FRICTION, len(robot.drives)))  # fmt: skip
        q, dq, ddq = kind.motion(RICH, seed)[1:]
        torque = np.abs(feasid.inverse_dynamics(robot, q, dq, ddq, parameters=delta)).max(axis=0)
        return cls(robot, delta, TORQUE_NOISE * torque)

    def changed(self, masses, frictions, delta=None):
        """Inertials of every body and friction of every drive times these factors."""
        out = np.array(self.delta if delta is None else delta)
        for ten, factor in zip(self.robot.inertial_columns, masses, strict=True):
            out[ten] *= factor
        for k, factor in enumerate(frictions):
            columns = self.robot.drive_columns(k)
            out[[columns["fv"], columns["fc"]]] *= factor
        return out

    def arm(self, seed: int) -> np.ndarray:
        """An arm of the type."""
        rng = np.random.default_rng([seed, 2])
        masses = rng.normal(1.0, ARM_MASS, len(self.robot.bodies))
        return self.changed(masses, np.exp(rng.normal(0, ARM_FRICTION, len(self.robot.drives))))

    def motion(self, kind: Motion, seed: int):
        rng, n = np.random.default_rng([seed, 3]), self.robot.dof
        t = np.arange(0, kind.seconds, PERIOD)
        w, a = (
            kind.speed * rng.uniform(0.5, 2.2, (3, n)),
            kind.width * rng.uniform(0.15, 0.4, (3, n)),
        )
        phase, centre = rng.uniform(0, 2 * np.pi, (3, n)), rng.uniform(-0.8, 0.8, n)
        angle = [np.outer(t, w[k]) + phase[k] for k in range(3)]
        q = centre + sum(a[k] * np.sin(angle[k]) for k in range(3))
        dq = sum(a[k] * w[k] * np.cos(angle[k]) for k in range(3))
        ddq = -sum(a[k] * w[k] ** 2 * np.sin(angle[k]) for k in range(3))
        return t, q, dq, ddq

    def log(self, delta, kind: Motion, seed: int, gains=1.0):
        """A log of the arm with these parameters."""
        t, q, dq, ddq = self.motion(kind, seed)
        tau = gains * feasid.inverse_dynamics(self.robot, q, dq, ddq, parameters=delta)
        rng = np.random.default_rng([seed, 4])
        tau = tau + self.noise * rng.normal(size=tau.shape)
        return {"t": t, "q": q + rng.normal(0, POSITION_NOISE, q.shape), "tau": tau}


KINDS = ("load", "friction", "gain", "everything")


def odd_logs(name: str, seed: int, what: str, count: int = 5):
    """Logs of which one differs, its number, and the joint (-1: none)."""
    kind, rng = ArmType.draw(name, seed), np.random.default_rng([seed, 5])
    robot, odd, gains, joint = kind.robot, kind.delta.copy(), np.ones(kind.robot.dof), -1
    at, names = int(rng.integers(count)), list(kind.robot.parameter_names)
    if what == "load":
        mass, arm = 0.1 * odd[robot.inertial_columns[:, -1]].sum(), 0.08
        ten = robot.inertial_columns[-1]
        odd[ten] += mass * np.array(
            [1.5 * arm**2, 0, 0, 1.5 * arm**2, 0, 0.5 * arm**2, 0, 0, arm, 1.0]
        )
    elif what == "friction":
        joint = int(rng.integers(robot.dof))
        for symbol in ("fv", "fc"):
            odd[names.index((robot.drives[joint].name, symbol))] *= 3.0
    elif what == "gain":
        joint = int(rng.integers(robot.dof))
        gains[joint] = 1.15
    elif what == "everything":
        odd = ArmType.draw(name, seed + 100_000).delta
    logs = []
    for k in range(count):
        delta = odd if k == at else kind.delta
        if what == "daily":
            frictions = np.exp(rng.normal(0, ARM_FRICTION, len(robot.drives)))
            delta = kind.changed(np.ones(len(robot.bodies)), frictions)
        logs.append(kind.log(delta, Motion(10.0), 1000 * seed + k, gains if k == at else 1.0))
    return kind, logs, at, joint
