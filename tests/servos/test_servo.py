"""Gains of servos and the robot behind them, from positions and commands alone."""

import random
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from seeds import seed_of

import feasid
from benchmarks.worlds.description import to_text
from benchmarks.worlds.servos import (
    HELD,
    RATE_TIME,
    SERVOS,
    STEP,
    Conditions,
    fitted_servo_robot,
    make_servo_world,
)
from feasid.cli import main
from feasid.core.errors import InputError, LogError, NotEnoughDataError
from feasid.identification.servos.gains import ASSUMED, UNTOLD
from feasid.identification.servos.prior import describe_factors
from feasid.logs.servo import Servo, command_rates, delay_commands
from feasid.robot.formats.description import Extras, JointServo
from feasid.robot.formats.write import write

QUICK = {"diagnose": False, "candidates": (), "calibration": {}, "prior_weight": 1.0,
         "servo_terms": ()}  # fmt: skip
"""Options with which a fit takes little time."""

SHARE_TOLERANCE = 0.03
"""Of the weight that servos carry."""

RATIO_TOLERANCE, DELAY_TOLERANCE = 0.05, 0.5e-3
"""Gain ratios and delay [s] of a log of 30 s with 14 bits at 200 Hz."""


def made(robot="leg", seed=3, **how):
    return make_servo_world(robot, seed, Conditions(**how))


def fit_positions(world, **options):
    return feasid.fit(world.log, world.robot, command="position", **{**QUICK, **options})


@pytest.fixture(scope="module")
def world():
    """A leg."""
    return made()


@pytest.fixture(scope="module")
def fit(world):
    return fit_positions(world)


def ratios(fit, world):
    """Gains over the true ones, and over their common factor."""
    off = np.array(fit.servo.servo.kp) / world.truth.kp
    return off, off / np.exp(np.mean(np.log(off)))


@pytest.mark.slow
def test_gains_delay_and_motion_of_a_leg(world, fit):
    assert np.abs(ratios(fit, world)[1] - 1).max() < RATIO_TOLERANCE
    # MuJoCo's step takes the new speed for the position: forces act half a step early.
    assert abs(fit.servo.delay - (world.truth.delay - STEP / 2)) < DELAY_TOLERANCE
    error = world.rollout_error(fitted_servo_robot(world, fit))
    assert error < 1e-3
    assert error < world.rollout_error(world.nominal) / 20
    fit.certificate.verify()
    assert fit.servo.groups == (world.robot.joints,)
    assert fit.servo.fixed_by == "the description"
    assert 'moments=[["FL_H' in fit.servo.weighing
    assert {"servo-factor", "servo-delay", "servo-damping"} <= {n.code for n in fit.notes}
    assert fit.servo.table.loc[world.robot.joints[0], "kp"] == fit.servo.servo.kp[0]
    assert fit.errors(world.log)["all"] == pytest.approx(fit.relative_error["all"])
    torques = world.log.drop(columns=[c for c in world.log if c.startswith("cmd_")])
    for joint, kp in fit.servo.servo.gains.items():
        torques[f"tau_{joint}"] = kp * (world.log[f"cmd_{joint}"] - world.log[f"q_{joint}"])
    assert fit.errors(torques, servo=None)["all"] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["so101", "ur5", "panda", "leg"])
def test_arms(robot):
    world = made(robot, seed=random.randrange(2**32))
    print(world.seed)
    fit = feasid.fit(world.log, world.robot, command="position")
    assert np.abs(ratios(fit, world)[1] - 1).max() < RATIO_TOLERANCE
    error = world.rollout_error(fitted_servo_robot(world, fit))
    assert error < min(1e-3, world.rollout_error(world.nominal) / 20)


def test_a_known_load_fixes_the_factor():
    world = made(seconds=15.0)
    loaded, ten = world.loaded_log(0.3)
    fit = fit_positions(world, loaded=loaded, load=ten)
    assert np.abs(ratios(fit, world)[0] - 1).max() < 0.01
    assert fit.servo.fixed_by == "a known load"


@pytest.mark.sampled(0.34, of="file")
def test_logged_speeds_are_not_used(world, fit):
    noisy = replace(world, how=replace(world.how, speed_noise=0.05)).log
    assert "dq_FL_HFE" in noisy
    again = feasid.fit(noisy, world.robot, command="position", **QUICK)
    np.testing.assert_allclose(again.servo.servo.kp, fit.servo.servo.kp, rtol=1e-9)
    assert "speeds-derived" in {note.code for note in again.notes}


