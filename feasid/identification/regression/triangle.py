"""Reduced data: everything a least-squares fit needs of a log, in about a megabyte.

Row r of the regressor contains only the parameters of the bodies that joint r carries, so each row
has its own triangle,

    [W_r | tau_r] = Q_r [[R_r, rho_r], [0, residual_r]]

(eq. (64)-(70) of Sousa and Cortesao (2014)), updated in place, chunk after chunk, by Householder
reflections of a triangle on top of a block (LAPACK ``tpqrt``). Reductions of two logs add: the
triangle of the stacked triangles is that of the stacked logs. So streams, many files, cores and
clusters are one and the same code, and weights per joint can be set later without reading the
log again.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked_methods
from feasid.core.arrays import (
    MEANING,
    Array,
    read_arrays,
    require_finite,
    require_moderate,
    require_version,
    unpack_archive,
)
from feasid.core.codec import TRANSIENT, decode, encode, kinds
from feasid.core.errors import FeasidError, InputError, LogError, SecurityError
from feasid.core.files import document_output, read_whole, write_atomically
from feasid.core.notes import Note, as_notes
from feasid.core.threads import one_thread
from feasid.identification.regression import folds
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import RegressorPlan
from feasid.robot.dynamics.spatial import CHUNK, as_samples_last
from feasid.robot.layout import squares_in_common_unit


def fingerprint_of(robot: Robot, columns: Sequence[int]) -> str:
    """Hash of what decides the meaning of reduced data: geometry, gravity, names and columns."""
    digest = hashlib.sha256()
    for body, parent in zip(robot.bodies, robot.parents, strict=True):
        # Zeros of either sign are one geometry, and have different bytes unless 0.0 is added.
        for array in (body.rotation, body.position, body.motion):
            digest.update((array + 0.0).tobytes())
        # Null bytes end names, so that no two robots' names make one text.
        digest.update(f"{body.name}\0{body.joint}\0{parent}\0".encode())
        if body.rotor is not None:
            digest.update(np.r_[body.rotor.gear, body.rotor.position].tobytes())
            digest.update(body.rotor.rotation.tobytes())
    for drive in robot.drives:
        terms = drive.name, sorted(drive.coupling.items()), drive.symbols
        digest.update((repr(terms) + "".join(f"{f.name}\0" for f in drive.features)).encode())
        for number in (drive.transition, drive.rest, drive.spring_range, drive.ripple):
            if number:
                digest.update(repr(number).encode())
    digest.update("".join(robot.constraint_texts).encode())
    if robot.load_model is not None:
        digest.update((robot.load_model + 0.0).tobytes())
    digest.update((robot.gravity + 0.0).tobytes())
    digest.update(np.asarray(columns, dtype=np.int64).tobytes())
    return digest.hexdigest()[:32]


LARGEST_FILE = 2**28
"""Bytes that a saved file may unpack to; a robot of 1000 parameters needs a tenth."""


@checked_methods
@dataclass(frozen=True, eq=False)
class Reduced:
    """A log reduced to one triangle per generalised coordinate; add two with ``+``."""

    fingerprint: str  #: Of the robot's structure and of the columns: only equal ones add.
    #: Standard parameters that the columns belong to (``base.independent``).
    columns: tuple[int, ...]
    supports: tuple[tuple[int, ...], ...]  #: Per row the positions in `columns` that it touches.
    #: Shape (k + 1, k + 1): per row the triangle of [W_r | tau_r], upper triangular.
    triangles: tuple[Array, ...]
    samples: int  #: Rows of the log that went in.
    notes: tuple[Note, ...] = ()  #: What was done to the signals on the way.
    #: Cut-off of the low-pass [Hz], when all of the log was filtered alike.
    cutoff: float | None = None
    #: The robot it belongs to; not kept in files.
    robot: Robot | None = field(default=None, metadata=TRANSIENT)
    sources: tuple[str, ...] = ()  #: Names of the files that went in.
    digests: tuple[str, ...] = ()  #: SHA-256 of their content.
    #: Equations per coordinate; `samples` unless a low-pass on both sides left fewer to keep.
    rows: int = -1
    #: Per row its triangles by slowness and time; empty when the equations were not filtered.
    strata: tuple[folds.Strata, ...] = ()
    #: Longest time between two samples of the logs [s]; 0 when it is not known.
    period: float = 0.0
    #: Shape (dof,): sum of squares of what is to be predicted, where torques hold the forces of
    #: contacts, too [(N m)^2 or N^2]; None where torques are that.
    power: Array | None = None

    def __post_init__(self) -> None:
        if self.rows < 0:
            object.__setattr__(self, "rows", self.samples)

    @classmethod
    def from_samples(
        cls,
        robot: Robot,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        tau: npt.ArrayLike,
        *,
        columns: Sequence[int] | None = None,
        notes: Sequence[str] = (),
    ) -> Reduced:
        """Reduce arrays of shape (samples, dof).

        Parameters
        ----------
        robot : Robot
        q, dq, ddq, tau : array_like, shape (samples, dof)
            [rad or m, per s, per s^2; N m or N]
        columns : sequence of int, optional
            Default ``base_parameters(robot).independent``.
        notes : sequence of str

        Raises
        ------
        LogError
            An array has the wrong shape, or a number is not finite; the message names it.
        """
        reducer = Reducer(robot, columns)
        reducer.add(q, dq, ddq, tau)
        return reducer.result(notes)

    def __add__(self, other: Reduced) -> Reduced:
        if not isinstance(other, Reduced):
            return NotImplemented
        if other.fingerprint != self.fingerprint:
            raise InputError(
                "these reduced data belong to different robots (geometry, gravity, joint terms or "
                "base parameters differ), so they cannot be added"
            )
        if self.supports != other.supports:
            raise InputError(
                "one of these reduced data has unknown contact forces, the other has not: their "
                "equations have different columns and cannot be added"
            )
        if bool(self.strata) != bool(other.strata):
            raise InputError(
                "one of these reduced data has filtered equations with folds, the other is compact "
                "or has filtered signals: they weigh noise differently and cannot be added"
            )
        power = self.torque_norms**2 + other.torque_norms**2
        parts = zip(self.triangles, other.triangles, strict=True)
        return replace(
            self,
            triangles=tuple(folds.stack_triangles(pair) for pair in parts),
            samples=self.samples + other.samples,
            notes=as_notes((*self.notes, *other.notes)),
            cutoff=self.cutoff if self.cutoff == other.cutoff else None,
            robot=self.robot or other.robot,
            sources=(*self.sources, *other.sources),
            digests=(*self.digests, *other.digests),
            rows=self.rows + other.rows,
            strata=tuple(map(folds.sum_strata, zip(self.strata, other.strata, strict=True))),
            period=max(self.period, other.period),
            power=None if self.power is None and other.power is None else power,
        )

    def __radd__(self, other: object) -> Reduced:
        """Let ``sum(parts)`` work."""
        if other == 0:
            return self
        return NotImplemented

    def with_shifted_torques(self, delay: float) -> Reduced:
        """The same rows with torques taken `delay` [s] later, to first order; needs `strata`."""
        if not self.strata:
            raise InputError(
                "reduced data of filtered signals, and compact ones, have no slopes of torques: "
                "reduce the log with filtering='equations'"
            )
        if not delay:
            return self
        strata = tuple(s.with_shifted_torques(delay) for s in self.strata)
        return replace(self, strata=strata, triangles=tuple(s.total_triangle for s in strata))

    def compact(self) -> Reduced:
        """The same equations in a tenth of the bytes: triangles of whole logs, without folds.

        It keeps a log for sums and for its drift. A fit of compact data gives parameters, and no
        held-out errors; its rows count as independent.
        """
        return replace(self, strata=())

    def with_notes(self, *notes: str) -> Reduced:
        """The same data with further `notes`."""
        return replace(self, notes=as_notes((*self.notes, *notes)))

    def triangle(self, weights: npt.ArrayLike | None = None) -> tuple[Array, Array, float]:
        """One triangle for all rows: ``|W beta - tau|^2 = |R beta - rho|^2 + residual^2``.

        Parameters
        ----------
        weights : array_like, shape (dof,), optional
            Factor per row of the regressor, such as 1 / standard deviation; default 1.

        Returns
        -------
        R : ndarray, shape (nb, nb)
            Upper triangular, non-negative diagonal.
        rho : ndarray, shape (nb,)
        residual : float

        Raises
        ------
        InputError
            `weights` does not have one finite weight per row.
        """
        rows, size = len(self.triangles), len(self.columns)
        scale = np.ones(rows) if weights is None else require_finite(weights, (rows,), "weights")
        stacked = []
        for factor, support, triangle in zip(scale, self.supports, self.triangles, strict=True):
            wide = np.zeros((triangle.shape[0], size + 1))
            wide[:, [*support, size]] = factor * triangle
            stacked.append(wide)
        r = folds.triangularise(np.vstack(stacked))
        r *= np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]
        return r[:size, :size], r[:size, size], float(r[size, size])

    def residuals(self, beta: npt.ArrayLike) -> Array:
        """Root of the sum of squared residuals per row.

        Parameters
        ----------
        beta : array_like, shape (nb,)

        Returns
        -------
        ndarray, shape (dof,)
            [N m or N]
        """
        beta = require_finite(beta, (len(self.columns),), "beta")
        out = []
        for support, triangle in zip(self.supports, self.triangles, strict=True):
            out.append(np.linalg.norm(triangle @ np.append(beta[list(support)], -1.0)))
        return np.array(out)

    @property
    def torque_norms(self) -> Array:
        """Root of the sum of squared torques per row, shape (dof,) [N m or N].

        In a log with contacts, these are the torques of the motors alone.
        """
        norms = np.array([np.linalg.norm(t[:, -1]) for t in self.triangles])
        # A joint whose equations were removed has no torque, whatever contacts exert on it.
        return norms if self.power is None else np.sqrt(self.power) * (norms > 0)

    # -- files -------------------------------------------------------------------------------

    @document_output
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a NumPy ``.npz`` archive without pickled objects."""
        write_atomically(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
        arrays: dict[str, Any] = {}
        record = json.dumps(encode(self, arrays, KNOWN))
        arrays |= {"version": np.array(FILE_VERSION), "meaning": np.array(MEANING)}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, record=np.array(record), **arrays)
        return buffer.getvalue()

    @classmethod
    def load(cls, path: str | Path) -> Reduced:
        """Read a file that `save` wrote at this `path`.

        Raises
        ------
        InputError
            The file does not exist, is damaged, or was written by another version.
        SecurityError
            The file holds pickled objects, which are never read.
        LimitError
            The file unpacks to more than `LARGEST_FILE`.
        """
        return cls.from_bytes(read_whole(path, LARGEST_FILE), str(path))

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the reduced log") -> Reduced:
        """Read the `content` that `to_bytes` gave and `save` wrote, of this `name` in messages.
        `FeasidError`: as of `load`.
        """
        try:
            arrays = read_arrays(unpack_archive(io.BytesIO(content), name, LARGEST_FILE))
            require_moderate(arrays)
            # The reduced data in an archive; what is damaged raises ValueError or LookupError.
            require_version(name, "reduced data; reduce the log again", arrays, FILE_VERSION)
            reduced = decode(json.loads(str(arrays["record"])), arrays, KNOWN)
            if not isinstance(reduced, Reduced) or not reduced.triangles:
                raise ValueError("there is no triangle in it")
            parts = zip(reduced.supports, reduced.triangles, strict=True)
            for r, (support, triangle) in enumerate(parts):
                size = len(support) + 1
                needed = {"triangle": np.zeros((size, size))}
                _require_shapes(f"row {r}", {"triangle": triangle}, needed)
                if support and not (min(support) >= 0 and max(support) < len(reduced.columns)):
                    raise ValueError(f"support of row {r} is damaged")
                if reduced.strata:
                    needed = vars(folds.Strata.empty(size))
                    _require_shapes(f"row {r}", vars(reduced.strata[r]), needed)
            return reduced
        except SecurityError as error:
            raise SecurityError(f"{name}: {error}", path=name) from error
        except FeasidError:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise InputError(f"{name} is not a file of reduced data: {error}", path=name) from error

    def __repr__(self) -> str:
        return (
            f"<Reduced: {self.samples} samples, {len(self.triangles)} joint rows, "
            f"{len(self.columns)} base parameters>"
        )


