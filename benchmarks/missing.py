"""Is what a log or its model lacks named first? Arms in MuJoCo, one thing missing at a time.

    python -m benchmarks.missing [--worlds 4] [--seed N] [--write]

A world is an arm with hidden inertials, friction, encoders and noise (`benchmarks.worlds`); its log
or description lacks one of `KINDS`. Counted is how often the first finding of `feasid.diagnose`
has one of the kind's codes, and how often the first sentence below the verdict of `feasid.fit`
has: what it warns of, or, where nothing is wrong with the model, what it reports. Errors other
than `LogError` count as raw. The seed is drawn where none is given; ``--write`` puts the table into
docs/logs.md.
"""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import feasid
from benchmarks.pages import put_between
from benchmarks.worlds import draw_seed, make_world
from feasid.core.errors import LogError

PAGE = Path(__file__).parents[1] / "docs/logs.md"
MARKS = "<!-- missing -->", "<!-- end of missing -->"

ARMS = ("ur5", "panda", "ur10")

SAID = ("calibrated", "term-added", "lacking", "payload")
"""Codes of what a fit reports where nothing is wrong with its model."""

Changed = tuple[pd.DataFrame, feasid.Robot]


def signals(log: pd.DataFrame, kind: str) -> list[str]:
    """Columns of a kind, in the order of the joints."""
    return [c for c in log if c.startswith(f"{kind}_")]


class Arm:
    """A world's log and robot, changed in one thing."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.world = make_world(name, seed=seed)
        self.robot = self.world.robot
        self.joint = 1  # it carries the arm

    def change(self, change: Callable[[pd.DataFrame], Any]) -> Changed:
        """The log after a change of its columns."""
        log = self.world.log.copy()
        change(log)
        return log, self.robot

    def scale(self, kind: str, factor: float, joint: int | None = None) -> Changed:
        """Columns of a kind times a factor."""

        def scaled(log: pd.DataFrame) -> None:
            columns = signals(log, kind)
            columns = columns if joint is None else columns[joint : joint + 1]
            log[columns] *= factor

        return self.change(scaled)

    def shift(self, angle: float) -> Changed:
        """The joint's position from another zero."""

        def shifted(log: pd.DataFrame) -> None:
            log[signals(log, "q")[self.joint]] += angle

        return self.change(shifted)

    def freeze(self, rows: slice, torque: float | None) -> Changed:
        """Positions that do not change in these rows, with this torque noise or the logged one."""

        def frozen(log: pd.DataFrame) -> None:
            q, tau, at = signals(log, "q"), signals(log, "tau"), log.index[rows]
            log.loc[at, q] = log.loc[at[0], q].to_numpy()
            if torque is not None:
                noise = np.random.default_rng(self.seed).normal(size=(len(at), len(tau)))
                log.loc[at, tau] = torque * noise

        return self.change(frozen)

    def other(self, fault: str) -> Changed:
        """The same arm with another fault."""
        world = make_world(self.name, fault, self.seed)
        return world.log, world.robot

    def exchange(self) -> Changed:
        """Torques of two joints in each other's columns."""

        def exchanged(log: pd.DataFrame) -> None:
            a, b = signals(log, "tau")[1:3]
            log[[a, b]] = log[[b, a]].to_numpy()

        return self.change(exchanged)

    def push(self) -> Changed:
        """A contact of a second at the joint."""

        def pushed(log: pd.DataFrame) -> None:
            column = signals(log, "tau")[self.joint]
            at = (log["t"] > 10) & (log["t"] < 11)
            log.loc[at, column] += 4 * log[column].std()

        return self.change(pushed)

    def without_weight(self) -> Changed:
        """Torques from which the controller's gravity was subtracted."""

        def lightened(log: pd.DataFrame) -> None:
            bodies = self.world.truth.robot.without_joint_terms()
            q = log[signals(log, "q")].to_numpy()
            log[signals(log, "tau")] -= feasid.inverse_dynamics(bodies, q, 0 * q, 0 * q)

        return self.change(lightened)

    def another(self) -> Changed:
        """The log of a robot with the joints' names that is another one."""
        log, j = make_world("random", seed=self.seed).log, self.robot.joints
        q, tau = signals(log, "q"), signals(log, "tau")
        columns = {"t": log["t"]}
        columns |= {f"q_{n}": log[q[k % len(q)]] for k, n in enumerate(j)}
        columns |= {f"tau_{n}": log[tau[k % len(tau)]] for k, n in enumerate(j)}
        return pd.DataFrame(columns), self.robot

    def turned(self, gravity: tuple[float, float, float]) -> Changed:
        """The description under another gravity."""
        return self.world.log, self.robot.with_gravity(gravity)


