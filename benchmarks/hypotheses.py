"""Of all that may be wrong with a recorded log, whether the diagnosis says what is, and first.

``python -m benchmarks.hypotheses`` prints every case and whether it is told.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # recorded logs, without pytest
import feasid
from benchmarks.faults import RECORDED as LOGS
from benchmarks.faults import changed, recorded

FACTOR_ERROR = 0.12
"""Descriptions are off by as much from what their robots weigh."""


def serious(df, robot, options):
    return [f for f in feasid.diagnose(df, robot, **options) if f.level != "note"]


def first(name, df=None, robot=None, **more):
    """The first serious finding of a recorded log, or of what was made of it or its robot."""
    log, described, options = recorded(name)
    found = serious(log if df is None else df, robot or described, {**options, **more})
    return found[0] if found else None


def joints_of(name):
    return recorded(name)[1].joints


def everything_with_a_sign(name):
    found = first(name, changed(name, ["tau"], np.negative))
    return found.code == "sign" and found.joints == joints_of(name)


def another_order(name):
    found = first(name, changed(name, ["tau"], lambda x: np.roll(x, 1, axis=1)))
    enough = len(joints_of(name)) - 1  # one may stay unexplained
    return found.code == "swap" and len(found.joints) >= enough


def a_reversed_axis(name, joint, kinds):
    found = first(name, changed(name, kinds, np.negative, [joint]))
    return (found.code, found.joints) == ("reversed", (joints_of(name)[joint],))


def another_zero(name, joint, degrees):
    given, key = recorded(name)[2].get("offsets", {}), joints_of(name)[joint]
    right = given.get(key, 0.0)
    found = first(name, offsets={**given, key: right + np.deg2rad(degrees)})
    back = np.exp(1j * (found.options["offsets"][key] - right)) if found.joints == (key,) else 0
    return found.code == "zero" and abs(back - 1) < 0.01


def another_gravity(name, gravity):
    found = first(name, robot=recorded(name)[1].with_gravity(gravity))
    return found.code == "gravity" and found.values["gravity"] == (0.0, 0.0, -9.81)


def a_common_factor(name, factor):
    found = first(name, changed(name, ["tau"], lambda x: x * factor))
    return found.code == "scale" and abs(found.values["factor"] / factor - 1) < FACTOR_ERROR


def torques_of_another_motion(name):
    rng = np.random.default_rng(0)
    found = first(name, changed(name, ["tau"], lambda x: x.std(axis=0) * rng.normal(size=x.shape)))
    return found.code == "unexplained" and found.level == "error"


def a_dead_sensor(name, joint):
    _, robot, options = recorded(name)
    rng = np.random.default_rng(0)
    noise = changed(name, ["tau"], lambda x: 0.01 * rng.normal(size=x.shape), [joint])
    found = [f for f in serious(noise, robot, options) if f.code == "unexplained"]
    return [f.joints for f in found] == [(robot.joints[joint],)]


CASES = {
    **{f"all signs {n}": (everything_with_a_sign, n) for n in LOGS},
    **{f"order {n}": (another_order, n) for n in LOGS},
    **{
        f"reversed {n} {j} {'+'.join(k)}": (a_reversed_axis, n, j, k)
        for n in ("kuka_lwr4", "unitree_z1", "kinova_gen3", "simulated")
        for j in (1, 2, 3)
        for k in (("q", "dq"), ("q", "dq", "tau"))
        # Against its axis, Kinova's second joint is the same as half a turn of the third.
        if (n, j, "tau" in k) != ("kinova_gen3", 1, True)
    },
    **{
        f"zero {n} {j} {a}": (another_zero, n, j, a)
        for n in LOGS
        for j, a in ((1, 90), (1, -90), (2, 90), (3, 180))
        # The TX40's forearm is nearly symmetric about its fourth axis.
        if (n, j) != ("staubli_tx40", 3)
    },
    **{
        f"gravity {n} {g}": (another_gravity, n, g)
        for n in LOGS
        for g in ((0, 0, 9.81), (0, 9.81, 0))
        # Half a turn of the Z1's second joint is the same as gravity upwards.
        if (n, g) != ("unitree_z1", (0, 0, 9.81))
    },
    **{
        f"factor {n} {f:.2g}": (a_common_factor, n, f)
        for n in ("kuka_lwr4", "staubli_tx40", "simulated")
        for f in (0.1, 100.0)  # what no description is off by
    },
    **{f"random {n}": (torques_of_another_motion, n) for n in LOGS},
    **{f"dead {n} {j}": (a_dead_sensor, n, j) for n in LOGS for j in (1, 2)},
}  # fmt: skip
"""What is done to a recorded log, and what the diagnosis has to say first."""

UNTOLD = {
    "dead kuka_lwr4 1", "dead kuka_lwr4 2", "all signs kinova_gen3", "order kinova_gen3",
    "gravity kinova_gen3 (0, 0, 9.81)", "gravity kinova_gen3 (0, 9.81, 0)",
    "gravity unitree_z1 (0, 9.81, 0)",
    *(f"reversed kinova_gen3 {j} q+dq" for j in (1, 2, 3)),
    *(f"reversed kinova_gen3 {j} q+dq+tau" for j in (2, 3)),
    *(f"reversed unitree_z1 {j} q+dq+tau" for j in (1, 2, 3)),
    *(f"zero kinova_gen3 {j} {a}" for j, a in ((1, 90), (1, -90), (2, 90), (3, 180))),
    *(f"zero unitree_z1 {j} {a}" for j, a in ((1, 90), (1, -90), (2, 90), (3, 180))),
    "zero kuka_lwr4 3 180", "zero staubli_tx40 2 90",
}  # fmt: skip
"""What is not told, or not first. The recorded parts of the Kinova's log have two stretches, too
few to hold some out; the right remedy of the Z1's lowers held-out errors by a tenth, and wrong ones
do so by a fifth on other logs. Beside a dead sensor a neighbour's torque is unexplained as well."""


if __name__ == "__main__":
    for case, (check, *arguments) in CASES.items():
        print("told    " if check(*arguments) else "not told", case, flush=True)
