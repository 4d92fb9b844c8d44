"""Certificates as objects: built from floating-point findings, checked in exact rationals.

The numbers of a certificate are the decimals that Python prints for the given doubles, so they
are what a user reads in a table or a file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from feasid import certificate as checker
from feasid import files
from feasid.arrays import Array
from feasid.errors import CertificateError, InputError
from feasid.exact.elimination import solve_near
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.constraints.sets import FeasibleSet

Row = dict[int, Fraction]

PLAIN_DIGITS = 12
"""Significant digits of computed coefficients: a few fewer than they are computed to, so that those
which are decimals, such as 0.045 squared, are just that, and what cancels on paper cancels."""

PLAIN_DENOMINATOR = 1000

LIMIT = "enormous size"
"""How the constraints of a proof with a size limit are named."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that parameters can or cannot exist.

    Attributes
    ----------
    data : dict
        What the file holds; see `feasid.certificate`.
    """

    data: dict[str, Any]

    @property
    def claim(self) -> str:
        """What is proved: "feasible" or "infeasible"."""
        return str(self.data["claim"])

    @property
    def limit(self) -> float | None:
        """Size, in units of each body's mass and length, below which the proof speaks of bodies.

        None for a proof without a limit, as feasibility always has.
        """
        sizes = [c["constant"][0][2] for c in self.data["constraints"] if LIMIT in c["name"]]
        return float(sizes[0]) if sizes else None

    def verify(self) -> str:
        """Check in exact rational arithmetic, without any solver; the sentence that it proves.

        Raises
        ------
        CertificateError
            When the certificate proves nothing.
        """
        try:
            return checker.verify(self.data)
        except ValueError as error:
            raise CertificateError(f"the certificate does not hold: {error}") from error

    def holds(self) -> bool:
        """True when `verify` succeeds."""
        try:
            self.verify()
        except CertificateError:
            return False
        return True

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write as JSON, for ``feasid verify``."""
        text = json.dumps(self.data, indent=1)
        files.write_aside(path, text.encode(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate; it is not checked before `verify`."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}", path=str(path)) from error
        except (ValueError, RecursionError) as error:
            raise CertificateError(f"{path} is not JSON: {error}", path=str(path)) from error
        if not isinstance(data, dict):
            raise CertificateError(f"{path} is not a certificate", path=str(path))
        return cls(data)

    def __repr__(self) -> str:
        return (
            f"<Certificate: {self.claim} under {self.data['consistency']} consistency, "
            f"{len(self.data['parameters'])} parameters, {len(self.data['constraints'])} "
            f"constraints>"
        )


@dataclass(frozen=True, eq=False)
class Claim:
    """What is asked, in exact numbers: the constraints and ``K delta = beta``.

    ``rows`` are the non-zero entries of K. Where each row has a column of its own with coefficient
    1, as base parameters have, `lead` names it and the equations are solved by substitution.
    """

    feasible: FeasibleSet
    rows: tuple[Row, ...]
    values: tuple[Fraction, ...]
    lead: tuple[int, ...] | None

    @classmethod
    def of(cls, feasible: FeasibleSet, K: Array, beta: Array) -> Claim:
        """From floating-point numbers: beta as it is printed, K as `plain` numbers."""
        rows = tuple({int(j): plain(row[j]) for j in np.flatnonzero(row)} for row in K)
        return cls(feasible, rows, tuple(decimal(b) for b in beta), leading_columns(K))

    def completed(self, delta: Array) -> list[Fraction]:
        """The point that solves ``K delta = beta`` exactly with the dependent part of `delta`."""
        point = [decimal(d) for d in delta]
        if self.lead is None:
            start = {(j,): x for j, x in enumerate(point)}
            equations = [
                ({(j,): c for j, c in row.items()}, value)
                for row, value in zip(self.rows, self.values, strict=True)
            ]
            solved = solve_near(equations, start, lambda _: 1.0) or start
            return [solved[(j,)] for j in range(len(point))]
        for row, value, lead in zip(self.rows, self.values, self.lead, strict=True):
            others = (c * point[j] for j, c in row.items() if j != lead)
            point[lead] = value - sum(others, Fraction(0))
        return point

    def transposed(self, y: Sequence[Fraction]) -> list[Fraction]:
        """K'y."""
        out = [Fraction(0)] * self.feasible.size
        for row, factor in zip(self.rows, y, strict=True):
            if factor:
                for j, value in row.items():
                    out[j] += factor * value
        return out

    def feasibility(self, delta: Array) -> Certificate:
        """The claim that it is feasible, by `delta`."""
        return self._certificate("feasible", point=[text(x) for x in self.completed(delta)])

    def infeasibility(
        self, y: Sequence[Fraction], multipliers: Sequence[Sequence[Sequence[Fraction]]]
    ) -> Certificate:
        """The claim that it is not, by multipliers of the equations, blocks and linear rows."""
        triangles = [
            [text(Z[r][c]) for r in range(len(Z)) for c in range(r, len(Z))] for Z in multipliers
        ]
        combination = [text(v) for v in y]
        return self._certificate("infeasible", multipliers=triangles, combination=combination)

    def _certificate(self, claim: str, **proof: Any) -> Certificate:
        data = {
            "format": checker.FORMAT,
            "claim": claim,
            "consistency": self.feasible.consistency,
            "parameters": [list(name) for name in self.feasible.names],
            "matrix": [[[j, text(v)] for j, v in row.items()] for row in self.rows],
            "values": [text(v) for v in self.values],
            "constraints": constraints_data(self.feasible),
            **proof,
        }
        return Certificate({**data, "digest": checker.digest(data)})


def constraints_data(feasible: FeasibleSet) -> list[dict[str, Any]]:
    """All constraints as a certificate holds them: blocks, then linear rows."""
    return [_block_data(b) for b in feasible.blocks] + [
        {
            "name": c.name,
            "kind": "linear",
            "strict": False,
            "columns": c.columns.tolist(),
            "size": 1,
            "basis": [[k, 0, 0, text(decimal(v))] for k, v in enumerate(c.coefficients)],
            "constant": [[0, 0, text(decimal(c.constant))]],
        }
        for c in feasible.linear
    ]


def _block_data(block: Block) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": block.name,
        "kind": block.kind,
        "strict": block.strict,
        "columns": block.columns.tolist(),
        "constant": [
            [int(r), int(c), text(decimal(block.constant[r, c]))]
            for r, c in zip(*np.nonzero(block.constant), strict=True)
        ],
    }
    if block.kind == "matrix":
        out["size"] = block.size
        out["basis"] = [
            [int(k), int(r), int(c), text(decimal(block.basis[k, r, c]))]
            for k, r, c in zip(*np.nonzero(block.basis), strict=True)
        ]
    return out


