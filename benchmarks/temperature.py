"""Does a column of temperatures repair a fit whose friction changes with them?

    python -m benchmarks.temperature [--seeds 4] [--seed N] [--write]

Arms in MuJoCo (`benchmarks.worlds`) move with encoders and noise while their joints warm up by
use, each to another temperature, by up to 25 K. Friction of half of the joints, at least one, falls
by 1 to 3 % per kelvin; the law is linear around the middle of the temperatures, or exponential.
The log has a column of temperatures once per second, in steps of .5 K with noise. Judged are errors
on two motions that nobody fitted, of the cold and of the hot arm, over those of a fit of the same
arm that was always as cold or as hot: at reversals friction takes any value up to its largest. No
model predicts it there, and what a model misses grows with friction. ``--write`` puts the table
into docs/friction.md.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import feasid
from benchmarks.pages import put_between
from benchmarks.worlds import description, draw_seed
from benchmarks.worlds.description import Array, make_description, to_text, with_other_inertials
from benchmarks.worlds.faults import Fault
from benchmarks.worlds.simulation import RATE, Physics, fourier_motion, simulate
from benchmarks.worlds.world import FITTED_PERIOD, FITTED_SPEED, TEST_PERIOD, make_physics

PAGE = Path(__file__).parents[1] / "docs/friction.md"
MARKS = "<!-- temperature -->", "<!-- end of temperature -->"

TWO = "two joints of a UR5"
ARMS = (TWO, "so101", "ur5", "panda")
LOCKED = ("shoulder_pan_joint", *(f"wrist_{k}_joint" for k in (1, 2, 3)))
SECONDS, TEST_SECONDS = 90.0, 14.0
KEPT = 5  #: One row of the simulation's 1000 per second in so many is in the log.
COLD, WARMING = 20.0, 25.0  #: First temperature [degrees C], and how much most joints warm up [K].
TORQUE_NOISE, BITS = 0.02, 18
SENSOR_STEP, SENSOR_NOISE = 0.5, 0.2  #: Of the temperatures [K].
TEST_SPEED = 2.0


@dataclass(frozen=True, eq=False)
class WarmPhysics(Physics):
    """Friction that changes with the temperature of each joint."""

    temperatures: Array  #: Of every second, (n, joints) [degrees C].
    slopes: Array  #: (joints,): share of friction lost per K.
    middle_temperatures: Array  #: Where friction is that of the clean arm.
    exponential: bool

    def friction(self, t: Array | float, dq: Array, weight: Array) -> tuple[Array, Array]:
        """See `Physics.friction`."""
        seconds = range(len(self.temperatures))
        warmth = np.stack([np.interp(t, seconds, x) for x in self.temperatures.T], axis=-1)
        change = -self.slopes * (warmth - self.middle_temperatures)
        factor = np.exp(change) if self.exponential else 1.0 + change
        return self.viscous * factor, self.coulomb * factor


@dataclass(frozen=True, eq=False)
class WarmArm:
    """A drawn arm, its logs with and without friction that changes, and what is hidden.

    `colder` and `hotter` are logs to fit of the arm at the constant temperatures of `cold` and
    `hot`; friction of `clean` is that of the middle temperatures.
    """

    robot: feasid.Robot
    slopes: Array  #: (joints,)
    clean: pd.DataFrame
    clean_test: pd.DataFrame
    log: pd.DataFrame
    cold: pd.DataFrame
    hot: pd.DataFrame
    colder: pd.DataFrame
    hotter: pd.DataFrame


def make_arm(name: str, seed: int, exponential: bool = False) -> WarmArm:
    """Everything of an arm that a seed draws."""

    def stream(number: int) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(name.encode()), number])

    file = "ur_description/urdf/ur5_robot.urdf"
    description.EXAMPLES[TWO] = (file, LOCKED)
    described = make_description(name, stream(0))
    model = feasid.load_robot(to_text(described)).without_joint_terms()
    true = with_other_inertials(described, stream(1))
    plain = make_physics(model, true, Fault(text="clean"), stream(2))
    times, n = np.arange(SECONDS * RATE) / RATE, model.dof
    way = fourier_motion(stream(3), plain.middle, plain.half, FITTED_SPEED, times, FITTED_PERIOD)
    test_times = np.arange(TEST_SECONDS * RATE) / RATE
    test = fourier_motion(stream(4), plain.middle, plain.half, TEST_SPEED, test_times, TEST_PERIOD)
    # Losses of motors and friction heat the joints, the air cools them: dT/dt = p - (T - cold) / a.
    draw = stream(5)
    rises, constants = draw.uniform(0.5, 1.0, n) * WARMING, draw.uniform(20.0, 60.0, n)
    rises[draw.integers(n)] = WARMING
    speed = way[1] ** 2 / np.mean(way[1] ** 2, axis=0)
    heat, step = np.zeros((len(times), n)), 1.0 / RATE
    for k in range(1, len(times)):
        heat[k] = heat[k - 1] + step * (speed[k] - heat[k - 1] / constants)
    warm = COLD + rises * heat / heat.max(axis=0)
    slopes = draw.uniform(0.01, 0.03, n) * (draw.permutation(n) < max(1, n // 2))
    fault = Fault(text="friction that changes with the temperature", friction_drift=1.0)
    base = {k: getattr(plain, k) for k in Physics.__dataclass_fields__}
    hidden = base | {"fault": fault, "slopes": slopes, "exponential": exponential}
    hidden["middle_temperatures"] = COLD + rises / 2

    def record(way: Any, warmth: Array | None, number: int, every: int = KEPT) -> pd.DataFrame:
        seconds = {} if warmth is None else {"temperatures": warmth[::RATE]}
        physics = WarmPhysics(**hidden, **seconds) if seconds else plain
        motion, rng = simulate(physics, described, way, 0.0), stream(number)
        size = np.sqrt(np.mean(motion.torque**2, axis=0))
        torque = motion.torque + TORQUE_NOISE * size * rng.standard_normal(motion.torque.shape)
        step = 2 * np.pi / 2**BITS
        out = {"t": motion.t}
        out |= {
            f"q_{j}": step * np.round(x / step)
            for j, x in zip(model.joints, motion.q.T, strict=True)
        }
        out |= {f"tau_{j}": x for j, x in zip(model.joints, torque.T, strict=True)}
        log = pd.DataFrame(out)
        return log if warmth is None else with_column(log, model.joints, warmth, rng)

    ends = [COLD + share * rises for share in (0.05, 0.95)]
    cold, hot = (np.tile(end, (len(test_times), 1)) for end in ends)
    colder, hotter = (np.tile(end, (len(times), 1)) for end in ends)
    return WarmArm(
        feasid.load_robot(to_text(described)),
        slopes,
        with_column(record(way, None, 6), model.joints, warm, stream(7))[::KEPT],
        record(test, None, 8)[::KEPT],
        record(way, warm, 6)[::KEPT],
        record(test, cold, 8)[::KEPT],
        record(test, hot, 8)[::KEPT],
        record(way, colder, 6)[::KEPT],
        record(way, hotter, 6)[::KEPT],
    )


def with_column(
    log: pd.DataFrame, joints: tuple[str, ...], warmth: Array, rng: np.random.Generator
) -> pd.DataFrame:
    """The log with temperatures as sensors report them: once per second, in steps, with noise."""
    seen = warmth[::RATE] + SENSOR_NOISE * rng.standard_normal(warmth[::RATE].shape)
    seen = SENSOR_STEP * np.round(seen / SENSOR_STEP)
    rows = np.minimum(np.arange(len(log)) // RATE, len(seen) - 1)
    return log.assign(**{f"temperature_{j}": seen[rows, k] for k, j in enumerate(joints)})


def without_column(log: pd.DataFrame) -> pd.DataFrame:
    """The log without temperatures."""
    return log[[c for c in log if not c.startswith("temperature_")]]


def play(name: str, seed: int, law: str) -> dict[str, Any]:
    """Errors of one arm's fits over those of arms that were always as warm, and what was told."""
    arm = make_arm(name, seed, law == "exponential")
    bare, robot = without_column, arm.robot
    idle, fit, blind = (feasid.fit(x, robot) for x in (arm.clean, arm.log, bare(arm.log)))
    pairs = (arm.clean, arm.clean_test), (arm.colder, arm.cold), (arm.hotter, arm.hot)
    units = [float(feasid.fit(bare(own), robot).errors(bare(test))["all"]) for own, test in pairs]
    tests = [arm.clean_test, arm.cold, arm.hot]

    def ratio(fit: feasid.Fit, test: int, change: Any = lambda log: log) -> float:
        return float(fit.errors(change(tests[test]))["all"]) / units[test]

    entered = {e.joint for e in entries(fit, "temperature")}
    changed = {j for j, slope in zip(robot.joints, arm.slopes, strict=True) if slope}
    return {
        "arm": name,
        "seed": seed,
        "friction": law,
        "cold": ratio(fit, 1),
        "hot": ratio(fit, 2),
        "cold, column left out": ratio(fit, 1, bare),
        "cold without": ratio(blind, 1, bare),
        "hot without": ratio(blind, 2, bare),
        "missed": len(changed - entered),
        "wrong": len(entered - changed),
        "told": bool(entries(blind, "warm-up")),
        "entered though idle": bool(entries(idle, "temperature")),
        "idle": ratio(idle, 0),
    }


