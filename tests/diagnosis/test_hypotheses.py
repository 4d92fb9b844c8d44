"""Of all that may be wrong with a log, the diagnosis says what is: one thing, and the right one."""

from __future__ import annotations

import numpy as np
import pytest
from thorough import some

import feasid
from benchmarks.faults import changed, recorded
from benchmarks.hypotheses import CASES, UNTOLD, serious

pytestmark = pytest.mark.slow  # a minute of simulations and searches


def cases(names):
    """Parameters of tests; those that are not told are expected to fail."""
    untold = pytest.mark.xfail(reason="see UNTOLD", strict=True)
    return [pytest.param(n, marks=[untold] if n in UNTOLD else []) for n in names]


@pytest.mark.parametrize("case", cases(sorted(CASES)))
def test_a_wrong_log_is_understood(case):
    check, *arguments = CASES[case]
    assert check(*arguments)


def test_six_radians_are_not_degrees():
    df, robot, _ = recorded("simulated")
    turned = df.assign(q_3=df.q_3 + 2 * np.pi)
    assert "degrees" not in feasid.diagnose(turned, robot)


@pytest.mark.xfail(reason="a wrong sign and a wrong zero of one joint at once", strict=True)
def test_a_remedy_adds_to_what_was_given():
    df, robot, _ = recorded("simulated")
    odd = df.assign(tau_2=-1000 * df.tau_2, q_2=np.rad2deg(df.q_2) + 90)
    options = {"units": {"tau_2": 1e-3, "q_2": "deg"}, "offsets": {"2": 0.1}}
    found = feasid.diagnose(odd, robot, **options)
    assert found.options["units"] == {"tau_2": -1e-3}
    assert found.options["offsets"]["2"] == pytest.approx(-np.pi / 2, abs=0.01)
    mended = {k: {**v, **found.options.get(k, {})} for k, v in options.items()}
    assert serious(odd, robot, mended) == []


@pytest.mark.parametrize("kind", ["q", "dq"])
@pytest.mark.parametrize("name", some(["kuka_lwr4", "simulated"], "simulated"))
def test_torques_tell_whether_position_or_velocity_is_reversed(kind, name):
    _, robot, options = recorded(name)
    joint = robot.joints[1]
    log = changed(name, [kind], np.negative, [1])
    found = feasid.diagnose(log, robot, **options)
    assert found.options == {"units": {f"{kind}_{joint}": -1.0}}
    assert serious(log, robot, {**options, **found.options}) == []
