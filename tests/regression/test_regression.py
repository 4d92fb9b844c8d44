"""Reduced data: the same triangle in one piece, in parts, in any order, and from a file."""

import functools
import operator
from dataclasses import replace

import numpy as np
import pytest
from logs import gram, relative
from robots import random_robot

import feasid
from feasid.core.errors import InputError, LimitError, LogError, SecurityError
from feasid.identification.regression.reduce import restrict_terms
from feasid.identification.regression.triangle import Reduced, Reducer, fingerprint_of

# Householder reductions of a few thousand rows: each is within a small multiple of rounding of
# the exact R'R; 1e-13 leaves room for 60 columns and several stackings.
RTOL = 1e-13


def independent(robot, rng):
    """Base columns by a pivot-free numerical rank, an oracle that needs no theory."""
    sample = feasid.regressor(robot, *rng.standard_normal((3, 60, robot.dof)))
    matrix = sample.reshape(-1, robot.size)
    kept = []
    for c in range(robot.size):
        singular = np.linalg.svd(matrix[:, [*kept, c]], compute_uv=False)
        if singular[-1] > 1e-9 * singular[0]:
            kept.append(c)
    return kept


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 5).with_joint_terms(drive_inertia=False)
    columns = independent(robot, rng)
    samples = rng.standard_normal((4, 3000, robot.dof))
    return robot, columns, samples


@pytest.fixture(scope="module")
def reduced(case):
    robot, columns, samples = case
    return Reduced.from_samples(robot, *samples, columns=columns)


def test_triangle_is_that_of_the_stacked_regressor(case, reduced):
    robot, columns, (q, dq, ddq, tau) = case
    regressor = feasid.regressor(robot, q, dq, ddq, columns=columns)
    weights = np.arange(1.0, robot.dof + 1)
    stacked = np.concatenate([regressor, tau[..., None]], axis=2) * weights[:, None]
    matrix = stacked.reshape(-1, len(columns) + 1)
    assert relative(gram(reduced, weights), matrix.T @ matrix) < RTOL
    assert reduced.samples == len(q)


@pytest.mark.parametrize("cuts", [[1], [7, 1024, 1025], [1500], list(range(100, 3000, 100))])
def test_parts_add_to_the_whole_in_any_order(case, reduced, cuts):
    robot, columns, samples = case
    parts = [
        Reduced.from_samples(robot, *part, columns=columns)
        for part in np.split(samples, cuts, axis=1)
    ]
    forward = sum(parts)
    backward = functools.reduce(operator.add, reversed(parts))
    assert relative(gram(forward), gram(reduced)) < RTOL
    assert relative(gram(backward), gram(reduced)) < RTOL
    assert forward.samples == reduced.samples


def test_residuals_are_those_of_the_log(case, reduced):
    robot, columns, (q, dq, ddq, tau) = case
    beta = np.random.default_rng(0).standard_normal(len(columns))
    regressor = feasid.regressor(robot, q, dq, ddq, columns=columns)
    expected = np.linalg.norm(regressor @ beta - tau, axis=0)
    np.testing.assert_allclose(reduced.residuals(beta), expected, rtol=1e-12)
    np.testing.assert_allclose(reduced.torque_norms, np.linalg.norm(tau, axis=0), rtol=1e-12)


def test_adding_leaves_its_operands_alone(case):
    robot, columns, samples = case
    a, b = (Reduced.from_samples(robot, *p, columns=columns) for p in np.split(samples, 2, axis=1))
    before = [t.copy() for t in (*a.triangles, *b.triangles)]
    _ = a + b
    for old, new in zip(before, (*a.triangles, *b.triangles), strict=True):
        np.testing.assert_array_equal(old, new)


def test_damaged_and_foreign_files_are_refused(reduced, tmp_path, monkeypatch):
    path = tmp_path / "part.reduced"
    reduced.save(path)
    np.savez(tmp_path / "objects.npz", format=np.array([{"a": 1}], dtype=object))
    with pytest.raises(SecurityError, match="Python objects"):
        Reduced.load(tmp_path / "objects.npz")
    with pytest.raises(InputError, match="no such file"):
        Reduced.load(tmp_path / "absent")
    monkeypatch.setattr("feasid.identification.regression.triangle.LARGEST_FILE", 1000)
    with pytest.raises(LimitError, match="limit of 1000"):
        Reduced.load(path)


