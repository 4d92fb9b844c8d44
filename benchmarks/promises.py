"""Promises of a fit, replayed against truth that it does not see.

    python benchmarks/promises.py samples [--count 10] [--seed 0]   robots drawn from commands
    python benchmarks/promises.py roads [--count 4] [--seed 0]      pairs of options
    python benchmarks/promises.py contact [--count 10] [--seed 0]   observers without contact
    python benchmarks/promises.py real --logs FOLDER                observers on logs of real arms
    python benchmarks/promises.py foreign [--count 3] [--write]     effects that no model has
    python benchmarks/promises.py gains [--count 30] [--seed 0]     a wrong torque gain of one joint
    python benchmarks/promises.py weighed [--count 30] [--seed 0]   that gain with something known
    python benchmarks/promises.py cost                              processor time of the replays
    python benchmarks/promises.py payload [--count 45] [--seed 0]   loads in their deviations

"samples": small arms and a leg behind MuJoCo's position actuators. Each kind of parameter has the
share of true values that the band of 90 % of `fit.sample` holds. "roads": for each pair of options
of different kinds the share of true base parameters within 1.96 standard deviations, of arms in
MuJoCo; fits that say "biased" are counted apart. "contact": alarms on motion without contact beside
the promised ones, by rate, encoder, noise and delay. "real": the same on another run of packaged
logs and of a UR5 whose arm somebody pushes in one run. "foreign": worlds with friction of bristles
(LuGre), gears with hysteresis, cogging in narrow pulses, and none of them: "good" is broken at more
than twice the error of the truth, and "doubtful" without an effect. "cost": seconds of what follows
a fit, over the fit's.
"payload": mass, centre and inertia of a load in standard deviations; tilted mounts and wrong logs
are to be refused. --write puts a table into docs/promises.md. Without --seed it is the time.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.spatial.transform import Rotation

import feasid
from feasid.core.errors import FeasidError
from feasid.identification.assessment.quality import ANOTHER_DAY
from feasid.results.codegen.c import compile_routines
from feasid.robot.inertia import from_mass_com_inertia

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1])]

from benchmarks import simulated  # noqa: E402
from benchmarks.external_torque import run  # noqa: E402
from benchmarks.pages import put_between  # noqa: E402
from benchmarks.verdict import UR5_CONSTANTS, named, packaged  # noqa: E402
from benchmarks.worlds import make_world  # noqa: E402
from benchmarks.worlds.description import to_text  # noqa: E402
from benchmarks.worlds.judge import judge, predictor  # noqa: E402
from benchmarks.worlds.servos import STEP, Conditions, make_servo_world  # noqa: E402

Array = np.ndarray[Any, Any]

BAND, DRAWS = 0.9, 100
"""Share of robots within a band, and how many are drawn for it."""

HEAVIER = 0.2
"""Spread of the logarithm of the factor by which all masses of a description are off together."""

SERVO_OPTIONS: dict[str, Any] = {"diagnose": False, "candidates": (), "servo_terms": ()}
"""Options of fits from commands: no search for what these worlds do not do."""


def held_by_samples(world: Any, seed: int, **options: Any) -> dict[str, Array]:
    """Which true values of a world of servos the bands of drawn robots hold, by kind."""
    asked = {**SERVO_OPTIONS, **options}
    fit = feasid.fit(world.log, world.robot, command="position", **asked)
    drawn, true = fit.sample(DRAWS, seed=seed).arrays(), world.truth
    heavy = feasid.load_robot(to_text(true.root)).without_joint_terms()
    # MuJoCo's step takes the new speed for the position: forces act half a step early.
    pairs = {
        "kp": (drawn["kp"], true.kp),
        "delay": (drawn["delay"][:, None], np.array([true.delay - STEP / 2])),
        "armature": (drawn["dof_armature"], true.armature),
        "friction": (drawn["dof_frictionloss"], true.coulomb),
        "damping": (drawn["dof_damping"], true.viscous + true.kd),
        "mass": (drawn["body_mass"], heavy.values[heavy.inertial_columns[:, 9]]),
    }
    ends = [50 * (1 - BAND), 50 * (1 + BAND)]
    bands = {kind: np.percentile(x, ends, axis=0) for kind, (x, _) in pairs.items()}
    return {kind: (bands[kind][0] <= y) & (y <= bands[kind][1]) for kind, (_, y) in pairs.items()}


def samples(count: int, seed: int) -> list[str]:
    """Shares of true values that bands hold, by kind."""
    found: dict[str, list[Array]] = {}
    for k in range(count):
        name, bits = ("leg", "so101", "ur5")[k % 3], (12, 14, 17)[k // 3 % 3]
        world = make_servo_world(name, seed + k, Conditions(bits=bits, heavier=HEAVIER))
        try:
            held = held_by_samples(world, seed + k)
        except FeasidError as refusal:
            print(f"{name} {seed + k} {bits} bits refused: {str(refusal)[:80]}", flush=True)
            continue
        for kind, inside in held.items():
            found.setdefault(kind, []).append(inside)
        shares = {kind: round(float(x.mean()), 2) for kind, x in held.items()}
        print(f"{name} {seed + k} {bits} bits", shares, flush=True)
    rows = [f"| kind | held by bands of {100 * BAND:.0f} % | values | worlds | 95 % interval |",
            "|---|---|---|---|---|"]  # fmt: skip
    for kind, parts in found.items():
        inside, worlds = np.concatenate(parts), len(parts)
        low, high = (100 * x for x in share_interval(float(inside.mean()), worlds))
        rows.append(f"| {kind} | {100 * inside.mean():.0f} % | {len(inside)} | {worlds} | "
                    f"{low:.0f} to {high:.0f} % |")  # fmt: skip
    print("\n".join(rows))
    return rows


def share_interval(share: float, worlds: int) -> tuple[float, float]:
    """Interval of 95 % of a share (Jeffreys); values of one world count once, as they err alike."""
    ends = stats.beta.ppf([0.025, 0.975], share * worlds + 0.5, (1 - share) * worlds + 0.5)
    return float(ends[0]), float(ends[1])


ROADS: dict[str, dict[str, dict[str, Any]]] = {
    "filtering": {"equations": {}, "signals": {"filtering": "signals"}},
    "cutoff": {"default": {}, "5 Hz": {"cutoff": 5.0}, "20 Hz": {"cutoff": 20.0}},
    "weights": {"noise": {}, "wls": {"weights": "wls"}, "alike": {"weights": None}},
    "robust": {"no": {}, "huber": {"robust": "huber"}},
    "constraint": {"full": {}, "semi": {"consistency": "semi"}},
}
"""Ways through a fit: the options of each kind, of which two that differ are combined."""

PLAIN = {"diagnose": False, "calibration": None, "candidates": ()}
"""Options without searches, which some roads do not have."""


def roads_of_pairs() -> list[tuple[str, dict[str, Any]]]:
    """The default, each option by itself, and each pair of options of different kinds."""
    single = [(f"{kind} {name}", kind, options) for kind, ways in ROADS.items()
              for name, options in ways.items() if options]  # fmt: skip
    pairs = [(f"{a}, {b}", {**x, **y}) for (a, k, x), (b, m, y) in combinations(single, 2)
             if k != m]  # fmt: skip
    return [("default", {}), *((name, options) for name, _, options in single), *pairs]


def coverage_of_road(hidden: Any, options: dict[str, Any]) -> tuple[Array, bool]:
    """True base parameters in deviations from fitted ones, and whether the fit says "biased"."""
    fit = feasid.fit(hidden.log, hidden.robot, **{**PLAIN, **options})
    off = (fit.beta - hidden.truth(fit.base)) / np.sqrt(np.diag(fit.covariance))
    return off, "biased" in {n.code for n in fit.quality.reasons}


def roads(count: int, seed: int) -> list[str]:
    """Coverage of intervals of 95 % of every pair of options."""
    rows = ["| options | within 1.96 deviations | said |", "|---|---|---|"]
    worlds = [simulated.hidden(("panda", "ur5", "z1")[k % 3], seed=seed + k) for k in range(count)]
    for name, options in roads_of_pairs():
        try:
            found = [coverage_of_road(world, options) for world in worlds]
        except FeasidError as refusal:
            rows.append(f"| {name} | | refused: {str(refusal).split(':')[0]} |")
            print(rows[-1], flush=True)
            continue
        off = np.concatenate([x for x, _ in found])
        said = "biased" if all(b for _, b in found) else ""
        share = float(np.mean(np.abs(off) < 1.96))
        wrong = "" if said or 0.88 <= share <= 0.99 else "  <- outside of 88 to 99 %"
        rows.append(f"| {name} | {100 * share:.0f} % | {said} |")
        print(rows[-1], f"rms {np.sqrt(np.mean(off**2)):.2f}{wrong}", flush=True)
    return rows


PROMISED, FREE = 1 / 60, 120.0
"""Alarms per second that are promised, and seconds of motion without contact."""

FACTOR = 3.0
"""Times the promised alarms, and one, up to which a promise is kept."""


def as_logged(joints: Any, signals: Any, sensor: dict[str, Any], seed: int) -> Any:
    """A log of 1 kHz as another sensor has it: rate, bits, noise of velocities, late torques."""
    import pandas as pd

    every, rng = round(1000 / sensor["rate"]), np.random.default_rng([seed, 3])
    q, dq, tau = signals
    late = round(1000 * sensor["late"])
    tau = np.roll(tau, late, axis=0)
    tau[:late] = tau[late]
    q, dq, tau = (x[::every] for x in (q, dq, tau))
    step = 2 * np.pi / 2 ** sensor["bits"]
    q = np.round(q / step) * step
    if sensor["measured"]:
        dq = dq + sensor["speed noise"] * rng.standard_normal(dq.shape)
    else:
        dq = np.diff(q, axis=0, prepend=q[:1]) * sensor["rate"]
    columns = {"t": np.arange(len(q)) / sensor["rate"]}
    for k, joint in enumerate(joints):
        columns[f"q_{joint}"], columns[f"tau_{joint}"] = q[:, k], tau[:, k]
        if sensor["measured"]:
            columns[f"dq_{joint}"] = dq[:, k]
    return pd.DataFrame(columns), (q, dq, tau)


def drawn_sensor(rng: np.random.Generator) -> dict[str, Any]:
    """A rate, an encoder, velocities that are measured or differences, and late torques."""
    rate = float(rng.choice([125, 250, 500, 1000]))
    return {"rate": rate, "bits": int(rng.integers(10, 21)), "measured": bool(rng.integers(2)),
            "speed noise": float(10 ** rng.uniform(-4, -2.7)),
            "noise": float(10 ** rng.uniform(-2.3, -1.3)),
            "late": float(rng.integers(0, 3)) / rate}  # fmt: skip


PUSHED, PUSHES, LASTS = 1.5, 30, 0.5
"""Size of a push over the promised one, pushes two seconds apart, and how long each lasts [s]."""

DETECTED = 0.9
"""Share of these pushes that is to be detected."""


def drawn_pushes(force: float, seed: int) -> list[tuple[float, float, Array]]:
    """Pushes on the hand in random directions, as `run` takes them: start, length, force."""
    directions = np.random.default_rng([seed, 4]).standard_normal((PUSHES, 3))
    directions *= force / np.linalg.norm(directions, axis=1)[:, None]
    return [(2.0 * (k + 1), LASTS, x) for k, x in enumerate(directions)]


def reports(observer: Any, rate: float, signals: Any) -> tuple[Array, Array]:
    """Times at which contact begins, and all times of contact [s]."""
    on = np.array([observer.update(n / rate, *x).contact
                   for n, x in enumerate(zip(*signals, strict=True))])  # fmt: skip
    return np.flatnonzero(np.diff(on.astype(int)) > 0) / rate, np.flatnonzero(on) / rate


def contact(count: int, seed: int) -> list[str]:
    """Alarms of observers on motion without contact, and pushes that they report."""
    rows = ["| arm | rate, encoder, velocities, torque noise, delay | alarms in "
            f"{FREE:.0f} s | pushes found | said |", "|---|---|---|---|---|"]  # fmt: skip
    right = 0
    for k in range(count):
        rng = np.random.default_rng([seed + k, 68])
        sensor, name = drawn_sensor(rng), ("panda", "ur5", "z1")[k % 3]
        simulated.TORQUE_NOISE = sensor["noise"]  # of `run`
        hidden = simulated.hidden(name, seed=seed + k)
        log, _ = as_logged(hidden.robot.joints, run(hidden, 1, 30.0), sensor, 1)
        speeds = "measured" if sensor["measured"] else "differenced"
        settings = (f"{sensor['rate']:g} Hz, {sensor['bits']} bits, {speeds}, "
                    f"{100 * sensor['noise']:.1f} %, {1e3 * sensor['late']:g} ms")  # fmt: skip
        try:
            fit = feasid.fit(log, hidden.robot, drive_inertia=True, diagnose=False)
            observer = feasid.ExternalTorque(fit, sensor["rate"], PROMISED)
        except FeasidError as refusal:
            rows.append(f"| {name} | {settings} | | | refused: {str(refusal)[:80]} |")
            print(rows[-1], flush=True)
            right += 1
            continue
        free = run(hidden, 2, FREE)
        alarms = len(reports(observer, sensor["rate"],
                             as_logged(hidden.robot.joints, free, sensor, 2)[1])[0])  # fmt: skip
        told = float(fit.uses.loc["contact", "number"])
        pushes = drawn_pushes(PUSHED * told, seed + k)
        held = run(hidden, 3, 2.0 * (PUSHES + 2), pushes)
        signals = as_logged(hidden.robot.joints, held, sensor, 3)[1]
        when = reports(feasid.ExternalTorque(fit, sensor["rate"], PROMISED), sensor["rate"],
                       signals)[1]  # fmt: skip
        share = np.mean([((when > t) & (when < t + LASTS)).any() for t, *_ in pushes])
        warned = any("do not use it" in note for note in observer.notes)
        quiet = alarms <= FACTOR * max(PROMISED * FREE, 1) or warned
        right += quiet and share >= DETECTED
        wrong = ("" if quiet else "  <- alarms") + ("" if share >= DETECTED else "  <- pushes")
        said = "do not use it" if warned else fit.uses.loc["contact", "grade"]
        rows.append(f"| {name} | {settings} | {alarms}, {PROMISED * FREE:.0f} promised | "
                    f"{100 * share:.0f} % of {PUSHED * told:.2g} N | {said} |")  # fmt: skip
        print(rows[-1], f"seed {seed + k}{wrong} {observer.notes}", flush=True)
    rows.append(f"| {right} of {count} keep both promises or are refused | | | | |")
    print(rows[-1])
    return rows


def real(_count: int, _seed: int, folder: Path | None = None) -> list[str]:
    """Alarms of observers on another run of real arms, and what they report of pushes."""
    rows = ["| robot, fit of | takes | alarms | in contact | said |", "|---|---|---|---|---|"]
    pairs = [(name, log, robot, options, {"another motion": rest})
             for name, log, robot, options, rest in packaged()
             if name.startswith(("kuka_lwr4", "unitree_z1"))]  # fmt: skip
    if folder is not None:
        arm = feasid.load_robot(folder / "ur5/ur5_robot.urdf")
        runs = {k: named(folder / f"ur5/{k}.csv.gz", arm, UR5_CONSTANTS)
                for k in ("no8", "no9", "no9_pushed")}  # fmt: skip
        for name, others in (("no8", ("no9",)), ("no9", ("no8", "no9_pushed"))):
            tests = {k: runs[k] for k in others}
            pairs.append((f"ur5 {name}", runs[name], arm, {}, tests))
    for name, log, robot, options, others in pairs:
        fit = feasid.fit(log, robot, **options)
        rate, grade = 1.0 / float(np.median(np.diff(log["t"]))), fit.uses.loc["contact"]
        for what, test in others.items():
            seconds = len(test) / rate
            try:
                observer = feasid.ExternalTorque(fit, rate, PROMISED)
            except FeasidError as refusal:
                rows.append(f"| {name} | {what}, {seconds:.0f} s | | | refused: {refusal} |")
                print(rows[-1], flush=True)
                continue
            begins, held = reports(observer, rate, signals_of(test, robot, rate))
            warned = any("do not use it" in note for note in observer.notes)
            said = "do not use it" if warned else grade["grade"]
            rows.append(f"| {name} | {what}, {seconds:.0f} s | {len(begins)}, "
                        f"{PROMISED * seconds:.1f} promised | {100 * len(held) / len(test):.0f} % "
                        f"| {said}, from {float(grade['number']):.2g} N |")  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def signals_of(log: Any, robot: Any, rate: float) -> tuple[Array, Array, Array]:
    """Positions, velocities (differences where none were measured) and torques of a log."""
    q, tau = (log[[f"{s}_{j}" for j in robot.joints]].to_numpy() for s in ("q", "tau"))
    speeds = [f"dq_{j}" for j in robot.joints]
    if set(speeds) <= set(log):
        return q, log[speeds].to_numpy(), tau
    return q, np.diff(q, axis=0, prepend=q[:1]) * rate, tau


EFFECTS, ROBOTS = ("none", "lugre", "hysteresis", "cogging"), ("ur5", "panda", "xarm7")
"""Worlds of "foreign": effects, and robots."""

HONEST = 2.0
"""Times the truth's error up to which a fit may be called good."""


