"""Gains of joint servos from positions and commands, without measured torques.

With ``tau = kp (c(t - d) - q) - kd dq`` the equations of motion are linear and homogeneous in
gains and dynamics: with e = c(t - d) - q and Y the regressor,

    e_j = Y_j delta / kp_j,    j = 1 .. dof,

where the viscous coefficients of delta hold kd, too. The mass matrix is symmetric and gravity a
gradient, so that joints that are coupled share one factor (`feasid.servo_scale_groups`): all but
this factor follows from the log. The factor is the description's unless something was weighed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.dynamics.regressor import inverse_dynamics, regressor
from feasid.errors import InputError, LogError
from feasid.formats.fit_robot import with_fit_terms
from feasid.identifiability.base import BaseParameters, base_parameters, servo_scale_groups
from feasid.loads.description import FACTOR_SHARE, INERTIAL_SHARE
from feasid.loads.payload import load_parameters
from feasid.logs.servo import TERMS, Servo
from feasid.regression.reduce import open_sources
from feasid.robot.description import Robot
from feasid.servos.equations import (
    DELAY_STEP,
    EARLIEST,
    LONGEST_DELAY,
    MOST_MISFIT,
    GainEquations,
    GainPrior,
    GainSolution,
)
from feasid.servos.rows import CUTOFF, ServoRows, find_limits, refuse_dead_bands

if TYPE_CHECKING:
    import pandas as pd

LEAST_COUNTS = 2.0
"""RMS error in encoder counts below which a log says nothing about gains."""

DESCRIPTION = "the description"
"""What fixes the common factor where nothing was weighed."""

WEIGHED = 33
"""Positions of a joint of which the one with the largest moment is proposed for weighing."""

SMALLEST_MOMENT = 1e-9
"""Gravity moment [N m] below which there is nothing to weigh; a vertical axis gives 1e-17."""

LARGE_MOMENT = 5.0
"""Gravity moment [N m] from which the scale is proposed half a metre from the axis."""

LIMITED = 0.01
"""Misfit above which torque limits are looked for."""

UNTOLD = 0.5
"""A gain with a larger relative deviation is not told by the log."""

LARGEST_ERROR = 1.0
"""RMS error [rad] of a turning joint from which a command is not followed at all."""

BETTER = 0.8
"""Share of the held-out squared misfit below which a candidate term is kept."""


@dataclass(frozen=True, eq=False)
class ServoFit:
    """What a log of positions and commands tells of the servos.

    Attributes
    ----------
    servo : Servo
        With which commands are read as torques.
    kp_deviations, ratio_deviations : ndarray, shape (dof,)
        Relative standard deviations of the gains, and of their ratios to the mean gain.
    damping, damping_deviations : ndarray, shape (dof,)
        Derivative gain and viscous friction, which the log tells in sum only [N m s or N s / m].
    factor : float
        Relative standard deviation of the factor that all gains and parameters share.
    fixed_by : str
        What fixed it.
    groups : tuple of tuple of str
        Joints that share one factor, see `feasid.servo_scale_groups`.
    delay_deviation : float
        [s]
    misfit : ndarray, shape (dof,)
        Share of each error that is not explained.
    kept : ndarray, shape (dof,)
        Share of each joint's rows that was used.
    weighing : str
        What to weigh, and how, where only the description fixes the factor.
    """

    servo: Servo
    kp_deviations: Array
    ratio_deviations: Array
    damping: Array
    damping_deviations: Array
    factor: float
    fixed_by: str
    groups: tuple[tuple[str, ...], ...]
    delay_deviation: float
    misfit: Array
    kept: Array
    weighing: str = ""

    @property
    def delay(self) -> float:
        """From the row of a command to its effect, by the log's clock [s]."""
        return self.servo.delay

    def log_options(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Options with which the log's commands are read as torques."""
        return {"servo": self.servo, "cutoff": chosen["cutoff"] or CUTOFF}

    @cached_property
    def table(self) -> pd.DataFrame:
        """Per joint: gains with standard deviations in SI; the factor's is in ``kp_std`` too."""
        import pandas as pd

        kp = np.asarray(self.servo.kp)
        columns = {
            "kp": kp,
            "kp_std": kp * self.kp_deviations,
            "ratio_std": self.ratio_deviations,
            "damping": self.damping,
            "damping_std": self.damping_deviations,
            "misfit": self.misfit,
        }
        columns |= {name: np.asarray(v) for name, v in (self.servo.terms or {}).items()}
        if self.servo.limit:
            columns |= {"limit": np.asarray(self.servo.limit), "kd": np.asarray(self.servo.kd)}
        return pd.DataFrame(columns, index=pd.Index(self.servo.joints, name="joint"))

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='%.4g')}\n" + "\n".join(self.notes)

    @property
    def notes(self) -> list[Note]:
        """What is known, up to what, and by what."""
        free = "; ".join(", ".join(group) for group in self.groups)
        worst = float(np.max(self.ratio_deviations))
        factor = f"{100 * self.factor:.2g} %"
        position = self.servo.law == "position"
        damping = "damping of the servo" if position else "gain of the servo"
        said = [
            Note(
                f"gains and parameters are known up to one common factor of {free}: fixed by "
                f"{self.fixed_by}, {factor}; ratios of gains to {100 * worst:.2g} %. "
                "Torques, payloads and contact forces carry the factor, motion does not",
                "servo-factor",
                factor=self.factor,
                fixed_by=self.fixed_by,
                ratios=worst,
            ),
            *([Note(self.weighing, "servo-weighing")] if self.weighing else []),
        ]
        acting = [
            Note(
                f"{damping} and viscous friction: their sum, as viscous friction", "servo-damping"
            ),
            Note(
                f"commands act {1e3 * self.delay:.2f} +- {1e3 * self.delay_deviation:.2g} ms after "
                "their rows, by the log's own clock",
                "servo-delay",
                delay=self.delay,
            ),
        ]
        said += acting if self.servo.law != "current" else []
        said += [
            Note(
                f"rows used of each joint, away from its reversals: "
                f"{', '.join(f'{100 * k:.0f} %' for k in self.kept)}",
                "servo-rows",
            ),
        ]
        return [*said, *self._further_notes()]

    def _further_notes(self) -> list[Note]:
        """Terms and limits that the log asked for, and gains that it does not tell."""
        said = []
        if self.servo.terms:
            names = ", ".join(self.servo.terms)
            if self.servo.rate_time:
                names += f" (rate behind a low-pass of {1e3 * self.servo.rate_time:.2g} ms)"
            said.append(Note(f"terms of the servo that the log asked for: {names}", "servo-terms"))
        if self.servo.limit:
            ends = zip(self.servo.joints, self.servo.limit, strict=True)
            told = ", ".join(f"{j} {x:.3g} N m or N" for j, x in ends if np.isfinite(x))
            said.append(
                Note(
                    f"torque limits that the log shows: {told}; closed-loop motion at a limit is "
                    "hard to predict: record a slower motion that stays within them",
                    "servo-limit",
                    confirmed=True,
                )
            )
        lost = [
            j for j, d in zip(self.servo.joints, self.ratio_deviations, strict=True) if d > UNTOLD
        ]
        if lost:
            said.append(
                Note(
                    f"gains that the log does not tell: {', '.join(lost)}; move these joints "
                    "faster, or weigh the robot with a payload",
                    "servo-untold",
                    joints=lost,
                )
            )
        return said


