"""Loads behind a wrist sensor that is turned, late and of unequal gains: Pinocchio knows the truth.

    python -m benchmarks.wrist [--seeds 12] [--first N] [--write]

Each seed draws an arm (KUKA LWR4 or UR5), a motion of 30 s, a load of 0.3 to 5 kg, the sensor's
pose, its offsets, its noise (0.1 N, 5 mN m), its rate and the encoders' bits. "sensor wrong": a
turn of up to 10 degrees about a random axis, channels up to 30 ms late or early and gains off by
up to 3 %, each in two of three draws. "arm wrong": a base tilted by up to a degree and joints'
zeros off by 0.1 degrees, each in two of three draws. "nothing wrong": the same worlds without.
Rows: draws whose mass, and whose whole centre, are within 2 and 3 deviations; the mean of their
squared errors in deviations; how often an error was there and was corrected, and corrected where
none was; the largest errors of rotation and delay, corrected or not; the median of deviations over
those that ``calibration=None`` gives, which assumes a sensor without errors. --write puts the table
into docs/payloads.md. Without --first the first seed is the time.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pinocchio
from scipy.spatial.transform import Rotation

import feasid
from benchmarks.pages import put_between

ROOT = Path(__file__).parents[1]
ARMS = {"KUKA LWR4": "kuka_lwr4/kuka_lwr4.urdf", "UR5": "ur5/ur5_robot.urdf"}
CHANNELS = ("fx", "fy", "fz", "tx", "ty", "tz")
NOISE = np.array([0.1] * 3 + [0.005] * 3)
SECONDS = 30.0
KINDS = ("rotation", "delay", "gain", "tilt", "zero")
WRONG = {"sensor wrong": KINDS[:3], "sensor and arm wrong": KINDS, "nothing wrong": ()}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """An arm with a load behind a sensor, and what of the sensor differs from its data sheet."""

    arm: str
    mass: float
    centre: Array  #: In the frame of the last body [m].
    spin: Array  #: Inertia about it [kg m^2].
    pose: tuple[Array, Array]  #: Rotation and position of the sensor as the user knows them.
    turn: Array  #: Rotation vector from there to where it is, in the sensor's axes [rad].
    delay: float  #: Of its channels after the joints [s].
    gains: Array
    tilt: Array  #: Rotation vector of gravity in the base [rad].
    zeros: Array  #: Of seven joints, to add to what the log has [rad].
    rate: float
    bits: int
    seed: int
    reach: float = 0.6  #: Largest amplitude of a joint [rad].

    @classmethod
    def draw(cls, seed: int, wrong: tuple[str, ...] = ()) -> World:
        """The same arm, load and motion whatever kinds of errors may be wrong."""
        rng = np.random.default_rng([seed, 7])
        mass = float(np.exp(rng.uniform(np.log(0.3), np.log(5.0))))
        size = rng.uniform(0.04, 0.15, 3)
        box = np.diag(((size**2).sum() - size**2) / 12)
        axes, pose = Rotation.random(rng=rng).as_matrix(), Rotation.random(rng=rng).as_matrix()
        place = rng.uniform([-0.03, -0.03, 0.02], [0.03, 0.03, 0.08])
        centre = place + rng.uniform([-0.05, -0.05, 0.01], [0.05, 0.05, 0.11])
        arm, rate, bits = (
            rng.choice([*ARMS]),
            rng.choice([100.0, 200.0, 500.0]),
            rng.choice([16, 18]),
        )
        way, there = rng.normal(size=3), rng.random(5) < 2 / 3
        has = dict(zip(KINDS, there & np.isin(KINDS, wrong), strict=True))
        turn = has["rotation"] * np.deg2rad(rng.uniform(0, 10)) * way / np.linalg.norm(way)
        delay = float(has["delay"] * rng.uniform(-0.03, 0.03))
        gains = 1 + has["gain"] * rng.uniform(-0.03, 0.03, 6)
        tilt = has["tilt"] * np.deg2rad(rng.uniform(-0.7, 0.7, 3)) * [1, 1, 0]
        zeros = has["zero"] * np.deg2rad(0.1) * rng.normal(size=7)
        spin = mass * axes @ box @ axes.T
        return cls(str(arm), mass, centre, spin, (pose, place), turn, delay, gains, tilt, zeros,
                   float(rate), int(bits), seed)  # fmt: skip

    def motion(self, t: Array, dof: int) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at any times, (N, dof)."""
        rng = np.random.default_rng([self.seed, 8])
        a, b = rng.uniform(-self.reach, self.reach, (2, 5, dof)) / np.arange(1, 6)[:, None]
        w = 2 * np.pi * 0.1 * np.arange(1, 6)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        return s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b

    def wrench(self, t: Array) -> Array:
        """What a sensor without errors in its true pose would measure at these times, (N, 6)."""
        path = str(ROOT / "datasets" / ARMS[self.arm])
        bare, heavy = (pinocchio.buildModelFromUrdf(path) for _ in range(2))
        gravity = Rotation.from_rotvec(self.tilt).apply(bare.gravity.linear)
        for model in (bare, heavy):
            model.gravity.linear = gravity
        load = pinocchio.Inertia(self.mass, self.centre, self.spin)
        heavy.appendBodyToJoint(heavy.njoints - 1, load, pinocchio.SE3.Identity())
        turn = self.pose[0] @ Rotation.from_rotvec(self.turn).as_matrix()
        pose = pinocchio.SE3(turn, self.pose[1])
        out = np.empty((len(t), 6))
        data = bare.createData(), heavy.createData()
        for k, state in enumerate(zip(*self.motion(t, bare.nv), strict=True)):
            for model, workspace in zip((bare, heavy), data, strict=True):
                pinocchio.rnea(model, workspace, *state)
            out[k] = pose.actInv(data[1].f[-1] - data[0].f[-1]).vector
        return out

    def log(self) -> tuple[pd.DataFrame, feasid.Robot]:
        """Encoders and the sensor's channels, and the arm."""
        robot = feasid.load_robot(ROOT / "datasets" / ARMS[self.arm])
        rng = np.random.default_rng([self.seed, 9])
        t = np.arange(0, SECONDS, 1 / self.rate)
        step = 2 * np.pi / 2**self.bits
        q = np.round((self.motion(t, robot.dof)[0] - self.zeros[: robot.dof]) / step) * step
        felt = self.wrench(t - self.delay) * self.gains
        offset = rng.normal(size=6) * [5, 5, 5, 0.3, 0.3, 0.3]
        felt += offset + NOISE * rng.normal(size=felt.shape)
        columns = {"t": t} | {f"q_{j}": q[:, k] for k, j in enumerate(robot.joints)}
        return pd.DataFrame(columns | dict(zip(CHANNELS, felt.T, strict=True))), robot


