"""Logs of one robot that do not belong together: the differing log, and the difference.

One least squares over all logs has a column group per (log, difference), on that log's rows only: a
load at a body, friction or offset of a joint, a gain, an effect of the set-up or of the run from
the table of effects (a tilted base, late torques, a joint's zero, joints that warm up), or
everything. Coefficients are in units of ordinary changes from day to day, and have these as their
prior. A difference counts if it is larger than these, stands out from the same difference of the
other logs, and lowers the errors of held-out segments of its log. Logs that were reduced before
have no rows, on which columns of effects are formed: they differ in parameters and gains only.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.changes import CHANGES, JointChanges
from feasid.identification.effects.gram import fold_grams
from feasid.identification.effects.joint_terms import friction_by_drive
from feasid.identification.effects.table import DEGREES, EFFECTS, EffectAt, columns_of
from feasid.identification.estimation.held_out import RULES, HeldOut
from feasid.identification.estimation.noise import SMALLEST_DEVIATION, Noise, estimate_noise
from feasid.identification.regression.folds import FOLDS
from feasid.identification.regression.rows import Rows
from feasid.identification.regression.triangle import Reduced, relative_errors
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal[
    "load", "friction", "offset", "gain", "tilt", "delay", "zero", "warm-up", "everything"
]

DAILY = {
    "load": 0.01,
    "friction": 0.25,
    "offset": 0.05,
    "gain": 0.03,
    "tilt": 0.3 / DEGREES,
    "delay": 0.0015,
    "zero": 0.3 / DEGREES,
    "warm-up": 0.05,
}
"""Ordinary changes from day to day: a load as a share of the robot's mass, friction as a share of
itself, an offset as a share of the joint's torque, a gain, angles [rad], a delay [s], and friction
that fades after the start as a share of that which stays."""

MOST_JOINTS = 12
"""Joints up to which effects of set-up and run are tried: memory grows with the fourth power."""

STAGES: tuple[tuple[tuple[Kind, ...], tuple[Kind, ...]], ...] = (
    (CHANGES, ("load", "tilt", "delay", "zero", "warm-up")),
    (("friction", "offset"), ("gain",)),
    ((), ("load", "friction", "offset", "gain", "everything")),
)
"""Ordinary changes that every log may have, and the differences that are sought next to them: more
friction hides a gain. Friction and offsets themselves are compared with those of other logs."""

LIMIT = 3.6  #: Factor on `DAILY` from which a difference counts; on a logarithmic scale for factors
WIDE = 10.0  #: Factor on `DAILY`: prior standard deviation with which a difference is fitted.

STANDS_OUT = 25.0
"""Factor on the median of the squared error that the same difference explains in the other logs."""

BARELY = 0.02  #: Share of a log's noise that a difference may explain in any log.

ENOUGH = 0.75
"""If one difference explains this share of what separate parameters would explain, beyond what they
explain in the other logs, there is no other."""

WARM_TIMES = (0.12, 0.25, 0.5)
"""Time constants of a warm-up that are tried, as shares of a log's length."""

MOST_LOGS = 100  #: Largest number of logs that a fit compares; each takes some megabytes of memory.


