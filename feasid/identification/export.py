"""A fit written as a model file, and proven as a client of the file reads it.

A format may not hold every term of the fitted model: URDF has no drive inertia and no offset
friction, MJCF no offset friction. Such a file gets the best model in its own terms, and its sidecar
the whole one. Inertial parameters are kept and friction is fitted again; only when this costs more
than `INERTIALS_MAY_COST` over a feasible fit restricted to the format's terms is that fit written.
Either is computed from the reduced data, without the log.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from feasid.arrays import Array
from feasid.errors import OutputError
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import feasible_least_squares
from feasid.feasibility.settle import settle
from feasid.identifiability.base import base_parameters
from feasid.identification.fitted import Fitted
from feasid.reduction.reduce import reduce
from feasid.robot.description import Robot
from feasid.robot.load import load_robot
from feasid.robot.terms import summed
from feasid.robot.write import Written, format_of, held_part, unheld, unheld_columns, write

if TYPE_CHECKING:
    import pandas as pd

INERTIALS_MAY_COST = 1.05
"""Residual with the fitted inertials kept, over that of a fit restricted to the format's terms."""

PLACED = 1e-9
"""Difference of axes and positions [m] up to which a file read back has the robot's geometry."""

SLACK = 0.005
"""As in `feasid.fit`: of the models that fit almost as well, the plausible one."""


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
    fit: Fitted, path: str | os.PathLike[str], *, overwrite: bool = False, test: Any = None
) -> Export:
    """Write a fit; see `feasid.Fit.write`."""
    kind = format_of(fit.robot, path)
    complete = fit.robot
    if not unheld(complete, kind):
        written = write(held_part(complete, kind), path, overwrite=overwrite)
        how = "every term of the fitted model"
    else:
        best, how = in_terms_of(fit, kind)
        written = write(best, path, overwrite=overwrite, complete=complete)
    seen = fit.base.K @ as_client(fit, written.path)
    columns = {"fit": fit.relative_error, "file": fit.errors_of(fit.reduced, seen)}
    if test is not None:
        other = reduce(test, base=fit.base, **fit.test_options())
        columns |= {
            "fit on the test": fit.errors_of(other),
            "file on the test": fit.errors_of(other, seen),
        }
    import pandas as pd

    return Export(written, how, pd.DataFrame(columns))


def in_terms_of(fit: Fitted, kind: str) -> tuple[Robot, str]:
    """The best model in a format's terms, and in words how it came about."""
    R, rho, residual = fit.triangle
    A = R @ fit.base.K
    lost = unheld_columns(fit.robot, kind)

    def cost(delta: Array) -> float:
        return float(np.hypot(residual, np.linalg.norm(A @ delta - rho)))

    kept = _friction_again(fit, A, rho, lost)
    other = _all_again(fit, A, rho, residual, lost, kind)
    loss = cost(other) / cost(fit.delta) - 1
    if cost(kept) <= INERTIALS_MAY_COST * cost(other):
        loss = cost(kept) / cost(fit.delta) - 1
        how = "the fitted inertial parameters, friction fitted again"
        chosen = kept
    else:
        how, chosen = "all parameters fitted again", other
    how += f" in the terms of {kind.upper()}, which raises the residual by {100 * loss:.2g} %"
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


def _all_again(
    fit: Fitted, A: Array, rho: Array, residual: float, lost: npt.NDArray[np.bool_], kind: str
) -> Array:
    """Standard parameters of a feasible fit without the lost columns; zero there."""
    restricted = held_part(fit.description, kind)
    place = {name: c for c, name in enumerate(fit.robot.parameter_names)}
    columns = np.array([place[name] for name in restricted.parameter_names])
    base = base_parameters(restricted)
    # R K delta = M K' delta' for all delta', and K' is the identity on its independent columns.
    M = A[:, columns][:, base.independent]
    stacked = np.asarray(np.linalg.qr(np.column_stack([M, rho]), mode="r"))
    size = len(base.independent)
    R, target, rest = stacked[:size, :size], stacked[:size, size], stacked[size:, size]
    left = float(np.hypot(residual, np.linalg.norm(rest)))
    feasible = _restricted(fit.feasible, columns, restricted)
    optimum = feasible_least_squares(R, target, base, feasible)
    solution = settle(R, target, left, base, feasible, optimum, SLACK)
    out = np.zeros(fit.robot.size)
    out[columns] = solution.delta
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


def as_client(fit: Fitted, path: str | os.PathLike[str]) -> Array:
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
    joints = {body.joint: body for body in seen.bodies}
    terms = summed(seen.drives)
    delta = np.zeros(fit.robot.size)
    for body, columns in zip(fit.robot.bodies, fit.robot.inertial_columns, strict=True):
        theirs = joints.get(body.joint)
        if theirs is None:
            raise OutputError(f"{path} was written, but joint {body.joint!r} is not read back")
        for name in ("rotation", "position", "motion"):
            if np.abs(getattr(body, name) - getattr(theirs, name)).max() > PLACED:
                raise OutputError(
                    f"{path} was written, but the {name} of joint {body.joint!r} is read back as "
                    f"{getattr(theirs, name).tolist()}"
                )
        delta[columns] = 0.0 if theirs.inertial is None else theirs.inertial
    for k, drive in enumerate(fit.robot.drives):
        if len(drive.coupling) == 1:
            ((joint, factor),) = drive.coupling.items()
            given = terms.pop(((joint, 1.0),), {})
            weights = {"Ia": factor**2, "fv": factor**2, "k": factor**2, "fc": abs(factor)}
            for symbol, column in fit.robot.drive_columns(k).items():
                delta[column] = given.pop(symbol, 0.0) / weights.get(symbol, factor)
    return delta
