"""Arguments of public functions, checked against their annotations before the function runs.

``@checked`` on a function, or on a class for its constructor and public methods, reads the
annotations once, when the function is first called; `feasid.core.kinds` says what they mean. Texts
that are returned are harmless on a terminal: control characters are escaped.
"""

from __future__ import annotations

import collections.abc as abc
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial, wraps
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import numpy as np

from feasid.core.kinds import (
    ANYTHING,
    ARRAYS,
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
    UnimportedName,
    Vector,
    Vector3,
    array,
    as_numbers,
    count,
    describe_range,
    is_flag,
    kind_from_annotation,
    number,
    one_per,
)
from feasid.core.text import escape_controls, quote
from feasid.errors import FeasidError, InputError

__all__ = [
    "ARRAYS", "FLAG", "MOST", "AnnotationNames", "ArgumentKind", "Count", "Matrix3", "Measured",
    "Natural", "NonNegative", "Numbers", "Positive", "Rate", "Share", "UnfitError",
    "UnimportedName", "Vector", "Vector3", "array", "as_numbers", "checked", "checked_methods",
    "count", "describe_range", "is_flag", "kind_from_annotation", "number", "one_per",
    "require_kinds",
]  # fmt: skip

Item = TypeVar("Item")
Test: TypeAlias = Callable[[Any], bool]


# -- functions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ParameterKinds:
    """Kinds of a function's parameters."""

    places: tuple[str, ...]
    rest: str
    kinds: Mapping[str, ArgumentKind]
    defaults: Mapping[str, Any]

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> _ParameterKinds:
        signature = inspect.signature(function, follow_wrapped=False)
        names = AnnotationNames(function.__module__)
        hints = function.__annotations__
        kinds = {}
        for name, hint in hints.items():
            if name == "return" or "Unpack[" in str(hint):
                continue
            kind = kind_from_annotation(eval(hint, {}, names) if isinstance(hint, str) else hint)
            if kind is not ANYTHING:
                kinds[name] = kind
        real = inspect.Parameter
        code = function.__code__
        places = code.co_varnames[: code.co_argcount]
        variadic = next(
            (n for n, p in signature.parameters.items() if p.kind is real.VAR_POSITIONAL), ""
        )
        defaults = {
            n: p.default for n, p in signature.parameters.items() if p.default is not p.empty
        }
        return cls(places, variadic, kinds, defaults)

    def convert_argument(self, name: str, value: Any) -> Any:
        if name not in self.kinds or (name in self.defaults and value is self.defaults[name]):
            return value
        return self.kinds[name].convert_argument(name, value)

    def convert_all(self, values: tuple[Any, ...]) -> list[Any]:
        names = [*self.places, *[self.rest] * (len(values) - len(self.places))]
        return [self.convert_argument(n, v) for n, v in zip(names, values, strict=False)]


def checked(item: Item) -> Item:
    """Check the arguments of a function, or of a class's constructor and public methods.

    Raises InputError: when called: names the argument, what was expected and what was given.
    """
    return _check_class(item) if isinstance(item, type) else _check_function(item)  # type: ignore


def checked_methods(item: Item) -> Item:
    """Check the arguments of a class's public methods, and the fields of a dataclass.

    For results, which functions build: fields must be of the kind that their annotations say, but
    numbers may be missing, and nothing is converted.
    """
    if is_dataclass(item):
        _check_fields(item)
    return _check_methods(item)


def _check_methods(item: Item) -> Item:
    for name, member in list(vars(item).items()):
        if name.startswith("_") and name not in ("__repr__", "__str__"):
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(item, name, type(member)(_check_function(member.__func__)))
        elif isinstance(member, types.FunctionType):
            setattr(item, name, _check_function(member))
    return item


def _check_class(item: Any) -> Any:
    for name in ("__new__", "__init__"):
        if name in vars(item):
            own = vars(item)[name]
            setattr(item, name, _check_function(getattr(own, "__func__", own)))
    return _check_methods(item)


def _check_function(function: Any) -> Any:
    plan: _ParameterKinds | None = None
    returns_text = function.__annotations__.get("return") == "str"

    @wraps(function)
    def run(*args: Any, **given: Any) -> Any:
        nonlocal plan
        plan = plan or _ParameterKinds.from_function(function)
        taken = {name: plan.convert_argument(name, value) for name, value in given.items()}
        result = function(*plan.convert_all(args), **taken)
        return escape_controls(result) if returns_text and type(result) is str else result

    return run


# -- fields ---------------------------------------------------------------------------------------


