"""Faults of tables by their place: the line, the row, the column, and every word about them."""

import numpy as np
import pytest
from logs import write_log
from pinned import assert_pinned
from scipy.io import savemat

from feasid.core.errors import FeasidError, LogError
from feasid.logs.clock import even_grid
from feasid.logs.read.formats import read_log
from feasid.logs.table import standard_table

HEAD = "# made by hand\n\nt,q_1\n"
"""A comment, a blank line and the header: data begin in line 4."""


GOOD = "t,q_1,tau_1\n0,0.1,1\n0.1,0.25,-2e-3\n0.2,0.3,1.5\n"
TEXTS = [
    HEAD + "0,1\n1,x\n2,y\n3,4\n", HEAD + "0,1\n1,2\nt,q_1\n3,4\n", "t;q_1\n0;1.5\n1;2,5\n",
    HEAD + "0,1\n1,2,3\n", HEAD + "0,1\n1\n2,3\n", HEAD + "0,1\n1,2,\n", HEAD + "0,1\n1,2,,\n",
    HEAD + "0,5,1,5\n", HEAD + "0,1\n# no, a, comment\n", HEAD + "0,1\n1,2\n2",
    HEAD + f"0,{'1,' * 40}1\n", HEAD + '0,"1"\n1,"2",3\n', HEAD + '0,"1"\n\n1\n', HEAD,
    HEAD + "\n\n", "", "# only\n\n", "<html>", "\n{", "0,1\n1,2\n", "# t\n0,1\n",
    "\nt,q_1,t\n0,1,2\n", "\nt,,q_1\n0,1,2\n", f"t,{'q' * 1001}\n0,1\n", b"t,q_1\n0,1\r2\n",
    b"\nt,q_1\n0,1\n\n2,\r3\n", b"t,q_1\r0,1\r", "sep=;\nt;q_1\n0;1\n", "t,q_1\ns,deg\n0,180\n",
    "\nt,q_1\n[s],[rad]\n0,3.14159265358979\n", "t,q_1 [deg]\n0,180\n", "t,q_1_deg\n0,180\n",
    "t,q_1 (furlong)\n0,3.14159265358979\n", "# t,q_1\n0,3.14159265358979\n",
    "t,q_1\n0,3.14159265358979,\n", "t,q_1\n0,3.14159265358979\n1", GOOD,
    GOOD.replace(",", ";").replace(".", ","), GOOD[12:], GOOD.replace(",", "\t"),
    GOOD.replace(",", " "), GOOD.replace(",", "  "), "# " + GOOD.replace(",", " "), "", GOOD[:12],
    f"# made by hand\n# {GOOD}# the end\n",
    GOOD.replace("t,", "t,", 1).replace("\n", "\ns,rad,N m\n", 1), GOOD.replace(",-2e-3", ""),
    GOOD.replace("-2e-3", "-2e-3,7"), GOOD.replace("0.25", "abc"), GOOD.replace("0.25", ""),
    GOOD.replace("0.25", "NaN"), GOOD.replace("0.25", "-inf"), GOOD.replace("tau_1", "q_1"),
    GOOD.replace("q_1", ""), GOOD.replace("0.25", '"0.25"'), GOOD.replace("0.25", '"0.25'),
    "\ufeff" + GOOD, "Recorded on Monday\n" + GOOD, GOOD.replace("0.25", "true"),
    GOOD.replace("0.25", "0x19"), GOOD.replace("0.25", "0_25"), GOOD.replace(",1.5", ',"1,500.5"'),
    GOOD.replace("0.25", "\0"), GOOD.replace("\n0,", "\n2024-01-02T03:04:05,"),
    GOOD.replace("\n", "\r"), GOOD.replace("\n", "\n\n"),
    GOOD.replace("t,", ",t,", 1).replace("\n0", "\n7,0"), GOOD.replace("\n", ",\n"),
]  # fmt: skip
X, Y = np.arange(6.0).reshape(3, 2), np.arange(3)
ARRAYS = {
    "flat": {"t": Y, "q": X}, "nested": {"log": {"t": Y, "arm": {"q": X, "tau": -X}}},
    "same names": {"a": {"t": Y, "q": X}, "b": {"q": X + 1.0}},
    "scalars": {"t": Y, "q": X, "rate": 100.0}, "other lengths": {"t": Y, "q": X[:2]},
    "texts": {"t": Y, "q": X, "names": ["a", "b"]}, "turned": {"t": Y, "q": X.T},
    "empty": {"t": np.zeros(0)},
    "whole": {"t": Y, "q_1": X[:, 0].astype(int), "tau_1": X[:, 1] > 2},
}  # fmt: skip


