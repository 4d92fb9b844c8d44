"""Large mistakes of a log, by trying them: signs, orders, units, right angles, axes of gravity.

Too large for derivatives, these mistakes are few enough to be counted. Each is applied to a few
hundred samples of the log and judged by the feasible model that explains them best,

    J = N * sum over joints of log(relative error) + weight * divergence(model, description),

so that a mistake is also seen where a model far from the description would hide it. What lowers J
most is only a suspicion; the caller tests it with fits to segments of the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls

from feasid.core.arrays import Array
from feasid.core.errors import FeasidError, NotEnoughDataError
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import relative_error
from feasid.identification.estimation.newton import EntropicProblem
from feasid.identification.estimation.priors import WEIGHT
from feasid.identification.estimation.problem import EstimationProblem
from feasid.identification.regression.triangle import Reducer
from feasid.logs.checks.findings import Finding
from feasid.logs.checks.signals import DEGREE, degrees_finding
from feasid.logs.motion import Motion
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import GRAVITY, Robot
from feasid.robot.dynamics.regressor import inverse_dynamics, regressor

SAMPLES = 400
"""Number of samples that are used. With 100 an exchange of two wrist torques was missed, with 4000
the search takes five times as long and finds the same."""

DEVIATION = 0.1  #: Standard deviation of the noise as a share of each joint's torque.

MOST_STEPS, ENOUGH = 25, 1e-3
"""Newton steps at most for a model of the samples, and half the squared decrement per sample that
ends them sooner. Models of right logs take 25 to 40 steps; those of wrong ones take hundreds, and J
is too large after 50 of them already, by more than it may fall."""

FIRST_STEPS, HOPELESS = 8, 20.0
"""Newton steps after which J of a wrong log is compared with what it must reach, and by how much
it may exceed that: models of right logs are above their J by 10 at most then, those of the KUKA's
log without gravity or with another one by 26 to 30."""

SMALLEST_ERROR = 0.03
"""Relative errors below this count as equal: decimated, filtered friction causes as much."""

LEAST_FALL = 0.2
"""J must fall by so much per sample: the error of one joint by a fifth, or several by less."""

FAR = 3.5
"""A joint's error in a feasible model over that of the joint by itself, by least squares: up to 1.7
on right logs in simulation, 1.2 to 5.4 on eight real ones, from 4.7 with a sign or a position that
is wrong, and 3.2 to 5.4, or hundreds, where the torques of two joints are exchanged."""

GEARS = (0.2, 5.0)  #: Factors between torque and description that a bad description explains.

WIDE = 3.2  #: Positions beyond this [rad] may be in degrees.
RIGHT_ANGLES = (90.0, -90.0, 180.0)  #: Zeros that are tried [degrees].

BEST_AXES = 3  #: Axes of gravity, those that explain the log best, between which it is tried.

MOST_EXCHANGES = 6
"""Pairs of torques, those that explain each other best, that are tried the other way round."""


MOST_JOINTS = 10
"""Largest number of joints with which positions and gravity are tried, too: the effort grows with
its square."""

TOLD_BY_WEIGHT, TELLING = 0.6, 1.5
"""A factor is judged if the description's torque, times a factor, leaves at most this share of a
joint's torque, and less than the joint's own friction and inertia leave."""

SLOW_SPEED = 0.05
"""Speed below which friction changes its sign gradually [rad/s or m/s]: signals are filtered."""

ALONG_NO_AXIS = np.array([0.36, 0.48, -0.80])
"""A direction with which no joint of a robot is parallel but by chance."""

MOTION = ("q", "dq", "ddq")
WORDS = {"tau": "torques", "q": "positions"}


@dataclass(frozen=True, eq=False)
class DecimatedLog:
    """A few samples of a log and the robot they are explained with; arrays (N, dof)."""

    robot: Robot
    q: Array
    dq: Array
    ddq: Array
    tau: Array

    @classmethod
    def from_motion(cls, robot: Robot, motion: Motion) -> DecimatedLog:
        """Every n-th sample of a motion."""
        if not motion.runs:
            raise NotEnoughDataError("no rows of the log are left to judge: it is too short for "
                                     "its filters (cutoff, trim, delay)")  # fmt: skip
        step = max(1, motion.samples // SAMPLES)
        parts = [np.concatenate([getattr(run, kind)[::step] for run in motion.runs])
                 for kind in (*MOTION, "tau")]  # fmt: skip
        return cls(robot, *parts)

    def with_scaled_signals(
        self, kinds: Sequence[str], joint: int, factor: float, zero: float = 0.0
    ) -> DecimatedLog:
        """One joint's signals of these kinds times a factor, and its position shifted."""
        changed = {k: getattr(self, k).copy() for k in kinds}
        for values in changed.values():
            values[:, joint] *= factor
        if zero:
            changed["q"][:, joint] += zero
        return replace(self, **changed)

    def with_joint_order(self, kinds: Sequence[str], order: Sequence[int]) -> DecimatedLog:
        """The signals of these kinds in another order of joints."""
        return replace(self, **{k: getattr(self, k)[:, list(order)] for k in kinds})


