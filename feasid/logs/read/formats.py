"""Formats of logs in files: which there are, which one a file has, and reading it, or many as runs.

A module of this folder that calls `register_format` adds a format; nothing else names it. All of
them are imported when the first file is read. Nothing that is read can execute code: pickles and
object arrays are refused. Sizes are checked before memory is taken.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

from feasid.core.arguments import checked
from feasid.core.errors import FeasidError, InputError, LimitError, LogError, SecurityError, require
from feasid.core.files import MOST_BYTES, STDIN, file_size, is_folder, missing_file_error
from feasid.core.notes import Note, as_notes
from feasid.logs.table import HEADER_UNITS, join_header_units, standard_table

if TYPE_CHECKING:
    import pandas as pd

CODE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".npy", ".pt")  #: Files that can hold code.

REDUCED_SUFFIX = ".reduced"

MAX_EXPANSION = 200  #: A compressed file may grow by this factor, beyond its first megabyte.


@dataclass(frozen=True)
class LogReading:
    """Options of a reader in addition to the path."""

    max_bytes: int = MOST_BYTES  #: Files that are or grow larger are refused.
    topic: str | None = None  #: The recording to read from a file with several.
    joints: Collection[str] = ()  #: Joints of the robot, by which a recording may be recognised.
    #: How text is written; see `feasid.logs.read.csv.read_csv`.
    csv: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogFormat:
    """A format of logs in files."""

    name: str
    suffixes: tuple[str, ...]  #: Endings of its files, in lower case with the dot.
    #: From a path and a `LogReading` to a DataFrame with the columns that the file has, and
    #: ``attrs["notes"]`` for what was dropped or converted. Raises a `LogError` that names the file
    #: and the place.
    read: Callable[[Path, LogReading], pd.DataFrame]
    is_folder: Callable[[Path], bool] | None = None  #: Whether a folder is such a log.
    #: From an open file, its path, a number of rows and one of bytes to DataFrames of at most so
    #: many rows: files may then be larger than memory.
    batches: Callable[[IO[bytes], str, int, int], Iterator[pd.DataFrame]] | None = None


_FORMATS: dict[str, LogFormat] = {}


def register_format(known: LogFormat) -> LogFormat:
    """Add a format; one of the same name is replaced."""
    _FORMATS[known.name] = known
    return known


@cache
def _import_readers() -> None:
    """Import all modules of this folder, each of which registers its format."""
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")


def format_of(source: str | os.PathLike[str]) -> LogFormat:
    """The format of a log's file, by its ending; reduced data and files with code have none."""
    _import_readers()
    path = Path(source)
    last = path.suffix.lower()
    for known in _FORMATS.values():
        if known.is_folder is not None and known.is_folder(path):
            return known
    if is_folder(path):
        raise InputError(f"{path}: a folder, expected a file", path=str(path))
    if last in CODE_SUFFIXES:
        raise SecurityError(
            f"{path}: files of kind {last} are not read, they can hold code; save the arrays with "
            "numpy.savez or as CSV or Parquet",
            path=str(path),
        )
    if is_reduced(path):
        raise InputError(f"{path}: reduced data, not a log: feasid.Reduced.load reads it")
    ending = Path(path.stem).suffix.lower() if last == ".gz" else last
    for known in _FORMATS.values():
        if last in known.suffixes or (ending in known.suffixes and known.name == "csv"):
            return known
    endings = " ".join(sorted(s for known in _FORMATS.values() for s in known.suffixes if s))
    raise InputError(
        f"{path}: no reader for {ending!r} (known: {endings}, folders of ROS 2 bags and LeRobot "
        f"datasets, {REDUCED_SUFFIX})",
        path=str(path),
    )


def unpacked_limit(file: IO[bytes], max_bytes: int, least: int = 2**20) -> int:
    """Bytes that a file of any kind may unpack to, some `least` of them whatever its size."""
    return min(max_bytes, max(least, MAX_EXPANSION * file_size(file)))


def expansion_error(path: Path, limit: int) -> LimitError:
    """The error of a file that unpacks to more than its limit."""
    return LimitError(
        f"{path}: expands to more than {limit} bytes (limit: {MAX_EXPANSION} times its size "
        "and max_bytes)",
        path=str(path),
    )


def is_reduced(source: str | os.PathLike[str]) -> bool:
    """Whether a path names reduced data."""
    return Path(source).suffix.lower() == REDUCED_SUFFIX


