"""Motions as tables, files, messages and figures."""

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from robots import ARM
from scipy.interpolate import BPoly

import feasid
from feasid.applications.excitation.bounds import resolve_bounds
from feasid.cli import main
from feasid.robot.bodies import Limits

LIMITS = ["--position", "wheel_joint=-1,2", "--velocity", "wheel_joint=3", "--acceleration", "12"]
QUICK = ["--harmonics", "2", "--time-limit", "2", "--duration", "4", *LIMITS]


@pytest.fixture(scope="module")
def motion():
    robot = feasid.load_robot(ARM)
    return feasid.excite(
        robot, 4.0, harmonics=2, starts=1, rounds=0, acceleration=12.0,
        position={"wheel_joint": (-1, 2)}, velocity={"wheel_joint": 3},
    )  # fmt: skip


def test_frame_can_be_read_as_a_log(motion):
    frame = motion.to_frame(periods=2)
    assert len(frame) == 801  # the last row is the end of the last period
    assert np.allclose(frame["q_slide"][400:800], frame["q_slide"][:400], atol=1e-12)
    assert np.allclose(frame.iloc[-1, 1:], frame.iloc[0, 1:], atol=1e-12)
    assert frame.attrs["robot"] is motion.robot
    for joint in motion.robot.joints:
        frame[f"tau_{joint}"] = 1.0
    assert feasid.reduce(frame, motion.robot).samples == 801
    with pytest.raises(feasid.FeasidError, match="periods"):
        motion.to_frame(periods=0)


def test_csv(motion, tmp_path):
    path = tmp_path / "motion.csv"
    motion.to_csv(path)
    read = pd.read_csv(path)
    assert np.allclose(read.to_numpy(), motion.to_frame().to_numpy(), atol=1e-8)
    with pytest.raises(feasid.FeasidError, match="exists"):
        motion.to_csv(path)
    motion.to_csv(path, overwrite=True)


def test_ros_message(motion, tmp_path):
    yaml = pytest.importorskip("yaml")
    path = tmp_path / "motion.yaml"
    motion.to_ros(path, rate=50.0)
    message = yaml.safe_load(path.read_text())
    assert message["joint_names"] == list(motion.robot.joints)
    points = message["points"]
    assert len(points) == 201
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    assert np.allclose(times, motion.approach_time + np.arange(201) / 50.0)
    ours = motion.at(np.arange(201) / 50.0)
    for name, values in zip(("positions", "velocities", "accelerations"), ours):  # noqa: B905
        assert np.allclose([p[name] for p in points], values, atol=1e-8)
    assert refusals(message, motion.robot.joints) == []
    with pytest.raises(feasid.FeasidError, match="rate"):
        motion.to_ros(path, rate=-1, overwrite=True)


def refusals(message, joints):
    """Why ros2_control's joint_trajectory_controller would refuse a trajectory.

    After the validation that its documentation and `validate_trajectory_msg` describe.
    """
    found, points = [], message["points"]
    if not points or sorted(message["joint_names"]) != sorted(joints):
        found.append("joints")
    if message["header"]["stamp"] != {"sec": 0, "nanosec": 0}:
        found.append("stamp")
    times = [(p["time_from_start"]["sec"], p["time_from_start"]["nanosec"]) for p in points]
    assert all(nanoseconds < 10**9 for _, nanoseconds in times)
    if any(a >= b for a, b in pairwise(times)):
        found.append("times do not increase strictly")
    if any(abs(v) > np.finfo(np.float32).eps for v in points[-1]["velocities"]):
        found.append("the last velocity is not zero")
    for point in points:
        if len(point["positions"]) != len(joints) or point["effort"]:
            found.append("positions or efforts")
        found += [n for n in ("velocities", "accelerations") if len(point[n]) != len(joints)]
    return found


def test_an_approach_from_anywhere_keeps_the_limits(motion):
    """From any corner of the position limits, by the controller's polynomial of degree five."""
    share = np.linspace(0, 1, 1001)
    steps = np.stack([30 * share**2 - 60 * share**3 + 30 * share**4,
                      60 * share - 180 * share**2 + 120 * share**3])  # fmt: skip
    for corner in motion.bounds.position:
        far = np.abs(corner - motion.q[0])
        for order, limit in ((1, motion.bounds.velocity), (2, motion.bounds.acceleration)):
            peak = np.abs(steps[order - 1]).max() * far / motion.approach_time**order
            assert (peak <= limit[1] * (1 + 1e-4)).all()


def test_a_motion_that_is_not_at_rest_is_not_exported(motion, tmp_path):
    running = replace(motion, coefficients=np.roll(motion.coefficients, 1, axis=0))
    with pytest.raises(feasid.FeasidError, match="design it with rest=True"):
        running.to_ros(tmp_path / "motion.yaml")
    assert not (tmp_path / "motion.yaml").exists()


