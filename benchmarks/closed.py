"""Closed mechanisms as MJCF, and what MuJoCo says of their constrained dynamics."""

import re

import mujoco
import numpy as np
from logs import log_frame

LINK = '<inertial pos="{x} {y} 0.01" mass="{m}" diaginertia="{a} {b} {c}"/>'


def link(x=0.1, y=0.02, m=1.0, size=0.01):
    return LINK.format(x=x, y=y, m=m, a=0.6 * size, b=size, c=1.2 * size)


def mjcf(bodies, equality, motors, gravity="0 -9.81 0"):
    drives = "".join(f'<motor joint="{j}"/>' for j in motors)
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{gravity}"/>'
        f"<worldbody>{bodies}</worldbody><equality>{equality}</equality>"
        f"<actuator>{drives}</actuator></mujoco>"
    )


FIVE_BAR = mjcf(
    f"""
    <body name="a1"><joint name="m1"/>{link(0.12, 0.01, 0.8)}
      <body name="a2" pos="0.1 0.25 0"><joint name="p1"/>{link(0.1, 0.02, 0.5)}</body></body>
    <body name="b1" pos="0.3 0 0"><joint name="m2"/>{link(-0.02, 0.11, 0.9)}
      <body name="b2" pos="0.08 0.24 0"><joint name="p2"/>{link(-0.1, 0.05, 0.4)}</body></body>
    """,
    '<connect body1="a2" body2="b2" anchor="0.14 0.2 0"/>',
    ("m1", "m2"),
)

GRIPPER = mjcf(
    f"""
    <body name="palm"><joint name="wrist" axis="0 0 1"/>{link(0.05, 0.0, 1.2)}
      <body name="crank" pos="0.05 0.04 0"><joint name="drive"/>{link(0.04, 0.01, 0.2, 4e-4)}
        <body name="finger" pos="0.08 0.03 0"><joint name="tip"/>{link(0.03, 0.0, 0.15, 3e-4)}
        </body></body>
      <body name="rocker" pos="0.10 0.02 0"><joint name="follow"/>{link(0.04, 0.0, 0.1, 2e-4)}
      </body>
      <body name="left" pos="0.05 -0.04 0"><joint name="mirror"/>{link(0.06, 0.0, 0.25, 5e-4)}
      </body></body>
    """,
    '<connect body1="finger" body2="rocker" anchor="0.05 -0.02 0"/>'
    '<joint joint1="mirror" joint2="drive" polycoef="0 -1 0 0 0"/>',
    ("wrist", "drive"),
    "0 0 -9.81",
)

WRIST = mjcf(
    f"""
    <body name="arm"><joint name="roll" axis="0 0 1"/>{link(0.02, 0.01, 2.0, 0.02)}
      <body name="left" pos="0 0.1 0.2"><joint name="m1" axis="0 1 0"/>{link(0.0, 0.01, 0.3, 1e-3)}
      </body>
      <body name="right" pos="0 -0.1 0.2"><joint name="m2" axis="0 1 0"/>
        {link(0.01, 0.0, 0.35, 1e-3)}</body>
      <body name="pitch" pos="0 0 0.2"><joint name="pitch" axis="0 1 0"/>{link(0, 0.01, 0.4, 2e-3)}
        <body name="yaw"><joint name="yaw" axis="0 0 1"/>{link(0.06, 0.01, 0.6, 3e-3)}</body></body>
    </body>
    """,
    '<joint joint1="pitch" joint2="m1" polycoef="0 0.5 0 0 0"/>'
    '<joint joint1="yaw" joint2="m2" polycoef="0.1 -0.5 0 0 0"/>',
    ("roll", "m1", "m2"),
    "0 0 -9.81",
)

PALLETISER = mjcf(
    f"""
    <body name="column"><joint name="m0" axis="0 0 1"/>{link(0.03, 0.02, 5.0, 0.1)}
      <body name="upper" pos="0.1 0 0.3"><joint name="m1" axis="0 1 0"/>{link(0.02, 0.0, 4.0, 0.08)}
        <body name="fore" pos="0.05 0 0.5"><joint name="elbow" axis="0 1 0"/>
          {link(0.25, 0.01, 3.0, 0.05)}
          <body name="hand" pos="0.55 0 0.05"><joint name="tilt" axis="0 1 0"/>
            {link(0.05, 0.01, 1.0, 0.01)}</body></body></body>
      <body name="crank" pos="0.1 0 0.3"><joint name="m2" axis="0 1 0"/>
        {link(-0.08, 0.0, 1.0, 0.01)}
        <body name="rod" pos="-0.15 0 0.02"><joint name="rod" axis="0 1 0"/>
          {link(0.02, 0.0, 0.8, 0.02)}</body></body>
      <body name="link1" pos="-0.02 0 0.35"><joint name="link1" axis="0 1 0"/>
        {link(0.02, 0.0, 0.7, 0.02)}
        <body name="plate" pos="0.05 0 0.5"><joint name="plate" axis="0 1 0"/>
          {link(0.08, 0.0, 0.5, 0.005)}
          <body name="link2" pos="0.14 0 0.1"><joint name="link2" axis="0 1 0"/>
            {link(0.25, 0.0, 0.6, 0.02)}</body></body></body>
    </body>
    """,
    '<connect body1="rod" body2="fore" anchor="0.05 0 0.5"/>'
    '<connect body1="plate" body2="fore" anchor="0.12 0 -0.05"/>'
    '<connect body1="link2" body2="hand" anchor="0.55 0 0.05"/>',
    ("m0", "m1", "m2"),
    "0 0 -9.81",
)