def told(path, **options):
    """The columns of a file and what is said of it, or why it is refused."""
    try:
        frame = read_log(path, **options)
    except FeasidError as error:
        data = {k: v for k, v in error.data.items() if k != "path"}
        return {"refused": str(error).replace(str(path), ""), **data}
    notes = [*map(str, frame.attrs["notes"])]
    return {"notes": notes} | {str(k): [*map(str, frame[k])] for k in frame}


def test_tables_and_arrays_are_read_or_refused_in_these_words(tmp_path):
    """The table is `tests/data/pinned/read.json`."""
    results = {}
    for text in TEXTS:
        path = write_log(tmp_path, text)
        results[str(text)] = told(path)
        results[f"{text} (whole rows)"] = told(path, allow_truncated=True)
    for name, arrays in ARRAYS.items():
        savemat(tmp_path / "log.mat", arrays)
        results[f"{name} (mat)"] = told(tmp_path / "log.mat")
        if not any(isinstance(x, dict | list) for x in arrays.values()):
            np.savez(tmp_path / "log.npz", **arrays)
            results[f"{name} (npz)"] = told(tmp_path / "log.npz")
    assert_pinned("read", results)


def test_units_that_nobody_knows_stay_in_the_header_until_the_joints_are_known(tmp_path):
    found = read_log(write_log(tmp_path, "t,q_1,x\ns,furlong,-\n0,1,2\n"))
    assert list(found.columns) == ["t", "q_1 [furlong]", "x"]
    table = standard_table(found, ["elbow"])
    note = table.attrs["notes"][-1]
    assert list(table.columns) == ["t", "q_1", "x"]
    assert str(note) == "units not converted: q_1 [furlong]"
    assert note.values == {"units": {"q_1": "furlong"}}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_a_single_character_are_rows_and_blank_ones_are_none(tmp_path, end):
    found = read_log(write_log(tmp_path, f"x{end}1{end}{end}2{end}"))
    assert found["x"].tolist() == [1, 2]
    with pytest.raises(LogError, match="a header but no data rows"):
        read_log(write_log(tmp_path, f"x{end}{end}{end}"))


def test_steps_of_whole_units_that_wander_are_uneven():
    """Multiples of 5 ms at random are no rounding of an even clock, although they are few."""
    steps = np.random.default_rng(0).choice([5, 10, 15], 400)
    assert even_grid(1e-3 * np.cumsum(steps)).uneven


def test_lists_in_cells_and_names_in_rows_are_read(tmp_path):
    """As pandas writes lists, and as `rostopic echo -p` writes names of joints."""
    path = tmp_path / "log.csv"
    path.write_text('t,q,tau\n0.0,"[0.1, -2e-1]","(1, 2)"\n0.1,"[0.3, 0.4]","(3, 4)"\n')
    log = read_log(path)
    assert [*log.columns] == ["t", "q_1", "q_2", "tau_1", "tau_2"]
    assert log["q_2"].tolist() == [-0.2, 0.4]
    path.write_text("%time,field.name0,field.position0\n0,elbow,0.5\n1,elbow,0.75\n")
    assert read_log(path)["field.position0"].tolist() == [0.5, 0.75]
