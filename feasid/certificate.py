"""Exact proofs that parameters are feasible or infeasible, checked with the standard library alone.

``python -m feasid.certificate FILE`` checks a file. Nothing here rounds, and which matrices must be
positive is known here, from the names of the parameters. For d with ``K d = beta`` and ties
``T d = t``, multipliers Z_k >= 0, y, v with ``sum_k <B_kj, Z_k> = (K'y + T'v)_j`` for every j give
``0 <= sum_k <M_k(d), Z_k> = sum_k <C_k, Z_k> + y.beta + v.t``: a contradiction when the right side
is negative, or zero with some strict M_k multiplied. With ``y = R'w`` they bound what fits data
(R, rho). If sums for some j differ by e_j, the bound is weaker by ``|e_j| L_j`` and holds for
``|d_j| <= L_j``, which is stated. `docs/certificates.md` is the specification.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any, NamedTuple

FORMAT = "feasid certificate 2"
BODY = ("Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m")
BALANCED = ("Lxx", "Lzz", "lz", "m")  # of a rotor that is symmetric about its axis
SIGNED = ("Ia", "fv", "fc", "fs", "fl", "fw", "fb", "fe", *(f"p{k}" for k in range(1, 10)))
RIPPLE = ("rs", "rc", "rs2", "rc2")
FREE = ("fo", "k", "k2", "k3", "gs", "gc", "fd", *RIPPLE, *(f"u{k}" for k in range(1, 10)))
SYMBOLS = {*BODY, *(f"rotor_{s}" for s in BODY), *SIGNED, *FREE}
LIMITS = ("mass", "length", "terms")  # [kg], [m] and SI numbers of joint terms
NUMBER = re.compile(r"-?\d{1,3800}(\.\d{1,400})?([eE][-+]?\d{1,3})?|-?\d{1,9}/\d{1,3}", re.A)
LARGEST_FILE, LARGEST_MATRIX, LONGEST_NAME = 1 << 24, 64, 200
MOST_WORK = 10**9  # products of 64-bit words in all arithmetic, by schoolbook multiplication
OVERHEAD = 400  # of an operation on numbers of any size
COMMON = "format claim consistency margin robot parameters matrix ties constraints digest"
KEYS = {
    "feasible": "values point",
    "infeasible": "values limit multipliers tied combination",
    "boundary": "values limit multipliers tied combination point",
    "bound": "data weights floor limit multipliers tied point",
}
Matrix = list[list[Fraction]]
Row = dict[int, Fraction]
Pair = tuple[Fraction, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)
SMALLEST = Fraction(10**8)  # limit of masses and joint terms


class MatrixCondition(NamedTuple):
    """``constant + sum_j d[j] basis[j]`` must be positive (semi)definite."""

    constant: Matrix
    basis: dict[int, list[tuple[int, int, Fraction]]]
    strict: bool


def definiteness(
    matrix: Sequence[Sequence[Fraction]], spend: Callable[[int, int], None] = lambda *_: None
) -> str:
    """Decide by exact elimination without fractions whether a symmetric matrix is (semi)definite.

    Returns "positive definite", "singular" (positive semidefinite, no more) or "indefinite". A zero
    pivot is harmless exactly when the rest of its row is zero: a 2x2 minor with it is ``-a^2``.
    First, `spend` gets the number of operations and the number of bits.
    """
    rows = [[Fraction(x) for x in row] for row in matrix]
    n, outcome, last = len(rows), "positive definite", 1
    if any(len(row) != n for row in rows) or rows != [list(c) for c in zip(*rows, strict=True)]:
        raise ValueError("a matrix must be square and symmetric")
    scale = lcm(*(x.denominator for row in rows for x in row))
    a = [[int(x * scale) for x in row] for row in rows]
    spend(n**3, n * max((x.bit_length() for row in a for x in row), default=0))
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k][k + 1 :])):
            return "indefinite"
        outcome = outcome if pivot else "singular"
        for i in range(k + 1, n) if pivot else ():  # Bareiss: entries stay minors of the matrix
            for j in range(i, n):
                a[i][j] = a[j][i] = (pivot * a[i][j] - a[k][i] * a[k][j]) // last
        last = pivot or last
    return outcome


def size_of(number: Fraction) -> int:
    """Bits of numerator and denominator."""
    return number.numerator.bit_length() + number.denominator.bit_length()


def exact(text: Any) -> Fraction:
    """Read a decimal or a simple fraction; anything else, or a huge number, raises an error."""
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise ValueError(f"not an exact number: {str(text)[:60]!r}")
    return Fraction(text)


def read_name(name: Any) -> str:
    """A name that prints on one line."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise ValueError(f"not a name: {str(name)[:60]!r}")
    return name


