"""A fit written as a model file, and measured as a client of the file reads it.

The file holds the fitted bodies: masses, first moments and inertias are those of the fit. Joint
terms that its format has a place for have their fitted values. What the format cannot hold (offset
friction in every format, drive inertia in URDF) is left out of the file, listed in `Export`, and
kept in a sidecar that `feasid.load_robot` reads with the file. Nothing is estimated again: other
bodies would take over what a missing term explained, a sensor's offset for example. On request
viscous and Coulomb friction stand for friction laws that the format lacks; bodies never move.

`client_errors` replays logs through written files in Pinocchio and MuJoCo, when installed.
Pinocchio's recursive Newton-Euler algorithm gives the rigid bodies' torques; the file's damping,
dry friction and armature, which it reads, are added as a controller would. MuJoCo's inverse
dynamics has them all; its dry friction, a constraint soft around rest, is added as fc sign(dq).
Either changes its sign over the speed over which the fit's friction does: at once would add the
noise of the velocity of joints at rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.optimize import lsq_linear

from feasid.core.arrays import Array
from feasid.dynamics.regressor import CHUNK, inverse_dynamics
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import InputError, OutputError, UselessFitError, did_you_mean, missing_extra
from feasid.formats.load import load_robot
from feasid.formats.terms import sum_drives
from feasid.formats.write import (
    Written,
    format_of,
    representable_part,
    unrepresentable_terms,
    write,
)
from feasid.identification.predictor import Predictor
from feasid.identification.ranges import Ranged, Residual
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording
from feasid.reduction.equations import Window
from feasid.reduction.reduce import reduce
from feasid.robot.description import Robot
from feasid.robot.inertia import change_frame
from feasid.robot.joint_terms import JOINT_TERMS, TERMS

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.predictor import Predictor

GEOMETRY_TOLERANCE = 1e-9
"""Difference of axes and positions [m] up to which a file read back has the robot's geometry."""

MAX_LISTED_JOINTS = 8
"""Joints that a line on missing terms names; the others are counted."""

USE_EQUIVALENT = (
    "equivalent_friction=True writes the viscous and Coulomb friction that comes closest to it"
)

ADVICE = {
    "Ia": "a simulation needs it as the joints' armature, without it joints accelerate too fast",
    "fo": "if it is an offset of the torque sensor, subtract it from measured torques, else add "
    "it to commanded ones",
}
"""What a client of a file that lacks a joint term has to know, by symbol."""

MISSING_TERMS = {
    "fc": (
        "the gradual change of sign of Coulomb friction (fc)",
        "the file has its size, and clients change its sign at once",
    ),
    "rotor": ("the rotors' own inertial parameters", "a client has to add their torques"),
    "shared": ("the terms of motors that move several joints", "a client has to add them"),
}
"""What a file lacks, and what a client of it has to know, other than whole terms of one joint."""

FURTHER_LAWS = tuple(
    term.symbol
    for term in JOINT_TERMS
    if term.varies_with == "dq" and term.symbol not in ("fv", "fc")
)
"""Friction laws that no file format holds, and for which viscous and Coulomb friction can stand."""


def _missing_term(symbol: str) -> tuple[str, str]:
    """What a joint term is called, and what a client of a file that lacks it has to know."""
    general = USE_EQUIVALENT if symbol in FURTHER_LAWS else "a client has to add it"
    name = TERMS[symbol].name if symbol in TERMS else "torques of the caller's own"
    return f"{name} ({symbol})", ADVICE.get(symbol, general)


