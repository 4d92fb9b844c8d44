"""Small examples worked out by hand: distances, workspaces, postures, certificates, moves."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import feasid
from feasid.applications.excitation import design, space
from feasid.applications.excitation.bounds import resolve_bounds
from feasid.applications.excitation.certificate import certify_motion, value_per_joint
from feasid.applications.excitation.constraint_check import (
    Margin,
    largest_feasible_scale,
    scale_to_limits,
)
from feasid.applications.excitation.problem import (
    ConditionNumber,
    PredictionVariance,
    WeightedObjectives,
    limit_margins,
)
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.applications.excitation.search import LIMIT_SHARE, Perturbations
from feasid.applications.excitation.trajectory import (
    approach_times,
    derivative,
    largest_values,
    quintic_segments,
)
from feasid.core.errors import InputError

ROUNDING = 1e-12
SEARCHED = 1e-4
"""A posture is searched at random in twelve rounds of half the spread each."""

INERTIAL = """<inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>"""


def gantry(low=-2, high=2):
    """Three sliding joints x, y, z; the last carries a ball of 0.1 m and, fixed to it, a rod."""
    text = f'<robot name="gantry"><link name="base">{ball("0 0 -5", 0.2)}</link>'
    for k, axis in enumerate(("1 0 0", "0 1 0", "0 0 1")):
        parent = f"l{k - 1}" if k else "base"
        shape = ball("0 0 0", 0.1) if k == 2 else ""
        text += f'<link name="l{k}">{INERTIAL}{shape}</link>'
        text += f"""<joint name="j{k}" type="prismatic"><parent link="{parent}"/>
        <child link="l{k}"/><axis xyz="{axis}"/>
        <limit lower="{low}" upper="{high}" velocity="1" effort="0"/></joint>"""
    text += """<link name="tip"><collision><origin xyz="0 0 1"/><geometry>
    <capsule radius="0.05" length="0.4"/></geometry></collision></link><joint name="f" type="fixed">
    <parent link="l2"/><child link="tip"/><origin xyz="0.5 0 0"/></joint></robot>"""
    return feasid.load_robot(text)


def ball(place, radius):
    shape = f'<geometry><sphere radius="{radius}"/></geometry>'
    return f'<collision><origin xyz="{place}"/>{shape}</collision>'


ASKED = {"workspace": None, "floor": None, "capsules": None, "collision": False, "clearance": 0.0,
         "ignore": ()}  # fmt: skip


def parts(robot, **given):
    """The regressor without columns, the limits, the constraints and the notes."""
    dynamics, notes = MotionRegressor(robot, ()), []
    bounds = resolve_bounds(robot)[0]
    found = space.posture_constraints(dynamics, bounds, notes=notes, **{**ASKED, **given})
    return dynamics, bounds, found, notes


def test_frames_of_all_links():
    robot = gantry()
    frames = space.link_frames(robot)
    assert {n: f.body for n, f in frames.items()} == {
        "base": -1, "l0": 0, "l1": 1, "l2": 2, "tip": 2,
    }  # fmt: skip
    assert frames["tip"].position.tolist() == [0.5, 0, 0]
    message = "robot 'gantry' has no frame 'tap' (did you mean 'tip'?); its links: base, l0, l1, "
    with pytest.raises(InputError, match=re.escape(message)):
        space.find_frame(robot, "tap")


def test_margins_of_a_workspace_count_half_its_width():
    """The tip is half a metre ahead in x; y is open upward and counts in units of 5 cm."""
    inf = np.inf
    box = {"tip": ((0, -1, -inf), (0.8, inf, 2.3))}
    dynamics, bounds, (part,), _ = parts(gantry(), workspace=box)
    q = np.array([[0.1], [0.2], [0.3]])
    values = part(dynamics.evaluate(q, 0 * q, 0 * q))[0][:, 0]
    np.testing.assert_allclose(values, [0.6 / 0.4, 0.2 / 0.4, 1.2 / 0.05, 2.0 / 0.05], atol=1e-9)
    assert part.margin_names == tuple(f"workspace of 'tip', {x}" for x in "xxyz")
    names = space.margin_names(dynamics, bounds, (part,))
    assert tuple(name for name in names if "workspace" in name) == part.margin_names


def test_heights_above_the_floor():
    """The ball is 0.1 m thick, the rod reaches from 0.8 to 1.2 m above; the base does not move."""
    dynamics, _, (part,), _ = parts(gantry(), floor=-1.0)
    assert isinstance(part, space.FloorDistance)
    assert sorted({c.link for c in part.capsules}) == ["l2", "tip"]
    q = np.array([[0.1], [0.2], [0.3]])
    values = part(dynamics.evaluate(q, 0 * q, 0 * q))[0][:, 0] * space.DISTANCE_UNIT
    heights = [("l2", 1.2), ("l2", 1.2), ("tip", 2.05), ("tip", 2.45)]
    found = sorted(zip(part.margin_names, np.round(values, 9).tolist(), strict=True))
    assert found == [(f"floor under link '{name}'", height) for name, height in heights]


def test_the_floor_needs_shapes_and_ignored_links_exist():
    bare = feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0)])
    bounds = resolve_bounds(bare, position=1.0, velocity=1.0)[0]
    dynamics = MotionRegressor(bare, ())
    with pytest.raises(InputError, match="floor needs shapes"):
        space.posture_constraints(dynamics, bounds, notes=[], **{**ASKED, "floor": 0.0})
    notes = []
    collision = {**ASKED, "collision": True}
    assert space.posture_constraints(dynamics, bounds, notes=notes, **collision) == ()
    assert notes == [
        "collisions between links are not avoided: no collision primitives, no capsules="
    ]
    with pytest.raises(InputError, match="has no frame 'l9'"):
        parts(gantry(), ignore=(("tip", "l9"),))
    assert parts(gantry(), ignore=(("tip", "base"),))[2:] == ((), [])


def test_distances_between_a_ball_on_the_ground_and_what_moves():
    dynamics, _, (part,), notes = parts(gantry(), collision=True, clearance=0.01)
    assert isinstance(part, space.LinkDistance)
    assert notes == []
    assert [set(re.findall("'(.*?)'", name)) - {"base"} for name in part.margin_names] in (
        [{"l2"}, {"tip"}], [{"tip"}, {"l2"}],
    )  # fmt: skip
    q = np.array([[0.3, -0.5], [0.4, 0.0], [-1.0, -2.0]])
    values = part(dynamics.evaluate(q, 0 * q, 0 * q))[0] * space.DISTANCE_UNIT
    ball_at = np.linalg.norm(q - [[0], [0], [-5]], axis=0) - 0.3 - 0.01
    rod = q + np.array([[0.5], [0], [0.8]])
    rod_at = np.linalg.norm(rod - [[0], [0], [-5]], axis=0) - 0.25 - 0.01
    rows = dict(zip(part.margin_names, values, strict=True))
    for name, expected in (("l2", ball_at), ("tip", rod_at)):
        (row,) = [v for k, v in rows.items() if name in k]
        np.testing.assert_allclose(row, expected, atol=ROUNDING)


def test_links_that_always_touch_are_left_out_and_noted():
    near = {"base": [((0, 0, -5), (0, 0, -5), 20.0)]}
    _, _, found, notes = parts(gantry(), collision=True, capsules=near)
    assert found == ()
    assert all(n.endswith("are too close in every posture: not kept apart") for n in notes)
    assert len(notes) == 2


def capsule(link, body, x, radius, length=0.0):
    return space.Capsule(link, body, np.array([x, 0.0, 0]), np.array([x + length, 0, 0]), radius)


def test_pairs_are_of_bodies_that_no_joint_connects():
    """A chain 0-1-2-3 on the ground, with two capsules on body 3."""
    links = [capsule(f"c{b}", b, 0, 0.1) for b in (-1, 0, 1, 2, 3, 3)]
    pairs = {tuple(sorted((links[a].body, links[b].body))) for a, b in
             space.collision_pairs(links, [-1, 0, 1, 2], ())}  # fmt: skip
    assert pairs == {(-1, 1), (-1, 2), (-1, 3), (0, 2), (0, 3), (1, 3)}
    assert len(space.collision_pairs(links, [-1, 0, 1, 2], ())) == 9
    assert len(space.collision_pairs(links, [-1, 0, 1, 2], (("c3", "c0"), ("c-1", "c2")))) == 6
    assert space.collision_pairs(links[:1], [-1], ()).shape == (0, 2)


def test_capsules_inside_others_are_left_out():
    big = capsule("big", 0, 0, 0.3, 1.0)
    inside = [capsule("a", 0, 0.2, 0.1, 0.5), capsule("b", 0, -0.2, 0.1)]
    inside.append(capsule("c", 0, 1.1, 0.2))
    outside = [
        capsule("d", 0, 1.0, 0.1, 0.3), capsule("e", 1, 0.2, 0.1), capsule("f", 0, -0.3, 0.1),
    ]  # fmt: skip
    capsules = space._drop_contained_capsules([*inside, big, *outside])
    assert {c.link for c in capsules} == {"big", "d", "e", "f"}
    assert len(space._drop_contained_capsules([big, big])) == 1
    hollow = space.Capsule("h", 0, big.start, big.end, 0.4, polytope=SimpleNamespace())
    assert {c.link for c in space._drop_contained_capsules([hollow, big])} == {"h", "big"}
    point = capsule("p", 0, 0, 0.5)
    assert point.contains(capsule("q", 0, 0.3, 0.2))
    assert not point.contains(capsule("q", 0, 0.3, 0.21))


def test_a_callers_capsules_take_the_place_of_a_links_shapes():
    given = {"tip": [((0, 0, 0), (0, 0, 1), 0.2)]}
    found = {c.link: c for c in space.link_capsules(gantry(), given, [])}
    assert set(found) == {"base", "l2", "tip"}
    assert found["tip"].radius == 0.2
    assert found["tip"].start.tolist() == [0.5, 0, 0]


# -- postures --------------------------------------------------------------------------------------


def test_the_posture_with_most_room():
    """A cube of half a metre around (0.2, 0.3, -0.4): d above its middle the joint has
    ``(8.6 + d) / 9`` of half its range left and the cube ``1 - 2 d``, most where both are equal.
    """
    middle = np.array([0.2, 0.3, -0.4])
    dynamics, bounds, found, _ = parts(
        gantry(-9, 9), workspace={"l2": (tuple(middle - 0.5), tuple(middle + 0.5))}
    )
    best = space.find_rest_posture(dynamics, bounds, found, np.random.default_rng(0))
    room = space.posture_margins(dynamics, bounds, found, best[:, None]).min()
    assert room == pytest.approx((8.6 + 0.4 / 19) / 9, abs=SEARCHED)
    assert best[2] == pytest.approx(-0.4 + 0.4 / 19, abs=SEARCHED)


def test_without_constraints_it_is_the_middle_of_the_range():
    dynamics, bounds, found, _ = parts(gantry(-1, 2))
    assert space.find_rest_posture(dynamics, bounds, found, None).tolist() == [0.5] * 3


def test_what_no_posture_keeps_is_named():
    """l2 is never at x > 2; or two boxes that exclude each other."""
    for boxes, words in (
        (
            {"l2": ((3, -1, -1), (4, 1, 1))},
            "none of 24000 postures satisfies: workspace of 'l2', x",
        ),
        (
            {"l2": ((0.1, -1, -1), (1, 1, 1)), "tip": ((-1, -1, -1), (0.5, 1, 1))},
            "no posture satisfies all limits; the closest one violates: workspace of ",
        ),
    ):
        dynamics, bounds, found, _ = parts(gantry(), workspace=boxes)
        with pytest.raises(InputError, match="the robot cannot even stand still: ") as error:
            space.find_rest_posture(dynamics, bounds, found, np.random.default_rng(0))
        assert words in str(error.value)
        assert all("workspace" in name for name in error.value.data["broken"])


def test_margins_at_rest_are_named_in_order():
    dynamics, bounds, some, _ = parts(gantry(-1, 3), floor=-9.0)
    names = space.margin_names(dynamics, bounds, some)
    assert names[:6] == [f"position limit of joint 'j{k}'" for k in (0, 1, 2)] * 2
    q = np.array([[0.0], [1.0], [2.5]])
    values = space.posture_margins(dynamics, bounds, some, q)[:, 0]
    np.testing.assert_allclose(values[:6], [0.5, 1.0, 1.75, 1.5, 1.0, 0.25])
    assert len(values) == len(names)


# -- certificates ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pendulums():
    """Two joints in a plane, a motion of them, and the columns of its base regressor."""
    robot = feasid.Robot.from_dh([(0, 0.5, 0, 0), (0, 0.4, 0, 0)]).with_joint_terms(("viscous",))
    base = feasid.base_parameters(robot)
    rng = np.random.default_rng(0)
    motion = rng.standard_normal((3, 40, 2))
    known = rng.standard_normal((7, base.size))
    return robot, base, motion, known


def certificate(pendulums, motion, known, expected=None):
    robot, base, *_ = pendulums
    noise = np.array([0.5, 2.0])
    return certify_motion(
        robot, base.independent, base.expressions, motion, motion, noise=noise, rate=50.0,
        known=known, margins=(Margin("a", "j", "position", 0.1),), expected=expected,
    )  # fmt: skip


def rows(pendulums, motion):
    robot, base, *_ = pendulums
    return feasid.regressor(robot, *motion, columns=base.independent)


def test_parameters_that_are_not_seen_have_no_deviation(pendulums):
    """At rest nothing shows inertia and viscous friction."""
    _, base, motion, _ = pendulums
    still = np.stack([motion[0], 0 * motion[1], 0 * motion[2]])
    found = certificate(pendulums, still, np.zeros((0, base.size)))
    y = rows(pendulums, still).reshape(-1, base.size)
    assert found.rank == np.linalg.matrix_rank(y) < base.size
    assert found.condition_number == np.inf or found.condition_number > 1e12
    silent = np.abs(y).max(axis=0) == 0
    assert np.isinf(found.deviations[silent]).all()
    one = np.stack([m * [1.0, 0.0] for m in motion])
    predicted = certificate(pendulums, one, np.zeros((0, base.size))).torque_deviations
    assert 0 < predicted[0] < np.inf  # the joint that moves feels no unseen parameter
    assert "SOME PARAMETERS STAY UNSEEN" in found.summary()
    moving = certificate(pendulums, motion, np.zeros((0, base.size)))
    assert np.isfinite(moving.deviations).all()
    few = certificate(pendulums, motion[:, :1], np.zeros((0, base.size)))
    assert few.rank == np.linalg.matrix_rank(rows(pendulums, motion[:, :1]).reshape(2, -1))


def test_limits_that_are_used_up(pendulums):
    found = certificate(pendulums, *pendulums[2:])
    first, second = found.joints
    margins = (
        Margin("a", first, "position", 1e-4), Margin("b", first, "position", 1e-4),
        Margin("c", first, "velocity", 1e-4), Margin("d", second, "velocity", 0.5),
        Margin("e", None, "space", 1e-4), Margin("f", None, "space", 0.9),
    )  # fmt: skip
    found = replace(found, margins=margins)
    assert found.active_limits == {first: ["position", "velocity"], second: [], "space": ["e"]}
    assert found.limits_hold
    assert "limits kept between samples" in found.summary()
    assert f"{second}: no limit active" in found.summary()
    assert not replace(found, margins=(Margin("a", first, "position", -1e-9),)).limits_hold
    assert replace(found, margins=(Margin("a", first, "position", 0.0),)).limits_hold


def test_a_value_per_joint(pendulums):
    robot = pendulums[0]
    first, second = robot.joints
    assert value_per_joint(2, robot, "noise").tolist() == [2, 2]
    assert value_per_joint({second: 3}, robot, "noise").tolist() == [1, 3]
    assert value_per_joint([2, 3], robot, "noise").tolist() == [2, 3]
    for wrong in (0, [1, -1], [0, 1], {first: 0}):
        with pytest.raises(InputError, match="noise must be positive"):
            value_per_joint(wrong, robot, "noise")
    for wrong in ([1, 2, 3], np.nan, "x"):
        with pytest.raises(InputError, match="noise must be a number, 2 of them or a mapping"):
            value_per_joint(wrong, robot, "noise")


# -- design ----------------------------------------------------------------------------------------


def test_objectives_by_name():
    assert design.ObjectiveFamily((("condition", 1.0),), None)(8.0) == ConditionNumber(8.0)
    weights = (("condition", 2.0), ("prediction", 1.0))
    both = design.ObjectiveFamily(weights, np.eye(2))(4.0)
    assert isinstance(both, WeightedObjectives)
    assert both.parts[0] == (2.0, ConditionNumber(4.0))
    assert isinstance(both.parts[1][1], PredictionVariance)
    assert isinstance(design.ObjectiveFamily((("condition", 0.5),), None)(4.0), WeightedObjectives)


def test_what_needs_a_task():
    assert design.needs_task({"prediction": 1.0}, None)
    assert design.needs_task({"prediction": 1.0, "logdet": 1.0}, object())
    assert not design.needs_task({"logdet": 1.0}, None)
    q = np.ones((4, 2))
    assert len(design.task_motions((q, q, q))) == 1
    assert len(design.task_motions([(q, q, q), (q, q, q)])) == 2
    ((a, b, c),) = design.task_motions((q, 2 * q, 3 * q))
    assert (a[0, 0], b[0, 0], c[0, 0]) == (1, 2, 3)


@pytest.fixture(scope="module")
def problem():
    robot = gantry(-1, 3)
    limits = {"position": None, "velocity": None, "acceleration": 5.0, "jerk": 80.0, "torque": None}
    setting = design.design_setting(robot, (), False, limits, ASKED, 0)
    basis = design.make_basis("fourier", 6.0, 2, 0.0)
    known = np.zeros((1, setting.base.size))
    return design.make_problem(setting, basis, 2, False, np.ones(3), known, None, 50.0)


def draws(problem, seed=0):
    return design.random_motion(problem, np.random.default_rng(seed))


def test_motions_scaled_to_their_limits_touch_them(problem):
    z = scale_to_limits(problem, draws(problem))
    motion = problem.basis.matrices(problem.limit_grid) @ problem.coordinates.coefficients(z)
    for j, own in enumerate(z.reshape(problem.coordinates.shape)):
        pairs = zip(motion[..., [j]], problem.bounds.derivative_limits, strict=True)
        slack = [limit_margins(x.T, limit[:, [j]])[0].min(initial=1.0) for x, limit in pairs]
        assert min(slack) == pytest.approx(0.0, abs=1e-9)
        assert problem.limit_usage(j, 0.5 * own) == pytest.approx(0.5)
    t = np.arange(400) * problem.basis.period / 400
    assert largest_feasible_scale(problem, 2 * z, t) == pytest.approx(0.5, abs=0.01)
    assert largest_feasible_scale(problem, 0.9 * z, t) == 1.0
    for size in (0.1, 5.0):
        again = scale_to_limits(problem, size * draws(problem))
        np.testing.assert_allclose(again, z, rtol=1e-9)


def test_perturbations_change_all_joints_or_one(problem):
    moves = Perturbations(problem, lambda rng: design.random_motion(problem, rng))
    z, others = draws(problem), [draws(problem, 1), draws(problem, 2)]
    shape = problem.coordinates.shape
    counts = {}
    for seed in range(60):
        found = list(moves.perturb(z, others, np.random.default_rng(seed)))
        changed = {
            tuple(np.flatnonzero((f != z).reshape(shape).any(axis=1)).tolist()) for f in found
        }
        assert len(changed) == 1
        (joints,) = changed
        usages = [
            [problem.limit_usage(j, x.reshape(shape)[j]) for j in joints[:1]] for x in (z, *found)
        ]
        uses = np.array(usages[1:]) / usages[0]
        fits = len(joints) == 1 and np.allclose(uses, LIMIT_SHARE)
        key = (len(joints), len(found), fits)
        counts[key] = counts.get(key, 0) + 1
    assert set(counts) == {(3, 1, False), (1, 1, False), (1, 10, True)}
    assert counts[3, 1, False] > counts[1, 1, False]
    assert counts[1, 10, True] > counts[1, 1, False]


@pytest.mark.parametrize("back", [False, True])
def test_a_motion_shifted_in_time_is_the_same_later(problem, back):
    moves = Perturbations(problem, None)
    own = draws(problem).reshape(problem.coordinates.shape)[1]
    moved = moves.shift_in_time(1, own, 0.3, back=back)
    t = np.linspace(0, 6, 31)
    span = problem.coordinates.span[1]
    later = t + 0.3 * 6.0
    expected = problem.basis.matrices(-later if back else later)[0] @ span @ own
    np.testing.assert_allclose(problem.basis.matrices(t)[0] @ span @ moved, expected, atol=1e-9)


def test_each_unknown_uses_its_joints_limits_once(problem):
    """One unit of it reaches the tightest of them, whatever its basis function is."""
    joints, unknowns = problem.coordinates.shape
    for j in range(joints):
        for own in np.eye(unknowns)[1:]:
            use = max(problem.limit_usage(j, own), problem.limit_usage(j, -own))
            assert use == pytest.approx(1.0, rel=0.02)


# -- between points --------------------------------------------------------------------------------


def test_polynomials_meet_values_and_two_derivatives_at_both_ends():
    rng = np.random.default_rng(0)
    values, step = rng.normal(size=(3, 5, 2)), rng.uniform(0.1, 2, size=4)
    found = quintic_segments(values, step)
    assert found.shape == (6, 4, 2)
    for order in range(3):
        np.testing.assert_allclose(found[0], values[order, :-1], atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=0), values[order, 1:], atol=1e-9)
        found = derivative(found) / step[None, :, None]


def test_the_largest_value_of_a_polynomial():
    rng = np.random.default_rng(1)
    s = np.linspace(0, 1, 2001)
    for order in (1, 2, 3, 5):
        coefficients = rng.normal(size=(order + 1, 6, 2))
        powers = s[:, None] ** np.arange(order + 1)
        exact = np.einsum("sk,kij->sij", powers, coefficients).max(axis=0)
        found = largest_values(coefficients, np.full(2, -np.inf))
        np.testing.assert_allclose(found, exact, atol=1e-5)
        bound = largest_values(coefficients, np.full(2, np.inf))
        assert (bound >= exact - 1e-12).all()
        some = largest_values(coefficients, np.full(2, 0.5))
        np.testing.assert_allclose(some[exact > 0.5], exact[exact > 0.5], atol=1e-5)
        assert (some[exact <= 0.5] <= np.maximum(0.5, exact[exact <= 0.5] + 1e-5)).all()


def test_times_of_an_approach():
    """10 s^3 - 15 s^4 + 6 s^5 is fastest in the middle, 15/8, and pushes most at 10/sqrt(3)."""
    bounds = resolve_bounds(gantry(), acceleration=2.0)[0]
    way = np.array([0.0, 0.1, 8.0])
    found = approach_times(way, bounds)
    expected = np.maximum(1.875 * way / 1.0, np.sqrt(10 / np.sqrt(3) * way / 2.0))
    np.testing.assert_allclose(found, expected)
