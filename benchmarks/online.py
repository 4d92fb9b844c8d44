"""How fast a robot of 7 joints with friction is identified while it runs, and that nothing drifts.

python benchmarks/online.py             # speed
python benchmarks/online.py --loop 1000 # a million samples beside a worker thread
python benchmarks/online.py --drift 10  # and 10 million samples
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from arms import FINGERS, panda, path_of

import feasid
from feasid.applications.online.equations import CausalEquations

RATE = 1000.0
SECONDS = 20.0
BETWEEN = 25
"""Samples between estimates: 40 estimates per second at 1 kHz."""


def motion(robot, samples: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    w, phase = 2 * np.pi * rng.uniform(0.1, 0.7, (2, 3, robot.dof))
    a = rng.uniform(0.1, 0.4, (3, robot.dof))
    angle = t[:, None, None] * w + phase
    return (
        (a * np.sin(angle)).sum(axis=1),
        (a * w * np.cos(angle)).sum(axis=1),
        -(a * w**2 * np.sin(angle)).sum(axis=1),
    )


def log(robot, samples: int):
    rng = np.random.default_rng(1)
    delta = np.where(np.isnan(robot.values), 0.3, robot.values)
    q, dq, ddq = motion(robot, samples)
    tau = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=delta)
    return q, tau + 0.1 * rng.standard_normal(tau.shape)


def told(label: str, seconds, shares=(50, 99)) -> None:
    """Processor time of single calls."""
    late = ", ".join(f"{p:g} % {1e3 * np.percentile(seconds, p):8.4f}" for p in shares)
    print(
        f"  {label:18} mean {1e3 * np.mean(seconds):8.4f}, below {late}, "
        f"largest {1e3 * max(seconds):8.3f} ms, {1 / np.mean(seconds):9.0f} per second"
    )


def speed(robot, q, tau, **options) -> None:
    fit = feasid.OnlineFit(robot, RATE, **options)
    print(f"{options}: {fit.base.size} base parameters, block of {fit.block} samples")
    half = len(q) // 2
    fit.extend(q[:half], tau[:half])
    fit.estimate()
    updates, estimates, infeasible = [], [], 0
    for k in range(half, len(q)):
        began = time.thread_time()
        fit.update(q[k], tau[k])
        updates.append(time.thread_time() - began)
        if k % BETWEEN == 0:
            began = time.thread_time()
            found = fit.estimate()
            estimates.append(time.thread_time() - began)
            infeasible += bool(fit.problem.feasible.violations(found.delta))
    told("update", updates, (50, 99, 99.99))
    told("verified estimate", estimates)
    ratio = np.mean(updates) / regressor_seconds(robot)
    print(f"  update takes {ratio:.1f} times Pinocchio's computeJointTorqueRegressor, in the mean")
    print(f"  {len(estimates)} estimates, {infeasible} of them infeasible in exact arithmetic")


def control_loop(robot, q, tau, samples: int, paced: bool) -> None:
    """What the caller's thread spends in `update` while a worker learns and estimates.

    Paced by the clock, how late the loop wakes is told too: a thread of Python waits for others.
    """
    for worker in (True, False) if paced else (True,):
        updates, late = np.empty(samples), np.zeros(samples)
        with feasid.OnlineFit(robot, RATE, window=2000, worker=worker) as fit:
            due = time.perf_counter()
            for k in range(samples):
                due += 1.0 / RATE
                if paced:
                    time.sleep(max(0.0, due - time.perf_counter()))
                    late[k] = time.perf_counter() - due
                elif k % 1000 == 0:
                    fit.estimate()  # waits: simulated time is faster than real time
                if k == samples // 10:
                    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                began = time.thread_time()
                fit.update(q[k % len(q)], tau[k % len(q)])
                updates[k] = time.thread_time() - began
                if worker and k % BETWEEN == 0:
                    fit.request_estimate()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"{samples / RATE:.0f} s, {'at' if paced else 'faster than'} real time, "
            f"{'40 estimates per second by a worker' if worker else 'no worker, no estimates'}: "
            f"memory grew by {grown:.1f} MB, left out {dict(fit.faults)}"
        )
        told("update", updates, (50, 99, 99.99))
        ratio = np.mean(updates) / regressor_seconds(robot)
        print(f"  {ratio:.1f} times Pinocchio's computeJointTorqueRegressor, in the mean")
        if paced:
            told("the loop is late by", late, (50, 99, 99.99))


def regressor_seconds(robot, samples: int = 2000) -> float:
    """Processor time of Pinocchio's regressor of one sample of the same arm."""
    import pinocchio

    whole = pinocchio.buildModelFromUrdf(str(path_of("panda_collision")))
    fingers = [whole.getJointId(name) for name in FINGERS]
    model = pinocchio.buildReducedModel(whole, fingers, pinocchio.neutral(whole))
    data, motions = model.createData(), [x.copy() for x in motion(robot, samples)]
    began = time.thread_time()
    for q, dq, ddq in zip(*motions, strict=True):
        pinocchio.computeJointTorqueRegressor(model, data, q, dq, ddq)
    return (time.thread_time() - began) / samples