def test_plot_shows_limits(motion):
    figure = motion.plot()
    assert len(figure.axes) == 3 * 3  # a link without inertial: no torques
    assert len(figure.axes[0].lines) == 3
    assert figure.axes[1].get_title("left") == "velocity [rad/s or m/s]"
    figure.savefig(io.BytesIO(), format="png")


def test_command_writes_all_files(here, capsys):
    (here / "arm.urdf").write_text(ARM)
    files = ["--out", "m.csv", "--ros", "m.yaml", "--plot", "m.png"]
    assert main(["excite", "arm.urdf", *QUICK, *files]) == 0
    assert "condition number" in capsys.readouterr().out
    assert {p.name for p in here.iterdir()} == {"arm.urdf", "m.csv", "m.yaml", "m.png"}
    assert (here / "m.png").read_bytes().startswith(b"\x89PNG")
    assert main(["excite", "arm.urdf", *QUICK, "--out", "m.csv"]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["--velocity", "wheel_joint=x"], "--velocity of joint 'wheel_joint' must be a bound"),
    (["--velocity", "wheel=3"], "no joint 'wheel'"), (["--objective", "det"], "'det'"),
    (["--given", "none.reduced"], "no such file"),
])  # fmt: skip
def test_command_names_mistakes(here, capsys, arguments, message):
    (here / "arm.urdf").write_text(ARM)
    assert main(["excite", "arm.urdf", *QUICK, *arguments, "--out", "m.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "m.csv").exists()


ROUNDING = 1e-6  # of times in nanoseconds and numbers in twelve decimals, per s^2


def test_limits_hold_between_the_points_of_a_message(motion, tmp_path):
    path = tmp_path / "motion.yaml"
    motion.to_ros(path, rate=60.0)
    yaml = pytest.importorskip("yaml")
    points = yaml.safe_load(path.read_text())["points"]
    t = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    kinds = ("positions", "velocities", "accelerations")
    values = np.array([[p[kind] for kind in kinds] for p in points])
    curves = BPoly.from_derivatives(t, values)
    dense = np.linspace(t[0], t[-1], 20_011)
    for order, (low, high) in enumerate(motion.bounds.derivative_limits[:3]):
        values = curves(dense, nu=order)
        assert (values >= low - ROUNDING).all()
        assert (values <= high + ROUNDING).all()
    with pytest.raises(feasid.FeasidError, match=r"too few.* limit of joint .* a higher rate"):
        motion.to_ros(tmp_path / "few.yaml", rate=0.5)
    assert not (tmp_path / "few.yaml").exists()


def test_the_way_to_the_start_of_a_motion_is_checked():
    """An arm in a plane: in the straight way from one side to the other its tip meets the base."""
    bodies = [
        feasid.Body("arm", None, motion=[0, 0, 1, 0, 0, 0],
                    limits=Limits(lower=-3, upper=3, velocity=1.0)),
        feasid.Body("fore", "arm", position=[0.5, 0, 0], motion=[0, 0, 1, 0, 0, 0],
                    limits=Limits(lower=-3.1, upper=3.1, velocity=1.0)),
        feasid.Body("tip", "fore", position=[0.4, 0, 0], motion=[0, 0, 1, 0, 0, 0],
                    limits=Limits(lower=-1, upper=1, velocity=1.0)),
    ]  # fmt: skip
    robot = feasid.Robot(bodies)
    shapes = {"arm": [([-0.2, 0, 0], [0.4, 0, 0], 0.05)], "tip": [([0, 0, 0], [0.1, 0, 0], 0.05)]}
    motion = feasid.excite(
        robot, 4.0, harmonics=1, starts=1, rounds=0, acceleration=4.0, capsules=shapes,
        friction=(), position={"fore": (1.0, 2.0)},
    )  # fmt: skip
    wide = replace(motion, bounds=resolve_bounds(robot, acceleration=4.0)[0])
    here = np.r_[motion.q[0, 0], -2.0, motion.q[0, 2]]
    assert wide.check_approach(np.r_[here[0] + 0.3, 1.2, here[2]]) > 0.0
    far = np.r_[motion.q[0, 0], 3.0, motion.q[0, 2]]
    with pytest.raises(feasid.FeasidError, match=r"breaks: distance between 'tip' and 'arm'"):
        wide.check_approach(far)
    with pytest.raises(feasid.FeasidError, match=r"breaks: .*acceleration limit.*or take .* s"):
        wide.check_approach(np.r_[here[0] + 0.3, 1.2, here[2]], 0.01)
    with pytest.raises(feasid.FeasidError, match="start"):
        wide.check_approach([0.0])
