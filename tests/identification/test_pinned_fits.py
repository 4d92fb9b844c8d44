"""Fits with many options give the numbers, tables and sentences that they gave."""

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from pinned import assert_pinned, without_digits
from robots import ARM

import feasid

FOUND = 1e-3
"""Relative difference of numbers at which searches and iterations end."""

CASES = {
    "default": {},
    "plain": {"diagnose": False, "calibration": None, "candidates": (), "friction": ["viscous"]},
    "bounds": {
        "mass": {"rod": (0.2, 0.35)},
        "prior": "scaled",
        "prior_weight": 3.0,
        "weights": None,
    },
    "robust": {"robust": "huber", "drive_inertia": True, "cutoff": 6.0},
    "known": {
        "known": {("wheel", "m"): 0.4},
        "friction": ["coulomb", "spring"],
        "prior": "euclidean",
        "prior_weight": 5.0,
    },
    "several": {"weights": [1.0, 2.0, 0.5], "total_mass": (3.0, 9.0), "consistency": "semi"},
}


@pytest.fixture(scope="module")
def case():
    robot = feasid.load_robot(ARM)
    own = robot.with_joint_terms()
    logs = [simulate(own, arm_parameters(own), k, 800, noise=0.02) for k in range(4)]
    return robot, [x.drop(columns=x.filter(regex="^ddq_").columns) for x in logs]


def table(values):
    """A table by its columns, texts without their digits."""
    frame = values.to_frame() if isinstance(values, pd.Series) else values
    return {str(k): [without_digits(x) for x in frame[k]] for k in frame}


@pytest.mark.parametrize("name", CASES)
def test_numbers_tables_and_sentences(case, name):
    robot, (first, test, *more) = case
    logs = [first, *more] if name == "several" else first
    fit = feasid.fit(logs, robot, **CASES[name])
    names = ("delay", "delta", "condition_number", "price", "weights", "simulated", "triangle")
    results = {x: getattr(fit, x) for x in names}
    tables = ("base_table", "bodies", "joint_terms", "relative_error", "selection", "uses",
              "uses_by_joint")  # fmt: skip
    errors = fit.errors(test)
    results |= {x: table(getattr(fit, x)) for x in tables} | {
        "deviations": np.sqrt(np.diag(fit.covariance)),
        "prediction": np.sqrt(np.diag(fit.prediction_covariance)),
        "notes": [without_digits(str(n)) for n in fit.notes],
        "errors": table(errors),
        "predicted": table(errors.attrs["predicted"]),
        "summary": [without_digits(x) for x in str(fit.summary(test)).split("\n")],
        "options": {k: repr(v) for k, v in fit.test_options().items()},
        "simulation": fit.simulate(horizon=(0.1, 0.3)),
        "logs": fit.comparison and table(fit.comparison.table),
        "torques": table(fit.predict(test)[100:140:20]),
    }
    assert_pinned(f"fit-{name}", results, FOUND)
