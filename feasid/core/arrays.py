"""Array types, conversion of arguments to arrays, and ZIP archives of plain arrays.

NumPy's own reader evaluates the header of an array as Python text and takes the memory that it
declares. Here a header is matched, never evaluated, and must agree with the bytes that are there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import UnfitError, as_numbers
from feasid.core.errors import InputError, LimitError, SecurityError
from feasid.core.text import quote

Array: TypeAlias = npt.NDArray[np.float64]  #: Real numbers.
Mask: TypeAlias = npt.NDArray[np.bool_]  #: Truth values.


def require_finite(
    value: npt.ArrayLike, shape: tuple[int, ...], what: str, error: type[InputError] = InputError
) -> Array:
    """Return a finite array of this shape; an error names `what`."""
    try:
        array = np.array(as_numbers(value, finite=False))
    except UnfitError as wrong:
        reason = str(wrong) or f"not {quote(value)}"
        raise error(f"{what} is not an array of numbers: {reason}") from None
    if array.shape != shape:
        raise error(f"{what} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise error(f"{what} has an entry that is not finite: {array.tolist()}")
    return array


def interpolate(at: Array, t: Array, values: Array) -> Array:
    """Columns of `values` (N, k) at other times; beyond the ends they stay as they are there."""
    return np.stack([np.interp(at, t, column) for column in values.T], axis=1)


MAGIC = b"\x93NUMPY"

PLAIN = (0, 8)  #: Stored and deflated: compression that unpacks in little memory.
KINDS = "biufUSM"  #: Kinds of numbers and texts that are read.

DESCRIPTION = re.compile(r"'descr'\s*:\s*'([<>|=]?[a-zA-Z]\d{0,9}(?:\[\d{0,9}\w{1,2}\])?)'")
ORDER = re.compile(r"'fortran_order'\s*:\s*(True|False)")
SHAPE = re.compile(r"'shape'\s*:\s*\(([\d\s,]{0,200})\)")


MEANING = 1
"""Version of the meaning of numbers in saved files. It rises if a change of a friction law, a
filter, a weight or the order of parameters gives the same numbers another meaning."""


def require_version(name: str, kind: str, found: Mapping[str, Any], known: int) -> None:
    """Refuse a file of another version of format or meaning, by both versions' names.

    `name`: the file; `kind`: what it is, and after a semicolon how to make a new one; `found`: with
    the file's "version" and "meaning"; `known`: the version that is read. Raises InputError.
    """
    versions = int(found["version"]), int(found.get("meaning", 0))
    if versions == (known, MEANING):
        return
    what, _, remedy = kind.partition(";")
    advice = "update feasid" if max(versions[0] - known, versions[1] - MEANING) > 0 else remedy
    raise InputError(
        f"{name} is {what} of format {versions[0]}, meaning {versions[1]}; this feasid reads "
        f"format {known}, meaning {MEANING}: {advice.strip()}",
        path=name,
    )


class DamagedError(ValueError):
    """An archive is damaged; the caller adds the name and kind of the file."""


def unpack_archive(file: IO[bytes], name: str, most: int) -> dict[str, bytes]:
    """All members of an archive.

    `file`: binary file; `name`: what messages call it; `most`: bytes that all members together may
    have. Raises LimitError: there are more. Raises DamagedError: the file is not an archive, is
    damaged, encrypted or compressed in another way, or has two members of one name.
    """
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            # Bytes that belong to no member are those of another file, or of one cut wrongly.
            # 22 bytes end an archive; a member has 30 before its own, and 46 in the list.
            known, streamed = 22 + len(archive.comment), 0
            for m in members:
                file.seek(m.header_offset + 26)  # the lengths of two texts
                text, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
                known += 76 + 2 * text + extra + m.compress_size + len(m.extra + m.comment)
                streamed += m.flag_bits >> 3 & 1  # a record of its sizes comes after it
            if file.seek(0, 2) - known not in (0, *(k * streamed for k in (12, 16, 20, 24))):
                raise DamagedError("it holds bytes that belong to no member: copy it again")
            if (total := sum(m.file_size for m in members)) > most:
                message = f"{name}: expands to {total} bytes, more than the limit of {most}"
                raise LimitError(message, path=name, limit=most)
            content: dict[str, bytes] = {}
            for member in members:
                if member.filename in content:
                    raise DamagedError(f"member {member.filename!r} occurs twice")
                if member.compress_type not in PLAIN:
                    raise DamagedError(f"member {member.filename!r} is not stored or deflated")
                content[member.filename] = archive.read(member)
    except (DamagedError, LimitError):
        raise
    except Exception as error:  # whatever zipfile, zlib and struct make of damaged bytes
        raise DamagedError(str(error) or type(error).__name__) from error
    return content


def read_arrays(content: dict[str, bytes]) -> dict[str, Any]:
    """The arrays among the members, by their names without ``.npy``; see `array_of`."""
    arrays = {}
    for name, data in content.items():
        if name.endswith(".npy"):
            try:
                arrays[name[:-4]] = read_array(data)
            except (DamagedError, SecurityError) as error:
                raise type(error)(f"array {name[:-4]!r} {error}") from error
    return arrays


LARGEST_NUMBER = 1e100
"""Largest absolute value of a model's SI numbers, so that doubles hold the squares."""


