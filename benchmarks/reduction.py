"""From a log to reduced data, against a Pinocchio loop with numpy.linalg.qr in the same run.

    python benchmarks/reduction.py [--repeat 5] [--memory]

Prints seconds of processor time on one thread and ratios: ours, one-sided and with both sides of
the equations filtered (from signals, and from positions and torques in a data frame), the peer (a
Python loop over Pinocchio's regressor and one QR of the stacked base columns), and the bare product
W'W of the full regressor, a lower bound for anyone who forms it. ``--memory`` reduces two million
samples in a process of its own and prints its peak. The robot is the seven-joint arm of
``feasid.datasets`` "wam7" with friction and drive inertia, 69 base columns of 98.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import feasid
from feasid.datasets import wam
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.triangle import Reduced, Reducer
from feasid.logs.motion import Run
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.inertia import PINOCCHIO

RATE, BAND, CUTOFF = 1000.0, 40.0, 8.0
"""Of the motion, its derivatives and the equations [Hz], as `feasid.fit` has them."""
LONG = 2_000_000
BLOCK = 50_000


def best(function: Callable[[], object], repeat: int) -> float:
    """Shortest processor time of several calls on one thread; a busy machine does not count."""
    times = []
    with threadpool_limits(1):
        for _ in range(repeat):
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    return min(times)


def both_sides(robot: feasid.Robot, t, motion, tau, columns) -> Reduced:
    """Signals to reduced data, regressor and torque behind one low-pass."""
    run = Run("log", RATE, np.arange(len(t)), t, *motion, tau, band=BAND)
    reducer = EquationReducer(robot, columns, CUTOFF)
    reducer.add(run)
    return reducer.result()


def raw_log(robot: feasid.Robot, t, motion, tau) -> pd.DataFrame:
    """Time, positions and torques as a logger has them."""
    positions = {f"q_{j}": motion[0][:, k] for k, j in enumerate(robot.joints)}
    return pd.DataFrame(
        {"t": t, **positions, **{f"tau_{j}": tau[:, k] for k, j in enumerate(robot.joints)}}
    )


def pinocchio_model(robot: feasid.Robot):
    """A tree of the same size; where its frames lie does not change how long it takes."""
    import pinocchio as pin

    model = pin.Model()
    for i, body in enumerate(robot.bodies):
        joint = pin.JointModelRevoluteUnaligned(np.array(body.motion[:3, 0]))
        placement = pin.SE3(np.array(body.rotation), np.array(body.position))
        model.addJoint(robot.parents[i] + 1, joint, placement, body.name)
    return model


def pinocchio_loop(model, motion, tau, columns, robot) -> np.ndarray:
    """The script that people write: regressor per sample, friction columns, one QR."""
    import pinocchio as pin

    data = model.createData()
    q, dq, ddq = motion
    samples, dof = q.shape
    order = np.argsort(PINOCCHIO)
    place = {int(c): k for k, c in enumerate(columns)}
    inertial = [
        (10 * i + int(order[k]), place[int(c)])
        for i, row in enumerate(robot.inertial_columns)
        for k, c in enumerate(row)
        if int(c) in place
    ]
    theirs, ours = map(list, zip(*inertial, strict=True))
    W = np.zeros((samples, dof, len(columns)))
    for s in range(samples):
        full = pin.computeJointTorqueRegressor(model, data, q[s], dq[s], ddq[s])
        W[s][:, ours] = full[:, theirs]
    signals = {"Ia": ddq, "fv": dq, "fc": np.sign(dq), "fo": np.ones_like(q)}
    for k in range(dof):
        for symbol, column in robot.drive_columns(k).items():
            if column in place:
                W[:, k, place[column]] = signals[symbol][:, k]
    stacked = np.concatenate([W, tau[..., None]], axis=2).reshape(samples * dof, -1)
    return np.linalg.qr(stacked, mode="r")


def compare(repeat: int) -> dict[str, float]:
    robot = wam.robot()
    columns = [int(c) for c in base_parameters(robot).independent]
    t, *motion = wam.motion()
    tau = np.random.default_rng(0).standard_normal(motion[0].shape)
    out = {}
    ours = best(lambda: Reduced.from_samples(robot, *motion, tau, columns=columns), repeat)
    out["ours [s]"] = ours
    model = pinocchio_model(robot)
    out["Pinocchio loop + numpy qr [s]"] = best(
        lambda: pinocchio_loop(model, motion, tau, columns, robot), max(1, repeat // 2)
    )
    out["times faster"] = out["Pinocchio loop + numpy qr [s]"] / ours
    full = feasid.regressor(robot, *motion).reshape(-1, robot.size)
    bare = out["W'W [s]"] = best(lambda: full.T @ full, repeat)
    out["of W'W"] = ours / bare
    log, base = raw_log(robot, t, motion, tau), base_parameters(robot)
    measured = raw_log(robot, t, motion, tau)
    for kind, signal in zip(("dq", "ddq"), motion[1:], strict=True):
        measured[[f"{kind}_{j}" for j in robot.joints]] = signal
    filtered = {
        "both sides": lambda: both_sides(robot, t, motion, tau, columns),
        "both sides, all 98 columns": lambda: both_sides(robot, t, motion, tau, range(robot.size)),
        "both sides, from positions": lambda: feasid.reduce(log, base=base, filtering="equations"),
        "both sides, dq and ddq measured": lambda: feasid.reduce(measured, base=base),
    }
    for what, reduce in filtered.items():
        seconds = out[f"{what} [s]"] = best(reduce, repeat)
        out[f"{what}, times faster"] = out["Pinocchio loop + numpy qr [s]"] / seconds
        out[f"{what}, of W'W"] = seconds / bare
    reduced = Reduced.from_samples(robot, *motion, tau, columns=columns)
    a, rho, residual = reduced.triangle()
    mine = np.zeros((len(rho) + 1,) * 2)
    mine[:-1, :-1], mine[:-1, -1], mine[-1, -1] = a, rho, residual
    regressor = feasid.regressor(robot, *motion, columns=columns)
    stacked = np.concatenate([regressor, tau[..., None]], axis=2).reshape(-1, len(columns) + 1)
    norms, exact = np.linalg.norm(stacked, axis=0), _exact_gram(stacked)
    out["error of our R'R, relative"] = _error(mine, exact, norms)
    out["error of numpy qr's R'R, relative"] = _error(np.linalg.qr(stacked, mode="r"), exact, norms)
    return out


def _error(r: np.ndarray, exact: np.ndarray, norms: np.ndarray) -> float:
    wide = r.astype(np.longdouble)
    return float(np.abs((wide.T @ wide - exact) / np.outer(norms, norms)).max())


def _exact_gram(stacked: np.ndarray) -> np.ndarray:
    """W'W in long double, block by block."""
    total = np.zeros((stacked.shape[1],) * 2, dtype=np.longdouble)
    for start in range(0, len(stacked), BLOCK):
        block = stacked[start : start + BLOCK].astype(np.longdouble)
        total += block.T @ block
    return total


def long_log() -> None:
    """Reduce two million samples, a block at a time; prints the peak memory of this process."""
    robot = wam.robot()
    reducer = Reducer(robot)
    both = EquationReducer(robot, [int(c) for c in base_parameters(robot).independent], CUTOFF)
    rng = np.random.default_rng(0)
    for name, add in (("one-sided", reducer.add), ("both sides", partial(_added, both))):
        start = time.perf_counter()
        for _ in range(LONG // BLOCK):
            add(*rng.standard_normal((4, BLOCK, robot.dof)))
        seconds = time.perf_counter() - start
        print(f"{name}: {LONG} samples: {seconds:.1f} s, peak memory {peak():.0f} MB")


def _added(reducer: EquationReducer, *signals: np.ndarray) -> None:
    t = np.arange(BLOCK) / RATE
    reducer.add(Run("log", RATE, np.arange(BLOCK), t, *signals, band=BAND))


def peak() -> float:
    """Largest resident memory of this process [MB] (getrusage would count the parent's)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    if arguments.memory:
        long_log()
        return
    for key, value in compare(arguments.repeat).items():
        print(f"{key:42} {value:10.3g}")
    subprocess.run([sys.executable, __file__, "--memory"], check=True)


if __name__ == "__main__":
    main()
