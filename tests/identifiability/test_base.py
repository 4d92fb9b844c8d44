"""Base parameters of the published robots, and what K must satisfy for any robot."""

import re

import numpy as np
import pytest
from robots import PUBLISHED, wam, yoshida

import feasid
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import ALONE, COMBINED, NEVER, base_parameters

COEFFICIENT = 1e-12  # published coefficients are short decimals, ours carry rounding only
RANK = 1e-9  # singular values of a random regressor, relative: rounding is 1e-15


def coefficients(text, names):
    """A published sum as a vector, read independently of how we print."""
    column = {}
    for k, (body, symbol) in enumerate(names):
        head, tail = (symbol[0], symbol[1:]) if symbol[0] in "Ll" else (symbol, "")
        column[f"{head}{body}{tail}"] = k
    out = np.zeros(len(names))
    text = text.replace("_", "")
    for sign, factor, group in re.findall(r"([+-]?)\s*([\d.]*)\s*(\([^)]*\)|[A-Za-z]\w*)", text):
        size = (-1.0 if sign == "-" else 1.0) * (float(factor) if factor else 1.0)
        for label in re.findall(r"\w+", group):
            out[column[label]] += size
    return out


def test_wam_has_the_69_base_parameters_of_table_3():
    robot = wam(drive_inertia=True)
    base = base_parameters(robot)
    assert (robot.size, base.size) == (98, 69)
    published = [coefficients(t, robot.parameter_names) for t in PUBLISHED["wam7"]["combinations"]]
    np.testing.assert_allclose(base.K, published, atol=COEFFICIENT, rtol=0)


def test_wam_prints_as_table_3():
    printed = base_parameters(wam(drive_inertia=True)).expressions
    assert [t.replace("_", "") for t in PUBLISHED["wam7"]["combinations"]] == list(printed)


def test_yoshida_robot_has_the_15_combinations_of_table_1():
    robot = yoshida()
    base = base_parameters(robot)
    combinations = PUBLISHED["yoshida3"]["combinations"]
    published = [coefficients(t, robot.parameter_names) for t in combinations]
    np.testing.assert_allclose(base.K, published, atol=COEFFICIENT, rtol=0)


def random_regressor(robot, rng, samples=None):
    samples = samples or 3 * robot.size // robot.dof + 20
    q, dq, ddq = rng.normal(size=(3, samples, robot.dof))
    return feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size)


@pytest.mark.parametrize("robot", [wam(drive_inertia=True), wam(), yoshida()])
def test_row_space_of_k_is_that_of_the_regressor(robot):
    base = base_parameters(robot)
    y = random_regressor(robot, np.random.default_rng(3))
    s = np.linalg.svd(y, compute_uv=False)
    assert np.sum(s > RANK * s[0]) == base.size
    np.testing.assert_allclose(y @ base.nullspace, 0, atol=1e-11 * np.abs(y).max())
    # beta = K delta carries everything: Y = Y Pb K
    np.testing.assert_allclose(y @ base.Pb @ base.K, y, atol=1e-11 * np.abs(y).max())


def test_matrices_fit_together():
    base = base_parameters(wam(drive_inertia=True))
    n, nb = base.robot.size, base.size
    assert base.Pb.shape == (n, nb)
    assert base.Pd.shape == (n, n - nb)
    np.testing.assert_array_equal(base.K, base.Pb.T + base.Kd @ base.Pd.T)
    np.testing.assert_array_equal(base.G, np.vstack([base.K, base.Pd.T]))
    assert np.linalg.matrix_rank(base.G) == n
    np.testing.assert_allclose(base.K @ base.nullspace, 0, atol=1e-12)
    assert np.linalg.matrix_rank(base.nullspace) == n - nb


def test_extended_base_parameters_are_another_name_for_the_parameters():
    """G = [[1 Kd], [0 1]] P' turns delta into (beta, delta_d) and back."""
    base = base_parameters(wam(drive_inertia=True))
    n, nb = base.robot.size, base.size
    p, eye, zero = np.hstack([base.Pb, base.Pd]), np.eye(n - nb), np.zeros((n - nb, nb))
    np.testing.assert_array_equal(p @ p.T, np.eye(n))
    upper = np.block([[np.eye(nb), base.Kd], [zero, eye]])
    np.testing.assert_array_equal(base.G, upper @ p.T)
    back = p @ np.block([[np.eye(nb), -base.Kd], [zero, eye]])
    np.testing.assert_allclose(base.G @ back, np.eye(n), atol=COEFFICIENT)
    delta = np.random.default_rng(6).normal(size=n)
    beta = delta[base.independent] + base.Kd @ delta[base.dependent]
    np.testing.assert_allclose(base.values(delta), beta, atol=1e-12)
    np.testing.assert_allclose(base.G @ delta, np.r_[beta, delta[base.dependent]], atol=1e-12)


def test_leading_parameters_are_the_first_independent_columns():
    robot = wam(drive_inertia=True)
    y = random_regressor(robot, np.random.default_rng(4))
    size = np.linalg.norm(y, axis=0)
    r = np.linalg.qr(y / np.where(size > 1e-9, size, 1.0), mode="r")
    kept = []
    for column in range(robot.size):
        trial = np.linalg.svd(r[:, [*kept, column]], compute_uv=False)
        if trial[-1] > 1e-9:
            kept.append(column)
    np.testing.assert_array_equal(base_parameters(robot).independent, kept)


def test_status_says_what_can_be_known():
    base = base_parameters(wam())
    status = dict(zip(base.robot.parameter_names, base.status, strict=True))
    assert status["2", "Lxy"] == ALONE
    assert status["2", "Lxx"] == COMBINED
    assert status["2", "Lzz"] == COMBINED
    assert status["1", "m"] == NEVER


def test_beta_of_a_robot_is_what_its_torques_show():
    robot = wam()
    rng = np.random.default_rng(5)
    base = base_parameters(robot)
    delta = rng.normal(size=robot.size)
    other = delta + base.nullspace @ rng.normal(size=base.nullspace.shape[1])
    np.testing.assert_allclose(base.values(other), base.values(delta), rtol=1e-10, atol=1e-11)


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(InputError, match="no joint 'elbow'"):
        base_parameters(yoshida(), measured=["elbow"])
    with pytest.raises(InputError, match="did you mean 'paper'"):
        base_parameters(yoshida(), order="papr")


URDF = """<robot name="arm">
<link name="base"/><link name="upper"/><link name="lower"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.5 0 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
</joint></robot>"""


def test_notebooks_get_a_table_with_escaped_names():
    body = feasid.Body("<b>", None)
    html = base_parameters(feasid.Robot((body,), gravity=(0, 0, 0)))._repr_html_()
    assert "&lt;b&gt;.Lzz" in html
    assert "<b>" not in html
