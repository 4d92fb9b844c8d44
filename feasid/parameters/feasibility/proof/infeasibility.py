"""Infeasibility certificates: exact multipliers from a solver's approximate ones.

Three attempts, in this order. Multipliers projected on the faces of the cone on which they seem to
lie: most of them vanish, and exact cancellation needs no limit. Mixed with a little kinetic energy
of random motions, which is positive definite exactly where K'y can be, and with the caller's bounds
on masses, on the faces of bodies that cannot move in every way; bounds on masses and centres of
mass widen a face by the directions of masses. The multipliers unchanged, and mixed with others,
without faces. Columns that belong to no body are solved exactly, and the multipliers of bodies take
the remainder (`rounding.complete_multipliers`). Where even the rounding of K is in the way (joint
axes that are not decimal numbers), the proof needs a limit: it covers all parameters below an
enormous size instead of all parameters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.core.exact.numbers import (
    Equation,
    Exact,
    Unknown,
    decimals_to_integers,
    printed_decimal,
    solve_near,
)
from feasid.parameters.feasibility.constraints.affine import SEMI_POWERS
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units
from feasid.parameters.feasibility.proof import rounding
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.facial_reduction import (
    ROUNDED_ZERO,
    VISIBLE,
    Face,
    kinetic_energy_multipliers,
    largest_span_multiplier,
    pull_matrix,
)
from feasid.parameters.feasibility.proof.presolve import PresolvedQuestion
from feasid.parameters.feasibility.proof.question import DualPoint
from feasid.robot.known import Row

INNER_SHARE = 0.3
"""Kinetic energy, and bounds of sizes, that are mixed in, each as a fraction of what the proof can
afford: 0.01 proves the same of 137 random infeasible problems."""

NEGLIGIBLE_PRICE = 1e-7
"""Multipliers of bounds below this fraction of the largest are a solver's zeros."""

ROUNDED_EQUATION = 1e-30
"""Share of an equation's coefficients that is the rounding of K, which has 45 digits there."""

MAX_UNKNOWNS = 400  #: Largest size of exact elimination for faces; larger ones would take minutes.


