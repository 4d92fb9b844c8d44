"""The margin problem: how far inside, or outside, the feasible set base parameters are.

    maximise s  subject to  K delta = beta,  s <= 1,
                            C_k(delta) - s U_k >= 0,  a_i(delta) - s u_i >= 0

with U_k, u_i one unit of each constraint. It always has a solution. With s > 0 its delta is
strictly feasible; with s < 0 the multipliers of an optimum are a Farkas certificate that nothing
is (the test BPFT, eq. (51) of Sousa and Cortesao (2014), made to answer both ways).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from feasid.arrays import Array
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units, slimmed
from feasid.feasibility.program import solve
from feasid.feasibility.program.program import Attempt, Program, Raw
from feasid.feasibility.program.scaled import normalised
from feasid.feasibility.proof.claim import Certificate, Claim
from feasid.feasibility.proof.farkas import Prover
from feasid.robot.description import Robot

SLIMMER = (1e2, 1e4)
"""While nothing is proved, bodies are counted as this many times heavier and smaller: the same
first moments. That is what little inertia beside a large first moment needs to be feasible."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the margin problem gave.

    Attributes
    ----------
    feasible : bool or None
        None when neither answer could be proved.
    margin : float
        The largest s found; with no answer, the best that a solver said, or NaN.
    delta : ndarray, shape (n,), or None
        The point with that margin.
    blocks, prices : tuple of ndarray and ndarray
        Multipliers of blocks and linear constraints, in units; empty unless infeasible.
    certificate : Certificate or None
    attempts : tuple of Attempt
    """

    feasible: bool | None
    margin: float
    delta: Array | None
    blocks: tuple[Array, ...]
    prices: Array
    certificate: Certificate | None
    attempts: tuple[Attempt, ...]


def decide(
    feasible: FeasibleSet,
    K: Array,
    beta: Array,
    scale: Units,
    aim: Array,
    robot: Robot | None = None,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None = None,
) -> Outcome:
    """Decide whether some feasible delta has ``K delta = beta``, with an exact proof.

    Parameters
    ----------
    feasible : FeasibleSet
    K, beta : ndarray, shapes (nb, n) and (nb,)
        K in the form beta = delta_b + Kd delta_d.
    scale : Units
    aim : ndarray, shape (n,)
        Dependent parameters are counted from here.
    robot : Robot, optional
        Helps to find exact proofs.
    solvers : sequence of (solver, form, backend), optional
    """
    claim = Claim.of(feasible, K, beta)
    outcome = _attempt(claim, K, beta, scale, aim, robot, solvers)
    for factor in SLIMMER:
        if outcome.feasible is not None:
            break
        first = (solve.default_solvers() if solvers is None else solvers)[:1]
        slim = slimmed(feasible, scale, factor)
        more = _attempt(claim, K, beta, slim, aim, robot, first)
        attempts = outcome.attempts + more.attempts
        outcome = replace(more if more.feasible is not None else outcome, attempts=attempts)
    return outcome


def _attempt(
    claim: Claim,
    K: Array,
    beta: Array,
    scale: Units,
    aim: Array,
    robot: Robot | None,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None,
) -> Outcome:
    """Solve in these units, and accept an answer that is proved."""
    feasible = claim.feasible
    prover = Prover(claim, K, beta, scale, robot)
    start, directions = fibre_map(K, beta, scale.parameters, aim)
    program = margin_program(feasible, scale, start, directions)
    proved: dict[int, Certificate] = {}

    def judge(raw: Raw) -> solve.Verdict:
        s, delta = float(raw.x[-1]), scale.parameters * (start + directions @ raw.x[:-1])
        certificate = None
        if feasible.strictly_inside(delta):
            certificate = claim.feasibility(delta)
            if not certificate.holds():
                certificate = None
        if certificate is None and s < 0:
            certificate = prover.prove(raw)
        if certificate is None:
            return solve.Verdict(False, True, abs(s), f"margin {s:.2e}, nothing proved")
        proved[id(raw)] = certificate
        return solve.Verdict(True, True, -s, f"margin {s:.2e}, {certificate.claim} proved")

    raw, attempts = solve.run(program, judge, solvers)
    if raw is None:
        return Outcome(None, np.nan, None, (), np.zeros(0), None, tuple(attempts))
    certificate = proved.get(id(raw))
    delta = scale.parameters * (start + directions @ raw.x[:-1])
    answer = None if certificate is None else certificate.claim == "feasible"
    return Outcome(
        answer,
        float(raw.x[-1]),
        delta,
        raw.multipliers if answer is False else (),
        np.asarray(raw.prices[:-1]) if answer is False else np.zeros(0),
        certificate,
        tuple(attempts),
    )


def fibre_map(K: Array, beta: Array, units: Array, aim: Array) -> tuple[Array, Array]:
    """Start (n,) and orthonormal directions (n, n - nb), in units, of all ``K delta = beta``.

    The start is the point nearest to `aim`. K's rows are scaled first: the coefficients beside a
    leading one can be a million times larger.
    """
    scaled = K * units
    sizes = np.linalg.norm(scaled, axis=1)
    target = (beta - K @ aim) / sizes
    left, singular, right = np.linalg.svd(scaled / sizes[:, None], full_matrices=True)
    nearest = right[: len(K)].T @ (left.T @ target / singular)
    return aim / units + nearest, np.ascontiguousarray(right[len(K) :].T)


def margin_program(feasible: FeasibleSet, scale: Units, start: Array, directions: Array) -> Program:
    """The margin problem over (x, s), delta = units * (start + directions x)."""
    F, f, G, h = normalised(feasible, scale)
    identity = np.concatenate([np.eye(b.size).ravel() for b in feasible.blocks] or [np.zeros(0)])
    along = sparse.csr_array(F @ sparse.csr_array(directions))
    count = directions.shape[1]
    return Program(
        A=np.zeros((0, count + 1)),
        b=np.zeros(0),
        c=np.r_[np.zeros(count), -1.0],
        F=sparse.csr_array(sparse.hstack([along, sparse.csr_array(-identity[:, None])])),
        f=f + F @ start,
        sizes=tuple(b.size for b in feasible.blocks),
        G=np.block(
            [
                [G @ directions, -np.ones((len(h), 1))],
                [np.zeros((1, count)), -np.ones((1, 1))],
            ]
        ),
        h=np.r_[h + G @ start, 1.0],
    )
