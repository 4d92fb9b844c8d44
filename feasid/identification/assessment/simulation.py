"""How well a model simulates: many short motions computed from a log's torques or commands.

Each window starts where the log was and is driven by what drove the robot: by the measured torques
(open loop), or by the servo law ``tau = kp (cmd - q) - kd dq`` with logged commands (closed loop).

Measured torques have errors, and a simulation integrates them twice: the lighter a joint, the
farther it strays. Open loop so prefers models that are too heavy. Errors are therefore compared
with those of the same model under its own torques plus the fit's residual, moved in time. Joints
whose inertia the log does not show are not compared (``rms(M a) / rms(residual)`` below
`MIN_INERTIA_SHARE`), and open loop alone gives no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import array, checked, checked_methods, count, one_per
from feasid.core.arrays import Array, interpolate
from feasid.core.charts import BLUE, GREY, RED, Chart, Panel, Series
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError, NotEnoughDataError
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.assessment.compared_errors import fit_joint_terms
from feasid.identification.estimation.noise import estimate_noise
from feasid.identification.regression.low_pass import low_pass_motion
from feasid.identification.regression.triangle import Reduced
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording, read_signals
from feasid.logs.servo import Servo, delay_commands
from feasid.options.complete import select_options
from feasid.options.tables import ReadOptions
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot
from feasid.robot.dynamics.forward import Feedback, ForwardModel
from feasid.robot.dynamics.regressor import inertial_torques, inverse_dynamics
from feasid.robot.formats.load import load_robot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_STEP = 3e-3
"""Longest step [s]: ends of simulated arms differ by 1e-5 from MuJoCo's with steps of 10 us."""

WINDOWS, MOST_WINDOWS = 100, 100_000
"""Number of simulated windows, evenly over the log, and the largest number allowed."""

LOST = 1.0  #: Error [rad or m] from which a window counts as lost.

MIN_INERTIA_SHARE = 0.5
"""Least rms(M a) over rms(residual) with which the log shows the inertia of a joint."""

CLEAR = 2.5
"""Ratio of two models' errors from which one is called better than the other.

Relative to errors caused by shifted residuals, errors of the true model were .7 to 1.4, and those
of overfitted models .5 to 1.2: chance and overfitting alone make a ratio of two.
"""

SHIFTS = (0.37, 0.71)
"""Shares of a run by which its residual is shifted in time; two of them reduce chance."""

HORIZONS = (0.1, 0.3)  #: Default lengths of the simulated windows [s].

