"""Uses that a fit is granted, beside its errors on motion that it did not see.

    python benchmarks/verdict.py real [--logs FOLDER]   packaged logs; with a folder those in it
    python benchmarks/verdict.py days --logs FOLDER     law of errors on another day
    python benchmarks/verdict.py ruined [--count 60] [--seed 0]
    python benchmarks/verdict.py right [--count 60] [--seed 0]
    python benchmarks/verdict.py worlds [--count 10] [--seed 0]

"real" fits a part of a log and predicts another run, or later time. "days" makes the law of
`feasid.identification.assessment.quality.ANOTHER_DAY` of both, and of robots that it leaves out.
"ruined" and "right" simulate arms of six joints, whose description is off by up to a fifth, with
feasid's own dynamics; a ruined log has one mistake, and its error is that against the true torques.
"worlds" fits arms in MuJoCo, with encoders, noise and delays, and predicts a faster motion. Without
--seed it is the time.
A granted use is wrong where feed-forward is off by more than `WRONG`, and refused where it should
not be where it is off by at most `RIGHT`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import feasid
from feasid.core.errors import FeasidError
from feasid.identification.assessment.checks import SHORTEST
from feasid.robot.bodies import Limits
from feasid.robot.inertia import from_mass_com_inertia

RIGHT, WRONG = 0.05, 0.10
"""True relative torque errors up to which a use is to be granted, and beyond which never."""

GRAVITY_WRONG = 2.5
"""Gravity errors over what friction holds, from which a grant is wrong; 1 is right."""

TRAINED = 0.6
"""Share of a run that is fitted where the rest is predicted."""

FROZEN = ("kuka_lwr4", "unitree_z1", "double_pendulum", "kinova_gen3", "staubli_tx40")
"""Packaged logs, on which limits were chosen; all others judge them."""

Pair = tuple[str, pd.DataFrame, Any, dict[str, Any], pd.DataFrame]


def packaged() -> Iterator[Pair]:
    """Another run of every packaged log, or its later time."""
    for name in FROZEN:
        df = feasid.datasets.load(name)
        robot, options = df.attrs["robot"], df.attrs["options"]
        df.attrs = {}
        if "run" in df:
            runs = [part.drop(columns="run") for _, part in df.groupby("run", sort=False)]
            for k, first in enumerate(runs):
                others = [r for i, r in enumerate(runs) if i != k]
                yield f"{name} run {k + 1}", first, robot, options, others[0]
        cut = int(TRAINED * len(df)) if "run" not in df else None
        if cut is not None:
            yield f"{name} begin", df.iloc[:cut], robot, options, df.iloc[cut:]
            yield f"{name} end", df.iloc[-cut:], robot, options, df.iloc[:-cut]


def named(path: Path, robot: Any, factor: Any = 1.0) -> pd.DataFrame:
    """A table of columns by number as columns by joint, currents times their factors."""
    df = pd.read_csv(path)
    out = {"t": df["t"]}
    factors = np.broadcast_to(factor, len(robot.coordinates))
    for k, joint in enumerate(robot.coordinates):
        out[f"q_{joint}"] = df[f"q_{k + 1}"]
        torque = df[f"tau_{k + 1}"] if f"tau_{k + 1}" in df else df[f"current_{k + 1}"]
        out[f"tau_{joint}"] = factors[k] * torque
    return pd.DataFrame(out)


UR5_CONSTANTS = 101 * np.array([0.125] * 3 + [0.092] * 3)
"""Gear ratio times torque constants of its data sheet [N m / A]."""


def from_folder(folder: Path) -> Iterator[Pair]:
    """Logs that no limit was chosen on: UR3, UR5, AlienGo."""
    ur3 = feasid.load_robot(folder / "ur3/ur3_robot.urdf")
    logs = [named(folder / f"ur3/id{k}.csv.gz", ur3, -1.0) for k in (1, 2)]
    yield "ur3 id1", logs[0], ur3, {}, logs[1]
    yield "ur3 id2", logs[1], ur3, {}, logs[0]
    ur5 = feasid.load_robot(folder / "ur5/ur5_robot.urdf")
    logs = [named(folder / f"ur5/no{k}.csv.gz", ur5, UR5_CONSTANTS) for k in (8, 9)]
    yield "ur5 no8", logs[0], ur5, {}, logs[1]
    yield "ur5 no9", logs[1], ur5, {}, logs[0]
    dog = feasid.load_robot(folder / "aliengo/aliengo_fixed.xml")
    log = named(folder / "aliengo/traj_0.csv.gz", dog)
    half = len(log) // 2
    yield "aliengo begin", log[:half], dog, {}, log[half:]
    yield "aliengo end", log[half:], dog, {}, log[:half]


def bad_logs(folder: Path) -> Iterator[Pair]:
    """Logs that no use is to be granted from: amperes, a wrong sign, load without a sign."""
    ur5 = feasid.load_robot(folder / "ur5/ur5_robot.urdf")
    for k, other in ((8, 9), (9, 8)):
        true = named(folder / f"ur5/no{other}.csv.gz", ur5, UR5_CONSTANTS)
        yield f"ur5 no{k} amperes", named(folder / f"ur5/no{k}.csv.gz", ur5), ur5, {}, true
    ur3 = feasid.load_robot(folder / "ur3/ur3_robot.urdf")
    logs = [named(folder / f"ur3/id{k}.csv.gz", ur3, s) for k, s in ((1, 1.0), (2, -1.0))]
    yield "ur3 sign", logs[0], ur3, {}, logs[1]
    servo = feasid.load_robot(folder / "so101/so101.urdf")
    log = named(folder / "so101/multisine.csv.gz", servo)
    half = len(log) // 2
    yield "so101 unsigned", log[:half], servo, {}, log[half:]


# -- simulated arms --------------------------------------------------------------------------------


def random_arm(rng: np.random.Generator) -> Any:
    """An arm of six joints with inertials, limits and no two alike."""
    half = np.pi / 2
    a, b, c = rng.uniform(0.3, 0.5, 3)
    rows = [(half, 0.0, 0.35, 0.0), (0.0, a, 0.0, 0.0), (half, 0.05, 0.1, 0.0),
            (-half, 0.0, b, 0.0), (half, 0.0, 0.0, 0.0), (0.0, 0.0, 0.3 * c, 0.0)]  # fmt: skip
    robot = feasid.Robot.from_dh(rows, convention="standard", name="arm")
    masses = np.array([8.0, 7.0, 4.0, 2.5, 1.5, 0.8]) * rng.uniform(0.7, 1.4)
    bodies = []
    for body, mass in zip(robot.bodies, masses, strict=True):
        size = 0.25 * (mass / 8) ** 0.3
        inertia = mass * size**2 * np.diag([0.3, 0.35, 0.25])
        ten = from_mass_com_inertia(mass, rng.uniform(-0.4, 0.4, 3) * size, inertia)
        bodies.append(replace(body, inertial=ten, limits=Limits(-3.2, 3.2, 6.0, 60.0 * mass)))
    return replace(robot, bodies=tuple(bodies))


def motion(rng: np.random.Generator, seconds: float, moving: Any = slice(None)) -> Any:
    """Time, positions, speeds, accelerations of a sum of five sines, (N, 6)."""
    t = np.arange(int(seconds * 200)) / 200
    q, dq, ddq = np.zeros((3, len(t), 6))
    for k in range(1, 6):
        w = 2 * np.pi * 0.1 * k * rng.uniform(0.9, 1.1)
        size, phase = rng.uniform(0.1, 0.5, 6) / k, rng.uniform(0, 2 * np.pi, 6)
        active = np.zeros(6)
        active[moving] = 1.0
        size = size * active
        q += size * np.sin(w * t[:, None] + phase)
        dq += size * w * np.cos(w * t[:, None] + phase)
        ddq -= size * w**2 * np.sin(w * t[:, None] + phase)
    return t, q + rng.uniform(-0.6, 0.6, 6), dq, ddq


def torques(robot: Any, friction: Any, q: Any, dq: Any, ddq: Any) -> Any:
    """Of rigid bodies and friction."""
    viscous, dry = friction
    rigid = feasid.inverse_dynamics(robot, q, dq, ddq)
    return rigid + viscous * dq + dry * np.tanh(dq / 1e-3)


def table(robot: Any, t: Any, q: Any, tau: Any, rng: np.random.Generator, noise: Any) -> Any:
    """A log with noise."""
    q, tau = q + 2e-5 * rng.normal(size=q.shape), tau + noise * rng.normal(size=tau.shape)
    out = {"t": t}
    for k, joint in enumerate(robot.joints):
        out |= {f"q_{joint}": q[:, k], f"tau_{joint}": tau[:, k]}
    return pd.DataFrame(out)


MISTAKES = ("x1.5", "sign", "one sign", "two joints move", "standstill", "swapped",
            "another robot", "amperes")  # fmt: skip


def simulated(seed: int, mistake: str = "") -> Any:
    """Description, log, and on new motion positions, speeds, accelerations, torques, gravity."""
    rng = np.random.default_rng([seed, 50])
    robot = random_arm(rng)
    real = robot
    if mistake == "another robot":  # its axes in another order
        real = random_arm(rng)
        homes = zip(real.bodies[1:], real.bodies[:0:-1], strict=True)
        moved = [replace(b, rotation=h.rotation, position=h.position) for b, h in homes]
        real = replace(real, bodies=(real.bodies[0], *moved))
    bodies = [replace(b, inertial=b.inertial * rng.uniform(0.8, 1.2)) for b in real.bodies]
    truth = replace(real, bodies=tuple(bodies))
    moving = [1, 4] if mistake == "two joints move" else slice(None)
    t, q, dq, ddq = motion(rng, 20.0, moving)
    if mistake == "standstill":
        hold = 3200
        ends = [np.repeat(q[-1:], hold, axis=0), *np.zeros((2, hold, 6))]
        q, dq, ddq = (np.vstack([x[:1000], e if k else np.repeat(q[999:1000], hold, 0)])
                      for k, (x, e) in enumerate(zip((q, dq, ddq), ends, strict=True)))  # fmt: skip
        t = np.arange(len(q)) / 200
    size = torques(truth, (0.0, 0.0), *motion(rng, 20.0)[1:]).std(axis=0)
    friction = 0.1 * size * rng.uniform(0.5, 1.5, 6), 0.15 * size * rng.uniform(0.5, 1.5, 6)
    tau = torques(truth, friction, q, dq, ddq)
    change = {"x1.5": 1.5, "sign": -1.0, "amperes": rng.uniform(0.05, 0.12, 6)}.get(mistake, 1.0)
    tau = tau * change
    if mistake == "one sign":
        tau[:, int(rng.integers(1, 3))] *= -1
    if mistake == "swapped":
        tau[:, [1, 2]] = tau[:, [2, 1]]
    log = table(robot, t, q, tau, rng, 0.02 * size * np.mean(np.abs(change)))
    new = motion(rng, 20.0)[1:]
    still = [new[0], 0 * new[1], 0 * new[2]]
    return robot, log, new, torques(truth, friction, *new), torques(truth, (0, 0), *still)


# -- judging ---------------------------------------------------------------------------------------


def predicted_torque(fit: Any, q: Any, dq: Any, ddq: Any) -> Any:
    """Of the fitted robot."""
    return feasid.inverse_dynamics(fit.robot, q, dq, ddq)


def line_of(name: str, fit: Any, error: float, per_joint: Any, gravity: float) -> dict[str, Any]:
    """What is granted, beside what is true; `per_joint` true over predicted errors."""
    grades = fit.uses["grade"]
    true = {"true": error, "gravity true": gravity, "ratios": per_joint}
    evidence = fit.evidence
    predicted = evidence.relative(evidence.error)
    told = {"level": fit.quality.level, "predicted": predicted, "seconds": evidence.seconds}
    record: dict[str, Any] = {"name": name, **told, **true, **grades}
    print(f"{name:<26} {record['level']:<9} predicted {100 * record['predicted']:6.1f} % true "
          f"{100 * error:6.1f} %  gravity {grades.iloc[0]:<9} ({gravity:5.2f}) feed-forward "
          f"{grades.iloc[1]:<9} contact {grades.iloc[2]:<9} weighing {grades.iloc[3]:<9} "
          f"{', '.join(r.code for r in fit.quality.reasons)}", flush=True)  # fmt: skip
    return record


def judge_pair(pair: Pair) -> dict[str, Any] | None:
    """Fit one log and judge it on the other."""
    name, train, robot, options, test = pair
    try:
        fit = feasid.fit(train.reset_index(drop=True), robot, **options)
        errors = fit.errors(test.reset_index(drop=True))
    except FeasidError as error:
        print(f"{name:<26} refused: {str(error)[:90]}", flush=True)
        return None
    predicted = errors.attrs["predicted"]
    ratios = (errors / predicted).drop("all").to_numpy()
    return line_of(name, fit, float(errors["all"]), ratios, np.nan)


def judge_simulated(seed: int, mistake: str = "") -> dict[str, Any] | None:
    """Fit a simulated log and judge it on new motion against true torques."""
    robot, log, new, tau, gravity = simulated(seed, mistake)
    name = f"{mistake or 'right'} {seed}"
    try:
        fit = feasid.fit(log, robot)
        missed = predicted_torque(fit, *new) - tau
    except FeasidError as error:
        print(f"{name:<26} refused: {str(error)[:90]}", flush=True)
        return None
    still = predicted_torque(fit, new[0], 0 * new[1],
                             0 * new[2]) - gravity  # fmt: skip
    rms = np.sqrt(np.mean(missed**2, axis=0))
    quiet = np.sqrt(np.mean(missed**2)) / np.sqrt(np.mean(tau**2))
    hold = float(np.max(np.sqrt(np.mean(still**2, axis=0)) / fit.evidence.hold))
    return line_of(name, fit, float(quiet), rms / fit.evidence.error, hold)


def worlds(count: int, seed: int) -> Iterator[Pair]:
    """Arms with hidden parameters that MuJoCo simulates, and a faster log of each."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from benchmarks.worlds.description import EXAMPLES
    from benchmarks.worlds.world import make_world

    for k in range(count):
        name = [*EXAMPLES, "random"][k % (len(EXAMPLES) + 1)]
        world = make_world(name, seed=seed + k)
        yield f"{name} {seed + k}", world.log, world.robot, {}, world.test_log


