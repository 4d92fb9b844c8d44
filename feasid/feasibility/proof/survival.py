"""Whether a certificate holds for the robot itself, whose K its decimals round.

K of a robot with general angles is irrational. `precise_rows` knows it to 45 digits, so that the
difference E to a certificate's matrix is bounded entry by entry. A proof by multipliers y then pays
``sum_j |y'E|_j L_j`` more, for parameters up to L; a point moves by E d in leading parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from feasid.certificate import Claim, definiteness
from feasid.core.arrays import Array
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.precise import precise_rows
from feasid.feasibility.proof.question import HEAVIEST, cost, plain_rows, size_limit
from feasid.robot.description import Robot
from feasid.robot.known import Row

SAME = Fraction(1, 10**9)
"""Difference of coefficients, relative to the largest, that rounding explains."""

KNOWN = Fraction(1, 10**38)
"""Error of coefficients known to 45 digits: seven digits to spare."""

SHORT = 10**30
"""Denominators of coefficients that are no rounding."""

Said = tuple[bool, str]
"""Whether it holds, and what."""


def told(certificate: Certificate, robot: Robot, K: Array) -> Iterator[Said]:
    """What holds of a certificate for a robot's own K, line by line.

    Parameters
    ----------
    certificate : Certificate
        That holds for the matrix in it.
    robot : Robot
    K : ndarray, shape (nb, n)
        Of its base parameters, in doubles.
    """
    claim = Claim(certificate.data)
    if all([*row.values()] == [1] for row in claim.matrix):
        yield True, f"given are {len(claim.matrix)} single parameters of the {robot.size}: exact"
        return
    found = precise_rows(robot, plain_rows(K))
    own, digits = (found[1], "to 45 digits") if found else (plain_rows(K), "in double precision")
    pairs = [(row, _nearest(row, own)) for row in claim.matrix]
    errors = [_difference(row, other) for row, other in pairs]
    largest = max(abs(c) for row in own for c in row.values())
    worst = max((x for row in errors for x in row.values()), default=Fraction(0))
    yield (
        worst <= SAME * largest,
        f"its matrix is K, known {digits}: entries differ by at most {float(worst):.1e}",
    )
    if found and not any(errors):
        yield True, "the robot's own K: nothing is lost"
    elif worst > SAME * largest:
        return
    elif found is None:
        yield True, "how far rounding moves K itself is not bounded for this mechanism"
    elif claim.data["claim"] in ("infeasible", "bound"):
        yield _multipliers(claim, robot, errors)
    elif claim.data["claim"] == "feasible":
        yield _point(claim, errors, [other for _, other in pairs])
    else:
        yield False, "on the boundary for the robot's own K, too: rounding decides"


def _nearest(row: Row, own: Sequence[Row]) -> Row:
    """The row of K that a certificate's row rounds."""
    return min(own, key=lambda other: max(_difference(row, other).values(), default=0))


def _difference(row: Row, other: Row) -> Row:
    """Bounds on the entries' errors, where there are any: short decimals are what they say."""
    out = {}
    for j in {*row, *other}:
        true = other.get(j, Fraction(0))
        error = abs(row.get(j, Fraction(0)) - true)
        if error or true.denominator > SHORT:
            out[j] = error + KNOWN * max(Fraction(1), abs(true))
    return out


