"""The coefficients of dependent parameters in the base parameters, for a whole robot.

`Coefficients.friction_null_vectors` adds what no joint sees by itself: null vectors among friction
coefficients of several drives on one joint, and of motors that move several joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
from scipy import sparse

from feasid.core.arrays import Array
from feasid.core.errors import RankError
from feasid.parameters.identifiability import echelon as echelons
from feasid.parameters.identifiability import frames, sampling
from feasid.parameters.identifiability.degeneracy import find_near_degeneracies
from feasid.parameters.identifiability.exact import NotRational, RankCheck, certify, exact_blocks
from feasid.parameters.identifiability.invariant_subspaces import ROOT2, TOLERANCE
from feasid.robot.bodies import SYMMETRIC_ROTOR
from feasid.robot.joint_terms import DRIVE_SYMBOLS, TERMS, JointTerm
from feasid.robot.known import Index

MOST_COPIED = 2**18  #: Entries of K of which a check makes copies at a time.
WITH_INERTIA = ("Ia", "fo")
"""Terms that no motion separates from inertia and weight of bodies; they are part of the
recursion."""

RELATION_NOISE = 1e-13
"""Entries of a relation below this, relative to its largest and in scaled units, are rounding."""


def _null_basis(matrix: Array) -> tuple[Index, Array]:
    """Pivots from the right of a small matrix's null vectors, and these, shape (columns, k)."""
    columns = matrix.shape[1]
    # With zeros for missing rows the decomposition has all directions.
    if matrix.shape[0] < columns:
        matrix = np.vstack([matrix, np.zeros((columns - matrix.shape[0], columns))])
    _, s, vt = np.linalg.svd(matrix, full_matrices=False)
    null = vt[int((s > TOLERANCE * max(1.0, s[0])).sum()) :].T
    picked = np.flatnonzero(echelons.pivots_from_right(null[None])[0])
    return picked, echelons.round_near_integers(null @ np.linalg.inv(null[picked]))


def _null_vectors(matrix: Array, columns: list[int], size: int) -> list[tuple[int, Array]]:
    """Null vectors of a small matrix whose columns are these parameters, pivots from the right."""
    if not columns:
        return []
    order = np.argsort(columns)
    picked, null = _null_basis(matrix[:, order])
    ordered, vectors = np.asarray(columns)[order], np.zeros((len(picked), size))
    vectors[:, ordered] = null.T
    return list(zip(ordered[picked].tolist(), vectors, strict=True))


UNIT_ROUNDOFF = 2.3e-16  #: Relative error of a sum, per term that makes it up.


