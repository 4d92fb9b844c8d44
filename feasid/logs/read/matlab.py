"""MATLAB files and HDF5: their arrays of numbers as a log. HDF5 needs the extra "hdf5".

Variables that are not arrays of numbers are ignored, and links to other files are not followed.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from feasid.core.errors import FeasidError, LimitError, LogError, missing_extra
from feasid.core.files import file_size, open_for_reading
from feasid.core.notes import Note
from feasid.logs.read.arrays import frame_of_arrays
from feasid.logs.read.formats import (
    LogFormat,
    LogReading,
    expansion_error,
    register_format,
    unpacked_limit,
)

if TYPE_CHECKING:
    import pandas as pd

HDF5 = b"\x89HDF\r\n\x1a\n"

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))

NUMBERS = ("double", "single", "logical", *INTEGERS)  #: Classes of MATLAB's arrays of numbers.

HEADER_BYTES, COMPRESSED = 128, 15
"""Of a file of version 5: length of its header, and the type of an element that is packed."""

LEAST = 2**24  #: Bytes that a file of any size may unpack to.
STEP = 2**20  #: Bytes that are unpacked at a time when a variable's size is checked.

MOST_MEMBERS, DEEPEST = 10_000, 8
"""Arrays and groups of a file of HDF5, and groups inside groups, that are read."""

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}
"""Filters that arrays of HDF5 may pass, by HDF5's number; each once."""


def read_matlab(path: Path, how: LogReading) -> pd.DataFrame:
    """Arrays of numbers of a MATLAB file, of version 5 to 7.3."""
    with open_for_reading(path, how.max_bytes) as file:
        head = file.read(520)
        file.seek(0)
        if HDF5 in (head[:8], head[512:520]):
            return _frame_of_hdf5(file, path, how)
        if head[126:128] not in (b"IM", b"MI"):
            raise LogError(
                f"{path}: no MATLAB file of version 5 to 7.3; save it with save(..., '-v7')",
                path=str(path),
            )
        most = unpacked_limit(file, how.max_bytes, LEAST)
        _check_variables(file, path, most)
        file.seek(0)
        try:
            arrays, unread = _read_version_5(file, path, most)
        except (FeasidError, MemoryError):
            raise
        except Exception as error:  # the library's own errors have no common base
            raise LogError(f"{path}: damaged or no MATLAB file: {error}", path=str(path)) from error
    return _frame_of_variables(arrays, unread, path)


def read_hdf5(path: Path, how: LogReading) -> pd.DataFrame:
    """Arrays of numbers of a file of HDF5."""
    with open_for_reading(path, how.max_bytes) as file:
        return _frame_of_hdf5(file, path, how)


def _frame_of_variables(arrays: dict[str, Any], left: list[str], path: Path) -> pd.DataFrame:
    """The log of a file's variables, and which were not read."""
    if not arrays and left:
        raise LogError(
            f"{path}: no array of numbers; it has {', '.join(left[:8])}. The fields of a structure "
            "are saved as arrays with save('log.mat', '-struct', 'NAME')",
            path=str(path),
        )
    df = frame_of_arrays(arrays, str(path))
    if left:
        text = f"variables that are no arrays of numbers are not read: {', '.join(left[:8])}"
        df.attrs["notes"] = (*df.attrs["notes"], Note(text, "skipped", arrays=left))
    return df


def _read_version_5(file: Any, path: Path, most: int) -> tuple[dict[str, Any], list[str]]:
    """Arrays of numbers, and the names of other variables."""
    from scipy.io import loadmat, whosmat

    size = 0
    names, unread = [], []
    for name, shape, kind in whosmat(file):
        if kind not in NUMBERS or len(shape) > 2:
            unread.append(f"{name} ({kind})")
            continue
        size += 8 * prod(int(length) for length in shape)
        names.append(name)
    if size > most:
        raise LimitError(
            f"{path}: its arrays need {size} bytes, more than the limit of {most}", path=str(path)
        )
    file.seek(0)
    read = loadmat(file, variable_names=names)
    return {name: read[name] for name in names}, unread


