"""Tables that are made to cost more than they are large."""

import time

import numpy as np
import pytest

import feasid
from feasid.core.errors import LogError
from feasid.logs.read.csv import LONGEST_LINE, LONGEST_NAME, MOST_COLUMNS, read_csv
from feasid.logs.table import standard_table


def read(text):
    return standard_table(read_csv(text, "log.csv"))


GROWTH = 8.0
"""Cost of four times the columns: linear is 4, quadratic 16."""


def cost(text):
    """Seconds of processor time, the least of three."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        read(text)
        times.append(time.process_time() - begun)
    return min(times)


def table(columns, name="c{}", units="", cell="1"):
    rows = [[name.format(k) for k in range(columns)], *([[units] * columns] if units else [])]
    rows += [[cell] * columns] * 2
    return "\n".join(",".join(row) for row in rows).encode() + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [{}, {"name": "c{}_deg"}, {"name": "c{} [mm]"}, {"units": "deg"}, {"units": "strange"}],
    ids=str,
)
def test_the_cost_is_linear_in_the_number_of_columns(form):
    few, many = table(MOST_COLUMNS // 4, **form), table(MOST_COLUMNS, **form)
    cost(few)
    assert cost(many) < GROWTH * cost(few)


def test_too_many_columns_are_refused():
    with pytest.raises(LogError, match=f"at most {MOST_COLUMNS}"):
        read_csv(table(MOST_COLUMNS + 1), "log.csv")


@pytest.mark.parametrize("text", ["(", "[", "([", " ", "()", "_deg"])
def test_no_name_costs_more_than_its_length(text):
    """Openings of brackets: an expression that tries each of them for each end is cubic."""
    length = LONGEST_NAME // len(text) - 1
    names = [f"x{k}{text * length}"[:LONGEST_NAME] for k in range(900)]
    header = ",".join(names)
    assert len(header) < LONGEST_LINE
    data = f"{header}\n{','.join('1' * len(names))}\n".encode()
    begun = time.process_time()
    read(data)
    assert time.process_time() - begun < 3.0


@pytest.mark.parametrize(
    ("text", "line"),
    [('t,q\n1,"{}"\n', 2), ('t,q\n"{}\n', 2), ('t,q\n1,2\n1,"{}\n', 3), ('t,"{}"\n1,2\n', 1)],
)
def test_a_long_quoted_cell_or_name_is_an_error_of_its_line(tmp_path, text, line):
    (tmp_path / "log.csv").write_text(text.format("7" * 200_000))
    with pytest.raises(LogError, match=rf"log\.csv, line {line}:"):
        feasid.read_log(tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("name", "plain", "factor"),
    [
        *(("q_1_deg", "q_1", np.pi / 180), ("q_1 [deg]", "q_1", np.pi / 180)),
        *(("q_1(mm)", "q_1", 1e-3), ("q (a) [mm]", "q (a)", 1e-3)),
        *(("_deg", "_deg", 1.0), ("[deg]", "[deg]", 1.0), ("q [x]", "q [x]", 1.0)),
        *(("q (deg", "q (deg", 1.0), ("q [deg] x", "q [deg] x", 1.0)),
    ],
)
def test_units_in_names_are_found(name, plain, factor):
    df = read(f"t,{name}\n0,2\n1,4\n".encode())
    assert list(df.columns) == ["t", plain]
    np.testing.assert_array_equal(df[plain], np.array([2, 4]) * factor)