@dataclass(frozen=True, eq=False)
class Export:
    """A fit that was written to a file.

    Attributes
    ----------
    written : Written
        Path, format, sidecar, and the terms that clients of the file do not see.
    missing : tuple of str
        One line for each kind of term that the file does not hold: what, of which joints, and
        what a client has to do about it.
    errors : DataFrame
        Relative torque errors, joints and "all" by row: of the fit and of the file as a client
        reads it, on the fitted log and on the test.
    """

    written: Written
    missing: tuple[str, ...]
    errors: pd.DataFrame

    def __str__(self) -> str:
        w = self.written
        kept = "every term of the fitted model"
        if w.lost:
            kept = f"the fitted bodies and the joint terms that {w.format.upper()} holds"
        lines = [f"wrote {w.path}: {kept}; read back and verified in exact arithmetic"]
        lines += [f"not in {w.path}: {line}" for line in self.missing]
        if w.sidecar is not None:
            lines.append(
                f"the whole model is in {w.sidecar}, which feasid.load_robot reads with the file"
            )
        total = self.errors.loc["all"]
        shown = ", ".join(f"{name} {100 * value:.2f}%" for name, value in total.items())
        lines.append(f"torque error over all joints: {shown}")
        return "\n".join(lines)

    __repr__ = __str__


class Judged(Protocol):
    """A verdict on a fit, as `feasid.identification.quality.Quality` is one."""

    @property
    def level(self) -> str:
        """One of "good", "doubtful" and "useless"."""

    @property
    def reasons(self) -> Sequence[Any]:
        """Why it is not good, the gravest first."""


class WritableModel(Predictor, Ranged):
    """An identified model that can be written as a model file."""

    recordings: tuple[Recording, ...] = ()

    @property
    def quality(self) -> Judged:
        """How good the model is; a useless one is not written unless forced."""
        raise NotImplementedError

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        test: Any = None,
        force: bool = False,
        equivalent_friction: bool = False,
    ) -> Export:
        """Write the identified robot, and measure the file as a client reads it.

        The format follows from the path: ``.urdf``, ``.xml`` (MJCF), else that of the robot's own
        file, whose text is kept but for the numbers that change. Masses, first moments and
        inertias in the file are those of the fit. Joint terms that the format lacks are listed
        and go into a sidecar, which `load_robot` reads with the file.

        Parameters
        ----------
        path : path
        overwrite : bool
        test : DataFrame, path or a sequence of these, optional
            Logs that were not fitted, to compare the file and the fit on.
        force : bool
            Write a model even if `quality` calls it useless.
        equivalent_friction : bool
            At joints with friction of a law that the format lacks (``fs``, ``fl``, ``fb``,
            ``fd``), write the viscous and Coulomb friction that comes closest to all of it,
            instead of the fitted ones. Bodies are the same either way.

        Returns
        -------
        Export
            What was written, what the file lacks, and the torque errors of the fit and of the
            file; prints itself.

        Raises
        ------
        UselessFitError
            The fit is useless, with the reason, and `force` is False.
        OutputError
            `path` exists and `overwrite` is False, or the file does not read back.
        """
        if not force:
            refuse_useless(self.quality, path)
        robot = self.robot
        if equivalent_friction:
            robot = robot.with_values(closest_held_friction(robot, self.residual))
        return export(self, robot, path, overwrite=overwrite, test=test)

    def verify(self, path: str | os.PathLike[str], client: str, log: Any = None) -> pd.DataFrame:
        """Replay a log through a written file as another program reads it.

        Parameters
        ----------
        path : path
            What `write` wrote.
        client : {"pinocchio", "mujoco"}
            Pinocchio's ``rnea`` plus the model's damping, friction and armature, or MuJoCo's
            ``mj_inverse`` plus its dry friction. Must be installed.
        log : DataFrame, path or a list of these, optional
            Default the fitted logs, which a saved fit does not have.

        Returns
        -------
        DataFrame
            Relative torque errors of the fit and of the client, per joint and "all".

        Raises
        ------
        MissingExtraError
            The client is not installed.
        InputError
            Another client, a robot that clients do not replay, no log, or the client refuses the
            file.
        """
        return client_errors(self, path, client, log, self.recordings)


def export(
    model: Predictor,
    robot: Robot,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    test: Any = None,
) -> Export:
    """Write `robot`, what a file may hold of a model; measure the file's errors beside it."""
    kind = format_of(model.robot, path)
    lost = unrepresentable_terms(model.robot, kind)
    whole = model.robot if lost else None
    written = write(representable_part(robot, kind), path, overwrite=overwrite, complete=whole)
    seen = model.base.K @ as_client(model, written.path)
    columns = {"fit": model.relative_error, "file": model.errors_of(model.reduced, seen)}
    if test is not None:
        other = reduce(test, base=model.base, **model.test_options())
        columns |= {
            "fit on the test": model.errors_of(other),
            "file on the test": model.errors_of(other, seen),
        }
    import pandas as pd

    return Export(written, missing_lines(model.robot, robot, lost), pd.DataFrame(columns))