KINDS: dict[str, tuple[Callable[[Arm], Changed], set[str]]] = {
    "torques of zero": (lambda a: a.scale("tau", 0.0), {"dead"}),
    "zeros in all columns": (
        lambda a: a.change(lambda log: log.__setitem__(list(log.columns[1:]), 0.0)), {"dead"}),
    "nothing moves": (lambda a: a.freeze(slice(None), 0.01), {"static"}),
    "a joint without motor": (lambda a: a.scale("tau", 0.0, -1 + a.robot.dof), {"dead"}),
    "a base on a wall": (lambda a: a.turned((9.81, 0.0, 0.0)), {"gravity"}),
    "a base on the ceiling": (lambda a: a.turned((0.0, 0.0, 9.81)), {"gravity"}),
    "a description without gravity": (lambda a: a.turned((0.0, 0.0, 0.0)), {"gravity"}),
    "torques without weight": (Arm.without_weight, {"gravity"}),
    "a tilted base": (lambda a: a.other("tilt"), {"calibrated"}),
    "a load": (lambda a: a.other("payload"), {"payload", "mass-released", "torque-constant"}),
    "a spring": (lambda a: a.other("cable"), {"spring", "term-added"}),
    "elastic joints": (lambda a: a.other("elastic"), {"elastic", "lacking"}),
    "cold joints": (lambda a: a.other("drift"), {"calibrated"}),
    "another robot's log": (Arm.another, {"unexplained", "limits", "little-explained",
                                          "nothing-explained", "contradicted", "unlike"}),
    "brakes for 3 s": (lambda a: a.freeze(slice(7000, 10000), 0.01), {"stuck"}),
    "a contact": (Arm.push, {"outliers"}),
    "torques in N mm": (lambda a: a.scale("tau", 1e3), {"scale", "unit"}),
    "currents": (lambda a: a.scale("tau", 0.1), {"scale", "unit"}),
    "a torque of the motor's side": (lambda a: a.scale("tau", 0.01, 2), {"gear"}),
    "torques exchanged": (Arm.exchange, {"swap"}),
    "a torque's sign": (lambda a: a.scale("tau", -1.0, 1), {"sign"}),
    "a position in degrees": (lambda a: a.scale("q", 180 / np.pi, 1), {"degrees"}),
    "a position reversed": (lambda a: a.scale("q", -1.0, 1), {"reversed"}),
    "a zero off by 90 degrees": (lambda a: a.shift(np.pi / 2), {"zero", "limits"}),
}  # fmt: skip
"""By what is missing or wrong, how a world gets it, and the codes that name it."""


def first_of_diagnosis(log: pd.DataFrame, robot: feasid.Robot) -> set[str]:
    """The code of the first finding."""
    return {f.code for f in [*feasid.diagnose(log, robot)][:1]}


def first_of_fit(log: pd.DataFrame, robot: feasid.Robot) -> set[str]:
    """The code of the first sentence that a fit shows, or those of what it corrected."""
    fit = feasid.fit(log, robot)
    notes = {n.with_code: n.code for n in (*fit.notes, *fit.quality.reasons)}
    shown = [
        "outliers" if "as of a contact" in text else notes[text]
        for text in fit.display().troubles
        if text in notes
    ]
    corrected = {n.code for n in fit.notes if n.code in SAID}
    return {*shown[:1]} if shown else corrected


WAYS = {"diagnose": first_of_diagnosis, "fit": first_of_fit}


def outcome(way: str, log: pd.DataFrame, robot: feasid.Robot, codes: set[str]) -> str:
    """Whether the first sentence names it: "named", "another" or "raw"."""
    try:
        return "named" if WAYS[way](log, robot) & codes else "another"
    except LogError:  # it names columns and what to do
        return "named"
    except Exception as error:
        return f"raw {type(error).__name__}"


def play(worlds: int, seed: int) -> Iterator[tuple[str, str, str, float]]:
    """Kind, way, outcome and seconds of every world."""
    for number in range(worlds):
        arm = Arm(ARMS[number % len(ARMS)], seed + number)
        for kind, (make, codes) in KINDS.items():
            log, robot = make(arm)
            for way in WAYS:
                start = time.process_time()
                said = outcome(way, log, robot, codes)
                yield kind, way, said, time.process_time() - start
                print(f"{arm.name:8} {kind:32} {way:9} {said}", flush=True)


def main() -> None:
    """Play the worlds, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--seed", type=int, help="drawn where left out")
    parser.add_argument("--write", action="store_true", help="put the table into docs/logs.md")
    arguments = parser.parse_args()
    seed = draw_seed() if arguments.seed is None else arguments.seed
    counts: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    raw = 0
    for kind, way, said, spent in play(arguments.worlds, seed):
        counts[kind, way, said == "named"] += 1
        seconds[way].append(spent)
        raw += said.startswith("raw")
    lines = ["| missing or wrong | named first by `diagnose` | by `fit` |", "|---|---|---|"]
    for kind in KINDS:
        cells = (f"{counts[kind, way, True]} of {arguments.worlds}" for way in WAYS)
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    total = len(KINDS) * arguments.worlds
    sums = (f"{sum(counts[k, way, True] for k in KINDS)} of {total}" for way in WAYS)
    lines.append(f"| all | {' | '.join(sums)} |")
    spent = ", ".join(f"{way} {np.median(s):.1f} s (most {max(s):.1f})"
                      for way, s in seconds.items())  # fmt: skip
    command = f"python -m benchmarks.missing --worlds {arguments.worlds} --seed {seed}"
    lines += ["", f"Processor time: {spent}. Errors other than `LogError`: {raw}. `{command}`"]
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        put_between(PAGE, *MARKS, text)


if __name__ == "__main__":
    main()
