"""Closed loops: motion, torques and base parameters against MuJoCo's constraints."""

import re

import mujoco
import numpy as np
import pytest
from closed import (
    FIVE_BAR,
    LEG,
    MECHANISMS,
    constraint_jacobian,
    directions,
    open_torques,
    tree_regressor,
    unconstrained,
)
from thorough import some

import feasid
from feasid.dynamics.kinematics import coordinate_map
from feasid.errors import DescriptionError, InputError
from feasid.formats.mjcf import compiled
from feasid.identifiability.base import base_parameters
from feasid.robot.couplings import Loop

GAP = 1e3  # what makes a rank clear where columns come from differences of MuJoCo's torques
SAMPLES = 60


def motions(robot, seed=0, reach=1.0, count=SAMPLES):
    """Independent coordinates, velocities and accelerations that the loops allow."""
    rng = np.random.default_rng(seed)
    if robot.closure is None:
        return rng.uniform(-3, 3, (3, robot.dof, count))
    home = robot.closure.closed_configuration[robot.independent][:, None]
    s = home + np.pi * reach * rng.uniform(-1, 1, (robot.dof, 6 * count))
    q, closed = robot.closure.solve_by_continuation(s)
    closed[closed] &= robot.closure.regular(q[:, closed])
    s = s[:, closed][:, :count]
    return s, *rng.standard_normal((2, *s.shape))


@pytest.fixture(params=some(MECHANISMS, *(set(MECHANISMS) - {"palletising arm"})), ids=str)
def mechanism(request):
    text = MECHANISMS[request.param]
    return text, feasid.load_robot(text).without_joint_terms()


def test_motion_satisfies_mujocos_constraints(mechanism):
    text, robot = mechanism
    s, ds, dds = motions(robot, reach=0.1)
    move = coordinate_map(robot).motion
    q, dq, ddq, _ = move(s, ds, dds)
    h = 1e-5
    ahead, behind = (move(s + k * h * ds + h * h / 2 * dds, ds, dds)[0] for k in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * h), dq, atol=1e-6)
    np.testing.assert_allclose((ahead - 2 * q + behind) / h**2, ddq, atol=1e-2)
    for k in range(0, q.shape[1], 10):
        residual, jacobian = constraint_jacobian(text, q[:, k])
        assert np.abs(residual).max() < 1e-9
        assert np.abs(jacobian @ dq[:, k]).max() < 1e-8


def test_torques_are_mujocos_along_its_constraint(mechanism):
    text, robot = mechanism
    s, ds, dds = motions(robot, reach=0.2)
    q, dq, ddq, _ = coordinate_map(robot).motion(s, ds, dds)
    ours = feasid.inverse_dynamics(robot, s.T, ds.T, dds.T)
    model, data = unconstrained(text)
    theirs = [
        directions(text, q[:, k], robot.coordinates).T
        @ open_torques(model, data, q[:, k], dq[:, k], ddq[:, k])
        for k in range(q.shape[1])
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-7 * np.abs(ours).max())
    rows = feasid.regressor(robot, s.T, ds.T, dds.T)
    np.testing.assert_allclose(rows @ robot.values, ours, atol=1e-9 * np.abs(ours).max())


@pytest.mark.sampled(0.5)
def test_base_count_is_the_rank_of_mujocos_constrained_dynamics(mechanism):
    text, robot = mechanism
    base = base_parameters(robot)
    s, ds, dds = motions(robot)
    q, dq, ddq, _ = coordinate_map(robot).motion(s, ds, dds)
    tree = tree_regressor(text, q, dq, ddq)
    follow = [directions(text, q[:, k], robot.coordinates) for k in range(q.shape[1])]
    rows = np.vstack([f.T @ y for f, y in zip(follow, tree, strict=True)])
    sizes = np.linalg.norm(rows, axis=0)
    s = np.linalg.svd(rows / sizes.clip(1e-6 * sizes.max()), compute_uv=False)
    s = np.r_[s.clip(1e-12 * s[0]), 1e-12 * s[0]]
    rank = int(np.argmax(s[:-1] / s[1:])) + 1
    assert s[rank - 1] / s[rank] > GAP
    assert base.size == rank
    assert "numerical" in base.rank_check.reason
    y = feasid.regressor(robot, motions(robot)[0].T, ds.T, dds.T).reshape(-1, robot.size)
    free = np.setdiff1d(np.arange(robot.size), base.coefficients.given_columns)
    np.testing.assert_allclose(
        y[:, base.independent] @ base.K[:, free], y[:, free], atol=1e-7 * np.abs(y).max()
    )


def test_compiled_models_have_the_same_loops(mechanism):
    text, robot = mechanism
    other = feasid.load_robot(mujoco.MjModel.from_xml_string(text)).without_joint_terms()
    assert other.coordinates == robot.coordinates
    s, ds, dds = motions(robot, reach=0.1, count=20)
    ours, theirs = (feasid.inverse_dynamics(r, s.T, ds.T, dds.T) for r in (robot, other))
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(ours).max())


def test_constants_of_mujoco_are_what_is_assumed():
    kinds = [int(getattr(mujoco.mjtEq, f"mjEQ_{k.upper()}")) for k in compiled.EQUALITIES]
    assert kinds == list(range(len(kinds)))
    assert int(mujoco.mjtObj.mjOBJ_SITE) == compiled.SITE
    assert int(mujoco.mjtTrn.mjTRN_JOINT) == compiled.JOINT_TRANSMISSION


