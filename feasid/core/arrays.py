"""Array types, and conversion of arguments to arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.errors import InputError

Array: TypeAlias = npt.NDArray[np.float64]
"""Real numbers."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""Truth values."""


def require_finite(
    value: npt.ArrayLike, shape: tuple[int, ...], what: str, error: type[InputError] = InputError
) -> Array:
    """Return a finite array of this shape, or say what is wrong with `what`."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as wrong:
        raise error(f"{what} is not an array of numbers: {value!r}") from wrong
    if array.shape != shape:
        raise error(f"{what} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise error(f"{what} has an entry that is not finite: {array.tolist()}")
    return array
