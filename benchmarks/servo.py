"""Robots without torque sensors: gains, delay and motion from positions and commands, in MuJoCo.

    python benchmarks/servo.py scale [--seeds 12] [--robots so101 leg] [--kinds plain weight]
    python benchmarks/servo.py arms [--seeds 20] [--first 0] [--robots so101 ur5 panda leg]
    python benchmarks/servo.py adverse [--seeds 5] [--servos rate zeros]
    python benchmarks/servo.py simulation [--seeds 1] [--robots so101]
    python benchmarks/servo.py design [--seeds 1] [--robots so101]
    python benchmarks/servo.py recordings --files RECORDING.json ...

"arms": hidden truth behind MuJoCo's position actuators (`benchmarks/worlds/servos.py`): masses off
by 15 %, axes by 15 %, centres by 10 %, all 10 % heavier; gains, armature and friction off by 30 %;
a delay of 4 ms, of which MuJoCo's step takes back a quarter of a millisecond; 30 s. Ratios of
gains (the joint that is most off) and their rms pull, delay, RMS of positions along other
commands in closed loop, over that of the nominal model; torques of the links with armature on that
motion up to the common factor, over the description's; gains with a known payload in a second log.
"scale": gains over the true ones with only the description to fix their common factor, and over the
factor by which the description's torques are off along the test motion, which no log tells. True
masses have a further common factor of exp(N(0, .2)); servos carry none, half or all of the robot's
weight; a last log has speeds with noise of .02 rad/s besides. With the rms pull of that factor, by
what the fit reports but for the description's common error, and of the ratios.
"adverse": servos and logs that do more or less, by what the fit makes of them. The fit's motion is
that of a servo with the terms that it found, the nominal model's that of one with the true terms. A
fit whose motion is more than a tenth of the nominal one's error off is silent unless what it names
is just what the servo does, or its verdict is not "good". "refused" logs give no fit.
"simulation": beside least squares over closed-loop rollouts in MuJoCo of gains, damping, armature
and dry friction, given the true delay and the description's inertials, with processor times.
"design": ratios of gains from 30 s with encoders of 12 bits at 50 Hz, of random motion and of what
`feasid.excite` designs within the same range and speed. "recordings": real servos, from recordings
in the format of BAM (github.com/Rhoban/bam, Apache-2.0: one servo, a pendulum of known mass and
length, commands and positions), all of one servo and gain; every second one is fitted, the others
test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

import feasid
from feasid.core.threads import one_thread
from feasid.identification.regression.reduce import complete_filter_options, open_sources
from feasid.identification.servos.gains import ServoFit, identify_servo
from feasid.options.complete import complete_options
from feasid.options.tables import FitOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.worlds.servos import (
    COMMAND_RATE,
    SERVOS,
    STEP,
    Conditions,
    ServoWorld,
    fitted_servo_robot,
    make_servo_world,
)

LOGS = {"14 bits, 200 Hz": Conditions(), "12 bits, 50 Hz": Conditions(bits=12, rate=50)}
ROBOTS = ("so101", "ur5", "panda", "leg")
PAYLOAD = 0.1
"""Known load over the mass of all links."""
SILENT = 0.1
"""Error of the closed loop over the nominal model's from which a fit without a word is silent."""
MOST_ACCELERATION = 20.0
"""Of designed motions [rad/s^2]; random ones reach 3 to 12."""
PENDULUM = """<robot name="pendulum"><link name="base"/><link name="rod"><inertial>
<origin xyz="0 0 -{length}"/><mass value="{mass}"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="servo" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-3.2" upper="3.2" effort="100" velocity="100"/></joint></robot>"""
ROWS = 100
"""Rows of the motion on which torques are compared."""


def mass(world: ServoWorld) -> float:
    return sum(float(x.get("value", "0")) for x in world.described.iter("mass"))


def torque_test_motion(world: ServoWorld) -> tuple[np.ndarray, ...]:
    """Positions, speeds and accelerations of the test motion at which torques are compared."""
    q = np.repeat(world.test_commands, 10, axis=0)
    width = np.hanning(41) / np.hanning(41).sum()
    q = np.stack([np.convolve(x, width, "valid") for x in q.T], axis=1)
    dq = np.gradient(q, 0.002, axis=0)
    rows = np.linspace(500, len(q) - 1, ROWS).astype(int)
    return q[rows], dq[rows], np.gradient(dq, 0.002, axis=0)[rows]


