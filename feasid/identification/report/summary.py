"""A fit in words: all of it as text (`summary`), or at a glance (`display`).

The display answers whether the model can exist, how it predicts, what is known and what is wrong.
"""

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

if TYPE_CHECKING:
    import pandas as pd

WORST_SHOWN = 5
"""Base parameters listed as least certain."""

FIRST = ("mass-bound", "mass-released", "shape-bound", "shape-released")
"""Codes of notes that the summary says first: the model is not what the description suggests."""

SURE = 30.0
"""Relative standard deviation [%] below which a base parameter counts as identified."""


def summary(fit: Fitted, test: Any = None) -> str:
    """The fit as text: data, errors, verdict, what was assumed, and what is uncertain."""
    errors = {"fitted": fit.relative_error}
    if test is not None:
        errors["test"] = test_errors(fit, test)
    first = [note for note in fit.notes if note.code in FIRST]
    sections = [
        *first,
        _headline(fit),
        repr(fit.quality),
        _verdict(fit),
        _error_table(errors),
        _bodies(fit),
        _precision_text(fit),
    ]
    if fit.notes:
        lines = (f"  - {note}".replace("\n", "\n  ") for note in fit.notes)
        sections.append("notes\n" + "\n".join(lines))
    return "\n\n".join(sections)


def test_errors(fit: Fitted, test: Any) -> pd.Series[float]:
    """Errors on a test log, computed unless they are given as a Series."""
    import pandas as pd

    return test if isinstance(test, pd.Series) else fit.errors(test)


def _headline(fit: Fitted) -> str:
    size, base = fit.unknowns.unknowns, fit.unknowns.size
    total = "standard" if fit.unknowns is fit.base else "unknown standard"
    reduced = f"\n{fit.robot.constraint_summary}" if fit.robot.constraint_summary else ""
    cutoff = fit.reduced.cutoff
    filtered = f", low-pass {cutoff:.3g} Hz" if cutoff is not None else ""
    return (
        f"feasible fit of {fit.robot.name!r}: {base} base of {size} {total} parameters, "
        f"{len(fit.robot.bodies)} bodies\n"
        f"{fit.reduced.samples} samples x {fit.robot.dof} joints{filtered}, "
        f"condition number {fit.condition_number:.3g}{reduced}"
    )


def _verdict(fit: Fitted) -> str:
    solution = fit.solution
    name, margin = min(solution.margins.items(), key=lambda item: item[1])
    towards = {
        "description": "the description's own inertials",
        "centre": "the centre of the feasible set",
        "mixed": "the description's own inertials of "
        f"{', '.join(solution.bodies_with_reference)}, for the "
        "other bodies the centre of the feasible set",
    }[solution.tie_break]
    meaning = {
        "full": "full: every pseudo-inertia positive definite",
        "semi": "semi: the 6x6 condition, weaker than a real body's",
    }[solution.consistency]
    lines = [
        f"FEASIBLE ({meaning})",
        f"  verified    {solution.verified}",
        f"  margin      {margin:.2e} of the body's own mass and size ({name})",
        f"  repair      least-squares optimum +{100 * fit.optimum.increase:.2g} % for strict "
        "feasibility",
        f"  full model  chosen towards {towards}",
    ]
    if not np.isnan(fit.price):
        lines[-1] += ","
        text = f"at a residual {100 * fit.price:.2g} % above the smallest feasible one (proved)"
        lines.append(f"              {text}")
    return "\n".join(lines)


def _error_table(errors: dict[str, pd.Series[float]]) -> str:
    names = list(errors["fitted"].index)
    width = max(len(str(n)) for n in names)
    head = "relative torque error" + " " * max(0, width - 19)
    lines = [head + "".join(f"{key:>10}" for key in errors)]
    for name in names:
        cells = "".join(f"{100 * e[name]:9.2f}%" for e in errors.values())
        lines.append(f"  {name!s:<{max(width, 19)}}{cells}")
    warned = [e.attrs["leakage"] for e in errors.values() if e.attrs.get("leakage")]
    return "\n".join([*lines, *(f"  note: {w}" for w in warned)])


def _bodies(fit: Fitted) -> str:
    frame = fit.bodies[["mass", "com_x", "com_y", "com_z", "Ixx", "Iyy", "Izz"]]
    text = frame.to_string(float_format=lambda x: f"{x:.4g}")
    terms = fit.joint_terms
    if len(terms):
        text += "\n\n" + terms.to_string(float_format=lambda x: f"{x:.4g}")
    return text


