"""Logs that once ended in tracebacks, took minutes or gigabytes, or were read as something else."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from logs import arm_log, write_log
from robots import ARM

import feasid
from feasid.core.errors import LimitError, LogError
from feasid.logs.frame import prepare
from feasid.logs.read.formats import read_log

MEGABYTES = 300
"""Memory that a Parquet file of less than one may take, libraries included."""


@pytest.fixture(scope="module")
def case():
    return arm_log(1, samples=300, noise=0.02)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,q_1\n0,1\n1,2\r3,4\n", "line 3: a carriage return stands inside"),
        ("t,q_1\r\n0,1\r\n1\r,2\r\n", "line 3: a carriage return stands inside"),
        ("t,q_1\r0,1\r1,2\r", "carriage returns alone, as on old Macs"),
        ("t,q_1\n0,1,,\n1,2,,\n", "line 2: 4 fields, expected 2: .* ends with ',' 2 times more"),
        ("t,q_1,,\n0,1,,7\n", "cells but no name"),
        ("t," + " [" * 20_000 + "\n0,1\n", "name of 39999 characters, at most 1000"),
        ("t,q_1\n" + "1" * 40_000 + "x,b\n0,1\n", "which is no number"),
    ],
)
def test_files_with_odd_lines_are_refused_with_their_reason(tmp_path, text, words):
    with pytest.raises(LogError, match=words):
        read_log(write_log(tmp_path, text))


def test_what_excel_writes_is_read(tmp_path):
    df = read_log(write_log(tmp_path, "sep=;\nt;q_1;;\n0;1;;\n1;2;;\n"))
    assert list(df.columns) == ["t", "q_1"]
    assert df["q_1"].tolist() == [1, 2]
    assert any("sep=;" in n for n in df.attrs["notes"])
    assert any("2 empty columns are dropped" in n for n in df.attrs["notes"])


def test_an_unknown_unit_is_not_taken_for_si(tmp_path, case):
    robot, log = case
    names = ",".join(log.columns)
    units = ",".join("furlong" if c == "q_slide" else "-" for c in log.columns)
    rows = log.to_csv(index=False).split("\n", 1)[1]
    df = read_log(write_log(tmp_path, f"{names}\n{units}\n{rows}"))
    with pytest.raises(LogError, match=r"'q_slide' is in 'furlong'.*units=\{'q_slide': ...\}"):
        prepare(df, robot)
    said = prepare(df, robot, units={"q_slide": 201.168})
    np.testing.assert_allclose(said.runs[0].q[:, 1], prepare(log, robot).runs[0].q[:, 1] * 201.168)
    with pytest.raises(LogError, match="furlong"):
        prepare(read_log([tmp_path / "log.csv"]), robot)


@pytest.mark.parametrize("cell", ["9" * 400, "-" + "9" * 400])
def test_integers_of_hundreds_of_digits(tmp_path, case, cell):
    robot, _ = case
    with pytest.raises(LogError, match=r"'q_1' has .*(too large|is no number)"):
        read_log(write_log(tmp_path, f"t,q_1\n0,{cell}\n1,2\n"))
    names = case[1].columns  # whole columns: older pandas takes them for text, and so do we
    rows = "\n".join(",".join([cell] * len(names)) for _ in range(9))
    with pytest.raises(LogError, match=r"too large for a number|is no number|are not numbers"):
        prepare(read_log(write_log(tmp_path, f"{','.join(names)}\n{rows}\n")), robot)
    with pytest.raises(LogError, match="too large"):
        prepare(pd.DataFrame({c: [10**400] * 9 for c in case[1].columns}, dtype=object), robot)


def test_patterns_are_text_and_never_formats(case):
    robot, log = case
    for pattern in ("{}{}", "q_", "{"):
        with pytest.raises(LogError, match=r"must be a pattern with one \{\}"):
            prepare(log, robot, columns={"q": pattern})
    for pattern in ("{}{x}", "{0.__class__}{}", "no_{}"):
        with pytest.raises(LogError, match="no such column for any joint"):
            prepare(log, robot, columns={"q": pattern})
    odd = log.rename(columns=lambda c: c.replace("q_", "q{x}") if c.startswith("q_") else c)
    assert prepare(odd, robot, columns={"q": "q{x}{}"}).runs


def test_a_joint_called_like_a_formula_is_drawn(case):
    _, log = case
    name = "$j_{$"
    odd = feasid.load_robot(ARM.replace('"shoulder"', f'"{name}"'))
    fit = feasid.fit(log.rename(columns=lambda c: c.replace("shoulder", name)), odd, diagnose=False)
    fit.plot().savefig(io.BytesIO())


def test_half_of_the_fitted_log_is_no_test(case):
    robot, log = case
    half, rest = log.iloc[:150], log.iloc[150:]
    fit = feasid.fit(log, robot, diagnose=False)
    assert "100 % of the test log's rows" in fit.errors(half).attrs["leakage"]
    assert "is the fitted log" in fit.errors([half, rest]).attrs["leakage"]
    assert feasid.fit(half, robot, diagnose=False).errors(rest).attrs["leakage"] is None


# -- Parquet --------------------------------------------------------------------------------------

READ = """
import sys
from feasid.core.errors import FeasidError
from feasid.logs.read.formats import read_log
try:
    print(len(read_log(sys.argv[1])))
