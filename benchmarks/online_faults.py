"""Faults while a Panda in MuJoCo is identified: whether a bad model is ever let through.

    python benchmarks/online_faults.py [--seeds 2] [--only jitter drops]

Every run has a plant with friction, armature, encoder steps and torque noise, and a description
whose bodies are wrong by up to 40 %. Estimates are made 25 times per second; a model is bad when
its torque error, in motions that no run makes, is above the description's.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import mujoco
import numpy as np
from arms import panda
from scipy.interpolate import CubicSpline

import feasid
from feasid.robot import inertia

RATE = 500.0
EVERY = 20
WINDOW = 2000
STEP = 2 * np.pi / 2**18
NOISE = 0.05
STOP = 0.1
SETTLED = 0.005
LOAD = 1.5
MOVING, RESTING = True, False
FREQUENCIES = np.array([0.31, 0.43, 0.37, 0.53, 0.61, 0.47, 0.71])
SWINGS = np.array([0.5, 0.4, 0.5, 0.5, 0.6, 0.5, 0.6])
HOME = np.array([0.0, -0.4, 0.0, -1.8, 0.0, 1.6, 0.5])


@dataclass
class Signals:
    """What the plant did and its sensors would have said, at even times."""

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    loaded: np.ndarray


@dataclass
class Scenario:
    """Phases are (seconds, moving), of all joints or some.

    friction(t) scales joints' friction, load(t) is on or off.
    """

    phases: tuple = ((25.0, MOVING),)
    begin: float = 0.0
    fault: tuple = (np.inf, np.inf)
    load: object = lambda t: False
    friction: object = lambda t: np.ones(7)
    measure: object = lambda t, q, tau, rng: (t, q, tau)
    told: float = 1.0
    joints: object = True
    names: tuple = ()
    found: list = field(default_factory=list)


def bodies(seed: int) -> tuple[feasid.Robot, feasid.Robot]:
    """The plant, and its description, wrong by up to 40 % per body."""
    rng = np.random.default_rng(seed)
    bare = panda().without_joint_terms()
    values = bare.values.copy()
    for columns in bare.inertial_columns:
        values[columns] *= rng.uniform(0.6, 1.4)
    robot = bare.with_joint_terms(("viscous", "coulomb"), True)
    truth = np.where(np.isnan(robot.values), 0.0, robot.values)
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            truth[column] = {"Ia": 0.1, "fv": 0.5, "fc": 0.4}[symbol]
    return robot.with_values(truth), bare.with_values(values)


def ball() -> np.ndarray:
    return inertia.from_mass_com_inertia(LOAD, [0.0, 0.0, 0.12], 0.4 * LOAD * 0.05**2 * np.eye(3))


def put_load(model, robot, loaded: bool) -> None:
    """The last body with or without the ball in its hand."""
    own = robot.values[robot.inertial_columns[-1]] + loaded * ball()
    mass, centre, tensor = inertia.to_mass_com_inertia(own)
    values, vectors = np.linalg.eigh(tensor)
    vectors *= np.sign(np.linalg.det(vectors))
    body = model.nbody - 1
    model.body_mass[body], model.body_ipos[body], model.body_inertia[body] = mass, centre, values
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, vectors.ravel())
    model.body_iquat[body] = quat
    mujoco.mj_setConst(model, mujoco.MjData(model))


def simulate(scenario: Scenario, robot: feasid.Robot, folder: Path, seed: int) -> Signals:
    """Track the phases by computed torque without friction; a stop takes a tenth of a second."""
    path = folder / "panda.xml"
    feasid.write(robot, path, overwrite=True)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 1 / RATE
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    damping, friction = model.dof_damping.copy(), model.dof_frictionloss.copy()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    w = 2 * np.pi * FREQUENCIES * rng.uniform(0.8, 1.2, 7)
    mass, rows, swings = np.zeros((7, 7)), [], SWINGS * scenario.joints
    moved, loaded, held = scenario.begin, False, HOME
    data.qpos[:] = HOME + swings * (1 - np.cos(w * moved))
    data.qvel[:] = swings * w * np.sin(w * moved) * scenario.phases[0][1]
    for seconds, moving in scenario.phases:
        start = data.qvel.copy()
        for k in range(round(seconds * RATE)):
            t = len(rows) / RATE
            if scenario.load(t) != loaded:
                loaded = not loaded
                put_load(model, robot, loaded)
            scale = scenario.friction(t)
            model.dof_damping[:], model.dof_frictionloss[:] = damping * scale, friction * scale
            if moving:
                target = HOME + swings * (1 - np.cos(w * moved))
                rate = swings * w * np.sin(w * moved)
                push = swings * w**2 * np.cos(w * moved)
                moved += 1 / RATE
            else:
                left = max(0.0, 1.0 - k / RATE / STOP)
                rate, push = start * left, -start / STOP * (left > 0)
                held = held + rate / RATE if k else (data.qpos.copy() if rows else held)
                target = held
            mujoco.mj_fullM(model, data, mass)
            tau = mass @ (push + 40 * (rate - data.qvel) + 400 * (target - data.qpos))
            data.qfrc_applied[:] = tau + data.qfrc_bias
            rows.append((t, data.qpos.copy(), data.qfrc_applied.copy(), loaded))
            mujoco.mj_step(model, data)
    t, q, tau, load = (np.array(x) for x in zip(*rows, strict=True))
    return Signals(t, q, tau, load)


class Judge:
    """Torque errors of bodies, in motions that no run makes, without friction."""

    def __init__(self, robot: feasid.Robot) -> None:
        rng = np.random.default_rng(9)
        q, dq, ddq = rng.uniform(-1, 1, (3, 200, 7))
        bare = robot.without_joint_terms()
        Y = feasid.regressor(bare, q, dq, 3 * ddq).reshape(1400, -1)
        self.inertial = bare.inertial_columns.ravel()
        self.Y = Y[:, self.inertial]
        self.truth = []
        for load in (0.0, 1.0):
            values = bare.values.copy()
            values[bare.inertial_columns[-1]] += load * ball()
            self.truth.append(values[self.inertial])

    def error(self, robot: feasid.Robot, delta: np.ndarray, loaded: bool) -> float:
        """Relative error of a model's bodies against the plant's, with or without the load."""
        own, true = delta[robot.inertial_columns.ravel()], self.truth[int(loaded)]
        return float(np.linalg.norm(self.Y @ (own - true)) / np.linalg.norm(self.Y @ true))


def drop(t, q, tau, rng):
    keep = rng.uniform(size=len(t)) > 0.03
    keep &= ~((t > 12.0) & (t < 12.4))
    return t[keep], q[keep], tau[keep]


def jitter(t, q, tau, rng):
    at = np.clip(t + 0.5 / RATE * rng.uniform(-1, 1, len(t)), t[0], t[-1])
    at = np.sort(at)
    return at, CubicSpline(t, q)(at), CubicSpline(t, tau)(at)


def saturate(t, q, tau, rng):
    """A sensor's range ends at a half of what the second and fourth joint need."""
    tau, part = tau.copy(), (t > 10.0) & (t < 14.0)
    for j in (1, 3):
        most = 0.5 * np.abs(tau[:, j]).max()
        tau[part, j] = np.clip(tau[part, j], -most, most)
    return t, q, tau


