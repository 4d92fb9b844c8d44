"""What can be known of each parameter, as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feasid.errors import InputError, did_you_mean
from feasid.identifiability.expressions import parameter_label, sum_of
from feasid.identifiability.spectral import span
from feasid.robot.description import Robot
from feasid.robot.inertia import RPNA, SYMBOLS
from feasid.robot.joint_terms import DRIVE_SYMBOLS, TERMS

if TYPE_CHECKING:
    from feasid.identifiability.base import BaseParameters

ALONE, COMBINED, NEVER, GIVEN = "alone", "combined", "not at all", "given"
"""What can be known of a parameter: its value, sums it is part of, nothing; or it is given."""

MARKS = {ALONE: "★", NEVER: "✕", GIVEN: "="}
LEADING, FOLLOWING = "●", "○"

NOTES = 4
"""Roundings that are spelled out in a sentence."""

ROWS = tuple(SYMBOLS[k] for k in RPNA)
"""Symbols in the order of the tables of Wensing et al. (2024)."""

LEGEND = (
    "★ identifiable alone   ● in combination, leads a base parameter   "
    "○ in combination\n✕ not at all   = no unknown"
)

WIDTH = 96
"""Characters after which a table goes on below."""


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the spans at each body.

    ``motion`` of the velocities it can attain (V), ``parameters`` of the combinations that
    its joints feel (K), ``transfers`` of the exchanges with its parent that nothing shows (T).
    """

    motion: tuple[int, ...]
    parameters: tuple[int, ...]
    transfers: tuple[int, ...]


def dimensions(base: BaseParameters) -> Dimensions:
    """Dimensions for one run, gravity counted as a velocity as in the paper's algorithm."""
    run = base.coefficients.echelon.run
    states = [local.state for local in run.run]
    return Dimensions(
        tuple(span(s.directions())[0].shape[1] for s in states),
        tuple(s.firm.shape[1] for s in states),
        tuple(block.dependent.size for block in base.coefficients.blocks),
    )


def symbol_rows(base: BaseParameters) -> dict[str, list[str]]:
    """Marks per symbol and body: the cells of Tables 2, 4 and 5 of Wensing et al. (2024)."""
    mark = {}
    leading = set(base.independent.tolist())
    for column, (name, status) in enumerate(
        zip(base.robot.parameter_names, base.status, strict=True)
    ):
        mark[name] = MARKS.get(status, LEADING if column in leading else FOLLOWING)
    symbols = [*ROWS]
    used = {symbol for _, symbol in mark}
    symbols += [s for s in ("rotor_m", "rotor_lz", "rotor_Lxx", "rotor_Lzz") if s in used]
    symbols += sorted({s for s in used if s.startswith("rotor_")} - set(symbols))
    symbols += [s for s in DRIVE_SYMBOLS if s in used]
    return {s: [mark.get((owner, s), "") for owner in owners(base.robot)] for s in symbols}


def owners(robot: Robot) -> list[str]:
    """Bodies, then drives that are no body's own."""
    names = [b.name for b in robot.bodies]
    return names + [d.name for d in robot.drives if d.name not in names]


def symbol_table(base: BaseParameters, without: BaseParameters | None) -> str:
    """The paper's table of a robot.

    Parameters
    ----------
    base : BaseParameters
    without : BaseParameters or None
        The same without gravity; where dimensions differ those of `base` are in parentheses.
    """
    rows = symbol_rows(base)
    names = owners(base.robot)
    lines = [["", *names]]
    lines += [[symbol, *cells] for symbol, cells in rows.items()]
    lines += _dimension_lines(base, without, len(names))
    parts = [_part(lines, some, len(rows)) for some in _columns(lines, WIDTH)]
    return "\n\n".join([*parts, LEGEND])