PAGE = Path(__file__).parents[1] / "docs" / "promises.md"
"""The page that tables are written into."""


def foreign(count: int, seed: int) -> list[str]:
    """Verdicts on worlds with effects that no model of a fit has, as rows of a table."""
    head = "| robot | effect | seed | verdict | expected | error on another motion | truth's |"
    rows, right = [head, "|---|---|---|---|---|---|---|"], 0
    for k in range(count * len(EFFECTS)):
        name, effect = ROBOTS[k // len(EFFECTS) % len(ROBOTS)], EFFECTS[k % len(EFFECTS)]
        world = make_world(name, effect, seed + k // len(EFFECTS))
        fit = feasid.fit(world.log, world.robot)
        score, level, e = judge(world, predictor(fit.robot)), fit.quality.level, fit.evidence
        honest = score.ratio <= HONEST if level == "good" else effect != "none"
        right += honest
        low, high = (100 * end * e.relative(e.error) for end in ANOTHER_DAY)
        rows.append(f"| {name} | {effect} | {world.seed} | {level} | {low:.2g} to {high:.2g} % | "
                    f"{100 * score.error:.2g} % | {100 * score.truth_error:.2g} % |")  # fmt: skip
        print(rows[-1], "" if honest else "  <- broken", flush=True)
    print(f"{right} of {count * len(EFFECTS)} verdicts are right")
    return rows


OFF = 0.3
"""Largest logarithm of the factor on the torques of one joint in "gains"."""


def gains(count: int, seed: int) -> list[str]:
    """Feed-forward of fits to logs in which the torques of one joint have a wrong factor."""
    broken, granted = 0, 0
    for k in range(count):
        world = make_world(ROBOTS[k % len(ROBOTS)], "none", seed + k)
        rng = np.random.default_rng([seed + k, 5])
        joint, factor = rng.choice(world.robot.joints), float(np.exp(rng.uniform(-OFF, OFF)))
        log = world.log.assign(**{f"tau_{joint}": factor * world.log[f"tau_{joint}"]})
        fit = feasid.fit(log, world.robot)
        e, grade = fit.evidence, fit.uses.loc["feed-forward", "grade"]
        told = ANOTHER_DAY[1] * e.relative(e.error)
        score = judge(world, predictor(fit.robot))
        wrong = grade == "yes" and score.error > HONEST * told
        broken, granted = broken + wrong, granted + (grade == "yes")
        print(f"{world.name} {world.seed}: {joint} times {factor:.2f}: {grade}, up to "
              f"{100 * told:.2g} % promised, {100 * score.error:.2g} % true, assumed "
              f"{', '.join(e.assumed)}{'  <- broken' if wrong else ''}", flush=True)  # fmt: skip
    rows = ["| worlds | say yes | of these above twice the promised error |", "|---|---|---|",
            f"| {count} | {granted} | {broken} |"]  # fmt: skip
    print("\n".join(rows))
    return rows


NEAR, WEIGH_EVERY = 0.03, 3  #: Error of a gain that is told, and which worlds weigh a link, too.


def weighed(count: int, seed: int) -> list[str]:
    """Errors of a wrong torque gain with a known load, and with the mass of the link weighed."""
    off: dict[str, list[float]] = {"a known load": [], "a load of known mass": []}
    linked, said = list[float](), 0
    for k in range(count):
        rng = np.random.default_rng([seed + k, 8])
        name, load = ("ur5", "panda", "z1")[k % 3], drawn_load(rng)
        robot = simulated.description(name)
        *logs, bodies = loaded_and_unloaded(name, load, seed + k)
        place, factor = int(rng.integers(1, robot.dof)), float(np.exp(rng.uniform(-OFF, OFF)))
        column = f"tau_{robot.joints[place]}"
        loaded, unloaded = (x.assign(**{column: factor * x[column]}) for x in logs)
        for how, known in zip(off, (from_mass_com_inertia(*load), load[0]), strict=True):
            found = feasid.torque_constants(unloaded, robot, loaded=loaded, load=known)
            off[how].append(float(found.constants[place]) * factor - 1.0)
        text = f"{name} {seed + k}: {robot.joints[place]} times {factor:.3f}, off by " + ", ".join(
            f"{x[-1]:.2%} with {how}" for how, x in off.items())  # fmt: skip
        if k // 3 % WEIGH_EVERY == 0:
            body = next(i for i, b in enumerate(robot.bodies) if b.joint == robot.joints[place])
            mass = np.r_[[np.nan] * 9, bodies[body][9]]
            fit = feasid.fit(unloaded, robot, known={robot.bodies[body].name: mass})
            gain = {e.joint: e.value[0] for e in fit.calibration.confirmed if e.at.kind == "gain"}
            linked.append(float(np.exp(gain.get(robot.joints[place], 0.0))) / factor - 1.0)
            said += abs(linked[-1]) < NEAR or fit.quality.level != "good"
            text += f", {linked[-1]:.2%} with a weighed link ({fit.quality.level})"
        print(text, flush=True)
    rows = [f"| known | gain within {NEAR:.0%} | largest error |", "|---|---|---|"]
    for how, errors in (*off.items(), ("the mass of its link", linked)):
        size = np.abs(errors)
        rows.append(f"| {how} | {np.sum(size < NEAR)} of {len(size)} worlds | {size.max():.1%} |")
    rows.append(f"| the mass of its link: within {NEAR:.0%}, or the fit is not good | "
                f"{said} of {len(linked)} worlds | |")  # fmt: skip
    print("\n".join(rows))
    return rows


SURE = 3.0  #: Deviations within which every number of a load is to be.

TILTS = (20.0, 160.0)  #: Angles by which a mount is turned that the description does not know.


def drawn_load(rng: np.random.Generator) -> tuple[float, Array, Array]:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2] of a box."""
    mass, sides = float(rng.uniform(0.3, 3.0)), rng.uniform(0.05, 0.2, 3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    moments = mass / 12 * (np.sum(sides**2) - sides**2)
    centre = rng.uniform((-0.06, -0.06, 0.03), (0.06, 0.06, 0.12))
    return mass, centre, turn @ np.diag(moments) @ turn.T


def loaded_and_unloaded(name: str, load: tuple[float, Array, Array], seed: int) -> list[Any]:
    """Logs of one motion with the load and without it, of an arm in MuJoCo; its true bodies."""
    robot, rng = simulated.description(name), np.random.default_rng([seed, 6])
    terms = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    delta = np.zeros(terms.size)
    for columns, body in zip(terms.inertial_columns, robot.bodies, strict=True):
        delta[columns] = simulated.wrong_body(body.inertial, rng)
    for k in range(terms.dof):
        place = terms.drive_columns(k)
        delta[place["Ia"]], delta[place["fv"]] = rng.uniform(0.02, 0.3), rng.uniform(0.2, 1.0)
        delta[place["fc"]] = rng.uniform(0.3, 1.0)
    conditions = simulated.Conditions(seconds=12.0, noise=float(10 ** rng.uniform(-2.3, -1.5)))
    way = simulated.fourier(robot, rng, conditions.seconds, simulated.FITTED_SPEED)
    out = []
    for added in (from_mass_com_inertia(*load), np.zeros(10)):
        true = delta.copy()
        true[terms.inertial_columns[-1]] += added
        model = simulated.mujoco_model(terms, true)
        log = simulated.record(model, terms, true, way, rng, conditions)
        out.append(log.iloc[::4].reset_index(drop=True))  # 250 Hz
    return [*out, delta[terms.inertial_columns]]


def refused(loaded: Any, unloaded: Any, robot: Any = None) -> bool:
    """Whether a load is refused, or not called good."""
    try:
        return bool(feasid.payload(loaded, unloaded, robot).level != "good")
    except FeasidError:
        return True


def payload(count: int, seed: int) -> list[str]:
    """Loads in deviations from the truth, and loads of tilted mounts and wrong logs."""
    off: dict[str, list[Array]] = {"mass": [], "centre": [], "inertia": []}
    kept, called = 0, {"tilted mount": 0, "exchanged logs": 0, "reversed torque": 0}
    wrong = 0
    for k in range(count):
        rng = np.random.default_rng([seed + k, 7])
        name, load = ("ur5", "panda", "z1")[k % 3], drawn_load(rng)
        robot = simulated.description(name)
        loaded, unloaded, _ = loaded_and_unloaded(name, load, seed + k)
        fit = feasid.fit(unloaded, robot)
        found = feasid.payload(loaded, fit)
        upper = np.triu_indices(3)
        numbers = {
            "mass": np.atleast_1d((found.mass - load[0]) / found.mass_std),
            "centre": (found.centre - load[1]) / found.centre_std,
            "inertia": ((found.inertia - load[2]) / found.inertia_std)[upper],
        }
        for kind, x in numbers.items():
            off[kind].append(x)
        most = max(float(np.abs(x).max()) for x in numbers.values())
        kept += most < SURE or found.level != "good"
        said = {kind: [round(float(y), 1) for y in x] for kind, x in numbers.items()}
        mark = "" if most < SURE or found.level != "good" else "  <- off"
        print(f"{name} {seed + k} {load[0]:.3g} kg: {found.level}, {said}{mark}", flush=True)
        if k % 5 == 0:  # a description that hangs otherwise, and logs that are wrong
            wrong += 1
            axis = np.append(rng.standard_normal(2), 0.0)
            angle = np.deg2rad(rng.uniform(*TILTS))
            down = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).apply(
                np.array(robot.gravity)
            )
            column = f"tau_{rng.choice(robot.joints[1:4])}"
            called["tilted mount"] += refused(loaded, unloaded, robot.with_gravity(down))
            called["exchanged logs"] += refused(unloaded, loaded, robot)
            other = loaded.assign(**{column: -loaded[column]})
            called["reversed torque"] += refused(other, fit)
            print(f"    refused {called} of {wrong}", flush=True)
    rows = ["| promise | held |", "|---|---|"]
    for kind, parts in off.items():
        share = np.mean(np.abs(np.concatenate(parts)) < SURE)
        rows.append(f"| {kind} within {SURE:g} deviations | {100 * share:.1f} % of "
                    f"{len(np.concatenate(parts))} numbers |")  # fmt: skip
    rows.append(f"| all of a load, or it is not called good | {kept} of {count} draws |")
    rows += [f"| {what} refused | {n} of {wrong} |" for what, n in called.items()]
    print("\n".join(rows))
    return rows


REPLAYS = {
    "verdict": lambda fit: fit.quality,
    "uses": lambda fit: fit.uses,
    "observer": lambda fit: feasid.ExternalTorque(fit, 1 / fit.reduced.period, PROMISED),
}
"""What replays a promise on data that the fit did not see, in this order."""


def measure_cost(log: Any) -> dict[str, float]:
    """Processor time of a fit and of each replay [s]; an observer's code is no replay."""
    begin = time.process_time()
    fit = feasid.fit(log)
    times, observer = {"fit": time.process_time() - begin}, None
    for replay, run_it in REPLAYS.items():
        begin = time.process_time()
        with suppress(FeasidError):  # of torques that are too late for an observer
            observer = run_it(fit)
        times[replay] = time.process_time() - begin
    begin = time.process_time()
    if isinstance(observer, feasid.ExternalTorque):
        compile_routines(observer.model, ("observer",))
        times["observer"] -= time.process_time() - begin
    return times


def cost(count: int, _seed: int) -> list[str]:
    """Processor time of the replays over that of the fit, on packaged logs: medians of three."""
    rows = ["| log | fit | verdict | uses | observer | replays, of the fit |", "|---|" + 5 * "---|"]
    for name in ("kuka_lwr4", "unitree_z1", "wam7")[:count]:
        log = feasid.datasets.load(name)
        measure_cost(log)  # modules are imported once
        every = [measure_cost(log) for _ in range(3)]
        times = {what: float(np.median([x[what] for x in every])) for what in every[0]}
        share = sum(times.values()) / times["fit"] - 1
        parts = " | ".join(f"{x:.2f} s" for x in times.values())
        rows.append(f"| `{name}` | {parts} | {100 * share:.0f} % |")
        print(rows[-1], flush=True)
    return rows


REPLAYED = (samples, roads, contact, real, foreign, gains, weighed, cost, payload)
WHAT = {replay.__name__: replay for replay in REPLAYED}


def main() -> None:
    """Run one replay."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=tuple(WHAT))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="of the UR5, for real")
    parser.add_argument("--write", action="store_true", help="the table into its page")
    asked = parser.parse_args()
    seed = int(time.time()) if asked.seed is None else asked.seed
    print(f"seed {seed}")
    logs = {"folder": asked.logs} if asked.what == "real" else {}
    rows = WHAT[asked.what](asked.count, seed, **logs)
    if asked.write:
        marks = f"<!-- {asked.what} -->", f"<!-- end of {asked.what} -->"
        put_between(PAGE, *marks, "\n".join(rows))


if __name__ == "__main__":
    main()