def test_data_of_another_robot_do_not_add(case, reduced):
    robot, columns, samples = case
    other = Reduced.from_samples(robot.with_gravity((0, 0, -1.6)), *samples, columns=columns)
    with pytest.raises(InputError, match="different robots"):
        reduced + other
    with pytest.raises(TypeError):
        reduced + 1
    with pytest.raises(TypeError):
        1 + reduced
    assert sum([reduced]) is reduced


def test_whatever_decides_what_data_mean_is_in_the_fingerprint():
    """Another number anywhere in the kinematics, and it is another robot."""
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 3, rotors=True).with_joint_terms().with_transition(0.1)
    body = next(b for b in robot.bodies if b.rotor is not None)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

    def changed(body, **more):
        return replace(robot, bodies=[replace(b, **more) if b is body else b for b in robot.bodies])

    rotors = ({"gear": -7.6}, {"position": body.rotor.position + 0.1}, {"rotation": turn})
    others = [
        *(changed(body, rotor=replace(body.rotor, **new)) for new in rotors),
        changed(body, rotor=None), changed(body, rotation=turn),
        changed(body, position=body.position + 0.1), changed(body, motion=-body.motion),
        robot.with_gravity((0, 0, -1.6)), robot.with_transition(0.2), robot.without_joint_terms(),
    ]  # fmt: skip
    marks = {fingerprint_of(r, (0, 1)) for r in (robot, *others)}
    assert len(marks | {fingerprint_of(robot, (0, 2))}) == len(others) + 2
    assert fingerprint_of(replace(robot, name="another"), (0, 1)) in marks


def test_what_a_filter_left_nothing_of_stays_nothing(reduced):
    """Rows are samples unless it is said that there are fewer."""
    assert reduced.rows == reduced.samples == 3000
    none = replace(reduced, rows=0, period=0.1)
    assert none.rows == 0
    total = none + replace(reduced, period=0.2)
    assert (total.rows, total.samples, total.period) == (3000, 6000, 0.2)
    assert (reduced + none).period == 0.1


def test_a_sum_keeps_where_its_parts_came_from(case, reduced):
    one = replace(reduced, cutoff=8.0, sources=("a",), digests=("1",), robot=None)
    two = replace(reduced, cutoff=8.0, sources=("b", "c"), digests=("2", "3"))
    total = one + two
    assert (total.cutoff, total.sources, total.digests) == (8.0, ("a", "b", "c"), ("1", "2", "3"))
    assert total.robot is (two + one).robot is case[0]
    assert (one + replace(two, cutoff=6.0)).cutoff is None
    assert (total.columns, total.supports) == (reduced.columns, reduced.supports)


def test_samples_that_are_not_numbers_are_named(case):
    robot, columns, samples = case
    bad = samples.copy()
    bad[3, 17, 2] = np.inf
    with pytest.raises(LogError, match="tau of row 17, coordinate 2") as caught:
        Reducer(robot, columns).add(*bad)
    assert caught.value.row == 17
    for wrong in (samples[1, :, 0], samples[1, :, :4], samples[:2]):
        with pytest.raises(LogError, match=r"dq has shape \(.*, expected \(samples, 5\)"):
            Reducer(robot, columns).add(samples[0], wrong, samples[2], samples[3])
    a, b = samples[:, :10], samples[1, :9]
    with pytest.raises(LogError, match="dq has 9 samples, q has 10"):
        Reducer(robot, columns).add(a[0], b, a[2], a[3])


def test_weights_and_parameters_of_another_size_are_named(reduced):
    with pytest.raises(InputError, match=r"weights has shape \(4,\), expected \(5,\)"):
        reduced.triangle(np.ones(4))
    with pytest.raises(InputError, match="weights must be an array of finite numbers"):
        reduced.triangle([1, 1, np.inf, 1, 1])
    with pytest.raises(InputError, match=r"weights must be an array of .*not 'wls'"):
        reduced.triangle("wls")
    size = len(reduced.columns)
    with pytest.raises(InputError, match=rf"beta has shape .1,., expected .{size},"):
        reduced.residuals([1.0])


def test_joint_terms_that_data_lack_are_named():
    rng = np.random.default_rng(0)
    plain = random_robot(rng, 2)
    data = Reduced.from_samples(plain, *rng.normal(size=(4, 50, 2)))
    more = feasid.base_parameters(plain.with_joint_terms(("viscous",), drive_inertia=False))
    with pytest.raises(InputError, match=r"the reduced data have no column b0\.fv"):
        restrict_terms(data, plain, more)