def identify_servo(logs: Sequence[Any], robot: Robot, chosen: Mapping[str, Any]) -> ServoFit:
    """Gains and delay of the servos behind logs of positions and commands.

    Parameters
    ----------
    logs : sequence of Recording
    robot : Robot
    chosen : mapping
        `feasid.options.tables.FitOptions`, completed.

    Raises
    ------
    InputError, LogError, NotEnoughDataError
        What is wrong with the log, or that a servo does more than is modelled, by name.
    """
    model = _require_model(robot, chosen)
    base = base_parameters(model)
    law = str(chosen["command"])
    prior = _gain_prior(base, chosen)
    data = [ServoRows.from_logs(logs, base, law, chosen)]
    if chosen["loaded"] is not None:
        shift = load_parameters(base, chosen["load"])
        data.append(ServoRows.from_logs(open_sources(chosen["loaded"]), base, law, chosen, shift))
    _refuse_silent(data[0], law)
    task = GainEquations(base, tuple(data), prior, law, delayed=law != "current")
    found = _solve_for_gains(task, chosen["servo_terms"])
    _refuse_unexplained(found, law)
    return _servo_fit(found)


def _solve_for_gains(task: GainEquations, terms: Sequence[str] | None) -> GainSolution:
    """Gains with these terms, else those that the log asks for, and with limits where they help."""

    def solve_with_terms(task: GainEquations) -> GainSolution:
        found = replace(task, terms=tuple(terms or ())).solve()
        return found if terms is not None or task.law != "position" else _choose_terms(task, found)

    found = solve_with_terms(task)
    if task.law != "position" or (found.is_plausible and found.misfit.max() < LIMITED):
        return found
    limits = find_limits(task.data[0])
    if limits is not None:
        limited = solve_with_terms(replace(task, limits=limits))
        found = limited if limited.step.score < found.step.score else found
    refuse_dead_bands(task.data[0], found.delay)
    return found


