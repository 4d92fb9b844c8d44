"""Contact Jacobians against Pinocchio, and forces that drop out."""

import numpy as np
import pytest
from floating import loaded, random_motion
from pinocchio_side import PinocchioModel

import feasid
from feasid.core.errors import InputError
from feasid.robot.dynamics.floating import (
    Contact,
    contact_free_projector,
    contact_torques,
    floating_motion,
    frame_jacobian,
)

EQUAL = 1e-10
FOOT, POINT = "FL_LOWER_LEG", (0.01, 0.02, -0.16)


def motion(seed=0):
    robot, path = loaded("solo12")
    return robot, path, floating_motion(robot, **random_motion(robot, seed))


def test_jacobian_is_pinocchios():
    robot, path, moved = motion()
    theirs = PinocchioModel(robot, path)
    pin, model = theirs.pin, theirs.model
    joint = robot.bodies[[b.name for b in robot.bodies].index(FOOT)].joint
    placement = pin.SE3(np.eye(3), np.array(POINT))
    frame = model.addFrame(pin.Frame("p", model.getJointId(joint), 0, placement, pin.OP_FRAME))
    data, axes = model.createData(), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for q, ours in zip(moved.q, frame_jacobian(robot, moved.q, FOOT, POINT), strict=True):
        at = theirs.configuration(q)
        pin.framesForwardKinematics(model, data, at)
        full = pin.computeFrameJacobian(model, data, at, frame, axes)
        np.testing.assert_allclose(ours, full[[3, 4, 5, 0, 1, 2]][:, theirs.rows], atol=EQUAL)


def test_known_forces_are_added_and_unknown_ones_drop_out():
    robot, _, moved = motion(3)
    rng = np.random.default_rng(0)
    count = len(moved.q)
    force, moment = rng.normal(size=(2, count, 3))
    contact = Contact(FOOT, POINT, force)
    added = contact_torques(robot, moved.q, [contact])
    power = np.einsum("nj,nj->n", added, moved.dq)
    velocity = np.einsum("nij,nj->ni", frame_jacobian(robot, moved.q, FOOT, POINT), moved.dq)
    np.testing.assert_allclose(power, np.einsum("ni,ni->n", velocity[:, 3:], force))
    for p, row in zip(contact_free_projector(robot, moved.q, [contact]), added, strict=True):
        assert np.trace(p) == pytest.approx(robot.dof - 3)
        np.testing.assert_allclose(p @ p, p, atol=1e-12)
        np.testing.assert_allclose(p @ row, 0, atol=1e-12)
    both = contact_torques(robot, moved.q, [Contact(FOOT, POINT, force, moment)]) - added
    power = np.einsum("nj,nj->n", both, moved.dq)
    np.testing.assert_allclose(power, np.einsum("ni,ni->n", velocity[:, :3], moment))


def test_feet_on_the_ground_leave_the_parameters_visible():
    """All four feet touched by unknown forces: the other rows still tell torques apart."""
    robot, _, moved = motion(1)
    feet = [Contact(f"{leg}_LOWER_LEG", POINT) for leg in ("FL", "FR", "HL", "HR")]
    y = feasid.regressor(robot, *moved)
    tau = y @ robot.values
    forces = np.random.default_rng(2).normal(size=(4, len(y), 3))
    pushed = [Contact(f.body, f.position, g) for f, g in zip(feet, forces, strict=True)]
    applied = tau - contact_torques(robot, moved.q, pushed)
    free = contact_free_projector(robot, moved.q, feet)
    for p, rows, torque in zip(free, y, applied, strict=True):
        np.testing.assert_allclose(p @ rows @ robot.values, p @ torque, atol=1e-9)


def test_bad_contacts_are_named():
    robot, _, moved = motion()
    with pytest.raises(InputError, match="no moving body or link 'FL_LOWER_LEK'"):
        frame_jacobian(robot, moved.q, "FL_LOWER_LEK", POINT)
    with pytest.raises(InputError, match="neither force nor moment"):
        contact_torques(robot, moved.q, [Contact(FOOT)])
    with pytest.raises(InputError, match=f"the force on body '{FOOT}' must be finite"):
        contact_torques(robot, moved.q, [Contact(FOOT, POINT, np.ones((1, 3)))])