@dataclass(frozen=True, eq=False)
class JointCoefficients:
    """Coefficients of a joint's dependent parameters."""

    rows: Index  #: Parameter columns of the robot.
    values: Array  #: Shape (len(rows), k).
    noise: Array  #: Their error.


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Dependent and independent parameters and the matrix Kd between them.

    With the dependent entries of a null vector as free variables the others are -Kd times them,
    so that K = [1 Kd] in that order satisfies K z = 0 (Sousa and Cortesao (2014) eq. (37)).
    """

    echelon: echelons.Echelon

    @cached_property
    def joint_nullspaces(self) -> tuple[echelons.JointNullspace, ...]:
        """The joints' blocks: in floating point, or exact if a rank is doubtful."""
        exact = self.exact_nullspaces
        return self.echelon.joint_nullspaces if exact is None else exact

    @cached_property
    def exact_nullspaces(self) -> tuple[echelons.JointNullspace, ...] | None:
        """The blocks from exact arithmetic; None without doubtful ranks or rational geometry.

        A rank is doubtful if singular values, angles or offsets are neither clearly zero nor
        clearly not.
        """
        self.echelon.joint_nullspaces  # noqa: B018  (notes doubtful singular values)
        run = self.echelon.run
        if run.doubtful_values or frames.nearly_degenerate_joints(run.frames):
            with suppress(NotRational):
                return exact_blocks(self.echelon)
        return None

    @cached_property
    def near_degeneracies(self) -> dict[int, str]:
        """By joint: the tiny angle or offset on which its number of base parameters depends."""
        return find_near_degeneracies(self.echelon, self.joint_nullspaces)

    @cached_property
    def random_motions(self) -> sampling.RandomMotions:
        """Random motions on which results are tried."""
        return sampling.RandomMotions(self.echelon.run)

    @cached_property
    def check(self) -> sampling.SampleCheck:
        """The blocks tried on random motions.

        Raises RankError: names the joint whose count is not confirmed.
        """
        joints = self.joint_nullspaces
        doubted: Sequence[int] = () if self.exact_nullspaces is None else range(len(joints))
        try:
            return sampling.verify_ranks(self.random_motions, joints, self.transfers, doubted)
        except RankError:
            if self.exact_nullspaces is not None or not self.near_degeneracies:
                raise
            doubted = [*self.near_degeneracies]
            return sampling.verify_ranks(self.random_motions, joints, self.transfers, doubted)

    @cached_property
    def parameter_units(self) -> Array:
        """SI size of a scaled unit of every parameter, shape (n,)."""
        run = self.echelon.run
        units = np.ones(run.robot.size)
        for block in self.joint_nullspaces:
            units[block.columns] = block.units
        units[[column for *_, column in run.shared_drive_columns]] = run.shared_column_units
        return units

    @cached_property
    def friction_null_vectors(self) -> tuple[tuple[int, Array], ...]:
        """Null vectors among friction coefficients alone, and of drives that joints share.

        Pairs of a dependent column and a scaled null vector of length n.
        """
        terms = [term for term in TERMS.values() if term.symbol not in WITH_INERTIA]
        return (
            *(v for term in terms for v in self._term_null_vectors(term)),
            *self._shared_drive_null_vectors(),
        )

    def _term_null_vectors(self, term: JointTerm) -> list[tuple[int, Array]]:
        """Null vectors among the columns of one term of the drives.

        Viscous friction of drive k enters the torques as c c' dq, a linear spring as c c' q.
        Factors that are not linear, as the sign of c.dq, are the same function up to a number only
        for parallel c.
        """
        run, robot, symbol = self.echelon.run, self.echelon.run.robot, term.symbol
        if not run.shared_drives and run.measured is None and not run.static:
            return []
        owners = [k for k, drive in enumerate(robot.drives) if symbol in drive.symbols]
        if not owners:
            return []
        positions, moves = np.zeros(robot.axes), np.zeros(robot.axes)
        for i, rows in enumerate(robot.rows):
            positions[rows] = float(run.measured is None or i in run.measured)
            moves[rows] = float((not run.static or term.varies_with == "q") and i not in run.held)
        columns = [robot.drive_columns(k)[symbol] for k in owners]
        vectors = [moves * robot.coupling(k) for k in owners]
        waves = [robot.drives[k].ripple for k in owners]
        if term.linear:
            matrix = [np.outer(positions * c, c).ravel() for c in vectors]
            return _null_vectors(np.array(matrix).reshape(len(columns), -1).T, columns, robot.size)
        out: list[tuple[int, Array]] = []
        visited: set[int] = set()
        for a, c in enumerate(vectors):
            if a in visited:
                continue
            alike = dict[int, float]()  # w with d factor(d . x) = w c factor(c . x), by place of d
            for b, d in enumerate(vectors):
                if b < a or (term.kind == "ripple" and waves[a] != waves[b]):
                    continue
                if not d.any():
                    alike[b] = 0.0
                elif c.any() and abs(c @ d) >= (1 - 1e-14) * np.linalg.norm(c) * np.linalg.norm(d):
                    factor = term.scaling(float(c @ d) / float(c @ c))
                    alike |= {} if factor is None else {b: factor}
            visited.update(alike)
            matrix = [multiple * positions * np.abs(c) for multiple in alike.values()]
            out += _null_vectors(np.array(matrix).T, [columns[b] for b in alike], robot.size)
        return out

    def _shared_drive_null_vectors(self) -> list[tuple[int, Array]]:
        """Null vectors that involve the Ia or fo of shared drives.

        Of the joints' rows N_i x_i + E_i g = 0 the x_i can be solved for when E_i g is in the
        range of N_i; the possible g form a subspace, usually zero.
        """
        run = self.echelon.run
        columns = [c for _, _, c in run.shared_drive_columns]
        if not columns:
            return []
        solved = [np.linalg.svd(item.rows, full_matrices=False) for item in run.joint_conditions]
        # Drive inertias couple joints on different branches, where bodies cannot.
        branches = [
            run.shared_drive_terms(i, j)
            for i, j in product(sorted(run.coupled_joints), repeat=2)
            if (run.measured is None or i in run.measured or j in run.measured)
            and j < i
            and j not in run.robot.ancestors[i]
        ]
        conditions = [np.array(branches).reshape(-1, len(columns))]
        inverses = []
        for (u, s, vt), item in zip(solved, run.joint_conditions, strict=True):
            rank = int((s > TOLERANCE).sum())
            within = u[:, :rank].T @ item.shared
            conditions.append(item.shared - u[:, :rank] @ within)
            inverses.append(-(vt[:rank].T / s[:rank]) @ within)
        picked, allowed = _null_basis(np.vstack(conditions))
        out = []
        for place, g in zip(picked, allowed.T, strict=True):
            vector = np.zeros(run.robot.size)
            vector[columns] += g
            for i, (inverse, p) in enumerate(zip(inverses, run.robot.parents, strict=True)):
                y = inverse @ g / np.r_[ROOT2, self.echelon.block_layout(i)[2][10:]]
                origin = run.frames.origins[i] / run.frames.length
                y[:10] = frames.parameter_transform(np.eye(3), origin) @ y[:10]
                vector[self.joint_nullspaces[i].columns] += y
                if p >= 0:
                    moved = self.transfers[i] @ y[: self.joint_nullspaces[i].inertial]
                    vector[self.joint_nullspaces[p].columns[:10]] -= moved
            vector[np.abs(vector) <= RELATION_NOISE * np.abs(vector).max()] = 0.0
            out.append((columns[place], echelons.round_near_integers(vector)))
        return out

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        local = [block.columns[block.dependent] for block in self.joint_nullspaces]
        others = [np.array([column]) for column, _ in self.friction_null_vectors]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.intp), *local, *others]))

    @cached_property
    def independent(self) -> Index:
        """Columns of the parameters taken as base, increasing."""
        return np.setdiff1d(np.arange(self.echelon.run.robot.size), self.dependent)

    @cached_property
    def kd(self) -> sparse.csc_array:
        """Kd in SI units, shape (nb, nd), sparse.

        Raises RankError: when a random combination of null vectors shows in K.
        """
        kd = self.scaled_kd.copy()
        kd.data *= self.parameter_units[self.independent][kd.indices]
        kd.data /= np.repeat(self.parameter_units[self.dependent], np.diff(kd.indptr))
        self._check_kernel(kd)
        return kd

    def _check_kernel(self, kd: sparse.csc_array) -> None:
        """Raise unless K times a random combination of null vectors vanishes."""
        null = self.nullspace
        hidden = null @ np.random.default_rng(sampling.SEED).standard_normal(null.shape[1])
        size = np.abs(hidden[self.independent])
        residual = hidden[self.independent] + kd @ hidden[self.dependent]
        for some in np.array_split(np.arange(kd.shape[1]), 1 + kd.nnz // MOST_COPIED):
            size += abs(kd[:, some]) @ np.abs(hidden[self.dependent[some]])
        residual = np.abs(residual)
        bad = np.flatnonzero(residual > sampling.MAX_HIDDEN_TORQUE * size)
        if bad.size:
            body = self.echelon.run.robot.parameter_names[self.independent[bad[0]]][0]
            raise RankError(
                f"the coefficients of body {body!r} in K are off by "
                f"{residual[bad[0]] / size[bad[0]]:.1e} of their terms "
                f"(at most {sampling.MAX_HIDDEN_TORQUE:.0e})",
                body=body,
            )

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """The robot's parameter names."""
        return self.echelon.run.robot.parameter_names

    @property
    def given_columns(self) -> Index:
        """Columns that are no unknowns; see `feasid.parameters.identifiability.experiment`."""
        return np.zeros(0, dtype=np.intp)

    def check_ranks(self) -> RankCheck:
        """Whether exact arithmetic confirms the ranks."""
        return certify(self.echelon, self.joint_nullspaces)

    @property
    def rank_warnings(self) -> tuple[str, ...]:
        """Sentences on ranks that are not clear."""
        return ()

    @cached_property
    def transfers(self) -> tuple[Array, ...]:
        """Per joint the transform of its inertial columns to the parent's ten, scaled units."""
        return tuple(self._transforms_to_parents(frames.parameter_transform))

    @cached_property
    def _transfer_rounding(self) -> tuple[Array, ...]:
        sizes = self._transforms_to_parents(frames.parameter_transform_size)
        return tuple(UNIT_ROUNDOFF * size for size in sizes)

    def _transforms_to_parents(self, frame_change: Callable[[Array, Array], Array]) -> list[Array]:
        f, out = self.echelon.run.frames, []
        transforms = frame_change(f.rotations, f.homes / f.length)
        for body, transform in zip(f.robot.bodies, transforms, strict=True):
            parts = [transform]
            if body.rotor is not None:
                turn = frames.zero_rounding_errors(body.rotor.rotation, 1.0)
                b = frame_change(turn, body.rotor.position / f.length)
                parts.append(b @ SYMMETRIC_ROTOR if body.rotor.symmetric else b)
            out.append(np.hstack(parts))
        return out

    # -- the sweep from base to tips ---------------------------------------------------------

    def _coefficients_at_joint(
        self, i: int, parent_index: int, parent_coefficients: JointCoefficients | None
    ) -> JointCoefficients:
        block = self.joint_nullspaces[i]
        leads = block.columns[block.independent]
        vectors = -block.vectors[block.independent]
        wrong = np.broadcast_to(block.noise, vectors.shape) * (vectors != np.round(vectors))
        if parent_coefficients is None:
            return JointCoefficients(leads, vectors, wrong)
        parent = self.joint_nullspaces[parent_index]
        # A child hands over to the ten inertial parameters of its parent's body alone.
        bound = parent.dependent < 10
        there, rough = self.transfers[i], self._transfer_rounding[i]
        inertial = block.vectors[: block.inertial]
        noise = block.noise * (inertial != np.round(inertial))
        transferred = there @ inertial
        size = np.abs(there) @ np.abs(inertial)
        off = rough @ np.abs(inertial) + np.abs(there) @ noise + UNIT_ROUNDOFF * size
        transferred = echelons.round_to_integers(transferred, echelons.NOISE_SAFETY_FACTOR * off)
        at = parent.dependent[bound]
        handed = parent_coefficients.values[:, bound] @ transferred[at]
        reach = np.abs(parent_coefficients.values[:, bound])
        error = reach @ off[at] + parent_coefficients.noise[:, bound] @ np.abs(transferred[at])
        error += UNIT_ROUNDOFF * (reach @ np.abs(transferred[at]))
        place = np.flatnonzero(parent.independent < 10)
        handed[place] += transferred[parent.independent[place]]
        error[place] += off[parent.independent[place]]
        error[place] += UNIT_ROUNDOFF * np.abs(transferred[parent.independent[place]])
        handed = echelons.round_to_integers(handed, echelons.NOISE_SAFETY_FACTOR * error)
        error *= handed != np.round(handed)
        nonzero = handed.any(axis=1)
        rows = np.r_[leads, parent_coefficients.rows[nonzero]]
        values, noise = np.vstack([vectors, handed[nonzero]]), np.vstack([wrong, error[nonzero]])
        return JointCoefficients(rows, values, noise)

    @property
    def scaled_kd(self) -> sparse.csc_array:
        """Kd in scaled units; not kept, as it is as large as Kd."""
        row = np.zeros(self.echelon.run.robot.size, dtype=np.int32)
        row[self.independent] = np.arange(len(self.independent))
        parts: dict[int, tuple[npt.NDArray[np.int32], Array]] = {}
        # Coefficients of each joint's dependent parameters, kept as long as a child waits for them.
        parents = self.echelon.run.robot.parents
        waiting = np.bincount([p for p in parents if p >= 0], minlength=len(parents))
        coefficients: dict[int, JointCoefficients] = {}
        for i, (block, p) in enumerate(zip(self.joint_nullspaces, parents, strict=True)):
            column = self._coefficients_at_joint(i, p, coefficients[p] if p >= 0 else None)
            if waiting[i]:
                coefficients[i] = column
            if p >= 0:
                waiting[p] -= 1
                if not waiting[p]:
                    del coefficients[p]
            for k, lead in enumerate(block.columns[block.dependent].tolist()):
                entries = np.flatnonzero(column.values[:, k])
                parts[lead] = row[column.rows[entries]], column.values[entries, k]
        for lead, vector in self.friction_null_vectors:
            # Entries of dependent parameters of bodies are replaced by what these stand for.
            total = -vector[self.independent]
            size = np.abs(total)
            for index in np.flatnonzero(vector).tolist():
                if index != lead and index in parts:
                    at, values = parts[index]
                    total[at] -= vector[index] * values
                    size[at] += np.abs(vector[index] * values)
            total = echelons.round_to_integers(total, RELATION_NOISE * size)
            entries = np.flatnonzero(total)
            parts[lead] = entries.astype(np.int32), total[entries]
        order = self.dependent.tolist()
        pointers = np.cumsum([0, *(len(parts[c][0]) for c in order)]).astype(np.int32)
        at = np.concatenate([np.zeros(0, dtype=np.int32), *(parts[c][0] for c in order)])
        data = np.concatenate([np.zeros(0), *(parts[c][1] for c in order)])
        out = sparse.csc_array((data, at, pointers), (len(self.independent), len(order)))
        out.sort_indices()
        return out

    # -- sparse forms ------------------------------------------------------------------------

    @cached_property
    def matrix(self) -> sparse.csc_array:
        """K in SI units, shape (nb, n), sparse."""
        count, n = len(self.independent), self.echelon.run.robot.size
        kd = self.kd
        lengths = np.zeros(n, dtype=np.int64)
        lengths[self.independent] = 1
        lengths[self.dependent] = np.diff(kd.indptr)
        pointers = np.r_[0, np.cumsum(lengths)].astype(kd.indices.dtype)
        at = np.empty(pointers[-1], dtype=np.int32)
        data = np.ones(pointers[-1])
        at[pointers[self.independent]] = np.arange(count)
        in_range = np.ones(len(at), dtype=bool)
        in_range[pointers[self.independent]] = False
        at[in_range], data[in_range] = kd.indices, kd.data
        return sparse.csc_array((data, at, pointers), (count, n))

    @cached_property
    def nullspace(self) -> sparse.csc_array:
        """Null vectors, one joint each and its parent's part, SI units; shape (n, nd), sparse.

        The part is the transfer of Wensing et al. (2024) eq. (43).
        """
        run, units = self.echelon.run, self.parameter_units
        data: list[Array] = []
        rows: list[Index] = [np.zeros(0, dtype=np.intp)]
        sizes: list[int] = []
        for i, (block, p) in enumerate(zip(self.joint_nullspaces, run.robot.parents, strict=True)):
            at, vectors = block.columns, block.vectors
            if p >= 0:
                inertial = vectors[: block.inertial]
                noise = echelons.NOISE_SAFETY_FACTOR * self._transfer_rounding[i] @ np.abs(inertial)
                transferred = echelons.round_to_integers(self.transfers[i] @ inertial, noise)
                at = np.r_[at, self.joint_nullspaces[p].columns[:10]]
                vectors = np.vstack([vectors, -transferred])
            leads = block.columns[block.dependent]
            values = (vectors * (units[at][:, None] / units[leads])).T
            k, place = np.nonzero(values)
            data.append(values[k, place])
            rows.append(at[place])
            sizes += np.bincount(k, minlength=len(leads)).tolist()
        for lead, vector in self.friction_null_vectors:
            at = np.flatnonzero(vector)
            data.append(vector[at] * units[at] / units[lead])
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
        if self.friction_null_vectors:  # drives that joints share tie all of them together
            return sparse.csr_array(self.matrix)
        conditions = []  # of each joint on its own columns, unity on the independent ones
        for block in self.joint_nullspaces:
            rows = np.zeros((block.independent.size, block.columns.size))
            rows[np.arange(len(rows)), block.independent] = 1.0
            rows[:, block.dependent] = -block.vectors[block.independent]
            conditions.append(rows)
        starts = np.cumsum([0, *(len(rows) for rows in conditions)])
        where: list[tuple[Index, Index]] = []
        values: list[Array] = []

        def insert_block(i: int, columns: Index, part: Array) -> None:
            r, c = np.nonzero(part)
            where.append((starts[i] + r, columns[c]))
            values.append(part[r, c] / self.parameter_units[columns[c]])

        for j, chain in enumerate(robot.ancestors):
            block = self.joint_nullspaces[j]
            insert_block(j, block.columns, conditions[j])
            identity = np.eye(block.inertial)
            for before, i in pairwise(reversed(chain)):
                identity = self.transfers[before][:, : len(identity)] @ identity
                insert_block(i, block.columns[: block.inertial], conditions[i][:, :10] @ identity)
        terms = {*DRIVE_SYMBOLS}.difference(WITH_INERTIA)
        friction = [c for c in self.independent.tolist() if robot.parameter_names[c][1] in terms]
        rows = np.concatenate([r for r, _ in where] + [starts[-1] + np.arange(len(friction))])
        columns = np.concatenate([c for _, c in where] + [np.array(friction, dtype=np.intp)])
        data = np.concatenate([*values, np.ones(len(friction))])
        shape = (int(starts[-1]) + len(friction), robot.size)
        return sparse.csr_array((data, (rows, columns)), shape=shape)
