"""From a solver's rounded multipliers to an exact proof that nothing is feasible.

A proof needs ``sum_k C_k*(Z_k) = K'y`` without any error. Choosing y first and asking each body's
matrix to take what is left of K'y in the body's columns makes it so: a 4x4 pseudo-inertia has ten
parameters and its multiplier ten entries, so Z_k is fixed exactly; a 6x6 matrix leaves freedom.

What can then fail is that some Z_k is not positive semidefinite, by a rounding. Near the base most
bodies can only move in a few ways, and everything in the row space of K then has a multiplier that
is singular in the other directions. So multipliers are first projected onto what the bodies' motion
can reach, then mixed with a little kinetic energy, which is positive definite exactly there. Where
even the rounding of K itself is in the way (joint axes that are no decimals), the proof pays for
it: it speaks of all parameters below an enormous size instead of all parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.arrays import Array
from feasid.certificate import definiteness
from feasid.exact.elimination import Equation, Unknown, solve_near
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.program.program import Raw
from feasid.feasibility.proof.candidates import Candidate
from feasid.feasibility.proof.claim import Certificate, Claim, decimal
from feasid.feasibility.proof.faces import Face, kinetic_energy
from feasid.feasibility.proof.rationals import (
    ENORMOUS,
    adjoint,
    corrected,
    definite,
    limited,
    projected,
    rounded,
    shortfall,
    size_weights,
)
from feasid.robot.description import Robot

Exact = list[list[Fraction]]

ENERGY_SHARES = (1e-2, 1e-5)
"""Shares of kinetic energy to try, as a fraction of what the proof can afford."""

NOTHING = 1e-13
"""Combinations of this relative size are the rounding of zeros."""

NEGLIGIBLE = 1e-7
"""Multipliers of bounds below this fraction of the largest are a solver's zeros."""


