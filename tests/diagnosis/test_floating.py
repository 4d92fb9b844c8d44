"""Faults in the log of a quadruped that trots in MuJoCo, its description off by up to 50 %."""

import ast
from functools import cache

import numpy as np
import pytest
from floating import loaded
from scipy.spatial.transform import Rotation

import feasid
from feasid.core.errors import LogError
from feasid.identification.effects.log_findings import check_columns
from feasid.logs.floating import Imu
from feasid.logs.recording import Recording

pytest.importorskip("mujoco")

from quadruped import FEET, TOUCHED, Gait, frame, trot


@cache
def logged():
    """The description, and a right log of it."""
    robot, _ = loaded("solo12")
    factors = np.random.default_rng(0).uniform(0.6, 1.5, len(robot.bodies))
    wrong = robot.with_values((robot.values.reshape(-1, 10) * factors[:, None]).ravel())
    log = frame(robot, trot(robot, Gait(1.6, 0.25, 0.5, 0.15), 6.0, 0))
    return wrong, log.iloc[::2].reset_index(drop=True)


def signal(log, kind):
    return log[[f"{kind}_{a}" for a in "xyz"]].to_numpy()


def changed(log, **signals):
    columns = {f"{k}_{a}": v[:, i] for k, v in signals.items() for i, a in enumerate("xyz")}
    return log.assign(**columns)


def forces(log, change):
    return changed(log, **{f"force_{leg}": change(leg) for leg in FEET})


def imu_turned(log, turn):
    return changed(log, acc=signal(log, "acc") @ turn, gyro=signal(log, "gyro") @ turn)


def flagged(log, feet):
    size = {leg: np.linalg.norm(signal(log, f"force_{foot}"), axis=1) for leg, foot in feet.items()}
    return log.assign(**{f"contact_{leg}": (x > 1.0).astype(float) for leg, x in size.items()})


ABOUT_Z = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
ABOUT_X = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])

FAULTS = {
    "imu turned about z": (lambda x: imu_turned(x, ABOUT_Z), "imu-axes", ABOUT_Z),
    "imu turned about x": (lambda x: imu_turned(x, ABOUT_X), "imu-axes", ABOUT_X),
    "sign of acceleration": (
        lambda x: changed(x, acc=-signal(x, "acc")), "acceleration-sign", [],
    ),
    "acceleration in g": (lambda x: changed(x, acc=signal(x, "acc") / 9.81), "imu", 0.1),
    "degrees per second": (lambda x: changed(x, gyro=np.rad2deg(signal(x, "gyro"))), "imu", 1.0),
    "front feet exchanged": (
        lambda x: changed(x, force_FL=signal(x, "force_FR"), force_FR=signal(x, "force_FL")),
        "swapped-forces", ["force_FL_x", "force_FR_x"],
    ),
    "diagonal feet exchanged": (
        lambda x: changed(x, force_FL=signal(x, "force_HR"), force_HR=signal(x, "force_FL")),
        "swapped-forces", ["force_FL_x", "force_HR_x"],
    ),
    "a late foot": (
        lambda x: changed(x, force_HL=np.roll(signal(x, "force_HL"), 40, axis=0)),
        "late-force", ["force_HL_x"],
    ),
    "a dead foot": (
        lambda x: changed(x, force_FR=0 * signal(x, "force_FR")), "dead-force", ["force_FR_x"],
    ),
    "forces on the ground": (
        lambda x: forces(x, lambda leg: -signal(x, f"force_{leg}")),
        "force-sign", [f"force_{leg}_x" for leg in FEET],
    ),
    "forces in kilograms": (
        lambda x: forces(x, lambda leg: signal(x, f"force_{leg}") / 9.81), "force-unit", 9.81,
    ),
    "flags exchanged": (
        lambda x: flagged(x, dict(zip(FEET, ("FR", "FL", "HL", "HR"), strict=True))),
        "flags", ["contact_FL"],
    ),
}  # fmt: skip


def diagnosed(log, imu=None):
    """What the columns show, without fits."""
    robot, _ = logged()
    given = {"imu": imu or Imu(robot.bodies[0].name), "contacts": TOUCHED}
    return [*check_columns(Recording.from_source(log), robot, given)]


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_floating_log_is_named(name):
    change, code, where = FAULTS[name]
    found = diagnosed(change(logged()[1]))
    assert [*dict.fromkeys(f.code for f in found)] == [code]
    if isinstance(where, list):
        assert {*where} <= {c for f in found for c in f.columns}
    elif isinstance(where, float):
        assert found[0].values["factor"] == pytest.approx(where, rel=0.1)
    else:
        np.testing.assert_allclose(found[0].values["rotation"], where)


