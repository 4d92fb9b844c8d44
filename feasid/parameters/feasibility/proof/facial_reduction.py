"""Facial reduction: the possible motions of a body define the face of the cone of its multipliers.

Whatever can be known of a body is a combination of kinetic energies, potential energies and
dissipated powers of motions. Near the base bodies move in a few ways only; a multiplier that is
positive definite in other directions would involve directions that no motion shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.linalg

from feasid.core.arrays import Array
from feasid.core.exact import numbers
from feasid.parameters.feasibility.constraints.affine import Block
from feasid.parameters.feasibility.constraints.units import body_lengths
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import coordinate_map, nodes, propagate
from feasid.robot.inertia import pseudo_inertia, skew
from feasid.robot.known import Row
from feasid.robot.layout import random_configurations

REACHED = 1e-9  #: Relative eigenvalue below which motion does not reach a direction.
ROUNDED_ZERO = 1e-13  #: Entries of this relative size are the rounding of zeros.
VISIBLE = 1e-6
"""Eigenvalue of a solver's multipliers, relative to the largest of all, that is not a rounded
zero."""

SAMPLES = 64  #: Random motions whose kinetic energies are added: more than any body has parameters.
DIGITS = 45  #: Decimals of coefficients: their rounding error times 1e12 kg does not matter.
SAME = Fraction(1, 10**11)
"""Error of doubles, relative to the largest coefficient, in a relation that holds."""


@dataclass(frozen=True, eq=False)
class Face:
    """Matrices ``V W V'``."""

    V: numbers.Exact  #: Shape (s, r): the identity on the rows `lead`.
    lead: tuple[int, ...]
    unit: Array  #: Shape (s,).

    @classmethod
    def from_energy(cls, energy: Array, unit: Array) -> Face | None:
        """The face that an energy is inside of; None when that is the whole cone."""
        values, vectors = np.linalg.eigh(energy * np.outer(unit, unit))
        if not values[-1] > 0:
            return None
        span = vectors[:, values > REACHED * values[-1]]
        return None if span.shape[1] == len(unit) else cls._from_span(span, unit, ROUNDED_ZERO)

    @classmethod
    def from_multiplier(cls, Z: Array, unit: Array, least: float) -> Face | None:
        """The face on which a solver's multiplier nearly lies; None when that is the whole cone.

        `Z` (s, s); `unit` (s,); `least`: eigenvalue, in units, that is not a rounded zero.
        """
        values, vectors = np.linalg.eigh(Z * np.outer(unit, unit))
        span = vectors[:, values > least]
        return None if span.shape[1] == len(unit) else cls._from_span(span, unit, VISIBLE)

    @classmethod
    def _from_span(cls, vectors: Array, unit: Array, nothing: float) -> Face:
        # Rows that are as independent as possible: the others are at most a few times as large.
        order = scipy.linalg.qr(vectors.T, mode="r", pivoting=True)[-1] if vectors.size else ()
        lead = sorted(int(r) for r in order[: vectors.shape[1]])
        span = vectors @ np.linalg.inv(vectors[lead])
        span[np.abs(span) < 1e3 * nothing] = 0.0
        plain_span = span * unit[lead] / unit[:, None]
        return cls(
            [[_simplest_within(x, nothing) for x in row] for row in plain_span], tuple(lead), unit
        )

    @cached_property
    def _basis_doubles(self) -> Array:
        """V, shape (s, r)."""
        return np.array(self.V, dtype=np.float64).reshape(len(self.unit), -1)

    @cached_property
    def projector(self) -> Array:
        """Orthogonal projection on the span of V, in units, shape (s, s)."""
        span, _ = np.linalg.qr(self.unit[:, None] * self._basis_doubles)
        return np.asarray(span @ span.T)

    def with_masses(self, block: Block) -> Face | None:
        """The smallest face with this one and the directions of a block's masses, exactly.

        None when that is the whole cone.
        """
        masses = [r for r, power in enumerate(block.powers) if not power]
        others = [r for r in range(len(self.V)) if r not in masses]
        units = self.unit[others, None] * self._basis_doubles[others]
        order = [others[k] for k in scipy.linalg.qr(units.T, mode="r", pivoting=True)[-1]]
        places, relations = numbers.independent_rows([self.V[r] for r in order])
        lead = sorted([*(order[k] for k in places), *masses])
        if len(lead) == len(self.V):
            return None
        V = [[Fraction(r == other) for other in lead] for r in range(len(self.V))]
        dependent = [k for k in range(len(order)) if k not in places]
        for k, relation in zip(dependent, relations, strict=True):
            for other in (j for j in relation if j != k):
                V[order[k]][lead.index(order[other])] = -relation[other] / relation[k]
        return Face(V, tuple(lead), self.unit)

    @property
    def index_pairs(self) -> list[tuple[int, int]]:
        """Index pairs of W, the upper triangle."""
        count = len(self.lead)
        return [(a, b) for a in range(count) for b in range(a, count)]

    def nearest_coordinates(self, Z: Array) -> dict[tuple[int, int], float]:
        """W of the nearest ``V W V'``."""
        inverse = np.linalg.pinv(self._basis_doubles)
        W = inverse @ Z @ inverse.T
        return {(a, b): 0.5 * float(W[a, b] + W[b, a]) for a, b in self.index_pairs}

    def linear_form(self, basis: Array) -> dict[tuple[int, int], Fraction]:
        """Coefficients of ``<B, V W V'>`` in the entries of W."""
        out = {}
        entries = [
            (int(r), int(c), numbers.printed_decimal(basis[r, c]))
            for r, c in zip(*np.nonzero(basis), strict=True)
        ]
        for a, b in self.index_pairs:
            total = sum((v * self.V[r][a] * self.V[c][b] for r, c, v in entries), Fraction(0))
            if total:
                out[a, b] = total * (1 + (a != b))
        return out

    def linear_forms(self, basis: Array) -> numbers.Exact:
        """`linear_form` of several matrices, a row each."""
        forms = map(self.linear_form, basis)
        return [[form.get(pair, Fraction(0)) for pair in self.index_pairs] for form in forms]

    def relations(self, block: Block) -> tuple[Row, ...]:
        """Combinations of the block's parameters that no multiplier on the face pulls at."""
        columns = block.columns.tolist()
        _, rows = numbers.independent_rows(self.linear_forms(block.basis))
        return tuple({columns[k]: c for k, c in row.items()} for row in rows)

    def exact_matrix(self, W: Mapping[tuple[int, int], Fraction]) -> numbers.Exact:
        """``V W V'`` exactly."""
        count = range(len(self.lead))
        full = [[W[min(a, b), max(a, b)] for b in count] for a in count]
        half = [[numbers.dot(row, column) for column in full] for row in self.V]
        return [[numbers.dot(row, other) for other in self.V] for row in half]

    def add_remainder(
        self, basis: Array, Z: numbers.Exact, remainder: Sequence[Fraction]
    ) -> numbers.Exact:
        """Z plus ``V W V'`` whose adjoint is `remainder`, which satisfies the face's relations."""
        forms = self.linear_forms(basis)
        lead, _ = numbers.independent_rows(forms)
        some = [forms[k] for k in lead]
        gram = [[numbers.dot(one, two) for two in some] for one in some]
        right, zeros = [remainder[k] for k in lead], [Fraction(0)] * len(lead)
        factors = numbers.solve_linear(gram, right, zeros) or []
        W = {
            pair: sum((c * f[i] for c, f in zip(factors, some, strict=False)), Fraction(0))
            for i, pair in enumerate(self.index_pairs)
        }
        pairs = zip(Z, self.exact_matrix(W), strict=True)
        return [[x + y for x, y in zip(a, b, strict=True)] for a, b in pairs]


