"""Torques that other programs compute from a written file, on the rows of logs.

A client adds viscous friction, dry friction and armature to the torques of the rigid bodies. The
fit's Coulomb friction changes its sign over a small speed; clients change it otherwise: controllers
and Pinocchio at once, with the sign of the velocity, MuJoCo with the sign of ``dq + ddq b^-1``,
the velocity that its soft constraint looks `LEAD` ahead (``aref = -b v``, see "Solver parameters"
in its documentation), and in proportion to it at rest, where the constraint's regularisation lets
less than the whole friction suffice. Errors are measured with both laws. All of them are linear in
a joint's terms, so that the inner products of a few signals per joint give every error. What a
drive along several joints adds, which MJCF has as a tendon, is a signal of its own for each law:
some clients of MJCF read no tendons.

`Pinocchio` and `MuJoCo` replay logs in the programs themselves, when installed.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean, missing_extra
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.identification.regression.triangle import relative_errors
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording, read_motions
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics, mass_matrix
from feasid.robot.dynamics.spatial import CHUNK

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.fitted import FittedModel

SIGNALS = ("tau", "rigid", "Ia", "fv", "fo", "sign", "ahead", "k sign", "k ahead")
"""Torque, that of rigid bodies, the signals that multiply each joint term, and the torque of
springs and of drives along several joints by each law of dry friction."""

LAWS = {"hard sign": {"fc": "sign", "k": "k sign"}, "MuJoCo's law": {"fc": "ahead", "k": "k ahead"}}
"""Signals of dry friction, and of springs and drives along several joints, per law of clients."""

LEAD = 0.002
"""How far [s] ahead MuJoCo's friction looks: half the time constant of `solreffriction`, which is
at least twice the default time step."""


@dataclass(frozen=True, eq=False)
class ClientRows:
    """Inner products of `SIGNALS` per joint over the rows of logs, behind the fit's low-pass."""

    robot: Robot
    products: Array  #: Shape (dof, 9, 9).

    @classmethod
    def from_logs(
        cls, model: FittedModel, robot: Robot, friction: Array, logs: Iterable[Recording]
    ) -> ClientRows:
        """Signals of a robot's bodies and drives on logs, prepared like the fitted log.

        `friction`: dry friction (dof,) of the drives that move one joint.
        """
        bodies, values, size = robot.without_joint_terms(), robot.values, robot.dof
        drives, directions = [], np.eye(size)
        for k, drive in enumerate(robot.drives):
            columns = robot.drive_columns(k)
            if len(drive.coupling) > 1:
                along = [drive.coupling.get(joint, 0.0) for joint in robot.joints]
                directions = np.vstack([directions, along])
                friction = np.append(friction, values[columns["fc"]] if "fc" in columns else 0.0)
                drives.append(replace(drive, transition=0.0))
            elif "k" in columns:
                spring = replace(drive, symbols=("k",), values=values[[columns["k"]]], features=())
                drives.append(spring)
        driven = replace(bodies, drives=tuple(drives))
        # Accelerations [rad/s^2 or m/s^2] below which dry friction in MuJoCo is not all used. A
        # constraint's force is ``(aref - a) / R`` with R = (1 - d) / d times the inverse inertia
        # along it in the home posture, until it is as large as the friction.
        inverse = np.linalg.pinv(mass_matrix(robot, values, np.zeros(size)))
        mobility = np.diag(directions @ inverse @ directions.T)
        width = np.maximum(friction * REGULARISATION * mobility, TINY)
        products = np.zeros((size, len(SIGNALS), len(SIGNALS)))
        for motion, run in prepare_runs(model, logs):
            rigid = inverse_dynamics(bodies, run.q, run.dq, run.ddq)
            total = inverse_dynamics(driven, run.q, run.dq, run.ddq) if drives else rigid
            rates = run.dq @ directions.T
            sign = np.sign(rates)
            ahead = np.clip((run.ddq @ directions.T + rates / LEAD) / width, -1.0, 1.0)
            change = ((ahead - sign) * friction)[:, size:] @ directions[size:]
            signals = [np.nan_to_num(run.tau), rigid, run.ddq, run.dq, np.ones_like(rigid)]
            signals += [sign[:, :size], ahead[:, :size], total - rigid, total - rigid + change]
            rows = np.array(signals) * ~np.isnan(run.tau).any(axis=0)
            curves = rows.transpose(0, 2, 1).reshape(-1, len(run))
            for block in low_pass_signals(motion, run, curves):
                part = block.reshape(len(SIGNALS), size, -1)
                products += np.einsum("ajn,bjn->jab", part, part)
        return cls(robot, products)

    def errors(self, terms: Mapping[str, Array], law: str) -> pd.Series[float]:
        """Relative torque errors with these terms per joint ("Ia", "fv", "fc", "fo").

        "k" is the share of springs and of drives along several joints: one, if it is not given.
        """
        import pandas as pd

        weights = np.zeros((self.robot.dof, len(SIGNALS)))
        weights[:, :2] = -1.0, 1.0
        for symbol, values in ({"k": 1.0} | {**terms}).items():
            weights[:, SIGNALS.index(LAWS[law].get(symbol, symbol))] = values
        missed = np.einsum("ja,jab,jb->j", weights, self.products, weights)
        relative = relative_errors(self.robot, missed, self.products[:, 0, 0])
        return pd.Series(relative, pd.Index([*self.robot.coordinates, "all"], name="joint"))


