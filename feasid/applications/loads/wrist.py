"""A load behind a wrist force-torque sensor, and what of the sensor differs from what is known.

The sensor measures the force and moment that move the load and hold it against gravity. With the
load's ten parameters delta_L in the frame of the body that carries the sensor, both are linear,

    f = S(alpha) l + S(omega)^2 l + m a,    n = L alpha + omega x L omega + l x a,

a the acceleration of the frame's origin minus gravity (Siciliano et al. 2009, eq. 7.69), moved to
the sensor's frame: w = W delta_L. A sensor that is turned by R from its pose, whose six channels
have gains g and offsets b and arrive late by d, on a tilted base, behind joints with zeros, shows

    y(t + d) = diag(g) blockdiag(R, R)' W(t; tilt, zeros) delta_L + b + noise.

A few Gauss-Newton steps solve it, each linear least squares in b, delta_L and increments of the
errors x = (rotation vector, d, g - 1, tilt, zeros), after which a triangle in x alone remains:
y = A x + noise. Errors of a kind are, with even odds, zero or normal with a deviation s of any size
up to the largest one, ``calibration=``. The evidence of y, with x integrated out,

    log p(y | s) = -log det(I + A S A') / 2 - y' (I + A S A')^-1 y / 2,    S = diag(s^2),

weighs all combinations of s (MacKay 1992, "Bayesian interpolation"). A kind that is not zero with
a probability of `ENTERS` is corrected by its mean. What may remain of each kind, such as the gain
that all channels share and no log tells, widens the load's covariance by its second moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Literal, Unpack

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from feasid.applications.loads.payload import (
    Payload,
    WristSensor,
    fit_feasible_body,
    least_squares_covariance,
    payload_of_fit,
    refuse_negative_mass,
)
from feasid.core.arguments import Matrix3, NonNegative, Vector3, checked
from feasid.core.arrays import Array
from feasid.core.errors import InputError, LogError
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.regression.reduce import Log
from feasid.logs.columns import read_numbers
from feasid.logs.filters import low_pass
from feasid.logs.motion import Run
from feasid.logs.recording import Recording
from feasid.options.tables import LogOptions
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import coordinate_map, nodes, propagate
from feasid.robot.dynamics.newton_euler import WrenchRegressor
from feasid.robot.formats.fit_robot import resolve_robot
from feasid.robot.inertia import change_frame
from feasid.robot.layout import find_link

CHANNELS = ("fx", "fy", "fz", "tx", "ty", "tz")

CUTOFF = 5.0  #: Low-pass of both sides where the log itself was not filtered [Hz].

ROWS_PER_HZ = 1.745
"""Independent values of filtered white noise per second and Hz of the cut-off: twice the integral
of 1 / (1 + f^6)^2, the filter's power. At so many rows a second their errors are independent."""

BLOCK = 1.0  #: Means of residuals over so long show noise that is slower than white [s].
FINEST = 1e-5  #: Least noise over the largest reading: no sensor has more bits, nor do sums of it.
MARGIN = 0.2  #: Rows this close to the ends of a run are left out; longest delay [s].

ERRORS = {
    "rotation": slice(0, 3),
    "delay": slice(3, 4),
    "gain": slice(4, 10),
    "tilt": slice(10, 13),
    "zero": slice(13, None),
}
"""Kinds of errors and their places in x: of the sensor, of the base's rotation, of the joints."""

USUAL = {"rotation": 0.1, "delay": 0.03, "gain": 0.03, "tilt": 0.02, "zero": 0.01}
"""Largest deviation of each that is usual: [rad], [s], [1], [rad], [rad or m]."""

SPREADS = np.array([1.0, 0.5, 0.2, 0.05])
"""Deviations that are weighed, each by its size, over the largest one."""

NUDGE = 1e-4  #: Step of each error by which the derivatives follow, in its unit.
STEPS, SETTLED = 20, 1e-5  #: Most Gauss-Newton steps; relative change of the load that ends them.

ENTERS, LEAST = 0.99, 0.005
"""Probability from which an error is corrected, and its least size in units of `USUAL` (0.03
degrees, 0.15 ms, 0.015 %): what is smaller may be the filters' error, and is only allowed for."""