BETTER, WORSE, ALIKE, CANNOT_TELL = "better", "worse", "alike", "cannot tell"
Errors: TypeAlias = Annotated[Array, array("horizons", "joints", finite=False)]


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Displayed):
    """Errors of simulated windows.

    Attributes
    ----------
    name, reference : str
        Names of the model and of the model it is compared with, or empty.
    joints : tuple of str
    units : tuple of {"rad", "m"}
        Of each joint's position.
    horizons : tuple of float
        [s]
    windows : int
    closed_loop : bool
        Whether logged commands drove the robot, or measured torques.
    rms : ndarray, shape (horizons, joints)
        Median over the windows of the RMS error up to the horizon [rad or m]; infinite if most
        windows are lost.
    lost : ndarray of int, shape (horizons, joints)
        Number of windows in which the joint is off by more than `LOST`.
    reference_rms, noise_rms, reference_noise_rms : ndarray, shape (horizons, joints)
        Errors of the reference; errors of the model, and of the reference, if each is driven by its
        own torques plus the residual of the fit, shifted in time.
    inertia_share : ndarray, shape (joints,)
        rms(M a) over rms(residual), both after the low-pass of the fit. M is that of the model for
        which the share is smallest, because an inertia that the log does not show may be estimated
        far too large.
    notes : tuple of Note
    """

    name: str
    reference: str
    joints: Annotated[tuple[str, ...], one_per("joints")]
    units: Annotated[tuple[str, ...], one_per("joints")]
    horizons: Annotated[tuple[float, ...], one_per("horizons")]
    windows: int
    closed_loop: bool
    rms: Errors
    lost: Annotated[npt.NDArray[np.int64], array("horizons", "joints")]
    reference_rms: Errors
    noise_rms: Errors
    reference_noise_rms: Errors
    inertia_share: Annotated[Array, array("joints", finite=False)]
    notes: tuple[Note, ...] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """For each joint and horizon: error, lost windows, ratios, and their reading.

        ``rms`` [rad or m]; ``lost`` windows; ``over_description``, the error over that of the
        reference, the description with fitted joint terms; ``over_shuffled``, over that of the
        fit's residual moved in time; ``inertia_share``; ``reads``.
        """
        import pandas as pd

        index = pd.MultiIndex.from_product([self.joints, self.horizons], names=["joint", "horizon"])
        columns = {
            "rms": self.rms,
            "lost": self.lost,
            "over_description": _ratio_or_nan(self.rms, self.reference_rms),
            "over_shuffled": _ratio_or_nan(self.rms, self.noise_rms),
            "inertia_share": np.broadcast_to(self.inertia_share, self.rms.shape),
            "reads": self.readings,
        }
        return pd.DataFrame({k: np.asarray(v).T.ravel() for k, v in columns.items()}, index=index)

    @cached_property
    def readings(self) -> npt.NDArray[np.str_]:
        """Comparison with the reference for each joint and horizon, shape of `rms`.

        In open loop, the error of each model is divided by the error that the same torque errors
        cause in it. In closed loop the errors themselves are compared.
        """
        error, other = self.rms, self.reference_rms
        if not self.closed_loop:
            error = _ratio_or_nan(error, self.noise_rms)
            other = _ratio_or_nan(other, self.reference_noise_rms)
        ratio = _ratio_or_nan(error, other)
        out = np.full(ratio.shape, ALIKE, dtype="U12")
        out[ratio < 1 / CLEAR], out[ratio > CLEAR] = BETTER, WORSE
        unknown = np.isnan(ratio)
        if not self.closed_loop:
            unknown |= self.inertia_share < MIN_INERTIA_SHARE
        out[unknown] = CANNOT_TELL
        return out

    @property
    def verdict(self) -> str:
        """Whether the model simulates better than the reference.

        "better" or "worse" if the closed-loop errors of at least one joint show it and no joint
        shows the opposite; in open loop always "cannot tell".
        """
        if not self.closed_loop:
            return CANNOT_TELL
        verdicts = set(self.readings.ravel()) & {BETTER, WORSE}
        if len(verdicts) > 1:
            return CANNOT_TELL
        return verdicts.pop() if verdicts else ALIKE

    def plot(self) -> Figure:
        """Errors per joint at the longest horizon: model, reference, and torque errors alone.

        Raises
        ------
        MissingExtraError
            Without matplotlib.
        """
        from feasid.core.figures import draw

        return draw(self.chart())

    def chart(self) -> Chart:
        """The errors that `plot` draws."""
        drawn = [
            (self.name, self.rms, BLUE, "o"),
            (self.reference, self.reference_rms, RED, "s"),
            ("the fit's residual, moved in time", self.noise_rms, GREY, "^"),
        ]
        last, places = self.horizons[-1], np.arange(len(self.joints))
        series = [
            Series(places + 0.2 * k, values[-1], color, label, mark)
            for k, (label, values, color, mark) in enumerate(drawn, -1)
            if np.isfinite(values[-1]).any()
        ]
        worst = int(np.argmax(np.nan_to_num(self.rms[-1], posinf=np.inf)))
        panel = Panel(series, "", "", "RMS error [rad, m]", ("", "log"), (self.joints, ()))
        return Chart(
            f"{self.joints[worst]} is {1e3 * self.rms[-1, worst]:.3g} m{self.units[worst]} off "
            f"after {last:g} s, the most of all joints",
            "simulation errors per joint",
            [panel],
            columns=1,
            height=2.6,
        )

    def display(self) -> Display:
        """The longest horizon, joint by joint."""
        h, last, ratios = -1, self.horizons[-1], _ratio_or_nan(self.rms, self.reference_rms)[-1]
        against = f", {{:.3g}} times that of {self.reference}" if self.reference else ""
        measures = [
            Measure(
                joint,
                f"{1e3 * self.rms[h, k]:.3g} m{self.units[k]}{against.format(ratio)}"
                f"; {self.readings[h, k]}",
            )
            for k, (joint, ratio) in enumerate(zip(self.joints, ratios, strict=True))
        ]
        lost = [
            f"joint {joint!r}: {n} of {self.windows} windows diverge within {last:g} s: their "
            f"positions are off by more than {LOST:g} rad or m"
            for joint, n in zip(self.joints, self.lost[h], strict=True)
            if n
        ]
        drive = "logged commands" if self.closed_loop else "measured torques"
        text = f"RMS errors after {last:g} s from {drive}, {self.windows} windows: {self.verdict}"
        return Display(f"{self.name}, {text}", measures, lost, self.notes, "more: .table")


