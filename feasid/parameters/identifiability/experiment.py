"""Experiments and uses of a model, and combinations that one leaves unknown for another.

Torques of a use are functions of its base parameters beta_B = K_B delta. An experiment leaves
delta free along its null vectors N_A; so of beta_B it determines what is in the null space of
(K_B N_A)', and rank(K_B N_A) combinations are missing.

Base parameters in an order of preference across bodies, or with parameters that are given.

A parameter that is given changes no torque in an unknown way, so that its column leaves K; tied
parameters add up in the column of the one that represents them. With K of the whole robot and
``delta = E z + fixed``, the base parameters of the unknowns z are the reduced form of K E.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, did_you_mean
from feasid.parameters.identifiability import echelon
from feasid.parameters.identifiability.coefficients import UNIT_ROUNDOFF, Coefficients
from feasid.parameters.identifiability.exact import RankCheck
from feasid.parameters.identifiability.recursion import Recursion
from feasid.parameters.identifiability.sampling import SampleCheck, energy_rows
from feasid.robot.bodies import read_only_array
from feasid.robot.description import Robot
from feasid.robot.known import Index, Unknowns
from feasid.robot.rotations import exponential

Joints = str | Collection[str]

WORDS = ("measured", "held", "gravity", "static", "everything")


@dataclass(frozen=True, eq=False)
class Experiment:
    """Which joints move, which torques are measured, at rest or not, in which gravity."""

    measured: Joints | None = None  #: Joints whose torques are measured; default all.
    #: Joints that stay where they are, at home or at a position [rad or m].
    held: Joints | Mapping[str, npt.ArrayLike] = ()
    static: bool = False  #: Postures at rest only.
    #: Shape (3,): in the base frame [m/s^2]; default the robot's.
    gravity: npt.ArrayLike | None = None

    @classmethod
    def parse(cls, words: Sequence[str]) -> Experiment:
        """From words: ``measured=hip,knee held=base,elbow:1.57 static gravity=0,0,-1.62``."""
        values: dict[str, str] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in WORDS:
                hint = did_you_mean(key, WORDS)
                raise InputError(f"{word!r} is no part of an experiment{hint}: {', '.join(WORDS)}")
            if bool(value) == (key in ("static", "everything")):
                raise InputError(f"{word!r}: {key} takes {'no value' if value else 'a value'}")
            values[key] = value
        measured = values["measured"].split(",") if "measured" in values else None
        held_joints: dict[str, float] = {}
        for entry in filter(None, values.get("held", "").split(",")):
            name, colon, value = entry.rpartition(":")
            position = _parse_numbers(value, f"position of joint {name!r}")[0] if colon else 0.0
            held_joints[name if colon else entry] = position
        gravity = _parse_numbers(values["gravity"], "gravity") if "gravity" in values else None
        return cls(measured, held_joints, "static" in values, gravity)

    @property
    def measured_joints(self) -> tuple[str, ...] | None:
        """Joints that are measured, None for all."""
        return None if self.measured is None else tuple(_joint_names(self.measured))

    def recursion(self, robot: Robot) -> Recursion:
        """The algorithm for this experiment with a robot; raises like `apply_to`."""
        every = measured = frozenset(range(len(robot.bodies)))
        if self.measured is not None:
            measured = frozenset(robot.joint_index(j) for j in _joint_names(self.measured))
        held = frozenset(robot.joint_index(j) for j in _joint_names(self.held))
        everything = measured == every and not held
        return Recursion(self.apply_to(robot), None if everything else measured, self.static, held)

    def apply_to(self, robot: Robot) -> Robot:
        """The robot in this gravity, at home where its joints are held.

        Raises InputError: names a joint that shares a drive with others, or is held off its
        spring's rest.
        """
        if self.gravity is not None:
            robot = robot.with_gravity(self.gravity)
        for name in _joint_names(self.held):
            shared_drives = [d for d in robot.drives if len(d.coupling) > 1 and name in d.coupling]
            if shared_drives:
                raise InputError(
                    f"joint {name!r} cannot be held: drive {shared_drives[0].name!r} moves it "
                    "together with others",
                    joint=name,
                )
        if not isinstance(self.held, Mapping):
            return robot
        bodies = [*robot.bodies]
        for name, value in self.held.items():
            i = robot.joint_index(name)
            body = bodies[i]
            places = np.atleast_1d(value) * np.ones(body.dof)
            q = read_only_array(places, (body.dof,), f"position of joint {name!r}")
            if q.any() and any("k" in d.symbols and name in d.coupling for d in robot.drives):
                raise InputError(
                    f"joint {name!r} has a spring: it can be held at its rest position only",
                    joint=name,
                )
            turn, shift = exponential(body.motion @ q)
            position = body.position + body.rotation @ shift
            bodies[i] = replace(body, rotation=body.rotation @ turn, position=position)
        return replace(robot, bodies=tuple(bodies))


def _joint_names(joints: Joints) -> Collection[str]:
    return (joints,) if isinstance(joints, str) else joints


def _parse_numbers(text: str, what: str) -> list[float]:
    try:
        return [float(v) for v in text.split(",")]
    except ValueError:
        raise InputError(f"{what} must be numbers separated by commas, not {text!r}") from None


MISSING_TOLERANCE = 1e-9
"""Entries of K_B N_A below this, relative to the terms they are made of, are rounding."""


@dataclass(frozen=True, eq=False)
class MissingCombinations:
    """Combinations that a use needs and an experiment leaves unknown."""

    experiment: Coefficients
    use: Coefficients
    expressions: tuple[str, ...]  #: The use's base parameters.

    def __post_init__(self) -> None:
        if self.experiment.names != self.use.names:
            raise InputError("an experiment and a use are compared for one robot's parameters")

    @cached_property
    def nullspace_image(self) -> Array:
        """K_B N_A with rows and columns of unit size, shape (nb, k); rounding is zero."""
        k, null = self.use.matrix, self.experiment.nullspace
        product, size = (k @ null).toarray(), (abs(k) @ abs(null)).toarray()
        product[np.abs(product) <= MISSING_TOLERANCE * size] = 0.0
        for axis in (0, 1):
            norm = np.linalg.norm(product, axis=axis, keepdims=True)
            product = product / np.where(norm > 0, norm, 1.0)
        return np.asarray(product)

    @cached_property
    def size(self) -> int:
        """Number of combinations that the use needs and the experiment leaves unknown."""
        if not self.nullspace_image.any():
            return 0
        s = np.linalg.svd(self.nullspace_image, compute_uv=False)
        return int((s > MISSING_TOLERANCE * s[0]).sum())

    @cached_property
    def missing(self) -> Mask:
        """Whether the experiment leaves each of the use's base parameters unknown, shape (nb,)."""
        return np.asarray(self.nullspace_image.any(axis=1))

    def by_body(self) -> dict[str, list[str]]:
        """The use's base parameters that are not known, by the body of their leading parameter."""
        out: dict[str, list[str]] = {}
        for r in np.flatnonzero(self.missing).tolist():
            body = self.use.names[int(self.use.independent[r])][0]
            out.setdefault(body, []).append(self.expressions[r])
        return out

    def table(self) -> str:
        """Counts per body, then the unknown combinations."""
        needed = Counter(self.use.names[c][0] for c in self.use.independent.tolist())
        by_body = self.by_body()
        width = max(map(len, ["body", *needed]))
        lines = [f"{'body':{width}}  needed  not known"]
        lines += [f"{b:{width}}  {n:>6}  {len(by_body.get(b, ())):>9}" for b, n in needed.items()]
        for body, combinations in by_body.items():
            lines += ["", f"{body}: the experiment leaves unknown"]
            lines += [f"  {text}" for text in combinations]
        return "\n".join(lines)

    def __str__(self) -> str:
        total = len(self.use.independent)
        if self.size == 0:
            return f"the experiment determines all {total} combinations that the use needs"
        return (
            f"of {total} combinations that the use needs, {self.size} stay unknown; "
            f"they enter {int(self.missing.sum())} base parameters"
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class ReorderedCoefficients(Coefficients):
    """Echelon form in an order of preference across bodies.

    Pivots are then no longer a matter of each joint alone: the null vectors of the whole robot
    are reduced as one dense matrix.
    """

    order: Index  #: Shape (n,): all columns, the preferred ones first.

    @cached_property
    def _null_vectors(self) -> Array:
        """Orthonormal null vectors in scaled units, columns in the order of preference."""
        first = Coefficients(self.echelon)
        null = np.zeros((len(self.order), len(first.dependent)))
        null[first.dependent, np.arange(len(first.dependent))] = 1.0
        null[first.independent] = -first.scaled_kd.toarray()
        return np.asarray(np.linalg.qr(null[self.order])[0])

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        return np.sort(self.order[echelon.pivots_from_right(self._null_vectors[None])[0]])

    @cached_property
    def scaled_kd(self) -> sparse.csc_array:
        """Kd in scaled units."""
        place = np.argsort(self.order)
        pivots = self._null_vectors[place[self.dependent]]
        kd = -np.linalg.solve(pivots.T, self._null_vectors[place[self.independent]].T).T
        worst = np.linalg.cond(pivots) if pivots.size else 1.0
        size = np.maximum(1.0, np.abs(kd).max(axis=0, initial=0.0))
        noise = echelon.NOISE_SAFETY_FACTOR * UNIT_ROUNDOFF * worst * size
        return sparse.csc_array(echelon.round_to_integers(np.asarray(kd), np.asarray(noise)))


RANK_TOLERANCE = 1e-10
"""Singular values of combinations of unit size below this are zero; `singular_value_gap` says how
clearly."""

LOOP_NOISE = 1e-8
"""Singular values of mechanisms with loops between this and `RANK_TOLERANCE` count where the widest
gap among them is below them: passive joints follow by iterations from rounded geometry, which left
1e-10 to 2.3e-10 of what is zero in five of 500 random loops."""

CLEAR_GAP = 1e4  #: A rank whose neighbouring singular values differ by less is doubtful.
INTEGER_TOLERANCE = 1e-11
"""Coefficients this close to an integer are that integer, relative to their column's largest ..."""

LARGEST_ROUNDING = 1e-8
"""... or as close as the inverse of the rank's gap, by which null vectors may be off, at most
this. On five mechanisms with loops coefficients of zero were off by a twentieth of it."""

MIN_SINGULAR_VALUE = 1e-17  #: Number that stands for a singular value of zero in ratios.


@dataclass(frozen=True, eq=False)
class RestrictedCoefficients(Coefficients):
    """Echelon form over the unknowns."""

    unknowns: Unknowns
    order: Index  #: Shape (n,): all columns, the preferred ones first.

    @cached_property
    def unrestricted_form(self) -> Coefficients:
        """The echelon form with every parameter unknown."""
        return Coefficients(self.echelon)

    @cached_property
    def _rank_decision(self) -> tuple[Array, int, float]:
        """Right singular vectors of the visible combinations of the unknowns, in scaled units and
        of unit size, their rank and its gap.
        """
        first = self.unrestricted_form
        k = np.zeros((len(first.independent), len(self.parameter_units)))
        k[np.arange(len(k)), first.independent] = 1.0
        k[:, first.dependent] = first.scaled_kd.toarray()
        units, roots, run = self.parameter_units, self.unknowns.roots, self.echelon.run
        if not run.robot.is_tree:  # what shows through couplings and loops
            columns, size = first.independent, run.frames.length
            energies = energy_rows(run.robot, columns, units[columns], size, run.static)
            _, s, vt = np.linalg.svd(energies, full_matrices=False)
            # Combinations count by how strongly they act, so that rounding stays small.
            k = (s / s[0])[:, None] * vt @ k
        rows = k / units @ self.unknowns.T * units[roots]
        if run.robot.is_tree:
            sizes = np.linalg.norm(rows, axis=1)
            rows = rows[sizes > 0] / sizes[sizes > 0, None]
        pad = max(0, rows.shape[1] - len(rows))
        rows = np.vstack([rows, np.zeros((pad, rows.shape[1]))])
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        largest = s.max(initial=0.0)
        rank = int((s > RANK_TOLERANCE * largest).sum())
        if not run.robot.is_tree:
            sizes = np.maximum(s, RANK_TOLERANCE * largest)
            least = max(1, int((s > LOOP_NOISE * largest).sum()))
            ranks = range(least, max(least, min(rank, len(s) - 1)) + 1)
            rank = max(ranks, key=lambda r: sizes[r - 1] / sizes[r]) if least < len(s) else least
        if rank in (0, len(s)):
            return vt, rank, float("inf")
        return vt, rank, float(s[rank - 1] / max(s[rank], MIN_SINGULAR_VALUE))

    @cached_property
    def check(self) -> SampleCheck:
        """Check of the open tree; raises where samples of a loop do not determine the rank."""
        self.independent  # noqa: B018  (raises where loops close too seldom)
        return self.unrestricted_form.check

    @property
    def singular_value_gap(self) -> float:
        """Ratio of the singular values on either side of the rank; infinite at full rank."""
        return self._rank_decision[2]

    @property
    def given_columns(self) -> Index:
        """Columns that are given or tied, in increasing order."""
        return np.setdiff1d(np.arange(len(self.order)), self.unknowns.roots)

    @cached_property
    def _null_vectors(self) -> tuple[Index, Array]:
        """Columns of the unknowns in the order of preference, and their null vectors."""
        vt, rank, _ = self._rank_decision
        columns = self.order[np.isin(self.order, self.unknowns.roots)]
        null = vt[rank:].T[np.searchsorted(self.unknowns.roots, columns)]  # roots increase
        return columns, np.asarray(np.linalg.qr(null)[0])

    @cached_property
    def _dependent_unknowns(self) -> Index:
        """Unknowns that lead no base parameter, increasing."""
        columns, null = self._null_vectors
        return np.sort(columns[echelon.pivots_from_right(null[None])[0]])

    @cached_property
    def independent(self) -> Index:
        """Columns of the parameters taken as base, increasing."""
        return np.setdiff1d(self.unknowns.roots, self._dependent_unknowns)

    @cached_property
    def dependent(self) -> Index:
        """All other columns, increasing."""
        return np.setdiff1d(np.arange(len(self.order)), self.independent)

    @cached_property
    def scaled_kd(self) -> sparse.csc_array:
        """Kd in scaled units; zero for parameters that are not unknown."""
        columns, null = self._null_vectors
        out = np.zeros((len(self.independent), len(self.dependent)))
        if self._dependent_unknowns.size:
            place = np.empty(len(self.order), dtype=np.intp)
            place[columns] = np.arange(len(columns))
            pivots = null[place[self._dependent_unknowns]]
            kd = -np.linalg.solve(pivots.T, null[place[self.independent]].T).T
            rounding = np.clip(1 / self.singular_value_gap, INTEGER_TOLERANCE, LARGEST_ROUNDING)
            scale = np.maximum(1.0, np.abs(kd).max(axis=0, initial=0.0))
            at = np.searchsorted(self.dependent, self._dependent_unknowns)
            out[:, at] = echelon.round_to_integers(np.asarray(kd), float(rounding) * scale)
        return sparse.csc_array(out)

    @cached_property
    def nullspace(self) -> sparse.csc_array:
        """Changes of the unknowns that no motion shows, SI units; shape (n, unknowns - nb)."""
        out = np.zeros((len(self.order), len(self._dependent_unknowns)))
        at = np.searchsorted(self.dependent, self._dependent_unknowns)
        units = self.parameter_units
        ratio = units[self.independent][:, None] / units[self._dependent_unknowns]
        out[self.independent] = -self.scaled_kd.toarray()[:, at] * ratio
        out[self._dependent_unknowns, np.arange(len(self._dependent_unknowns))] = 1.0
        return sparse.csc_array(self.unknowns.T @ out[self.unknowns.roots])

    @cached_property
    def descriptor(self) -> sparse.csr_array:
        """Combinations that can be identified: K itself, SI units; shape (nb, n)."""
        return sparse.csr_array(self.matrix)

    def check_ranks(self) -> RankCheck:
        """No exact arithmetic: the rank is numerical."""
        gap = self.singular_value_gap
        return RankCheck(False, f"the rank is numerical, with a gap of {gap:.1e}")

    @property
    def rank_warnings(self) -> tuple[str, ...]:
        """A sentence where the rank is not clear."""
        if self.singular_value_gap >= CLEAR_GAP:
            return ()
        return (
            f"the count is numerical, and the singular values on either side of the rank differ by "
            f"{self.singular_value_gap:.1e} only",
        )
