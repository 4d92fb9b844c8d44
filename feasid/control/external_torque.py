"""External torques by a generalised-momentum observer, with thresholds that follow from a fit.

With the momentum p = M(q) dq and b(q, dq) = C' dq - g - friction, dp/dt = tau + b + tau_ext. The
observer (De Luca and Mattone 2003; De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006)

    r = k (p - integral of (tau + b + r) dt)

follows tau_ext behind a first-order low-pass with the gain k, without accelerations. Samples of
torques stand for a period about their own time, which is later than that of the positions by the
delay that the fit has found: of a controller's commands often half a period earlier.

Without contact r is the error of torque sensors and model behind the same low-pass. A fit knows its
variance a + b c^2 per joint, c the slowness of the joint (`feasid.identification.noise`), its
correlation in time, and the covariance of the parameters. A Gaussian error with the deviation
s crosses u s upwards ``f exp(-u^2 / 2)`` times a second (Rice 1945), where f follows from the
correlation of r over one sample. The thresholds u s are those at which all joints together cross
as often as `false_alarms` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from feasid.codegen.algorithms import Algorithms
from feasid.codegen.c import CCode, compile_routines, find_compiler, write_code
from feasid.codegen.expression import Graph
from feasid.codegen.routine import CodedModel, Routine, python_function
from feasid.core.arguments import Measured, Positive, Rate, checked, checked_methods
from feasid.core.arrays import Array, Mask
from feasid.core.text import quote
from feasid.dynamics.floating import frame_jacobian
from feasid.errors import InputError
from feasid.reduction.equations import DENSITY, WHITE_CORRELATION
from feasid.reduction.strata import SLOW
from feasid.robot.description import Robot

SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
"""Lengths of the words of `false_alarms`."""

LONGEST_DELAY = 3.0
"""Samples of delay up to which a torque stands for those before it."""

GAP = 2.5
"""Periods between two samples from which the observer starts again: what happened is not known."""


def alarm_rate(text: str | float) -> float:
    """Alarms per second of "1/hour", "0.5 / minute" or a number of them [Hz].

    Raises
    ------
    InputError
        It is neither.
    """
    if not isinstance(text, str):
        found = float(text)
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*/\s*([a-z]+)\s*", text)
        if match is None or match[2] not in SECONDS or not re.fullmatch(r"\d*\.?\d+", match[1]):
            raise InputError(
                f"false_alarms must be like '1/hour', per {', '.join(SECONDS)}, or a number per "
                f"second, not {text!r}",
                option="false_alarms",
            )
        found = float(match[1]) / SECONDS[match[2]]
    if not (np.isfinite(found) and found > 0):
        raise InputError(f"false_alarms must be positive, not {text!r}", option="false_alarms")
    return found


def thresholds(fit: Any, rate: float, gain: float, alarms: float) -> tuple[Array, Array]:
    """Squared thresholds per joint where it is fast, and what is added where it is slow.

    Shapes (dof,) each [(N m)^2 or N^2].

    Parameters
    ----------
    fit : feasid.Fit or feasid.SavedFit
    rate : float
        Samples per second [Hz].
    gain : float
        Of the observer [1/s].
    alarms : float
        Of all joints together, per second.

    Raises
    ------
    InputError
        The fit has no noise model, or alarms are asked for so often that any threshold is low.
    """
    noise, reduced = fit.noise, fit.reduced
    if noise is None:
        raise InputError(
            "thresholds follow from the noise model of a fit with a prior; this one had none, or "
            "was saved by an earlier version: fit again"
        )
    spread = [
        np.sum((T[:, :-1] @ fit.covariance[np.ix_(s, s)]) * T[:, :-1]) / max(reduced.rows, 1)
        for T, s in zip(reduced.triangles, map(list, reduced.supports), strict=True)
    ]
    spacing = 1.0 / (DENSITY * reduced.cutoff) if reduced.cutoff else max(reduced.period, 1 / rate)
    least = WHITE_CORRELATION if reduced.cutoff else 1.0
    rows = np.maximum(noise.correlation, least)
    time = 0.5 * rows * spacing
    # Noise is white as far as its correlation is that of the low-pass, else it is exponential;
    # of white noise the observer passes what the fit's low-pass kept out, too.
    white = least / rows
    left = time * gain * (white + (1.0 - white) / (1.0 + time * gain))
    change = white * -np.expm1(-gain / rate) + (1.0 - white) * 0.5 * gain / (time * rate**2)
    often = rate * np.sqrt(change / np.pi) / np.sqrt(2.0 * np.pi)
    crossings = 2.0 * len(often) * often / alarms
    if (crossings <= np.e).any():
        raise InputError(
            f"false_alarms of {alarms:.3g} per second are more than the noise has maxima: ask for "
            "fewer",
            option="false_alarms",
        )
    level = 2.0 * np.log(crossings) * left
    return level * (noise.quick + np.maximum(spread, 0.0)), level * noise.slow


@dataclass(frozen=True, eq=False)
class ObserverModel(CodedModel):
    """The step of the observer as a routine "observer", besides those of a `CodedModel`.

    Its outputs are external torques, thresholds, and the state for the next step: integrals and
    slowness of the joints, zeros at rest.
    """

    period: float = 1e-3
    delay: float = 0.0
    gain: float = 1.0
    quick: Array | None = None
    slow: Array | None = None

    def routine(self, kind: str) -> Routine:
        """One of `feasid.codegen.routine.ROUTINES`, or "observer"."""
        if kind != "observer":
            return super().routine(kind)
        assert self.quick is not None
        assert self.slow is not None
        graph, dof = Graph(), self.robot.dof
        q, dq, tau = (graph.inputs(name, dof) for name in ("q", "dq", "tau"))
        state, still = graph.inputs("state", 2 * dof), [graph.as_expression(0.0)] * dof
        model = Algorithms(graph, self.robot, self._parameters(graph), q, dq, still)
        half = 0.5 * self.period
        follow = self.gain / (1.0 + self.gain * half)
        torque, limit, integral, slowness = [], [], [], []
        for k, (momentum, rate) in enumerate(zip(*model.momentum(), strict=True)):
            until = state[k] + (half + self.delay) * tau[k] + half * rate
            found = follow * (momentum - until)
            ratio = dq[k] * (1.0 / SLOW)
            slow = graph.apply("exp", -(ratio * ratio))
            slow = state[dof + k] + follow * self.period * (slow - state[dof + k])
            torque.append(found)
            squared = float(self.quick[k]) + float(self.slow[k]) * (slow * slow)
            limit.append(graph.apply("sqrt", squared))
            integral.append(state[k] + self.period * (tau[k] + rate + found))
            slowness.append(slow)
        inputs = (("q", dof), ("dq", dof), ("tau", dof), ("state", 2 * dof))
        return Routine(kind, inputs, (*torque, *limit, *integral, *slowness))


@checked_methods
@dataclass(frozen=True, eq=False)
class ContactEstimate:
    """External torques at one sample.

    Attributes
    ----------
    t : float
        [s]
    torque : ndarray, shape (dof,)
        What pushes the joints from outside, behind the observer's low-pass [N m or N].
    threshold : ndarray, shape (dof,)
        Beyond which it is contact.
    joints : ndarray of bool, shape (dof,)
        Where it is.
    robot : Robot
    q : ndarray, shape (dof,)
        The posture, by which `wrench` is computed.
    """

    t: float
    torque: Array
    threshold: Array
    joints: Mask
    robot: Robot
    q: Array

    @property
    def contact(self) -> bool:
        """Whether some joint's external torque is beyond its threshold."""
        return bool(self.joints.any())

    def wrench(self, link: str) -> Array:
        """Moment and force on a link that explain the torques best, were they all from there.

        Least squares through the link's Jacobian; of several the smallest, where fewer than six
        joints carry the link or it is singular.

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
    """Contact from joint torques: an observer whose thresholds keep a promised alarm rate.

    The generalised-momentum observer of De Luca and Mattone (2003) with the identified model,
    friction included; see `feasid.control.external_torque`. Nothing is learnt while it runs.

    Parameters
    ----------
    fit : feasid.Fit or feasid.SavedFit
        With a prior, of a tree of joints of one degree of freedom.
    rate : float
        Samples per second [Hz].
    false_alarms : str or float
        How often contact may be reported where there is none, by all joints together: "1/hour",
        or a number per second. Without structure that the model lacks; see `fit.quality`.
    gain : float
        Of the observer [1/s]: a constant push is seen to two thirds after 1 / gain.
    delay : float, optional
        By which torques that are handed to `update` are behind the motion [s]; default as in the
        fitted log.
    backend : {"auto", "c", "python"}
        As of `feasid.ComputedTorque`.

    Attributes
    ----------
    notes : tuple of str
        Joints whose threshold is wider than their rated torque: contact there is not detected.
    restarts : int
        How often samples were missing, after which the observer started again.

    Raises
    ------
    InputError
        Names what cannot be used.

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
        gain: Positive = 30.0,
        delay: float | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
    ) -> None:
        if not hasattr(fit, "log_options"):
            raise InputError(f"fit must be a Fit or what feasid.load read, not {quote(fit)}")
        self.robot: Robot = fit.robot
        quick, slow = thresholds(fit, rate, gain, alarm_rate(false_alarms))
        plain = CodedModel.from_robot(self.robot, fit.base)
        logged = float(fit.delay) - float(fit.log_options.get("delay") or 0.0)
        late = logged if delay is None else delay
        if abs(late) * rate > LONGEST_DELAY:
            raise InputError(
                f"torques are {1e3 * late:.3g} ms behind the motion, more than "
                f"{LONGEST_DELAY:g} samples: align them before update, and give the delay= left"
            )
        self.model = ObserverModel(
            plain.robot, plain.base, plain.beta, 1.0 / rate, late, gain, quick, slow
        )
        self.gain, self.rate, self.false_alarms = gain, rate, false_alarms
        self.restarts = 0
        widest, efforts = np.sqrt(quick + slow), [b.limits.effort for b in self.robot.bodies]
        self.notes = tuple(
            f"threshold of joint {joint} reaches {wide:.3g}, wider than its rated torque of "
            f"{effort:.3g}: contact there is not detected"
            for joint, wide, effort in zip(self.robot.joints, widest, efforts, strict=True)
            if effort is not None and wide > effort
        )
        self._step, self.backend = self._compiled(backend)
        self._state = np.zeros(2 * self.robot.dof)
        self._last: float | None = None

    def _compiled(self, backend: str) -> tuple[Callable[..., Sequence[float] | Array], str]:
        if backend == "c" or (backend == "auto" and find_compiler() is not None):
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
            Time [s]. After a gap of several periods the observer starts again.
        q, dq, tau : array_like, shape (dof,)
            Measured positions, velocities and torques [rad or m, per s; N m or N].

        Returns
        -------
        ContactEstimate

        Raises
        ------
        InputError
            An input has another shape, or a number of a joint is not finite.
        """
        dof, arrays = self.robot.dof, []
        for name, values in (("q", q), ("dq", dq), ("tau", tau)):
            array = np.asarray(values, dtype=np.float64)
            if array.shape != (dof,):
                raise InputError(f"{name} has shape {array.shape}, needed is ({dof},)")
            if not np.isfinite(array).all():
                joint = self.robot.coordinates[int(np.argmin(np.isfinite(array)))]
                raise InputError(f"{name} of joint {joint} is not finite", joint=joint)
            arrays.append(array)
        gap = self._last is not None and not 0.0 < (t - self._last) * self.rate < GAP
        self.restarts += gap
        begins, self._last = gap or self._last is None, t
        out = np.array(self._step(*arrays, self._state))
        if begins:  # the integral at which nothing pushes
            period = 1.0 / self.rate
            free = out[:dof] * (1.0 / self.gain + 0.5 * period - period)
            self._state = np.r_[out[2 * dof : 3 * dof] + free, out[3 * dof :]]
            out[:dof] = 0.0
        else:
            self._state = out[2 * dof :]
        torque, limit = out[:dof], out[dof : 2 * dof]
        beyond = np.abs(torque) > limit
        return ContactEstimate(t, torque, limit, beyond, self.robot, arrays[0])

    def to_c(
        self, path: str | Path, *, precision: str = "double", overwrite: bool = False
    ) -> CCode:
        """Write the observer's step as C99, with gravity and friction beside it.

        ``arm_observer(q, dq, tau, state, out)``: the first DOF numbers of `out` are external
        torques, the next DOF their thresholds, the last 2 DOF the state to pass on to the next
        step. At rest it starts with zeros. There is contact where
        ``fabs(out[k]) > out[DOF + k]``. Call it at the rate that was given here.

        Parameters
        ----------
        path : path
            Ends in ``.c``; the header gets the same name with ``.h``.
        precision : {"double", "float"}
        overwrite : bool

        Returns
        -------
        feasid.codegen.c.CCode

        Raises
        ------
        OutputError
            A file exists and `overwrite` is False.
        """
        kinds = ("observer", "gravity", "friction")
        return write_code(self.model, path, precision, kinds, overwrite=overwrite)

    @cached_property
    def least_push(self) -> Array:
        """Constant torque that is beyond the threshold of each joint in motion [N m or N]."""
        assert self.model.quick is not None
        return np.sqrt(self.model.quick)

    def __repr__(self) -> str:
        limits = ", ".join(f"{x:.2g}" for x in self.least_push)
        lines = [
            f"external torques of {self.robot.name!r} at {self.rate:g} Hz: thresholds in motion "
            f"{limits}, false alarms {self.false_alarms}"
        ]
        return "\n".join([*lines, *self.notes])
