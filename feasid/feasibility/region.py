"""All models that can exist and fit a log well enough, and how far a linear form reaches over them.

The models are those of a feasible set with ``|R K delta - rho|^2 <= budget``. A limit far beyond
any robot of this size keeps the set bounded; where it decides an end, there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, SolverError
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.elimination import Elimination
from feasid.feasibility.constraints.sets import DISSIPATES, FeasibleSet
from feasid.feasibility.constraints.units import Units, assemble
from feasid.feasibility.problems import normalised
from feasid.feasibility.program.ascent import Inside
from feasid.feasibility.program.barrier import newton_step
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.question import Question
from feasid.feasibility.proof.reach import Reach, ReachProver
from feasid.robot.description import Robot

LARGEST = 1e4
"""Limit on the sum of all bodies' masses and second moments and of all joint terms, each in its
unit, and on terms of either sign."""

LIMIT = "limit far beyond the robot's size"

SOURCES = ("data", "feasibility", "prior", "limit")
"""What can end a range: the log, that bodies exist, what was asked or believed, our own limit."""

DIKIN, MOST_STEPS = 0.9, 40
"""Length of a step that stays inside in the metric of the logarithms, and how many are tried."""


@dataclass(frozen=True, eq=False)
class End:
    """How far a form reaches upwards.

    Attributes
    ----------
    proof : Reach
        That no model of the region has more than ``proof.bound``, in rationals.
    reached : ndarray, shape (n,)
        A model of the region that comes near to it, see `feasid.feasibility.program.ascent.TIGHT`.
    shares : mapping of str to float
        By `SOURCES`, how much of the way from a given model each of them ends: multiplier times
        what that model leaves of the constraint.
    """

    proof: Reach
    reached: Array
    shares: dict[str, float]


@dataclass(frozen=True, eq=False)
class Region:
    """The models.

    Attributes
    ----------
    robot : Robot
    feasible : FeasibleSet
        With our own limits, which come last.
    own : int
        How many of its linear constraints are the caller's; the others are limits.
    K, R, rho : ndarray, shapes (nb, n), (rows, nb) and (rows,)
    budget : float
        Largest squared residual.
    scale : Units
    start : ndarray, shape (n,)
        A model strictly inside.
    """

    robot: Robot
    feasible: FeasibleSet
    own: int
    K: Array
    R: Array
    rho: Array
    budget: float
    scale: Units
    start: Array

    @classmethod
    def of(
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

        Raises
        ------
        InputError
            When `start` is not inside.
        """
        limited = replace(feasible, linear=(*feasible.linear, *_limits(feasible, scale)))
        whole = assemble(limited, scale.mass, scale.length, scale.parameters)
        error = float(np.sum((R @ (K @ start) - rho) ** 2))
        door = Elimination.of(limited).required()
        if not (error < budget and door.inside.strictly_inside(start[door.roots])):
            raise InputError(
                "the model to start from is not inside: its squared residual is "
                f"{error:.6g} of a budget of {budget:.6g}"
            )
        return cls(robot, limited, len(feasible.linear), K, R, rho, budget, whole, start)

    def end(self, form: Array, seen_from: Array) -> End:
        """The largest value of ``form . delta``, and what keeps it from being larger.

        Parameters
        ----------
        form : ndarray, shape (n,)
        seen_from : ndarray, shape (n,)
            The model from which `End.shares` are counted.

        Raises
        ------
        SolverError
            When no proof was found.
        """
        inside, scale = self._inside
        door, places = self.prover.question.door, self._places
        found = inside.furthest(door.T.T @ form * scale.parameters, self._centre)
        blocks = zip(found.blocks, scale.blocks, strict=True)
        matrices = [Z / np.outer(u, u) for Z, u in blocks]
        matrices += [np.array([[price]]) for price in found.prices / scale.linear]
        multipliers = dict(zip(places, matrices, strict=True))
        proof = self._proved(form, found.w, multipliers)
        reached = door.expanded(found.x * scale.parameters)
        plain = self.prover.without_data(form) if proof.bound >= 0.0 else None
        if plain is not None:
            only = dict.fromkeys(SOURCES, 0.0) | {"feasibility": 1.0}
            return End(plain, reached, only)
        return End(proof, reached, self._shares(proof, seen_from))

    def _proved(self, form: Array, w: Array, multipliers: dict[int, Array]) -> Reach:
        """The bound of these multipliers, without our own limits where it holds without."""
        limited = self.prover.reach(form, w, multipliers)
        first = len(self.feasible.blocks) + self.own
        kept = {place: Z for place, Z in multipliers.items() if place < first}
        try:
            free = self._unlimited.reach(form, w, kept)
        except SolverError:
            return limited
        return free if free.bound <= limited.bound else limited

    def needs_limit(self, end: End) -> bool:
        """Whether the proof of an end is about models within our own limits only."""
        return max(end.proof.multipliers, default=-1) >= len(self.feasible.blocks) + self.own

    def certificate(self, end: End) -> Certificate | None:
        """Proof of an end for ``feasid verify``; None when it cannot be stated there."""
        prover = self.prover if self.needs_limit(end) else self._unlimited
        return prover.certificate(end.proof, self._beyond(end))

    @cached_property
    def _unlimited(self) -> ReachProver:
        """The region without our own limits, which come last."""
        linear = self.feasible.linear[: self.own]
        question = Question.of(self.robot, replace(self.feasible, linear=linear), self.K, None)
        return ReachProver(question, self.R, self.rho, self.budget, {})

    @cached_property
    def prover(self) -> ReachProver:
        """The region in exact numbers."""
        question = Question.of(self.robot, self.feasible, self.K, None)
        first = len(self.feasible.blocks) + self.own + 1
        columns = [int(c.columns[0]) for c in self.feasible.linear[self.own + 1 :: 2]]
        limits = {j: (first + 2 * k, first + 2 * k + 1) for k, j in enumerate(columns)}
        return ReachProver(question, self.R, self.rho, self.budget, limits)

    @cached_property
    def _places(self) -> list[int]:
        """Which of the constraints are behind the door."""
        T = self.prover.question.door.T
        return [k for k, c in enumerate(self.feasible.constraints) if T[c.columns].any()]

    @cached_property
    def _inside(self) -> tuple[Inside, Units]:
        """The constraints behind the door, in units, and these units."""
        door = self.prover.question.door
        unit = self.scale.parameters[door.roots]
        scale = assemble(door.inside, self.scale.mass, self.scale.length, unit)
        _, _, G, h = normalised(door.inside, scale)
        shapes: dict[tuple[int, ...], list[int]] = {}
        for k, block in enumerate(door.inside.blocks):
            shapes.setdefault(block.basis.shape, []).append(k)
        groups = []
        for own in shapes.values():
            blocks = [door.inside.blocks[k] for k in own]
            squares = np.array([np.outer(scale.blocks[k], scale.blocks[k]) for k in own])
            columns = np.stack([b.columns for b in blocks])
            basis = np.stack([b.basis for b in blocks]) * unit[columns][:, :, None, None]
            constant = np.stack([b.constant for b in blocks]) / squares
            groups.append((columns, basis / squares[:, None], constant))
        A = self.R @ (self.K @ door.T) * unit
        b = self.rho - self.R @ (self.K @ door.fixed)
        members = tuple(map(tuple, shapes.values()))
        return Inside(members, tuple(groups), G, h, A, b, float(np.sqrt(self.budget))), scale

    @cached_property
    def _centre(self) -> Array:
        """The analytic centre, in units behind the door."""
        inside, scale = self._inside
        start = self.start[self.prover.question.door.roots] / scale.parameters
        return inside.centred(start, np.zeros(len(start)))

    def _shares(self, proof: Reach, delta: Array) -> dict[str, float]:
        """Of the way from a model to the bound, what each of `SOURCES` ends."""
        w = np.array([float(x) for x in proof.weights])
        error = self.R @ (self.K @ delta) - self.rho
        out = dict.fromkeys(SOURCES, 0.0)
        out["data"] = max(float(np.sqrt(self.budget) * np.linalg.norm(w) - w @ error), 0.0)
        limits = len(self.feasible.blocks) + self.own
        for place, multiplier in proof.multipliers.items():
            constraint = self.feasible.constraints[place]
            own = np.array([[float(x) for x in row] for row in multiplier])
            if isinstance(constraint, Block):
                worth = float(np.sum(own * constraint.matrix(delta)))
            else:
                row = constraint.coefficients @ delta[constraint.columns]
                worth = float(own[0, 0] * (row + constraint.constant))
            asked = "limit" if place >= limits else "prior"
            asked = "feasibility" if constraint.name.startswith(DISSIPATES) else asked
            out[asked if constraint.role == "asked" else "feasibility"] += max(worth, 0.0)
        whole = sum(out.values()) or 1.0
        return {source: worth / whole for source, worth in out.items()}

    def _beyond(self, end: End) -> Array | None:
        """A model that exists and has more than the bound, by steps that stay inside."""
        inside, scale = self._inside
        door = self.prover.question.door
        free = replace(inside, A=inside.A[:0], b=inside.b[:0])
        c = door.T.T @ end.proof.form * scale.parameters
        x = end.reached[door.roots] / scale.parameters
        for _ in range(MOST_STEPS):
            delta = door.expanded(x * scale.parameters)
            if float(end.proof.form @ delta) > end.proof.bound:
                return delta
            step = newton_step(free.derivatives(x)[1], c)
            further = x + DIKIN / float(np.sqrt(c @ step)) * step
            if not np.isfinite(free.value(further)):  # rounding, at the edge of what exists
                return None
            x = further
        return None


def _limits(feasible: FeasibleSet, scale: Units) -> Iterator[Linear]:
    """The sum of all sizes first, then both sides of every joint term of either sign."""
    n = feasible.size
    sizes, known = np.zeros(n), np.zeros(n, dtype=bool)
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        if block.role != "asked":
            sizes[block.columns] += np.einsum("cii,i->c", block.basis, unit**-2.0)
            known[block.columns] = True
    signs = [int(c.columns[0]) for c in feasible.linear if c.role == "sign"]
    sizes[signs] = 1.0 / scale.parameters[signs]
    known[signs] = True
    known[[e.columns[0] for e in feasible.equalities if len(e.columns) == 1]] = True
    short = np.array([float(f"{x:.2e}") for x in sizes])
    columns = np.flatnonzero(short)
    yield Linear(LIMIT, columns, -short[columns], LARGEST)
    for j in np.flatnonzero(~known):
        most = float(f"{LARGEST * scale.parameters[j]:.2e}")
        for sign in (-1.0, 1.0):
            yield Linear(LIMIT, np.array([j]), np.array([sign]), most)
