"""A fit written as a model file, and proven as a client of the file reads it.

A format may not hold every term of the fitted model: URDF has no drive inertia and no offset
friction, MJCF no offset friction. Such a file gets the best model in its own terms, and its sidecar
the whole one. Inertial parameters are kept and friction is fitted again; only when this costs more
than `INERTIALS_MAY_COST` over a feasible fit restricted to the format's terms is that fit written.
Either is computed from the reduced data, without the log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from feasid.core.arrays import Array
from feasid.errors import OutputError, UselessFitError
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.formats.load import load_robot
from feasid.formats.terms import summed
from feasid.formats.write import Written, format_of, held_part, unheld, unheld_columns, write
from feasid.identifiability.base import base_parameters
from feasid.identification.fitted import Fitted
from feasid.identification.predictor import Predictor
from feasid.identification.weighing import Weighing
from feasid.reduction.narrow import narrowed
from feasid.reduction.reduce import reduce
from feasid.robot.description import Robot
from feasid.robot.inertia import change_frame
from feasid.robot.reframed import home_poses

if TYPE_CHECKING:
    import pandas as pd

INERTIALS_MAY_COST = 1.05
"""Residual with the fitted inertials kept, over that of a fit restricted to the format's terms."""

PLACED = 1e-9
"""Difference of axes and positions [m] up to which a file read back has the robot's geometry."""


@dataclass(frozen=True, eq=False)
class Export:
    """A fit that was written to a file.

    Attributes
    ----------
    written : Written
        Path, format, sidecar, and the terms that clients of the file do not see.
    how : str
        How the file's model came from the fitted one.
    errors : DataFrame
        Relative torque errors, joints and "all" by row: of the fit and of the file as a client
        reads it, on the fitted log and on the test.
    """

    written: Written
    how: str
    errors: pd.DataFrame

    def __str__(self) -> str:
        w = self.written
        lines = [f"wrote {w.path}: {self.how}; read back and verified in exact arithmetic"]
        if w.lost:
            more = f" and {len(w.lost) - 6} more" if len(w.lost) > 6 else ""
            lines.append(
                f"{w.format.upper()} has no place for {', '.join(w.lost[:6])}{more}: they are in "
                f"{w.sidecar}, which feasid.load_robot reads with the file"
            )
        total = self.errors.loc["all"]
        shown = ", ".join(f"{name} {100 * value:.2f}%" for name, value in total.items())
        lines.append(f"torque error over all joints: {shown}")
        return "\n".join(lines)

    __repr__ = __str__


def export(
    model: Predictor,
    path: str | os.PathLike[str],
    best: Callable[[str], tuple[Robot, str]],
    *,
    overwrite: bool = False,
    test: Any = None,
) -> Export:
    """Write a model; `best` gives, by format, the best one in its terms, and says how."""
    kind = format_of(model.robot, path)
    complete = model.robot
    if not unheld(complete, kind):
        written = write(held_part(complete, kind), path, overwrite=overwrite)
        how = "every term of the fitted model"
    else:
        held, how = best(kind)
        written = write(held, path, overwrite=overwrite, complete=complete)
    seen = model.base.K @ as_client(model, written.path)
    columns = {"fit": model.relative_error, "file": model.errors_of(model.reduced, seen)}
    if test is not None:
        other = reduce(test, base=model.base, **model.test_options())
        columns |= {
            "fit on the test": model.errors_of(other),
            "file on the test": model.errors_of(other, seen),
        }
    import pandas as pd

    return Export(written, how, pd.DataFrame(columns))


def refuse_useless(level: str, reasons: Sequence[str], path: str | os.PathLike[str]) -> None:
    """A model that is worth nothing is written only when forced.

    Raises
    ------
    UselessFitError
        With the reason.
    """
    if level == "useless":
        raise UselessFitError(
            f"this fit is useless: {reasons[0]}. {path} was not written: mend the log, as "
            f"feasid.diagnose says, or write it all the same with force=True",
            path=str(path),
        )


def in_terms_of(fit: Fitted, kind: str) -> tuple[Robot, str]:
    """The best model in a format's terms, and in words how it came about."""
    R, rho, residual = fit.triangle
    A = R @ fit.base.K
    lost = unheld_columns(fit.robot, kind)

    def cost(delta: Array) -> float:
        return float(np.hypot(residual, np.linalg.norm(A @ delta - rho)))

    kept = _friction_again(fit, A, rho, lost)
    other = _all_again(fit, kind)
    loss = cost(other) / cost(fit.delta) - 1
    if cost(kept) <= INERTIALS_MAY_COST * cost(other):
        loss = cost(kept) / cost(fit.delta) - 1
        how = "the fitted inertial parameters, friction fitted again"
        chosen = kept
    else:
        how, chosen = "all parameters fitted again", other
    how += f" in the terms of {kind.upper()}, which raises the residual by {100 * loss:.3g} %"
    return held_part(fit.robot.with_values(chosen), kind), how


