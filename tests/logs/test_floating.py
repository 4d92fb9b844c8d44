"""The contract of a floating robot's log: what is read, and what is refused by name."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from floating import loaded
from robots import example_urdfs
from scipy.spatial.transform import Rotation

import feasid
from feasid.dynamics.contacts import frame_jacobian
from feasid.dynamics.floating import base_rows
from feasid.errors import InputError, LogError
from feasid.logs.floating import floating_log
from feasid.logs.mounts import Imu, Touch

RATE, CUTOFF = 500.0, 40.0
SMOOTHED = 2e-3  # relative: motions of 2 Hz through filters and differences at 500 Hz
LEVER = (0.03, -0.02, 0.05)
FOOT = Touch("FL_LOWER_LEG", (0.0, 0.0, -0.16))


@cache
def example():
    """A smooth motion with one contact: robot, log and the true generalised forces."""
    robot, _ = loaded("solo12")
    t = np.arange(1500) / RATE
    rng = np.random.default_rng(0)
    phases, rates = rng.uniform(0, 6, (2, 24))
    wave = np.sin(np.outer(t, 4 + rates) + phases)
    q = 0.5 * wave[:, :12]
    turn = Rotation.from_rotvec(0.4 * wave[:, 12:15]).as_matrix()
    place, force = 0.1 * wave[:, 15:18], 5 * wave[:, 18:21]
    d = lambda x: np.gradient(x, 1 / RATE, axis=0)  # noqa: E731
    cross = np.swapaxes(turn, 1, 2) @ d(turn)
    omega = np.stack([cross[:, 2, 1], cross[:, 0, 2], cross[:, 1, 0]], 1)
    push = np.einsum("nji,nj->ni", turn, d(d(place)))
    motion = feasid.floating_motion(
        robot,
        (q, d(q), d(d(q))),
        rotation=turn,
        position=place,
        twist=np.hstack([omega, np.einsum("nji,nj->ni", turn, d(place))]),
        acceleration=np.hstack([d(omega), push]),
    )
    tau = feasid.inverse_dynamics(robot, *motion)
    lever = np.array(LEVER)
    felt = push + np.cross(d(omega), lever) + np.cross(omega, np.cross(omega, lever))
    felt -= np.einsum("nji,j->ni", turn, robot.gravity)
    pushed = np.einsum(
        "nij,ni->nj", frame_jacobian(robot, motion.q, FOOT.body, FOOT.position)[:, 3:], force
    )
    quaternion = Rotation.from_matrix(turn).as_quat()
    columns = {"t": t}
    for k, joint in enumerate(robot.joints[1:]):
        columns |= {f"q_{joint}": q[:, k], f"tau_{joint}": (tau - pushed)[:, 6 + k]}
    for k, axis in enumerate("xyz"):
        columns |= {f"gyro_{axis}": omega[:, k], f"acc_{axis}": felt[:, k]}
        columns |= {f"base_{axis}": place[:, k], f"force_foot_{axis}": force[:, k]}
    columns |= {f"base_q{a}": quaternion[:, k] for k, a in enumerate("xyzw")}
    return robot, pd.DataFrame(columns), tau


@pytest.mark.parametrize("imu", [None, Imu("base_link", position=LEVER)], ids=["pose", "imu"])
def test_the_log_says_what_moved_it(imu):
    """Joint rows of Y delta are what was applied, whichever way the base is measured."""
    robot, df, _ = example()
    said = floating_log(df, robot, imu=imu, contacts={"foot": FOOT}, cutoff=CUTOFF)
    joints = np.setdiff1d(np.arange(robot.dof), np.arange(robot.dof)[base_rows(robot)])
    torque = feasid.inverse_dynamics(robot, *said.motion)[:, joints]
    off = torque - said.forces[:, joints]
    assert np.linalg.norm(off) < SMOOTHED * np.linalg.norm(torque)


@pytest.mark.parametrize("imu", [None, Imu("base_link")], ids=["pose", "imu"])
def test_forces_may_be_in_the_bases_axes(imu):
    robot, df, _ = example()
    turn = Rotation.from_quat(df[[f"base_q{a}" for a in "xyzw"]]).as_matrix()
    names = [f"force_foot_{a}" for a in "xyz"]
    turned = np.einsum("nji,nj->ni", turn, df[names].to_numpy())
    other = df.assign(**dict(zip(names, turned.T, strict=True)))
    in_base = {"foot": Touch(FOOT.body, FOOT.position, axes="base")}
    world = floating_log(df, robot, imu=imu, contacts={"foot": FOOT}, cutoff=CUTOFF)
    base = floating_log(other, robot, imu=imu, contacts=in_base, cutoff=CUTOFF)
    scale = np.abs(world.contacts).max()
    np.testing.assert_allclose(base.contacts, world.contacts, atol=SMOOTHED * scale)


def test_runs_are_kept_apart():
    robot, df, _ = example()
    half = len(df) // 2
    runs = df.assign(run=np.arange(len(df)) // half, t=df["t"] % (half / RATE))
    one = floating_log(df, robot, imu=Imu("base_link"), contacts={"foot": FOOT}, cutoff=CUTOFF)
    two = floating_log(runs, robot, imu=Imu("base_link"), contacts={"foot": FOOT}, cutoff=CUTOFF)
    assert len(one.forces) - len(two.forces) == pytest.approx(2 * RATE / CUTOFF, abs=2)


def test_the_cutoff_is_found():
    robot, df, _ = example()
    said = floating_log(df, robot, imu=Imu("base_link"), contacts={"foot": FOOT})
    assert 4 < said.cutoff < RATE / 2


def refused(message, kind=LogError, drop=(), change=None, robot=None, **options):
    arm, df, _ = example()
    df = df.drop(columns=list(drop)).assign(**(change or {}))
    options = {"imu": Imu("base_link"), "contacts": {"foot": FOOT}, "cutoff": CUTOFF} | options
    with pytest.raises(kind, match=message):
        floating_log(df, robot or arm, **options)


def test_what_is_wrong_is_named():
    fixed = feasid.Robot.from_dh([(0, 1, 0, 0)])
    refused(r"the base of robot .* is fixed", InputError, robot=fixed)
    refused(
        "the IMU is on 'base_lin', which is no link of the base", InputError, imu=Imu("base_lin")
    )
    refused("forces of a contact 'foot', but not where it acts", contacts={})
    refused("has no body 'FL_FEET'", InputError, contacts={"foot": Touch("FL_FEET")})
    refused("no column 'gyro_y'", drop=["gyro_y"])
    refused("no column 'base_qw'", drop=["base_qw"])
    refused("no column 'force_foot_z'", drop=["force_foot_z"])
    refused("column 'acc_x' is missing or not finite in row 0", change={"acc_x": np.nan})
    refused("quaternion.0. has norm", InputError, change={"base_qw": 3.0})
    refused("no run is longer than three periods", cutoff=0.5)


def test_a_fit_names_what_is_wrong():
    robot, df, _ = example()
    fixed = feasid.load_robot(next(p for p in example_urdfs() if p.stem == "solo12"))
    imu, contacts = Imu("base_link"), {"foot": FOOT}
    with pytest.raises(LogError, match=r"says how a base moves .*is fixed.*floating=True"):
        feasid.fit(df, fixed)
    joints = df.filter(regex="^(t$|q_|tau_)")
    with pytest.raises(InputError, match="imu is for the log of a robot with a floating base"):
        feasid.fit(joints, fixed, imu=imu)
    with pytest.raises(LogError, match="no column 'base_x'"):
        feasid.fit(joints, robot)
    with pytest.raises(LogError, match="a contact 'foot', but not where it acts"):
        feasid.fit(df, robot, imu=imu)
    with pytest.raises(InputError, match=r"IMU is on 'base_lnk'.*did you mean 'base_link'"):
        feasid.fit(df, robot, imu=Imu("base_lnk"), contacts=contacts)
    with pytest.raises(InputError, match=r"quaternion.0. has norm 3"):
        feasid.fit(df.assign(base_qw=3.0), robot, imu=imu, contacts=contacts)
    with pytest.raises(InputError, match="an IMU is a mapping of link, rotation, position"):
        feasid.fit(df, robot, imu={"link": "base_link", "place": 3}, contacts=contacts)
    with pytest.raises(InputError, match="a Touch, or a mapping with its body"):
        feasid.fit(df, robot, imu=imu, contacts={"foot": {"position": (0, 0, 0)}})
    with pytest.raises(InputError, match="delay has no effect on the log of a floating robot"):
        feasid.fit(df, robot, imu=imu, contacts=contacts, delay=0.1)
