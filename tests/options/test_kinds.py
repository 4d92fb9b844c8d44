"""Arguments by their annotations: what each kind takes, what it makes of it, what it says."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import feasid
from feasid.core.arguments import (
    MOST,
    UnfitError,
    array,
    as_numbers,
    checked,
    checked_methods,
    count,
    describe_range,
    kind_from_annotation,
    number,
)
from feasid.core.arrays import require_finite
from feasid.core.display import _fit_parts, _wrap_lines, truncate
from feasid.core.errors import InputError
from feasid.core.text import quote
from feasid.results.report.summary import _cells


class Table(TypedDict, total=False):
    """Any keys."""

    a: int


REFUSED = object()

OPEN = io.BytesIO()


@pytest.mark.parametrize(
    ("hint", "value", "taken"),
    [
        (bool, True, True), (bool, np.bool_(False), False), (bool, 1, REFUSED),
        (int, 3, 3), (int, 3.0, 3), (int, np.int64(3), 3), (int, 3.5, REFUSED),
        (int, True, REFUSED), (int, 2**53, 2**53), (int, 2**54, REFUSED), (int, np.nan, REFUSED),
        (float, 3, 3.0), (float, np.float32(0.5), 0.5), (float, np.inf, REFUSED),
        (float, "1", REFUSED), (float, 10**400, REFUSED), (float, 1j, REFUSED),
        (str, "a", "a"), (str, b"a", REFUSED), (None, None, None), (None, 0, REFUSED),
        (Any, REFUSED, REFUSED), (object, 1j, 1j),
        (int | None, None, None), (int | None, 4, 4), (int | None, "4", REFUSED),
        (str | os.PathLike[str], "a", "a"), (str | os.PathLike[str], "", REFUSED),
        (str | os.PathLike[str], Path("a"), Path("a")), (str | os.PathLike[str], 3, REFUSED),
        (os.PathLike[str], b"a", REFUSED), (IO[bytes], OPEN, OPEN), (IO[bytes], "a", REFUSED),
        (Literal["a", 1], "a", "a"), (Literal["a", 1], 1, 1), (Literal["a", 1], True, REFUSED),
        (Literal["a", 1], 1.0, REFUSED), (Callable[[int], int], len, len),
        (Callable[[int], int], 3, REFUSED), (Callable, len, len),
        (Sequence[int], [1, 2.0], [1, 2]), (Sequence[int], (1, 2), (1, 2)), (Sequence[int], [], []),
        (Sequence[int], np.array([1, 2]), [1, 2]), (Sequence[int], [1, "2"], REFUSED),
        (Sequence[str], "ab", REFUSED), (Sequence[str], b"ab", REFUSED),
        (Sequence[str], {"a": 1}, REFUSED), (Collection[str], {"a": 1}, ("a",)),
        (Iterable[str], {"a"}, ("a",)), (Sequence[str], 3, REFUSED),
        (Sequence[Any], pd.DataFrame({"a": [1]}), REFUSED),
        (tuple[int, str], (1, "a"), (1, "a")), (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, str], (1,), REFUSED), (tuple[int, str], (1, "a", 2), REFUSED),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)), (tuple[int, ...], (), ()),
        (tuple[int, ...], (1, "a"), REFUSED),
        (Mapping[str, float], {"a": 1}, {"a": 1.0}), (Mapping[str, float], {1: 1}, REFUSED),
        (Mapping[str, float], {"a": "b"}, REFUSED), (Mapping[str, float], [("a", 1)], REFUSED),
        (dict, {1: 2}, {1: 2}), (Table, 3, REFUSED), (Table, {"b": 1}, {"b": 1}),
        (Mapping[str, int] | Sequence[str], {"a": 1}, {"a": 1}),
        (Mapping[str, int] | Sequence[str], ["a"], ["a"]),
        (Mapping[str, int] | Sequence[str], {"a": "b"}, REFUSED),
        (Annotated[float, number(0.0)], -1, REFUSED), (Annotated[float, number(0.0)], 0, 0.0),
        (Annotated[float, "a word"], 0, 0.0), (Path, Path("a"), Path("a")), (Path, 3, REFUSED),
        (feasid.Robot, "a.urdf", REFUSED), (type, int, int),
    ],
)  # fmt: skip
def test_what_a_kind_makes_of_a_value(hint, value, taken):
    kind = kind_from_annotation(hint)
    if taken is REFUSED and hint is not Any:
        with pytest.raises(UnfitError):
            kind.convert(value)
        with pytest.raises(InputError, match="x must be "):
            kind.convert_argument("x", value)
        return
    found = kind.convert(value)
    assert found == taken
    assert type(found) is type(taken)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "a whole number"), (float, "a number"), (int | None, "a whole number or None"),
        (Sequence[int], "a sequence, of each item a whole number"), (Sequence[Any], "a sequence"),
        (tuple[int, str], "(a whole number, a text)"),
        (tuple[int, ...], "a sequence, of each item a whole number"),
        (Mapping[str, float], "a mapping from a text to a number"), (Literal["a", 1], "'a' or 1"),
        (str | os.PathLike[str], "a path"), (feasid.Robot, "a Robot"), (Exception, "an Exception"),
        (npt.NDArray[np.float64], "an array of finite numbers"), (None, "None"),
        (npt.NDArray[np.intp], "an array of whole numbers"), (npt.NDArray[np.bool_], "anything"),
        (Callable[[int], int], "a function"), (IO[bytes], "an open file"), (bool, "True or False"),
    ],
)  # fmt: skip
def test_kinds_in_words(hint, text):
    assert kind_from_annotation(hint).text == text


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ((-np.inf, np.inf, False), "n"), ((0.0, np.inf, False), "n of at least 0"),
        ((0.0, np.inf, True), "n above 0"), ((0.0, 1.0, True), "n above 0 and at most 1"),
        ((-np.inf, 1.0, False), "n at most 1"),
    ],
)  # fmt: skip
def test_ranges_in_words(limits, text):
    assert describe_range("n", *limits) == text


def test_limits_of_numbers():
    kind = number(0.0, 1.0)
    assert [kind.convert(x) for x in (0, 0.5, 1)] == [0.0, 0.5, 1.0]
    above = number(0.0, 1.0, open=True)
    assert above.convert(1e-300) == 1e-300
    for wrong, given in ((kind, -1e-300), (kind, 1 + 1e-15), (above, 0), (number(), np.nan)):
        with pytest.raises(UnfitError):
            wrong.convert(given)
    assert number(finite=False).convert(np.inf) == np.inf
    assert np.isnan(number(finite=False).convert(np.nan))
    assert count(1, 3).text == "a whole number of at least 1 and at most 3"
    assert count(1).text == "a whole number of at least 1"
    assert count(1).convert(MOST) == MOST
    for given in (0, 4, 1.5):
        with pytest.raises(UnfitError):
            count(1, 3).convert(given)


@pytest.mark.parametrize(
    ("value", "options", "wrong", "row"),
    [
        ([1, 2], {}, None, None), ([[1, 2], [3, 4.5]], {}, None, None), (3, {}, None, None),
        ([1, None], {}, "", None),
        ([1, None], {"finite": False}, None, None), ([1, np.nan], {"finite": False}, None, None),
        ([[1, 2], [3, np.nan]], {}, "but [1, 1] is nan", 1), (np.nan, {}, "but its value is nan",
                                                               None),
        ([1, np.inf], {}, "but [1] is inf", 1), ([1, -np.inf], {}, "but [1] is -inf", 1),
        ([1, np.inf], {"finite": False}, None, None), ([1j], {}, "not complex numbers", None),
        ([True], {}, "not truth values", None), (True, {}, "", None), (["a"], {}, "not text", None),
        (np.array(["2024-01-01"], "datetime64[s]"), {}, "not dates", None),
        (np.array([1], "timedelta64[s]"), {}, "not durations", None), ([[1], [1, 2]], {}, "", None),
        ([True, 1.5, None], {"finite": False}, "", None), ([10**400], {}, "", None),
        (pd.DataFrame({"a": [1.0]}), {},
         "not a table with named columns: pick them by name, df[names].to_numpy()", None),
        (pd.DataFrame([[1.0]]), {}, None, None),
        (np.ma.array([1, 2], mask=[0, 1]), {},
         "not a masked array: its masked values have no number", None),
        (np.ma.array([1, 2], mask=[0, 0]), {}, None, None),
    ],
)  # fmt: skip
def test_arrays_of_numbers(value, options, wrong, row):
    if wrong is None:
        found = as_numbers(value, **options)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.array(value, dtype=np.float64))
        return
    with pytest.raises(UnfitError) as error:
        as_numbers(value, **options)
    assert (str(error.value), error.value.row) == (wrong, row)


def test_shapes_of_arrays():
    kind = array(2, "n")
    assert kind.text == "an array of finite numbers of shape (2, n)"
    assert array("n", whole=True).text == "an array of whole numbers of shape (n,)"
    assert array(finite=False).text == "an array of numbers"
    assert kind.convert(np.ones((2, 5))).shape == (2, 5)
    for wrong in (np.ones((3, 5)), np.ones(2), np.ones((2, 5, 1))):
        with pytest.raises(UnfitError, match="not of shape"):
            kind.convert(wrong)
    found = array(whole=True).convert([1.0, 2.0])
    assert (found.tolist(), found.dtype) == ([1, 2], np.intp)
    with pytest.raises(UnfitError):
        array(whole=True).convert([1.0, 2.5])
    with pytest.raises(InputError, match=r"x must be .*, but \[1, 0\] is nan") as error:
        array(2, 1).convert_argument("x", [[0.0], [np.nan]])
    assert error.value.data["row"] == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, "a"], "x is not an array of numbers: not text"),
        ([[1.0], [1.0, 2.0]], "x is not an array of numbers: not [[1.0], [1.0, 2.0]]"),
        ([1.0], "x has shape (1,), expected (2,)"),
        ([1.0, np.nan], "x has an entry that is not finite: [1.0, nan]"),
    ],
)
def test_arrays_that_a_function_requires(value, message):
    with pytest.raises(InputError) as error:
        require_finite(value, (2,), "x")
    assert str(error.value) == message
    given = np.ones(2)
    assert require_finite(given, (2,), "x") is not given


@checked
def function(
    a: int, b: float = 0.5, *rest: int, c: str | None = None, d: Literal["x"] = "x"
) -> str:
    """Whatever was given."""
    return f"{a} {b} {rest} {c}\x1b"


def test_functions_check_each_argument_by_its_name():
    assert function(1) == "1 0.5 () None\\x1b"
    assert function(1.0, 2, 3, 4.0, c="s") == "1 2.0 (3, 4) s\\x1b"
    for args, given, said in (
        (("1",), {}, "a must be a whole number, not '1'"),
        ((1, "2"), {}, "b must be a number, not '2'"),
        ((1, 2, 3, "4"), {}, "rest must be a whole number, not '4'"),
        ((1,), {"c": 3}, "c must be a text or None, not 3"),
        ((1,), {"d": "y"}, "d must be 'x', not 'y'"),
        ((1,), {"b": [[1]] * 99}, "b must be a number, not [[1], [1], [1], "),
    ):
        with pytest.raises(InputError) as error:
            function(*args, **given)
        assert str(error.value).startswith(said)
        assert error.value.data["argument"] == said.split()[0]
    with pytest.raises(InputError, match=r"function takes a, b, c, d, rest, not 'e'"):
        function(1, e=3)


@checked
class Thing:
    """Checked as a whole."""

    def __init__(self, size: int) -> None:
        self.size = size

    def times(self, k: int) -> int:
        """A product."""
        return self.size * k

    def _own(self, k: int) -> int:
        return k

    @classmethod
    def of(cls, size: int) -> Thing:
        """Another."""
        return cls(size)

    @staticmethod
    def twice(k: int) -> int:
        """A product."""
        return 2 * k


@checked_methods
class Record:
    """Checked but for its constructor."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __repr__(self) -> str:
        return "\x1b"

    def times(self, k: int) -> int:
        """A product."""
        return self.size * k


