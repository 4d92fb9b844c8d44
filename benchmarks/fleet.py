"""Many logs and many robots.

    python -m benchmarks.fleet memory [--logs 2000]
    python -m benchmarks.fleet logs [--seeds 10] [--first 0] [--arms kuka_lwr4 kinova_gen3]
    python -m benchmarks.fleet fleets [--seeds 3] [--first 0] [--arms kuka_lwr4] [--robots 8]

``memory`` reduces files of two seconds through two worker processes, one of which is killed on the
way, and through one process, and prints the parent's largest memory, how many logs were tried
again, and whether the sums are equal to the last bit.

``logs`` draws five logs of a hidden arm, of which one has a payload, friction, a gain or an arm of
its own, and prints in how many sets the log and the kind are named; then five with friction that
differs by 25 % between days, of which none is to be named.

``fleets`` draws fleets whose arms have logs of 4 s, with one rich log of 25 s and without, and
prints the error of each arm's model on a rich motion over that of a rich fit of the same arm, and
predicted errors over real ones.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import feasid
from benchmarks.fleets import KINDS, POOR, RICH, TEST, ArmType, odd_logs

SEVEN = "kuka_lwr4"
PERIOD = 0.01
SECONDS_TO_KILL = 20.0  #: After the work began.


def write_logs(folder: Path, count: int) -> None:
    """Short logs of seven joints, each with a motion of its own."""
    robot = feasid.datasets.load(SEVEN).attrs["robot"]
    t = np.arange(200) * PERIOD
    for k in range(count):
        rng = np.random.default_rng(k)
        w, phase = rng.uniform(1.0, 5.0, robot.dof), rng.uniform(0, 2 * np.pi, robot.dof)
        q = np.sin(np.outer(t, w) + phase)
        dq, ddq = w * np.cos(np.outer(t, w) + phase), -(w**2) * q
        tau = feasid.inverse_dynamics(robot, q, dq, ddq) + rng.normal(size=q.shape)
        columns = {f"{n}_{j}": v[:, i] for n, v in (("q", q), ("tau", tau))
                   for i, j in enumerate(robot.joints)}  # fmt: skip
        np.savez(folder / f"log_{k:05d}.npz", t=t, **columns)


def reduce_folder(folder: Path, workers: int, kill: bool) -> None:
    """Reduce all logs; print a digest of the sum, the parent's peak and the seconds."""
    killed = []

    def kill_one() -> None:
        listed = subprocess.run(["pgrep", "-P", str(os.getpid())], stdout=subprocess.PIPE)
        killed.append(int(listed.stdout.split()[0]))
        os.kill(killed[0], signal.SIGKILL)

    start = time.perf_counter()
    if kill:
        threading.Timer(SECONDS_TO_KILL, kill_one).start()
    total = feasid.reduce(sorted(folder.glob("*.npz")), feasid.datasets.load(SEVEN).attrs["robot"],
                          workers=workers)  # fmt: skip
    bits = hashlib.sha256()
    for array in (*total.triangles, *(s.triangles for s in total.strata)):
        bits.update(array.tobytes())
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(f"{bits.hexdigest()[:16]} {peak:.0f} {time.perf_counter() - start:.0f} {len(killed)}")


def memory(count: int) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as name:
        write_logs(Path(name), count)
        results = {}
        for workers, kill in ((2, True), (1, False)):
            command = [
                sys.executable,
                "-m",
                "benchmarks.fleet",
                "part",
                name,
                str(workers),
                str(int(kill)),
            ]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            bits, peak, seconds, killed = done.stdout.split()
            results[workers] = bits
            print(
                f"{count} logs, {workers} workers, {killed} killed: parent {peak} MB, {seconds} s"
            )
    print("equal to the last bit" if results[1] == results[2] else "SUMS DIFFER")


def compare(arms: list[str], first: int, seeds: int) -> None:
    """See the module."""
    named, wrong, sets = 0, 0, 0
    for seed in range(first, first + seeds):
        name = arms[seed % len(arms)]
        for what in KINDS:
            kind, logs, at, _ = odd_logs(name, seed, what)
            fit = feasid.fit(logs, kind.robot, diagnose=False, candidates=())
            right = [(d.log, d.kind) for d in fit.comparison.differences] == [(at, what)]
            named, sets = named + right, sets + 1
            if not right:
                texts = [f"{d.log}: {d}" for d in fit.comparison.differences]
                print(f"{name} seed {seed}: log {at}, {what}, but {texts or 'no log'} named")
    days = 0
    for seed in range(first + 1000, first + 1000 + seeds * len(KINDS)):
        kind, logs, _, _ = odd_logs(arms[seed % len(arms)], seed, "daily")
        fit = feasid.fit(logs, kind.robot, diagnose=False, candidates=())
        wrong, days = wrong + bool(fit.comparison.differences), days + 1
        if fit.comparison.differences:
            print(f"seed {seed}, friction by day: {[str(d) for d in fit.comparison.differences]}")
    print(f"log and kind named in {named} of {sets}; false names in {wrong} of {days}")


def fleets(arms: list[str], first: int, seeds: int, count: int) -> None:
    """See the module."""
    for sister in (True, False):
        ratios, predicted = [], []
        for seed in range(first, first + seeds):
            kind = ArmType.draw(arms[seed % len(arms)], seed)
            truths = [kind.arm(100 * seed + k) for k in range(count)]
            logs = {str(k): kind.log(a, POOR, 100 * seed + k) for k, a in enumerate(truths)}
            if sister:
                logs["0"] = kind.log(truths[0], RICH, 100 * seed)
            fleet = feasid.fit_fleet(logs, kind.robot)
            for k, truth in enumerate(truths[sister:], start=int(sister)):
                test = kind.log(truth, TEST, 999)
                log = kind.log(truth, RICH, 100 * seed + 50 + k)
                rich = feasid.fit(log, kind.robot, diagnose=False, candidates=()).errors(test)
                errors = fleet.fits[str(k)].errors(test)
                ratios.append(errors["all"] / rich["all"])
                predicted.append(errors.attrs["predicted"]["all"] / errors["all"])
        low, high = np.percentile(predicted, [10, 90])
        print(
            f"{'one rich log' if sister else 'none rich'}: error over a rich fit's, median "
            f"{np.median(ratios):.2f}, largest {max(ratios):.2f}; predicted over real errors, "
            f"median {np.median(predicted):.2f}, 10 to 90 % {low:.2f} to {high:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("memory").add_argument("--logs", type=int, default=2000)
    logs = commands.add_parser("logs")
    logs.add_argument("--seeds", type=int, default=10)
    logs.add_argument("--first", type=int, default=0)
    logs.add_argument("--arms", nargs="+", default=["kuka_lwr4", "kinova_gen3"])
    several = commands.add_parser("fleets")
    several.add_argument("--seeds", type=int, default=3)
    several.add_argument("--first", type=int, default=0)
    several.add_argument("--arms", nargs="+", default=["kuka_lwr4"])
    several.add_argument("--robots", type=int, default=8)
    part = commands.add_parser("part")
    for name in ("folder", "workers", "kill"):
        part.add_argument(name)
    chosen = parser.parse_args()
    if chosen.command == "memory":
        memory(chosen.logs)
    elif chosen.command == "logs":
        compare(chosen.arms, chosen.first, chosen.seeds)
    elif chosen.command == "fleets":
        fleets(chosen.arms, chosen.first, chosen.seeds, chosen.robots)
    else:
        reduce_folder(Path(chosen.folder), int(chosen.workers), chosen.kill == "1")


if __name__ == "__main__":
    main()
