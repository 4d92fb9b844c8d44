"""Base parameters as tables, sentences, a figure, JSON, CSV and LaTeX."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from feasid.core.errors import InputError, did_you_mean
from feasid.parameters.identifiability.invariant_subspaces import column_basis
from feasid.parameters.identifiability.parameters import (
    ALONE,
    COMBINED,
    GIVEN,
    NEVER,
    IdentifiedParameters,
    format_coefficient,
    format_combination,
    parameter_label,
    terms_by_row,
)
from feasid.robot.description import Robot
from feasid.robot.inertia import RPNA, SYMBOLS
from feasid.robot.joint_terms import DRIVE_SYMBOLS, TERMS

if TYPE_CHECKING:
    from feasid.core.charts import Chart

Wanted: TypeAlias = "str | tuple[str, str] | Mapping[Any, float]"
"""A parameter, or a sum of some: "forearm.m", ("forearm", "m"), "m3", "forearm.m + 2 hand.m",
{"forearm.m": 1, "hand.m": 2}."""

MARKS = {ALONE: "★", NEVER: "✕", GIVEN: "="}
LEADING, FOLLOWING = "●", "○"

PAPER_SYMBOLS = tuple(SYMBOLS[k] for k in RPNA)
"""Symbols in the order of the tables of Wensing et al. (2024)."""

LEGEND = (
    "★ identifiable alone   ● in combination, leads a base parameter   "
    "○ in combination\n✕ not at all   = no unknown"
)

TABLE_WIDTH = 96  #: Width in characters after which a table is continued below.


class SpanDimensions(NamedTuple):
    """Dimensions of the spans at each body.

    ``motion`` of the velocities it can attain (V), ``parameters`` of the combinations that
    its joints feel (K), ``transfers`` of the exchanges with its parent that nothing shows (T).
    """

    motion: tuple[int, ...]
    parameters: tuple[int, ...]
    transfers: tuple[int, ...]


def span_dimensions(base: IdentifiedParameters) -> SpanDimensions:
    """Dimensions for one run, gravity counted as a velocity as in the paper's algorithm."""
    states = [local.state for local in base.coefficients.echelon.run.joint_conditions]
    return SpanDimensions(
        tuple(column_basis(s.velocities_and_gravity())[0].shape[1] for s in states),
        tuple(s.functionals.shape[1] for s in states),
        tuple(block.dependent.size for block in base.coefficients.joint_nullspaces),
    )


def symbol_rows(base: IdentifiedParameters) -> dict[str, list[str]]:
    """Marks per symbol and body: the cells of Tables 2, 4 and 5 of Wensing et al. (2024)."""
    mark = {}
    leading = set(base.independent.tolist())
    names = zip(base.robot.parameter_names, base.status, strict=True)
    for column, (name, status) in enumerate(names):
        mark[name] = MARKS.get(status, LEADING if column in leading else FOLLOWING)
    symbols = [*PAPER_SYMBOLS]
    shown_symbols = {symbol for _, symbol in mark}
    symbols += [s for s in ("rotor_m", "rotor_lz", "rotor_Lxx", "rotor_Lzz") if s in shown_symbols]
    symbols += sorted({s for s in shown_symbols if s.startswith("rotor_")} - set(symbols))
    symbols += [s for s in DRIVE_SYMBOLS if s in shown_symbols]
    owners = parameter_owners(base.robot)
    return {s: [mark.get((owner, s), "") for owner in owners] for s in symbols}


def parameter_owners(robot: Robot) -> list[str]:
    """Bodies, then shared drives."""
    names = [b.name for b in robot.bodies]
    return names + [d.name for d in robot.drives if d.name not in names]