def lose(t, q, tau, rng):
    tau, part = tau.copy(), (t > 10.0) & (t < 11.0)
    tau[part, 3] = np.nan
    tau[(t > 13.0) & (t < 14.0), 2] = tau[t > 13.0, 2][0]
    return t, q, tau


def drift(t):
    """Of all joints, by 30 % in a minute."""
    return np.full(7, 1.0 + 0.3 * np.clip((t - 35.0) / 60.0, 0.0, 1.0))


def jump(t):
    return np.where(np.arange(7) == 2, 1.5 if t > 12.0 else 1.0, 1.0)


SCENARIOS = {
    "clean": Scenario(),
    "standstill first": Scenario(phases=((10.0, RESTING), (12.0, MOVING)), names=("moved",)),
    "emergency stop": Scenario(
        phases=((8.0, MOVING), (10.0, RESTING), (8.0, MOVING)), fault=(8.0, 18.0), names=("moved",)
    ),
    "torque saturates": Scenario(measure=saturate, fault=(10.0, 14.0), names=("stuck torque",)),
    "drops": Scenario(measure=drop, fault=(12.0, 12.4), names=("time jump",)),
    "torque lost": Scenario(measure=lose, fault=(10.0, 14.0), names=("not finite",)),
    "jitter": Scenario(measure=jitter),
    **{
        f"told rate {x:g}": Scenario(told=x, phases=((8.0, MOVING),), names=("stamps say",))
        for x in (0.6, 0.8, 0.95, 1.05, 1.2, 1.4)
    },
    "late start": Scenario(begin=3.7, phases=((12.0, MOVING),)),
    "load on and off": Scenario(
        load=lambda t: 12.0 < t < 24.0,
        phases=((36.0, MOVING),),
        fault=(12.0, 24.0),
        names=("load",),
    ),
    "friction drifts": Scenario(
        friction=drift, phases=((110.0, MOVING),), fault=(35.0, 95.0), names=("friction",)
    ),
    "friction jumps": Scenario(friction=jump, fault=(12.0, 12.0), names=("friction",)),
}


