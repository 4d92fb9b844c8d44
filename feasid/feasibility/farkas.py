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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.dynamics.kinematics import nodes, propagate
from feasid.feasibility.certificate import definiteness
from feasid.feasibility.constraints import Block, Linear
from feasid.feasibility.program import Raw
from feasid.feasibility.proofs import Certificate, Claim, decimal
from feasid.feasibility.sets import FeasibleSet
from feasid.feasibility.units import Units
from feasid.robot.description import Robot
from feasid.robot.inertia import skew

Array = npt.NDArray[np.float64]
Exact = list[list[Fraction]]

ENERGY_SHARES = (1e-2, 1e-4, 1e-7, 0.0)
"""Shares of kinetic energy to try, as a fraction of what the proof can afford."""

ENORMOUS = 1e6
"""Size limit, in units of each body's mass and length, of proofs that need one."""

REACHED = 1e-9
"""Relative eigenvalue below which motion does not reach a direction."""

NOTHING = 1e-13
"""Combinations of this relative size are the rounding of zeros."""

SAMPLES = 64


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
        return _kinetic_energy(self.robot, self.feasible, self.scale)

    def prove(self, raw: Raw) -> Certificate | None:
        """An exact certificate of infeasibility from a solver's multipliers, or None."""
        count = len(self.feasible.linear)
        if len(raw.multipliers) != len(self.feasible.blocks) or len(raw.prices) < count:
            return None
        blocks = [
            _projected(Z, unit) for Z, unit in zip(raw.multipliers, self.scale.blocks, strict=True)
        ]
        prices = np.maximum(raw.prices[:count], 0.0) / self.scale.linear
        if not (all(np.isfinite(Z).all() for Z in blocks) and np.isfinite(prices).all()):
            return None
        for candidate, limited in self._candidates(blocks, prices):
            certificate = self._exact(candidate, prices, limited=limited)
            if certificate is not None and certificate.holds():
                return certificate
        return None

    def _candidates(self, blocks: list[Array], prices: Array) -> Iterator[tuple[list[Array], bool]]:
        """Multipliers to try, and whether with a size limit."""
        if self.energy:
            reached = [
                _reach(Z, E, unit)
                for Z, E, unit in zip(blocks, self.energy, self.scale.blocks, strict=True)
            ]
            share = abs(self._total(reached, prices)) / (
                abs(self._total(self.energy, 0 * prices)) or 1.0
            )
            for limited in (False, True):
                for part in ENERGY_SHARES:
                    yield (
                        [Z + part * share * E for Z, E in zip(reached, self.energy, strict=True)],
                        limited,
                    )
        yield blocks, False
        yield blocks, True

    def _total(self, blocks: list[Array], prices: Array) -> float:
        """``<C, Z> + prices.constants + y.beta``, which a proof needs to be negative."""
        pull = self._pull(blocks, prices)
        constants = sum(
            float(np.sum(b.constant * Z)) for b, Z in zip(self.feasible.blocks, blocks, strict=True)
        )
        linear = float(prices @ self.feasible.linear_constant)
        return constants + linear + float(pull[list(self.claim.independent)] @ self.beta)

    def _pull(self, blocks: list[Array], prices: Array) -> Array:
        """``sum_k C_k*(Z_k)`` over all parameters, shape (n,)."""
        out = np.asarray(self.feasible.linear_matrix.T @ prices, dtype=np.float64)
        for block, Z in zip(self.feasible.blocks, blocks, strict=True):
            np.add.at(out, block.columns, np.einsum("cij,ij->c", block.basis, Z))
        return out

    def _exact(self, blocks: list[Array], prices: Array, *, limited: bool) -> Certificate | None:
        """Round y, then let every owner take exactly what is left in its columns."""
        pull = self._pull(blocks, prices)[list(self.claim.independent)]
        sizes = self.scale.parameters[list(self.claim.independent)]
        pull = np.where(np.abs(pull * sizes) < NOTHING * np.abs(pull * sizes).max(), 0.0, pull)
        y = self._without_orphans([decimal(v) for v in pull])
        left = self.claim.transposed(y)
        multipliers: list[Exact | None] = [None] * len(blocks)
        shares: list[Fraction | None] = [None] * len(prices)
        for i, price in enumerate(prices):
            if i not in self._owners.values():
                shares[i] = decimal(price)
                constraint = self.feasible.linear[i]
                for j, c in zip(constraint.columns.tolist(), constraint.coefficients, strict=True):
                    left[j] -= shares[i] * decimal(c)  # type: ignore[operator]
        for k in self._extra_blocks:
            multipliers[k] = _definite(blocks[k])
            self._take(k, multipliers[k], left)
        limits = [Fraction(0)] * len(blocks)
        for k, block in enumerate(self.feasible.blocks):
            if k in self._extra_blocks:
                continue
            columns, start = block.columns.tolist(), _rounded(blocks[k])
            parts = _adjoint(block.basis, start)
            remainder = [left[j] - part for j, part in zip(columns, parts, strict=True)]
            exact = _corrected(block.basis, start, remainder)
            if limited:
                limits[k] = _shortfall(exact, self.scale.blocks[k])
                weights = _size_weights(block, self.scale.blocks[k])
                exact = _corrected(block.basis, exact, [-limits[k] * decimal(w) for w in weights])
            multipliers[k] = exact
        for j, i in self._owners.items():
            shares[i] = left[j] / decimal(self.feasible.linear[i].coefficients[0])
        return self._assembled(y, multipliers, shares, limits if limited else None)

    def _assembled(
        self,
        y: list[Fraction],
        multipliers: list[Exact | None],
        shares: list[Fraction | None],
        limits: list[Fraction] | None,
    ) -> Certificate | None:
        """The certificate, unless some multiplier is visibly outside its cone."""
        if any(s is None or s < 0 for s in shares):
            return None
        matrices = [Z for Z in multipliers if Z is not None]
        if any(definiteness(Z) == "indefinite" for Z in matrices):
            return None
        claim, rows = self.claim, [[[s]] for s in shares if s is not None]
        if limits is not None:
            claim = replace(claim, feasible=_limited(self.feasible, self.scale))
            rows += [[[limit]] for limit in limits]
        return claim.infeasibility(y, [*matrices, *rows])

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

    def _take(self, k: int, Z: Exact | None, left: list[Fraction]) -> None:
        block = self.feasible.blocks[k]
        if Z is not None:
            for j, part in zip(block.columns.tolist(), _adjoint(block.basis, Z), strict=True):
                left[j] -= part

    def _without_orphans(self, y: list[Fraction]) -> list[Fraction]:
        """Change y so that K'y vanishes where no constraint owns the column (friction offsets)."""
        owned = {j for b in self.feasible.blocks for j in b.columns.tolist()} | set(self._owners)
        orphans = [j for j in range(self.feasible.size) if j not in owned]
        used: set[int] = set()
        for j in orphans:
            rows = [i for i, row in enumerate(self.claim.rows) if row.get(j)]
            free = [i for i in rows if i not in used]
            if not free:
                continue
            # Let the equation in which the orphan weighs most make the sum zero.
            pivot = max(free, key=lambda i: abs(self.claim.rows[i][j]))
            rest = sum((self.claim.rows[i][j] * y[i] for i in rows if i != pivot), Fraction(0))
            y[pivot] = -rest / self.claim.rows[pivot][j]
            used.update(rows)
        return y


