"""Forms of values that are more than a number: pairs, points, matrices, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from feasid.core.kinds import kind_by_test as form
from feasid.core.kinds import number

is_number = number().accepts
"""Whether a value is a finite real number."""


def _is_part(value: Any, name: str) -> bool:
    return hasattr(value, name) or (isinstance(value, Mapping) and name in value)


def arrays_to_lists(value: Any) -> Any:
    """Arrays as lists, everything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _are_all(values: Any, fits: Callable[[Any], bool]) -> bool:
    """Whether it is a sequence of which every item fits."""
    return isinstance(values, list | tuple) and all(map(fits, values))


def is_row(value: Any, length: int | None = None) -> bool:
    """Whether it is a sequence of so many finite numbers."""
    row = arrays_to_lists(value)
    return _are_all(row, is_number) and length in (None, len(row))


def is_table(value: Any, width: int | None = None) -> bool:
    """Whether it is a sequence of rows of one length."""
    rows = arrays_to_lists(value)
    if not isinstance(rows, list | tuple) or not rows:
        return False
    first = arrays_to_lists(rows[0])
    size = width or (len(first) if isinstance(first, list | tuple) else 0)
    return size > 0 and all(is_row(row, size) for row in rows)


def _is_bound(value: Any) -> bool:
    return value is None or is_number(value)


def _is_sequence(value: Any, *parts: Callable[[Any], bool]) -> bool:
    items = arrays_to_lists(value)
    return (
        isinstance(items, list | tuple)
        and len(items) == len(parts)
        and all(fits(item) for fits, item in zip(parts, items, strict=True))
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _are_names(value: Any) -> bool:
    return _are_all(value, _is_name) and bool(value)


def _are_intervals(value: Any) -> bool:
    items = arrays_to_lists(value)
    is_mask = _are_all(items, lambda x: isinstance(x, bool))
    return is_mask or _are_all(items, lambda x: is_row(x, 2))


def _is_point(value: Any) -> bool:
    return is_row(value, 3)


def _is_combination(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(map(is_number, value.values()))


def _is_known(value: Any) -> bool:
    row = arrays_to_lists(value)
    entries = isinstance(row, list | tuple) and len(row) == 10
    return is_number(row) or (entries and all(x is None or x != x or is_number(x) for x in row))


NUMBER = form("a number", is_number)
WIDTH = form("a number of at least 0", lambda v: is_number(v) and float(v) >= 0)
NAME = form("a name", _is_name)
NAMES = form("a sequence of names", _are_names)
TEXT = form("a name", lambda v: isinstance(v, str) and bool(v))
IMU = form("an Imu, or a mapping with its link", lambda v: _is_part(v, "link"))
TOUCH = form(
    "a link's name, a ContactSensor, or a mapping with its body",
    lambda v: _is_name(v) or _is_part(v, "body"),
)
COLUMN = form("a column's name", lambda v: isinstance(v, str | int))
UNIT = form("a unit or the factor to SI", lambda v: _is_name(v) or is_number(v))
BOUNDS = form("(lower, upper), None for no bound", lambda v: _is_sequence(v, _is_bound, _is_bound))
MASS = form("an upper bound or (lower, upper)", lambda v: is_number(v) or BOUNDS.accepts(v))
SUM = form("(bodies, lower, upper)", lambda v: _is_sequence(v, _are_names, _is_bound, _is_bound))
BOX = form("two corners of three numbers", lambda v: _is_sequence(v, _is_point, _is_point))
ELLIPSOID = form(
    "(centre, semi-axes)",
    lambda v: _is_sequence(v, _is_point, lambda axes: _is_point(axes) or
                           (is_table(axes, 3) and len(axes) == 3)),
)  # fmt: skip
CYLINDER = form("(start, end, radius)", lambda v: _is_sequence(v, _is_point, _is_point, is_number))
POINTS = form("points of three numbers", lambda v: is_table(v, 3))
LINEAR = form(
    "(coefficients by (body, symbol), lower, upper)",
    lambda v: _is_sequence(v, _is_combination, _is_bound, _is_bound),
)
PAIRS = form(
    "pairs of bodies", lambda v: _are_all(v, lambda pair: _is_sequence(pair, *[_is_name] * 2))
)
MIRRORS = form(
    "triples (body, body, axis)",
    lambda v: _are_all(v, lambda triple: _is_sequence(triple, *[_is_name] * 3)),
)
MATRIX = form("a matrix, or on the command line its file", lambda v: _is_name(v) or is_table(v))
ROWS = form(
    "a column, a mask of all rows, or intervals (start, end)",
    lambda v: _is_name(v) or _are_intervals(v),
)
WEIGHTS = form(
    "'noise', 'wls', a number per joint by name, or an array",
    lambda v: _is_name(v) or is_row(v) or (isinstance(v, Mapping) and _is_combination(v)),
)
KNOWN = form(
    "ten numbers, NaN where one is not known, or a number for one parameter such as 'rod.m'",
    _is_known,
)
FACTORS = form(
    "two or more joints with the factor of each, none of them zero",
    lambda v: _is_combination(v) and len(v) > 1 and all(v.values()),
)
ROW = form("a sequence of numbers", is_row)
PRIOR = form("the name of a prior or a feasid.Prior", lambda v: _is_name(v) or hasattr(v, "rows"))
SERVO = form("a servo, or a mapping with its gains kp by joint", lambda v: _is_part(v, "kp"))
TRUSTED = form("(kp, relative deviation)", lambda v: is_row(v, 2))
LOAD = form("a Payload or ten numbers", lambda v: is_row(v, 10) or hasattr(v, "parameters"))
MOMENTS = form(
    "a sequence of (joint, posture by joint, moment, deviation)",
    lambda v: _are_all(v, lambda m: _is_sequence(
        m, _is_name, lambda q: not q or _is_combination(q), is_number, is_number)),
)  # fmt: skip
GUESS = form("an array of ten numbers per body", lambda v: is_row(v) or is_table(v, 10))
FUNCTION = form("a function", callable)
SOLVER = form(
    "a solver's name",
    lambda v: _is_name(v) or hasattr(v, "solve_via_data") or _are_all(
        v, lambda way: isinstance(way, list | tuple) and len(way) == 3 and callable(way[2])),
)  # fmt: skip
