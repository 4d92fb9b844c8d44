"""Logs of every rate, length and number of joints, and online fits of a million samples.

    python -m benchmarks.scales [--only rates,lengths,joints,logs,limited,odd,online] [--write]

Torques come from Pinocchio, with friction, drive inertia, quantised positions and noise. A fit is
judged by its torques on another motion: right (within three times what it reports), in doubt by its
own verdict, or refused by a `FeasidError`; anything else is wrong. Online, memory may not grow and
the normal equations must stay those of a batch. "joints", "samples" and "logs" have a row of their
growth: processor time of a fit with its print, its peak memory above that before, and how both grow
as powers of the number, from the cases with at least a quarter of the largest one that was fitted.
"""

import argparse
import math
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
import pandas as pd

import feasid
from benchmarks.faults_page import write_row
from benchmarks.reduction import peak

TIMES = 3.0
"""True errors on new motion are at most so many times what is reported."""
STEP = 2e-5
"""Of positions [rad]."""
NOISE = 0.01
"""Of torques, as a share of their rms."""
TESTED = 400
ADDRESSES = 6 * 10**9
"""Bytes of address space that the process of a case of "limited" has."""
SMALL, LARGE = 2, 30
"""Joints of robots of most cases, and of the largest."""


def chain(joints):
    """A description of so many revolute joints, and the true one, as URDF."""
    texts = []
    for change in (0.0, 0.2):
        links, parts = '<link name="l0"/>', ""
        draw = np.random.default_rng(7)
        for k in range(1, joints + 1):
            share = (1 - 0.9 * k / joints) * (1 + change * draw.uniform(-1, 1))
            mass, size = 4.0 * share, 0.3 / max(1, joints / 6)
            moments = " ".join(
                f'{name}="{value:.9g}"'
                for name, value in zip(
                    ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
                    mass * size**2 * np.array([0.1, 0.01, 0, 0.12, 0.005, 0.07]),
                    strict=True,
                )
            )
            links += (
                f'<link name="l{k}"><inertial><origin xyz="0.01 0.02 {size / 2:.6g}"/>'
                f'<mass value="{mass:.9g}"/><inertia {moments}/></inertial></link>'
            )
            axis = ("0 0 1", "0 1 0", "1 0 0")[k % 3]
            parts += (
                f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/>'
                f'<child link="l{k}"/><origin xyz="0 0 {size:.6g}"/><axis xyz="{axis}"/>'
                '<limit lower="-3" upper="3" velocity="9" effort="900"/></joint>'
            )
        texts.append(f'<robot name="chain">{links}{parts}</robot>')
    true, described = texts
    return described, true


def motion(joints, rate, samples, seed, speed=1.0):
    """Positions, velocities and accelerations of sums of sines."""
    rng = np.random.default_rng([seed, joints])
    t = np.arange(samples) / rate
    w = 2 * np.pi * speed * rng.uniform(0.1, 0.6, (4, joints))
    a, phase = rng.uniform(0.1, 0.3, (4, joints)), rng.uniform(0, 6.28, (4, joints))
    q, dq, ddq = (np.zeros((samples, joints)) for _ in range(3))
    for one in range(4):
        angle = np.outer(t, w[one]) + phase[one]
        q += a[one] * np.sin(angle)
        dq += a[one] * w[one] * np.cos(angle)
        ddq -= a[one] * w[one] ** 2 * np.sin(angle)
    return t, q, dq, ddq


def torques(true, q, dq, ddq, gear=1.0):
    """Of Pinocchio's model, with drive inertia and friction of ours."""
    import pinocchio

    model = pinocchio.buildModelFromXML(true)
    data = model.createData()
    tau = np.array([pinocchio.rnea(model, data, *x) for x in zip(q, dq, ddq, strict=True)])
    size = 1.0 / (1.0 + np.arange(q.shape[1]))
    inertia = 0.1 * size if gear == 1.0 else 1e-6 * gear**2 * np.ones(q.shape[1])
    return tau + inertia * ddq + 0.5 * size * dq + 0.3 * size * np.sign(dq)


