"""The feasible parameters closest to a target, proven to be so, and the unseen part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.parameters.feasibility import problems, solve
from feasid.parameters.feasibility.cone import project_by_divergence
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units
from feasid.parameters.feasibility.problems import Program, margins, normalise_constraints
from feasid.parameters.feasibility.reference import (
    Anchor,
    NoInteriorError,
    Reference,
    contradiction,
)
from feasid.parameters.feasibility.solve import Attempt, ConeArrays, SolverAnswer, lower_bound

UNSEEN = 1e-10
"""Singular value, relative to the largest, below which data do not determine a direction."""

FAINT = 1e-5  #: Directions weaker than this are held near the reference during the solve ...
FAINT_PULL = 1e-5
"""... by rows of this relative size. Without them the best fit is often not attained: masses may
grow without end while the residual falls by less and less."""

WEAKER_PULLS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-11)
"""Weights of the pull for distances that are small compared with the target; the closest answer is
used."""

GROWS, WORTH = 2.0, 1e-4
"""If the closest answer lies at infinity, every weaker pull lets parameters grow. Factor by which
they then grow, and the share by which the distance must shrink to accept it."""

GOOD_GAP, FAIR_GAP = 1e-6, 5e-6
"""Gap, as a fraction of the target's norm, at which an answer counts as optimal, and at which the
best of several is taken."""

SCALED_PULL, SCALED_EVERYWHERE = 1e-7, 1e-6
"""Pulls by which unknowns are scaled, of faint directions or of all. With 1e-11 Clarabel
left the correction of Yoshida's robot 2e-6 further away; from 1e-8 to 1e-6 answers were the same,
and at 1e-5 its gaps of pulls of 1e-6 were up to 0.5."""

LEAST_SHARE = 1e-3
"""A correction below this share of the distance to the nearest model is not made."""

KEPT = 0.5  #: Fraction of the margin that the full model keeps.
POOR_GAP = 0.05  #: Gap beyond which even the best answer of all solvers is rejected.
PULLS = ((1e-7, True), (1e-7, False), (1e-6, True))
"""Pulls towards a generic model, and whether of all parameters, tried until the gap of an answer is
good. On logs of packaged robots 1e-7 came within 5e-4 of the proved floor of the squared residual
(1e-5: up to 2e-2); solvers stall from 1e-9 on. Of 80 random problems, the first pull missed a
good gap in 6 and the second, which takes longer, in 7; answers agreed."""


@dataclass(frozen=True, eq=False)
class Closest:
    """A verified strictly feasible point, the solver's own, and how they were found."""

    delta: Array
    raw: Array
    attempts: tuple[Attempt, ...]


Setting = tuple[Units, Reference]
"""In which units a problem is solved, and where its faint and unseen directions are held."""


@dataclass(frozen=True, eq=False)
class _Goal:
    """``minimise |rows delta - target|`` over the feasible set; see `closest`."""

    rows: Array
    target: Array
    feasible: FeasibleSet
    margin: float | None

    def cost(self, delta: Array) -> float:
        return float(np.linalg.norm(self.rows @ delta - self.target))