def test_a_right_floating_log_is_right():
    _, log = logged()
    assert diagnosed(log) == []
    assert diagnosed(flagged(log, {leg: leg for leg in FEET})) == []


@pytest.mark.parametrize("small", [False, True])
def test_small_turns_and_delays_of_an_imu_are_found_within_their_deviations(small):
    """As printed, the option mends them: nothing is left to say."""
    right, rng = logged()[1], np.random.default_rng()
    turn = rng.normal(size=3)
    turn *= np.deg2rad(1.0 if small else rng.uniform(2, 40)) / np.linalg.norm(turn)
    axes = Rotation.from_rotvec(turn).as_matrix()
    late = 0 if small else int(rng.integers(4, 25)) * rng.choice([-1, 1])
    log = imu_turned(right, axes)
    log = changed(log, **{k: np.roll(signal(log, k), late, axis=0) for k in ("gyro", "acc")})
    (found,) = diagnosed(log)
    assert found.code == "imu-pose"
    left = Rotation.from_matrix(np.array(found.values["rotation"]).T @ axes).magnitude()
    assert np.rad2deg(left) < HARMLESS_TURN
    assert found.values["delay"] == pytest.approx(1e-3 * late, abs=HALF_A_SAMPLE)
    assert diagnosed(log, ast.literal_eval(found.remedy.removeprefix("imu="))) == []


HARMLESS_TURN = 0.2  # degrees: the centre of mass of the base, then, is off by less than 1 mm
HALF_A_SAMPLE = 5e-4  # s, of a log with 1 kHz


def test_an_imu_on_a_robot_that_hardly_turns_says_nothing_about_its_axes():
    log, rng = logged()[1], np.random.default_rng()
    noise = rng.normal(scale=0.01, size=(2, len(log), 3))
    still = changed(log, gyro=noise[0], acc=noise[1] + [0.0, 0.1, 9.8])
    columns = {f"base_q{a}": float(a == "w") for a in "xyzw"}
    assert [f for f in diagnosed(still.assign(**columns)) if f.code.startswith("imu")] == []


def fitted(log):
    robot, _ = logged()
    return feasid.fit(log, robot, imu=Imu(robot.bodies[0].name), contacts=TOUCHED)


@pytest.mark.slow
def test_a_right_floating_log_makes_a_good_fit():
    """Joints are judged by their motors' torques, not by these and contacts together."""
    log = logged()[1]
    fit = fitted(log)
    assert fit.quality.level == "good"
    assert feasid.diagnose(log, logged()[0], imu=Imu("base_link"), contacts=TOUCHED).ok
    motors = log.filter(regex="^tau_").to_numpy()
    torques = np.linalg.norm(motors, axis=0) / np.sqrt(len(log))
    own = fit.reduced.torque_norms[6:] / np.sqrt(fit.reduced.rows)
    np.testing.assert_allclose(own, torques, rtol=FILTERED)


FILTERED = 0.15  # share of a trot's torques beyond the low-pass


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_of_a_floating_log_makes_a_good_fit(name):
    change, code, _ = FAULTS[name]
    fit = fitted(change(logged()[1]))
    assert fit.quality.level != "good"
    assert code in [n.code for n in fit.notes]


SLIPPING = 0.1  # [m/s], and the share of touching rows in which a foot is faster
MASS = 0.01  # relative


@pytest.mark.slow
def test_feet_may_slip_where_their_forces_are_measured():
    robot, _ = loaded("solo12")
    raw = trot(robot, Gait(1.6, 0.25, 0.5, 0.15), 6.0, 0, friction=0.25)
    touching = raw["slip"] > 0
    assert np.mean(raw["slip"][touching] > SLIPPING) > SLIPPING
    log = frame(robot, raw).iloc[::2].reset_index(drop=True)
    assert diagnosed(log) == []
    fit = fitted(log)
    assert fit.quality.level == "good"
    inertial = robot.inertial_columns[:, 9]
    total = fit.robot.values[fit.robot.inertial_columns[:, 9]].sum()
    assert abs(total / robot.values[inertial].sum() - 1) < MASS


def test_a_robot_that_stands_on_nothing_is_named_before_any_fit():
    """Forgotten contacts: the base's equations miss the whole weight."""
    robot, log = logged()
    forgotten = log.drop(columns=[c for c in log if c.startswith("force_")])
    with pytest.raises(LogError, match=r"something carries robot .*contacts="):
        feasid.fit(forgotten, robot, imu=Imu("base_link"))
    found = feasid.diagnose(forgotten, robot, imu=Imu("base_link"))
    assert [f.level for f in found] == ["error"]