def report(title: str, records: list[dict[str, Any] | None]) -> None:
    """Print counts of uses granted and refused wrongly, and true over predicted errors."""
    rows = [r for r in records if r is not None]
    print(f"\n{title}: {len(rows)} fits, {len(records) - len(rows)} refused by name")
    forward = [(r["feed-forward"] == "yes", r["true"]) for r in rows]
    wrong = sum(granted and true > WRONG for granted, true in forward)
    missing = [r["name"] for r in rows if r["feed-forward"] != "yes" and r["true"] <= RIGHT]
    yes = sum(granted for granted, _ in forward)
    due = sum(true <= RIGHT for _, true in forward)
    print(f"  feed-forward: yes {yes}, wrongly yes {wrong}, wrongly not yes {len(missing)} of {due}"
          f" within {RIGHT:.0%} {missing}")  # fmt: skip
    gravity = [(r["gravity compensation"] == "yes", r["gravity true"], r["true"]) for r in rows]
    beyond = sum(g and (t > GRAVITY_WRONG if np.isfinite(t) else e > WRONG) for g, t, e in gravity)
    lacking = sum(not g and e <= RIGHT for g, _, e in gravity)
    print(f"  gravity: yes {sum(g for g, *_ in gravity)}, wrongly yes {beyond}, wrongly not yes "
          f"{lacking}")  # fmt: skip
    for use in ("contact", "weighing"):
        print(f"  {use}: yes {sum(r[use] == 'yes' for r in rows)}")
    ratios = np.concatenate([np.asarray(r["ratios"], float) for r in rows])
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios):
        middle, most = np.median(ratios), np.quantile(ratios, 0.9)
        print(f"  true over predicted error of a joint: median {middle:.2f}, 90 % {most:.2f}, "
              f"worst {ratios.max():.1f} ({len(ratios)} joints)")  # fmt: skip


