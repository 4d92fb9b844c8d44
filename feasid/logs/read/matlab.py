"""MATLAB files and HDF5: their arrays of numbers as a log. HDF5 needs the extra "hdf5".

Variables that are not arrays of numbers are ignored, and links to other files are not followed.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from feasid.core.errors import LogError, missing_extra, refuse_damage
from feasid.core.files import file_size, open_for_reading
from feasid.core.notes import Note
from feasid.logs.read import formats
from feasid.logs.read.arrays import frame_of_arrays

if TYPE_CHECKING:
    import pandas as pd

HDF5 = b"\x89HDF\r\n\x1a\n"

NUMBERS = dict(enumerate(["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"], 6))
OTHERS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function"}
"""MATLAB's classes: those of arrays of numbers with NumPy's names, and others."""

TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""Of the parts of a variable."""

HEADER_BYTES, MATRIX, COMPRESSED, IMAGINARY = 128, 14, 15, 0x800
"""Of version 5: length of the header, types of elements, and the flag of complex numbers."""

LEAST = 2**24  #: Bytes that a file of any size may unpack to.

MOST_MEMBERS, DEEPEST = 10_000, 8
"""Arrays and groups of a file of HDF5, and groups inside groups, that are read."""

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}
"""Filters that arrays of HDF5 may pass, by HDF5's number; each once."""


def read_matlab(path: Path, how: formats.LogReading) -> pd.DataFrame:
    """Arrays of numbers of a MATLAB file, of version 5 to 7.3."""
    with open_for_reading(path, how.max_bytes) as file:
        # MATLAB puts a block of 512 bytes in front of the HDF5 of version 7.3.
        head = file.read(520)
        file.seek(0)
        if HDF5 in (head[:8], head[512:520]):
            return _frame_of_hdf5(file, path, how)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:128])  # of bytes
        if order is None:
            text = "no MATLAB file of version 5 to 7.3; save it with save(..., '-v7')"
            raise LogError(f"{path}: {text}", path=str(path))
        most = formats.unpacked_limit(file, how.max_bytes, LEAST)
        with refuse_damage(path, "damaged or no MATLAB file"):
            arrays, unread = _read_version_5(file, order, path, most)
    return _frame_of_variables(arrays, unread, path)


def read_hdf5(path: Path, how: formats.LogReading) -> pd.DataFrame:
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


def _read_version_5(
    file: IO[bytes], order: str, path: Path, most: int
) -> tuple[dict[str, Any], list[str]]:
    """Arrays of numbers, and the names of other variables; every byte belongs to one of them.

    SciPy's reader ends the process on types of numbers that do not exist.
    """
    arrays, unread, end = dict[str, Any](), list[str](), file_size(file)
    at = file.seek(HEADER_BYTES)
    while at < end:
        kind, length = struct.unpack(f"{order}II", file.read(8))
        at, body = at + 8 + length, file.read(length)
        if kind == COMPRESSED:
            unpacking = zlib.decompressobj()
            body = unpacking.decompress(body, most + 1)
            if len(body) > most:
                raise formats.expansion_error(path, most)
            # An unfinished stream, or one with bytes behind it, leaves no body, which is an error.
            at_end = unpacking.eof and not unpacking.unused_data
            (kind, length), body = struct.unpack(f"{order}II", body[:8]), body[8:] * at_end
        if at > end or (kind, length) != (MATRIX, len(body)):
            raise ValueError(f"its last variable ends at byte {at}, the file at {end}")
        name, what, data = _read_variable(body, order)
        size = max(len(body), 8 * getattr(data, "size", 0))
        if size > most:
            raise formats.expansion_error(path, most)
        if name in arrays:
            raise ValueError(f"{name} is there twice")
        most -= size
        if data is not None:
            arrays[name] = data
        elif name:  # what has none is MATLAB's own
            unread.append(f"{name} ({what})")
    return arrays, unread


def _read_variable(body: bytes, order: str) -> tuple[str, str, Any]:
    """Name, class and numbers of a variable; None for the numbers of one that is not read."""
    import numpy as np

    at, parts = 0, list[Any]()
    while at < len(body) and len(parts) < 4:  # its flags, lengths, name and numbers
        (kind,) = struct.unpack_from(f"{order}I", body, at)
        if kind >> 16:  # in eight bytes, with its tag
            kind, length, start, at = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            (length,) = struct.unpack_from(f"{order}I", body, at + 4)
            start, at = at + 8, at + 8 + length + -length % 8
        if at > len(body) or start + length > at:
            raise ValueError("a part of a variable is longer than the variable")
        form = TYPES.get(kind)
        parts.append(np.frombuffer(body[start : start + length], form and order + form))
        if len(parts) == 3:
            flags, lengths, letters = parts
            shape, name, what = tuple(map(int, lengths)), letters.tobytes().decode(), flags[0] & 255
            if what not in NUMBERS or len(shape) > 2 or flags[0] & IMAGINARY:
                return name, OTHERS.get(int(what), "imaginary or of more axes"), None
    if at != len(body) or form is None:
        raise ValueError(f"variable {name!r} has bytes that belong to no number")
    return name, "", parts[3].reshape(shape, order="F").astype(NUMBERS[what])


def _frame_of_hdf5(file: IO[bytes], path: Path, how: formats.LogReading) -> pd.DataFrame:
    try:
        h5py: Any = import_module("h5py")
    except ImportError:
        raise missing_extra("reading HDF5 and MATLAB's version 7.3", "h5py", "hdf5") from None
    most, total = formats.unpacked_limit(file, how.max_bytes, LEAST), 0
    places: dict[tuple[str, ...], Any] = {}
    unread: list[str] = []
    with refuse_damage(path, "damaged or no file of HDF5"):
        at = (head := file.read(600)).index(HDF5)
        place = at + {0: 40, 1: 44}.get(head[at + 8], 28)  # of the number of bytes, by version
        claim = int.from_bytes(head[place : place + 8], "little")
        if (size := file_size(file)) not in (claim, at + claim):  # what comes then is passed over
            raise ValueError(f"it has {size} bytes and says {claim}; copy it again, or close it")
        with h5py.File(file, "r") as source:
            for place, data in _datasets(h5py, source):
                if data.dtype.kind not in "iufb" or data.ndim not in (1, 2) or not data.size:
                    unread.append("/".join(place))
                    continue
                # What passes one filter twice unpacks without bounds.
                created = data.id.get_create_plist()
                used = [created.get_filter(k)[0] for k in range(created.get_nfilters())]
                if len({*used}) < len(used) or any(number not in FILTERS for number in used):
                    text = f"other filters than {', '.join(FILTERS.values())}, each once; save it"
                    text = f"{path}: {'/'.join(place)} is packed by {text} again with one of them"
                    raise LogError(text, path=str(path))
                total += 8 * int(data.size)
                if total > most:
                    raise formats.expansion_error(path, most)
                places[place] = data[()]
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


formats.register_format(formats.LogFormat("matlab", (".mat",), read_matlab))
formats.register_format(formats.LogFormat("hdf5", (".h5", ".hdf5"), read_hdf5))
