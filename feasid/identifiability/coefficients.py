"""The coefficients of dependent parameters in the base parameters, for a whole robot."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from feasid.arrays import Array
from feasid.identifiability.echelon import Block, Echelon, pivots_from_right, snapped
from feasid.identifiability.exact import exact_blocks
from feasid.identifiability.frames import SYMMETRIC, congruence
from feasid.identifiability.near import doubtful_joints
from feasid.identifiability.rational import NotRational
from feasid.identifiability.spectral import ROOT2, TOLERANCE

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Dependent and independent parameters and the matrix Kd between them.

    With the dependent entries of a null vector as free variables the others are -Kd times them,
    so that K = [1 Kd] in that order satisfies K z = 0 (Sousa and Cortesao (2014), Sec. 2.3).
    """

    echelon: Echelon

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The joints' blocks: in floating point, or exactly where that is in doubt.

        Exact arithmetic takes over when singular values, angles or offsets are neither zero nor
        safely not, if the geometry is rational.
        """
        return self.echelon.blocks if self.exact is None else self.exact

    @cached_property
    def exact(self) -> tuple[Block, ...] | None:
        """The blocks from exact arithmetic; None without doubts, or if geometry is irrational."""
        self.echelon.blocks  # noqa: B018  (notes doubtful singular values)
        if self.echelon.run.near_notes or doubtful_joints(self.echelon.run.frames):
            with suppress(NotRational):
                return exact_blocks(self.echelon)
        return None

    @cached_property
    def units(self) -> Array:
        """SI size of a scaled unit of every parameter, shape (n,)."""
        run = self.echelon.run
        units = np.ones(run.robot.size)
        for block in self.blocks:
            units[block.columns] = block.units
        for (_, _, column), unit in zip(run.shared_columns, run.shared_units, strict=True):
            units[column] = unit
        return units

    @cached_property
    def relations(self) -> tuple[tuple[int, Array], ...]:
        """Null vectors among friction coefficients alone, and of drives that joints share.

        Pairs of a dependent column and a scaled null vector of length n.
        """
        return (*(v for s in ("fv", "fc", "k") for v in self._friction(s)), *self._shared())

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        local = [block.columns[block.dependent] for block in self.blocks]
        others = [np.array([column]) for column, _ in self.relations]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.intp), *local, *others]))

    @cached_property
    def independent(self) -> Index:
        """Columns of the parameters chosen as base, increasing."""
        keep = np.ones(self.echelon.run.robot.size, dtype=bool)
        keep[self.dependent] = False
        return np.flatnonzero(keep)

    @cached_property
    def kd(self) -> Array:
        """Kd in SI units, shape (nb, nd)."""
        scaled = snapped_columns(self._scaled)
        return np.asarray(
            scaled * self.units[self.independent][:, None] / self.units[self.dependent] + 0.0
        )

    @cached_property
    def transfers(self) -> tuple[Array, ...]:
        """Per joint the transform of its inertial columns to the parent's ten, scaled units."""
        run = self.echelon.run
        f, bodies = run.frames, run.robot.bodies
        homes = np.stack([b.position for b in bodies]) / f.length
        own = congruence(f.rotations, homes)
        out = []
        for i, body in enumerate(bodies):
            parts = [own[i]]
            if body.rotor is not None:
                b = congruence(body.rotor.rotation, body.rotor.position / f.length)
                parts.append(b @ SYMMETRIC if body.rotor.symmetric else b)
            out.append(np.hstack(parts))
        return tuple(out)

    @cached_property
    def _scaled(self) -> Array:
        """Kd in scaled units: the sweep from base to tips."""
        run = self.echelon.run
        row = np.full(run.robot.size, -1)
        row[self.independent] = np.arange(len(self.independent))
        col = np.full(run.robot.size, -1)
        col[self.dependent] = np.arange(len(self.dependent))
        kd = np.zeros((len(self.independent), len(self.dependent)))
        for i, (block, p) in enumerate(zip(self.blocks, run.robot.parents, strict=True)):
            if block.dependent.size == 0:
                continue
            columns = col[block.columns[block.dependent]]
            kd[np.ix_(row[block.columns[block.independent]], columns)] = -block.vectors[
                block.independent
            ]
            if p < 0:
                continue
            moved = -self.transfers[i] @ block.vectors[: block.inertial]
            parent = self.blocks[p]
            free = parent.independent[parent.independent < 10]
            bound = parent.dependent[parent.dependent < 10]
            kd[np.ix_(row[parent.columns[free]], columns)] -= moved[free]
            if bound.size:
                kd[:, columns] -= kd[:, col[parent.columns[bound]]] @ moved[bound]
        for column, vector in self.relations:
            local = vector[self.dependent]
            local[col[column]] = 0.0
            kd[:, col[column]] = -(vector[self.independent] + kd @ local)
        return kd

    # -- drives of several joints ------------------------------------------------------------

    def _friction(self, symbol: str) -> list[tuple[int, Array]]:
        """Null vectors among the columns of one friction symbol, or of springs.

        Viscous friction of drive k enters the torques as c c' dq, its spring as c c' q. Coulomb
        friction c sign(c.dq) is the same function, up to a positive factor, only for parallel c.
        """
        run, robot = self.echelon.run, self.echelon.run.robot
        if not run.other_drives and run.measured is None and not run.static:
            return []
        if not any(symbol in drive.symbols for drive in robot.drives):
            return []
        seen = np.zeros(robot.dof)
        for i, rows in enumerate(robot.rows):
            seen[rows] = float(run.measured is None or i in run.measured)
        columns, vectors = [], []
        for k in range(len(robot.drives)):
            if symbol in robot.drives[k].symbols:
                c = robot.coupling(k)
                columns.append(robot.drive_columns(k)[symbol])
                vectors.append(0.0 * c if run.static and symbol != "k" else c)
        if symbol in ("fv", "k"):
            matrix = [np.outer(seen * c, c).ravel() for c in vectors]
            return _null_vectors(np.array(matrix).reshape(len(columns), -1).T, columns, robot.size)
        out: list[tuple[int, Array]] = []
        done: set[int] = set()
        for a, c in enumerate(vectors):
            if a in done:
                continue
            alike = [b for b, d in enumerate(vectors) if b >= a and _parallel(c, d)]
            done.update(alike)
            matrix = [np.linalg.norm(vectors[b]) * seen * np.abs(c) for b in alike]
            out += _null_vectors(np.array(matrix).T, [columns[b] for b in alike], robot.size)
        return out

    def _shared(self) -> list[tuple[int, Array]]:
        """Null vectors that involve the Ia or fo of drives that are nobody's own.

        Of the joints' rows N_i x_i + E_i g = 0 the x_i can be solved for when E_i g is in the
        range of N_i; what g that allows is a subspace, usually zero.
        """
        run = self.echelon.run
        columns = [c for _, _, c in run.shared_columns]
        if not columns:
            return []
        solved = [np.linalg.svd(item.rows, full_matrices=False) for item in run.run]
        conditions = [self._branch_rows()]
        inverses = []
        for (u, s, vt), item in zip(solved, run.run, strict=True):
            rank = int((s > TOLERANCE).sum())
            within = u[:, :rank].T @ item.shared
            conditions.append(item.shared - u[:, :rank] @ within)
            inverses.append(-(vt[:rank].T / s[:rank]) @ within)
        allowed = _null_basis(np.vstack(conditions))
        if allowed.shape[1] == 0:
            return []
        picked = np.flatnonzero(pivots_from_right(allowed[None])[0])
        allowed = snapped(allowed @ np.linalg.inv(allowed[picked]))
        out = []
        for place, g in zip(picked, allowed.T, strict=True):
            vector = np.zeros(run.robot.size)
            vector[columns] += g
            for i, (inverse, p) in enumerate(zip(inverses, run.robot.parents, strict=True)):
                y = self._to_scaled(i, inverse @ g)
                vector[self.blocks[i].columns] += y
                if p >= 0:
                    moved = self.transfers[i] @ y[: self.blocks[i].inertial]
                    vector[self.blocks[p].columns[:10]] -= moved
            out.append((columns[place], vector))
        return out

    def _branch_rows(self) -> Array:
        """Drive inertias that couple joints on different branches, where bodies cannot."""
        run = self.echelon.run
        rows = []
        joints = sorted(run.coupled)
        ancestors = run.robot.ancestors
        for i in joints:
            for j in joints:
                seen = run.measured is None or i in run.measured or j in run.measured
                if seen and j < i and j not in ancestors[i]:
                    rows.append(run.shared_row(i, j))
        return np.array(rows).reshape(-1, len(run.shared_columns))

    def _to_scaled(self, i: int, x: Array) -> Array:
        """Working coordinates of a joint's block to scaled parameters in the body's frame."""
        f = self.echelon.run.frames
        y = x / np.r_[ROOT2, self.echelon.layout(i)[2][10:]]
        y[:10] = congruence(np.eye(3), f.origins[i] / f.length) @ y[:10]
        return np.asarray(y)

    def null_vector(self, column: int) -> Array:
        """The change that goes with one unit of a dependent parameter and shows nowhere, (n,).

        Other dependent parameters stay as they are.
        """
        out = np.zeros(self.echelon.run.robot.size)
        place = int(np.searchsorted(self.dependent, column))
        out[self.independent] = -self.kd[:, place]
        out[column] = 1.0
        return out

    # -- sparse forms ------------------------------------------------------------------------

    @cached_property
    def nullspace(self) -> sparse.csc_array:
        """Null vectors, one joint each and its parent's part, SI units; shape (n, nd), sparse."""
        run = self.echelon.run
        data: list[Array] = []
        rows: list[Index] = [np.zeros(0, dtype=np.intp)]
        sizes: list[int] = []
        for i, (block, p) in enumerate(zip(self.blocks, run.robot.parents, strict=True)):
            moved = snapped_columns(self.transfers[i] @ block.vectors[: block.inertial])
            for k, own in enumerate(block.dependent):
                column = [block.vectors[:, k]]
                where = [block.columns]
                if p >= 0:
                    column.append(-moved[:, k])
                    where.append(self.blocks[p].columns[:10])
                at = np.concatenate(where)
                scale = self.units[at] / self.units[block.columns[own]]
                values = np.concatenate(column) * scale
                keep = values != 0
                data.append(values[keep])
                rows.append(at[keep])
                sizes.append(int(keep.sum()))
        for lead, vector in self.relations:
            at = np.flatnonzero(vector)
            data.append(vector[at] * self.units[at] / self.units[lead])
            rows.append(at)
            sizes.append(len(at))
        pointers = np.cumsum([0, *sizes])
        shape = (run.robot.size, len(sizes))
        values = np.concatenate([np.zeros(0), *data])
        return sparse.csc_array((values, np.concatenate(rows), pointers), shape)

    @cached_property
    def descriptor(self) -> sparse.csr_array:
        """Combinations that can be identified, SI units; shape (nb, n), sparse.

        Each joint's rows on its own body, and on every body beyond it as that body's parameters
        add up in it at home: N_ij = N_i,p(j) B_j for the bodies j beyond i.
        """
        robot = self.echelon.run.robot
        if self.relations:  # drives that joints share tie all of them together
            full = np.zeros((len(self.independent), robot.size))
            full[np.arange(len(full)), self.independent] = 1.0
            full[:, self.dependent] = self.kd
            return sparse.csr_array(full)
        own = [_joint_rows(block) for block in self.blocks]
        starts = np.cumsum([0, *(len(rows) for rows in own)])
        where: list[tuple[Index, Index]] = []
        values: list[Array] = []

        def put(i: int, columns: Index, part: Array) -> None:
            r, c = np.nonzero(part)
            where.append((starts[i] + r, columns[c]))
            values.append(part[r, c] / self.units[columns[c]])

        for j, chain in enumerate(robot.ancestors):
            block = self.blocks[j]
            put(j, block.columns, own[j])
            seen = np.eye(block.inertial)
            for before, i in pairwise(reversed(chain)):
                seen = self.transfers[before][:, : len(seen)] @ seen
                put(i, block.columns[: block.inertial], own[i][:, :10] @ seen)
        friction = [c for c in self.independent.tolist() if robot.parameter_names[c][1] in "fv fc"]
        rows = np.concatenate([r for r, _ in where] + [starts[-1] + np.arange(len(friction))])
        columns = np.concatenate([c for _, c in where] + [np.array(friction, dtype=np.intp)])
        data = np.concatenate([*values, np.ones(len(friction))])
        shape = (int(starts[-1]) + len(friction), robot.size)
        return sparse.csr_array((data, (rows, columns)), shape=shape)