@pytest.mark.parametrize("law", ["current", "velocity"])
def test_torque_constants_and_gains_of_speeds(world, law):
    log, joints, truth = world.log, world.robot.joints, world.truth
    t, q, c = (log[["t"]], log[[f"q_{j}" for j in joints]], log[[f"cmd_{j}" for j in joints]])
    path = CubicSpline(t.to_numpy()[:, 0], q.to_numpy())
    later = t.to_numpy()[:, 0] + STEP * 5
    if law == "velocity":  # held from its row on
        held = delay_commands(c.to_numpy(), truth.delay - STEP / 2 - 5 * STEP, 0.005)
        asked = truth.kp / truth.kd * (held - path(later))
        expected = truth.kd
    else:
        late = delay_commands(c.to_numpy(), truth.delay - STEP / 2, 0.005)
        speed = path(t.to_numpy()[:, 0], 1)
        expected = np.array([2.0, 3.0, 0.5])
        asked = (truth.kp * (late - q.to_numpy()) - truth.kd * speed) / expected
    commands = {f"cmd_{j}": asked[:, k] for k, j in enumerate(joints)}
    quick = {k: v for k, v in QUICK.items() if k != "servo_terms"}
    fit = feasid.fit(log.assign(**commands), world.robot, command=law, **quick)
    off = np.array(fit.servo.servo.kp) / expected
    assert np.abs(off / np.exp(np.log(off).mean()) - 1).max() < RATIO_TOLERANCE


def test_commands_hold_until_the_next_one():
    commands = np.repeat(np.arange(6.0), 2)[:, None]
    fine = np.repeat(commands, 100, axis=0)[:, 0]
    late = delay_commands(commands, 0.3, 0.1)[5:-1, 0]
    means = [fine[100 * k - 350 : 100 * k - 250].mean() for k in range(5, 11)]
    np.testing.assert_allclose(late, means, atol=1e-12)


def test_slow_commands_are_themselves_half_a_period_later():
    """A held sine acts as the sine half a period later: of its means, 1e-4 would be lacking."""
    t, period = np.arange(0, 5, 0.02), 0.02
    late = delay_commands(np.sin(2 * np.pi * t)[:, None], 0.0, period)[5:-5, 0]
    smooth = 0.5 * (np.sin(2 * np.pi * t) + np.sin(2 * np.pi * (t - period)))[5:-5]
    np.testing.assert_allclose(late, smooth * (1 + (2 * np.pi * period) ** 2 / 24), atol=1e-5)


def test_rates_of_held_commands_pass_a_low_pass():
    commands, late, time = np.repeat([0.0, 1.0, -2.0, 0.5, 0.5], 2)[:, None], 0.03, 0.05
    fine = np.repeat(commands[:, 0], 10000)  # every 0.01 ms
    behind = lfilter([1e-5 / time], [1.0, 1e-5 / time - 1.0], fine)
    ends = [10000 * k + 5000 - 3000 for k in range(10)]
    means = np.diff(behind[ends]) / 0.1
    rates = command_rates(commands, (late, time), 0.1)[:, 0]
    np.testing.assert_allclose(rates[1:], means, atol=0.01)  # by the steps


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.assign(cmd_FL_HFE=f.q_FL_HFE), "its own positions"),
        (lambda f: f.assign(cmd_FL_HFE=f.q_FL_HFE.shift(-1).ffill()), "its own positions"),
        (lambda f: f.assign(cmd_FL_HFE=f.q_FL_HFE + 1e-4), "below 2 counts"),
        (lambda f: f.drop(columns="cmd_FL_HFE"), "has no command column 'cmd_FL_HFE'"),
        (lambda f: f[:1600], "record longer"),
        (lambda f: f.assign(cmd_FL_HFE=np.degrees(f.cmd_FL_HFE)), "correct the unit"),
    ],
)
def test_logs_that_say_nothing_of_gains_are_refused(world, change, said):
    with pytest.raises((LogError, NotEnoughDataError), match=said):
        feasid.fit(change(world.log), world.robot, command="position", **QUICK)


@pytest.mark.sampled(0.34, of="file")
def test_trusted_gains_and_weighed_moments_fix_the_factor(world):
    joint = world.robot.joints[1]
    posture = {joint: 0.7}
    q = np.array([[posture.get(j, 0.0) for j in world.robot.joints]])
    moment = world.physics.rigid_torque(q, 0 * q, 0 * q)[0, 1]
    for options in (
        {"gains": {joint: (world.truth.kp[1], 0.01)}},
        {"moments": [(joint, posture, moment, 0.02 * abs(moment))]},
    ):
        fit = fit_positions(world, **options)
        assert np.abs(ratios(fit, world)[0] - 1).max() < 3 * fit.servo.factor < 0.1