def _columns(lines: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """Columns of a table in groups that fit into `width` characters beside the first."""
    out: list[list[int]] = []
    room = 0
    head = max(len(line[0]) for line in lines)
    for k in range(1, len(lines[0])):
        need = max(len(line[k]) for line in lines) + 2
        if not out or room < need:
            out.append([])
            room = width - head
        out[-1].append(k)
        room -= need
    return out


def _part(lines: Sequence[Sequence[str]], columns: Sequence[int], marks: int) -> str:
    """Some columns of the table; an empty line between marks and dimensions."""
    chosen = [[line[0], *(line[k] for k in columns)] for line in lines]
    widths = [max(len(line[k]) for line in chosen) for k in range(len(columns) + 1)]
    text = [_aligned(line, widths) for line in chosen]
    text.insert(marks + 1, "")
    return "\n".join(text)


def _dimension_lines(
    base: BaseParameters, without: BaseParameters | None, columns: int
) -> list[list[str]]:
    here = dimensions(base)
    there = here if without is None else dimensions(without)
    pairs = (
        ("dim V", here.motion, there.motion),
        ("dim K", here.parameters, there.parameters),
        ("dim T", here.transfers, there.transfers),
    )
    out = []
    for label, own, other in pairs:
        cells = [str(a) if a == b else f"{b} ({a})" for a, b in zip(own, other, strict=True)]
        out.append([label, *cells, *[""] * (columns - len(cells))])
    return out


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    head = cells[0].ljust(widths[0])
    rest = [c.center(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
    return "  ".join([head, *rest]).rstrip()


def explained(base: BaseParameters, name: str) -> str:
    """What can be known of one parameter, and which joint hides the rest.

    Parameters
    ----------
    base : BaseParameters
    name : str
        As printed, ``"forearm.m"`` or ``"m3"`` for a body called 3; ``"3.m"`` is fine too.

    Raises
    ------
    InputError
        With the closest known name.
    """
    names = base.robot.parameter_names
    column = parameter_column(base.robot, name)
    label, status = parameter_label(names[column]), base.status[column]
    if status == ALONE:
        return f"{label} is identifiable alone."
    if status == GIVEN:
        return f"{label} is no unknown: it is zero, known, or the same as another."
    used = np.sort(base.matrix[:, [column]].tocoo().row)
    if status == COMBINED and column in base.independent:
        r = int(used[0])
        return (
            f"{label} shows only in combination: it leads base parameter {r + 1}, "
            f"{base.expressions[r]}."
        )
    text = _exchange(base, column)
    if status == NEVER:
        return f"{label} cannot be identified: {text}"
    numbers = ", ".join(str(r + 1) for r in used.tolist())
    plural = "s" if used.size > 1 else ""
    return f"{label} shows only in combination, in base parameter{plural} {numbers}: {text}"


def parameter_column(robot: Robot, name: str) -> int:
    """Column of a parameter by its printed name or ``body.symbol``; `InputError` otherwise."""
    names = robot.parameter_names
    known = {parameter_label(n): k for k, n in enumerate(names)}
    known |= {f"{body}.{symbol}": k for k, (body, symbol) in enumerate(names)}
    if name not in known:
        hint = did_you_mean(name, known)
        raise InputError(f"robot {robot.name!r} has no parameter {name!r}{hint}")
    return known[name]


def _exchange(base: BaseParameters, column: int) -> str:
    """Which joint hides an exchange, what is exchanged, and which restriction lets it."""
    robot, names = base.robot, base.robot.parameter_names
    body = names[column][0]
    owner = next((i for i, b in enumerate(robot.bodies) if b.name == body), None)
    if owner is None:
        return f"drive {body!r} moves joints that have drives of their own."
    joint, parent = robot.bodies[owner].joint, robot.bodies[owner].parent
    vector = base.coefficients.null_vector(column)
    others = [(k, v) for k, v in enumerate(vector.tolist()) if v and k != column]
    label = parameter_label(names[column])
    where = "the base, which does not move" if parent is None else f"body {parent!r}"
    if not others and names[column][1] in DRIVE_SYMBOLS:
        run = base.coefficients.echelon.run
        term = TERMS.get(names[column][1])
        if run.static and term is not None and term.varies_with != "q":
            return f"it acts only while joint {joint!r} moves."
        return f"the torque of joint {joint!r} is not measured."
    if not others:
        text = f"joint {joint!r} does not feel it and hands it on to {where}"
    else:
        along = sum_of(names, others)
        text = (
            f"joint {joint!r} hides an exchange with {where}: one unit of {label} together with "
            f"{along} leaves every torque as it is"
        )
    restriction = _restriction(base, owner)
    return f"{text}{restriction}."


def _restriction(base: BaseParameters, owner: int) -> str:
    """Why fewer effects are felt at a body than at one that moves freely."""
    parent = base.robot.parents[owner]
    if parent < 0:
        return ""
    run = base.coefficients.echelon.run
    rank = span(run.run[parent].state.directions())[0].shape[1]
    if rank == 6:
        return ""
    name = base.robot.bodies[parent].name
    return f" (body {name!r} moves in {rank} of 6 directions only, gravity included)"


def rounding_told(base: BaseParameters) -> str:
    """What was taken for exact, and what the numbers give when taken literally."""
    if not base.snapped:
        return "no rounding in the description"
    decide = base.deciding or base.snapped
    shown = [str(s) for s in decide[:NOTES]]
    if len(decide) > NOTES:
        shown.append(f"and {len(decide) - NOTES} more")
    text = "; ".join(shown)
    if base.deciding:
        others = len(base.snapped) - len(base.deciding)
        text += f" (decisive; {others} other roundings are not)" if others else " (decisive)"
    if not base.deciding:
        return f"{text}: no count depends on it"
    return f"{text}: {base.literal.size} base parameters when taken literally, {base.size} exact"
