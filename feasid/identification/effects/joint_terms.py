"""Joint terms that a search chose: the robot with them, and whether its friction holds at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.effects.table import EFFECTS
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.formats.fit_robot import FIT_TRANSITION_SPEED
from feasid.robot.joint_terms import FRICTION, JOINT_TERMS, RIPPLE, SEARCHED

LEAST_COULOMB, LEAST_VISCOUS = 0.2, 0.01
"""Least shares of their coefficients without further terms that Coulomb and viscous friction keep
if friction with the root of the speed or with the load is added. Lubricated gears of a Staubli TX40
keep a quarter to a third of Coulomb friction, and with half demanded its held-out torques are
predicted by a third worse; on a Unitree Z1, where the root replaces it, 0.01 to 0.17 remain.
With half of the Coulomb friction and no viscous friction, the root predicts other halves of that
log 10 % worse than plain friction."""

MOST_LOAD = 1.0  #: Largest load friction: beyond it a gear would lock itself.

SPRINGS = frozenset(FRICTION["spring"])

FRICTION_SYMBOLS = frozenset(t.symbol for t in JOINT_TERMS if t.kind == "friction")

TAKING_PLACE = ("sqrt", "load", "weight")
"""Terms that fit slow motion almost as Coulomb friction does."""

ABRUPT = (
    "Coulomb friction changes its sign at once: held-out torques are predicted better by "
    f"{{gain:.0%}} than with a transition velocity of {FIT_TRANSITION_SPEED:g} rad/s or m/s"
)

CONDITIONAL = (
    "standard errors ignore the uncertainty of this choice: those of the selected terms are too "
    "small"
)
"""The same log selects a term and estimates its value, so a selected term looks too large."""

SPRING = (
    "; the log separates a spring from the weight of bodies only near its own positions: record "
    "the whole range of the joints; far beyond them the spring's torque is taken as constant"
)

Terms = Mapping[str, tuple[str, ...]]
"""Words of ``friction=`` by the joint of a drive, or by its name where it moves several."""


def drive_key(drive: Drive) -> str:
    """The joint of a drive, or its name where it moves several."""
    return next(iter(drive.coupling)) if len(drive.coupling) == 1 else drive.name


def with_terms(
    robot: Robot,
    terms: Terms,
    inertials: Array,
    travel: Mapping[str, tuple[float, float]] | None = None,
    ripples: Mapping[str, tuple[float, ...]] | None = None,
) -> Robot:
    """The robot with further terms: loads by `inertials` (bodies, 10), springs over `travel`."""
    drives = []
    for drive in robot.drives:
        key = drive_key(drive)
        waves = (ripples or {}).get(key, ())
        symbols = [s for word in terms.get(key, ()) for s in SEARCHED[word]]
        # A wave has two coefficients; those of waves that did not enter have no period.
        symbols = [s for s in symbols if s not in RIPPLE[2 * len(waves) :]]
        drive = replace(drive, ripple=waves or drive.ripple)
        new = tuple(s for s in symbols if s not in drive.symbols)
        if new:
            drive = replace(drive, symbols=(*drive.symbols, *new), values=None)
        if {*new} & SPRINGS:
            drive = replace(drive, spring_range=(travel or {}).get(key))
        drives.append(drive)
    load = robot.load_model
    if load is None and any(d.depends_on_load for d in drives):
        load = inertials
    return replace(robot, drives=tuple(drives), load_model=load)


def remove_terms(robot: Robot, dropped: Sequence[Set[str]]) -> Robot:
    """The robot without these symbols, one set per drive."""
    drives = []
    for drive, drop in zip(robot.drives, dropped, strict=True):
        symbols = tuple(s for s in drive.symbols if s not in drop)
        drives += [replace(drive, symbols=symbols, values=None)] if symbols else []
    load = robot.load_model if any(d.depends_on_load for d in drives) else None
    return replace(robot, drives=tuple(drives), load_model=load)


def friction_by_drive(robot: Robot, delta: Array) -> dict[str, dict[str, float]]:
    """Friction coefficients by drive of a robot with standard parameters delta (n,)."""
    return {
        drive_key(drive): {
            s: float(delta[c]) for s, c in robot.drive_columns(k).items() if s in FRICTION_SYMBOLS
        }
        for k, drive in enumerate(robot.drives)
    }


def holds_at_rest(found: Mapping[str, float], usual: Mapping[str, float]) -> bool:
    """Whether a drive's friction also holds its joint at rest, by that of the plain fit.

    Friction with the root of the speed and with the load fits slow motion almost as Coulomb
    friction does; if it replaces Coulomb friction, nothing holds a joint without load.
    """
    if not {"fs", "fl", "fw"} & {*found}:
        return True
    viscous = found.get("fv", np.inf) >= LEAST_VISCOUS * usual.get("fv", 0.0)
    dry = found.get("fc", np.inf) >= LEAST_COULOMB * usual.get("fc", 0.0)
    return bool(viscous and dry and found.get("fl", 0.0) + found.get("fw", 0.0) <= MOST_LOAD)


def without_restless(
    terms: Terms, robot: Robot, delta: Array, plain: Mapping[str, Mapping[str, float]]
) -> Terms:
    """The terms without those that leave a joint without friction at rest.

    A term that most of its joints refuse leaves the others, too: its gain is that of them all.
    """
    fitted = friction_by_drive(robot, delta)
    restless = {d for d in terms if not holds_at_rest(fitted.get(d, {}), plain.get(d, {}))}
    owners = {word: {d for d in terms if word in terms[d]} for word in TAKING_PLACE}
    gone = {word for word, drives in owners.items() if 2 * len(drives & restless) > len(drives)}
    return {
        d: tuple(w for w in words if w not in gone and not (w in TAKING_PLACE and d in restless))
        for d, words in terms.items()
    }


def term_notes(
    terms: Terms,
    gains: Mapping[str, float],
    refused: Sequence[str],
    ripples: Mapping[str, tuple[float, ...]],
) -> list[Note]:
    """The terms that each drive got, by word, and the joints where terms were rejected."""
    out, periods = [], {d: " and ".join(f"{n:g}" for n in w) for d, w in ripples.items()}
    for word in dict.fromkeys(w for words in terms.values() for w in words):
        where = [drive for drive, words in terms.items() if word in words]
        effect = next(e for e in EFFECTS.values() if word in e.terms)
        shown = [f"{d} ({periods[d]} times per turn)" for d in where] if word == "ripple" else where
        text = (
            f"{effect.text}: a term for it ({word}) is added at {', '.join(shown)}, with which the "
            f"cross-validation error falls by {gains[word]:.0%}; {CONDITIONAL}"
        )
        text += SPRING if word == "spring" else ""
        out.append(Note(text, "term-added", term=word, joints=where, gain=gains[word]))
    if refused:
        text = (
            f"friction terms refused at {', '.join(refused)}: they predict better, but they leave "
            f"less than {LEAST_COULOMB:g} of the Coulomb friction, so that nothing would hold the "
            f"joint at rest, no viscous friction, or load friction above {MOST_LOAD:g}"
        )
        out.append(Note(text, "term-refused", joints=[*refused]))
    return out