def _require_model(robot: Robot, chosen: Mapping[str, Any]) -> Robot:
    """The robot with the joint terms that the gains are identified with."""
    if (
        robot.dof != len(robot.bodies)
        or not robot.is_tree
        or any(len(d.coupling) > 1 for d in robot.drives)
    ):
        raise InputError(
            "commands identify gains of joints that move by themselves, with one degree of freedom "
            f"each; robot {robot.name!r} has others"
        )
    for name in ("measured", "transmission"):
        if chosen[name] is not None:
            raise InputError(
                f"{name} is about torques, and command about logs without", option=name
            )
    if chosen["delay"]:
        raise InputError("delay is of torques; that of commands is identified", option="delay")
    if chosen["servo"] is not None:
        raise InputError("servo states gains that command asks for: give one", option="servo")
    if (chosen["loaded"] is None) != (chosen["load"] is None):
        raise InputError("a known load needs both: the log with it (loaded) and what it is (load)")
    if chosen["filtering"] != "equations":
        raise InputError("commands need filtered equations: leave filtering and cutoff=False out",
                         option="filtering")  # fmt: skip
    friction = chosen["friction"]
    if friction is not None and "viscous" not in friction:
        raise InputError(
            "damping of a servo is viscous friction: friction must name viscous", option="friction"
        )
    model, _ = with_fit_terms(robot, friction, chosen["drive_inertia"])
    lacking = [d.name for d in model.drives if "fv" not in d.symbols]
    if lacking:
        raise InputError(f"drive {lacking[0]!r} has no viscous friction, which holds the servo's "
                         "damping: name friction=", option="friction")  # fmt: skip
    return model


def _gain_prior(base: BaseParameters, chosen: Mapping[str, Any]) -> GainPrior:
    """The description's inertials, and what was weighed."""
    robot = base.robot
    described = robot.values
    known = bool(np.isfinite(described[robot.inertial_columns]).all())
    gains = _trusted_gains(robot, chosen["gains"])
    weighed = {
        "a known load": chosen["loaded"] is not None,
        "trusted gains": bool(gains),
        "moments that were weighed": bool(chosen["moments"]),
    }
    by = [what for what, given in weighed.items() if given]
    if not known and not by:
        raise InputError(
            f"the description of robot {robot.name!r} lacks inertials, so that nothing fixes "
            "the common factor of gains and parameters: give gains=, moments= or loaded= and "
            "load="
        )
    rows, values = _description_rows(robot) if known else (np.zeros((0, robot.size + 1)), [])
    moments = [_moment_row(base, *m) for m in chosen["moments"] or ()]
    return GainPrior(
        np.vstack([rows, *(m[:-1] for m in moments)]),
        np.array([*values, *(m[-1] for m in moments)]),
        gains,
        " and ".join(by) or DESCRIPTION,
    )