def rigid_torques(world: ServoWorld, fit: feasid.Fit) -> tuple[float, float]:
    """Relative torque errors up to a factor: of the fit's links and armature, the description's."""
    q, dq, ddq = torque_test_motion(world)
    truth = world.physics.rigid_torque(q, dq, ddq) + world.truth.armature * ddq
    size = np.sqrt(np.mean(truth**2, axis=0))

    def error(torque: np.ndarray) -> float:
        a, b = (torque / size).ravel(), (truth / size).ravel()
        return float(np.linalg.norm(a * (a @ b) / (a @ a) - b) / np.linalg.norm(b))

    links = fit.robot.without_joint_terms()
    own = feasid.inverse_dynamics(links, q, dq, ddq) + fit.joint_terms["Ia"].to_numpy() * ddq
    described = feasid.inverse_dynamics(world.robot, q, dq, ddq)
    return error(own), error(described + world.nominal.armature * ddq)


def measured(world: ServoWorld) -> dict[str, float]:
    """All figures of one world."""
    started = time.process_time()
    fit = feasid.fit(world.log, world.robot, command="position")
    seconds = time.process_time() - started
    servo = fit.servo
    logs = np.log(np.array(servo.servo.kp) / world.truth.kp)
    off = logs - logs.mean()
    nominal = world.rollout_error(world.nominal)
    rollout = world.rollout_error(fitted_servo_robot(world, fit))
    own, described = rigid_torques(world, fit)
    log, ten = world.loaded_log(PAYLOAD * mass(world))
    weighed = feasid.fit(
        world.log, world.robot, command="position", loaded=log, load=ten, diagnose=False
    )
    known = np.array(weighed.servo.servo.kp) / world.truth.kp - 1
    damping = np.log(servo.damping / (world.truth.kd + world.truth.viscous)) - logs.mean()
    return {
        "ratio %": 100 * np.abs(off).max(),
        "pull^2": float(np.mean((off / servo.ratio_deviations) ** 2)),
        "damping %": 100 * np.abs(damping).max(),
        "delay off ms": 1e3 * abs(servo.delay - world.truth.delay + STEP / 2),
        "rollout mrad": 1e3 * rollout,
        "over nominal": rollout / nominal,
        "torque %": 100 * own,
        "over description": own / described,
        "factor": float(np.exp(logs.mean())),
        "told": servo.factor,
        "payload kp %": 100 * np.abs(known).max(),
        "terms": float(len(servo.servo.terms or ())),
        "seconds": seconds,
    }


def described_factor(world: ServoWorld) -> float:
    """Factor of the description's rigid torques that explains the true ones best."""
    motion = torque_test_motion(world)
    truth = world.physics.rigid_torque(*motion)
    size = np.sqrt(np.mean(truth**2, axis=0))
    a, b = (np.ravel(x / size) for x in (feasid.inverse_dynamics(world.robot, *motion), truth))
    return float(a @ b / (a @ a))


SCALES = {
    "plain": {},
    "half_weight": {"carried": 0.5},
    "weight": {"carried": 1.0},
    "noisy dq": {"speed_noise": 0.02},
}


def scale(options: argparse.Namespace) -> None:
    ran: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    seeds = range(options.first, options.first + options.seeds)
    for seed, robot, log, kind in product(seeds, options.robots, LOGS, options.kinds):
        how = replace(LOGS[log], heavier=0.2, **SCALES[kind])
        world = make_servo_world(robot, seed, how)
        table, started = world.log, time.process_time()
        try:
            servo = servo_fit(table, world.robot)
        except feasid.FeasidError as error:
            print(f"{robot}, {log}, {kind}, {seed}: refused: {error}", flush=True)
            continue
        seconds = time.process_time() - started
        logs = np.log(np.array(servo.servo.kp) / world.truth.kp)
        off = logs - logs.mean()
        common = float(logs.mean() + np.log(described_factor(world)))
        pulls = (
            common / servo.from_log,
            float(np.sqrt(np.mean((off / servo.ratio_deviations) ** 2))),
        )
        share = (servo.servo.terms or {}).get("weight", (0.0,))[0]
        figures = (common, *pulls, share - how.carried, float(np.abs(off).max()), seconds)
        ran.setdefault((robot, log, kind), []).append(figures)
        print(
            f"{robot}, {log}, {kind}, {seed}: kp {np.exp(common):.3f}, ratios "
            f"{100 * np.abs(off).max():.2g} %, terms {[*(servo.servo.terms or {})]} share "
            f"{share:.3f}, {seconds:.1f} s{' DOUBT' if any_doubt(servo) else ''}",
            flush=True,
        )
    for (robot, log, kind), fits in ran.items():
        common, pull, ratio_pull, share, ratio, seconds = np.array(fits).T
        print(
            f"{robot:6} {log:15} {kind:12} {len(fits)} of {options.seeds}: kp median "
            f"{np.exp(np.median(common)):.3f}, {np.exp(common.min()):.2f} to "
            f"{np.exp(common.max()):.2f}; rms pull {np.sqrt(np.mean(pull**2)):.2f}, of ratios "
            f"{np.sqrt(np.mean(ratio_pull**2)):.2f}; ratios {100 * np.median(ratio):.2g} %; share "
            f"off {np.abs(share).max():.3f}; {np.median(seconds):.1f} s"
        )


