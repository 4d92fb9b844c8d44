"""Base parameters as sums a person can read: ``L1yy + Ia1 + L2zz``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

DIGITS = 12
"""Significant digits of a printed coefficient; what is further away is rounding."""

Name = tuple[str, str]


def parameter_label(name: Name) -> str:
    """Name of one parameter: ``L1yy``, ``l3x``, ``m4``, ``fv1`` for numbered bodies, as in the
    tables of Sousa and Cortesao (2014); ``forearm.Lyy`` for named ones.
    """
    body, symbol = name
    if not body.isdecimal():
        return f"{body}.{symbol}"
    prefix = ""
    if symbol.startswith("rotor_"):
        prefix, symbol = "rotor_", symbol.removeprefix("rotor_")
    if symbol[0] in "Ll":
        return f"{prefix}{symbol[0]}{body}{symbol[1:]}"
    return f"{prefix}{symbol}{body}"


def number(value: float) -> str:
    """A coefficient's size with up to 12 digits: ``0.300475``."""
    return f"{abs(value):.{DIGITS}g}"


def sum_of(names: Sequence[Name], terms: Iterable[tuple[int, float]]) -> str:
    """A linear combination as text.

    Parameters
    ----------
    names : sequence of (body, symbol)
    terms : iterable of (column, coefficient)
        In the order in which they are to be read. Terms of one symbol with equal coefficients
        other than +-1 are grouped at the place of their first.
    """
    groups: dict[tuple[str, str, bool], list[int]] = {}
    for column, value in terms:
        key = (names[column][1], number(value), value < 0)
        if key[1] == "1":
            key = (str(column), "1", value < 0)
        groups.setdefault(key, []).append(column)
    text = ""
    for (_, size, negative), columns in groups.items():
        labels = [parameter_label(names[c]) for c in columns]
        inner = " + ".join(labels)
        if size != "1":
            inner = f"{size} ({inner})" if len(labels) > 1 else f"{size} {inner}"
        if not text:
            text = f"-{inner}" if negative else inner
        else:
            text += f" - {inner}" if negative else f" + {inner}"
    return text or "0"
