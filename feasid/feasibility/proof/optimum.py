"""A rational proof that no feasible model fits, or lies, much better than the one that was found.

For ``minimise |R K delta - rho|`` over the feasible set take any w and any Z_k >= 0 with
``K'R'w = sum_k C_k*(Z_k)``. Every feasible delta has

    |w| |R K delta - rho| >= w.(R K delta - rho) >= -w.rho - sum_k <C_k, Z_k>.

The problem is the one that the caller stated: without the ridge, the pull towards a reference and
the margin of our own, which keep solvers and answers tame. Their multipliers are therefore those
of a program of its own, moved until they cancel, and a little kinetic energy is added, which is
positive definite exactly where a body's multiplier can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.arrays import Array
from feasid.exact.numbers import decimal, text
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.constraints.units import Units, assemble
from feasid.feasibility.program import solve
from feasid.feasibility.program.program import Program, SolverAnswer
from feasid.feasibility.program.scaled import normalised
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.faces import Face, kinetic_energy
from feasid.feasibility.proof.question import Exact, Question, adjoint, cost
from feasid.feasibility.proof.rationals import corrected, lifted, rounded

ENERGY = (0.0, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
"""Shares of kinetic energy to add, of the largest multiplier: the best bound is taken."""

NEGLIGIBLE = 1e-9
"""Prices of bounds below this share of the largest are a solver's zeros."""

LIMIT = 10**8
"""Mass [kg] and joint terms up to which bounds are proved that need a limit."""

DIGITS = 15
"""Decimal digits of a bound."""

STEPS, CLOSE = 200, 1e-13
"""Alternating projections on what cancels and on what is positive, and when they are close."""

UNSEEN = 1e-12
"""Singular value, relative to the largest, below which data say nothing about a direction."""


@dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers in doubles, SI: w of the data, Z of blocks, prices of numbers."""

    w: Array
    blocks: list[Array]
    prices: Array


def optimality(
    question: Question,
    R: Array,
    rho: Array,
    delta: Array,
    scale: Units,
    aim: Array,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None = None,
) -> Certificate | None:
    """The proof of a lower bound for ``|R K delta - rho|^2``, with `delta` beside it.

    Parameters
    ----------
    question : Question
        Without values; its rows are K.
    R, rho : ndarray, shapes (rows, nb) and (rows,)
    delta : ndarray, shape (n,)
        The answer, strictly feasible.
    scale : Units
    aim : ndarray, shape (n,)
        Where the solver starts from.
    solvers : sequence of (solver, form, backend), optional

    Returns
    -------
    Certificate or None
        None when nothing was proved.
    """
    K = np.zeros((len(question.rows), question.feasible.size))
    for row, entries in zip(K, question.rows, strict=True):
        for j, c in entries.items():
            row[j] = float(c)
    dual = _solved(question, R @ K, rho, scale, aim, solvers)
    if dual is None:
        return None
    prover = _Bounds(question, R, rho, K, scale)
    return prover.best(dual, delta)


def _solved(
    question: Question,
    A: Array,
    b: Array,
    scale: Units,
    aim: Array,
    solvers: Sequence[tuple[str, str, solve.Backend]] | None,
) -> Dual | None:
    """Multipliers of the problem as it was stated."""
    feasible = question.door.inside.with_margin(question.margin)
    door = question.door
    inner = assemble(feasible, scale.mass, scale.length, scale.parameters[door.roots])
    rows = A @ door.T * inner.parameters
    target = b - A @ door.fixed
    size = float(np.linalg.norm(rows, 2)) or 1.0
    F, f, G, h = normalised(feasible, inner)
    program = Program(
        A=rows / size,
        b=target / size,
        c=np.zeros(rows.shape[1]),
        F=F,
        f=f,
        sizes=tuple(block.size for block in feasible.blocks),
        G=G,
        h=h,
    )

    def judge(raw: SolverAnswer) -> solve.Judgement:
        enough = len(raw.multipliers) == len(feasible.blocks) and len(raw.prices) == len(h)
        error = float(np.linalg.norm(program.A @ raw.x - program.b))
        return solve.Judgement(enough, enough, error, "multipliers" if enough else "no multipliers")

    ladder = (solve.default_solvers() if solvers is None else tuple(solvers))[:1]
    raw, _ = solve.run(program, judge, ladder)
    if raw is None:
        return None
    blocks = [
        _projected(Z) / np.outer(u, u) * size
        for Z, u in zip(raw.multipliers, inner.blocks, strict=True)
    ]
    prices = np.maximum(raw.prices, 0.0) / inner.linear * size
    error = rows @ raw.x - target
    w = error / (float(np.linalg.norm(error)) or 1.0)
    return Dual(w, blocks, prices)


def _projected(Z: Array) -> Array:
    values, vectors = np.linalg.eigh(0.5 * (Z + Z.T))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


_Found = tuple[Fraction, list[Fraction], dict[int, Exact], list[Fraction]]


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Makes multipliers exact, for one set of data."""

    question: Question
    R: Array
    rho: Array
    K: Array
    scale: Units

    def best(self, dual: Dual, delta: Array) -> Certificate | None:
        """The certificate with the highest bound."""
        question = self.question
        zeros = [Fraction(0)] * len(self.rho), [Fraction(0)] * len(self.K)
        best: _Found = (Fraction(0), zeros[0], {}, zeros[1])
        for mixed in self._mixtures(dual):
            found = self._exact(mixed)
            if found is not None and found[0] <= best[0]:
                break  # more energy than is needed
            best = found or best
        floor, weights, Z, y = best
        rows = [[[int(i), text(decimal(row[i]))] for i in np.flatnonzero(row)] for row in self.R]
        data = {"rows": rows, "target": [text(decimal(x)) for x in self.rho], "rest": "0"}
        _, remains = question.tied(question.left(y, Z))
        limit = question.limit(LIMIT) if any(remains) else None
        point = [decimal(x) for x in delta]
        return question.bound(data, weights, Z, floor, point, y, limit)

    def _mixtures(self, dual: Dual) -> Iterator[Dual]:
        """The multipliers moved onto faces, with more and more kinetic energy."""
        inside, units = self.question.door.inside, self._units
        energy = kinetic_energy(self.question.robot, self._blocks, units)
        worth = dual.prices * self._numbers
        bought = np.flatnonzero(worth > NEGLIGIBLE * worth.max(initial=0.0))
        # A bound that takes part pushes the bodies it touches in ways that no motion does.
        asked = [inside.linear[i] for i in bought if inside.linear[i].role == "asked"]
        touched = {int(j) for constraint in asked for j in constraint.columns}
        reached = {
            k: face
            for k, (E, u) in enumerate(zip(energy, units, strict=True))
            if (face := Face.of(E, u)) is not None
        }
        faces = {
            k: face
            for k, face in reached.items()
            if touched.isdisjoint(inside.blocks[k].columns.tolist())
        }
        start = self._moved(dual, faces)
        alone = Dual(np.zeros(len(dual.w)), energy, self._powers(energy))
        motion = self._moved(alone, reached)
        sizes = [np.abs(Z * np.outer(u, u)).max() for Z, u in zip(start.blocks, units, strict=True)]
        for share in (share * max(sizes, default=0.0) for share in ENERGY):
            pairs = zip(start.blocks, motion.blocks, strict=True)
            yield Dual(start.w + share * motion.w, [Z + share * E for Z, E in pairs], start.prices)

    @cached_property
    def _blocks(self) -> list[Block]:
        """The blocks inside the door as the question has them."""
        constraints = self.question.feasible.constraints
        places = _places(self.question)[: len(self.question.door.inside.blocks)]
        return [b for b in (constraints[k] for k in places) if isinstance(b, Block)]

    @cached_property
    def _units(self) -> list[Array]:
        """Of the blocks inside the door."""
        places = _places(self.question)[: len(self.question.door.inside.blocks)]
        return [self.scale.blocks[k] for k in places]

    @cached_property
    def _numbers(self) -> Array:
        """Units of the linear constraints inside the door."""
        inside, first = self.question.door.inside, len(self.question.feasible.blocks)
        places = _places(self.question)[len(inside.blocks) :]
        return np.array([self.scale.linear[k - first] for k in places], dtype=np.float64)

    def _signs(self, left: Sequence[Fraction], owned: set[int]) -> dict[int, Exact]:
        """Multipliers of the joint terms' signs, which take what is left in their columns."""
        out: dict[int, Exact] = {}
        for i, constraint in enumerate(self.question.feasible.linear):
            column = int(constraint.columns[0])
            if constraint.role == "sign" and column not in owned and left[column] < 0:
                out[count_whole(self.question) + i] = [[-left[column]]]
        return out

    def _powers(self, energy: list[Array]) -> Array:
        """Multipliers of the joint terms' signs that go with kinetic energy.

        Of a drive inertia what the motion gives it, of friction any that is positive.
        """
        inside, door = self.question.door.inside, self.question.door
        unit = self.scale.parameters[door.roots]
        pull = np.zeros(len(unit))
        for block, E in zip(inside.blocks, energy, strict=True):
            np.add.at(pull, block.columns, np.einsum("cij,ij->c", block.basis, E))
        drives = [i for i, c in enumerate(inside.linear) if c.role == "sign"]
        matrix = inside.linear_matrix[drives] * unit
        both = np.hstack([self._rows.T, -matrix.T])
        given = np.linalg.lstsq(both, pull * unit, rcond=UNSEEN)[0][len(self.rho) :]
        out = np.zeros(len(inside.linear))
        for i, power in zip(drives, given, strict=True):
            _, symbol = inside.names[int(inside.linear[i].columns[0])]
            out[i] = max(power, 0.0) if symbol == "Ia" else 1.0 / self._numbers[i]
        return out

    @cached_property
    def _rows(self) -> Array:
        """R K over what is inside the door, in units."""
        door = self.question.door
        return np.asarray((self.R @ self.K @ door.T) * self.scale.parameters[door.roots])

    def _moved(self, dual: Dual, faces: Mapping[int, Face]) -> Dual:
        """The nearest multipliers that cancel, bodies' on what their motion can reach."""
        inside, door = self.question.door.inside, self.question.door
        unit = self.scale.parameters[door.roots]
        columns, point = [self._rows.T], [dual.w]
        for k, (block, Z) in enumerate(zip(inside.blocks, dual.blocks, strict=True)):
            face = faces.get(k) or Face.whole(self._units[k])
            worth = np.array([face.size(a, b) for a, b in face.pairs])
            part = np.zeros((len(unit), len(face.pairs)))
            part[block.columns] = -unit[block.columns][:, None] * face.forms(block.basis) / worth
            W = face.coordinates(Z)
            columns.append(part)
            point.append(np.array([W[pair] for pair in face.pairs]) * worth)
        bought = np.flatnonzero(dual.prices > 0)
        sizes = np.array(
            [1.0 / max(np.abs(row * unit).max(), 1e-300) for row in inside.linear_matrix]
        )
        columns.append(-(inside.linear_matrix * unit * sizes[:, None])[bought].T)
        point.append(dual.prices[bought] / sizes[bought])
        # What a solver says of Z is more precise than its point, of which w is the residual.
        pull = -sum(
            (c @ p for c, p in zip(columns[1:], point[1:], strict=True)), np.zeros(len(unit))
        )
        rows = self._rows
        point[0] = point[0] + np.linalg.lstsq(rows.T, pull - rows.T @ point[0], rcond=UNSEEN)[0]
        E, moved = np.hstack(columns), np.concatenate(point)
        inverse = np.linalg.pinv(E, rcond=UNSEEN)
        parts = [faces.get(k) or Face.whole(unit_of) for k, unit_of in enumerate(self._units)]
        for _ in range(STEPS):
            moved = moved - inverse @ (E @ moved)
            inside_cone = _clipped(moved, len(dual.w), parts)
            if np.abs(inside_cone - moved).max() <= CLOSE * np.abs(moved).max():
                break
            moved = inside_cone
        for _ in range(2):  # the second step removes the rounding of the first
            moved = moved - inverse @ (E @ moved)
        at = len(dual.w)
        blocks = []
        for k, unit_of in enumerate(self._units):
            face = faces.get(k) or Face.whole(unit_of)
            W = {p: moved[at + i] / face.size(*p) for i, p in enumerate(face.pairs)}
            blocks.append(face.floating(W))
            at += len(face.pairs)
        prices = np.zeros_like(dual.prices)
        prices[bought] = np.maximum(moved[at:], 0.0) * sizes[bought]
        return Dual(moved[: len(dual.w)], blocks, prices)

    def _exact(self, dual: Dual) -> _Found | None:
        """The bound that these multipliers prove, weights, multipliers and y; exact."""
        question, inside = self.question, self.question.door.inside
        w, blocks, prices = dual.w, dual.blocks, dual.prices
        places = _places(question)
        weights = [decimal(x) for x in w]
        y = [Fraction(0)] * len(self.K)
        for r, i in zip(*np.nonzero(self.R), strict=True):
            y[i] += decimal(self.R[r, i]) * weights[r]
        Z: dict[int, Exact] = {}
        count = len(inside.blocks)
        worth = prices * self._numbers
        for i in np.flatnonzero(worth > NEGLIGIBLE * worth.max(initial=0.0)):
            if inside.linear[i].role != "sign":  # those take what is left in their own columns
                Z[places[count + int(i)]] = [[decimal(prices[i])]]
        constraints = question.feasible.constraints
        _, left = question.tied(question.left(y, Z))
        owned: set[int] = set()
        for k, numeric in enumerate(blocks):
            place = places[k]
            block = constraints[place]
            assert isinstance(block, Block)
            unit = self.scale.blocks[place]
            columns = set(block.columns.tolist())
            if owned & columns or inside.blocks[k].kind == "matrix":
                Z[place] = lifted(rounded(numeric), unit)
                continue
            owned |= columns
            start = rounded(numeric)
            parts = dict(adjoint(block, start))
            remainder = [-left[j] - parts[j] for j in block.columns.tolist()]
            Z[place] = lifted(corrected(block.basis, start, remainder), unit)
        Z |= self._signs(left, owned)
        tied, remains = question.tied(question.left(y, Z))
        total = question.constants(Z, tied)
        if any(remains):
            total += cost(question.feasible.names, remains, question.limit(LIMIT))
        least = -total - sum(
            (a * decimal(b) for a, b in zip(weights, self.rho, strict=True)), Fraction(0)
        )
        square = sum((x * x for x in weights), Fraction(0))
        if least <= 0 or not square:
            return None
        return _rounded_down(least * least / square), weights, Z, y