@dataclass(frozen=True, eq=False)
class _Problem:
    """A goal, scaled for a solver."""

    goal: _Goal
    scale: Units
    program: Program  #: What solvers get; its unknowns are delta in `units`.
    arrays: ConeArrays  #: The same program as arrays, by which answers are judged.
    units: Array  #: Shape (n,).
    size: float
    unseen: Array  #: Shape (n, z): directions that the rows do not see, in SI.
    pull: float = 1.0  #: Relative size of the rows that hold faint directions near the reference.

    def with_pull(self, pull: float) -> _Problem:
        """The problem with another pull, which its program, compiled once, has from now on."""
        for parameter in self.program.problem.parameters():
            parameter.value = pull
        A, b, rows = self.arrays.A.copy(), self.arrays.b.copy(), len(self.goal.target)
        A[rows:] *= pull / self.pull
        b[rows:] *= pull / self.pull
        return replace(self, arrays=replace(self.arrays, A=A, b=b), pull=pull)

    def least(self, raw: SolverAnswer) -> float:
        """A proven lower bound of the cost; constraints that are not affine count by tangents."""
        arrays, feasible = self.arrays, self.goal.feasible
        if not feasible.convex or len(raw.tangents) != len(feasible.convex):
            return lower_bound(arrays, raw)
        delta = raw.x * self.units
        slopes = np.vstack([-c.gradient(delta) * self.units for c in feasible.convex])
        offsets = -np.concatenate([c.values(delta) for c in feasible.convex]) - slopes @ raw.x
        G, h = np.vstack([arrays.G, slopes]), np.concatenate([arrays.h, offsets])
        prices = np.concatenate([raw.prices, *raw.tangents])
        return lower_bound(replace(arrays, G=G, h=h), replace(raw, prices=prices))

    def gap(self, delta: Array, raw: SolverAnswer) -> float:
        """By how much delta, pulls included, exceeds a solver's bound, as a share of the target."""
        value = float(np.linalg.norm(self.arrays.A @ (delta / self.units) - self.arrays.b))
        norm = float(np.linalg.norm(self.goal.target)) / self.size
        return max(0.0, value - self.least(raw)) / norm if norm > 0 else 0.0


def closest(
    rows: Array,
    target: Array,
    feasible: FeasibleSet,
    scale: Units,
    reference: Reference,
    margin: float | None = None,
    solver: Any = None,
    *,
    refine: bool = False,
    generic: Setting | None = None,
) -> Closest:
    """Minimise ``|rows delta - target|`` over the feasible set, then choose one full model.

    `rows` (r, n) and `target` (r,); `reference`: where to go along directions that the rows do not
    see; `margin`: absolute in SI numbers, None for `feasid.parameters.feasibility.problems.MARGIN`
    in units; `refine`: weaken the pull on faint directions and take the closest answer, as
    distances that are small compared with the target come out a little too large otherwise;
    `generic`: units and reference that do not depend on the description's inertials, tried first
    with weak pulls, as margins and the pull towards `reference` are felt in the residual where
    described masses are absurd. The full model is the one nearest to `reference` in any case.

    An answer is judged by its distance to a lower bound from the solver's multipliers, of the
    program with margin and pull; `prove_optimum` is about the problem itself.

    Raises InputError: the constraints contradict each other. Raises SolverError: no answer passed.
    """
    elimination = Elimination.from_equalities(feasible).require_consistent()
    if not len(elimination.roots):
        return Closest(elimination.fixed, elimination.fixed, ())
    moved = target - rows @ elimination.fixed
    goal = _Goal(rows @ elimination.T, moved, elimination.inside, margin)
    described = _on_free_parameters(elimination, scale, reference)
    generic = generic and _on_free_parameters(elimination, *generic)
    try:
        result = _closest(goal, described, generic, solver, refine)
    except NoInteriorError as error:
        raise contradiction(feasible, scale, reference.delta) from error
    delta = elimination.expand(result.delta)
    if violations := feasible.violations(delta):
        raise solve.solver_error(
            f"the answer violates {', '.join(violations)} in exact arithmetic", result.attempts
        )
    return replace(result, delta=delta, raw=elimination.expand(result.raw))


def _on_free_parameters(elimination: Elimination, scale: Units, reference: Reference) -> Setting:
    """Units and reference of the parameters that equalities leave free."""
    return elimination.units(scale), replace(reference, delta=reference.delta[elimination.roots])


