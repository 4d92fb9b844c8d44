"""Invariant subspaces of a joint's screw, by its own spectrum instead of by powers.

What a joint does to velocities and to inertial parameters is a one-parameter group exp(A q). The
smallest subspace that contains given vectors for every q is what Wensing et al. (2024), Sec. 6,
get as the range of a controllability matrix [x, A x, A^2 x, ...], whose powers lose digits. Here
A = R + h T is split into a rotation about the screw's axis and a translation along it, which
commute. R is semisimple with the known eigenvalues 0, +-i (velocities) and 0, +-i, +-2i
(parameters); T is nilpotent. So the subspace is the sum, over the frequencies f, of

    span{T^k P_f x, T^k R P_f x},  P_f the spectral projector, a fixed polynomial in R,

and T drops out when the pitch h is zero. In the coordinates used here R is skew, so every P_f is an
orthogonal projector, and rounding is not amplified.

**Coordinates.** Parameters are x = (Lxx, r Lxy, r Lxz, Lyy, r Lyz, Lzz, lx, ly, lz, m) with
r = sqrt(2), about an origin on the joint's axis, lengths divided by the robot's length scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.inertia import UPPER, skew, spatial_inertia

TOLERANCE = 1e-11
"""Absolute: a singular value of columns of unit size below this is zero. With a tenth and with ten
times as much all tests of counts in `tests/identifiability/test_nullspace.py` on hard mechanisms,
tilts and random trees pass as well."""

WEAK_DIRECTION = 1e-3
"""A direction weaker than this keeps its size, so that its rounding is not amplified."""

ROOT2 = np.sqrt(np.array([1.0, 2, 2, 1, 2, 1, 1, 1, 1, 1]))
"""x = ROOT2 * parameters (with scaled lengths)."""

MOMENTUM = np.ascontiguousarray(np.moveaxis(spatial_inertia(np.diag(1 / ROOT2)), 0, 2))
"""MOMENTUM[a, b, k]: entry (a, b) of the spatial inertia per unit of x_k."""

PICKS = (*UPPER, (2, 4), (0, 5), (1, 3), (5, 5))
"""Entries of a spatial inertia that are its ten parameters."""


def cross_matrix(screw: Array) -> Array:
    """Matrix of the motion cross product, angular part first; shape (..., 6) to (..., 6, 6)."""
    out = np.zeros((*screw.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = skew(screw[..., :3])
    out[..., 3:, :3] = skew(screw[..., 3:])
    return out


_SCREWS, _INERTIAS = cross_matrix(np.eye(6))[:, None], np.moveaxis(MOMENTUM, 2, 0)
_CHANGES = np.swapaxes(_SCREWS, -1, -2) @ _INERTIAS + _INERTIAS @ _SCREWS

RATES = np.stack([_CHANGES[..., r, c] for r, c in PICKS], axis=1) * ROOT2[:, None]
"""RATES[a] is A for the unit screw a: d/dq of how parameters map to the parent."""


def parameter_rate(screw: Array) -> Array:
    """A(Phi) of Wensing et al. (2024) eq. (40), shape (..., 6) to (..., 10, 10), on x."""
    return np.asarray(np.tensordot(screw, RATES, axes=1), dtype=np.float64)


def momentum_map(screw: Array) -> Array:
    """W with v' I(x) Phi = v' W x, shape (..., 6) to (..., 6, 10).

    M(V, Phi)' = V' W in Wensing et al. (2024) eq. (36), (52).
    """
    return np.asarray(np.einsum("abk,...b->...ak", MOMENTUM, screw), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ScrewAction:
    """A joint's action on a space, as matrices whose images are the orbit's span.

    ``still`` (m, m) projects on the part that the motion leaves unchanged; the images of the rows
    of ``moving`` (k, m, m) span what x sweeps beyond that, which is also A times the orbit's span.
    """

    still: Array
    moving: Array

    def split_orbits(self, x: Array) -> tuple[Array, Array]:
        """Columns (m, r) to the still part (m, r) and the moving part (m, k r) of their orbits."""
        k, m = self.moving.shape[:2]
        return self.still @ x, (self.moving @ x).transpose(1, 0, 2).reshape(m, k * x.shape[1])


@dataclass(frozen=True, eq=False)
class ScrewSpectrum:
    """Spectral pieces of one screw: projectors and rotations per frequency, and the translation.

    ``pieces[f]`` is (P_f, R P_f / f) for f > 0; ``still`` is P_0; ``shift`` is T, None for zero
    pitch; ``nilpotent`` the k with T^k P_0 = 0.
    """

    still: Array
    pieces: dict[float, tuple[Array, Array]]
    shift: Array | None
    nilpotent: int

    def screw_action(self) -> ScrewAction:
        """The orbit matrices of this screw alone."""
        turning = [part for pair in self.pieces.values() for part in pair]
        moving = np.array([*self._translation_matrices(), *turning])
        return ScrewAction(self.still, moving.reshape(-1, *self.still.shape))

    def _translation_matrices(self) -> list[Array]:
        """T^k P_0 (k > 0) and T P_f, T R P_f where they are not zero."""
        if self.shift is None:
            return []
        out, power = [], self.still
        for _ in range(1, self.nilpotent):
            power = self.shift @ power
            out.append(power)
        if 1.0 in self.pieces:
            out += [self.shift @ part for part in self.pieces[1.0]]
        return out


def velocity_spectrum(axis: Array, turns: bool, shifts: bool) -> ScrewSpectrum:
    """Spectrum on velocities (6) of a screw through the origin along the unit `axis`."""
    shift = cross_matrix(np.r_[0.0, 0, 0, axis]) if shifts else None
    if not turns:
        return ScrewSpectrum(np.eye(6), {}, shift, 2)
    r = cross_matrix(np.r_[axis, 0.0, 0, 0])
    p1 = -r @ r
    # T P_0 = 0 on velocities: the axis crossed with itself
    return ScrewSpectrum(np.eye(6) - p1, {1.0: (p1, r)}, shift, 1)


def parameter_spectrum(axis: Array, turns: bool, shifts: bool) -> ScrewSpectrum:
    """Spectrum on functionals of parameters (10), which the transposed rates move."""
    shift = parameter_rate(np.r_[0.0, 0, 0, axis]).T if shifts else None
    if not turns:
        return ScrewSpectrum(np.eye(10), {}, shift, 3)
    r = parameter_rate(np.r_[axis, 0.0, 0, 0]).T
    r2 = r @ r
    # r2 has the eigenvalues 0, -1 and -4; each polynomial is one at one of them, zero at others.
    p1 = -r2 @ (r2 + 4 * np.eye(10)) / 3
    p2 = r2 @ (r2 + np.eye(10)) / 12
    pieces = {1.0: (p1, r @ p1), 2.0: (p2, r @ p2 / 2)}
    return ScrewSpectrum(np.eye(10) - p1 - p2, pieces, shift, 3)


def stacked_action(first: ScrewSpectrum, second: ScrewSpectrum, speed: float) -> ScrewAction:
    """Action of two bodies that turn together, the second `speed` times as fast, signed.

    Their coordinates are stacked. Pieces of equal frequency turn as one, which is where a rotor
    with a gear ratio of +-1, +-2 or +-1/2 differs from all others.
    """
    m, n = first.still.shape[0], second.still.shape[0]
    if speed == 0.0:  # what does not turn keeps all of its coordinates
        second = ScrewSpectrum(np.eye(n), {}, None, 1)

    def block_diagonal(a: Array | None, b: Array | None) -> Array:
        out = np.zeros((m + n, m + n))
        if a is not None:
            out[:m, :m] = a
        if b is not None:
            out[m:, m:] = b
        return out

    translations = [block_diagonal(t, None) for t in first._translation_matrices()]
    sign, pieces = float(np.sign(speed)), dict(first.pieces)
    for f, (p, r) in second.pieces.items():
        frequency = f * abs(speed)
        twin = next((g for g in pieces if abs(g - frequency) <= TOLERANCE * g), None)
        a, b = pieces.pop(twin) if twin is not None else (None, None)
        translations += [block_diagonal(a, p), block_diagonal(b, sign * r)]
    for a, b in pieces.values():
        translations += [block_diagonal(a, None), block_diagonal(b, None)]
    return ScrewAction(block_diagonal(first.still, second.still), np.stack(translations))


def invariant_subspace(x: Array, actions: Sequence[ScrewAction]) -> Array:
    """Smallest subspace with x that every action keeps: columns spanning it.

    For one action this is its orbit, Wensing et al. (2024) eq. (48), (49); for a joint of several
    degrees of freedom it is the controllable subspace of a switched system, Sec. 7.2, reached by
    going round until the dimension stays.
    """
    if len(actions) == 1:
        return np.hstack(actions[0].split_orbits(x))
    x, rank = column_basis(x)[0], -1
    while x.shape[1] > rank:
        rank = x.shape[1]
        for action in actions:
            x = column_basis(np.hstack(action.split_orbits(x)))[0]
    return x


def column_basis(columns: Array) -> tuple[Array, Array]:
    """Basis of the columns' span, and the singular values.

    Directions weaker than `WEAK` keep their size instead of being normalised.
    """
    if columns.shape[1] == 0:
        return columns, np.zeros(0)
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    significant = s > TOLERANCE
    if significant.all() and s[-1] >= WEAK_DIRECTION:
        return u, s
    return u[:, significant] * np.where(s < WEAK_DIRECTION, s, 1.0)[significant], s
