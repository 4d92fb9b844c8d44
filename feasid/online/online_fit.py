"""Identification while the robot runs: samples in, a feasible and verified model out."""

from __future__ import annotations

import time as clock
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from feasid.codegen.model import Model
from feasid.core.arguments import Measured, Natural, Positive, Rate, array, checked, count, number
from feasid.core.arrays import Array
from feasid.core.threads import thread_limiter
from feasid.dynamics.regressor import mass_matrix
from feasid.errors import InputError, SolverError
from feasid.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.formats.fit_robot import with_fit_terms
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.archive import SavedFit, read_archive, read_fit
from feasid.identification.priors import WEIGHT
from feasid.online.acceptance import Decision, Evidence, GateRules, ModelGate, OnlineEstimate
from feasid.online.archive import restore, save, saved_model
from feasid.online.buffering import EvenGrid, SampleBuffer, SampleChecks, usable_stretches
from feasid.online.equations import (
    CausalEquations,
    ChangeDetector,
    EquationStore,
    FadingEquations,
    LoadInvariantEquations,
    ModelChange,
    WindowedEquations,
)
from feasid.online.problem import FeasibleProblem, row_deviations
from feasid.reduction.triangle import Reduced, fingerprint_of
from feasid.robot.description import Robot
from feasid.robot.inertia import from_mass_com_inertia

MIN_BLOCKS_PER_WINDOW = 16
"""Blocks of a window: each new one renews four triangles per joint."""

MAX_BLOCK_SECONDS = 0.125
"""Time that the newest sample waits until it is learnt, at most [s]."""


def choose_block(rate: float, window: int | None, block: int | None) -> int:
    """Samples per block: a divisor of the window, and not too long a wait."""
    longest = max(1, round(MAX_BLOCK_SECONDS * rate))
    if block is not None:
        if not block >= 1 or (window is not None and window % block):
            raise InputError(f"a window of {window} samples is no multiple of a block of {block}")
        return int(block)
    if window is None:
        return longest
    fitting = [
        b for b in range(1, longest + 1) if window % b == 0 and window // b >= MIN_BLOCKS_PER_WINDOW
    ]
    return max(fitting, default=1)