REGULARISATION = 1e-3
"""(1 - d) / d of MuJoCo's constraint, d the impedance of the `solimpfriction` that is written."""

TINY = 1e-12  #: Value [rad/s^2] in place of a friction of zero.


def prepare_runs(model: FittedModel, logs: Iterable[Recording]) -> Iterable[tuple[Motion, Run]]:
    """The runs of logs, prepared as the fitted one was."""
    measured = model.base.experiment.measured_joints
    torque = True if measured is None else measured
    for log in logs:
        for motion in read_motions(log, model.robot, torque=torque, **model.test_options()):
            for run in motion.runs:
                yield motion, run


def low_pass_signals(motion: Motion, run: Run, signals: Array) -> Iterable[Array]:
    """Signals (k, samples) at the kept rows, behind the low-pass that the fit's errors have."""
    if motion.filtering != "equations" or not motion.cutoff:
        yield signals
        return
    window = GaussianLowPass(motion.cutoff, run.rate)
    decimator = window.decimating_filter()
    for centres in window.row_groups(len(run), CHUNK, run.anchor, run.own):
        part = slice(int(centres[0]) - window.half_width, int(centres[-1]) + window.half_width + 1)
        yield decimator.filter_rows(np.ascontiguousarray(signals[:, part]), len(centres))


# -- the programs themselves ----------------------------------------------------------------------


def client_errors(
    fit: FittedModel,
    path: str | os.PathLike[str],
    client: str,
    log: Any,
    sensors: Mapping[str, float],
) -> pd.DataFrame:
    """Replay a log through a client of a written file; see `feasid.Fit.verify`.

    `sensors`: offsets of torque sensors by joint.
    """
    import pandas as pd

    if client not in CLIENTS:
        hint = did_you_mean(client, CLIENTS)
        raise InputError(f"client {client!r} is not one of {', '.join(CLIENTS)}{hint}")
    if not fit.robot.is_tree:
        raise InputError("robots with coupled joints or closed loops are not replayed by clients")
    if fit.robot.dof != len(fit.robot.joints):
        raise InputError("robots with joints of several degrees of freedom are not replayed")
    source = fit.robot.source
    held = dict(source.reading.get("lock", {})) if source is not None else {}
    robot, moves = fit.robot.without_torque_sensors(), fit.robot.moves  # no client has sensors
    torques = CLIENTS[client](os.fspath(path), robot, held)
    sources = log if isinstance(log, list) else [log]
    logs = tuple(fit.logs) if log is None else tuple(Recording.from_source(x) for x in sources)
    if not logs:
        raise InputError("the fit holds no log (it was reduced or saved): pass log= to replay one")
    zeros = np.array([sensors.get(joint, 0.0) for joint in robot.joints])
    squares = np.zeros((3, robot.dof))
    for motion, run in prepare_runs(fit, logs):
        q, dq, ddq, tau = (x[:, moves] for x in (run.q, run.dq, run.ddq, run.tau))
        prediction = torques.torques(q, dq, ddq) + zeros
        ours = inverse_dynamics(robot, q, dq, ddq)
        torque = tau if run.applied is None else run.applied
        missed = np.vstack([torque.T, (prediction - tau).T, (ours - tau).T])
        for block in low_pass_signals(motion, run, np.nan_to_num(missed)):
            squares += (block**2).sum(axis=1).reshape(3, -1)
    replay, error = (relative_errors(robot, missed, squares[0]) for missed in squares[1:])
    index = pd.Index([*robot.coordinates, "all"], name="joint")
    return pd.DataFrame({"fit": error, client: replay}, index=index)


