"""Robots drawn from what a log leaves open, and around a description."""

import mujoco
import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import read_arm
from scipy.stats import halfnorm

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, OutputError
from feasid.identification.uncertainty import posterior
from feasid.identification.uncertainty.posterior import Density, Posterior, invert_matrices
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.results.export.samples import Samples
from feasid.robot import inertia

DEVIATIONS = 4.0
"""Standard errors of a mean within which it counts as right; 1 in 16 000 by chance."""


SAME_NOISE = 0.05
"""In deviations: the noise by which rows are weighted is estimated with the known values, too."""


@pytest.fixture(scope="module", autouse=True)
def short_chains():
    """Warming up takes most of the time of few draws."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("CHAINS", 40), ("WARM_UP", 24), ("LEAST_DRAWS", 3)):
            patch.setattr(posterior, name, value)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    robot = read_arm(folder).with_joint_terms()
    robot = robot.with_values(arm_parameters(robot))
    simulate(robot, robot.values, 1, samples=800, noise=0.05).to_csv(
        folder / "log.csv", index=False
    )
    return folder


@pytest.fixture(scope="module")
def fit(folder):
    found = feasid.fit(folder / "log.csv", folder / "arm.urdf", diagnose=False)
    found.save(folder / "arm.feasid")
    return found


@pytest.fixture(scope="module")
def drawn(fit):
    return fit.sample(120)


def one_body(weight, rows=None):
    """The posterior of a single link with friction, of these rows or of the prior alone."""
    ten = inertia.from_mass_com_inertia(2.0, [0.1, 0.0, 0.2], np.diag([0.02, 0.03, 0.04]))
    robot = feasid.Robot.from_dh([(0, 0.3, 0, 0)]).with_joint_terms(("viscous",))
    start = np.r_[ten, 0.5]
    matrix, target = (np.zeros((1, 11)), np.zeros(1)) if rows is None else rows
    rest = matrix, target, np.abs(start) + 0.01, start, start, np.array([weight])
    return Posterior(feasible_set(robot), *rest, True), start


def test_the_density_has_the_gradient_that_differences_have(fit):
    p = fit.posterior
    names = [b.name for b in p.feasible.blocks]
    weights = dict(zip(names, p.weights, strict=True))
    means = {b.name: b.matrix(p.reference) for b in p.feasible.blocks}
    density = Density(p.A, p.b, p.feasible, means, weights, p.start, p.unit)
    rng = np.random.default_rng(0)
    way = p.unit * rng.standard_normal(len(p.start)) * 1e-6
    values, gradients = density.evaluate(np.array([p.start + way, p.start - way, p.start]))
    assert values[0] - values[1] == pytest.approx(2 * gradients[2] @ way, rel=1e-5, abs=1e-9)
    outside = p.start.copy()
    outside[9] = -1.0
    assert np.isinf(density.evaluate(outside[None])[0][0])


def test_matrices_are_swept_as_lapack_inverts_them():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((50, 4, 4))
    matrices = roots @ roots.transpose(0, 2, 1)
    inverse, logs, definite = invert_matrices(matrices)
    assert definite.all()
    np.testing.assert_allclose(inverse @ matrices, np.broadcast_to(np.eye(4), roots.shape),
                               atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(logs, np.linalg.slogdet(matrices)[1], rtol=1e-9)
    assert not invert_matrices(np.diag([1.0, -1.0, 1.0]))[2]


def test_without_rows_the_chains_draw_the_wishart_density_of_the_prior():
    drawn, start = one_body(7.5, (np.eye(11)[[10]] / 0.3, np.zeros(1)))
    parameters, _, effective = drawn.draw(1200, 1)
    error = 1.0 / np.sqrt(effective[9])
    mass = parameters[:, 9] / start[9]
    wide = np.sqrt(2.0 / (2 * 7.5 + 5))
    assert abs(mass.mean() - 1.0) < DEVIATIONS * wide * error
    assert abs(mass.std() / wide - 1.0) < DEVIATIONS * error
    # A coefficient that must not be negative, at zero in the mean of its rows: a half-normal.
    right = halfnorm(scale=0.3)
    assert abs(parameters[:, 10].mean() - right.mean()) < DEVIATIONS * right.std() * error


def test_draws_spread_about_as_the_fit_says_they_do(fit, drawn):
    """Within a factor: the fit's deviations count no constraint and double the description's."""
    base = drawn.parameters @ fit.base.K.T
    deviation = np.sqrt(np.diag(fit.covariance))
    informed = deviation < 0.3 * np.abs(fit.beta)
    assert informed.sum() > 5
    shift = (base.mean(axis=0) - fit.beta) / deviation
    ratio = base.std(axis=0) / deviation
    assert np.median(np.abs(shift[informed])) < 0.5
    assert 0.4 < np.median(ratio[informed]) < 1.3
    wide = fit.sample(120, scale=3.0).parameters @ fit.base.K.T
    assert np.median((wide.std(axis=0) / base.std(axis=0))[informed]) > 1.5


def test_every_draw_is_a_robot_that_can_exist(fit, drawn):
    assert len(drawn) == 120
    assert len(drawn[5:8]) == 3
    robot = drawn[7]
    np.testing.assert_array_equal(robot.values, drawn.parameters[7])
    assert feasid.check(robot).feasible
    assert not any(fit.feasible.violations(delta) for delta in drawn.parameters[:20])
    assert drawn.least_effective > 10
    assert 0.5 < drawn.acceptance < 1.0


def test_a_saved_fit_draws_the_same(folder, fit, drawn):
    np.testing.assert_allclose(feasid.load(folder / "arm.feasid").sample(120).parameters,
                               drawn.parameters, rtol=1e-12)  # fmt: skip


def test_what_the_fit_found_may_be_given_as_known(folder):
    """The prior stays with a body of which something is known: its estimate does not move."""
    options = {"diagnose": False, "calibration": None, "prior_weight": 1.0}
    free = feasid.fit(folder / "log.csv", folder / "arm.urdf", **options)
    values = dict(zip(free.robot.parameter_names, free.delta.tolist(), strict=True))
    known = {name: values[name] for name in (("wheel", "m"), ("upper", "m"))}
    held = feasid.fit(folder / "log.csv", folder / "arm.urdf", known=known, **options)
    moved = np.abs(held.beta - free.beta) / free.base_table["std"].to_numpy()
    assert moved.max() < SAME_NOISE


@pytest.mark.slow
def test_known_and_tied_parameters_stay_what_they_are(folder):
    known = {("wheel", "m"): 0.4, ("upper", "m"): 2.0}
    fit = feasid.fit(folder / "log.csv", folder / "arm.urdf", known=known, diagnose=False)
    drawn = fit.sample(5)
    for name, value in known.items():
        column = fit.robot.parameter_names.index(name)
        np.testing.assert_array_equal(drawn.parameters[:, column], value)
        assert np.isnan(drawn.effective[column])


def test_files_and_arrays_are_what_mujoco_compiles(fit, drawn, tmp_path):
    files = drawn[:2].write(tmp_path / "new", "arm_{:03}.xml")
    arrays = drawn[:2].arrays()
    for k, file in enumerate(files):
        model = mujoco.MjModel.from_xml_path(file)
        rows = [model.body(b.name).id for b in fit.robot.bodies]
        for name in ("body_mass", "body_ipos", "body_inertia"):
            np.testing.assert_allclose(getattr(model, name)[rows], arrays[name][k], rtol=1e-6)
        for quaternion, body in zip(arrays["body_iquat"][k], rows, strict=True):
            own, other = np.empty((2, 9))
            mujoco.mju_quat2Mat(own, quaternion)
            mujoco.mju_quat2Mat(other, model.body_iquat[body])
            same = np.abs(own.reshape(3, 3).T @ other.reshape(3, 3))  # axes up to their signs
            np.testing.assert_allclose(same, np.eye(3), atol=1e-5)
        for name in ("dof_damping", "dof_frictionloss", "dof_armature"):
            np.testing.assert_allclose(getattr(model, name), arrays[name][k], rtol=1e-6)
    with pytest.raises(OutputError, match="exists"):
        drawn[:2].write(tmp_path / "new", "arm_{:03}.xml")
    with pytest.raises(InputError, match="one place for a number"):
        drawn[:2].write(tmp_path, "arm.xml")


@pytest.mark.slow
def test_files_of_draws_hold_the_friction_of_a_motor_that_moves_two_joints(tmp_path):
    fit = feasid.fit(feasid.datasets.load("staubli_tx40"), diagnose=False)
    drawn = Samples(fit.robot, fit.delta[None], 1.0, np.ones(fit.robot.size), fit.residual)
    (path,) = drawn.write(tmp_path)
    model = mujoco.MjModel.from_xml_path(path)
    column = fit.robot.parameter_names.index(("wrist_motor", "fc"))
    assert model.tendon_frictionloss[0] == pytest.approx(fit.delta[column])


def test_around_a_description_deviations_are_those_that_were_asked_for(fit):
    robot, count = fit.robot, 600
    drawn = feasid.sample(robot, count, mass=0.1, joint_terms=0.2)
    masses = robot.inertial_columns[:, 9]
    ratio = drawn.parameters[:, masses] / robot.values[masses]
    np.testing.assert_allclose(ratio.mean(axis=0), 1.0, atol=DEVIATIONS * 0.1 / np.sqrt(count))
    np.testing.assert_allclose(ratio.std(axis=0), 0.1, rtol=DEVIATIONS / np.sqrt(2 * count))
    fv = robot.drive_columns(0)["fv"]
    assert drawn.parameters[:, fv].std() / robot.values[fv] == pytest.approx(0.2, rel=0.2)
    ten = robot.inertial_columns
    denser = feasid.sample(robot, 50, mass=0.0, density=0.3).parameters[:, ten]
    old, new = (inertia.to_mass_com_inertia(x) for x in (robot.values[ten], denser))
    np.testing.assert_allclose(new[1], np.broadcast_to(old[1], new[1].shape), atol=1e-12)
    moved = feasid.sample(robot, count, mass=0.0, centre=0.02).parameters[:, ten]
    _, centre, about = inertia.to_mass_com_inertia(moved)
    np.testing.assert_allclose((centre - old[1]).std(axis=0), 0.02, rtol=0.2)
    np.testing.assert_allclose(about, np.broadcast_to(old[2], about.shape), atol=1e-9)


def test_what_cannot_be_drawn_is_refused_by_name(folder):
    robot = feasid.load_robot(folder / "arm.urdf")
    empty = feasid.Robot.from_dh([(0, 0.3, 0, 0)])
    with pytest.raises(InputError, match="has no inertial"):
        feasid.sample(empty, 2)
    with pytest.raises(InputError, match="mass must be"):
        feasid.sample(robot, 2, mass=3.0)
    squares = feasid.fit(folder / "log.csv", folder / "arm.urdf", prior=None, diagnose=False)
    with pytest.raises(InputError, match="had no prior"):
        squares.sample(3)


def test_chains_that_do_not_mix_are_refused(fit, monkeypatch):
    monkeypatch.setattr(posterior, "SHORTEST_STEP", 1.0)
    with pytest.raises(InputError, match="chains do not mix"):
        fit.sample(3)


@pytest.mark.usefixtures("fit")
def test_the_prompt_writes_a_folder(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["sample", "arm.feasid", "--count", "3", "--out", "drawn"]) == 0
    assert "each verified to be feasible" in capsys.readouterr().out
    assert sorted(x.name for x in (folder / "drawn").iterdir()) == [
        f"robot_{k:03}.urdf" for k in range(3)
    ]
    assert main(["sample", "arm.feasid", "--mass", "0.1", "--out", "other"]) == 2
    assert "has no effect on a saved fit" in capsys.readouterr().err
