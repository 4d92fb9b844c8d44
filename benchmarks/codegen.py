"""Operations of the generated code, and how long a torque takes beside Pinocchio and the library.

python benchmarks/codegen.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from arms import panda, ur5

import feasid
from feasid.datasets import wam
from feasid.results.codegen.c import find_compiler
from feasid.results.codegen.routine import BaseParameterModel

CALLS = 20_000
KINDS = ("inverse_dynamics", "mass_matrix", "gravity", "regressor")


def counted() -> None:
    print("operations, parameters as an argument, rigid bodies only")
    for robot in (wam.robot(), panda(), ur5()):
        model = BaseParameterModel.from_robot(robot.with_joint_terms(()), argument=True)
        for kind in KINDS:
            count = model.routine(kind).operations
            print(
                f"  {robot.name:6} {kind:17} {count.multiplications:5} multiplications "
                f"{count.additions:5} additions"
            )


def timed(label: str, call, calls: int = CALLS) -> None:
    for _ in range(calls // 10):
        call()
    spent = np.empty(calls)
    for k in range(calls):
        began = time.perf_counter()
        call()
        spent[k] = time.perf_counter() - began
    middle, late = 1e6 * np.percentile(spent, [50, 99])
    print(f"  {label:44} {middle:9.2f} us median {late:9.2f} us 99th percentile")


def main() -> None:
    counted()
    robot = panda()
    q, dq, ddq = np.random.default_rng(0).uniform(-1, 1, (3, robot.dof))
    print("one torque of 7 joints")
    for backend in ("python", "c") if find_compiler() else ("python",):
        control = feasid.ComputedTorque(robot, backend=backend)
        timed(f"ComputedTorque.torque, {backend}", lambda: control.torque(q, dq, ddq))  # noqa: B023
    timed("feasid.inverse_dynamics", lambda: feasid.inverse_dynamics(robot, q, dq, ddq), 500)
    try:
        import pinocchio
    except ImportError:
        print("  Pinocchio is not installed")
        return
    model = pinocchio.buildModelFromXML(robot.source.text.decode())
    data = model.createData()
    wide = [np.r_[x, np.zeros(model.nv - 7)] for x in (q, dq, ddq)]
    timed("Pinocchio rnea (9 joints)", lambda: pinocchio.rnea(model, data, *wide))


if __name__ == "__main__":
    main()
