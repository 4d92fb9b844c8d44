"""Values as text and plain arrays, and back: one codec for everything that is saved.

A dataclass becomes its kind and its fields, an array the name of an array that stands beside. On
the way back only registered kinds are made, each field must be what its annotation says, and a
constructor sees to the rest: a file can name neither code nor other files.
"""

from __future__ import annotations

import types
import typing
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import (
    AnnotationNames,
    UnfitError,
    UnimportedName,
    kind_from_annotation,
)
from feasid.core.arrays import DamagedError
from feasid.core.notes import Note
from feasid.errors import OutputError

KIND = "is"
"""Key under which plain data say what they are."""

TRANSIENT = {"transient": True}
"""Metadata of fields that are not saved; they have a default."""

ARRAYS = (np.ndarray, npt.NDArray)
"""How annotations speak of arrays: an alias of its own since NumPy 2.5."""

Kinds = Mapping[str, type]
"""Dataclasses that may be saved, by name."""


def kinds(*classes: type) -> dict[str, type]:
    """A register of dataclasses."""
    return {c.__name__: c for c in classes}


def encode(value: Any, arrays: dict[str, Any], known: Kinds) -> Any:
    """A value as what JSON can hold; arrays are added to `arrays`.

    Raises
    ------
    OutputError
        A part is code, or of a kind that no file holds.
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
    if isinstance(value, Note):
        values = encode(value.values, arrays, known)
        return {KIND: "note", "text": str(value), "code": value.code, "values": values}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise OutputError(f"{type(value).__name__} {value!r} is code, which no file holds")


def decode(data: Any, arrays: Mapping[str, Any], known: Kinds) -> Any:
    """The value that `encode` made plain.

    Raises
    ------
    DamagedError
        It is none, or of a later version.
    """
    if isinstance(data, list):
        return tuple(decode(v, arrays, known) for v in data)
    if not isinstance(data, dict):
        return data
    kind = data.get(KIND)
    if kind == "array":
        return _array(data, arrays)
    if kind == "mapping":
        return _mapping(data, arrays, known)
    if kind == "note":
        return _note(data, arrays, known)
    if not isinstance(kind, str) or kind not in known:
        raise DamagedError(f"it holds {kind!r}, which is no part of it")
    return _dataclass(known[kind], data.get("of"), arrays, known)


def _array(data: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    name = data.get("name")
    if not isinstance(name, str) or name not in arrays:
        raise DamagedError(f"it lacks the array {name!r}")
    return arrays[name]


def _mapping(data: Mapping[str, Any], arrays: Mapping[str, Any], known: Kinds) -> dict[Any, Any]:
    items = data.get("items")
    pairs = isinstance(items, list) and all(isinstance(p, list) and len(p) == 2 for p in items)
    if not pairs or not isinstance(items, list):
        raise DamagedError("a mapping in it is damaged")
    try:
        return {decode(k, arrays, known): decode(v, arrays, known) for k, v in items}
    except TypeError as error:  # a key that is no key
        raise DamagedError(f"a mapping in it is damaged: {error}") from error


def _note(data: Mapping[str, Any], arrays: Mapping[str, Any], known: Kinds) -> Note:
    text, code = data.get("text"), data.get("code")
    values = decode(data.get("values"), arrays, known)
    named = isinstance(values, dict) and all(isinstance(k, str) for k in values)
    if not isinstance(text, str) or not isinstance(code, str) or not named:
        raise DamagedError("a note in it is damaged")
    return Note(text, code, **values)


def _dataclass(kind: type, parts: Any, arrays: Mapping[str, Any], known: Kinds) -> Any:
    if not isinstance(parts, dict):
        raise DamagedError(f"a {kind.__name__} in it is damaged")
    return construct(kind, {name: decode(value, arrays, known) for name, value in parts.items()})


def construct(kind: type, values: Mapping[str, Any]) -> Any:
    """A dataclass of these fields, each of which must be what its annotation says.

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
    for name, value in values.items():
        if not fits(value, _hints(kind).get(name, Any)):
            shown = type(value).__name__
            raise DamagedError(f"the {name} of a {kind.__name__} in it is of type {shown}")
    return kind(**values)


@cache
def _saved_fields(kind: type) -> tuple[Any, ...]:
    return tuple(f for f in fields(kind) if f.init and not f.metadata.get("transient"))


@cache
def _hints(kind: type) -> dict[str, Any]:
    """What the annotations of a dataclass mean."""
    names = AnnotationNames(kind.__module__)
    texts = {f.name: f.type for f in fields(kind)}
    return {n: eval(t, {}, names) if isinstance(t, str) else t for n, t in texts.items()}


def fits(value: Any, hint: Any) -> bool:
    """Whether a decoded value is what an annotation says."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in inner)
    if origin is typing.Annotated:
        return fits(value, inner[0]) and _is_of_kind(value, hint)
    if origin is Literal:
        return value in inner
    if hint is None or hint is type(None):
        return value is None
    if isinstance(hint, UnimportedName):  # imported for type checkers only: known by its name
        return type(value).__name__ == hint.__name__
    if origin in ARRAYS or hint in ARRAYS:
        return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    if origin in (tuple, list, Sequence) or (origin is not None and issubclass(origin, Sequence)):
        return _fits_sequence(value, origin, inner)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _is_of_kind(value: Any, hint: Any) -> bool:
    """Whether a value has the range or shape that an annotation asks for."""
    try:
        kind_from_annotation(hint).convert(value)
    except UnfitError:
        return False
    return True


def _fits_sequence(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        return len(value) == len(inner) and all(map(fits, value, inner))
    return all(fits(v, inner[0]) for v in value)
