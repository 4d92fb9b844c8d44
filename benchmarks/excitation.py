"""What designed motions are worth, beside the published and random ones.

    python benchmarks/excitation.py wam [--seeds 3] [--budget 108 --workers 2 | --rounds 90]
    python benchmarks/excitation.py arms [--rounds 20]
    python benchmarks/excitation.py loop --seeds 10 --rounds 4 [--first 0]
    python benchmarks/excitation.py log [--objective prediction]

``wam``: the seven-joint arm of Sousa and Cortesao (2014), a period of 20 s, with the ranges of
their Table 5 motion as limits, against that motion. ``arms``: Panda and UR5 against the best of a
thousand random motions, every joint of which touches its limits and which need not keep torque
limits or links apart. ``loop``: UR5 designed for motions like the one that judges it, executed in
MuJoCo by a PD controller, logged with stiction and with torque noise of a hundredth of the rated
torque, fitted, and judged on a motion nobody logged by the noise-free torque of the true
parameters; against a random motion of the same length, every joint of which touches its limits.
``log``: ten seconds added to the packaged log of a Z1. Needs the extra "test"; seconds, those of
the budget as well, are processor time, of each process where there are several workers.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import feasid
from feasid.applications.excitation import excite, parallel_search
from feasid.applications.excitation.constraint_check import scale_to_limits
from feasid.applications.excitation.design import (
    design_setting,
    equations_from_other_data,
    make_basis,
    make_problem,
)
from feasid.datasets import wam

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

KINDS = ("position", "velocity", "acceleration", "jerk", "torque")
DRAWS = 1000

NOISE = 0.01
"""Of the loop's torque sensors, as a share of the joints' rated torque."""

TASK_SPEED, TASKS, THINNED = 2.5, 10, 50
"""Largest joint speed [rad/s] of the motions that the loop's fits are to predict, how many of them
the design is told of, and every which sample; they are judged by another one."""


def information(motion, columns=None) -> tuple[float, float]:
    """Condition number of W and log det W'W / s of a robot and its (q, dq, ddq)."""
    robot, (q, dq, ddq) = motion
    columns = feasid.base_parameters(robot).independent if columns is None else columns
    w = feasid.regressor(robot, q, dq, ddq, columns=columns)
    s, w = len(w), w.reshape(-1, len(columns))
    return float(np.linalg.cond(w)), float(np.linalg.slogdet(w.T @ w / s)[1])


def published() -> tuple[feasid.Robot, dict, tuple]:
    """The arm, its limits, and one period of the Table 5 motion."""
    robot = wam.robot()
    _, *motion = wam.motion()
    period = tuple(x[:20_000] for x in motion)
    limits = {kind: (x.min(axis=0), x.max(axis=0)) for kind, x in zip(KINDS, period, strict=False)}
    return robot, limits, period


def overstepped(motion, limits) -> float:
    """Largest excess over any limit, as a share of its range, at a hundred thousand times."""
    t = np.linspace(0, motion.period, 100_000)
    worst = -np.inf
    for values, (low, high) in zip(motion.at(t), limits.values(), strict=True):
        excess = np.maximum(values - high, low - values) / (np.asarray(high) - low)
        worst = max(worst, float(excess.max()))
    return worst


def run_wam(arguments: argparse.Namespace) -> None:
    """The published arm."""
    robot, limits, period = published()
    condition, det = information((robot, period))
    print(f"published motion: condition number {condition:.1f}, log det {det:+.1f}")
    wanted = {
        "condition": ("condition", 5),
        "logdet": ("logdet", 5),
        "both": ({"condition": 1.0, "logdet": 0.35}, 5),
        "condition, 10 harmonics": ("condition", 10),
    }
    for name, (objective, harmonics) in wanted.items():
        if arguments.only and arguments.only != name:
            continue
        for seed in range(arguments.seeds):
            begun = time.process_time()
            motion = feasid.excite(
                robot, 20.0, harmonics=harmonics, objective=objective, seed=seed,
                rounds=arguments.rounds, time_limit=arguments.budget,
                workers=arguments.workers, **limits,
            )  # fmt: skip
            took = time.process_time() - begun
            print(
                f"{name}, seed {seed}: condition number {motion.condition_number:.2f}, log det "
                f"{motion.certificate.log_det:+.1f}, largest excess "
                f"{overstepped(motion, limits):.1e}, {took:.0f} s",
                flush=True,
            )