def _clipped(moved: Array, at: int, faces: list[Face]) -> Array:
    """Multipliers without their negative eigenvalues, prices without their negative ones."""
    out = moved.copy()
    for face in faces:
        rank = len(face.lead)
        rows, columns = np.triu_indices(rank)
        W = np.zeros((rank, rank))
        W[rows, columns] = W[columns, rows] = moved[at : at + len(rows)]
        out[at : at + len(rows)] = _projected(W)[rows, columns]
        at += len(rows)
    out[at:] = np.maximum(out[at:], 0.0)
    return out


def count_whole(question: Question) -> int:
    """How many matrices come before the numbers among a question's constraints."""
    return len(question.feasible.blocks)


def _places(question: Question) -> list[int]:
    """Which of the question's constraints are inside its door."""
    T = question.door.T
    return [k for k, c in enumerate(question.feasible.constraints) if T[c.columns].any()]


def _rounded_down(number: Fraction) -> Fraction:
    """A decimal of `DIGITS` digits that is not larger."""
    if number <= 0:
        return Fraction(0)
    places = (
        DIGITS - len(str(int(number))) if number >= 1 else DIGITS + int(-np.log10(float(number)))
    )
    scale = 10 ** max(places, 0)
    return Fraction(number * scale // 1, scale)