def pull_matrix(block: Block, weights: Array) -> Array:
    """The smallest matrix Z with ``<B_j, Z>`` nearest to `weights` (c,), shape (s, s)."""
    if not weights.any():
        return np.zeros((block.size, block.size))
    flat = block.basis.reshape(len(block.columns), -1)
    nearest = np.linalg.lstsq(flat, weights, rcond=None)[0]
    return np.asarray(nearest.reshape(block.size, block.size), dtype=np.float64)


# -- what holds on faces exactly -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FaceRelations:
    """Combinations of a robot's parameters that no multiplier of a body on its face pulls at.

    A body's multiplier ``V W V'`` pulls at its ten parameters by ``<B_j, V W V'>``; on a face that
    is fewer than ten numbers, and ``sum_j c_j <B_j, V W V'> = 0`` for some c, exactly.
    """

    #: Tuple of (columns, relations): per body on a face: its columns, and the c by column.
    bodies: tuple[tuple[frozenset[int], tuple[Row, ...]], ...]
    faces: Mapping[frozenset[int], Face]  #: Of these bodies.
    #: Relations of the faces with all directions of masses: potential energies pull within those.
    wide_relations: Mapping[frozenset[int], tuple[Row, ...]]

    @classmethod
    def from_blocks(cls, robot: Robot, blocks: Sequence[Block]) -> FaceRelations:
        """Faces of these bodies and rotors, by how they can move."""
        lengths = body_lengths(robot)
        units = [lengths[b.body] ** np.array(b.powers, dtype=np.float64) for b in blocks]
        out, faces, wide_relations = [], {}, {}
        energies = kinetic_energy_multipliers(robot, blocks, units)
        for block, unit, energy in zip(blocks, units, energies, strict=True):
            face = Face.from_energy(energy, unit) if energy.any() else None
            if face is None:
                continue
            columns = frozenset(block.columns.tolist())
            out.append((columns, face.relations(block)))
            faces[columns] = face
            wide = face.with_masses(block)
            wide_relations[columns] = () if wide is None else wide.relations(block)
        return cls(tuple(out), faces, wide_relations)

    def make_rows_consistent(self, rows: Sequence[Row]) -> list[Row]:
        """Rows of K within the rounding of doubles that satisfy the relations to `DIGITS` digits.

        Whatever can be known of a body is a combination of energies of its motions, so that K's
        exact coefficients satisfy them; those of doubles do so within 1e-16, which a proof with a
        limit of 1e12 kg cannot afford. Parts of rows that belong to no multiplier are not changed.
        """
        counts = Counter(j for row in rows for j in row)
        leads = {j for row in rows for j, c in row.items() if c == 1 and counts[j] == 1}
        out = []
        for row in rows:
            new = dict(row)
            for columns, relations in self.bodies:
                for some in (relations, self.wide_relations[columns]):
                    new.update(_make_row_consistent(new, columns, some, leads))
            out.append({j: c for j, c in new.items() if c})
        return out