def design_problem(robot, duration, limits, space):
    """The problem that `feasid.excite` solves, for random motions."""
    none = {"workspace": None, "floor": None, "capsules": None, "collision": True,
            "clearance": 0.01, "ignore": ()}  # fmt: skip
    setting = design_setting(robot, None, None, {**dict.fromkeys(KINDS), **limits}, none | space, 0)
    basis = make_basis("fourier", duration, 5, 0.0)
    known = np.zeros((0, setting.base.size))
    return make_problem(setting, basis, 5, False, np.ones(robot.dof), known, None, 100.0)


def random_coefficients(problem, rng):
    """A random motion, every joint as large as its limits of position to jerk allow."""
    joints, unknowns = problem.coordinates.shape
    z = scale_to_limits(problem, rng.standard_normal(joints * unknowns))
    return problem.coordinates.coefficients(z)


def run_arms(arguments: argparse.Namespace) -> None:
    """Panda and UR5."""
    import arms

    for robot, space in ((arms.panda(), {}), (arms.ur5(), {"capsules": arms.ur5_capsules()})):
        begun = time.process_time()
        problem = design_problem(robot, 10.0, arms.limits(robot), space)
        rng = np.random.default_rng(0)
        t = np.arange(0, 10, 0.1)
        best = -np.inf
        for _ in range(DRAWS):
            motion = problem.basis.matrices(t)[:3] @ random_coefficients(problem, rng)
            model = problem.dynamics.robot, tuple(motion)
            best = max(best, information(model, problem.dynamics.columns)[1])
        between = time.process_time()
        motion = feasid.excite(
            robot,
            10.0,
            rounds=arguments.rounds,
            time_limit=arguments.budget,
            **arms.limits(robot),
            **space,
        )
        print(
            f"{robot.name}: log det {motion.certificate.log_det:+.1f}, best of {DRAWS} random "
            f"{best:+.1f}, limits kept {motion.certificate.limits_hold}; "
            f"{between - begun:.0f} s and {time.process_time() - between:.0f} s",
            flush=True,
        )


def run_log(arguments: argparse.Namespace) -> None:
    """The packaged Z1 log and ten seconds more."""
    frame = feasid.datasets.load("unitree_z1")
    robot = frame.attrs["robot"]
    log = feasid.reduce(frame, robot)
    begun = time.process_time()
    motion = feasid.excite(
        robot, 10.0, given=log, objective=arguments.objective, rounds=arguments.rounds,
        time_limit=arguments.budget, acceleration=15.0, rate=len(frame) / float(np.ptp(frame["t"])),
    )  # fmt: skip
    base = feasid.base_parameters(motion.robot)
    r, _ = equations_from_other_data(log, None, base, np.ones(robot.dof))
    before = np.sqrt(np.diag(np.linalg.inv(r.T @ r)))
    after = motion.certificate.deviations
    k = int(np.argmax(before))
    print(
        f"Z1: worst deviation {before.max():.4g} ({motion.certificate.expressions[k]}), with ten "
        f"seconds more {after.max():.4g}: {before.max() / after.max():.1f} times less; "
        f"median {np.median(before / after):.1f} times; {time.process_time() - begun:.0f} s"
    )


def noisy(log, robot, rng):
    """The log with white noise on every torque, a share of the joint's rated one."""
    out = log.copy()
    for joint, noise in rated_noise(robot).items():
        out[f"tau_{joint}"] += noise * rng.standard_normal(len(out))
    return out