def _description_rows(robot: Robot) -> tuple[Array, list[float]]:
    """Each inertial parameter near the description's times a factor, and the factor near one."""
    rows = []
    for columns in robot.inertial_columns:
        ten = robot.values[columns]
        mass, trace = max(ten[9], 1e-6), max(ten[0] + ten[3] + ten[5], 1e-12)
        size = np.r_[[trace / 2] * 6, [mass * np.sqrt(trace / (2 * mass))] * 3, mass]
        block = np.zeros((10, robot.size + 1))
        block[np.arange(10), columns] = 1.0 / (INERTIAL_SHARE * size)
        block[:, -1] = -ten / (INERTIAL_SHARE * size)
        rows.append(block)
    last = np.zeros((1, robot.size + 1))
    last[0, -1] = 1.0 / FACTOR_SHARE
    whole = np.vstack([*rows, last])
    return whole, [0.0] * (len(whole) - 1) + [1.0 / FACTOR_SHARE]


def describe_factors(robot: Robot) -> list[str]:
    """What positions and commands of a robot's servos leave unknown, and how a scale tells it.

    A sentence on the factors, and for each of them the steps of weighing, one by one, at the joint
    and the posture with the largest gravity moment, where there is one.

    Raises
    ------
    InputError
        As `feasid.servo_scale_groups`.
    """
    groups = servo_scale_groups(robot)
    shared = "; ".join(", ".join(group) for group in groups)
    count = "one factor" if len(groups) == 1 else f"{len(groups)} factors"
    lines = [
        f"positions and commands tell gains and parameters up to {count}, shared by: {shared}. "
        "Motion does not depend on it; torques, payloads and contact forces do. The description "
        f"fixes it to about {100 * FACTOR_SHARE:.0f} %, the robot's total mass does not"
    ]
    return lines + [step for group in groups for step in _weighing_instructions(robot, group)]


def _weighing_instructions(robot: Robot, group: Sequence[str]) -> list[str]:
    """Steps by which a scale fixes the factor of these joints."""
    limits = [(b.limits.lower, b.limits.upper) for b in robot.bodies]
    ends = np.array([[-np.pi if a is None else a, np.pi if b is None else b] for a, b in limits])
    low, high = np.clip(ends, -np.pi, np.pi).T
    rest = np.clip(0.0, low, high)
    bare, best = robot.without_joint_terms(), (0.0, 0, 0.0)
    described = np.isfinite(robot.values[robot.inertial_columns]).all()
    for j in (robot.joints.index(name) for name in group if described):
        q = np.tile(rest, (WEIGHED, 1))
        q[:, j] = np.linspace(low[j], high[j], WEIGHED)
        moments = inverse_dynamics(bare, q, 0 * q, 0 * q)[:, j]
        k = int(np.argmax(np.abs(moments)))
        best = max(best, (float(abs(moments[k])), j, float(q[k, j])))
    moment, j, position = best
    if not moment > SMALLEST_MOMENT or not robot.bodies[j].motion[:3].any():
        return [
            f"to fix the factor of {', '.join(group)}: a gain that is trusted (gains=), or a "
            "second log with a known load (loaded= and load=)"
        ]
    joint = robot.joints[j]
    posture = {n: round(float(x), 4) for n, x in zip(robot.joints, rest, strict=True) if x}
    posture[joint] = round(position, 4)
    shown = ", ".join(f"{name} at {x:g}" for name, x in posture.items())
    entry, arm = json.dumps([joint, posture])[1:-1], 0.1 if moment < LARGE_MOMENT else 0.5
    return [
        "to fix the factor by a scale:",
        f"(1) bring the robot to {shown} [rad or m], all other joints to 0;",
        f"(2) switch off the servo of {joint!r} and hold it by a scale that pushes at right "
        "angles, r metres from the joint's axis;",
        "(3) read it while lifting and while lowering slowly: the mean is free of friction, about "
        f"{moment / 9.81 / arm:.2g} kg at r = {arm:g};",
        f"(4) fit with moments= [[{entry}, M, D]]: M = 9.81 * kg * r [N m], positive where the "
        "scale pushes towards larger positions, D its standard deviation",
    ]


