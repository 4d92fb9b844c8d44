"""Whether following the advice of a diagnosis does harm: faults of logs and of descriptions.

``python -m benchmarks.advice`` prints, for every fault in two logs, the held-out error with the
advice over that without it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # recorded logs, without pytest
import feasid
from benchmarks.faults import WHOLE, changed, halves, recorded
from feasid.core.errors import FeasidError
from feasid.logs.checks import findings
from feasid.logs.recording import Recording, read_signals
from feasid.robot.inertia import from_mass_com_inertia

LOGS = ("kuka_lwr4", "unitree_z1", "kinova_gen3" + WHOLE, "staubli_tx40", "simulated")

HARM = 1.02
"""Held-out error with the advice over that without it."""

RESTORED = 1.01
"""Advice that brings the error of the log as it was before a fault was put in undoes the fault,
also where a wrong model happens to predict the second half better."""

BANDWIDTH = 5.0
"""Cut-off of all fits that are compared [Hz]."""


def held_out(first, second, robot, options, sizes):
    """Error on the second half of a log of a fit to its first half; infinite where there is none.

    Joints count by the size of their torques before anything was done to these: otherwise a joint
    in other units would count for all.
    """
    try:
        fitted = feasid.fit(first, robot, diagnose=False, **{"cutoff": BANDWIDTH, **options})
    except FeasidError:
        return np.inf
    errors = fitted.errors(second, exclude=()).drop("all").to_numpy()
    return float(np.linalg.norm(errors * sizes) / np.linalg.norm(sizes))


def sizes_of(log, robot, options):
    """Root mean square of every joint's torque in a log."""
    reading = {k: v for k, v in options.items() if k in ("transmission", "offsets")}
    torque = read_signals(Recording.from_source(log), robot, **reading).values["tau"]
    return np.sqrt(np.mean(torque**2, axis=0))


def of_log(kinds, change, joints=None):
    """A fault of columns."""
    return lambda name: (changed(name, kinds, change, joints), recorded(name)[1])


def of_robot(change):
    """A fault of the description."""
    return lambda name: (recorded(name)[0], change(recorded(name)[1]))


def rolled(rows):
    return lambda name: (
        changed(name, ["tau"], lambda x: np.roll(x, rows, axis=0))
        .iloc[100:-100]
        .reset_index(drop=True),
        recorded(name)[1],
    )


