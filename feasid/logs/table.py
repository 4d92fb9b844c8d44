"""Tables as people have them, whatever carried them: columns by plain names and in SI units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.errors import LogError
from feasid.core.notes import Note
from feasid.logs import units as si
from feasid.logs.lerobot import EncoderScale, name_lists

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN_UNITS = "unknown-units"
"""Code of the note that lists columns whose unit in the header is not known."""

HEADER_UNITS = "units"
"""Attribute of a table: the unit in each column's header, if it was converted to SI."""

LIST = re.compile(r"\s*[\[(][-+.\deE,\s]+[\])]\s*")  #: Numbers in brackets.

LONGEST_LIST = 256
"""Numbers of a list that become columns; longer ones are pictures or points, and left out."""

LISTED = 8  #: Names of columns in a note.

NANOSECOND = 1e-9

FINE_CLOCK = 1e6  #: Seconds beyond which a number of them holds no tenth of a nanosecond.


def standard_table(
    df: pd.DataFrame,
    joints: Sequence[str] = (),
    *,
    padded: bool = True,
    scales: Mapping[str, EncoderScale] | None = None,
) -> pd.DataFrame:
    """A table with every list as columns, units out of the headers, and numbers in SI.

    Applied to its own result it changes nothing; the table that is given is not changed.

    `df`: ``q_j1 [deg]``, ``q_j1 (deg)`` and ``q_j1_deg`` become ``q_j1``; `joints`: those of the
    robot: their names hold no units, and units of one letter after an underscore are recognised;
    `padded`: whether rows without any cell at the end are padding, and left out; `scales`: those
    of a LeRobot dataset, as other rows of it said them. ``attrs["notes"]`` lists what was
    converted, ``attrs["units"]`` the unit before, by column.
    """
    attrs = {**df.attrs}
    notes = [*attrs.pop("notes", ())]
    units = {**attrs.pop(HEADER_UNITS, {})}
    table = df.copy(deep=False)
    table.attrs = {}
    # Columns whose cells are short lists of numbers, as one column for each number.
    import pandas as pd

    parts: list[Any] = []
    for k, name in enumerate(table.columns):
        column = table.iloc[:, k]
        texts = not pd.api.types.is_numeric_dtype(column)
        spread = len(column) and texts and name not in ("t", "run")
        first = column.iloc[0] if spread else None
        if isinstance(first, str) and LIST.fullmatch(first):  # a list in a cell of a text file
            column = column.map(_numbers_of_cell)
            first = column.iloc[0]
        if not isinstance(first, list | tuple | np.ndarray) or not np.size(first) > 0:
            parts.append(column)
            continue
        if np.ndim(first) != 1 or len(first) > LONGEST_LIST:
            continue
        rows = _stack_lists(column, len(first))
        labels = [f"{name}_{n + 1}" for n in range(rows.shape[1])]
        parts.append(pd.DataFrame(rows, index=table.index, columns=labels))
    if not all(isinstance(p, pd.Series) for p in parts) or len(parts) != table.shape[1]:
        table = pd.concat(parts, axis="columns")
    table, remarks = name_lists(table, scales)
    notes += remarks
    if padded and len(table) and table.iloc[-1].isna().all():
        filled = np.flatnonzero(table.notna().to_numpy().any(axis=1))
        last = int(filled[-1]) + 1 if filled.size else 0
        text = f"{len(table) - last} row(s) at the end are empty and left out"
        notes.append(Note(text, "padding", rows=len(table) - last))
        table = table.iloc[:last]
    names, written = _split_headers(table, joints)
    table = table.set_axis(names, axis="columns")
    table, remarks = _convert_to_si(table, written, units)
    notes += remarks
    same = table.shape == df.shape and [*table.columns] == [*df.columns]
    if same and len(notes) == len(df.attrs.get("notes", ())):
        return df
    table.attrs = {**attrs, "notes": tuple(dict.fromkeys(notes)), HEADER_UNITS: units}
    return table


def plain_header(name: Any, joints: Sequence[str] = ()) -> Any:
    """Name that a column has in a standard table."""
    return si.split_header(name, joints)[0] if isinstance(name, str) else name


def join_header_units(tables: Sequence[pd.DataFrame], labels: Sequence[str]) -> dict[str, str]:
    """Units of the headers of tables that become one; of a column with several, all of them."""
    read = [table.attrs.get(HEADER_UNITS, {}) for table in tables]
    joined = {}
    for column in dict.fromkeys(c for units in read for c in units):
        units_as_text = [units.get(column, "no unit") for units in read]
        places = (f"{unit} in {label}" for unit, label in zip(units_as_text, labels, strict=True))
        joined[column] = units_as_text[0] if len({*units_as_text}) == 1 else ", ".join(places)
    return joined