def _closest(
    goal: _Goal, described: Setting, generic: Setting | None, solver: Any, refine: bool
) -> Closest:
    scale, reference = described
    ladder, best = solve.solver_attempts(solver), None
    attempts: list[Attempt] = []
    if generic is not None:
        first = ladder[:1] if solver is None else ladder
        best, attempts = _solve_generic(goal, generic, reference.delta, first)
    if best is None:
        anchor = Anchor(goal.feasible, scale, reference)
        problem = _problem(goal, scale, reference.delta)
        strong = problem.with_pull(FAINT_PULL)
        raw, more = _solve_verified(strong, anchor, ladder)
        attempts += more
        if raw is None:
            anchor.delta  # noqa: B018  contradictory constraints are the caller's error, not the solver's
            raise solve.solver_error("no solver answer passed verification", attempts)
        best = strong, raw, _repair(strong, raw, anchor, reference.delta)
        for pull in WEAKER_PULLS if refine else ():
            weaker = problem.with_pull(pull)
            again, more = _solve_verified(weaker, anchor, ladder[:1])
            attempts += more
            if again is not None:
                closer = _repair(weaker, again, anchor, reference.delta)
                sizes = (np.abs(x / scale.parameters).max(initial=0.0) for x in (closer, best[2]))
                gain = WORTH if next(sizes) > GROWS * next(sizes) else 0.0  # of growing parameters
                nearer = goal.cost(closer) < (1 - gain) * goal.cost(best[2])
                if nearer and not goal.feasible.violations(closer):
                    best = weaker, again, closer
    problem, raw, delta = best
    if not np.isfinite(goal.cost(delta)):
        raise solve.solver_error("the answer's cost is not finite", attempts)
    point = raw.x * problem.units
    worse = max(0.0, goal.cost(delta) - goal.cost(point))
    gap = problem.gap(point, raw) + worse / (float(np.linalg.norm(goal.target)) or 1.0)
    if not (gap <= POOR_GAP or refine):
        raise solve.solver_error(f"the best answer may be {gap:.2g} from the optimum", attempts)
    return Closest(delta, point, tuple(attempts))


def _solve_generic(
    goal: _Goal, generic: Setting, reference: Array, ladder: Any
) -> tuple[tuple[_Problem, SolverAnswer, Array] | None, list[Attempt]]:
    """The first answer with a good gap in units of the data, with pulls too weak to matter."""
    attempts: list[Attempt] = []
    best, least = None, np.inf
    scale, middle = generic
    anchor = Anchor(goal.feasible, scale, middle)
    for pull, everywhere in PULLS:
        problem = _problem(goal, scale, middle.delta, everywhere).with_pull(pull)
        raw, more = _solve_verified(problem, anchor, ladder)
        attempts += more
        if raw is None:
            break
        gap = problem.gap(anchor.repair(raw.x * problem.units), raw)
        if gap > FAIR_GAP:
            continue
        delta = _repair(problem, raw, anchor, reference)
        cost = goal.cost(delta)
        if cost < least and not goal.feasible.violations(delta):
            best, least = (problem, raw, delta), cost
        if best is not None and gap <= GOOD_GAP:
            break
    return best, attempts


def _repair(problem: _Problem, raw: SolverAnswer, anchor: Anchor, reference: Array) -> Array:
    """The strictly feasible model for a solver's point, nearest to `reference` of all like it.

    It is refined if no constraint is active.
    """
    delta, goal = anchor.repair(raw.x * problem.units), problem.goal
    # The feasible set with `KEPT` of the margin taken off, so that its interior keeps that much. A
    # fibre through a point that just has the margin is all but a point in the set with the whole
    # margin; half of it leaves interior to choose in.
    squares = [np.outer(unit, unit) for unit in problem.scale.blocks]
    tightened = [
        KEPT * (problems.MARGIN * s if goal.margin is None else goal.margin) for s in squares
    ]
    numbers = KEPT * margins(problem.scale, goal.margin)[1] * problem.scale.linear
    interior = replace(
        goal.feasible,
        blocks=tuple(
            replace(b, constant=b.constant - t * np.eye(b.size))
            for b, t in zip(goal.feasible.blocks, tightened, strict=True)
        ),
        linear=tuple(
            replace(c, constant=c.constant - float(m))
            for c, m in zip(goal.feasible.linear, numbers, strict=True)
        ),
    )
    interior = interior if interior.contains_strictly(delta) else goal.feasible
    delta = _centre(interior, delta, problem.unseen, reference)
    # One least-squares correction: exact when no constraint is active at the optimum.
    scale, error = problem.scale.parameters, goal.rows @ delta - goal.target
    polished = delta - scale * np.linalg.lstsq(goal.rows * scale, error, rcond=UNSEEN)[0]
    if interior.contains_strictly(polished) and goal.cost(polished) < goal.cost(delta):
        delta = _centre(interior, polished, problem.unseen, reference)
    return delta