def rated_noise(robot) -> dict[str, float]:
    """Standard deviation of every joint's torque sensor [N m]."""
    return {b.joint: NOISE * b.limits.effort for b in robot.bodies}


def reach(robot):
    """Position limits of the loop's motions."""
    lows = [max(-2.5, b.limits.lower or -2.5) for b in robot.bodies]
    highs = [min(2.5, b.limits.upper or 2.5) for b in robot.bodies]
    return np.array(lows) + 0.05, np.array(highs) - 0.05


def run_loop(arguments: argparse.Namespace) -> None:
    """Design, execute, log, fit, predict."""
    from benchmarks.simulated import Conditions, aligned, fourier, hidden, record

    clean = Conditions(seconds=20.0, noise=0.0)
    ratios = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        truth = hidden(arguments.arm, seed, Conditions(seconds=2.0))
        robot, rng = truth.robot, np.random.default_rng([seed, 99])
        fresh, *task = (fourier(robot, rng, 20.0, TASK_SPEED) for _ in range(1 + TASKS))
        limits = {"velocity": 1.5, "acceleration": 8.0, "position": reach(robot)}
        problem = design_problem(robot, 10.0, limits, {"collision": False})
        t = np.arange(20_000) / 1000.0
        random = problem.basis.matrices(t)[:3] @ random_coefficients(problem, rng)
        aim = {} if arguments.objective != "prediction" else {
            "task": [tuple(x[::THINNED] for x in way) for way in task]
        }  # fmt: skip
        designed = feasid.excite(
            robot, 10.0, collision=False, drive_inertia=True, objective=arguments.objective,
            noise=rated_noise(robot), rounds=arguments.rounds, time_limit=arguments.budget,
            workers=arguments.workers, seed=seed, **aim, **limits,
        ).at(t)  # fmt: skip
        errors = []
        for way in (designed, tuple(random)):
            log = record(truth.model, truth.terms, truth.delta, way, rng, clean)
            log = noisy(log, robot, rng)
            fit = feasid.fit(log, robot.with_joint_terms(drive_inertia=True), diagnose=False)
            true = aligned(truth, fit.robot)
            torque = feasid.inverse_dynamics(fit.robot, *fresh, parameters=true)
            predicted = feasid.inverse_dynamics(fit.robot, *fresh)
            errors.append(float(np.sqrt(np.mean((predicted - torque) ** 2))))
        ratios.append(errors[0] / errors[1])
        print(
            f"{arguments.arm}, seed {seed}: torque error {errors[0]:.4f} N m after the design, "
            f"{errors[1]:.4f} after a random motion: {ratios[-1]:.2f}",
            flush=True,
        )
    better = sum(r < 1 for r in ratios)
    print(f"median ratio {np.median(ratios):.3f}, better in {better} of {len(ratios)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["wam", "arms", "loop", "log"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first of the loop's seeds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--budget", type=float, help="seconds of searching; default 20 rounds")
    parser.add_argument("--workers", type=int, default=1, help="processes of the WAM's search")
    parser.add_argument("--only", help="one of the WAM's objectives")
    parser.add_argument("--arm", default="ur5")
    parser.add_argument("--objective", default="prediction")
    arguments = parser.parse_args()
    if arguments.rounds is None and arguments.budget is None:
        arguments.rounds = 20
    arguments.budget = arguments.budget or 3600.0
    timed = partial(parallel_search.ParallelSearch, now=time.process_time)
    # The search takes this one; its processes unpickle the class by its name.
    names = {**vars(parallel_search), "ParallelSearch": timed}
    excite.parallel_search = SimpleNamespace(**names)
    parallel_search.PROCESS_GRACE = 3600.0  # processor time takes its time on a busy machine
    {"wam": run_wam, "arms": run_arms, "loop": run_loop, "log": run_log}[arguments.what](arguments)


if __name__ == "__main__":
    main()
