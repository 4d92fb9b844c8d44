"""Coupled joints: motion, regressor and base parameters against Pinocchio's tree and our own."""

from dataclasses import replace

import numpy as np
import pytest
from pinocchio_side import PinocchioModel
from robots import clear_rank, example_urdfs, random_robot

import feasid
from feasid.core.errors import DescriptionError, InputError
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling

pin = pytest.importorskip("pinocchio")

GAP = 1e4  # what makes a rank clear


def mimicking():
    return [p for p in example_urdfs() if "<mimic" in p.read_text()]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("path", mimicking(), ids=lambda p: p.stem)
def test_base_parameters_of_mimicking_robots_are_the_rank_of_pinocchios_regressor(path):
    robot = feasid.load_robot(path).with_joint_terms(())
    base = base_parameters(robot)
    rng, theirs = np.random.default_rng(0), PinocchioModel(robot, path)
    A, b = robot.coupling_map.A, robot.coupling_map.b
    unknown = np.repeat([not body.massless for body in robot.bodies], 10)
    rows = []
    for _ in range(30 * len(robot.bodies) // robot.dof + 40):
        s, ds, dds = rng.normal(size=(3, robot.dof))
        rows.append(A.T @ theirs.regressor(A @ s + b, A @ ds, A @ dds)[:, unknown])
    s = np.linalg.svd(np.linalg.qr(np.vstack(rows), mode="r"), compute_uv=False)
    assert base.size == clear_rank(s, 1e-14, GAP)
    assert "numerical" in base.rank_check.reason or robot.is_tree


def differential():
    """Two motors, three joints that follow, and one that is held."""
    couplings = (
        Coupling("b2", {"b0": 0.5, "b1": -0.5}),
        Coupling("b3", {"b2": 2.0, "b1": 1.0}, 0.3),
        Coupling("b5", {}, -0.2),
    )
    robot = replace(random_robot(np.random.default_rng(3), 6), couplings=couplings)
    return robot.with_joint_terms(drive_inertia=True)


def test_torques_are_those_of_the_tree_through_the_couplings():
    robot = differential()
    tree = feasid.Robot(robot.bodies, robot.gravity, drives=robot.drives)
    rng = np.random.default_rng(0)
    delta = rng.standard_normal(robot.size)
    s, ds, dds = rng.standard_normal((3, 40, 3))
    A, b = robot.coupling_map.A, robot.coupling_map.b
    theirs = feasid.regressor(tree, s @ A.T + b, ds @ A.T, dds @ A.T)
    ours = feasid.regressor(robot, s, ds, dds)
    np.testing.assert_allclose(ours, np.einsum("ad,nap->ndp", A, theirs), atol=1e-12)
    torque = feasid.inverse_dynamics(robot, s, ds, dds, parameters=delta)
    np.testing.assert_allclose(torque, ours @ delta, atol=1e-10)


def test_base_parameters_say_all_that_shows_with_joint_terms():
    robot = differential()
    base = base_parameters(robot)
    rng = np.random.default_rng(1)
    s, ds, dds = rng.standard_normal((3, 150, 3))
    rows = feasid.regressor(robot, s, ds, dds).reshape(-1, robot.size)
    size = np.abs(rows).max()
    np.testing.assert_allclose(rows[:, base.independent] @ base.K, rows, atol=1e-9 * size)
    left = np.linalg.svd(rows[:, base.independent] / size, compute_uv=False)
    assert left[-1] > 1e-9 * left[0]
    assert np.abs(rows @ base.nullspace).max() < 1e-9 * size
    assert base.coefficients.singular_value_gap > GAP


def test_a_rotor_on_a_grandparent_is_a_body_that_follows():
    """Base, arm 1, arm 2; the motor of arm 2 sits on the base and turns at gear 50."""
    about_z = np.array([0, 0, 1.0, 0, 0, 0])
    bodies = [
        Body("1", None, motion=about_z),
        Body("2", "1", position=[0.4, 0, 0], motion=about_z),
        Body("motor", None, motion=about_z),
    ]
    robot = feasid.Robot(bodies, (0, 0, 0), couplings=(Coupling("motor", {"1": 1.0, "2": 50.0}),))
    base = base_parameters(robot)
    assert robot.dof == 2
    assert base.status[robot.parameter_names.index(("motor", "Lzz"))] != "not at all"
    assert base.size == 5  # four of the two-link arm, and the motor's own inertia


def test_bad_couplings_are_named():
    """The others are those of `test_couplings_that_cannot_be`."""
    robot = random_robot(np.random.default_rng(0), 3)
    with pytest.raises(DescriptionError, match="nothing can move"):
        feasid.Robot(robot.bodies, couplings=[Coupling(f"b{k}", {}) for k in range(3)])
    with pytest.raises(InputError, match=r"factors must be .* not inf for 'b'"):
        Coupling("a", {"b": np.inf})


def test_reductions_are_of_the_independent_coordinates():
    robot = differential()
    base = base_parameters(robot)
    rng = np.random.default_rng(2)
    delta = rng.standard_normal(robot.size)
    s, ds, dds = rng.standard_normal((3, 400, 3))
    tau = feasid.inverse_dynamics(robot, s, ds, dds, parameters=delta)
    r, rho, residual = Reduced.from_samples(robot, s, ds, dds, tau).triangle()
    beta = np.linalg.solve(r, rho)
    np.testing.assert_allclose(beta, base.values(delta), rtol=1e-6, atol=1e-8)
    assert residual < 1e-8 * np.linalg.norm(rho)


def test_reductions_of_other_couplings_do_not_add():
    robot = differential()
    first = Coupling("b2", {"b0": 0.6, "b1": -0.5})
    other = replace(robot, couplings=(first, *robot.couplings[1:]))
    signals = np.random.default_rng(2).standard_normal((4, 100, 3))
    one, two = (Reduced.from_samples(r, *signals) for r in (robot, other))
    with pytest.raises(InputError, match="different robots"):
        one + two
