"""Do written files simulate like the fit? Rollouts in MuJoCo, masses by other readers, stiction.

    python benchmarks/files.py [--only rollouts|masses|failures|creep] [--robots panda ...]
                               [--seeds 100 101] [--windows 24]

*Rollouts*: hidden arms of `benchmarks.worlds` (truth, noise and logs are MuJoCo's). Each log is
fitted; the fit's own numbers, the written MJCF as MuJoCo compiles it, the written URDF as it
compiles that, and the URDF with ``fit.actuators()`` are driven by the measured torques of the test
log from its noisy states for .3 s; files by these less the sensors' offsets, as `fit.write` says.
Printed are medians over windows of the rms of position errors over the joints, over that of the
fit's own numbers. With an offset of 10 % of the rms torque on the fitted log the drive is the true
torque, and ratios are over the rollouts of the fit of the same log without the offset; the truth's
own errors are printed beside, which come from the noise of the start alone.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import mujoco
import numpy as np
from scipy.signal import butter, sosfiltfilt

import feasid
from feasid import datasets

sys.path[:0] = [str(Path(__file__).parents[1])]
worlds = import_module("benchmarks.worlds")
simulation = import_module("benchmarks.worlds.simulation")
RATE, STEP = simulation.RATE, simulation.STEP

ROBOTS = ("panda", "ur5", "z1", "random")
HORIZON = 0.3
OFFSET = 0.1
LOGS = ("kuka_lwr4", "unitree_z1", "staubli_tx40", "kinova_gen3", "double_pendulum")
STARTED = 1.0
"""Seconds after which windows start, when the filter that gives states has settled."""


def settings(model):
    """The world's own integrator, without contacts and limits."""
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    return model


class Client:
    """A compiled model, rolled out under given torques."""

    def __init__(self, model, joints, friction=None, offset=0.0):
        self.model, self.rows = settings(model), simulation.joint_order(model, joints)
        self.friction, self.offset = friction, offset
        mujoco.mj_setConst(model, mujoco.MjData(model))

    def rollout(self, q, dq, tau):
        """Positions from a state, torques constant over a row; shape (rows + 1, joints)."""
        data, out = mujoco.MjData(self.model), [q]
        data.qpos[self.rows], data.qvel[self.rows] = q, dq
        for row in tau:
            for _ in range(round(1 / RATE / STEP)):
                if self.friction is not None:
                    limit = self.friction(data.qpos[self.rows], data.qvel[self.rows])
                    self.model.dof_frictionloss[self.rows] = limit
                data.qfrc_applied[self.rows] = row - self.offset
                mujoco.mj_step(self.model, data)
            out.append(data.qpos[self.rows].copy())
        return np.array(out)


def own_numbers(fit, description):
    """The fit's bodies put into MuJoCo's arrays, and its friction laws applied step by step."""
    robot, joints = fit.robot, fit.robot.joints
    model = simulation.compile_model(ET.fromstring(description))
    rows = simulation.joint_order(model, joints)
    for body in robot.bodies:
        i = int(model.jnt_bodyid[model.dof_jntid[rows[joints.index(body.joint)]]])
        mass, com = body.inertial[9], body.inertial[6:9] / body.inertial[9]
        xx, xy, xz, yy, yz, zz = body.inertial[:6]
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about = about - mass * (com @ com * np.eye(3) - np.outer(com, com))
        w, V = np.linalg.eigh(about)
        V[:, 2] *= np.sign(np.linalg.det(V))
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, V.ravel())
        model.body_mass[i], model.body_ipos[i] = mass, com
        model.body_inertia[i], model.body_iquat[i] = w, quat
    terms = {s: np.zeros(len(joints)) for s in ("Ia", "fv", "fc", "fo", "fs", "fl")}
    for k, drive in enumerate(robot.drives):
        for symbol, column in robot.drive_columns(k).items():
            terms[symbol][joints.index(next(iter(drive.coupling)))] = robot.values[column]
    model.dof_armature[rows], model.dof_damping[rows] = terms["Ia"], terms["fv"]
    model.dof_solref[rows], model.dof_solimp[rows, :2] = (0.002, 1.0), (0.999, 0.9999)
    loaded = copy.deepcopy(simulation.compile_model(ET.fromstring(description)))
    weighed = mujoco.MjData(loaded)

    def friction(q, dq):
        limit = terms["fc"] + terms["fs"] * np.sqrt(np.abs(dq))
        if terms["fl"].any():
            weighed.qpos[rows] = q
            weighed.qvel[:] = weighed.qacc[:] = 0
            mujoco.mj_inverse(loaded, weighed)
            limit = limit + terms["fl"] * np.abs(weighed.qfrc_inverse[rows])
        return limit

    return Client(model, joints, friction, terms["fo"])


