"""Solve a CVXPY program with a list of solvers; accept an answer only after verification.

CVXPY canonicalises the program and calls the solver. If a solver stops before its tolerance, CVXPY
discards the last iterate; here it is kept, with its multipliers, and verified like any other. A
solver's status is logged and otherwise ignored.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from feasid.core.arrays import Array
from feasid.core.errors import InputError, SolverError, did_you_mean
from feasid.parameters.feasibility.problems import Program

SECONDS = 60.0  #: Time limit of one attempt.
TOLERANCE = 1e-9  #: Clarabel's tolerances: of the gap and of feasibility, on programs in units.
CLARABEL = {
    "tol_gap_abs": TOLERANCE,
    "tol_gap_rel": TOLERANCE,
    "tol_feas": TOLERANCE,
    "chordal_decomposition_enable": False,
    "max_iter": 200,
    "time_limit": SECONDS,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "CLARABEL": CLARABEL,
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000, "time_limit_secs": SECONDS},
}
"""Settings by solver; other solvers use their defaults."""

LOOSER = 10.0  #: Factor on the tolerances of Clarabel's second attempt, with the norm squared.

Backend = Callable[[Program], "SolverAnswer"]
Ladder = tuple[tuple[str, str, Backend], ...]


@dataclass(frozen=True, eq=False)
class SolverAnswer:
    """A solver's answer, not verified yet.

    ``x`` are the program's unknowns. ``multipliers`` are those of the matrices, (s_k, s_k) each,
    ``prices`` those of the linear constraints, shape (m,), ``tangents`` those of the constraints
    that are not affine; all for the norm, not its square.
    """

    status: str
    x: Array
    multipliers: tuple[Array, ...] = ()
    prices: Array = field(default_factory=lambda: np.zeros(0))
    iterations: int = 0
    seconds: float = 0.0
    tangents: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One line of the log of a solve."""

    solver: str
    form: str
    status: str
    iterations: int
    seconds: float
    accepted: bool
    verdict: str

    def __str__(self) -> str:
        mark = "accepted" if self.accepted else "refused"
        return (
            f"{self.solver} ({self.form}): {self.status} after {self.iterations} iterations, "
            f"{self.seconds * 1e3:.0f} ms; {mark}: {self.verdict}"
        )


@dataclass(frozen=True)
class Judgement:
    """Result of the independent check of a point, and the reason."""

    accepted: bool
    usable: bool
    cost: float
    reason: str


def solver_attempts(solver: Any = None) -> Ladder:
    """The attempts for a solver, as (name, form, backend).

    `solver`: str, cvxpy solver, sequence of (name, form, backend), a name that CVXPY knows, or a
    solver object of its interface: that one alone. None: Clarabel on a cone and on a quadratic,
    then SCS. Raises InputError: when CVXPY does not know the name, or the solver is not installed.
    """
    if solver is None:
        looser = CLARABEL | {k: LOOSER * TOLERANCE for k in CLARABEL if k.startswith("tol_")}
        return (
            ("clarabel", "cone", lambda p: solve(p, "CLARABEL")),
            ("clarabel", "quadratic", lambda p: solve(p, "CLARABEL", squared=True, **looser)),
            ("scs", "cone", lambda p: solve(p, "SCS")),
        )
    if isinstance(solver, str):
        import cvxpy

        name, solvers = solver.upper(), sorted(importlib.import_module("cvxpy.settings").SOLVERS)
        there = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
        if name not in solvers:
            hint = did_you_mean(name, solvers)
            raise InputError(
                f"solver {solver!r} is not one that CVXPY knows{hint}; "
                f"installed: {', '.join(there)}",
                option="solver",
            )
        if name not in there:
            raise InputError(
                f"solver {solver!r} is not installed or has no licence here; installed: "
                f"{', '.join(there)}",
                option="solver",
            )
        return ((name.lower(), "cone", lambda p: solve(p, name)),)
    if hasattr(solver, "solve_via_data"):
        return ((str(solver.name()).lower(), "cone", lambda p: solve(p, solver)),)
    return tuple(solver)