@dataclass(frozen=True, eq=False)
class InfeasibilityProver:
    """Turns a solver's multipliers into exact ones, for one question."""

    problem: PresolvedQuestion
    scale: Units  #: Of what remains.

    @property
    def feasible(self) -> FeasibleSet:
        """The constraints that remain."""
        return self.problem.feasible

    def from_solver(self, multipliers: tuple[Array, ...], prices: Array) -> Iterator[DualPoint]:
        """Exact multipliers near those that a solver returned, in units; simple proofs first."""
        count = len(self.feasible.linear)
        if len(multipliers) != len(self.feasible.blocks) or len(prices) < count:
            return
        blocks = [
            rounding.project_to_semidefinite(Z, u)
            for Z, u in zip(multipliers, self.scale.blocks, strict=True)
        ]
        si = np.maximum(prices[:count], 0.0) / self.scale.linear
        if not (all(np.isfinite(Z).all() for Z in blocks) and np.isfinite(si).all()):
            return
        question, nothing = self.problem.question, np.zeros_like(si)
        bodies = [question.feasible.blocks[k] for k in self.problem.places[: len(blocks)]]
        energy = kinetic_energy_multipliers(question.robot, bodies, self.scale.blocks)
        afforded = INNER_SHARE * abs(self._proof_value(blocks, si))
        mixed, mixed_prices = blocks, si
        for inner, bounds in ((energy, nothing), self._size_multipliers):
            share = afforded / (abs(self._proof_value(inner, bounds)) or 1.0)
            mixed = [Z + share * E for Z, E in zip(mixed, inner, strict=True)]
            mixed_prices = mixed_prices + share * bounds
        mixed = [
            largest_span_multiplier(Z) if block.inertial and block.powers == SEMI_POWERS else Z
            for Z, block in zip(mixed, self.feasible.blocks, strict=True)
        ]
        faces = self._motion_faces(mixed_prices)
        units, projected = self.scale.blocks, list(mixed)
        for k, face in faces.items():
            square = np.outer(units[k], units[k])
            projected[k] = face.projector @ (mixed[k] * square) @ face.projector / square
        sizes = [np.abs(Z * np.outer(u, u)).max() for Z, u in zip(blocks, units, strict=True)]
        largest = max([*sizes, *(si * self.scale.linear)], default=0.0)
        places = range(len(blocks)) if largest > 0 else ()
        candidates = {
            k: Face.from_multiplier(blocks[k], units[k], VISIBLE * largest) for k in places
        }
        attempts = [
            (blocks, si, {k: face for k, face in candidates.items() if face is not None}),
            (projected, mixed_prices, faces),
            (blocks, si, {}),
            (mixed, mixed_prices, {}),
        ]
        if self._proof_value(energy, nothing) < 0:  # motions whose energy would be negative
            attempts.append((energy, nothing, {}))
        for attempt in attempts:
            proof = self._solve_on_faces(*attempt)
            if proof is not None:
                yield proof

    # -- in doubles --------------------------------------------------------------------------

    @cached_property
    def _size_multipliers(self) -> tuple[list[Array], Array]:
        """Of the caller's bounds on sizes (largest masses) and of bodies, which cancel each other.

        A bound limits sizes from above where positive semidefinite matrices of bodies pull at
        every parameter as the bound does, in the other direction.
        """
        blocks = [np.zeros((b.size, b.size)) for b in self.feasible.blocks]
        prices, units = np.zeros(len(self.feasible.linear)), self.scale.blocks
        for i, row in enumerate(self.feasible.linear):
            weights, pulls = -self.feasible.linear_matrix[i], list[Array]()
            for block in self.feasible.blocks:
                pulls.append(pull_matrix(block, weights[block.columns] * block.inertial))
                weights[block.columns] -= np.einsum("cij,ij->c", block.basis, pulls[-1])
            if np.abs(weights).max() > ROUNDED_ZERO * np.abs(row.coefficients).max():
                continue  # of joint terms, or of none that remains
            scaled = (Z * np.outer(u, u) for Z, u in zip(pulls, units, strict=True) if Z.any())
            if all(np.linalg.eigvalsh(Z)[0] >= -ROUNDED_ZERO * np.abs(Z).max() for Z in scaled):
                prices[i] = 1.0 / self.scale.linear[i]
                blocks = [a + prices[i] * Z for a, Z in zip(blocks, pulls, strict=True)]
        return blocks, prices

    def _priced_constraints(self, prices: Array) -> list[int]:
        """Linear constraints of the proof on several parameters."""
        worth = prices * self.scale.linear
        least = NEGLIGIBLE_PRICE * worth.max(initial=0.0)
        signs = self._columns_of_sign_constraints
        return [i for i in range(len(prices)) if i not in signs and worth[i] > least]

    def _proof_value(self, blocks: list[Array], prices: Array) -> float:
        """``<C, Z> + prices.constants + y.beta``, which a proof needs to be negative."""
        constants = sum(
            float(np.sum(b.constant * Z)) for b, Z in zip(self.feasible.blocks, blocks, strict=True)
        )
        linear = float(prices @ self.feasible.linear_constant)
        combination = self._nearest_combination(blocks, prices)
        return constants + linear + float(combination @ self.problem.beta)

    def _nearest_combination(self, blocks: list[Array], prices: Array) -> Array:
        """The y for which K'y is nearest to ``sum_k C_k*(Z_k)``, in units; shape (nb,).

        Reading it off the leading columns would do if K were always well conditioned.
        """
        pull = np.asarray(self.feasible.linear_matrix.T @ prices, dtype=np.float64)
        for block, Z in zip(self.feasible.blocks, blocks, strict=True):
            np.add.at(pull, block.columns, np.einsum("cij,ij->c", block.basis, Z))
        inverse, sizes = self._pseudo_inverse
        y = inverse @ (self.scale.parameters * pull)
        return np.where(np.abs(y) < ROUNDED_ZERO * np.abs(y).max(initial=0.0), 0.0, y) / sizes

    @cached_property
    def _pseudo_inverse(self) -> tuple[Array, Array]:
        """Pseudo-inverse of K' in units with its rows scaled, and the rows' sizes."""
        scaled = self.problem.K * self.scale.parameters
        sizes = np.linalg.norm(scaled, axis=1)
        return np.linalg.pinv((scaled / sizes[:, None]).T), sizes

    @cached_property
    def _columns_of_sign_constraints(self) -> dict[int, int]:
        """Column, outside all blocks, of each linear constraint on a single parameter."""
        block_columns = {j for b in self.feasible.blocks for j in b.columns.tolist()}
        owners: dict[int, int] = {}
        for i, row in enumerate(self.feasible.linear):
            (*columns,) = row.columns.tolist()
            if len(columns) == 1 and columns[0] not in block_columns and row.coefficients[0] > 0:
                owners.setdefault(columns[0], i)
        return {i: j for j, i in owners.items()}

    # -- in rationals ------------------------------------------------------------------------

    @cached_property
    def _remaining_rows(self) -> list[Row]:
        """Equations that remain, exactly, by place among what remains."""
        place = {int(j): k for k, j in enumerate(self.problem.elimination.roots)}
        reduced = self.problem.question.reduced_rows
        return [
            {place[j]: c for j, c in reduced[i][0].items() if j in place} for i in self.problem.rows
        ]

    def _remainders(self, y: Mapping[int, Fraction], Z: Mapping[int, Exact]) -> list[Fraction]:
        """``sum_k <B_kj, Z_k> - (K'y)_j`` by column that remains; Z_k by place there."""
        question, places = self.problem.question, self.problem.places
        every = [y.get(i, Fraction(0)) for i in range(len(question.rows))]
        remainders = DualPoint(question, every, {places[k]: M for k, M in Z.items()}).remainders
        return [remainders[j] for j in self.problem.elimination.roots.tolist()]

    def _motion_faces(self, prices: Array) -> dict[int, Face]:
        """The faces of bodies that cannot move in every way: K'y is inside of them.

        A constraint of the proof on masses and first moments adds the directions of masses; one
        on second moments may need every direction, so their multipliers are not restricted.
        """
        # Without these faces the published estimates of the WAM (tests/papers) are not refuted, and
        # 2 of 137 random problems: first bodies turn about one or two axes only, and rounding
        # leaves more outside of their faces than the contradiction is worth.
        rows = self.feasible.linear_matrix[self._priced_constraints(prices)]
        body_faces, faces = self.problem.question.face_relations.faces, dict[int, Face]()
        constraints = self.problem.question.feasible.constraints
        for k, block in enumerate(self.feasible.blocks):
            face = body_faces.get(frozenset(constraints[self.problem.places[k]].columns.tolist()))
            masses = np.array(block.powers) == 0
            bounded = block.basis[rows[:, block.columns].any(axis=0)]
            if face is None or bounded[:, ~masses][:, :, ~masses].any():
                continue
            face = replace(face, unit=self.scale.blocks[k])  # K is corrected to it: no other digits
            if len(bounded):
                face = face.with_masses(block)
            if face is not None:
                faces[k] = face
        body_columns = {
            j
            for k, block in enumerate(self.feasible.blocks)
            if k not in faces and block.role != "asked"
            for j in block.columns.tolist()
        }  # of tied bodies, one of which moves in every way
        return {
            k: face
            for k, face in faces.items()
            if body_columns.isdisjoint(self.feasible.blocks[k].columns.tolist())
        }

    def _solve_on_faces(
        self, blocks: list[Array], prices: Array, found: Mapping[int, Face]
    ) -> DualPoint | None:
        """Multipliers on these faces exactly; None where that fails.

        In every column that no body on the whole cone and no sign owns
        ``(K'y)_j - sum of prices a_ij - <B_j, V W V'> = 0`` is solved for y, prices and W.
        """
        units, count = self.scale.blocks, len(blocks)
        unknowns = len(self._remaining_rows) + sum(len(f.index_pairs) for f in found.values())
        if found and unknowns > MAX_UNKNOWNS:
            return None
        Z = {
            k: rounding.lift_to_semidefinite(rounding.round_matrix(blocks[k]), units[k])
            for k in range(count)
            if k not in found and blocks[k].any()
        }
        user_multipliers = {k: M for k, M in Z.items() if self.feasible.blocks[k].role == "asked"}
        solution = self._solve_exactly(
            self._nearest_combination(blocks, prices), prices, blocks, found, user_multipliers
        )
        if solution is None:
            return None
        Z |= {
            k: face.exact_matrix({(a, b): solution["W", k, a, b] for a, b in face.index_pairs})
            for k, face in found.items()
        }
        Z |= {count + i: [[solution["price", i]]] for i in self._priced_constraints(prices)}
        y = {row: solution["y", i] for i, row in enumerate(self.problem.rows)}
        # Fixed parameters take what is left there.
        multipliers, _ = rounding.complete_multipliers(
            self.feasible, Z, self._remainders(y, Z), units
        )
        places = self.problem.places
        return self.problem.lift_multipliers(
            y, {places[k]: M for k, M in multipliers.items() if any(map(any, M))}
        )

    def _solve_exactly(
        self,
        y: Array,
        prices: Array,
        blocks: list[Array],
        faces: Mapping[int, Face],
        asked: Mapping[int, Exact],
    ) -> dict[Unknown, Fraction] | None:
        """The unknowns of `_solve_on_faces`, exactly and as near as possible."""
        columns = [defaultdict[Unknown, Fraction](Fraction) for _ in range(self.feasible.size)]
        start: dict[Unknown, Fraction] = {("y", i): printed_decimal(v) for i, v in enumerate(y)}
        for i, equation in enumerate(self._remaining_rows):
            for j, coefficient in equation.items():
                columns[j]["y", i] = coefficient
        for i in self._priced_constraints(prices):
            start["price", i] = printed_decimal(prices[i])
            row = self.feasible.linear[i]
            for j, c in zip(row.columns.tolist(), row.coefficients, strict=True):
                columns[j]["price", i] -= printed_decimal(c)
        for k, face in faces.items():
            block = self.feasible.blocks[k]
            for (a, b), entry in face.nearest_coordinates(blocks[k]).items():
                start["W", k, a, b] = printed_decimal(entry)
            for j, basis in zip(block.columns.tolist(), block.basis, strict=True):
                for (a, b), value in face.linear_form(basis).items():
                    columns[j]["W", k, a, b] -= value
        remainders = self._remainders({}, asked)
        owned = {*self._columns_of_sign_constraints.values()} | {
            j
            for k, b in enumerate(self.feasible.blocks)
            if k not in faces and k not in asked
            for j in b.columns.tolist()
        }
        free = [j for j in range(self.feasible.size) if j not in owned]
        equations: list[Equation] = [(columns[j], remainders[j]) for j in free]

        def unit(unknown: Unknown) -> float:
            if unknown[0] != "W":
                units = self._pseudo_inverse[1] if unknown[0] == "y" else self.scale.linear
                return float(units[unknown[1]])
            face = faces[unknown[1]]
            return float(np.prod(face.unit[[face.lead[entry] for entry in unknown[2:]]]))

        return solve_near(equations, start, unit, ROUNDED_EQUATION)


