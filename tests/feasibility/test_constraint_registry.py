"""The constraints that a caller can ask for are a registry that feasible sets follow."""

import numpy as np
from feasibility_problems import base_of, random_parameters, random_robot

from feasid import base_parameters, check, fit, inverse_dynamics
from feasid.identification.regression.triangle import Reduced
from feasid.options.complete import option_table
from feasid.options.option import Option
from feasid.options.tables import BoundOptions, CheckOptions, FitOptions, SetOptions
from feasid.parameters.feasibility.constraints.affine import Linear
from feasid.parameters.feasibility.constraints.limits import CONSTRAINTS, AffineConstraints
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.robot.known import body_index


def test_a_constraint_is_an_entry_of_the_registry_and_of_the_options():
    """What the options offer is what can be built, in no more than these two places."""
    assert set(CONSTRAINTS) == set(option_table(BoundOptions))


def test_a_new_constraint_reaches_check_and_fit_by_its_option(monkeypatch):
    """A limit on the trace of a body's rotational inertia, added as a builder and an option."""

    def traces(robot, value):
        rows = [
            Linear(
                f"trace of {name}",
                robot.inertial_columns[body_index(robot, name)][[0, 3, 5]],
                -np.ones(3),
                float(most),
            )
            for name, most in (value or {}).items()
        ]
        return AffineConstraints(linear=rows)

    monkeypatch.setitem(CONSTRAINTS, "trace", traces)
    option = Option("largest trace of a body's rotational inertia", None, "kg m^2")
    for table in (BoundOptions, SetOptions, CheckOptions, FitOptions):
        monkeypatch.setitem(option_table(table), "trace", option)
    robot = random_robot(np.random.default_rng(0), 2)
    truth = random_parameters(np.random.default_rng(0), robot)
    base = base_of(robot)
    largest = truth[robot.inertial_columns[1]][[0, 3, 5]].sum()
    name = robot.bodies[1].name
    wide = feasible_set(robot, trace={name: 1e6})
    assert wide.contains_strictly(truth)
    narrow = feasible_set(robot, trace={name: 0.9 * largest})
    assert narrow.violations(truth) == (f"trace of {name}",)
    q, dq, ddq = np.random.default_rng(1).uniform(-1, 1, (3, 200, robot.dof))
    tau = inverse_dynamics(robot, q, dq, ddq, parameters=truth)
    log = Reduced.from_samples(robot, q, dq, ddq, tau)
    options = {"friction": (), "prior": None, "diagnose": False}
    found = fit(log, robot, trace={name: 1e-3}, **options)
    assert found.delta[robot.inertial_columns[1]][[0, 3, 5]].sum() <= 1e-3
    assert check(base.K @ truth, base_parameters(robot), trace={name: 1e6}).feasible