@dataclass(frozen=True)
class Difference:
    """How one log differs from the others."""

    log: int
    kind: Kind
    place: str  #: Body or joint; empty for what is of the whole log.
    #: kg, a factor on friction or on torques, N m or N, degrees (m of a sliding joint's zero), ms;
    #: NaN for everything.
    size: float
    gain: float  #: Share by which errors on held-out segments of the log fall with it.

    def __str__(self) -> str:
        return {
            "load": f"a load of {self.size:+.2g} kg at {self.place} or its neighbours",
            "friction": f"friction of {self.place} times {self.size:.2g}",
            "offset": f"torque offset of {self.place} {self.size:+.2g} N m or N",
            "gain": f"torques of {self.place} times {self.size:.2f}",
            "tilt": f"the direction of gravity, by {self.size:.2g} degrees",
            "delay": f"torques that are late by {self.size:.2g} ms",
            "zero": f"the zero of {self.place}, by {self.size:+.2g} degrees",
            "warm-up": f"joints that warm up: friction times {self.size:.2g} at its beginning",
            "everything": "everything: another robot, or another setup",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class LogComparison(JointChanges):
    """Contributions of several fitted logs, and the logs that differ from the others."""

    seconds: tuple[float, ...]
    samples: tuple[int, ...]
    information: Array  #: Share of what is known of the parameters, (logs,).
    errors: Array  #: Relative torque errors of the common model, joints and all, (logs, dof + 1).
    #: Those of the model of the other logs, without any that differs, (logs, dof + 1).
    left_out: Array
    differences: tuple[Difference, ...]  #: At most one of a log, the largest first.

    def __post_init__(self) -> None:
        count, shape = len(self.names), (len(self.names), len(self.joints) + 1)
        lengths = {len(self.seconds), len(self.samples), len(self.information)}
        if lengths != {count} or {self.errors.shape, self.left_out.shape} != {shape}:
            raise ValueError(f"a comparison of {count} logs has numbers of others")
        if self.changes.shape != (count, len(self.joints), len(CHANGES), 2):
            raise ValueError(f"changes of {count} logs have the shape {self.changes.shape}")
        if not {d.log for d in self.differences} <= {*range(count)}:
            raise ValueError(f"a comparison of {count} logs has differences of others")

    @property
    def table(self) -> pd.DataFrame:
        """One row per log: seconds, samples, share of information, errors, and in what it differs.

        ``error`` is that of the common fit on this log, ``left out`` that of a fit of the
        other logs that agree.
        """
        import pandas as pd

        verdicts = {d.log: str(d) for d in self.differences}
        columns = {
            "seconds": self.seconds,
            "samples": self.samples,
            "information": self.information,
            "error": self.errors[:, -1],
            "left out": self.left_out[:, -1],
            "differs in": [verdicts.get(k, "agrees") for k in range(len(self.names))],
        }
        return pd.DataFrame(columns, index=pd.Index(self.names, name="log"))

    def __str__(self) -> str:
        table = self.table
        for name in ("information", "error", "left out"):
            table[name] = [f"{100 * value:.3g} %" for value in table[name]]
        table["seconds"] = [f"{value:.3g}" for value in table["seconds"]]
        return str(table.to_string())

    @property
    def notes(self) -> list[Note]:
        """A note for each log that differs: its file, the difference, its size, and what to do."""
        out, two = [], len(self.names) == 2
        for d in self.differences:
            name = self.names[d.log]
            worst = int(np.nanargmax(self.left_out[d.log, :-1]))
            others = np.delete(self.left_out[:, worst], [other.log for other in self.differences])
            low, high = 100 * others.min(initial=np.inf), 100 * others.max(initial=0.0)
            peers = self.names[1 - d.log] if two else "the other logs"
            text = f"{name} differs from {peers} in {d}; left out of the fit, errors on it "
            text += f"are {100 * self.left_out[d.log, worst]:.2g} % at {self.joints[worst]}"
            text += f", on the others {low:.2g} to {high:.2g} %" if len(others) > 1 else ""
            which = "two logs do not show which of them is right: fit each alone"
            text += f"; {which if two else 'fit the others alone'}"
            if Path(name).suffix and not two:  # a file; a table in memory has the name of its place
                text += f" (command line: --without {shlex.quote(name)})"
            if d.kind == "load":
                text += ", or identify the load from logs without and with it (feasid.payload)"
            numbers = {"log": name, "kind": d.kind, "place": d.place, "size": d.size}
            out.append(Note(text, "log-differs", level="warning", confirmed=True, **numbers))
        return out


def compare_logs(
    names: Sequence[str],
    logs: Sequence[Reduced],
    base: BaseParameters,
    delta: Array,
    rows_of: Callable[[int], Rows | None] = lambda k: None,
) -> LogComparison:
    """Compare logs that are reduced for `base`, around the standard parameters of all (n,).

    `rows_of`: the rows of a log by its number, None where only its reduction is in memory.
    """
    # The usual noise: the median over logs of that around parameters of their own.
    each = [estimate_noise(log)[0] for log in logs]
    noise = Noise(*(np.median([getattr(n, f.name) for n in each], axis=0) for f in fields(Noise)))
    # Encoders and stiction leave other traces in each log, of which an exact equation shows more
    # than of any torque: they are no other robot.
    rows, squared = sum(log.rows for log in logs), np.asarray(base.K @ delta, dtype=np.float64) ** 2
    for j in (j for j, joint in enumerate(base.robot.coordinates) if joint in base.robot.passive):
        triangles = np.concatenate([log.triangles[j][:, :-1] for log in logs])
        power = float(np.sum(triangles**2, axis=0) @ squared[list(logs[0].supports[j])]) / rows
        noise.quick[j] = max(float(noise.quick[j]), SMALLEST_DEVIATION**2 * power)
    comparison = _Comparison(logs, base, delta, noise, rows_of)
    values = comparison.solve([], comparison.grams)[1]
    differences = tuple(comparison.search())
    named, without = {d.log for d in differences}, []
    for k in range(len(logs)):
        outside = named | {k} if len(named | {k}) < len(logs) else {k}
        others = [0.0 * g if j in outside else g for j, g in enumerate(comparison.grams)]
        without.append(comparison.errors(k, comparison.solve([], others)[1]))
    return LogComparison(
        tuple(names),
        tuple(base.robot.coordinates),
        np.array([comparison.changes(k) for k in range(len(logs))]),
        tuple(log.samples * log.period for log in logs),
        tuple(log.samples for log in logs),
        comparison.information(),
        np.array([comparison.errors(k, values) for k in range(len(logs))]),
        np.array(without),
        differences,
    )


@dataclass(frozen=True, eq=False)
class _Candidate:
    """Columns of [regressor, torque of each joint, effects] on a log, for theta of variance 1."""

    kind: Kind
    place: str
    columns: Array  #: (nb + dof + effects, size)
    unit: float = 1.0  #: Value of a last coefficient of 1: kg, a share, N m, N, rad, m or s.
    #: Coefficients, in this unit, that make the common fit's own torque.
    usual: Array = field(default_factory=lambda: np.ones(1))


def _candidates(
    base: BaseParameters,
    delta: Array,
    torques: Array,
    gram: Array,
    effects: Sequence[tuple[Kind, str, int]],
) -> list[_Candidate]:
    """Differences, everything last.

    `torques`: RMS (dof,); `gram`: of the regressor; `effects`: kind, joint, number of columns.
    """
    robot, K = base.robot, np.asarray(base.K, dtype=np.float64)
    names, size = list(robot.parameter_names), len(K) + len(torques)
    size += sum(count for _, _, count in effects)
    units = np.maximum(np.abs(delta), 1e-9)
    mass = WIDE * DAILY["load"] * max(float(delta[robot.inertial_columns[:, -1]].sum()), 1e-3)
    length = max(float(np.mean([np.linalg.norm(b.position) for b in robot.bodies])), 1e-2)
    for ten in robot.inertial_columns:
        # A load of this mass, about the length of a link away from the body's frame.
        units[ten] = mass * np.array([length**2] * 6 + [length] * 3 + [1.0])
    rows = {name: r for r, name in enumerate(robot.coordinates)}
    joints = {body.name: body.joint or body.name for body in robot.bodies}

    def padded(columns: Array) -> Array:
        return np.vstack([columns, np.zeros((size - len(K), columns.shape[1]))])

    out = [
        _Candidate("load", body.name, padded(K[:, ten] * units[ten]), mass)
        for body, ten in zip(robot.bodies, robot.inertial_columns, strict=True)
    ]
    for joint in dict.fromkeys(name for name, symbol in names if symbol in _FRICTION):
        terms = [i for i, n in enumerate(names) if n[0] == joint and n[1] in _FRICTION]
        unit, columns = WIDE * DAILY["friction"], K[:, terms]
        # Each term may change by a share of all friction: the fit may have put it into the others.
        inner = columns.T @ gram @ columns
        sizes = np.sqrt(np.maximum(np.diag(inner), 1e-12 * np.max(inner) + 1e-300))
        torque = np.sqrt(max(float(delta[terms] @ inner @ delta[terms]), 0.0))
        units[terms] = np.maximum(torque / sizes, 1e-9)
        usual = delta[terms] / units[terms]
        columns = padded(unit * columns * units[terms])
        out.append(_Candidate("friction", joints.get(joint, joint), columns, unit, usual))
    for i, (joint, symbol) in enumerate(names):
        if symbol in _OFFSET:
            joint = joints.get(joint, joint)
            units[i] = WIDE * DAILY["offset"] * (torques[rows[joint]] if joint in rows else 1.0)
            out.append(_Candidate("offset", joint, padded(K[:, [i]] * units[i]), units[i]))
    unit = WIDE * DAILY["gain"]
    for joint, r in ((j, r) for j, r in rows.items() if j not in robot.passive):
        out.append(_Candidate("gain", joint, unit * np.eye(size)[:, [len(K) + r]], unit))
    at = len(K) + len(torques)
    for kind, place, count in effects:
        unit = WIDE * DAILY[kind]
        out.append(_Candidate(kind, place, unit * np.eye(size)[:, at : at + count], unit))
        at += count
    return [*out, _Candidate("everything", "", padded(K * units))]


_FRICTION = tuple(s for word in ("viscous", "coulomb") for s in FRICTION[word])
_OFFSET = FRICTION["offset"]


def _effect_columns(rows: Rows, at: EffectAt, robot: Robot, beta: Array) -> Array:
    """Columns of an effect, (rows, size); a warm-up's is a joint's friction, larger at first."""
    if at.kind != "warm-up":
        return columns_of(rows, at, robot, beta, robot.gravity)
    seconds = at.number * max(float(part.run.t[-1]) for part in rows.parts)
    cold = columns_of(rows, replace(at, number=seconds), robot, beta, robot.gravity)
    friction = friction_by_drive(robot, robot.values).get(robot.joints[at.joint], {})
    return np.asarray(cold @ [[friction.get(s, 0.0)] for s in ("fc", "fv")])


_Active = tuple[int, _Candidate]
_Solution = tuple[Array, Array, list[Array]]
"""Covariance and values of common and differing parameters, and each log's map of its columns."""


class _Comparison:
    """Gram matrices of every log, and the search for differences."""

    def __init__(
        self,
        logs: Sequence[Reduced],
        base: BaseParameters,
        delta: Array,
        noise: Noise,
        rows_of: Callable[[int], Rows | None],
    ) -> None:
        self.logs, self.base, self.delta = logs, base, delta
        self.beta = np.asarray(base.K @ delta, dtype=np.float64)
        self.size, self.dof = len(self.beta), len(logs[0].triangles)
        robot = base.robot.with_values(delta)
        # Effects of the set-up and of a run that may differ: kind, joint, and whose columns it has.
        offered: list[tuple[Kind, str, list[EffectAt]]] = []
        if robot.is_plain and robot.dof <= MOST_JOINTS:
            offered = [("delay", "", [EffectAt("delay")])]
            offered += [("tilt", "", [EffectAt("tilt")])] if robot.gravity.any() else []
            offered += [
                ("zero", name, [EffectAt("zero", j)])
                for j, (body, name) in enumerate(zip(robot.bodies, robot.joints, strict=True))
                if body.motion[:3].any()
            ]
            # The number of a warm-up is its time constant as a share of the log's length.
            warming = [j for j, triangle in enumerate(logs[0].triangles) if triangle.any()]
            offered += [
                ("warm-up", "", [EffectAt("warm-up", j, share) for j in warming])
                for share in WARM_TIMES
            ]
        # A warm-up has one column at a joint, its two kinds of friction in the model's ratio.
        effects = [(kind, place, sum(1 if e.kind == "warm-up" else e.effect.size for e in group))
                   for kind, place, group in offered]  # fmt: skip
        self.width = self.size + self.dof + sum(count for _, _, count in effects)
        self.folds = []
        for k, log in enumerate(logs):
            rows, columns = rows_of(k) if offered else None, np.zeros((0, 0))
            if rows is not None:
                columns = np.hstack([_effect_columns(rows, at, robot, self.beta)
                                     for _, _, group in offered for at in group])  # fmt: skip
            self.folds.append(fold_grams(log, self.beta, noise, rows, columns, self.width))
        self.grams = [f.sum(axis=(0, 1)) for f in self.folds]
        squares = sum(log.torque_norms**2 for log in logs) / sum(log.rows for log in logs)
        torques = np.sqrt(np.asarray(squares))
        # Offsets of a passive joint, which has no torque, are as large as those of others.
        self.torques = np.where(torques > 0, torques, np.median(torques[torques > 0]))
        self.mass = float(delta[base.robot.inertial_columns[:, -1]].sum())
        total = np.sum(self.grams, axis=0)[: self.size, : self.size]
        *self.candidates, self.everything = _candidates(base, delta, self.torques, total, effects)
        spread = self.everything.columns[: self.size]
        size = np.sqrt(np.sum(spread**2, axis=1))
        pull = np.linalg.pinv((spread / size[:, None]) @ (spread / size[:, None]).T, hermitian=True)
        self.pull = pull / np.outer(size, size)  # of the common parameters

    # -- least squares -------------------------------------------------------------------------

    def solve(
        self, active: Sequence[_Active], grams: Sequence[Array], effects: bool = False
    ) -> _Solution:
        """Covariance and values of [common, active], and each log's map of its columns to them.

        `effects`: whether effects of the set-up that all logs share are common parameters, too.
        """
        parts = [np.eye(self.width)[:, : self.size]]
        shared = ("tilt", "delay", "zero") if effects else ()
        parts += [c.columns for c in self.candidates if c.kind in shared]
        common = np.hstack(parts)
        size = common.shape[1] + sum(c.columns.shape[1] for _, c in active)
        normal, right = np.zeros((size, size)), np.zeros(size)
        normal[: self.size, : self.size] = self.pull
        maps = []
        for k, gram in enumerate(grams):
            mapping, at = np.zeros((self.width, size)), common.shape[1]
            mapping[:, :at] = common
            for log, candidate in active:
                width = candidate.columns.shape[1]
                if log == k:
                    mapping[:, at : at + width] = candidate.columns
                at += width
            normal += mapping.T @ gram[:-1, :-1] @ mapping
            right += mapping.T @ gram[:-1, -1]
            maps.append(mapping)
        # Columns of differences are in units of their prior, which is one of variance 1.
        normal[range(self.size, size), range(self.size, size)] += 1.0
        scale = np.sqrt(np.diag(normal))
        inverse = np.linalg.pinv(normal / np.outer(scale, scale), hermitian=True)
        inverse = inverse / np.outer(scale, scale)
        return np.asarray(inverse), np.asarray(inverse @ right), maps

    def behind(self, days: Sequence[Kind]) -> list[Array]:
        """Gram matrices of all logs, each behind its own ordinary changes of these kinds."""
        parts = [c.columns / WIDE for c in self.candidates if c.kind in days]
        if not parts:
            return self.grams
        columns, out = np.hstack(parts), []
        for gram in self.grams:
            felt = gram[:-1].T @ columns
            inner = columns.T @ gram[:-1, :-1] @ columns + np.eye(columns.shape[1])
            out.append(gram - felt @ np.linalg.solve(inner, felt.T))
        return out

    @staticmethod
    def falls(
        gram: Array, log: int, candidates: Sequence[_Candidate], solved: _Solution
    ) -> list[float]:
        """Reduction of chi-square by each candidate on a log's rows, beyond that by noise."""
        inverse, values, maps = solved
        cross = gram[:-1, :-1] @ maps[log]
        inner = gram[:-1, :-1] - cross @ inverse @ cross.T
        score = gram[:-1, -1] - cross @ values
        out = []
        for c in candidates:
            slope = c.columns.T @ score
            # By chance alone it explains as much as the number of coefficients that the data tell.
            posterior = np.linalg.inv(np.eye(len(slope)) + c.columns.T @ inner @ c.columns)
            chance = len(slope) - float(np.trace(posterior))
            out.append(max(float(slope @ posterior @ slope) - chance, 0.0))
        return out

    # -- the search ----------------------------------------------------------------------------

    def search(self) -> list[Difference]:
        """Find differences one after the other, that of the worst log first."""
        active, differences, noise = list[_Active](), list[Difference](), list[float]()
        # Squared whitened residual of each log with parameters and effects of its own.
        effects = [c.columns for c in self.candidates if c.kind in EFFECTS and c.kind != "gain"]
        columns = np.hstack([self.everything.columns, *effects])
        for gram in self.grams:
            slope = columns.T @ gram[:-1, -1]
            inner = np.eye(len(slope)) + columns.T @ gram[:-1, :-1] @ columns
            noise.append(max(float(gram[-1, -1] - slope @ np.linalg.solve(inner, slope)), 1e-12))
        for days, kinds in STAGES:
            grams = self.behind(days)
            while len(active) < max(1, (len(self.logs) - 1) // 2):
                solved = self.solve(active, grams, bool(days))
                every = [*self.candidates, self.everything]
                falls = {k: self.falls(grams[k], k, every, solved)
                         for k in range(len(self.logs)) if k not in dict(active)}  # fmt: skip
                worst = list[_Active]()
                for k in sorted(falls, key=lambda k: -falls[k][-1] / noise[k]):
                    *single, most = falls[k]
                    best, usual = int(np.argmax(single)), self.usual_change(k, active, grams)
                    enough = single[best] >= ENOUGH * (most - np.nan_to_num(usual))
                    worst += [*([(k, every[best])] if enough else []), (k, self.everything)]
                tried = (k for k in worst if k[1].kind in kinds)
                results = (self.examine(*pair, active, noise, days, grams) for pair in tried)
                difference = next(filter(None, results), None)
                if difference is None:
                    break
                active.append((difference[1].log, difference[0]))
                differences.append(difference[1])
        return differences

    def examine(
        self,
        log: int,
        candidate: _Candidate,
        active: list[_Active],
        noise: Sequence[float],
        days: Sequence[Kind],
        grams: Sequence[Array],
    ) -> tuple[_Candidate, Difference] | None:
        """The difference, if it is large, stands out from the other logs, and is not by chance."""
        if candidate is self.everything and len(self.logs) < len(active) + 3:
            days, grams = CHANGES, self.behind(CHANGES)  # no third log shows what days change
        trial = [*active, (log, candidate)]
        solved = self.solve(trial, grams, bool(days))
        size = self._size(log, candidate, solved[1])
        kind, limit = candidate.kind, LIMIT * DAILY.get(candidate.kind, 0.0)  # of ordinary days
        if kind in ("friction", "gain"):
            is_large = abs(float(np.log(size))) > limit
        else:
            units = {"load": self.mass, "offset": candidate.unit / (WIDE * DAILY["offset"])}
            units |= {name: EFFECTS[name].factor for name in ("delay", "tilt", "zero")}
            limit *= units.get(kind, 1.0)
            is_large = kind == "everything" or abs(size - (kind == "warm-up")) > limit
        if not is_large:
            return None
        others = [self.falls(grams[k], k, [candidate], solved)[0] / noise[k]
                  for k in range(len(self.logs)) if k not in dict(trial)]  # fmt: skip
        usual = float(np.median(others)) if len(others) > 1 else 0.0
        before = self.solve(active, grams, bool(days))
        explained = self.falls(grams[log], log, [candidate], before)[0]
        if explained / noise[log] < STANDS_OUT * usual + BARELY:
            return None
        daily = [(log, replace(c, columns=c.columns / WIDE)) for c in self.candidates
                 if c.kind in days]  # fmt: skip
        gain = self.held_out(log, [*daily, *trial]).gain(self.held_out(log, [*daily, *active]))
        if not RULES["log"].accepts(gain):
            return None
        if days:  # another robot differs in everything, too, more than the others from day to day
            both = (self.solve(pairs, self.grams) for pairs in (trial, active))
            after, first = (self.falls(self.grams[log], log, [self.everything], x)[0] for x in both)
            usual = STANDS_OUT * self.usual_change(log, trial, self.grams)
            if after > (1.0 - ENOUGH) * first + usual:  # never of two logs
                return None
        return candidate, Difference(log, candidate.kind, candidate.place, size, gain.most)

    def usual_change(self, log: int, active: Sequence[_Active], grams: Sequence[Array]) -> float:
        """What everything explains in the others, around these alone; NaN of fewer than two."""
        alone = self.solve([], [g * (k != log) for k, g in enumerate(grams)])
        others = [self.falls(g, k, [self.everything], alone)[0]
                  for k, g in enumerate(grams) if k not in {log, *dict(active)}]  # fmt: skip
        return float(np.median(others)) if len(others) > 1 else np.nan

    def held_out(self, log: int, active: Sequence[_Active]) -> HeldOut:
        """Squared errors of a log's folds, each with the model of all other folds, by joint."""
        squared = np.zeros((FOLDS, self.dof))
        for f in range(FOLDS):
            if not self.folds[log][f].any():
                continue
            grams = [g.copy() for g in self.grams]
            # Other logs keep all their folds: they were recorded at other times.
            grams[log] = grams[log] - self.folds[log][f].sum(axis=0)
            _, values, maps = self.solve(active, grams)
            v = np.append(maps[log] @ values, -1.0)
            squared[f] = np.maximum(np.einsum("i,jik,k->j", v, self.folds[log][f], v), 0.0)
        return HeldOut(squared)

    def _size(self, log: int, candidate: _Candidate, values: Array) -> float:
        """A difference's size as it is said; factors, which are of the others', exceed .001."""
        if candidate.kind == "everything":
            return np.nan
        common, theta = values[: self.size], values[-candidate.columns.shape[1] :]
        if candidate.kind == "tilt":
            return float(np.linalg.norm(theta)) * candidate.unit * DEGREES
        if candidate.kind == "warm-up":
            felt = candidate.columns.T @ self.grams[log][:-1, :-1] @ candidate.columns
            return 1.0 + candidate.unit * float(np.average(theta, weights=np.sqrt(np.diag(felt))))
        if candidate.kind in ("offset", "load", "delay", "zero"):
            factor = EFFECTS[candidate.kind].factor if candidate.kind in EFFECTS else 1.0
            return float(theta[-1] * candidate.unit) * factor
        columns = candidate.columns / candidate.unit
        felt = self.grams[log][:-1, :-1] @ columns
        power = np.maximum(np.einsum("ik,ik->k", columns, felt), 1e-300)
        if candidate.kind == "friction":
            part = columns[: self.size]
            change = part.T @ common / np.maximum(np.sum(part**2, axis=0), 1e-300)
        else:
            change = felt[: self.size].T @ common / power
        weight = np.sqrt(power)
        usual = max(float(weight @ (candidate.usual + change)), 1e-6)
        return max(1.0 + float(weight @ theta * candidate.unit) / usual, 1e-3)

    # -- numbers of each log -------------------------------------------------------------------

    def information(self) -> Array:
        """Share of each log in the information on the parameters, (logs,)."""
        inverse, size = self.solve([], self.grams)[0], self.size
        shares = np.array([np.sum(inverse * g[:size, :size]) for g in self.grams])
        return shares / max(float(shares.sum()), 1e-300)

    def changes(self, log: int) -> Array:
        """Friction, offset and gain of a log's joints around the common fit, (dof, 3, 2)."""
        joints, gram = self.base.robot.coordinates, self.grams[log]
        changes = [c for c in self.candidates if c.kind in CHANGES and c.place in joints]
        # One factor for all friction of a joint: few seconds hardly tell its parts apart.
        columns = np.stack([c.columns @ c.usual for c in changes], axis=1)
        inverse = np.linalg.inv(columns.T @ gram[:-1, :-1] @ columns + np.eye(len(changes)))
        values = inverse @ (columns.T @ gram[:-1, -1])
        out = np.full((self.dof, len(CHANGES), 2), np.nan)
        for k, c in enumerate(changes):
            size = np.array([values[k], np.sqrt(inverse[k, k])]) * c.unit
            size = size + (0.0 if c.kind == "offset" else [1.0, 0.0])
            out[joints.index(c.place), CHANGES.index(c.kind)] = size
        return out

    def errors(self, log: int, values: Array) -> Array:
        """Relative torque errors on a log, per joint and of all, (dof + 1,)."""
        missed = self.logs[log].residuals(self.beta + values[: self.size]) ** 2
        return relative_errors(self.base.robot, missed, self.logs[log].torque_norms ** 2)
