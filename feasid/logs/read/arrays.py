"""Arrays and tables in memory as a log, and NumPy archives.

A mapping ``{"t": (N,), "q": (N, dof), "tau": (N, dof)}``, a tuple ``(t, q, tau)``, or a table of
Arrow or polars.

Parquet files, whose declared sizes are not trusted. Needs the extra "parquet". Lists of a
fixed length become columns, and LeRobot's datasets those of positions and commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import DamagedError, read_arrays, unpack_archive
from feasid.core.errors import InputError, LimitError, LogError, SecurityError, missing_extra
from feasid.core.files import file_size, open_for_reading
from feasid.core.notes import Note
from feasid.core.text import quote
from feasid.logs.read import formats
from feasid.logs.table import LONGEST_LIST, header_with_unit
from feasid.logs.units import TIMES, split_header

if TYPE_CHECKING:
    import pandas as pd

MEMBERS = {
    2: ("t", "q"),
    3: ("t", "q", "tau"),
    4: ("t", "q", "dq", "tau"),
    5: ("t", "q", "dq", "ddq", "tau"),
}
"""What the arrays of a tuple are, by their number."""


def is_tuple_of_arrays(source: Any) -> bool:
    """Whether this is one log as a tuple of arrays, and not several logs."""
    return isinstance(source, tuple) and bool(source) and all(
        isinstance(member, np.ndarray) for member in source
    )  # fmt: skip


def frame_of_tuple(arrays: Sequence[Any]) -> pd.DataFrame:
    """``(t, q, tau)``, with ``dq`` or ``dq, ddq`` before tau, or ``(t, q)`` to predict from."""
    names = MEMBERS.get(len(arrays))
    if names is None:
        known = ", ".join(f"({', '.join(m)})" for m in MEMBERS.values())
        raise LogError(f"a log as a tuple is one of {known}, not {len(arrays)} arrays")
    shapes = ", ".join(f"{n} {np.shape(a)}" for n, a in zip(names, arrays, strict=True))
    matrix = all(np.ndim(a) in (1, 2) and np.size(arrays[0]) in np.shape(a) for a in arrays[1:])
    if np.size(arrays[0]) not in np.shape(arrays[0]) or not matrix:
        raise LogError(
            f"a log as a tuple has t of shape (N,) and the others of shape (N, dof); got {shapes}"
        )
    return frame_of_arrays(dict(zip(names, arrays, strict=True)))


def frame_of_table(table: Any) -> pd.DataFrame:
    """A table of Arrow or polars, column by column; missing cells become NaN."""
    import pandas as pd

    if hasattr(table, "column_names"):  # Arrow's; pictures, structures and long lists stay out
        types = import_module("pyarrow").types
        columns = {f.name: _count_columns(types, f.type) for f in table.schema}
        if len(table):
            lists = [f.name for f in table.schema if _is_list_of_numbers(types, f.type)]
            columns |= _list_lengths(table.slice(0, 1), lists)
        return _arrow_to_frame(table.select([name for name, count in columns.items() if count]))
    cells, kinds = ((str(n), table[n]) for n in table.columns), ("List", "Array")
    data = {n: x.to_list() if str(x.dtype).startswith(kinds) else x.to_numpy() for n, x in cells}
    return pd.DataFrame(data)


def frame_of_arrays(arrays: Mapping[str, Any], where: str = "the arrays") -> pd.DataFrame:
    """Arrays of one length as columns; an array of k columns becomes name_1 ... name_k.

    A frame's columns keep their labels: a frame `tau` with a column `elbow` gives ``tau_elbow``.
    Arrays that have their samples in columns, as the length of the others shows, are transposed;
    masked cells are empty.
    """
    import pandas as pd

    labels = {str(name): list(getattr(value, "columns", ())) for name, value in arrays.items()}
    known = {}
    for name, value in arrays.items():
        if isinstance(value, np.ma.MaskedArray) and value.mask.any():
            value = np.ma.filled(value.astype(np.float64), np.nan)
        array = np.asarray(value)
        known[str(name)] = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
    # Length of the times; else of the most arrays, along the longer side of each.
    times = (a for name, a in known.items() if split_header(name)[0].lower() in TIMES)
    lengths = [max(a.shape) for a in known.values() if a.ndim in (1, 2) and a.size]
    rows = next((len(a) for a in times if a.ndim == 1 and len(a)), 0)
    rows = rows or max(lengths, key=lengths.count, default=0)
    if not rows:
        raise LogError(f"{where}: no array with samples in it", path=where)
    columns: dict[str, Any] = {}
    skipped, turned = [], []
    for name, array in known.items():
        if array.ndim == 1 and len(array) == rows:
            columns[name] = array
            continue
        if array.ndim != 2 or rows not in array.shape:
            skipped.append(f"{name} {array.shape}")
            continue
        if array.shape[0] != rows:
            array = array.T
            turned.append(name)
        stem, unit = split_header(name)
        words = labels[name] if labels[name] != [*range(array.shape[1])] else []
        ends = [str(k).removeprefix(f"{stem}_") for k in words or range(1, array.shape[1] + 1)]
        named = (header_with_unit(f"{stem}_{end}", unit) for end in ends)
        columns |= {column: array[:, k] for k, column in enumerate(named)}
    df = pd.DataFrame(columns)
    notes = []
    if turned:
        text = f"arrays of shape (joints, {rows} samples) are transposed: {', '.join(turned)}"
        notes.append(Note(text, "transposed", arrays=turned))
    if skipped:
        text = f"arrays without {rows} rows skipped: {', '.join(skipped)}"
        notes.append(Note(text, "skipped", arrays=skipped))
    df.attrs["notes"] = tuple(notes)
    return df


def read_npz(path: Path, how: formats.LogReading) -> pd.DataFrame:
    """Arrays of a NumPy archive as columns, without trusting the sizes that it declares."""
    with open_for_reading(path, how.max_bytes) as file:
        most = formats.unpacked_limit(file, how.max_bytes)
        try:
            arrays = read_arrays(unpack_archive(file, str(path), most))
        except SecurityError as error:
            text = f"{path}: {error}; save numbers only, as arrays, CSV or Parquet"
            raise SecurityError(text, path=str(path)) from error
        except DamagedError as error:
            text = f"{path}: damaged or no NumPy archive: {error}"
            raise LogError(text, path=str(path)) from error
    return frame_of_arrays(arrays, str(path))


formats.register_format(formats.LogFormat("npz", (".npz",), read_npz))

LEAST = 2**26  #: Bytes that a file of any size may hold.
CELL = 8  #: Bytes of a number, or of a text that stands in a dictionary.
AT_ONCE = 2**27  #: Bytes of a batch.


def read_parquet(path: Path, how: formats.LogReading) -> pd.DataFrame:
    """All columns of numbers and texts, at most `max_bytes` of them."""
    with (
        open_for_reading(path, how.max_bytes) as source,
        open_parquet(source, str(path), how.max_bytes) as (file, names),
    ):
        return _arrow_to_frame(file.read(columns=names, use_threads=False))


def read_batches(source: IO[bytes], path: str, rows: int, most: int) -> Iterator[pd.DataFrame]:
    """Batches of so many rows of all columns of numbers and texts, fewer with very many columns."""
    with open_parquet(source, path, most) as (file, names):
        rows = max(1, min(rows, AT_ONCE // (CELL * max(1, len(names)))))
        for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
            yield _arrow_to_frame(batch)


@contextmanager
def open_parquet(source: IO[bytes], path: str, most: int) -> Iterator[tuple[Any, list[str]]]:
    """The file and its columns of numbers and texts, of at most `most` bytes.

    Texts are kept as dictionaries, so that a long text in many rows stays one text.
    """
    try:
        pa: Any = import_module("pyarrow")
        pq: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise missing_extra("reading Parquet", "pyarrow", "parquet") from None
    size = file_size(source)
    try:
        with mmap(source.fileno(), 0, access=ACCESS_READ) as content:
            if content.find(b"PAR1PAR1") >= 0:  # the library reads one of two
                raise LogError(f"{path}: two Parquet files, one after the other", path=path)
        schema = pq.read_schema(source)
        if twice := [name for name, times in Counter(schema.names).items() if times > 1]:
            raise LogError(f"{path}: column {quote(twice[0])} occurs twice", path=path)
        columns = {f.name: _count_columns(pa.types, f.type) for f in schema}
        texts = [f.name for f in schema if _is_text(pa.types, f.type)]
        lists = [f.name for f in schema if _is_list_of_numbers(pa.types, f.type)]
        source.seek(0)
        # With pre_buffer, what was read already stays in memory until the file is closed.
        with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
            expanded = max(LEAST, formats.MAX_EXPANSION * size)
            _check_unpacked_size(file.metadata, sum(columns.values()), path, most, expanded)
            if lists and file.metadata.num_rows:
                first = next(file.iter_batches(batch_size=1, columns=lists, use_threads=False))
                columns |= _list_lengths(first, lists)
                _check_unpacked_size(file.metadata, sum(columns.values()), path, most, expanded)
            yield file, [name for name, count in columns.items() if count]
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        memory = ", or larger than the free memory" if isinstance(error, MemoryError) else ""
        raise LogError(f"{path}: damaged or no Parquet file{memory}: {error}", path=path) from error


def _check_unpacked_size(metadata: Any, columns: int, path: str, most: int, expanded: int) -> None:
    """Refuse a file that unpacks to too many bytes or has too many entries.

    Sizes of row groups are read, not those of columns: Arrow ends the process if the statistics of
    a column are damaged.
    """
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    packed = sum(group.total_byte_size for group in groups)
    size = CELL * metadata.num_rows * columns
    if packed > expanded or size > min(most, expanded):
        raise LimitError(
            f"{path}: {metadata.num_rows} rows x {columns} columns of numbers and texts need "
            f"{max(packed, size)} bytes, more than the limit of {min(most, expanded)}",
            path=path,
            limit=min(most, expanded),
        )


def _count_columns(types: Any, kind: Any) -> int:
    """Columns that a field becomes: one, a short list of fixed length as many, none of the rest."""
    if types.is_fixed_size_list(kind):
        number = _is_number(types, kind.value_type)
        return int(kind.list_size) if number and kind.list_size <= LONGEST_LIST else 0
    return int(_is_plain(types, kind))


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _is_list_of_numbers(types: Any, kind: Any) -> bool:
    """Lists of any length, as pandas writes those of one length."""
    is_list = bool(types.is_list(kind) or types.is_large_list(kind))
    return is_list and _is_number(types, kind.value_type)


def _list_lengths(first: Any, lists: Sequence[str]) -> dict[str, int]:
    """Columns that lists become, by those of the first row; none of long ones."""
    sizes = {name: len(first.column(name)[0].as_py() or ()) for name in lists}
    return {name: size if size <= LONGEST_LIST else 0 for name, size in sizes.items()}


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_plain(types: Any, kind: Any) -> bool:
    """Numbers, times and texts; no lists, structures or bytes."""
    if types.is_dictionary(kind):
        return _is_plain(types, kind.value_type)
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return _is_text(types, kind) or types.is_temporal(kind) or any(t(kind) for t in tests)


def _arrow_to_frame(table: Any) -> pd.DataFrame:
    # What pandas noted in the file about itself is not needed, and may be damaged.
    pa: Any = import_module("pyarrow")
    table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    table = table.replace_schema_metadata(None)
    lists = [f.name for f in table.schema if not _is_plain(pa.types, f.type)]
    df: pd.DataFrame = table.drop_columns(lists).to_pandas(use_threads=False)
    df = df.astype(dict.fromkeys(df.select_dtypes("category"), object))
    df.attrs = {}
    for name in lists:
        # A column of lists of one length as an array, shape (rows, length).
        column = table[name].combine_chunks()
        if column.null_count:
            raise LogError(f"column {name!r} has {column.null_count} row(s) without its list")
        numbers = column.flatten().to_numpy(zero_copy_only=False)
        lengths = np.asarray(column.value_lengths())
        wrong = np.flatnonzero(lengths != lengths[:1])
        if wrong.size:
            row = int(wrong[0])
            raise LogError(
                f"column {name!r} holds lists of {lengths[0]} numbers, but in row {row} one of "
                f"{lengths[row]}: leave such rows out",
                column=name,
                row=row,
            )
        rows = numbers.reshape(len(column), -1)
        df[[f"{name}_{k + 1}" for k in range(rows.shape[1])]] = rows
    return df


formats.register_format(
    formats.LogFormat("parquet", (".parquet", ".pq"), read_parquet, batches=read_batches)
)