def _ratio_or_nan(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(a / b)


@dataclass(frozen=True, eq=False)
class PositionController:
    """A joint controller, ``tau = kp (cmd - q) - kd dq``."""

    kp: Array  #: Shape (dof,): [N m / rad or N / m, and s times that]
    kd: Array  #: Shape (dof,): [N m / rad or N / m, and s times that]
    delay: float = 0.0  #: by which a command acts later than it is logged [s].


def _gains_by_joint(robot: Robot, name: str, value: Any) -> Array:
    """Gains that are one number, one per joint, or a mapping by joint."""
    if isinstance(value, Mapping):
        if {*value} != {*robot.coordinates}:
            needed, names = (", ".join(map(str, x)) for x in (robot.coordinates, value))
            raise InputError(f"{name} needs a gain for each of {needed}, not for {names or 'none'}",
                             option=name)  # fmt: skip
        value = [value[j] for j in robot.coordinates]
    try:
        gains = np.broadcast_to(np.asarray(value, dtype=np.float64), (robot.dof,))
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is one number, or {robot.dof} of them, or a mapping by joint, not {value!r}",
            option=name,
        ) from None
    if not (np.isfinite(gains).all() and (gains >= 0).all()):
        raise InputError(f"{name} must be finite and at least zero, not {value!r}", option=name)
    return gains