def solve_verified(
    program: Program, judge: Callable[[SolverAnswer], Judgement], solver: Any = None
) -> tuple[SolverAnswer | None, list[Attempt]]:
    """Try `solver_attempts` until `judge` accepts; else the best usable point, or None.

    A solver that raises, or panics (Rust's panic arrives as a BaseException), is one more refused
    attempt; only KeyboardInterrupt, SystemExit and MemoryError pass through.
    """
    best: tuple[float, SolverAnswer] | None = None
    attempts: list[Attempt] = []
    for name, form, backend in solver_attempts(solver):
        began = time.perf_counter()
        try:
            raw = backend(program)
            # Whether the point is finite and has the shape of the program.
            sizes = tuple(np.shape(Z) for Z in raw.multipliers)
            fits = (
                np.shape(raw.x) == (program.size,)
                and bool(np.isfinite(raw.x).all())
                and sizes in ((), tuple((s, s) for s in program.sizes))
                and np.shape(raw.prices) in ((0,), (program.rows,))
            )
        except (KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit):
            raise
        except BaseException as error:
            spent = time.perf_counter() - began
            status = type(error).__name__
            attempts.append(Attempt(name, form, status, 0, spent, False, str(error)[:200]))
            continue
        verdict = Judgement(False, False, np.inf, "no finite point of the right shape")
        if fits:
            verdict = judge(raw)
        effort = raw.status, raw.iterations, raw.seconds
        attempts.append(Attempt(name, form, *effort, verdict.accepted, verdict.reason))
        if verdict.accepted:
            return raw, attempts
        if verdict.usable and (best is None or verdict.cost < best[0]):
            best = verdict.cost, raw
    return (best[1] if best else None), attempts


def solver_error(what: str, attempts: Sequence[Attempt]) -> SolverError:
    """The error that lists all attempts."""
    # The usual attempts are of several solvers; one that was accepted may have been the first.
    names = set() if any(a.accepted for a in attempts) else {a.solver for a in attempts}
    advice = f"; leave solver={names.pop()!r} out to try others" if len(names) == 1 else ""
    lines = "\n  ".join(["; tried:", *map(str, attempts)]) if attempts else ""
    return SolverError(f"{what}{advice}{lines}", attempts=tuple(attempts))


