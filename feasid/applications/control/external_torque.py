"""External torques by a generalised-momentum observer, with thresholds that follow from a fit.

With the momentum p = M(q) dq and b(q, dq) = C' dq - g - friction, dp/dt = tau + b + tau_ext. The
observer (De Luca and Mattone 2003; De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006)

    r = k (p - integral of (tau + b + r) dt)

follows tau_ext behind a first-order low-pass with the gain k, without accelerations. A torque
sample is the mean over one period around its time, which differs from that of the positions by the
delay of the fit; for a controller's commands it is often half a period earlier.

Without contact r is the error of torque sensors and model behind the same low-pass: `ErrorLaw`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from feasid.core.arguments import Measured, Positive, Rate, checked, checked_methods
from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError
from feasid.core.text import quote
from feasid.identification.assessment.contact_errors import GAIN, ErrorLaw, delayed_errors
from feasid.identification.effects.table import BEHIND
from feasid.identification.regression.folds import SLOW
from feasid.logs.units import unit_factor
from feasid.results.codegen.algorithms import Algorithms
from feasid.results.codegen.c import CCode, CompiledRoutine, compile_routines, write_code
from feasid.results.codegen.expression import Expression, Graph
from feasid.results.codegen.routine import BaseParameterModel, Routine, python_function
from feasid.robot.description import Robot
from feasid.robot.dynamics.floating import frame_jacobian

SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
"""Lengths of the words of `false_alarms`."""

LONGEST_DELAY = 3.0  #: Longest delay [samples] at which a torque may be used for an earlier sample.

KINDS = ("q", "dq", "tau")  #: Signals of a sample, in the order in which consumers take them.
NOT_LIVE = ("joint-delay",)  #: Corrections that no consumer of single samples can make.

SAME_RATE = 0.05  #: Share by which the rate of a log that is played may differ from the observer's.

PLAYED = {"c": 30_000, "python": 1_000}
"""Samples of the log that are played, by backend: about half a second."""

CHANCE = 3.0  #: Standard deviations of a Poisson count by which contacts may exceed a promise.

GAP = 2.5  #: Gap between two samples, in periods, after which the observer restarts.


@dataclass(frozen=True, eq=False)
class LiveSignals:
    """Factors and delay of the samples that a fit's sensors deliver.

    A fit's corrections of its log (units, signs, torque gains, a common delay) also apply to later
    samples of the same sensors.
    """

    joints: tuple[str, ...]
    factors: Mapping[str, Array]  #: to SI and to the model's torques, by kind, (dof,) each
    zeros: Array  #: added to positions, (dof,) [rad or m]
    delay: float  #: by which torques are behind the motion [s]

    @classmethod
    def from_fit(cls, fit: Any, delay: float | None = None) -> LiveSignals:
        """The conversion of a fit's log; `delay` [s] replaces that of the fit.

        Raises InputError: the fit has corrections that cannot be made sample by sample, or it read
        commands.
        """
        wrong = [e for e in fit.calibration.confirmed if e.at.kind in NOT_LIVE]
        if wrong:
            names = ", ".join(e.joint for e in wrong)
            raise InputError(
                f"the torques of {names} have delays of their own in the fitted log, which cannot "
                "be corrected sample by sample: align them in the controller, and fit its log",
                joints=tuple(e.joint for e in wrong),
            )
        if fit.servo is not None:
            raise InputError(
                "the fit took torques from commands; an observer needs measured torques: fit a "
                "log that has them"
            )
        if fit.log_options.get("transmission") is not None:
            raise InputError(
                "the fitted log is of motors (transmission=): an observer takes signals of joints; "
                "fit a log of joints"
            )
        units, joints = fit.log_options.get("units"), fit.robot.coordinates
        offsets = fit.log_options.get("offsets") or {}
        zeros = np.array([float(offsets.get(j, 0.0)) for j in joints])
        factors = {k: np.array([unit_factor(units, k, j) for j in joints]) for k in KINDS}
        bare = any(n.code == "velocities" and not n.values.get("measured", True) for n in fit.notes)
        if bare and not any(str(key).startswith("dq") for key in units or {}):
            # The log has no velocities: a controller has those of its positions, per second.
            factors["dq"] = factors["q"]
        return cls(tuple(joints), factors, zeros, fit.delay if delay is None else delay)

    def read(self, *signals: Any) -> list[Array]:
        """A sample q, dq, tau as the model has it, shape (dof,) each.

        Raises InputError: a signal has another shape, or a number of a joint is not finite.
        """
        arrays = []
        for name, values in zip(KINDS, signals, strict=True):
            array = np.asarray(values, dtype=np.float64)
            if array.shape != (len(self.joints),):
                raise InputError(f"{name} has shape {array.shape}, needed is ({len(self.joints)},)")
            if not np.isfinite(array).all():
                joint = self.joints[int(np.argmin(np.isfinite(array)))]
                raise InputError(f"{name} of joint {joint} is not finite", joint=joint)
            arrays.append(array * self.factors[name])
        arrays[0] = arrays[0] + self.zeros
        return arrays


def alarm_rate(text: str | float) -> float:
    """Alarms per second of "1/hour", "0.5 / minute" or a number of them [Hz].

    Raises InputError: it is neither.
    """
    if isinstance(text, str):
        match = re.fullmatch(r"\s*(\d*\.?\d+)\s*/\s*([a-z]+)\s*", text)
        if match is None or match[2] not in SECONDS:
            raise InputError(
                f"false_alarms must be like '1/hour', per {', '.join(SECONDS)}, or a number per "
                f"second, not {text!r}",
                option="false_alarms",
            )
        text = float(match[1]) / SECONDS[match[2]]
    rate = float(text)
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"false_alarms must be positive, not {text!r}", option="false_alarms")
    return rate


@dataclass(frozen=True, eq=False, kw_only=True)
class ObserverModel(BaseParameterModel):
    """The routines of a `BaseParameterModel`, and the step of the observer as a routine "observer".

    Its outputs are external torques, thresholds, and the state for the next step: integrals,
    slowness and squared speeds of the joints, zeros at rest.
    """

    period: float
    delay: float
    law: ErrorLaw
    levels: Array

    def routine(self, kind: str) -> Routine:
        """One of `feasid.results.codegen.routine.ROUTINES`, or "observer"."""
        if kind != "observer":
            return super().routine(kind)
        law = self.law
        graph, dof = Graph(), self.robot.dof
        q, dq, tau = (graph.inputs(name, dof) for name in ("q", "dq", "tau"))
        state, still = graph.inputs("state", 3 * dof), [graph.as_expression(0.0)] * dof
        model = Algorithms(graph, self.robot, self._parameters(graph), q, dq, still)
        half = 0.5 * self.period
        # A residual is part of the integral it is compared with: its equation is solved for it.
        follow = law.gain / (1.0 + law.gain * half)
        torque, integral = [], []
        slowness: list[Expression] = []
        speeds: list[Expression] = []
        for k, (momentum, rate) in enumerate(zip(*model.momentum(), strict=True)):
            # The integral holds torques up to half a period and the delay before the positions.
            residual = follow * (momentum - (state[k] + (half + self.delay) * tau[k] + half * rate))
            torque.append(residual)
            integral.append(state[k] + self.period * (tau[k] + rate + residual))
            ratio, share = dq[k] * (1.0 / SLOW), dq[k] * (1.0 / float(law.fastest[k]))
            for filter_state, now, into in (
                (state[dof + k], graph.apply_function("exp", -(ratio * ratio)), slowness),
                (state[2 * dof + k], share * share, speeds),
            ):
                into.append(filter_state + follow * self.period * (now - filter_state))
        every = graph.sum_terms(speeds)
        ahead = every * (1.0 / law.most) - 1.0
        # (x + |x|) / 2 is the larger of x and 0, without a branch in the generated code.
        growth = 1.0 + 0.5 * (ahead + graph.apply_function("abs", ahead))
        limit = []
        scaled = law.coefficients * self.levels[:, None] ** 2
        for c, s, w in zip(scaled.tolist(), slowness, speeds, strict=True):
            moving = c[2] * graph.apply_function("abs", w)  # negative ones: the self-test's state
            variance = c[0] + c[1] * (s * s) + moving + c[3] * (every * every)
            limit.append(growth * graph.apply_function("sqrt", variance))
        inputs = (("q", dof), ("dq", dof), ("tau", dof), ("state", 3 * dof))
        return Routine(kind, inputs, (*torque, *limit, *integral, *slowness, *speeds))


@checked_methods
@dataclass(frozen=True, eq=False)
class ContactEstimate:
    """Estimated external torques at one sample."""

    t: float  #: [s]
    #: Shape (dof,): what pushes the joints from outside, behind the observer's low-pass [N m or N].
    torque: Array
    threshold: Array  #: Shape (dof,): external torque above which contact is reported.
    joints: Mask  #: Shape (dof,): where it is.
    #: Whether the motion is faster than the fitted log's anywhere: no rate is promised there.
    extrapolated: bool
    robot: Robot  #: The robot on which the forces act.
    q: Array  #: Shape (dof,): the posture, by which `wrench` is computed.

    @property
    def contact(self) -> bool:
        """Whether the external torque of any joint exceeds its threshold."""
        return bool(self.joints.any())

    def wrench(self, link: str) -> Array:
        """Moment and force on one link that best explain the external torques.

        This is least squares with the link's Jacobian. If fewer than six joints carry the link, or
        the Jacobian is singular, it is the smallest of all solutions.

        Parameters
        ----------
        link : str
            A body or a link that is fixed to one.

        Returns
        -------
        ndarray, shape (6,)
            Moment about the link's origin, then force, in base axes [N m, N].

        Raises
        ------
        InputError
            No moving body carries a link of this name.
        """
        jacobian = frame_jacobian(self.robot, self.q, link)[0]
        return np.asarray(np.linalg.lstsq(jacobian.T, self.torque, rcond=1e-9)[0])


@checked
class ExternalTorque:
    """Contact from joint torques: an observer with thresholds from held-out parts of a log.

    The generalised-momentum observer of De Luca and Mattone (2003) with the identified model,
    friction included; see `feasid.applications.control.external_torque`. The thresholds do not
    change while it runs.

    Parameters
    ----------
    fit : feasid.Fit
        Fit of a kinematic tree whose joints have one degree of freedom, with its log in memory. A
        saved fit keeps what the default `gain` needs.
    rate : float
        Samples per second [Hz].
    false_alarms : str or float
        How often all joints together may report contact where there is none: "1/hour", or a number
        per second. Thresholds follow from errors on held-out parts of the fitted log, at its
        sampling rate and with the noise of its velocities (of a log without velocities: of
        differences of its positions), and from how much these parts differ; on a motion that is
        very different from the log's, alarms can be more frequent.
    gain : float
        Gain of the observer [1/s]: after 1 / gain seconds, the estimate of a constant push has
        reached two thirds of it.
    delay : float, optional
        Delay of the torques passed to `update` relative to the motion [s]; default as in the fitted
        log.
    backend : {"auto", "c", "python"}
        As of `feasid.ComputedTorque`.

    Attributes
    ----------
    notes : tuple of str
        Joints whose threshold exceeds their rated torque, so that contact is not detected there;
        contacts that the observer reports while it takes the fitted log, in which nobody pushes.
    restarts : int
        Number of restarts after missing samples.

    Raises
    ------
    InputError
        An argument cannot be used; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import feasid
    >>> log = feasid.datasets.load("wam7")
    >>> observer = feasid.ExternalTorque(feasid.fit(log, calibration=None), 500.0)
    >>> found = observer.update(0.0, *np.zeros((3, 7)))
    >>> found.contact, found.torque.shape
    (False, (7,))
    """

    def __init__(
        self,
        fit: Any,
        rate: Rate,
        false_alarms: str | float = "1/hour",
        *,
        gain: Positive = GAIN,
        delay: float | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
    ) -> None:
        if not hasattr(fit, "log_options"):
            raise InputError(f"fit must be a Fit or what feasid.load read, not {quote(fit)}")
        self.robot: Robot = fit.robot
        law, logged = fit.error_law(gain), 1.0 / fit.reduced.period
        # Noise that changes from sample to sample crosses a level more often at a higher rate.
        levels = law.crossing_levels(alarm_rate(false_alarms) / max(1.0, rate / logged))
        model = BaseParameterModel.from_robot(self.robot, fit.base)
        self.signals = LiveSignals.from_fit(fit, delay)
        late = self.signals.delay
        if abs(late) * rate > LONGEST_DELAY:
            raise InputError(
                f"torques are {1e3 * abs(late):.3g} ms {BEHIND[late < 0]}, more than "
                f"{LONGEST_DELAY:g} samples: align them before update(), pass the rest as delay="
            )
        parts = model.robot, model.base, model.beta
        self.model = ObserverModel(*parts, period=1.0 / rate, delay=late, law=law, levels=levels)
        self.gain, self.rate, self.false_alarms = gain, rate, false_alarms
        self._variances = v = law.coefficients * levels[:, None] ** 2
        widest = np.sqrt(v[:, 0] + np.maximum(v[:, 1], v[:, 2] + v[:, 3] * law.most**2))
        efforts = {body.joint: body.limits.effort for body in self.robot.bodies}
        self.notes = tuple(
            f"threshold of joint {joint} reaches {wide:.3g}, wider than its rated torque of "
            f"{effort:.3g}: contact there is not detected"
            for joint, wide in zip(self.robot.coordinates, widest, strict=True)
            if (effort := efforts.get(joint)) is not None and wide > effort
        )
        self._step, self.backend = self._compile_step(backend)
        self._restart()
        self.notes += self._play_log(fit, alarm_rate(false_alarms))
        # What the log left in state and count is not the caller's.
        self._restart()

    def _restart(self) -> None:
        self._state = np.zeros(3 * self.robot.dof)
        self._last: float | None = None
        self.restarts = 0

    def _play_log(self, fit: Any, promised: float) -> tuple[str, ...]:
        """Notes on what the observer reports while it takes the fitted log, in which nobody pushes.

        The signals are those that a controller has: velocities with their noise, torques as late as
        they are logged.
        """
        seconds, alarms, budget = 0.0, 0, PLAYED[self.backend]
        runs = [part.run for part in fit.rows if part.run.live is not None]
        for run in (r for r in runs if abs(r.rate / self.rate - 1.0) < SAME_RATE):
            late = delayed_errors(run, np.zeros_like(run.tau), self.signals.delay)[0]
            signals = [x[:budget] for x in (*run.live, late.tau)]
            # The run's first sample restarts the observer.
            first, *samples = zip(run.t, *signals, strict=False)
            out, dof = [self._take(first[0], first[1:])], self.robot.dof
            if isinstance(self._step, CompiledRoutine):
                played = self._step.play(self._state, *(x[1:] for x in signals))
                out += zip(played[:, :dof], played[:, dof : 2 * dof], strict=True)
            else:
                out += [self._take(at, arrays) for at, *arrays in samples]
            torque, limit = np.swapaxes(out, 0, 1)
            contact = (np.abs(torque) > limit).any(axis=1)
            alarms += int(np.sum(contact[1:] & ~contact[:-1]))
            seconds += min(budget, len(run)) / run.rate
            budget -= min(budget, len(run))
        # A Poisson count deviates by its root; one more is allowed where less than one is due.
        if alarms <= promised * seconds + CHANCE * np.sqrt(promised * seconds) + 1.0:
            return ()
        return (
            f"the fitted log, played through this observer, gives {alarms} contacts in "
            f"{seconds:.3g} s, where {promised * seconds:.2g} are promised: do not use it to "
            "detect contact",
        )

    def _compile_step(self, backend: str) -> tuple[Callable[..., Sequence[float] | Array], str]:
        if backend != "python":
            try:
                return compile_routines(self.model, ("observer",))["observer"], "c"
            except InputError:
                if backend == "c":
                    raise
        function = python_function(self.model.routine("observer"))
        return lambda *arrays: function(*(a.tolist() for a in arrays)), "python"

    def update(self, t: float, q: Measured, dq: Measured, tau: Measured) -> ContactEstimate:
        """Take one sample.

        Parameters
        ----------
        t : float
            Time [s]. After a gap of several periods the observer restarts.
        q, dq, tau : array_like, shape (dof,)
            Measured positions, velocities and torques, in the units of the fitted log's columns:
            the units, signs and torque gains of the fit are applied [rad or m, per s; N m or N].
            Where the log has no velocities, `dq` is in the unit of its positions, per second.

        Returns
        -------
        ContactEstimate

        Raises
        ------
        InputError
            An input has another shape, or a number of a joint is not finite.
        """
        arrays = self.signals.read(q, dq, tau)
        torque, limit = self._take(t, arrays)
        fast = bool(self._state[2 * self.robot.dof :].sum() > self.model.law.most)
        beyond = np.abs(torque) > limit
        return ContactEstimate(t, torque, limit, beyond, fast, self.robot, arrays[0])

    def _take(self, t: float, arrays: Sequence[Array]) -> tuple[Array, Array]:
        """External torques (dof,) and their thresholds, by signals as the model has them."""
        dof = self.robot.dof
        gap = self._last is not None and not 0.0 < (t - self._last) * self.rate < GAP
        self.restarts += gap
        begins, self._last = gap or self._last is None, t
        out = np.array(self._step(*arrays, self._state))
        if begins:
            # The integral at which nothing pushes: the step's own residual is taken back.
            period = 1.0 / self.rate
            free = out[:dof] * (1.0 / self.gain + 0.5 * period - period)
            self._state = np.r_[out[2 * dof : 3 * dof] + free, out[3 * dof :]]
            out[:dof] = 0.0
        else:
            self._state = out[2 * dof :]
        return out[:dof], out[dof : 2 * dof]

    def export_c(
        self,
        path: str | Path,
        *,
        precision: Literal["double", "float"] = "double",
        overwrite: bool = False,
    ) -> CCode:
        """Write the observer's step as C99, together with gravity and friction.

        ``arm_observer(q, dq, tau, state, out)``: the first DOF numbers of `out` are external
        torques, the next DOF their thresholds, the last 3 DOF the state to pass on to the next
        step. Start with a state of zeros while the robot is at rest. Joint k reports contact if
        ``fabs(out[k]) > out[DOF + k]``. Call the function at the rate of this object.

        Parameters
        ----------
        path : path
            Ends in ``.c``; the header gets the same name with ``.h``.
        precision : {"double", "float"}
        overwrite : bool

        Returns
        -------
        feasid.results.codegen.c.CCode

        Raises
        ------
        InputError
            The fitted log has other units, signs or torque gains, which the code does not apply.
        OutputError
            A file exists and `overwrite` is False.
        """
        # A caller of the code passes SI units and the model's torques only.
        signals = self.signals
        factors = [f"{k}_{j}: {factor:.6g}" for k in KINDS
                   for j, factor in zip(signals.joints, signals.factors[k], strict=True)
                   if factor != 1.0]  # fmt: skip
        if factors or signals.zeros.any():
            conversion = ", ".join(factors) or "offsets of positions"
            raise InputError(
                "the C code of an observer takes rad or m, per s, and N m or N of the model, but "
                f"the fitted log is converted by factors ({conversion}): multiply signals by them "
                "before the call, and fit a log that is converted already"
            )
        kinds = ("observer", "gravity", "friction")
        return write_code(self.model, path, precision, kinds, overwrite=overwrite)

    @property
    def least_push(self) -> Array:
        """Smallest constant torque at each joint that is detected in slow motion [N m or N]."""
        return np.asarray(np.sqrt(self._variances[:, 0]))

    def __repr__(self) -> str:
        limits = ", ".join(f"{x:.2g}" for x in self.least_push)
        lines = [
            f"external torques of {self.robot.name!r} at {self.rate:g} Hz: thresholds in slow "
            f"motion {limits}, false alarms {self.false_alarms}"
        ]
        return "\n".join([*lines, *self.notes])