def symbol_table(base: IdentifiedParameters, without: IdentifiedParameters | None) -> str:
    """The paper's table of a robot.

    `without`: the same without gravity; where dimensions differ those of `base` are in parentheses.
    """
    rows = symbol_rows(base)
    names = parameter_owners(base.robot)
    lines = [["", *names], *([symbol, *cells] for symbol, cells in rows.items())]
    dimensions = span_dimensions(base)
    there = dimensions if without is None else span_dimensions(without)
    for label, here, other in zip(("dim V", "dim K", "dim T"), dimensions, there, strict=True):
        sizes = [str(a) if a == b else f"{b} ({a})" for a, b in zip(here, other, strict=True)]
        lines.append([label, *sizes, *[""] * (len(names) - len(sizes))])
    groups, room = list[list[int]](), 0  # of columns that fit beside the first
    for k in range(1, len(names) + 1):
        need = max(len(line[k]) for line in lines) + 2
        if not groups or room < need:
            groups.append([])
            room = TABLE_WIDTH - max(len(line[0]) for line in lines)
        groups[-1].append(k)
        room -= need
    parts = []
    for columns in groups:
        cells = [[line[0], *(line[k] for k in columns)] for line in lines]
        first, *others = (max(map(len, column)) for column in zip(*cells, strict=True))
        text = [
            "  ".join([head.ljust(first), *map(str.center, marks, others)]).rstrip()
            for head, *marks in cells
        ]
        text.insert(len(rows) + 1, "")
        parts.append("\n".join(text))
    return "\n\n".join([*parts, LEGEND])


def explain_parameter(base: IdentifiedParameters, name: str) -> str:
    """Explain what can be identified of one parameter, and which joint hides the rest.

    `name`: as printed, ``"forearm.m"`` or ``"m3"`` for a body called 3; ``"3.m"`` is fine too.
    Raises InputError: with the closest known name.
    """
    column = parameter_column(base.robot, name)
    label, status = parameter_label(base.robot.parameter_names[column]), base.status[column]
    if status == ALONE:
        return f"{label} is identifiable alone."
    if status == GIVEN:
        return f"{label} is no unknown: it is zero, known, or the same as another."
    combinations = np.sort(base.matrix[:, [column]].tocoo().row)
    if status == COMBINED and column in base.independent:
        r = int(combinations[0])
        return (
            f"{label} shows only in combination: it leads base parameter {r + 1}, "
            f"{base.expressions[r]}."
        )
    text = _explain_hidden_exchange(base, column)
    if status == NEVER:
        return f"{label} cannot be identified: {text}"
    numbers = ", ".join(str(r + 1) for r in combinations.tolist())
    plural = "s" if combinations.size > 1 else ""
    return f"{label} shows only in combination, in base parameter{plural} {numbers}: {text}"


def parameter_column(robot: Robot, name: str) -> int:
    """Column of a parameter by its printed name or ``body.symbol``; `InputError` otherwise."""
    names = robot.parameter_names
    columns = {parameter_label(n): k for k, n in enumerate(names)}
    columns |= {f"{body}.{symbol}": k for k, (body, symbol) in enumerate(names)}
    if name not in columns:
        hint = did_you_mean(name, columns)
        raise InputError(f"robot {robot.name!r} has no parameter {name!r}{hint}")
    return columns[name]


def _explain_hidden_exchange(base: IdentifiedParameters, column: int) -> str:
    """The joint that hides an exchange, what is exchanged, and the restriction that allows it."""
    robot, names = base.robot, base.robot.parameter_names
    body = names[column][0]
    owner = next((i for i, b in enumerate(robot.bodies) if b.name == body), None)
    if owner is None:
        return f"drive {body!r} moves joints that have drives of their own."
    joint, parent = robot.bodies[owner].joint, robot.bodies[owner].parent
    # The unidentifiable direction with one unit of the dependent parameter.
    vector = np.zeros(base.coefficients.echelon.run.robot.size)
    place = int(np.searchsorted(base.coefficients.dependent, column))
    vector[base.coefficients.independent] = -base.coefficients.kd[:, [place]].toarray()[:, 0]
    vector[column] = 1.0
    exchanged = [(k, v) for k, v in enumerate(vector.tolist()) if v and k != column]
    label = parameter_label(names[column])
    where = "the base, which does not move" if parent is None else f"body {parent!r}"
    if not exchanged and names[column][1] in DRIVE_SYMBOLS:
        run = base.coefficients.echelon.run
        term = TERMS.get(names[column][1])
        if run.static and term is not None and term.varies_with != "q":
            return f"it acts only while joint {joint!r} moves."
        return f"the torque of joint {joint!r} is not measured."
    restriction, p = "", robot.parents[owner]
    if p >= 0:  # fewer parameters matter than of a body that moves freely
        state = base.coefficients.echelon.run.joint_conditions[p].state
        rank = column_basis(state.velocities_and_gravity())[0].shape[1]
        if rank != 6:
            restriction = f" ({where} moves in {rank} of 6 directions only, gravity included)"
    if not exchanged:
        return f"joint {joint!r} does not feel it and passes it on to {where}{restriction}."
    return (
        f"joint {joint!r} hides an exchange with {where}: one unit of {label} together with "
        f"{format_combination(names, exchanged)} leaves every torque as it is{restriction}."
    )


