"""Values of options: of sixty values each takes those that it says, and no others."""

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from feasid.core.errors import InputError
from feasid.options.complete import option_table
from feasid.options.tables import CorrectOptions, FitOptions

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
BOUNDS = {"2", "2 of 3", "none 2"}
ROWS = EMPTY | {"1", "2", "11"} | POINT | TENS
WEIGHED = {"a", "a b", "a 0"}

TAKEN = {
    "offsets": NUMBERS,
    "calibration": NUMBERS - {"-1.0"},
    "topic": {"name"},
    "imu": {"link", "Imu"},
    "contacts": STRINGS | {"body", "Touch"},
    "columns": STRINGS | {"0", "-1.0", "numpy 2"},
    "units": STRINGS | NUMBERS,
    "mass": BOUNDS,
    "total_mass": NUMBERS | BOUNDS,
    "mass_sums": {"sum", "no sum"},
    "com_box": {"2x3"},
    "com_ellipsoid": {"2x3", "axes"},
    "com_cylinder": {"cylinder"},
    "com_hull": TABLES,
    "linear": {"linear", "no linear"},
    "equal": {"[]", "()", "0 array", "pairs"},
    "mirrored": {"[]", "()", "0 array", "triples", "no attempt"},
    "transmission": TABLES | {"3x2", "intervals", "1x0"},
    "exclude": STRINGS | EMPTY | {"mask", "intervals", "3x2"},
    "weights": ROWS | WEIGHED | {"{}"},
    "known": NUMBERS | TENS | {"10 nan", "10 None", "2"},
    "couplings": {"a b"},
    "around": ROWS,
    "prior": STRINGS | {"Prior"},
    "servo": {"kp", "Servo"},
    "gains": {"2"},
    "load": TENS | {"Payload"},
    "moments": {"[]", "()", "0 array", "moment"},
    "reference": ROWS,
    "constraints": {"len"},
    "solver": STRINGS | {"[]", "()", "0 array", "attempt", "solver"},
    "measured": {"[]", "()", "0 array", "names"},
    "friction": {"[]", "()", "0 array"},
    "cutoff": {"numpy 2", "1.5", "numpy .5"},
    "decimate": {"numpy 2"},
    "sort": {"True"},
}
"""Names of the values that each option takes, or of which it takes a mapping from names."""


@pytest.mark.parametrize("name", TAKEN)
def test_each_option_takes_what_it_says_and_nothing_else(name):
    option = (option_table(FitOptions) | option_table(CorrectOptions))[name]

    def is_taken(value):
        with suppress(InputError):
            option.check(name, {"a": value} if option.syntax == "mapping" else value)
            return True
        return False

    taken = {value for value, given in VALUES.items() if given is not None and is_taken(given)}
    assert taken == TAKEN[name]
