"""FitEvidence of a fit with numbers by hand."""

import numpy as np

from feasid.identification.assessment.compared_errors import ComparedErrors
from feasid.identification.assessment.evidence import FitEvidence


def evidence(error=(0.1, 0.5), **changes):
    """Of a robot whose second joint carries ten times the first's torque, [1, 10] N m."""
    two, error = np.ones(2), np.asarray(error, float)
    torque = np.array([1.0, 10.0])
    relative = error / torque
    errors = ComparedErrors(relative, relative, 1.5 * relative, torque**2, True)
    values = {
        "joints": ("a", "b"), "units": ("N m",) * 2, "seconds": 30.0, "held_out": True,
        "period": None, "torque": torque, "share": torque**2, "error": error,
        "fitted_error": 0.9 * error, "gravity_error": np.full(2, 0.4), "friction": 0.5 * two,
        "capacity": 16 * two, "weighing": 0.05, "lower": -two, "upper": two, "still": (),
        "leverage": 2.0, "comparison": None, "bodies": ("x", "y"), "masses": 2 * two,
        "described": 2 * two, "errors": errors, "offset": 0.1 * two,
    }  # fmt: skip
    return FitEvidence(**{**values, **changes})
