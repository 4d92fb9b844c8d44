"""Multipliers of a bound moved until they cancel exactly, so that it holds without a limit.

What motions ask of a body's own parameters, ``K'R'w``, is as many numbers as its multiplier has, so
that the multiplier follows from w. On a face it has fewer, and what is asked must satisfy the
relations of the face; of a parameter that nothing holds, a friction offset, nothing may be asked.
A few weights are moved for these relations, by a system in integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm

import numpy as np
from scipy import linalg

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.exact.elimination import independent, solved
from feasid.exact.integers import over_one
from feasid.exact.numbers import decimal
from feasid.feasibility.proof.data import Data
from feasid.feasibility.proof.presolve import through
from feasid.feasibility.proof.question import Exact, Question
from feasid.feasibility.proof.rationals import corrected
from feasid.feasibility.proof.stated import Faced, Stated

SEEN = 1e-10
"""Pivot, relative to the largest, below which a relation follows from the others."""

NEAR = 1e-9
"""How far a weight may be moved, of the largest: the relations nearly hold before."""

Relation = Mapping[int, Fraction]


def cancelled(
    question: Question, data: Data, stated: Stated, w: Sequence[Fraction], Z: Mapping[int, Exact]
) -> tuple[list[Fraction], dict[int, Exact]] | None:
    """Multipliers near w and Z with ``K'R'w = sum_k <B_k, Z_k>``; None where that fails.

    Parameters
    ----------
    question : Question
    data : Data
    stated : Stated
        Says on what faces bodies are.
    w : sequence of Fraction
        Weights of the data's rows.
    Z : mapping of int to exact matrices
        By place of the constraint.
    """
    whole, roots = question.feasible.constraints, question.door.roots.tolist()
    bodies = [_Own.of(m, roots) for m in stated.matrices if whole[m.place].role != "asked"]
    signs = {int(c.columns[0]): k for k, c in enumerate(whole) if c.role == "sign"}
    held = {j for own in bodies for j in own.columns} | signs.keys()
    relations: list[Relation] = [relation for own in bodies for relation in own.relations]
    relations += [{j: Fraction(1)} for j in roots if j not in held]
    nothing = [Fraction(0)] * len(question.rows)
    _, taken = question.tied(question.left(nothing, Z))
    weights = _moved(question, data, w, [(r, _along(r, taken)) for r in relations])
    if weights is None:
        return None
    _, left = question.tied(question.left(data.combination(weights), Z))
    out = dict(Z)
    for j, place in signs.items():
        out[place] = [[Z.get(place, [[Fraction(0)]])[0][0] - left[j]]]
    for own in bodies:
        place = own.face.place
        out[place] = own.taking(Z[place], [-left[j] for j in own.columns])
    if any(definiteness(M) == "indefinite" for M in out.values()):
        return None
    return weights, out


@dataclass(frozen=True, eq=False)
class _Own:
    """What a body's face takes of its own parameters.

    Attributes
    ----------
    face : Faced
    columns : list of int
        The body's unknown parameters.
    forms : list of exact matrices
        ``V' B_j V`` by column; empty where the face is the whole cone of an ordinary body.
    lead : list of int
        Places of columns whose forms are independent.
    relations : list of Relation
        Combinations of parameters that nothing on the face pulls at.
    """

    face: Faced
    columns: list[int]
    forms: list[Exact]
    lead: list[int]
    relations: list[Relation]

    @classmethod
    def of(cls, face: Faced, roots: Sequence[int]) -> _Own:
        columns = [roots[c] for c in face.block.columns.tolist()]
        if face.V.shape[0] == face.V.shape[1] and face.block.kind != "matrix":
            return cls(face, columns, [], [], [])
        V = face.exact
        forms = [_form(V, B) for B in face.block.basis]
        places = list(combinations_with_replacement(range(face.V.shape[1]), 2))
        lead, relations = independent([[form[a][b] for a, b in places] for form in forms])
        named = [{columns[k]: c for k, c in row.items()} for row in relations]
        return cls(face, columns, forms, lead, list(named))

    def taking(self, Z: Exact, rest: list[Fraction]) -> Exact:
        """Z and the smallest matrix on the face with ``<B_j, .> = rest_j``."""
        if not any(rest):
            return Z
        if not self.forms:
            return corrected(self.face.block.basis, Z, rest)
        some = [self.forms[k] for k in self.lead]
        factors = solved(
            [[_inner(one, two) for two in some] for one in some], [rest[k] for k in self.lead]
        )
        size = range(self.face.V.shape[1])
        pairs = list(zip(factors or (), some, strict=False))
        inner = [[sum((c * F[a][b] for c, F in pairs), Fraction(0)) for b in size] for a in size]
        numbers, over = over_one(x for row in inner for x in row)
        more = self.face.congruent(numbers.reshape(len(inner), -1), over)
        return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(Z, more, strict=True)]


def _form(V: Exact, B: Array) -> Exact:
    places = [(r, c, decimal(B[r, c])) for r, c in zip(*np.nonzero(B), strict=True)]
    size = range(len(V[0]))

    def entry(a: int, b: int) -> Fraction:
        return sum((V[r][a] * v * V[c][b] for r, c, v in places), Fraction(0))

    return [[entry(a, b) for b in size] for a in size]


def _inner(one: Exact, two: Exact) -> Fraction:
    return sum(
        (x * y for a, b in zip(one, two, strict=True) for x, y in zip(a, b, strict=True)),
        Fraction(0),
    )


def _along(relation: Relation, values: Sequence[Fraction]) -> Fraction:
    return sum((c * values[j] for j, c in relation.items()), Fraction(0))


def _moved(
    question: Question,
    data: Data,
    w: Sequence[Fraction],
    relations: Sequence[tuple[Relation, Fraction]],
) -> list[Fraction] | None:
    """Weights near w for which ``K'R'w`` has these values along these relations."""
    rows = [through(question.door, row)[0] for row in question.rows]
    lines, values = [], []
    for relation, value in relations:
        line = [
            sum((c * row[j] for j, c in relation.items() if j in row), Fraction(0)) for row in rows
        ]
        scale = lcm(*(c.denominator for c in line))
        if any(line):
            lines.append([int(c * scale) for c in line])
            values.append(value * scale * 10 ** data.places[0])
        elif value:
            return None
    if not lines:
        return list(w)
    system = np.array([data.rows.sums(line) for line in lines], dtype=object)
    sizes = [max(map(abs, line)) or 1 for line in system]
    floats = np.array([[x / size for x in line] for line, size in zip(system, sizes, strict=True)])
    kept = _leading(floats.T)
    moved = _leading(floats[kept])
    still = [r for r in range(len(w)) if r not in moved]
    right = [values[k] - sum((int(system[k, r]) * w[r] for r in still), Fraction(0)) for k in kept]
    found = solved([[Fraction(int(system[k, r])) for r in moved] for k in kept], right)
    far = NEAR * max(abs(float(x)) for x in w)
    if found is None or any(abs(float(x - w[r])) > far for r, x in zip(moved, found, strict=True)):
        return None
    out = list(w)
    for r, x in zip(moved, found, strict=True):
        out[r] = x
    return out


def _leading(matrix: Array) -> list[int]:
    """Places of independent columns, as few as there are."""
    _, R, order = linalg.qr(matrix, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(R))
    return [int(k) for k in order[: int((sizes > SEEN * sizes[0]).sum())]]
