"""Processor time of fits and of what follows them, in products W'W of the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--joints] [--samples] [--logs] [--write]

The unit is the product of a matrix of 403 592 rows and 98 columns with itself by NumPy, 57 656
samples of seven joints: it depends less on the machine than seconds do. It is measured before and
after each act, and the median of all repeats counts. "fit" is a second fit in a process, "first"
the first one of a fresh process, "plain" a fit that searches nothing. "--joints": legs, body and
hands of a G1 (12, 29 and 43 joints, Pinocchio, 30 s at 200 Hz), each as the second fit of a process
of its own, with the resident memory before it and its peak. "--samples": a Panda with up to a
million samples at 1 kHz. "--logs": the same Panda with up to 64 logs of 4 s each. Without them:
packaged logs. Below a table stands the power by which its fits grow from the first case to the
last. --write puts the tables into docs/development.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from benchmarks.pages import put_between  # noqa: E402
from benchmarks.reduction import peak  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs" / "development.md"
ROWS, COLUMNS = 57_656 * 7, 98
LOGS, REPEATS = ("kuka_lwr4", "unitree_z1"), 3
PLAIN: dict[str, Any] = {"diagnose": False, "calibration": None, "candidates": ()}
JOINTS = {"legs": 12, "body": 29, "hands": 43}
SAMPLES = (8_000, 64_000, 1_000_000)
MANY, IN_EACH = (1, 8, 64), 4_000  #: Numbers of logs, and samples in each.


def spent(act: Callable[[], Any]) -> float:
    """Processor time of a call [s]."""
    start = time.process_time()
    act()
    return time.process_time() - start


class Unit:
    """Seconds of one product W'W, measured again and again; its matrix is freed in between."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def over(self, act: Callable[[], Any]) -> float:
        """Processor time of a call in units, by the mean of the products before and after it."""
        before, seconds, after = self.product(), spent(act), self.product()
        self.times += [before, after]
        return seconds / (0.5 * (before + after))

    def product(self) -> float:
        """Seconds of one unit."""
        matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
        return spent(lambda: matrix.T @ matrix)


def measured(unit: Unit, act: Callable[[], Any]) -> tuple[float, float, float]:
    """Units of a second fit in a process, resident memory before it and its peak [MB]."""
    import feasid

    feasid.fit(feasid.datasets.load(LOGS[1]))
    peaks: list[float] = []

    def watched() -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts at what is resident
        peaks.append(peak())
        act()
        peaks.append(peak())

    units = unit.over(watched)
    return units, peaks[0], peaks[1]


def packaged(name: str) -> dict[str, float]:
    """A packaged log: fit, plain fit, and what follows a fit, as medians of repeats."""
    import feasid

    unit, found = Unit(), dict[str, list[float]]()
    load = feasid.datasets.load
    log = load(name)
    first = unit.over(lambda: feasid.fit(log))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            kept, logs = list[Any](), [load(name), load(name)]  # rows stay with a log
            acts: Mapping[str, Callable[[], Any]] = {
                "fit": lambda kept=kept, log=logs[0]: kept.append(feasid.fit(log)),
                "plain": lambda log=logs[1]: feasid.fit(log, **PLAIN),
                "str": lambda kept=kept: str(kept[0]),
                "write": lambda kept=kept: kept[0].write(f"{folder}/a.urdf", overwrite=True),
                "report": lambda kept=kept: kept[0].report(f"{folder}/a.html", overwrite=True),
            }
            for act, call in acts.items():
                found.setdefault(act, []).append(unit.over(call))
    medians = {act: float(np.median(x)) for act, x in found.items()}
    return {"first": first, **medians, "W'W [s]": float(np.median(unit.times))}


