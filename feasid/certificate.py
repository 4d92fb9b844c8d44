"""Exact proofs that parameters can or cannot exist, checked with the standard library alone.

``python -m feasid.certificate FILE`` checks a file. Nothing here rounds: numbers are
strings that `fractions.Fraction` reads exactly.

A certificate speaks of all standard parameters d (one per entry of "parameters") with

    given:        sum_j K[i][j] d[j] = beta[i]                    for every equation i
    constraints:  M_k(d) = C_k + sum_j d[j] B_kj  positive semidefinite, definite where "strict".

"feasible" is proved by a point d that satisfies them all, and covers the consistency of every body
and the sign of every friction and drive inertia. "infeasible" is proved by multipliers y and
Z_k >= 0 with ``sum_k <B_kj, Z_k> = sum_i K[i][j] y[i]`` for every j: any d that satisfied
everything would give ``0 <= sum_k <M_k(d), Z_k> = sum_k <C_k, Z_k> + y.beta``, so the right side
being negative, or zero with some strict M_k multiplied, is a contradiction.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

FORMAT = "feasid certificate 1"
BODY = ["Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m"]
SIGNED = ("Ia", "fv", "fc", "fs", "fl")
NUMBER = re.compile(r"-?\d{1,4000}(\.\d{1,4000})?([eE][-+]?\d{1,3})?|-?\d{1,4000}/\d{1,4000}")
LARGEST_FILE, LARGEST_MATRIX = 1 << 28, 64  # what an honest certificate stays far below
Matrix = list[list[Fraction]]
Basis = dict[int, list[tuple[int, int, Fraction]]]  # per parameter: row, column, value


def definiteness(matrix: Sequence[Sequence[Fraction]]) -> str:
    """Decide by an exact LDL' decomposition what a symmetric matrix is.

    Returns "positive definite", "singular" (positive semidefinite, no more) or "indefinite" (some
    eigenvalue is negative). A zero pivot is harmless exactly when the rest of its row is zero: a
    2x2 minor with it is ``-a^2``.

    >>> definiteness([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(1, 2)]])
    'singular'
    """
    a = [[Fraction(x) for x in row] for row in matrix]
    n, outcome = len(a), "positive definite"
    if any(len(r) != n for r in a) or any(a[i][j] != a[j][i] for i in range(n) for j in range(i)):
        raise ValueError("a matrix must be square and symmetric")
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k][k + 1 :])):
            return "indefinite"
        if pivot == 0:
            outcome = "singular"
            continue
        for i in range(k + 1, n):
            factor = a[i][k] / pivot
            for j in range(i, n):
                a[i][j] -= factor * a[k][j]
                a[j][i] = a[i][j]
    return outcome


def exact(text: Any) -> Fraction:
    """Read a decimal or a fraction; refuses anything that would not be one, or is enormous."""
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise ValueError(f"not an exact number: {str(text)[:60]!r}")
    return Fraction(text)


def consistency_basis(kind: str, columns: Sequence[int]) -> tuple[int, Basis]:
    """Size and basis of a body's 4x4 pseudo-inertia ("full") or 6x6 matrix eq. (17) ("semi")."""
    moments = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    if kind == "full":  # [[tr(L)/2 - L, l], [l', m]]
        off = [[(r, c, Fraction(-1))] for r, c in moments]
        trace = [(i, i, Fraction(1, 2)) for i in range(3)]
        entries = [o + trace if o[0][0] == o[0][1] else o for o in off]
        entries += [[(i, 3, Fraction(1))] for i in range(4)]
    else:  # [[L, S(l)'], [S(l), m 1]]
        entries = [[(r, c, Fraction(1))] for r, c in moments]
        turns = [(1, 5, 2, 4), (2, 3, 0, 5), (0, 4, 1, 3)]
        entries += [[(a, b, Fraction(1)), (c, d, Fraction(-1))] for a, b, c, d in turns]
        entries += [[(i, i, Fraction(1)) for i in (3, 4, 5)]]
    both = [e + [(c, r, v) for r, c, v in e if r != c] for e in entries]
    return (4 if kind == "full" else 6), dict(zip(columns, both, strict=True))


def read_constraint(item: Mapping[str, Any], names: Sequence[Any]) -> tuple[Matrix, Basis, bool]:
    """Constant, basis and strictness of one constraint; inertia matrices are built here."""
    kind, columns = item["kind"], [int(j) for j in item["columns"]]
    if kind in ("full", "semi"):
        symbols = [names[j][1].removeprefix("rotor_") for j in columns]
        if symbols != BODY or len({names[j][0] for j in columns}) != 1:
            raise ValueError(f"constraint {item['name']!r} is not on the ten of one body")
        size, basis = consistency_basis(kind, columns)
    else:
        size, basis = min(int(item["size"]), LARGEST_MATRIX), {j: [] for j in columns}
        for k, r, c, value in item["basis"]:
            basis[columns[k]].append((r, c, exact(value)))
    constant = [[Fraction(0)] * size for _ in range(size)]
    for r, c, value in item["constant"]:
        constant[r][c] += exact(value)
    return constant, basis, bool(item["strict"])


