"""A second checker of certificates, from docs/certificates.md; it shares no code with the first.

Definiteness by the coefficients of the characteristic polynomial instead of elimination, matrices
from formulas in d instead of bases.
"""

import hashlib
import json
import re
from decimal import Decimal
from fractions import Fraction

F = Fraction

TEN = ["Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m"]
FOUR = ["Lxx", "Lzz", "lz", "m"]
FORM = {
    "feasible": "values point",
    "infeasible": "values limit multipliers tied combination",
    "boundary": "values limit multipliers tied combination point",
    "bound": "data weights floor limit multipliers tied point",
}
ALWAYS = "format claim consistency margin robot parameters matrix ties constraints digest"


class RefusedError(Exception):
    """The certificate proves nothing."""


def need(condition, why):
    if not condition:
        raise RefusedError(why)


def number(text):
    need(isinstance(text, str), "number")
    simple = re.fullmatch(r"(-?[0-9]{1,9})/([0-9]{1,3})", text)
    if simple:
        need(int(simple[2]) != 0, "zero denominator")
        return F(int(simple[1]), int(simple[2]))
    need(re.fullmatch(r"-?[0-9]{1,3800}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?", text), "number")
    return F(Decimal(text))


def word(x):
    need(isinstance(x, str) and 1 <= len(x) <= 200 and x.isprintable(), "name")
    return x


def row_of(pairs, n):
    need(isinstance(pairs, list) and pairs, "empty row")
    out = {}
    for pair in pairs:
        need(isinstance(pair, list) and len(pair) == 2, "pair")
        j, text = pair
        need(type(j) is int and 0 <= j < n and j not in out, "place")
        out[j] = number(text)
        need(out[j] != 0, "zero entry")
    return out


def numbers(items, n):
    need(isinstance(items, list) and len(items) == n, "length")
    return [number(x) for x in items]


def signs(matrix):
    """Elementary symmetric functions of the eigenvalues, by Faddeev and LeVerrier."""
    n = len(matrix)
    entries = [[(m, x) for m, x in enumerate(row) if x] for row in matrix]
    power = [[F(0)] * n for _ in range(n)]
    coefficient, out = F(1), []
    for k in range(1, n + 1):
        shifted = [
            [power[i][j] + (coefficient if i == j else 0) for j in range(n)] for i in range(n)
        ]
        power = [
            [sum((x * shifted[m][j] for m, x in row), F(0)) for j in range(n)] for row in entries
        ]
        coefficient = -sum((power[i][i] for i in range(n)), F(0)) / k
        out.append((-1) ** k * coefficient)
    return out


def is_psd(matrix):
    return all(e >= 0 for e in signs(matrix))


def is_pd(matrix):
    return all(e > 0 for e in signs(matrix))


def inertia(kind, p):
    """The matrix of a body or rotor from its parameters by symbol, linear in them."""
    if len(p) == 4:
        h = F(1, 2) if kind == "full" else F(0)
        return [
            [p["Lzz"], F(0), F(0)],
            [F(0), p["Lxx"] - h * p["Lzz"], p["lz"]],
            [F(0), p["lz"], p["m"]],
        ]
    L = [
        [p["Lxx"], p["Lxy"], p["Lxz"]],
        [p["Lxy"], p["Lyy"], p["Lyz"]],
        [p["Lxz"], p["Lyz"], p["Lzz"]],
    ]
    x, y, z, m, o = p["lx"], p["ly"], p["lz"], p["m"], F(0)
    if kind == "full":
        half = (L[0][0] + L[1][1] + L[2][2]) / 2
        out = [[(half if i == j else o) - L[i][j] for j in range(3)] for i in range(3)]
        return [[*r, c] for r, c in zip([*out, [x, y, z]], [x, y, z, m], strict=True)]
    S = [[o, -z, y], [z, o, -x], [-y, x, o]]
    St = [[S[j][i] for j in range(3)] for i in range(3)]
    eye = [[m if i == j else o for j in range(3)] for i in range(3)]
    return [L[i] + St[i] for i in range(3)] + [S[i] + eye[i] for i in range(3)]