class JudgedLog:
    """Samples and the feasible model that explains them best; robots alike have one K."""

    def __init__(self, samples: DecimatedLog, near: JudgedLog | None = None) -> None:
        self.samples, self.near = samples, near
        if near is None:
            self.base: BaseParameters = base_parameters(samples.robot)
            self.feasible = feasible_set(samples.robot)
        else:  # another robot is the same one under another gravity
            alike = near.samples.robot is samples.robot
            self.base = near.base if alike else near.base_of_all_gravities
            self.feasible = near.feasible
        reducer = Reducer(samples.robot, [int(c) for c in self.base.independent])
        reducer.add(samples.q, samples.dq, samples.ddq, samples.tau)
        self.reduced = reducer.result()

    @cached_property
    def base_of_all_gravities(self) -> BaseParameters:
        """Base parameters under gravity along no axis: what they leave out, no gravity shows."""
        size = _size_of_gravity(self.samples.robot)
        return base_parameters(self.samples.robot.with_gravity(size * ALONG_NO_AXIS))

    @cached_property
    def cost(self) -> float:
        """J per sample; infinite where nothing can be fitted."""
        try:
            return self._cost_of(self.model)
        except FeasidError:
            return float("inf")

    def cost_within(self, most: float) -> float:
        """J per sample; after a few Newton steps where it exceeds `most` by far."""
        try:
            first = self._model_after(FIRST_STEPS, self._problem[2])
            cost = self._cost_of(first)
            if cost > most + HOPELESS:
                return cost
            return self._cost_of(self._model_after(MOST_STEPS - FIRST_STEPS, first))
        except FeasidError:
            return float("inf")

    @property
    def least_errors(self) -> Array:
        """Relative errors that each joint by itself has at best, (dof,)."""
        missed = np.array([abs(t[-1, -1]) for t in self.reduced.triangles])
        return np.maximum(relative_error(missed**2, self.reduced.torque_norms), SMALLEST_ERROR)

    @cached_property
    def whitened(self) -> tuple[Array, Array]:
        """Equations divided by a tenth of each joint's torque."""
        size = self.reduced.torque_norms
        # Forces at a passive joint add up to zero: they are taken for as large as a motor's.
        size = np.where(size > 0, size, np.median(size[size > 0]) if size.any() else 1.0)
        deviations = DEVIATION * size / np.sqrt(len(self.samples.tau))
        return self.reduced.triangle(1.0 / deviations)[:2]

    @cached_property
    def _problem(self) -> tuple[EstimationProblem, EntropicProblem, Array]:
        """The problem of the feasible model, for these samples, and a start."""
        like, samples = self.near, self.samples
        # Only gravity changed: constraints and units of the problem are the same.
        if like and all(getattr(samples, k) is getattr(like.samples, k) for k in (*MOTION, "tau")):
            problem, start = like._problem[0].under_gravity(self.base), like._problem[2]
        else:
            estimator = Estimator(self.base, self.feasible)
            problem = estimator.problem(self.reduced)
            start = problem.reduce(estimator.start(problem))
        return problem, problem.problem(*self.whitened, WEIGHT)[0], start

    def _model_after(self, steps: int, start: Array) -> Array:
        """Free parameters after so many Newton steps, or near the minimum."""
        return self._problem[1].approach(start, WEIGHT, ENOUGH * len(self.samples.tau), steps)

    @cached_property
    def model(self) -> Array:
        """Free parameters of the feasible model, nearly."""
        return self._model_after(MOST_STEPS, self._problem[2])

    def errors_of(self, free: Array) -> Array:
        """Relative errors of a model by its free parameters, (dof,)."""
        residuals = self.reduced.residuals(self.base.K @ self._problem[0].expand(free))
        return relative_error(residuals**2, self.reduced.torque_norms)

    def _cost_of(self, free: Array) -> float:
        """J per sample of a model by its free parameters."""
        penalty = WEIGHT * self._problem[1].divergence(free) / len(self.samples.tau)
        return float(np.sum(np.log(np.maximum(self.errors_of(free), SMALLEST_ERROR)))) + penalty