def header_with_unit(name: str, unit: str) -> str:
    """A column's name with a unit that was written elsewhere."""
    return name if unit.strip() in si.NO_UNIT else f"{name} [{unit}]"


def _numbers_of_cell(cell: Any) -> Any:
    """The numbers of a list that is written in a cell; other cells as they are."""
    try:
        return [*map(float, cell.strip(" []()").replace(",", " ").split())]
    except (AttributeError, ValueError):
        return cell


def _stack_lists(column: pd.Series[Any], length: int) -> Any:
    """A column of lists of one length as an array, shape (rows, length)."""
    wrong = [k for k, cell in enumerate(column) if np.shape(cell) != (length,)]
    if wrong:
        shape = np.shape(column.iloc[wrong[0]])
        raise LogError(
            f"column {column.name!r} holds lists of {length} numbers, but in row {wrong[0]} "
            f"{f'one of {shape[0]}' if shape else 'none'} ({len(wrong)} such row(s)); leave these "
            "rows out",
            column=column.name,
            row=wrong[0],
        )
    try:
        return np.array([*column], dtype=np.float64)
    except (TypeError, ValueError):
        raise LogError(f"column {column.name!r} holds lists of something else than numbers",
                       column=column.name) from None  # fmt: skip


def _split_headers(df: pd.DataFrame, joints: Sequence[str]) -> tuple[list[Any], dict[Any, str]]:
    """Plain names of all columns, and the units written in the headers by plain name."""
    columns = {*df.columns}
    # Brackets behind a name that is looked for hold a unit even if nobody knows it.
    ends = [*joints, *range(len(joints) + 1)] if joints else []
    kinds = (*si.KINDS, si.COMMAND, si.TEMPERATURE, "T")
    expected = {*si.TIMES, *(f"{kind}_{end}" for kind in kinds for end in ends)}
    names, units = [], {}
    for name in df.columns:
        stem, written = si.split_header(name, joints) if isinstance(name, str) else (name, "")
        known = si.standard_unit_spelling(written) in si.KNOWN_UNITS or stem in expected
        split = stem != name and (known or written in si.NO_UNIT)
        if split and stem not in columns and stem not in units:
            names.append(stem)
            units[stem] = written
        else:
            names.append(name)
    return names, units


def _convert_to_si(
    df: pd.DataFrame, written: Mapping[Any, str], units: dict[str, str]
) -> tuple[pd.DataFrame, list[Note]]:
    """Convert columns of known units to SI and add the units to `units`; returns notes."""
    import pandas as pd

    converted: dict[str, list[str]] = {}
    changed: dict[Any, Any] = {}
    unknown = {}
    for name, unit in written.items():
        spelt = si.standard_unit_spelling(unit)
        if unit in si.NO_UNIT:
            continue
        if spelt not in si.KNOWN_UNITS:
            unknown[str(name)] = unit
            continue
        units[name] = unit
        factor = si.KNOWN_UNITS[spelt]
        if factor == 1.0 or not pd.api.types.is_numeric_dtype(df[name].dtype):
            continue
        # Large stamps stay differences of time, which a number of seconds would round.
        column = df[name]
        late = spelt in si.UNITS["t"] and pd.api.types.is_integer_dtype(column.dtype)
        ticks = late and len(column) and not column.isna().any()
        if ticks and abs(int(column.iloc[0])) * factor > FINE_CLOCK:
            stamps = column.to_numpy() * round(factor / NANOSECOND)
            changed[name] = pd.to_timedelta(stamps, unit="ns")
        else:
            changed[name] = column * factor
        converted.setdefault(unit, []).append(name)
    notes = []
    for unit, names in converted.items():
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        listed = f"{', '.join(map(repr, names[:LISTED]))}{more}"
        text = f"column{'s' * (len(names) > 1)} {listed} converted from {unit} to SI"
        notes.append(Note(text, "converted", columns=names, unit=unit))
    if unknown:
        listed = ", ".join(f"{name} [{unit}]" for name, unit in unknown.items())
        notes.append(Note(f"units not converted: {listed}", UNKNOWN_UNITS, units=unknown))
    if changed:
        is_changed = df.columns.isin([*changed])
        df = pd.concat([df.loc[:, ~is_changed], pd.DataFrame(changed, df.index)], axis="columns")
        # Back to their places, from behind the others.
        df = df.iloc[:, np.argsort(np.argsort(is_changed, kind="stable"))]
    return df, notes
