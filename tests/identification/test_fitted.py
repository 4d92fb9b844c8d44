"""The numbers of a fit by their definitions, and what it writes only when told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from logs import arm_log
from robots import ARM

import feasid
from benchmarks.second_checker import holds
from feasid.certificate import exact
from feasid.core.errors import CertificateError, UselessFitError
from feasid.identification.assessment.compared_errors import held_out_errors
from feasid.identification.assessment.quality import judge

RTOL = 1e-9


@pytest.fixture(scope="module")
def fit():
    return feasid.fit(arm_log(0, 600, 0.1)[1], feasid.load_robot(ARM))


def test_bodies_have_mass_centre_and_inertia_about_it_unless_massless(fit):
    first = replace(fit.robot.bodies[0], massless=True, inertial=None)
    lighter = replace(fit)
    vars(lighter)["robot"] = replace(fit.robot, bodies=(first, *fit.robot.bodies[1:]))
    for one, left_out in ((fit, 0), (lighter, 1)):
        bodies = one.robot.bodies[left_out:]
        assert one.bodies.index.tolist() == [b.name for b in bodies]
        for k, (_, row) in enumerate(one.bodies.iterrows(), start=left_out):
            ten = one.delta[one.robot.inertial_columns[k]]
            mass, com = ten[9], ten[6:9] / ten[9]
            xx, xy, xz, yy, yz, zz = ten[:6]
            origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            about = origin - mass * (com @ com * np.eye(3) - np.outer(com, com))
            assert row["mass"] == pytest.approx(mass)
            np.testing.assert_allclose(row[["com_x", "com_y", "com_z"]].to_numpy(float), com)
            names = [["Ixx", "Ixy", "Ixz"], ["Ixy", "Iyy", "Iyz"], ["Ixz", "Iyz", "Izz"]]
            found = np.array([[row[n] for n in line] for line in names])
            np.testing.assert_allclose(found, about, atol=RTOL * np.abs(origin).max())


def test_the_price_is_the_residual_over_the_least(fit):
    r, rho, residual = fit.triangle

    def left(beta):
        return np.hypot(np.linalg.norm(r @ beta - rho), residual)

    wanted = left(fit.solution.beta) / left(fit.optimum.beta) - 1
    assert fit.price == pytest.approx(wanted, rel=1e-6)
    assert fit.price > 1e-4  # a prior has its price here


def test_the_bound_of_a_fit_states_the_rest_of_the_squared_residual(fit):
    data, rest = fit.optimality.data, fit.triangle[2] ** 2
    assert float(exact(data["data"]["rest"])) == pytest.approx(rest, rel=1e-15)
    assert rest > 0.0
    floor, reached = float(exact(data["floor"])), fit.optimum.objective + rest
    assert (1 - 1e-3) * reached < floor <= reached * (1 + 1e-12)
    assert holds(data)
    assert f"better than {np.sqrt(floor):.8g}"[:-1] in fit.optimality.verify()


def test_joint_terms_are_the_drives_and_only_what_was_fitted(fit):
    found = fit.joint_terms
    assert found.index.tolist() == [d.name for d in fit.robot.drives]
    for k, name in enumerate(found.index):
        held = fit.robot.drive_columns(k)
        for symbol in found:
            value = fit.delta[held[symbol]] if symbol in held else np.nan
            np.testing.assert_array_equal(found.loc[name, symbol], value)


def test_deviations_are_roots_of_the_covariance_also_of_what_is_zero(fit):
    deviations = np.linspace(0.0, 2.0, len(fit.beta))
    covariance = np.diag(deviations**2)
    covariance[0, 0] = -1e-30  # rounding
    table = replace(fit, estimate=replace(fit.estimate, base_covariance=covariance)).base_table
    np.testing.assert_allclose(table["std"], deviations)
    relative = table["relative_std_percent"].to_numpy()
    some = fit.beta != 0
    np.testing.assert_allclose(relative[some], 100 * deviations[some] / np.abs(fit.beta[some]))
    r, rho, _ = fit.triangle
    np.testing.assert_allclose(table["ols"], np.linalg.lstsq(r, rho)[0], rtol=1e-5, atol=1e-8)
    zero = replace(fit.solution, delta=0.0 * fit.delta)
    nothing = replace(fit, estimate=replace(fit.estimate, solution=zero))
    assert (nothing.base_table["relative_std_percent"] == np.inf).all()


def test_a_fit_without_a_prior_is_judged_by_the_noise_of_its_log(fit):
    estimator = replace(fit.estimator, prior=None, noise=None)
    unsure = replace(fit.estimate, covariance=None, prediction_covariance=None)
    bare = replace(fit, estimator=estimator, estimate=unsure)
    wanted = held_out_errors(estimator.cross_validate(fit.reduced), fit.beta)
    np.testing.assert_array_equal(bare.quality.errors.model, wanted.model)
    assert bare.errors(fit.logs[0].frame).attrs["predicted"]["all"] > 0


def test_a_fit_that_cannot_be_certified_says_so(fit, monkeypatch):
    unproved = SimpleNamespace(certificate=None)
    monkeypatch.setattr("feasid.parameters.feasibility.check.check", lambda *_, **__: unproved)
    with pytest.raises(CertificateError, match="could not be certified"):
        _ = replace(fit).certificate


def test_every_way_of_writing_hands_on_what_was_told(fit, monkeypatch):
    asked = []

    def ask(*_, **told):
        asked.append(told)

    monkeypatch.setattr("feasid.results.archive.fit.save", ask)
    monkeypatch.setattr("feasid.results.report.page.write_report", ask)
    for told in ({}, {"overwrite": True}):
        fit.save("x", **told)
        fit.report("x", **told)
    assert [a["overwrite"] for a in asked] == [False, False, True, True]


def test_a_useless_fit_is_written_by_force_only(fit, tmp_path):
    copy = replace(fit)
    vars(copy)["quality"] = judge(replace(fit.evidence, error=1.2 * fit.evidence.torque))
    assert copy.quality.level == "useless"
    with pytest.raises(UselessFitError, match=r"this fit is useless: .* force=True") as caught:
        copy.write(tmp_path / "out.urdf")
    assert caught.value.path == str(tmp_path / "out.urdf")
    assert not [*tmp_path.iterdir()]
    copy.write(tmp_path / "out.urdf", force=True)
    assert (tmp_path / "out.urdf").exists()


def test_the_raw_error_is_that_of_unfiltered_torques():
    log = feasid.datasets.load("arm")
    fit = feasid.fit(log, diagnose=False, candidates=(), calibration=None)
    model = fit.predict(log)
    tau = log.loc[model.index, model.columns].to_numpy()
    error = np.linalg.norm(model - tau) / np.linalg.norm(tau)
    assert fit.errors(log).attrs["raw"] == pytest.approx(error, rel=0.05)  # of a part of the rows
