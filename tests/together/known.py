"""Rows that fail today, each with its cause: strict expected failures, which leave one by one.

Whoever cures one takes its line out here; a line whose rows pass fails the suite.
"""

from __future__ import annotations

OTHER_PROBLEM = (
    "cross-validation solves a problem without the fit's own prior, bounds or constraints"
)
START = "the search starts at the description, which is outside of these bounds"
SOLVER_LOG = "the refusal repeats the solver's log, or does not name both sides"
RAW_SIGNALS = "observers take torques as they are logged, without what the fit corrected"
JOINTS = "joints are zipped with independent coordinates"
SAVED = "a saved fit is another class with fewer parts"

ONE_FIT = {
    "a bound far below what the log needs": OTHER_PROBLEM,
    "a total mass far below what the log needs": OTHER_PROBLEM,
    "a prior that outweighs the log": OTHER_PROBLEM,
    "a constraint that the truth breaks": OTHER_PROBLEM,
    "the true mass is known": START,
    "bounds that exclude the description of the Z1": START,
    "momentum of a late log": "method='momentum' notes a delay and does not take it out",
    "robust weights of a late log": "robust weighs rows that hold the delay which the fit found",
    "contact of a log with wrong gains": RAW_SIGNALS,
    "contact of a log with a turned sign": RAW_SIGNALS,
    "a saved fit has all that a fit has": SAVED,
    "a saved fit expects the same errors": SAVED,
    "a saved fit writes with the same errors": SAVED,
    "a saved fit is a prior": SAVED,
    "plausible bounds beside a bound that excludes the description": "they are dropped silently",
    "contact of a mimic joint": JOINTS,
    "samples of a locked gripper": JOINTS,
    "contact of a locked gripper": JOINTS,
}
"""By the name of a case in `test_one_fit`."""

CONTRADICTIONS = dict.fromkeys(
    (
        *("mass, total", "known, total", "masses, sum", "sums", "box, ellipsoid"),
        *("box, body in ellipsoid", "hull, cylinder", "linear, mass", "equal, masses"),
        *("constraints, mass", "mirrored, masses"),
    ),
    SOLVER_LOG,
)
"""By the name of a pair of bounds that cannot both hold."""
