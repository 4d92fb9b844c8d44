"""From a solver's rounded multipliers to exact ones.

A proof needs ``sum_k C_k*(Z_k) = K'y`` without any error. Choosing y first and asking each body's
matrix to take what is left of K'y in the body's columns makes it so: a 4x4 pseudo-inertia has ten
parameters and its multiplier ten entries, so Z_k is fixed exactly; a 6x6 matrix leaves freedom.

What can then fail is that some Z_k is not positive semidefinite, by a rounding. Near the base most
bodies can only move in a few ways, and everything in the row space of K then has a multiplier that
is singular in the other directions. So multipliers are moved onto faces of the cone: those on
which they seem to lie, or what the bodies' motion can reach, then mixed with a little kinetic
energy, which is positive definite exactly there. Where even the rounding of K itself is in the way
(joint axes that are no decimals), a multiple of the identity is added, and the proof pays for it:
it speaks of all parameters below an enormous size instead of all parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.elimination import Equation, Unknown, solve_near
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.proof.candidates import Candidate
from feasid.feasibility.proof.energies import precise
from feasid.feasibility.proof.faces import Face, kinetic_energy
from feasid.feasibility.proof.presolve import Presolved
from feasid.feasibility.proof.question import Exact
from feasid.feasibility.proof.rationals import (
    adjoint,
    corrected,
    definite,
    lifted,
    projected,
    rounded,
)
from feasid.feasibility.proof.refined import Balance, reached
from feasid.robot.known import Row

ENERGY_SHARES = (0.3, 1e-2, 1e-5)
"""Shares of kinetic energy to try, as a fraction of what the proof can afford."""

NOTHING = 1e-13
"""Combinations of this relative size are the rounding of zeros."""

NEGLIGIBLE = 1e-7
"""Multipliers of bounds below this fraction of the largest are a solver's zeros."""

MOST_UNKNOWNS = 400
"""Of exact elimination for faces as they are seen; beyond, it would take minutes."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Exact multipliers: y by equation of the question, Z by place of its constraint."""

    y: list[Fraction]
    Z: dict[int, Exact]


