"""Values that stay with the object that they were computed of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")

NEWEST = 2
"""Values that stay: what a fit forms for its plain robot, and for that with what a search added."""


def compute_once(values: dict[Any, Any], key: Hashable, compute: Callable[[], Value]) -> Value:
    """The value with this key, computed if it is not there; the oldest ones go.

    Threads that share `values` may compute one twice, and get equal ones.
    """
    value: Value | None = values.get(key)
    if value is None:
        value = values[key] = compute()
        for old in [*values][:-NEWEST]:
            values.pop(old, None)
    return value
