"""The ways a body can move, as the face of the cone on which its multipliers must lie.

Whatever can be known of a body is a combination of kinetic energies, potential energies and
dissipated powers of motions. Near the base bodies move in a few ways only; a multiplier that is
positive definite in other directions would speak of what no motion shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import coordinate_map, nodes, propagate
from feasid.exact.numbers import decimal, plain
from feasid.feasibility.constraints.affine import Block
from feasid.identifiability.sampling import random_configurations
from feasid.robot.description import Robot
from feasid.robot.inertia import pseudo_inertia, skew

Exact = list[list[Fraction]]

REACHED = 1e-9
"""Relative eigenvalue below which motion does not reach a direction."""

NOTHING = 1e-13
"""Entries of this relative size are the rounding of zeros."""

VISIBLE = 1e-6
"""Eigenvalue of a solver's multiplier, relative to the largest, that is not a rounded zero."""

SAMPLES = 64


@dataclass(frozen=True, eq=False)
class Face:
    """Matrices ``V W V'``.

    Attributes
    ----------
    V : list of lists of Fraction, shape (s, r)
        The identity on the rows `lead`.
    lead : tuple of int
    projector : ndarray, shape (s, s)
        On the span of V, in units.
    unit : ndarray, shape (s,)
    """

    V: Exact
    lead: tuple[int, ...]
    projector: Array
    unit: Array

    @classmethod
    def of(cls, energy: Array, unit: Array) -> Face | None:
        """The face that an energy is inside of; None when that is the whole cone."""
        values, vectors = np.linalg.eigh(energy * np.outer(unit, unit))
        if not values[-1] > 0:
            return None
        kept = vectors[:, values > REACHED * values[-1]]
        return None if kept.shape[1] == len(unit) else cls._spanned(kept, unit, NOTHING)

    @classmethod
    def seen(cls, Z: Array, unit: Array, largest: float) -> Face | None:
        """The face on which a solver's multiplier nearly lies; None when that is the whole cone.

        Parameters
        ----------
        Z : ndarray, shape (s, s)
        unit : ndarray, shape (s,)
        largest : float
            Eigenvalue, in units, of the largest multiplier of all.
        """
        values, vectors = np.linalg.eigh(Z * np.outer(unit, unit))
        kept = vectors[:, values > VISIBLE * largest]
        return None if kept.shape[1] == len(unit) else cls._spanned(kept, unit, VISIBLE)

    @classmethod
    def _spanned(cls, kept: Array, unit: Array, nothing: float) -> Face:
        lead: list[int] = []
        for r in range(len(unit)) if kept.shape[1] else ():
            if np.linalg.svd(kept[[*lead, r]], compute_uv=False)[-1] > REACHED:
                lead.append(r)
            if len(lead) == kept.shape[1]:
                break
        span = kept @ np.linalg.inv(kept[lead])
        span[np.abs(span) < 1e3 * nothing] = 0.0
        plain_span = span * unit[lead] / unit[:, None]
        return cls(
            [[_near(x, nothing) for x in row] for row in plain_span],
            tuple(lead),
            kept @ kept.T,
            unit,
        )

    @classmethod
    def whole(cls, unit: Array) -> Face:
        """The whole cone."""
        size = len(unit)
        one = [[Fraction(int(r == c)) for c in range(size)] for r in range(size)]
        return cls(one, tuple(range(size)), np.eye(size), unit)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Index pairs of W, the upper triangle."""
        count = len(self.lead)
        return [(a, b) for a in range(count) for b in range(a, count)]

    def reach(self, Z: Array) -> Array:
        """Z restricted to the face."""
        square = np.outer(self.unit, self.unit)
        return np.asarray(self.projector @ (Z * square) @ self.projector / square)

    def coordinates(self, Z: Array) -> dict[tuple[int, int], float]:
        """W of the nearest ``V W V'``."""
        V = np.array([[float(x) for x in row] for row in self.V]).reshape(len(self.unit), -1)
        inverse = np.linalg.pinv(V)
        W = inverse @ Z @ inverse.T
        return {(a, b): 0.5 * float(W[a, b] + W[b, a]) for a, b in self.pairs}

    def floating(self, W: Mapping[tuple[int, int], float]) -> Array:
        """``V W V'`` in doubles."""
        V = np.array([[float(x) for x in row] for row in self.V]).reshape(len(self.unit), -1)
        full = np.zeros((V.shape[1], V.shape[1]))
        for (a, b), value in W.items():
            full[a, b] = full[b, a] = value
        return np.asarray(V @ full @ V.T)

    def form(self, basis: Array) -> dict[tuple[int, int], Fraction]:
        """Coefficients of ``<B, V W V'>`` in the entries of W."""
        out = {}
        entries = [
            (int(r), int(c), decimal(basis[r, c])) for r, c in zip(*np.nonzero(basis), strict=True)
        ]
        for a, b in self.pairs:
            total = sum((v * self.V[r][a] * self.V[c][b] for r, c, v in entries), Fraction(0))
            if total:
                out[a, b] = total * (1 + (a != b))
        return out

    def forms(self, basis: Array) -> Array:
        """`form` for each of a basis, in doubles, shape (c, len(pairs))."""
        V = np.array([[float(x) for x in row] for row in self.V]).reshape(len(self.unit), -1)
        inner = np.einsum("ra,krs,sb->kab", V, basis, V)
        return np.array([inner[:, a, b] * (1 + (a != b)) for a, b in self.pairs]).T.reshape(
            len(basis), -1
        )

    def matrix(self, W: Mapping[tuple[int, int], Fraction]) -> Exact:
        """``V W V'`` exactly."""
        count = range(len(self.lead))
        full = [[W[min(a, b), max(a, b)] for b in count] for a in count]
        half = [[_dot(row, column) for column in full] for row in self.V]
        return [[_dot(row, other) for other in self.V] for row in half]

    def size(self, a: int, b: int) -> float:
        """What one unit of W[a, b] is worth, in units."""
        return float(self.unit[self.lead[a]] * self.unit[self.lead[b]])


