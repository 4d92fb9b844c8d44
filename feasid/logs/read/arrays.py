"""Arrays in memory as a log: ``{"t": (N,), "q": (N, dof), "tau": (N, dof)}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.errors import LogError
from feasid.notes import Note

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("t", "time", "times")


def frame_of_arrays(arrays: Mapping[str, Any], where: str = "the arrays") -> pd.DataFrame:
    """Arrays of one length as columns; an array of k columns becomes name_1 ... name_k.

    Parameters
    ----------
    arrays : mapping of name to array_like, shape (N,) or (N, k)
    where : str
        What messages call them.

    Raises
    ------
    LogError
        When there is no array with samples.
    """
    import pandas as pd

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
            columns |= {f"{name}_{k + 1}": array[:, k] for k in range(array.shape[1])}
        else:
            skipped.append(f"{name} {array.shape}")
    df = pd.DataFrame(columns)
    if skipped:
        text = f"arrays without {rows} rows skipped: {', '.join(skipped)}"
        df.attrs["notes"] = (Note(text, "skipped", arrays=skipped),)
    return df