def _trusted_gains(robot: Robot, given: Mapping[str, Any] | None) -> dict[int, tuple[float, float]]:
    out = {}
    for joint, (kp, deviation) in (given or {}).items():
        if joint not in robot.joints or not (kp > 0 and deviation > 0):
            raise InputError(
                f"gains of {joint!r}: (kp, relative deviation), both above zero, of a joint among "
                f"{', '.join(robot.joints)}",
                option="gains",
            )
        out[robot.joints.index(joint)] = float(kp), float(deviation)
    return out


def _moment_row(
    base: BaseParameters, joint: str, posture: Mapping[str, float], moment: float, deviation: float
) -> Array:
    """The row of a gravity moment that was weighed, with its value last."""
    robot = base.robot
    if joint not in robot.joints or set(posture) - set(robot.joints) or not deviation > 0:
        raise InputError(
            f"moments has ({joint!r}, {posture!r}, {moment!r}, {deviation!r}): a joint, positions "
            "by joint [rad or m], the moment that holds it [N m or N] and its deviation",
            option="moments",
        )
    q = np.array([[posture.get(j, 0.0) for j in robot.joints]])
    row = regressor(robot, q, 0 * q, 0 * q)[0, robot.joints.index(joint)]
    free = np.concatenate([robot.inertial_columns.ravel()])
    out = np.zeros(robot.size + 2)
    out[free] = row[free]
    out[-1] = moment
    return out / deviation


def _servo_fit(found: GainSolution) -> ServoFit:
    """Gains, deviations and what fixed them."""
    task, robot = found.task, found.task.base.robot
    n = robot.dof
    tail = len(found.step.covariance) - n - task.further_unknown_count
    mean, spread = np.full((1, n), 1.0 / n), np.eye(n) - 1.0 / n

    def deviations(forms: Array, first: int) -> Array:
        """Of linear forms of unknowns, by white residuals or by stretches, whichever is larger."""
        own = slice(first, first + forms.shape[1])
        both = (
            forms @ C[own, own] @ forms.T for C in (found.step.covariance, found.stretch_covariance)
        )
        return np.asarray(np.sqrt(np.max([np.diag(C) for C in both], axis=0)))

    place = [robot.drive_columns(k)["fv"] for k in range(n)]
    terms = zip(task.terms, found.step.extra, strict=True)
    gains, limits = np.exp(found.place.logs), found.place.limits
    groups, described = servo_scale_groups(robot), task.prior.fixed_by == DESCRIPTION
    ends = (np.zeros(0),) * 2 if limits is None else (gains * limits.error, gains * limits.damping)
    return ServoFit(
        Servo(
            robot.joints,
            tuple(gains.tolist()),
            found.delay,
            task.law,
            {t: tuple(x.tolist()) for t, x in terms},
            tuple(ends[0].tolist()),
            tuple(ends[1].tolist()),
            float(found.place.lags[1]) if "rate" in task.terms else 0.0,
        ),
        deviations(np.eye(n), tail),
        deviations(spread, tail),
        found.step.delta[place],
        deviations(np.eye(robot.size), 0)[place],
        float(deviations(mean, tail)[0]),
        task.prior.fixed_by,
        groups,
        float(deviations(np.eye(1), tail + n)[0]) if task.delayed else 0.0,
        found.misfit,
        task.data[0].use.mean(axis=0),
        " ".join(s for group in groups for s in _weighing_instructions(robot, group))
        if described
        else "",
    )