def _joint_rows(block: Block) -> Array:
    """A joint's conditions on its own columns, reduced: unity on the independent ones."""
    out = np.zeros((block.independent.size, block.columns.size))
    out[np.arange(len(out)), block.independent] = 1.0
    out[:, block.dependent] = -block.vectors[block.independent]
    return out


def snapped_columns(kd: Array) -> Array:
    """Entries next to an integer, measured by their column's size, become that integer."""
    if kd.size == 0:
        return kd
    scale = np.maximum(1.0, np.abs(kd).max(axis=0))
    nearest = np.round(kd)
    return np.where(np.abs(kd - nearest) <= 1e-13 * scale + 2e-13 * np.abs(nearest), nearest, kd)


def _parallel(a: Array, b: Array) -> bool:
    return bool(abs(a @ b) >= (1 - 1e-14) * np.linalg.norm(a) * np.linalg.norm(b))


def _null_basis(matrix: Array) -> Array:
    """Orthonormal null vectors of a small matrix, shape (columns, k)."""
    columns = matrix.shape[1]
    if matrix.shape[0] < columns:
        matrix = np.vstack([matrix, np.zeros((columns - matrix.shape[0], columns))])
    _, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(vt[int((s > TOLERANCE * max(1.0, s[0])).sum()) :].T)


def _null_vectors(matrix: Array, columns: list[int], size: int) -> list[tuple[int, Array]]:
    """Null vectors of a small matrix whose columns are these parameters, pivots from the right."""
    if not columns:
        return []
    order = np.argsort(columns)
    null = _null_basis(matrix[:, order])
    if null.shape[1] == 0:
        return []
    picked = np.flatnonzero(pivots_from_right(null[None])[0])
    null = snapped(null @ np.linalg.inv(null[picked]))
    out = []
    for k, place in enumerate(picked):
        vector = np.zeros(size)
        vector[np.asarray(columns)[order]] = null[:, k]
        out.append((int(np.asarray(columns)[order][place]), vector))
    return out