@checked
@one_thread()
@step("simulating")
def simulate(
    robot: Robot | str | Path,
    log: Any,
    *,
    fitted: Robot | None = None,
    reference: Robot | str | Path | None = None,
    horizon: Sequence[float] | float = HORIZONS,
    command: Literal["position"] | None = None,
    kp: Any = None,
    kd: Any = None,
    delay: float = 0.0,
    windows: Annotated[int, count(1, MOST_WINDOWS)] = WINDOWS,
    name: str = "",
    **options: Any,
) -> Simulation:
    """Simulate windows of a log with a robot whose parameters have values.

    Parameters
    ----------
    robot : Robot or path
        The model: the robot of a fit, or a file, which is read with its sidecar;
        ``feasid.load_robot(path, sidecar=False)`` reads it as other programs do.
    log : DataFrame, mapping of arrays or path
        A log with torques, or with columns ``cmd_<joint>``.
    fitted : Robot, optional
        The model whose residual on the log counts as torque error; default `robot`.
    reference : Robot or path, optional
        The model that `robot` is compared with.
    horizon : float or sequence of float
        Lengths of the simulated windows [s].
    command : {"position"}, optional
        What the columns ``cmd_<joint>`` are; default measured torques drive the robot.
    kp, kd : float, sequence or mapping by joint, optional
        Gains of the servos that follow the commands.
    delay : float
        Delay between the row of a command and its effect, or of measured torques [s].
    windows : int
        Largest number of windows.
    name : str
        Name of the model in the output.
    **options
        `feasid.options.tables.LogOptions`.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError, LogError, NotEnoughDataError
        An option, the log or the robot is not usable; the message names what is wrong.
    """
    name = name or (robot.name if isinstance(robot, Robot) else str(robot))
    robot = load_robot(robot) if not isinstance(robot, Robot) else robot
    if reference is not None and not isinstance(reference, Robot):
        reference = load_robot(reference)
    for other in filter(None, (fitted, reference)):
        if other.coordinates != robot.coordinates:
            text = f"{robot.coordinates}, {other.name} has others: {other.coordinates}"
            raise InputError(f"{name} has joints {text}")
    try:
        horizons = tuple(sorted({float(h) for h in np.atleast_1d(np.asarray(horizon, float))}))
    except (TypeError, ValueError):
        horizons = ()
    if not horizons or not all(np.isfinite(h) and h > 0 for h in horizons):
        raise InputError(f"horizon needs lengths above zero [s], such as (0.1, 0.3): {horizon!r}",
                         option="horizon")  # fmt: skip
    if command is None and (kp is not None or kd is not None):
        text = "kp and kd are gains of servos that follow logged commands: pass command='position'"
        raise InputError(text, option="command")
    if command is not None and kp is None:
        raise InputError("logged commands need the servo's gains: give kp, and kd where it has")
    parts = (("kp", kp), ("kd", 0.0 if kd is None else kd))
    gains = [_gains_by_joint(robot, part, x) for part, x in parts if command is not None]
    servo = PositionController(gains[0], gains[1], delay) if gains else None
    recording = Recording.from_source(log)
    reading = options | ({"delay": delay} if servo is None else {"servo": Servo(robot.coordinates)})
    driving = [*np.array(robot.coordinates)[robot.moves].tolist()]
    motion = recording.motion(robot, torque=driving if robot.sensors else True, **reading)
    commands = None
    if servo is not None:
        signals = read_signals(recording, robot, **select_options(ReadOptions, reading))
        commands = [signals.values["tau"][run.rows] for run in motion.runs]
    task = SimulationWindows.from_motion(motion, horizons, windows, servo, commands)
    drives, residuals = task.driving_torques(fitted or robot)
    errors = task.errors(robot, drives, residuals)
    none = [np.full_like(errors[0], np.nan)] * 2
    compared = none if reference is None else task.errors(reference, drives, residuals)
    models = {id(m): m for m in (robot, fitted, reference) if m is not None}
    axes = [robot.bodies[robot.joint_index(joint)].motion for joint in driving]
    moves = robot.moves
    return Simulation(
        name,
        "" if reference is None else "description + friction" if fitted else reference.name,
        tuple(driving),
        tuple("rad" if motion[:3].any() else "m" for motion in axes),
        horizons,
        len(task.starts),
        servo is not None,
        rms=errors[0][:, moves],
        lost=errors[2][:, moves],
        reference_rms=compared[0][:, moves],
        noise_rms=errors[1][:, moves],
        reference_noise_rms=compared[1][:, moves],
        inertia_share=task.inertia_share([*models.values()], residuals)[moves],
        notes=motion.notes,
    )


