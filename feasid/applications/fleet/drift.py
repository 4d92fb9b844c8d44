"""Friction, offset and gain of joints from log to log, and which change more than is usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feasid.applications.fleet.page import write_page
from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import NotEnoughDataError
from feasid.core.figures import draw
from feasid.core.files import document_output
from feasid.core.notes import Note
from feasid.identification.changes import CHANGES, JointChanges
from feasid.identification.effects.log_differences import DAILY, WIDE
from feasid.identification.estimation.noise import estimate_noise
from feasid.identification.regression.folds import triangularise
from feasid.identification.regression.triangle import Reduced, relative_errors
from feasid.logs.temperature import join_temperature_notes
from feasid.results.report.figures import changes_chart
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STANDS_OUT = 5.0  #: Deviations from which a change is named: healthy simulated arms have 4.1.
MOST, SIZE_OF_MOST = 0.8, 1.28  #: Share of changes that are ordinary, their size in deviations.
FEW = 4  #: Number of changes of a joint that count as much as those of all joints, or as `ORDINARY`
OFFSETS = ("offset", *FRICTION["offset"])

ORDINARY = np.array([DAILY[kind] for kind in CHANGES])
"""Changes from log to log that are never named, as logarithms of factors and shares of torque."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Drift(Displayed, JointChanges):
    """Friction, offset and gain of a robot's joints from log to log, and what stands out.

    Changes are those from the mean of all logs: what they share cannot be separated from the model.
    """

    robot: str
    #: Relative torque errors of the model with each log's friction, offsets and gains, (logs,).
    errors: Array
    #: What stands out, with ``kind``, ``place``, ``size``, ``log``, and temperatures that changed.
    notes: tuple[Note, ...] = ()

    def plot(self) -> Figure:
        """Friction, offset and gain of every joint, log by log.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return draw(changes_chart(self))

    @document_output
    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained HTML page."""
        last = self.drift.loc[[self.names[-1]]].reset_index("joint")
        write_page(path, self.display(), changes_chart(self), last, overwrite)

    def display(self) -> Display:
        """The robot, how its last log differs, and what stands out."""
        first, last = self.names[0], self.names[-1]
        error = f"{100 * np.median(self.errors):.3g} %"
        measures = [Measure("first and last", f"{first}, {last}"),
                    Measure("median error of one model", error)]  # fmt: skip
        count = f"{len(self.notes) or 'no'} finding{'s' * (len(self.notes) != 1)}"
        title = f"{self.robot}: {count} in {len(self.names)} logs"
        return Display(title, measures, self.notes, more="more: drift.drift, drift.plot()")


def find_drift(
    robot: str,
    logs: Mapping[str, Reduced],
    others: Mapping[str, Mapping[str, Reduced]],
    model: Robot,
) -> Drift:
    """Changes of a robot's logs around one model of them, judged by those of other robots.

    A log that leaves the line of its neighbours, such as one with a load, is named, and says
    nothing of changes. Raises NotEnoughDataError: there is one log.
    """
    if len(logs) < 2:
        raise NotEnoughDataError(f"{robot!r} has one log, and drift is seen in two or more")
    neighbours = [_drift_of(n, o, o, model)[0] for n, o in others.items() if len(o) > 1]
    alike, odd = dict(logs), list[Note]()
    drift, torques = _drift_of(robot, logs, alike, model)
    usual = usual_variance(neighbours, torques)
    while note := _find_odd_log(drift, alike, torques, usual):
        odd.append(note)
        del alike[note.values["log"]]
        drift, torques = _drift_of(robot, logs, alike, model)
    rows = [name in alike for name in logs]
    even = replace(drift, names=tuple(alike), changes=drift.changes[rows])
    usual = usual_variance(neighbours, torques)  # of the torques without the odd logs
    stands_out = *changes_along(even, usual, torques), *odd
    # Friction that differs may be that of another temperature.
    every = join_temperature_notes((n for log in logs.values() for n in log.notes), searched=False)
    warmth = [n for n in every if n.values.get("mean") and stands_out]
    return replace(drift, notes=(*stands_out, *warmth))


