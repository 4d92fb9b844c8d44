"""Kinds of arguments and of parts of results, made of annotations.

An annotation decides which values are accepted: ``bool`` takes truth values only, ``float`` finite
real numbers, ``npt.ArrayLike`` finite real arrays, ``str | Path`` a path, ``Literal`` one of its
words, ``Callable`` what can be called, and a class its instances. `Annotated` adds ranges and
shapes by an `ArgumentKind`. ``Any`` is not checked.
"""

from __future__ import annotations

import builtins
import collections.abc as abc
import math
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from feasid.core.errors import InputError, did_you_mean
from feasid.core.text import quote

OWN_BUSINESS = {"Log": Any, "Self": Any}
"""Names of annotations that the function itself checks more strictly."""


MOST = 2.0**53  #: Largest whole number up to which doubles are exact.

ARRAYS = (np.ndarray, npt.NDArray)
"""Forms of annotations of arrays; since NumPy 2.5 they are an alias of their own."""


class UnfitError(ValueError):
    """A value is not of a kind; the message gives the reason, or is empty.

    `row`: where in an array.
    """

    def __init__(self, message: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class ArgumentKind:
    """A kind of argument in words, and the conversion, which rejects anything else."""

    text: str
    convert: Callable[[Any], Any]  #: From a value to the value that is used; raises `UnfitError`.
    shape: tuple[int | str, ...] = ()  #: A word, longer than a letter, is one size in a dataclass.
    test: Callable[[Any], bool] | None = None  #: In place of `accepts`, see `holds`.

    def accepts(self, value: Any) -> bool:
        """Whether an argument may have the value."""
        try:
            self.convert(value)
        except UnfitError:
            return False
        return True

    def holds(self, value: Any) -> bool:
        """Whether a field of a dataclass may have the value: nothing is converted there, but
        numbers may be missing.
        """
        return self.accepts(value) if self.test is None else self.test(value)

    def convert_argument(self, name: str, value: Any) -> Any:
        """The value of an argument.

        Raises InputError: names the argument, what was expected and what was given.
        """
        try:
            return self.convert(value)
        except UnfitError as error:
            wrong = str(error) or f"not {quote(value)}"
            message = f"{name} must be {self.text}, {wrong}"
            raise InputError(message, argument=name, row=error.row) from None


# -- kinds ----------------------------------------------------------------------------------------


def is_flag(value: Any) -> bool:
    """Whether it is a truth value."""
    return isinstance(value, bool | np.bool_)


def number(
    low: float = -math.inf, high: float = math.inf, *, open: bool = False, finite: bool = True
) -> ArgumentKind:
    """A real number within limits; `open` leaves `low` itself out."""

    def convert(value: Any) -> float:
        # Python's True is the number 1; given for a number it is a mistake.
        if is_flag(value) or not isinstance(value, numbers.Real):
            raise UnfitError
        try:
            converted = float(value)
        except OverflowError:
            raise UnfitError from None
        beyond = converted > high or converted < low or (open and converted == low)
        if beyond or (finite and not math.isfinite(converted)):
            raise UnfitError
        return converted

    return ArgumentKind(describe_range("a number", low, high, open), convert)


def count(low: float = -math.inf, high: float = MOST) -> ArgumentKind:
    """A whole number within limits."""
    real = number(low, high)

    def convert(value: Any) -> int:
        converted = real.convert(value)
        if converted != int(converted):
            raise UnfitError
        return int(converted)

    shown = math.inf if high == MOST else high
    return ArgumentKind(describe_range("a whole number", low, shown, False), convert)


def describe_range(noun: str, low: float, high: float, open: bool) -> str:
    """The noun with its limits: ``a number above 0 and at most 1``."""
    text = "" if low == -math.inf else f" {'above' if open else 'of at least'} {low:g}"
    text += "" if high == math.inf else f"{' and' * bool(text)} at most {high:g}"
    return noun + text


def array(*shape: int | str, finite: bool = True, whole: bool = False) -> ArgumentKind:
    """Real numbers of a shape, whose sizes are numbers or words for any; without one of any shape.

    Without `finite` they may be missing or infinite; `whole` asks for whole numbers.
    """
    noun = "whole numbers" if whole else "finite numbers" if finite else "numbers"
    shape_text = (
        f" of shape ({', '.join(map(str, shape))}{',' * (len(shape) == 1)})" if shape else ""
    )

    def convert(value: Any) -> Any:
        converted = as_numbers(value, finite=finite)
        fits = converted.ndim == len(shape) and all(
            isinstance(n, str) or n == m for n, m in zip(shape, converted.shape, strict=True)
        )
        if shape and not fits:
            raise UnfitError(f"not of shape {converted.shape}" if converted.ndim else "")
        if whole and (converted != np.rint(converted)).any():
            raise UnfitError
        return converted.astype(np.intp) if whole else converted

    return ArgumentKind(f"an array of {noun}{shape_text}", convert, shape)


def one_per(word: str) -> ArgumentKind:
    """A tuple as long as all else in a dataclass that has one item per `word`."""
    return ArgumentKind(f"a tuple of one item per {word}", lambda value: value, (word,))


def as_numbers(value: Any, *, finite: bool = True) -> npt.NDArray[np.float64]:
    """Convert to an array of real numbers; anything else raises `UnfitError`."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return _require_finite(value) if finite else value
    columns = getattr(value, "columns", None)
    if isinstance(columns, abc.Iterable) and any(isinstance(c, str | tuple) for c in columns):
        raise UnfitError("not a table with named columns: pick them by name, df[names].to_numpy()")
    if "numpy.ma" in sys.modules and np.ma.is_masked(value):  # asking imports it otherwise
        raise UnfitError("not a masked array: its masked values have no number")
    try:
        converted = np.asarray(value)
    except Exception:  # ragged rows, and whatever a foreign array says about itself
        raise UnfitError from None
    if converted.dtype.kind == "O" and all(
        (isinstance(x, numbers.Real) and not is_flag(x)) or (not finite and x is None)
        for x in converted.flat
    ):
        try:
            converted = converted.astype(np.float64)
        except (OverflowError, TypeError, ValueError):
            raise UnfitError from None
    if converted.dtype.kind not in "iuf":
        wrong = {"c": "complex numbers", "b": "truth values", "M": "dates", "m": "durations",
                 "U": "text", "S": "text"}.get(converted.dtype.kind)  # fmt: skip
        raise UnfitError(f"not {wrong}" if wrong and converted.ndim else "")
    converted = converted.astype(np.float64, copy=False)
    return _require_finite(converted) if finite else converted


def _require_finite(taken: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    bad = ~np.isfinite(taken)
    if bad.any():
        place = [int(k) for k in np.argwhere(bad)[0]]
        wrong = f"but {place or 'its value'} is {taken[bad][0]}"
        raise UnfitError(wrong, place[0] if place else None)
    return taken


def _path(value: Any) -> Any:
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise UnfitError
    if not os.fspath(value):
        raise UnfitError("not empty")
    return value


def kind_by_test(
    text: str, test: Callable[[Any], bool], make: Callable[[Any], Any] = lambda value: value
) -> ArgumentKind:
    """Values that pass a test, unchanged or made into another."""

    def convert(value: Any) -> Any:
        if not test(value):
            raise UnfitError
        return make(value)

    return ArgumentKind(text, convert)


def having(name: str, text: str) -> ArgumentKind:
    """An object with an attribute of a name, or a mapping with that key, as `text` calls it."""
    return kind_by_test(text, lambda v: hasattr(v, name) or (isinstance(v, Mapping) and name in v))


def _instance(kind: type) -> ArgumentKind:
    """Instances of a class, which is known by its name alone where it is not imported."""
    if getattr(kind, "_is_protocol", False):
        members = [name for name in vars(kind) if not name.startswith("_")]
        return replace(ANYTHING, test=lambda value: all(hasattr(value, name) for name in members))
    name, named = kind.__name__, issubclass(kind, _Named)
    article = "an" if name[0] in "AEIOU" else "a"

    def convert(value: Any) -> Any:
        if named and not any(k.__name__ == name for k in type(value).__mro__):
            raise UnfitError
        if not named and not isinstance(value, kind):
            raise UnfitError(HINTS.get(name, "") if isinstance(value, str | os.PathLike) else "")
        return value

    return ArgumentKind(f"{article} {name}", convert)


HINTS = {"Robot": "not a path: read it with feasid.load_robot"}
"""Advice if a path is given instead of an object."""

ANYTHING = ArgumentKind("anything", lambda value: value)
FLAG = replace(
    kind_by_test("True or False", is_flag, bool), test=lambda value: isinstance(value, bool)
)
PATH = ArgumentKind("a path", _path, test=lambda value: isinstance(value, os.PathLike))
FILE = kind_by_test("an open file", lambda value: hasattr(value, "read"))
FUNCTION = kind_by_test("a function", callable)
NONE = kind_by_test("None", lambda value: value is None)

Positive: TypeAlias = Annotated[float, number(0.0, open=True)]
NonNegative: TypeAlias = Annotated[float, number(0.0)]
Rate: TypeAlias = Annotated[float, number(1e-3, 1e6)]
"""Samples per second or a cut-off frequency [Hz], within what memory and any machine allow."""
Count: TypeAlias = Annotated[int, count(0)]
Natural: TypeAlias = Annotated[int, count(1)]
Share: TypeAlias = Annotated[float, number(0.0, 1.0)]
Measured: TypeAlias = Annotated[npt.ArrayLike, array(finite=False)]
"""Numbers that the function itself checks, because its message can name the joint or body."""
Numbers: TypeAlias = Annotated[npt.NDArray[np.float64], array(finite=False)]
Vector3: TypeAlias = Annotated[npt.ArrayLike, array(3)]
Matrix3: TypeAlias = Annotated[npt.ArrayLike, array(3, 3)]
Vector: TypeAlias = Annotated[npt.ArrayLike, array("n")]


# -- from annotations -----------------------------------------------------------------------------


class UnimportedName(type):
    """A name of an annotation that is imported for type checkers only."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("_"):
            raise AttributeError(name)
        return UnimportedName(name, (_Named,), {})

    def __getitem__(cls, _: Any) -> type:
        return cls


class _Named(metaclass=UnimportedName):
    """A class that is known by its name only."""


class _ArrayLike:
    """``npt.ArrayLike``, which is a union of a dozen types."""


class AnnotationNames(dict[str, Any]):
    """Meanings of the names in a module's annotations."""

    def __init__(self, module: str) -> None:
        super().__init__(vars(builtins) | vars(sys.modules[module]) | OWN_BUSINESS)
        if self.get("npt") is npt:
            self["npt"] = types.SimpleNamespace(ArrayLike=_ArrayLike, NDArray=npt.NDArray)

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        # An alias may be a text, for names that only type checkers import.
        return eval(value, {}, self) if isinstance(value, str) else value

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # what debuggers ask of a frame
            raise KeyError(name)
        return (
            globals().get(name)
            or getattr(typing, name, None)
            or UnimportedName(name, (_Named,), {})
        )


@lru_cache(1024)
def kind_from_annotation(hint: Any) -> ArgumentKind:
    """The kind of argument that an annotation describes."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base = kind_from_annotation(inner[0])
        kind = next((k for k in hint.__metadata__ if isinstance(k, ArgumentKind)), base)
        text = next((words for words in hint.__metadata__ if isinstance(words, str)), kind.text)
        return replace(kind, text=text, test=lambda v: base.holds(v) and kind.accepts(v))
    if origin is Literal:
        return one_of(*inner)
    if origin in (Union, types.UnionType):
        return _union(inner)
    if hint is _ArrayLike:
        return array()
    if hint is np.ndarray or origin in ARRAYS:
        kind = ANYTHING if "bool" in str(inner) else array(whole="int" in str(inner))
        return replace(kind, test=lambda value: isinstance(value, np.ndarray)
                       and not hasattr(value, "mask") and value.dtype.kind in "fiub")  # fmt: skip
    if hint is None or hint is types.NoneType:
        return NONE
    if hint in SIMPLE:
        return SIMPLE[hint]
    if origin is abc.Callable or hint in (abc.Callable, Callable):
        return FUNCTION
    container = origin or hint
    if isinstance(container, type):
        if issubclass(container, os.PathLike):
            return PATH
        if container is typing.IO:
            return FILE
        if issubclass(container, Mapping):
            return _mapping(container, inner)
        if issubclass(container, abc.Collection | abc.Iterable) and inner:
            return _sequence(container, inner)
        return _instance(container) if container is not object else ANYTHING
    return ANYTHING


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not is_flag(value) and abs(int(value)) <= MOST


SIMPLE: dict[Any, ArgumentKind] = {
    bool: FLAG,
    int: replace(count(), test=_is_whole),
    float: replace(number(), test=lambda v: isinstance(v, float | np.floating) or _is_whole(v)),
    str: kind_by_test("a text", lambda value: isinstance(value, str)),
    Any: ANYTHING,
}


def one_of(*choices: Any) -> ArgumentKind:
    """One of these values."""

    def convert(value: Any) -> Any:
        # The type decides, too: True == 1 == 1.0.
        if not any(type(value) is type(c) and value == c for c in choices):
            advice = did_you_mean(value, choices) if isinstance(value, str) else ""
            raise UnfitError(f"not {quote(value)}{advice}")
        return value

    return ArgumentKind(" or ".join(map(repr, choices)), convert)


def _union(parts: tuple[Any, ...]) -> ArgumentKind:
    if any("_SupportsArray" in str(get_origin(p)) for p in parts):  # an array-like in an alias
        parts = (_ArrayLike, *(p for p in parts if p is types.NoneType))
    kinds = members = [kind_from_annotation(part) for part in parts]

    def test(value: Any) -> bool:
        return any(kind.holds(value) for kind in members)

    if any(kind.text == ANYTHING.text for kind in kinds):
        return replace(ANYTHING, test=test)
    # "A path" takes texts, and refuses empty ones, which "a text" would let through.
    if PATH in kinds:
        kinds = [k for k in kinds if k is not SIMPLE[str]]
    kinds = list(dict.fromkeys(kinds))
    # A sequence is named last, because what its items are may hold an "or", too.
    text = " or ".join(sorted((k.text for k in kinds), key=lambda t: t.startswith("a sequence")))
    mappings = [kind_from_annotation(part) for part in parts if _is_a(part, Mapping)]
    sequences = [
        kind_from_annotation(part) for part in parts if mappings and _is_a(part, abc.Collection)
    ]
    keyed = [k for k in kinds if k in mappings or k not in sequences]

    def convert(value: Any) -> Any:
        wrong = ""
        for kind in keyed if isinstance(value, Mapping) else kinds:  # not a mapping's keys alone
            try:
                return kind.convert(value)
            except UnfitError as error:
                wrong = wrong or str(error)
        raise UnfitError(wrong)

    return ArgumentKind(text, convert, test=test)


def _is_a(hint: Any, kind: type) -> bool:
    container = get_origin(hint) or hint
    return isinstance(container, type) and issubclass(container, kind)


def _sequence(container: type, inner: tuple[Any, ...]) -> ArgumentKind:
    """A sequence of items of one kind, or of a fixed number of kinds."""
    fixed_length = container is tuple and inner[-1] is not ...
    items = [kind_from_annotation(part) for part in (inner if fixed_length else inner[:1])]
    which = [k.text for k in items]
    text = f"({', '.join(which)})" if fixed_length else f"a sequence, of each item {which[0]}"
    text = text if which != ["anything"] else "a sequence"

    def convert(value: Any) -> Any:
        elements = value.tolist() if isinstance(value, np.ndarray) else value
        keys = isinstance(elements, Mapping) and issubclass(container, abc.Sequence)
        table = hasattr(elements, "columns")  # whose items are its columns, not its rows
        letters = isinstance(elements, str | bytes)
        if letters or keys or table or not isinstance(elements, abc.Collection):
            raise UnfitError
        if fixed_length and len(elements) != len(items):
            raise UnfitError
        kinds = items if fixed_length else items * len(elements)
        out = [kind.convert(item) for kind, item in zip(kinds, elements, strict=True)]
        return out if isinstance(elements, list) and container is not tuple else tuple(out)

    def test(value: Any) -> bool:
        if not issubclass(container, abc.Sequence):
            return isinstance(value, container)
        if not isinstance(value, tuple) or (fixed_length and len(value) != len(items)):
            return False
        kinds = items if fixed_length else items * len(value)
        return all(kind.holds(item) for kind, item in zip(kinds, value, strict=True))

    return ArgumentKind(text, convert, test=test)


def _mapping(container: type, inner: tuple[Any, ...]) -> ArgumentKind:
    keys, items = (kind_from_annotation(part) for part in (inner or (Any, Any)))

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise UnfitError
        out = {}
        for key, item in value.items():
            try:
                out[keys.convert(key)] = items.convert(item)
            except UnfitError as error:
                wrong = f"{error} (of {quote(key)})" if str(error) else ""
                raise UnfitError(wrong or f"not {quote(item)} for {quote(key)}") from None
        return out

    def test(value: Any) -> bool:
        if not inner:
            return isinstance(value, container)
        return isinstance(value, Mapping) and all(
            keys.holds(key) and items.holds(item) for key, item in value.items()
        )

    return ArgumentKind(f"a mapping from {keys.text} to {items.text}", convert, test=test)
