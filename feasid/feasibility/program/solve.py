"""Solving conic programs by whoever can, believed by nobody.

Least squares go to `feasid.feasibility.program.squares` first. Solvers are called directly, so that
their raw status, last iterate and multipliers survive an ending that CVXPY would report as a bare
error: Clarabel with the arrays of `feasid.feasibility.program.direct`, SCS with those that CVXPY
makes of the same program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from feasid.core.arrays import Array
from feasid.errors import SolverError
from feasid.feasibility.program import direct
from feasid.feasibility.program.program import Attempt, Program, SolverAnswer
from feasid.feasibility.program.squares import Squares

TOLERANCE = {"feasid": 1e-9, "clarabel": 1e-9, "scs": 1e-8}
ITERATIONS = {"clarabel": 200, "scs": 100_000}
SECONDS = 60.0
"""Time limit of one attempt."""

NOTHING = 1e-12
"""Residual, as a fraction of the target's norm, that is none."""

Backend = Callable[[Program], SolverAnswer]


@dataclass(frozen=True)
class Judgement:
    """What our own check says about a point: is it acceptable, how good, and why."""

    accepted: bool
    usable: bool
    cost: float
    reason: str


def least_squares_solvers(start: Array) -> tuple[tuple[str, str, Backend], ...]:
    """The ladder for programs without linear cost: our own method from `start`, then the others."""
    return (("feasid", "primal-dual", lambda p: squares(p, start)), *default_solvers())


def default_solvers() -> tuple[tuple[str, str, Backend], ...]:
    """The ladder of attempts: (solver, form, backend)."""
    return (
        ("clarabel", "cone", lambda p: clarabel(p, "cone")),
        ("clarabel", "quadratic", lambda p: clarabel(p, "quadratic", 10 * TOLERANCE["clarabel"])),
        ("scs", "cone", lambda p: scs(p, "cone")),
    )


def run(
    program: Program,
    judge: Callable[[SolverAnswer], Judgement],
    solvers: Sequence[tuple[str, str, Backend]] | None = None,
) -> tuple[SolverAnswer | None, list[Attempt]]:
    """Try solvers in turn until `judge` accepts; else return the best usable point, or None.

    A solver that raises, or panics (Rust's panic arrives as a BaseException), is one more refused
    attempt; only KeyboardInterrupt, SystemExit and MemoryError pass through.
    """
    best: tuple[float, SolverAnswer] | None = None
    attempts: list[Attempt] = []
    for name, form, backend in default_solvers() if solvers is None else solvers:
        began = time.perf_counter()
        try:
            raw = backend(program)
            fits = raw.fits(program)
        except (KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit):
            raise
        except BaseException as error:
            spent = time.perf_counter() - began
            status = type(error).__name__
            attempts.append(Attempt(name, form, status, 0, spent, False, str(error)[:200]))
            continue
        if not fits:
            verdict = Judgement(False, False, np.inf, "no finite point of the right shape")
        else:
            verdict = judge(raw)
        attempts.append(
            Attempt(
                name,
                form,
                raw.status,
                raw.iterations,
                raw.seconds,
                verdict.accepted,
                verdict.reason,
            )
        )
        if verdict.accepted:
            return raw, attempts
        if verdict.usable and (best is None or verdict.cost < best[0]):
            best = verdict.cost, raw
    return (best[1] if best else None), attempts


def failed(what: str, attempts: Sequence[Attempt]) -> SolverError:
    """The error that says what was tried."""
    lines = "\n  ".join(str(a) for a in attempts)
    return SolverError(f"{what}; tried:\n  {lines}", attempts=tuple(attempts))


def squares(program: Program, start: Array) -> SolverAnswer:
    """Solve with our own method from `start`, shape (nx,), a program with c = 0."""
    began = time.perf_counter()
    problem = Squares(program.A, program.b, program.groups, program.G, program.h)
    at, steps, solved = problem.solve(start, TOLERANCE["feasid"], NOTHING)
    norm = max(float(np.sqrt(2 * problem.cost(at.x))), 1e-300)
    multipliers = {
        k: Z / norm
        for group, stacked in zip(program.groups, at.multipliers, strict=True)
        for k, Z in zip(group.members, stacked, strict=True)
    }
    return SolverAnswer(
        "Solved" if solved else "Stalled",
        at.x,
        tuple(multipliers[k] for k in sorted(multipliers)),
        at.prices / norm,
        steps,
        time.perf_counter() - began,
    )