def read_index(index: Any, size: int) -> int:
    """A place in a list of this size."""
    if type(index) is not int or not 0 <= index < size:
        raise ValueError(f"{str(index)[:20]!r} is not one of {size} places")
    return index


def read_row(pairs: Any, size: int) -> Row:
    """A non-zero row as place and value pairs, every place once."""
    row = {read_index(j, size): exact(value) for j, value in pairs}
    if len(row) != len(pairs) or not row or not all(row.values()):
        raise ValueError("a row must have entries, none of them zero and no place twice")
    return row


def read_list(items: Any, size: int, what: str) -> list[Fraction]:
    """So many numbers."""
    if not isinstance(items, list) or len(items) != size:
        raise ValueError(f"{what} must be a list of {size} numbers")
    return [exact(x) for x in items]


def consistency(kind: str, columns: Mapping[str, int]) -> MatrixCondition:
    """A body's pseudo-inertia ("full") or the matrix of Sousa and Cortesao eq. (17) ("semi")."""
    moments = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    half, one = Fraction(1, 2), ONE
    if len(columns) == len(BALANCED):  # Lzz | [[Lxx, lz], [lz, m]], less Lzz / 2 when full
        less = [(1, 1, -half)] if kind == "full" else []
        entries = [[(1, 1, one)], [(0, 0, one), *less], [(1, 2, one)], [(2, 2, one)]]
    elif kind == "full":  # [[tr(L)/2 - L, l], [l', m]]
        trace = [(i, i, half) for i in range(3)]
        entries = [[(r, c, -one), *(trace if r == c else [])] for r, c in moments]
        entries += [[(i, 3, one)] for i in range(4)]
    else:  # [[L, S(l)'], [S(l), m 1]]
        entries = [[(r, c, one)] for r, c in moments]
        entries += [[(1, 5, one), (2, 4, -one)], [(2, 3, one), (0, 5, -one)]]
        entries += [[(0, 4, one), (1, 3, -one)], [(i, i, one) for i in (3, 4, 5)]]
    size = 1 + max(c for some in entries for _, c, _ in some)
    both = [e + [(c, r, v) for r, c, v in e if r != c] for e in entries]
    zero = [[ZERO] * size for _ in range(size)]
    return MatrixCondition(zero, dict(zip(columns.values(), both, strict=True)), True)


def rule_table(
    kind: str, names: Sequence[Sequence[str]], none: set[int]
) -> dict[Any, MatrixCondition]:
    """Every matrix and sign that parameters of these names must keep, whatever a file says."""
    owned: dict[str, dict[str, int]] = {}
    for j, (owner, symbol) in enumerate(names):
        if symbol not in SYMBOLS or symbol in owned.setdefault(owner, {}):
            raise ValueError(f"parameter {symbol!r} of {owner!r} is unknown or occurs twice")
        owned[owner][symbol] = j
    rules: dict[Any, MatrixCondition] = {}
    for owner, columns in owned.items():
        for role, prefix, allowed in (("body", "", [BODY]), ("rotor", "rotor_", [BODY, BALANCED])):
            symbols = [s for s in BODY if prefix + s in columns]
            if symbols and not any(symbols == list(some) for some in allowed):
                raise ValueError(f"parameters of the {role} of {owner!r} are missing")
            # Parameters that are all tied to zero are those of a mere frame, without a body.
            if symbols and not none.issuperset(columns[prefix + s] for s in symbols):
                rules[role, owner] = consistency(kind, {s: columns[prefix + s] for s in symbols})
        for symbol in (s for s in SIGNED if s in columns):
            one = {columns[symbol]: [(0, 0, ONE)]}
            rules["sign", owner, symbol] = MatrixCondition([[ZERO]], one, False)
    if not any(role == "body" for role, *_ in rules):
        raise ValueError("there is no body")
    return rules


