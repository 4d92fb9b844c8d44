"""Questions in exact numbers, and the certificates that answer them.

The numbers of a certificate are the decimals that Python prints for the given doubles, so they
are what a user reads in a table or a file. `docs/certificates.md` describes the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from math import lcm
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from feasid import certificate as checker
from feasid.core.arrays import Array
from feasid.core.exact.numbers import (
    Exact,
    common_denominator,
    decimals_to_integers,
    dot,
    printed_decimal,
    shortest_text,
    simplest_number,
)
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import body_lengths
from feasid.parameters.feasibility.proof.claim import (
    Certificate,
    certificate_name,
    robot_fingerprint,
)
from feasid.parameters.feasibility.proof.facial_reduction import FaceRelations
from feasid.robot.description import Robot
from feasid.robot.known import Row

HEAVIEST = (10**12, 10**10, 10**8)
"""Limits on a body's mass [kg] of proofs that need one; the largest that a proof can afford."""

ROOM = 10.0
"""Reach of a body beyond the robot's longest lever arm that a limit leaves it, at least."""


SMALLEST_DATA = 1e-290
"""Largest entry of data that count as zero; larger powers of ten are not doubles."""


class ExactRows(tuple[Row, ...]):
    """The non-zero entries of a matrix, row by row."""

    @cached_property
    def as_integers(self) -> tuple[tuple[tuple[tuple[int, int], ...], ...], int]:
        """Pairs of column and integer, row by row, and the denominator of all."""
        numbers, over = common_denominator(c for row in self for c in row.values())
        following = iter(numbers.tolist())
        return tuple(tuple((j, next(following)) for j in row) for row in self), over

    def transpose_times(self, y: Sequence[int], columns: int) -> list[int]:
        """``K'y``, times the denominator of all."""
        out = [0] * columns
        for factor, row in zip(y, self.as_integers[0], strict=True):
            if factor:
                for j, c in row:
                    out[j] += factor * c
        return out

    def as_doubles(self, columns: int) -> Array:
        """Entries as a matrix of doubles."""
        out = np.zeros((len(self), columns))
        for line, row in zip(out, self, strict=True):
            line[[*row]] = [float(c) for c in row.values()]
        return out


@dataclass(frozen=True, eq=False)
class ExactData:
    """R and rho as decimals: integers times ``10^-places``."""

    R: npt.NDArray[np.int64]
    rho: npt.NDArray[np.int64]
    places: tuple[int, int]
    constant: Fraction = Fraction(0)  # of the squared residual, which no parameters change

    @classmethod
    def from_doubles(cls, R: Array, rho: Array, residual: float = 0.0) -> ExactData:
        """Doubles, rounded to integers of 53 bits over one power of ten (`_to_integers`)."""
        (rows, first), (target, second) = _to_integers(R), _to_integers(rho)
        return cls(rows, target, (first, second), printed_decimal(residual**2))

    @property
    def to_certificate(self) -> dict[str, object]:
        """Entries in the form of a certificate."""
        first, second = (Fraction(10) ** -p for p in self.places)
        rows = [
            [[i, shortest_text(x * first)] for i, x in enumerate(row) if x]
            for row in self.R.tolist()
        ]
        target = [shortest_text(x * second) for x in self.rho.tolist()]
        return {"rows": rows, "target": target, "rest": shortest_text(self.constant)}

    def matrix_times(self, pull: Row) -> list[Fraction]:
        """``sum_i pull_i R_ri`` by row."""
        over = Fraction(10) ** self.places[0]
        return [dot(pull.values(), row) / over for row in self.R[:, [*pull]].tolist()]

    def transpose_times(self, w: Sequence[Fraction]) -> list[Fraction]:
        """``R'w``."""
        numbers, below = common_denominator(w)
        over = below * Fraction(10) ** self.places[0]
        return [Fraction(x) / over for x in (numbers @ self.R.astype(object)).tolist()]

    def target_times(self, w: Sequence[Fraction]) -> Fraction:
        """``rho.w``."""
        numbers, below = common_denominator(w)
        over = below * Fraction(10) ** self.places[1]
        return Fraction(int(numbers @ self.rho.astype(object))) / over

    @property
    def as_doubles(self) -> tuple[Array, Array]:
        """R and rho, rounded to these decimals."""
        first, second = (10.0**p for p in self.places)
        return self.R / first, self.rho / second


