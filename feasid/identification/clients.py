"""What programs that read a model file make of it: Pinocchio and MuJoCo, when installed.

Pinocchio's recursive Newton-Euler algorithm gives the rigid bodies' torques; the file's damping,
dry friction and armature, which it reads, are added as a controller would. MuJoCo's inverse
dynamics has them all; its dry friction, a constraint soft around rest, is added as fc sign(dq).
Either changes its sign over the speed over which the fit's friction does: at once would add the
noise of the velocity of joints at rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.regressor import CHUNK, inverse_dynamics
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import InputError, did_you_mean, missing_extra
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording
from feasid.reduction.window import Window
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.predictor import Predictor

CLIENTS = ("pinocchio", "mujoco")


def client_errors(
    fit: Predictor,
    path: str | os.PathLike[str],
    client: str,
    log: Any = None,
    fitted: Sequence[Recording] = (),
) -> pd.DataFrame:
    """Replay a log through a client of a written file; see `feasid.Fit.verify`."""
    import pandas as pd

    if client not in CLIENTS:
        hint = did_you_mean(str(client), CLIENTS)
        raise InputError(f"client {client!r} is not one of {', '.join(CLIENTS)}{hint}")
    if not fit.robot.is_tree:
        raise InputError("robots with coupled joints or closed loops are not replayed by clients")
    if fit.robot.dof != len(fit.robot.joints):
        raise InputError("robots with joints of several degrees of freedom are not replayed")
    source = fit.robot.source
    held = dict(source.reading.get("lock", {})) if source is not None else {}
    torques = (_Pinocchio if client == "pinocchio" else _MuJoCo)(os.fspath(path), fit.robot, held)
    given = log if isinstance(log, list) else [log]
    logs = tuple(fitted) if log is None else tuple(Recording.of(x) for x in given)
    if not logs:
        raise InputError("the fit holds no log (it was reduced or saved): pass log= to replay one")
    squares = np.zeros((3, fit.robot.dof))
    for recording in logs:
        motion = recording.motion(fit.robot, **fit.test_options())
        for run in motion.runs:
            seen = torques.torques(run.q, run.dq, run.ddq)
            ours = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
            for k, part in enumerate((run.tau, seen - run.tau, ours - run.tau)):
                squares[k] += _squares(motion, run, part)
    whole = np.column_stack([squares, squares.sum(axis=1)])
    relative = np.sqrt(whole[1:] / whole[0])
    index = pd.Index([*motion.coordinates, "all"], name="joint")
    return pd.DataFrame({"fit": relative[1], client: relative[0]}, index=index)


def _signs(robot: Robot) -> Callable[[Array], Array]:
    """The sign of every joint's velocity, smooth where the fit's friction is; (samples, dof)."""
    smooth = {j: d.transition for d in robot.drives for j in d.coupling if "fc" in d.symbols}
    over = np.array([smooth.get(joint, 0.0) for joint in robot.joints])
    scale = np.where(over > 0, over, 1.0)
    return lambda dq: np.where(over > 0, np.tanh(dq / scale), np.sign(dq))


def _squares(motion: Motion, run: Run, signal: Array) -> Array:
    """Sums of squares per joint, of the rows and behind the low-pass that the fit's errors have."""
    if motion.filtering != "equations" or not motion.cutoff:
        return np.asarray((signal**2).sum(axis=0))
    window = Window(motion.cutoff, run.rate)
    out = np.zeros(signal.shape[1])
    for centres in window.groups(len(run), CHUNK, run.anchor, run.own):
        part = slice(int(centres[0]) - window.half, int(centres[-1]) + window.half + 1)
        out += (window.comb().rows(as_samples_last(signal[part]), len(centres)) ** 2).sum(axis=1)
    return out


class _Pinocchio:
    """Torques by ``pinocchio.rnea``, the model's damping, friction and armature added."""

    def __init__(self, path: str, robot: Robot, held: Mapping[str, float]) -> None:
        try:
            import pinocchio  # type: ignore[import-untyped]
        except ImportError as error:
            raise missing_extra("replaying in Pinocchio", "pin", "pinocchio") from error
        self.pin = pinocchio
        build = pinocchio.buildModelFromUrdf
        if not path.endswith(".urdf"):
            build = pinocchio.buildModelFromMJCF
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
            self._set(self.q0, joint, float(held[joint]))
        self.rows = [self._joint(joint).idx_v for joint in robot.joints]
        self.sign = _signs(robot)

    def _joint(self, name: str) -> Any:
        return self.model.joints[self.model.getJointId(name)]

    def _set(self, q: Array, name: str, value: float) -> None:
        joint = self._joint(name)
        numbers = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        q[joint.idx_q : joint.idx_q + joint.nq] = numbers

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        model, rows = self.model, self.rows
        out = np.empty_like(q)
        rigid = model.armature.copy()
        model.armature = np.zeros(model.nv)
        for k in range(len(q)):
            place = self.q0.copy()
            velocity, acceleration = np.zeros(model.nv), np.zeros(model.nv)
            for name, value in zip(self.robot.joints, q[k], strict=True):
                self._set(place, name, float(value))
            velocity[rows], acceleration[rows] = dq[k], ddq[k]
            out[k] = self.pin.rnea(model, self.data, place, velocity, acceleration)[rows]
        model.armature = rigid
        dry = getattr(model, "upperDryFrictionLimit", None)
        friction = model.friction if dry is None else dry
        out += model.damping[rows] * dq + friction[rows] * self.sign(dq) + rigid[rows] * ddq
        return out


class _MuJoCo:
    """Torques by ``mujoco.mj_inverse`` without constraints, dry friction added."""

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
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        model.opt.gravity = robot.gravity
        self.data = mujoco.MjData(model)
        names = {model.joint(j).name for j in range(model.njnt)}
        for joint in names.intersection(held):
            self.data.qpos[model.joint(joint).qposadr[0]] = float(held[joint])
        joints = [model.joint(joint) for joint in robot.joints]
        self.places = [int(j.qposadr[0]) for j in joints]
        self.rows = [int(j.dofadr[0]) for j in joints]
        self.sign = _signs(robot)

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        data, rows = self.data, self.rows
        out = np.empty_like(q)
        for k in range(len(q)):
            data.qpos[self.places], data.qvel[rows], data.qacc[rows] = q[k], dq[k], ddq[k]
            self.mujoco.mj_inverse(self.model, data)
            out[k] = data.qfrc_inverse[rows]
        out += self.model.dof_frictionloss[rows] * self.sign(dq)
        return out