class Reducer:
    """Accumulates samples into triangles; its memory does not depend on how many come."""

    def __init__(self, robot: Robot, columns: Sequence[int] | None = None) -> None:
        if columns is None:
            columns = [int(c) for c in base_parameters(robot).independent]
        self.plan = RegressorPlan.from_robot(robot, columns)
        sizes = [len(s) + 1 for s in self.plan.nonzero_columns]
        self._triangles = [np.zeros((k, k), order="F") for k in sizes]
        self._blocks = [np.empty((k, CHUNK)) for k in sizes]
        self.samples = 0  #: Added so far.

    @one_thread()
    def add(
        self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike, tau: npt.ArrayLike
    ) -> None:
        """Add samples, arrays of shape (samples, dof); all must be finite."""
        dof = self.plan.robot.dof
        arrays: list[Array] = []
        for name, value in zip(("q", "dq", "ddq", "tau"), (q, dq, ddq, tau), strict=True):
            array = np.asarray(value, dtype=np.float64)
            if array.ndim != 2 or array.shape[1] != dof:
                raise LogError(f"{name} has shape {array.shape}, expected (samples, {dof})")
            if arrays and len(array) != len(arrays[0]):
                raise LogError(f"{name} has {len(array)} samples, q has {len(arrays[0])}")
            if not np.isfinite(array).all():
                row, joint = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
                raise LogError(f"{name} of row {row}, coordinate {joint} is not finite", row=row)
            arrays.append(array)
        for start in range(0, len(arrays[0]), CHUNK):
            parts = (as_samples_last(a[start : start + CHUNK]) for a in arrays)
            positions, speeds, accelerations, torques = parts
            count = torques.shape[1]
            # Rows of a C-ordered (k, CHUNK) block are columns of a Fortran matrix with CHUNK rows;
            # a last, shorter chunk gets blocks of its own so that they stay contiguous.
            blocks = self._blocks
            if count < CHUNK:
                blocks = [np.empty((len(b), count)) for b in blocks]
            self.plan.fill(positions, speeds, accelerations, blocks)
            for triangle, block, torque in zip(self._triangles, blocks, torques, strict=True):
                block[-1] = torque
                folds.absorb_rows(triangle, block.T)
            self.samples += count

    def result(self, notes: Sequence[str] = (), cutoff: float | None = None) -> Reduced:
        """The reduction of everything added so far."""
        place = {c: k for k, c in enumerate(self.plan.columns)}
        supports = tuple(tuple(place[c] for c in s) for s in self.plan.nonzero_columns)
        triangles = tuple(np.ascontiguousarray(np.triu(t)) for t in self._triangles)
        robot, columns = self.plan.robot, self.plan.columns
        head = fingerprint_of(robot, columns), columns, supports, triangles
        return Reduced(*head, self.samples, as_notes(notes), cutoff, robot)