@dataclass(frozen=True, eq=False)
class Prover:
    """Tries to turn a solver's multipliers into exact ones, for one question.

    Attributes
    ----------
    problem : Presolved
    scale : Units
        Of what remains.
    """

    problem: Presolved
    scale: Units

    @property
    def feasible(self) -> FeasibleSet:
        """The constraints that remain."""
        return self.problem.feasible

    @cached_property
    def rows(self) -> list[Row]:
        """Balance that remain, exactly, by place among what remains."""
        place = {int(j): k for k, j in enumerate(self.problem.door.roots)}
        reduced = self.problem.reduced
        return [
            {place[j]: c for j, c in reduced[i].items() if j in place} for i in self.problem.kept
        ]

    @cached_property
    def energy(self) -> list[Array]:
        """Kinetic energy of random motions as multipliers of the inertia blocks, scaled to 1."""
        constraints = self.problem.question.feasible.constraints
        count = len(self.feasible.blocks)
        blocks = [
            b for b in (constraints[k] for k in self.problem.places[:count]) if isinstance(b, Block)
        ]
        return kinetic_energy(self.problem.question.robot, blocks, self.scale.blocks)

    def from_solver(self, multipliers: tuple[Array, ...], prices: Array) -> Iterator[Multipliers]:
        """Exact multipliers near those that a solver returned, in units; simple proofs first."""
        count = len(self.feasible.linear)
        if len(multipliers) != len(self.feasible.blocks) or len(prices) < count:
            return
        blocks = [projected(Z, u) for Z, u in zip(multipliers, self.scale.blocks, strict=True)]
        si = np.maximum(prices[:count], 0.0) / self.scale.linear
        if all(np.isfinite(Z).all() for Z in blocks) and np.isfinite(si).all():
            found = (self._exact(candidate) for candidate in self._candidates(blocks, si))
            yield from (multipliers for multipliers in found if multipliers is not None)

    def _candidates(self, blocks: list[Array], prices: Array) -> Iterator[Candidate]:
        """Multipliers to try, first without a size limit, then with one."""
        nothing = np.zeros_like(prices)
        if self._total(self.energy, nothing) < 0:
            # Motions whose energy would be negative.
            alone = self._settled(self.energy, nothing, self._faces)
            yield alone
            yield alone.with_limit()
        yield from self._as_seen(blocks, prices)
        # A bound that takes part pushes the bodies it touches in ways that no motion does.
        touched = {int(j) for i in self._bought(prices) for j in self.feasible.linear[i].columns}
        faces = {
            k: face
            for k, face in self._faces.items()
            if touched.isdisjoint(self.feasible.blocks[k].columns.tolist())
        }
        reached = [faces[k].reach(Z) if k in faces else Z for k, Z in enumerate(blocks)]
        start = self._settled(reached, prices, faces)
        energy = self._settled(self.energy, nothing, self._faces)
        whole = abs(self._total(energy.blocks, nothing)) or 1.0
        share = abs(self._total(start.blocks, prices)) / whole
        mixtures = [*(start.mixed(energy, part * share) for part in ENERGY_SHARES), start]
        yield from mixtures
        for mixture in mixtures:
            yield mixture.with_limit()
        whole_y = self._combination(self._pull(blocks, prices))
        yield Candidate(blocks, whole_y, prices, {}, True)

    def _as_seen(self, blocks: list[Array], prices: Array) -> Iterator[Candidate]:
        """Every multiplier on the face on which it seems to lie; most of them vanish."""
        units = self.scale.blocks
        sizes = [np.abs(Z * np.outer(u, u)).max() for Z, u in zip(blocks, units, strict=True)]
        largest = max([*sizes, *(prices * self.scale.linear)], default=0.0)
        faces = {
            k: face
            for k, (Z, unit) in enumerate(zip(blocks, units, strict=True))
            if (face := Face.seen(Z, unit, largest)) is not None
        }
        unknowns = len(self.rows) + sum(len(f.pairs) for f in faces.values())
        if largest > 0 and unknowns <= MOST_UNKNOWNS:
            y = self._combination(self._pull(blocks, prices))
            yield Candidate(blocks, y, prices, faces, False)

    def _settled(self, blocks: list[Array], prices: Array, faces: Mapping[int, Face]) -> Candidate:
        """The candidate with these multipliers, moved onto its faces."""
        y, (_, sizes) = self._combination(self._pull(blocks, prices)), self._inverse
        return Candidate(blocks, y, prices, faces, False).settled(
            self.feasible, self.problem.K / sizes[:, None], sizes, self.scale.parameters
        )

    def _bought(self, prices: Array) -> list[int]:
        """Linear constraints that own no column and take part in the proof."""
        worth = prices * self.scale.linear
        owners = set(self._owners.values())
        return [
            i for i in range(len(prices)) if i not in owners and worth[i] > NEGLIGIBLE * worth.max()
        ]

    def _total(self, blocks: list[Array], prices: Array) -> float:
        """``<C, Z> + prices.constants + y.beta``, which a proof needs to be negative."""
        pull = self._pull(blocks, prices)
        constants = sum(
            float(np.sum(b.constant * Z)) for b, Z in zip(self.feasible.blocks, blocks, strict=True)
        )
        linear = float(prices @ self.feasible.linear_constant)
        return constants + linear + float(self._combination(pull) @ self.problem.beta)

    def _combination(self, pull: Array) -> Array:
        """The y for which K'y is nearest to `pull`, in units; shape (nb,).

        Reading it off the leading columns would do if K were always well conditioned.
        """
        inverse, sizes = self._inverse
        y = inverse @ (self.scale.parameters * pull)
        return np.where(np.abs(y) < NOTHING * np.abs(y).max(initial=0.0), 0.0, y) / sizes

    @cached_property
    def _inverse(self) -> tuple[Array, Array]:
        """Pseudo-inverse of K' in units with its rows scaled, and the rows' sizes."""
        scaled = self.problem.K * self.scale.parameters
        sizes = np.linalg.norm(scaled, axis=1)
        return np.linalg.pinv((scaled / sizes[:, None]).T), sizes

    def _pull(self, blocks: list[Array], prices: Array) -> Array:
        """``sum_k C_k*(Z_k)`` over all parameters, shape (n,)."""
        out = np.asarray(self.feasible.linear_matrix.T @ prices, dtype=np.float64)
        for block, Z in zip(self.feasible.blocks, blocks, strict=True):
            np.add.at(out, block.columns, np.einsum("cij,ij->c", block.basis, Z))
        return out

    def _exact(self, candidate: Candidate) -> Multipliers | None:
        """Round what is free, then let every owner take exactly what is left in its columns."""
        if candidate.limited and self.problem.question.energies is not None:
            return self._refined(candidate)
        blocks, prices = candidate.blocks, candidate.prices
        faces = {} if candidate.limited else candidate.faces
        multipliers: dict[int, Exact] = {
            k: definite(blocks[k]) for k in self._extra_blocks if k not in faces
        }
        solved = self._solved(
            {i: decimal(v) for i, v in enumerate(candidate.y)},
            {i: decimal(prices[i]) for i in self._bought(prices)},
            blocks,
            multipliers,
            faces,
        )
        if solved is None:
            return None
        y, shares, inside = solved
        multipliers |= inside
        left = self._left(y)
        for j, other in enumerate(self._others(multipliers, shares)):
            left[j] -= other
        for k, block in enumerate(self.feasible.blocks):
            if k in multipliers:
                continue
            columns, start = block.columns.tolist(), rounded(blocks[k])
            parts = adjoint(block.basis, start)
            remainder = [left[j] - part for j, part in zip(columns, parts, strict=True)]
            taken = corrected(block.basis, start, remainder)
            multipliers[k] = lifted(taken, self.scale.blocks[k]) if candidate.limited else taken
        for j, i in self._owners.items():
            share = left[j] / decimal(self.feasible.linear[i].coefficients[0])
            shares[i] = max(share, Fraction(0)) if candidate.limited else share
        return self._assembled(y, multipliers, shares)

    def _refined(self, candidate: Candidate) -> Multipliers:
        """The same to sixty digits, where angles make K irrational."""
        energies, feasible = self.problem.question.energies, self.feasible
        assert energies is not None
        constraints, spans = self.problem.question.feasible.constraints, []
        for k, unit in enumerate(self.scale.blocks):
            block = constraints[self.problem.places[k]]
            assert isinstance(block, Block)
            face = candidate.faces.get(k)
            span = reached(energies, block, unit, len(face.lead)) if face else None
            spans.append(precise(np.eye(len(unit))) if span is None else span)
        bought, prices = self._bought(candidate.prices), candidate.prices
        worth = prices * self.scale.linear
        taken = {j for j, i in self._owners.items() if worth[i] > NEGLIGIBLE * worth.max()}
        linear = [
            dict(zip(c.columns.tolist(), map(decimal, c.coefficients), strict=True))
            for c in (feasible.linear[i] for i in bought)
        ]
        columns = [j for j in range(feasible.size) if j not in taken]
        system = Balance.of(
            self.rows, feasible.blocks, spans, linear, columns, self.scale.parameters
        )
        y, Z, z = system.solved(system.start(candidate.y, candidate.blocks, prices[bought]))
        shares = dict(zip(bought, z, strict=True))
        left = self._left(y)
        for j in taken:
            i = self._owners[j]
            share = left[j] / decimal(feasible.linear[i].coefficients[0])
            shares[i] = max(share, Fraction(0))
        return self._assembled(y, dict(enumerate(Z)), shares)

    def _assembled(
        self, y: list[Fraction], multipliers: dict[int, Exact], shares: Mapping[int, Fraction]
    ) -> Multipliers:
        """In terms of the question, whose fixed parameters take what is left there."""
        places, count = self.problem.places, len(self.feasible.blocks)
        Z = {places[k]: value for k, value in multipliers.items() if any(map(any, value))}
        Z |= {places[count + i]: [[share]] for i, share in shares.items() if share}
        kept = dict(zip(self.problem.kept, y, strict=True))
        return Multipliers(self.problem.lifted(kept, Z), Z)

    def _left(self, y: list[Fraction]) -> list[Fraction]:
        """K'y."""
        out = [Fraction(0)] * self.feasible.size
        for row, factor in zip(self.rows, y, strict=True):
            for j, value in row.items():
                out[j] += factor * value
        return out

    def _others(
        self, multipliers: Mapping[int, Exact], shares: Mapping[int, Fraction]
    ) -> list[Fraction]:
        """What constraints that are chosen already contribute to each column, shape (n,)."""
        out = [Fraction(0)] * self.feasible.size
        for i, share in shares.items():
            constraint = self.feasible.linear[i]
            for j, c in zip(constraint.columns.tolist(), constraint.coefficients, strict=True):
                out[j] += share * decimal(c)
        for k, Z in multipliers.items():
            block = self.feasible.blocks[k]
            for j, part in zip(block.columns.tolist(), adjoint(block.basis, Z), strict=True):
                out[j] += part
        return out

    def _solved(
        self,
        y: Mapping[int, Fraction],
        shares: Mapping[int, Fraction],
        blocks: list[Array],
        multipliers: Mapping[int, Exact],
        faces: Mapping[int, Face],
    ) -> tuple[list[Fraction], dict[int, Fraction], dict[int, Exact]] | None:
        """y, shares and Z = V W V' such that faces and columns without owner come out exactly.

        In every such column: (K'y)_j - sum of shares a_ij - <B_j, V W V'> = what others add.
        """
        others = self._others(multipliers, {})
        columns: list[dict[Unknown, Fraction]] = [{} for _ in others]
        for i, equation in enumerate(self.rows):
            for j, coefficient in equation.items():
                columns[j]["y", i] = coefficient
        for i in shares:
            constraint = self.feasible.linear[i]
            for j, c in zip(constraint.columns.tolist(), constraint.coefficients, strict=True):
                columns[j]["share", i] = columns[j].get(("share", i), Fraction(0)) - decimal(c)
        start: dict[Unknown, Fraction] = {("y", i): v for i, v in y.items()}
        start.update({("share", i): v for i, v in shares.items()})
        for k, face in faces.items():
            block = self.feasible.blocks[k]
            for (a, b), entry in face.coordinates(blocks[k]).items():
                start["W", k, a, b] = decimal(entry)
            for j, basis in zip(block.columns.tolist(), block.basis, strict=True):
                for (a, b), value in face.form(basis).items():
                    columns[j]["W", k, a, b] = -value
        taken = {
            j
            for k, b in enumerate(self.feasible.blocks)
            if k not in faces and k not in multipliers
            for j in b.columns.tolist()
        }
        equations: list[Equation] = [
            (columns[j], others[j])
            for j in range(self.feasible.size)
            if j not in taken and j not in self._owners
        ]
        solution = solve_near(equations, start, lambda u: self._size(u, faces))
        if solution is None:
            return None
        inside = {
            k: face.matrix({(a, b): solution["W", k, a, b] for a, b in face.pairs})
            for k, face in faces.items()
        }
        exact_shares = {i: solution["share", i] for i in shares}
        return [solution["y", i] for i in y], exact_shares, inside

    def _size(self, unknown: Unknown, faces: Mapping[int, Face]) -> float:
        """What one unit of an unknown of `_solved` is worth, in the problem's units."""
        if unknown[0] == "y":
            return float(self._inverse[1][unknown[1]])
        if unknown[0] == "share":
            return float(self.scale.linear[unknown[1]])
        _, k, a, b = unknown
        return faces[k].size(a, b)

    @cached_property
    def _faces(self) -> dict[int, Face]:
        """For blocks whose body cannot move in every way, how it can."""
        faces = {}
        for k, energy in enumerate(self.energy):
            face = None if k in self._extra_blocks else Face.of(energy, self.scale.blocks[k])
            if face is not None:
                faces[k] = face
        return faces

    @cached_property
    def _extra_blocks(self) -> frozenset[int]:
        """Blocks that do not own their columns: those after the first on a set of columns."""
        seen: set[int] = set()
        extra = set()
        for k, block in enumerate(self.feasible.blocks):
            if seen & set(block.columns.tolist()):
                extra.add(k)
            seen |= set(block.columns.tolist())
        return frozenset(extra)

    @cached_property
    def _owners(self) -> dict[int, int]:
        """For each column outside all blocks the linear row that takes what is left there."""
        taken = {j for b in self.feasible.blocks for j in b.columns.tolist()}
        owners: dict[int, int] = {}
        for i, constraint in enumerate(self.feasible.linear):
            (*columns,) = constraint.columns.tolist()
            if len(columns) == 1 and columns[0] not in taken and constraint.coefficients[0] > 0:
                owners.setdefault(columns[0], i)
        return owners
