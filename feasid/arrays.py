"""Types of arrays; shapes and units are said where the arrays are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""Real numbers."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""Truth values."""