def find_large_mistakes(judged: JudgedLog, thorough: bool) -> list[Finding]:
    """Suspicions that lower J, the best first; none of them was tried on the whole log.

    Unless `thorough`, or where a joint by itself is explained far better than by a model of all,
    torques that are a large multiple of the description's, and gravity along another direction,
    which a model may explain as well. A factor of all torques hardly changes what a model explains:
    it need not lower J by much.
    """
    floor = len(judged.base.robot.coordinates) * np.log(SMALLEST_ERROR) + LEAST_FALL
    suspicions = []
    likely = judged.cost >= floor  # else nothing but a factor can lower J by so much

    def cost_of(finding: Finding, samples: DecimatedLog) -> float:
        enough = judged.cost - (0.0 if finding.code == "scale" else LEAST_FALL)
        try:
            other = JudgedLog(samples, judged)
        except FeasidError:
            return np.inf
        cost = float(np.sum(np.log(other.least_errors)))  # what no model goes below
        # The expensive model is sought only where this bound leaves it a chance.
        if cost < enough and (cost := other.cost_within(enough)) < enough:
            suspicions.append((cost, finding))
        return cost

    if np.isfinite(judged.cost):
        thorough |= bool((judged.errors_of(judged.model) > FAR * judged.least_errors).any())
    tried = _tried_mistakes(judged) if likely and thorough else _factor_mistakes(judged.samples)
    for suspect in tried:
        cost_of(*suspect)
    if likely and judged.samples.robot.dof <= MOST_JOINTS:
        _try_gravity(judged, cost_of)
    return [finding for _, finding in sorted(suspicions, key=lambda pair: pair[0])]


def _tried_mistakes(judged: JudgedLog) -> Iterator[tuple[Finding, DecimatedLog]]:
    samples = judged.samples
    names = samples.robot.coordinates
    for j, name in enumerate(names):
        yield _sign_finding((name,)), samples.with_scaled_signals(("tau",), j, -1.0)
    if len(names) > 1:
        yield _sign_finding(names), replace(samples, tau=-samples.tau)
    # Torques in another order: pairs that explain each other well, and the best order of all, by
    # the relative error of torque k by least squares on the columns of joint j, (dof, dof).
    tau, dof = samples.tau, judged.base.robot.dof
    errors, sizes = np.ones((dof, dof)), np.maximum(np.linalg.norm(tau, axis=0), 1e-300)
    every = regressor(samples.robot, samples.q, samples.dq, samples.ddq,
                      columns=judged.reduced.columns)  # fmt: skip
    for j, support in enumerate(judged.reduced.supports):
        basis, r = np.linalg.qr(every[:, j, list(support)])
        diagonal = np.abs(np.diag(r))  # columns that depend on those before are left out
        basis = basis[:, diagonal > 1e-8 * max(diagonal.max(initial=0.0), 1e-300)]
        errors[j] = np.linalg.norm(tau - basis @ (basis.T @ tau), axis=0) / sizes
    table = np.log(np.maximum(errors, SMALLEST_ERROR))
    pairs = sorted(
        combinations(range(dof), 2),
        key=lambda p: table[p] + table[p[::-1]] - table[p[0], p[0]] - table[p[1], p[1]],
    )
    orders = [_exchange_order(dof, pair) for pair in pairs[:MOST_EXCHANGES]]
    orders.append([int(k) for k in linear_sum_assignment(table)[1]])
    # Joints may be counted from another one.
    orders += [[*np.roll(range(dof), shift).tolist()] for shift in (1, -1)]
    for order in {tuple(o) for o in orders} - {tuple(range(dof))}:
        yield _order_finding("tau", order, samples), samples.with_joint_order(("tau",), order)
    yield from _factor_mistakes(samples)
    if samples.robot.dof > MOST_JOINTS:
        return
    for body, rows in samples.robot.moving_bodies:
        if body.dof == 1 and body.motion[:3].any():  # angles
            yield from _position_mistakes(samples, rows.start)
    for pair in combinations(range(samples.robot.dof), 2):
        exchange = _exchange_order(samples.robot.dof, pair)
        yield _order_finding("q", exchange, samples), samples.with_joint_order(MOTION, exchange)