def without_rows(name):
    df, robot, _ = recorded(name)
    return df.drop(index=df.index[len(df) // 8 : len(df) // 8 + 40]).reset_index(drop=True), robot


def with_body(robot, k, change):
    bodies = list(robot.bodies)
    bodies[k] = replace(bodies[k], **change(bodies[k]))
    return replace(robot, bodies=tuple(bodies))


def with_tool(body):
    tool = from_mass_com_inertia(2.5, np.array([0.1, 0.08, 0.05]), 0.01 * np.eye(3))
    return {"inertial": body.inertial + tool}


def uncoupled(robot):
    return replace(robot, drives=tuple(d for d in robot.drives if len(d.coupling) == 1))


def spiked(x):
    out = x.copy()
    out[len(x) // 4] += 30 * x.std()
    return out


def clipped(x):
    return np.clip(x, -np.inf, np.quantile(x, 0.9))


def frozen(x):
    out = x.copy()
    at = len(x) // 5
    out[at : at + len(x) // 20] = out[at]
    return out


def holed(x):
    out = x.copy()
    out[len(x) // 4 : len(x) // 4 + 5] = np.nan
    return out


def noisy(x):
    return x + 0.2 * x.std(axis=0) * np.random.default_rng(0).normal(size=x.shape)


FAULTS = {
    "as it is": of_log(["tau"], np.array, []),
    "sign": of_log(["tau"], np.negative, [1]),
    "all signs": of_log(["tau"], np.negative),
    "reversed": of_log(["q", "dq"], np.negative, [2]),
    "velocity reversed": of_log(["dq"], np.negative, [1]),
    "degrees": of_log(["q"], np.rad2deg, [1]),
    "right angle": of_log(["q"], lambda x: x + np.pi / 2, [1]),
    "small angle": of_log(["q"], lambda x: x + 0.1, [1]),
    "torques exchanged": of_log(["tau"], lambda x: x[:, ::-1], [1, 2]),
    "torques reordered": of_log(["tau"], lambda x: np.roll(x, 1, axis=1)),
    "positions exchanged": of_log(["q"], lambda x: x[:, ::-1], [1, 2]),
    "late": rolled(12),
    "ahead": rolled(-8),
    "torque offset": of_log(["tau"], lambda x: x + 0.5 * x.std(), [1]),
    "common factor": of_log(["tau"], lambda x: 1.4 * x),
    "one factor": of_log(["tau"], lambda x: 2 * x, [1]),
    "millinewtons": of_log(["tau"], lambda x: 1000 * x, [1]),
    "noise": of_log(["tau"], noisy),
    "gravity upwards": of_robot(lambda r: r.with_gravity((0, 0, 9.81))),
    "gravity sideways": of_robot(lambda r: r.with_gravity((9.81, 0, 0))),
    "gravity tilted": of_robot(lambda r: r.with_gravity((0, -3.36, -9.22))),
    "heavy description": of_robot(lambda r: with_body(r, -1, with_tool)),
    "light description": of_robot(
        lambda r: with_body(r, 1, lambda b: {"inertial": 0.3 * b.inertial})
    ),
    "long link": of_robot(
        lambda r: with_body(r, 2, lambda b: {"position": 2 * np.asarray(b.position)})
    ),
    "shared motors": of_robot(uncoupled),
    "gap": without_rows,
    "empty cells": of_log(["tau"], holed, [1]),
    "spike": of_log(["tau"], spiked, [1]),
    "clipped": of_log(["tau"], clipped, [1]),
    "stuck": of_log(["tau"], frozen, [2]),
    "stuck position": of_log(["q"], frozen, [1]),
}

PASSING = ("spike", "clipped", "stuck", "stuck position", "empty cells")
"""Faults of the moment: what was learnt is judged on a stretch without them."""


def followed(robot, diagnosis):
    """The robot with what the findings say of gravity and lengths."""
    for finding in diagnosis:
        if finding.code == "gravity":
            robot = robot.with_gravity(finding.values["gravity"])
        if finding.code == "length":
            k = robot.joint_index(finding.joints[0])
            factor = finding.values["factor"]
            robot = with_body(robot, k, lambda b, f=factor: {"position": f * b.position})
    return robot


def harm(first, second, robot, options, more, sizes, clean=None):
    """Held-out error after the advice of a diagnosis of the first part over that before it."""
    diagnosis = feasid.diagnose(first, robot, **options)
    advised = findings.merge_options([options, diagnosis.options])
    other = followed(robot, diagnosis)
    if advised == options and other is robot:
        return 1.0
    before = held_out(first, second, robot, {**options, **more}, sizes)
    after = held_out(first, second, other, {**advised, **more}, sizes)
    if clean is not None and after > HARM * before:
        own = held_out(*halves(clean[0]), clean[1], {**options, **more}, sizes)
        return 1.0 if after <= RESTORED * own else after / before
    return after / before if np.isfinite(after) else np.inf


CASES = [(LOGS[(k + j) % len(LOGS)], fault) for k, fault in enumerate(FAULTS) for j in (0, 2)]
CASES += [(name, "as it is") for name in LOGS if (name, "as it is") not in CASES]
"""Every fault in two of the logs, and no fault in all of them."""


def harm_of_case(name, fault):
    """What following the advice does to the held-out error of a log with a fault."""
    log, robot = FAULTS[fault](name)
    first, second = halves(log)
    if fault in PASSING:
        second = halves(recorded(name)[0])[1]
    clean_log, own, options = recorded(name)
    sizes = sizes_of(clean_log, own, options)
    return harm(first, second, robot, options, {}, sizes, (clean_log, own))


if __name__ == "__main__":
    for name, fault in CASES:
        print(f"{harm_of_case(name, fault):8.3f}  {name}  {fault}", flush=True)
