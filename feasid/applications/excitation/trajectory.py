"""A designed motion: exact at any time, with its certificate; as table, CSV, ROS 2 and figure.

Between two points robot controllers interpolate by one polynomial of degree five per joint; from a
standstill to a standstill it is ``10 s^3 - 15 s^4 + 6 s^5`` times the way, s from 0 to 1. Its peak
velocity is 1.875 and its peak acceleration 5.7735 times the way over the time and over its square.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.applications.excitation.basis import Basis
from feasid.applications.excitation.bounds import Bounds
from feasid.applications.excitation.certificate import ExcitationCertificate
from feasid.applications.excitation.constraint_check import smallest_margins_of_motion
from feasid.applications.excitation.problem import PostureConstraint
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.core.arguments import Natural, Rate, array, checked_methods, number
from feasid.core.arrays import Array, require_finite
from feasid.core.charts import motion_chart
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError
from feasid.core.figures import draw
from feasid.core.files import document_output, write_atomically
from feasid.core.text import quote
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / np.sqrt(3.0)
"""Peaks of the polynomial from standstill to standstill, in units of distance and time."""

DEGREE = 5

FROM_ENDS = np.linalg.inv(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 2, 0, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 2, 6, 12, 20],
    ]
)
"""Coefficients of powers of s from value and two derivatives at s = 0, then at s = 1."""


def quintic_segments(values: Array, step: Array) -> Array:
    """Coefficients (6, points - 1, dof) of 1, s, ..., s^5 between consecutive points.

    `values` (3, points, dof) are position, velocity and acceleration, `step` (points - 1,) times
    between points [s]; s is the time since a segment's start over its length.
    """
    units = step[None, :, None] ** np.arange(3)[:, None, None]
    ends = np.concatenate([values[:, :-1] * units, values[:, 1:] * units])
    return np.asarray(np.einsum("pk,ksj->psj", FROM_ENDS, ends))


def derivative(coefficients: Array) -> Array:
    """Coefficients (n - 1, ...) of the derivative by s of polynomials (n, ...)."""
    powers = np.arange(1, len(coefficients))
    return np.asarray(coefficients[1:] * powers.reshape(-1, *[1] * (coefficients.ndim - 1)))


def largest_values(coefficients: Array, ceiling: Array) -> Array:
    """The largest value of each polynomial (n, segments, dof) for s from 0 to 1, (segments, dof).

    Where the largest Bernstein coefficient, which bounds it, is below the ceiling (dof,), that is
    returned instead.
    """
    order = len(coefficients) - 1
    bernstein = [[comb(i, k) / comb(order, k) if k <= i else 0.0 for k in range(order + 1)]
                 for i in range(order + 1)]  # fmt: skip
    out = np.asarray(np.einsum("ik,ksj->isj", bernstein, coefficients).max(axis=0))
    for segment, joint in np.argwhere(out > ceiling):
        polynomial = np.polynomial.Polynomial(coefficients[:, segment, joint])
        turns = polynomial.deriv().roots() if order > 1 else np.zeros(0)
        # Roots that coincide come with imaginary parts of their rounding.
        at = turns.real[(np.abs(turns.imag) < 1e-9) & (turns.real > 0) & (turns.real < 1)]
        out[segment, joint] = polynomial(np.concatenate([[0.0, 1.0], at])).max()
    return out


def smallest_joint_margin(values: Array, step: Array, bounds: Bounds) -> tuple[float, str, int]:
    """The smallest margin of the joints' limits between points, its kind, and its joint.

    Arguments are those of `quintic_segments`; the margin is in units of half the limit's range.
    """
    coefficients = quintic_segments(values, step)
    smallest = (np.inf, "position", 0)
    kinds = ("position", "velocity", "acceleration", "jerk")
    for kind, (low, high) in zip(kinds, bounds.derivative_limits, strict=True):
        half = np.where(np.isfinite(high - low), 0.5 * (high - low), 1.0)
        for sign, edge in ((1.0, high), (-1.0, -low)):
            room = (edge - largest_values(sign * coefficients, edge).max(axis=0)) / half
            joint = int(np.argmin(room))
            smallest = min(smallest, (float(room[joint]), kind, joint))
        coefficients = derivative(coefficients) / step[None, :, None]
    return smallest


def approach_times(way: Array, bounds: Bounds) -> Array:
    """Least time from standstill to standstill, shape (dof,) [s]; see the module's docstring."""
    speed, push = (np.abs(x).min(axis=0) for x in (bounds.velocity, bounds.acceleration))
    return np.asarray(np.maximum(PEAK_SPEED * way / speed, np.sqrt(PEAK_ACCELERATION * way / push)))