def _projected(Z: Array, unit: Array) -> Array:
    """A multiplier in SI numbers, its negative eigenvalues dropped."""
    if not np.isfinite(Z).all():
        return Z
    values, vectors = np.linalg.eigh(0.5 * (Z + Z.T))
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(clipped / np.outer(unit, unit))


def _reach(Z: Array, energy: Array, unit: Array) -> Array:
    """Z restricted to the directions that motion reaches, decided in units."""
    values, vectors = np.linalg.eigh(energy * np.outer(unit, unit))
    kept = vectors[:, values > REACHED * values[-1]] if values[-1] > 0 else vectors
    # Axis-aligned reach must give exact zeros outside it.
    keep = np.where(np.abs(kept @ kept.T) < NOTHING, 0.0, kept @ kept.T)
    inside = keep @ (Z * np.outer(unit, unit)) @ keep
    return np.asarray(inside / np.outer(unit, unit))


def _kinetic_energy(robot: Robot, feasible: FeasibleSet, scale: Units) -> list[Array]:
    """Multipliers Z_k with ``sum_k <Z_k, C_k(delta)>`` = kinetic energy, summed over motions."""
    rng = np.random.default_rng(0)
    q, dq = rng.uniform(-np.pi, np.pi, size=(2, robot.dof, SAMPLES))
    tree = nodes(robot)
    states = list(propagate(tree, np.zeros(3), q, dq, np.zeros_like(q)))
    out = []
    for block in feasible.blocks:
        node = next((k for k, n in enumerate(tree) if n.columns == tuple(block.columns)), None)
        if node is None or block.kind not in ("full", "semi"):
            out.append(np.zeros((block.size, block.size)))
            continue
        state, rates = states[node], dq[list(tree[node].rows)]
        turn = np.einsum("ikn,kn->ni", state.turns, rates)
        shift = np.einsum("ikn,kn->ni", state.shifts, rates)
        if block.kind == "full":  # |w x r + v|^2 = |A (r, 1)|^2
            A = np.concatenate([skew(turn), shift[:, :, None]], axis=2)
            out.append(np.einsum("nai,naj->ij", A, A))
        else:  # eq. (17) has the first moment's sign turned
            twist = np.concatenate([turn, -shift], axis=1)
            out.append(twist.T @ twist)
    size = max(
        (float(np.abs(E * np.outer(u, u)).max()) for E, u in zip(out, scale.blocks, strict=True)),
        default=0.0,
    )
    return [np.where(np.abs(E) < NOTHING * np.abs(E).max(), 0.0, E) / (size or 1.0) for E in out]