def _check_variables(file: IO[bytes], path: Path, most: int) -> None:
    """Refuse files that are cut off, and variables that unpack beyond reason.

    Variables are unpacked in steps that are not kept.
    """
    file.seek(126)
    order = "<" if file.read(2) == b"IM" else ">"
    total, at, end = 0, HEADER_BYTES, file_size(file)
    while at + 8 <= end:
        file.seek(at)
        kind, length = struct.unpack(f"{order}II", file.read(8))
        if kind == COMPRESSED:
            packed = zlib.decompressobj()
            piece = file.read(min(length, end - at - 8))
            try:
                while piece and not packed.eof and total <= most:
                    total += len(packed.decompress(piece, STEP))
                    piece = packed.unconsumed_tail
            except zlib.error as error:
                raise LogError(f"{path}: damaged MATLAB file: {error}", path=str(path)) from error
        if total > most:
            raise expansion_error(path, most)
        at += 8 + length
    if at != end:  # the library reads the whole variables of such a file, in silence
        raise LogError(
            f"{path}: damaged MATLAB file: its last variable ends at byte {at}, the file at {end}; "
            "save or copy it again",
            path=str(path),
        )


def _frame_of_hdf5(file: IO[bytes], path: Path, how: LogReading) -> pd.DataFrame:
    try:
        h5py: Any = import_module("h5py")
    except ImportError:
        raise missing_extra("reading HDF5 and MATLAB's version 7.3", "h5py", "hdf5") from None
    most, total = unpacked_limit(file, how.max_bytes, LEAST), 0
    places: dict[tuple[str, ...], Any] = {}
    unread: list[str] = []
    try:
        with h5py.File(file, "r") as source:
            for place, data in _datasets(h5py, source):
                if data.dtype.kind not in "iufb" or data.ndim not in (1, 2) or not data.size:
                    unread.append("/".join(place))
                    continue
                # What passes one filter twice unpacks without bounds.
                created = data.id.get_create_plist()
                used = [created.get_filter(k)[0] for k in range(created.get_nfilters())]
                if len({*used}) < len(used) or any(number not in FILTERS for number in used):
                    raise LogError(
                        f"{path}: {'/'.join(place)} is packed by other filters than "
                        f"{', '.join(FILTERS.values())}, each once; save it again with one of them",
                        path=str(path),
                    )
                total += 8 * int(data.size)
                if total > most:
                    raise LimitError(
                        f"{path}: its arrays need more than the limit of {most} bytes",
                        path=str(path),
                    )
                places[place] = data[()]
    except (FeasidError, MemoryError):
        raise
    except Exception as error:  # the library's own errors have no common base
        raise LogError(f"{path}: damaged or no file of HDF5: {error}", path=str(path)) from error
    often = Counter(place[-1] for place in places)
    named = {p[-1] if often[p[-1]] == 1 else ".".join(p): x for p, x in places.items()}
    return _frame_of_variables(named, unread, path)


def _datasets(h5py: Any, group: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Arrays that lie in the file itself, without those of other files and links to them."""
    for count, name in enumerate(group):
        if count >= MOST_MEMBERS or len(place) >= DEEPEST:
            return
        link = group.get(name, getlink=True)
        if str(name).startswith("#") or not isinstance(link, h5py.HardLink):
            continue
        member = group[name]
        if isinstance(member, h5py.Group):
            yield from _datasets(h5py, member, (*place, str(name)))
        elif isinstance(member, h5py.Dataset) and not member.is_virtual and not member.external:
            yield (*place, str(name)), member


register_format(LogFormat("matlab", (".mat",), read_matlab))
register_format(LogFormat("hdf5", (".h5", ".hdf5"), read_hdf5))