def truth_client(world):
    """The truth."""
    physics, joints = world.truth.physics, world.truth.robot.joints
    model = simulation.compile_model(physics.root)
    rows = simulation.joint_order(model, joints)
    model.dof_armature[rows], model.dof_damping[rows] = physics.armature, physics.viscous
    model.dof_frictionloss[rows] = physics.coulomb
    return Client(model, joints)


def clients_of(fit, folder):
    """The written files as MuJoCo compiles them."""
    joints = fit.robot.joints
    xml, urdf = folder / "arm.xml", folder / "arm.urdf"
    fit.write(xml, overwrite=True, force=True)
    fit.write(urdf, overwrite=True, force=True)
    out = {"MJCF": Client(mujoco.MjModel.from_xml_path(str(xml)), joints)}
    out["URDF"] = Client(mujoco.MjModel.from_xml_path(str(urdf)), joints)
    model = mujoco.MjModel.from_xml_path(str(urdf))
    rows, table = simulation.joint_order(model, joints), fit.actuators()
    model.dof_armature[rows] = table["armature"]
    model.dof_damping[rows] = table["damping"]
    model.dof_frictionloss[rows] = table["frictionloss"]
    model.dof_solref[rows], model.dof_solimp[rows, :2] = (0.002, 1.0), (0.999, 0.9999)
    out["URDF + actuators"] = Client(model, joints)
    return out


def gravity_ratio(fit, world, path):
    """Error of the file's gravity torques in MuJoCo over the fit's own, against the truth's."""
    joints, physics = world.truth.robot.joints, world.truth.physics
    q = world.truth.test_motion.q[::200]
    still = np.zeros_like(q)
    true = physics.rigid_torque(q, still, still)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, rows = mujoco.MjData(model), simulation.joint_order(model, joints)
    seen = []
    for posture in q:
        data.qpos[rows] = posture
        mujoco.mj_inverse(model, data)
        seen.append((data.qfrc_inverse + data.qfrc_constraint)[rows].copy())
    ours = feasid.inverse_dynamics(fit.robot.without_joint_terms(), q, still, still)
    return np.linalg.norm(seen - true) / np.linalg.norm(ours - true)


def windows_of(world, count):
    """Noisy states of the test log, measured and true torques, and what happened."""
    motion, joints = world.truth.test_motion, world.truth.robot.joints
    frame = world.test_log
    q, tau = (frame[[f"{k}_{j}" for j in joints]].to_numpy() for k in ("q", "tau"))
    smooth = sosfiltfilt(butter(3, 30.0, fs=RATE, output="sos"), q, axis=0)
    dq = np.gradient(smooth, 1 / RATE, axis=0)
    rows = round(HORIZON * RATE)
    starts = np.linspace(STARTED * RATE, len(q) - STARTED * RATE - rows, count).astype(int)
    # A row's torque is the mean of the commands before and after it; between rows holds theirs.
    between = {"measured": tau, "true": motion.torque}
    held = {k: 0.5 * (v[:-1] + v[1:]) for k, v in between.items()}
    return [
        (
            smooth[s],
            dq[s],
            {k: v[s : s + rows] for k, v in held.items()},
            motion.q[s : s + rows + 1],
        )
        for s in starts
    ]