PLOT_POINTS = 600  #: Points drawn per line.

Seconds: TypeAlias = Annotated[float, number(0.0, 2.0e9, open=True)]
"""Longest time of an approach [s]: ROS counts seconds in 32 bits."""

UNITS = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s²", "m/s²"),
    "torque": ("N m", "N"),
}
"""Units of revolute and of prismatic joints."""

REST_SPEED = 1e-7
"""Velocity [rad/s or m/s] below which a joint is at rest: ros2_control compares that of the last
point with the rounding of single precision, 1.2e-7."""

FILE_DECIMALS = 12
"""Decimals of positions, velocities and accelerations in files: polynomials between points 10 ms
apart multiply what is rounded by up to 60 000 in accelerations."""

TOUCHING = 1e-9  #: Rounding of an approach that reaches a limit, in units of half its range.
APPROACH_POINTS = 400  #: Number of times of an approach at which torques and distances are checked.


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Displayed):
    """A periodic motion of a robot's joints."""

    robot: Robot  #: With the joint terms that the motion was designed for.
    basis: Basis  #: The family of functions, such as Fourier series.
    #: Of the functions of the family: one row each.
    coefficients: Annotated[Array, array("functions", "joints")]
    rate: float  #: Samples per second of `t`, `q`, `dq` and `ddq` [Hz].
    bounds: Bounds  #: The limits it keeps.
    certificate: ExcitationCertificate  #: Predicted accuracy, and margins of all limits.
    notes: tuple[str, ...] = ()  #: Assumptions, and how the search ended.
    constraints: tuple[PostureConstraint, ...] = ()  #: Distances and workspaces that it keeps.

    @property
    def period(self) -> float:
        """[s]"""
        return self.basis.period

    @cached_property
    def t(self) -> Array:
        """Sample times of one period from 0, shape (samples,) [s]."""
        return sample_times(self.period, self.rate)

    @cached_property
    def _samples(self) -> tuple[Array, Array, Array]:
        return self.at(self.t)

    @property
    def q(self) -> Array:
        """Positions, shape (samples, dof) [rad or m]."""
        return self._samples[0]

    @property
    def dq(self) -> Array:
        """Velocities, shape (samples, dof) [per s]."""
        return self._samples[1]

    @property
    def ddq(self) -> Array:
        """Accelerations, shape (samples, dof) [per s^2]."""
        return self._samples[2]

    @property
    def condition_number(self) -> float:
        """Condition number of the base regressor over one period, in SI units."""
        return self.certificate.condition_number

    def at(self, t: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Exact position, velocity and acceleration at any times.

        Parameters
        ----------
        t : array_like, shape (N,) or ()
            [s]; the motion repeats after `period`.

        Returns
        -------
        q, dq, ddq : ndarray, shapes (N, dof) or (dof,)

        Raises
        ------
        InputError
            A time is not finite.
        """
        times = np.asarray(t, dtype=np.float64)
        values = self.basis.matrices(np.atleast_1d(times))[:3] @ self.coefficients
        q, dq, ddq = values[:, 0] if times.ndim == 0 else values
        return q, dq, ddq

    def jerk(self, t: npt.ArrayLike) -> Array:
        """Exact third derivative.

        Parameters
        ----------
        t : array_like, shape (N,)
            [s]

        Returns
        -------
        ndarray, shape (N, dof)
            [rad or m per s^3]
        """
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        return np.asarray(self.basis.matrices(times)[3] @ self.coefficients)

    def to_frame(self, periods: Natural = 1) -> pd.DataFrame:
        """Columns ``t``, ``q_<joint>``, ``dq_<joint>`` and ``ddq_<joint>``, one row per sample.

        The last row is the end of the last period, where a motion with ``rest=True`` rests.

        Parameters
        ----------
        periods : int
            How often the motion is repeated.

        Returns
        -------
        DataFrame

        Raises
        ------
        InputError
            `periods` is below 1.
        """
        import pandas as pd

        t = np.arange(len(self.t) * periods + 1) / self.rate
        data = {"t": t}
        for kind, values in zip(("q", "dq", "ddq"), self.at(t), strict=True):
            data |= {f"{kind}_{j}": values[:, k] for k, j in enumerate(self.robot.joints)}
        out = pd.DataFrame(data)
        out.attrs["robot"] = self.robot
        return out

    @document_output
    def to_csv(self, path: str | Path, *, periods: Natural = 1, overwrite: bool = False) -> None:
        """Write `to_frame` as CSV.

        Parameters
        ----------
        periods : int
            How often the motion is repeated.
        """
        text = self.to_frame(periods).to_csv(index=False, float_format=f"%.{FILE_DECIMALS}f")
        write_atomically(path, text.encode(), overwrite=overwrite)

    @property
    def approach_time(self) -> float:
        """Time in which any posture within the limits reaches the start of the motion [s].

        The approach is a polynomial of degree five from rest to rest, as ROS's controllers
        interpolate; see `feasid.applications.excitation.trajectory`.
        """
        far = np.abs(self.bounds.position - self.q[0]).max(axis=0)
        return float(approach_times(far, self.bounds).max())

    def check_approach(self, start: npt.ArrayLike, seconds: Seconds | None = None) -> float:
        """Verify the approach from a posture at rest to the start of the motion.

        The approach is a polynomial of degree five, as ROS's controllers interpolate. Torques (with
        all friction and without), distances between links and workspaces are checked at
        `APPROACH_POINTS` times.

        Parameters
        ----------
        start : array_like, shape (dof,)
            Posture of the robot before the approach [rad or m].
        seconds : float, optional
            [s]; default the least that velocities and accelerations allow.

        Returns
        -------
        float
            Its duration [s].

        Raises
        ------
        InputError
            The approach violates limits; the message names them.
        """
        posture = require_finite(start, (self.robot.dof,), "start")
        least = float(approach_times(np.abs(posture - self.q[0]), self.bounds).max())
        # A robot that stands at the start already still needs a duration above zero.
        duration = max(least, 1e-3) if seconds is None else seconds
        s = np.linspace(0, 1, APPROACH_POINTS)
        profile = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
        path = (self.q[0] - posture)[:, None]
        with np.errstate(over="ignore"):  # the power of an endless time is infinite
            times = np.float64(duration) ** np.arange(1, 4)
        rates = (path * profile.deriv(k)(s) / times[k - 1] for k in (1, 2, 3))
        way = [posture[:, None] + path * profile(s), *rates]
        dynamics = MotionRegressor(self.robot, ())
        margins = smallest_margins_of_motion(dynamics, self.bounds, self.constraints, way)
        worst = sorted(margins, key=lambda m: m.slack)
        violations = [*dict.fromkeys(m.name for m in worst if m.slack < -TOUCHING)]
        if violations:
            raise InputError(
                f"the way from the posture {quote(posture.tolist())} to the start of the motion in "
                f"{duration:.3g} s breaks: {'; '.join(violations[:3])}; start nearer to "
                f"{quote(np.round(self.q[0], 3).tolist())}"
                + ("" if seconds is None else f", or take {least:.3g} s or more"),
                broken=violations,
            )
        return duration

    @document_output
    def to_ros(
        self,
        path: str | Path,
        *,
        rate: Rate | None = None,
        approach: Seconds | None = None,
        start: npt.ArrayLike | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a ROS 2 ``trajectory_msgs/msg/JointTrajectory`` as YAML: an approach and a period.

        The first point is the start of the motion, at rest, `approach` seconds after the message is
        received: ros2_control's joint_trajectory_controller interpolates from where the robot is,
        and between points, by polynomials of degree five, whose extremes keep the limits.
        The approach to the first point is checked only if `start` is given; see `check_approach`.

        Parameters
        ----------
        rate : float, optional
            Points per second [Hz]; default the motion's.
        approach : float, optional
            [s]; default what the way from `start` takes, or `approach_time`, enough for any posture
            within the position limits.
        start : array_like, shape (dof,), optional
            Posture of the robot at rest before the approach [rad or m].

        Raises
        ------
        InputError
            `rate` or `approach` is not positive or too large; the motion does not start and end at
            rest, which the controller would reject or follow with a jerk; there are so few points
            that the controller would exceed a limit between them; the approach from `start` exceeds
            a limit.
        """
        message_rate = self.rate if rate is None else rate
        # Half a step is left out: rounding must not put one more point before the end.
        t = np.append(np.arange(0, self.period - 0.5 / message_rate, 1 / message_rate), self.period)
        values = self.at(t)
        end_speeds = np.abs(values[1][[0, -1]]).max(axis=0)
        if end_speeds.max() > REST_SPEED:
            joint = self.robot.joints[int(np.argmax(end_speeds))]
            raise InputError(
                f"joint {joint!r} moves at {end_speeds.max():.2g} rad/s or m/s where the motion "
                "starts and ends: a joint_trajectory_controller rejects it; design it with "
                "rest=True",
                joint=joint,
            )
        room, kind, j = smallest_joint_margin(np.array(values), np.diff(t), self.bounds)
        if room < 0:
            raise InputError(
                f"{message_rate:g} points a second are too few: between them a controller would "
                f"exceed the {kind} limit of joint {self.robot.joints[j]!r} by {-room:.1g} of "
                "half its range; give a higher rate",
                joint=self.robot.joints[j],
            )
        delay = self.approach_time if approach is None else approach
        if start is not None:
            delay = self.check_approach(start, approach)
        out = io.StringIO()
        out.write("header:\n  stamp: {sec: 0, nanosec: 0}\n  frame_id: ''\njoint_names:\n")
        # In YAML, a quote within single quotes is doubled.
        quoted = (joint.replace("'", "''") for joint in self.robot.joints)
        out.writelines(f"  - '{joint}'\n" for joint in quoted)
        out.write("points:\n")
        for k, time in enumerate(t):
            seconds, nanoseconds = divmod(round((delay + time) * 1e9), 10**9)
            names = ("- positions", "  velocities", "  accelerations")
            for name, columns in zip(names, values, strict=True):
                row = ", ".join(f"{x:.{FILE_DECIMALS}f}" for x in columns[k])
                out.write(f"  {name}: [{row}]\n")
            out.write("    effort: []\n")
            out.write(f"    time_from_start: {{sec: {seconds}, nanosec: {nanoseconds}}}\n")
        write_atomically(path, out.getvalue().encode(), overwrite=overwrite)

    def plot(self) -> Figure:
        """Positions, velocities, accelerations and torques with their limits, a row per joint."""
        t = np.linspace(0, self.period, PLOT_POINTS)
        values = dict(zip(("position", "velocity", "acceleration"), self.at(t), strict=True))
        robot = self.robot
        if not np.isnan(robot.values[robot.inertial_columns]).any():
            known = np.nan_to_num(robot.values)
            values["torque"] = inverse_dynamics(robot, *self.at(t), parameters=known)
        limits = dict(self.bounds.limits_by_name())
        turning = {bool(body.motion[:3].any()) for body in robot.bodies}
        curves, edges = {}, {}
        for kind, drawn in values.items():
            turn, slide = UNITS[kind]
            unit = " or ".join([turn] * (True in turning) + [slide] * (False in turning))
            quantity = f"{kind} [{unit}]"
            curves[quantity], edges[quantity] = [(t, drawn)], np.asarray(limits[kind])
        title = f"The motion repeats every {self.period:.4g} s"
        return draw(motion_chart(title, robot.joints, curves, edges))

    def summary(self) -> str:
        """A summary of the motion and its certificate."""
        head = (
            f"motion of {self.robot.name}: period {self.period:g} s, {self.robot.dof} joints, "
            f"{self.coefficients.shape[0]} coefficients each"
        )
        return "\n".join([head, self.certificate.summary(), *(f"note: {n}" for n in self.notes)])

    def display(self) -> Display:
        """A short display of the motion."""
        c = self.certificate
        size, verdict = len(c.expressions), "kept" if c.limits_hold else "broken"
        active = {joint: kinds for joint, kinds in c.active_limits.items() if kinds}
        worst = np.argsort(-c.deviations)[:3]
        violations = [f"{m.name} is broken by {-m.slack:.2g}" for m in c.margins if m.slack < 0]
        unseen = [c.expressions[k] for k in np.flatnonzero(np.isinf(c.deviations))]
        return Display(
            f"motion of {self.robot.name!r}: {self.period:g} s, {self.robot.dof} joints",
            [
                Measure("parameters seen", f"{c.rank} of {size}", str(size), c.is_full_rank),
                Measure("limits between samples", verdict, "kept", c.limits_hold),
                Measure("condition number", f"{c.condition_number:.1f}"),
                Measure("log det", f"{c.log_det:+.1f}"),
                Measure("joints at a limit", f"{len(active)} of {self.robot.dof}"),
            ],
            [*violations, *(f"not seen: {e}" for e in unseen)],
            [
                f"least certain for noise {c.noise.max():g}: "
                f"{c.deviations[k]:.3g} {c.expressions[k]}"
                for k in worst
            ],
            "more: motion.summary(), motion.plot(), motion.to_frame()",
        )


def sample_times(period: float, rate: float) -> Array:
    """Times of a period's samples; the last one comes before the period ends."""
    return np.asarray(np.arange(max(1, round(period * rate))) / rate)