def read_constraint(item: Mapping[str, Any], size: int) -> MatrixCondition:
    """A further constraint: a symmetric matrix by the entries of its upper triangle."""
    if set(item) != {"name", "strict", "size", "entries"} or type(item["strict"]) is not bool:
        raise ValueError("a further constraint needs the keys name, strict, size and entries")
    read_name(item["name"])
    rank = read_index(item["size"], LARGEST_MATRIX + 1)
    constant, places = [[ZERO] * rank for _ in range(rank)], set()
    basis: dict[int, list[tuple[int, int, Fraction]]] = {}
    for r, c, pairs, number in item["entries"]:
        place = read_index(r, rank), read_index(c, rank)
        if r > c or place in places:
            raise ValueError(f"entry {r}, {c} of {item['name']!r} is below the diagonal or twice")
        places.add(place)
        constant[r][c] = constant[c][r] = exact(number)
        for j, value in read_row(pairs, size).items() if pairs else ():
            basis.setdefault(j, []).extend((a, b, value) for a, b in {(r, c), (c, r)})
    if not basis:
        raise ValueError(f"constraint {item['name']!r} constrains no parameter")
    return MatrixCondition(constant, basis, item["strict"])


class Claim:
    """A certificate's statement, read and understood; its methods check the proofs."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        keys = f"{COMMON} {KEYS[data['claim']]}".split()
        if sorted(data) != sorted(keys) or data["format"] != FORMAT:
            raise ValueError(f"this is not a certificate of format {FORMAT!r}")
        self.data, self.kind = data, {"full": "full", "semi": "semi"}[data["consistency"]]
        names = [(read_name(owner), read_name(symbol)) for owner, symbol in data["parameters"]]
        self.size, self.work, n = len(names), 0, len(names)
        self.margin = exact(data["margin"])
        self.matrix = [read_row(row, n) for row in data["matrix"]]
        self.ties = [read_row(tie["row"], n) for tie in data["ties"]]
        self.tied = [exact(tie["value"]) for tie in data["ties"]]
        zero = [row for row, value in zip(self.ties, self.tied, strict=True) if not value]
        self.rules = rule_table(self.kind, names, {j for row in zero if len(row) == 1 for j in row})
        for k, item in enumerate(data["constraints"]):
            self.rules["asked", str(k)] = read_constraint(item, n)
            self.spend(len(self.rules["asked", str(k)].constant) ** 2, 0)  # what it takes to hold
        self.known = [read_name(tie["name"]) for tie in data["ties"]]
        count = len(self.matrix) if "values" in data else 0
        self.values = read_list(data.get("values", []), count, "values")
        if not self.matrix and (data["claim"] in ("feasible", "bound") or not data["constraints"]):
            raise ValueError("nothing is given: there is no equation")
        if self.margin < 0 or any(len(tie) != 3 for tie in data["ties"]):
            raise ValueError(
                "the margin is negative, or a tie has other keys than name, row and value"
            )
        self.limits: list[Fraction] | None = None  # of the absolute value of each parameter
        if data.get("limit") is not None:
            mass, length, terms = (exact(data["limit"][key]) for key in LIMITS)
            if len(data["limit"]) != len(LIMITS) or min(mass, terms) < SMALLEST or length <= 0:
                raise ValueError(f"a limit is not {', '.join(LIMITS)}, or below {SMALLEST}")
            sizes = {"m": mass, "l": mass * length, "L": mass * length**2}
            symbols = [symbol.removeprefix("rotor_") for _, symbol in names]
            self.limits = [sizes[s[0]] if s in BODY else terms for s in symbols]

    def spend(self, operations: int, bits: int) -> None:
        """Count operations on numbers of so many bits, before they are done."""
        self.work += operations * (OVERHEAD + (bits // 64 + 1) ** 2)
        if self.work > MOST_WORK:
            raise ValueError(f"too much work: {operations} operations on numbers of {bits} bits")

    def dot(self, pairs: Iterable[Pair]) -> Fraction:
        """``sum_k a_k b_k`` over one denominator, unless that is too much work."""
        terms, over, most = [(a, b) for a, b in pairs if a and b], 1, 0
        for a, b in terms:
            most = max(most, size_of(a) + size_of(b))
            self.spend(1, size_of(a) + size_of(b) + over.bit_length())
            over = lcm(over, a.denominator * b.denominator)
        self.spend(len(terms), most + over.bit_length())
        parts = (
            a.numerator * b.numerator * (over // (a.denominator * b.denominator)) for a, b in terms
        )
        return Fraction(sum(parts), over)

    def check_point(self, strict: bool, margin: Fraction) -> list[Fraction]:
        """The point, which satisfies every equation, tie and constraint."""
        *numbers, over = read_list(self.data["point"], self.size + 1, "the point, then one")
        if over <= 0:
            raise ValueError("the point's denominator is not positive")
        point = [self.dot([(x, 1 / over)]) for x in numbers]
        rows = [*self.matrix, *self.ties] if self.values else self.ties
        for row, value in zip(rows, [*self.values, *self.tied], strict=True):
            if self.dot((c, point[j]) for j, c in row.items()) != value:
                raise ValueError("the point does not satisfy an equation")
        for key, rule in self.rules.items():
            size = range(len(rule.constant))
            terms = {(r, c): [(rule.constant[r][c], ONE)] for r, c in product(size, size)}
            for i in size:
                terms[i, i].append((margin, -ONE))
            for j, entries in rule.basis.items():
                for r, c, value in entries:
                    terms[r, c].append((value, point[j]))
            matrix = [[self.dot(terms[r, c]) for c in size] for r in size]
            outcome = definiteness(matrix, self.spend)
            definite = strict and rule.strict and not margin
            if outcome == "indefinite" or (definite and outcome == "singular"):
                raise ValueError(f"the point violates constraint {' '.join(key)!r}")
        return point

    def combine(self, combination: Sequence[Fraction]) -> tuple[Fraction, bool]:
        """``sum_k <C_k, Z_k> + v.t`` and the cost of a limit; whether a strict rule has a
        multiplier.
        """
        sums: list[list[Pair]] = [[] for _ in range(self.size)]
        total, strictly, keys = list[Pair](), False, set()
        for label, triangle in self.data["multipliers"]:
            key = tuple(label)
            if key in keys or key not in self.rules:
                raise ValueError(f"there is no constraint {str(key)[:60]}, or it is there twice")
            keys.add(key)
            rule, size = self.rules[key], range(len(self.rules[key].constant))
            numbers = read_list(triangle, len(size) * (len(size) + 1) // 2, "a multiplier")
            places = ((r, c) for r in size for c in size[r:])
            upper = dict(zip(places, numbers, strict=True))
            Z = [[upper[min(r, c), max(r, c)] for c in size] for r in size]
            if definiteness(Z, self.spend) == "indefinite":
                raise ValueError(f"the multiplier of {' '.join(key)!r} is not semidefinite")
            strictly |= rule.strict and not self.margin and any(map(any, Z))
            total += [(rule.constant[r][c], Z[r][c]) for r, c in product(size, size)]
            total += [(-self.margin, Z[i][i]) for i in size]
            for j, entries in rule.basis.items():
                sums[j] += [(v, Z[r][c]) for r, c, v in entries]
        tied = read_list(self.data["tied"], len(self.ties), "tied")
        total += zip(tied, self.tied, strict=True)
        rows, factors = [*self.matrix, *self.ties], [*combination, *tied]
        for row, y in zip(rows, factors, strict=True):
            for j, value in row.items():
                sums[j].append((-y, value))
        residuals = [self.dot(terms) for terms in sums]
        if any(residuals) and self.limits is None:
            raise ValueError("the multipliers do not cancel")
        if self.limits is not None:
            total += zip(map(abs, residuals), self.limits, strict=True)
        return self.dot(total), strictly and not any(residuals)

    def check(self) -> str:
        """Check the proof; the sentence that is proved."""
        claim = self.data["claim"]
        if claim == "bound":
            return self.check_bound()
        if claim != "infeasible":
            self.check_point(claim == "feasible", self.margin)
        if claim == "feasible":
            return "a point satisfies every constraint"
        y = read_list(self.data["combination"], len(self.matrix), "the combination")
        total, strictly = self.combine(y)
        total += self.dot(zip(y, self.values, strict=True))
        if total > 0 or (total == 0 and not strictly) or (total and claim == "boundary"):
            raise ValueError("the multipliers prove nothing")
        if claim == "boundary":
            return "a point satisfies the constraints, but only with singular matrices"
        return "no parameters satisfy the constraints"

    def check_bound(self) -> str:
        """Check the claim that no parameters fit better: ``w.(R K d - rho) >= least`` for all d."""
        data, nb = self.data["data"], len(self.matrix)
        R = [read_row(row, nb) if row else {} for row in data["rows"]]
        rho = read_list(data["target"], len(R), "the target")
        w = read_list(self.data["weights"], len(R), "weights")
        unexplained, floor = exact(data["rest"]), exact(self.data["floor"])
        y: list[list[Pair]] = [[] for _ in range(nb)]
        for row, weight in zip(R, w, strict=True):
            for i, value in row.items():
                y[i].append((weight, value))
        total, _ = self.combine([self.dot(terms) for terms in y])
        least = -total - self.dot(zip(w, rho, strict=True))
        norm = self.dot(zip(w, w, strict=True))
        # By Cauchy and Schwarz the squared residual is at least least^2 / |w|^2.
        proved = floor <= unexplained or (least > 0 and least**2 >= (floor - unexplained) * norm)
        if len(data) != 3 or unexplained < 0 or not proved:
            raise ValueError("the multipliers do not prove the bound")
        d = self.check_point(True, ZERO)  # our own margin is no part of the claim
        beta = [self.dot((c, d[j]) for j, c in row.items()) for row in self.matrix]
        fits = [[(c, beta[i]) for i, c in row.items()] for row in R]
        off = [self.dot([*x, (t, -ONE)]) for x, t in zip(fits, rho, strict=True)]
        here = float(unexplained + self.dot(zip(off, off, strict=True))) ** 0.5
        root = f"{max(float(floor), 0.0) ** 0.5:.9g}"
        root = root if exact(root) ** 2 <= floor else f"{float(root) * (1 - 1e-8):.9g}"  # down
        return f"no parameters fit better than {root}; the point given reaches {here:.9g}"

    def describe(self, sentence: str) -> list[str]:
        """The verified statements, one per line."""
        data = self.data
        name, mark = (read_name(data["robot"][key]) for key in ("name", "digest"))
        lines = [
            f"{data['claim']} ({self.kind} consistency): {sentence}",
            f"for the matrix in this file, which states {name!r}, {mark}",
            f"given: {len(self.matrix)} equations on {self.size} parameters",
        ]
        if self.margin:
            lines.append(f"margin: {data['margin']} on every matrix and number, in SI")
        names = [".".join(name) for name in data["parameters"]]
        for name, tie, value in zip(self.known, self.ties, self.tied, strict=True):
            lines.append(f"asked: {name}: {_describe_sum(tie, names)} = {value}")
        for k, item in enumerate(data["constraints"]):
            rule = self.rules["asked", str(k)]
            of, size = ", ".join(names[j] for j in rule.basis), len(rule.constant)
            kind, sign = ("definite", ">") if rule.strict else ("semidefinite", ">=")
            text = f"a {size}x{size} matrix of {of} is positive {kind}"
            if size == 1:
                row = {j: entries[0][2] for j, entries in rule.basis.items()}
                text = f"{_describe_sum(row, names)} + {rule.constant[0][0]} {sign} 0"
            lines.append(f"asked: {item['name']}: {text}")
        if self.limits is not None:
            mass, length, terms = (data["limit"][key] for key in LIMITS)
            text = f"{mass} kg at {length} m in first and second moments"
            lines.append(f"proved only up to {mass} kg per body, {text}, {terms} in joint terms")
        return lines


def _describe_sum(row: Row, names: Sequence[str]) -> str:
    return " + ".join(f"{value} {names[j]}" for j, value in row.items())


def digest(data: Mapping[str, Any]) -> str:
    """Fingerprint of everything in a certificate but the fingerprint."""
    text = json.dumps({k: v for k, v in data.items() if k != "digest"}, sort_keys=True)
    from hashlib import sha256  # it loads OpenSSL, which few calls need

    return sha256(text.encode()).hexdigest()


def verify(data: Any) -> str:
    """Check a certificate; returns what it proves, line by line, or raises ValueError."""
    try:
        if data["digest"] != digest(data):
            raise ValueError("the digest does not match: something was changed after writing")
        claim = Claim(data)
        return "\n".join(claim.describe(claim.check()))
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"malformed certificate: {type(error).__name__} {error}"[:200]) from error


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object in which no key occurs twice."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key occurs twice")
    return out


NOT_JSON, BINARY = "not JSON, ", "a binary file; feasid show checks the certificate of a saved fit"


def read_file(path: str) -> str:
    """The text of a regular file, up to the limit; no pipe or device, which may never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        return file.read(LARGEST_FILE)


def main(argv: Sequence[str]) -> int:
    """Check the files named; 0 when all hold, 1 when one does not, 2 when one is unreadable."""
    status = 0
    for name in argv:
        path = name if name.isprintable() else ascii(name)  # a name may hold words to a terminal
        try:
            data = json.loads(read_file(name), object_pairs_hook=unique)
            print(f"{path}: verified: " + verify(data).replace("\n", "\n  "))
        except (ValueError, RecursionError) as error:
            text = BINARY if isinstance(error, UnicodeDecodeError) else error
            print(f"{path}: REJECTED: {NOT_JSON * isinstance(error, json.JSONDecodeError)}{text}")
            status = max(status, 1)
        except OSError as error:
            print(f"{path}: cannot be read: {error.strerror or error}", file=sys.stderr)
            status = 2
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
