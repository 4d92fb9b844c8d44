"""Reading files: what is accepted, what is refused, and what the refusal names."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import write_log

from feasid.core.errors import FeasidError, InputError, LimitError, LogError, SecurityError
from feasid.logs.read.csv import read_csv
from feasid.logs.read.formats import read_log

GOOD = "t,q_1,tau_1\n0,0.1,1\n0.1,0.25,-2e-3\n0.2,0.3,1.5\n"


def test_reads_a_plain_csv_exactly(tmp_path):
    rng = np.random.default_rng(0)
    want = pd.DataFrame(rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-9, 9, (50, 3)))
    want.columns = ["t", "q_a b", "tau_ü"]
    path = tmp_path / "log.csv"
    want.to_csv(path, index=False)
    got = read_log(path)
    assert list(got.columns) == list(want.columns)
    np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


DRESSES = {
    "plain": GOOD,
    "semicolon": GOOD.replace(",", ";"),
    "tab": GOOD.replace(",", "\t"),
    "crlf": GOOD.replace("\n", "\r\n"),
    "bom": "\ufeff" + GOOD,
    "comment": "# made by hand\n\n" + GOOD + "\n\n",
    "cut-newline": GOOD.rstrip("\n"),
    "commented-header": "# t,q_1,tau_1\n" + GOOD.split("\n", 1)[1],
    "quoted": GOOD.replace("t,q_1,tau_1", '"t","q_1","tau_1"'),
    "quoted-cells": GOOD.replace("0.1,0.25", '"0.1","0.25"'),
    "spaces": GOOD.replace(",", ", "),
    "trailing": GOOD.replace("\n", ",\n"),
}


@pytest.mark.parametrize("text", DRESSES.values(), ids=DRESSES)
def test_equal_tables_in_other_dress(tmp_path, text):
    want = pd.DataFrame({"t": [0, 0.1, 0.2], "q_1": [0.1, 0.25, 0.3], "tau_1": [1, -2e-3, 1.5]})
    pd.testing.assert_frame_equal(read_log(write_log(tmp_path, text)), want, check_like=False)


def test_decimal_commas(tmp_path):
    text = GOOD.replace(",", ";").replace(".", ",")
    path = write_log(tmp_path, text)
    assert read_log(path, decimal=",")["q_1"].tolist() == [0.1, 0.25, 0.3]
    found = read_log(path)
    assert found["q_1"].tolist() == [0.1, 0.25, 0.3]
    assert any("decimal commas" in note for note in found.attrs["notes"])
    with pytest.raises(LogError, match=r"decimal=','"):
        read_log(path, decimal=".")
    mixed = write_log(tmp_path, text.replace("0,25", "0.25"), "mixed.csv")
    with pytest.raises(LogError, match="no number"):
        read_log(mixed)


def test_an_index_that_pandas_wrote_needs_no_name(tmp_path):
    want = read_log(write_log(tmp_path, GOOD))
    path = tmp_path / "indexed.csv"
    want.to_csv(path)
    found = read_log(path)
    assert found.columns[0] == "index"
    assert found["index"].tolist() == list(range(len(want)))
    pd.testing.assert_frame_equal(found.drop(columns="index"), want, check_like=False)
    assert any("has no name" in note for note in found.attrs["notes"])


def test_utf16_and_gzip(tmp_path):
    want = read_log(write_log(tmp_path, GOOD))
    path = write_log(tmp_path, GOOD.encode("utf-16"), "u.csv")
    pd.testing.assert_frame_equal(read_log(path), want)
    path = write_log(tmp_path, gzip.compress(GOOD.encode()), "z.csv.gz")
    pd.testing.assert_frame_equal(read_log(path), want)


def test_units_row_is_applied_and_said(tmp_path):
    text = GOOD.replace("tau_1\n", "tau_1\n[ms],[deg],[N*m]\n")
    df = read_log(write_log(tmp_path, text))
    np.testing.assert_allclose(df["t"], [0, 1e-4, 2e-4])
    np.testing.assert_allclose(df["q_1"], np.deg2rad([0.1, 0.25, 0.3]))
    assert "line 2 holds units" in df.attrs["notes"][0]
    assert "'q_1' converted from deg" in " ".join(df.attrs["notes"])


def test_text_columns_beside_the_numbers_are_kept(tmp_path):
    text = "t,q_1,state\n0,1,idle\n1,2,moving\n"
    assert read_log(write_log(tmp_path, text))["state"].tolist() == ["idle", "moving"]


BROKEN = {
    "no header": ("0,0.1,1\n0.1,0.2,2\n", ["line 1", "no header", "names="]),
    "short row": (GOOD + "0.3,1\n0.4,1,1\n", ["line 5", "2 fields", "expected 3"]),
    "long row": (GOOD.replace("0.25,", "0.25,7,"), ["line 3", "4 fields", "expected 3"]),
    "shifted": ("t,q_1\n0,1,2\n1,2,3\n", ["line 2", "3 fields", "expected 2"]),
    "trailing": (GOOD.replace("1\n0.1", "1,\n0.1"), ["line 2", "ends with ','"]),
    "cut": (GOOD + "0.3,0.", ["line 5", "2 fields", "allow_truncated"]),
    "doubled name": (GOOD.replace("tau_1", "q_1"), ["line 1", "'q_1'", "columns 2 and 3"]),
    "no name": (GOOD.replace("q_1", ""), ["line 1", "column 2"]),
    "repeated header": (GOOD + GOOD, ["line 5", "'t'", "header is repeated"]),
    "text cell": (GOOD.replace("0.25", "#REF!"), ["line 3", "'q_1'", "#REF!"]),
    "dash": (GOOD.replace("0.25", "-"), ["line 3", "'q_1'", "'-'"]),
    "thousands": (GOOD.replace(",", ";").replace("0.25", "1.000.25"), ["line 3", "'q_1'"]),
    "twice in a comment": ("# t,q_a,q_a\n0,1,2\n1,2,3\n", ["line 1", "q_a"]),
    "late comment": (GOOD + "# stop\n", ["line 5", "comments"]),
    "html": ("<html>404</html>", ["<html>"]),
    "json": ("{}", ["not a CSV"]),
    "empty": ("", ["empty"]),
    "only header": ("t,q_1\n", ["no data rows"]),
    "nul": ("t,q_1\n0,\0\n", ["NUL", "offset 8"]),
    "no text": (b"t,q_\x81\n0,1\n", ["line 1", "offset 4", "save it as UTF-8"]),
    "a cell that is no text": (b"t,q_1\n0,\x81\n", ["UTF-8"]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_csv_is_refused_by_name(tmp_path, fault):
    text, names = BROKEN[fault]
    path = write_log(tmp_path, text)
    with pytest.raises(LogError) as caught:
        read_log(path)
    for name in [*names, str(path)]:
        assert name in str(caught.value)


def test_text_of_a_western_windows_is_read_and_said(tmp_path):
    text = "t;q_1 [\xb0];tau_1 [Nm];Z\xe4hler\n0;90,5;1;7\n0,1;45;2;8\n"
    path = write_log(tmp_path, text.encode("latin-1"))
    df = read_log(path)
    assert list(df.columns) == ["t", "q_1", "tau_1", "Z\xe4hler"]
    np.testing.assert_allclose(df["q_1"], np.deg2rad([90.5, 45.0]))
    assert any("Windows-1252" in note for note in df.attrs["notes"])


def test_a_cut_last_line_may_be_dropped(tmp_path):
    path = write_log(tmp_path, GOOD + "0.3,0.")
    df = read_log(path, allow_truncated=True)
    assert len(df) == 3
    assert "line 5, the last, is cut off" in df.attrs["notes"][0]


def test_missing_file_names_the_nearest(tmp_path):
    write_log(tmp_path, GOOD, "measurement.csv")
    with pytest.raises(InputError, match=r"did you mean 'measurement.csv'"):
        read_log(tmp_path / "mesurement.csv")
    with pytest.raises(InputError, match="folder"):
        read_log(tmp_path)
    with pytest.raises(InputError, match=r"no reader for '.xlsx' .*\.csv .*\.parquet "):
        read_log(write_log(tmp_path, GOOD, "log.xlsx"))


def test_several_files_become_runs(tmp_path):
    write_log(tmp_path, GOOD, "a.csv")
    write_log(tmp_path, GOOD, "b.csv")
    df = read_log([tmp_path / "b.csv", tmp_path / "a.csv"])
    assert df["run"].tolist() == ["b"] * 3 + ["a"] * 3
    assert read_log(str(tmp_path / "*.csv"))["run"].tolist() == ["a"] * 3 + ["b"] * 3
    write_log(tmp_path, GOOD.replace("q_1", "q_2"), "c.csv")
    with pytest.raises(LogError, match=r"different columns.*q_1"):
        read_log(str(tmp_path / "?.csv"))
    with pytest.raises(InputError, match="no file matches"):
        read_log(str(tmp_path / "*.dat"))


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    want = pd.DataFrame({"t": [0.0, 0.1], "q_1": np.array([1, 2], dtype=np.float32)})
    path = tmp_path / "log.parquet"
    want.to_parquet(path)
    pd.testing.assert_frame_equal(read_log(path), want)
    content = path.read_bytes()
    for damaged in (content[:-6], content[: len(content) // 2], b"PAR1" + b"\0" * 20):
        with pytest.raises(LogError, match=r"damaged.parquet: damaged"):
            read_log(write_log(tmp_path, damaged, "damaged.parquet"))
    with pytest.raises(LimitError, match="limit"):
        read_log(path, max_bytes=10)


def test_parquet_that_expands_is_refused_before_reading(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "bomb.parquet"
    pd.DataFrame({"t": np.zeros(2_000_000)}).to_parquet(path, compression="zstd")
    assert path.stat().st_size < 1_000_000
    with pytest.raises(LimitError, match="2000000 rows"):
        read_log(path, max_bytes=10_000_000)


def test_parquet_with_many_columns_is_read_in_smaller_batches(tmp_path, monkeypatch):
    arrays = pytest.importorskip("feasid.logs.read.arrays")
    pd.DataFrame(np.zeros((95, 4)), columns=[*"abcd"]).to_parquet(tmp_path / "wide.parquet")
    monkeypatch.setattr(arrays, "AT_ONCE", 10 * 4 * arrays.CELL)
    with open(tmp_path / "wide.parquet", "rb") as source:
        sizes = [len(b) for b in arrays.read_batches(source, "wide", 50, 10**6)]
    assert (sum(sizes), max(sizes)) == (95, 10)


def test_npz_arrays_become_columns(tmp_path):
    q = np.arange(8.0).reshape(4, 2)
    path = tmp_path / "log.npz"
    np.savez(path, t=np.arange(4.0), positions=q, gains=np.ones(2), label=np.array("x"))
    df = read_log(path)
    assert list(df.columns) == ["t", "positions_1", "positions_2"]
    np.testing.assert_array_equal(df[["positions_1", "positions_2"]], q)
    assert "gains (2,)" in df.attrs["notes"][0]


class Trap:
    """Creates a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_object_arrays_and_pickles_are_never_opened(tmp_path):
    trap = tmp_path / "sprung"
    path = tmp_path / "log.npz"
    np.savez(path, t=np.arange(2.0), q=np.array([Trap(trap), 1], dtype=object))
    with pytest.raises(SecurityError, match="'q' holds Python objects"):
        read_log(path)
    for name in ("log.pkl", "log.npy", "log.joblib"):
        with pytest.raises(SecurityError, match="can hold code"):
            read_log(write_log(tmp_path, b"\x80\x04.", name))
    assert not trap.exists()