except FeasidError as error:
    print(type(error).__name__)
with open("/proc/self/status") as file:
    print(next(int(x.split()[1]) // 1024 for x in file if x.startswith("VmHWM")))
"""


def read_in_a_process(path):
    """What is said of a file, and the megabytes that reading it took."""
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "answer"),
    [("one long text in many rows", "100000"), ("many equal numbers", "LimitError")],
)
def test_small_parquet_files_cost_little(tmp_path, kind, answer):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 100_000
    if kind == "many equal numbers":
        one = pa.array(np.zeros(rows))
        table = pa.table({f"c{k}": one for k in range(500)})
    else:
        codes = pa.array(np.zeros(rows, dtype=np.int32))
        text = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10_000]))
        table = pa.table({"t": np.arange(rows) * 0.01, "note": text})
    path = tmp_path / "small.parquet"
    pq.write_table(table, path)
    assert path.stat().st_size < 2**20
    said, peak = read_in_a_process(path)
    assert said == answer
    assert int(peak) < MEGABYTES


def test_statistics_that_lie_do_not_end_the_process():
    """Arrow throws where nobody can catch it when a column of this file is asked for its size."""
    pytest.importorskip("pyarrow")
    path = Path(__file__).parents[1] / "data" / "statistics_that_lie.parquet"
    assert read_in_a_process(path)[0] in ("LogError", "200")


def test_only_numbers_and_texts_of_parquet_are_read(tmp_path, case):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"t": [0.0, 1.0], "run": ["a", "b"], "x": [[1], [2]], "b": [b"1", b"2"],
                      "long": [[0.0] * 300] * 2, "text": [["a"]] * 2})  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    df = read_log(tmp_path / "a.parquet")
    assert list(df.columns) == ["t", "run", "x_1"]
    assert df["run"].tolist() == ["a", "b"]
    with pytest.raises(LimitError, match="limit of 20"):
        read_log(tmp_path / "a.parquet", max_bytes=20)


def test_a_column_of_the_other_byte_order_is_proposed_as_time_too(case, tmp_path):
    robot, log = case
    blocks = {"clock": log[["t", "t"]], "q": log.filter(regex="^q_")}
    blocks["tau"] = log.filter(regex="^tau_")
    np.savez(tmp_path / "log.npz", **{k: x.to_numpy().astype(">f8") for k, x in blocks.items()})
    with pytest.raises(LogError, match=r'columns=\{"t": "clock_1"\}'):
        prepare(read_log(tmp_path / "log.npz"), robot)