CONTRADICTED, ANOTHER = 0.2, 3.5
"""Sizes in units of `USUAL` from which a load is doubtful: of an error that the caller excludes and
the log shows, and of one after which the set-up is rather another than slightly wrong."""

WRENCH_LIMITS = {"useless": 0.5, "doubtful": 0.1}
"""Share of a wrist sensor's variation that the load leaves unexplained, by the level from there."""


@checked
@one_thread()
@step("identifying the load")
def payload_from_wrench(
    log: Log,
    robot: Robot | str | None = None,
    *,
    channels: Sequence[str] = CHANNELS,
    body: str | None = None,
    rotation: Matrix3 = ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    position: Vector3 = (0, 0, 0),
    calibration: Mapping[Literal["rotation", "delay", "gain", "tilt", "zero"], NonNegative]
    | Literal["usual"]
    | None = "usual",
    **options: Unpack[LogOptions],
) -> Payload:
    """Identify a load from a wrist force-torque sensor.

    The sensor's rotation from its pose, the delay of its channels, their relative gains, the base's
    tilt and the joints' zeros are identified with the load where the log shows them, as are the
    sensor's six offsets.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path or Recording
        Positions of the joints as in `feasid.logs.frame`, and six columns of the sensor: force and
        moment that it exerts on the load [N, N m], in its own axes and about its own origin.
    robot : Robot or path, optional
    channels : sequence of six str
        Names of the columns: forces along x, y, z, then moments.
    body : str, optional
        The body or link that carries the sensor; the result is in its frame. Default the last body.
    rotation, position : array_like, shapes (3, 3) and (3,), optional
        Pose of the sensor in that frame: its axes as columns, its origin [m].
    calibration : mapping of str to float, "usual" or None
        Largest standard deviations of errors: rotation [rad] of the sensor about each axis, delay
        [s], gain [1] of each channel, tilt [rad] of the base and zero [rad or m] of each joint.
        Entries replace the usual ones, 0.1, 0.03, 0.03, 0.02 and 0.01; 0 excludes an error that you
        know to be absent. None excludes all.
    **options
        How the log is read.

    Returns
    -------
    Payload
        The load in the frame of the body; ``residual`` is the error of the sensor's channels
        without and with the load, and ``sensor`` what the log shows of the sensor.

    Raises
    ------
    LogError
        A column is missing, or no part of the log is long enough.
    InputError
        The load has a negative mass, which happens if the sensor has the opposite sign.
    """
    widths = dict.fromkeys(USUAL, 0.0) if calibration is None else dict(USUAL)
    widths |= calibration.items() if isinstance(calibration, Mapping) else ()
    recording = Recording.from_source(log)
    arm = resolve_robot(log, robot)
    k, link = find_link(arm, body)
    turn, shift = np.asarray(rotation, dtype=np.float64), np.asarray(position, dtype=np.float64)
    if abs(np.linalg.det(turn) - 1) > 1e-6:
        raise InputError("rotation must be a rotation matrix: its determinant is not 1")
    motion = recording.motion(arm, torque=False, **options)
    table = recording.table(arm, options.get("topic"))
    missing = [c for c in channels if c not in table.columns]
    if missing or len(channels) != 6:
        raise LogError(
            f"the sensor needs six columns, forces then moments; {missing or list(channels)} "
            f"{'are not in the log' if missing else 'are not six'}: channels="
        )
    felt = np.stack([read_numbers(table, c) for c in channels], axis=1)
    pose = link.rotation @ turn, link.position + link.rotation @ shift
    to_body = change_frame(link.rotation, link.position)
    equations, runs = partial(_wrench_regressor, arm, k, pose, to_body), list[_SensorRun]()
    for run in motion.runs:
        if not np.isfinite(felt[run.rows]).all():
            bad = int(run.rows[int(np.argmin(np.isfinite(felt[run.rows]).all(axis=1)))])
            raise LogError(f"the sensor has no finite number in row {bad}", row=bad)
        if run.t[-1] - run.t[0] > 2 * MARGIN:
            runs.append(_SensorRun.from_samples(run, felt[run.rows], equations))
    if not runs:
        raise LogError(f"no segment of the log is longer than {2 * MARGIN} s: log without gaps")
    return _identify_load(link.name, runs, turn, widths, arm.dof)