class Rule:
    """``matrix(d)``; strict or not. ``slope(j)`` is the derivative, found by evaluating."""

    def __init__(self, columns, matrix, strict):
        self.columns, self.matrix, self.strict = columns, matrix, strict
        self.zero = matrix(dict.fromkeys(columns, F(0)))

    def slope(self, j):
        at = dict.fromkeys(self.columns, F(0)) | {j: F(1)}
        one = self.matrix(at)
        return [
            [a - b for a, b in zip(r, s, strict=True)] for r, s in zip(one, self.zero, strict=True)
        ]


def rules_of(data, n, ties):
    kind = data["consistency"]
    need(kind in ("full", "semi"), "consistency")
    nothing = {next(iter(r)) for r, t in ties if len(r) == 1 and t == 0}
    owners = {}
    for j, (owner, symbol) in enumerate(data["parameters"]):
        word(symbol)
        need(symbol not in owners.setdefault(word(owner), {}), "twice")
        owners[owner][symbol] = j
    rules, bodies = {}, 0
    for owner, place in owners.items():
        left = set(place)
        for role, prefix in (("body", ""), ("rotor", "rotor_")):
            own = {s: place[prefix + s] for s in TEN if prefix + s in place}
            left -= {prefix + s for s in own}
            if not own:
                continue
            need(len(own) == 10 or (role == "rotor" and list(own) == FOUR), "incomplete")
            bodies += role == "body"
            if nothing >= set(own.values()):
                bodies -= role == "body"
                continue

            def matrix(d, own=own):
                return inertia(kind, {s: d[j] for s, j in own.items()})

            rules[role, owner] = Rule(list(own.values()), matrix, True)
        for s in ("Ia", "fv", "fc", "fs", "fl", "fw", "fb", "fe", *(f"p{k}" for k in range(1, 10))):
            if s in place:
                left.discard(s)
                rules["sign", owner, s] = Rule([place[s]], lambda d, j=place[s]: [[d[j]]], False)
        free = {
            *["fo", "k", "k2", "k3", "gs", "gc", "fd", "rs", "rc", "rs2", "rc2"],
            *(f"u{k}" for k in range(1, 10)),
        }
        need(left <= free, "symbol")
    need(bodies > 0, "no body")
    for k, item in enumerate(data["constraints"]):
        need(set(item) == {"name", "strict", "size", "entries"}, "fields")
        word(item["name"])
        need(type(item["strict"]) is bool, "strict")
        s = item["size"]
        need(type(s) is int and 1 <= s <= 64, "size")
        entries = {}
        for r, c, pairs, constant in item["entries"]:
            need(type(r) is int and type(c) is int and 0 <= r <= c < s, "place")
            need((r, c) not in entries, "entry twice")
            entries[r, c] = (row_of(pairs, n) if pairs else {}, number(constant))
        columns = sorted({j for row, _ in entries.values() for j in row})
        need(columns, "on nothing")

        def asked(d, entries=entries, s=s):
            out = [[F(0)] * s for _ in range(s)]
            for (r, c), (row, constant) in entries.items():
                out[r][c] = out[c][r] = constant + sum((v * d[j] for j, v in row.items()), F(0))
            return out

        rules["asked", str(k)] = Rule(columns, asked, item["strict"])
    return rules


def less(matrix, e):
    return [[x - (e if i == j else 0) for j, x in enumerate(r)] for i, r in enumerate(matrix)]


