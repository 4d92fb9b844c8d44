"""Faults of tables by their place: the line, the row, the column, and every word about them."""

import numpy as np
import pytest

from feasid.errors import LogError
from feasid.logs.clock import even_grid
from feasid.logs.read.formats import read_log
from feasid.logs.table import standard_table

HEAD = "# made by hand\n\nt,q_1\n"
"""A comment, a blank line and the header: data begin in line 4."""


def read(tmp_path, text, **options):
    path = tmp_path / "log.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_log(path, **options)


@pytest.mark.parametrize(
    ("text", "said", "data"),
    [
        (HEAD + "0,1\n1,x\n2,y\n3,4\n", ", line 5: column 'q_1' has 'x', which is no number (2 "
         "such cell(s))", {"line": 5, "row": 1, "column": "q_1", "text": "x"}),
        (HEAD + "0,1\n1,2\nt,q_1\n3,4\n", ", line 6: column 't' has 't', which is no number (1 "
         "such cell(s)): the header is repeated there; give joined files as a list, each is a run",
         {"line": 6, "row": 2}),
        ("t;q_1\n0;1.5\n1;2,5\n", ", line 3: column 'q_1' has '2,5', which is no number (1 such "
         "cell(s)): a decimal comma? read with decimal=','", {"line": 3, "row": 1}),
        (HEAD + "0,1\n1,2,3\n", ", line 5: 3 fields, expected 2: '1,2,3'",
         {"line": 5, "expected": 2, "found": 3}),
        (HEAD + "0,1\n1\n2,3\n", ", line 5: 1 fields, expected 2: '1'", {"line": 5, "found": 1}),
        (HEAD + "0,1\n1,2,\n", ", line 5: 3 fields, expected 2: '1,2,'; the row ends with ',' once "
         "more than the header", {"line": 5}),
        (HEAD + "0,1\n1,2,,\n", ", line 5: 4 fields, expected 2: '1,2,,'; the row ends with ',' 2 "
         "times more than the header", {"line": 5}),
        (HEAD + "0,5,1,5\n", ", line 4: 4 fields, expected 2: '0,5,1,5'; decimal commas need "
         "another delimiter between the columns", {"line": 4}),
        (HEAD + "0,1\n# no, a, comment\n", ", line 5: 3 fields, expected 2: '# no, a, comment'; "
         "comments may only stand before the header", {"line": 5}),
        (HEAD + "0,1\n1,2\n2", ", line 6: 1 fields, expected 2: '2'; the file is cut off, "
         "allow_truncated=True drops this line", {"line": 6}),
        (HEAD + f"0,{'1,' * 40}1\n", f", line 4: 42 fields, expected 2: '0,{'1,' * 27}1...'",
         {"line": 4}),
        (HEAD + '0,"1"\n1,"2",3\n', ", line 5: 3 fields, expected 2: '1,2,3'", {"line": 5}),
        (HEAD + '0,"1"\n\n1\n', ", line 6: 1 fields, expected 2: '1'", {"line": 6}),
        (HEAD, ": a header but no data rows", {}),
        (HEAD + "\n\n", ": a header but no data rows", {}),
        ("", ": the file is empty", {}),
        ("# only\n\n", ": the file is empty", {}),
        ("<html>", ": not a CSV file, it starts with '<html>'", {"line": 1}),
        ("\n{", ": not a CSV file, it starts with '{'", {}),
        ("0,1\n1,2\n", ", line 1: no header, the first line holds numbers (2 fields); name the "
         "columns with names=[...]", {"line": 1}),
        ("# t\n0,1\n", ", line 2: no header, the first line holds numbers (2 fields); name the "
         "columns with names=[...]", {"line": 2}),
        ("\nt,q_1,t\n0,1,2\n", ", line 2: column 't' occurs twice, as columns 1 and 3",
         {"line": 2, "column": "t", "positions": (1, 3)}),
        ("\nt,,q_1\n0,1,2\n", ", line 2: column 2 has no name", {"line": 2}),
        (f"t,{'q' * 1001}\n0,1\n", ", line 1: column 2 has a name of 1001 characters, at most 1000",
         {"line": 1}),
        (b"t,q_1\n0,1\r2\n", ", line 2: a carriage return stands inside the line", {"line": 2}),
        (b"\nt,q_1\n0,1\n\n2,\r3\n", ", line 5: a carriage return stands inside the line",
         {"line": 5}),
        (b"t,q_1\r0,1\r", ": its lines end with carriage returns alone, as on old Macs; save it "
         "with line feeds", {}),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(tmp_path, text, said, data):
    with pytest.raises(LogError) as error:
        read(tmp_path, text)
    assert str(error.value) == f"{tmp_path / 'log.csv'}{said}"
    assert {k: error.value.data.get(k) for k in data} == data


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("sep=;\nt;q_1\n0;1\n", ["line 1 states how columns are separated: sep=;"]),
        ("t,q_1\ns,deg\n0,180\n", ["line 2 holds units: s, deg",
                                   "column 'q_1' converted from deg to SI"]),
        ("\nt,q_1\n[s],[rad]\n0,3.14159265358979\n", ["line 3 holds units: s, rad"]),
        ("t,q_1 [deg]\n0,180\n", ["column 'q_1' converted from deg to SI"]),
        ("t,q_1_deg\n0,180\n", ["column 'q_1' converted from deg to SI"]),
        ("t,q_1 (furlong)\n0,3.14159265358979\n", None),
        ("# t,q_1\n0,3.14159265358979\n",
         ["column names are taken from the comment in line 1"]),
        ("t,q_1\n0,3.14159265358979,\n", None),
        ("t,q_1\n0,3.14159265358979\n1", ["line 3, the last, is cut off and was dropped (1 row)"]),
    ],
)  # fmt: skip
def test_what_is_said_of_a_table_that_is_read(tmp_path, text, notes):
    options = {"allow_truncated": True} if text.endswith("1") and "\n1" in text else {}
    if notes is None and text.endswith(",\n"):
        with pytest.raises(LogError, match="once more than the header"):
            read(tmp_path, text)
        return
    found = read(tmp_path, text, **options)
    if notes is None:
        assert found.columns[1] == "q_1 (furlong)"
        return
    assert [str(n) for n in found.attrs["notes"]] == notes
    assert list(found.columns) == ["t", "q_1"]
    assert found["t"].tolist() == [0]
    expected = 1.0 if text.startswith("sep") else np.pi
    assert found["q_1"].tolist() == [pytest.approx(expected)]