def _wrench_regressor(
    arm: Robot,
    k: int,
    pose: tuple[Array, Array],
    to_body: Array,
    motion: tuple[Array, Array, Array],
    errors: Sequence[float],
) -> Array:
    """Six channels per unit of the load's parameters, (N, 6, 10), by a base's tilt and zeros."""
    tree, columns = nodes(arm), tuple(arm.inertial_columns[k])
    (turn, shift), (q, dq, ddq) = pose, motion
    gravity = Rotation.from_rotvec(errors[:3]).as_matrix() @ arm.gravity
    motion = coordinate_map(arm).motion((q + np.array(errors[3:])).T, dq.T, ddq.T)[:3]
    states = propagate(tree, gravity, *motion)
    node, state = next(x for x in zip(tree, states, strict=True) if x[0].columns == columns)
    wrench = WrenchRegressor.from_state(state, node, list(range(10)))
    force, moment = np.zeros((2, 3, 10, len(q)))
    force[:, 6:] = wrench.linear
    moment[:, :9] = wrench.angular
    # About the sensor's origin in place of the body's.
    moment -= np.cross(shift[:, None, None], force, axis=0)
    both = np.concatenate([np.einsum("ji,jkN->ikN", turn, x) for x in (force, moment)])
    return np.ascontiguousarray(both.transpose(2, 0, 1)) @ to_body


# -- equations ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SensorRun:
    """Equations of a run, at about as many rows as are independent, and its channels."""

    columns: Array  #: Shape (N, 6, 10): behind the same low-pass as the channels.
    #: The same without it, by the base's tilt and the joints' zeros.
    equations: Callable[[tuple[float, ...]], Array]
    times: Array  #: Shape (N,): [s].
    channels: CubicSpline  #: From times to six channels.
    block: int  #: Number of rows in `BLOCK`.

    @classmethod
    def from_samples(cls, run: Run, felt: Array, equations: Callable[..., Array]) -> _SensorRun:
        """The run's samples, filtered and thinned."""
        cutoff, none = min(CUTOFF, 0.2 * run.rate), np.zeros(3 + run.q.shape[1])
        regressor = equations((run.q, run.dq, run.ddq), none).reshape(len(run), -1)
        smooth = low_pass(np.hstack([regressor, felt]), cutoff, run.rate)
        every = max(1, round(run.rate / (ROWS_PER_HZ * cutoff)))
        inside = (run.t >= run.t[0] + MARGIN) & (run.t <= run.t[-1] - MARGIN)
        rows = np.flatnonzero(inside)[::every]
        motion = run.q[rows], run.dq[rows], run.ddq[rows]
        # Most steps leave tilt and zeros as they are.
        thin = lru_cache(3)(partial(equations, motion))
        channels = CubicSpline(run.t, smooth[:, -6:])
        block = max(1, round(BLOCK * run.rate / every))
        return cls(smooth[rows, :-6].reshape(-1, 6, 10), thin, run.t[rows], channels, block)

    def correct(self, errors: Array) -> tuple[Array, Array]:
        """The columns, (N, 6, 10), and the channels, (N, 6), if the errors are these."""
        moved = self.equations((*errors[10:],)) - self.equations((0.0,) * len(errors[10:]))
        parts = (self.columns + moved).reshape(-1, 2, 3, 10)
        turned = Rotation.from_rotvec(errors[:3]).as_matrix().T @ parts
        gains = 1.0 + errors[4:10, None]
        return gains * turned.reshape(-1, 6, 10), self.channels(self.times + errors[3])


def _linearise(runs: Sequence[_SensorRun], errors: Array, load: Array) -> tuple[Array, Array]:
    """Derivatives by offsets, load and errors, (N, 6, 16 + n), and the channels, (N, 6)."""

    def correct(x: Array) -> tuple[Array, Array]:
        columns, felt = zip(*(run.correct(x) for run in runs), strict=True)
        return np.concatenate(columns), np.concatenate(felt)

    columns, felt = correct(errors)
    nudged = [correct(errors + step) for step in NUDGE * np.eye(len(errors))]
    misses = np.array([moved @ load - channels for moved, channels in nudged])
    slopes = (misses - (columns @ load - felt)) / NUDGE
    offsets = np.broadcast_to(np.eye(6), (len(felt), 6, 6))
    return np.concatenate([offsets, columns, slopes.transpose(1, 2, 0)], axis=2), felt