def log_of(true, rate, samples, seed=1, speed=1.0, gear=1.0):
    t, q, dq, ddq = motion(true.count("<joint"), rate, samples, seed, speed)
    tau = torques(true, q, dq, ddq, gear)
    rng = np.random.default_rng(seed)
    noise = NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
    columns = {"t": t}
    for k in range(q.shape[1]):
        columns[f"q_j{k + 1}"] = np.round(q[:, k] / STEP) * STEP
        columns[f"tau_j{k + 1}"] = tau[:, k] + noise[:, k]
    return pd.DataFrame(columns)


def end_of(
    joints=SMALL, rate=200.0, samples=4000, gear=1.0, change=None, speed=1.0, logs=1, **options
):
    """How a fit ends: the word, what it says, and its processor time [s] and memory [MB]."""
    described, true = chain(joints)
    data = [log_of(true, rate, samples, seed, speed, gear) for seed in range(1, logs + 1)]
    data = change(data[0]) if change else data if logs > 1 else data[0]
    began, before = time.process_time(), peak()
    try:
        fit = feasid.fit(data, feasid.load_robot(described), **options)
        text, quality = str(fit), fit.quality
    except feasid.FeasidError as error:
        return "refused", str(error), 0.0, 0.0
    cost = time.process_time() - began, peak() - before
    _, *moved = motion(joints, 200.0, TESTED, 99, speed)
    tau = torques(true, *moved, gear)
    off = feasid.inverse_dynamics(fit.robot, *moved) - tau
    error = float(np.linalg.norm(off) / np.linalg.norm(tau))
    reported = quality.errors.overall_error(quality.errors.model)
    said = f"{100 * error:.2g} % true, {100 * reported:.2g} % held out, {quality.level}"
    assert text
    if quality.level != "good":
        return "in doubt", said, *cost
    return "right" if error <= TIMES * reported else "wrong", said, *cost


def identical(log):
    """Two joints with the same columns."""
    return log.assign(q_j2=log["q_j1"], tau_j2=log["tau_j1"])


CASES = {
    "rates": {
        f"{rate:g} Hz": {"rate": rate, "samples": int(max(400, min(20 * rate, 100_000)))}
        for rate in (10.0, 20.0, 50.0, 100.0, 500.0, 1000.0, 4000.0, 20_000.0)
    }
    | {"10 Hz, slow motion": {"rate": 10.0, "samples": 2000, "speed": 0.2}},
    "lengths": {
        f"{samples} samples": {"samples": samples, "rate": 100.0 if samples < 10_000 else 1000.0}
        for samples in (50, 100, 200, 1000, 100_000, 2_000_000)
    },
    "joints": {
        f"{joints} joints": {"joints": joints, "samples": 4000}
        for joints in (1, 2, 4, 8, 15, LARGE)
    },
    "samples": {
        f"{samples} samples": {"samples": samples, "rate": 1000.0}
        for samples in (5000, 20_000, 100_000, 300_000, 1_000_000)
    },
    "logs": {f"{logs} logs": {"logs": logs} for logs in (1, 4, 16, 64)},
    "limited": {f"{joints} joints": {"joints": joints} for joints in (45, 60)},
    "odd": {
        "identical joints": {"change": identical},
        "gear of 1 000": {"gear": 1000.0},
        "gear of 1 000, no drive inertia": {"gear": 1000.0, "drive_inertia": False},
        "torques of 1e-6": {"change": lambda log: log.assign(tau_j2=1e-6 * log["tau_j2"])},
        "torques of 1e9": {"change": lambda log: log.assign(tau_j2=1e9 * log["tau_j2"])},
        "at rest": {"change": lambda log: log.assign(q_j1=0.1, q_j2=0.2)},
    },
}


GROWN = ("joints", "samples", "logs")
"""Groups whose cost is judged as it grows."""


def single(group, name):
    """In a process of its own, for its memory."""
    if group == "limited":
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    end, said, seconds, memory = end_of(**CASES[group][name])
    print(f"{end}\t{said[:150]}; {peak():.0f} MB in all\t{seconds:.3g}\t{memory:.3g}")
    return 0


