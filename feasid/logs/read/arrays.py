"""Arrays and tables in memory as a log, and NumPy archives.

A mapping ``{"t": (N,), "q": (N, dof), "tau": (N, dof)}``, a tuple ``(t, q, tau)``, or a table of
Arrow or polars.

Parquet files without trusting how little they seem to hold. Needs the extra "parquet". Lists of a
fixed length become columns, and LeRobot's datasets those of positions and commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import DamagedError, read_arrays, unpack_archive
from feasid.core.files import file_size, open_for_reading
from feasid.core.notes import Note
from feasid.errors import InputError, LimitError, LogError, SecurityError, missing_extra
from feasid.logs.columns import UNKNOWN_UNITS
from feasid.logs.read.formats import MAX_EXPANSION, LogFormat, LogReading, register_format

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("t", "time", "times")

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
    """``(t, q, tau)``, ``(t, q, dq, tau)`` or ``(t, q, dq, ddq, tau)``; ``(t, q)`` to predict from.

    Raises
    ------
    LogError
        Another number of arrays, or arrays of different lengths.
    """
    names = MEMBERS.get(len(arrays))
    if names is None:
        known = ", ".join(f"({', '.join(m)})" for m in MEMBERS.values())
        raise LogError(f"a log as a tuple is one of {known}, not {len(arrays)} arrays")
    shapes = ", ".join(f"{n} {np.shape(a)}" for n, a in zip(names, arrays, strict=True))
    matrix = all(np.ndim(a) in (1, 2) for a in arrays[1:])
    if np.ndim(arrays[0]) != 1 or not matrix or len({len(a) for a in arrays}) != 1:
        raise LogError(
            f"a log as a tuple has t of shape (N,) and the others of shape (N, dof); got {shapes}"
        )
    columns = [a if name == "t" else a.reshape(len(a), -1)
               for name, a in zip(names, arrays, strict=True)]  # fmt: skip
    return frame_of_arrays(dict(zip(names, columns, strict=True)))


def frame_of_table(table: Any) -> pd.DataFrame:
    """A table of Arrow or polars, column by column; missing cells become NaN."""
    import pandas as pd

    names = table.column_names if hasattr(table, "column_names") else table.columns
    return pd.DataFrame({str(name): table[name].to_numpy() for name in names})


def frame_of_arrays(arrays: Mapping[str, Any], where: str = "the arrays") -> pd.DataFrame:
    """Arrays of one length as columns; an array of k columns becomes name_1 ... name_k.

    A frame's columns keep their labels: a frame `tau` with a column `elbow` gives ``tau_elbow``.

    Parameters
    ----------
    arrays : mapping of name to array_like or frame, shape (N,) or (N, k)
    where : str
        What messages call them.

    Raises
    ------
    LogError
        When there is no array with samples.
    """
    import pandas as pd

    labels = {str(name): list(getattr(value, "columns", ())) for name, value in arrays.items()}
    known = {str(name): np.asarray(value) for name, value in arrays.items()}
    lengths = [a.shape[0] for a in known.values() if a.ndim in (1, 2) and a.size]
    if not lengths:
        raise LogError(f"{where}: no array with samples in it", path=where)
    time = next((known[k] for k in TIMES if k in known), None)
    rows = len(time) if time is not None and time.ndim == 1 else max(lengths, key=lengths.count)
    columns: dict[str, Any] = {}
    skipped = []
    for name, array in known.items():
        if array.ndim == 1 and len(array) == rows:
            columns[name] = array
        elif array.ndim == 2 and array.shape[0] == rows:
            own = labels[name] if labels[name] != [*range(array.shape[1])] else []
            ends = [str(k).removeprefix(f"{name}_") for k in own or range(1, array.shape[1] + 1)]
            columns |= {f"{name}_{end}": array[:, k] for k, end in enumerate(ends)}
        else:
            skipped.append(f"{name} {array.shape}")
    df = pd.DataFrame(columns)
    if skipped:
        text = f"arrays without {rows} rows skipped: {', '.join(skipped)}"
        df.attrs["notes"] = (Note(text, "skipped", arrays=skipped),)
    return df


def read_npz(path: Path, how: LogReading) -> pd.DataFrame:
    """Arrays of a NumPy archive as columns, without trusting what it says of its size."""
    with open_for_reading(path, how.max_bytes) as file:
        most = min(how.max_bytes, max(2**20, MAX_EXPANSION * file_size(file)))
        try:
            arrays = read_arrays(unpack_archive(file, str(path), most))
        except SecurityError as error:
            raise SecurityError(
                f"{path}: {error}; save numbers only, as arrays, CSV or Parquet", path=str(path)
            ) from error
        except DamagedError as error:
            raise LogError(
                f"{path}: damaged or no NumPy archive: {error}", path=str(path)
            ) from error
    return frame_of_arrays(arrays, str(path))


register_format(LogFormat("npz", (".npz",), read_npz))


LEAST = 2**26
"""Bytes that a file of any size may hold."""

CELL = 8
"""Bytes of a number, or of a text that stands in a dictionary."""

AT_ONCE = 2**27
"""Bytes of a batch."""


def read_parquet(path: Path, how: LogReading) -> pd.DataFrame:
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
    """The file and its columns of numbers and texts.

    Texts are kept as dictionaries, so that a long text in many rows stays one text.

    Raises
    ------
    LimitError
        It says that it holds more than `most` bytes, or `MAX_EXPANSION` times its size.
    LogError
        It is damaged, or no Parquet file.
    """
    try:
        pa: Any = import_module("pyarrow")
        pq: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise missing_extra("reading Parquet", "pyarrow", "parquet") from None
    size = file_size(source)
    try:
        schema = pq.read_schema(source)
        names = [f.name for f in schema if _count_columns(pa.types, f.type)]
        cells = sum(_count_columns(pa.types, f.type) for f in schema)
        texts = [f.name for f in schema if _is_text(pa.types, f.type)]
        source.seek(0)
        # With pre_buffer, what was read already stays in memory until the file is closed.
        with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
            expanded = max(LEAST, MAX_EXPANSION * size)
            _check_unpacked_size(file.metadata, cells, path, most, expanded)
            yield file, names
    except (InputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise LogError(f"{path}: damaged or no Parquet file: {error}", path=path) from error


def _check_unpacked_size(metadata: Any, columns: int, path: str, most: int, expanded: int) -> None:
    """Refuse what unpacks, or what counts, beyond reason.

    Of its groups, not of their columns: where a column's statistics lie, Arrow ends the process
    that asks for them.
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


