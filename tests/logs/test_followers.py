"""Logs of coupled and closed mechanisms: independent joints suffice, the others are checked."""

import numpy as np
import pandas as pd
import pytest

import feasid
import feasid.robot.couplings
from benchmarks.closed import FIVE_BAR, GRIPPER
from feasid.core.errors import LogError
from feasid.logs.raw import read_raw
from feasid.robot.dynamics.kinematics import coordinate_map


def log_of(robot, count=300, amplitude=0.15):
    """Signals of all joints of a motion, and torques of the independent ones."""
    rng = np.random.default_rng(0)
    t = np.arange(count) / 100
    home = np.zeros(robot.dof)
    if robot.closure is not None:
        home = robot.closure.closed_configuration[robot.independent]
    rate = rng.uniform(2, 6, robot.dof)
    s = home + amplitude * np.sin(np.outer(t, rate))
    ds, dds = amplitude * rate * np.cos(np.outer(t, rate)), -(s - home) * rate**2
    tau = feasid.inverse_dynamics(robot, s, ds, dds)
    columns = {"t": t}
    for k, joint in enumerate(robot.coordinates):
        columns |= {f"q_{joint}": s[:, k], f"dq_{joint}": ds[:, k]}
        columns |= {f"ddq_{joint}": dds[:, k], f"tau_{joint}": tau[:, k]}
    q = coordinate_map(robot).motion(s.T, ds.T, dds.T)[0]
    others = {j: q[k] for k, j in enumerate(robot.joints) if j not in robot.coordinates}
    return pd.DataFrame(columns), others


@pytest.fixture(params=[GRIPPER, FIVE_BAR], ids=["gripper", "five-bar"])
def robot(request):
    return feasid.load_robot(request.param)


def test_independent_joints_suffice_and_all_of_them_agree(robot):
    log, others = log_of(robot)
    alone = feasid.reduce(log, robot)
    whole = log.assign(**{f"q_{joint}": q + 2 * np.pi for joint, q in others.items()})
    reduced = feasid.reduce(whole, robot)
    np.testing.assert_array_equal(reduced.triangles[0], alone.triangles[0])
    assert any("joints that follow others agree" in str(note) for note in reduced.notes)


def test_a_follower_that_disagrees_is_named(robot):
    log, others = log_of(robot)
    joint = next(iter(others))
    with pytest.raises(LogError, match=f"'{joint}' is not where the joints that it follows"):
        feasid.reduce(log.assign(**{f"q_{joint}": -others[joint] + 0.3}), robot)


def test_torques_of_followers_act_on_what_they_follow():
    robot = feasid.load_robot(GRIPPER)
    log, _ = log_of(robot)
    share = 0.3 * log["tau_drive"]
    split = log.assign(tau_drive=log["tau_drive"] - share, tau_mirror=-share)
    ours, theirs = (feasid.reduce(x, robot).triangle()[1] for x in (split, log))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    with pytest.raises(LogError, match="'tip' is passive in a closed loop"):
        feasid.reduce(log.assign(tau_tip=1.0), robot)
    assert feasid.reduce(log.assign(tau_tip=0.0), robot).samples == len(log)


@pytest.mark.parametrize("shift", [0.0, 2 * np.pi, 0.1])
def test_a_joint_that_follows_with_an_offset(shift):
    """``b = 2 a + 0.5`` is compared with its column, whole turns aside."""
    bodies = (feasid.Body("a", None), feasid.Body("b", "a"))
    robot = feasid.Robot(bodies, couplings=(feasid.robot.couplings.Coupling("b", {"a": 2.0}, 0.5),))
    t = np.arange(200) / 100
    a = 0.3 * np.sin(3 * t)
    log = pd.DataFrame({"t": t, "q_a": a, "q_b": 2 * a + 0.5 + shift, "tau_a": 0.0, "tau_b": a})
    if shift == 0.1:
        words = r"joint 'b' is not where .*: at .* in row .*, 0\.1 off on average"
        with pytest.raises(LogError, match=words) as error:
            read_raw(log, robot)
        assert error.value.data["joint"] == "b"
        return
    found = read_raw(log, robot)
    assert "joints that follow others agree with the log to (rms): b (" in "".join(found.notes)
    np.testing.assert_allclose(found.values["tau"][:, 0], 2 * a)