def test_bombs_are_refused(tmp_path):
    path = write_log(tmp_path, gzip.compress(b"t,q_1\n" + b"0,0\n" * 10_000_000), "bomb.csv.gz")
    with pytest.raises(LimitError, match="expands"):
        read_log(path)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(10_000_000))
        archive.writestr("t.npy", buffer.getvalue())
    with pytest.raises(LimitError, match="expands"):
        read_log(tmp_path / "bomb.npz")
    with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        )
        archive.writestr("t.npy", buffer.getvalue() + b"\0" * 64)
    with pytest.raises(LogError, match="header does not agree"):
        read_log(tmp_path / "lie.npz")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_files_end_in_a_table_or_a_feasid_error(data):
    content = bytearray(GOOD.encode() * 3)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        else:
            content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=4))
        if not content:
            return
    with contextlib.suppress(FeasidError):
        assert len(read_csv(bytes(content), "mutant.csv"))


def test_parquet_with_damaged_notes_of_pandas_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"t": [0.0, 0.1]}).replace_schema_metadata({b"pandas": b"{damaged \xff"})
    pq.write_table(table, tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet")["t"].tolist() == [0.0, 0.1]


def test_an_index_of_time_comes_back_as_a_column(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"t": [0.0, 0.1], "q_1": [1.0, 2.0]}).set_index("t").to_parquet(tmp_path / "i.pq")
    assert set(read_log(tmp_path / "i.pq").columns) == {"t", "q_1"}


def test_units_of_a_text_column_convert_nothing(tmp_path):
    df = read_log(write_log(tmp_path, "t,state\n[ms],[deg]\n0,a\n1,b\n"))
    assert df["state"].tolist() == ["a", "b"]
