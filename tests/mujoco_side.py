"""Motions and torques of our robots in MuJoCo's coordinates, for comparison with `mj_inverse`."""

from __future__ import annotations

import mujoco
import numpy as np

from feasid.robot.rotations import exponential

ONLY_FRICTIONLOSS = (
    mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_LIMIT
    | mujoco.mjtDisableBit.mjDSBL_EQUALITY
)
"""Constraints off, but for dry friction."""


def inverse(model, robot, q, dq, ddq):
    """Torques of `mj_inverse` in our coordinates; None when dry friction is in its soft zone."""
    data = mujoco.MjData(model)
    for i, body in enumerate(robot.bodies):
        rows = robot.rows[i]
        joint = model.joint(body.joint)
        at, first = int(joint.qposadr[0]), int(joint.dofadr[0])
        if body.dof == 1:
            data.qpos[at] = q[rows][0]
            data.qvel[first], data.qacc[first] = dq[rows][0], ddq[rows][0]
        elif body.dof == 3:
            turn = exponential(np.r_[q[rows], 0, 0, 0])[0]
            mujoco.mju_mat2Quat(data.qpos[at : at + 4], turn.ravel())
            data.qvel[first : first + 3], data.qacc[first : first + 3] = dq[rows], ddq[rows]
        else:
            turn, shift = exponential(q[rows])
            rotation, place = body.rotation @ turn, body.position + body.rotation @ shift
            data.qpos[at : at + 3] = place
            mujoco.mju_mat2Quat(data.qpos[at + 3 : at + 7], rotation.ravel())
            (w, v), (dw, dv) = np.split(dq[rows], 2), np.split(ddq[rows], 2)
            data.qvel[first : first + 6] = np.r_[rotation @ v, w]
            data.qacc[first : first + 6] = np.r_[rotation @ (dv + np.cross(w, v)), dw]
    mujoco.mj_inverse(model, data)
    loss = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF
    slipping = (
        mujoco.mjtConstraintState.mjCNSTRSTATE_LINEARNEG,
        mujoco.mjtConstraintState.mjCNSTRSTATE_LINEARPOS,
    )
    if not np.isin(data.efc_state[: data.nefc][loss], slipping).all():
        return None
    out = np.zeros(robot.dof)
    for i, body in enumerate(robot.bodies):
        rows = robot.rows[i]
        first = int(model.joint(body.joint).dofadr[0])
        force = data.qfrc_inverse[first : first + body.dof]
        if body.dof == 6:
            rotation = body.rotation @ exponential(q[rows])[0]
            force = np.r_[force[3:], rotation.T @ force[:3]]
        out[rows] = force
    return out
