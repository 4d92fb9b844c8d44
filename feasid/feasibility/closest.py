"""The feasible parameters closest to a target, proven to be so, with the unseen part chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.feasibility.constraints.elimination import Elimination
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units, assemble
from feasid.feasibility.program import barrier as fibre
from feasid.feasibility.program import solve
from feasid.feasibility.program.bound import lower_bound
from feasid.feasibility.program.interior import Anchor, NoInteriorError
from feasid.feasibility.program.program import Attempt, Program, SolverAnswer
from feasid.feasibility.program.reference import Reference
from feasid.feasibility.program.scaled import margins, normalised, shrunk
from feasid.feasibility.proof.conflict import minimal_conflict
from feasid.feasibility.proof.decide import decide
from feasid.feasibility.proof.question import Question
from feasid.feasibility.verdict import Verdict
from feasid.robot.description import Robot

UNSEEN = 1e-10
"""Singular value, relative to the largest, below which data say nothing about a direction."""

FAINT = 1e-5
"""Directions weaker than this are held near the reference during the solve ..."""

FAINT_PULL = 1e-5
"""... by rows of this relative size. Without them the best fit is often not attained: masses may
grow without end while the residual falls by less and less."""

WEAKER_PULLS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-11)
"""Pulls for distances that are small beside the target: the closest answer is taken."""

GROWS, WORTH = 2.0, 1e-4
"""Where the closest answer lies at infinity, every weaker pull lets parameters grow. By which
factor they then grow, and by which share the distance must shrink for it."""

GOOD_GAP = 5e-6
"""Gap, as a fraction of the target's norm, at which an answer counts as optimal."""

POOR_GAP = 0.05
"""Gap beyond which the best answer of all solvers is no answer."""

PULL_SHARE = 1e-2
"""Length of the pulling rows' error, as a share of the residual, that is no matter: they then raise
the squared residual by about one part in ten thousand ..."""

PULLS = (1e-6, 1e-7, 1e-8)
"""... and the pulls that are tried, one after the other where it is larger. On logs of packaged
robots 1e-7 came within 5e-4 of the proved floor of the squared residual (1e-5: up to 2e-2); our own
solver stalls from 1e-9 on."""

SAME = 1e-5
"""Share of the residual by which such an answer has to be closer to be taken."""

REFINED_GAP = 1e-6
"""Gap to which refinement must keep: it is there for distances that are small beside the target."""


@dataclass(frozen=True, eq=False)
class Closest:
    """A verified strictly feasible point, the solver's own, and how they were found."""

    delta: Array
    raw: Array
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, eq=False)
class _Problem:
    """``minimise |rows delta - target|`` over the feasible set, scaled for a solver."""

    rows: Array
    target: Array
    feasible: FeasibleSet
    scale: Units
    program: Program
    largest: float
    unseen: Array

    def cost(self, delta: Array) -> float:
        return float(np.linalg.norm(self.rows @ delta - self.target))

    def prefers(self, closer: Array, delta: Array, least: float = 0.0) -> bool:
        """Whether `closer` is closer than delta by what its growing parameters are worth.

        `least` is the share by which it has to be closer where they do not grow.
        """
        runs = self._size(closer) > GROWS * self._size(delta)
        return self.cost(closer) < (1 - (WORTH if runs else least)) * self.cost(delta)

    def _size(self, delta: Array) -> float:
        return float(np.abs(delta / self.scale.parameters).max(initial=0.0))

    def value(self, raw: SolverAnswer) -> float:
        """Cost of the solver's point in the scaled program, with the pull of faint directions."""
        return float(np.linalg.norm(self.program.A @ raw.x - self.program.b))

    def pulled(self, raw: SolverAnswer) -> bool:
        """Whether the pull is felt in the residual of the solver's point."""
        error = self.program.A @ raw.x - self.program.b
        rows = len(self.target)
        pull = float(np.linalg.norm(error[rows:]))
        none = GOOD_GAP * float(np.linalg.norm(self.target)) / self.largest
        return pull > max(PULL_SHARE * float(np.linalg.norm(error[:rows])), none)

    def gap(self, value: float, floor: float) -> float:
        """By how much `value` exceeds a proven `floor`, as a fraction of the target's norm."""
        size = float(np.linalg.norm(self.target)) / self.largest
        return max(0.0, value - floor) / size if size > 0 else 0.0


