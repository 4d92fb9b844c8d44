"""The check after the fact: a wrong answer does not leave, whoever made it wrong."""

from dataclasses import replace

import numpy as np
import pytest
from arms import ur5
from robots import wam

import feasid
from benchmarks.mechanisms import exact_count, random_mechanism
from feasid.core.errors import FeasidError, RankError
from feasid.parameters.identifiability import sampling
from feasid.parameters.identifiability.base import base_parameters
from feasid.parameters.identifiability.coefficients import Coefficients

ROUNDING = 1e-12  # what remains of Y - Y Pb K in floating point, relative


def regressor_error(base, samples=30):
    """|Y - Y Pb K| / |Y| of Newton and Euler's regressor in SI units."""
    robot = base.robot
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, samples, robot.dof))
    y = feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size)
    return np.abs(y - y @ base.Pb @ base.K).max() / np.abs(y).max()


def test_check_tells_what_it_found_and_what_it_cost():
    check = base_parameters(wam(drive_inertia=True)).check
    assert check.residual <= sampling.MAX_HIDDEN_TORQUE
    assert check.weakest >= sampling.MIN_VISIBLE_RATIO
    assert check.joint in wam().joints
    assert check.unconfirmed == ()
    assert check.seconds > 0
    assert "checked on random motions" in str(check)


def blocks_with(base, i, **changes):
    blocks = [*base.coefficients.joint_nullspaces]
    blocks[i] = replace(blocks[i], **changes)
    return blocks


@pytest.mark.parametrize("i", range(7))
def test_a_null_vector_that_shows_is_refused(i):
    base = base_parameters(wam(drive_inertia=True))
    c = base.coefficients
    vectors = c.joint_nullspaces[i].vectors.copy()
    rows, _ = c.random_motions.joint_rows(i, c.transfers[i], c.joint_nullspaces[i].drive)
    pair_functionals = int(np.argmax(np.abs(rows).max(axis=0)))
    vectors[pair_functionals, 0] += 1e-6
    wrong = blocks_with(base, i, vectors=vectors)
    words = f"joint '{i + 1}': directions that should be unidentifiable"
    with pytest.raises(RankError, match=words):
        sampling.verify_ranks(c.random_motions, wrong, c.transfers, ())


@pytest.mark.parametrize("i", range(1, 7))
def test_a_combination_too_many_is_refused(i):
    base = base_parameters(wam())
    c, block = base.coefficients, base.coefficients.joint_nullspaces[i]
    fewer = {"vectors": block.vectors[:, 1:], "dependent": block.dependent[1:]}
    independent = np.sort(np.r_[block.independent, block.dependent[0]])
    more = blocks_with(base, i, noise=block.noise[1:], independent=independent, **fewer)
    with pytest.raises(RankError, match=f"joint '{i + 1}': {len(block.independent) + 1} combin"):
        sampling.verify_ranks(c.random_motions, more, c.transfers, ())


def test_wrong_coefficients_are_refused():
    base = base_parameters(wam())
    kd = base.coefficients.kd.copy()
    kd.data[5] *= 1 + 1e-6
    with pytest.raises(RankError, match="coefficients of body"):
        base.coefficients._check_kernel(kd)


def test_long_chains_are_checked_along_their_whole_length():
    rows = [(np.pi / 2 if k % 3 else 0.0, 0.3, 0.1, 0.0) for k in range(30)]
    base = base_parameters(feasid.Robot.from_dh(rows))
    c = base.coefficients
    vectors = c.joint_nullspaces[25].vectors.copy()
    vectors[9] += 1.0  # a mass that only joints far away are asked about
    wrong = blocks_with(base, 25, vectors=vectors)
    with pytest.raises(RankError):
        sampling.verify_ranks(c.random_motions, wrong, c.transfers, ())


# -- rest, tiny offsets -----------------------------------------------------------------------


def test_ur5_at_rest_without_its_first_two_joints():
    robot = ur5()
    assert base_parameters(robot, static=True, measured=robot.joints[2:]).size == 8


