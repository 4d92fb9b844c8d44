"""Rows that fail today, each with its cause: strict expected failures, which leave one by one.

Whoever cures one takes its line out here; a line whose rows pass fails the suite.
"""

from __future__ import annotations

RAW_SIGNALS = "observers take torques as they are logged, without what the fit corrected"

ONE_FIT = {
    "momentum of a late log": "method='momentum' notes a delay and does not take it out",
    "robust weights of a late log": "robust weighs rows that hold the delay which the fit found",
    "contact of a log with wrong gains": RAW_SIGNALS,
    "contact of a log with a turned sign": RAW_SIGNALS,
}
"""By the name of a case in `test_one_fit`."""

CONTRADICTIONS: dict[str, str] = {}
"""By the name of a pair of bounds that cannot both hold."""
