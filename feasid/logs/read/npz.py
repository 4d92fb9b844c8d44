"""NumPy archives as logs, without pickles and without trusting what a file says of its size."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.errors import InputError, LimitError, LogError, SecurityError
from feasid.logs.read.arrays import frame_of_arrays

if TYPE_CHECKING:
    import pandas as pd

MOST_EXPANSION = 200
"""A compressed file may grow by this factor, beyond its first megabyte."""


def read_npz(path: Path, max_bytes: int) -> pd.DataFrame:
    """Arrays of one length as columns; an array of k columns becomes name_1 ... name_k."""
    return frame_of_arrays(_npz_arrays(path, max_bytes), str(path))


def _npz_arrays(path: Path, max_bytes: int) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(m.file_size for m in members)
            limit = min(max_bytes, max(2**20, MOST_EXPANSION * path.stat().st_size))
            if total > limit:
                raise LimitError(
                    f"{path}: expands to {total} bytes, more than the limit of {limit}",
                    path=str(path),
                )
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        content = file.read(member.file_size + 1)
                    name = member.filename[:-4]
                    arrays[name] = _npy_array(content, name, path)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise LogError(f"{path}: damaged or no NumPy archive: {error}", path=str(path)) from error
    return arrays


def _npy_array(content: bytes, name: str, path: Path) -> Any:
    """One array; its header must agree with its size before memory is taken."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject:
            raise SecurityError(
                f"{path}: array {name!r} holds Python objects, which are not read: they can hold "
                "code; save numbers only",
                path=str(path),
                column=name,
            )
        if int(np.prod(shape, dtype=object)) * dtype.itemsize != len(content) - file.tell():
            raise ValueError("its header does not agree with its size")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, TypeError, KeyError, SyntaxError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise LogError(
            f"{path}: array {name!r} is damaged: {error}", path=str(path), column=name
        ) from error