def _rounded(Z: Array) -> Exact:
    return [[decimal(Z[min(r, c), max(r, c)]) for c in range(len(Z))] for r in range(len(Z))]


def _definite(Z: Array) -> Exact:
    """Rounded, with a little of the identity so that rounding cannot make it indefinite."""
    return _rounded(Z + 1e-12 * np.trace(Z) * np.eye(len(Z)))


def _adjoint(basis: Array, Z: Exact) -> list[Fraction]:
    """<B_j, Z> for each j."""
    out = []
    for B in basis:
        total = Fraction(0)
        for r, c in zip(*np.nonzero(B), strict=True):
            total += decimal(B[r, c]) * Z[r][c]
        out.append(total)
    return out


def _corrected(basis: Array, Z: Exact, remainder: list[Fraction]) -> Exact:
    """Z plus the smallest matrix whose adjoint is `remainder`: ``sum_j w_j B_j``, ``G w = r``."""
    gram = np.einsum("aij,bij->ab", basis, basis)
    inverse = np.linalg.inv(gram)
    # The Gram matrices are small integers and halves, so that sixteenths hold their inverses.
    exact_inverse = [[Fraction(float(x)).limit_denominator(64) for x in row] for row in inverse]
    weights = [
        sum((g * r for g, r in zip(row, remainder, strict=True)), Fraction(0))
        for row in exact_inverse
    ]
    out = [row[:] for row in Z]
    for w, B in zip(weights, basis, strict=True):
        if w:
            for r, c in zip(*np.nonzero(B), strict=True):
                out[r][c] += w * decimal(B[r, c])
    return out


def _shortfall(Z: Exact, unit: Array) -> Fraction:
    """What a multiple of the unit matrix must add so that Z is positive semidefinite."""
    scaled = np.array([[float(x) for x in row] for row in Z]) * np.outer(unit, unit)
    values = np.linalg.eigvalsh(scaled)
    rounding = 1e-15 * float(np.abs(values).max())
    return decimal(max(0.0, -float(values[0])) * 1.001 + rounding)


def _size_weights(block: Block, unit: Array) -> Array:
    """Coefficients of minus the block's trace in units, shape (c,)."""
    return np.asarray(-np.einsum("cii,i->c", block.basis, 1.0 / unit**2))


def _limited(feasible: FeasibleSet, scale: Units) -> FeasibleSet:
    """With a size limit per block: its trace in units is at most `ENORMOUS`."""
    rows = []
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        weights = _size_weights(block, unit)
        rows.append(Linear(f"enormous size of {block.name}", block.columns, weights, ENORMOUS))
    return replace(feasible, linear=(*feasible.linear, *rows))
