"""Gains of joint servos from positions and commands, without measured torques.

With ``tau = kp (c(t - d) - q) - kd dq`` the equations of motion are linear and homogeneous in
gains and dynamics: with e = c(t - d) - q and Y the regressor,

    e_j = Y_j delta / kp_j,    j = 1 .. dof,

where the viscous coefficients of delta hold kd, too. The mass matrix is symmetric and gravity a
gradient, so that joints that are coupled share one factor (`feasid.servo_scale_groups`): all but
this factor follows from the log. The factor is the description's unless something was weighed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, LogError
from feasid.core.notes import Note
from feasid.identification.estimation.torque_scale import FACTOR_SHARE
from feasid.identification.regression.reduce import open_sources
from feasid.identification.servos.equations import EARLIEST, LONGEST_DELAY
from feasid.identification.servos.laws import APART, CLOSE, GainProblem, LawFit
from feasid.identification.servos.prior import (
    DESCRIPTION,
    FILE_SHARE,
    gain_prior,
    weighing_instructions,
)
from feasid.identification.servos.rows import CUTOFF, ServoRows, find_limits
from feasid.logs.servo import Servo
from feasid.parameters.identifiability.base import (
    base_parameters,
    load_parameters,
    servo_scale_groups,
)
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import with_fit_terms

if TYPE_CHECKING:
    import pandas as pd

LEAST_COUNTS = 2.0  #: RMS error in encoder counts below which a log says nothing about gains.

LEAST_SHAPE = 0.07
"""Least relative standard deviation of the common factor, in addition to the description's common
error: those of the evidence alone were too small."""

LIMITED = 0.01  #: Misfit above which torque limits are searched.

UNTOLD, ASSUMED = 0.25, 0.7
"""Relative deviation of a gain's ratio from which the log does not tell it: rounded positions bias
it (a gripper's, known to .27, was 2.5 times off); and what it counts then: servos differ by two."""

DOUBTFUL_MISFIT, ROUNDINGS, LARGEST_MISFIT = 0.01, 5.0, 0.6
"""A fit is doubtful if the unexplained share of an error exceeds the first number and is so many
times what the encoder's rounding leaves; above the last number there is no fit. Dead bands,
elasticity, profiles inside a servo and joints that stick left 1.2 to 70 % and ten and more
multiples, modelled servos up to 1.3 % and one to three multiples, real ones of hobby arms 20 %."""

LATEST = LONGEST_DELAY - 0.01  #: A delay from here [s] on is at the end of those that are sought.

LARGEST_ERROR = 1.0  #: RMS error [rad] of a turning joint from which it follows no command at all.


@dataclass(frozen=True, eq=False)
class ServoFit:
    """What a log of positions and commands shows of the servos."""

    servo: Servo  #: Servo with which commands are read as torques.
    #: Shape (dof,): relative standard deviations of the gains, and of their ratios to the mean
    #: gain.
    kp_deviations: Array
    ratio_deviations: Array  #: See `kp_deviations`.
    #: Shape (dof,): derivative gain and viscous friction, which the log tells in sum only [N m s or
    #: N s / m].
    damping: Array
    damping_deviations: Array  #: See `damping`.
    factor: float  #: Relative standard deviation of the factor that all gains and parameters share.
    fixed_by: str  #: What fixed it.
    #: Joints that share one factor, see `feasid.servo_scale_groups`.
    groups: tuple[tuple[str, ...], ...]
    delay_deviation: float  #: [s]
    misfit: Array  #: Shape (dof,): share of each error that is not explained.
    rounding: Array  #: Shape (dof,): share that rounding of the positions leaves of it.
    kept: Array  #: Shape (dof,): share of each joint's rows that was used.
    weighing: str = ""  #: What to weigh, and how, where only the description fixes the factor.
    from_log: float = 0.0  #: The part of `factor` that is not the description's common error.
    #: Gains that the robot's file states, by joint: a prior of `FILE_SHARE`.
    stated: Mapping[str, float] = field(default_factory=dict)
    #: Another law of the servo that is about as likely, with other gains; empty for none.
    other_law: str = ""

    @property
    def delay(self) -> float:
        """From the row of a command to its effect, by the log's clock [s]."""
        return self.servo.delay

    def log_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with which the log's commands are read as torques."""
        return {"servo": self.servo, "cutoff": options["cutoff"] or CUTOFF}

    @cached_property
    def table(self) -> pd.DataFrame:
        """Per joint: gains with standard deviations in SI; the factor's is in ``kp_std`` too.

        Gains that the log does not tell are "assumed" in the column `source`, without deviations.
        """
        import pandas as pd

        kp = np.asarray(self.servo.kp)
        known = np.where([j in self.untold for j in self.servo.joints], np.nan, 1.0)
        columns: dict[str, Any] = {
            "kp": kp,
            "kp_std": known * kp * self.kp_deviations,
            "ratio_std": known * self.ratio_deviations,
            "damping": self.damping,
            "damping_std": known * self.damping_deviations,
            "misfit": self.misfit,
            "source": np.where(np.isfinite(known), "log", "assumed"),
        }
        columns |= {name: np.asarray(v) for name, v in (self.servo.terms or {}).items()}
        if self.servo.limit:
            columns |= {"limit": np.asarray(self.servo.limit), "kd": np.asarray(self.servo.kd)}
        return pd.DataFrame(columns, index=pd.Index(self.servo.joints, name="joint"))

    @property
    def untold(self) -> tuple[str, ...]:
        """Joints whose gain the log does not tell."""
        rows = zip(self.servo.joints, self.ratio_deviations, strict=True)
        return tuple(joint for joint, deviation in rows if deviation > UNTOLD)

    def draw(self, count: int, rng: np.random.Generator, scale: float = 1.0) -> tuple[Servo, ...]:
        """Servos that are as likely as this one: common factor, ratios of gains and delay.

        `scale`: factor on all deviations.
        """
        known = [j not in self.untold for j in self.servo.joints]
        ratios = np.where(known, self.ratio_deviations, ASSUMED)
        shares = rng.standard_normal((count, len(known))) * ratios
        shares += self.factor * rng.standard_normal((count, 1))
        late = self.delay + scale * self.delay_deviation * rng.standard_normal(count)
        servo, out = self.servo, []
        for share, delay in zip(np.exp(scale * shares), late.tolist(), strict=True):
            kp, limit, kd = (tuple((np.asarray(x) * share).tolist()) if x else ()
                             for x in (servo.kp, servo.limit, servo.kd))  # fmt: skip
            out.append(replace(servo, kp=kp, limit=limit, kd=kd, delay=max(delay, 0.0)))
        return tuple(out)

    def __repr__(self) -> str:
        table = self.table.to_string(float_format="%.4g", na_rep="")
        return f"{table}\n" + "\n".join(self.notes)

    @property
    def notes(self) -> list[Note]:
        """The uncertainty of gains, their common factor, and what fixed it."""
        free = "; ".join(", ".join(group) for group in self.groups)
        worst = float(np.max(self.ratio_deviations))
        factor = f"{100 * self.factor:.2g} %"
        if self.fixed_by == DESCRIPTION:
            factor += (
                f" ({100 * self.from_log:.2g} % from this log, and {100 * FACTOR_SHARE:.0f} % by "
                "which masses of a description may be off together)"
            )
        damping = "gain" if self.servo.law == "velocity" else "damping"
        notes = [
            Note(
                f"gains and parameters are known up to one common factor of {free}: fixed by "
                f"{self.fixed_by}, {factor}; ratios of gains to {100 * worst:.2g} %. "
                "Torques, torque limits, masses, payloads and contact forces carry the factor, "
                "motion does not",
                "servo-factor",
                factor=self.factor,
                fixed_by=self.fixed_by,
                ratios=worst,
            )
        ]
        notes += [Note(self.weighing, "servo-weighing")] if self.weighing else []
        if self.stated:
            gains = ", ".join(f"{joint} {kp:.3g}" for joint, kp in self.stated.items())
            text = (
                f"gains that the file states are taken as known to {100 * FILE_SHARE:.0f} % each "
                f"(gains= gives trusted ones): {gains}"
            )
            notes.append(Note(text, "servo-stated"))
        if self.servo.law != "current":
            text = (
                f"{damping} of the servo and viscous friction: only their sum is known, as viscous "
                "friction"
            )
            late = (
                f"commands act {1e3 * self.delay:.2f} +- {1e3 * self.delay_deviation:.2g} ms after "
                "their rows, by the log's own clock"
            )
            notes += [Note(text, "servo-damping"), Note(late, "servo-delay", delay=self.delay)]
        shares = ", ".join(f"{100 * k:.0f} %" for k in self.kept)
        text = f"rows used of each joint, away from its reversals: {shares}"
        return [*notes, Note(text, "servo-rows"), *self._law_notes(), *self._doubts()]

    def _law_notes(self) -> list[Note]:
        notes = []
        if self.servo.terms:
            names = ", ".join(self.servo.terms)
            if self.servo.rate_time:
                names += f" (rate behind a low-pass of {1e3 * self.servo.rate_time:.2g} ms)"
            if "weight" in self.servo.terms:
                names += f" ({self.servo.terms['weight'][0]:.2f} of the robot's own is carried)"
            text = f"terms of the servo that the log's evidence selected: {names}"
            notes.append(Note(text, "servo-terms"))
        if self.servo.limit:
            ends = zip(self.servo.joints, self.servo.limit, strict=True)
            limits = ", ".join(f"{j} {x:.3g} N m or N" for j, x in ends if np.isfinite(x))
            text = (
                f"torque limits that the log shows: {limits}; they carry the common factor, and "
                "closed-loop motion at a limit is hard to predict: record a slower motion that "
                "stays within them"
            )
            notes.append(Note(text, "servo-limit", confirmed=True))
        return notes

    def _doubts(self) -> list[Note]:
        """Gains that the log does not determine, another law that it does not exclude, and
        misfits.
        """
        doubts, joints = [], self.servo.joints
        if self.untold:
            text = (
                f"gains that the log does not tell are assumed: {', '.join(self.untold)}; their "
                "torques, friction, drive inertia and grip carry the error. Move these joints "
                "faster, log finer positions, or give a gain that was measured (gains=)"
            )
            doubts.append(Note(text, "servo-untold", joints=[*self.untold], confirmed=True))
        if self.other_law:
            text = (
                f"the log does not show which further terms the servos have: {self.other_law}; "
                "record poses at rest and fast motions of all joints, or name the law "
                "(servo_terms=)"
            )
            doubts.append(Note(text, "servo-law", confirmed=True))
        more = self.misfit > np.maximum(DOUBTFUL_MISFIT, ROUNDINGS * self.rounding)
        shares = {j: float(m) for j, m in zip(joints, self.misfit, strict=True)}
        if more.any():
            worst = joints[int(np.argmax(np.where(more, self.misfit, 0.0)))]
            text = (
                f"{100 * shares[worst]:.2g} % of the error of joint {worst!r} are not explained by "
                f"tau = kp (cmd - q) - kd dq with terms {[*(self.servo.terms or {})]}: a dead "
                "band, stiction, backlash, a torque limit, contacts or a profile of speeds inside "
                "the servo; log the interpolated command, or judge the model by fit.simulate() "
                "alone"
            )
            doubts.append(Note(text, "servo-unexplained", misfits=shares, confirmed=True))
        return doubts


def identify_servo(logs: Sequence[Any], robot: Robot, options: Mapping[str, Any]) -> ServoFit:
    """Gains and delay of the servos behind logs of positions and commands.

    `options`: `feasid.options.tables.FitOptions`, all of them. Raises InputError, LogError,
    NotEnoughDataError: what is wrong with the log, or that a servo does more than is modelled, by
    name.
    """
    base = base_parameters(_require_model(robot, options))
    law = str(options["command"])
    data = [ServoRows.from_logs(logs, base, law, options)]
    if options["loaded"] is not None:
        shift = load_parameters(base, options["load"])
        data.append(ServoRows.from_logs(open_sources(options["loaded"]), base, law, options, shift))
    # Reject commands that do not determine gains.
    rows = data[0]
    for j, joint in enumerate(rows.robot.joints if law == "position" else ()):
        e = np.concatenate([s.commands[:, j] - s.q[:, j] for s in rows.stretches])
        rms, count = float(np.sqrt(np.mean(e**2))), rows.counts[j]
        still = 1e-9 * max(float(np.ptp(s.q[:, j])) for s in rows.stretches)
        # A logged state may also be that of the next row.
        ahead = np.concatenate([s.commands[:-1, j] - s.q[1:, j] for s in rows.stretches])
        column = f"cmd_{joint}"
        if rms <= still or np.sqrt(np.mean(ahead**2)) <= still:
            text = (
                f"the commands of joint {joint!r} ({column}) are its own positions: a state was "
                "logged in the place of the command; log what was sent to the servo"
            )
        elif rms > LARGEST_ERROR and rows.robot.bodies[j].motion[:3].any():
            text = (
                f"joint {joint!r} does not follow its commands ({column}): they differ by "
                f"{rms:.2g} rad RMS, whole turns aside; correct the unit (units={{'cmd': 'deg'}}), "
                "or the column (columns=)"
            )
        elif np.isfinite(count) and rms < LEAST_COUNTS * count:
            column = f"q_{joint}"
            text = (
                f"the error cmd - q of joint {joint!r} is {rms:.2g} rad or m RMS, "
                f"and its encoder steps by {count:.2g}: below {LEAST_COUNTS:g} counts it "
                "determines no gains; lower the servo's gain, load it, or move faster"
            )
        else:
            continue
        raise LogError(text, joint=joint, column=column)
    problem = GainProblem(base, tuple(data), gain_prior(base, options))
    best, tried = problem.choose(law, options["servo_terms"])
    if law == "position" and (_is_late(best) or _misfit(problem, best).max() > LIMITED):
        limits = find_limits(data[0])
        if limits is not None:
            limited = replace(problem, limits=limits)
            other, others = limited.choose(law, options["servo_terms"])
            if other.equations.noise_score < best.equations.noise_score:
                problem, best, tried = limited, other, others
    _refuse_unexplained(problem, best)
    # A law about as likely whose gains are others.
    likely = (x for x in tried if x is not best and x.score < best.score + CLOSE)
    rival = next((x for x in likely if abs(x.mean_log - best.mean_log) > APART), None)
    return _servo_fit(problem, best, rival)


def _require_model(robot: Robot, options: Mapping[str, Any]) -> Robot:
    """The robot with the joint terms that the gains are identified with."""
    shared = any(len(d.coupling) > 1 for d in robot.drives)
    if robot.dof != len(robot.bodies) or not robot.is_tree or shared:
        raise InputError(
            "commands identify gains of joints that move by themselves, with one degree of freedom "
            f"each; robot {robot.name!r} has coupled joints or drives, or a floating base: fit "
            "measured torques"
        )
    for name in ("measured", "transmission", "friction_per_kelvin"):
        if options[name] is not None:
            text = f"{name} applies to torques, and command to logs without: leave it out"
            raise InputError(text, option=name)
    if options["delay"]:
        raise InputError("the delay of commands is identified: leave delay out", option="delay")
    if options["servo"] is not None:
        text = "servo= states the gains that command= identifies: pass one of them"
        raise InputError(text, option="servo")
    if (options["loaded"] is None) != (options["load"] is None):
        text = "a known load needs both loaded= (a log with it) and load= (its parameters)"
        raise InputError(text)
    if options["filtering"] != "equations":
        raise InputError("commands need filtered equations: leave filtering and cutoff=False out",
                         option="filtering")  # fmt: skip
    if options["drive_inertia"] is False:  # the gain takes its place, and the fit looks good
        text = "gains of commands are wrong without drive inertia: leave drive_inertia=False out"
        raise InputError(text, option="drive_inertia")
    model, _ = with_fit_terms(robot, options["friction"], options["drive_inertia"])
    damped = {joint for d in model.drives if "fv" in d.symbols for joint in d.coupling}
    if lacking := [joint for joint in model.joints if joint not in damped]:
        raise InputError(f"joint {lacking[0]!r} has no viscous friction, which holds the servo's "
                         "damping: friction must name viscous", option="friction")  # fmt: skip
    return model


def _servo_fit(problem: GainProblem, best: LawFit, rival: LawFit | None) -> ServoFit:
    """Gains with standard deviations and the origin of the common factor."""
    robot, prior, equations = problem.base.robot, problem.prior, best.equations
    posterior, law, limits = best.posterior, best.law, problem.limits
    n, (lags, delay_deviation) = robot.dof, equations.lags
    covariance, gains = posterior.covariance, np.exp(posterior.logs)
    log_part = float(np.sqrt(covariance.mean()))
    described = prior.fixed_by == DESCRIPTION
    shape = max(log_part, LEAST_SHAPE) if described else log_part
    factor = float(np.hypot(shape, FACTOR_SHARE)) if described else shape
    spread = np.eye(n) - 1.0 / n
    # Added to the covariance of the logarithms, which holds the log's part already.
    more = factor**2 - log_part**2
    drives = [robot.drive_columns(k)["fv"] for k in range(n)]
    parameters = _standard_parameters(problem, posterior.delta)
    deviations = _standard_parameters(problem, posterior.spread)
    _, factors = equations.unexplained(prior.unknowns @ posterior.delta, posterior.logs)
    terms = {t: tuple(x.tolist()) for t, x in zip(law.terms, factors, strict=True)}
    carried: tuple[float, ...] = ()
    if law.share:
        terms["weight"] = (law.share,) * n
        carried = tuple(parameters[robot.inertial_columns.ravel()].tolist())
    ends = (np.zeros(0),) * 2 if limits is None else (gains * limits.error, gains * limits.damping)
    groups = servo_scale_groups(robot)
    servo = Servo(
        robot.joints,
        tuple(gains.tolist()),
        float(lags[0]),
        law.kind,
        terms,
        tuple(ends[0].tolist()),
        tuple(ends[1].tolist()),
        float(lags[1]) if "rate" in law.terms else 0.0,
        carried,
    )
    steps = [s for group in groups for s in weighing_instructions(robot, group)]
    # kp (cmd(t - delay) - q): a delay off by d acts as a damping that is off by kp d.
    late, common = gains * delay_deviation, more * parameters[drives] ** 2
    damping_deviations = np.sqrt(deviations[drives] ** 2 + common + late**2)
    return ServoFit(
        servo,
        np.sqrt(np.diag(covariance) + more),
        np.sqrt(np.diag(spread @ covariance @ spread)),
        parameters[drives],
        damping_deviations,
        factor,
        prior.fixed_by,
        groups,
        delay_deviation,
        _misfit(problem, best),
        problem.data[0].rounding_share(float(lags[0]), limits),
        problem.data[0].use.mean(axis=0),
        " ".join(steps) if described else "",
        shape,
        {robot.joints[j]: kp for j, (kp, _) in prior.stated.items()},
        "" if rival is None else
        f"{rival.law} is about as likely as {best.law}, with gains "
        f"{np.exp(rival.mean_log - best.mean_log):.2g} times these",
    )  # fmt: skip


def _standard_parameters(problem: GainProblem, values: Array) -> Array:
    """Standard parameters of the unknowns; those that base parameters leave out are zero."""
    base = problem.base
    if len(values) == base.robot.size:
        return values
    out = np.zeros(base.robot.size)
    out[[int(c) for c in base.independent]] = values
    return out


def _misfit(problem: GainProblem, found: LawFit) -> Array:
    """Unexplained share of each joint's error, (dof,)."""
    beta = problem.prior.unknowns @ found.posterior.delta
    return found.equations.unexplained(beta, found.posterior.logs)[0]


def _is_late(found: LawFit) -> bool:
    """Whether commands seem to act before they are given, or implausibly late."""
    return found.law.kind != "current" and not EARLIEST < found.equations.lags[0][0] < LATEST


def _refuse_unexplained(problem: GainProblem, found: LawFit) -> None:
    """Reject logs that no servo law explains."""
    delay, misfit = float(found.equations.lags[0][0]), _misfit(problem, found)
    if _is_late(found):
        raise LogError(
            f"commands seem to act {1e3 * delay:.1f} ms after their rows, beyond "
            f"{1e3 * EARLIEST:g} to {1e3 * LATEST:g} ms: the servo acts on the command's rate or "
            "adds a feed-forward that servo_terms does not name, or the column holds other commands"
        )
    worst = int(np.argmax(misfit))
    joint = problem.base.robot.joints[worst]
    if misfit[worst] > LARGEST_MISFIT:
        raise LogError(
            f"{100 * misfit[worst]:.0f} % of the error of joint {joint!r} are not "
            f"explained by tau = kp (cmd - q) - kd dq with terms {[*found.law.terms]}: columns in "
            "degrees, with the other sign, or of another joint, a dead band, contacts, or a "
            "profile of speeds inside the servo; correct units= and columns=, log the interpolated "
            "command, or measure torques",
            joint=joint,
        )