LONGEST_LIST = 256
"""Numbers of a list that become columns; longer ones are pictures or points, and left out."""


def _count_columns(types: Any, kind: Any) -> int:
    """Columns that a field becomes: one, a short list of fixed length as many, none of the rest."""
    if types.is_fixed_size_list(kind):
        number = types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
        return int(kind.list_size) if number and kind.list_size <= LONGEST_LIST else 0
    return int(_is_plain(types, kind))


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
    lists = [f.name for f in table.schema if pa.types.is_fixed_size_list(f.type)]
    df: pd.DataFrame = table.drop_columns(lists).to_pandas()
    for name in df.columns:
        if df[name].dtype == "category":
            df[name] = df[name].astype(object)
    df.attrs = {}
    for name in lists:
        column = table[name].combine_chunks()
        if column.null_count:
            raise LogError(f"column {name!r} has {column.null_count} row(s) without its list")
        numbers = column.flatten().to_numpy(zero_copy_only=False).reshape(len(df), -1)
        df[[f"{name}_{k + 1}" for k in range(numbers.shape[1])]] = numbers
    return _rename_lerobot_columns(df) if set(LEROBOT) <= set(lists) else df


LEROBOT = {"observation.state": "q", "action": "cmd"}
"""Lists of a LeRobot dataset, joint by joint, and the kinds of columns that they are."""


def _rename_lerobot_columns(df: pd.DataFrame) -> pd.DataFrame:
    """A LeRobot dataset by the names of this package; its units are the recording program's."""
    names = {"timestamp": "t", "episode_index": "run"}
    for name, kind in LEROBOT.items():
        found = [c for c in df.columns if str(c).startswith(f"{name}_")]
        names |= {c: f"{kind}_{c.removeprefix(f'{name}_')}" for c in found}
    df = df.rename(columns=names)
    unknown = {c: "LeRobot" for c in df.columns if str(c).startswith(("q_", "cmd_"))}
    said = (
        "LeRobot dataset: observation.state as q, action as cmd, timestamp as t, episode_index as "
        "run; its units are degrees, or percents of each joint's range"
    )
    df.attrs["notes"] = (Note(said, UNKNOWN_UNITS, units=unknown),)
    return df


register_format(LogFormat("parquet", (".parquet", ".pq"), read_parquet, batches=read_batches))