def _sign_finding(names: Sequence[str]) -> Finding:
    who = "the torque has" if len(names) == 1 else "all torques have"
    message = f"{who} the wrong sign: friction, inertia or weight would be negative"
    columns = [f"tau_{n}" for n in names]
    return _make_finding("sign", message, names, columns, {"units": dict.fromkeys(columns, -1.0)})


def _make_finding(
    code: str,
    message: str,
    joints: Sequence[str],
    columns: Sequence[str],
    options: dict[str, Any],
    **values: Any,
) -> Finding:
    remedy = ", ".join(f"{k}={v}" for k, v in options.items())
    fields = code, "error", message, remedy, tuple(joints), tuple(columns)
    return Finding(*fields, options=options, values=values, evidence="dynamics")


def _exchange_order(dof: int, pair: tuple[int, int]) -> list[int]:
    order = list(range(dof))
    order[pair[0]], order[pair[1]] = pair[1], pair[0]
    return order


def _order_finding(kind: str, order: Sequence[int], samples: DecimatedLog) -> Finding:
    names = samples.robot.coordinates
    moved = {names[j]: names[k] for j, k in enumerate(order) if j != k}
    kinds = MOTION if kind == "q" else (kind,)
    order_text = "exchanged" if len(moved) == 2 else "in another order"
    message = f"the {WORDS[kind]} of {', '.join(moved)} look {order_text}"
    mend = {"columns": {f"{x}_{j}": f"{x}_{k}" for x in kinds for j, k in moved.items()}}
    columns = [f"{kind}_{j}" for j in moved]
    return _make_finding("swap", message, [*moved], columns, mend, kind=kind)


def _factor_mistakes(samples: DecimatedLog) -> Iterator[tuple[Finding, DecimatedLog]]:
    """Torques that are a multiple of the description's, joint by joint and all alike."""
    factors = _description_factors(samples)
    odd = {j: f for j, f in factors.items() if not GEARS[0] < f < GEARS[1]}
    names = samples.robot.coordinates
    for j, factor in odd.items():
        unit = round_factor(1.0 / factor)
        message = (f"the torque is {factor:.3g} times what the description says: gear ratio, motor "
                   "side or unit")  # fmt: skip
        options = {"units": {f"tau_{names[j]}": unit}}
        where = [names[j]], [f"tau_{names[j]}"]
        finding = _make_finding("gear", message, *where, options, factor=factor)
        yield finding, samples.with_scaled_signals(("tau",), j, unit)
    # One factor at every joint is a unit, not gears.
    if len(odd) > 1 and len(odd) == len(factors):
        factor = float(np.median([*odd.values()]))
        unit = round_factor(1.0 / factor)
        message = (
            f"the torques of all joints are {factor:.3g} times what the description says: unit, "
            "torque constant or gear ratio, or the description's masses"
        )
        columns = [f"tau_{n}" for n in names]
        options = {"units": dict.fromkeys(columns, unit)}
        finding = _make_finding("scale", message, names, columns, options, factor=factor)
        yield finding, replace(samples, tau=unit * samples.tau)


def _description_factors(samples: DecimatedLog) -> dict[int, float]:
    """Torque over the description's by joint, where that one explains the torque."""
    bare = samples.robot.without_joint_terms()
    masses = bare.values[bare.inertial_columns[:, 9]]
    if not np.isfinite(bare.values).all() or not (masses > 0).any():
        return {}
    rigid = inverse_dynamics(bare, samples.q, samples.dq, samples.ddq)
    for link, motor in samples.robot.elastic.items():  # which carries the link, as its sensor does
        ends = motor, samples.robot.sensors.get(link, motor)
        places = [samples.robot.coordinates.index(end) for end in ends]
        rigid[:, places] = rigid[:, [samples.robot.coordinates.index(link)]]
    out = {}
    for j in range(samples.robot.dof):
        tau, v = samples.tau[:, j], samples.dq[:, j]
        terms = np.stack([samples.ddq[:, j], v, np.tanh(v / SLOW_SPEED)], axis=1)
        size = max(float(np.linalg.norm(tau)), 1e-300)
        scale = np.maximum(np.linalg.norm(terms, axis=0), 1e-300)
        _, without = nnls(terms / scale, tau / size)
        rigid_size = float(np.linalg.norm(rigid[:, j]))
        if rigid_size == 0.0:
            continue
        both = np.column_stack([terms / scale, rigid[:, j] / rigid_size])
        coefficients, residual = nnls(both, tau / size)
        if coefficients[-1] > 0 and residual < TOLD_BY_WEIGHT and residual < without / TELLING:
            out[j] = float(coefficients[-1]) * size / rigid_size
    return out


