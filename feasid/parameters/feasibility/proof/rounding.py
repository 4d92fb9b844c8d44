"""Rounding approximate multipliers to exact points of the dual problem.

A proof needs ``sum_k C_k*(Z_k) = K'y`` without any error. We choose y first, and each body's matrix
takes the remainder of K'y in the body's columns: a 4x4 pseudo-inertia has ten parameters and its
multiplier ten entries, so Z_k is fixed exactly. Columns that no body and no sign owns are equations
for y, solved exactly. By rounding, some Z_k may then fail to be positive semidefinite. It is
increased, and a limit on masses covers the remainder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np
from scipy import linalg

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.core.exact.numbers import Exact, dot, printed_decimal, solve_linear
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.proof.facial_reduction import REACHED, Face
from feasid.parameters.feasibility.proof.question import DualPoint, ExactData, Question, adjoint

LEAST_LIFT = 1e-15
"""Share of the largest eigenvalue that is added where a matrix is lifted: a double's rounding."""

NO_PULL = Fraction(1, 10**10)
"""Least weight of an equation, relative to a relation of a face; smaller ones are the rounding of
K."""

FEW_DIGITS = 10**24  #: Largest denominator of rows from rational geometry and decimal data.
REFINEMENTS = 4  #: Number of refinement steps; each adds about twelve digits.
SMALL_LIFT = Fraction(1, 10**38)
"""The tolerance for a matrix on a face, with coefficients rounded to 45 digits."""


def project_to_semidefinite(Z: Array, unit: Array) -> Array:
    """A multiplier in SI numbers, its negative eigenvalues dropped."""
    if not np.isfinite(Z).all():
        return Z
    values, vectors = np.linalg.eigh(0.5 * (Z + Z.T))
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(clipped / np.outer(unit, unit))


def round_matrix(Z: Array) -> Exact:
    """The doubles of the upper triangle as decimals."""
    return [
        [printed_decimal(Z[min(r, c), max(r, c)]) for c in range(len(Z))] for r in range(len(Z))
    ]


def lift_to_semidefinite(Z: Exact, unit: Array) -> Exact:
    """Z, increased in the directions in which it is not positive semidefinite."""
    if definiteness(Z) != "indefinite":
        return Z
    scaled = np.array(Z, dtype=np.float64) * np.outer(unit, unit)
    little = SMALL_LIFT * printed_decimal(float(np.abs(scaled).max()))
    slightly = [row[:] for row in Z]
    for i, u in enumerate(unit):
        slightly[i][i] += little / printed_decimal(u) ** 2 // SMALL_LIFT**2 * SMALL_LIFT**2
    if definiteness(slightly) != "indefinite":
        return slightly
    values, vectors = np.linalg.eigh(scaled)
    rounding = LEAST_LIFT * float(np.abs(values).max())
    low = values < rounding
    weights = 1.001 * np.maximum(-values[low], 0.0) + rounding
    added = (vectors[:, low] * weights) @ vectors[:, low].T + 1e-3 * rounding * np.eye(len(unit))
    more = round_matrix(added / np.outer(unit, unit))
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(Z, more, strict=True)]


def add_remainder(basis: Array, Z: Exact, remainder: list[Fraction]) -> Exact:
    """Z plus the smallest matrix whose adjoint is `remainder`: ``sum_j w_j B_j``, ``G w = r``."""
    inverse = np.linalg.inv(np.einsum("aij,bij->ab", basis, basis))
    # The Gram matrices are small integers and halves, so that sixteenths hold their inverses.
    exact_inverse = [[Fraction(float(x)).limit_denominator(64) for x in row] for row in inverse]
    weights = [dot(row, remainder) for row in exact_inverse]
    out = [row[:] for row in Z]
    for w, B in zip(weights, basis, strict=True):
        if w:
            for r, c in zip(*np.nonzero(B), strict=True):
                out[r][c] += w * printed_decimal(B[r, c])
    return out


