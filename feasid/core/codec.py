"""Values as text and plain arrays, and back: one codec for everything that is saved.

A dataclass becomes its kind and its fields, an array the name of a member of the archive. On
the way back only registered kinds are made, each field must have the kind of its annotation, and
constructors check the rest. A file can name neither code nor other files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from feasid.core.arguments import UnfitError, require_kinds
from feasid.core.arrays import DamagedError
from feasid.core.errors import OutputError
from feasid.core.notes import Note

KIND = "is"  #: Key under which plain data name their kind.
TRANSIENT = {"transient": True}  #: Metadata of fields that are not saved; they have a default.
Kinds = Mapping[str, type]  #: Dataclasses that may be saved, by name.


def kinds(*classes: type) -> dict[str, type]:
    """A register of dataclasses."""
    return {c.__name__: c for c in classes}


def encode(value: Any, arrays: dict[str, Any], known: Kinds) -> Any:
    """A value in terms of JSON; arrays are added to `arrays`.

    Raises OutputError: a part is code, or of a kind that no file holds.
    """
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {KIND: "array", "name": name}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        if known.get(kind) is not type(value):
            name = getattr(value, "name", "")
            raise OutputError(f"a {kind}{f' ({name})' if name else ''} cannot be saved", kind=kind)
        parts = {f.name: getattr(value, f.name) for f in _saved_fields(type(value))}
        return {KIND: kind, "of": {k: encode(v, arrays, known) for k, v in parts.items()}}
    if isinstance(value, Mapping):
        items = [[encode(k, arrays, known), encode(v, arrays, known)] for k, v in value.items()]
        return {KIND: "mapping", "items": items}
    if isinstance(value, tuple | list | deque):
        return [encode(v, arrays, known) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    # A note is a text, too, and would lose its code below.
    if isinstance(value, Note):
        values = encode(value.values, arrays, known)
        return {KIND: "note", "text": str(value), "code": value.code, "values": values}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise OutputError(f"{type(value).__name__} {value!r} is code, which cannot be saved in a file")


def decode(data: Any, arrays: Mapping[str, Any], known: Kinds) -> Any:
    """The value that `encode` made plain.

    Raises DamagedError: the data are damaged, or of a later version.
    """
    # Results are frozen, so that every sequence of a file is a tuple.
    if isinstance(data, list):
        return tuple(decode(v, arrays, known) for v in data)
    if not isinstance(data, dict):
        return data
    kind = data.get(KIND)
    if kind == "array":
        name = data.get("name")
        if not isinstance(name, str) or name not in arrays:
            raise DamagedError(f"it lacks the array {name!r}")
        return arrays[name]
    if kind == "mapping":
        items = data.get("items")
        if not isinstance(items, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in items
        ):
            raise DamagedError("a mapping in it is damaged")
        try:
            return {decode(k, arrays, known): decode(v, arrays, known) for k, v in items}
        except TypeError as error:  # a key that is no key
            raise DamagedError(f"a mapping in it is damaged: {error}") from error
    if kind == "note":
        text, code = data.get("text"), data.get("code")
        values = decode(data.get("values"), arrays, known)
        named = isinstance(values, dict) and all(isinstance(k, str) for k in values)
        if not isinstance(text, str) or not isinstance(code, str) or not named:
            raise DamagedError("a note in it is damaged")
        return Note(text, code, **values)
    if not isinstance(kind, str) or kind not in known:
        raise DamagedError(f"it holds {kind!r}, which does not belong to it")
    parts = data.get("of")
    if not isinstance(parts, dict):
        raise DamagedError(f"a {known[kind].__name__} in it is damaged")
    return construct(known[kind], {key: decode(v, arrays, known) for key, v in parts.items()})


def construct(kind: type, values: Mapping[str, Any]) -> Any:
    """Build a dataclass from these fields, each of which must have the kind of its annotation.

    Raises DamagedError: one is missing, unknown, or something else.
    """
    saved = {f.name: f for f in _saved_fields(kind)}
    if unknown := sorted(set(values) - set(saved)):
        raise DamagedError(f"a {kind.__name__} in it has {unknown}, unknown here: update feasid")
    needed = {
        name for name, f in saved.items() if f.default is MISSING and f.default_factory is MISSING
    }
    if lacking := sorted(needed - set(values)):
        raise DamagedError(f"a {kind.__name__} in it lacks {lacking}")
    try:
        require_kinds(kind, values)
    except UnfitError as error:
        raise DamagedError(f"a {kind.__name__} in it is damaged: {error}") from None
    return kind(**values)


@cache
def _saved_fields(kind: type) -> tuple[Any, ...]:
    return tuple(f for f in fields(kind) if f.init and not f.metadata.get("transient"))