@dataclass(frozen=True, eq=False)
class SimulationWindows:
    """Starts of the windows, and the torques or references that drive them."""

    motion: Motion
    horizons: tuple[float, ...]
    starts: tuple[tuple[int, int], ...]  #: Run and sample.
    step: float
    steps: int
    servo: PositionController | None
    commands: list[Array] | None

    @classmethod
    def from_motion(
        cls,
        motion: Motion,
        horizons: tuple[float, ...],
        windows: int,
        servo: PositionController | None = None,
        commands: list[Array] | None = None,
        most: float = MAX_STEP,
    ) -> SimulationWindows:
        """So many windows in steps of at most `most` [s]; NotEnoughDataError: they do not fit."""
        last = horizons[-1]
        delay = 0.0 if servo is None else servo.delay
        # A window needs the commands of the delay before its start.
        places = [
            (r, k)
            for r, run in enumerate(motion.runs)
            for k in range(int(np.ceil(delay * run.rate)), len(run) - int(last * run.rate) - 1)
        ]
        if not places:
            longest = max((len(run) / run.rate for run in motion.runs), default=0.0)
            raise NotEnoughDataError(
                f"windows of {last:g} s do not fit into the log, whose longest segment without "
                f"gaps lasts {longest:.3g} s: give a shorter horizon"
            )
        spread = np.unique(np.linspace(0, len(places) - 1, max(1, windows)).round().astype(int))
        steps = int(np.ceil(last / most))
        starts = tuple(places[k] for k in spread)
        return cls(motion, horizons, starts, last / steps, steps, servo, commands)

    def errors(
        self, robot: Robot, drives: Sequence[Array], residuals: Sequence[Array]
    ) -> tuple[Array, Array, npt.NDArray[np.int64]]:
        """RMS errors of a model, those of moved residuals, and lost windows; (horizons, joints)."""
        predicted = [inverse_dynamics(robot, run.q, run.dq, run.ddq) for run in self.motion.runs]
        torques = [self._step_means(drives)]
        for shift in SHIFTS:
            moved = [np.roll(x, int(shift * len(x)), axis=0) for x in residuals]
            torques.append(self._step_means([o + m for o, m in zip(predicted, moved, strict=True)]))
        groups = self._deviations(robot, torques)
        rms = [self._medians(group) for group in groups]
        # Not a number is lost, too: the motion diverged.
        astray = ~(np.abs(groups[0]) < LOST)
        lost = np.array([astray[:, :e].any(axis=1).sum(axis=0) for e in self._horizon_ends()])
        return rms[0], np.mean(rms[1:], axis=0), lost

    def measured_torque_errors(self, robot: Robot) -> Array:
        """RMS errors of a model that measured torques drive, (horizons, joints)."""
        torques = self._step_means([run.tau for run in self.motion.runs])
        return self._medians(self._deviations(robot, [torques])[0])

    def _deviations(self, robot: Robot, torques: list[Array]) -> list[Array]:
        """Positions of a model driven by each of these torques, less the measured ones."""
        places = [(self.motion.runs[r], k) for r, k in self.starts]
        q0, v0 = (np.array([getattr(run, kind)[k] for run, k in places]) for kind in ("q", "dq"))
        many = len(torques)
        # Commands for the windows of the log; where moved residuals drive, the motion itself.
        feedback = None
        if self.servo is not None:
            assert self.commands is not None
            commands = self._step_means(self.commands, delay=self.servo.delay)
            positions = self._step_means([run.q for run in self.motion.runs])
            speeds = self._step_means([run.dq for run in self.motion.runs])
            feedback = Feedback(
                self.servo.kp,
                self.servo.kd,
                np.concatenate([commands, *[positions] * (many - 1)]),
                np.concatenate([np.zeros_like(speeds), *[speeds] * (many - 1)]),
            )
        simulated, moves = np.zeros((many * len(q0), self.steps + 1, robot.dof)), robot.moves
        simulated[..., moves] = ForwardModel(robot.without_torque_sensors()).roll_out(
            np.tile(q0[:, moves], (many, 1)),
            np.tile(v0[:, moves], (many, 1)),
            np.concatenate(torques)[..., moves],
            self.step,
            feedback,
        )
        measured = [[np.interp(self._step_times(run, k), np.arange(len(run)), x) for x in run.q.T]
                    for run, k in places]  # fmt: skip
        return np.split(simulated - np.tile(np.swapaxes(measured, 1, 2), (many, 1, 1)), many)

    def _horizon_ends(self) -> list[int]:
        return [1 + max(1, round(h / self.step)) for h in self.horizons]

    def _medians(self, off: Array) -> Array:
        """Medians over windows of RMS deviations, (horizons, joints); a lost window is infinite."""
        squared = np.where(np.isfinite(off), off, np.inf) ** 2
        means = [squared[:, 1:e].mean(axis=1) for e in self._horizon_ends()]
        return np.asarray(np.sqrt(np.median(means, axis=1)))

    def driving_torques(self, noise: Robot) -> tuple[list[Array], list[Array]]:
        """Every run's driving torques without the feedback, and the residuals of a fit."""
        drives, residuals = list[Array](), list[Array]()
        for r, run in enumerate(self.motion.runs):
            drive = torque = run.tau
            if self.servo is not None:
                assert self.commands is not None
                late = delay_commands(self.commands[r], self.servo.delay, 1.0 / run.rate)
                drive = np.zeros_like(run.q)
                torque = self.servo.kp * (late - run.q) - self.servo.kd * run.dq
            drives.append(drive)
            residuals.append(torque - inverse_dynamics(noise, run.q, run.dq, run.ddq))
        return drives, residuals

    def _step_times(self, run: Run, start: int) -> Array:
        return np.asarray(start + run.rate * self.step * np.arange(self.steps + 1))

    def _step_means(self, signals: Sequence[Array], *, delay: float | None = None) -> Array:
        """Means of each run's signal over all steps, shape (windows, steps, dof).

        Between samples a signal is linear; with a delay [s] it is shifted, and its last value is
        held.
        """
        # A mean over a step is a difference of sums, which are interpolated between samples.
        sums = []
        for x in signals:
            pieces = x[:-1] if delay is not None else 0.5 * (x[1:] + x[:-1])
            sums.append(np.vstack([np.zeros(x.shape[1]), np.cumsum(pieces, axis=0)]))
        out = []
        for r, k in self.starts:
            run = self.motion.runs[r]
            at = self._step_times(run, k) - (delay or 0.0) * run.rate
            total = interpolate(at, np.arange(float(len(run))), sums[r])
            out.append(np.diff(total, axis=0) / (run.rate * self.step))
        return np.array(out)

    def inertia_share(self, models: Sequence[Robot], residuals: Sequence[Array]) -> Array:
        """Least rms(M a) of the models over rms(residual) behind the low-pass, per joint."""
        squares = np.zeros((len(models) + 1, residuals[0].shape[1]))
        for run, residual in zip(self.motion.runs, residuals, strict=True):
            pushed = (inertial_torques(model, run.q, run.ddq) for model in models)
            every = replace(run, tau=np.hstack([residual, *pushed]))  # filtered in one go
            for part in low_pass_motion(replace(self.motion, runs=(every,))).runs:
                squares += np.sum(part.tau**2, axis=0).reshape(squares.shape)
        return np.sqrt(_ratio_or_nan(squares[1:].min(axis=0), squares[0]))


def robot_as_described(base: BaseParameters, robot: Robot, reduced: Reduced) -> Robot | None:
    """The description's inertials with joint terms fitted to the reduced log; None without them,
    and where a motor behind a spring gets no inertia, as of a description that is too heavy.

    `base`: with the joint terms to fit; `robot`: with the description's inertials, and bodies in
    the same order.
    """
    r, rho, _ = estimate_noise(reduced)[0].whitened_triangle(reduced)
    values = fit_joint_terms(base, robot.values[robot.inertial_columns], r, rho)
    terms = dict(zip(base.robot.parameter_names, values.tolist(), strict=True))
    light = any(terms.get((motor, "Ia")) == 0 for motor in base.robot.elastic.values())
    return base.robot.with_values(values) if np.isfinite(values).all() and not light else None
