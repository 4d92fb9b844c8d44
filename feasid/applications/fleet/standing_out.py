"""What stands out in a robot of a fleet or in one of its logs: kind, place, size and file.

The fit of a robot's logs compares them (`fit.comparison`) and names a log that differs. Smaller
changes of friction, offsets and gains are judged by those between the logs of other robots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from feasid.applications.fleet.type_model import TypeEquations, TypeModel, deviation_of
from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.effects.log_differences import CHANGES, DAILY, LogComparison
from feasid.identification.effects.table import EFFECTS
from feasid.results.fit import Fit
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION

STANDS_OUT, UNLIKE = 5.0, 6.0
"""Standard deviations from which a change along a robot's logs is named, and a parameter unlike the
type's: healthy arms in simulation have 4.1 and 4.2 at most."""

MOST, SIZE_OF_MOST = 0.8, 1.28
"""Share of the changes of other robots that are ordinary, and their size in deviations."""

FEW = 4
"""Number of changes of a joint that count as much as those of all joints, or as `ORDINARY`."""

OFFSETS = ("offset", *FRICTION["offset"])

ORDINARY = np.array([DAILY[kind] for kind in CHANGES])
"""Changes from log to log that are never named, as logarithms of factors and shares of torque."""


def find_standing_out(fits: Mapping[str, Fit]) -> dict[str, list[Note]]:
    """By robot a note for each log that differs, each error that its fit corrected and most other
    robots do not have, and each change along its logs, with log, kind, place and size.
    """
    out = {name: [*_findings(f)] for name, f in fits.items()}
    # Joints of every robot warm up, and few logs show it.
    faults = {e.name for e in EFFECTS.values() if e.kind == "sensor" and not e.timed}
    corrected = [(name, e) for name, f in fits.items() for e in f.selected
                 if e.entered and e.at.kind in faults]  # fmt: skip
    count = Counter((e.at.kind, e.joint) for _, e in corrected)
    for name, e in corrected:
        if 2 * count[e.at.kind, e.joint] <= len(fits):
            size = e.at.effect.factor * e.value[0]
            out[name].append(Note(str(e), e.at.kind, kind=e.at.kind, place=e.joint, size=size))
    torques = np.median([f.reduced.torque_norms / f.reduced.rows**0.5 for f in fits.values()], 0)
    # A load in one log changes friction and gains in all.
    alike = {name: f.comparison for name, f in fits.items()
             if f.comparison and all(n.code != "log-differs" for n in out[name])}  # fmt: skip
    for name, note in find_changes(alike, torques):
        out[name].append(note)
    return out


def _findings(fitted: Fit) -> Iterator[Note]:
    """What is wrong with a robot's logs, without the advice for its fit after a semicolon."""
    for n in fitted.notes:
        if n.values.get("confirmed") and "level" in n.values:
            yield Note(n.partition(";")[0], n.code, **n.values)


def find_changes(logs: Mapping[str, LogComparison], torques: Array) -> Iterator[tuple[str, Note]]:
    """Robots and joints of which friction, offset or gain changes from the first log to the last
    more than between the logs of the other robots; `torques` (dof,): root mean squares.
    """
    changes = {name: _as_shares(one, torques) for name, one in logs.items()}
    for name, (values, deviations) in changes.items():
        steps = [np.diff(v, axis=0) for other, (v, _) in changes.items() if other != name]
        usual = _usual_variance(np.concatenate(steps)) if steps else ORDINARY**2
        line = np.arange(len(values)) - 0.5 * (len(values) - 1)
        line *= (len(values) - 1) / (line @ line)
        sizes = np.tensordot(line, values, 1)
        spread = np.tensordot(line**2, np.maximum(usual, deviations**2), 1)
        first, *_, log = logs[name].names
        for j, k in np.argwhere(np.abs(sizes) > np.maximum(ORDINARY, STANDS_OUT * spread**0.5)):
            kind, place = CHANGES[k], logs[name].joints[j]
            size = float(sizes[j, k] * torques[j] if kind == "offset" else np.exp(sizes[j, k]))
            text = f"{kind} of {place} {_words(kind, size)} from {first} to {log}"
            yield name, Note(text, "drift", log=log, kind=kind, place=place, size=size)


def _as_shares(one: LogComparison, torques: Array) -> tuple[Array, Array]:
    """Changes of a robot's logs and their deviations, as `ORDINARY`, (logs, dof, 3)."""
    values, deviations = np.moveaxis(one.changes, -1, 0)
    factor = np.maximum(values, 1e-3)
    offset = np.array(CHANGES) == "offset"
    shares = np.where(offset, torques[:, None], factor)
    return np.where(offset, values / shares, np.log(factor)), deviations / shares


def _usual_variance(steps: Array) -> Array:
    """Variances of changes by joint and kind, (dof, 3), from steps from log to log (m, dof, 3)."""
    own = np.quantile(np.abs(steps), MOST, axis=0) ** 2 / (2.0 * SIZE_OF_MOST**2)
    own = np.where(np.isfinite(own), own, ORDINARY**2)  # joints without such a term
    count = len(steps) * len(own)
    common = (FEW * ORDINARY**2 + count * np.median(own, axis=0)) / (FEW + count)
    return np.asarray((FEW * common + len(steps) * own) / (FEW + len(steps)))


def _words(kind: str, size: float) -> str:
    """A change in words."""
    return f"{size:+.2g} N m or N" if kind in OFFSETS else f"times {size:.3g}"


def describe_deviation(robot: Robot, equations: TypeEquations, known: TypeModel) -> list[Note]:
    """Parameters of a robot that differ from the type by more than `UNLIKE` deviations."""
    mean, size = deviation_of(equations, known)
    scores = np.divide(np.abs(mean), size, out=np.zeros_like(mean), where=size > 0)
    scores[robot.inertial_columns[:, :9].ravel()] = 0.0  # one factor for a body, told of its mass
    joints = {body.name: body.joint or body.name for body in robot.bodies}
    out = []
    for c in np.argsort(-scores)[: int(np.sum(scores > UNLIKE))]:
        owner, kind = robot.parameter_names[c]
        place = owner if kind == "m" else joints.get(owner, owner)
        change = float(mean[c] if kind in OFFSETS else 1.0 + mean[c] / known.mean[c])
        text = f"{'mass' if kind == 'm' else kind} of {place} {_words(kind, change)}"
        out.append(Note(text, "deviation", kind=kind, place=place, size=change))
    return out
