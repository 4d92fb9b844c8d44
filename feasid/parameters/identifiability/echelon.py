"""From local conditions to base parameters: pivots joint by joint, coefficients by one sweep.

The null vectors of the whole robot are those of each joint, continued into the parent (Wensing
et al. (2024), App. G): a block matrix that is upper triangular when parents come first. Hence its
pivots, taken from the right, are the pivots of each joint's own null vectors. They are the
dependent parameters; all others are "the first independent columns from the left". The reduced
form follows by one sweep from base to tips: a null vector of joint i is cleared of the dependent
parameters of the parent by adding the parent's null vectors, which are cleared already. No matrix
of the size of the robot is factorised.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.parameters.identifiability.frames import LENGTH_POWER, parameter_transform
from feasid.parameters.identifiability.invariant_subspaces import ROOT2, TOLERANCE
from feasid.parameters.identifiability.recursion import Recursion
from feasid.robot.inertia import SYMBOLS

PIVOT_TOLERANCES = (1e-8, 1e-10, 1e-12)
"""Least entry of a unit vector for a pivot; smaller ones are tried if pivots are missing."""

MAX_NOISE_FLOOR = 1e-2  #: Largest noise that is assumed.
MIN_PIVOT_SINGULAR_VALUE = 1e-12
"""Pivots that give a matrix with a worse condition than this are rejected."""

INTEGER_TOLERANCE = 2e-13
"""Coefficients (in working units) this close to an integer are replaced by it. With a tenth and
with ten times as much all tests of counts on hard mechanisms, tilts and random trees pass as
well."""

NOISE_SAFETY_FACTOR = 10.0
"""An entry differs from an integer if the difference exceeds the estimated rounding by this
factor."""

MAX_ROUNDING = 1e-9
"""An entry this far from an integer is not replaced by it, whatever its estimated rounding: along
chains of ten bodies and more the estimate, a bound, grows far beyond the rounding itself."""

EPSILON = 2.0**-52
"""Rounding of an entry relative to the largest of its parameter's row, such as a squared gear
ratio."""

SYMMETRIC_POWER = np.array([2.0, 2.0, 1.0, 0.0])
"""Power of length in a symmetric rotor's four parameters."""


@dataclass(frozen=True, eq=False)
class JointNullspace:
    """Null vectors of one joint in echelon form, in scaled units (lengths over the scale)."""

    #: Shape (d,): parameters: the body's ten, its rotor's, its own Ia and fo.
    columns: npt.NDArray[np.intp]
    units: Array  #: Shape (d,): SI size of a scaled unit of each.
    vectors: Array  #: Shape (d, k): null vectors; unity on `dependent`.
    dependent: npt.NDArray[np.intp]  #: Positions among `columns`.
    independent: npt.NDArray[np.intp]  #: See `dependent`.
    inertial: int  #: How many of the columns are the body's and its rotor's.
    drive: tuple[str, ...]  #: Own drive terms among the last columns, of "Ia" and "fo".
    noise: Array  #: Shape (k,): rounding in the vectors; zero when they come from exact arithmetic.


def pivots_from_right(vectors: Array, noise: Array | None = None) -> Mask:
    """Last possible pivots of null vectors, (n, d, k) orthonormal columns to (n, d) flags.

    ``noise`` (n,) is how far off the vectors are; entries of that size are not pivots.
    """
    n, d, k = vectors.shape
    picked = np.zeros((n, d), dtype=bool)
    if not k:
        return picked
    todo = np.arange(n)
    floor = np.zeros(n) if noise is None else np.minimum(100 * noise, MAX_NOISE_FLOOR)
    for tolerance in PIVOT_TOLERANCES:
        remainder, least = vectors[todo], np.maximum(tolerance, floor[todo])
        flags = np.zeros((len(todo), d), dtype=bool)
        for r in range(d - 1, -1, -1):
            row = remainder[:, r]
            size = np.sqrt(np.einsum("nk,nk->n", row, row))
            pick = (size > least) & (flags.sum(axis=1) < k)
            if pick.any():
                flags[:, r] = pick
                unit = np.where(pick[:, None], row / np.maximum(size, least)[:, None], 0.0)
                remainder -= (remainder @ unit[:, :, None]) * unit[:, None, :]
        picked[todo] = flags
        todo = np.flatnonzero(picked.sum(axis=1) != k)
        if todo.size == 0:
            break
    full = np.setdiff1d(np.arange(n), todo)
    pivots = vectors[full][picked[full]].reshape(-1, k, k)
    weak = np.linalg.svd(pivots, compute_uv=False)[:, -1] < MIN_PIVOT_SINGULAR_VALUE
    for i in [*todo, *full[weak]]:  # as good as any: the largest entries
        from scipy.linalg import qr

        order = qr(vectors[i].T, pivoting=True, mode="r")[1][:k]
        picked[i] = np.isin(np.arange(d), order)
    return picked