def _check_fields(kind: Any) -> None:
    """Make the constructor of a dataclass reject values that are not of a field's kind."""
    make, names = kind.__init__, [f.name for f in fields(kind) if f.init]

    @wraps(make)
    def run(self: Any, *args: Any, **given: Any) -> None:
        try:
            require_kinds(kind, dict(zip(names, args, strict=False)) | given)
        except UnfitError as error:
            raise InputError(f"a {kind.__name__} cannot have this: {error}") from None
        make(self, *args, **given)

    kind.__init__ = run


def require_kinds(kind: type, values: Mapping[str, Any]) -> None:
    """Raise UnfitError where a value does not have the type of its field's annotation."""
    sizes = dict[str, int]()
    for name, (hint, test) in _field_tests(kind).items():
        if name not in values:
            continue
        if not test(value := values[name]):
            expected = kind_from_annotation(hint).text
            raise UnfitError(f"{name} must be {expected}, not {quote(value)}")
        for word, size in _sizes(value, hint):
            if sizes.setdefault(word, size) != size:
                raise UnfitError(f"{name} is for {size} {word}, not for {sizes[word]}")


def _sizes(value: Any, hint: Any) -> list[tuple[str, int]]:
    """Sizes that the shape of a value gives to the words in its annotation."""
    kind = next((k for k in getattr(hint, "__metadata__", ()) if isinstance(k, ArgumentKind)), None)
    if kind is None or not kind.shape:
        return []
    shape = value.shape if isinstance(value, np.ndarray) else (len(value),)
    return [(str(w), n) for w, n in zip(kind.shape, shape, strict=True) if len(str(w)) > 1]


@cache
def _field_tests(kind: type) -> dict[str, tuple[Any, Test]]:
    """What the annotations of a dataclass mean, and whether a value is of that kind."""
    names, tests = AnnotationNames(kind.__module__), {}
    for field in fields(kind):
        hint = eval(field.type, {}, names) if isinstance(field.type, str) else field.type
        tests[field.name] = hint, _test_from_annotation(hint)
    return tests


def _test_from_annotation(hint: Any) -> Test:
    """Whether a value is of the kind that an annotation says, without converting it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return lambda value: True
    if origin in (Union, types.UnionType):
        parts = [_test_from_annotation(part) for part in inner]
        return lambda value: any(test(value) for test in parts)
    if origin is Annotated:
        test = _test_from_annotation(inner[0])
        return lambda value: test(value) and _is_of_kind(value, hint)
    if origin is Literal:
        return partial(_is_of_kind, hint=hint)
    if hint is None or hint is types.NoneType:
        return lambda value: value is None
    if isinstance(hint, UnimportedName):  # imported for type checkers only: known by its name
        return lambda value: any(k.__name__ == hint.__name__ for k in type(value).__mro__)
    if origin in ARRAYS or hint in ARRAYS:
        return _is_plain_array
    if hint in (int, float):
        return partial(_is_number, real=hint is float)
    container = origin or hint
    if not isinstance(container, type):
        return lambda value: True
    if inner and issubclass(container, Mapping):
        key, item = map(_test_from_annotation, inner)
        return lambda value: (
            isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
        )
    if inner and issubclass(container, abc.Sequence):
        return _test_of_sequence(container, inner)
    if getattr(container, "_is_protocol", False):
        names = [name for name in vars(container) if not name.startswith("_")]
        return lambda value: all(hasattr(value, name) for name in names)
    return lambda value: isinstance(value, container)


def _is_of_kind(value: Any, hint: Any) -> bool:
    """Whether a value has the range or shape, or is one of the words, that an annotation says."""
    try:
        kind_from_annotation(hint).convert(value)
    except UnfitError:
        return False
    return True


def _is_plain_array(value: Any) -> bool:
    plain = isinstance(value, np.ndarray) and not hasattr(value, "mask")
    return plain and value.dtype.kind in "fiub"


def _is_number(value: Any, real: bool) -> bool:
    if isinstance(value, int | np.integer):
        return not is_flag(value) and abs(int(value)) <= MOST
    return real and isinstance(value, float | np.floating)


def _test_of_sequence(container: Any, inner: tuple[Any, ...]) -> Test:
    if container is tuple and inner[-1] is not ...:
        tests = [_test_from_annotation(part) for part in inner]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(tests)
            and all(test(v) for test, v in zip(tests, value, strict=True))
        )
    item = _test_from_annotation(inner[0])
    return lambda value: isinstance(value, tuple) and all(map(item, value))


def call_user_function(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that a user gave; what it raises becomes an `InputError` that names it."""
    try:
        return function(*arguments)
    except FeasidError:
        raise
    except Exception as error:
        raise InputError(f"{what} raised {type(error).__name__}: {error}") from error