def growth(costs):
    """By number of joints, samples or logs: seconds and memory, and their powers of the number."""
    listed = ", ".join(f"{n}: {s:.1f} s and {m:.0f} MB" for n, (s, m) in costs.items())
    large = [n for n in costs if n >= max(costs) / 4]
    slopes = [np.polyfit(np.log(large), np.log([costs[n][k] for n in large]), 1)[0] for k in (0, 1)]
    powers = "time grows as its power {:.2f}, memory as its power {:.2f}".format(*slopes)
    return f"{listed}; from {min(large)} on {powers}"


def online(samples=1_000_000, rate=1000.0, joints=7):
    """Memory, times and drift of a fit with a window, and of one that forgets."""
    described, true = chain(joints)
    log = log_of(true, rate, 20_000)
    q = log.filter(like="q_").to_numpy()
    tau = log.filter(like="tau_").to_numpy()
    robot = feasid.load_robot(described)
    fit = feasid.OnlineFit(robot, rate, window=2000, false_alarms=0.0)
    spent, grown, before = [], 0.0, None
    for k in range(samples):
        began = time.thread_time()
        fit.update(q[k % len(q)], tau[k % len(q)])
        spent.append(time.thread_time() - began)
        if k % 25_000 == 0:
            fit.estimate()
        if k == samples // 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    grown -= 8 * (samples - samples // 10) * 4 / 2**20  # of the times that are noted
    other = feasid.OnlineFit(robot, rate, window=2000, false_alarms=0.0, base=fit.base)
    step = math.lcm(fit.block, fit.equations.every)  # the same rows and blocks
    first = (samples - 40_000) // step * step
    for k in range(first, samples):
        other.update(q[k % len(q)], tau[k % len(q)])
    pairs = zip(fit.reduced.triangles, other.reduced.triangles, strict=True)
    drift = max(np.abs(a.T @ a - b.T @ b).max() / np.abs(b.T @ b).max() for a, b in pairs)
    return (
        f"{samples} samples of {joints} joints: memory grew by {max(0.0, grown):.0f} MB, update "
        f"{1e3 * np.mean(spent):.3f} ms in the mean, 99.99 % below "
        f"{1e3 * np.percentile(spent, 99.99):.1f} ms, at most {1e3 * max(spent):.1f} ms; normal "
        f"equations off from those of the last 40 000 samples alone by {drift:.0e}"
    )


def main(argv=None):
    """Returns 0 where nothing is wrong."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m benchmarks.scales", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--only", default=",".join([*CASES, "online"]))
    parser.add_argument("--samples", type=int, default=1_000_000, help="of the online fit")
    parser.add_argument("--write", action="store_true", help="put rows into docs/faults.md")
    parser.add_argument("--single", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.single:
        return single(*given.single)
    wrong = 0
    for group in given.only.split(","):
        ends, words, costs = Counter(), [], {}
        for name in CASES.get(group, ()):
            order = [sys.executable, "-m", "benchmarks.scales", "--single", group, name]
            done = subprocess.run(order, capture_output=True, text=True)
            end, said, *cost = (done.stdout.strip().splitlines() or ["\t"])[-1].split("\t")
            if done.returncode:
                end, said = "raw", (done.stderr.strip().splitlines() or [str(done.returncode)])[-1]
            elif group in GROWN and end != "refused":
                costs[int(name.split()[0])] = tuple(map(float, cost))
            ends[end] += 1
            words.append(f"{name}: {end}")
            print(f"{name}: {end}: {said} {cost}", flush=True)
        outcome, tries = "; ".join(words), ends.total()
        if group == "online":
            outcome, tries = online(given.samples), given.samples
            print(outcome, flush=True)
        wrong += ends["wrong"] + ends["raw"]
        if given.write:
            write_row(f"logs: {group}" if group in CASES else "a long online fit", tries, outcome)
            if costs:
                write_row(f"growth with {group}", len(costs), growth(costs))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
