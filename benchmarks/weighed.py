"""Links that were weighed with a standard error: what a fit knows with them, by truth.

    python -m benchmarks.weighed [--draws 30] [--write]

Arms in MuJoCo have hidden parameters, other than those of their descriptions. One link of each is
weighed, off by a draw of the scale's standard error, and the log is fitted without and with
``known={link: (mass, standard error)}``. Printed is how much smaller the deviations of those
parameters become that depend on the mass, and how many 95 % intervals hold the truth. ``--write``
puts the table into docs/fitting.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import feasid
from benchmarks.pages import put_between
from benchmarks.simulated import ARMS, Conditions, hidden
from feasid.robot.inertia import SYMBOLS

PAGE = Path(__file__).parents[1] / "docs/fitting.md"
MARKS = "<!-- weighed -->", "<!-- end of weighed -->"

SECONDS = 10.0
SHARE = 0.02  #: Standard error of the scale, as a share of the link's mass.
INTERVAL = 1.96  #: Deviations on each side of a 95 % interval.
SMALLER = 0.95
"""A parameter depends on the mass where its deviation falls to less than this share of itself."""


@dataclass(frozen=True, eq=False)
class Draw:
    """A log fitted without and with a weighed link."""

    arm: str
    ratios: np.ndarray  #: Deviations with over those without, of parameters that depend on it.
    inside: np.ndarray  #: Shape (2, k): whether their intervals hold the truth, without and with.
    weighed: bool  #: Whether the interval of the mass itself does.
    contradicted: bool  #: Whether a note says that the torques contradict the scale.


def draw(seed: int) -> Draw:
    """One arm, one link, one reading of the scale."""
    name = [*ARMS][seed % len(ARMS)]
    arm, rng = hidden(name, seed, Conditions(seconds=SECONDS)), np.random.default_rng([seed, 11])
    body = rng.integers(1, len(arm.robot.bodies))
    column = int(arm.terms.inertial_columns[body][SYMBOLS.index("m")])
    mass, label = float(arm.delta[column]), ".".join(arm.terms.parameter_names[column])
    reading = mass * (1 + SHARE * rng.standard_normal()), SHARE * mass
    options = {"candidates": (), "calibration": None, "diagnose": False}
    without = feasid.fit(arm.log, arm.terms, **options)
    fit = feasid.fit(arm.log, arm.terms, known={label: reading}, **options)
    deviations = np.array([np.sqrt(np.diag(f.estimate.covariance)) for f in (without, fit)])
    errors = np.array([f.delta - arm.delta for f in (without, fit)])
    inside = np.abs(errors) < INTERVAL * deviations
    ratios = deviations[1] / deviations[0]
    depends = (ratios < SMALLER) & (np.arange(len(ratios)) != column)
    contradicted = any(note.code == "weighed-contradicted" for note in fit.notes)
    return Draw(name, ratios[depends], inside[:, depends], bool(inside[1, column]), contradicted)


def table(draws: list[Draw]) -> str:
    """A row for each arm, and one for all."""
    lines = [
        "| arm | logs | parameters that depend on it | their deviations fall to "
        "| 95 % intervals that hold: before | with it | of the mass | contradicted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (*ARMS, "all"):
        some = [d for d in draws if name in (d.arm, "all")]
        ratios, inside = (
            np.concatenate([d.ratios for d in some]),
            np.hstack([d.inside for d in some]),
        )
        before, after = 100 * inside.mean(axis=1)
        lines.append(
            f"| {name} | {len(some)} | {len(ratios)} | {100 * np.median(ratios):.0f} % "
            f"| {before:.0f} % | {after:.0f} % | {sum(d.weighed for d in some)} of {len(some)} "
            f"| {sum(d.contradicted for d in some)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Draw, print, and write the page where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="put the table into docs/fitting.md")
    given = parser.parse_args()
    text = table([draw(seed) for seed in range(given.draws)])
    print(text)
    if given.write:
        put_between(PAGE, *MARKS, f"\n{text}\n")


if __name__ == "__main__":
    main()