@dataclass(frozen=True)
class Outcome:
    """What one draw shows: errors in deviations and of what was corrected."""

    mass: float
    centre: Array
    inertia: Array
    present: tuple[str, ...]  #: Kinds of errors that the sensor has.
    corrected: tuple[str, ...]  #: Kinds that entered.
    angle: float  #: [deg]
    delay: float  #: [ms]
    wider: Array  #: Deviations of mass and centre over those of a sensor without errors.
    level: str


def examine(world: World) -> Outcome:
    """The load of a world's log, and its errors."""
    log, robot = world.log()
    rotation, position = world.pose

    def identify(calibration: str | None) -> feasid.Payload:
        return feasid.payload_from_wrench(
            log, robot, rotation=rotation, position=position, calibration=calibration
        )

    load, trusting = identify("usual"), identify(None)
    wrong = (world.turn, world.delay, world.gains - 1, world.tilt, world.zeros)
    true_turn = Rotation.from_rotvec(world.turn).as_matrix()
    off = Rotation.from_matrix((rotation @ true_turn).T @ load.sensor.rotation).magnitude()
    rows = np.triu_indices(3)
    return Outcome(
        (load.mass - world.mass) / load.mass_std,
        (load.centre - world.centre) / load.centre_std,
        ((load.inertia - world.spin) / load.inertia_std)[rows],
        tuple(kind for kind, x in zip(KINDS, wrong, strict=True) if np.any(x)),
        load.sensor.corrected,
        float(np.rad2deg(off)),
        1e3 * abs(load.sensor.values["delay"][0] - world.delay),
        np.r_[load.mass_std, load.centre_std] / np.r_[trusting.mass_std, trusting.centre_std],
        load.level,
    )


def row_of(name: str, outcomes: list[Outcome]) -> str:
    """A row of the table."""
    count = len(outcomes)
    mass = np.array([x.mass for x in outcomes])
    centre = np.array([x.centre for x in outcomes])

    def within(deviations: float) -> str:
        masses, centres = np.abs(mass) < deviations, (np.abs(centre) < deviations).all(axis=1)
        return f"{masses.sum()}, {centres.sum()} of {count}"

    def entered(kind: str) -> str:
        there = [kind in x.corrected for x in outcomes if kind in x.present]
        absent = [kind in x.corrected for x in outcomes if kind not in x.present]
        return f"{sum(there)} of {len(there)}, {sum(absent)} of {len(absent)}"

    cells = [
        name,
        *(within(deviations) for deviations in (2, 3)),
        f"{np.mean(mass**2):.2f}, {np.mean(centre**2):.2f}",
        *(entered(kind) for kind in KINDS),
        f"{max(x.angle for x in outcomes):.2f} degrees",
        f"{max(x.delay for x in outcomes):.2f} ms",
    ]
    if not any(x.present for x in outcomes):
        wider = np.median([x.wider for x in outcomes], axis=0)
        cells.append(f"{wider[0]:.2f}, {wider[1:].mean():.2f}")
    else:
        cells.append("")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name, wrong in WRONG.items():
        outcomes = []
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            world = World.draw(seed, wrong)
            outcomes.append(outcome := examine(world))
            print(f"{seed} {name}: {world.mass:.2f} kg on {world.arm}, {outcome.level}; in "
                  f"deviations {outcome.mass:.1f}, {np.round(outcome.centre, 1)}; corrected "
                  f"{', '.join(outcome.corrected) or 'nothing'}", flush=True)  # fmt: skip
        rows.append(row_of(name, outcomes))
    table = "\n".join([*HEAD, *rows])
    print(table)
    if arguments.write:
        put_between(ROOT / "docs/payloads.md", "<!-- wrist -->", "<!-- end of wrist -->", table)


HEAD = (
    "| | mass, centre within 2 deviations | within 3 | mean square in deviations: mass, centre "
    "| rotation corrected where it was, was not | delay | gain | tilt | zero "
    "| largest error: rotation | delay | deviations over assumed ones: mass, centre |",
    "|---" * 12 + "|",
)

if __name__ == "__main__":
    main()