@one_thread()
def servo_fit(log: pd.DataFrame, robot: feasid.Robot) -> ServoFit:
    """The gains alone, as a fit finds them before it knows of encoder zeros."""
    chosen = complete_options(FitOptions, {"command": "position"}, "fit")
    return identify_servo(open_sources(log), robot, complete_filter_options(chosen, "fit"))


def any_doubt(servo: ServoFit) -> bool:
    return any(note.values.get("confirmed") for note in servo.notes)


def arms(options: argparse.Namespace) -> None:
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for seed in range(options.first, options.first + options.seeds):
        for name, robot in product(LOGS, options.robots):
            try:
                figures = measured(make_servo_world(robot, seed, LOGS[name]))
            except feasid.FeasidError as error:
                print(f"{robot}, {name}, {seed}: refused: {error}", flush=True)
                continue
            found.setdefault((robot, name), []).append(figures)
            numbers = " ".join(f"{key}={x:.4g}" for key, x in figures.items())
            print(f"{robot}, {name}, {seed}: {numbers}", flush=True)
    for (robot, name), fits in found.items():
        print(f"{robot}, {name}: {len(fits)} fits of {options.seeds}")
        for key in fits[0]:
            values = np.array([f[key] for f in fits])
            if key == "pull^2":
                print(f"  {'rms pull':17} {np.sqrt(values.mean()):8.3g}")
            else:
                print(f"  {key:17} {np.median(values):8.3g} median, {values.max():8.3g} most")


def adverse(options: argparse.Namespace) -> None:
    silent = total = 0
    for seed in range(options.first, options.first + options.seeds):
        for name, robot in product(options.servos, options.robots):
            world, total = make_servo_world(robot, seed, SERVOS[name]), total + 1
            try:
                fit = feasid.fit(world.log, world.robot, command="position")
            except feasid.FeasidError as error:
                print(f"{name:12} {robot:6} {seed}: refused: {error}", flush=True)
                continue
            rollout = world.rollout_error(fitted_servo_robot(world, fit))
            share = rollout / world.rollout_error(world.nominal)
            named = [*(fit.servo.servo.terms or ())]
            named += ["limit"] if fit.servo.servo.limit else []
            named += [n.values["term"] for n in fit.notes if n.code == "term-added"]
            named += ["zeros"] if fit.calibration.correction.values_by_joint("zero") else []
            name = "weight" if SERVOS[name].carried else name
            told = fit.quality.level != "good" or (name in named and len(named) == 1)
            silent += share > SILENT and not told
            kp = np.array(fit.servo.servo.kp) / world.truth.kp
            ratio = np.abs(np.log(kp / np.exp(np.log(kp).mean()))).max()
            print(
                f"{name:12} {robot:6} {seed}: {', '.join(named) or 'no term'}; rollout "
                f"{1e3 * rollout:.2f} mrad, {share:.3f} of nominal; ratios "
                f"{100 * ratio:.1f} % (told {100 * fit.servo.ratio_deviations.max():.1f}); "
                f"delay {1e3 * fit.servo.delay:.2f} ms; {fit.quality.level}"
                f"{' SILENT' if share > SILENT and not told else ''}",
                flush=True,
            )
    print(f"{silent} silent of {total}")


def simulation(options: argparse.Namespace) -> None:
    for robot in options.robots:
        for seed in range(options.first, options.first + options.seeds):
            world = make_servo_world(robot, seed)
            figures = measured(world)
            started = time.process_time()
            fitted, count = simulated_fit(world)
            seconds = time.process_time() - started
            logs = np.log(fitted.kp / world.truth.kp)
            print(
                f"{robot} {seed}: ours {figures['rollout mrad']:.3f} mrad, ratios "
                f"{figures['ratio %']:.2g} %, {figures['seconds']:.1f} s; {count} simulations of "
                f"10 s {1e3 * world.rollout_error(fitted):.3f} mrad, ratios "
                f"{100 * np.abs(logs - logs.mean()).max():.2g} %, {seconds:.0f} s "
                f"({seconds / figures['seconds']:.0f} times)",
                flush=True,
            )