def _make_row_consistent(
    row: Row, columns: frozenset[int], relations: Sequence[Row], leads: set[int]
) -> Row:
    """The coefficients of one body, changed by their rounding at most."""
    part = {j: row.get(j, Fraction(0)) for j in columns}
    size = max(map(abs, part.values()))
    errors = [numbers.combine(relation, part) for relation in relations]
    scales = [sum(map(abs, relation.values())) * size for relation in relations]
    if not any(errors) or any(abs(e) > SAME * s for e, s in zip(errors, scales, strict=True)):
        return {}
    for constants in ({j for j, c in part.items() if not c or c == 1}, columns & leads):
        equations: list[numbers.Equation] = [
            (
                {(j,): c for j, c in relation.items() if j not in constants},
                -sum((c * part[j] for j, c in relation.items() if j in constants), Fraction(0)),
            )
            for relation in relations
        ]
        start = {(j,): part[j] for j in columns - constants}
        solution = numbers.solve_near(equations, start, lambda _: 1.0)
        if solution is None:
            continue
        digits = {j: Fraction(round(x * 10**DIGITS), 10**DIGITS) for (j,), x in solution.items()}
        if all(abs(x - part[j]) <= SAME * size for j, x in digits.items()):
            return digits
    return {}


def _simplest_within(x: float, error: float) -> Fraction:
    """The simplest number within the error that x may have."""
    if error <= 1e3 * ROUNDED_ZERO:
        return numbers.simplest_number(x)
    for largest in (12, 100, 1000, 10**6):
        simple = Fraction(x).limit_denominator(largest)
        if abs(float(simple) - x) <= error * max(1.0, abs(x)):
            return simple
    return numbers.printed_decimal(x)