def complete_multipliers(
    feasible: FeasibleSet,
    Z: Mapping[int, Exact],
    left: Sequence[Fraction],
    units: Sequence[Array],
    faces: Mapping[int, Face] | None = None,
) -> tuple[dict[int, Exact], list[Fraction]]:
    """Multipliers, with those of each body and sign taking the remainder in their columns.

    `Z`: by place among the constraints; `left`: ``sum_k <B_kj, Z_k> - (K'y)_j``; `units`: of the
    blocks; `faces`: on which blocks stay whose multipliers their parameters do not determine.
    Returns the multipliers, semidefinite where `Z` is, and the remainder: zero but in columns that
    no multiplier owns, or whose matrix would become indefinite.
    """
    out, remainders = dict(Z), list(left)
    owned: set[int] = set()
    order = list(range(len(feasible.blocks)))
    shared = Counter(j for b in feasible.blocks if b.role != "asked" for j in b.columns.tolist())
    if max(shared.values(), default=0) > 1:  # of tied bodies, the one with most room comes first
        room = dict.fromkeys(order, 0.0)
        for k in room.keys() & out.keys():
            M = np.array(out[k], dtype=np.float64)
            room[k] = float(np.linalg.eigvalsh(M * np.outer(units[k], units[k]))[0])
        order.sort(key=lambda k: -room[k])
    for k in order:
        block = feasible.blocks[k]
        columns = block.columns.tolist()
        if block.role == "asked" or not owned.isdisjoint(columns):
            continue
        owned.update(columns)
        if not any(remainders[j] for j in columns):
            continue
        multiplier = out.get(k) or [[Fraction(0)] * block.size for _ in range(block.size)]
        face, target = (faces or {}).get(k), [-remainders[j] for j in columns]
        change = add_remainder if face is None else face.add_remainder
        out[k] = lift_to_semidefinite(change(block.basis, multiplier, target), units[k])
        added = [
            [x - y for x, y in zip(*rows, strict=True)]
            for rows in zip(out[k], multiplier, strict=True)
        ]
        for j, part in adjoint(block, added):
            remainders[j] += part
    for k, row in enumerate(feasible.linear, len(feasible.blocks)):
        (*columns,) = row.columns.tolist()
        if len(columns) > 1 or columns[0] in owned or not row.coefficients[0] > 0:
            continue
        owned.update(columns)
        c, old = printed_decimal(row.coefficients[0]), out.get(k, [[Fraction(0)]])[0][0]
        share = max(old - remainders[columns[0]] / c, Fraction(0))
        remainders[columns[0]] += (share - old) * c
        out[k] = [[share]]
    return out, remainders


# -- points of the dual problem of data ------------------------------------------------------------