def require_joints(names: Container[str], robot: Robot, path: str, client: str) -> None:
    """Raise InputError: a client finds not all of the robot's joints in a file."""
    if lost := [joint for joint in robot.joints if joint not in names]:
        raise InputError(
            f"{client} finds no joint {lost[0]!r} in {path}: it is a file of another robot, or has "
            "what this client does not read",
            path=path,
            joint=lost[0],
        )


class Pinocchio:
    """Torques by ``pinocchio.rnea``, which has armature; damping and friction are added."""

    def __init__(self, path: str, robot: Robot, held: Mapping[str, float]) -> None:
        try:
            import pinocchio  # type: ignore[import-untyped]
        except ImportError as error:
            raise missing_extra("replaying in Pinocchio", "pin", "pinocchio") from error
        self.pin = pinocchio
        urdf = path.endswith(".urdf")
        build = pinocchio.buildModelFromUrdf if urdf else pinocchio.buildModelFromMJCF
        try:
            self.model = build(path)
        except (ValueError, RuntimeError) as error:
            raise InputError(
                f"Pinocchio refuses {path}: {' '.join(str(error).split())}", path=path
            ) from error
        self.model.gravity.linear = robot.gravity
        self.data = self.model.createData()
        self.robot = robot
        self.q0 = pinocchio.neutral(self.model)
        for joint in set(self.model.names).intersection(held):
            self._set_position(self.q0, joint, float(held[joint]))
        require_joints(self.model.names, robot, path, "Pinocchio")
        self.rows = [self.model.joints[self.model.getJointId(j)].idx_v for j in robot.joints]

    def _set_position(self, q: Array, name: str, value: float) -> None:
        joint = self.model.joints[self.model.getJointId(name)]
        # A joint without ends has its angle's cosine and sine as coordinates.
        numbers = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        q[joint.idx_q : joint.idx_q + joint.nq] = numbers

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques of the robot's joints, shape (N, dof)."""
        model, rows = self.model, self.rows
        out = np.empty_like(q)
        for k in range(len(q)):
            place = self.q0.copy()
            velocity, acceleration = np.zeros(model.nv), np.zeros(model.nv)
            for name, value in zip(self.robot.joints, q[k], strict=True):
                self._set_position(place, name, float(value))
            velocity[rows], acceleration[rows] = dq[k], ddq[k]
            out[k] = self.pin.rnea(model, self.data, place, velocity, acceleration)[rows]
        friction = model.upperDryFrictionLimit[rows] * np.sign(dq)
        return np.asarray(out + model.damping[rows] * dq + friction)


class MuJoCo:
    """Torques by ``mujoco.mj_inverse``; of the constraints dry friction alone counts."""

    def __init__(self, path: str, robot: Robot, held: Mapping[str, float]) -> None:
        try:
            import mujoco  # type: ignore[import-untyped]
        except ImportError as error:
            raise missing_extra("replaying in MuJoCo", "mujoco", "mujoco") from error
        self.mujoco = mujoco
        try:
            self.model = model = mujoco.MjModel.from_xml_path(path)
        except ValueError as error:
            raise InputError(
                f"MuJoCo refuses {path}: {' '.join(str(error).split())}; fit.write('model.xml') "
                f"writes MJCF that needs no meshes",
                path=path,
            ) from error
        for constraint in ("CONTACT", "LIMIT", "EQUALITY"):
            model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{constraint}"))
        model.opt.gravity = robot.gravity
        self.data = mujoco.MjData(model)
        names = {model.joint(j).name for j in range(model.njnt)}
        for joint in names.intersection(held):
            self.data.qpos[model.joint(joint).qposadr[0]] = float(held[joint])
        require_joints(names, robot, path, "MuJoCo")
        joints = [model.joint(joint) for joint in robot.joints]
        self.places = [int(j.qposadr[0]) for j in joints]
        self.rows = [int(j.dofadr[0]) for j in joints]

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques of the robot's joints, shape (N, dof)."""
        data, rows = self.data, self.rows
        out = np.empty_like(q)
        for k in range(len(q)):
            data.qpos[self.places], data.qvel[rows], data.qacc[rows] = q[k], dq[k], ddq[k]
            self.mujoco.mj_inverse(self.model, data)
            out[k] = data.qfrc_inverse[rows]
        self.mujoco.mj_fwdActuation(self.model, data)
        return np.asarray(out - data.qfrc_actuator[rows])


CLIENTS: Mapping[str, type[Pinocchio | MuJoCo]] = {"pinocchio": Pinocchio, "mujoco": MuJoCo}
