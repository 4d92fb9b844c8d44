"""What stands out in a robot of a fleet or in one of its logs: kind, place, size and file.

The fit of a robot's logs compares them (`fit.comparison`) and names a log that differs. Smaller
changes of friction, offsets and gains are judged by those between the logs of other robots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from feasid.applications.fleet.drift import OFFSETS, describe_change, find_changes
from feasid.applications.fleet.type_model import TypeEquations, TypeModel
from feasid.core.notes import Note
from feasid.identification.effects.table import EFFECTS
from feasid.results.fit import Fit
from feasid.robot.description import Robot

UNLIKE = 6.0
"""Standard deviations from which a parameter unlike the type's is named: healthy arms in simulation
have 4.2 at most."""


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


def describe_deviation(robot: Robot, equations: TypeEquations, known: TypeModel) -> list[Note]:
    """Parameters of a robot that differ from the type by more than `UNLIKE` deviations."""
    # The robot's deviation from a type that does not know it, and its prior deviations.
    A, C = equations.A, known.deviations
    noise = np.eye(len(A)) + A @ (C + known.covariance) @ A.T
    mean = np.asarray(C @ A.T @ np.linalg.solve(noise, equations.rho - A @ known.mean))
    size = np.sqrt(np.maximum(np.diag(C), 0.0))
    scores = np.divide(np.abs(mean), size, out=np.zeros_like(mean), where=size > 0)
    scores[robot.inertial_columns[:, :9].ravel()] = 0.0  # one factor for a body, told of its mass
    joints = {body.name: body.joint or body.name for body in robot.bodies}
    out = []
    for c in np.argsort(-scores)[: int(np.sum(scores > UNLIKE))]:
        owner, kind = robot.parameter_names[c]
        place = owner if kind == "m" else joints.get(owner, owner)
        change = float(mean[c] if kind in OFFSETS else 1.0 + mean[c] / known.mean[c])
        text = f"{'mass' if kind == 'm' else kind} of {place} {describe_change(kind, change)}"
        out.append(Note(text, "deviation", kind=kind, place=place, size=change))
    return out