def _find_odd_log(
    drift: Drift, alike: Mapping[str, Reduced], torques: Array, usual: Array
) -> Note | None:
    """A note on the log without which changes from log to log bend least, if they bend too much.

    `usual`: variances of changes, (dof, 3).
    """
    rows = [k for k, name in enumerate(drift.names) if name in alike]
    values, deviations = (part[rows] for part in _as_shares(drift, torques))

    def bends(logs: list[int]) -> Array:
        """Second differences as shares of their limits."""
        spread = np.maximum(usual, deviations[logs] ** 2)
        spread = spread[:-2] + 4.0 * spread[1:-1] + spread[2:]
        limit = np.maximum(2.0 * ORDINARY, STANDS_OUT * np.sqrt(spread))
        return np.asarray(np.diff(values[logs], 2, axis=0) / limit)

    every = list(range(len(rows)))
    if len(rows) < 3 or not (np.abs(bends(every)) > 1.0).any():
        return None
    others = {k: [*every[:k], *every[k + 1 :]] for k in every}
    # Where several do equally well, as each of three logs does, it is the newest.
    odd = min(every, key=lambda k: (float(np.nansum(bends(others[k]) ** 2)), -k))
    jumps = np.abs(values[odd] - np.median(values[others[odd]], axis=0))
    jumps /= np.maximum(ORDINARY, STANDS_OUT * np.sqrt(np.maximum(usual, deviations[odd] ** 2)))
    j, k = np.unravel_index(int(np.nanargmax(jumps)), jumps.shape)
    kind, place = CHANGES[k], drift.joints[j]
    log, sizes = drift.names[rows[odd]], drift.changes[:, j, k, 0]
    value, usual_value = float(sizes[rows[odd]]), float(np.median(np.delete(sizes, rows[odd])))
    size = value - usual_value if kind == "offset" else value / usual_value
    text = f"{log} differs from the logs before and after it, most in the {kind} of {place}"
    text += f": {describe_change(kind, size)}; a load or another set-up changes several joints"
    return Note(text, "log-differs", log=log, kind=kind, place=place, size=size)


def _drift_of(
    robot: str, logs: Mapping[str, Reduced], alike: Mapping[str, Reduced], model: Robot
) -> tuple[Drift, Array]:
    """Changes of logs around the model of those that are alike, without a verdict; and root mean
    squares of torques (dof,).
    """
    parts = [*alike.values()]
    rows = zip(*(part.triangles for part in parts), strict=True)
    triangles = tuple(triangularise(np.vstack(stack)) for stack in rows)
    count = sum(part.rows for part in parts)
    total = replace(parts[0], triangles=triangles, rows=count, samples=count, strata=())
    torques = total.torque_norms / count**0.5
    noise, beta = estimate_noise(total)
    # Again with changes of every log: else a model follows the changes of few logs.
    size = len(beta)
    normal = np.zeros((size + 1, size + 1))
    for log in parts:
        for j, columns in enumerate(_change_columns(log, beta, model, torques)):
            triangle, place = log.triangles[j], np.append(log.supports[j], size)
            inner = columns.T @ columns + noise.quick[j] * np.eye(len(CHANGES))
            felt = columns.T @ triangle
            gram = triangle.T @ triangle - felt.T @ np.linalg.solve(inner, felt)
            normal[np.ix_(place, place)] += gram / noise.quick[j]
    scale = np.sqrt(np.maximum(np.diag(normal)[:-1], 1e-300))
    inverse = np.linalg.pinv(normal[:-1, :-1] / np.outer(scale, scale), 1e-10, hermitian=True)
    beta = inverse @ (normal[:-1, -1] / scale) / scale

    values = np.full((len(logs), len(torques), len(CHANGES), 2), np.nan)
    errors = np.zeros(len(logs))
    for k, log in enumerate(logs.values()):
        missed = np.zeros(len(torques))
        for j, columns in enumerate(_change_columns(log, beta, model, torques)):
            residual = log.triangles[j] @ np.append(-beta[list(log.supports[j])], 1.0)
            inverse = np.linalg.inv(columns.T @ columns / noise.quick[j] + np.eye(len(CHANGES)))
            change = inverse @ (columns.T @ residual) / noise.quick[j]
            missed[j] = np.sum((residual - columns @ change) ** 2)
            sizes = _sizes(torques[j])
            values[k, j] = np.stack([sizes * change, sizes * np.sqrt(np.diag(inverse))], axis=1)
            values[k, j, ~columns.any(axis=0)] = np.nan
        errors[k] = relative_errors(model, missed, log.torque_norms**2)[-1]
    # What all logs share cannot be separated from the model: changes are those from their mean.
    rows_alike = [name in alike for name in logs]
    values[..., 0] -= values[rows_alike, ..., 0].mean(axis=0)
    # Friction and gain are factors, an offset is a torque.
    values[..., 0] += [1.0, 0.0, 1.0]
    return Drift(tuple(logs), tuple(model.coordinates), values, robot, errors), torques