def test_units_that_nobody_knows_stay_in_the_header_until_the_joints_are_known(tmp_path):
    found = read(tmp_path, "t,q_1,x\ns,furlong,-\n0,1,2\n")
    assert list(found.columns) == ["t", "q_1 [furlong]", "x"]
    table = standard_table(found, ["elbow"])
    note = table.attrs["notes"][-1]
    assert list(table.columns) == ["t", "q_1", "x"]
    assert str(note) == "units not converted: q_1 [furlong]"
    assert note.values == {"units": {"q_1": "furlong"}}


def test_text_of_windows_is_read_and_told(tmp_path):
    found = read(tmp_path, b"t,\xb5\n0,1\n")
    assert list(found.columns) == ["t", "\u00b5"]
    assert [str(n) for n in found.attrs["notes"]] == [
        "its text is not UTF-8 and was read as Windows-1252 (Latin-1)"
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_a_single_character_are_rows_and_blank_ones_are_none(tmp_path, end):
    found = read(tmp_path, f"x{end}1{end}{end}2{end}")
    assert found["x"].tolist() == [1, 2]
    with pytest.raises(LogError, match="a header but no data rows"):
        read(tmp_path, f"x{end}{end}{end}")


def test_steps_of_whole_units_that_wander_are_uneven():
    """Multiples of 5 ms at random are no rounding of an even clock, although they are few."""
    steps = np.random.default_rng(0).choice([5, 10, 15], 400)
    assert even_grid(1e-3 * np.cumsum(steps)).uneven