def test_classes_check_their_public_methods():
    thing = Thing(2.0)
    assert (thing.size, thing.times(3.0), Thing.of(4).size, Thing.twice(5)) == (2, 6, 4, 10)
    assert thing._own("k") == "k"
    for call in (
        lambda: Thing("2"), lambda: thing.times("2"), lambda: Thing.of("2"),
        lambda: Thing.twice("2"), lambda: Record(2).times("2"),
    ):  # fmt: skip
        with pytest.raises(InputError, match="must be a whole number, not '2'"):
            call()
    assert Record("2").size == "2"
    assert repr(Record(2)) == "\\x1b"


def test_mappings_say_which_entry_is_wrong():
    kind = kind_from_annotation(Mapping[str, float])
    with pytest.raises(UnfitError, match="not 'x' for 'b'"):
        kind.convert({"a": 1, "b": "x"})
    nested = kind_from_annotation(Mapping[str, npt.NDArray[np.float64]])
    with pytest.raises(UnfitError, match=r"but \[0\] is nan \(of 'b'\)"):
        nested.convert({"a": [1.0], "b": [np.nan]})
    with pytest.raises(InputError, match="robot must be a Robot, not a path: read it with"):
        kind_from_annotation(feasid.Robot).convert_argument("robot", "a.urdf")
    with pytest.raises(InputError, match=r"not 'bb' \(did you mean 'bbb'\?\)"):
        kind_from_annotation(Literal["aaa", "bbb"]).convert_argument("x", "bb")


