"""Which friction terms a log supports, joint by joint, judged on stretches that were held out.

Every candidate set of terms is given to all joints and fitted five times, each time without one
fifth of the log's stretches of time; a joint takes the set that predicts its own held-out torques
best, and a larger one only for a gain that is worth a parameter. Where a stretch has fewer rows
than the joint has unknowns nothing can be judged, and joints get the largest set: friction of real
gears has all these terms, and those that do nothing cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.notes import Note
from feasid.dynamics.kinematics import coordinate_map
from feasid.estimation.cross_validation import CrossValidation
from feasid.estimation.estimator import Estimator
from feasid.estimation.held_out import RULES, HeldOut
from feasid.estimation.noise import Noise, estimate_noise, squared_residuals
from feasid.formats.fit_robot import FIT_TRANSITION_SPEED
from feasid.identifiability.base import base_parameters
from feasid.regression.folds import FOLDS
from feasid.regression.reduce import restrict_terms
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION, JOINT_TERMS

if TYPE_CHECKING:
    import pandas as pd

LEAST_COULOMB, LEAST_VISCOUS = 0.2, 0.01
"""Shares of the coefficients without further terms, at least, that Coulomb and viscous friction
keep beside friction with the root of the speed or with the load. Lubricated gears of a Staubli TX40
keep a quarter to a third of Coulomb friction, and with half demanded its held-out torques are
predicted by a third worse; where the root takes its place on a Unitree Z1 0.01 to 0.17 is left.
Beside half of Coulomb friction and no viscous friction, the root predicts other halves of that log
by 10 % worse than plain friction does."""

MOST_LOAD = 1.0
"""Largest load friction: beyond it a gear would lock itself."""

FRICTION_SYMBOLS = frozenset(t.symbol for t in JOINT_TERMS if t.kind == "friction")

UNEXPLAINED = 4.0
"""Mean squared whitened residual from which a model lacks something, and has a noise of its own."""

ABRUPT = (
    "Coulomb friction changes its sign at once: held-out torques are predicted better by "
    f"{{gain:.0%}} than with a transition velocity of {FIT_TRANSITION_SPEED:g} rad/s or m/s"
)

SINGULAR = 1e-8
"""Share of the largest singular value below which a direction is not seen."""

CONDITIONAL = (
    "standard errors ignore the uncertainty of this choice: those of the chosen terms are too small"
)
"""The log that chose a term also gave it its value: where it is chosen, it looks large."""


TOO_SHORT = (
    "; the log is too short to choose by its segments, so joints have every term with which "
    "friction still holds them at rest: record a longer log"
)
"""Clean logs of 5 s in simulation are then predicted 1.0 to 11 times as wrong as by the truth."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Choice(Displayed):
    """Terms per drive and what they were chosen by.

    Attributes
    ----------
    robot : Robot
        With the chosen terms.
    sets : tuple of tuple of str
        Candidate terms beyond the common ones, the smallest first.
    errors : ndarray, shape (len(sets), dof)
        Relative held-out torque error of each joint with each set on all joints.
    chosen : tuple of int
        Which set each drive got.
    names : tuple of str
        Of the drives.
    refused : tuple of str
        Drives whose best set would have taken Coulomb or viscous friction's place.
    judged : bool
        Whether the log has rows enough to judge the sets; otherwise joints get the largest.
    """

    robot: Robot
    sets: tuple[tuple[str, ...], ...]
    errors: Array
    chosen: tuple[int, ...]
    names: tuple[str, ...]
    refused: tuple[str, ...] = ()
    judged: bool = True

    @property
    def note(self) -> Note:
        """Which drives got which terms."""
        got: dict[int, list[str]] = {}
        for name, k in self.drives:
            got.setdefault(k, []).append(name)
        said = [f"{' + '.join(self.sets[k]) or 'none'}: {', '.join(v)}" for k, v in got.items()]
        text = "joint terms beyond viscous, Coulomb and offset, by held-out segments"
        chosen = any(self.sets[k] for _, k in self.drives)
        sure = f"; {CONDITIONAL}" if chosen else ""
        if self.refused:
            sure += (
                f"; refused at {', '.join(self.refused)}: terms that predict better but leave less "
                f"than {LEAST_COULOMB:g} of the Coulomb friction, so that nothing would hold the "
                f"joint at rest, no viscous friction, or load friction above {MOST_LOAD:g}"
            )
        if not self.judged:
            sure += TOO_SHORT
        return Note(f"{text}: {'; '.join(said)}{sure}", "friction-chosen", conditional=chosen)

    @property
    def table(self) -> pd.DataFrame:
        """Held-out errors: a row per set, a column per coordinate."""
        import pandas as pd

        index = pd.Index(self._labels, name="further terms")
        return pd.DataFrame(self.errors, index=index, columns=[*self.robot.coordinates])

    @property
    def drives(self) -> list[tuple[str, int]]:
        """Each drive and the place of its set."""
        return list(zip(self.names, self.chosen, strict=True))

    @property
    def _labels(self) -> list[str]:
        return [" + ".join(s) or "none" for s in self.sets]

    def explain(self) -> str:
        """The whole table in per cent, the best of each joint marked, and the choice."""
        best = self.errors == self.errors.min(axis=0)
        cells = [
            [f"{100 * e:.2f}{'*' if b else ' '}" for e, b in zip(row, marks, strict=True)]
            for row, marks in zip(self.errors, best, strict=True)
        ]
        wide = max(map(len, self._labels))
        widths = [max(9, len(j) + 1) for j in self.robot.coordinates]
        head = "".join(f"{j:>{w}}" for j, w in zip(self.robot.coordinates, widths, strict=True))
        lines = [f"{'held-out error [%]':{wide}}{head}"]
        for label, row in zip(self._labels, cells, strict=True):
            lines.append(
                f"{label:{wide}}" + "".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True))
            )
        return "\n".join([*lines, str(self.note)])

    def display(self) -> Display:
        """Errors of the first and the last set, and what each joint gets."""
        first, last = self.errors[0], self.errors[-1]
        measures = [
            Measure(self._labels[0], f"{100 * first.max():.3g} % at the worst joint, held out"),
            Measure(self._labels[-1], f"{100 * last.max():.3g} %"),
        ]
        remarks = [f"{name}: {self._labels[k]}" for name, k in self.drives]
        title = f"{len(self.sets)} models of {self.robot.name!r}, held-out torque errors"
        return Display(title, measures, (), remarks, "choice.table, choice.explain()")


