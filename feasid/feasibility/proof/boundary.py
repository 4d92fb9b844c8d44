"""Given values that only singular matrices satisfy: a rod, a point mass, a body without mass."""

from __future__ import annotations

from fractions import Fraction

from feasid.core.arrays import Array
from feasid.exact.elimination import Equation, solve_near
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.farkas import Multipliers
from feasid.feasibility.proof.presolve import Presolved
from feasid.feasibility.proof.question import Exact


def on_boundary(problem: Presolved, found: Multipliers, z: Array) -> Certificate | None:
    """The proof that given values lie on the boundary: a point on the face that is left.

    Where <M_k, Z_k> must be zero, ``M_k(delta) Z_k = 0``: linear equations, solved exactly near the
    solver's point.
    """
    question, door = problem.question, problem.question.door
    if question.margin:
        return None
    constraints, place = question.feasible.constraints, problem.known
    start = {(j,): decimal(x) for j, x in enumerate(problem.expanded(z))}
    start.update({(j,): value for j, value in place.items()})
    equations: list[Equation] = [({(j,): Fraction(1)}, value) for j, value in place.items()]
    for i, row in enumerate(problem.question.rows):
        if i in problem.kept:
            equations.append(({(j,): c for j, c in row.items()}, (question.values or ())[i]))
    for j, (row, value) in door.solved.items():
        tie = {(j,): Fraction(1), **{(i,): -c for i, c in row.items()}}
        equations.append((tie, value))
    for k, Z in found.Z.items():
        equations += _orthogonal(constraints[k], Z)
    solved = solve_near(equations, start, lambda _: 1.0)
    if solved is None:
        return None
    point = [solved[(j,)] for j in range(question.feasible.size)]
    return question.boundary(found.y, found.Z, point)


def _orthogonal(constraint: Block | Linear, Z: Exact) -> list[Equation]:
    """``M(delta) Z = 0`` as linear equations."""
    basis, constant, columns = _affine(constraint)
    out: list[Equation] = []
    for r in range(len(Z)):
        for c in range(len(Z)):
            row = {
                (j,): total
                for j, B in zip(columns, basis, strict=True)
                if (total := sum((B[r][i] * Z[i][c] for i in range(len(Z))), Fraction(0)))
            }
            right = -sum((constant[r][i] * Z[i][c] for i in range(len(Z))), Fraction(0))
            if row:
                out.append((row, right))
    return out


def _affine(constraint: Block | Linear) -> tuple[list[Exact], Exact, list[int]]:
    columns = [int(j) for j in constraint.columns]
    if isinstance(constraint, Linear):
        coefficients = [[[decimal(c)]] for c in constraint.coefficients]
        return coefficients, [[decimal(constraint.constant)]], columns
    basis = [[[decimal(x) for x in row] for row in B] for B in constraint.basis]
    return basis, [[decimal(x) for x in row] for row in constraint.constant], columns