def _solve_verified(
    problem: _Problem, anchor: Anchor, solver: Any
) -> tuple[SolverAnswer | None, list[Attempt]]:
    """Run the ladder; a point counts when what it is repaired to has a small gap, proved."""
    feasible, scale = problem.goal.feasible, problem.scale

    def judge(raw: SolverAnswer) -> solve.Judgement:
        delta = raw.x * problem.units
        repaired = anchor.repair(delta)
        usable = feasible.contains_strictly(repaired)
        worst = scale.margins(feasible, delta).min(initial=np.inf)
        gap = problem.gap(repaired, raw)
        reason, cost = f"smallest margin {worst:.1e}, gap {gap:.1e}", problem.goal.cost(repaired)
        return solve.Judgement(usable and gap <= GOOD_GAP, usable, cost, reason)

    return solve.solve_verified(problem.program, judge, solver)


def _problem(goal: _Goal, scale: Units, reference: Array, everywhere: bool = False) -> _Problem:
    """Hold faint directions near the reference, with pull 1; scale columns and target to norm 1.

    ``everywhere`` holds all parameters: rows that are sparse, for pulls too weak to be felt.
    """
    target, feasible, margin = goal.target, goal.feasible, goal.margin
    A = goal.rows * scale.parameters
    _, sizes, right = np.linalg.svd(A, full_matrices=True)
    largest = float(sizes.max(initial=0.0)) or 1.0
    sizes = np.pad(sizes, (0, A.shape[1] - len(sizes))) / largest
    faint = largest * (np.eye(A.shape[1]) if everywhere else right[sizes < FAINT])
    scaled = SCALED_EVERYWHERE if everywhere else SCALED_PULL
    columns = np.linalg.norm(np.vstack([A, scaled * faint]), axis=0)
    A = np.vstack([A, faint])
    b = np.concatenate([target, faint @ (reference / scale.parameters)])
    size = float(np.linalg.norm(target)) or float(np.linalg.norm(b)) or 1.0
    unit = replace(scale, parameters=scale.parameters * size / np.where(columns > 0, columns, size))
    A, b = A * (unit.parameters / scale.parameters / size), b / size
    p = replace(problems.unknowns(feasible, unit), sizes=scale.parameters)
    program = problems.pulled_least_squares(A, b, len(target), p, margin)
    F, f, G, h = normalise_constraints(feasible, unit)
    blocks, numbers = margins(unit, margin)
    sides = tuple(block.size for block in feasible.blocks)
    arrays = ConeArrays(A, b, F, f - blocks, sides, G, h - numbers)
    unseen = scale.parameters[:, None] * right[sizes < UNSEEN].T
    return _Problem(goal, scale, program, arrays, unit.parameters, size, unseen)


def _centre(interior: FeasibleSet, delta: Array, unseen: Array, reference: Array) -> Array:
    """The model nearest to `reference` that moves like delta, as constraints in CVXPY allow."""
    centre = project_by_divergence(interior, delta, unseen, reference)
    share = 1.0
    while interior.convex and not interior.contains_strictly(delta + share * (centre - delta)):
        share *= 0.5
        if share < LEAST_SHARE:
            return delta
    return delta + share * (centre - delta) if share < 1.0 else centre