def check(data):
    """Raise `RefusedError` (or anything else) unless the certificate holds."""
    rest = {k: v for k, v in data.items() if k != "digest"}
    mark = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    need(data["digest"] == mark and data["format"] == "feasid certificate 2", "digest, format")
    claim = data["claim"]
    need(set(data) == set((ALWAYS + " " + FORM[claim]).split()), "keys")
    word(data["robot"]["name"]), word(data["robot"]["digest"])
    n, e = len(data["parameters"]), number(data["margin"])
    need(e >= 0, "margin")
    K = [row_of(r, n) for r in data["matrix"]]
    need(all(set(t) == {"name", "row", "value"} and word(t["name"]) for t in data["ties"]), "tie")
    ties = [(row_of(t["row"], n), number(t["value"])) for t in data["ties"]]
    beta = numbers(data["values"], len(K)) if "values" in data else None
    need(K or (data["constraints"] and claim in ("infeasible", "boundary")), "nothing given")
    rules = rules_of(data, n, ties)
    if claim != "infeasible":
        margin = F(0) if claim == "bound" else e
        *top, under = numbers(data["point"], n + 1)
        need(under > 0, "denominator")
        d = [x / under for x in top]
        given = list(zip(K, beta, strict=True)) if beta is not None else []
        for row, value in given + ties:
            need(sum((v * d[j] for j, v in row.items()), F(0)) == value, "equation")
        for rule in rules.values():
            matrix = less(rule.matrix(d), margin)
            definite = rule.strict and claim != "boundary" and not margin
            need(is_pd(matrix) if definite else is_psd(matrix), "rule")
    if claim == "feasible":
        return
    w = []
    if claim == "bound":
        need(set(data["data"]) == {"rows", "target", "rest"}, "data")
        R = [row_of(r, len(K)) if r else {} for r in data["data"]["rows"]]
        rho, w = numbers(data["data"]["target"], len(R)), numbers(data["weights"], len(R))
        y = [sum((w[r] * row.get(i, 0) for r, row in enumerate(R)), F(0)) for i in range(len(K))]
    else:
        y = numbers(data["combination"], len(K))
    v = numbers(data["tied"], len(ties))
    left, total, strictly, seen = [F(0)] * n, F(0), False, set()
    for label, triangle in data["multipliers"]:
        need(isinstance(label, list) and tuple(label) in rules, "label")
        need(tuple(label) not in seen, "label twice")
        seen.add(tuple(label))
        rule = rules[tuple(label)]
        s = len(rule.zero)
        flat = iter(numbers(triangle, s * (s + 1) // 2))
        Z = [[F(0)] * s for _ in range(s)]
        for i in range(s):
            for j in range(i, s):
                Z[i][j] = Z[j][i] = next(flat)
        need(is_psd(Z), "multiplier")
        if rule.strict and not e and any(any(r) for r in Z):
            strictly = True

        def inner(M, Z=Z, s=s):
            return sum((M[i][j] * Z[i][j] for i in range(s) for j in range(s)), F(0))

        total += inner(less(rule.zero, e))
        for j in rule.columns:
            left[j] += inner(rule.slope(j))
    for row, f in [*zip(K, y, strict=True), *((r, f) for (r, _), f in zip(ties, v, strict=True))]:
        for j, value in row.items():
            left[j] -= f * value
    total += sum((f * t for f, (_, t) in zip(v, ties, strict=True)), F(0))
    if beta is not None:
        total += sum((f * b for f, b in zip(y, beta, strict=True)), F(0))
    if data["limit"] is None:
        need(not any(left), "does not cancel")
    else:
        need(set(data["limit"]) == {"mass", "length", "terms"}, "limit")
        M, length, N = (number(data["limit"][k]) for k in ("mass", "length", "terms"))
        need(M >= 10**8 and N >= 10**8 and length > 0, "limit")
        for (_, symbol), x in zip(data["parameters"], left, strict=True):
            s = symbol.replace("rotor_", "")
            size = M * length ** {"m": 0, "l": 1, "L": 2}[s[0]] if s in TEN else N
            total += abs(x) * size
    if claim == "bound":
        least = -total - sum((a * b for a, b in zip(w, rho, strict=True)), F(0))
        rest_, floor = number(data["data"]["rest"]), number(data["floor"])
        need(rest_ >= 0, "rest")
        enough = least > 0 and least**2 >= (floor - rest_) * sum((x * x for x in w), F(0))
        need(floor <= rest_ or enough, "bound")
        return
    zero = total == 0 and strictly and not any(left)
    need(zero if claim == "boundary" else total < 0 or zero, "proves nothing")


def holds(data):
    """True when the certificate holds."""
    try:
        check(data)
    except (RefusedError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False
    return True