def fitted(
    path: Path,
    locked: Sequence[str],
    seconds: float,
    rate: float,
    multiples: Sequence[float],
    logs: int = 1,
) -> dict[str, float]:
    """A robot in Pinocchio moves in waves of multiples of .1 Hz: the default fit of so many logs,
    parts of its motion, in units, peak memory, and error.
    """
    import pandas as pd
    import pinocchio as pin

    import feasid

    lock = dict.fromkeys(locked, 0.0)
    robot, model = feasid.load_robot(path, lock=lock), pin.buildModelFromUrdf(str(path))
    if lock:
        model = pin.buildReducedModel(
            model, [model.getJointId(n) for n in lock], pin.neutral(model)
        )
    data, n, rng = model.createData(), model.nv, np.random.default_rng(1)
    t, w = np.arange(int(seconds * rate)) / rate, 2 * np.pi * 0.1 * np.array(multiples)
    low, high = np.maximum(model.lowerPositionLimit, -1), np.minimum(model.upperPositionLimit, 1)
    a, b = rng.standard_normal((2, len(w), n)) / np.arange(1, 1 + len(w))[:, None]
    angle = t[:, None] * w
    wave = [(w**d * np.sin(angle + d * np.pi / 2)) @ a + (w**d * np.cos(angle + d * np.pi / 2)) @ b
            for d in range(3)]  # fmt: skip
    q, dq, ddq = (0.35 * (high - low) / np.abs(wave[0]).max(axis=0) * x for x in wave)
    q = q + (low + high) / 2
    rigid = np.array([pin.rnea(model, data, *x) for x in zip(q, dq, ddq, strict=True)])
    dry = 0.1 * np.sqrt((rigid**2).mean(axis=0)) + 0.05
    true = rigid + dry * np.tanh(dq / 0.01) + 0.3 * dry * dq + 0.01 * ddq
    tau = true + 0.02 * np.sqrt((true**2).mean(axis=0)) * rng.standard_normal(true.shape)
    joints = list(model.names)[1:]
    log = pd.DataFrame({"t": t} | {f"{s}_{j}": x[:, k] for s, x in (("q", q), ("tau", tau))
                                   for k, j in enumerate(joints)})  # fmt: skip
    judged = [x[:: max(1, len(t) // 6000)].copy() for x in (q, dq, ddq, true)]
    del wave, angle, q, dq, ddq, rigid, true, tau  # memory is that of the log and its fit
    unit, kept, size = Unit(), [], len(log) // logs
    parts = [log[k * size : (k + 1) * size].reset_index(drop=True) for k in range(logs)]
    given = parts if logs > 1 else log
    fit_units, before, most = measured(unit, lambda: kept.append(feasid.fit(given, robot)))
    missed = feasid.inverse_dynamics(kept[0].robot, *judged[:3]) - judged[3]
    return {"joints": n, "logs": logs, "samples": len(t), "fit": fit_units, "peak [MB]": most,
            "before [MB]": before,
            "error [%]": 100 * float(np.linalg.norm(missed) / np.linalg.norm(judged[3])),
            "W'W [s]": float(np.median(unit.times))}  # fmt: skip


def grown(which: str) -> dict[str, float]:
    """A humanoid of the example robots, 30 s at 200 Hz."""
    import pinocchio as pin
    from runs import description

    path = description("g1_29dof_rev_1_0" if which != "hands" else "g1_29dof_with_hand_rev_1_0")
    names = list(pin.buildModelFromUrdf(str(path)).names)[1:]
    legs = ("hip", "knee", "ankle")
    locked = [n for n in names if which == "legs" and not any(k in n for k in legs)]
    return fitted(path, locked, 30.0, 200.0, range(1, 6))


def long(count: str, logs: int = 1) -> dict[str, float]:
    """A Panda without its fingers, so many samples at 1 kHz of a motion that never repeats."""
    from runs import description

    fingers, multiples = (
        ("panda_finger_joint1", "panda_finger_joint2"),
        (1.0, 2.24, 3.16, 4.12, 5.1),
    )
    return fitted(description("panda"), fingers, int(count) / 1e3, 1e3, multiples, logs)


def many(logs: str) -> dict[str, float]:
    """The same Panda in so many logs."""
    return long(str(int(logs) * IN_EACH), int(logs))


KINDS: Mapping[str, tuple[Callable[[str], dict[str, float]], tuple[str, ...]]] = {
    "packaged": (packaged, LOGS),
    "joints": (grown, tuple(JOINTS)),
    "samples": (long, tuple(map(str, SAMPLES))),
    "logs": (many, tuple(map(str, MANY))),
}


def main() -> None:
    """Measure one kind, each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for kind in ("joints", "samples", "logs"):
        parser.add_argument(f"--{kind}", action="store_true")
    parser.add_argument("--write", action="store_true", help="the table into its page")
    parser.add_argument("--only", nargs=2, metavar=("KIND", "CASE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(KINDS[asked.only[0]][0](asked.only[1])))
        return
    kind = next((k for k in ("joints", "samples", "logs") if getattr(asked, k)), "packaged")
    lines, every = list[str](), list[dict[str, float]]()
    for case in KINDS[kind][1]:
        run = [sys.executable, __file__, "--only", kind, case]
        found = json.loads(
            subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
        )
        every.append(found)
        if not lines:
            lines = [f"| | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
        lines.append(f"| {case} | {' | '.join(f'{x:.3g}' for x in found.values())} |")
        print("\n".join(lines if len(lines) == 3 else lines[-1:]), flush=True)
    if kind != "packaged":
        first, last = every[0], every[-1]
        power = np.log(last["fit"] / first["fit"]) / np.log(last[kind] / first[kind])
        lines += ["", f"From the first row to the last, a fit grows with the power {power:.2g}."]
        print("\n".join(lines[-2:]))
    if asked.write:
        put_between(PAGE, f"<!-- speed {kind} -->", f"<!-- end of speed {kind} -->",
                    "\n".join(lines))  # fmt: skip


if __name__ == "__main__":
    main()
