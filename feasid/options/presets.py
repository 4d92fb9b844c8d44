"""Options that go together, under a name."""

from __future__ import annotations

from feasid.options.tables import FitOptions

SOUSA_2014: FitOptions = {
    "filtering": "signals",
    "friction": ("viscous", "coulomb", "offset"),
    "weights": None,
    "prior": None,
    "slack": 0.0,
}
"""The chain of Sousa and Cortesao (2014): signals are filtered and the regressor is formed of them,
all equations count alike, and the optimum of feasible least squares is returned as it is. For
``feasid.fit(log, robot, **feasid.SOUSA_2014)``."""
