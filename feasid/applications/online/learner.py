"""Equations from blocks of samples, one after the other, and the estimates from them.

Jobs are done in the order in which they come, at once or by a worker thread. Each job starts from
the state that the one before it left, so results are the same in both cases.
"""

from __future__ import annotations

import os
import time as clock
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from feasid.applications.online import buffering, changes
from feasid.applications.online.acceptance import Decision, Evidence, ModelGate, OnlineEstimate
from feasid.applications.online.equations import CausalEquations, EquationStore
from feasid.applications.online.problem import FeasibleProblem, row_deviations
from feasid.core.arguments import Count
from feasid.core.arrays import Array
from feasid.core.errors import InputError, SolverError
from feasid.core.threads import one_thread
from feasid.identification.regression.triangle import Reduced, fingerprint_of
from feasid.results.archive.state import Kinds, Time, real, several
from feasid.results.codegen.compiled import CompiledDynamics
from feasid.robot.dynamics.regressor import mass_matrix

Result = TypeVar("Result")

COMPARISON_SECONDS = 2.0  #: Time over which errors of prediction are compared [s].
MAX_KEPT_DECISIONS = 1000  #: Decisions and changes that are remembered.


class JobQueue:
    """Queue of jobs of one owner, done in order.

    `threaded`: whether a thread does them, which begins with the first one; `most`: jobs that may
    wait for it; `lock`: held by whoever changes what the owner's callers share.
    """

    def __init__(self, threaded: bool, most: int) -> None:
        self.threaded, self.most = threaded, most
        self._posted = self._done = 0
        self._error: BaseException | None = None
        self._begin()

    def _begin(self) -> None:
        self.lock = RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def is_full(self) -> bool:
        """Whether as many jobs wait as may."""
        return self._posted - self._done >= self.most

    def post(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Run a job; the next `raise_error` raises its error, or this call without a worker."""
        if not self.threaded:
            job(*arguments)
            return

        def work() -> None:
            try:
                job(*arguments)
            except BaseException as error:  # the caller's, at its next call
                self._error = error
            finally:
                self._done += 1

        pool = self._workers()
        self._posted += 1
        pool.submit(work)

    def call(self, job: Callable[..., Result], *arguments: Any) -> Result:
        """Result of a job, after all that were posted before it."""
        if not self.threaded:
            with self.lock:
                return job(*arguments)
        future: Future[Result] = self._workers().submit(job, *arguments)
        return future.result()

    def wait(self) -> None:
        """Return when all jobs are done."""
        if self._pool is not None or self._posted > self._done:
            # Jobs are done in order: when this one is, which does nothing, all are.
            self.call(int)

    def raise_error(self) -> None:
        """Raise the error of a posted job, once."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Finish the jobs and end the thread; later jobs are done at once."""
        self.wait()
        if self._pool is not None:
            self._pool.shutdown()
        self.threaded, self._pool = False, None

    def _workers(self) -> ThreadPoolExecutor:
        """The thread; a forked process, which has none, begins another if nothing was under way."""
        if self._process != os.getpid():
            if self._posted > self._done:
                raise InputError(
                    "this process was forked while the online fit was learning: use the fit in the "
                    "process that made it, or call online.close() before forking"
                )
            self._begin()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="feasid-online")
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("lock", "_pool", "_process")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