@dataclass(frozen=True, eq=False)
class Prover:
    """Tries to turn multipliers into proofs, for one claim.

    Attributes
    ----------
    claim : Claim
    K : ndarray, shape (nb, n)
    beta : ndarray, shape (nb,)
    scale : Units
    robot : Robot or None
        Whose motion says what multipliers can reach.
    """

    claim: Claim
    K: Array
    beta: Array
    scale: Units
    robot: Robot | None

    @property
    def feasible(self) -> FeasibleSet:
        """The constraints."""
        return self.claim.feasible

    @cached_property
    def energy(self) -> list[Array]:
        """Kinetic energy of random motions as multipliers of the inertia blocks, scaled to 1."""
        if self.robot is None:
            return []
        return kinetic_energy(self.robot, self.feasible, self.scale)

    def prove(self, raw: Raw) -> Certificate | None:
        """An exact certificate of infeasibility from a solver's multipliers, or None."""
        count = len(self.feasible.linear)
        if len(raw.multipliers) != len(self.feasible.blocks) or len(raw.prices) < count:
            return None
        blocks = [
            projected(Z, unit) for Z, unit in zip(raw.multipliers, self.scale.blocks, strict=True)
        ]
        prices = np.maximum(raw.prices[:count], 0.0) / self.scale.linear
        if not (all(np.isfinite(Z).all() for Z in blocks) and np.isfinite(prices).all()):
            return None
        best: Certificate | None = None
        for candidate in self._candidates(blocks, prices):
            certificate = self._exact(candidate)
            if certificate is None or not certificate.holds():
                continue
            if certificate.limit is None or certificate.limit >= ENORMOUS[0]:
                return certificate
            if best is None or certificate.limit > (best.limit or 0.0):
                best = certificate
        return best

    def _candidates(self, blocks: list[Array], prices: Array) -> Iterator[Candidate]:
        """Multipliers to try, first without a size limit, then with one."""
        nothing = np.zeros_like(prices)
        if self.energy and self._total(self.energy, nothing) < 0:
            # Motions whose energy would be negative.
            alone = self._settled(self.energy, nothing, self._faces)
            yield alone
            yield replace(alone, limited=True)
        # A bound that takes part pushes the bodies it touches in ways that no motion does.
        touched = {int(j) for i in self._bought(prices) for j in self.feasible.linear[i].columns}
        faces = {
            k: face
            for k, face in self._faces.items()
            if touched.isdisjoint(self.feasible.blocks[k].columns.tolist())
        }
        reached = [faces[k].reach(Z) if k in faces else Z for k, Z in enumerate(blocks)]
        start = self._settled(reached, prices, faces)
        mixtures = [start]
        if self.energy:
            energy = self._settled(self.energy, nothing, self._faces)
            whole = abs(self._total(energy.blocks, nothing)) or 1.0
            share = abs(self._total(start.blocks, prices)) / whole
            mixtures = [*(start.mixed(energy, part * share) for part in ENERGY_SHARES), start]
        for mixture in mixtures:
            yield mixture
        for mixture in mixtures:
            yield replace(mixture, limited=True)
        whole_y = self._combination(self._pull(blocks, prices))
        yield Candidate(blocks, whole_y, prices, {}, True)

    def _settled(self, blocks: list[Array], prices: Array, faces: Mapping[int, Face]) -> Candidate:
        """The candidate with these multipliers, moved onto its faces."""
        y, (_, sizes) = self._combination(self._pull(blocks, prices)), self._inverse
        return Candidate(blocks, y, prices, faces, False).settled(
            self.feasible, self.K / sizes[:, None], sizes, self.scale.parameters
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
        return constants + linear + float(self._combination(pull) @ self.beta)

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
        scaled = self.K * self.scale.parameters
        sizes = np.linalg.norm(scaled, axis=1)
        return np.linalg.pinv((scaled / sizes[:, None]).T), sizes

    def _pull(self, blocks: list[Array], prices: Array) -> Array:
        """``sum_k C_k*(Z_k)`` over all parameters, shape (n,)."""
        out = np.asarray(self.feasible.linear_matrix.T @ prices, dtype=np.float64)
        for block, Z in zip(self.feasible.blocks, blocks, strict=True):
            np.add.at(out, block.columns, np.einsum("cij,ij->c", block.basis, Z))
        return out

    def _exact(self, candidate: Candidate) -> Certificate | None:
        """Round what is free, then let every owner take exactly what is left in its columns."""
        blocks, prices = candidate.blocks, candidate.prices
        multipliers: list[Exact] = [[] for _ in blocks]
        for k in self._extra_blocks:
            multipliers[k] = definite(blocks[k])
        solved = self._solved(
            {i: decimal(v) for i, v in enumerate(candidate.y)},
            {i: decimal(prices[i]) for i in self._bought(prices)},
            blocks,
            multipliers,
            {} if candidate.limited else candidate.faces,
        )
        if solved is None:
            return None
        y, shares, inside = solved
        left = self.claim.transposed(y)
        for j, other in enumerate(self._others(multipliers, shares)):
            left[j] -= other
        limits = [Fraction(0)] * len(blocks)
        for k, block in enumerate(self.feasible.blocks):
            if k in self._extra_blocks:
                continue
            if k in inside:
                multipliers[k] = inside[k]
                continue
            columns, start = block.columns.tolist(), rounded(blocks[k])
            parts = adjoint(block.basis, start)
            remainder = [left[j] - part for j, part in zip(columns, parts, strict=True)]
            exact = corrected(block.basis, start, remainder)
            if candidate.limited:
                limits[k] = shortfall(exact, self.scale.blocks[k])
                weights = size_weights(block, self.scale.blocks[k])
                exact = corrected(block.basis, exact, [-limits[k] * decimal(w) for w in weights])
            multipliers[k] = exact
        for j, i in self._owners.items():
            shares[i] = left[j] / decimal(self.feasible.linear[i].coefficients[0])
        return self._assembled(y, multipliers, shares, limits if candidate.limited else None)

    def _others(self, multipliers: list[Exact], shares: Mapping[int, Fraction]) -> list[Fraction]:
        """What constraints that own no column contribute to each, shape (n,)."""
        out = [Fraction(0)] * self.feasible.size
        for i, share in shares.items():
            constraint = self.feasible.linear[i]
            for j, c in zip(constraint.columns.tolist(), constraint.coefficients, strict=True):
                out[j] += share * decimal(c)
        for k in self._extra_blocks:
            block = self.feasible.blocks[k]
            parts = adjoint(block.basis, multipliers[k])
            for j, part in zip(block.columns.tolist(), parts, strict=True):
                out[j] += part
        return out

    def _solved(
        self,
        y: Mapping[int, Fraction],
        shares: Mapping[int, Fraction],
        blocks: list[Array],
        multipliers: list[Exact],
        faces: Mapping[int, Face],
    ) -> tuple[list[Fraction], dict[int, Fraction], dict[int, Exact]] | None:
        """y, shares and Z = V W V' such that faces and columns without owner come out exactly.

        In every such column: (K'y)_j - sum of shares a_ij - <B_j, V W V'> = what extra blocks add.
        """
        others = self._others(multipliers, {})
        columns: list[dict[Unknown, Fraction]] = [{} for _ in others]
        for i, equation in enumerate(self.claim.rows):
            for j, coefficient in equation.items():
                columns[j]["y", i] = coefficient
        for i in shares:
            constraint = self.feasible.linear[i]
            for j, c in zip(constraint.columns.tolist(), constraint.coefficients, strict=True):
                columns[j]["share", i] = columns[j].get(("share", i), Fraction(0)) - decimal(c)
        start: dict[Unknown, Fraction] = {("y", i): v for i, v in y.items()}
        start.update({("share", i): v for i, v in shares.items()})
        equations: list[Equation] = [(columns[j], others[j]) for j in self._orphans]
        for k, face in faces.items():
            block = self.feasible.blocks[k]
            for (a, b), entry in face.coordinates(blocks[k]).items():
                start["W", k, a, b] = decimal(entry)
            for j, basis in zip(block.columns.tolist(), block.basis, strict=True):
                row: dict[Unknown, Fraction] = dict(columns[j])
                for (a, b), value in face.form(basis).items():
                    row["W", k, a, b] = -value
                equations.append((row, others[j]))
        solution = solve_near(equations, start, self._size)
        if solution is None:
            return None
        inside = {
            k: face.matrix({(a, b): solution["W", k, a, b] for a, b in face.pairs})
            for k, face in faces.items()
        }
        exact_shares = {i: solution["share", i] for i in shares}
        return [solution["y", i] for i in y], exact_shares, inside

    def _size(self, unknown: Unknown) -> float:
        """What one unit of an unknown of `_solved` is worth, in the problem's units."""
        if unknown[0] == "y":
            return float(self._inverse[1][unknown[1]])
        if unknown[0] == "share":
            return float(self.scale.linear[unknown[1]])
        _, k, a, b = unknown
        return self._faces[k].size(a, b)

    @cached_property
    def _faces(self) -> dict[int, Face]:
        """For blocks whose body cannot move in every way, how it can."""
        faces = {}
        for k, energy in enumerate(self.energy):
            face = None if k in self._extra_blocks else Face.of(energy, self.scale.blocks[k])
            if face is not None:
                faces[k] = face
        return faces

    def _assembled(
        self,
        y: list[Fraction],
        multipliers: list[Exact],
        shares: Mapping[int, Fraction],
        limits: list[Fraction] | None,
    ) -> Certificate | None:
        """The certificate, unless some multiplier is visibly outside its cone."""
        if any(share < 0 for share in shares.values()):
            return None
        if any(definiteness(Z) == "indefinite" for Z in multipliers):
            return None
        every = range(len(self.feasible.linear))
        claim, rows = self.claim, [[[shares.get(i, Fraction(0))]] for i in every]
        if limits is not None:
            price = float(sum(limits, Fraction(0)))
            afford = -float(self._exact_total(y, multipliers, shares)) / price if price else np.inf
            size = next((e for e in ENORMOUS if e < 0.9 * afford), None)
            if size is None:
                return None
            claim = replace(claim, feasible=limited(self.feasible, self.scale, size))
            rows += [[[limit]] for limit in limits]
        return claim.infeasibility(y, [*multipliers, *rows])

    def _exact_total(
        self, y: list[Fraction], multipliers: list[Exact], shares: Mapping[int, Fraction]
    ) -> Fraction:
        """``<C, Z> + shares.constants + y.beta``."""
        total = sum((v * b for v, b in zip(y, self.claim.values, strict=True)), Fraction(0))
        for i, share in shares.items():
            total += share * decimal(self.feasible.linear[i].constant)
        for block, Z in zip(self.feasible.blocks, multipliers, strict=True):
            for r, c in zip(*np.nonzero(block.constant), strict=True):
                total += decimal(block.constant[r, c]) * Z[r][c]
        return total

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

    @cached_property
    def _orphans(self) -> list[int]:
        """Columns that no constraint owns: the friction offsets."""
        owned = {j for b in self.feasible.blocks for j in b.columns.tolist()} | set(self._owners)
        return [j for j in range(self.feasible.size) if j not in owned]
