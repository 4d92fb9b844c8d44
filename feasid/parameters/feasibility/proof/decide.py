"""Can given values exist? Exact presolve, known points, then the margin problem.

    maximise s  subject to  K delta = beta,  s <= 1,
                            C_k(delta) - s U_k >= 0,  a_i(delta) - s u_i >= 0

with U_k, u_i one unit of each constraint. It always has a solution. With s > 0 its delta is
strictly feasible; with s < 0 the multipliers of an optimum are a Farkas certificate that nothing
is (the test BPFT, eq. (51) of Sousa and Cortesao (2014), made to answer both ways). With s = 0
they show which matrices must be singular, and delta shows that singular matrices are possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import FeasidError
from feasid.parameters.feasibility import problems, solve
from feasid.parameters.feasibility.closest import closest
from feasid.parameters.feasibility.constraints.units import Units, denser_bodies
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.infeasibility import InfeasibilityProver, prove_boundary
from feasid.parameters.feasibility.proof.optimality import prove_optimum
from feasid.parameters.feasibility.proof.presolve import PresolvedQuestion
from feasid.parameters.feasibility.proof.question import HEAVIEST, Question
from feasid.parameters.feasibility.reference import reference_model
from feasid.parameters.feasibility.solve import Attempt, SolverAnswer

DENSER = (1e2, 1e4)  #: Of bodies in further units, at equal first moments, which may be large.
FLAT = 1e-12  #: Margin, in units, that is mostly rounding.
NEARLY = 1e-5  #: Margin, in units, below which a problem may lie on the boundary.


@dataclass(frozen=True, eq=False)
class ProvedAnswer:
    """An answer and its proof."""

    certificate: Certificate | None  #: The proof; None when there is none.
    margin: float  #: The largest s found; with no answer, the best that a solver said, or NaN.
    delta: Array | None  #: Shape (n,): the point with that margin.
    attempts: tuple[Attempt, ...] = ()
    rounding: float = np.nan  #: The margin that K's rounding is worth, where that is in the way.
    #: Equations that the others say, too, up to the rounding of K, and that the proof leaves out.
    dropped: tuple[int, ...] = ()
    nearly_singular: bool = False  #: A given body is, up to rounding.

    @property
    def feasible(self) -> bool | None:
        """The answer; None when neither could be proved."""
        if self.certificate is None:
            return None
        return self.certificate.claim == "feasible" and not self.nearly_singular


def decide(
    question: Question, scale: Units, reference: Array, solver: Any = None, again: bool = False
) -> ProvedAnswer:
    """Decide whether some feasible delta has ``K delta = beta``, with an exact proof.

    `scale`: of the question's constraints; `reference` (n,): dependent parameters are counted from
    here; `solver`: see `feasid.parameters.feasibility.solve.solver_attempts`; `again`: equations
    that others say, too, have been left out already.
    """
    problem = PresolvedQuestion.from_question(question)
    refuted = problem.refute()
    if refuted is not None:
        margin = _smallest_known_margin(question, scale, problem.known)
        if problem.feasible.constraints and not problem.wrong:
            # Signs decide, and what is left has a margin, too: the smaller is the program's.
            program = _margin_program(problem, problem.units(scale), reference)[0]
            accept = solve.Judgement(True, True, 0.0, "")
            raw, _ = solve.solve_verified(program, lambda _: accept, solver)
            margin = margin if raw is None else float(np.fmin(margin, raw.x[-1]))
        return ProvedAnswer(refuted, margin, None, nearly_singular=problem.nearly_singular)
    if problem.wrong or problem.broken:
        return ProvedAnswer(None, np.nan, None)
    if problem.redundant_rows and not again:
        reduced_question = question.without_equations(problem.redundant_rows)
        answer = decide(reduced_question, scale, reference, solver, again=True)
        return replace(answer, dropped=problem.redundant_rows)
    values, nearly = question.robot.values, None
    described = np.where(np.isfinite(values), values, reference)
    for delta in (reference, described, np.zeros(len(reference))):
        by_point = _decide_by_point(problem, scale, delta)
        if by_point is not None and by_point.delta is not None:
            least = scale.margins(question.feasible, by_point.delta)[: len(scale.blocks)]
            by_point = replace(by_point, nearly_singular=problem.nearly_singular)
            if not problem.feasible.blocks or min(least) > FLAT:
                return by_point
            nearly = nearly or by_point  # on the boundary, where others may have a margin
    if problem.singular:
        flat = problem.lift_multipliers({}, problem.singular)
        certificate = prove_boundary(problem, flat, reference[problem.elimination.roots])
        if certificate is not None:
            margin = _smallest_known_margin(question, scale, problem.known)
            return ProvedAnswer(certificate, margin, None)
    ladder = solve.solver_attempts(solver)
    answer = _solve_and_prove(problem, problem.units(scale), reference, ladder)
    for factor in DENSER:
        if answer.certificate is None:
            units = problem.units(denser_bodies(question.feasible, scale, factor))
            other = _solve_and_prove(problem, units, reference, ladder[:1])
            tried = answer.attempts + other.attempts
            answer = replace(other if other.certificate is not None else answer, attempts=tried)
    if answer.certificate is not None:
        known = _smallest_known_margin(question, scale, problem.known)
        return replace(answer, margin=float(np.fmin(answer.margin, known)))
    answer = _decide_by_distance(problem, scale, solver, answer)
    return answer if answer.certificate is not None or nearly is None else nearly


def _decide_by_distance(
    problem: PresolvedQuestion, scale: Units, solver: Any, undecided: ProvedAnswer
) -> ProvedAnswer:
    """The answer by the closest feasible model: it has the values, or they are a distance away.

    Multipliers of that distance are those of a central point, inside of their cones; those of the
    largest margin lie on the boundary and leave no room for rounding.
    """
    question, reference = problem.question, reference_model(problem.question.robot, scale)
    K = question.rows.as_doubles(len(reference.delta))
    weight = np.diag(1.0 / np.linalg.norm(K * scale.parameters, axis=1))
    target = weight @ np.array(question.values, dtype=np.float64)
    goal = weight @ K, target, question.feasible, scale, reference, question.margin or None
    try:
        model = closest(*goal, solver, refine=True).delta
    except FeasidError:  # the constraints contradict each other by a little, or no solver answers
        return undecided
    if (by_point := _decide_by_point(problem, scale, model)) is not None:
        return replace(by_point, attempts=undecided.attempts)
    data = weight, target, model, reference.delta, scale
    optimum = prove_optimum(replace(question, values=None), *data)
    if optimum is None:
        return undecided
    proof = replace(optimum.dual, question=question)
    return replace(undecided, certificate=question.certify_infeasible(proof))


def _smallest_known_margin(
    question: Question, scale: Units, known: Mapping[int, Fraction]
) -> float:
    """The smallest margin among constraints on nothing but known parameters."""
    feasible = question.feasible.with_margin(question.margin)
    mask = np.zeros(feasible.size, dtype=bool)
    mask[[*known]] = True
    delta = np.zeros(feasible.size)
    delta[[*known]] = [float(x) for x in known.values()]
    pairs = zip(feasible.constraints, scale.margins(feasible, delta).tolist(), strict=True)
    return min((m for c, m in pairs if mask[c.columns].all()), default=np.nan)


def _decide_by_point(problem: PresolvedQuestion, scale: Units, delta: Array) -> ProvedAnswer | None:
    """The answer when the point near `delta` with the given values is strictly feasible."""
    question = problem.question
    elimination = problem.elimination
    exact = problem.complete_point(elimination.expand(delta[elimination.roots]))
    if exact is None:
        return None
    feasible = question.feasible.with_margin(question.margin)
    point = np.array(exact, dtype=np.float64)
    trivial = not problem.feasible.constraints and not feasible.convex  # floats would only round
    certificate = question.certify_feasible(exact) if trivial or feasible.contains(point) else None
    if certificate is None:
        return None
    return ProvedAnswer(certificate, min(scale.margins(feasible, point).tolist()), point)


def _margin_program(
    problem: PresolvedQuestion, scale: Units, reference: Array
) -> tuple[problems.Program, Array, Array]:
    """The program of the largest margin, over ``start + directions x`` in units."""
    equations, middle = (problem.K, problem.beta), reference[problem.elimination.roots]
    start, directions = solutions_of_equations(*equations, scale.parameters, middle)
    p = problems.virtual(problem.feasible, scale, start, directions)
    return problems.feasibility_test(p), start, directions


def _solve_and_prove(
    problem: PresolvedQuestion, scale: Units, reference: Array, solver: solve.Ladder
) -> ProvedAnswer:
    if not problem.feasible.constraints:
        return ProvedAnswer(None, np.nan, None)
    prover = InfeasibilityProver(problem, scale)
    program, start, directions = _margin_program(problem, scale, reference)
    proved: dict[int, Certificate] = {}
    worth = [np.inf]

    def judge(raw: SolverAnswer) -> solve.Judgement:
        s, z = float(raw.x[-1]), scale.parameters * (start + directions @ raw.x[:-1])
        certificate, rounding = _prove_answer(problem, prover, raw, s, z)
        if certificate is None:
            worth.append(abs(s) * rounding)
            return solve.Judgement(False, True, abs(s), f"margin {s:.2e}, nothing proved")
        proved[id(raw)] = certificate
        return solve.Judgement(True, True, -s, f"margin {s:.2e}, {certificate.claim} proved")

    raw, attempts = solve.solve_verified(program, judge, solver)
    if raw is None:
        return ProvedAnswer(None, np.nan, None, tuple(attempts))
    delta = problem.elimination.expand(scale.parameters * (start + directions @ raw.x[:-1]))
    certificate = proved.get(id(raw))
    if certificate is not None and certificate.claim == "feasible":
        # The solver's own point leaves rounding of large dependent parameters in beta.
        exact = problem.complete_point(delta)
        delta = delta if exact is None else np.array(exact, dtype=np.float64)
    return ProvedAnswer(certificate, float(raw.x[-1]), delta, tuple(attempts), min(worth))


def _prove_answer(
    problem: PresolvedQuestion, prover: InfeasibilityProver, raw: SolverAnswer, s: float, z: Array
) -> tuple[Certificate | None, float]:
    """The statement that a solver's answer proves, if any.

    Else also what rounding costs for the lightest limit, in units of the contradiction.
    """
    question, certificate = problem.question, None
    if problem.singular:
        certificate = prove_boundary(problem, problem.lift_multipliers({}, problem.singular), z)
    elif problem.feasible.contains_strictly(z):
        exact = problem.complete_point(problem.elimination.expand(z))
        certificate = None if exact is None else question.certify_feasible(exact)
    if certificate is not None or not s < NEARLY:
        return certificate, np.inf
    best, least = None, np.inf
    for proof in prover.from_solver(raw.multipliers, raw.prices):
        certificate = None
        if s > -NEARLY and proof.proof_value == 0:
            certificate = prove_boundary(problem, proof, z)
        certificate = certificate or question.certify_infeasible(proof)
        if certificate is None:
            if proof.proof_value < 0:
                cost = proof.remainder_cost(question.size_limits(HEAVIEST[-1]))
                least = min(least, float(-cost / proof.proof_value) or np.inf)
            continue
        if certificate.limit is None or certificate.limit["mass"] == HEAVIEST[0]:
            return certificate, 0.0
        if best is None or certificate.limit["mass"] > (best.limit or {"mass": 0.0})["mass"]:
            best = certificate
    return best, least


def solutions_of_equations(
    K: Array, beta: Array, units: Array, reference: Array
) -> tuple[Array, Array]:
    """Start (n,) and orthonormal directions (n, n - nb), in units, of all ``K delta = beta``.

    These are the virtual parameters of Sousa and Cortesao (2014) eq. (40), by orthonormal
    directions instead of the inverse of eq. (49). The start is the point nearest to
    `reference`. K's rows are scaled first, because coefficients can be a million times larger than
    the leading one.
    """
    scaled = K * units
    sizes = np.linalg.norm(scaled, axis=1)
    target = (beta - K @ reference) / sizes
    u, singular, right = np.linalg.svd(scaled / sizes[:, None], full_matrices=True)
    nearest = right[: len(K)].T @ (u.T @ target / singular)
    return reference / units + nearest, np.ascontiguousarray(right[len(K) :].T)
