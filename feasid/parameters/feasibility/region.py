"""All feasible models that fit a log well enough, and the range of a linear form over them.

The models are those of a feasible set with ``|R K delta - rho|^2 <= budget``. A limit far beyond
any robot of this size keeps the set bounded; where it decides an end, there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, SolverError
from feasid.parameters.feasibility import cone as cones
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import DISSIPATES, FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units, constraint_units
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.optimality import RangeEnd, RangeEndProver
from feasid.parameters.feasibility.proof.question import DualPoint, ExactData, Question
from feasid.robot.description import Robot

LARGEST = 1e4
"""Limit on the sum of all bodies' masses and second moments and of all joint terms, each in its
unit, and on terms of either sign; larger where the best model is itself nearly as large ..."""

ROOM = 10.0  #: ... so that it has this much room.
LIMIT = "limit far beyond the robot's size"

SOURCES = ("data", "feasibility", "prior", "limit")
"""Reasons for the end of a range: the log, feasibility, given or assumed bounds, the limit on
sizes."""

RELATIVE_GAP = 1e-3  #: Duality gap at which a path ends, as a share of the way from the centre.
MAX_CENTRING_STEPS = 400
"""Newton steps to the central path's next point after which it counts as not reached."""

DIKIN_STEP, MAX_DIKIN_STEPS = 0.9, 40
"""Length of a step that stays inside in the metric of the logarithms, and how many are tried."""


@dataclass(frozen=True, eq=False)
class FormBound:
    """Upper bound of a linear form."""

    proof: RangeEnd  #: That no model of the region has more than ``proof.bound``, in rationals.
    reached: Array  #: Shape (n,): a model of the region that comes near to it, see `RELATIVE_GAP`.
    #: By `SOURCES`, how much of the way from a given model each of them ends: multiplier times what
    #: that model leaves of the constraint.
    shares: dict[str, float]


