"""Are springs, bodies and motions found? Arms with elastic or passive joints, hidden in MuJoCo.

    python -m benchmarks.elastic [--arms 12] [--seed N] [--write]

An arm has 2 to 7 joints, springs over two decades of stiffness between motors and links, friction
and encoders of 19 bits on both sides, and torque noise of .3 %. Its description has other masses
and no joint terms. A passive arm has one to three joints without a motor. Judged are the stiffness
and its standard error, the torque error on another motion, and open-loop simulations of .3 s in
MuJoCo from the written file over those of the true arm, with the torques as they were logged. A log
of one encoder has to be refused. Arms with torque sensors of the same noise are fitted with all
columns, with some of them, with a sensor that is 5 % too large, and with the motors' encoders
alone, in the two ways that the refusal names. The seed is drawn where none is given; ``--write``
puts the tables into docs/elastic.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pandas as pd

import feasid
from benchmarks.pages import put_between
from benchmarks.worlds import draw_seed
from feasid.core.arrays import Array
from feasid.core.errors import LogError

PAGE = Path(__file__).parents[1] / "docs/elastic.md"
MARKS = "<!-- elastic -->", "<!-- end of elastic -->"

STEP, RATE, SECONDS = 2.5e-4, 1000, 20.0
# By Runge and Kutta: steps of the first order delay torques by half a step, and add half a step of
# damping to inertias, of which a fit's errors are a fraction.
STIFF_FRICTION = {"solreffriction": "0.001 1", "solimpfriction": "0.999 0.9999 0.001"}
TURN = 2 * np.pi / 2**19  #: Step of the encoders [rad].
NOISE = 0.003  #: Torque noise over the largest torque.
WINDOW, EVERY = 300, 1000  #: Length and distance of simulations [samples].
FREQUENCIES = 2 * np.pi * np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1.1, 1.7])


@dataclass(frozen=True)
class Arm:
    """A hidden arm: a chain of links, and the terms of each joint."""

    links: list[dict[str, Array]]
    terms: dict[str, Array]
    driven: Array  #: Joints with a motor.
    elastic: bool

    @classmethod
    def draw(cls, rng: np.random.Generator, joints: int, elastic: bool) -> Arm:
        """An arm whose links become lighter towards its end."""
        sizes = 0.75 ** np.arange(joints)
        links = []
        for k, size in enumerate(sizes):
            axis = np.eye(3)[1] if k == 0 else np.eye(3)[[1, 2][k % 2]] + 0.15 * rng.normal(size=3)
            links.append(
                {
                    "pos": np.array([0, 0, 0.1]) if k == 0 else
                           np.array([0.35 * size, 0, 0]) + rng.uniform(-0.05, 0.05, 3),
                    "axis": axis / np.linalg.norm(axis),
                    "mass": 6 * size * rng.uniform(0.7, 1.3, 1),
                    "com": np.array([0.18 * size, 0, 0]) + rng.uniform(-0.03, 0.03, 3),
                    "inertia": rng.uniform(0.8, 1.4, 3) * 6 * size * (0.15 * size) ** 2,
                }
            )  # fmt: skip
        share = 0.6 ** np.arange(joints)
        terms = {
            "k": np.exp(rng.uniform(np.log(150), np.log(15000), joints)) * share,
            "d": rng.uniform(0.5, 3, joints) * share,
            "J": rng.uniform(0.1, 0.5, joints) * share,
            "fv": rng.uniform(1, 4, joints) * share,
            "fc": rng.uniform(1, 3, joints) * share,
            "lv": rng.uniform(0.1, 0.5, joints) * share,
            "lc": rng.uniform(0.05, 0.3, joints) * share,
        }
        driven = np.ones(joints, bool)
        if not elastic:
            driven[rng.permutation(np.arange(1, joints))[: rng.integers(1, min(joints, 4))]] = False
        return cls(links, terms, driven, elastic)

    def mjcf(self, *, described: bool = False) -> str:
        """The arm, or the links that its description knows, heavier by 15 %.

        Motors of elastic joints are bodies beside the links, and springs are tendons.
        """

        def text(numbers: Array) -> str:
            return " ".join(map(str, numbers.tolist()))

        def terms(**values: float) -> str:
            given = {} if described else values | STIFF_FRICTION
            return " ".join(f'{name}="{value}"' for name, value in given.items())

        p, inside, springs, masses = self.terms, "", "", 1.15 if described else 1.0
        for k in reversed(range(len(self.links))):
            b, motor = self.links[k], self.driven[k] and not self.elastic
            damping = p["lv"][k] + motor * p["fv"][k]
            friction = p["lc"][k] + motor * p["fc"][k]
            own = terms(armature=motor * p["J"][k], damping=damping, frictionloss=friction)
            inside = (
                f'<body name="link{k + 1}" pos="{text(b["pos"])}"><joint name="j{k + 1}" '
                f'axis="{text(b["axis"])}" {own}/>'
                f'<inertial pos="{text(b["com"])}" mass="{text(masses * b["mass"])}" '
                f'diaginertia="{text(b["inertia"])}"/>{inside}</body>'
            )
        for k in range(len(self.links) if self.elastic and not described else 0):
            own = terms(armature=p["J"][k], damping=p["fv"][k], frictionloss=p["fc"][k])
            inside += (
                f'<body name="m{k}"><joint name="m{k}" {own}/><inertial pos="0 0 0" mass="1" '
                'diaginertia="1e-6 1e-6 1e-6"/></body>'
            )
            springs += (
                f'<fixed stiffness="{p["k"][k]}" damping="{p["d"][k]}"><joint joint="j{k + 1}" '
                f'coef="1"/><joint joint="m{k}" coef="-1"/></fixed>'
            )
        return (
            f'<mujoco><compiler angle="radian"/><option timestep="{STEP}" '
            f'integrator="RK4"/><worldbody>{inside}</worldbody><tendon>{springs}</tendon>'
            "</mujoco>"
        )

    def move(
        self, rng: np.random.Generator, *, sensors: bool = False
    ) -> tuple[pd.DataFrame, Array]:
        """A log of a random motion, and the true state of each row.

        `sensors`: with the torques of the springs, whose noise is as large as that of the motors'.
        """
        n = len(self.links)
        model = mujoco.MjModel.from_xml_string(self.mjcf())
        data = mujoco.MjData(model)
        size = rng.normal(size=(len(FREQUENCIES), n)) / FREQUENCIES[:, None]
        size *= 0.9 / np.abs(size).sum(axis=0)
        phase, start = rng.uniform(0, 2 * np.pi, size.shape), rng.uniform(-0.5, 0.5, n)
        data.qpos[:] = np.tile(start, 2 if self.elastic else 1)
        weight = np.cumsum([b["mass"][0] for b in self.links][::-1])[::-1]
        kp, kd = 60 * weight, 6 * weight
        q, dq = (x[n:] if self.elastic else x for x in (data.qpos, data.qvel))
        rows, torque = [], np.zeros(n)
        for i in range(int(SECONDS / STEP)):
            t = i * STEP
            if i % round(1 / RATE / STEP) == 0:
                rise = min(t / 2, 1.0) ** 2 * (3 - 2 * min(t / 2, 1.0))
                waves = FREQUENCIES[:, None] * t + phase
                want = start + rise * (size * np.sin(waves)).sum(axis=0)
                pace = rise * (size * FREQUENCIES[:, None] * np.cos(waves)).sum(axis=0)
                torque = self.driven * (kp * (want - q) + kd * (pace - dq))
                rows.append(np.r_[data.qpos, data.qvel, torque])
            data.qfrc_applied[-n:] = torque
            mujoco.mj_step(model, data)
        states = np.array(rows)
        tau = states[:, -n:]
        tau = np.vstack([tau[:1], 0.5 * (tau[1:] + tau[:-1])])  # a command holds until the next
        noise = NOISE * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
        read = np.round(states[:, : len(data.qpos)] / TURN) * TURN
        log = {"t": np.arange(len(states)) / RATE}
        log |= {f"q_j{k + 1}": read[:, k] for k in range(n)}
        if self.elastic:
            log |= {f"theta_j{k + 1}": read[:, n + k] for k in range(n)}
        log |= {f"tau_j{k + 1}": (tau + noise)[:, k] for k in np.flatnonzero(self.driven)}
        if sensors:
            q, theta, dq, dtheta = np.split(states[:, : 4 * n], 4, axis=1)
            spring = self.terms["k"] * (theta - q) + self.terms["d"] * (dtheta - dq)
            spring += NOISE * np.abs(spring).max(axis=0) * rng.normal(size=spring.shape)
            log |= {f"sensor_j{k + 1}": spring[:, k] for k in range(n)}
        return pd.DataFrame(log), states

    def miss(self, log: pd.DataFrame, states: Array, written: str | None) -> float:
        """RMS error of open-loop simulations of links by the written file, or of the true arm."""
        n = len(self.links)
        model = mujoco.MjModel.from_xml_string(self.mjcf()) if written is None else (
            mujoco.MjModel.from_xml_path(written))  # fmt: skip
        model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
        names = [f"j{k + 1}" for k in range(n)]
        places = [*range(model.nq)]
        if written is not None:
            motors = [f"j{k + 1}_motor" for k in range(n)] if self.elastic else []
            places = [int(model.joint(j).qposadr[0]) for j in (*names, *motors)]
        data, total, count = mujoco.MjData(model), 0.0, 0
        tau = np.zeros((len(log), n))
        for k in np.flatnonzero(self.driven):
            tau[:, k] = log[f"tau_j{k + 1}"]
        for first in range(2 * EVERY, len(log) - WINDOW, EVERY):
            mujoco.mj_resetData(model, data)
            data.qpos[places], data.qvel[places] = states[first, : 2 * len(places)].reshape(2, -1)
            for i in range(first, first + WINDOW):
                torque = 0.5 * (tau[i] + tau[i + 1])
                data.qfrc_applied[places[-n:]] = torque
                mujoco.mj_step(model, data, round(1 / RATE / STEP))
            off = data.qpos[places[:n]] - states[first + WINDOW, :n]
            total, count = total + float(off @ off), count + n
        return float(np.sqrt(total / count))


def judge(arm: Arm, rng: np.random.Generator, folder: Path) -> dict[str, object]:
    """Fit one arm and compare with the truth."""
    log, _ = arm.move(rng)
    other, states = arm.move(rng)
    names = [f"j{k + 1}" for k in range(len(arm.links))]
    description = folder / "described.xml"
    description.write_text(arm.mjcf(described=True), encoding="utf-8")
    robot = feasid.load_robot(description)
    passive = [j for j, driven in zip(names, arm.driven, strict=True) if not driven]
    options = {"elastic": names} if arm.elastic else {"passive": passive}
    start = time.process_time()
    fit = feasid.fit(log, robot, **options)
    seconds = time.process_time() - start
    written = folder / "fitted.xml"
    fit.write(written, overwrite=True, offset_origin="joint", force=True)
    simulated = [arm.miss(other, states, name) for name in (str(written), None)]
    row: dict[str, object] = {
        "joints": len(names),
        "passive": len(passive),
        "verdict": fit.quality.level,
        "reasons": [*map(str, fit.quality.reasons)],
        "error": float(fit.errors(other)["all"]),
        "simulation": simulated[0] / simulated[1],
        "seconds": seconds,
    }
    if arm.elastic:
        labels = [".".join(name) for name in fit.robot.parameter_names]
        places = [labels.index(f"{j}_spring.k") for j in names]
        off = fit.robot.values[places] - arm.terms["k"]
        deviations = np.sqrt(np.diag(fit.estimate.covariance)[places])
        row["stiffness"] = np.abs(off / arm.terms["k"])
        row["deviations"] = off / deviations
        one = log.drop(columns=[c for c in log if c.startswith("theta")])
        try:
            feasid.fit(one, robot, **options)
            row["one encoder"] = "fitted"
        except LogError as refusal:
            row["one encoder"] = "refused" if "cannot be known" in str(refusal) else "unclear"
    return row


GAIN = 1.05  #: By which the sensor of one joint is too large in one of the fits.


def judge_sensors(arm: Arm, rng: np.random.Generator, folder: Path) -> dict[str, object]:
    """Fits of one arm with torque sensors: all columns, and some of them, as robots log them."""
    log, other = (arm.move(rng, sensors=True)[0] for _ in range(2))
    names = [f"j{k + 1}" for k in range(len(arm.links))]
    description = folder / "described.xml"
    description.write_text(arm.mjcf(described=True), encoding="utf-8")
    robot = feasid.load_robot(description)

    def without(kind: str) -> pd.DataFrame:
        return log.drop(columns=[c for c in log if c.startswith(kind)])

    def terms(fit: feasid.Fit, name: str, symbol: str) -> tuple[Array, Array]:
        labels = [*fit.robot.parameter_names]
        places = [labels.index((f"{j}_{name}", symbol)) for j in names]
        return fit.robot.values[places], np.sqrt(np.diag(fit.estimate.covariance)[places])

    k, row = arm.terms["k"], {"joints": len(names)}
    both, alone = (feasid.fit(x, robot, elastic=names) for x in (log, without("sensor_")))
    motorless = feasid.fit(without("tau_"), robot, elastic=names)
    for label, fit in (("sensor", both), ("no sensor", alone), ("no motor torque", motorless)):
        value, deviation = terms(fit, "spring", "k")
        row[f"{label}: off"] = np.abs(value / k - 1)
        row[f"{label}: z"] = (value - k) / deviation
        row[f"{label}: deviation"] = deviation / k
    row["verdict"], row["error"] = both.quality.level, float(both.errors(other)["all"])
    wrong = str(rng.choice(names))
    scaled = log.assign(**{f"sensor_{wrong}": GAIN * log[f"sensor_{wrong}"]})
    gains = [e for e in feasid.fit(scaled, robot, elastic=names).calibration.confirmed
             if e.at.kind == "gain"]  # fmt: skip
    row["gain"] = [(e.joint, e.value[0], e.deviation[0]) for e in gains]
    off = [abs(e.value[0] - np.log(GAIN)) < 0.02 for e in gains if e.joint == f"{wrong}_sensor"]
    row["gain told"] = bool(off and off[0])
    motor = without("q_")
    try:
        feasid.fit(motor, robot, elastic=names)
        row["motor only"] = "fitted"
    except LogError as refusal:
        row["motor only"] = "refused" if "leave it out of elastic" in str(refusal) else "unclear"
    # The two ways that the refusal names: with the stiffness, and as a rigid robot.
    links = {f"q_{j}": log[f"theta_{j}"] - log[f"sensor_{j}"] / k[i] for i, j in enumerate(names)}
    known = feasid.fit(motor.assign(**links), robot, elastic=names)
    row["inertia of motors"] = np.abs(terms(known, "motor", "Ia")[0] / arm.terms["J"] - 1)
    columns = {"q": "theta_{}", "tau": "sensor_{}"}
    rigid = feasid.fit(motor, robot, columns=columns)
    row["rigid: error"] = float(rigid.errors(other, columns=columns)["all"])
    row["known: error"] = float(known.errors(other)["all"])
    shown = rigid.selection.query("effect == 'elastic' and value == value")
    at = [names.index(j) for j in shown["joint"]]
    row["compliance: off"] = np.abs(shown["value"].to_numpy() * k[at] - 1)
    return row


def sensor_table(rows: list[dict[str, object]]) -> list[str]:
    """Lines of the table of arms with torque sensors."""
    labels = "no sensor", "sensor", "no motor torque"
    cells: dict[str, list[str]] = {"median, worst joint": [], "within": [], "deviation": []}
    for label in labels:
        off, z, deviation = (np.concatenate([r[f"{label}: {x}"] for r in rows])
                             for x in ("off", "z", "deviation"))  # fmt: skip
        cells["median, worst joint"].append(f"{np.median(off):.3%}, {off.max():.3%}")
        inside = (f"{np.mean(np.abs(z) <= n):.0%}" for n in (2, 3))
        cells["within"].append(", ".join(inside))
        cells["deviation"].append(f"{np.median(deviation):.3%}")
    texts = {
        "stiffness is off by, median, worst joint": cells["median, worst joint"],
        "within 2, 3 standard errors": cells["within"],
        "standard error of the stiffness, median": cells["deviation"],
    }
    joints = np.concatenate([r["inertia of motors"] for r in rows])
    compliance = np.concatenate([r["compliance: off"] for r in rows])
    error, known, rigid = (np.array([r[x] for r in rows])
                           for x in ("error", "known: error", "rigid: error"))  # fmt: skip
    told, refused = (sum(r["gain told"] for r in rows),
                     sum(r["motor only"] == "refused" for r in rows))  # fmt: skip
    seen = f"{len(compliance)} of {len(joints)}"
    if len(compliance):
        seen += f"; median {np.median(compliance):.0%}, worst {compliance.max():.0%}"
    return [
        "",
        f"{len(rows)} arms of {len(joints)} joints with torque sensors of the same noise:",
        "",
        "| columns | `q`, `theta`, `tau` | and `sensor` | `q`, `theta`, `sensor` |",
        "|---|---|---|---|",
        *(f"| {text} | {' | '.join(row)} |" for text, row in texts.items()),
        "",
        "| fits | result |",
        "|---|---|",
        f"| verdicts with all columns | {', '.join(sorted({str(r['verdict']) for r in rows}))} |",
        f"| torque error on another motion, median, worst | {np.median(error):.2%}, "
        f"{error.max():.2%} |",
        f"| a sensor that is {GAIN - 1:.0%} too large is named, to 2 % | {told} of {len(rows)} |",
        f"| a log without `q` raises an error | {refused} of {len(rows)} |",
        f"| with `q` by the true stiffness: inertia of motors is off by, median, worst | "
        f"{np.median(joints):.2%}, {joints.max():.2%} |",
        f"| torque error on another motion, median, worst | {np.median(known):.2%}, "
        f"{known.max():.2%} |",
        f"| as a rigid robot with the torques of the sensors: the same | {np.median(rigid):.2%}, "
        f"{rigid.max():.2%} |",
        f"| its effect `elastic`: joints, and error of 1 / k | {seen} |",
    ]


def main() -> None:
    """Judge arms of both kinds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=12, help="of each of three kinds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    seed = draw_seed() if arguments.seed is None else arguments.seed
    rng, rows = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as folder:
        for elastic in (True, False):
            for _ in range(arguments.arms):
                arm = Arm.draw(rng, int(rng.integers(2, 8 if elastic else 6)), elastic)
                row = {"elastic": elastic, **judge(arm, rng, Path(folder))}
                rows.append(row)
                print(row, flush=True)
        sensed = []
        for _ in range(arguments.arms):
            arm = Arm.draw(rng, int(rng.integers(2, 8)), elastic=True)
            sensed.append(judge_sensors(arm, rng, Path(folder)))
            print(sensed[-1], flush=True)
    springs = [r for r in rows if r["elastic"]]
    passive = [r for r in rows if not r["elastic"]]
    off = np.concatenate([r["stiffness"] for r in springs])
    z = np.concatenate([r["deviations"] for r in springs])
    worst = [float(np.max(r["stiffness"])) for r in springs]
    refused = sum(r["one encoder"] == "refused" for r in springs)
    lines = [
        f"`python -m benchmarks.elastic --arms {arguments.arms} --seed {seed}`",
        "",
        "| arms | elastic joints | passive joints |",
        "|---|---|---|",
        f"| arms, joints | {len(springs)}, {len(off)} | {len(passive)}, "
        f"{sum(r['passive'] for r in passive)} |",
        f"| stiffness is off by, median, worst joint | {np.median(off):.2%}, {off.max():.2%} | |",
        f"| arms with every stiffness within 3 % | {sum(w <= 0.03 for w in worst)} | |",
        f"| within 2, 3 standard errors | {np.mean(np.abs(z) <= 2):.0%}, "
        f"{np.mean(np.abs(z) <= 3):.0%} | |",
        f"| a log of one encoder raises an error | {refused} of {len(springs)} | |",
    ]
    simulated = "simulation of .3 s, error over that of the true arm"
    for name, text in (("error", "torque error on another motion"), ("simulation", simulated)):
        cells = []
        for part in (springs, passive):
            values = np.array([r[name] for r in part])
            form = "{:.2%}" if name == "error" else "{:.2f}"
            cells.append(f"{form.format(np.median(values))}, {form.format(values.max())}")
        lines.append(f"| {text}, median, worst | {cells[0]} | {cells[1]} |")
    levels = [", ".join(sorted({str(r["verdict"]) for r in part})) for part in (springs, passive)]
    lines += [f"| verdicts | {levels[0]} | {levels[1]} |", *sensor_table(sensed)]
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        put_between(PAGE, *MARKS, text)


if __name__ == "__main__":
    main()