def _multipliers(claim: Claim, robot: Robot, errors: Sequence[Row]) -> Said:
    """Whether multipliers still prove something after paying for the difference."""
    data = claim.data
    if data["claim"] == "bound":
        y, gain, square = _least(claim)
    else:
        y = [Fraction(x) for x in data["combination"]]
        total, _ = claim.combined(y)
        square = Fraction(1)
        gain = -total - sum((a * b for a, b in zip(y, claim.values, strict=True)), Fraction(0))
    left = [Fraction(0)] * claim.size
    for factor, row in zip(y, errors, strict=True):
        for j, error in row.items():
            left[j] += abs(factor) * error
    limits: list[Mapping[str, str]] = [size_limit(robot, m) for m in HEAVIEST]
    for limit in [data["limit"]] if data["limit"] else limits:
        rest = gain - cost(robot.parameter_names, left, limit)
        if rest > 0:
            break
    else:
        return False, "the robot's own K: rounding may undo the proof"
    size = f"up to {limit['mass']} kg per body and {limit['length']} m"
    if data["claim"] == "infeasible":
        return True, f"the robot's own K: the proof survives its rounding, {size}"
    floor = Fraction(data["data"]["rest"]) + rest * rest / square
    root = float(np.sqrt(float(min(floor, Fraction(data["floor"])))))
    return True, f"the robot's own K: nothing fits better than {root:.9g}, {size}"


def _least(claim: Claim) -> tuple[list[Fraction], Fraction, Fraction]:
    """``R'w``, what ``w.(R K d - rho)`` is at least, and ``w.w``."""
    data, w = claim.data["data"], [Fraction(x) for x in claim.data["weights"]]
    y = [Fraction(0)] * len(claim.matrix)
    for row, weight in zip(data["rows"], w, strict=True):
        for i, value in row:
            y[i] += weight * Fraction(value)
    total, _ = claim.combined(y)
    target = sum((a * Fraction(t) for a, t in zip(w, data["target"], strict=True)), Fraction(0))
    return y, -total - target, sum((x * x for x in w), Fraction(0)) or Fraction(1)


def _point(claim: Claim, errors: Sequence[Row], own: Sequence[Row]) -> Said:
    """Whether a point that moves to satisfy the robot's own equations stays inside."""
    *numbers, over = (Fraction(x) for x in claim.data["point"])
    point = [x / over for x in numbers]
    counts: dict[int, int] = {}
    for row in own:
        for j in row:
            counts[j] = counts.get(j, 0) + 1
    room = [Fraction(0)] * claim.size
    for row, error, value in zip(own, errors, claim.values, strict=True):
        lead = next((j for j in row if counts[j] == 1), None)
        if lead is None or any(lead in tie for tie in claim.ties):
            return False, "the robot's own K: no leading parameter is free to take its rounding"
        off = value - sum(c * point[j] for j, c in row.items())
        point[lead] += off / row[lead]
        room[lead] = sum(KNOWN * abs(point[j]) for j in error) / abs(row[lead])
    for rule in claim.rules.values():
        matrix = [row[:] for row in rule.constant]
        slack = claim.margin
        for j, entries in rule.basis.items():
            slack += room[j] * sum(abs(v) for _, _, v in entries)
            for r, c, v in entries:
                matrix[r][c] += v * point[j]
        for i in range(len(matrix)):
            matrix[i][i] -= slack
        if definiteness(matrix) == "indefinite":
            return False, "the robot's own K: rounding may move the point out"
    return True, "the robot's own K: the point moves with its rounding and stays inside"


def triangles(certificate: Certificate, R: Array, rho: Array) -> Said:
    """Whether a bound's data are those of a log: how far any residual differs, as a share."""
    claim = Claim(certificate.data)
    data = certificate.data["data"]
    shown = np.zeros((len(data["rows"]), len(claim.matrix) + 1))
    for line, row, target in zip(shown, data["rows"], data["target"], strict=True):
        for i, value in row:
            line[i] = float(Fraction(value))
        line[-1] = float(Fraction(target))
    given = np.column_stack([R, rho])
    if given.shape[1] != shown.shape[1]:
        return (
            False,
            f"the log: it has {given.shape[1] - 1} base parameters, not {len(claim.matrix)}",
        )
    own, other = np.linalg.qr(shown, mode="r"), np.linalg.qr(given, mode="r")
    inverse = np.linalg.pinv(own)
    seen = other @ inverse
    share = float(np.linalg.norm(seen.T @ seen - own @ inverse, 2))
    return (
        share <= float(SAME),
        f"the log's triangle: every squared residual is the same within {share:.1e}",
    )
