"""Closed loops: motion, torques and base parameters against MuJoCo's constraints."""

import re

import mujoco
import numpy as np
import pytest
from robots import clear_rank, singular_values
from thorough import some

import feasid
from benchmarks.closed import (
    FIVE_BAR,
    GEARED,
    LEG,
    MECHANISMS,
    SLIDER_CRANK,
    WELDED,
    constraint_jacobian,
    directions,
    link,
    mjcf,
    open_torques,
    tree_regressor,
    unconstrained,
)
from feasid.core.errors import DescriptionError, InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.couplings import Loop
from feasid.robot.dynamics.kinematics import coordinate_map
from feasid.robot.formats.mjcf import compiled
from feasid.robot.layout import random_configurations

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
    closed[closed] &= robot.closure.is_regular(q[:, closed])
    s = s[:, closed][:, :count]
    return s, *rng.standard_normal((2, *s.shape))


ALL = {**MECHANISMS, "slider crank": SLIDER_CRANK, "welded": WELDED, "geared": GEARED}


@pytest.fixture(params=some(ALL, *(set(ALL) - {"palletising arm"})), ids=str)
def mechanism(request):
    text = ALL[request.param]
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


@pytest.mark.sampled(0.34)
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
    assert base.size == clear_rank(singular_values(rows), 1e-12, GAP)
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


def test_sites_of_a_compiled_model_close_the_same_loop():
    """Two sites that coincide, turned by .6 rad in b1 and .2 in a3: a pose of .4 between these."""
    sites = {
        "a3": '<site name="s2" pos="0.05 0.02 0" quat="0.9950042 0 0 0.0998334"/>',
        "b1": '<site name="s1" pos="-0.06 0.45 0" quat="0.9553365 0 0 0.2955202"/>',
    }
    text = re.sub(r"<weld .*?/>", '<weld site1="s1" site2="s2"/>', WELDED)
    for name, site in sites.items():
        text = re.sub(rf'(<body name="{name}"[^>]*>)', lambda m, site=site: m[1] + site, text)
    robot, own = (feasid.load_robot(mujoco.MjModel.from_xml_string(t)) for t in (text, WELDED))
    s, ds, dds = motions(own.without_joint_terms(), reach=0.1, count=20)
    ours, theirs = (feasid.inverse_dynamics(r, s.T, ds.T, dds.T) for r in (robot, own))
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(ours).max())  # seven digits above


def test_constants_of_mujoco_are_what_is_assumed():
    kinds = [int(getattr(mujoco.mjtEq, f"mjEQ_{k.upper()}")) for k in compiled.EQUALITIES]
    assert kinds == list(range(len(kinds)))
    assert int(mujoco.mjtObj.mjOBJ_SITE) == compiled.SITE
    assert int(mujoco.mjtTrn.mjTRN_JOINT) == compiled.JOINT_TRANSMISSION


def test_a_weld_that_leaves_nothing_free_is_said():
    """Two arms of two joints, welded at their ends, move in one way less than connected."""
    robot = feasid.load_robot(FIVE_BAR.replace("<connect ", "<weld "))
    assert robot.dof == 1
    assert robot.constraint_summary.startswith(
        "4 joints, 1 independent; 1 closed loops with 6 conditions, 3 of them redundant"
    )


CHAIN = feasid.Robot(
    [
        feasid.Body(f"{k}", f"{k - 1}" if k > 1 else None, position=(x, 0, 0))
        for k, x in enumerate((0, 0.2, 0.35), 1)
    ],
    (0, -9.81, 0),
)
FOUR_BAR = Loop("tip", "3", None, [0.3, 0, 0], [0.4, 0, 0])


def test_loops_are_assembled_from_the_configuration_and_choose_its_branch():
    up = CHAIN.with_loops([FOUR_BAR], configuration={"1": 1.2, "2": -0.8, "3": -1.4})
    down = CHAIN.with_loops([FOUR_BAR], configuration={"1": -1.2, "2": 0.8, "3": 1.4})
    assert up.coordinates == ("1",)
    assert up.closure.closed_configuration[0] > 0 > down.closure.closed_configuration[0]
    home = up.closure.closed_configuration
    residual, _ = up.closure.conditions.residual_and_jacobian(home[:, None])
    np.testing.assert_allclose(residual, 0, atol=1e-11)
    assert CHAIN.with_loops([FOUR_BAR], ["2"], up.configuration).coordinates == ("2",)


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
    options = {"configuration": {"1": 1.2, "2": -0.8, "3": -1.4}, **options}
    with pytest.raises((InputError, DescriptionError), match=words):
        CHAIN.with_loops([loop], **options)


