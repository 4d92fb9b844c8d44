"""Parquet files without trusting how little they seem to hold. Needs the extra "parquet"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from feasid.core.files import file_size, open_for_reading
from feasid.errors import InputError, LimitError, LogError, missing_extra
from feasid.logs.read.formats import MAX_EXPANSION, LogFormat, LogReading, register_format

if TYPE_CHECKING:
    import pandas as pd

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
        return _frame(file.read(columns=names, use_threads=False))


def read_batches(source: IO[bytes], path: str, rows: int, most: int) -> Iterator[pd.DataFrame]:
    """Batches of so many rows of all columns of numbers and texts, fewer with very many columns."""
    with open_parquet(source, path, most) as (file, names):
        rows = max(1, min(rows, AT_ONCE // (CELL * max(1, len(names)))))
        for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
            yield _frame(batch)


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
        names = [f.name for f in schema if _is_plain(pa.types, f.type)]
        texts = [f.name for f in schema if _is_text(pa.types, f.type)]
        source.seek(0)
        # With pre_buffer, what was read already stays in memory until the file is closed.
        with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
            expanded = max(LEAST, MAX_EXPANSION * size)
            _check(file.metadata, len(names), path, most, expanded)
            yield file, names
    except (InputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise LogError(f"{path}: damaged or no Parquet file: {error}", path=path) from error


def _check(metadata: Any, columns: int, path: str, most: int, expanded: int) -> None:
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


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_plain(types: Any, kind: Any) -> bool:
    """Numbers, times and texts; no lists, structures or bytes."""
    if types.is_dictionary(kind):
        return _is_plain(types, kind.value_type)
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return _is_text(types, kind) or types.is_temporal(kind) or any(t(kind) for t in tests)


def _frame(table: Any) -> pd.DataFrame:
    # What pandas noted in the file about itself is not needed, and may be damaged.
    df: pd.DataFrame = table.replace_schema_metadata(None).to_pandas()
    for name in df.columns:
        if df[name].dtype == "category":
            df[name] = df[name].astype(object)
    df.attrs = {}
    return df


register_format(LogFormat("parquet", (".parquet", ".pq"), read_parquet, batches=read_batches))