def entries(fit: feasid.Fit, kind: str) -> list[Any]:
    """What a fit corrected of this kind."""
    return [e for e in fit.calibration.confirmed if e.at.kind == kind]


COLUMNS = ("cold", "hot", "cold, column left out", "cold without", "hot without", "idle")
"""Ratios of the table: their geometric mean and the largest."""


def table(rows: pd.DataFrame) -> str:
    """The results as a table of Markdown, a line for each arm and law of friction."""
    lines = [
        "| arm | law | cold | hot | cold, its log without the column | fit without the column: "
        "cold | hot | reported | column without effect |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (arm, law), group in rows.groupby(["arm", "friction"], sort=False):
        log = np.log(group[[*COLUMNS]])
        cells = [f"{m:.2f} (most {x:.2f})"
                 for m, x in zip(np.exp(log.mean()), np.exp(log.max()), strict=True)]  # fmt: skip
        told = f"{group['told'].sum()} of {len(group)}"
        lines.append(f"| {arm} | {law} | {' | '.join(cells[:-1])} | {told} | {cells[-1]} |")
    return "\n".join(lines)


def main() -> None:
    """Play the arms, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="worlds of each arm and law")
    parser.add_argument("--seed", type=int, help="drawn where left out")
    parser.add_argument("--write", action="store_true", help="put the table into docs/friction.md")
    asked = parser.parse_args()
    seed = draw_seed() if asked.seed is None else asked.seed
    rows = []
    for number in range(asked.seeds):
        for name in ARMS:
            for law in ("linear", "exponential"):
                rows.append(play(name, seed + number, law))
                print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()},
                      flush=True)  # fmt: skip
    played = pd.DataFrame(rows)
    sums = played[["missed", "wrong", "entered though idle"]].sum()
    text = (
        f"{table(played)}\n\nErrors over those of the arm that was always as warm, geometric mean "
        f"and largest, draws: {asked.seeds}. Joints whose friction changes and that lack slopes: "
        f"{sums['missed']}; joints that entered and do not: {sums['wrong']}; columns without "
        f"effect that entered: {sums['entered though idle']} of {len(played)}. `python -m "
        f"benchmarks.temperature --seeds {asked.seeds} --seed {seed}`"
    )
    print(text)
    if asked.write:
        put_between(PAGE, *MARKS, text)


if __name__ == "__main__":
    main()