def solve(program: Program, solver: Any, *, squared: bool = False, **settings: Any) -> SolverAnswer:
    """Solve through CVXPY, with `SETTINGS` where none are given.

    ``squared`` minimises half the square of the norm, where the program minimises one.
    """
    began = time.perf_counter()
    squared = squared and program.error is not None
    problem = program.with_squared_cost() if squared else program.problem
    settings = settings or dict(SETTINGS.get(str(solver), {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inaccurate answer is judged, not announced
        arrays = any(p.size > 1 for p in problem.parameters())  # cost more than stating them anew
        data, chain, inverse = problem.get_problem_data(
            solver, ignore_dpp=arrays, solver_opts=settings
        )
        raw = chain.solve_via_data(problem, data, False, False, settings)
        # The solver's own status, and its result with one under which CVXPY keeps the last iterate.
        status, iterate = "", raw
        if chain.solver.name() == "SCS":
            status, solved = str(raw["info"]["status"]), raw["info"]["status_val"] == 1
            # 1 and 2 are SCS' numbers of solved and inaccurate.
            iterate = {**raw, "info": {**raw["info"], "status_val": 1 if solved else 2}}
        elif chain.solver.name() == "CLARABEL":
            status = str(raw.status)
            names = ("x", "s", "z", "obj_val", "iterations", "solve_time")
            status_of_cvxpy = status if status == "Solved" else "AlmostSolved"
            fields = {name: getattr(raw, name) for name in names}
            iterate = SimpleNamespace(status=status_of_cvxpy, **fields)
        problem.unpack_results(iterate, chain, inverse)
    scale, stats = 1.0, problem.solver_stats
    if squared:  # its multipliers are those of the norm times the norm
        scale = 1.0 / max(float(np.linalg.norm(program.error.value)), 1e-300)
    prices = np.zeros(0) if program.numbers is None else program.numbers.dual_value
    return SolverAnswer(
        status or problem.status,
        np.concatenate([np.ravel(v.value) for v in program.unknowns]),
        tuple(scale * np.asarray(m.dual_value) for m in program.matrices),
        scale * np.asarray(prices, dtype=np.float64),
        int(stats.num_iters or 0) if stats else 0,
        time.perf_counter() - began,
        tuple(scale * np.ravel(np.asarray(c.dual_value, np.float64)) for c in program.convex),
    )


@dataclass(frozen=True, eq=False)
class ConeArrays:
    """Minimise ``|A x - b|`` subject to ``F_k x + f_k >= 0`` and ``G x + h >= 0``, as arrays."""

    A: Array  #: Shape (rows, nx).
    b: Array  #: Shape (rows,).
    #: Shape (sum of s_k^2, nx): row-major entries of the symmetric matrices F_k, one below the
    #: other.
    F: sparse.csr_array
    f: Array  #: Shape (sum of s_k^2,).
    sizes: tuple[int, ...]  #: s_k.
    G: Array  #: Shape (m, nx).
    h: Array  #: Shape (m,).

    @cached_property
    def qr_factors(self) -> tuple[Array, Array]:
        """Q and R of A, which has independent columns; computed once."""
        q, r = np.linalg.qr(self.A)
        return np.asarray(q), np.asarray(r)


def lower_bound(program: ConeArrays, raw: SolverAnswer) -> float:
    """The best lower bound on the optimum along the ray of whatever multipliers were returned.

    Take any positive semidefinite Z_k, any z >= 0 and any w with ``|w| <= 1`` and
    ``A'w = F*(Z) + G'z``. Then every feasible x satisfies

        |A x - b| >= w'(A x - b) >= -w'b - sum_k <Z_k, f_k> - z'h,

    because the left side exceeds the right by ``<Z, F x + f> + z'(G x + h)`` or more. Multipliers
    are projected to their cones and w is computed: wrong ones only make the bound worse.

    Z, z and w may be scaled together by any t >= 0 as long as ``|t w| <= 1``, and what is left of
    the unit ball is spent on the part of b outside the range of A, which nothing can fit.
    """
    A, b, pull, offset = program.A, program.b, np.zeros(program.A.shape[1]), 0.0
    if len(raw.multipliers) == len(program.sizes) and raw.prices.shape == program.h.shape:
        # ``F*(Z) + G'z`` and ``<Z, f> + z'h`` for the multipliers, projected to their cones.
        stacked = np.zeros(len(program.f))
        ends = np.cumsum([0, *(s * s for s in program.sizes)]).tolist()
        for (first, last), matrix in zip(pairwise(ends), raw.multipliers, strict=True):
            if np.isfinite(matrix).all():
                values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
                stacked[first:last] = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
        prices = np.where(np.isfinite(raw.prices), np.maximum(raw.prices, 0.0), 0.0)
        pull = np.asarray(program.F.T @ stacked + program.G.T @ prices)
        offset = float(stacked @ program.f + prices @ program.h)
    Q, R = program.qr_factors
    outside = b - Q @ (Q.T @ b)
    outside -= Q @ (Q.T @ outside)
    distance = float(np.linalg.norm(outside))
    w = Q @ linalg.solve_triangular(R, pull, trans="T")
    # The rounding of A'w = pull cannot be ignored: what is left over must be paid for.
    loss = float(np.linalg.norm(A.T @ w - pull) * (1.0 + np.linalg.norm(raw.x)))
    gain = -float(w @ b) - offset - loss
    size = float(np.linalg.norm(w))
    # The largest t gain + distance sqrt(1 - (t size)^2) over 0 <= t <= 1 / size.
    return float(np.hypot(gain / size, distance)) if gain > 0 and size else distance
