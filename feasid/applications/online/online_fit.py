"""Identification while the robot runs: samples in, a feasible and verified model out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np

from feasid.applications.online.acceptance import (
    AcceptanceRules,
    Decision,
    Evidence,
    ModelGate,
    OnlineEstimate,
)
from feasid.applications.online.buffering import SampleBuffer, SampleChecks, choose_block
from feasid.applications.online.changes import InvariantEquations, ModelChange, PossibleChanges
from feasid.applications.online.equations import CausalEquations, FadingEquations, WindowedEquations
from feasid.applications.online.learner import JobQueue, Learner
from feasid.applications.online.problem import FeasibleProblem
from feasid.core.arguments import Measured, Natural, Positive, Rate, array, checked, count, number
from feasid.core.arrays import Array, DamagedError, require_finite
from feasid.core.codec import construct, kinds
from feasid.core.errors import InputError
from feasid.core.files import document_output
from feasid.core.notes import Note
from feasid.identification.estimation.priors import WEIGHT
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.feasibility.constraints import sets
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.results.archive.members import MODEL_KINDS, write_record
from feasid.results.archive.state import restore_part, state_of
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import with_fit_terms

Recorded: TypeAlias = Annotated[Array, array("samples", "dof", finite=False)]
Stamps: TypeAlias = Annotated[Array, array("samples", finite=False)]

FALSE_ALARMS = 0.1  #: Changes reported per hour of motion though there were none.

MOST_WINDOW, MOST_BLOCK = 10**8, 10**6
"""Samples: a day at 1 kHz, and a quarter of an hour, whose memory is taken at the start."""

ROWS_PER_CYCLE = 8.0
"""Rows kept per period of the cut-off: four times what the sampling theorem asks."""

LEARNING_OPTIONS = (
    *("window", "forgetting", "block", "cutoff", "derivative_cutoff", "smoother", "every"),
    *("slow_weight", "prior_weight", "full", "false_alarms", "carrier", "worker"),
)
"""Options of `OnlineFit` that a saved one keeps; the others are in its robot, set and rules."""

CORRECTED = (
    "the description is infeasible in {}: the nominal model has the closest feasible mass "
    "distribution; feasid.correct(path, out=...) writes it to a file"
)

MAX_WAITING_SECONDS = 4.0
"""Longest queue of samples for the worker thread [s]: enough for a short delay."""

VERSION = 5
HEAD = {"format": "feasid online", "version": VERSION}


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """Contents of a saved online fit: robot, options and all that was learnt."""

    robot: Robot
    rate: float
    options: Mapping[str, Any]
    rules: AcceptanceRules
    constraints: sets.UserConstraints
    state: Mapping[str, Mapping[str, Any]]  #: What each part has learnt.
    #: Fields, but for `base`, of the last estimate, and of the last that was returned, if another.
    estimates: tuple[Mapping[str, Any], ...]
    unsuited: bool  #: Whether that last estimate is from before a change.


KNOWN = MODEL_KINDS | kinds(OnlineRecord, AcceptanceRules, ModelChange, Decision, Evidence)


@checked
class OnlineFit(Learner):
    """Identify a robot while it moves.

    Memory and time per sample do not grow with the number of samples. Samples are processed in
    blocks, so up to `block` of the newest samples are not used yet. Several threads may call it.

    Parameters
    ----------
    robot : Robot
        The nominal model: description and prior.
    rate : float
        Samples per second [Hz].
    window : int, optional
        Number of the latest samples that are used, a multiple of `block`; by default all samples.
    forgetting : float, optional
        Factor below 1 by which the weight of old samples falls per sample; excludes `window`.
    block : int, optional
        Samples per block; default a sixteenth of the window, at most 0.125 s.
    cutoff, derivative_cutoff : float
        Low-pass on both sides of the equations, and on positions before derivatives [Hz].
    smoother : {"polynomial", "moving-average"}
        See `feasid.applications.online.equations.CausalEquations`.
    every : int, optional
        Keep every n-th filtered row; default eight per period of the cut-off.
    slow_weight : float
        Weight of the rows of a joint that has just reversed or rests.
    prior_weight : float
        Weight of the divergence from the nominal model, as in `feasid.fit`.
    full : int, optional
        Samples from which the buffer counts as full; default the window, else 2 s.
    rules : AcceptanceRules, optional
    false_alarms : float
        Expected number of false reports of loads and changes of friction per hour of motion; 0
        switches these reports off. See `feasid.applications.online.changes`.
    carrier : str, optional
        Body that a load would be fixed to; default the last one. After a change, data about
        parameters that it does not affect are kept, and lose their weight over the window.
    feasible : FeasibleSet, optional
        Default `feasid.feasible_set(robot)`.
    base : BaseParameters, optional
        Base parameters of the robot with its joint terms; with those of this very `robot`, its
        joint terms stay as they are where none are asked for.
    friction, drive_inertia
        Joint terms, as `feasid.fit` takes and adds them.
    worker : bool
        Process blocks and compute estimates on a separate thread, so that every `update` takes
        microseconds only; the results are the same. Blocks for at most 4 s of samples may wait;
        samples beyond them are left out and counted in `faults`. Errors are raised by the next
        call. `close`, or a ``with`` statement, ends the thread. By default (False) `update`
        processes a block when it is full.

    Attributes
    ----------
    robot : Robot
        With its joint terms.
    base : BaseParameters
    options : dict
        The options that were given.
    changes : tuple of ModelChange
    decisions : tuple of Decision
        Decisions of the acceptance test, one per estimate, the newest last.
    notes : tuple of Note
        How an infeasible description was corrected.

    Raises
    ------
    InputError
        An option has an impossible value; the message names it.
    """

    def __init__(
        self,
        robot: Robot,
        rate: Rate,
        *,
        window: Annotated[int, count(2, MOST_WINDOW)] | None = None,
        forgetting: Annotated[float, number(0.0, 0.999999, open=True)] | None = None,
        block: Annotated[int, count(1, MOST_BLOCK)] | None = None,
        cutoff: Rate = 10.0,
        derivative_cutoff: Rate = 40.0,
        smoother: Literal["polynomial", "moving-average"] = "polynomial",
        every: Natural | None = None,
        slow_weight: Annotated[float, number(0.0, 1.0, open=True)] = 0.2,
        prior_weight: Positive = WEIGHT,
        full: Natural | None = None,
        rules: AcceptanceRules | None = None,
        false_alarms: Annotated[float, number(0.0, 3600.0)] = FALSE_ALARMS,
        carrier: str | None = None,
        feasible: sets.FeasibleSet | None = None,
        base: BaseParameters | None = None,
        friction: Sequence[str] | None = None,
        drive_inertia: bool | None = None,
        worker: bool = False,
    ) -> None:
        self.options = {k: v for k, v in locals().items() if k in LEARNING_OPTIONS}
        if window is not None and forgetting is not None:
            raise InputError("window and forgetting are two ways to forget: give one of them")
        if base is None or base.robot is not robot or (friction, drive_inertia) != (None, None):
            robot, _ = with_fit_terms(robot, friction, drive_inertia)
        base = base_parameters(robot) if base is None else base
        if base.robot.parameter_names != robot.parameter_names:
            raise InputError("base must be of the robot with the joint terms that are asked for")
        self.block = choose_block(rate, window, block)
        keep = max(1, round(rate / (ROWS_PER_CYCLE * cutoff))) if every is None else every
        cutoffs = cutoff, min(derivative_cutoff, 0.4 * rate)
        equations = CausalEquations(base, rate, *cutoffs, keep, slow_weight, smoother)
        sizes = [len(s) + 1 for s in equations.plan.nonzero_columns]
        feasible = sets.feasible_set(robot) if feasible is None else feasible
        super().__init__(
            equations,
            FadingEquations(sizes, 1.0 if forgetting is None else forgetting)
            if window is None
            else WindowedEquations(sizes, window // self.block),
            FeasibleProblem(base, feasible, prior_weight),
            InvariantEquations(window or round(10 * rate), base.size),
            PossibleChanges(base, carrier),
            self.block,
            full if full is not None else (window or round(2 * rate)),
            ModelGate(rules),
            false_alarms,
        )
        self._buffer = SampleBuffer(robot.dof, self.block, self.rate)
        self._jobs = JobQueue(worker, max(2, round(MAX_WAITING_SECONDS * rate / self.block)))
        self._requested = False
        changed = self.problem.corrected
        note = Note(CORRECTED.format(", ".join(changed)), "corrected", changed=changed)
        self.notes = (note,) if changed else ()

    @property
    def faults(self) -> Counter[str]:
        """Samples left out, by cause; see `feasid.applications.online.buffering.SampleChecks`."""
        lost = {"queue full": self._buffer.lost} if self._buffer.lost else {}
        return Counter(self._checks.faults) + Counter(lost)

    @property
    def samples(self) -> int:
        """Samples received so far."""
        return self._buffer.received

    @property
    def time(self) -> float:
        """Stamp of the newest sample; without stamps the number of samples over the rate [s]."""
        return self._buffer.time

    @property
    def latest(self) -> OnlineEstimate | None:
        """The last estimate that was made."""
        return self._latest

    # -- the worker --------------------------------------------------------------------------

    def close(self) -> None:
        """Process the waiting samples and end the worker thread; later samples are processed in
        `update`.

        Raises
        ------
        Exception
            The error that the worker thread raised since the last call.
        """
        self._jobs.close()
        self._jobs.raise_error()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._jobs.close()
        if kind is None:
            self._jobs.raise_error()

    # -- files -------------------------------------------------------------------------------

    @document_output
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the state; `feasid.load` reads it, and identification continues as after `restart`.

        `decisions` are not saved.
        """
        write_record(path, self.state(), KNOWN, HEAD, {}, overwrite)

    def _parts(self) -> dict[str, Any]:
        names = ("_store", "_invariant", "_detector", "problem", "gate", "_checks", "_buffer")
        return {"learner": self} | {name: getattr(self, name) for name in names}

    def state(self) -> OnlineRecord:
        """A copy of all that was learnt, with the robot and the options."""
        with self._jobs.lock:  # no samples meanwhile, and no jobs but this one
            return self._jobs.call(self._state)

    def _state(self) -> OnlineRecord:
        # The base, their first field, is that of the fit that reads them.
        made = (self._last, None if self._latest is self._last else self._latest)
        return OnlineRecord(
            self.robot,
            self.rate,
            self.options,
            self.gate.rules,
            sets.UserConstraints.of(self.problem.feasible),
            {name: state_of(part) for name, part in self._parts().items()},
            tuple({f.name: getattr(e, f.name) for f in fields(e)[1:]} for e in made if e),
            self._unsuited is self._last,
        )

    def restore(self, record: OnlineRecord) -> None:
        """Take over what another fit of the same options has learnt.

        Parameters
        ----------
        record : OnlineRecord

        Raises
        ------
        DamagedError
            It is not of such a fit.
        """
        parts = self._parts()
        if set(record.state) != set(parts) or len(record.estimates) > 2:
            raise DamagedError(f"it holds {sorted(record.state)} in place of {sorted(parts)}")
        for name, part in parts.items():
            restore_part(part, record.state[name])
        size, dof, estimates = self.base.size, self.robot.dof, list[OnlineEstimate]()
        for values in record.estimates:
            estimate: OnlineEstimate = construct(OnlineEstimate, {"base": self.base, **values})
            require_finite(estimate.covariance, (size, size), "the last covariance")
            require_finite(estimate.noise, (dof,), "the last noise")
            if broken := self.problem.feasible.violations(estimate.delta):
                listed = ", ".join(broken)
                raise DamagedError(f"its last estimate is no model of its robot: {listed}")
            evidence = estimate.decision.evidence
            rows = estimate.r2_joints, evidence.error, evidence.nominal_error
            if {np.shape(row) for row in rows} != {(dof,)}:
                raise DamagedError("its last estimate is of another robot")
            estimates.append(estimate)
        if estimates:
            self._last, self._latest = estimates[0], estimates[-1]
            self._unsuited = self._last if record.unsuited else None

    def restart(self) -> None:
        """Begin a run after a pause without time stamps: only unfinished blocks are left out."""
        with self._jobs.lock:
            self._jobs.call(self._restart)

    def _restart(self) -> None:
        # Counts stay, as in a file; what waits for the next sample does not.
        checks = SampleChecks(self._driven, self.rate)
        buffer = SampleBuffer(self.robot.dof, self.block, self.rate)
        restore_part(checks, state_of(self._checks))
        restore_part(buffer, state_of(self._buffer))
        self._checks, self._buffer = checks, buffer
        self.equations.reset()
        self._grid.reset()
        self._detector.begin_batch()

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the state after the waiting samples are processed; other threads may
        continue.
        """
        with self._jobs.lock:
            return self._jobs.call(lambda: deepcopy(vars(self)))

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
            Measured velocities; pass them with every sample or with none.
        t : float, optional
            Time stamp [s]; pass it with every sample or with none. With time stamps, samples are
            interpolated at even times, and gaps and a wrong `rate` are detected. Without them,
            `rate` is used as it is.

        Raises
        ------
        InputError
            A shape is wrong, or velocities or time stamps are given with some samples only.
        """
        with self._jobs.lock:
            self._jobs.raise_error()
            if self._buffer.add(q, tau, dq, t):  # type: ignore[arg-type]  # arrays, by the check
                if self._jobs.is_full:
                    self._buffer.give_up()
                else:
                    self._jobs.post(self._learn, self._buffer.take())

    def extend(
        self, q: Recorded, tau: Recorded, dq: Recorded | None = None, t: Stamps | None = None
    ) -> None:
        """Take many samples, as `update` does one by one; waits for the worker thread.

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
        with self._jobs.lock:
            self._jobs.raise_error()
            for k in range(len(q)):
                speed, stamp = None if dq is None else dq[k], None if t is None else float(t[k])
                if self._buffer.add(q[k], tau[k], speed, stamp):
                    if self._jobs.is_full:
                        self._jobs.wait()
                    self._jobs.post(self._learn, self._buffer.take())

    # -- estimates ---------------------------------------------------------------------------

    @property
    def reduced(self) -> Reduced:
        """The equations in the window, one triangle per joint; they can be added and saved."""
        return self._jobs.call(self._reduce_remembered)

    def estimate(self) -> OnlineEstimate:
        """The most probable physically consistent model, verified in exact arithmetic.

        Returns
        -------
        OnlineEstimate
            The nominal model before the first sample. If the newest problem has no verified
            solution, the last verified estimate, with ``fresh`` False.

        Raises
        ------
        SolverError
            The first problem has no verified solution.
        """
        estimate = self._jobs.call(self._estimate, self._buffer.newest.copy())
        self._jobs.raise_error()
        return estimate

    def request_estimate(self) -> bool:
        """Request an estimate without waiting for it; `latest` returns it when it is ready.

        Without a worker thread it is computed immediately.

        Returns
        -------
        bool
            False if an earlier request is still being processed; the new one is then ignored.

        Raises
        ------
        SolverError
            As of `estimate`; of an estimate by the worker thread at the next call.
        """

        def answer(posture: Array) -> None:
            try:
                self._estimate(posture)
            finally:
                self._requested = False

        with self._jobs.lock:
            self._jobs.raise_error()
            if self._requested:
                return False
            self._requested = True
            self._jobs.post(answer, self._buffer.newest.copy())
            return True

    def __repr__(self) -> str:
        faults = f", {sum(self.faults.values())} left out" if self.faults else ""
        return f"<OnlineFit of {self.robot.name!r}: {self.samples} samples{faults}>"
