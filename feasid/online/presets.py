"""The online setting of the Valkyrie identification paper, for comparison."""

from __future__ import annotations

from typing import Any

from feasid.errors import InputError
from feasid.online.gate import GateRules

BUFFER, ROWS_PER_SECOND, R2 = 50, 3.0, 0.95

VALKYRIE_RULES = GateRules(
    r2=R2,
    r2_closing=R2,
    ratio=1e9,
    ratio_closing=1e9,
    worst=1e9,
    inertia=(1e-9, 1e9),
    patience=1,
    known=0.0,
)
"""A full buffer and R2, nothing else: met by models that are wrong by a fifth."""


def valkyrie(rate: float) -> dict[str, Any]:
    """Options of `feasid.OnlineFit`: 50 samples at 3 Hz, moving-average accelerations, R2 of 0.95.

    What remains of `feasid` are feasibility and the prior towards the nominal model, where the
    paper weighs a guess.
    """
    if not rate >= 2 * ROWS_PER_SECOND:
        raise InputError(f"the rate must be at least {2 * ROWS_PER_SECOND:g} Hz, not {rate!r}")
    every = round(rate / ROWS_PER_SECOND)
    return {
        "window": BUFFER * every,
        "block": every,
        "every": every,
        "smoother": "moving-average",
        "cutoff": 0.4 * rate,
        "derivative_cutoff": min(10.0, 0.4 * rate),
        "slow_weight": 1.0,
        "rules": VALKYRIE_RULES,
    }