@pytest.mark.parametrize("order", ["left", "paper"])
@pytest.mark.parametrize("offset", [1e-5, 1e-7, 1e-9])
def test_a_tiny_offset_is_no_length_scale(offset, order):
    """Two nearly coaxial joints, axes half a metre off the bodies' origins."""

    def about(x):
        return np.r_[0.0, 0, 1, -np.cross([0.0, 0, 1], [x, 0.3, 0])]

    bodies = [
        feasid.Body("a", None, motion=about(0.5)),
        feasid.Body("b", "a", position=(0, 0, 0.5), motion=about(0.5 + offset)),
    ]
    base = base_parameters(feasid.Robot(bodies, gravity=(0, -9.81, 0)), order=order)
    assert base.size == 6
    assert regressor_error(base) < ROUNDING


# -- held joints ------------------------------------------------------------------------------


def compare_held(seed):
    """Whether the count was given, and right."""
    rng = np.random.default_rng([20, seed])
    mechanism = random_mechanism(rng, largest=8)
    n = len(mechanism.joints)
    some = sorted(rng.choice(n, size=rng.integers(1, n + 1), replace=False).tolist())
    held = sorted(rng.choice(n, size=rng.integers(0, n), replace=False).tolist())
    some = list(range(n)) if rng.random() < 0.3 else some
    static = bool(rng.random() < 0.25)
    robot = mechanism.robot()
    names = robot.joints
    try:
        base = base_parameters(
            robot, measured=[names[j] for j in some], held=[names[j] for j in held], static=static
        )
    except FeasidError as refused:
        if "cannot be held" not in str(refused) and not isinstance(refused, RankError):
            raise
        return False
    assert base.size == exact_count(mechanism, seed, static, some, held), seed
    return True


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(60), 45), pytest.param(range(1000, 3000), 1600, marks=pytest.mark.slow)],
)
def test_count_with_held_joints_is_exact(seeds, least):
    """Also of a held joint beside a shared drive, which shows nothing of its own."""
    assert compare_held(1972)
    assert sum(compare_held(seed) for seed in seeds) >= least


def test_held_joints_may_be_anywhere():
    """A held joint is where the mapping says: two axes become parallel when one is turned."""
    rows = [(np.pi / 2, 0.3, 0, 0), (np.pi / 2, 0.3, 0, 0), (0, 0.3, 0, 0)]
    robot = feasid.Robot.from_dh(rows)
    home = base_parameters(robot, held={"2": 0.0})
    turned = base_parameters(robot, held={"2": np.pi / 2})
    assert home.size != turned.size


def test_a_joint_of_a_shared_drive_cannot_be_held():
    robot = feasid.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)]).with_joint_terms(
        couplings=[feasid.Drive("both", {"1": 1.0, "2": 1.0})]
    )
    with pytest.raises(FeasidError, match="joint '1' cannot be held: drive 'both'"):
        base_parameters(robot, held="1")


def test_one_joint_may_be_named_without_a_list():
    robot = wam()
    assert base_parameters(robot, measured="7").size == base_parameters(robot, measured=["7"]).size
    with pytest.raises(FeasidError, match="no joint 'elbow_joint'"):
        base_parameters(robot, measured="elbow_joint")


def test_coefficients_are_sparse():
    c = base_parameters(feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.2, 0)] * 40)).coefficients
    assert isinstance(c, Coefficients)
    assert c.matrix.nnz < 0.1 * np.prod(c.matrix.shape)


@pytest.mark.parametrize("gears", [(1.0, 1.0), (50.0, 30.0)])
def test_geared_joints_that_share_a_drive(gears):
    """The rotor's, the joint's own and the shared drive's inertia meet in one torque."""
    a = feasid.Body("a", None, position=(0, 0, 0.3), rotor=feasid.Rotor(gears[0]))
    turned = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    rotor = feasid.Rotor(gears[1])
    b = feasid.Body("b", "a", rotation=turned, position=(0.2, 0.1, 0.0), rotor=rotor)
    robot = feasid.Robot((a, b)).with_joint_terms()
    shared = feasid.Drive("both", {"a": 1.0, "b": -2.0}, ("Ia", "fv"))
    base = feasid.base_parameters(replace(robot, drives=(*robot.drives, shared)))
    assert regressor_error(base) < ROUNDING
