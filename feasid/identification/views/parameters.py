"""What was identified: values with intervals, and how far bodies are from the impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array
from feasid.core.display import shortened
from feasid.core.figures import BLUE, GREY, RED, YELLOW, legend, picture
from feasid.identification.fitted import Fitted
from feasid.robot.inertia import pseudo_inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINEAR = 3.0
"""Deviations up to which the axis is linear; beyond it is logarithmic."""

NAME = 44
"""Characters of an expression beside the axis."""


def parameters(fit: Fitted) -> Figure:
    """Base parameters with intervals, against the description and unconstrained least squares.

    Every row is in its own standard deviations from the fitted value, so that metres and
    kilograms share an axis: the band is the interval of two deviations.
    """
    table = fit.base_table
    std = table["std"].to_numpy()
    usable = np.isfinite(std) & (std > 0)
    scale = np.where(usable, std, 1.0)
    values = table["value"].to_numpy()
    own = fit.description.values
    told = np.full(len(values), np.nan)
    if not np.isnan(own[fit.description.inertial_columns]).any():
        told = fit.base.K @ np.nan_to_num(own)
    rows = np.arange(len(values))[::-1]
    figure = picture(8.5, 1.4 + 0.17 * len(values), "base parameters with intervals, compared")
    axis = figure.subplots()
    axis.axvspan(-2, 2, color=BLUE, alpha=0.15, label="two deviations")
    axis.axvline(0, color=BLUE, lw=1.2, label="fitted")
    for other, color, mark, label in (
        (told, YELLOW, "s", "description"),
        (table["ols"].to_numpy(), RED, "x", "least squares, unconstrained"),
    ):
        shown = usable & np.isfinite(other)
        axis.plot(((other - values) / scale)[shown], rows[shown], mark, color=color, ms=4,
                  label=label)  # fmt: skip
    axis.set_xscale("symlog", linthresh=LINEAR)
    axis.set_yticks(rows, [shortened(e, NAME) for e in table.index], fontsize=7, parse_math=False)
    axis.set_ylim(-1, len(values))
    axis.set_xlabel("difference from the fitted value, in its standard deviations", fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(alpha=0.25, axis="x")
    legend(figure, axis, 4)
    return figure


def eigenvalues(fit: Fitted) -> Figure:
    """Eigenvalues of every body's pseudo-inertia against the smallest one allowed.

    In units of the body's own mass and length, where a body with volume has four positive ones.
    Those of the description are drawn beside them; impossible ones are left of the line.
    """
    robot = fit.robot
    heavy = [i for i, body in enumerate(robot.bodies) if not body.massless]
    columns = robot.inertial_columns[heavy]
    found, told = fit.delta[columns], fit.description.values[columns]
    figure = picture(8.5, 1.4 + 0.32 * len(heavy), "eigenvalues of the bodies' pseudo-inertias")
    axis = figure.subplots()
    smallest = np.inf
    for row, (ten, before) in enumerate(zip(found, told, strict=True)):
        values = _scaled_eigenvalues(ten, ten)
        smallest = min(smallest, float(values.min()))
        axis.plot(values, np.full(4, -row), "o", color=BLUE, ms=5, label=None if row else "fitted")
        if np.isfinite(before).all() and before[9] > 0:
            old = _scaled_eigenvalues(before, before)
            smallest = min(smallest, float(old.min()) if old.min() > 0 else np.inf)
            axis.plot(old, np.full(4, -row - 0.25), "s", color=YELLOW, ms=3,
                      label=None if row else "description")  # fmt: skip
    axis.set_xscale("symlog", linthresh=max(smallest, 1e-12))
    axis.axvline(0, color=RED, lw=1.5, label="impossible left of this")
    names = [shortened(robot.bodies[i].name, NAME) for i in heavy]
    axis.set_yticks(-np.arange(len(heavy)), names, fontsize=8, parse_math=False)
    axis.set_xlabel("eigenvalues, in units of the body's mass and size", fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(alpha=0.25, axis="x", color=GREY)
    legend(figure, axis, 3)
    return figure


def _scaled_eigenvalues(ten: Array, unit: Array) -> Array:
    """Of the pseudo-inertia with mass 1 and root-mean-square radius 1."""
    pseudo, mass = pseudo_inertia(ten), unit[9]
    length = np.sqrt(abs(np.trace(pseudo_inertia(unit)[:3, :3])) / mass) or 1.0
    scale = np.sqrt(mass) * np.array([length, length, length, 1.0])
    return np.asarray(np.linalg.eigvalsh(pseudo / np.outer(scale, scale)), dtype=np.float64)