def missing_lines(whole: Robot, written: Robot, lost: Sequence[str]) -> tuple[str, ...]:
    """One line for each kind of the terms ("shoulder.fo") that a file of a model lacks."""
    replaced = not np.array_equal(whole.values, written.values)
    joints = {body.name: body.joint for body in whole.bodies}
    joints |= {drive.name: " with ".join(drive.coupling) for drive in whole.drives}
    shared = {drive.name for drive in whole.drives if len(drive.coupling) > 1}
    found: dict[str, list[str]] = {}
    for name in (n for n in lost if n != "gravity"):
        part, symbol = name.rsplit(".", 1)
        kind = "rotor" if symbol.startswith("rotor_") else symbol
        listed = found.setdefault("shared" if part in shared else kind, [])
        if joints[part] not in listed:
            listed.append(joints[part])
    lines = []
    for kind, names in found.items():
        term, advice = MISSING_TERMS.get(kind) or _missing_term(kind)
        if replaced and kind in FURTHER_LAWS:
            advice = "viscous and Coulomb friction in the file stand for it"
        more = len(names) - MAX_LISTED_JOINTS
        listed = names[:MAX_LISTED_JOINTS] + ([f"{more} more"] if more > 0 else [])
        lines.append(f"{term} of {', '.join(listed)}; {advice}")
    if "gravity" in lost:
        vector = ", ".join(f"{x:g}" for x in whole.gravity)
        lines.append(f"gravity, ({vector}) m/s^2 in the base frame; a client has to set it")
    return tuple(lines)


def closest_held_friction(robot: Robot, equations: Residual) -> Array:
    """Standard parameters with viscous and Coulomb friction in place of further friction laws.

    For every joint with friction of another law (``fs``, ``fl``, ``fb``, ``fd``) its ``fv`` and
    ``fc`` minimise the difference between the torques that the fitted model predicts for the
    fitted log with and without those laws. All other parameters are kept.

    Parameters
    ----------
    robot : Robot
        With the fitted parameters.
    equations : Residual
        The weighted equations that were solved.

    Returns
    -------
    ndarray, shape (n,)
        The further laws are zero.
    """
    fitted = robot.values
    delta, free = fitted.copy(), []
    for k in range(len(robot.drives)):
        columns = robot.drive_columns(k)
        further = [columns[s] for s in FURTHER_LAWS if s in columns]
        if np.any(delta[further]):
            delta[further] = 0.0
            free += [columns[s] for s in ("fv", "fc") if s in columns]
    if free:
        A = equations.r @ equations.base.K
        delta[free] = 0.0
        difference = A @ (fitted - delta)
        delta[free] = lsq_linear(A[:, free], difference, (0.0, np.inf), tol=1e-14).x
    return delta


def refuse_useless(verdict: Judged, path: str | os.PathLike[str]) -> None:
    """Refuse to write a model that is worth nothing.

    Raises
    ------
    UselessFitError
        With the reason.
    """
    if verdict.level == "useless":
        raise UselessFitError(
            f"this fit is useless: {verdict.reasons[0]}. {path} was not written: correct the log, "
            f"as feasid.diagnose says, or write it all the same with force=True",
            path=str(path),
        )


def as_client(fit: Predictor, path: str | os.PathLike[str]) -> Array:
    """Standard parameters, in the fit's order, of a file as clients read it: without the sidecar.

    Raises
    ------
    OutputError
        The file has other joints or another geometry than the fitted robot.
    """
    source = fit.robot.source
    own = source is not None and source.format == format_of(fit.robot, path)
    reading = dict(source.reading) if source is not None and own else {}
    seen = load_robot(path, **{**reading, "sidecar": False})
    terms = sum_drives(seen.drives)
    delta = np.zeros(fit.robot.size)
    read = _inertials_in_robot_frames(fit.robot, seen, path)
    for i, columns in enumerate(fit.robot.inertial_columns):
        delta[columns] = read[i]
    for k, drive in enumerate(fit.robot.drives):
        if len(drive.coupling) == 1:
            ((joint, factor),) = drive.coupling.items()
            given = terms.pop(((joint, 1.0),), {})
            for symbol, column in fit.robot.drive_columns(k).items():
                scaling = TERMS[symbol].scaling(factor) if symbol in TERMS else None
                delta[column] = given.pop(symbol, 0.0) / (scaling or 1.0)
    return delta


