"""A fit on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.identification.fitted import Fitted

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
        _doubts(fit),
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
    reduced = f"\n{fit.robot.reduction}" if fit.robot.reduction else ""
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
        "mixed": f"the description's own inertials of {', '.join(solution.described)}, for the "
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


def _doubts(fit: Fitted) -> str:
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
