"""A fit at a glance: can it exist, does it predict, what is known, what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.display import Display, Measure
from feasid.identification.fitted import Fitted
from feasid.identification.quality import (
    CONSTRAINED,
    CONSTRAINED_MORE,
    LITTLE,
    WORSE,
    HeldOut,
    Quality,
)
from feasid.identification.views.text import FIRST, SURE, test_errors

if TYPE_CHECKING:
    import pandas as pd

MORE = "more: fit.summary(), fit.plot(), fit.base_table, fit.report('report.html')"

LEVELS = ("error", "warning")
"""Levels of notes that are troubles."""


def display(fit: Fitted, test: Any = None) -> Display:
    """What there is to see of a fit; `test` is a log that was not fitted, or its `errors`."""
    base, bodies = len(fit.beta), len(fit.robot.bodies)
    measures = [
        _possible(fit),
        _predicts(fit.quality),
        *([] if test is None else [_errors("test error", test_errors(fit, test))]),
        _errors("fitted error", fit.relative_error),
        _known(fit),
        *_masses(fit),
    ]
    troubles = [*_troubles(fit)]
    return Display(
        f"feasible fit of {fit.robot.name!r}: {base} base of {fit.base.unknowns} parameters, "
        f"{bodies} bod{'ies' if bodies != 1 else 'y'}",
        measures,
        troubles,
        [
            f"{len(fit.notes)} note{'s' if len(fit.notes) > 1 else ''} on what was assumed, "
            "derived and left out: fit.notes"
        ]
        if fit.notes
        else [],
        MORE,
    )


def goal(errors: HeldOut) -> float:
    """The error up to which a fit counts as good, of all joints; see `quality`."""
    squares = errors.overall(errors.least_squares)
    limits = [LITTLE, max(CONSTRAINED * squares, squares + CONSTRAINED_MORE)]
    if np.isfinite(errors.description).all():
        limits.append(WORSE * errors.overall(errors.description))
    return min(limits)


def _possible(fit: Fitted) -> Measure:
    margin = min(fit.solution.margins.values())
    meaning = {"full": "every body", "semi": "semi consistency only"}[fit.solution.consistency]
    return Measure("can exist", f"yes, margin {margin:.2g}, {meaning}", "> 0, proved")


def _predicts(quality: Quality) -> Measure:
    errors = quality.errors
    where = "where unseen" if errors.unseen else "where fitted"
    error, limit = errors.overall(errors.model), goal(errors)
    value = f"{quality.level}, {100 * error:.3g} % off {where}"
    joints = quality.level != "good" and error <= limit  # the whole is good, a joint is not
    asked = "each joint" if joints else f"<= {100 * limit:.3g} %"
    return Measure("predicts", value, asked, quality.level == "good")


def _errors(name: str, errors: pd.Series[float]) -> Measure:
    joints = 100 * errors.drop("all").dropna()
    return Measure(name, f"{100 * errors['all']:.3g} %{_range(joints)}")


def _known(fit: Fitted) -> Measure:
    table = fit.base_table
    sure = int((table["relative_std_percent"] < SURE).sum())
    value = f"{sure} of {len(table)} base parameters within {SURE:g} %"
    return Measure("known", f"{value}, from {fit.reduced.samples} samples")


def _masses(fit: Fitted) -> list[Measure]:
    mass = fit.bodies["mass"]
    if not len(mass):
        return []
    return [Measure("mass", f"{mass.sum():.3g} kg{_range(mass)}")]


def _range(values: pd.Series[float]) -> str:
    """The smallest and the largest of several values, and whose they are."""
    if len(values) < 2:
        return ""
    low, high = int(values.argmin()), int(values.argmax())
    ends = (f"{values.iloc[k]:.3g} {values.index[k]}" for k in (low, high))
    return f" ({' to '.join(ends)})"


def _troubles(fit: Fitted) -> list[str]:
    first = [str(n) for n in fit.notes if n.code in FIRST]
    grave = sorted(
        (n for n in fit.notes if n.values.get("level") in LEVELS),
        key=lambda n: LEVELS.index(n.values["level"]),
    )
    blind = int(np.isinf(fit.base_table["std"]).sum())
    unseen = [f"{blind} base parameters that this log says nothing about"] if blind else []
    said = [*first, *map(str, fit.quality.reasons), *unseen, *map(str, grave)]
    return list(dict.fromkeys(said))