PARALLELOGRAM_ARM = mjcf(
    f"""
    <body name="column"><joint name="m0" axis="0 0 1"/>{link(0.03, 0.02, 5.0, 0.1)}
      <body name="upper" pos="0.1 0 0.3"><joint name="m1" axis="0 1 0"/>{link(0.02, 0.0, 4.0, 0.08)}
        <body name="fore" pos="0.05 0 0.5"><joint name="elbow" axis="0 1 0"/>
          {link(0.25, 0.01, 3.0, 0.05)}</body></body>
      <body name="crank" pos="0.1 0 0.3"><joint name="m2" axis="0 1 0"/>{link(-0.08, 0.0, 1.0)}
        <body name="rod" pos="-0.15 0 0.02"><joint name="rod" axis="0 1 0"/>
          {link(0.02, 0.0, 0.8, 0.02)}</body></body>
    </body>""",
    '<connect body1="rod" body2="fore" anchor="0.05 0 0.5"/>',
    ("m0", "m1", "m2"),
    "0 0 -9.81",
)


def test_a_parallelogram_stays_on_its_branch():
    """Where it lies flat the crossed branch begins: 18 base parameters, with both of them 26."""
    robot = feasid.load_robot(PARALLELOGRAM_ARM).without_joint_terms()
    assert base_parameters(robot).size == 18
    s = random_configurations(robot, np.random.default_rng(0), 300)
    q = robot.closure.positions(s)
    row = dict(zip(robot.joints, q, strict=True))
    np.testing.assert_allclose(row["elbow"], row["m2"] - row["m1"], atol=1e-9)
    assert np.ptp(s, axis=1).min() > 2.0
    assert "a loop can change its branch, as near m0 = " in robot.constraint_summary
    flat = np.array([[0.0, 0.0, 2.5]])
    with pytest.raises(InputError, match="passes a singular configuration"):
        feasid.regressor(robot, flat, 0 * flat, 0 * flat)


def test_random_configurations_stay_within_limits():
    text = PARALLELOGRAM_ARM.replace('name="m1"', 'name="m1" limited="true" range="-0.2 0.5"')
    text = text.replace('name="elbow"', 'name="elbow" limited="true" range="-0.4 0.3"')
    robot = feasid.load_robot(text)
    q = robot.closure.positions(random_configurations(robot, np.random.default_rng(0), 200))
    row = dict(zip(robot.joints, q, strict=True))
    for joint, low, high in (("m1", -0.2, 0.5), ("elbow", -0.4, 0.3)):
        assert low <= row[joint].min() < row[joint].max() <= high
        assert np.ptp(row[joint]) > 0.5
    assert "change its branch" not in robot.constraint_summary


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize(("angle", "letter"), [(0.56, "a"), (0.7, "a"), (0.05, "b")])
def test_motors_are_independent_near_a_singularity_too(angle, letter):
    motors = tuple(f"{letter}{k}" for k in (1, 2, 3))
    crank, rod, base, platform = 0.3, 0.35, 0.5, 0.12
    bodies, start = [], {}
    for k in range(3):
        phi = 2 * np.pi * k / 3 + np.pi / 2
        anchor, tip = (
            r * np.array([np.cos(x), np.sin(x), 0.0])
            for r, x in ((base, phi), (platform, phi + angle))
        )
        way = tip - anchor
        far = np.hypot(*way[:2])
        lift = np.arccos((crank**2 + far**2 - rod**2) / (2 * crank * far))
        a = np.arctan2(way[1], way[0]) - lift
        elbow = anchor + crank * np.array([np.cos(a), np.sin(a), 0.0])
        b = np.arctan2(*(tip - elbow)[1::-1])
        bodies.append(feasid.Body(f"a{k + 1}", None, position=anchor))
        bodies.append(feasid.Body(f"b{k + 1}", f"a{k + 1}", position=[crank, 0, 0]))
        start |= {f"a{k + 1}": a, f"b{k + 1}": b - a}
        if k == 0:
            bodies.append(feasid.Body("c1", "b1", position=[rod, 0, 0]))
            start["c1"] = phi + angle - np.pi - b
    loops = []
    for k in (1, 2):
        turn = np.pi + 2 * np.pi * k / 3
        at = platform * np.array([1 + np.cos(turn), np.sin(turn), 0.0])
        loops.append(Loop(f"leg {k + 1}", f"b{k + 1}", "c1", [rod, 0, 0], at))
    robot = feasid.Robot(bodies, (0, -9.81, 0)).with_loops(loops, motors, start)
    assert robot.coordinates == motors
    if angle == 0.7:
        assert base_parameters(robot).size == 19


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
