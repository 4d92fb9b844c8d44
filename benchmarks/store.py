"""A year of many robots in a store of logs: bytes, and the time of one robot's drift.

    python benchmarks/store.py [--robots 50] [--days 365] [--folder DIR]

Records are made of the reduced logs of a simulated arm: every day has a motion of eight, and its
torques get the day's friction, gains and noise as rows of the triangles. Of one robot the gain of
one joint grows by 10 % in the year. Prints the size of a record, the seconds of `LogStore.drift`
of that robot and of a sound one, what was named, and what a killed writer leaves.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

import feasid
from feasid.applications.fleet.store import _as_record
from feasid.datasets import arm
from feasid.identification.estimation.noise import estimate_noise

GROWTH = 0.10
FRICTION, GAIN = 0.05, 0.005
"""Deviations from day to day, of logarithms."""

KILLED = """
import sys, feasid
from feasid.datasets import arm
store = feasid.LogStore(sys.argv[1], arm.described(), cutoff=8.0)
print("ready", flush=True)
for k in range(1000):
    store.add(arm.log(arm.truth(store.robot), seed=10_000 + k), "killed", compact=True)
"""


def changed(log: feasid.Reduced, robot: feasid.Robot, friction: np.ndarray, gain: np.ndarray,
            beta: np.ndarray) -> feasid.Reduced:  # fmt: skip
    """A compact log with other friction and gains, by factors (dof,)."""
    triangles = []
    for j, (support, triangle) in enumerate(zip(log.supports, log.triangles, strict=True)):
        terms = [(robot.joints[j], symbol) for symbol in ("fv", "fc")]
        own = [k for k, c in enumerate(support) if robot.parameter_names[log.columns[c]] in terms]
        new = triangle.copy()
        new[:, -1] += (friction[j] - 1) * triangle[:, own] @ beta[list(support)][own]
        new[:, -1] *= gain[j]
        triangles.append(new)
    return replace(log.compact(), triangles=tuple(triangles))


def fill(folder: Path, robots: int, days: int, seed: int) -> feasid.LogStore:
    """Write the records; the last robot's second joint drifts."""
    rng, robot = np.random.default_rng(seed), arm.described()
    truth = arm.truth(robot)
    motions = [feasid.reduce(arm.log(truth, seed=k), robot, cutoff=8.0) for k in range(8)]
    model = motions[0].robot
    beta = estimate_noise(sum(motions))[1]
    for r in range(robots):
        name = f"arm {r:02d}"
        (folder / name).mkdir(parents=True)
        usual = np.exp(0.1 * rng.standard_normal(robot.dof))
        for d in range(days):
            friction = usual * np.exp(FRICTION * rng.standard_normal(robot.dof))
            gain = np.exp(GAIN * rng.standard_normal(robot.dof))
            if r == robots - 1:
                gain[1] *= 1 + GROWTH * d / days
            log = changed(motions[int(rng.integers(8))], model, friction, gain, beta)
            day, digest = date(2026, 1, 1) + timedelta(d), f"{rng.integers(2**63):016x}"
            head = {"robot": name, "day": day, "log": "night.parquet", "digest": digest}
            path = folder / name / f"{day}_0001_{digest}.parquet"
            path.write_bytes(_as_record(head, log, compact=True))
    return feasid.LogStore(folder, robot, cutoff=8.0)


def killed_writer(folder: Path) -> str:
    """What a writer that is killed leaves."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(3.0)
    process.kill()
    process.wait()
    store = feasid.LogStore(folder, arm.described(), cutoff=8.0)
    return f"{len(store.logs('killed'))} whole records, read without error"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 10**6)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        start = time.perf_counter()
        store = fill(Path(name), arguments.robots, arguments.days, seed)
        files = [*Path(name).glob("*/*.parquet")]
        size = sum(path.stat().st_size for path in files)
        print(f"seed {seed}: {len(files)} records, {size / len(files) / 1e3:.1f} kB each, "
              f"{size / 1e9:.2f} GB, made in {time.perf_counter() - start:.0f} s")  # fmt: skip
        for robot in (store.robots[-1], store.robots[0]):
            start, spent = time.perf_counter(), time.process_time()
            drift = store.drift(robot)
            spent, start = time.process_time() - spent, time.perf_counter() - start
            print(f"{start:.1f} s, {spent:.1f} s of processor: {drift!r}")
        print("a killed writer:", killed_writer(Path(name)))


if __name__ == "__main__":
    main()