def test_gains_of_a_gantry_are_free_axis_by_axis():
    rows = [(0, 0, 0.1, 0, "prismatic"), (-np.pi / 2, 0, 0.1, 0, "prismatic")]
    gantry = feasid.Robot.from_dh([(np.pi / 2, 0, 0, 0, "prismatic"), *rows[1:]])
    assert feasid.servo_scale_groups(gantry) == (("1",), ("2",))
    steps = describe_factors(gantry)
    assert "2 factors, shared by: 1; 2." in steps[0]
    assert ["gains=" in step for step in steps] == [False, True, True]


@pytest.mark.sampled(0.34, of="file")
def test_rows_at_mechanical_stops_are_left_out():
    """What a stop carries is none of the robot's torques: with these rows the fit is useless."""
    world = made(seed=0, stops=0.8, seconds=20.0)
    fit = fit_positions(world)
    assert np.abs(ratios(fit, world)[1] - 1).max() < RATIO_TOLERANCE
    (unused,) = {n.values["rows"] for n in fit.notes if n.code == "unused"}
    assert unused > 0.05 * len(world.log)
    assert "at its mechanical stop" in " ".join(fit.notes)
    assert fit.quality.level == "good"
    bodies = [replace(body, limits=type(body.limits)()) for body in world.robot.bodies]
    endless = replace(world.robot, bodies=tuple(bodies))
    with_stops = feasid.fit(world.log, endless, command="position", **QUICK)
    assert with_stops.quality.level != "good"


def test_servos_read_commands_as_torques(world, fit):
    """Those of a log whose rows are out of order, too."""
    joints, log = world.robot.joints, world.log
    known = {"kp": dict(zip(joints, world.truth.kp, strict=True)), "delay": 0.004}
    servo = Servo.from_option(known, world.robot)
    signals = (log[[f"{kind}_{j}" for j in joints]].to_numpy() for kind in ("q", "cmd"))
    tau = servo.torques(world.robot, log["t"].to_numpy(), *signals)
    columns = {f"tau_{j}": tau[:, k] for k, j in enumerate(joints)}
    torques = log[["t", *(f"q_{j}" for j in joints)]].assign(**columns)
    order = np.random.default_rng(0).permutation(len(log))
    for rows, options in ((slice(None), {}), (order, {"sort": True})):
        one = feasid.reduce(torques.iloc[rows], base=fit.base, **options)
        other = feasid.reduce(log.iloc[rows], base=fit.base, servo=known, **options)
        for a, b in zip(one.triangles, other.triangles, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(a).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVOS)
def test_servos_that_do_more_are_named_or_refused(name, tmp_path):
    named = {k: k for k in ("integral", "rate", "gravity", "weight")} | {"half_weight": "weight"}
    world = make_servo_world("leg", 0, SERVOS[name])
    if name in ("dead_band", "spring", "short"):
        try:
            fit = feasid.fit(world.log, world.robot, command="position")
        except LogError:
            return
        assert fit.quality.level == "doubtful"
        return
    fit = feasid.fit(world.log, world.robot, command="position")
    if name == "limit":
        assert np.isfinite(fit.servo.servo.limit).any()
        assert fit.quality.level == "doubtful"
        assert "torque limits" in fit.quality.reasons[0]
    assert tuple(fit.servo.servo.terms) == ((named[name],) if name in named else ())
    if "weight" in name:
        shares = fit.servo.servo.terms["weight"]
        np.testing.assert_allclose(shares, SERVOS[name].carried, atol=SHARE_TOLERANCE)
    if name == "zeros":
        assert fit.calibration.correction.values_by_joint("zero")
    error = world.rollout_error(fitted_servo_robot(world, fit))
    assert error < world.rollout_error(world.nominal) / 5


SHORT = 15.0
"""Seconds of a log that tells one further thing about a servo."""