def _inertials_in_robot_frames(
    robot: Robot, seen: Robot, path: str | os.PathLike[str]
) -> list[Array]:
    """Inertial parameters of a file's bodies in the robot's frames, which may be others."""
    joints = {body.joint: body for body in seen.bodies}
    ours, theirs = robot.pose(), seen.pose()
    out = []
    for body in robot.bodies:
        other = joints.get(body.joint)
        if other is None:
            raise OutputError(f"{path} was written, but joint {body.joint!r} is not read back")
        (turn, place), (their_turn, their_place) = ours[body.name], theirs[other.name]
        rotation, position = turn.T @ their_turn, turn.T @ (their_place - place)
        angular = rotation @ other.motion[:3]
        linear = rotation @ other.motion[3:] + np.cross(position, angular.T).T
        if np.abs(np.vstack([angular, linear]) - body.motion).max() > GEOMETRY_TOLERANCE:
            raise OutputError(
                f"{path} was written, but joint {body.joint!r} is read back elsewhere: it moves by "
                f"{np.vstack([angular, linear]).tolist()}, not {body.motion.tolist()}"
            )
        ten = np.zeros(10) if other.inertial is None else other.inertial
        out.append(change_frame(rotation, position) @ ten)
    return out


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
    logs = tuple(fitted) if log is None else tuple(Recording.from_source(x) for x in given)
    if not logs:
        raise InputError("the fit holds no log (it was reduced or saved): pass log= to replay one")
    squares = np.zeros((3, fit.robot.dof))
    for recording in logs:
        motion = recording.motion(fit.robot, **fit.test_options())
        for run in motion.runs:
            seen = torques.torques(run.q, run.dq, run.ddq)
            ours = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
            for k, part in enumerate((run.tau, seen - run.tau, ours - run.tau)):
                squares[k] += _sums_of_squares(motion, run, part)
    whole = np.column_stack([squares, squares.sum(axis=1)])
    relative = np.sqrt(whole[1:] / whole[0])
    index = pd.Index([*motion.coordinates, "all"], name="joint")
    return pd.DataFrame({"fit": relative[1], client: relative[0]}, index=index)


def _smooth_signs(robot: Robot) -> Callable[[Array], Array]:
    """The sign of every joint's velocity, smooth where the fit's friction is; (samples, dof)."""
    smooth = {j: d.transition for d in robot.drives for j in d.coupling if "fc" in d.symbols}
    over = np.array([smooth.get(joint, 0.0) for joint in robot.joints])
    scale = np.where(over > 0, over, 1.0)
    return lambda dq: np.where(over > 0, np.tanh(dq / scale), np.sign(dq))


def _sums_of_squares(motion: Motion, run: Run, signal: Array) -> Array:
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
            self._set_position(self.q0, joint, float(held[joint]))
        self.rows = [self._joint(joint).idx_v for joint in robot.joints]
        self.sign = _smooth_signs(robot)

    def _joint(self, name: str) -> Any:
        return self.model.joints[self.model.getJointId(name)]

    def _set_position(self, q: Array, name: str, value: float) -> None:
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
                self._set_position(place, name, float(value))
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
        self.sign = _smooth_signs(robot)

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        data, rows = self.data, self.rows
        out = np.empty_like(q)
        for k in range(len(q)):
            data.qpos[self.places], data.qvel[rows], data.qacc[rows] = q[k], dq[k], ddq[k]
            self.mujoco.mj_inverse(self.model, data)
            out[k] = data.qfrc_inverse[rows]
        out += self.model.dof_frictionloss[rows] * self.sign(dq)
        return out