def held_out_error(models: CrossValidation) -> float:
    """Geometric mean of all joints' relative errors on folds that were not fitted.

    It has no unit, and weighs joints with large and with small torques alike.
    """
    return _geometric_mean(models.errors)


def prefers_abrupt_friction(smooth: Reduced, abrupt: Reduced) -> list[Note]:
    """A note where Coulomb friction that changes its sign at once predicts held-out torques better.

    Least squares without constraints decide: they cost a tenth of feasible fits, and what friction
    does near standstill is hardly a matter of feasibility.

    Parameters
    ----------
    smooth, abrupt : Reduced
        The same log and terms with a transition velocity and without.
    """
    noise, _ = estimate_noise(smooth)
    before, after = (_linear_held_out(log, noise) for log in (smooth, abrupt))
    gain = after.gain(over=before)
    if not RULES["abrupt friction"].accepts(gain):
        return []
    return [Note(ABRUPT.format(gain=gain.share), "abrupt-friction", gain=gain.share)]


def _linear_held_out(reduced: Reduced, noise: Noise) -> HeldOut:
    """Errors of folds by least squares without constraints."""
    joints, squares = range(len(reduced.triangles)), []
    for fold in range(FOLDS):
        r, rho, _ = noise.whitened_triangle(reduced, [f for f in range(FOLDS) if f != fold])
        beta = np.asarray(np.linalg.lstsq(r, rho, rcond=SINGULAR)[0], dtype=np.float64)
        squares.append([squared_residuals(reduced, j, beta, [fold]).sum() for j in joints])
    return HeldOut(np.array(squares))


