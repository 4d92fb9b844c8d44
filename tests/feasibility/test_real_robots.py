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


def judged(path):
    """What is said of the links, and of the base parameters with zero friction."""
    try:
        robot = feasid.load_robot(path).without_joint_terms().with_joint_terms()
    except FeasidError as error:
        pytest.skip(f"{type(error).__name__}: {error}"[:120])
    values = robot.values.copy()
    values[np.setdiff1d(np.arange(robot.size), robot.inertial_columns)] = 0.0
    if not np.isfinite(values).all():
        pytest.skip("a link is not described")
    robot = robot.with_values(values)
    base = feasid.base_parameters(robot)
    return feasid.check(robot), base, base.values(values)


def same(path):
    own, base, beta = judged(path)
    if own.status != "feasible":
        pytest.skip("its links cannot exist")
    verdict = feasid.check(beta, base)
    assert verdict.status == "feasible"
    verdict.certificate.verify()
    correction = feasid.correct(beta, base)
    assert (correction.changed, correction.distance, correction.gap) == ((), 0.0, 0.0)
    assert (correction.beta == beta).all()
    assert feasid.check(correction.robot).status == "feasible"
    assert feasid.correct(base.robot).changed == ()


@pytest.mark.parametrize("name", SAMPLE)
def test_base_parameters_of_a_real_robot_without_friction_are_feasible(name):
    same(next(path for path in FILES if path.stem == name))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_base_parameters_of_every_real_robot_without_friction_are_feasible(path):
    same(path)
