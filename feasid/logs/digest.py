"""What a log holds, as one hash: of a file's bytes, or of the numbers of what never was a file."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.files import is_folder, is_regular, reading
from feasid.logs.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 2**20
"""Bytes of a file that are hashed at a time."""


def content_size(log: Recording) -> Hashable:
    """Equal for equal logs, and known at once; None where only reading would tell."""
    if log.name:
        if is_folder(log.name):
            return os.path.realpath(log.name)
        return os.stat(log.name).st_size if is_regular(log.name) else None
    return None if hasattr(log.source, "dask") else log.frame.shape


def content_digest(log: Recording) -> str:
    """SHA-256 of a log's content."""
    if log.name and (is_regular(log.name) or is_folder(log.name)):
        return _of_file(log.name)
    return _of_frame(log.frame)


def _of_file(path: str) -> str:
    """Of a file's bytes; of a folder's files, names included."""
    found = hashlib.sha256()
    inside = sorted(p for p in Path(path).rglob("*") if is_regular(p)) if is_folder(path) else []
    for file in inside or [Path(path)]:
        if inside:
            found.update(os.fsencode(f"{file.relative_to(path)}\0"))
        with reading(file, sys.maxsize) as stream:
            while block := stream.read(BLOCK):
                found.update(block)
    return found.hexdigest()


def _of_frame(frame: pd.DataFrame) -> str:
    """Of names and cells."""
    found = hashlib.sha256()
    for name in frame.columns:
        column = frame[name].to_numpy()
        found.update(str(name).encode("utf-8", "surrogatepass"))
        plain = column.dtype.kind in "fiub"
        found.update(
            np.ascontiguousarray(column).tobytes() if plain else repr(column.tolist()).encode()
        )
    return found.hexdigest()
