"""CSV files to DataFrames, with a strict check of the text before pandas reads it.

pandas shifts columns silently when rows are longer than the header, and fills short rows. Here
every row's fields are counted first; what does not fit is an error with line and count.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from feasid.core.errors import InputError, LogError, refuse_damage
from feasid.core.files import open_for_reading, read_rest
from feasid.logs.columns import cells_to_numbers
from feasid.logs.read import formats
from feasid.logs.table import header_with_unit

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|")
COMMENT = ("#", "%")

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)
COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")

NUMERIC = "biuf"  #: Kinds of columns of numbers.
LONGEST_LINE = 1_000_000  #: Bytes that the header may have.
MOST_COLUMNS = 10_000  #: Columns that a file may have.
LONGEST_NAME = 1000  #: Characters of a column's name.
SAID = re.compile(r"sep=(.)\s*")  #: Excel's first line, which names the separator of columns.

RETURN, FEED = b"\r", b"\n"

LONE_RETURN = re.compile(rb"\r(?!\n|\Z)")  #: A carriage return that ends no line.
INDEX = "index"  #: Name of a first column that has none, as pandas writes its index.


@dataclass(frozen=True)
class CsvScan:
    """Layout of a CSV file."""

    names: tuple[str, ...]  #: Column names.
    units: tuple[str, ...] | None  #: The row of units below the header.
    delimiter: str
    start: int  #: Byte range of the data rows.
    end: int  #: See `start`.
    first_line: int  #: Line number of the first data row, from 1.
    trailing: int  #: Empty columns at the end of the header and of every row.
    notes: tuple[str, ...]


def scan_csv(
    data: bytes,
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    names: Sequence[str] | None = None,
    allow_truncated: bool = False,
) -> CsvScan:
    """Find header, units and data rows, and count every row's fields.

    `data`: the file, UTF-8; `path`: for messages; `delimiter`: default: the most frequent of comma,
    semicolon, tab and bar in the header, or else one blank; `decimal`: {".", ","}, decimal mark;
    `names`: column names of a file without a header; `allow_truncated`: drop a last line that was
    cut off, instead of refusing it.
    """
    if b"\0" in data:
        at = data.index(b"\0")
        raise LogError(f"{path}: not a text file (NUL byte at offset {at})", path=path, offset=at)
    if RETURN in data and FEED not in data:
        raise LogError(
            f"{path}: its lines end with carriage returns alone, as on old Macs; save it with "
            "line feeds",
            path=path,
        )
    if lone := LONE_RETURN.search(data):  # pandas would begin a new row there
        line = data.count(FEED, 0, lone.start()) + 1
        raise _line_error(path, line, "a carriage return stands inside the line")
    lines = _Lines(data, path)
    header = _read_header(lines, delimiter, names, decimal)
    columns, notes = header.names, header.notes
    count = len(columns)
    if names is None:
        last = max((k for k, name in enumerate(columns, 1) if name), default=1)
        columns = columns[:last]
    trailing = count - len(columns)
    if trailing:
        many = "the empty last column is" if trailing == 1 else f"{trailing} empty columns are"
        notes.append(f"the header ends with a delimiter: {many} dropped")
    if names is None and len(columns) > 1 and not columns[0] and INDEX not in columns:
        columns[0] = INDEX
        notes.append(f"column 1 has no name and is taken for an index, {INDEX!r}")
    if len(columns) > MOST_COLUMNS:
        raise _line_error(path, header.line, f"{len(columns)} columns, at most {MOST_COLUMNS}")
    first: dict[str, int] = {}
    for k, name in enumerate(columns, 1):
        if len(name) > LONGEST_NAME:
            text = f"column {k} has a name of {len(name)} characters, at most {LONGEST_NAME}"
            raise _line_error(path, header.line, text)
        if not name:
            raise _line_error(path, header.line, f"column {k} has no name")
        if name in first:
            text = f"column {name!r} occurs twice, as columns {first[name]} and {k}"
            raise _line_error(path, header.line, text, column=name, positions=(first[name], k))
        first[name] = k
    end = _count_fields(lines, count, header.delimiter, allow_truncated, notes)
    rows = lines.at, end, lines.line
    return CsvScan(tuple(columns), header.units, header.delimiter, *rows, trailing, tuple(notes))


class _Header(NamedTuple):
    """Line, separator, and names and units of the columns, and notes on how they were read."""

    line: int
    delimiter: str
    units: tuple[str, ...] | None
    names: list[str]
    notes: list[str]


def _line_error(path: str, line: int, message: str, **data: Any) -> LogError:
    return LogError(f"{path}, line {line}: {message}", path=path, line=line, **data)


class _Lines:
    """The lines at the head of a file, one at a time, with their number."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path = data, path
        self.at, self.line, self.end = 0, 1, len(data)

    def peek(self) -> str | None:
        """The current line without its end, None at the end of the file."""
        if self.at >= self.end:
            return None
        stop = self._line_end()
        if stop - self.at > LONGEST_LINE:
            raise _line_error(self.path, self.line, f"longer than {LONGEST_LINE} bytes")
        try:
            return self.data[self.at : stop].decode().rstrip("\r")
        except UnicodeDecodeError as error:
            text = f"not UTF-8 at byte offset {self.at + error.start}: save it as UTF-8"
            raise _line_error(self.path, self.line, text) from None

    def go_to_next(self) -> None:
        """Go to the next line."""
        self.at, self.line = min(self._line_end() + 1, self.end), self.line + 1

    def _line_end(self) -> int:
        stop = self.data.find(b"\n", self.at)
        return self.end if stop < 0 else stop


