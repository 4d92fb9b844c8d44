"""The contract of a floating robot's log: what is read, and what is refused by name."""

import numpy as np
import pytest
from arms import path_of
from floating import FOOT, LEVER, RATE, floating_log, smooth_log
from scipy.spatial.transform import Rotation

import feasid
from feasid.core.errors import InputError, LogError
from feasid.logs.floating import ContactSensor, Imu
from feasid.robot.dynamics.floating import base_index

CUTOFF = 40.0
SMOOTHED = 2e-3  # relative: motions of 2 Hz through filters and differences at 500 Hz


@pytest.mark.parametrize("imu", [None, Imu("base_link", position=LEVER)], ids=["pose", "imu"])
def test_the_log_says_what_moved_it(imu):
    """Joint rows of Y delta are what was applied, whichever way the base is measured."""
    robot, df, _ = smooth_log()
    said = floating_log(df, robot, imu=imu, contacts={"foot": FOOT}, cutoff=CUTOFF)
    joints = np.setdiff1d(np.arange(robot.dof), np.arange(robot.dof)[robot.rows[base_index(robot)]])
    torque = feasid.inverse_dynamics(robot, *said.motion)[:, joints]
    off = torque - said.forces[:, joints]
    assert np.linalg.norm(off) < SMOOTHED * np.linalg.norm(torque)


@pytest.mark.parametrize("imu", [None, Imu("base_link")], ids=["pose", "imu"])
def test_forces_may_be_in_the_bases_axes(imu):
    robot, df, _ = smooth_log()
    turn = Rotation.from_quat(df[[f"base_q{a}" for a in "xyzw"]]).as_matrix()
    names = [f"force_foot_{a}" for a in "xyz"]
    turned = np.einsum("nji,nj->ni", turn, df[names].to_numpy())
    other = df.assign(**dict(zip(names, turned.T, strict=True)))
    in_base = {"foot": ContactSensor(FOOT.body, FOOT.position, axes="base")}
    world = floating_log(df, robot, imu=imu, contacts={"foot": FOOT}, cutoff=CUTOFF)
    base = floating_log(other, robot, imu=imu, contacts=in_base, cutoff=CUTOFF)
    scale = np.abs(world.contacts).max()
    np.testing.assert_allclose(base.contacts, world.contacts, atol=SMOOTHED * scale)


def test_runs_are_kept_apart():
    robot, df, _ = smooth_log()
    half = len(df) // 2
    runs = df.assign(run=np.arange(len(df)) // half, t=df["t"] % (half / RATE))
    one = floating_log(df, robot, imu=Imu("base_link"), contacts={"foot": FOOT}, cutoff=CUTOFF)
    two = floating_log(runs, robot, imu=Imu("base_link"), contacts={"foot": FOOT}, cutoff=CUTOFF)
    assert len(one.forces) - len(two.forces) == pytest.approx(2 * RATE / CUTOFF, abs=2)


def test_the_cutoff_is_found():
    robot, df, _ = smooth_log()
    said = floating_log(df, robot, imu=Imu("base_link"), contacts={"foot": FOOT})
    assert 4 < said.cutoff < RATE / 2


def refused(message, kind=LogError, drop=(), change=None, robot=None, **options):
    arm, df, _ = smooth_log()
    df = df.drop(columns=list(drop)).assign(**(change or {}))
    options = {"imu": Imu("base_link"), "contacts": {"foot": FOOT}, "cutoff": CUTOFF} | options
    with pytest.raises(kind, match=message):
        floating_log(df, robot or arm, **options)


def test_what_is_wrong_is_named():
    fixed = feasid.Robot.from_dh([(0, 1, 0, 0)])
    refused(r"the base of robot .* is fixed", robot=fixed)
    misspelt = r"the IMU is on 'base_lnk', which is no link of the base.*did you mean 'base_link'"
    refused(misspelt, InputError, imu=Imu("base_lnk"))
    refused(r"has the contact foot, but not where .*contacts={'foot': \.\.\.}", contacts={})
    feet = {f"force_FL_{a}": 0.0 for a in "xyz"}
    refused("'FL': 'FL_FOOT'", contacts={}, change=feet)
    feet = {"foot": ContactSensor("FL_FEET")}
    refused("no moving body or link 'FL_FEET'", InputError, contacts=feet)
    refused("no column 'gyro_y'", drop=["gyro_y"])
    refused("no column 'base_qw'", drop=["base_qw"])
    refused("no column 'force_foot_z'", drop=["force_foot_z"])
    refused("column 'acc_x' is missing or not finite in row 0", change={"acc_x": np.nan})
    refused("quaternion.0. has norm", InputError, change={"base_qw": 3.0})
    refused("no run is longer than three periods", cutoff=0.5)


def test_a_fit_names_what_is_wrong():
    robot, df, _ = smooth_log()
    fixed = feasid.load_robot(path_of("solo12"))
    imu, contacts = Imu("base_link"), {"foot": FOOT}
    with pytest.raises(LogError, match=r"contains the motion of a base .*is fixed.*floating=True"):
        feasid.fit(df, fixed)
    joints = df.filter(regex="^(t$|q_|tau_)")
    with pytest.raises(LogError, match="no column 'base_x'"):
        feasid.fit(joints, robot)
    with pytest.raises(InputError, match="an IMU is a mapping of link, rotation, position"):
        feasid.fit(df, robot, imu={"link": "base_link", "place": 3}, contacts=contacts)
    words = "a link's name, a ContactSensor, or a mapping with its body"
    with pytest.raises(InputError, match=words):
        feasid.fit(df, robot, imu=imu, contacts={"foot": {"position": (0, 0, 0)}})


@pytest.mark.parametrize("column", ["q_FL_HAA", "base_qx", "acc_x"])
def test_rows_with_unusable_cells_are_refused_by_name_or_left_out(column):
    """What is left is to the last bit the log whose rows were missing from the start."""
    robot, df, _ = smooth_log()
    wrong, rows = df.copy(), [300, 301]
    wrong.loc[rows, column] = 1e60 if column == "acc_x" else np.nan
    name, value = ("corrupt", "drop") if column == "acc_x" else ("nan", "drop-segments")
    given = {"imu": Imu("base_link"), "contacts": {"foot": FOOT}, "cutoff": 20.0}
    with pytest.raises(LogError, match=rf"column '{column}' is .* in row 300: {name}='{value}'"):
        feasid.reduce(wrong, robot, **given)
    left_out = feasid.reduce(wrong, robot, **given, **{name: value}).triangles
    missing = feasid.reduce(df.drop(index=rows), robot, **given).triangles
    for one, other in zip(left_out, missing, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("imu", [None, Imu("base_link")], ids=["pose", "imu"])
def test_what_moved_the_base_and_touched_is_told(imu):
    robot, df, _ = smooth_log()
    flagged = df.assign(contact_foot=1.0)
    for log, spare in ((df, False), (flagged, True)):
        given = {"contacts": {"foot": FOOT}, "cutoff": CUTOFF} | ({"imu": imu} if imu else {})
        notes = [str(n) for n in feasid.reduce(log, robot, **given).notes]
        source = "its pose" if imu is None else "an IMU on base_link"
        assert f"the base's motion: from {source}" in notes
        assert "contacts: foot" in notes
        text = "forces of foot are in the log, so that columns contact_ are not used"
        assert (text in notes) == spare