WELD = FIVE_BAR.replace("<connect ", "<weld ")


def test_a_weld_that_leaves_nothing_free_is_said():
    """Two arms of two joints, welded at their ends, move in one way less than connected."""
    robot = feasid.load_robot(WELD)
    assert robot.dof == 1
    assert robot.constraint_summary == (
        "4 joints, 1 independent; 1 closed loops with 6 conditions, 3 of them redundant"
    )


def arm(*positions):
    return feasid.Robot(
        [
            feasid.Body(f"{k + 1}", None if k == 0 else f"{k}", position=p)
            for k, p in enumerate(positions)
        ],
        (0, -9.81, 0),
    )


FOUR_BAR = Loop("tip", "3", None, [0.3, 0, 0], [0.4, 0, 0])


def test_loops_are_assembled_from_the_configuration_and_choose_its_branch():
    robot = arm([0, 0, 0], [0.2, 0, 0], [0.35, 0, 0])
    up = robot.with_loops([FOUR_BAR], configuration={"1": 1.2, "2": -0.8, "3": -1.4})
    down = robot.with_loops([FOUR_BAR], configuration={"1": -1.2, "2": 0.8, "3": 1.4})
    assert up.coordinates == ("1",)
    assert up.closure.closed_configuration[0] > 0 > down.closure.closed_configuration[0]
    home = up.closure.closed_configuration
    np.testing.assert_allclose(up.closure.conditions.at(home[:, None])[0], 0, atol=1e-11)
    assert robot.with_loops([FOUR_BAR], ["2"], up.configuration).coordinates == ("2",)


@pytest.mark.parametrize(
    ("loop", "options", "words"),
    [
        (Loop("far", "3", None, [0.3, 0, 0], [4, 0, 0]), {}, "do not close .* loop 'far' stay"),
        (Loop("x", "4", None, [0, 0, 0], [0, 0, 0]), {}, "loop 'x': there is no body '4'"),
        (FOUR_BAR, {"active": ["1", "2"]}, "leave 1 independent joint.*'2' cannot be one"),
        (FOUR_BAR, {"active": ["elbow"]}, "no joint 'elbow'"),
        (Loop("flat", "3", None, [0.3, 0, 0], [0.85, 0, 0]), {"configuration": {}}, "singular"),
    ],
)
def test_bad_loops_are_named(loop, options, words):
    robot = arm([0, 0, 0], [0.2, 0, 0], [0.35, 0, 0])
    options = {"configuration": {"1": 1.2, "2": -0.8, "3": -1.4}, **options}
    with pytest.raises((InputError, DescriptionError), match=words):
        robot.with_loops([loop], **options)


def test_samples_that_do_not_close_are_named():
    robot = feasid.load_robot(FIVE_BAR)
    q = np.array([[0.0, 0.0], [0.1, 0.1], [2.5, -2.5]])
    with pytest.raises(InputError, match="cannot take the position of sample 2") as caught:
        feasid.regressor(robot, q, 0 * q, 0 * q)
    assert caught.value.row == 2


def test_loops_through_several_degrees_of_freedom_are_named():
    text = LEG.replace('<joint name="rx" axis="0 1 0"/>', '<joint name="rx" type="ball"/>')
    text = re.sub('<joint name="rz"[^>]*/>', "", text)
    with pytest.raises(DescriptionError, match="joint 'rx', which has several degrees"):
        feasid.load_robot(text)


@pytest.mark.parametrize(
    ("equality", "words"),
    [
        ('<joint joint1="m1" joint2="m2" polycoef="0 1 0.5 0 0"/>', "is not linear"),
        ('<connect site1="a" site2="b"/>', "sites"),
        ('<connect body1="a2" body2="c" anchor="0 0 0"/>', "no body 'c'"),
        ('<connect body1="a2" anchor="0 0"/>', "2 numbers, expected 3"),
        ('<joint joint1="m1" joint2="m7"/>', "no joint 'm7'"),
    ],
)
def test_equalities_that_are_not_modelled_are_refused(equality, words):
    with pytest.raises(DescriptionError, match=words):
        feasid.load_robot(re.sub("<connect[^>]*>", equality, FIVE_BAR))


def test_inactive_equalities_count_for_nothing():
    text = FIVE_BAR.replace("<connect ", '<connect active="false" ')
    assert feasid.load_robot(text).is_tree
    off = FIVE_BAR.replace("<option ", "<option><flag equality='disable'/></option><option ")
    assert feasid.load_robot(off).is_tree


def test_a_held_joint_leaves_its_loop():
    robot = feasid.load_robot(FIVE_BAR)
    home = robot.closure.closed_configuration[robot.independent]
    held = robot.locked({"m2": home[1]})
    assert held.coordinates == ("m1",)
    q = np.array([[home[0] + 0.1]])
    whole = np.array([[home[0] + 0.1, home[1]]])
    one = feasid.inverse_dynamics(held, q, 0 * q, 0 * q)
    both = feasid.inverse_dynamics(robot, whole, 0 * whole, 0 * whole)
    np.testing.assert_allclose(one[0, 0], both[0, 0], rtol=1e-9)