def _read_header(
    lines: _Lines, delimiter: str | None, names: Sequence[str] | None, decimal: str
) -> _Header:
    """Read comments, header and units; leaves `lines` at the first data row."""
    path = lines.path
    notes: list[str] = []
    comment: tuple[int, str] | None = None
    while (text := lines.peek()) is not None and text.lstrip()[:1] in ("", *COMMENT):
        if text.strip():
            comment = (lines.line, text.lstrip().lstrip("".join(COMMENT)).strip())
        lines.go_to_next()
    if text is None:
        raise LogError(f"{path}: the file is empty", path=path)
    start, first = text.lstrip()[:20], lines.line
    if start.startswith(("<", "{", "[{")):
        raise _line_error(path, first, f"not a CSV file, it starts with {start!r}")
    if match := SAID.fullmatch(text):
        notes.append(f"line {first} states how columns are separated: {text.strip()}")
        lines.go_to_next()
        first, delimiter, text = lines.line, delimiter or match[1], lines.peek() or ""
    if not delimiter:  # the most frequent one; without any, one blank
        most = max(DELIMITERS, key=text.count)
        delimiter = most if most in text else " " if " " in text.strip() else ","
    fields = _split_fields(text, delimiter)
    if names is not None:
        return _Header(first, delimiter, None, [str(n) for n in names], notes)
    numbers = [_is_number(f, decimal) for f in fields if f]
    names_in_comment = _split_fields(comment[1], delimiter) if comment else []
    above = len(names_in_comment) == len(fields) and not any(
        _is_number(f, decimal) for f in names_in_comment
    )
    if all(numbers) or (above and any(numbers)):  # rostopic echo -p has names in its rows
        if not comment or len(names_in_comment) != len(fields):
            what = f"no header, the first line holds numbers ({len(fields)} fields)"
            raise _line_error(path, first, f"{what}; name the columns with names=[...]")
        notes.append(f"column names are taken from the comment in line {comment[0]}")
        return _Header(comment[0], delimiter, None, names_in_comment, notes)
    lines.go_to_next()
    # Units stand below the header, if no field there is a number and one is not empty.
    below, units = _split_fields(lines.peek() or "", delimiter), None
    texts = [f for f in below if f.strip()]
    numbers = [_is_number(f, decimal) or bool(COMMA_NUMBER.fullmatch(f)) for f in texts]
    if (
        len(below) == len(fields)
        and not any(numbers)
        and 0 < max(map(len, texts), default=0) <= LONGEST_NAME
    ):
        units = tuple(f.strip("[]() ") for f in below)
        notes.append(f"line {lines.line} holds units: {', '.join(units)}")
        lines.go_to_next()
    return _Header(first, delimiter, units, fields, notes)


