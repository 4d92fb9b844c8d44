"""What the parts of an online fit have learnt: each lists it, with its kinds, in `learnt`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from copy import deepcopy
from types import GenericAlias
from typing import Annotated, Any

from feasid.core.arguments import UnfitError, array, kind_from_annotation, number
from feasid.core.arrays import Array, DamagedError

Kinds = dict[str, Any]
"""Annotations of attributes, by name."""

Time = Annotated[float, number(finite=False)]


def real(*shape: int | str, finite: bool = True) -> Any:
    """The kind of an array of this shape."""
    return Annotated[Array, array(*shape, finite=finite)]


def several(*kinds: Any) -> Any:
    """The kind of a tuple of these, known only when the program runs."""
    return GenericAlias(tuple, kinds)


def state_of(part: Any) -> dict[str, Any]:
    """What a part has learnt."""
    return {name: deepcopy(getattr(part, name)) for name in part.learnt()}


def restore_part(part: Any, values: Mapping[str, Any]) -> None:
    """Give a part what another one had learnt."""
    expected = part.learnt()
    if set(values) != set(expected):
        raise DamagedError(f"it holds {sorted(values)} in place of {sorted(expected)}")
    for name, hint in expected.items():
        kind, before = kind_from_annotation(hint), getattr(part, name)
        try:
            value = deepcopy(kind.convert(values[name]))
        except UnfitError as error:
            raise DamagedError(f"its {name} is not {kind.text} {error}") from error
        if isinstance(before, deque):
            value = deque(value, maxlen=before.maxlen)
        elif isinstance(before, list) and len(value) != len(before):
            raise DamagedError(f"it holds {len(value)} parts, not {len(before)}")
        elif isinstance(before, list | Counter):
            value = type(before)(value)
        setattr(part, name, value)