def round_dual(
    question: Question,
    data: ExactData,
    w: Array,
    multipliers: Mapping[int, Array],
    units: Sequence[Array],
    *,
    whole: Collection[int] | None = None,
    form: Array | None = None,
    limits: Mapping[int, tuple[int, int]] | None = None,
) -> tuple[list[Fraction], DualPoint]:
    """Exact w and Z_k near these, with ``c + sum_k C_k*(Z_k) = K'R'w`` as far as that goes.

    `w` (rows,); `multipliers`: of blocks and, (1, 1), of linear constraints, by place; `units`: of
    the blocks; `whole`: parameters of bodies that are pushed in every direction; without it all
    are; `form` (n,): c. Then w is exact whatever digits that needs; `limits`: places of two limits
    of a parameter of either sign, which take what is left positive and negative in its column.
    Returns: w; the dual point's y is ``R'w``.
    """
    limits, constraints, count = limits or {}, question.feasible.constraints, len(units)
    limit_places = {place for pair in limits.values() for place in pair}
    Z = {place: round_matrix(M) for place, M in multipliers.items() if place not in limit_places}
    Z |= {place: lift_to_semidefinite(M, units[place]) for place, M in Z.items() if place < count}
    user_multipliers = {place: M for place, M in Z.items() if constraints[place].role == "asked"}
    tied_columns = {j for i, (row, _) in question.elimination.solved.items() for j in (i, *row)}
    tied_columns |= {int(j) for place in user_multipliers for j in constraints[place].columns}
    bodies = [
        (columns, relations)
        for columns, relations in question.face_relations.bodies
        if whole is not None and columns.isdisjoint(tied_columns | {*whole})
    ]
    owned = {int(j) for c in constraints if c.role != "asked" for j in c.columns} | {*limits}
    unowned = [j for j in question.elimination.roots.tolist() if j not in owned]
    rows = [row for row, _ in question.reduced_rows]
    targets = DualPoint(question, [Fraction(0)] * len(rows), user_multipliers, form).remainders
    lines = []
    for relation in (r for _, relations in bodies for r in relations):
        # The component of each equation that multipliers on faces cannot match.
        least = NO_PULL * max(map(abs, relation.values()))
        sums = {
            i: sum((c * row[j] for j, c in relation.items() if j in row), Fraction(0))
            for i, row in enumerate(rows)
        }
        pull = {i: total for i, total in sums.items() if abs(total) > least}
        lines += [data.matrix_times(pull)] if pull else []
    right = [Fraction(0)] * len(lines) + [targets[j] for j in unowned]
    lines += [
        data.matrix_times({i: row[j] for i, row in enumerate(rows) if j in row}) for j in unowned
    ]
    weights = _solve_near(lines, right, [printed_decimal(x) for x in w], form is not None)
    y = data.transpose_times(weights)
    faces = {
        place: question.face_relations.faces[frozenset(block.columns.tolist())]
        for place, block in enumerate(question.feasible.blocks)
        if place in Z and block.kind == "semi" and frozenset(block.columns.tolist()) in dict(bodies)
    }
    for place, face in faces.items():
        nearest = face.nearest_coordinates(multipliers[place])
        Z[place] = face.exact_matrix({k: printed_decimal(w) for k, w in nearest.items()})
    remainders = DualPoint(question, y, Z, form).remainders
    Z, remainders = complete_multipliers(question.feasible, Z, remainders, units, faces)
    for j, pair in limits.items():
        if remainders[j]:
            Z[pair[remainders[j] < 0]] = [[abs(remainders[j])]]
    return weights, DualPoint(question, y, Z, form)


def _solve_near(
    lines: Sequence[Sequence[Fraction]],
    right: Sequence[Fraction],
    x: Sequence[Fraction],
    exactly: bool,
) -> list[Fraction]:
    """The x nearby with ``line . x = right``: to 45 digits, or exactly where these are few.

    Iterative refinement, the error in rationals and the correction in doubles; then a few entries
    are moved by an exact solution.
    """
    out = list(x)
    if not any(map(any, lines)):
        return out
    moves = np.array(lines, dtype=np.float64)
    sizes = np.maximum(np.abs(moves).max(axis=1), np.finfo(np.float64).tiny)
    moves /= sizes[:, None]
    inverse = np.linalg.pinv(moves, rcond=REACHED)
    for _ in range(REFINEMENTS):
        errors = [float(dot(line, out) - b) for line, b in zip(lines, right, strict=True)]
        change = inverse @ (np.array(errors) / sizes)
        out = [a - printed_decimal(d) for a, d in zip(out, change, strict=True)]
    if not exactly and any(c.denominator > FEW_DIGITS for line in lines for c in line):
        return out
    _, R, order = linalg.qr(moves.T, mode="economic", pivoting=True)
    pivots = np.abs(np.diagonal(R))
    rows = order[: int((pivots > REACHED * pivots[0]).sum())].tolist()
    solution = solve_linear([lines[k] for k in rows], [right[k] for k in rows], out)
    return out if solution is None else solution
