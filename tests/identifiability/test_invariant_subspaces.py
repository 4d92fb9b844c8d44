"""The matrices of the recursion against their definitions by 6x6 inertias and powers."""

from fractions import Fraction

import numpy as np
import pytest
from robots import random_rotation, random_screw
from scipy.linalg import expm

import feasid
from feasid.parameters.identifiability import exact
from feasid.parameters.identifiability.base import ALONE, base_parameters
from feasid.parameters.identifiability.frames import motion_transform
from feasid.parameters.identifiability.invariant_subspaces import (
    ROOT2,
    cross_matrix,
    invariant_subspace,
    momentum_map,
    parameter_rate,
    parameter_spectrum,
    velocity_spectrum,
)
from feasid.parameters.identifiability.views import span_dimensions
from feasid.robot import inertia
from feasid.robot.dynamics.spatial import ScrewPose

ATOL = 1e-12  # sums of some ten products of numbers of order one
RANK = 1e-9  # powers of A up to the ninth lose three digits of sixteen


def vee(spatial):
    """Ten parameters of a 6x6 spatial inertia, read off its entries."""
    moment = spatial[:3, 3:]
    entries = [spatial[r, c] for r, c in inertia.UPPER]
    return np.array([*entries, moment[2, 1], moment[0, 2], moment[1, 0], spatial[5, 5]])


def rate_of_parameters(screw):
    """A(Phi) on the ten parameters themselves."""
    return parameter_rate(screw) * ROOT2 / ROOT2[:, None]


def same_span(a, b):
    ranks = [np.linalg.matrix_rank(m, tol=RANK) for m in (a, b, np.hstack([a, b]))]
    return ranks[0] == ranks[1] == ranks[2]


@pytest.mark.parametrize("seed", range(5))
def test_momentum_is_linear_in_the_parameters(seed):
    v, screw, delta = np.split(np.random.default_rng(seed).standard_normal(22), [6, 12])
    expected = v @ inertia.spatial_inertia(delta) @ screw
    assert v @ momentum_map(screw) @ (ROOT2 * delta) == pytest.approx(expected, abs=ATOL)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical", "offset"])
def test_transform_of_a_moving_joint_is_an_exponential(kind):
    rng = np.random.default_rng(1)
    screw, q = random_screw(rng, kind).ravel(), 0.7
    home = random_rotation(rng), rng.standard_normal(3)
    pose = ScrewPose.from_screw(*home, screw).at(np.array([q]))
    rotation = np.array([[np.ravel(e)[0] for e in row] for row in pose.rotation]).T
    moved = motion_transform(rotation, np.array([np.ravel(p)[0] for p in pose.position]))
    expected = expm(-q * cross_matrix(screw)) @ motion_transform(*home)
    np.testing.assert_allclose(moved, expected, atol=ATOL)


def test_velocities_are_transformed_as_by_pinocchio():
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(2)
    rotation, position = random_rotation(rng), rng.standard_normal(3)
    linear_first = pin.SE3(rotation, position).toActionMatrixInverse()
    order = [3, 4, 5, 0, 1, 2]
    expected = linear_first[np.ix_(order, order)]
    np.testing.assert_allclose(motion_transform(rotation, position), expected, atol=ATOL)


@pytest.mark.parametrize("seed", range(5))
def test_change_of_frame_is_the_congruence_of_spatial_inertias(seed):
    rng = np.random.default_rng(seed)
    rotation, position = random_rotation(rng), rng.standard_normal(3)
    delta, x = rng.standard_normal(10), motion_transform(rotation, position)
    expected = vee(x.T @ inertia.spatial_inertia(delta) @ x)
    moved = inertia.change_frame(rotation, position) @ delta
    np.testing.assert_allclose(moved, expected, atol=ATOL)


@pytest.mark.parametrize("seed", range(5))
def test_parameters_seen_across_a_joint_move_at_the_rate_a(seed):
    """X' I X, X = exp(-q Phi x), has the parameters exp(-q A) delta: all derivatives at once."""
    screw, delta = np.split(np.random.default_rng(seed).standard_normal(16), [6])
    s, spatial = cross_matrix(screw), inertia.spatial_inertia(delta)
    rate = rate_of_parameters(screw)
    np.testing.assert_allclose(rate @ delta, vee(s.T @ spatial + spatial @ s), atol=ATOL)
    x = expm(-0.3 * s)
    np.testing.assert_allclose(expm(-0.3 * rate) @ delta, vee(x.T @ spatial @ x), atol=ATOL)


def test_exact_matrices_are_those_of_floating_point():
    screw = [Fraction(k, 7) for k in (3, -2, 5, 1, 0, -4)]
    turn = [[Fraction(3, 5), Fraction(-4, 5), 0], [Fraction(4, 5), Fraction(3, 5), 0], [0, 0, 1]]
    turn = [[Fraction(e) for e in row] for row in turn]
    place = [Fraction(1, 3), Fraction(-2), Fraction(1, 2)]
    x = exact.motion_transform(turn, place)
    pose = np.array(turn, dtype=float), np.array(place, dtype=float)
    pairs = [
        (exact.cross(screw), cross_matrix(np.array(screw, dtype=float))),
        (exact.parameter_rate(screw), rate_of_parameters(np.array(screw, dtype=float))),
        (x, motion_transform(*pose)),
        (exact.parameter_map(x), inertia.change_frame(*pose)),
    ]
    for rational, ours in pairs:
        np.testing.assert_allclose(np.array(rational, dtype=float), ours, atol=ATOL)


