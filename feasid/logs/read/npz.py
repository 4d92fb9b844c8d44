"""NumPy archives as logs, without pickles and without trusting what a file says of its size."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from feasid.core.archives import DamagedError, arrays_of, unpacked
from feasid.core.files import size_of
from feasid.errors import LogError, SecurityError
from feasid.logs.read.arrays import frame_of_arrays

if TYPE_CHECKING:
    import pandas as pd

MOST_EXPANSION = 200
"""A compressed file may grow by this factor, beyond its first megabyte."""


def read_npz(file: IO[bytes], path: str, max_bytes: int) -> pd.DataFrame:
    """Arrays of one length as columns; an array of k columns becomes name_1 ... name_k."""
    most = min(max_bytes, max(2**20, MOST_EXPANSION * size_of(file)))
    try:
        arrays = arrays_of(unpacked(file, path, most))
    except SecurityError as error:
        raise SecurityError(
            f"{path}: {error}; save numbers only, as arrays, CSV or Parquet", path=path
        ) from error
    except DamagedError as error:
        raise LogError(f"{path}: damaged or no NumPy archive: {error}", path=path) from error
    return frame_of_arrays(arrays, path)