def rms(client, windows, drive, less=0.0):
    """Median over windows of the rms position error [mrad]; drive less what sensors add."""
    found = []
    for q, dq, tau, true in windows:
        off = client.rollout(q, dq, tau[drive] - less) - true
        found.append(1e3 * np.sqrt(np.mean(off**2)) if np.isfinite(off).all() else np.inf)
    return float(np.median(found))


def with_offset(world):
    """The log to fit with an offset of each torque sensor."""
    log = world.log.copy()
    for joint in world.truth.robot.joints:
        column = f"tau_{joint}"
        log[column] += OFFSET * np.sqrt(np.mean(log[column] ** 2))
    return log


COLUMNS = ("MJCF", "URDF", "URDF+", "fit/true", "gravity", "MJCF", "URDF+", "fit/true", "true")


def rollouts(robots, seeds, count):
    """Written files against the fit's own numbers, without and with offsets of sensors."""
    print("rollouts of .3 s: on measured torque over the fit's own numbers (MJCF, URDF, URDF with "
          "actuators),\nthe fit over the truth, gravity torques of the URDF over the fit's; with "
          "offsets on true torque over the fit\nwithout offsets (MJCF, URDF with actuators), that "
          "fit over the truth, the truth [mrad]")  # fmt: skip
    print(f"{'':>10} " + " ".join(f"{name:>8}" for name in COLUMNS))
    table = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for robot in robots:
            for seed in seeds:
                world = worlds.make_world(robot, seed=seed)
                windows = windows_of(world, count)
                fit = feasid.fit(world.log, world.robot)
                own = own_numbers(fit, world.description)
                first = rms(own, windows, "measured")
                files = clients_of(fit, folder)
                row = [rms(c, windows, "measured", less=own.offset) / first for c in files.values()]
                row += [first / rms(truth_client(world), windows, "measured")]
                row += [gravity_ratio(fit, world, folder / "arm.urdf")]
                own.offset = 0.0
                clean, floor = (rms(c, windows, "true") for c in (own, truth_client(world)))
                shifted = feasid.fit(with_offset(world), world.robot)
                files = clients_of(shifted, folder)
                row += [
                    rms(files[k], windows, "true") / clean for k in ("MJCF", "URDF + actuators")
                ]
                table.append([*row, clean / floor, floor])
                shown = " ".join(f"{x:8.3f}" for x in table[-1])
                print(f"{robot:>6} {seed} {shown}", flush=True)
    print(f"{'median':>10} " + " ".join(f"{x:8.3f}" for x in np.median(table, axis=0)))
    print(f"{'worst':>10} " + " ".join(f"{x:8.3f}" for x in np.max(table, axis=0)))


def numbers(element, key, default="0 0 0"):
    return np.array([float(x) for x in (element.get(key) or default).split()])


def masses():
    """Masses and centres of files by ElementTree, MuJoCo and Pinocchio against the fit's."""
    import pinocchio

    print("largest difference of moving bodies' masses and first moments from the fit's, relative")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for log in LOGS:
            df = datasets.load(log)
            fit = feasid.fit(df, diagnose=False, **df.attrs["options"])
            wanted = {b.joint: np.r_[b.inertial[9], b.inertial[6:9]] for b in fit.robot.bodies}
            scale = np.max([np.abs(v) for v in wanted.values()], axis=0).max()
            held = dict(fit.robot.source.reading.get("lock", {}))
            fit.write(folder / "a.xml", overwrite=True, force=True)
            export = fit.write(folder / "a.urdf", overwrite=True, force=True)
            root = ET.parse(folder / "a.xml").getroot()
            texts = 0.0
            for body in root.iter("body"):
                joint, inertial = body.find("joint"), body.find("inertial")
                mass, com = float(inertial.get("mass")), numbers(inertial, "pos")
                seen = np.r_[mass, mass * com]
                texts = max(texts, np.abs(seen - wanted[joint.get("name")]).max() / scale)
            model = mujoco.MjModel.from_xml_path(str(folder / "a.xml"))
            compiled = 0.0
            for joint, value in wanted.items():
                i = int(model.jnt_bodyid[model.joint(joint).id])
                seen = model.body_mass[i] * np.r_[1.0, model.body_ipos[i]]
                compiled = max(compiled, np.abs(seen - value).max() / scale)
            model = pinocchio.buildModelFromUrdf(str(folder / "a.urdf"))
            lock = [model.getJointId(j) for j in held if model.existJointName(j)]
            q = pinocchio.neutral(model)
            for joint, value in held.items():
                if model.existJointName(joint):
                    q[model.joints[model.getJointId(joint)].idx_q] = value
            if lock:
                model = pinocchio.buildReducedModel(model, lock, q)
            other = 0.0
            for joint, value in wanted.items():
                inertia = model.inertias[model.getJointId(joint)]
                seen = inertia.mass * np.r_[1.0, inertia.lever]
                other = max(other, np.abs(seen - value).max() / scale)
            total = export.errors.loc["all"]
            errors = ", ".join(f"{k} {100 * v:.2f} %" for k, v in total.items())
            print(f"{log:>16}: XML {texts:.1e}, MuJoCo {compiled:.1e}, Pinocchio {other:.1e}; "
                  f"URDF: {errors}", flush=True)  # fmt: skip