def _precision_text(fit: Fitted) -> str:
    """How precisely the base parameters are known, and which ones are least certain."""
    frame = fit.base_table
    relative = frame["relative_std_percent"].to_numpy()
    sure = int((relative < SURE).sum())
    blind = int(np.isinf(frame["std"]).sum())
    lines = [f"{sure} of {len(frame)} base parameters known within {SURE:g} % (one deviation)"]
    if blind:
        lines.append(f"{blind} base parameters that this log says nothing about")
    order = np.argsort(-np.where(np.isfinite(relative), relative, -1.0))
    unsure = [k for k in order[:WORST_SHOWN] if relative[k] >= SURE]
    if unsure:
        lines.append("least certain:")
    for k in unsure:
        row = frame.iloc[k]
        lines.append(f"  {row['value']:10.4g} +- {row['std']:<9.2g} {frame.index[k]}")
    return "\n".join(lines)


MORE = "more: fit.summary(), fit.plot(), fit.base_table, fit.report('report.html')"

LEVELS = ("error", "warning")
"""Levels of notes that are troubles."""


def display(fit: Fitted, test: Any = None) -> Display:
    """What there is to see of a fit; `test` is a log that was not fitted, or its `errors`."""
    base, bodies = len(fit.beta), len(fit.robot.bodies)
    measures = [
        _consistency_measure(fit),
        _prediction_measure(fit.quality),
        *([] if test is None else [_error_measure("test error", test_errors(fit, test))]),
        _error_measure("fitted error", fit.relative_error),
        _precision_measure(fit),
        *_mass_measures(fit),
    ]
    troubles = [*_main_warnings(fit)]
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


def error_limit(errors: HeldOut) -> float:
    """The error up to which a fit counts as good, of all joints; see `quality`."""
    squares = errors.overall_error(errors.least_squares)
    limits = [LITTLE, max(CONSTRAINED * squares, squares + CONSTRAINED_MORE)]
    if np.isfinite(errors.description).all():
        limits.append(WORSE * errors.overall_error(errors.description))
    return min(limits)


def _consistency_measure(fit: Fitted) -> Measure:
    """Whether the model is physically consistent, and with which margin."""
    margin = min(fit.solution.margins.values())
    meaning = {"full": "every body", "semi": "semi consistency only"}[fit.solution.consistency]
    return Measure("can exist", f"yes, margin {margin:.2g}, {meaning}", "> 0, proved")


def _prediction_measure(quality: Quality) -> Measure:
    """Prediction error of all joints beside the error up to which a fit is good."""
    errors = quality.errors
    where = "where unseen" if errors.unseen else "where fitted"
    error, limit = errors.overall_error(errors.model), error_limit(errors)
    value = f"{quality.level}, {100 * error:.3g} % off {where}"
    joints = quality.level != "good" and error <= limit  # the whole is good, a joint is not
    asked = "each joint" if joints else f"<= {100 * limit:.3g} %"
    return Measure("predicts", value, asked, quality.level == "good")


def _error_measure(name: str, errors: pd.Series[float]) -> Measure:
    joints = 100 * errors.drop("all").dropna()
    return Measure(name, f"{100 * errors['all']:.3g} %{_range(joints)}")


def _precision_measure(fit: Fitted) -> Measure:
    """How many base parameters have a small relative standard error."""
    table = fit.base_table
    sure = int((table["relative_std_percent"] < SURE).sum())
    value = f"{sure} of {len(table)} base parameters within {SURE:g} %"
    return Measure("known", f"{value}, from {fit.reduced.samples} samples")


def _mass_measures(fit: Fitted) -> list[Measure]:
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


def _main_warnings(fit: Fitted) -> list[str]:
    first = [str(n) for n in fit.notes if n.code in FIRST]
    grave = sorted(
        (n for n in fit.notes if n.values.get("level") in LEVELS),
        key=lambda n: LEVELS.index(n.values["level"]),
    )
    blind = int(np.isinf(fit.base_table["std"]).sum())
    unseen = [f"{blind} base parameters that this log says nothing about"] if blind else []
    said = [*first, *map(str, fit.quality.reasons), *unseen, *map(str, grave)]
    return list(dict.fromkeys(said))
