"""Arguments of public functions, checked against their annotations before the function runs.

``@checked`` on a function, or on a class for its constructor and public methods, reads the
annotations once, when the function is first called; `feasid.core.kinds` says what they mean. Texts
that are returned are harmless on a terminal: control characters are escaped.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from feasid.core.errors import FeasidError, InputError, LimitError, did_you_mean
from feasid.core.kinds import (
    ANYTHING,
    FLAG,
    MOST,
    AnnotationNames,
    ArgumentKind,
    Count,
    Matrix3,
    Measured,
    Natural,
    NonNegative,
    Numbers,
    Positive,
    Rate,
    Share,
    UnfitError,
    Vector,
    Vector3,
    array,
    as_numbers,
    count,
    describe_range,
    kind_from_annotation,
    number,
    one_per,
)
from feasid.core.text import escape_controls, quote

__all__ = [
    "FLAG", "MOST", "ArgumentKind", "Count", "Matrix3", "Measured",
    "Natural", "NonNegative", "Numbers", "Positive", "Rate", "Share", "UnfitError",
    "Vector", "Vector3", "array", "as_numbers", "checked", "checked_methods",
    "count", "describe_range", "kind_from_annotation", "number", "one_per",
    "require_kinds",
]  # fmt: skip

Item = TypeVar("Item")


# -- functions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ParameterKinds:
    """Kinds of a function's parameters."""

    function: str
    known: tuple[str, ...]  #: Names of all parameters; none of a function that takes any.
    places: tuple[str, ...]
    varargs: str
    kinds: Mapping[str, ArgumentKind]
    defaults: Mapping[str, Any]

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> _ParameterKinds:
        # Options by `Unpack` are checked by the tables that define them.
        hints = {
            name: hint
            for name, hint in function.__annotations__.items()
            if name != "return" and "Unpack[" not in str(hint)
        }
        kinds = {
            name: kind
            for name, kind in _kinds_of_hints(hints, function.__module__).items()
            if kind is not ANYTHING
        }
        inner = inspect.unwrap(function)
        spec = inspect.getfullargspec(inner)
        ends = spec.defaults or ()
        defaults = dict(zip(spec.args[len(spec.args) - len(ends) :], ends, strict=True))
        defaults |= spec.kwonlydefaults or {}
        any_name = inner.__code__.co_flags & inspect.CO_VARKEYWORDS
        # "self" makes it never empty, which would mean that any name is taken.
        known = () if any_name else (*spec.args, *spec.kwonlyargs, spec.varargs or "self")
        name = re.sub(r"\.__\w+__$", "", function.__qualname__)
        return cls(name, known, tuple(spec.args), spec.varargs or "", kinds, defaults)

    def convert_argument(self, name: str, value: Any) -> Any:
        if self.known and name not in self.known:
            listed = ", ".join(k for k in self.known if k not in ("self", "cls"))
            other = f", not {name!r}{did_you_mean(name, self.known)}" if name else " and no more"
            has = f"{listed}{other}" if listed else "no argument"
            raise InputError(f"{self.function} takes {has}", argument=name)
        # A default may be of another kind: None stands for what the function computes itself.
        if name not in self.kinds or (name in self.defaults and value is self.defaults[name]):
            return value
        return self.kinds[name].convert_argument(name, value)


def _kinds_of_hints(hints: Mapping[str, Any], module: str) -> dict[str, ArgumentKind]:
    """The kinds that annotations of a module mean."""
    names = AnnotationNames(module)
    return {
        name: kind_from_annotation(eval(hint, {}, names) if isinstance(hint, str) else hint)
        for name, hint in hints.items()
    }


def checked(item: Item) -> Item:
    """Check the arguments of a function, or of a class's constructor and public methods.

    Raises InputError: when called: names the argument, what was expected and what was given.
    """
    if not isinstance(item, type):
        return _check_function(item)  # type: ignore[no-any-return]
    for name in ("__new__", "__init__"):
        if name in vars(item):
            method = vars(item)[name]
            setattr(item, name, _check_function(getattr(method, "__func__", method)))
    return _check_methods(item)


def checked_methods(item: Item) -> Item:
    """Check the arguments of a class's public methods, and the fields of a dataclass.

    For results, which functions build: fields must be of the kind that their annotations say, but
    numbers may be missing, and nothing is converted.
    """
    if is_dataclass(item):
        kind: Any = item
        make, names = kind.__init__, [f.name for f in fields(kind) if f.init]

        @wraps(make)
        def run(self: Any, *args: Any, **given: Any) -> None:
            try:
                require_kinds(kind, dict(zip(names, args, strict=False)) | given)
            except UnfitError as error:
                raise InputError(f"a {kind.__name__} cannot have this: {error}") from None
            make(self, *args, **given)

        kind.__init__ = run
    return _check_methods(item)


def _check_methods(item: Item) -> Item:
    for name, member in list(vars(item).items()):
        if name.startswith("_") and name not in ("__call__", "__repr__", "__str__"):
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(item, name, type(member)(_check_function(member.__func__)))
        elif isinstance(member, types.FunctionType):
            setattr(item, name, _check_function(member))
    return item


def _check_function(function: Any) -> Any:
    plan: _ParameterKinds | None = None
    returns_text = function.__annotations__.get("return") == "str"

    @wraps(function)
    def run(*args: Any, **given: Any) -> Any:
        nonlocal plan
        plan = plan or _ParameterKinds.from_function(function)
        named = {name: plan.convert_argument(name, value) for name, value in given.items()}
        try:
            names = [*plan.places, *[plan.varargs] * (len(args) - len(plan.places))]
            result = function(
                *[plan.convert_argument(n, v) for n, v in zip(names, args, strict=False)], **named
            )
        except MemoryError as error:
            raise LimitError(
                f"{plan.function} needs more memory than there is: {error}; "
                "give it less data at a time"
            ) from error
        return escape_controls(result) if returns_text and type(result) is str else result

    return run


# -- fields ---------------------------------------------------------------------------------------


_last_tuples = dict[tuple[type, str], tuple[Any, ...]]()
"""The tuple that a field of a dataclass had last."""


def require_kinds(kind: type, values: Mapping[str, Any]) -> None:
    """Raise UnfitError where a value does not have the type of its field's annotation."""
    sizes = dict[str, int]()
    for name, expected in _field_kinds(kind).items():
        if name not in values:
            continue
        # `replace` of one field passes long tuples on, which have been looked at.
        is_tuple = type(value := values[name]) is tuple
        if not ((is_tuple and _last_tuples.get((kind, name)) is value) or expected.holds(value)):
            raise UnfitError(f"{name} must be {expected.text}, not {quote(value)}")
        if is_tuple:
            _last_tuples[kind, name] = value
        if not expected.shape:
            continue
        shape = np.shape(value)[: len(expected.shape)]
        for word, size in zip(map(str, expected.shape), shape, strict=True):
            if len(word) > 1 and sizes.setdefault(word, size) != size:
                raise UnfitError(f"{name} is for {size} {word}, not for {sizes[word]}")


@cache
def _field_kinds(kind: type) -> dict[str, ArgumentKind]:
    return _kinds_of_hints({field.name: field.type for field in fields(kind)}, kind.__module__)


def call_user_function(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that a user gave; what it raises becomes an `InputError` that names it."""
    try:
        return function(*arguments)
    except FeasidError:
        raise
    except Exception as error:
        raise InputError(f"{what} raised {type(error).__name__}: {error}") from error