def relative_errors(robot: Robot, missed: Array, squares: Array) -> Array:
    """Roots of squared errors over squared torques, of every coordinate and then of all.

    `missed`, `squares` (dof,): sums of squared errors, and of squared torques or forces [(N m)^2 or
    N^2]. Returns (dof + 1,): NaN where there is no torque. Units are kept apart: see
    `feasid.robot.layout.squares_in_common_unit`.
    """
    share = np.maximum(missed, 0.0) / np.where(squares > 0, squares, np.nan)
    power = squares_in_common_unit(robot, squares)
    total = float(np.nan_to_num(share) @ power) / (float(power.sum()) or np.nan)
    return np.asarray(np.sqrt(np.append(share, total)))


FILE_VERSION = 5  #: Version of the saved file.

KNOWN = kinds(Reduced, folds.Strata)


def _require_shapes(what: str, arrays: Mapping[str, Any], like: Mapping[str, Array]) -> None:
    """Refuse arrays of other shapes or kinds than those of `like`, or with what is no number."""
    for name, expected in like.items():
        x = arrays[name]
        if (x.shape, x.dtype) != (expected.shape, expected.dtype) or not np.isfinite(x).all():
            raise ValueError(f"{name} of {what} is damaged")


def without_rows(reduced: Reduced, rows: Collection[int]) -> Reduced:
    """The same data with 0 = 0 in place of the equations of these coordinates."""
    triangles = tuple(0.0 * t if r in rows else t for r, t in enumerate(reduced.triangles))
    strata = tuple(s.with_zero_rows() if r in rows else s for r, s in enumerate(reduced.strata))
    return replace(reduced, triangles=triangles, strata=strata)
