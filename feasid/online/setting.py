"""Options of an online fit: what they may be, and what follows from them."""

from __future__ import annotations

import numpy as np

from feasid.errors import InputError
from feasid.online.equations import SMOOTHERS, CausalEquations
from feasid.online.store import Fading, SlidingWindow, Store

BLOCKS = 16
"""Blocks of a window: each new one renews four triangles per joint."""

LONGEST_BLOCK = 0.125
"""Time that the newest sample waits until it is learnt, at most [s]."""


def block_of(rate: float, window: int | None, block: int | None) -> int:
    """Samples per block: a divisor of the window, and not too long a wait."""
    longest = max(1, round(LONGEST_BLOCK * rate))
    if block is not None:
        if not block >= 1 or (window is not None and window % block):
            raise InputError(f"a window of {window} samples is no multiple of a block of {block}")
        return int(block)
    if window is None:
        return longest
    fitting = [b for b in range(1, longest + 1) if window % b == 0 and window // b >= BLOCKS]
    return max(fitting, default=1)


def store_of(
    equations: CausalEquations, window: int | None, forgetting: float | None, block: int
) -> Store:
    """What remembers the equations."""
    sizes = [len(s) + 1 for s in equations.plan.support]
    if window is not None:
        return SlidingWindow(sizes, window // block)
    return Fading(sizes, 1.0 if forgetting is None else forgetting)


def check_options(
    rate: float,
    window: int | None,
    forgetting: float | None,
    smoother: str,
    slow_weight: float,
    prior_weight: float,
) -> None:
    """Refuse what cannot be, by name."""
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"rate must be a positive number of Hz, not {rate!r}")
    if window is not None and forgetting is not None:
        raise InputError("window and forgetting are two ways to forget: give one of them")
    if window is not None and not (isinstance(window, int | np.integer) and window >= 2):
        raise InputError(f"window must be a number of samples, at least 2, not {window!r}")
    if forgetting is not None and not 0 < forgetting < 1:
        raise InputError(f"forgetting must be a factor between 0 and 1, not {forgetting!r}")
    if smoother not in SMOOTHERS:
        raise InputError(f"smoother must be one of {[*SMOOTHERS]}, not {smoother!r}")
    if not 0 < slow_weight <= 1:
        raise InputError(f"slow_weight must be in (0, 1], not {slow_weight!r}")
    if not (np.isfinite(prior_weight) and prior_weight > 0):
        raise InputError(f"prior_weight must be positive, not {prior_weight!r}")