def run(name: str, seed: int, folder: Path) -> dict[str, float]:
    scenario = SCENARIOS[name]
    robot, description = bodies(seed)
    judge, rng = Judge(robot), np.random.default_rng(100 + seed)
    true = simulate(scenario, robot, folder, seed)
    tau = true.tau + NOISE * rng.standard_normal(true.tau.shape)
    t, q, tau = scenario.measure(true.t, true.q, tau, rng)
    q = np.round(q / STEP) * STEP
    online = feasid.OnlineFit(description, RATE * scenario.told, window=WINDOW)
    told, log = set(), []
    for k in range(0, len(t) - EVERY, EVERY):
        online.extend(q[k : k + EVERY], tau[k : k + EVERY], t=t[k : k + EVERY])
        estimate = online.estimate()
        told.update(estimate.decision.reasons)
        loaded = bool(true.loaded[min(int(t[k] * RATE), len(true.t) - 1)])
        error = judge.error(online.robot, estimate.delta, loaded)
        described = judge.error(online.robot, online.problem.nominal, loaded)
        log.append((t[k + EVERY - 1], estimate.decision.open, error, described))
    t, gate, errors, described = (np.array(x) for x in zip(*log, strict=True))
    gate = gate.astype(bool)
    moving = sum(s for s, m in scenario.phases[:1] if not m)
    opened = t[gate][0] - moving if gate.any() else np.inf
    end = scenario.fault[1]
    after = (t > end) & (errors < SETTLED) & gate
    said = " ".join([*told, *map(str, online.changes), *online.faults])
    return {
        "estimates": len(t),
        "open and bad": int(np.count_nonzero(gate & (errors > described))),
        "worst open": float(errors[gate].max(initial=0.0)),
        "times worse": float((errors / described)[gate].max(initial=0.0)),
        "opened": opened,
        "recovered": t[after][0] - end if after.any() else np.inf,
        "last": errors[-1],
        "described": described[-1],
        "named": all(n in said for n in scenario.names),
        "changes": [str(c) for c in online.changes],
        "faults": dict(online.faults),
    }


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=list(SCENARIOS), metavar="SCENARIO")
    chosen = parser.parse_args()
    total = bad = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only:
            for seed in range(chosen.seeds):
                found = run(name, seed, Path(folder))
                total, bad, runs = total + found["estimates"], bad + found["open and bad"], runs + 1
                end = SCENARIOS[name].fault[1]
                again = f", settled {found['recovered']:5.2f} s after" if np.isfinite(end) else ""
                print(
                    f"{name:18} {seed} opened after {found['opened']:5.2f} s, "
                    f"{found['open and bad']} of {found['estimates']} open and bad, worst open "
                    f"{100 * found['worst open']:6.2f} % ({found['times worse']:.2f} times), "
                    f"last {100 * found['last']:5.2f} % "
                    f"(description {100 * found['described']:.1f} %){again}, "
                    f"{'named' if found['named'] else 'NOT NAMED'}; "
                    f"{found['changes']} {found['faults']}",
                    flush=True,
                )
    print(f"{runs} runs, {total} estimates, {bad} of them open and worse than the description")


if __name__ == "__main__":
    main()