def round_to_integers(values: Array, tolerance: Array) -> Array:
    """Values with entries next to an integer, within the tolerance, replaced by it."""
    nearest = np.round(values)
    largest = MAX_ROUNDING * np.maximum(1.0, np.abs(nearest))
    close = np.abs(values - nearest) <= np.minimum(tolerance, largest)
    return np.where(close, nearest, values) + 0.0


def round_near_integers(values: Array, noise: Array | float = 0.0) -> Array:
    """Round entries within `INTEGER_TOLERANCE` of integers in working units, or within noise."""
    tolerance = INTEGER_TOLERANCE * np.maximum(1.0, np.abs(np.round(values)))
    return round_to_integers(values, np.maximum(tolerance, noise))


@dataclass(frozen=True, eq=False)
class Echelon:
    """Echelon form of a robot's null vectors for one run of the recursion.

    ``preference`` is the order of symbols inside a body; None is from left to right.
    """

    run: Recursion
    preference: tuple[str, ...] | None = None

    @cached_property
    def joint_nullspaces(self) -> tuple[JointNullspace, ...]:
        """The nullspace of the parameters of each joint."""
        run = self.run
        local = run.joint_conditions
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for i, item in enumerate(local):
            r, d = item.rows.shape
            # With at least d rows, zeros among them, the decomposition has all d directions.
            groups[max(r, d), d].append(i)
        blocks: list[JointNullspace | None] = [None] * len(local)
        for (r, d), members in groups.items():
            stack = np.zeros((len(members), r, d))
            for k, i in enumerate(members):
                stack[k, : len(local[i].rows)] = local[i].rows
            u, s, vt = np.linalg.svd(stack, full_matrices=False)
            ranks = (s > TOLERANCE).sum(axis=1)
            for i, values in zip(members, s, strict=True):
                run.note_doubtful_values(i, values)
            for rank in np.unique(ranks):
                joints = np.flatnonzero(ranks == rank)
                null = np.swapaxes(vt[joints, rank:], 1, 2)
                some = [members[k] for k in joints]
                inverse = np.swapaxes(vt[joints, :rank], 1, 2) / s[joints, None, :rank]
                solve = inverse @ np.swapaxes(u[joints, :, :rank], 1, 2)
                weakest = s[joints, rank - 1] if rank else np.ones(len(joints))
                reduced = self._reduce_blocks(some, stack[joints], solve, null, 1e-15 / weakest)
                for i, block in zip(some, reduced, strict=True):
                    blocks[i] = block
        return tuple(b for b in blocks if b is not None)

    def _reduce_blocks(
        self, members: list[int], rows: Array, solve: Array, null: Array, noise: Array
    ) -> list[JointNullspace]:
        """Blocks of joints with equally many columns and null vectors.

        `rows` (n, r, d): their rows in working units; `solve` (n, d, r): pseudo-inverses of the
        rows; `null` (n, d, k): orthonormal null vectors in working units; `noise` (n,): rounding in
        them, which is large next to a rank that hangs on a tiny singular value.
        """
        n, d, k = null.shape
        layouts = [self.block_layout(i) for i in members]
        dependent = np.zeros((n, k), dtype=np.intp)
        vectors, error = np.zeros((n, d, 0)), np.zeros((n, 0))
        if k:
            # Working coordinates to scaled parameters in the body's frame, and back; (n, d, d).
            there, back = np.zeros((n, d, d)), np.zeros((n, d, d))
            shift = self.run.frames.origins[members] / self.run.frames.length
            one = np.broadcast_to(np.eye(3), (n, 3, 3))
            there[:, :10, :10] = parameter_transform(one, shift) / ROOT2
            back[:, :10, :10] = ROOT2[:, None] * parameter_transform(one, -shift)
            further, sizes = np.arange(10, d), np.stack([roots for _, _, roots, _ in layouts])
            there[:, further, further] = 1 / sizes[:, 10:]
            back[:, further, further] = sizes[:, 10:]
            y = there @ null
            order = np.stack([self.preference_order(i, d) for i in members])
            q = np.linalg.qr(np.take_along_axis(y, order[:, :, None], axis=1))[0]
            flags = pivots_from_right(q, noise)
            picked = np.zeros_like(flags)
            np.put_along_axis(picked, order, flags, axis=1)
            dependent = np.nonzero(picked)[1].reshape(n, k)
            at = dependent[:, :, None]
            y = y @ np.linalg.inv(np.take_along_axis(y, at, axis=1))
            # one step of refinement: what the rows still see, taken back
            fix = there @ (solve @ ((rows @ back) @ y))
            vectors = y - fix + y @ np.take_along_axis(fix, at, axis=1)
            error = NOISE_SAFETY_FACTOR * noise[:, None] * np.abs(vectors).max(axis=1)
            of_rows = EPSILON * np.abs(vectors).max(axis=2, keepdims=True)
            vectors = round_near_integers(vectors, np.maximum(error[:, None, :], of_rows))
        out = []
        for j, (columns, units, _, inertial) in enumerate(layouts):
            vectors[j, dependent[j]] = np.eye(k)
            drive = self.run.drive_symbols(members[j])
            places = dependent[j], np.setdiff1d(np.arange(d), dependent[j]), inertial
            out.append(JointNullspace(columns, units, vectors[j], *places, drive, error[j]))
        return out

    def block_layout(self, i: int) -> tuple[npt.NDArray[np.intp], Array, Array, int]:
        """Columns of a joint's block, their units and roots, and how many are inertial."""
        run, robot = self.run, self.run.robot
        length = run.frames.length
        columns = list(robot.inertial_columns[i])
        units, roots = list(length**LENGTH_POWER), list(ROOT2)
        rotor = robot.bodies[i].rotor
        if rotor is not None:
            place = robot.rotor_columns(i)
            columns += range(place.start, place.stop)
            units += list(length ** (SYMMETRIC_POWER if rotor.symmetric else LENGTH_POWER))
            view = run.rotor_views[i]
            scale = np.ones(len(rotor.symbols)) if view is None else view.parameter_units
            roots += list((np.ones(4) if rotor.symmetric else ROOT2) / scale)
        inertial = len(columns)
        drive = run.single_joint_drives[i]
        size, gear = float(run.torque_units[i]), float(run.gear_ratio_sizes[i])
        pull = run.frames.gravity_size or 1.0
        for symbol in run.drive_symbols(i):
            columns.append(robot.drive_columns(drive or 0)[symbol])
            units.append(size**2 * gear if symbol == "Ia" else size * pull)
            roots.append(1.0)
        return np.array(columns), np.array(units), np.array(roots), inertial

    def preference_order(self, i: int, d: int) -> npt.NDArray[np.intp]:
        """Positions of a block's columns in the order of preference."""
        if self.preference is None:
            return np.arange(d)
        rank = {symbol: k for k, symbol in enumerate(self.preference)}
        rotor = self.run.robot.bodies[i].rotor
        symbols = list(SYMBOLS)
        if rotor is not None:
            symbols += [s.removeprefix("rotor_") for s in rotor.symbols]
        ranks = [rank[s] for s in symbols[:10]]
        ranks += [len(rank) + rank[s] for s in symbols[10:]]
        ranks += [2 * len(rank) + k for k in range(d - len(symbols))]
        return np.argsort(ranks, kind="stable")