TERM_TOLERANCE = 0.01
"""Ratios of gains and factors of terms from such a log."""


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("name", ["limit", "integral", "rate"])
def test_one_further_thing_that_a_servo_does_is_found(name):
    """Its numbers, and the sentences that say them."""
    world = make_servo_world("leg", 0, replace(SERVOS[name], seconds=SHORT))
    options = {k: v for k, v in QUICK.items() if k != "servo_terms" or name == "limit"}
    fit = feasid.fit(world.log, world.robot, command="position", **options)
    servo, joints = fit.servo.servo, world.robot.joints
    off, relative = ratios(fit, world)
    assert np.abs(relative - 1).max() < TERM_TOLERANCE
    factor = np.exp(np.mean(np.log(off)))
    said = {note.code: str(note) for note in fit.servo.notes}
    assert said["servo-delay"].startswith(f"commands act {1e3 * fit.servo.delay:.3g} +- ")
    assert said["servo-factor"].startswith(
        f"gains and parameters are known up to one common factor of {', '.join(joints)}: fixed by "
        f"the description, {100 * fit.servo.factor:.2g} %"
    )
    if name == "limit":
        found = np.array(servo.limit)
        kept = np.isfinite(found)
        assert kept.tolist() == [False, False, True]
        limit = world.truth.limit[kept]
        np.testing.assert_allclose(found[kept] / factor, limit, rtol=TERM_TOLERANCE)
        assert f"that the log shows: {joints[2]} {found[2]:.3g} N m or N;" in said["servo-limit"]
        assert dict(servo.terms or {}) == {}
        assert not servo.has_only_gain_and_damping
        return
    ((term, factors),) = servo.terms.items()
    assert term == name
    assert f"terms of the servo that the log's evidence selected: {name}" in said["servo-terms"]
    if name == "integral":
        np.testing.assert_allclose(factors, SERVOS[name].integral, rtol=TERM_TOLERANCE)
    else:
        rates = np.asarray(world.truth.kd) / world.truth.kp
        np.testing.assert_allclose(factors, rates, rtol=0.05)
        assert servo.rate_time == pytest.approx(RATE_TIME, rel=0.05)
        assert f"(rate behind a low-pass of {1e3 * servo.rate_time:.2g} ms)" in said["servo-terms"]


def follow(path, world):
    """Positions every `STEP` of a written file along the world's test commands."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    data.ctrl[:] = world.start
    mujoco.mj_step(model, data, HELD)  # commands before the first one, which the delay holds
    data.qpos[:], data.qvel[:] = world.start, 0.0
    out = np.empty((len(world.test_commands) * HELD, model.nq))
    for k in range(len(out)):
        out[k] = data.qpos
        data.ctrl[:] = world.test_commands[k // HELD]
        mujoco.mj_step(model, data)
    return out


def test_a_written_file_follows_commands_as_the_robot_does(world, fit, tmp_path):
    written = fit.write(tmp_path / "leg.xml", force=True)
    assert "servo" not in "".join(written.missing)
    truth = world.truth.follow(world.test_commands, world.start, world.how, world.described)
    error = np.sqrt(np.mean((follow(tmp_path / "leg.xml", world) - truth) ** 2))
    assert error < world.rollout_error(world.nominal) / 20
    again = fit.write(tmp_path / "leg2.xml", force=True)
    assert again.written.format == "mjcf"


@pytest.mark.sampled(0.34, of="file")
def test_a_small_dead_band_puts_a_fit_in_doubt():
    """It leaves 2 % of the errors, and a closed loop that is a tenth of the nominal one's off."""
    world = made(seed=7, seconds=20.0, dead_band=0.004)
    fit = fit_positions(world)
    assert 0.01 < fit.servo.misfit.max() < 0.05
    assert fit.servo.rounding.max() < 1e-3
    assert fit.quality.level == "doubtful"
    assert "are not explained" in " ".join(fit.quality.reasons)


def test_servos_that_a_file_cannot_hold_are_refused_and_drawn_robots_hold_theirs(fit, tmp_path):
    servo = replace(fit.servo.servo, terms={"weight": (0.5,) * 3})
    carrying = replace(fit, servo=replace(fit.servo, servo=servo))
    with pytest.raises(InputError, match=r"cannot hold the servos .* the term 'weight'"):
        carrying.write(tmp_path / "leg.xml", force=True)
    assert not [*tmp_path.iterdir()]
    written = carrying.write(tmp_path / "leg.urdf", force=True)
    assert "the servos' gains" in "".join(written.missing)
    drawn = fit.sample(2)
    paths, arrays = drawn.write(tmp_path / "drawn"), drawn[1:].arrays()
    model = mujoco.MjModel.from_xml_path(paths[1])
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], arrays["kp"][0], rtol=1e-6)
    np.testing.assert_allclose(model.actuator_delay, arrays["delay"][0], rtol=1e-6)
    assert np.abs(arrays["kp"][0] / fit.servo.servo.kp - 1).min() > 1e-6


