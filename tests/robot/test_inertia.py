"""The ten parameters and their views, against the definition by point masses and Pinocchio."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from feasid.robot import inertia

ATOL = 1e-12  # sums of some ten products of numbers of order one


def cloud(seed, count=7):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, count), rng.standard_normal((count, 3))


def parameters(masses, points):
    """Definition: L = sum m (p.p 1 - p p'), l = sum m p, m = sum m."""
    outer = np.einsum("k,ki,kj->ij", masses, points, points)
    full = np.trace(outer) * np.eye(3) - outer
    return np.r_[[full[r, c] for r, c in inertia.UPPER], masses @ points, masses.sum()]


@given(st.integers(0, 10**6))
def test_views_agree_with_point_masses(seed):
    masses, points = cloud(seed)
    delta = parameters(masses, points)
    moments = np.einsum("k,ki,kj->ij", masses, *2 * [np.c_[points, np.ones(len(points))]])
    np.testing.assert_allclose(inertia.pseudo_inertia(delta), moments, atol=ATOL)
    np.testing.assert_allclose(inertia.from_pseudo_inertia(moments), delta, atol=ATOL)
    rotational = np.trace(moments[:3, :3]) * np.eye(3) - moments[:3, :3]
    np.testing.assert_allclose(inertia.rotational_inertia(delta), rotational, atol=ATOL)
    crosses = (inertia.skew(p) for p in points)
    blocks = [np.block([[-s @ s, s], [-s, np.eye(3)]]) for s in crosses]
    spatial = np.tensordot(masses, blocks, axes=1)
    np.testing.assert_allclose(inertia.spatial_inertia(delta), spatial, atol=ATOL)


@given(st.integers(0, 10**6))
def test_change_of_frame_moves_the_points(seed):
    masses, points = cloud(seed)
    rng = np.random.default_rng(seed + 1)
    q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    rotation, position = q * np.sign(np.linalg.det(q)), rng.standard_normal(3)
    moved = parameters(masses, points @ rotation.T + position)
    changed = inertia.change_frame(rotation, position) @ parameters(masses, points)
    np.testing.assert_allclose(changed, moved, atol=1e-11)


@given(st.integers(0, 10**6))
def test_mass_com_inertia_round_trip(seed):
    delta = parameters(*cloud(seed))
    back = inertia.from_mass_com_inertia(*inertia.to_mass_com_inertia(delta))
    np.testing.assert_allclose(back, delta, atol=1e-11)


def test_consistency_levels_differ_on_the_triangle_inequality():
    """diag(1, 1, 5) is no body's inertia, but passes the 6x6 condition."""
    delta = inertia.from_mass_com_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 5.0]))
    assert np.linalg.eigvalsh(inertia.spatial_inertia(delta))[0] == 1.0
    assert np.linalg.eigvalsh(inertia.pseudo_inertia(delta))[0] == -1.5


def test_orders_of_other_packages():
    import pinocchio as pin

    delta = parameters(*cloud(3))
    body = pin.Inertia.FromDynamicParameters(delta[inertia.PINOCCHIO])
    mass, com, about_com = inertia.to_mass_com_inertia(delta)
    assert abs(body.mass - mass) < ATOL
    np.testing.assert_allclose(body.lever, com, atol=ATOL)
    np.testing.assert_allclose(body.inertia, about_com, atol=ATOL)
    assert [inertia.SYMBOLS[k] for k in inertia.RPNA] == [
        "m", "lx", "ly", "lz", "Lxx", "Lyy", "Lzz", "Lyz", "Lxz", "Lxy",
    ]  # fmt: skip