def decimal(number: float) -> Fraction:
    """The number that Python prints for a double, exactly."""
    return Fraction(repr(float(number)))


def plain(number: float) -> Fraction:
    """A computed coefficient as the short decimal or simple fraction that it stands for."""
    simple = Fraction(float(number)).limit_denominator(PLAIN_DENOMINATOR)
    if abs(float(simple) - number) <= 10.0**-PLAIN_DIGITS * abs(number):
        return simple
    return Fraction(f"{number:.{PLAIN_DIGITS}g}")


def text(number: Fraction) -> str:
    """Shortest exact form: a decimal where there is one of reasonable length, else p/q."""
    denominator, tens = number.denominator, 0
    while denominator % 10 == 0:
        denominator, tens = denominator // 10, tens + 1
    power = tens
    while denominator > 1 and power < 400:
        if denominator % 2 == 0:
            denominator, power = denominator // 2, power + 1
        elif denominator % 5 == 0:
            denominator, power = denominator // 5, power + 1
        else:
            break
    if denominator > 1:
        return f"{number.numerator}/{number.denominator}"
    if power == 0:
        return str(number.numerator)
    digits = abs(number.numerator * 10**power // number.denominator)
    sign = "-" if number < 0 else ""
    whole, part = divmod(digits, 10**power)
    return f"{sign}{whole}.{str(part).zfill(power).rstrip('0') or '0'}"


def leading_columns(K: Array) -> tuple[int, ...] | None:
    """For each row of K a column in which it is 1 and every other row 0; None if one has none."""
    single = np.flatnonzero((K != 0).sum(axis=0) == 1)
    lead: dict[int, int] = {}
    for j in single.tolist():
        i = int(np.flatnonzero(K[:, j])[0])
        if K[i, j] == 1.0:
            lead.setdefault(i, j)
    return tuple(lead[i] for i in range(len(K))) if len(lead) == len(K) else None


def with_margin(feasible: FeasibleSet, margin: float) -> FeasibleSet:
    """The set with an absolute margin taken off every matrix and number, in SI numbers."""
    if margin == 0:
        return feasible
    return replace(
        feasible,
        blocks=tuple(
            replace(b, constant=b.constant - margin * np.eye(b.size)) for b in feasible.blocks
        ),
        linear=tuple(replace(c, constant=c.constant - margin) for c in feasible.linear),
    )