def _near(x: float, error: float) -> Fraction:
    """The simplest number within the error that x may have."""
    if error <= 1e3 * NOTHING:
        return plain(x)
    for largest in (12, 100, 1000, 10**6):
        simple = Fraction(x).limit_denominator(largest)
        if abs(float(simple) - x) <= error * max(1.0, abs(x)):
            return simple
    return decimal(x)


def kinetic_energy(robot: Robot, blocks: Sequence[Block], units: Sequence[Array]) -> list[Array]:
    """Multipliers Z_k with ``sum_k <Z_k, C_k(delta)>`` = twice the energy of random motions.

    Scaled so that the largest entry is 1 in units; zero for blocks that are not inertia matrices.
    """
    rng = np.random.default_rng(0)
    s, ds = rng.uniform(-np.pi, np.pi, size=(2, robot.dof, SAMPLES))
    if robot.closure is not None:
        s = random_configurations(robot, rng, SAMPLES)
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
        elif block.kind == "matrix":
            out.append(_balanced(square, block))
        else:  # semi consistency has the first moment's sign turned
            twist = np.concatenate([turn, -shift], axis=1)
            out.append(_spread(twist.T @ twist))
    sizes = [np.abs(E * np.outer(unit, unit)).max() for E, unit in zip(out, units, strict=True)]
    largest = max(sizes, default=0.0) or 1.0
    return [np.where(np.abs(E) < NOTHING * np.abs(E).max(), 0.0, E) / largest for E in out]


def _balanced(square: Array, block: Block) -> Array:
    """The energy of a rotor that is symmetric about its axis, on its own 3x3 matrix."""
    xx, _, _, yy, _, zz, _, _, z, m = np.einsum("cij,ij->c", pseudo_inertia(np.eye(10)), square)
    out = np.array([[zz, 0, 0], [0, xx + yy, z / 2], [0, z / 2, m]])
    out[0, 0] -= block.basis[1, 1, 1] * out[1, 1]  # full: Lxx - Lzz / 2 stands there
    return out


def _spread(E: Array) -> Array:
    """The multiplier of a semi-consistent body with the same energy and the largest span.

    Of the lower right 3x3 matrix only the trace is felt, of the upper right X only X - X'.
    """
    values, vectors = np.linalg.eigh(E[:3, :3])
    kept = values > REACHED * max(values[-1], np.trace(E[3:, 3:]) * REACHED)
    root = vectors[:, kept] * np.sqrt(values[kept])
    # X = root G; the smallest G with this X - X' leaves the trace most room.
    pairs = ((1, 2), (2, 0), (0, 1))
    one = np.eye(3)
    forms = np.array([np.outer(root[r], one[c]) - np.outer(root[c], one[r]) for r, c in pairs])
    given = np.array([E[r, 3 + c] - E[c, 3 + r] for r, c in pairs])
    G = (np.linalg.pinv(forms.reshape(3, -1), rcond=REACHED) @ given).reshape(-1, 3)
    room = np.trace(E[3:, 3:]) - float(np.sum(G * G))
    if room <= REACHED * np.trace(E[3:, 3:]):
        return E
    out = E.copy()
    out[:3, 3:] = root @ G
    out[3:, :3] = out[:3, 3:].T
    out[3:, 3:] = G.T @ G + room / 3 * np.eye(3)
    return out


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
