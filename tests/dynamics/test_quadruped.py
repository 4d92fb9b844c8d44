"""A quadruped identified from its log: IMU, encoders, torques and feet that feel the ground."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from floating import loaded
from thorough import some

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.identification.regression.triangle import Reduced
from feasid.logs.floating import Imu
from feasid.robot.dynamics.floating import contact_free_projector

pytest.importorskip("mujoco")

from quadruped import FEET, TOUCHED, Gait, equations, frame, torque_error, trot

TRAINED, OTHER = Gait(1.6, 0.25, 0.5, 0.15), Gait(2.1, 0.18, 0.7, 0.1)

ERROR = 1.3  # of the error that the true parameters have under the same noise
MASS = 0.02  # relative
WRONG = (0.6, 1.5)  # range of factors by which the description's bodies are off
TOUCHING = 0.5  # [N], above which a foot's switch closes
UNSEEN = 0.1  # relative error of equations free of contact forces, on another gait
ALIKE = 0.05  # RMS of joint positions between two simulations, relative to their range


@cache
def identified():
    """Truth, a description that is wrong by up to 50 %, and the fit from a log of the truth."""
    robot, _ = loaded("solo12")
    factors = np.random.default_rng(0).uniform(*WRONG, len(robot.bodies))
    wrong = robot.with_values((robot.values.reshape(-1, 10) * factors[:, None]).ravel())
    said = equations(robot, trot(robot, TRAINED, 6.0, 0))
    reduced = Reduced.from_samples(wrong, *said.motion, said.forces)
    return robot, wrong, feasid.fit(reduced, wrong, friction=())


def assert_identified(fit):
    """The fit has the mass and the torques of another gait, which the description has not."""
    assert fit.certificate.verify()
    robot, wrong, _ = identified()
    log = trot(robot, OTHER, 3.0, 1)
    errors = [torque_error(robot, r.values, log) for r in (robot, wrong, fit.robot)]
    assert errors[2] <= ERROR * errors[0] < errors[1]
    masses = [r.values[9::10].sum() for r in (robot, wrong, fit.robot)]
    assert abs(masses[2] / masses[0] - 1) < MASS < abs(masses[1] / masses[0] - 1)


def test_a_feasible_model_has_the_mass_and_the_torques_of_another_gait():
    *_, fit = identified()
    assert feasid.check(fit.robot).feasible
    assert_identified(fit)


def test_it_trots_alike_when_simulated_again():
    robot, _, fit = identified()
    there, again = (trot(r, TRAINED, 1.5, 5)["q"] for r in (robot, fit.robot))
    assert np.sqrt(((there - again) ** 2).mean()) < ALIKE * np.ptp(there, axis=0).mean()


def options(**more):
    """All that the fit of a log needs to be told."""
    base = loaded("solo12")[0].bodies[0].name
    return {"imu": Imu(base), "contacts": TOUCHED, "friction": (), "drive_inertia": False} | more


@cache
def logged():
    """Two gaits as tables."""
    robot, *_ = identified()
    return frame(robot, trot(robot, TRAINED, 6.0, 0)), frame(robot, trot(robot, OTHER, 3.0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("imu", some([True, False], True), ids=["imu", "pose"])
def test_a_table_goes_straight_into_a_fit(imu, tmp_path):
    robot, wrong, _ = identified()
    log, other = logged()
    fit = feasid.fit(log, wrong, **options(**({} if imu else {"imu": None})))
    assert_identified(fit)
    assert fit.reduced.strata  # both sides of the equations filtered, as for other robots
    errors = fit.errors(other)
    assert len(errors) == robot.dof + 1
    fit.save(tmp_path / "solo.feasid")
    again = feasid.load(tmp_path / "solo.feasid")
    np.testing.assert_allclose(again.errors(other), errors, rtol=1e-9)
    motion = other.filter(regex="^(t|q_|gyro|acc|base)")
    assert fit.predict(motion, contacts=None).shape[1] == robot.dof


@pytest.mark.sampled(0.5, of="file")
def test_the_prompt_takes_it_too(here, capsys):
    _, path = loaded("solo12")
    log, _ = logged()
    log.iloc[:3000].to_csv("log.csv", index=False)
    words = ["fit", "log.csv", "--robot", str(path), "--floating", "--friction", "none"]
    words += ["--drive-inertia", "no", "--imu", '{"link": "base_link"}', "--json"]
    for leg, touch in TOUCHED.items():
        where = {"body": touch.body, "position": touch.position}
        words += ["--contacts", f"{leg}={json.dumps(where)}"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    typed = feasid.fit("log.csv", feasid.load_robot(path, floating=True), **options())
    assert told["errors"]["fitted"]["all"] == typed.relative_error["all"]
    assert main([w for w in words if w != "--floating"]) == 2
    assert "is fixed: --floating" in capsys.readouterr().err


@pytest.mark.slow
def test_left_and_right_mirror_each_other():
    """What one side shows the other is known by, and stays so in the answer."""
    robot, wrong, _ = identified()
    parts = ("SHOULDER", "UPPER_LEG", "LOWER_LEG")
    pairs = [(f"{end}L_{part}", f"{end}R_{part}", "y") for end in "FH" for part in parts]
    tied = feasid.base_parameters(robot, mirrored=pairs)
    assert tied.unknowns == robot.size - 10 * len(pairs)
    assert tied.size < feasid.base_parameters(robot).size
    fit = feasid.fit(logged()[0], wrong, mirrored=pairs, **options())
    names = [b.name for b in fit.robot.bodies]
    ten = dict(zip(names, fit.robot.values.reshape(-1, 10), strict=True))
    reflected = np.array([1, -1, 1, 1, -1, 1, 1, -1, 1, 1])
    for left, right, _ in pairs:
        np.testing.assert_allclose(ten[right], ten[left] * reflected, rtol=1e-9, atol=1e-12)
    test = trot(robot, OTHER, 3.0, 1)
    errors = [torque_error(robot, r.values, test) for r in (fit.robot, robot)]
    assert errors[0] <= ERROR * errors[1]


def without_forces(df, log):
    """Feet that feel when they touch, but not what."""
    near = np.abs(log["force"]).max(axis=2) > TOUCHING
    flags = {f"contact_{leg}": near[:, k].astype(float) for k, leg in enumerate(FEET)}
    return df.drop(columns=[c for c in df if c.startswith("force_")]).assign(**flags)


@pytest.mark.slow
def test_forces_of_the_ground_need_not_be_known():
    robot, wrong, _ = identified()
    log, other = trot(robot, TRAINED, 6.0, 0), trot(robot, OTHER, 3.0, 1)
    df = without_forces(frame(robot, log), log)
    fit = feasid.fit(df, wrong, **options())
    assert any(n.code == "unknown-forces" for n in fit.notes)
    assert_identified(fit)
    assert fit.errors(without_forces(frame(robot, other), other))["all"] < UNSEEN


@pytest.mark.sampled(0.5, of="file")
def test_what_is_wrong_with_unknown_forces_is_named():
    robot, wrong, _ = identified()
    log = trot(robot, TRAINED, 1.0, 0)
    whole = frame(robot, log)
    df = without_forces(whole, log)
    for table, more, words in (
        (df, {"contacts": {}}, "has the contacts FL, FR, HL, HR, but not where on the robot"),
        (df.assign(force_FL_x=0.0), {}, "no column 'force_FL_y'"),
        (df.drop(columns="contact_FL"), {}, "no column 'force_FL_x'"),
        (df, {"filtering": "signals"}, "need filtering='equations'"),
        (df, {"robust": "huber"}, "needs the forces of all contacts"),
    ):
        with pytest.raises(InputError, match=words):
            feasid.fit(table, wrong, **options(**more))
    known, unknown = (feasid.reduce(x, wrong, **options()) for x in (whole, df))
    with pytest.raises(InputError, match="unknown contact forces, the other has not"):
        known + unknown


def test_projected_equations_are_free_of_contact_forces():
    robot, *_ = identified()
    rng = np.random.default_rng(0)
    q, touching = rng.normal(size=(5, robot.dof)), 1.0 * (rng.random((5, 4)) < 0.5)
    points = [feasid.floating.Contact(t.body, t.position) for t in TOUCHED.values()]
    P = contact_free_projector(robot, q, points, touching)
    np.testing.assert_allclose(P @ P, P, atol=1e-12)
    force = rng.normal(size=(4, 5, 3)) * touching.T[:, :, None]
    pushing = [replace(c, force=f) for c, f in zip(points, force, strict=True)]
    pushed = feasid.floating.contact_torques(robot, q, pushing)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", P, pushed), 0, atol=1e-12)
    rank = np.trace(P, axis1=1, axis2=2)
    np.testing.assert_allclose(rank, robot.dof - 3 * touching.sum(axis=1), atol=1e-9)