def _to_integers(numbers: Array) -> tuple[npt.NDArray[np.int64], int]:
    """Integers of at most 53 bits, and the power of ten by which they are too large."""
    size = float(np.abs(numbers).max(initial=0.0))
    places = int(np.floor(np.log10(2.0**53 / size))) if size > SMALLEST_DATA else 0
    return np.rint(numbers * 10.0**places).astype(np.int64), places


@dataclass(frozen=True, eq=False)
class Question:
    """Constraints, ties and ``K delta = beta`` in exact numbers."""

    robot: Robot
    feasible: FeasibleSet  #: Without the margin.
    rows: ExactRows  #: The non-zero entries of K.
    values: tuple[Fraction, ...] | None  #: beta; None where K only defines the base parameters.
    margin: float = 0.0  #: Absolute, in SI numbers, on every matrix and number.
    elimination: Elimination = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elimination", Elimination.from_equalities(self.feasible))

    @classmethod
    def from_doubles(
        cls, robot: Robot, feasible: FeasibleSet, K: Array, beta: Array | None, margin: float = 0.0
    ) -> Question:
        """From floating-point numbers: beta as it is printed, K as `plain` numbers."""
        values = None if beta is None else tuple(printed_decimal(b) for b in beta)
        # K as `plain` numbers, consistent with how bodies move; remembered for the robot.
        cache = _rows.setdefault(robot, {})
        key = feasible.consistency, np.ascontiguousarray(K, dtype=np.float64).tobytes()
        if key not in cache:
            rows = [{int(j): simplest_number(row[j]) for j in np.flatnonzero(row)} for row in K]
            single = all(len(row) == 1 for row in rows)
            exact = rows if single else _face_relations(robot, feasible).make_rows_consistent(rows)
            cache[key] = ExactRows(exact)
        return cls(robot, feasible, (cache[key]), values, margin)

    @cached_property
    def face_relations(self) -> FaceRelations:
        """Relations that hold for bodies on faces."""
        return _face_relations(self.robot, self.feasible)

    def without_equations(self, dropped: Sequence[int]) -> Question:
        """The question without these equations, which the others imply."""
        places = [i for i in range(len(self.rows)) if i not in set(dropped)]
        values = None if self.values is None else tuple(self.values[i] for i in places)
        return replace(self, rows=ExactRows(self.rows[i] for i in places), values=values)

    @cached_property
    def reduced_rows(self) -> list[tuple[Row, Fraction]]:
        """The equations without tied parameters, and the terms that these add to left sides."""
        return [self.elimination.substitute(row) for row in self.rows]

    @cached_property
    def free_constraints(self) -> list[int]:
        """Places of the constraints on parameters that ties leave free."""
        T = self.elimination.T
        return [k for k, c in enumerate(self.feasible.constraints) if T[c.columns].any()]

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Names of ``feasible.constraints`` in a certificate."""
        out: list[tuple[str, ...]] = []
        count = 0
        for constraint in self.feasible.constraints:
            name, symbol = self.feasible.names[int(constraint.columns[0])]
            owner = certificate_name(name)
            if constraint.role == "asked":
                out.append(("asked", str(count)))
                count += 1
            else:
                name_parts = (owner, symbol) if constraint.role == "sign" else (owner,)
                out.append((constraint.role, *name_parts))
        return tuple(out)

    # -- certificates ------------------------------------------------------------------------

    def certify_feasible(self, point: Sequence[Fraction]) -> Certificate | None:
        """The claim that it is feasible, by a point; None when that does not hold."""
        return self._certify("feasible", point=_numerators(point))

    def certify_infeasible(self, dual: DualPoint) -> Certificate | None:
        """The claim that nothing is feasible, with a limit where one is needed and affordable."""
        if not any(dual.remainders):
            if dual.proof_value > 0:
                return None
            return self._certify("infeasible", limit=None, **dual.to_certificate)
        for heaviest in HEAVIEST:
            limit = self.size_limits(heaviest)
            if dual.proof_value + dual.remainder_cost(limit) < 0:
                return self._certify("infeasible", limit=limit, **dual.to_certificate)
        return None

    def certify_boundary(self, dual: DualPoint, point: Sequence[Fraction]) -> Certificate | None:
        """The claim that only singular matrices satisfy it."""
        return self._certify(
            "boundary", limit=None, point=_numerators(point), **dual.to_certificate
        )

    def certify_lower_bound(
        self,
        data: ExactData,
        weights: Sequence[Fraction],
        dual: DualPoint,
        floor: Fraction,
        point: Sequence[Fraction],
        limit: Mapping[str, str] | None,
    ) -> Certificate | None:
        """The claim that no parameters fit `data` with a sum of squares below `floor`."""
        over, proof = dual.scale_to_decimals(weights)
        del proof["combination"]
        return self._certify(
            "bound",
            data=data.to_certificate,
            weights=[shortest_text(w * over) for w in weights],
            floor=shortest_text(floor),
            point=_numerators(point),
            limit=limit and dict(limit),
            **proof,
        )

    def size_limits(self, heaviest: int) -> dict[str, str]:
        """A limit on masses, on lengths far beyond the robot's, and on joint terms."""
        reach = ROOM * float(body_lengths(self.robot).max())
        tens = 10.0 ** np.floor(np.log10(reach))
        # One digit, rounded up; a reach that has one digit but for rounding keeps it.
        reach = float(f"{np.ceil(reach / tens * (1 - 1e-9)) * tens:.1g}")
        length = shortest_text(printed_decimal(reach))
        return {"mass": str(heaviest), "length": length, "terms": str(heaviest)}

    def _certify(self, claim: str, **proof: Any) -> Certificate | None:
        certificate = self.unchecked_certificate(claim, **proof)
        return certificate if certificate.holds() else None

    def unchecked_certificate(self, claim: str, **proof: Any) -> Certificate:
        """The claim with its proof, unchecked."""
        names, constraints = self.feasible.names, []
        for rule in (c for c in self.feasible.constraints if c.role == "asked"):
            constant, entries = np.atleast_2d(rule.constant), []
            for r, c in combinations_with_replacement(range(len(constant)), 2):
                pairs = zip(rule.columns.tolist(), rule.basis[:, r, c], strict=True)
                row = [[j, shortest_text(printed_decimal(v))] for j, v in pairs if v]
                if row or constant[r, c] or isinstance(rule, Linear):
                    entries.append([r, c, row, shortest_text(printed_decimal(constant[r, c]))])
            item = {"name": certificate_name(rule.name), "strict": rule.strict}
            constraints.append({**item, "size": len(constant), "entries": entries})
        data = {
            "format": checker.FORMAT,
            "claim": claim,
            "consistency": self.feasible.consistency,
            "margin": shortest_text(printed_decimal(self.margin)),
            "robot": {
                "name": certificate_name(self.robot.name or "robot"),
                "digest": robot_fingerprint(self.robot),
            },
            "parameters": [[certificate_name(owner), symbol] for owner, symbol in names],
            "matrix": [[[j, shortest_text(v)] for j, v in row.items()] for row in self.rows],
            "ties": [
                {
                    "name": certificate_name(f"what is known of {'.'.join(names[j])}"),
                    "row": [[j, "1"], *([i, shortest_text(-c)] for i, c in row.items())],
                    "value": shortest_text(value),
                }
                for j, (row, value) in self.elimination.solved.items()
            ],
            "constraints": constraints,
            **proof,
        }
        if self.values is not None:
            data["values"] = [shortest_text(v) for v in self.values]
        outside = tuple(c.name for c in self.feasible.convex)
        return Certificate({**data, "digest": checker.digest(data)}, outside)


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the dual problem: multipliers of equations and of constraints, in rationals."""

    question: Question
    y: Sequence[Fraction]  #: Of the equations.
    Z: Mapping[int, Exact]  #: By place among the constraints.
    form: Array | None = None  #: Shape (n,): the linear form whose bound is proved.

    @cached_property
    def _remainders(self) -> tuple[list[Fraction], list[Fraction]]:
        """Share of each column that the multipliers of ties take, and the remainder."""
        question = self.question
        numerators, over = common_denominator(self.y)
        sums = question.rows.transpose_times(numerators.tolist(), question.feasible.size)
        over *= question.rows.as_integers[1]
        remainders = [Fraction(-x, over) if x else Fraction(0) for x in sums]
        for j, c in enumerate(() if self.form is None else self.form):
            remainders[j] += printed_decimal(c)
        for k, Z in self.Z.items():
            for j, part in adjoint(question.feasible.constraints[k], Z):
                remainders[j] += part
        tie_multipliers = []
        for j, (row, _) in question.elimination.solved.items():
            amount, remainders[j] = remainders[j], Fraction(0)
            tie_multipliers.append(amount)
            for i, c in row.items():
                remainders[i] += amount * c
        return tie_multipliers, remainders

    @property
    def tie_multipliers(self) -> list[Fraction]:
        """Multipliers of the ties, which take the remainder in tied parameters."""
        return self._remainders[0]

    @property
    def remainders(self) -> list[Fraction]:
        """``form_j + sum_k <B_kj, Z_k> - (K'y)_j`` for each parameter j that is not tied."""
        return self._remainders[1]

    @cached_property
    def offset(self) -> Fraction:
        """``sum_k <C_k, Z_k> + v.t``."""
        question = self.question
        total = dot(self.tie_multipliers, (t for _, t in question.elimination.solved.values()))
        constraints, margin = question.feasible.constraints, printed_decimal(question.margin)
        for k, Z in self.Z.items():
            C = np.atleast_2d(constraints[k].constant)
            total += sum(
                printed_decimal(C[r, c]) * Z[r][c] for r, c in zip(*np.nonzero(C), strict=True)
            )
            total -= margin * sum(row[i] for i, row in enumerate(Z))
        return total

    @cached_property
    def proof_value(self) -> Fraction:
        """``sum_k <C_k, Z_k> + y.beta + v.t``: it must be negative in a proof."""
        return self.offset + dot(self.y, self.question.values or ())

    def remainder_cost(self, limit: Mapping[str, str]) -> Fraction:
        """Cost of the remainder in a proof: ``sum_j |left_j| L_j``."""
        mass, length, terms = (Fraction(limit[k]) for k in checker.LIMITS)
        sizes = {"m": mass, "l": mass * length, "L": mass * length**2}
        total = Fraction(0)
        for (_, name), remainder in zip(self.question.feasible.names, self.remainders, strict=True):
            symbol = name.removeprefix("rotor_")
            total += abs(remainder) * (sizes[symbol[0]] if symbol in checker.BODY else terms)
        return total

    @property
    def to_certificate(self) -> dict[str, Any]:
        """The dual point in the form of a certificate."""
        return self.scale_to_decimals(())[1]

    def scale_to_decimals(self, beside: Sequence[Fraction]) -> tuple[Fraction, dict[str, Any]]:
        """Multiplied by the common denominator of its neighbours; proofs may be scaled."""
        entries = (x for Z in self.Z.values() for row in Z for x in row)
        over = _common_denominator([*beside, *self.y, *self.tie_multipliers, *entries])
        multipliers = []
        for k, Z in self.Z.items():
            if any(map(any, Z)):
                triangle = [shortest_text(x * over) for r, row in enumerate(Z) for x in row[r:]]
                multipliers.append([list(self.question.labels[k]), triangle])
        return over, {
            "combination": [shortest_text(v * over) for v in self.y],
            "multipliers": multipliers,
            "tied": [shortest_text(v * over) for v in self.tie_multipliers],
        }


_faces: WeakKeyDictionary[Robot, dict[tuple[str, int], FaceRelations]] = WeakKeyDictionary()
_rows: WeakKeyDictionary[Robot, dict[tuple[str, bytes], ExactRows]] = WeakKeyDictionary()


def _face_relations(robot: Robot, feasible: FeasibleSet) -> FaceRelations:
    """Face relations of the bodies and rotors; remembered for the robot."""
    cache = _faces.setdefault(robot, {})
    blocks = [b for b in feasible.blocks if b.role != "asked"]
    key = feasible.consistency, len(blocks)
    if key not in cache:
        cache[key] = FaceRelations.from_blocks(robot, blocks)
    return cache[key]


def adjoint(constraint: Block | Linear, Z: Exact) -> list[tuple[int, Fraction]]:
    """(j, <B_j, Z>) for each parameter j of a constraint."""
    numbers, over = common_denominator(x for row in Z for x in row)
    weights, beside = decimals_to_integers(constraint.basis)
    sums = weights.reshape(len(constraint.basis), -1) @ numbers
    parts = [Fraction(x, over * beside) for x in sums.tolist()]
    return list(zip(constraint.columns.tolist(), parts, strict=True))


def _numerators(point: Sequence[Fraction]) -> list[str]:
    """Numerators, and their common denominator unless all are decimals."""
    odd = _common_denominator(point)
    return [*(shortest_text(x * odd) for x in point), shortest_text(odd)]


def _common_denominator(numbers: Sequence[Fraction]) -> Fraction:
    """The smallest integer that makes decimals of all numbers; a proof may be scaled by it."""
    out = lcm(*(x.denominator for x in numbers))
    for prime in (2, 5):
        while out % prime == 0:
            out //= prime
    return Fraction(out)