def _reduce(matrix: Array, felt: Array, weight: Array) -> Array:
    """Triangle of whitened equations, the channels last."""
    rows = np.concatenate([matrix, felt[:, :, None]], axis=2) * weight[:, None]
    return np.asarray(np.linalg.qr(rows.reshape(-1, rows.shape[2]), mode="r"))


# -- the errors -----------------------------------------------------------------------------------


def _find_errors(
    runs: Sequence[_SensorRun], widths: Mapping[str, float], counts: Sequence[int]
) -> tuple[list[str], Array, Array, Array, Array]:
    """Corrections as of `_weigh_errors`, weights of the channels, and the load, (10,).

    `counts`: number of errors, by kind.
    """
    spread = np.repeat([widths[kind] for kind in ERRORS], counts)
    free, errors = np.flatnonzero(spread), np.zeros(len(spread))
    load, weight, active = np.zeros(10), np.ones(6), np.r_[:16, 16 + free]
    prior = np.eye(17 + len(spread))[16 + free] / spread[free, None]
    largest = max(float(np.abs(run.channels(run.times)).max()) for run in runs)
    for _ in range(STEPS):
        matrix, felt = _linearise(runs, errors, load)
        # Unknowns are increments, the prior is of the errors: it pulls back to zero.
        prior[:, -1] = -errors[free] / spread[free]
        rows = np.vstack([_reduce(matrix, felt, weight), prior])
        answer = least_squares_covariance(rows[:, active])[1] @ rows[:, -1]
        residual = felt - matrix[:, :, active] @ answer
        variance, count = residual.var(axis=0), len(residual)
        # Sums over the root of their length vary as single rows do where errors are independent,
        # and by more where a sensor drifts.
        parts = np.split(residual, np.cumsum([len(run.times) for run in runs])[:-1])
        sums = [
            np.sum(part[k : k + run.block], axis=0) / np.sqrt(run.block)
            for run, part in zip(runs, parts, strict=True)
            for k in range(0, len(part) - run.block + 1, run.block)
        ]
        slow = np.var(sums, axis=0) if len(sums) > 2 else variance
        # Every channel bears a sixth of the unknowns.
        variance = np.maximum(variance, slow) * count / max(count - len(active) / 6, 1.0)
        weight = 1.0 / np.maximum(np.sqrt(variance), max(FINEST * largest, 1e-300))
        change, load = answer[6:16] - load, answer[6:16]
        errors[free] += answer[16:]
        # A longer delay would need samples beyond the ends of a run.
        errors[3] = np.clip(errors[3], -MARGIN, MARGIN)
        if np.linalg.norm(change) < SETTLED * np.linalg.norm(load):
            break
    matrix, felt = _linearise(runs, errors, load)
    triangle = _reduce(matrix, felt + matrix[:, :, 16:] @ errors, weight)
    # What offsets and load leave of the errors' columns and of the channels.
    _, inverse = least_squares_covariance(triangle[:, :16])
    rows = triangle[:, 16:] - triangle[:, :16] @ (inverse @ triangle[:, 16:])
    return *_weigh_errors(rows[:, :-1], rows[:, -1], widths, counts), weight, load