def single_samples(robot) -> None:
    """Processor time of one sample of `feasid.CompiledDynamics`."""
    known = robot.with_values(np.where(np.isnan(robot.values), 0.3, robot.values))
    q, dq, ddq = np.random.default_rng(0).uniform(-1, 1, (3, robot.dof))
    for backend in ("c", "python"):
        model = feasid.CompiledDynamics(known, backend=backend)
        calls = {
            "inverse_dynamics": lambda m=model: m.inverse_dynamics(q, dq, ddq),
            "regressor": lambda m=model: m.regressor(q, dq, ddq),
            "mass_matrix": lambda m=model: m.mass_matrix(q),
            "gravity": lambda m=model: m.gravity(q),
            "forward_dynamics": lambda m=model: m.forward_dynamics(q, dq, ddq),
        }
        for name, call in calls.items():
            call()
            began = time.thread_time()
            for _ in range(5000):
                call()
            print(f"  {backend:7} {name:17} {(time.thread_time() - began) / 5000 * 1e6:6.2f} us")


def drift(robot, millions: float) -> None:
    """Ten million samples in a circle, against a batch of the last ones; needs minutes."""
    q, tau = log(robot, 10_000)
    total = int(millions * 1e6)
    never = {"false_alarms": 0.0}  # the motion's jumps are no changes to be learnt anew after
    window = feasid.OnlineFit(robot, RATE, window=2000, **never)
    fading = feasid.OnlineFit(robot, RATE, forgetting=0.999, base=window.base, **never)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    for k in range(0, total, len(q)):
        for fit in (window, fading):
            fit.extend(q, tau)
            if k % 1_000_000 == 0:
                fit.estimate()
    spent = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{total} samples twice in {spent:.0f} s, memory grew by {(after - before) / 1024:.1f} MB"
    )
    # What the last 40 000 samples give in one piece; older ones weigh less than 1e-17. It begins
    # at a multiple of `every`, so that the same rows are kept.
    every = window.equations.every
    learnt = total // window.block * window.block
    first = (learnt - 40_000) // every * every
    last = np.arange(first, learnt) % len(q)
    rows, at = CausalEquations(window.base, RATE, 10.0, 40.0, every, 0.2).push(
        q[last].T, tau[last].T
    )
    age = len(last) - 1 - at
    for label, fit, weights in (
        ("window", window, (age < 2000).astype(float)),
        ("forgetting", fading, 0.999 ** age.astype(float)),
    ):
        worst = 0.0
        for triangle, block in zip(fit.reduced.triangles, rows, strict=True):
            mine, batch = triangle.T @ triangle, (block * weights) @ block.T
            worst = max(worst, float(np.abs(mine - batch).max() / np.abs(batch).max()))
        print(f"  {label:10} normal equations off from a batch by {worst:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--drift", type=float, default=0.0, metavar="MILLIONS")
    chosen = parser.parse_args()
    robot = panda().without_joint_terms().with_joint_terms(drive_inertia=True)
    if chosen.drift:
        drift(robot, chosen.drift)
        return
    q, tau = log(robot, int(SECONDS * RATE))
    if chosen.loop:
        control_loop(robot, q, tau, int(SECONDS * RATE), True)
        control_loop(robot, q, tau, int(chosen.loop * RATE), False)
        return
    single_samples(robot)
    speed(robot, q, tau, window=2000)
    speed(robot, q, tau, forgetting=0.9995)
    speed(robot, q, tau)


if __name__ == "__main__":
    main()