# -- the boundary ----------------------------------------------------------------------------------


def prove_boundary(problem: PresolvedQuestion, found: DualPoint, z: Array) -> Certificate | None:
    """The proof that given values lie on the boundary: a point on the face that is left.

    Where <M_k, Z_k> must be zero, ``M_k(delta) Z_k = 0``: linear equations, solved exactly near the
    solver's point.
    """
    question, elimination = problem.question, problem.question.elimination
    if question.margin:
        return None
    constraints, place = question.feasible.constraints, problem.known
    start = {(j,): printed_decimal(x) for j, x in enumerate(problem.elimination.expand(z))}
    start.update({(j,): value for j, value in place.items()})
    equations: list[Equation] = [({(j,): Fraction(1)}, value) for j, value in place.items()]
    values = question.values or ()
    for i in problem.rows:
        equations.append(({(j,): c for j, c in question.rows[i].items()}, values[i]))
    for j, (row, value) in elimination.solved.items():
        equations.append(({(j,): Fraction(1), **{(i,): -c for i, c in row.items()}}, value))
    for k, Z in found.Z.items():
        basis, over = decimals_to_integers(constraints[k].basis)
        constant, beside = decimals_to_integers(np.atleast_2d(constraints[k].constant))
        weights, columns = np.array(Z, dtype=object), constraints[k].columns.tolist()
        forms = (basis @ weights).reshape(len(columns), -1).T / over
        right = -(constant @ weights).ravel() / beside
        rows = ({(j,): c for j, c in zip(columns, form, strict=True) if c} for form in forms)
        equations += [(line, target) for line, target in zip(rows, right, strict=True) if line]
    solved = solve_near(equations, start, lambda _: 1.0)
    if solved is None:
        return None
    return question.certify_boundary(found, [solved[(j,)] for j in range(question.feasible.size)])