def round_factor(factor: float) -> float:
    """A power of ten when it is near one, else two digits."""
    power = float(10.0 ** np.round(np.log10(factor)))
    return power if 0.7 < factor / power < 1.4 else float(f"{factor:.2g}")


def _position_mistakes(samples: DecimatedLog, j: int) -> Iterator[tuple[Finding, DecimatedLog]]:
    """A revolute joint's position the other way round, from another zero, or in degrees."""
    name = samples.robot.coordinates[j]
    if np.abs(samples.q[:, j]).max() > WIDE:
        finding = degrees_finding(name, f"q_{name}", "is 57.3 times what the torques show")
        yield finding, samples.with_scaled_signals(("q",), j, float(DEGREE))
    for kinds in (MOTION, (*MOTION, "tau")):
        what = "position and torque count" if "tau" in kinds else "position counts"
        options = {"units": {f"{k}_{name}": -1.0 for k in kinds}}
        columns = [f"{k}_{name}" for k in kinds]
        message = f"the {what} against the description's axis"
        finding = _make_finding("reversed", message, [name], columns, options)
        yield finding, samples.with_scaled_signals(kinds, j, -1.0)
    for angle in RIGHT_ANGLES:
        zero = round(float(np.deg2rad(angle)), 4)
        message = f"the zero of the position is not the description's, {angle:+.0f} degrees away"
        where, mend = ([name], [f"q_{name}"]), {"offsets": {name: zero}}
        finding = _make_finding("zero", message, *where, mend, degrees=angle)
        yield finding, samples.with_scaled_signals(("q",), j, 1.0, zero)


def _try_gravity(judged: JudgedLog, cost_of: Callable[[Finding, DecimatedLog], float]) -> None:
    """Gravity along an axis of the base frame or between axes; only `load_robot` can change it.

    A base on a wall, on a ceiling or on a slope of 45 degrees. What is left of another slope is
    small enough to be found as a tilt. Without any gravity: torques from which it was subtracted.
    Between axes it is tried where these are the three that explain the log best.
    """
    samples, described = judged.samples, judged.samples.robot.gravity
    size = _size_of_gravity(samples.robot)

    def cost_along(axis: Array) -> float:
        direction = size * axis / max(float(np.linalg.norm(axis)), 1.0)
        gravity = tuple(round(float(x), 2) + 0.0 for x in direction)
        # The described direction was judged already.
        if np.allclose(gravity, described, atol=0.1 * size):
            return judged.cost
        message = (
            f"gravity seems to point along {gravity} in the base frame, the description says "
            f"{tuple(round(float(x), 2) for x in described)}"
            if any(axis)
            else "the torques carry no weight: gravity was subtracted before they were logged"
        )
        finding = _make_finding("gravity", message, (), (), {}, gravity=gravity)
        finding = replace(finding, remedy=f"load_robot(..., gravity={gravity})")
        return cost_of(finding, replace(samples, robot=samples.robot.with_gravity(gravity)))

    cost_along(np.zeros(3))
    axes = sorted([*np.eye(3), *-np.eye(3)], key=cost_along)[:BEST_AXES]
    for count in (2, 3):
        for some in combinations(axes, count):
            between = np.sum(some, axis=0)
            if np.count_nonzero(between) == count:  # not of opposite axes
                cost_along(between)


def _size_of_gravity(robot: Robot) -> float:
    """Size of the description's gravity, or of the Earth's where it has none [m/s^2]."""
    return float(np.linalg.norm(robot.gravity)) or float(np.linalg.norm(GRAVITY))
