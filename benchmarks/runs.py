"""One model of several logs: what differs is named, and more logs make it no worse.

    python -m benchmarks.runs [--sets 40] [--equal 40] [--logs 5] [--seed N]
    python -m benchmarks.runs warm [--arms 6] [--days 0.02] [--seed N]
    python -m benchmarks.runs real [--logs-of FOLDER] [--write]

Without a word: sets of logs of which one differs; are the log and the difference named? "warm":
joints that warm up in every log, and fits of 1, 2, 4 and 8 of them judged on a log without; with
`--days` friction differs from log to log, which a single log may hit or miss by chance.
"real": runs of real robots, each predicted by fits of every other run and of all others together.

Arms of six types with unknown masses and friction, simulated by Pinocchio, with encoders of 18 bits
and 1 % of noise of the torques. Friction of every joint changes by a tenth from log to log, in
equal sets by a quarter. The planted differences lie above what `log_differences.DAILY` takes for
ordinary.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

import feasid
from benchmarks.pages import put_between

PAGE = Path(__file__).parents[1] / "docs" / "many_logs.md"
KINDS = ("load", "friction", "offset", "gain", "tilt", "delay", "warm-up")
TYPES = ("ur5_robot", "ur10_robot", "panda", "ur3_robot", "xarm7", "z1")
RATE, SECONDS, BITS, NOISE = 200, 16.0, 18, 0.01
SAME, DAYS = 0.1, 0.25
"""Deviations of the logarithm of friction between logs."""
SINGLE = 3
"""Logs of joints that warm up that are fitted one by one, too."""


def description(name: str) -> Path:
    """The URDF of example-robot-data with this name."""
    import pinocchio as pin

    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    return next(iter(sorted(folder.rglob(f"{name}.urdf"))))


class Arm:
    """An arm whose parameters nobody knows, and its logs."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        import pinocchio as pin

        self.rng, path = rng, description(name)
        locked = {j: 0.0 for j in feasid.load_robot(path).joints if "finger" in j}
        self.robot = feasid.load_robot(path, lock=locked)
        model = pin.buildModelFromUrdf(str(path))
        keys = [model.getJointId(n) for n in model.names[1:] if n not in self.robot.joints]
        self.model = pin.buildReducedModel(model, keys, pin.neutral(model)) if keys else model
        for inertia in self.model.inertias[1:]:
            inertia.mass *= rng.uniform(0.85, 1.15)
        self.data = self.model.createData()
        self.torques = self._torque(*self._motion()[1:])
        self.size = np.sqrt(np.mean(self.torques**2, axis=0)) + 0.2
        self.cold: tuple[float, float] | None = None  # of every log; else drawn for each
        self.dry, self.viscous = rng.uniform(0.05, 0.2, (2, len(self.size))) * self.size

    def _motion(self) -> tuple[np.ndarray, ...]:
        t, n = np.arange(0.0, SECONDS, 1.0 / RATE), self.model.nv
        low = np.maximum(self.model.lowerPositionLimit, -1.6)
        high = np.minimum(self.model.upperPositionLimit, 1.6)
        w = 2 * np.pi * self.rng.uniform(0.08, 0.5, (4, n))
        a, phase = self.rng.uniform(0.3, 1.0, (4, n)), self.rng.uniform(0, 2 * np.pi, (4, n))
        a *= 0.45 * (high - low) / a.sum(axis=0)
        angle = w[:, None] * t[:, None] + phase[:, None]
        q = (low + high) / 2 + np.sum(a[:, None] * np.sin(angle), axis=0)
        dq = np.sum((a * w)[:, None] * np.cos(angle), axis=0)
        return t, q, dq, -np.sum((a * w**2)[:, None] * np.sin(angle), axis=0)

    def _torque(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        import pinocchio as pin

        samples = zip(q, dq, ddq, strict=True)
        return np.array([pin.rnea(self.model, self.data, *x) for x in samples])

    def log(self, days: float, kind: str = "", joint: int = -1) -> pd.DataFrame:
        """One log, perhaps with a difference at a joint."""
        import pinocchio as pin

        rng, n = self.rng, self.model.nv
        t, q, dq, ddq = self._motion()
        before = self.model.inertias[n].copy(), self.model.gravity.linear.copy()
        if kind == "load":
            mass = rng.uniform(0.06, 0.15) * sum(i.mass for i in self.model.inertias[1:])
            cube = pin.Inertia(mass, rng.uniform(-0.05, 0.05, 3), 0.02 * mass * np.eye(3))
            self.model.inertias[n] = before[0] + cube
        if kind == "tilt":
            turn = np.deg2rad(rng.uniform(2.0, 4.0)) * np.r_[_unit(rng, 2), 0.0]
            self.model.gravity.linear = pin.exp3(turn) @ before[1]
        rigid = self._torque(q, dq, ddq)
        self.model.inertias[n], self.model.gravity.linear = before
        factor = np.exp(days * rng.standard_normal(n))
        if kind == "friction":
            factor[joint] = rng.choice([0.25, 3.5])
        friction = factor * (self.viscous * dq + self.dry * np.tanh(dq / 0.005))
        if kind == "warm-up":
            size, fades = self.cold or (rng.uniform(0.5, 0.8), rng.uniform(3.0, 6.0))
            friction *= 1.0 + size * np.exp(-t / fades)[:, None]
        tau = rigid + friction + 0.02 * self.size * ddq
        if kind == "gain":
            tau[:, joint] *= rng.choice([0.84, 1.18])
        if kind == "offset":
            tau[:, joint] += rng.choice([-1, 1]) * rng.uniform(0.3, 0.5) * self.size[joint]
        tau += NOISE * self.size * rng.standard_normal(tau.shape)
        if kind == "delay":
            late = rng.uniform(0.010, 0.020)
            tau = np.stack([np.interp(t - late, t, x) for x in tau.T], axis=1)
        q = np.round(q * 2**BITS / (2 * np.pi)) * 2 * np.pi / 2**BITS
        names = self.robot.joints
        columns = {"t": t} | {f"q_{j}": x for j, x in zip(names, q.T, strict=True)}
        return pd.DataFrame(columns | {f"tau_{j}": x for j, x in zip(names, tau.T, strict=True)})


def _unit(rng: np.random.Generator, size: int) -> np.ndarray:
    x = rng.standard_normal(size)
    return x / np.linalg.norm(x)


def warm(arms: int, seed: int, days: float) -> None:
    """Fits of single logs and of 2, 4 and 8 of joints that warm up, judged on warm joints."""
    for k in range(arms):
        name, rng = TYPES[k % len(TYPES)], np.random.default_rng([seed, k])
        arm = Arm(name, rng)
        arm.cold = rng.uniform(0.2, 0.6), rng.uniform(3.0, 6.0)
        logs, test = [arm.log(days, "warm-up") for _ in range(8)], arm.log(0.0)
        said = []
        for some in (*((log,) for log in logs[:SINGLE]), logs[:2], logs[:4], logs):
            fit = feasid.fit(list(some), arm.robot, diagnose=False)
            said.append((float(fit.errors(test)["all"]), fit.quality.level))
        one, several = said[:SINGLE], said[SINGLE:]
        best = min(error for error, _ in said)
        wrong = any(level == "good" and error > 2 * best for error, level in said)
        grows = max(b / a for (a, _), (b, _) in pairwise(several))
        words = (", ".join(f"{100 * error:.2f} % {level}" for error, level in x)
                 for x in (one, several))  # fmt: skip
        print(
            f"{name:10} {'; 2, 4, 8 logs: '.join(words)}; worst over the best single one "
            f"{max(several)[0] / min(one)[0]:.2f}, more logs over fewer {grows:.2f}"
            f"{', WRONG' * wrong}",
            flush=True,
        )


def real(folder: Path | None, write: bool) -> None:
    """Errors on a left-out run of the best fit of one other run and of the fit of all others."""
    from verdict import UR5_CONSTANTS, named

    sets = {}
    for name in ("kinova_gen3", "double_pendulum", "kuka_lwr4"):
        df = feasid.datasets.load(name)
        robot, options = df.attrs["robot"], df.attrs["options"]
        df.attrs = {}
        groups = df.groupby("run", sort=False) if "run" in df else [("", df)]
        runs = [part.drop(columns="run", errors="ignore") for _, part in groups]
        sets[name] = robot, options, runs if len(runs) > 2 else _halves(runs)
    if folder is not None:
        robot = feasid.load_robot(folder / "ur5/ur5_robot.urdf")
        logs = [named(folder / f"ur5/no{k}.csv.gz", robot, UR5_CONSTANTS) for k in (8, 9)]
        sets["ur5"] = robot, {}, _halves(logs)
    lines = [
        "| left out | fits of one other run | fit of all others | verdict |",
        "|---|---|---|---|",
    ]
    for name, (robot, options, runs) in sets.items():
        alone = [feasid.fit(run, robot, diagnose=False, **options) for run in runs]
        for k, test in enumerate(runs):
            errors = [float(f.errors(test)["all"]) for i, f in enumerate(alone) if i != k]
            others = [run for i, run in enumerate(runs) if i != k]
            fit = feasid.fit(others, robot, diagnose=False, **options)
            together = float(fit.errors(test)["all"])
            lines.append(
                f"| {name} {k + 1} | {100 * min(errors):.2f} to {100 * max(errors):.2f} % | "
                f"{100 * together:.2f} % | {fit.quality.level} |"
            )
            print(lines[-1], flush=True)
    if write:
        put_between(PAGE, "<!-- runs -->", "<!-- end of runs -->", "\n".join(lines))


def _halves(runs: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The first and the second half of every run."""
    return [part.reset_index(drop=True) for run in runs
            for part in (run.iloc[: len(run) // 2], run.iloc[len(run) // 2 :])]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each set, then how many were named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="?", choices=("differing", "warm", "real"), default="differing"
    )
    parser.add_argument("--arms", type=int, default=6)
    parser.add_argument("--days", type=float, default=0.0, help="of the logarithm of friction")
    parser.add_argument("--logs-of", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--equal", type=int, default=40)
    parser.add_argument("--logs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args(arguments)
    seed = given.seed or int(np.random.SeedSequence().entropy % 10**6)
    if given.what == "real":
        return real(given.logs_of, given.write)
    print("seed", seed)
    if given.what == "warm":
        return warm(given.arms, seed, given.days)
    named = wrong = 0
    for k in range(given.sets + given.equal):
        rng = np.random.default_rng([seed, k])
        arm, kind = Arm(TYPES[k % len(TYPES)], rng), KINDS[k % len(KINDS)] if k < given.sets else ""
        at, joint = int(rng.integers(given.logs)), int(rng.integers(arm.model.nv))
        days = SAME if kind else DAYS
        logs = [arm.log(days, kind * (j == at), joint) for j in range(given.logs)]
        fit = feasid.fit(logs, arm.robot, diagnose=False)
        said = [(d.log, d.kind, d.place, round(d.size, 3)) for d in fit.comparison.differences]
        if kind:
            place = arm.robot.joints[joint] if kind in ("friction", "offset", "gain") else None
            right = [s[:2] for s in said] == [(at, kind)] and place in (None, said[0][2])
            named += right
        else:
            right = not said
            wrong += len(said)
        words = f"{kind or 'equal':9} log {at} {arm.robot.joints[joint]}" if kind else "equal"
        print(
            f"{TYPES[k % len(TYPES)]:10} {words} -> {said} {'' if right else 'WRONG'}", flush=True
        )
    print(f"named {named} of {given.sets}; false names {wrong} in {given.equal} equal sets")


if __name__ == "__main__":
    main()
