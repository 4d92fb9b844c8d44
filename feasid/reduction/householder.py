"""Triangles of rows, updated in place by Householder reflections (LAPACK ``tpqrt``)."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtpqrt  # here: a library loaded later escapes `one_thread`

from feasid.core.arrays import Array
from feasid.core.threads import is_limited
from feasid.errors import LogError

PANEL_WORK = 2**19
"""Largest samples x columns x panel of a Householder update where BLAS has threads. Beyond it the
library starts them for products that are too small to gain (measured: 10 times slower)."""

PANELS = (4, 8)
"""Fewest and most columns per panel."""


def absorb(triangle: Array, block: Array) -> None:
    """Triangle of [triangle; block], in place; both Fortran-ordered, block is destroyed."""
    panel = PANELS[1]
    if not is_limited():
        work = max(1, block.shape[0]) * triangle.shape[0]
        panel = min(max(PANEL_WORK // work, PANELS[0]), panel)
    panel = min(panel, triangle.shape[0])
    new, _, _, info = dtpqrt(0, panel, triangle, block, overwrite_a=1, overwrite_b=1)
    if info:
        raise LogError(f"LAPACK tpqrt rejected argument {-info}")
    if new is not triangle:
        triangle[...] = new


def stack(upper: Array, lower: Array) -> Array:
    """Triangle of one triangle on top of another."""
    out = np.asfortranarray(upper)
    out = out.copy(order="F") if out is upper else out
    absorb(out, np.array(lower, order="F"))
    return np.ascontiguousarray(np.triu(out))