def _check_feasible(data: Mapping[str, Any], names: list[Any], rules: list[Any]) -> str:
    point = [exact(x) for x in data["point"]]
    if len(point) != len(names):
        raise ValueError("the point has another number of entries than there are parameters")
    for row, beta in zip(data["matrix"], data["values"], strict=True):
        if sum(exact(v) * point[j] for j, v in row) != exact(beta):
            raise ValueError(f"the point does not satisfy the equation with value {beta}")
    missing = {n[0] for n in names if n[1] == "m"}
    heavy = {n[0] for j, n in enumerate(names) if n[1] in BODY and point[j]}
    massless = missing - heavy
    missing &= heavy
    signs = {j for j, n in enumerate(names) if n[1] in SIGNED}
    for item, (constant, basis, strict) in zip(data["constraints"], rules, strict=True):
        matrix = [row[:] for row in constant]
        for j, entries in basis.items():
            for r, c, value in entries:
                matrix[r][c] += value * point[j]
        outcome = definiteness(matrix)
        if outcome == "indefinite" or (strict and outcome == "singular"):
            raise ValueError(f"the point breaks constraint {item['name']!r}")
        first, symbol = names[item["columns"][0]]
        tight = definiteness([[-x for x in r] for r in constant]) != "indefinite"  # a margin >= 0
        if tight and strict and symbol == "Lxx" and item["kind"] in (data["consistency"], "full"):
            missing.discard(first)
        if tight and len(constant) == len(basis) == 1:
            signs -= {j for j, entries in basis.items() if all(v > 0 for _, _, v in entries)}
    if missing or signs:
        raise ValueError(f"nothing is proved of {sorted(missing) + [names[j] for j in signs]}")
    frames = f", in which {', '.join(sorted(massless))} have no mass" if massless else ""
    return (
        f"feasible ({data['consistency']} consistency): a point satisfies every constraint{frames}"
    )


def _check_infeasible(data: Mapping[str, Any], names: list[Any], rules: list[Any]) -> str:
    left, total, strictly = [Fraction(0)] * len(names), Fraction(0), False
    for item, triangle, (constant, basis, strict) in zip(
        data["constraints"], data["multipliers"], rules, strict=True
    ):
        size, numbers = range(len(constant)), iter([exact(z) for z in triangle])
        upper = {(r, c): next(numbers) for r in size for c in size[r:]}
        Z = [[upper[min(r, c), max(r, c)] for c in size] for r in size]
        if definiteness(Z) == "indefinite":
            raise ValueError(f"the multiplier of {item['name']!r} is not positive semidefinite")
        strictly |= strict and any(map(any, Z))
        total += sum(constant[r][c] * Z[r][c] for r in size for c in size)
        for j, entries in basis.items():
            left[j] += sum((v * Z[r][c] for r, c, v in entries), Fraction(0))
    for row, beta, y in zip(data["matrix"], data["values"], data["combination"], strict=True):
        total += exact(y) * exact(beta)
        for j, value in row:
            left[j] -= exact(y) * exact(value)
    if any(left):
        raise ValueError("the multipliers do not cancel")
    if total > 0 or (total == 0 and not strictly):
        raise ValueError("the multipliers prove nothing")
    return f"infeasible ({data['consistency']} consistency): no parameters satisfy the constraints"


def digest(data: Mapping[str, Any]) -> str:
    """Fingerprint of everything in a certificate but the fingerprint."""
    rest = json.dumps({k: v for k, v in data.items() if k != "digest"}, sort_keys=True)
    return hashlib.sha256(rest.encode()).hexdigest()


def verify(data: Mapping[str, Any]) -> str:
    """Check a certificate; returns the sentence it proves, or raises ValueError."""
    try:
        if data["format"] != FORMAT:
            raise ValueError(f"this is not a certificate of format {FORMAT!r}")
        if data["digest"] != digest(data):
            raise ValueError("the digest does not match: something was changed after writing")
        names = [tuple(map(str, name)) for name in data["parameters"]]
        rules = [read_constraint(item, names) for item in data["constraints"]]
        check = {"feasible": _check_feasible, "infeasible": _check_infeasible}[data["claim"]]
        return check(data, names, rules)
    except (LookupError, TypeError, AttributeError, StopIteration, ArithmeticError) as error:
        raise ValueError(f"malformed certificate: {type(error).__name__} {error}") from error


def main(argv: Sequence[str]) -> int:
    """Check the files named; 0 when every one holds, 1 when one does not, 2 when unreadable."""
    status = 0
    for path in argv:
        try:
            with open(path, encoding="utf-8") as file:
                print(f"{path}: verified: {verify(json.loads(file.read(LARGEST_FILE)))}")
        except (ValueError, RecursionError) as error:
            print(f"{path}: REJECTED: {error}")
            status = max(status, 1)
        except OSError as error:
            print(f"{path}: cannot be read: {error}", file=sys.stderr)
            status = 2
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