def closest(
    robot: Robot,
    rows: Array,
    target: Array,
    feasible: FeasibleSet,
    scale: Units,
    aim: Reference,
    margin: float | None = None,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None = None,
    *,
    refine: bool = False,
    generic: tuple[Units, Reference] | None = None,
) -> Closest:
    """Minimise ``|rows delta - target|`` over the feasible set, then choose one full model.

    Parameters
    ----------
    robot : Robot
    rows, target : ndarray, shapes (r, n) and (r,)
    feasible : FeasibleSet
    scale : Units
    aim : Reference
        Where to go along directions that the rows do not see.
    margin : float, optional
        Absolute in SI numbers; None for `feasid.feasibility.program.scaled.MARGIN` in units.
    solvers : sequence of (solver, form, backend), optional
    refine : bool
        Weaken the pull on faint directions, and take the closest answer. Without it distances that
        are small beside the target's norm come out a little too large.
    generic : (Units, Reference), optional
        Units and reference that do not depend on the description's inertials. The closest answer in
        these is taken where it is closer: margins and the pull towards `aim` are felt in the
        residual where masses of the description are absurd.

    Raises
    ------
    InputError
        When the constraints contradict each other.
    SolverError
        When no answer passed verification.

    Notes
    -----
    A solver's answer is judged by the gap between its cost and a lower bound that we evaluate
    ourselves from its multipliers, for the program as it was given to it: with the margin, and
    with the pull on faint directions. What is proved of the problem itself is said by
    `feasid.feasibility.proof.optimum`.
    """
    door = Elimination.of(feasible).required()
    if not len(door.roots):
        return Closest(door.fixed, door.fixed, ())
    inner, inner_aim = _behind(door, scale, aim)
    try:
        found = _closest(
            rows @ door.T,
            target - rows @ door.fixed,
            door.inside,
            inner,
            inner_aim,
            margin,
            solvers,
            refine,
            None if generic is None else _behind(door, *generic),
        )
    except NoInteriorError as error:
        raise _contradiction(robot, feasible, scale, aim.delta, error) from error
    delta = door.expanded(found.delta)
    broken = feasible.violations(delta)
    if broken:
        raise solve.failed(
            f"the answer breaks {', '.join(broken)} in exact arithmetic", found.attempts
        )
    return replace(found, delta=delta, raw=door.expanded(found.raw))


def _behind(door: Elimination, scale: Units, aim: Reference) -> tuple[Units, Reference]:
    """Units and reference of the parameters that equalities leave free."""
    inner = assemble(door.inside, scale.mass, scale.length, scale.parameters[door.roots])
    return inner, replace(aim, delta=aim.delta[door.roots])


def _contradiction(
    robot: Robot, feasible: FeasibleSet, scale: Units, aim: Array, error: NoInteriorError
) -> InputError:
    """The error that names the constraints which leave no room for each other."""
    question = Question.of(robot, feasible, np.zeros((0, feasible.size)), np.zeros(0))
    verdict = Verdict(question, decide(question, scale, aim), scale, ())
    suspects = [name for name in verdict.clash if name in feasible.asked]
    clash = minimal_conflict(question, scale, aim, suspects)
    among = "" if clash else "some of "  # met by bodies without mass only
    conflict = tuple(clash) or tuple(sorted(feasible.asked))
    tried = "; ".join(map(str, error.data["attempts"]))
    return InputError(
        f"no parameters satisfy all constraints at once: {among}{', '.join(conflict)} cannot hold "
        f"together; widen or leave out one of them ({tried})",
        conflict=conflict,
    )


def _closest(
    rows: Array,
    target: Array,
    feasible: FeasibleSet,
    scale: Units,
    aim: Reference,
    margin: float | None,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None,
    refine: bool,
    generic: tuple[Units, Reference] | None,
) -> Closest:
    anchor = Anchor(feasible, scale, aim)
    problem = _problem(rows, target, feasible, scale, aim.delta, margin, FAINT_PULL)
    start = aim.delta / scale.parameters
    ladder = solve.least_squares_solvers(start) if solvers is None else tuple(solvers)
    raw, attempts = _solved(problem, anchor, ladder)
    if raw is None:
        anchor.delta()  # contradictory constraints are the caller's error, not the solver's
        raise solve.failed("no solver answer passed verification", attempts)
    chosen = problem, raw, _repaired(problem, raw, anchor, aim.delta, margin)
    for pull in WEAKER_PULLS if refine else ():
        weaker = _problem(rows, target, feasible, scale, aim.delta, margin, pull)
        again, more = _solved(weaker, anchor, ladder[:1], REFINED_GAP)
        attempts += more
        if again is not None:
            closer = _repaired(weaker, again, anchor, aim.delta, margin)
            if problem.prefers(closer, chosen[2]):
                chosen = weaker, again, closer
    if generic is not None and not refine:
        chosen, more = _less_pulled(chosen, generic, aim.delta, margin, solvers)
        attempts += more
    problem, raw, delta = chosen
    if not np.isfinite(problem.cost(delta)):
        raise solve.failed("the answer's cost is not finite", attempts)
    found = raw.x * scale.parameters
    worse = max(0.0, problem.cost(delta) - problem.cost(found)) / problem.largest
    gap = problem.gap(problem.value(raw) + worse, lower_bound(problem.program, raw).value)
    if not (gap <= POOR_GAP or refine):
        raise solve.failed(f"the best answer may be {gap:.2g} from the optimum", attempts)
    return Closest(delta, found, tuple(attempts))