def clarabel(program: Program, form: str, tolerance: float = TOLERANCE["clarabel"]) -> SolverAnswer:
    """Solve with Clarabel, chordal decomposition off."""
    import clarabel as solver  # type: ignore[import-untyped]

    began = time.perf_counter()
    squared = form == "quadratic" and not program.c.any()
    data = direct.ConeData.of(program, squared)
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.chordal_decomposition_enable = False
    settings.max_iter = ITERATIONS["clarabel"]
    settings.time_limit = SECONDS
    if hasattr(settings, "max_threads"):  # since 0.11
        settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, tolerance)
    cones = [solver.ZeroConeT(data.zero)] if data.zero else []
    cones += [solver.NonnegativeConeT(data.nonneg)] if data.nonneg else []
    cones += [solver.SecondOrderConeT(size) for size in data.soc]
    cones += [solver.PSDTriangleConeT(size) for size in data.psd]
    answer = solver.DefaultSolver(data.P, data.c, data.A, data.b, cones, settings).solve()
    return _raw(
        program,
        squared,
        str(answer.status),
        np.array(answer.x)[: program.c.size],
        np.array(answer.z),
        data,
        True,
        int(answer.iterations),
        time.perf_counter() - began,
    )


def scs(program: Program, form: str) -> SolverAnswer:
    """Solve with SCS at 1e-8."""
    import cvxpy as cp
    import scs as solver  # type: ignore[import-untyped]

    began = time.perf_counter()
    data, unknown, squared = model(program, form, cp.SCS)
    dims = data["dims"]
    cone = {"z": dims.zero, "l": dims.nonneg, "q": [*dims.soc], "s": [*dims.psd]}
    matrices = {"A": sparse.csc_matrix(data["A"]), "b": data["b"], "c": data["c"]}
    if data.get("P") is not None:
        matrices["P"] = sparse.triu(data["P"]).tocsc()
    answer = solver.SCS(
        matrices,
        cone,
        verbose=False,
        eps_abs=TOLERANCE["scs"],
        eps_rel=TOLERANCE["scs"],
        max_iters=ITERATIONS["scs"],
        time_limit_secs=SECONDS,
    ).solve()
    return _raw(
        program,
        squared,
        str(answer["info"]["status"]),
        _split(data, answer["x"], unknown),
        answer["y"],
        data["dims"],
        False,
        int(answer["info"]["iter"]),
        time.perf_counter() - began,
    )


def model(program: Program, form: str, solver: str) -> tuple[Any, Any, bool]:
    """Model in CVXPY; returns problem data, the unknown, and whether the norm was squared."""
    import cvxpy

    cp: Any = cvxpy  # its star imports hide names from type checkers
    x = cp.Variable(program.c.size)
    rules: list[Any] = []
    if program.G.size:
        rules.append(program.G @ x + program.h >= 0)
    if program.sizes:
        stacked = program.F @ x + program.f
        rules += [
            cp.reshape(stacked[part], (s, s), order="C") >> 0
            for part, s in zip(program.slices, program.sizes, strict=True)
        ]
    cost = program.c @ x
    squared = form == "quadratic" and not program.c.any()
    if len(program.b) and squared:
        cost = cost + 0.5 * cp.sum_squares(program.A @ x - program.b)
    elif len(program.b):
        height = cp.Variable()
        rules.append(cp.SOC(height, program.A @ x - program.b))
        cost = cost + height
    data, _, _ = cp.Problem(cp.Minimize(cost), rules).get_problem_data(solver)
    return data, x, squared


def _split(data: Any, solution: Array, unknown: Any) -> Array:
    """The entries of the solver's vector that are our unknown."""
    start = data["param_prob"].var_id_to_col[unknown.id]
    return np.array(solution[start : start + unknown.size], dtype=np.float64)


def _raw(
    program: Program,
    squared: bool,
    status: str,
    x: Array,
    dual: Array,
    dims: Any,
    upper: bool,
    iterations: int,
    seconds: float,
) -> SolverAnswer:
    """Put a solver's multipliers, stacked zero | linear | second order | matrices, in our terms.

    With the norm squared they belong to ``|A x - b|^2 / 2`` and are divided by ``|A x - b|``.
    """
    scale = 1.0
    if squared:
        scale = 1.0 / max(float(np.linalg.norm(program.A @ x - program.b)), 1e-300)
    prices = scale * dual[dims.zero : dims.zero + dims.nonneg]
    start = dims.zero + dims.nonneg + sum(dims.soc)
    ends = np.cumsum([start, *(s * (s + 1) // 2 for s in dims.psd)])
    multipliers = []
    for size, (a, b) in zip(dims.psd, pairwise(ends), strict=True):
        if upper:  # column by column of the upper triangle
            columns, rows = np.tril_indices(size)
        else:  # column by column of the lower triangle
            columns, rows = np.triu_indices(size)
        matrix = np.zeros((size, size))
        matrix[rows, columns] = dual[a:b] * np.where(rows == columns, 1.0, np.sqrt(0.5))
        multipliers.append(scale * (matrix + matrix.T - np.diag(np.diagonal(matrix))))
    return SolverAnswer(status, x, tuple(multipliers), np.asarray(prices), iterations, seconds)