# -- texts -----------------------------------------------------------------------------------------


def test_values_in_messages_are_cut():
    assert quote("a" * 78) == repr("a" * 78)
    assert quote("a" * 79) == repr("a" * 79)[:77] + "..."
    assert quote([1, 2]) == "[1, 2]"
    assert quote("a\n  b") == r"'a\n b'"
    assert quote(10**5000) == "a value of type int"


def test_lines_are_cut_and_parts_left_out_whole():
    assert truncate("abcdefgh", 8) == "abcdefgh"
    assert truncate("abcdefghi", 8) == "abcde..."
    assert _wrap_lines("a\nb\nc") == ["a", "b", "c"]
    cut = _wrap_lines("a\nb\nccc\nd")
    assert cut[:2] == ["a", "b"]
    assert cut[2].startswith("ccc")
    assert cut[2].endswith("...")
    assert len(cut[2]) == 77
    parts = [["a", "b"], ["c"], ["d", "e"]]
    assert _fit_parts(parts, 5) == ["a", "b", "c", "d", "e"]
    assert _fit_parts(parts, 4) == ["a", "b", "c", "   ... and 1 more"]
    assert _fit_parts(parts, 3) == ["a", "b", "   ... and 2 more"]
    assert _fit_parts(parts, 1) == ["   ... and 3 more"]
    assert _fit_parts(parts, 0) == []
    assert _fit_parts([], 0) == []


def test_tables_as_text():
    frame = pd.DataFrame({"x": [0.123456, 2.0], "y": ["a", "b"]}, index=pd.Index(["p\n", "q"]))
    assert _cells(frame) == [["", "x", "y"], [r"p\n", "0.1235", "a"], ["q", "2", "b"]]
    frame.index.name = "name"
    assert _cells(frame)[0] == ["name", "x", "y"]