def _less_pulled(
    chosen: tuple[_Problem, SolverAnswer, Array],
    generic: tuple[Units, Reference],
    aim: Array,
    margin: float | None,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None,
) -> tuple[tuple[_Problem, SolverAnswer, Array], list[Attempt]]:
    """The closest of answers in units of the data, with pulls that weaken until they do not matter.

    The model that moves like it is still the one nearest to `aim`.
    """
    first = chosen[0]
    attempts: list[Attempt] = []
    scale, middle = generic
    anchor = Anchor(first.feasible, scale, middle)
    start = middle.delta / scale.parameters
    ladder = solve.least_squares_solvers(start)[:1] if solvers is None else tuple(solvers)
    for pull in PULLS:
        problem = _problem(
            first.rows, first.target, first.feasible, scale, middle.delta, margin, pull
        )
        raw, more = _solved(problem, anchor, ladder)
        attempts += more
        if raw is None:
            break
        delta = _repaired(problem, raw, anchor, aim, margin)
        if first.prefers(delta, chosen[2], SAME):
            chosen = problem, raw, delta
        if not problem.pulled(raw):
            break
    return chosen, attempts


def _repaired(
    problem: _Problem, raw: SolverAnswer, anchor: Anchor, aim: Array, margin: float | None
) -> Array:
    """The strictly feasible model for a solver's point."""
    return _chosen(problem, anchor.repair(raw.x * problem.scale.parameters), aim, margin)


def _solved(
    problem: _Problem,
    anchor: Anchor,
    solvers: Sequence[tuple[str, str, solve.Backend]],
    good: float = GOOD_GAP,
) -> tuple[SolverAnswer | None, list[Attempt]]:
    """Run the ladder; a point counts when it is strictly inside and its gap is proved small."""
    feasible, scale = problem.feasible, problem.scale

    def judge(raw: SolverAnswer) -> solve.Judgement:
        delta = raw.x * scale.parameters
        inside = feasible.strictly_inside(delta)
        worst = min(
            scale.block_margins(feasible, delta).min(initial=np.inf),
            scale.linear_margins(feasible, delta).min(initial=np.inf),
        )
        gap = problem.gap(problem.value(raw), lower_bound(problem.program, raw).value)
        return solve.Judgement(
            inside and gap <= good,
            inside or anchor.reaches(delta),
            problem.cost(anchor.repair(delta)),
            f"smallest margin {worst:.1e}, gap {gap:.1e}",
        )

    return solve.run(problem.program, judge, solvers)


def _problem(
    rows: Array,
    target: Array,
    feasible: FeasibleSet,
    scale: Units,
    aim: Array,
    margin: float | None,
    strength: float,
) -> _Problem:
    """Scale to units and unit-norm columns, and hold faint directions near the reference."""
    A = rows * scale.parameters
    _, sizes, right = np.linalg.svd(A, full_matrices=True)
    largest = float(sizes.max(initial=0.0)) or 1.0
    sizes = np.pad(sizes, (0, A.shape[1] - len(sizes))) / largest
    pull = strength * right[sizes < FAINT]
    F, f, G, h = normalised(feasible, scale)
    blocks, numbers = margins(feasible, scale, margin)
    program = Program(
        A=np.vstack([A / largest, pull]),
        b=np.concatenate([target / largest, pull @ (aim / scale.parameters)]),
        c=np.zeros(A.shape[1]),
        F=F,
        f=f - blocks,
        sizes=tuple(b.size for b in feasible.blocks),
        G=G,
        h=h - numbers,
    )
    unseen = scale.parameters[:, None] * right[sizes < UNSEEN].T
    return _Problem(rows, target, feasible, scale, program, largest, unseen)


def _chosen(problem: _Problem, delta: Array, aim: Array, margin: float | None) -> Array:
    """The model nearest to `aim` that moves like `delta`, polished where nothing constrains it."""
    room = shrunk(problem.feasible, problem.scale, margin)
    room = room if room.strictly_inside(delta) else problem.feasible
    delta = fibre.centre(room, delta, problem.unseen, aim)
    polished = _polished(problem, delta)
    if room.strictly_inside(polished) and problem.cost(polished) < problem.cost(delta):
        delta = fibre.centre(room, polished, problem.unseen, aim)
    return delta


def _polished(problem: _Problem, delta: Array) -> Array:
    """One least-squares correction: exact when no constraint is active at the optimum."""
    scale = problem.scale.parameters
    error = problem.rows @ delta - problem.target
    return np.asarray(delta - scale * np.linalg.lstsq(problem.rows * scale, error, rcond=UNSEEN)[0])