def make_store(
    equations: CausalEquations, window: int | None, forgetting: float | None, block: int
) -> EquationStore:
    """What remembers the equations."""
    sizes = [len(s) + 1 for s in equations.plan.support]
    if window is not None:
        return WindowedEquations(sizes, window // block)
    return FadingEquations(sizes, 1.0 if forgetting is None else forgetting)


Recorded: TypeAlias = Annotated[Array, array("samples", "dof", finite=False)]
Stamps: TypeAlias = Annotated[Array, array("samples", finite=False)]

FALSE_ALARMS = 0.1
"""Loads reported per hour of motion though none came."""

TINY_MASS = 1e-12
"""Mass [kg] of a body that has none."""

ROWS_PER_CYCLE = 8.0
"""Rows kept per period of the cut-off: four times what the sampling theorem asks."""

COMPARISON_SECONDS = 2.0
"""Time over which errors of prediction are compared [s]."""

LEARNING_OPTIONS = (
    "window",
    "forgetting",
    "block",
    "cutoff",
    "derivative_cutoff",
    "smoother",
    "every",
    "slow_weight",
    "prior_weight",
    "full",
    "false_alarms",
    "carrier",
)
"""Options of `OnlineFit` that a saved one keeps; the others are in its robot, set and rules."""

MAX_KEPT_DECISIONS = 1000
"""Decisions and changes that are remembered."""


@checked
class OnlineFit:
    """Identify a robot while it moves.

    Memory and time per sample do not depend on how many have come. Samples are learnt in blocks, so
    that the newest ones, up to `block`, wait.

    Parameters
    ----------
    robot : Robot
        The nominal model: description and prior.
    rate : float
        Samples per second [Hz].
    window : int, optional
        Number of last samples to learn from, a multiple of `block`; default from all.
    forgetting : float, optional
        Factor per sample, below 1, by which squares fade; not together with `window`.
    block : int, optional
        Samples per block; default a sixteenth of the window, at most 0.125 s.
    cutoff, derivative_cutoff : float
        Low-pass on both sides of the equations, and on positions before derivatives [Hz].
    smoother : {"polynomial", "moving-average"}
        See `feasid.online.equations.CausalEquations`.
    every : int, optional
        Keep every n-th filtered row; default eight per period of the cut-off.
    slow_weight : float
        Factor on rows of a joint that has just turned or rests.
    prior_weight : float
        Of the divergence from the nominal model, as in `feasid.fit`.
    full : int, optional
        Samples from which the buffer counts as full; default the window, else 2 s.
    rules : GateRules, optional
    false_alarms : float
        Expected number of loads that are reported per hour of motion though none came; 0 reports
        none at all. See `feasid.online.equations.ChangeDetector`.
    carrier : str, optional
        Body that a load would be fixed to; default the last one. After a change everything that a
        load there cannot have changed is kept, and fades over the window.
    feasible : FeasibleSet, optional
        Default `feasid.feasible_set(robot)`.
    base : BaseParameters, optional
        Of the robot with its joint terms.
    friction, drive_inertia
        Joint terms, as `feasid.fit` takes and adds them.

    Attributes
    ----------
    robot : Robot
        With its joint terms.
    base : BaseParameters
    options : dict
        Those by which it learns, as they were given.
    changes : deque of ModelChange
    decisions : deque of Decision
        Of the gate, one per estimate, the newest last.

    Raises
    ------
    InputError
        Names the option that cannot be.
    """

    def __init__(
        self,
        robot: Robot,
        rate: Rate,
        *,
        window: Annotated[int, count(2)] | None = None,
        forgetting: Annotated[float, number(0.0, 0.999999, open=True)] | None = None,
        block: Natural | None = None,
        cutoff: Positive = 10.0,
        derivative_cutoff: Rate = 40.0,
        smoother: Literal["polynomial", "moving-average"] = "polynomial",
        every: Natural | None = None,
        slow_weight: Annotated[float, number(0.0, 1.0, open=True)] = 0.2,
        prior_weight: Positive = WEIGHT,
        full: Natural | None = None,
        rules: GateRules | None = None,
        false_alarms: Annotated[float, number(0.0, 3600.0)] = FALSE_ALARMS,
        carrier: str | None = None,
        feasible: FeasibleSet | None = None,
        base: BaseParameters | None = None,
        friction: Sequence[str] | None = None,
        drive_inertia: bool | None = None,
    ) -> None:
        self.options = {k: v for k, v in locals().items() if k in LEARNING_OPTIONS}
        if window is not None and forgetting is not None:
            raise InputError("window and forgetting are two ways to forget: give one of them")
        robot, _ = with_fit_terms(robot, friction, drive_inertia)
        self.robot, self.rate = robot, float(rate)
        self.base = base_parameters(robot) if base is None else base
        if self.base.robot.parameter_names != robot.parameter_names:
            raise InputError("base must be of the robot with the joint terms that are asked for")
        self.block = choose_block(self.rate, window, block)
        keep = max(1, round(rate / (ROWS_PER_CYCLE * cutoff))) if every is None else every
        derivative_cutoff = min(derivative_cutoff, 0.4 * rate)
        self.equations = CausalEquations(
            self.base, self.rate, cutoff, derivative_cutoff, keep, slow_weight, smoother
        )
        self._correlation = max(1.0, rate / (2 * cutoff) / keep)
        self.full = full if full is not None else (window or round(2 * rate))
        self._store = make_store(self.equations, window, forgetting, self.block)
        feasible = feasible_set(robot) if feasible is None else feasible
        self.problem = FeasibleProblem(self.base, feasible, prior_weight)
        self.nominal_beta = self.base.K @ self.problem.nominal
        coded = not robot.loops and all(body.dof == 1 for body in robot.bodies)
        nominal = robot.with_values(self.problem.nominal)
        self._model = Model(nominal, base=self.base, backend="python") if coded else None
        self._one_thread = thread_limiter()
        self.gate = ModelGate(rules)
        self._checks = SampleChecks(robot.dof, self.rate)
        self._buffer = SampleBuffer(robot.dof, self.block, self._learn)
        self._grid = EvenGrid(self.rate)
        self._invariant = LoadInvariantEquations(self.base, carrier, window or round(10 * rate))
        body, load = robot.bodies[self._invariant.body], self._invariant.load
        mass = self.problem.nominal[robot.inertial_columns[self._invariant.body]]
        one = from_mass_com_inertia(1.0, mass[6:9] / max(mass[9], TINY_MASS), np.zeros((3, 3)))
        self._detector = ChangeDetector(load @ one, body.name, self._supports, false_alarms)
        self._unsuited: OnlineEstimate | None = None
        self.changes: deque[ModelChange] = deque(maxlen=MAX_KEPT_DECISIONS)
        self.decisions: deque[Decision] = deque(maxlen=MAX_KEPT_DECISIONS)
        self._last: OnlineEstimate | None = None
        self._noise = np.ones(robot.dof)
        self._known = 0.0
        self._learnt = 0.0
        self._since = 0
        self._still = 0
        self._pending = False
        self._converged = True
        recent = max(1, round(COMPARISON_SECONDS * rate / self.block))
        self._errors: deque[tuple[Array, Array, int]] = deque(maxlen=recent)
        self._bad: deque[int] = deque(maxlen=max(1, round(rate / self.block)))

    @property
    def faults(self) -> Counter[str]:
        """Samples left out, by cause; see `feasid.online.buffering.Guard`."""
        return self._checks.faults

    @property
    def samples(self) -> int:
        """Samples received so far."""
        return self._buffer.received

    @property
    def time(self) -> float:
        """Stamp of the newest sample; without stamps the number of samples over the rate [s]."""
        return self._buffer.stamp if self._buffer.has_stamps else self.samples / self.rate

    @property
    def latest(self) -> OnlineEstimate | None:
        """The last estimate that was made."""
        return self._last

    # -- files -------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write what was learnt; `feasid.load` reads it and goes on.

        The filters begin anew after loading, and the samples of an unfinished block are not kept.

        Parameters
        ----------
        path : path
        overwrite : bool
            Whether a file that exists is replaced.

        Raises
        ------
        OutputError
            `path` exists and `overwrite` is False, or cannot be written.
        """
        save(self, path, overwrite=overwrite)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but a function, which is made anew."""
        return {k: v for k, v in vars(self).items() if k != "_one_thread"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._one_thread = thread_limiter()

    # -- samples -----------------------------------------------------------------------------

    def update(
        self,
        q: Measured,
        tau: Measured,
        dq: Measured | None = None,
        t: Annotated[float, number(finite=False)] | None = None,
    ) -> None:
        """Take one sample.

        Parameters
        ----------
        q, tau : array_like, shape (dof,)
            Measured positions and torques [rad or m; N m or N]. Samples that are not finite are
            left out and counted in `faults`.
        dq : array_like, shape (dof,), optional
            Measured velocities; always or never.
        t : float, optional
            Time stamp [s]; always or never. With stamps the samples are interpolated at even times,
            gaps are noticed, and a rate that is not theirs is. Without, the rate is believed.

        Raises
        ------
        InputError
            When shapes are wrong, or velocities or stamps come and go.
        """
        self._buffer.add(q, tau, dq, t)

    def extend(
        self, q: Recorded, tau: Recorded, dq: Recorded | None = None, t: Stamps | None = None
    ) -> None:
        """Take many samples; the same as `update` one by one.

        Parameters
        ----------
        q, tau : ndarray, shape (samples, dof)
            [rad or m; N m or N]
        dq : ndarray, shape (samples, dof), optional
        t : ndarray, shape (samples,), optional
            [s]

        Raises
        ------
        InputError
            As of `update`.
        """
        if len({len(part) for part in (q, tau, dq, t) if part is not None}) > 1:
            raise InputError("q, tau, dq and t must have as many samples each")
        for k in range(len(q)):
            self._buffer.add(
                q[k], tau[k], None if dq is None else dq[k], None if t is None else float(t[k])
            )

    def _learn(self) -> None:
        """Turn a full buffer into equations, predict them, and learn them."""
        with self._one_thread():
            self._learn_block()

    def _learn_block(self) -> None:
        raw = self._buffer
        speeds = raw.dq if raw.has_speed else None
        usable, fresh = self._checks.find_usable(raw.q, raw.tau, speeds, raw.t)
        self._bad.append(int(np.count_nonzero(~usable)))
        parts = []
        for first, last in usable_stretches(usable, fresh):
            if fresh[first]:
                self.equations.reset()
                self._grid.reset()
            parts.append(self._equations_of(slice(first, last), speeds))
        self._learnt = self.time
        if usable.any() and not any(age.size for _, age in parts):
            self._still += self.block  # at rest: nothing is learnt, and nothing forgotten
            return
        self._still = 0
        self._pending = True
        self._take(parts)
        self._since += self.block

    def _equations_of(self, part: slice, speeds: Array | None) -> tuple[list[Array], Array]:
        """Rows of samples that follow on the last, where something moves, and their ages."""
        raw, dof = self._buffer, self.robot.dof
        smooth = raw.q[part] if speeds is None else np.hstack([raw.q[part], speeds[part]])
        smooth, tau, t = self._grid.resample(smooth, raw.tau[part], raw.t[part])
        smooth = np.ascontiguousarray(smooth.T)
        rows, at = self.equations.push(
            smooth[:dof], np.ascontiguousarray(tau.T), None if speeds is None else smooth[dof:]
        )
        moving = self.equations.moving
        age = (
            self.block - 1 - part.start - at
            if not raw.has_stamps
            else (raw.t[-1] - t[at]) * self.rate
        )
        return [r[:, moving] for r in rows], age[moving]

    def _take(self, parts: list[tuple[list[Array], Array]]) -> None:
        """Predict and learn the rows of one block."""
        sizes = [len(s) + 1 for s in self.equations.plan.support]
        rows = [
            np.concatenate([np.empty((k, 0)), *(part[j] for part, _ in parts)], axis=1)
            for j, k in enumerate(sizes)
        ]
        age = np.concatenate([np.empty(0), *(old for _, old in parts)])
        if age.size:
            self._predict(rows)
        self._store.add(rows, age, self.block)
        self._invariant.fade(self.block)

    def _predict(self, rows: list[Array]) -> None:
        """Errors of prediction of rows that were not learnt yet, and what follows from them."""
        if self._last is None:
            return
        supports = self._supports
        errors = []
        for beta in (self._last.beta, self.nominal_beta):
            missed = [beta[list(s)] @ r[:-1] - r[-1] for s, r in zip(supports, rows, strict=True)]
            errors.append(np.sum(np.square(missed), axis=1) / self._noise**2)
        count = rows[0].shape[1]
        self._errors.append((errors[0], errors[1], count))
        if self._last is self._unsuited:
            return
        seconds = count * self.equations.every / self.rate
        model = self._last.beta, self._last.covariance
        change = self._detector.update(rows, self._noise, seconds, *model, self.time)
        if change is not None:
            self.changes.append(change)
            self._invariant.set_from(*self._whitened_equations())
            self._store.clear()
            self._unsuited = self._last
            self._since = 0

    @property
    def _supports(self) -> tuple[tuple[int, ...], ...]:
        place = {c: k for k, c in enumerate(self.equations.plan.columns)}
        return tuple(tuple(place[c] for c in s) for s in self.equations.plan.support)

    # -- estimates ---------------------------------------------------------------------------

    @property
    def reduced(self) -> Reduced:
        """The equations that are remembered, one triangle per joint; adds and saves."""
        columns = self.equations.plan.columns
        name = fingerprint_of(self.robot, columns)
        triangles = tuple(self._store.triangles())
        rows, every = round(self._store.count), self.equations.every
        return Reduced(
            name,
            columns,
            self._supports,
            triangles,
            rows * every,
            robot=self.robot,
            cutoff=self.equations.cutoff,
            rows=rows,
            period=1.0 / self.rate,
        )

    def _whitened_equations(self) -> tuple[Array, Array]:
        """The remembered equations and those before the last change, in units of their noise."""
        reduced = self.reduced
        noise = row_deviations(reduced.triangles, self._store.count, self._correlation)
        R, rho, _ = reduced.triangle(1.0 / noise)
        return self._invariant.combined_with(R, rho)

    def estimate(self) -> OnlineEstimate:
        """The most probable model that can exist, verified in exact arithmetic.

        Returns
        -------
        OnlineEstimate
            Without any sample the nominal model; with ``fresh`` False the last one that verified,
            when the newest problem had no verified answer.
        """
        with self._one_thread():
            return self._estimate()

    def _estimate(self) -> OnlineEstimate:
        began = clock.perf_counter()
        if self._last is not None and self._still and not self._pending:
            decision = self._decide(self._last.delta, self._last.r2, True)
            seconds = clock.perf_counter() - began
            return replace(self._last, decision=decision, seconds=seconds, age=self._age)
        reduced = self.reduced
        scaled = row_deviations(reduced.triangles, self._store.count, self._correlation)
        R, rho, _ = reduced.triangle(1.0 / scaled)
        R, rho = self._invariant.combined_with(R, rho)
        self._known = self.problem.determined_share(R)
        try:
            solution = self.problem.solve(R, rho)
        except SolverError:
            if self._last is None:
                raise
            decision = self._decide(self._last.delta, self._last.r2, False)
            seconds = clock.perf_counter() - began
            return replace(self._last, decision=decision, seconds=seconds, fresh=False)
        self._pending, self._converged = not solution.converged, solution.converged
        self._noise = scaled / np.sqrt(self._correlation)
        missed = reduced.residuals(self.base.K @ solution.delta) ** 2
        torque = reduced.torque_norms**2
        total = float(torque.sum())
        r2 = 1.0 - float(missed.sum()) / total if total > 0 else -np.inf
        joints = 1.0 - missed / np.where(torque > 0, torque, np.nan)
        decision = self._decide(solution.delta, r2, True)
        self._last = OnlineEstimate(
            base=self.base,
            time=self._learnt,
            rows=self._store.count,
            delta=solution.delta,
            covariance=solution.covariance,
            noise=self._noise,
            r2=r2,
            r2_joints=joints,
            decision=decision,
            verified=solution.verified,
            age=self._age,
            seconds=clock.perf_counter() - began,
        )
        return self._last

    @property
    def _age(self) -> float:
        """Time for which the robot has been at rest, by whole blocks [s]."""
        return self._still / self.rate

    @property
    def _clock_fault(self) -> str:
        """What the stamps say against the rate."""
        found = self._checks.wrong_rate
        if found is None:
            return ""
        return f"the stamps say {found:.4g} samples per second, and rate is {self.rate:g}"

    def _decide(self, delta: Array, r2: float, verified: bool) -> Decision:
        nothing = np.full(self.robot.dof, np.inf)
        error, other = nothing, nothing
        if self._errors:
            rows = sum(n for _, _, n in self._errors)
            error = np.sqrt(sum(e for e, _, _ in self._errors) / rows)
            other = np.sqrt(sum(e for _, e, _ in self._errors) / rows)
        bad = sum(self._bad) / (len(self._bad) * self.block) if self._bad else 0.0
        evidence = Evidence(
            time=self._learnt,
            full=self._since >= self.full,
            r2=r2,
            error=error,
            nominal_error=other,
            inertia=self._inertia(delta),
            bad=bad,
            verified=verified,
            known=self._known,
            still=self._age,
            clock=self._clock_fault,
            converged=self._converged,
        )
        decision = self.gate.decide(evidence)
        self.decisions.append(decision)
        return decision

    def _inertia(self, delta: Array) -> tuple[float, float]:
        """Extreme eigenvalues of the mass matrix over the nominal one's, at the latest q."""
        newest = self._buffer.newest
        q = newest if np.isfinite(newest).all() else np.zeros(self.robot.dof)
        own, nominal = (
            np.linalg.eigvalsh(self._mass_matrix(x, q)) for x in (delta, self.problem.nominal)
        )
        return float(own[0] / nominal[0]), float(own[-1] / nominal[-1])

    def _mass_matrix(self, delta: Array, q: Array) -> Array:
        """By generated code where there can be some, else by unit accelerations."""
        if self._model is None:
            return mass_matrix(self.robot, delta, q)
        self._model.use(self.base.K @ delta)
        return self._model.mass_matrix(q)

    def __repr__(self) -> str:
        faults = f", {sum(self.faults.values())} left out" if self.faults else ""
        return f"<OnlineFit of {self.robot.name!r}: {self.samples} samples{faults}>"


@checked
def load(path: str | Path) -> SavedFit | Any:
    """Read what ``fit.save`` or ``online.save`` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    SavedFit or OnlineFit
        An online fit goes on where it was: its next samples begin a run.

    Raises
    ------
    InputError
        The file does not exist, is damaged, or was written by another version.
    LimitError
        It unpacks to more than 256 MB.
    """
    return read_archive(path, _read)


def _read(path: str | Path, content: Mapping[str, bytes]) -> SavedFit | OnlineFit:
    model = saved_model(path, content)
    if model is None:
        return read_fit(path, content)
    fit = OnlineFit(model["robot"], model["rate"], **model["options"])
    restore(fit, model, path, content)
    return fit
