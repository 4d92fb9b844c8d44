"""Numbers that no robot has end in errors of ours, or in right answers."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.core.errors import FeasidError, InputError
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.sets import feasible_set

ROBOT = feasid.load_robot(ARM).with_joint_terms()

WRONG = [
    np.ones(3), np.ones((ROBOT.size, 1)), "text", None, [1j] * ROBOT.size,
    np.ma.masked_array(np.ones(ROBOT.size), [True] + [False] * (ROBOT.size - 1)),
]  # fmt: skip


@pytest.mark.parametrize("power", range(-300, 301, 50))
def test_bodies_of_any_mass_are_judged(power):
    """A robot's own inertials, scaled: feasible as it was, or the range of doubles is named."""
    values = arm_parameters(ROBOT) * 10.0**power
    try:
        assert feasid.check(ROBOT.with_values(values)).feasible
    except FeasidError as error:
        assert abs(power) >= 100, error  # noqa: PT017


@pytest.mark.parametrize("method", ["linear_values", "contains", "contains_strictly", "violations"])
@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_methods_of_sets_refuse_what_is_no_model(method, wrong):
    with pytest.raises(InputError):
        getattr(feasible_set(ROBOT), method)(wrong)


@pytest.mark.parametrize("columns", [[ROBOT.size], [-1], [0.5], [0, 1]])
def test_sets_hold_constraints_on_parameters_that_are_there(columns):
    with pytest.raises(InputError, match="constraint 'far'"):
        feasid.check(
            ROBOT,
            feasible=feasible_set(ROBOT).with_user_constraints_of(
                type(feasible_set(ROBOT))(
                    ROBOT.parameter_names, (), "full", (),
                    (Linear("far", np.array(columns), np.ones(1)),),
                )
            ),
        )  # fmt: skip
    with pytest.raises(InputError, match="constraint 'odd'"):
        Block("odd", "matrix", 0, np.array([0]), np.ones((1, 2, 2)), np.eye(3), (0, 0))


def test_reduced_data_have_no_samples_to_predict():
    log = simulate(ROBOT, arm_parameters(ROBOT), 0, samples=400)
    fit = feasid.fit(log, ROBOT, diagnose=False)
    with pytest.raises(InputError, match="reduced data hold no samples"):
        fit.predict(fit.reduced)


def test_parquet_with_one_name_twice_is_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array(np.linspace(0, 1, 50))] * 3
    table = arrow.Table.from_arrays(columns, names=["t", "q_slide", "q_slide"])
    parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(FeasidError, match="q_slide"):
        feasid.read_log(tmp_path / "log.parquet")


@pytest.mark.parametrize("header", ["tau_{}", "tau_{} [mA]"])
def test_a_unit_said_by_header_and_option_counts_once(header):
    """The option `units` of the constants reads the same columns as torques."""
    log = simulate(ROBOT, arm_parameters(ROBOT), 0, samples=800)
    torques = [c for c in log if c.startswith("tau_")]
    currents = log.assign(**{c: log[c] / 2.0 * 1e3 for c in torques})  # 2 N m/A
    named = currents.rename(columns={c: header.format(c[4:]) for c in torques})
    described = ROBOT.with_values(arm_parameters(ROBOT))
    found = feasid.torque_constants(named, described, units={"tau": "mA"})
    per_unit = 1.0 if "[" in header else 1e-3
    assert found.units == pytest.approx(dict.fromkeys(torques, 2.0 * per_unit), rel=0.2)