def _split_fields(text: str, delimiter: str) -> list[str]:
    try:
        return [f.strip() for f in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:  # a stray carriage return or NUL: what is not a field matches no name
        return [text]


def _is_number(field: str, decimal: str) -> bool:
    if decimal == ",":
        field = field.replace(",", ".")
    return not field or NUMBER.fullmatch(field) is not None


def _count_fields(
    lines: _Lines, count: int, delimiter: str, allow_truncated: bool, notes: list[str]
) -> int:
    """Check that every row from here on has `count` fields; returns where the data end."""
    data, start = lines.data, lines.at
    if data.find(b'"', start) >= 0:
        # Files with quoted cells are read cell by cell.
        cells = io.TextIOWrapper(io.BytesIO(lines.data[lines.at :]), "utf-8", "replace", newline="")
        rows = csv.reader(cells, delimiter=delimiter)
        try:
            for row in rows:
                if row and len(row) != count:
                    line, text_of_row = lines.line + rows.line_num - 1, delimiter.join(row)
                    raise _row_error(lines.path, line, count, len(row), text_of_row, delimiter)
        except csv.Error as error:
            line = lines.line + max(rows.line_num - 1, 0)
            raise _line_error(lines.path, line, str(error)) from error
        return len(lines.data)
    body = np.frombuffer(data, dtype=np.uint8)[start:]
    ends = np.flatnonzero(body == ord(FEED))
    if not len(ends) or ends[-1] != body.size - 1:
        ends = np.append(ends, body.size)
    begins = np.concatenate([[0], ends[:-1] + 1])
    places = np.flatnonzero(body == ord(delimiter))
    counts = np.searchsorted(places, ends) - np.searchsorted(places, begins) + 1
    blank = ends == begins
    single = np.flatnonzero(ends - begins == 1)
    blank[single] = body[begins[single]] == ord(RETURN)
    wrong = np.flatnonzero((counts != count) & ~blank)
    if not wrong.size:
        if blank.all():
            raise LogError(f"{lines.path}: a header but no data rows", path=lines.path)
        return len(data)
    k = int(wrong[0])
    line = lines.line + k
    is_last = k == len(ends) - 1 and data[-1:] != FEED and counts[k] < count
    if is_last and allow_truncated:
        notes.append(f"line {line}, the last, is cut off and was dropped (1 row)")
        return start + int(begins[k])
    text = bytes(body[begins[k] : ends[k]]).decode(errors="replace").rstrip("\r")
    raise _row_error(lines.path, line, count, int(counts[k]), text, delimiter, is_last)


def _row_error(
    path: str, line: int, count: int, found: int, text: str, delimiter: str, is_last: bool = False
) -> LogError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    advice = ""
    if is_last:
        advice = "; the file is cut off, allow_truncated=True drops this line"
    elif text.lstrip().startswith(COMMENT):
        advice = "; comments may only stand before the header"
    elif found > count and not text[-(found - count) :].strip(delimiter):
        times = "once" if found == count + 1 else f"{found - count} times"
        advice = f"; the row ends with {delimiter!r} {times} more than the header"
    elif delimiter == "," and found == 2 * count:
        advice = "; decimal commas need another delimiter between the columns"
    what = f"{found} fields, expected {count}: {shown!r}{advice}"
    return _line_error(path, line, what, expected=count, found=found)


EXACT_SINCE = (3, 1)  #: From this pandas on decimals are read to the nearest double by default.


def exact_decimal_arguments() -> dict[str, Any]:
    """Arguments of ``pandas.read_csv`` for the nearest double; older defaults are 5e-13 off."""
    known = tuple(int(part) for part in version("pandas").split(".")[:2])
    return {} if known >= EXACT_SINCE else {"float_precision": "round_trip"}


def read_csv_file(path: Path, how: formats.LogReading) -> pd.DataFrame:
    """Read a text file, also one packed by gzip; see `read_csv`."""
    with open_for_reading(path, how.max_bytes) as file:
        if path.suffix.lower() == ".gz":
            limit = formats.unpacked_limit(file, how.max_bytes)
            with refuse_damage(path, "damaged gzip file"), gzip.open(file) as unzipped:
                data = unzipped.read(limit + 1)
            if len(data) > limit:
                raise formats.expansion_error(path, limit)
        else:
            data = read_rest(file, path, how.max_bytes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            text = f"{path}: not UTF-16 at byte offset {error.start}"
            raise LogError(text, path=str(path)) from None
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
    encoding = "UTF-8"
    try:
        data.decode()
    except UnicodeDecodeError:
        # Text of a Western European Windows, if its other characters are letters and units.
        with suppress(UnicodeDecodeError):
            text = data.decode("cp1252")
            others = {c for c in text if not c.isascii()}
            if all(c.isalpha() or c in WINDOWS_SYMBOLS for c in others):
                data, encoding = text.encode(), "Windows-1252"
    df = read_csv(data, str(path), **how.csv)
    if encoding != "UTF-8":
        note = f"its text is not UTF-8 and was read as {encoding} (Latin-1)"
        df.attrs["notes"] = (*df.attrs["notes"], note)
    return df


WINDOWS_SYMBOLS = "°²³µ·"
"""Characters other than letters in headers with units, the same in Windows-1252 and Latin-1."""


formats.register_format(
    formats.LogFormat("csv", (".csv", ".txt", ".tsv", ".dat", ""), read_csv_file)
)


def read_csv(
    data: bytes,
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    names: Sequence[str] | None = None,
    allow_truncated: bool = False,
) -> pd.DataFrame:
    """Read scanned CSV text; see `read_log` for what is refused."""
    import pandas as pd

    if decimal not in (".", ",", None):
        raise InputError(f"decimal must be '.' or ',', not {decimal!r}")
    scan = scan_csv(data, path, delimiter, decimal or ".", names, allow_truncated)
    rows = data[scan.start : scan.end]
    commas = decimal is None and scan.delimiter != "," and b"," in rows and b"." not in rows
    empty = [f"\0{k}" for k in range(scan.trailing)]  # no name of a text file
    columns = [*scan.names, *empty]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            df = pd.read_csv(
                io.BytesIO(rows),
                sep=scan.delimiter,
                decimal="," if commas else decimal or ".",
                header=None,
                names=columns,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                **exact_decimal_arguments(),
            )
    except UnicodeDecodeError as error:
        raise LogError(
            f"{path}: not UTF-8 at byte offset {scan.start + error.start}: save it as UTF-8",
            path=path,
        ) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise LogError(f"{path}: {error}", path=path) from error
    if df[empty].notna().to_numpy().any():
        raise LogError(f"{path}: the last column has cells but no name", path=path)
    df = df.drop(columns=empty) if empty else df
    for name, dtype in zip(df.columns, df.dtypes, strict=True):
        if dtype.kind not in NUMERIC:
            _check_cells(df[name], scan, path)
    notes = list(scan.notes)
    if commas:
        notes.append("its numbers are read with decimal commas: there is no point among them")
    if scan.units is not None:
        named = zip(df.columns, scan.units, strict=False)
        df.columns = pd.Index([header_with_unit(*pair) for pair in named])
    df.attrs["notes"] = tuple(notes)
    return df  # type: ignore[no-any-return]  # by the stubs of read_csv with unpacked arguments


def _check_cells(cells: pd.Series[Any], found: CsvScan, path: str) -> None:
    """Refuse a column in which some cells are numbers and some are not."""
    as_numbers = cells_to_numbers(cells)
    bad = np.flatnonzero(as_numbers.isna() & cells.notna())
    if not bad.size:
        return
    row = int(bad[0])
    text = str(cells.iloc[row])
    comma = COMMA_NUMBER.fullmatch(text.strip())
    if as_numbers.isna().all() and not comma:
        return
    advice = f", which is no number ({bad.size} such cell(s))"
    if comma:
        advice += ": a decimal comma? read with decimal=','"
    elif text.strip() in found.names:
        advice += ": the header is repeated there; give joined files as a list, each is a run"
    what = f"column {cells.name!r} has {text[:40]!r} in row {row}"
    line = found.first_line + row
    raise _line_error(path, line, f"{what}{advice}", row=row, column=cells.name, text=text)