@dataclass(frozen=True, eq=False)
class Region:
    """The models."""

    robot: Robot
    feasible: FeasibleSet  #: Constraints, the limits on sizes last.
    user_rows: int  #: How many of its linear constraints are the caller's; the others are limits.
    K: Array  #: Shape (nb, n).
    R: Array  #: Shape (rows, nb).
    rho: Array  #: Shape (rows,).
    budget: float  #: Largest squared residual.
    scale: Units
    start: Array  #: Shape (n,): a model strictly inside.
    largest: float  #: Limit on sizes, see `LARGEST`.

    @classmethod
    def with_limits(
        cls,
        robot: Robot,
        feasible: FeasibleSet,
        K: Array,
        R: Array,
        rho: Array,
        budget: float,
        scale: Units,
        start: Array,
    ) -> Region:
        """With limits added.

        Raises InputError: when `start` is not inside.
        """
        size = 1.0
        for limit in size_limits(feasible, scale, 1.0):
            size = max(size, -float(limit.coefficients @ start[limit.columns]) / limit.constant)
        largest = max(LARGEST, 10.0 ** float(np.ceil(np.log10(ROOM * size))))
        limits = size_limits(feasible, scale, largest)
        limited = replace(feasible, linear=(*feasible.linear, *limits))
        limit_units = constraint_units(limited, scale.mass, scale.length, scale.parameters)
        error = float(np.sum((R @ (K @ start) - rho) ** 2))
        elimination = Elimination.from_equalities(limited).require_consistent()
        if not (error < budget and elimination.inside.contains_strictly(start[elimination.roots])):
            raise InputError(
                "the initial model is outside the feasible region: its squared residual is "
                f"{error:.6g}, the limit {budget:.6g}"
            )
        count = len(feasible.linear)
        return cls(robot, limited, count, K, R, rho, budget, limit_units, start, largest)

    def largest_value(self, form: Array, seen_from: Array) -> FormBound:
        """The largest value of ``form . delta``, and the constraints that limit it.

        `form` (n,); `seen_from` (n,): the model from which `End.shares` are counted. Raises
        SolverError: when no proof was found.
        """
        elimination = self._elimination
        # The largest ``c.x``: central points maximise ``c.x / mu`` plus the logarithms; mu falls
        # until the duality gap is a small share of the way from the centre. Multipliers are linear
        # in the Newton step to the next point.
        c = elimination.T.T @ form
        x, along = self._analytic_centre, self._unit_directions.T @ c
        H = self._constraint_barrier.derivatives(x)[1] + self._budget_barrier.derivatives(x)[1]
        mu = float(np.sqrt(max(float(along @ cones.newton_step(H, along)), 0.0)))
        start, order = float(c @ x), self._constraint_barrier.barrier_parameter + 2
        while mu > 0:
            x = self._tilted_centre(x, c / mu)
            if order * mu <= RELATIVE_GAP * (float(c @ x) - start):
                break
            mu /= cones.PATH_FACTOR
        move = np.zeros_like(x)
        if mu > 0:
            g, H = self._constraint_barrier.derivatives(x)
            slope, curvature = self._budget_barrier.derivatives(x)
            target = self._unit_directions.T @ (c / mu)
            move = self._unit_directions @ cones.newton_step(H + curvature, target - g - slope)
        matrices, prices = self._constraint_barrier.multipliers(x, move)
        places, count = self.prover.question.free_constraints, len(self._elimination.inside.blocks)
        multipliers = {places[k]: mu * Z for k, Z in matrices.items()}
        multipliers |= {places[count + k]: np.array([[mu * z]]) for k, z in prices.items()}
        w = mu * self._budget_barrier.multipliers(x, move)
        proof = self.prover.prove(form, w, multipliers)
        first = len(self.feasible.blocks) + self.user_rows
        with suppress(SolverError):  # without the limits on sizes, if it holds without them
            parts = {place: Z for place, Z in multipliers.items() if place < first}
            end = self._prover_without_limits.prove(form, w, parts)
            proof = end if end.bound <= proof.bound else proof
        reached = elimination.expand(x)
        if proof.bound >= 0.0:  # an end of 0 that holds without data?
            with suppress(SolverError):
                zero = self.prover.prove(form, np.zeros(len(self.rho)), {})
                if not (zero.bound or any(zero.weights) or any(zero.dual.tie_multipliers)):
                    only = dict.fromkeys(SOURCES, 0.0) | {"feasibility": 1.0}
                    return FormBound(zero, reached, only)
        # Share of the way from a model to the bound that each of `SOURCES` ends.
        w = np.array([float(x) for x in proof.weights])
        error = self.R @ (self.K @ seen_from) - self.rho
        out = dict.fromkeys(SOURCES, 0.0)
        out["data"] = max(float(np.sqrt(self.budget) * np.linalg.norm(w) - w @ error), 0.0)
        for place, multiplier in proof.dual.Z.items():
            constraint = self.feasible.constraints[place]
            values = np.array([[float(x) for x in row] for row in multiplier])
            if isinstance(constraint, Block):
                worth = float(np.sum(values * constraint.matrix(seen_from)))
            else:
                row = constraint.coefficients @ seen_from[constraint.columns]
                worth = float(values[0, 0] * (row + constraint.constant))
            user_source = "limit" if place >= first else "prior"
            user_source = "feasibility" if constraint.name.startswith(DISSIPATES) else user_source
            out[user_source if constraint.role == "asked" else "feasibility"] += max(worth, 0.0)
        total = sum(out.values()) or 1.0
        return FormBound(proof, reached, {source: worth / total for source, worth in out.items()})

    def find_end(self, form: Array, model: Array) -> FormBound:
        """The largest value, infinite if no proof was found; `model` (n,) is one of the region."""
        with suppress(SolverError):
            return self.largest_value(form, model)
        end = RangeEnd(form, np.inf, [], DualPoint(self.prover.question, [], {}))
        return FormBound(end, model, {"proof": 1.0})

    def needs_limit(self, end: FormBound) -> bool:
        """Whether the proof of an end holds only within the limits on sizes."""
        return max(end.proof.dual.Z, default=-1) >= len(self.feasible.blocks) + self.user_rows

    def certificate(self, end: FormBound) -> Certificate | None:
        """Proof of an end for ``feasid verify``; None when it cannot be stated there."""
        elimination, directions = self._elimination, self._unit_directions
        along, x = directions.T @ (elimination.T.T @ end.proof.form), end.reached[elimination.roots]
        beyond = None  # a model that exists and has more than the bound, by steps that stay inside
        for _ in range(MAX_DIKIN_STEPS):
            delta = elimination.expand(x)
            if float(end.proof.form @ delta) > end.proof.bound:
                beyond = delta
                break
            step = cones.newton_step(self._constraint_barrier.derivatives(x)[1], along)
            x = x + directions @ step * (DIKIN_STEP / float(np.sqrt(along @ step)))
            if not np.isfinite(self._constraint_barrier.value(x)):  # rounding, at the edge
                break
        prover = self.prover if self.needs_limit(end) else self._prover_without_limits
        return prover.certificate(end.proof, beyond)

    @cached_property
    def _prover_without_limits(self) -> RangeEndProver:
        """The region without the limits on sizes, which come last."""
        feasible = replace(self.feasible, linear=self.feasible.linear[: self.user_rows])
        question = Question.from_doubles(self.robot, feasible, self.K, None)
        return RangeEndProver(question, self._exact_data, self.budget, self.scale.blocks, {})

    @cached_property
    def prover(self) -> RangeEndProver:
        """The region in exact numbers."""
        question = Question.from_doubles(self.robot, self.feasible, self.K, None)
        # Behind the limit on the sum of all sizes those of single terms come in pairs.
        first = len(self.feasible.blocks) + self.user_rows + 1
        columns = [int(c.columns[0]) for c in self.feasible.linear[self.user_rows + 1 :: 2]]
        limits = {j: (first + 2 * k, first + 2 * k + 1) for k, j in enumerate(columns)}
        return RangeEndProver(question, self._exact_data, self.budget, self.scale.blocks, limits)

    @cached_property
    def _exact_data(self) -> ExactData:
        return ExactData.from_doubles(self.R, self.rho)

    @property
    def _elimination(self) -> Elimination:
        """Eliminate known and tied parameters; x are the remaining ones."""
        return self.prover.question.elimination

    @cached_property
    def _unit_directions(self) -> Array:
        """Size of one unit of each x."""
        return np.diag(self.scale.parameters[self._elimination.roots])

    @cached_property
    def _constraint_barrier(self) -> cones.LogBarrier:
        return cones.LogBarrier.with_equal_weights(self._elimination.inside, self._unit_directions)

    @cached_property
    def _budget_barrier(self) -> cones.BallBarrier:
        """The logarithm of the part of the budget that a model leaves."""
        elimination = self._elimination
        A = self.R @ (self.K @ elimination.T)
        b = self.rho - self.R @ (self.K @ elimination.fixed)
        quadratic = cones.Quadratic(A, b, self._unit_directions)
        return cones.BallBarrier(quadratic, float(np.sqrt(self.budget)))

    @cached_property
    def _analytic_centre(self) -> Array:
        return self._tilted_centre(self.start[self._elimination.roots], None)

    def _tilted_centre(self, x: Array, tilt: Array | None) -> Array:
        """The minimiser of all logarithms less ``tilt.x``, from a point inside."""
        barriers: tuple[cones.ConvexFunction, ...] = self._constraint_barrier, self._budget_barrier
        minimum = cones.minimise(
            [(1.0, barrier) for barrier in barriers],
            x,
            self._unit_directions,
            0.5 * cones.CENTRED**2,
            tilt=tilt,
            steps=MAX_CENTRING_STEPS,
        )
        if not minimum.settled:
            raise SolverError("the path of central points was lost: Newton's method did not settle")
        return minimum.delta


def size_limits(feasible: FeasibleSet, scale: Units, largest: float) -> Iterator[Linear]:
    """The sum of all sizes first, then both sides of every joint term of either sign."""
    n = feasible.size
    sizes, limited_columns = np.zeros(n), np.zeros(n, dtype=bool)
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        if block.role != "asked":
            sizes[block.columns] += np.einsum("cii,i->c", block.basis, unit**-2.0)
            limited_columns[block.columns] = True
    signs = [int(c.columns[0]) for c in feasible.linear if c.role == "sign"]
    sizes[signs] = 1.0 / scale.parameters[signs]
    limited_columns[signs] = True
    limited_columns[[e.columns[0] for e in feasible.equalities if len(e.columns) == 1]] = True
    short = np.array([float(f"{x:.2e}") for x in sizes])
    columns = np.flatnonzero(short)
    yield Linear(LIMIT, columns, -short[columns], largest)
    for j in np.flatnonzero(~limited_columns):
        most = float(f"{largest * scale.parameters[j]:.2e}")
        for sign in (-1.0, 1.0):
            yield Linear(LIMIT, np.array([j]), np.array([sign]), most)
