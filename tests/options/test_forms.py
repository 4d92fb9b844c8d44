"""Forms of values: of sixty values each takes those that it says, and no others."""

from types import SimpleNamespace

import numpy as np
import pytest

from feasid.core.kinds import ArgumentKind
from feasid.options import forms
from feasid.options.forms import is_row, is_table

VALUES = {
    "None": None, "True": True, "0": 0, "-1.0": -1.0, "1.5": 1.5, "numpy 2": np.int64(2),
    "numpy .5": np.float64(0.5), "nan": np.nan, "inf": np.inf, "10**400": 10**400, "1j": 1j,
    "''": "", "name": "name", "[]": [], "()": (), "1": (1.0,), "2": (1.0, 2.0), "2 of 3": (2, None),
    "none 2": (None, None), "3": [1, 2, 3], "3 nan": (1, 2, np.nan), "3 array": np.ones(3),
    "10": [1.0] * 10, "10 array": np.ones(10), "10 nan": [1.0] * 9 + [np.nan],
    "10 None": [None] * 10, "10 name": [1.0] * 9 + ["x"], "10 names": ["x"] * 9 + [1.0],
    "11": [1.0] * 11, "3x3": np.eye(3),
    "2x3": [[0, 0, 0], (1, 1, 1)], "3x2": np.ones((3, 2)), "ragged": [[1, 2, 3], [1, 2]],
    "1x0": [[]], "row nan": [[1, 2, np.nan]], "0 array": np.zeros(0), "names": ["a", "b"],
    "names, 1": ("a", 1), "pairs": [("a", "b"), ["c", "d"]], "triples": [("a", "b", "c")],
    "pair, triple": [("a", "b"), ("a", "b", "c")], "{}": {}, "a": {"a": 1},
    "a b": {"a": 1, "b": -2}, "a 0": {"a": 1, "b": 0}, "a x": {"a": "x"}, "link": {"link": "a"},
    "body": {"body": "a"}, "kp": {"kp": {"a": 1.0}}, "mask": [True, False],
    "intervals": [(0, 1), [2, 3]], "sum": (["a"], None, 3), "no sum": ([], None, 3),
    "half sum": (["a"], 1), "cylinder": ([0, 0, 0], (0, 0, 1), 0.5), "axes": ([0] * 3, np.eye(3)),
    "2 axes": ([0] * 3, np.ones((2, 3))), "linear": ({"a": 1}, None, 2.0),
    "no linear": ({}, None, 2.0), "moment": [("a", {}, 1.0, 0.1), ("a", {"b": 1.0}, 1.0, 0.1)],
    "no moment": [("a", {"b": "x"}, 1.0, 0.1)], "attempt": [("a", "b", len)],
    "no attempt": [("a", "b", "c")], "len": len, "Imu": SimpleNamespace(link="a"),
    "Touch": SimpleNamespace(body="a"), "Servo": SimpleNamespace(kp={}),
    "Prior": SimpleNamespace(rows=len), "Payload": SimpleNamespace(parameters=np.ones(10)),
    "solver": SimpleNamespace(solve_via_data=len),
}  # fmt: skip

NUMBERS = {"0", "-1.0", "1.5", "numpy 2", "numpy .5"}
STRINGS = {"''", "name"}
EMPTY = {"[]", "()", "0 array"}
POINT = {"3", "3 array"}
TENS = {"10", "10 array"}
TABLES = {"3x3", "2x3"}
ROWS = EMPTY | {"1", "2", "11"} | POINT | TENS
WEIGHED = {"a", "a b", "a 0"}

TAKEN = {
    "NUMBER": NUMBERS, "WIDTH": NUMBERS - {"-1.0"}, "NAME": STRINGS, "NAMES": {"names"},
    "TEXT": {"name"}, "IMU": {"link", "Imu"}, "TOUCH": STRINGS | {"body", "Touch"},
    "COLUMN": STRINGS | {"True", "0", "10**400"}, "UNIT": STRINGS | NUMBERS,
    "BOUNDS": {"2", "2 of 3", "none 2"}, "MASS": NUMBERS | {"2", "2 of 3", "none 2"},
    "SUM": {"sum"}, "BOX": {"2x3"}, "ELLIPSOID": {"2x3", "axes"}, "CYLINDER": {"cylinder"},
    "POINTS": TABLES, "LINEAR": {"linear"}, "PAIRS": {"[]", "()", "pairs"},
    "MIRRORS": {"[]", "()", "triples", "no attempt"},
    "MATRIX": STRINGS | TABLES | {"3x2", "intervals"},
    "ROWS": STRINGS | EMPTY | {"mask", "intervals", "3x2"}, "WEIGHTS": STRINGS | ROWS | WEIGHED,
    "KNOWN": NUMBERS | TENS | {"10 nan", "10 None"}, "FACTORS": {"a b"}, "ROW": ROWS,
    "PRIOR": STRINGS | {"Prior"}, "SERVO": {"kp", "Servo"}, "TRUSTED": {"2"},
    "LOAD": TENS | {"Payload"}, "MOMENTS": {"[]", "()", "moment"}, "GUESS": ROWS,
    "FUNCTION": {"len"}, "SOLVER": STRINGS | {"[]", "()", "attempt", "solver"},
}  # fmt: skip
"""Names of the values that each form takes."""


@pytest.mark.parametrize("name", [k for k, v in vars(forms).items() if isinstance(v, ArgumentKind)])
def test_each_form_takes_what_it_says_and_nothing_else(name):
    form = getattr(forms, name)
    assert {value for value, given in VALUES.items() if form.accepts(given)} == TAKEN[name]


def test_rows_and_tables_of_a_given_size():
    assert [is_row([1.0] * k, 2) for k in (1, 2, 3)] == [False, True, False]
    assert [is_table(np.ones((2, k)), 2) for k in (1, 2, 3)] == [False, True, False]
    assert is_table([[1]])