class Learner:
    """Processes blocks and computes estimates; one thread at a time changes its state.

    `block`: samples per block; `full`: samples of motion from which the buffer counts as full;
    `false_alarms`: see `feasid.OnlineFit`.
    """

    def __init__(
        self,
        equations: CausalEquations,
        store: EquationStore,
        problem: FeasibleProblem,
        invariant: changes.InvariantEquations,
        possible: changes.PossibleChanges,
        block: int,
        full: int,
        gate: ModelGate,
        false_alarms: float,
    ) -> None:
        self.equations, self._store, self.problem = equations, store, problem
        self._invariant, self._possible = invariant, possible
        self.block, self.full, self.gate = block, full, gate
        self.base, self.robot, self.rate = problem.base, problem.base.robot, equations.rate
        robot, rate = self.robot, self.rate
        self._correlation = max(1.0, rate / (2 * equations.cutoff) / equations.every)
        self.nominal_beta = self.base.K @ problem.nominal
        coded = not robot.loops and all(body.dof == 1 for body in robot.bodies)
        nominal = robot.with_values(problem.nominal)
        self._model = CompiledDynamics(nominal, base=self.base, backend="python") if coded else None
        self._driven = ~np.isin(robot.coordinates, robot.passive)
        # Motors of elastic joints have the inertia that the log shows, and none described, and
        # their torque sensors have none.
        bare = *robot.elastic.values(), *robot.sensors.values()
        self._links = np.flatnonzero(~np.isin(robot.coordinates, bare))
        self._checks = buffering.SampleChecks(self._driven, rate)
        self._grid = buffering.EvenGrid(rate)
        place = {c: k for k, c in enumerate(equations.plan.columns)}
        nonzero = equations.plan.nonzero_columns
        self._supports = supports = tuple(tuple(place[c] for c in s) for s in nonzero)
        self._detector = changes.ChangeDetector(possible, supports, false_alarms)
        self._unsuited: OnlineEstimate | None = None
        self._before = np.zeros((0, self.base.size + 1))
        self.changes: tuple[changes.ModelChange, ...] = ()
        self.decisions: tuple[Decision, ...] = ()
        self._last: OnlineEstimate | None = None
        self._latest: OnlineEstimate | None = None
        self._posture = np.zeros(robot.dof)
        self._noise = np.ones(robot.dof)
        self._known = self._learnt = 0.0
        self._since = self._still = 0
        self._pending, self._converged = False, True
        recent = max(1, round(COMPARISON_SECONDS * rate / block))
        self._errors: deque[tuple[Array, Array, int]] = deque(maxlen=recent)
        self._bad: deque[int] = deque(maxlen=max(1, round(rate / block)))

    def learnt(self) -> Kinds:
        """What is saved of the learner itself."""
        each, rows = real(self.robot.dof), real("rows", self.base.size + 1)
        errors = several(several(each, each, Count), ...)
        return {
            **{"changes": tuple[changes.ModelChange, ...], "_noise": each, "_before": rows},
            **{"_known": float, "_learnt": Time, "_pending": bool, "_converged": bool},
            **{"_since": Count, "_still": Count, "_errors": errors, "_bad": several(Count, ...)},
        }

    # -- blocks ------------------------------------------------------------------------------

    def _learn(self, raw: buffering.SampleBlock) -> None:
        """Turn a block into equations, predict them, and learn them; with one BLAS thread."""
        with one_thread():
            if raw.lost:
                self._checks.skip(raw.lost)
                self._bad.extend([self.block] * (raw.lost // self.block))
            usable, fresh = self._checks.find_usable(raw.q, raw.tau, raw.dq, raw.t)
            self._bad.append(int(np.count_nonzero(~usable)))
            if self._bad[-1] > self.gate.rules.bad * self.block:
                # What came just before may be as bad, and is no change.
                self._detector.begin_batch()
            dof, parts = self.robot.dof, []
            starts = np.flatnonzero(usable & (fresh | np.r_[True, ~usable[:-1]]))
            cuts = np.sort(np.r_[starts, np.flatnonzero(~usable), len(usable)])
            for first in starts.tolist():  # of consecutive usable samples, up to the next cut
                last = int(cuts[np.searchsorted(cuts, first, side="right")])
                if fresh[first]:
                    self.equations.reset()
                    self._grid.reset()
                speeds, part = raw.dq, slice(first, last)
                smooth = raw.q[part] if speeds is None else np.hstack([raw.q[part], speeds[part]])
                torque = raw.tau[part] * self._driven  # zero without a motor
                smooth, tau, t = self._grid.resample(smooth, torque, raw.t[part])
                smooth = np.ascontiguousarray(smooth.T)
                q, dq = smooth[:dof], None if speeds is None else smooth[dof:]
                rows, at = self.equations.push(q, np.ascontiguousarray(tau.T), dq)
                age = self.block - 1 - first - at
                if raw.has_stamps:
                    age = (raw.t[-1] - t[at]) * self.rate
                moving = self.equations.moving
                parts.append(([r[:, moving] for r in rows], age[moving]))
            self._learnt = raw.time
            if usable.any() and not any(age.size for _, age in parts):
                self._still += self.block  # at rest: nothing is learnt, and nothing forgotten
                return
            self._still = 0
            self._pending = True
            sizes = [len(s) + 1 for s in self.equations.plan.nonzero_columns]
            # Empty arrays come first, for a block without a usable sample.
            age = np.concatenate([np.empty(0), *(old for _, old in parts)])
            blocks = [[np.empty((k, 0)) for k in sizes], *(part for part, _ in parts)]
            rows = [np.hstack(joint) for joint in zip(*blocks, strict=True)]
            if age.size:
                self._predict(rows)
            self._store.add(rows, age, self.block)
            self._invariant.fade(self.block)
            self._since += self.block

    def _predict(self, rows: list[Array]) -> None:
        """Prediction errors of rows that were not learnt yet, and their consequences."""
        if self._last is None:
            return
        supports = self._supports
        errors = []
        for beta in (self._last.beta, self.nominal_beta):
            missed = [beta[list(s)] @ r[:-1] - r[-1] for s, r in zip(supports, rows, strict=True)]
            errors.append(np.sum(np.square(missed), axis=1) / self._noise**2)
        count = rows[0].shape[1]
        self._errors.append((errors[0], errors[1], count))
        alarm = self._detector.alarm
        # Errors of an estimate from before a change would show that change again.
        if self._last is self._unsuited and alarm is None:
            return
        seconds = count * self.equations.every / self.rate
        last, time = self._last, self._learnt
        directions = self._possible.directions(last.delta)
        change = self._detector.update(
            rows, self._noise, seconds, directions, last.beta, last.covariance, time
        )
        if change is not None:
            k = self._possible.names.index((change.kind, change.where))
            self._invariant.set_from(self._before, self._possible.subspace(k))
            self._unsuited = last
            self.changes = (*self.changes, change)[-MAX_KEPT_DECISIONS:]
        elif alarm is None and self._detector.alarm is not None:
            self._before = np.column_stack(self._whiten(self._reduce_remembered())[1:])
            self._store.clear()
            newest = self._errors.pop()
            self._errors.clear()
            self._errors.append(newest)  # the gate judges by what came since
            self._since = 0

    # -- estimates ---------------------------------------------------------------------------

    def _reduce_remembered(self) -> Reduced:
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

    def _whiten(self, reduced: Reduced) -> tuple[Array, Array, Array]:
        """Deviations of rows, and R and rho with the equations before the last change, whitened."""
        deviations = row_deviations(reduced.triangles, self._store.count, self._correlation)
        R, rho, _ = reduced.triangle(1.0 / deviations)
        return deviations, *self._invariant.combined_with(R, rho)

    def _estimate(self, posture: Array) -> OnlineEstimate:
        """The estimate, judged at the state of the robot at the time of the request."""
        self._posture = posture
        with one_thread():
            self._latest = self._solve()
        return self._latest

    def _solve(self) -> OnlineEstimate:
        began = clock.perf_counter()
        # While a change is known that is not identified, and at rest, the last estimate stands.
        waits = self._detector.alarm is not None or (self._still and not self._pending)
        if self._last is not None and waits:
            decision = self._decide(self._last.delta, self._last.r2, True)
            seconds = clock.perf_counter() - began
            return replace(self._last, decision=decision, seconds=seconds, age=self._age)
        reduced = self._reduce_remembered()
        deviations, R, rho = self._whiten(reduced)
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
        self._noise = deviations / np.sqrt(self._correlation)
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

    def _decide(self, delta: Array, r2: float, verified: bool) -> Decision:
        nothing = np.full(self.robot.dof, np.inf)
        error, other = nothing, nothing
        if self._errors:
            rows = sum(n for _, _, n in self._errors)
            error = np.sqrt(sum(e for e, _, _ in self._errors) / rows)
            other = np.sqrt(sum(e for _, e, _ in self._errors) / rows)
        bad = sum(self._bad) / (len(self._bad) * self.block) if self._bad else 0.0
        # The newest sample may be a faulty one.
        q = self._posture if np.isfinite(self._posture).all() else np.zeros(self.robot.dof)
        spectra = []
        for values in (delta, self.problem.nominal):
            if self._model is None:  # no generated code: by unit accelerations
                matrix = mass_matrix(self.robot, values, q)
            else:
                self._model.use(self.base.K @ values)
                matrix = self._model.mass_matrix(q)
            spectra.append(np.linalg.eigvalsh(matrix[np.ix_(self._links, self._links)]))
        estimated, nominal = spectra
        rate, clock = self._checks.wrong_rate, ""
        if rate is not None:
            clock = f"the stamps say {rate:.4g} samples per second, and rate is {self.rate:g}"
        evidence = Evidence(
            time=self._learnt,
            full=self._since >= self.full,
            r2=r2,
            error=error,
            nominal_error=other,
            inertia=(float(estimated[0] / nominal[0]), float(estimated[-1] / nominal[-1])),
            bad=bad,
            verified=verified,
            known=self._known,
            still=self._age,
            clock=clock,
            converged=self._converged,
            changed=self._detector.alarm is not None,
        )
        decision = self.gate.decide(evidence)
        self.decisions = (*self.decisions, decision)[-MAX_KEPT_DECISIONS:]
        return decision