def _weigh_errors(
    matrix: Array, right: Array, widths: Mapping[str, float], counts: Sequence[int]
) -> tuple[list[str], Array, Array]:
    """Kinds that are corrected, their values, (n,), and second moments about them, (n, n).

    By the evidence of ``right = matrix @ errors + noise``, over all deviations of errors.
    """
    cases = np.array([*product(*([0.0, *(widths[kind] * SPREADS)] for kind in ERRORS))])
    prior = np.prod([*product([1.0, *(SPREADS / SPREADS.sum())], repeat=len(ERRORS))], axis=1)
    spreads = np.repeat(cases, counts, axis=1)
    inner = np.eye(len(matrix.T)) + spreads[:, :, None] * (matrix.T @ matrix) * spreads[:, None, :]
    pull = spreads * (matrix.T @ right)
    means = np.linalg.solve(inner, pull[:, :, None])[:, :, 0]
    evidence = (np.einsum("ki,ki->k", pull, means) - np.linalg.slogdet(inner)[1]) / 2
    weights = prior * np.exp(evidence - evidence.max())
    means, values, corrected = spreads * means, np.zeros(len(matrix.T)), list[str]()
    present = {kind: cases[:, i] > 0 for i, kind in enumerate(ERRORS)}
    entering = [k for k, rows in present.items() if weights @ rows > ENTERS * weights.sum()]
    weights = weights * np.all([present[kind] for kind in entering], axis=0)
    weights = weights / weights.sum()
    for kind in entering:
        mean = (weights @ means)[ERRORS[kind]]
        if np.linalg.norm(mean) > LEAST * USUAL[kind]:
            values[ERRORS[kind]] = mean
            corrected.append(kind)
    away = means - values
    covariances = spreads[:, :, None] * np.linalg.inv(inner) * spreads[:, None, :]
    moments = np.einsum("k,kij->ij", weights, covariances + away[:, :, None] * away[:, None, :])
    return corrected, values, moments


# -- the load -------------------------------------------------------------------------------------


def _identify_load(
    body: str, runs: Sequence[_SensorRun], rotation: Array, widths: Mapping[str, float], dof: int
) -> Payload:
    """The load behind the corrected sensor, by least squares for it and six offsets."""
    # Errors by kind: every joint has a zero.
    counts = [len(range(ERRORS["zero"].start + dof)[places]) for places in ERRORS.values()]
    corrected, values, moments, weight, load = _find_errors(runs, widths, counts)
    matrix, felt = _linearise(runs, values, load)
    triangle = _reduce(matrix, felt, weight)
    covariance, inverse = least_squares_covariance(triangle[:, :16])
    mass, variance = inverse[15] @ triangle[:, -1], covariance[15, 15]
    refuse_negative_mass(mass, variance, body, "does the sensor count the other way round?")
    slopes = (inverse @ triangle[:, 16:-1])[6:]  # of the load by the errors, reversed
    covariance = covariance[6:, 6:] + slopes @ moments @ slopes.T
    reduced = _reduce(matrix[:, :, :16], felt, weight)
    fit = fit_feasible_body(reduced[6:16, 6:16], reduced[6:16, 16])
    both = np.array([felt - matrix[:, :, 6:16] @ fit.delta, felt])
    offsets = both.mean(axis=1, keepdims=True)
    missing, size = np.linalg.norm((both - offsets) * weight, axis=(1, 2))
    missed = float(missing) / max(float(size), 1e-300)

    def describe(kinds: Sequence[str], values: Array, moments: Array) -> WristSensor:
        sizes, spread = ({kind: x[places] for kind, places in ERRORS.items()}
                         for x in (values, np.sqrt(np.diag(moments))))  # fmt: skip
        turned = rotation @ Rotation.from_rotvec(values[:3]).as_matrix()
        return WristSensor(tuple(kinds), sizes, spread, turned, offsets[0, 0])

    sensor = shown = describe(corrected, values, moments)
    # What the caller excludes is looked for nevertheless, and lowers the level alone.
    if not all(widths.values()):
        shown = describe(*_find_errors(runs, USUAL, counts)[:3])
    reasons = [
        f"The log shows an error of {shown.texts[kind]}: "
        + ("check the set-up." if widths[kind] else "calibration= excludes it.")
        for kind in shown.corrected
        if np.abs(shown.values[kind]).max()
        > USUAL[kind] * (ANOTHER if widths[kind] else CONTRADICTED)
    ]
    load_model = payload_of_fit(body, fit, covariance, (1.0, missed))
    level = next((k for k, least in WRENCH_LIMITS.items() if missed > least), "good")
    if level != "good":
        reasons.append(
            f"The load explains all but {100 * missed:.0f} % of what the sensor's channels vary "
            "by: check its pose, its units and the order of the channels."
        )
    if not np.isfinite(load_model.mass_std):
        level = "useless"
        reasons = ["The motion does not determine the load: turn it in several directions."]
    level = "doubtful" if level == "good" and reasons else level
    return replace(load_model, level=level, reasons=tuple(reasons), sensor=sensor)