LEG = mjcf(
    f"""
    <body name="hip"><joint name="m1" axis="1 0 0"/>{link(0.02, 0.01, 1.8, 0.01)}
      <body name="thigh" pos="0.05 0 0"><joint name="m2" axis="0 1 0"/>{link(0.02, 0.01, 5.0, 0.08)}
        <body name="knee" pos="0 0 -0.3"><joint name="m3" axis="0 1 0"/>{link(0.03, 0.0, 0.8, 4e-3)}
          <body name="shin" pos="0.06 0 -0.05">{link(0.1, 0.0, 0.6, 0.02)}
            <body name="tarsus" pos="0.3 0 -0.2"><joint name="ankle" axis="0 1 0"/>
              {link(-0.1, 0.0, 0.8, 0.02)}</body></body></body>
        <body name="rod" pos="-0.05 0.03 0.05"><joint name="rx" axis="0 1 0"/>
          <joint name="rz" axis="0 0 1"/>{link(0.15, 0.0, 0.2, 4e-3)}</body></body></body>
    """,
    '<connect body1="rod" body2="tarsus" anchor="0.32 -0.02 -0.7"/>',
    ("m1", "m2", "m3"),
    "0 0 -9.81",
)

SLIDER_CRANK = mjcf(
    f"""
    <body name="crank"><joint name="m1"/>{link(0.05, 0.01, 0.7)}
      <body name="rod" pos="0.1 0.02 0"><joint name="p1"/>{link(0.12, 0.02, 0.5)}</body></body>
    <body name="slider" pos="0.3 0.05 0"><joint name="s1" type="slide" axis="1 0.2 0"/>
      {link(0.02, 0.01, 0.9)}</body>
    """,
    '<connect body1="rod" body2="slider" anchor="0.22 0.04 0"/>',
    ("m1",),
)

WELDED = mjcf(
    f"""
    <body name="a1"><joint name="m1"/>{link(0.12, 0.01, 0.8)}
      <body name="a2" pos="0.1 0.25 0"><joint name="p1"/>{link(0.1, 0.02, 0.5)}
        <body name="a3" pos="0.12 0.18 0"><joint name="p2"/>{link(0.03, 0.01, 0.3)}</body></body>
    </body>
    <body name="b1" pos="0.3 0 0"><joint name="p3"/>{link(-0.02, 0.11, 0.9)}</body>
    """,
    '<weld body1="b1" body2="a3" relpose="-0.06 0.45 0 0.9800666 0 0 0.1986693" '
    'anchor="0.05 0.02 0"/>',
    ("m1",),
)

GEARED = re.sub(
    "<weld .*?/>",
    '<connect body1="a3" body2="b1" anchor="0.05 0.02 0"/>'
    '<joint joint1="p2" joint2="p1" polycoef="0.3 0.5 0 0 0"/>',
    WELDED,
)

MECHANISMS = {
    "parallel gripper": GRIPPER, "coupled wrist": WRIST, "palletising arm": PALLETISER,
    "five-bar": FIVE_BAR, "leg": LEG,
}  # fmt: skip


def open_torques(model, data, q, dq, ddq):
    """Torques of the open tree, one sample: MuJoCo's inverse dynamics without constraints."""
    data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
    mujoco.mj_inverse(model, data)
    return data.qfrc_inverse.copy()


def unconstrained(text):
    """The compiled model with its equalities switched off in the inverse dynamics."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)


def constraint_jacobian(text, q):
    """MuJoCo's residual and Jacobian of all equalities at q."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    return data.efc_pos[: data.ne].copy(), data.efc_J.reshape(-1, model.nv)[: data.ne].copy()


def parameters_of(rng, count):
    """Random consistent bodies as (mass, com, inertia about the com)."""
    mass = rng.uniform(0.5, 2.0, count)
    com = rng.uniform(-0.2, 0.2, (count, 3))
    turn = np.linalg.qr(rng.standard_normal((count, 3, 3)))[0]
    second = rng.uniform(0.005, 0.02, (count, 3))
    cov = np.einsum("nij,nj,nkj->nik", turn, second, turn)
    inertia = np.trace(cov, axis1=1, axis2=2)[:, None, None] * np.eye(3) - cov
    return mass, com, inertia


def set_parameters(model, mass, com, inertia):
    """Give the compiled model's bodies (the world left out) these parameters."""
    for k in range(len(mass)):
        values, axes = np.linalg.eigh(inertia[k])
        axes = axes * np.sign(np.linalg.det(axes))
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(axes).ravel())
        model.body_mass[k + 1], model.body_ipos[k + 1] = mass[k], com[k]
        model.body_inertia[k + 1], model.body_iquat[k + 1] = values, quaternion
    mujoco.mj_setConst(model, mujoco.MjData(model))