def kinetic_energy_multipliers(
    robot: Robot, blocks: Sequence[Block], units: Sequence[Array]
) -> list[Array]:
    """Multipliers Z_k with ``sum_k <Z_k, C_k(delta)>`` = twice the energy of random motions.

    Scaled so that the largest entry is 1 in units; zero for blocks that are not inertia matrices.
    """
    rng = np.random.default_rng(0)
    ds = rng.uniform(-np.pi, np.pi, size=(robot.dof, SAMPLES))
    s = random_configurations(robot, rng, SAMPLES, limits=bool(robot.loops))
    q, dq, *_ = coordinate_map(robot).motion(s, ds, np.zeros_like(ds))
    tree = nodes(robot)
    states = list(propagate(tree, np.zeros(3), q, dq, np.zeros_like(q)))
    out = []
    for block in blocks:
        node = next((k for k, n in enumerate(tree) if n.columns == tuple(block.columns)), None)
        if node is None or block.role == "asked":
            out.append(np.zeros((block.size, block.size)))
            continue
        state, rates = states[node], dq[list(tree[node].rows)]
        turn = np.einsum("ikn,kn->ni", state.angular_axes, rates)
        shift = np.einsum("ikn,kn->ni", state.linear_axes, rates)
        A = np.concatenate([skew(turn), shift[:, :, None]], axis=2)
        square = np.einsum("nai,naj->ij", A, A)
        if block.kind == "full":  # |w x r + v|^2 = |A (r, 1)|^2
            out.append(square)
        elif block.kind == "matrix":  # a rotor that is symmetric about its axis
            moments = np.einsum("cij,ij->c", pseudo_inertia(np.eye(10)), square)
            xx, _, _, yy, _, zz, _, _, z, m = moments
            rotor = np.array([[zz, 0, 0], [0, xx + yy, z / 2], [0, z / 2, m]])
            rotor[0, 0] -= block.basis[1, 1, 1] * rotor[1, 1]  # full: Lxx - Lzz / 2 stands there
            out.append(rotor)
        else:  # semi consistency has the first moment's sign turned
            twist = np.concatenate([turn, -shift], axis=1)
            out.append(largest_span_multiplier(twist.T @ twist))
    sizes = [np.abs(E * np.outer(unit, unit)).max() for E, unit in zip(out, units, strict=True)]
    largest = max(sizes, default=0.0) or 1.0
    return [np.where(np.abs(E) < ROUNDED_ZERO * np.abs(E).max(), 0.0, E) / largest for E in out]


def largest_span_multiplier(E: Array) -> Array:
    """The multiplier of a semi-consistent body with the same energy and the largest span.

    Only the trace of the lower right 3x3 matrix matters, and only X - X' of the upper right X.
    """
    values, vectors = np.linalg.eigh(E[:3, :3])
    large = values > REACHED * max(values[-1], np.trace(E[3:, 3:]) * REACHED)
    root = vectors[:, large] * np.sqrt(values[large])
    # X = root G; the smallest G with this X - X' leaves the trace most room.
    pairs = ((1, 2), (2, 0), (0, 1))
    one = np.eye(3)
    forms = np.array([np.outer(root[r], one[c]) - np.outer(root[c], one[r]) for r, c in pairs])
    differences = np.array([E[r, 3 + c] - E[c, 3 + r] for r, c in pairs])
    G = (np.linalg.pinv(forms.reshape(3, -1), rcond=REACHED) @ differences).reshape(-1, 3)
    room = np.trace(E[3:, 3:]) - float(np.sum(G * G))
    if room <= REACHED * np.trace(E[3:, 3:]):
        return E
    out = E.copy()
    out[:3, 3:] = root @ G
    out[3:, :3] = out[:3, 3:].T
    out[3:, 3:] = G.T @ G + room / 3 * np.eye(3)
    return out