def _sizes(torque: float) -> Array:
    """Prior deviations of a joint's changes: ordinary ones, made wider."""
    return WIDE * ORDINARY * [1.0, torque, 1.0]


def _change_columns(log: Reduced, beta: Array, model: Robot, torques: Array) -> list[Array]:
    """By joint the friction of a model, a constant and its torque, for changes of variance 1."""
    names = [model.parameter_names[c] for c in log.columns]
    joints = {body.name: body.joint or body.name for body in model.bodies}
    kinds = {*FRICTION["viscous"], *FRICTION["coulomb"]}, {*FRICTION["offset"]}
    out = []
    for j, joint in enumerate(model.coordinates):
        W, values = log.triangles[j][:, :-1], beta[list(log.supports[j])]
        terms = [names[c] for c in log.supports[j]]
        friction, offset = (
            [k for k, (owner, symbol) in enumerate(terms)
             if joints.get(owner, owner) == joint and symbol in kind] for kind in kinds
        )  # fmt: skip
        parts = W[:, friction] @ values[friction], W[:, offset].sum(axis=1), W @ values
        out.append(np.stack(parts, axis=1) * _sizes(torques[j]))
    return out


def changes_along(one: JointChanges, usual: Array, torques: Array) -> Iterator[Note]:
    """Notes on joints of which friction, offset or gain changes from a robot's first log to its
    last beyond variances `usual` (dof, 3); `torques` (dof,): root mean squares.
    """
    values, deviations = _as_shares(one, torques)
    line = np.arange(len(values)) - 0.5 * (len(values) - 1)
    line *= (len(values) - 1) / (line @ line)
    sizes = np.tensordot(line, values, 1)
    spread = np.tensordot(line**2, np.maximum(usual, deviations**2), 1)
    first, *_, log = one.names
    for j, k in np.argwhere(np.abs(sizes) > np.maximum(ORDINARY, STANDS_OUT * spread**0.5)):
        kind, place = CHANGES[k], one.joints[j]
        size = float(sizes[j, k] * torques[j] if kind == "offset" else np.exp(sizes[j, k]))
        text = f"{kind} of {place} {describe_change(kind, size)} from {first} to {log}"
        yield Note(text, "drift", log=log, kind=kind, place=place, size=size)


def _as_shares(one: JointChanges, torques: Array) -> tuple[Array, Array]:
    """Changes of a robot's logs and their deviations, as `ORDINARY`, (logs, dof, 3)."""
    values, deviations = np.moveaxis(one.changes, -1, 0)
    factor = np.maximum(values, 1e-3)
    offset = np.array(CHANGES) == "offset"
    shares = np.where(offset, torques[:, None], factor)
    return np.where(offset, values / shares, np.log(factor)), deviations / shares


def usual_variance(robots: Sequence[JointChanges], torques: Array) -> Array:
    """Variances of changes by joint and kind, (dof, 3), from log to log of other robots."""
    if not robots:
        return ORDINARY**2
    steps = np.concatenate([np.diff(_as_shares(one, torques)[0], axis=0) for one in robots])
    variances = np.quantile(np.abs(steps), MOST, axis=0) ** 2 / (2.0 * SIZE_OF_MOST**2)
    # Joints without such a term have no numbers.
    variances = np.where(np.isfinite(variances), variances, ORDINARY**2)
    count = len(steps) * len(variances)
    common = (FEW * ORDINARY**2 + count * np.median(variances, axis=0)) / (FEW + count)
    return np.asarray((FEW * common + len(steps) * variances) / (FEW + len(steps)))


def describe_change(kind: str, size: float) -> str:
    """A change in words."""
    return f"{size:+.2g} N m or N" if kind in OFFSETS else f"times {size:.3g}"