def ten(mass, com, inertia):
    """Ten parameters per body."""
    from feasid.robot.inertia import from_mass_com_inertia

    return np.stack([from_mass_com_inertia(*x) for x in zip(mass, com, inertia, strict=True)])


def tree_regressor(text, q, dq, ddq, seed=0):
    """MuJoCo's open torques as a matrix of the parameters of its bodies, (N, nv, 10 bodies)."""
    return regressor_of(*unconstrained(text), q, dq, ddq, seed)


def regressor_of(model, data, q, dq, ddq, seed=0):
    """The same of a compiled model whose torques depend on its bodies alone."""
    model.body_simple[:] = model.body_sameframe[:] = model.dof_simplenum[:] = 0  # no short cuts
    bodies = model.nbody - 1
    rng = np.random.default_rng(seed)
    sets = [parameters_of(rng, bodies) for _ in range(10 * bodies + 10)]
    known = np.stack([ten(*s).ravel() for s in sets], axis=1)
    torques = []
    for values in sets:
        set_parameters(model, *values)
        samples = zip(q.T, dq.T, ddq.T, strict=True)
        torques.append([open_torques(model, data, *s) for s in samples])
    return np.einsum("knv,kp->nvp", np.array(torques), np.linalg.pinv(known))


def directions(text, q, active):
    """dq/ds of the independent joints `active`, from MuJoCo's constraint Jacobian."""
    model = mujoco.MjModel.from_xml_string(text)
    place = [int(model.joint(j).dofadr[0]) for j in active]
    return _directions(constraint_jacobian(text, q)[1], place)


def _directions(jacobian, place):
    passive = np.setdiff1d(np.arange(jacobian.shape[1]), place)
    out = np.zeros((jacobian.shape[1], len(place)))
    out[place, np.arange(len(place))] = 1.0
    solved = np.linalg.lstsq(jacobian[:, passive], jacobian[:, place], rcond=1e-8)[0]
    out[passive] = -solved
    return out


def full_inertia(model, data, out):
    """MuJoCo's mass matrix, shape (nv, nv), whichever arguments its function takes."""
    try:
        mujoco.mj_fullM(model, data, out)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, out, data.qM)


STIFF = ((2e-3, 1.0), 0.9999)
SOFT = ((0.02, 1.0), 0.95)
"""MuJoCo's solref and solimp of equalities: as stiff as the time step allows, and its defaults."""

ENCODER = 2 * np.pi / 2**16


def simulate(text, robot, seed, seconds=4.0, amplitude=0.25, noise=0.02, bonds=STIFF):
    """A log of MuJoCo's forward simulation: motors track sines, torques are measured there."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = 5e-4
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.eq_solref[:] = bonds[0]
    model.eq_solimp[:, :2] = bonds[1]
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    joints = robot.coordinates
    start = data.qpos.copy()
    place = [int(model.joint(j).qposadr[0]) for j in joints]
    motor = {model.joint(int(model.actuator_trnid[k, 0])).name: k for k in range(model.nu)}
    size = amplitude * rng.uniform(0.5, 1.0, (3, len(joints))) / np.arange(1, 4)[:, None]
    rate = 2 * np.pi * rng.uniform(0.3, 0.7, (3, len(joints))) * np.arange(1, 4)[:, None]
    inertia, rows = np.empty((model.nv, model.nv)), []
    for k in range(int(seconds / model.opt.timestep)):
        t = data.time
        wanted = start[place] + (size * (np.cos(rate * t) - 1)).sum(0)
        speed = -(size * rate * np.sin(rate * t)).sum(0)
        off, slow = wanted - data.qpos[place], speed - data.qvel[place]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        follow = _directions(data.efc_J.reshape(-1, model.nv)[: data.ne], place)
        full_inertia(model, data, inertia)
        reflected = follow.T @ inertia @ follow
        push = reflected @ (400.0 * off + 40.0 * slow) + follow.T @ data.qfrc_bias
        for joint, value in zip(joints, push, strict=True):
            data.ctrl[motor[joint]] = value
        mujoco.mj_forward(model, data)
        if k % 10 == 0 and t > 0.2:
            rows.append((t, data.qpos[place], data.qvel[place], data.qacc[place], push))
            rows[-1] = tuple(np.array(x) for x in rows[-1])
        mujoco.mj_Euler(model, data)
    t, q, dq, ddq, tau = (np.array(x) for x in zip(*rows, strict=True))
    tau = tau + noise * tau.std(axis=0) * rng.standard_normal(tau.shape)
    return log_frame(t, joints, q=q, dq=dq, ddq=ddq, tau=tau)


def from_encoders(log):
    """The log without velocities and accelerations, positions counted by encoders."""
    counted = log[[c for c in log if not c.startswith(("dq_", "ddq_"))]].copy()
    for column in [c for c in counted if c.startswith("q_")]:
        counted[column] = ENCODER * np.round(counted[column] / ENCODER)
    return counted