def law_of_days(ratios: dict[str, list[float]]) -> tuple[float, float]:
    """Ends between which true over told errors of 80 % of further robots are, by Student's law."""
    logs = [np.log(own) for own in ratios.values()]
    mean, count = np.mean([x.mean() for x in logs]), len(logs)
    variance = np.mean([np.mean((x - mean) ** 2) for x in logs]) * count / (count - 1)
    half = stats.t.ppf(0.9, count - 1) * np.sqrt(variance * (1 + 1 / count))
    return float(np.exp(mean - half)), float(np.exp(mean + half))


def days(records: list[dict[str, Any] | None]) -> None:
    """Print the law of errors on another day, and how often it holds of robots it leaves out."""
    ratios: dict[str, list[float]] = {}
    for r in records:  # shorter logs are told to be too short, and useless fits have no interval
        if r is not None and r["seconds"] >= SHORTEST and r["level"] != "useless":
            ratios.setdefault(r["name"].split()[0], []).append(r["true"] / r["predicted"])
    held = 0
    for name, own in ratios.items():
        low, high = law_of_days({k: x for k, x in ratios.items() if k != name})
        held += sum(low <= x <= high for x in own)
        print(
            f"{name:<16} true over told {np.round(own, 2)}, by the others {low:.2f} to {high:.2f}"
        )
    low, high = law_of_days(ratios)
    print(f"law {low:.2f} to {high:.2f}; {held} of {sum(map(len, ratios.values()))} pairs are "
          "within the law of the other robots")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("real", "days", "ruined", "right", "worlds"))
    parser.add_argument("--logs", type=Path, help="folder of further logs")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="part of the names to judge")
    asked = parser.parse_args()
    begin = time.perf_counter()
    if asked.what == "days":
        folder = [] if asked.logs is None else from_folder(asked.logs)
        days([judge_pair(p) for p in chain(packaged(), folder) if asked.only in p[0]])
    elif asked.what == "real":
        if asked.logs is None:
            report("packaged", [judge_pair(p) for p in packaged() if asked.only in p[0]])
        else:
            report("further", [judge_pair(p) for p in from_folder(asked.logs)
                               if asked.only in p[0]])  # fmt: skip
            report("bad logs", [judge_pair(p) for p in bad_logs(asked.logs)
                                if asked.only in p[0]])  # fmt: skip
    else:
        seed = int(time.time()) if asked.seed is None else asked.seed
        print(f"seed {seed}")
        if asked.what == "worlds":
            report("worlds", [judge_pair(p) for p in worlds(asked.count, seed)])
            return
        kinds = MISTAKES if asked.what == "ruined" else ("",)
        records = [judge_simulated(seed + k, kinds[k % len(kinds)]) for k in range(asked.count)
                   if asked.only in kinds[k % len(kinds)]]  # fmt: skip
        report(asked.what, records)
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
