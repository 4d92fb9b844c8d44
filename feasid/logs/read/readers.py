"""Files to DataFrames: CSV, Parquet and NumPy archives, one or many, read strictly.

Nothing that is read can execute code: pickles and object arrays are refused. Sizes are checked
before memory is taken.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from feasid.core.files import MOST_BYTES, STDIN, missing_file, reading, rest_of, size_of
from feasid.core.notes import Note
from feasid.core.notes import notes as as_notes
from feasid.errors import (
    InputError,
    LimitError,
    LogError,
)
from feasid.logs.columns import UNITS, UNKNOWN_UNITS, numbers_of, spelled_unit
from feasid.logs.read.bags import read_bag
from feasid.logs.read.csvscan import COMMA_NUMBER, Scan, has_decimal_commas, scan
from feasid.logs.read.digits import exactly
from feasid.logs.read.kinds import kind_of
from feasid.logs.read.npz import MOST_EXPANSION, read_npz
from feasid.logs.read.parquet import read_parquet

if TYPE_CHECKING:
    import pandas as pd

NAMED_UNIT = re.compile(r"(.*\S)\s*(?:[\[(]([^\])]+)[\])]|_(deg))")
"""A column name with its unit."""


def read_log(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    names: Sequence[str] | None = None,
    allow_truncated: bool = False,
    max_bytes: int = MOST_BYTES,
    topic: str | None = None,
    joints: Collection[str] = (),
) -> pd.DataFrame:
    """Read a log, or several as runs.

    Parameters
    ----------
    source : path, glob pattern, or sequence of paths
        ``.csv``, ``.txt``, ``.tsv`` (also ``.gz``), ``.parquet``, ``.npz``, a ROS 2 bag's folder
        or ``.mcap`` (see `feasid.logs.read.bags.read_bag`).
        Of several files each is a run, named after the file.
    delimiter, decimal, names, allow_truncated
        How a CSV file is written; see `csvscan.scan`.
    max_bytes : int
        Refuse files that are or grow larger than this.
    topic, joints
        Which joint states of a bag; see `feasid.logs.read.bags.read_bag`.

    Returns
    -------
    DataFrame
        ``df.attrs["notes"]`` says what was dropped or converted while reading.

    Raises
    ------
    InputError
        The file does not exist (with the nearest name), is a folder, or of no known kind.
    LogError
        Names file, line or column.
    SecurityError
        Pickles and object arrays.
    LimitError
        Files larger than `max_bytes`, or compressed ones that expand beyond reason.
    """
    paths = _paths(source)
    csv_options = {
        "delimiter": delimiter,
        "decimal": decimal,
        "names": names,
        "allow_truncated": allow_truncated,
    }

    def read(path: Path) -> pd.DataFrame:
        if kind_of(path) == "bag":
            return read_bag(path, topic=topic, joints=joints)
        return _read_one(path, csv_options, max_bytes)

    if len(paths) == 1 and not _is_many(source):
        return read(paths[0])
    return _as_runs(paths, read)


def _is_many(source: Any) -> bool:
    return not isinstance(source, str | os.PathLike) or glob.has_magic(os.fspath(source))


def _paths(source: Any) -> list[Path]:
    """The files that a path, a pattern or a list of them stands for."""
    if not isinstance(source, str | os.PathLike):
        paths = [path for item in source for path in _paths(item)]
        if not paths:
            raise InputError("no files were given")
        return paths
    path = Path(source)
    if os.path.exists(path) or str(path) == STDIN:
        return [path]
    if glob.has_magic(str(path)):
        found = sorted(glob.glob(str(path), recursive=True))
        if not found:
            raise InputError(f"no file matches {str(path)!r}", path=str(path))
        return [Path(f) for f in found]
    raise missing_file(path)


def _as_runs(paths: Sequence[Path], read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    labels = _labels(paths)
    frames, notes = [], []
    for path, label in zip(paths, labels, strict=True):
        frame = read(path)
        own = frame["run"].astype(str) if "run" in frame.columns else None
        frame["run"] = label if own is None else label + ":" + own
        said = as_notes(frame.attrs.pop("notes", ()))
        notes += [Note(f"{label}: {note}", note.code, **note.values) for note in said]
        frame.attrs.clear()
        frames.append(frame)
    columns = set(frames[0].columns)
    for path, frame in zip(paths, frames, strict=True):
        if set(frame.columns) != columns:
            odd = sorted(columns ^ set(frame.columns))
            raise LogError(
                f"{path} and {paths[0]} have different columns: {', '.join(map(str, odd[:6]))} in "
                "only one of them",
                path=str(path),
                column=odd[0],
            )
    df = pd.concat(frames, ignore_index=True)
    df.attrs["notes"] = tuple(notes)
    return df


def _labels(paths: Sequence[Path]) -> list[str]:
    """File names without suffix, or as much of the path as tells them apart."""
    stems = [path.name.split(".")[0] for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def _read_one(path: Path, csv_options: dict[str, Any], max_bytes: int) -> pd.DataFrame:
    kind = kind_of(path)
    if kind == "reduced":
        raise InputError(f"{path}: reduced data, not a log: feasid.Reduced.load reads it")
    with reading(path, max_bytes) as file:
        if kind == "parquet":
            return read_parquet(file, str(path), max_bytes)
        if kind == "npz":
            return read_npz(file, str(path), max_bytes)
        return read_csv(_text(file, path, max_bytes), str(path), **csv_options)


# -- CSV ------------------------------------------------------------------------------------------


def _text(file: IO[bytes], path: Path, max_bytes: int) -> bytes:
    """The file's bytes as UTF-8, decompressed with a limit."""
    zipped = path.suffix.lower() == ".gz"
    data = _gunzip(file, path, max_bytes) if zipped else rest_of(file, path, max_bytes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise LogError(
                f"{path}: not UTF-16 at byte offset {error.start}", path=str(path)
            ) from None
    return data.removeprefix(b"\xef\xbb\xbf")


def _gunzip(file: IO[bytes], path: Path, max_bytes: int) -> bytes:
    limit = min(max_bytes, max(2**20, MOST_EXPANSION * size_of(file)))
    try:
        with gzip.open(file) as unzipped:
            data = unzipped.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise LogError(f"{path}: damaged gzip file: {error}", path=str(path)) from error
    if len(data) > limit:
        raise LimitError(
            f"{path}: expands to more than {limit} bytes (limit: {MOST_EXPANSION} times its size "
            "and max_bytes)",
            path=str(path),
        )
    return data


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
    found = scan(data, path, delimiter, decimal or ".", names, allow_truncated)
    commas = decimal is None and has_decimal_commas(data, found)
    decimal = "," if commas else decimal or "."
    empty = [f"\0{k}" for k in range(found.trailing)]  # no name of a text file
    columns = [*found.names, *empty]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            df = pd.read_csv(
                io.BytesIO(memoryview(data)[found.start : found.end]),
                sep=found.delimiter,
                decimal=decimal,
                header=None,
                names=columns,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                **exactly(),
            )
    except UnicodeDecodeError as error:
        raise LogError(
            f"{path}: not UTF-8 at byte offset {found.start + error.start}", path=path
        ) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise LogError(f"{path}: {error}", path=path) from error
    if df[empty].notna().to_numpy().any():
        raise LogError(f"{path}: the last column has cells but no name", path=path)
    df = df.drop(columns=empty)
    for name in df.columns:
        _check_cells(df[name], found, path)
    notes = list(found.notes)
    if commas:
        notes.append("its numbers are read with decimal commas: there is no point among them")
    if found.units is not None:
        notes += _to_si(df, found.units)
    df, units = _without_units(df)
    notes += _to_si(df, units)
    df.attrs["notes"] = tuple(notes)
    return df


def _check_cells(cells: pd.Series[Any], found: Scan, path: str) -> None:
    """Refuse a column in which some cells are numbers and some are not."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells.dtype):
        return
    as_numbers = numbers_of(cells)
    bad = (as_numbers.isna() & cells.notna()).to_numpy()
    text = str(cells.iloc[int(np.argmax(bad))]) if bad.any() else ""
    comma = COMMA_NUMBER.fullmatch(text.strip())
    if not bad.any() or (bool(as_numbers.isna().all()) and not comma):
        return
    row = int(np.argmax(bad))
    repeated = text.strip() in found.names
    advice = ""
    if comma:
        advice = ": a decimal comma? read with decimal=','"
    elif repeated:
        advice = ": the header is repeated there; give joined files as a list, each is a run"
    raise LogError(
        f"{path}, line {found.first_line + row}: column {cells.name!r} has {text[:40]!r}, which is "
        f"no number ({int(bad.sum())} such cell(s)){advice}",
        path=path,
        line=found.first_line + row,
        row=row,
        column=cells.name,
        text=text,
    )


def _without_units(df: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Columns such as ``q_1 [deg]``, ``q_1 (deg)`` and ``q_1_deg`` by their names; their units."""
    known = {u for table in UNITS.values() for u in table}
    names, units = [], []
    for name in map(str, df.columns):
        match = NAMED_UNIT.fullmatch(name)
        plain, unit = (match[1], match[2] or match[3]) if match else (name, "")
        taken = unit not in known or plain in df.columns or plain in names
        names.append(name if taken else plain)
        units.append("" if taken else unit)
    return df.set_axis(names, axis="columns"), units


def _to_si(df: pd.DataFrame, units: Sequence[str]) -> list[str]:
    """Convert columns whose unit below the header is known; say which are not."""
    known = {u: f for table in UNITS.values() for u, f in table.items()}
    notes, unknown = [], {}
    for name, written in zip(list(df.columns), units, strict=False):
        unit = spelled_unit(written)
        if unit in known and df[name].dtype.kind in "iuf":
            if known[unit] != 1.0:
                df[name] = df[name] * known[unit]
                notes.append(f"column {name!r} converted from {written} to SI")
        elif unit and unit != "-":
            unknown[str(name)] = written
    if unknown:
        listed = ", ".join(f"{name} [{unit}]" for name, unit in unknown.items())
        notes.append(Note(f"units not converted: {listed}", UNKNOWN_UNITS, units=unknown))
    return notes
