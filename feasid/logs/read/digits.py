"""Decimals read to the nearest double by every pandas."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

EXACT_SINCE = (3, 1)
"""From this pandas on that is the default, and asking for it is deprecated."""


def exactly() -> dict[str, Any]:
    """Arguments of ``pandas.read_csv``; by default, older ones are 5e-13 off."""
    known = tuple(int(part) for part in version("pandas").split(".")[:2])
    return {} if known >= EXACT_SINCE else {"float_precision": "round_trip"}
