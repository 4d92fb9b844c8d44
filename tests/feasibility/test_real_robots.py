"""Base parameters of real robots without friction: they exist, are proved to, and stay."""

from pathlib import Path

import numpy as np
import pytest
from robots import example_urdfs

import feasid
from feasid.core.errors import FeasidError

OWN = Path(feasid.__file__).parents[1]

FILES = [
    *example_urdfs(),
    *sorted(path for part in ("datasets", "feasid") for path in (OWN / part).rglob("*.urdf")),
]

SAMPLE = ("ur5_robot", "z1", "baxter", "a1", "kuka_lwr4")


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[] if p.stem in SAMPLE else pytest.mark.slow) for p in FILES],
)
def test_base_parameters_of_a_real_robot_without_friction_are_feasible_and_stay(path):
    try:
        robot = feasid.load_robot(path).without_joint_terms().with_joint_terms()
    except FeasidError as error:
        pytest.skip(f"{type(error).__name__}: {error}"[:120])
    values = robot.values.copy()
    values[np.setdiff1d(np.arange(robot.size), robot.inertial_columns)] = 0.0
    if not np.isfinite(values).all():
        pytest.skip("a link is not described")
    robot = robot.with_values(values)
    if feasid.check(robot).status != "feasible":
        assert path.stem not in SAMPLE
        pytest.skip("its links cannot exist")
    base = feasid.base_parameters(robot)
    beta = base.values(values)
    verdict = feasid.check(beta, base)
    assert verdict.status == "feasible"
    verdict.certificate.verify()
    correction = feasid.correct(beta, base)
    assert (correction.changed, correction.distance, correction.gap) == ((), 0.0, 0.0)
    assert (correction.beta == beta).all()
    assert feasid.check(correction.robot).status == "feasible"
    assert feasid.correct(base.robot).changed == ()