def _geometric_mean(errors: Array) -> float:
    return float(np.exp(np.mean(np.log(errors[errors > 0]))))


def choose_terms(
    reduced: Reduced,
    estimator: Estimator,
    sets: Sequence[Sequence[str]],
    *,
    pruned: bool = False,
) -> Choice:
    """Choose among sets of friction terms for every drive.

    Parameters
    ----------
    reduced : Reduced
        With strata.
    estimator : Estimator
        Of the robot with all candidate terms.
    sets : sequence of sequences of terms
        Names of `feasid.robot.joint_terms.FRICTION`, the smallest set first.
    pruned : bool
        Whether a joint gives its terms up again when, with those that the others chose, it does as
        well without: what one joint lacks also spoils the bodies that others carry.
    """
    wide = estimator.base.robot
    trial = _Trial.from_reduced(reduced, estimator, sets)
    alike = [trial.models([k] * len(wide.drives)) for k in range(len(sets))]
    table = np.array([m.errors for m in alike])
    rests = np.array([_holds_at_rest(m, alike[0]) for m in alike])
    rows = [s.counts.sum(axis=0).min() for s in reduced.strata]
    enough = all(n >= len(own) for n, own in zip(rows, reduced.supports, strict=True))
    drives = range(len(wide.drives))
    every = np.ones(len(sets), dtype=bool)
    if enough:
        wanted = [_best_set(table, wide, k, every) for k in drives]
        chosen = [_best_set(table, wide, k, rests[:, k]) for k in drives]
    else:
        wanted = [len(sets) - 1 for k in drives]
        chosen = [int(np.flatnonzero(rests[:, k])[-1]) for k in drives]
    restless = {k for k in drives if not rests[wanted[k], k]}
    if pruned and enough:
        chosen = _drop_useless_sets(trial, chosen)
    held = _drop_sets_without_rest(trial, chosen, alike[0])
    restless |= {k for k in drives if held[k] != chosen[k]}
    names = tuple(d.name for d in wide.drives)
    offered = tuple(tuple(s) for s in sets)
    refused = tuple(names[k] for k in sorted(restless))
    return Choice(trial.robot(held), offered, table, tuple(held), names, refused, enough)


@dataclass(frozen=True, eq=False)
class _Trial:
    """What every trial of terms shares."""

    reduced: Reduced
    estimator: Estimator
    sets: Sequence[Sequence[str]]
    noise: Noise

    @classmethod
    def from_reduced(
        cls, reduced: Reduced, estimator: Estimator, sets: Sequence[Sequence[str]]
    ) -> _Trial:
        comparison = estimator.for_comparison()
        return cls(reduced, comparison, sets, comparison.estimate_noise(reduced))

    def robot(self, chosen: Sequence[int]) -> Robot:
        """The robot with a set of terms per drive."""
        candidates = _symbols_of([t for s in self.sets for t in s])
        wide = self.estimator.base.robot
        return remove_terms(wide, [candidates - _symbols_of(self.sets[c]) for c in chosen])

    def models(self, chosen: Sequence[int]) -> CrossValidation:
        """Models of all stretches but one with these sets."""
        wide = self.estimator.base
        measured = wide.experiment.measured_joints
        base = base_parameters(self.robot(chosen), measured=measured)
        part = restrict_terms(self.reduced, wide.robot, base)
        return self.estimator.on(base).cross_validate(part, _noise_or_residual(part, self.noise))

    def errors(self, chosen: Sequence[int]) -> Array:
        """Held-out errors of every joint with these sets."""
        return self.models(chosen).errors


