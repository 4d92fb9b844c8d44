"""What fits make of one effect at a time: errors on new motion over those of the clean log's fit.

Arms, motions and effects are drawn at run time (`benchmarks/worlds`, MuJoCo). Run::

    python benchmarks/effects.py [--seeds 2] [--robots ur5 panda] [--column NAME]

Columns: the plain fit, the default fit, and the truth's own error (noise, and near standstill a law
of friction that nothing resolves), each over the error of the default fit of the same robot's clean
log; the processor time of the default fit over that of the plain one; and what entered. Gains of
all joints are off by random signs: their ratios follow from the log, the factor that they share
does not, so torques of these worlds are compared up to one common factor. With ``--column`` the
means go into `effects.json`, a column of the league's page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import feasid
from benchmarks.worlds import FAULTS, World, draw_seed, judge, make_world, predictor
from benchmarks.worlds.judge import MARGIN, TORQUE_CUTOFF, Predictor, given_motion, low_pass

RESULTS = Path(__file__).parent / "league" / "effects.json"
PLAIN = {"candidates": (), "calibration": None, "diagnose": False}
LARGE_GAIN, LATE = "gain 15 %", "late 5 ms"
GAINS = ("gain", LARGE_GAIN)
LARGER = {
    LARGE_GAIN: replace(FAULTS["gain"], text="torque gains off by 15 %", torque_gain=0.15),
    LATE: replace(FAULTS["late"], text="torques 5 ms late", delay=5e-3),
}
EFFECTS = (
    "none", "tilt", "zeros", "late", LATE, "gain", LARGE_GAIN, "drift", "cable", "stribeck",
    "load_friction", "ripple", "elastic", "backlash",
)  # fmt: skip
"""Names of `benchmarks.worlds.FAULTS` and `LARGER`; with "drift" joints warm up."""


def timed_fit(world: World, **options: Any) -> tuple[feasid.Fit, float]:
    """A fit of a world's log, and its processor time [s]."""
    start = time.process_time()
    fit = feasid.fit(world.log, world.robot, **options)
    return fit, time.process_time() - start


def scaled(world: World, robot: feasid.Robot, free: bool) -> Predictor:
    """Predictions of a robot, times the factor that fits the test log best where it is free."""
    plain = predictor(robot)
    if not free:
        return plain
    torque = world.test_log[[f"tau_{j}" for j in robot.joints]].to_numpy()
    predicted = plain(*given_motion(world))
    predicted, torque = (low_pass(x, TORQUE_CUTOFF)[MARGIN:-MARGIN] for x in (predicted, torque))
    factor = np.vdot(predicted, torque) / np.vdot(predicted, predicted)
    return lambda *motion: factor * plain(*motion)


def row(world: World, name: str, clean: float | None) -> dict[str, Any]:
    """Errors of one world over the clean one's."""
    plain, before = timed_fit(world, **PLAIN)
    fit, seconds = timed_fit(world, diagnose=False)
    scores = [judge(world, scaled(world, f.robot, name in GAINS)) for f in (plain, fit)]
    unit = clean or scores[1].error
    entered = fit.selection[fit.selection["entered"]]["effect"]
    return {
        "robot": world.name,
        "seed": world.seed,
        "effect": name,
        "plain": scores[0].error / unit,
        "default": scores[1].error / unit,
        "truth": scores[1].truth_error / unit,
        "time": seconds / before,
        "entered": ", ".join(dict.fromkeys(entered)),
        "error": scores[1].error,
    }


def main() -> None:
    """Print a row per robot and effect, and the geometric mean of each effect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--robots", nargs="+", default=["ur5", "panda"])
    parser.add_argument("--effects", nargs="+", default=[*EFFECTS])
    parser.add_argument("--column", default="", help="name of a column of docs/league.md")
    asked = parser.parse_args()
    FAULTS.update(LARGER)
    rows: list[dict[str, Any]] = []
    for robot in asked.robots:
        for seed in (draw_seed() for _ in range(asked.seeds)):
            clean = row(make_world(robot, "none", seed), "none", None)
            for name in asked.effects:
                world = make_world(robot, name, seed)
                rows.append(clean if name == "none" else row(world, name, clean["error"]))
                print({k: v for k, v in rows[-1].items() if k != "error"}, flush=True)
    table = pd.DataFrame(rows)
    columns = ["plain", "default", "truth", "time"]
    means = table.groupby("effect", sort=False)[columns].agg(lambda x: np.exp(np.log(x).mean()))
    means["worst"] = table.groupby("effect", sort=False)["default"].max()
    print(means.round(2).to_string())
    if asked.column:
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept[asked.column] = {
            "robots": [f"{r['robot']} {r['seed']}" for r in rows if r["effect"] == "none"],
            "date": time.strftime("%Y-%m-%d"),
            "means": means.drop(columns="time").round(3).to_dict(orient="index"),
        }
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