@pytest.mark.parametrize(("turns", "pitch"), [(True, 0.0), (True, 0.4), (False, 1.0)])
def test_invariant_subspaces_spans_are_those_of_the_controllability_matrix(turns, pitch):
    rng = np.random.default_rng(3)
    axis = random_rotation(rng)[:, 0]
    screw = np.r_[axis * turns, pitch * axis]
    cases = [
        (velocity_spectrum(axis, turns, pitch != 0), cross_matrix(screw)),
        (parameter_spectrum(axis, turns, pitch != 0), parameter_rate(screw).T),
    ]
    for spectrum, a in cases:
        starts = [*np.eye(len(a))[:, :, None], rng.standard_normal((len(a), 2))]
        starts.append(np.linalg.svd(a)[2][-1][:, None])  # one that the motion leaves alone
        for x in starts:
            columns = [x]
            for _ in range(len(a) - 1):
                columns.append(a @ columns[-1])
            sizes = [np.linalg.norm(c, axis=0) for c in columns]
            # A power that vanishes is rounding.
            sizes = [np.where(s > RANK, s, np.inf) for s in sizes]
            powers = np.hstack([c / s for c, s in zip(columns, sizes, strict=True)])
            assert same_span(invariant_subspace(x, [spectrum.screw_action()]), powers)


def test_two_axes_span_what_the_switched_system_reaches():
    rng = np.random.default_rng(4)
    axes = random_rotation(rng)[:, :2].T
    actions = [parameter_spectrum(a, True, False).screw_action() for a in axes]
    for x in np.eye(10)[:, :, None]:
        reached, rank = x, 0
        while reached.shape[1] > rank:
            rank = reached.shape[1]
            moved = [parameter_rate(np.r_[a, 0.0, 0, 0]).T @ reached for a in axes]
            u, s, _ = np.linalg.svd(np.hstack([reached, *moved]), full_matrices=False)
            reached = u[:, s > RANK]
        assert same_span(invariant_subspace(x, actions), reached)


# -- worked examples of Wensing et al. (2024) ----------------------------------------------------

LXX, LXY, LXZ, LYY, LYZ, LZZ, LX, LY, LZ, M = np.eye(10)


def test_a_free_revolute_joint_feels_five_and_maps_six():
    """Axis z: what the joint's momentum shows, and what the parent sees change."""
    z = np.array([0.0, 0, 1, 0, 0, 0])
    pair_functionals, mapped = momentum_map(z) * ROOT2, rate_of_parameters(z)
    assert same_span(pair_functionals.T, np.stack([LX, LY, LXZ, LYZ, LZZ], axis=1))
    assert same_span(mapped.T, np.stack([LX, LY, LXY, LXZ, LYZ, LXX - LYY], axis=1))
    assert np.linalg.matrix_rank(np.vstack([pair_functionals, mapped]), tol=RANK) == 7


@pytest.mark.parametrize(
    ("axis", "spans", "alone"),
    [
        ([0.0, 0, 1], (1, 3), {"Lzz", "lx", "ly"}),
        ([0.0, -1, 0], (1, 4), {"Lxy", "Lxz", "Lyz", "Lzz", "lx", "ly"}),
    ],
    ids=["parallel", "perpendicular"],
)
def test_two_axes_without_gravity(axis, spans, alone):
    x = [1.0, 0, 0]
    rotation = np.stack([x, np.cross(axis, x), axis], axis=1)
    bodies = feasid.Body("1", None), feasid.Body("2", "1", rotation, [0.7, 0, 0])
    base = base_parameters(feasid.Robot(bodies, gravity=(0, 0, 0)))
    status = dict(zip(base.robot.parameter_names, base.status, strict=True))
    assert span_dimensions(base).motion == spans
    assert {s for (body, s), found in status.items() if body == "2" and found == ALONE} == alone
    assert base.size == {3: 4, 4: 8}[spans[1]]


@pytest.mark.parametrize(
    ("gear", "tilt", "kind", "shows"),
    [(1, 0.0, "R", 0), (9, 0.0, "R", 1), (1, 0.5, "R", 1), (1, 0.0, "P", 1)],
)
def test_a_rotor_on_a_free_body_hides_only_at_unit_ratio_on_a_parallel_axis(
    gear, tilt, kind, shows
):
    motion = np.array([0, 0, 1.0, 0, 0, 0] if kind == "R" else [0, 0, 0, 0, 0, 1.0])
    c, s = np.cos(tilt), np.sin(tilt)
    rotor = feasid.Rotor(gear, [[1, 0, 0], [0, c, -s], [0, s, c]], [0.1, -0.2, 0.3])

    def count(rotor):
        bodies = (
            feasid.Body("base", None, motion=np.eye(6)),
            feasid.Body("link", "base", position=[0.4, 0, 0], motion=motion, rotor=rotor),
        )
        return base_parameters(feasid.Robot(bodies)).size

    assert count(rotor) - count(None) == shows