def require_moderate(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays with finite numbers beyond `LARGEST_NUMBER`, by their names: DamagedError."""
    for name, values in arrays.items():
        if (
            values.dtype.kind == "f"
            and (np.abs(values[np.isfinite(values)]) > LARGEST_NUMBER).any()
        ):
            raise DamagedError(f"array {name!r} has a number beyond {LARGEST_NUMBER:g}")


def read_array(content: bytes) -> Any:
    """One array of numbers or texts.

    Raises SecurityError: the array holds Python objects. Raises DamagedError: its header is
    missing, or does not agree with its size.
    """
    if content[:6] != MAGIC or len(content) < 12:
        raise DamagedError("is damaged: it does not start as one")
    # Version 1 of the format counts the header in two bytes, later ones in four.
    width = 2 if content[6] == 1 else 4
    start = 8 + width + int.from_bytes(content[8 : 8 + width], "little")
    header = content[8 + width : start].decode("latin-1")
    kind, order, shape = DESCRIPTION.search(header), ORDER.search(header), SHAPE.search(header)
    if kind is None or order is None or shape is None:
        raise DamagedError("is damaged: its header is none of an array of numbers")
    try:
        dtype = np.dtype(kind[1])
        sizes = tuple(int(size) for size in shape[1].split(",") if size.strip())
    except (TypeError, ValueError) as error:
        raise DamagedError(f"is damaged: {error}") from error
    if dtype.hasobject:
        raise SecurityError("holds Python objects, which are not read: they can hold code")
    # Times may count in multiples of a unit, 25 s, which nothing here expects.
    odd = not dtype.itemsize or (dtype.kind in "mM" and np.datetime_data(dtype)[1] != 1)
    if dtype.kind not in KINDS or odd:
        raise DamagedError(f"has {dtype}, which are no numbers")
    # As Python's integers: a product that overflows could agree with the size.
    count = int(np.prod(sizes, dtype=object))
    if count * dtype.itemsize != len(content) - start:
        raise DamagedError("is damaged: its header does not agree with its size")
    array = np.frombuffer(content, dtype, count, start) if count else np.empty(0, dtype)
    if dtype.kind == "U":  # code points without NumPy's access, which can crash the interpreter
        codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if codes.max(initial=0) > sys.maxunicode:
            raise DamagedError("is damaged: it holds characters that do not exist")
    try:
        return array.reshape(sizes, order="F" if order[1] == "True" else "C").copy(order="K")
    except (ValueError, OverflowError) as error:
        raise DamagedError(f"is damaged: {error}") from error