def _holds_at_rest(models: CrossValidation, plain: CrossValidation) -> list[bool]:
    """Which drives' friction also holds a joint at rest.

    Friction with the root of the speed and with the load fits slow motion almost as Coulomb
    friction does; where it takes that one's place nothing holds a joint without load.
    """
    out = []
    for own, usual in zip(_friction_by_drive(models), _friction_by_drive(plain), strict=True):
        if not {"fs", "fl", "fw"} & {*own}:
            out.append(True)
            continue
        viscous = own.get("fv", np.inf) >= LEAST_VISCOUS * usual.get("fv", 0.0)
        held = own.get("fc", np.inf) >= LEAST_COULOMB * usual.get("fc", 0.0)
        out.append(bool(held and viscous and own.get("fl", 0.0) + own.get("fw", 0.0) <= MOST_LOAD))
    return out


def _friction_by_drive(models: CrossValidation) -> list[dict[str, float]]:
    """Friction coefficients per drive that all stretches together have."""
    robot, delta = models.base.robot, models.fitted
    return [
        {s: float(delta[c]) for s, c in robot.drive_columns(k).items() if s in FRICTION_SYMBOLS}
        for k in range(len(robot.drives))
    ]


def _drop_sets_without_rest(
    trial: _Trial, chosen: Sequence[int], plain: CrossValidation
) -> list[int]:
    """Without the sets whose friction holds nothing at rest beside those of the other drives."""
    out = list(chosen)
    while any(out):
        rests = _holds_at_rest(trial.models(out), plain)
        kept = [k if rest else 0 for k, rest in zip(out, rests, strict=True)]
        if kept == out:
            break  # all rest, or terms that are no candidates hold nothing
        out = kept
    return out


def _drop_useless_sets(trial: _Trial, chosen: Sequence[int]) -> list[int]:
    """Without the sets that do not pay beside those of the other drives."""
    out = list(chosen)
    error = trial.errors(out)
    for drive in range(len(out)):
        if not out[drive]:
            continue
        fewer = [*out[:drive], 0, *out[drive + 1 :]]
        less, rows = trial.errors(fewer), _rows_of_drive(trial.estimator.base.robot, drive)
        least = 1 - RULES["friction"].share
        if least * np.linalg.norm(less[rows]) <= np.linalg.norm(error[rows]):
            out, error = fewer, less
    return out


def candidate_sets(candidates: Sequence[str]) -> list[tuple[str, ...]]:
    """No term, each, each two, and all."""
    few = [s for size in (0, 1, 2) for s in combinations(candidates, size)]
    return few if len(candidates) <= 2 else [*few, tuple(candidates)]


def _symbols_of(terms: Sequence[str]) -> set[str]:
    return {symbol for term in terms for symbol in FRICTION[term]}


def remove_terms(robot: Robot, dropped: Sequence[set[str]]) -> Robot:
    """The robot without these symbols, one set per drive."""
    drives = []
    for drive, drop in zip(robot.drives, dropped, strict=True):
        kept = tuple(s for s in drive.symbols if s not in drop)
        drives += [replace(drive, symbols=kept, values=None)] if kept else []
    load = robot.load_model if any(d.depends_on_load for d in drives) else None
    return replace(robot, drives=tuple(drives), load_model=load)


def _rows_of_drive(robot: Robot, drive: int) -> list[int]:
    """The coordinates whose torques a drive is part of."""
    joints = set(np.flatnonzero(robot.coupling(drive)).tolist())
    if robot.dof == robot.axes:
        return sorted(joints)
    return [j for j, own in enumerate(coordinate_map(robot).rows) if joints.intersection(own)]


def _best_set(table: Array, robot: Robot, drive: int, allowed: Array) -> int:
    """The set with the smallest held-out errors of the drive's joints, larger ones by `RULES`."""
    rows = _rows_of_drive(robot, drive)
    error = np.sqrt(np.mean(table[:, rows] ** 2, axis=1))
    best = 0
    for k in np.flatnonzero(allowed[1:]) + 1:
        if error[k] < (1 - RULES["friction"].share) * error[best]:
            best = int(k)
    return best


def _noise_or_residual(part: Reduced, noise: Noise) -> Noise:
    """The noise, or what a model that misses far more than it takes for noise."""
    _, _, residual = noise.whitened_triangle(part)
    if residual**2 <= UNEXPLAINED * part.rows * len(part.triangles):
        return noise
    return estimate_noise(part)[0]