def identifiability_map(rows: Mapping[str, Sequence[str]], owners: Sequence[str]) -> Chart:
    """The marks of `feasid.parameters.identifiability.views.symbol_rows` as a chart."""
    from feasid.core.charts import BLUE, CYAN, GREEN, GREY, Chart, Panel, Series

    marks, series = np.array([*rows.values()])[::-1], []
    for mark, label, color, shape in (
        ("★", "known alone", GREEN, "*"),
        ("●", "leading term of a combination", BLUE, "o"),
        ("○", "in combinations led by others", CYAN, "ring"),
        ("✕", "not at all", GREY, "x"),
        ("=", "given", GREY, "_"),
    ):
        y, x = np.nonzero(marks == mark)
        if len(x):
            series.append(Series(x, y, color, label, shape))
    unseen = int((marks == "✕").sum())
    return Chart(
        f"{marks.size - unseen} of {marks.size} parameters act on the torques",
        "what can be known of each parameter",
        [Panel(series, names=(owners, [*rows][::-1]))],
        columns=1,
        height=1.3 + 0.26 * len(rows),
        width=max(4.0, 1.6 + 0.42 * len(owners)),
    )


def as_dict(base: IdentifiedParameters) -> dict[str, Any]:
    """Everything that can be known, as plain data for JSON.

    ``combinations`` holds per base parameter its leading parameter, its expression and its
    coefficients [body, symbol, value] in SI units.
    """
    names = base.robot.parameter_names
    leads, rows = base.independent.tolist(), terms_by_row(base.matrix)
    combinations = [
        {
            "leads": list(names[lead]),
            "expression": expression,
            "coefficients": [[*names[c], value] for c, value in terms],
        }
        for lead, expression, terms in zip(leads, base.expressions, rows, strict=True)
    ]
    status = [[*n, s] for n, s in zip(names, base.status, strict=True)]
    return {
        "robot": base.robot.name,
        "base_parameters": base.size,
        "standard_parameters": base.robot.size,
        "combinations": combinations,
        "status": status,
        "rounded": [str(s) for s in base.roundings],
        "warnings": list(base.warnings),
        "check": {
            "residual": base.check.residual,
            "weakest": base.check.weakest,
            "seconds": base.check.seconds,
        },
    }


def as_csv(base: IdentifiedParameters) -> str:
    """One line per coefficient of K: number of the base parameter, body, symbol, value."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["base_parameter", "body", "symbol", "coefficient"])
    for k, row in enumerate(as_dict(base)["combinations"]):
        for body, symbol, value in row["coefficients"]:
            writer.writerow([k + 1, body, symbol, repr(value)])
    return text.getvalue()


def as_latex(base: IdentifiedParameters) -> str:
    """A table of the combinations, for booktabs."""
    lines = [r"\begin{tabular}{rl}", r"\toprule", r"& combination \\", r"\midrule"]
    for k, row in enumerate(as_dict(base)["combinations"]):
        text = ""
        for body, symbol, value in row["coefficients"]:
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            size = format_coefficient(value)
            mantissa, exponent, power = size.partition("e")
            number = f"{mantissa} \\cdot 10^{{{int(power)}}}" if exponent else mantissa
            factor = "" if size == "1" else f"{number}\\,"
            owner = body.replace("_", r"\_")
            owner = owner if body.isdecimal() else rf"\mathrm{{{owner}}}"
            letter, axes = symbol.removeprefix("rotor_")[0], symbol.removeprefix("rotor_")[1:]
            over = "^{r}" if symbol.startswith("rotor_") else ""
            text += f"{sign}{factor}{letter}{over}_{{{owner}{',' + axes if axes else ''}}}"
        lines.append(f"{k + 1} & ${text}$ \\\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