def failures(count=40):
    """Fits of short and poor logs of random arms, many with joint terms at zero, written."""
    failed = massless = zeros = 0
    with tempfile.TemporaryDirectory() as name:
        for k in range(count):
            world = worlds.make_world("random", seed=1000 + k // 4)
            rows = len(world.log)
            part = world.log.iloc[k % 4 * rows // 5 : (k % 4 + 1) * rows // 5]
            fit = feasid.fit(part, world.robot)
            terms = [c for i in range(len(fit.robot.drives))
                     for c in fit.robot.drive_columns(i).values()]  # fmt: skip
            zeros += int((np.abs(fit.robot.values[terms]) < 1e-9).any())
            for suffix in (".urdf", ".xml", ".sdf"):
                path = Path(name) / f"arm{suffix}"
                try:
                    fit.write(path, overwrite=True, force=True)
                except feasid.FeasidError as error:
                    print(f"  {k}{suffix}: {error}")
                    failed += 1
                    continue
                seen = feasid.load_robot(path, sidecar=False)
                massless += sum(b.inertial is None or b.inertial[9] <= 0 for b in seen.bodies)
            done = f"{k + 1} fits, {zeros} with joint terms at zero: {failed} write failures"
            print(f"{done}, {massless} massless moving links in URDF, MJCF and SDF", flush=True)


def creep():
    """Speed under half the breakaway torque of 1 N m, with the settings of written files."""
    from feasid.robot.formats.mjcf.write import HOLDING

    words = " ".join(f'{k}="{" ".join(map(str, v))}"' for k, v in HOLDING.items())
    for step in (0.002, 0.0005):
        shown = []
        for inertia in (0.4, 0.01, 0.0005):
            for extra in ("", words):
                model = mujoco.MjModel.from_xml_string(
                    f'<mujoco><option timestep="{step}" gravity="0 0 0"/><worldbody><body>'
                    f'<inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/>'
                    f'<joint frictionloss="1" {extra}/></body></worldbody></mujoco>'
                )
                data = mujoco.MjData(model)
                data.qfrc_applied[:] = 0.5
                for _ in range(round(1 / step)):
                    mujoco.mj_step(model, data)
                shown.append(f"{1e3 * data.qvel[0]:.3g}")
        print(f"creep [mrad/s] at M = .4, .01, .0005 (MuJoCo's, written), step {step}: "
              f"{', '.join(shown)}")  # fmt: skip


def main():
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", nargs="+", default=ROBOTS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(100, 101))
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--only", choices=("rollouts", "masses", "failures", "creep"))
    asked = parser.parse_args()
    parts = {"creep": creep, "masses": masses, "failures": failures}
    parts["rollouts"] = lambda: rollouts(asked.robots, asked.seeds, asked.windows)
    for name, part in parts.items():
        if asked.only in (None, name):
            part()


if __name__ == "__main__":
    main()