def _choose_terms(task: GainEquations, found: GainSolution) -> GainSolution:
    """Add the terms that make the misfit of held-out stretches clearly smaller, one by one."""

    def judge(terms: tuple[str, ...]) -> float:
        halves = (replace(task, terms=terms, folds=(half,)) for half in (0, 1))
        return sum(half.solve(None if terms else found).held_out_misfit() for half in halves) / 2

    clear = task.base.robot.dof * np.log(BETTER)
    offered = [t for t in TERMS if t != "integral" or len(task.data[0].stretches) == 1]
    best = None
    while offered:
        asked = [
            t for t in offered if not found.is_plausible or found.misfit_change_by_term(t) < clear
        ]
        if not asked:
            break
        chosen = found.task.terms
        best = judge(chosen) if best is None else best
        scores = {t: judge((*chosen, t)) for t in asked}
        term = min(scores, key=lambda t: scores[t])
        if scores[term] > best + clear:
            break
        best, kept = scores[term], (*chosen, term)
        offered.remove(term)
        for other in chosen:  # which another term makes superfluous
            without = tuple(t for t in kept if t != other)
            score = judge(without)
            if score < best - clear / 2:
                best, kept = min(score, best), without
        found = replace(task, terms=kept).solve()
    return found


def _refuse_silent(rows: ServoRows, law: str) -> None:
    """Refuse commands that say nothing about gains."""
    if law != "position":
        return
    for j, joint in enumerate(rows.robot.joints):
        q = np.concatenate([s.q[:, j] for s in rows.stretches])
        e = np.concatenate([s.commands[:, j] - s.q[:, j] for s in rows.stretches])
        rms = float(np.sqrt(np.mean(e**2)))
        steps = np.abs(np.diff(q))
        still = 1e-9 * np.ptp(q)
        count = float(np.min(steps[steps > still], initial=np.inf))
        ahead = np.concatenate([s.commands[:-1, j] - s.q[1:, j] for s in rows.stretches])
        if rms <= still or np.sqrt(np.mean(ahead**2)) <= still:
            raise LogError(
                f"the commands of joint {joint!r} (cmd_{joint}) are its own positions: a state was "
                "logged in the place of the command; log what the servo was told",
                joint=joint,
                column=f"cmd_{joint}",
            )
        if rms > LARGEST_ERROR and rows.robot.bodies[j].motion[:3].any():
            raise LogError(
                f"joint {joint!r} does not follow its commands (cmd_{joint}): they differ by "
                f"{rms:.2g} rad RMS, whole turns aside; correct the unit (units={{'cmd': 'deg'}}), "
                "or the column (columns=)",
                joint=joint,
                column=f"cmd_{joint}",
            )
        if np.isfinite(count) and rms < LEAST_COUNTS * count:
            raise LogError(
                f"the error cmd - q of joint {joint!r} is {rms:.2g} rad or m RMS, "
                f"and its encoder steps by {count:.2g}: below {LEAST_COUNTS:g} counts it "
                "determines no gains; lower the servo's gain, load it, or move faster",
                joint=joint,
                column=f"q_{joint}",
            )


def _refuse_unexplained(found: GainSolution, law: str) -> None:
    """Refuse what a servo as modelled does not do."""
    joints = found.task.base.robot.joints
    if found.task.delayed and not EARLIEST < found.delay < LONGEST_DELAY - DELAY_STEP:
        raise LogError(
            f"commands seem to act {1e3 * found.delay:.1f} ms after their rows, beyond "
            f"{1e3 * EARLIEST:g} to {1e3 * (LONGEST_DELAY - DELAY_STEP):g} ms: the servo acts on "
            "the command's rate or adds a feed-forward that servo_terms does not name, or the "
            "column holds other commands"
        )
    worst = int(np.argmax(found.misfit))
    if found.misfit[worst] > MOST_MISFIT:
        raise LogError(
            f"{100 * found.misfit[worst]:.0f} % of the error of joint {joints[worst]!r} are not "
            f"explained by tau = kp (cmd - q) - kd dq with terms {[*found.task.terms]}: a dead "
            "band, a torque limit, elasticity, contacts, a profile of speeds inside the servo, or "
            "columns in degrees, with the other sign, or of another joint; correct units= and "
            "columns=, log the interpolated command, or measure torques",
            joint=joints[worst],
        )