def simulated_fit(world: ServoWorld) -> tuple:
    """Least squares over closed-loop rollouts, as calibrations by simulation do it."""
    log, joints = world.log, world.truth.joints
    seen = log[[f"q_{j}" for j in joints]].to_numpy()[:2000]
    every, n = round(0.005 / STEP), len(joints)
    commands = world.commands[:500]
    first = world.nominal
    count = 0

    def robot(x: np.ndarray):
        kp, kd, Ia, fc = np.exp(x.reshape(4, n)) * [
            first.kp,
            first.kd + first.viscous,
            first.armature,
            first.coulomb,
        ]
        return replace(first, kp=kp, kd=kd, armature=Ia, coulomb=fc, viscous=0 * kd)

    def residual(x: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        q = robot(x).follow(commands, world.start, world.how, world.described)[::every]
        return (q - seen).ravel()

    found = least_squares(residual, np.zeros(4 * n), diff_step=1e-3, max_nfev=60, xtol=1e-6)
    return robot(found.x), count


def design(options: argparse.Namespace) -> None:
    for robot in options.robots:
        for seed in range(options.first, options.first + options.seeds):
            world = make_servo_world(robot, seed, LOGS["12 bits, 50 Hz"])
            physics, count = world.physics, 2 * np.pi / 2**world.how.bits
            worlds = {"random": world}
            for objective in ("logdet", "gains"):
                motion = feasid.excite(
                    world.robot,
                    world.how.seconds / 2,
                    harmonics=10,
                    objective=objective,
                    noise=world.nominal.kp * count / np.sqrt(12),
                    position=(physics.middle - physics.half, physics.middle + physics.half),
                    velocity=world.how.speed,
                    acceleration=MOST_ACCELERATION,
                    rate=float(COMMAND_RATE),
                    rest=True,
                    collision=False,
                    friction=("viscous", "coulomb"),
                    drive_inertia=True,
                    rounds=2,
                    starts=2,
                )
                t = np.arange(0, world.how.seconds, 1 / COMMAND_RATE) % motion.period
                path = motion.at(t)[0]
                worlds[objective] = replace(world, commands=path, start=path[0])
            for name, made in worlds.items():
                servo = feasid.fit(made.log, made.robot, command="position").servo
                logs = np.log(np.array(servo.servo.kp) / world.truth.kp)
                off = 100 * np.abs(logs - logs.mean()).max()
                print(
                    f"{robot} {seed} {name}: ratios off {off:.2g} "
                    f"%, told {100 * servo.ratio_deviations.max():.2g} %",
                    flush=True,
                )


def recordings(options: argparse.Namespace) -> None:
    logs, pendulums = [], set()
    for path in options.files:
        data = json.loads(Path(path).read_text())
        rows = [e for e in data["entries"] if e["torque_enable"]]
        columns = {"t": "timestamp", "q_servo": "position", "cmd_servo": "goal_position"}
        logs.append(pd.DataFrame({k: [e[v] for e in rows] for k, v in columns.items()}))
        pendulums.add((data["motor"], data["kp"], data["mass"], data["length"]))
    if len(pendulums) != 1:
        raise SystemExit(f"recordings of one servo, gain and pendulum, not {sorted(pendulums)}")
    motor, gain, mass, length = pendulums.pop()
    robot = feasid.load_robot(PENDULUM.format(mass=mass, length=length))
    fit = feasid.fit(logs[::2], robot, command="position")
    print(f"{motor}, gain {gain} of the firmware, {len(logs)} recordings\n{fit.servo}")
    for path, log in zip(options.files[1::2], logs[1::2], strict=True):
        print(f"{path}: torque error {100 * fit.errors(log)['all']:.2g} %, not fitted")


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = {"scale": scale, "arms": arms, "adverse": adverse, "simulation": simulation,
             "design": design, "recordings": recordings}  # fmt: skip
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--robots", nargs="+", default=ROBOTS)
    parser.add_argument("--servos", nargs="+", default=[*SERVOS], choices=SERVOS)
    parser.add_argument("--kinds", nargs="+", default=[*SCALES], choices=SCALES)
    parser.add_argument("--files", nargs="+", default=(), help="recordings of real servos")
    options = parser.parse_args()
    kinds[options.what](options)


if __name__ == "__main__":
    main()