def _friction_again(fit: Fitted, A: Array, rho: Array, lost: npt.NDArray[np.bool_]) -> Array:
    """Standard parameters with the inertials kept and the drives' held terms fitted again."""
    delta = np.where(lost, 0.0, fit.delta)
    free, low = [], []
    for k in range(len(fit.robot.drives)):
        for symbol, column in fit.robot.drive_columns(k).items():
            if not lost[column]:
                free.append(column)
                low.append(-np.inf if symbol == "k" else 0.0)
    if free:
        delta[free] = 0.0
        found = lsq_linear(A[:, free], rho - A @ delta, (low, np.inf), tol=1e-14)
        delta[free] = np.maximum(found.x, low)
    return delta


def _all_again(fit: Fitted, kind: str) -> Array:
    """Standard parameters of the same fit without the lost terms; zero there."""
    restricted = held_part(fit.description, kind)
    place = {name: c for c, name in enumerate(fit.robot.parameter_names)}
    columns = np.array([place[name] for name in restricted.parameter_names])
    base = base_parameters(restricted, measured=fit.base.experiment.measured)
    feasible = _restricted(fit.feasible, columns, restricted)
    equations, reduced = (narrowed(x, fit.description, base) for x in (fit.equations, fit.reduced))
    found = Weighing.of(fit.options, base, feasible, reduced).solved(equations)
    out = np.zeros(fit.robot.size)
    out[columns] = found.solution.delta
    return out


def _restricted(feasible: FeasibleSet, columns: Array, robot: Robot) -> FeasibleSet:
    """The feasible set on these columns, the others being zero."""
    place = {int(c): k for k, c in enumerate(columns)}

    def moved(part: Any) -> Any:
        kept = [k for k, c in enumerate(part.columns) if int(c) in place]
        new = np.array([place[int(part.columns[k])] for k in kept], dtype=np.intp)
        values = "basis" if isinstance(part, Block) else "coefficients"
        return replace(part, columns=new, **{values: getattr(part, values)[kept]})

    whole = [b for b in feasible.blocks if all(int(c) in place for c in b.columns)]
    return replace(
        feasible,
        names=robot.parameter_names,
        blocks=tuple(moved(b) for b in whole),
        linear=tuple(moved(c) for c in feasible.linear if any(int(x) in place for x in c.columns)),
        equalities=tuple(
            replace(e, columns=tuple(place[int(c)] for c in e.columns))
            for e in feasible.equalities
            if all(int(c) in place for c in e.columns)
        ),
    )


def as_client(fit: Predictor, path: str | os.PathLike[str]) -> Array:
    """Standard parameters, in the fit's order, of a file as clients read it: without the sidecar.

    Raises
    ------
    OutputError
        The file has other joints or another geometry than the fitted robot.
    """
    source = fit.robot.source
    own = source is not None and source.format == format_of(fit.robot, path)
    reading = dict(source.reading) if source is not None and own else {}
    seen = load_robot(path, **{**reading, "sidecar": False})
    terms = summed(seen.drives)
    delta = np.zeros(fit.robot.size)
    read = _inertials(fit.robot, seen, path)
    for i, columns in enumerate(fit.robot.inertial_columns):
        delta[columns] = read[i]
    for k, drive in enumerate(fit.robot.drives):
        if len(drive.coupling) == 1:
            ((joint, factor),) = drive.coupling.items()
            given = terms.pop(((joint, 1.0),), {})
            weights = {"Ia": factor**2, "fv": factor**2, "k": factor**2, "fc": abs(factor)}
            for symbol, column in fit.robot.drive_columns(k).items():
                delta[column] = given.pop(symbol, 0.0) / weights.get(symbol, factor)
    return delta


def _inertials(robot: Robot, seen: Robot, path: str | os.PathLike[str]) -> list[Array]:
    """Inertial parameters of a file's bodies in the robot's frames, which may be others."""
    joints = {body.joint: body for body in seen.bodies}
    ours, theirs = home_poses(robot), home_poses(seen)
    out = []
    for body in robot.bodies:
        other = joints.get(body.joint)
        if other is None:
            raise OutputError(f"{path} was written, but joint {body.joint!r} is not read back")
        (turn, place), (their_turn, their_place) = ours[body.name], theirs[other.name]
        rotation, position = turn.T @ their_turn, turn.T @ (their_place - place)
        angular = rotation @ other.motion[:3]
        linear = rotation @ other.motion[3:] + np.cross(position, angular.T).T
        if np.abs(np.vstack([angular, linear]) - body.motion).max() > PLACED:
            raise OutputError(
                f"{path} was written, but joint {body.joint!r} is read back elsewhere: it moves by "
                f"{np.vstack([angular, linear]).tolist()}, not {body.motion.tolist()}"
            )
        ten = np.zeros(10) if other.inertial is None else other.inertial
        out.append(change_frame(rotation, position) @ ten)
    return out
