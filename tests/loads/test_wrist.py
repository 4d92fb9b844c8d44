"""What a log shows of a wrist sensor, and loads in their deviations: Pinocchio knows the truth."""

import json
from dataclasses import replace

import numpy as np
import pytest
from seeds import seed_of

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.datasets import arm

pytest.importorskip("pinocchio")

from benchmarks.together.arms import LOAD, SERIAL, fourier, true_bodies, urdf, wrist_sensor
from benchmarks.wrist import KINDS, WRONG, World, examine

SURE = 5.0
"""Deviations within which a number is right: one in two million is not."""

ANGLE, DELAY = 0.3, 1.0  #: What is promised of a sensor's rotation [deg] and delay [ms].


def identify(world, calibration="usual"):
    log, robot = world.log()
    rotation, position = world.pose
    return feasid.payload_from_wrench(
        log, robot, rotation=rotation, position=position, calibration=calibration
    )


def wrong_world(seed):
    """A sensor with errors of every kind, on a base that is not level."""
    world, rng = World.draw(seed), np.random.default_rng(seed)
    gains = 1 + rng.permutation([-0.03, -0.02, -0.01, 0.01, 0.02, 0.03])
    errors = {"turn": rng.uniform(0.04, 0.1, 3), "delay": -0.02, "gains": gains}
    return replace(world, **errors, tilt=np.array([0.01, -0.02, 0.0]))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_load_is_within_its_deviations(wrong):
    outcome = examine(World.draw(seed_of("drawn"), WRONG[wrong]))
    assert abs(outcome.mass) < SURE
    assert np.abs(outcome.centre).max() < SURE
    assert outcome.angle < ANGLE
    assert outcome.delay < DELAY or "delay" not in outcome.corrected
    assert outcome.level == "good"


def test_errors_of_every_kind_are_corrected_and_a_controller_takes_the_load():
    world = wrong_world(seed_of("drawn"))
    load = identify(world)
    values, deviations = load.sensor.values, load.sensor.deviations
    assert load.sensor.corrected == KINDS[:4]
    assert np.abs((1 + values["gain"] - world.gains) / deviations["gain"]).max() < SURE
    assert np.abs((values["tilt"] - world.tilt) / deviations["tilt"])[:2].max() < SURE
    assert abs(values["delay"] - world.delay) < SURE * deviations["delay"]
    assert load.to("ur").values["m"] == load.mass
    assert "; delay -" in repr(load)
    # The gain that all channels share is the load's mass, which no log tells apart.
    spread = world.gains.std(ddof=1) / np.sqrt(6)
    assert load.mass_std > 0.5 * spread * world.mass


def test_a_sensor_without_errors_is_left_alone_and_its_load_as_certain():
    for seed in range(2):
        load, assumed = (identify(World.draw(seed), k) for k in ("usual", None))
        assert load.sensor.corrected == ()
        assert abs(load.mass - assumed.mass) < 0.5 * assumed.mass_std
        assert load.mass_std < 2.0 * assumed.mass_std


def test_what_a_small_motion_hardly_shows_widens_the_deviations():
    """Joints that move by a degree tell neither a turn of four degrees nor gains."""
    world = replace(wrong_world(seed_of("drawn")), reach=0.02)
    outcome = examine(world)
    assert abs(outcome.mass) < SURE
    assert np.abs(outcome.centre).max() < SURE
    still = identify(replace(world, reach=0.0))
    assert still.level == "useless"
    assert "does not determine" in still.reasons[0]


def test_what_is_known_is_held_and_what_contradicts_it_is_named():
    world = wrong_world(3)
    held = identify(world, {"rotation": 0.0})
    assert "rotation" not in held.sensor.corrected
    assert (held.sensor.deviations["rotation"] == 0).all()
    assert held.level == "doubtful"
    assert "rotation" in held.reasons[0]
    assert len(identify(world, None).reasons) == 4
    assert identify(replace(world, turn=np.zeros(3)), {"rotation": 0.0}).level == "good"
    other = identify(replace(world, turn=np.array([0.6, 0.0, 0.0])))
    assert other.sensor.values["rotation"][0] == pytest.approx(0.6, abs=np.deg2rad(ANGLE))
    assert "check the set-up" in other.reasons[0]
    for calibration in ({"turn": 0.1}, {"delay": -1.0}, "all"):
        with pytest.raises(InputError, match="calibration"):
            identify(world, calibration)


def test_joints_that_follow_others_turn_the_sensor():
    follower = (*SERIAL[1], '<mimic joint="j1" multiplier="-0.5"/>')
    whole, mimic = (
        feasid.load_robot(urdf(true_bodies(), (SERIAL[0], second, SERIAL[2])))
        for second in (SERIAL[1], follower)
    )
    rng, t = np.random.default_rng(1), np.arange(2000) / 200
    motion = [x[:, [0, 0, 1]] * [1.0, -0.5, 1.0] for x in fourier(rng, t, 2, 1.0)]
    log = {"t": t, **wrist_sensor(whole, motion, rng)}
    log |= {f"q_{j}": motion[0][:, k] for k, j in enumerate(whole.joints)}
    ours, theirs = (feasid.payload_from_wrench(log, r, calibration=None) for r in (mimic, whole))
    assert ours.mass == pytest.approx(theirs.mass, rel=1e-6)
    assert abs(theirs.mass - LOAD[9]) < SURE * theirs.mass_std


def test_the_sensor_at_the_prompt(here, capsys):
    arm.write_files()
    robot = feasid.load_robot("arm.urdf")
    log = arm.wrist_log(robot, mass=0.8, centre=(0.01, 0.0, 0.06))
    log["fz"] *= 1.02
    log.to_csv("sensed.csv", index=False)
    words = ["payload", "sensed.csv", "--robot", "arm.urdf", "--sensor", "fx,fy,fz,tx,ty,tz"]
    assert main([*words, "--json"]) == 0
    sensor = json.loads(capsys.readouterr().out)["sensor"]
    assert sensor["corrected"] == ["gain"]
    assert sensor["values"]["gain"][2] - sensor["values"]["gain"][0] == pytest.approx(
        0.02, abs=1e-3
    )
    assert main([*words, "--calibration", "gain=0"]) == 0
    assert "calibration= excludes" in capsys.readouterr().out
    without = ["payload", "loaded.csv", "--without", "log.csv", "--robot", "arm.urdf"]
    assert main([*without, "--calibration", "none"]) == 2
    assert "--calibration needs --sensor" in capsys.readouterr().err