@checked
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
        ``.csv``, ``.txt``, ``.tsv`` (also ``.gz``), ``.parquet``, ``.npz``, ``.mat``, ``.h5``, a
        ROS 2 bag's folder or ``.mcap`` (see `feasid.logs.read.bags.read_bag`), a LeRobot
        dataset's folder. A file at an address (``s3://``, ``https://``) is copied by fsspec.
        If there are several files, each is a run, named after the file.
    delimiter, decimal, names, allow_truncated
        Format of a CSV file; see `feasid.logs.read.csv.scan_csv`.
    max_bytes : int
        Largest size of a file, also after decompression.
    topic, joints
        Which joint states of a bag to read; see `feasid.logs.read.bags.read_bag`. If the names of
        the joints are given, units of one letter are recognised in ``tau_elbow_A``.

    Returns
    -------
    DataFrame
        The log. Columns whose names state a unit are converted to SI, and the unit is removed from
        the name. ``attrs["notes"]`` lists what was dropped or converted.

    Raises
    ------
    InputError
        The file does not exist (the message gives the nearest name), is a folder, or has an unknown
        format.
    LogError
        The log is invalid; the message names file, line or column.
    SecurityError
        Pickles and object arrays.
    LimitError
        A file is larger than `max_bytes`, or a compressed file expands to far more than its size.
    """
    text = {"delimiter": delimiter, "decimal": decimal, "names": names}
    how = LogReading(max_bytes, topic, joints, {**text, "allow_truncated": allow_truncated})
    if is_remote(source):
        return _read_remote(str(source), how)
    paths = _expand_paths(source)

    def read(path: Path) -> pd.DataFrame:
        return standard_table(format_of(path).read(path, how), tuple(joints))

    if isinstance(source, str | os.PathLike) and not glob.has_magic(os.fspath(source)):
        return read(paths[0])
    import pandas as pd

    stems = [file.name.split(".")[0] for file in paths]
    labels = stems if len(set(stems)) == len(stems) else [str(file) for file in paths]
    frames, notes = [], []
    for file, label in zip(paths, labels, strict=True):
        frame = read(file)
        runs = frame["run"].astype(str) if "run" in frame.columns else None
        frame["run"] = label if runs is None else label + ":" + runs
        remarks = as_notes(frame.attrs.pop("notes", ()))
        notes += [Note(f"{label}: {note}", note.code, **note.values) for note in remarks]
        frames.append(frame)
    units = join_header_units(frames, labels)
    columns = set(frames[0].columns)
    for file, frame in zip(paths, frames, strict=True):
        if set(frame.columns) != columns:
            odd = sorted(columns ^ set(frame.columns))
            raise LogError(
                f"{file} and {paths[0]} have different columns: {', '.join(map(str, odd[:6]))} in "
                "only one of them",
                path=str(file),
                column=odd[0],
            )
    for frame in frames:
        frame.attrs.clear()
    df = pd.concat(frames, ignore_index=True)
    df.attrs |= {"notes": tuple(notes), HEADER_UNITS: units}
    return df


def is_remote(source: Any) -> bool:
    """Whether this is an address such as ``s3://bucket/log.csv``, which fsspec opens."""
    return isinstance(source, str) and "://" in source


def _read_remote(address: str, how: LogReading) -> pd.DataFrame:
    """Read a copy of a remote file, which is removed afterwards."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / Path(address).name
        if len(files := _open_remote(address)) > 1:
            raise InputError(f"{address}: {len(files)} files, of which each is a log for reduce")
        try:
            # One byte too many, for which the copy is refused as any file is.
            with files[0] as stream:
                copy.write_bytes(stream.read(how.max_bytes + 1))
        except OSError as error:
            raise InputError(f"{address} cannot be read: {error}") from error
        try:
            return standard_table(format_of(copy).read(copy, how), tuple(how.joints))
        except FeasidError as error:  # which names the copy
            raise type(error)(str(error).replace(str(copy), address), path=address) from None


def _open_remote(address: str) -> list[Any]:
    """The remote files of an address or a pattern."""
    require("a log elsewhere than on this machine", "cloud", "fsspec")
    try:
        if files := list(import_module("fsspec").open_files(address)):
            return files
    except (ImportError, ValueError, OSError) as error:
        raise InputError(f"{address}: {error}", path=address) from error
    raise InputError(f"no file matches {address!r}", path=address)


def files_of_logs(source: str | os.PathLike[str]) -> list[str]:
    """The logs that a path names: itself, the matches of a pattern, or the files of a folder.

    Bags and LeRobot datasets are folders that are one log.
    """
    _import_readers()
    path = os.fspath(source)
    if is_remote(path):
        return [file.full_name for file in _open_remote(path)]
    if glob.has_magic(path) and not os.path.exists(path):
        return [str(match) for match in _expand_paths(path)]
    one_log = any(f.is_folder is not None and f.is_folder(Path(path)) for f in _FORMATS.values())
    if not is_folder(path) or one_log:
        return [path]
    return [
        log
        for name in sorted(os.listdir(path)) if not name.startswith(".")
        for log in files_of_logs(os.path.join(path, name))
    ]  # fmt: skip


def _expand_paths(source: Any) -> list[Path]:
    """The files that a path, a pattern or a list of these names."""
    if not isinstance(source, str | os.PathLike):
        paths = [path for item in source for path in _expand_paths(item)]
        if not paths:
            raise InputError("no files were given")
        return paths
    path = Path(source)
    if os.path.exists(path) or str(path) == STDIN:
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(glob.glob(str(path), recursive=True))
        if not matches:
            raise InputError(f"no file matches {str(path)!r}", path=str(path))
        return [Path(f) for f in matches]
    raise missing_file_error(path)