def test_drawn_gains_vary_as_the_table_says_and_assumed_ones_widely(fit):
    deviations, spread = np.array([0.05, 0.1, 1.5 * UNTOLD]), np.eye(3) - 1 / 3
    servo = replace(fit.servo, ratio_deviations=deviations, factor=0.2)
    rng = np.random.default_rng(seed_of("drawn"))
    logs = np.log([s.kp for s in servo.draw(4000, rng)]) - np.log(servo.servo.kp)
    own = logs - logs.mean(axis=1, keepdims=True)
    wide = np.diag(np.r_[deviations[:2], ASSUMED] ** 2)
    np.testing.assert_allclose(own.std(axis=0) ** 2, np.diag(spread @ wide @ spread), rtol=0.15)
    assert logs.mean(axis=1).std() == pytest.approx(np.hypot(0.2, np.sqrt(wide.sum()) / 3), rel=0.1)
    assert servo.table["source"].to_list() == ["log", "log", "assumed"]
    assert servo.table["kp_std"].isna().to_list() == [False, False, True]
    (note,) = [n for n in servo.notes if n.code == "servo-untold"]
    assert note.values["joints"] == [servo.servo.joints[2]]
    assert replace(fit, servo=servo).assumed_gains == (servo.servo.joints[2],)


def test_gains_that_a_file_states_are_a_prior(world, fit, tmp_path):
    """They hardly move what the log tells, by a factor of fifty too."""
    stated = {}
    for factor in (1.0, 50.0):
        path = tmp_path / f"{factor}.xml"
        servos = {
            joint: JointServo(factor * kp, 0.0, 0.0, np.inf)
            for joint, kp in zip(world.robot.joints, world.truth.kp, strict=True)
        }
        write(world.robot, path, extras=Extras(servos=servos))
        robot = feasid.load_robot(path)
        again = feasid.fit(world.log, robot, command="position", **QUICK).servo
        assert list(again.stated.values()) == pytest.approx([s.kp for s in servos.values()])
        assert "60 % each" in {n.code: n for n in again.notes}["servo-stated"]
        stated[factor] = np.array(again.servo.kp) / fit.servo.servo.kp
    np.testing.assert_allclose(stated[1.0], 1.0, atol=0.1)
    np.testing.assert_allclose(stated[50.0], 1.0, atol=0.1)


@pytest.mark.parametrize(
    "own",
    [
        '<position name="A" joint="a" class="stiff"/>',
        '<general name="A" joint="a" biastype="affine" gainprm="7" biasprm="1 -7 -3"/>',
        "",
    ],
)
def test_files_keep_their_own_actuators(tmp_path, own):
    text = f"""<mujoco>
    <default><default class="stiff"><position kp="30" kv="2"/></default></default><worldbody><body>
    <joint name="a" axis="0 1 0"/><inertial pos=".1 0 .02" mass="1" diaginertia=".02 .03 .01"/>
    </body></worldbody><actuator>
    {own}</actuator></mujoco>"""
    (tmp_path / "arm.xml").write_text(text)
    robot = feasid.load_robot(tmp_path / "arm.xml")
    for kd, limit in ((0.0, np.inf), (1.5, 4.0)):
        extras = Extras(servos={"a": JointServo(25.0, 0.004, kd, limit)})
        write(robot, tmp_path / "out.xml", extras=extras, overwrite=True)
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
        assert model.nu == 1
        assert model.actuator_gainprm[0, 0] == 25.0
        assert [*model.actuator_biasprm[0, :3]] == [0.0, -25.0, -kd]
        assert model.actuator_delay[0] == 0.004
        assert model.actuator_forcelimited[0] == np.isfinite(limit)
        assert model.actuator_forcerange[0, 1] == (limit if np.isfinite(limit) else 0.0)


def test_the_prompt_fits_servos(world, fit, here, capsys):
    (here / "leg.urdf").write_text(to_text(world.described))
    world.log.to_csv("log.csv", index=False)
    words = ["--command", "position", "--servo-terms", "none", "--diagnose", "no"]
    assert main(["fit", "log.csv", "--robot", "leg.urdf", "--verbose", *words]) == 0
    printed = capsys.readouterr().out
    start = "positions and commands determine gains and parameters up to one factor"
    assert printed.startswith(start)
    assert "(4) fit with --moments '[[" in printed
    assert "known up to one common factor" in printed
    assert f"{1e3 * fit.servo.delay:.2f}" in printed


def test_windows_are_simulated_with_the_gains_that_were_found(fit):
    simulated = fit.simulate(horizon=0.3, windows=5)
    assert simulated.closed_loop
    assert simulated.rms.max() < 2e-3
    named = fit.simulate(horizon=0.3, windows=5, command="position")
    np.testing.assert_array_equal(named.rms, simulated.rms)
