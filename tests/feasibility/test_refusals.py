"""Everything that the checker refuses, by a file just beyond it, and files just inside."""

import copy
import json
import runpy
import sys
from fractions import Fraction
from functools import reduce
from operator import getitem

import pytest
from claims import signed

import feasid
from benchmarks.second_checker import holds
from feasid import certificate
from feasid.core.errors import CertificateError

BALL = {s: "2" if s in ("Lxx", "Lyy", "Lzz") else "0" for s in certificate.BODY} | {"m": "1"}
"""A body whose pseudo-inertia is the identity."""

NOTHING = {"format": certificate.FORMAT, "consistency": "full", "margin": "0"}
NOTHING |= {"robot": {"name": "one", "digest": "none"}, "ties": [], "constraints": []}
MASS = [["body", "a"], ["0"] * 9 + ["1"]]
"""The multiplier that picks the mass."""
DOUBLE = ["0"] * 9 + ["2"]


LIMIT = {"mass": "1e8", "length": "1", "terms": "1e8"}
TIE = [[0, "1"], [3, "-1"]]
EMPTY = {"matrix": [], "values": [], "combination": []}


def file(claim, value="1", **more):
    """One body of which the mass is given, or, in a bound, is to be that."""
    data = {**NOTHING, "claim": claim, "parameters": [["a", s] for s in certificate.BODY]}
    data["matrix"] = [[[9, "1"]]]
    proof = {"limit": None, "multipliers": [MASS], "tied": []}
    point = {"point": [*{**BALL, "m": value}.values(), "1"]}
    if claim == "bound":  # |m + value|^2 for m > 0; the point's mass is 1
        given = {"rows": [[[0, "1"]]], "target": ["-" + value], "rest": "0"}
        data |= {"data": given, "weights": ["1"], "floor": "1", **proof, **point}
    elif claim == "feasible":
        data |= {"values": [value], **point}
    else:
        data |= {"values": [value], "combination": ["1"], **proof}
        data |= {"point": ["0"] * 10 + ["1"]} if claim == "boundary" else {}
    return signed({**data, **more})


def put(data, way, value):
    """The file with one place changed, signed again."""
    data = copy.deepcopy(data)
    reduce(getitem, way[:-1], data)[way[-1]] = value
    return signed(data)


def mass(offset="0", factor="1", at=(0, 0)):
    """The entry of a rule: the mass times the factor, plus the offset."""
    return [*at, [[9, factor]], offset]


def rule(*entries, size=1, name="asked", strict=False, **more):
    return {"name": name, "strict": strict, "size": size, "entries": [*entries], **more}


def tie(row, value, name="known", **more):
    return {"name": name, "row": row, "value": value, **more}


def asked(*entries, claim="feasible", proof=None, **more):
    """The body, of which one constraint is asked."""
    return file(claim, constraints=[rule(*entries, **more)], **(proof or {}))


def tied(row, value, *others, **more):
    """The body, with a tie."""
    return file("feasible", ties=[tie(row, value, *others, **more)])


def lighter(offset):
    """Nothing is given, and the mass is to be this at most."""
    proof = {"multipliers": [MASS, [["asked", "0"], ["1"]]]}
    return file("infeasible", **EMPTY, **proof, constraints=[rule(mass(offset, "-1"))])


def more_of(*parameters, **parts):
    """The body and further parameters."""
    return file("feasible", parameters=[*PARAMETERS, *parameters], **parts)


FEASIBLE, IMPOSSIBLE = file("feasible"), file("infeasible", "-1")
EDGE, BOUND = file("boundary", "0"), file("bound")
PARAMETERS = FEASIBLE["parameters"]
SMALL = put(IMPOSSIBLE, ("limit",), LIMIT)

BEYOND = {  # m - 1e-10 fo = -1 has no solution up to a limit, and one on the boundary beyond it
    "parameters": [*PARAMETERS, ["a", "fo"]],
    "matrix": [[[9, "1"], [10, "-1e-10"]]],
    "limit": LIMIT,
}
SECOND = range(10, 20)
"""Places of a second body's parameters."""


def tied_body(rows, value, *point):
    """The body, and a second one of which so many sums are given."""
    ties = [tie(row, value, f"no {s}") for row, s in zip(rows, certificate.BODY, strict=True)]
    second = [["b", s] for s in certificate.BODY]
    return more_of(*second, ties=ties, point=[*BALL.values(), *point, "1"])


FRAME = tied_body([[[j, "2"]] for j in SECOND], "0", *["0"] * 10)

ACCEPTED = {
    "feasible": FEASIBLE,
    "infeasible": IMPOSSIBLE,
    "boundary": EDGE,
    "bound": BOUND,
    "the strict edge is no point": put(EDGE, ("claim",), "boundary"),
    "infeasible on the edge": file("infeasible", "0"),
    "a limit that is not needed": SMALL,
    "a limit that is needed": put(SMALL, ("multipliers", 0, 1, 9), "1.000000001"),
    "the longest name": put(FEASIBLE, ("robot", "name"), "x" * 200),
    "the shortest name": put(FEASIBLE, ("robot", "digest"), "x"),
    "a tie": tied(TIE, "0"),
    "a tie of a single entry": tied([[0, "1"]], "2"),
    "a constraint": asked(mass("-1")),
    "a strict one": asked(mass(), strict=True),
    "a constraint alone": lighter("-1"),
    "a contradicting tie": file(
        "infeasible",
        **EMPTY,
        ties=[tie([[9, "1"]], "-1")],
        constraints=[rule(mass("9"))],
        tied=["1"],
    ),
    "a margin": file("feasible", margin="1"),
    "a margin that is too much": file("infeasible", "1", margin="1.1"),
    "the same, twice": file(
        "infeasible", "1", margin="1.1", combination=["2"], multipliers=[[MASS[0], DOUBLE]]
    ),
    "a matrix with its other half": asked(mass(), mass(at=(0, 1)), mass(at=(1, 1)), size=2),
    "the largest matrix": asked(*(mass(at=(k, k)) for k in range(64)), size=64),
    "constants beside the diagonal": asked(
        mass(),
        [0, 1, [], "2"],
        mass(at=(1, 1)),
        claim="infeasible",
        size=2,
        proof={"combination": ["2"], "multipliers": [[["asked", "0"], ["1", "-1", "1"]]]},
    ),
    "a bound of the margin that its point does not keep": file("bound", margin="2", floor="9"),
    "a bound beside a rest": file("bound", floor="3", data={**BOUND["data"], "rest": "2"}),
    "a bound that is the rest": file(
        "bound", floor="2", data={**BOUND["data"], "rest": "2"}, multipliers=[], weights=["0"]
    ),
    "a frame": FRAME,
    "a point over two": put(
        FEASIBLE, ("point",), ["4", "0", "0", "4", "0", "4", "0", "0", "0", "2", "2"]
    ),
    "a free joint term": more_of(["a", "fo"], point=[*BALL.values(), "-1", "1"]),
    "a joint term of nothing": more_of(["a", "fv"], point=[*BALL.values(), "0", "1"]),
    "impossible up to a limit": file("infeasible", "-1", **BEYOND),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_just_inside_is_accepted(name):
    data = json.loads(json.dumps(ACCEPTED[name]))
    assert certificate.verify(data)
    assert holds(data)


DEEP, ALL = ("parameters", 0, 0), ("multipliers", 0, 1)
NO_EQUATION, UNPROVEN = "there is no equation", "the multipliers prove nothing"
UNKNOWN, TWICE = "of 'a' is unknown or occ", "entry {} of 'asked' is below the diagonal or twice"
BESIDE, BROKEN = "does not satisfy an equation", "the point violates constraint"
NO_BOUND, TEN = "do not prove the bound", "a list of 10 numbers"

REFUSED = {
    # the file
    "another format": (put(FEASIBLE, ("format",), "feasid certificate 3"), "not a certificate of"),
    "another claim": (put(FEASIBLE, ("claim",), "possible"), "malformed certificate: KeyError"),
    "another consistency": (put(FEASIBLE, ("consistency",), "half"), "malformed"),
    "a key too few": (signed({k: v for k, v in FEASIBLE.items() if k != "margin"}), "not a cert"),
    "a key too many": (put(FEASIBLE, ("comment",), ""), "not a certificate"),
    "a key of another claim": (put(FEASIBLE, ("limit",), None), "not a certificate"),
    "another digest": ({**FEASIBLE, "digest": "0"}, "the digest does not match"),
    "a list": ([FEASIBLE], "malformed certificate: TypeError"),
    # numbers, names, places
    "a number as such": (put(FEASIBLE, ("values", 0), 1), "not an exact number: '1'"),
    "a long fraction": (put(FEASIBLE, ("values", 0), "1000/1000"), "not an exact number"),
    "a fraction of nothing": (put(FEASIBLE, ("values", 0), "1/0"), "malformed"),
    "an empty name": (put(FEASIBLE, DEEP, ""), "not a name: ''"),
    "a long name": (put(FEASIBLE, ("robot", "name"), "x" * 201), "not a name: 'x"),
    "a name on two lines": (put(FEASIBLE, ("robot", "digest"), "a\nb"), "not a name"),
    "no name": (put(FEASIBLE, ("robot", "name"), None), "not a name: 'None'"),
    "a tie's name": (tied([[0, "1"]], "2", "a\nb"), "not a name"),
    "a symbol's name": (put(FEASIBLE, ("parameters", 0, 1), "a\nb"), "not a name"),
    "a place beyond": (put(FEASIBLE, ("matrix", 0, 0, 0), 10), "'10' is not one of 10 places"),
    "a negative place": (put(FEASIBLE, ("matrix", 0, 0, 0), -1), "'-1' is not one of 10 places"),
    "a place that is true": (put(FEASIBLE, ("matrix", 0, 0, 0), True), "not one of 10 places"),
    "a place twice": (put(FEASIBLE, ("matrix", 0), [[9, "1"], [9, "1"]]), "no place twice"),
    "an empty row": (put(FEASIBLE, ("matrix", 0), []), "a row must have entries"),
    "an entry of zero": (put(FEASIBLE, ("matrix", 0), [[9, "1"], [8, "0"]]), "none of them zero"),
    "values too many": (put(FEASIBLE, ("values",), ["1", "1"]), "values must be a list of 1 n"),
    "values of a name": (put(FEASIBLE, ("values",), "1"), "values must be a list of 1 numbers"),
    # what is asked
    "nothing given": (file("feasible", matrix=[], values=[]), NO_EQUATION),
    "nothing given, but asked": (
        put(put(asked(mass()), ("matrix",), []), ("values",), []),
        NO_EQUATION,
    ),
    "nothing given to an impossible one": (
        file("infeasible", **EMPTY, multipliers=[]),
        NO_EQUATION,
    ),
    "no equations of a bound": (put(asked(mass(), claim="bound"), ("matrix",), []), NO_EQUATION),
    "a negative margin": (put(FEASIBLE, ("margin",), "-1e-9"), "the margin is negative"),
    "a tie with more": (tied([[0, "1"]], "2", more=1), "a tie has other"),
    "no body": (file("feasible", parameters=[["a", "fv"]], matrix=[[[0, "1"]]]), "no body"),
    "a parameter twice": (put(FEASIBLE, ("parameters", 8, 1), "m"), f"'m' {UNKNOWN}"),
    "an unknown symbol": (put(FEASIBLE, ("parameters", 8, 1), "M"), f"'M' {UNKNOWN}"),
    "two bodies of one name": (more_of(*PARAMETERS), f"'Lxx' {UNKNOWN}"),
    "half a body": (put(FEASIBLE, ("parameters", 8, 1), "fo"), "of the body of 'a' are missing"),
    "a body without mass": (
        file("feasible", parameters=PARAMETERS[:9], matrix=[[[8, "1"]]], point=["1"] * 10),
        "of the body of 'a' are missing",
    ),
    "the first of a rotor": (more_of(["a", "rotor_Lxx"]), "of the rotor of 'a' are missing"),
    "the last of a rotor": (more_of(["a", "rotor_m"]), "of the rotor of 'a' are missing"),
    "a rotor without mass": (
        more_of(*(["a", f"rotor_{s}"] for s in certificate.BALANCED if s != "m")),
        "of the rotor of 'a' are missing",
    ),
    "a constraint with more": (asked(more=1), "keys name"),
    "a constraint on nothing": (asked([0, 0, [], "1"]), "'asked' constrains no parameter"),
    "neither strict nor not": (asked(mass(), strict=1), "the keys name, strict, size"),
    "a constraint's name": (asked(mass(), name=""), "not a name"),
    "too large a constraint": (asked(mass(), size=65), "'65' is not one of 65 places"),
    "an entry beyond": (asked(mass(at=(0, 1))), "'1' is not one of 1 places"),
    "an entry below the diagonal": (asked(mass(at=(1, 0)), size=2), TWICE.format("1, 0")),
    "an entry twice": (asked(mass(), mass()), TWICE.format("0, 0")),
    "a limit with more": (put(SMALL, ("limit",), {**LIMIT, "time": "1"}), "a limit is not mass, l"),
    "a limit of mass": (put(SMALL, ("limit", "mass"), "99999999"), "or below 100000000"),
    "a limit of terms": (put(SMALL, ("limit", "terms"), "99999999"), "or below 100000000"),
    "a limit of no length": (put(SMALL, ("limit", "length"), "0"), "or below 100000000"),
    "a limit of a negative length": (put(SMALL, ("limit", "length"), "-1"), "or below 100000000"),
    # points
    "a point of few": (put(FEASIBLE, ("point",), ["1"]), "point, then one must be a list of 11"),
    "a point over nothing": (put(FEASIBLE, ("point", 10), "0"), "denominator is not positive"),
    "a point over less": (put(FEASIBLE, ("point", 10), "-1"), "denominator is not positive"),
    "a point beside": (put(FEASIBLE, ("point", 9), "1.0000000000000000000001"), BESIDE),
    "a point below": (put(FEASIBLE, ("point", 9), "0.5"), BESIDE),
    "a point beside a tie": (tied([[0, "1"]], "1"), BESIDE),
    "a bound's point beside a tie": (
        file("bound", ties=[tie([[0, "1"]], "1")], tied=["0"]),
        BESIDE,
    ),
    "a rod": (put(FEASIBLE, ("point", 0), "4"), f"{BROKEN} 'body a'"),
    "a negative moment": (put(FEASIBLE, ("point", 0), "5"), f"{BROKEN} 'body a'"),
    "no mass": (file("feasible", "0"), f"{BROKEN} 'body a'"),
    "half a frame": (put(FRAME, ("ties",), FRAME["ties"][:9]), f"{BROKEN} 'body b'"),
    "a second body of ones": (
        tied_body([[[j, "2"]] for j in SECOND], "2", *["1"] * 10),
        f"{BROKEN} 'body b'",
    ),
    "a second body of pairs": (
        tied_body([[[j, "1"], [10 + (j + 1) % 10, "1"]] for j in SECOND], "0", *["1", "-1"] * 5),
        f"{BROKEN} 'body b'",
    ),
    "a bound's rod": (put(BOUND, ("point", 0), "4"), f"{BROKEN} 'body a'"),
    "a boundary's negative": (put(EDGE, ("point", 0), "-1"), BROKEN),
    "a joint term": (
        more_of(["a", "p9"], point=[*BALL.values(), "-1", "1"]),
        f"{BROKEN} 'sign a p9'",
    ),
    "a constraint that is broken": (asked(mass("-1.1")), f"{BROKEN} 'asked 0'"),
    "a strict one that is broken": (asked(mass("-1"), strict=True), f"{BROKEN} 'asked 0'"),
    "an entry beside the diagonal": (
        asked(mass(), mass(factor="2", at=(0, 1)), [1, 1, [], "1"], size=2),
        f"{BROKEN} 'asked 0'",
    ),
    "a margin too much": (file("feasible", margin="1.0000001"), BROKEN),
    # multipliers
    "an unknown rule": (put(IMPOSSIBLE, ("multipliers", 0, 0, 1), "b"), "there is no constraint"),
    "a rule not asked": (put(IMPOSSIBLE, (*ALL[:2], 0), ["asked", "0"]), "there is no constraint"),
    "a rule twice": (put(IMPOSSIBLE, ("multipliers",), [MASS, MASS]), "or it is there twice"),
    "a short multiplier": (put(IMPOSSIBLE, ALL, ["1"] * 9), TEN),
    "a long multiplier": (put(IMPOSSIBLE, ALL, ["1"] * 11), TEN),
    "a negative multiplier": (
        put(put(IMPOSSIBLE, ("values", 0), "1"), (*ALL, 9), "-1"),
        "the multiplier of 'body a' is not semidefinite",
    ),
    "tied to nothing": (put(IMPOSSIBLE, ("tied",), ["1"]), "tied must be a list of 0 numbers"),
    "combined with more": (put(IMPOSSIBLE, ("combination",), ["1", "1"]), "a list of 1 numbers"),
    "what does not cancel": (put(IMPOSSIBLE, (*ALL, 9), "1.000000001"), "do not cancel"),
    "what a limit does not pay": (put(SMALL, (*ALL, 9), "1.0000000101"), UNPROVEN),
    "what a limit just pays, strictly or not": (put(SMALL, (*ALL, 9), "1.00000001"), UNPROVEN),
    "no proof at all": (put(IMPOSSIBLE, ("values", 0), "1"), UNPROVEN),
    "nothing multiplied": (file("infeasible", "0", multipliers=[], combination=["0"]), UNPROVEN),
    "zeros multiplied": (
        file("infeasible", "0", multipliers=[[MASS[0], ["0"] * 10]], combination=["0"]),
        UNPROVEN,
    ),
    "a constraint that leaves room": (lighter("1e-9"), UNPROVEN),
    "an edge with a margin of nothing": (file("infeasible", "1", margin="1"), UNPROVEN),
    "an edge that is none": (file("boundary", "-1"), "the point does not satisfy an equation"),
    "a boundary proved impossible": (
        file(
            "boundary",
            "0",
            ties=[tie([[0, "1"], [3, "1"]], "0")],
            constraints=[rule(mass())],
            multipliers=[[["asked", "0"], ["1"]]],
            tied=["0"],
        ),
        UNPROVEN,
    ),
    "a boundary beyond the limit": (
        file("boundary", "-1", **BEYOND, point=["0"] * 10 + ["1e10", "1"]),
        UNPROVEN,
    ),
    # bounds
    "data with more": (put(BOUND, ("data", "more"), "1"), NO_BOUND),
    "a negative rest": (file("bound", floor="0", data={**BOUND["data"], "rest": "-1"}), NO_BOUND),
    "too high a floor": (put(BOUND, ("floor",), "1.0000000001"), NO_BOUND),
    "too high a floor, twice": (
        file("bound", weights=["2"], multipliers=[[MASS[0], DOUBLE]], floor="1.0000001"),
        NO_BOUND,
    ),
    "weights the wrong way": (file("bound", weights=["-1"], multipliers=[], limit=LIMIT), NO_BOUND),
    "no weights": (file("bound", weights=["0"], multipliers=[], floor="1e-9"), NO_BOUND),
    "weights of nothing": (put(BOUND, ("weights",), ["1", "1"]), "weights must be a list of 1"),
    "more targets than weights": (
        put(BOUND, ("data", "target"), ["-1", "-9"]),
        "the target must be a list of 1",
    ),
    "targets of nothing": (put(BOUND, ("data", "target"), []), "the target must be a list of 1"),
    "a row of what is not": (put(BOUND, ("data", "rows", 0, 0, 0), 1), "is not one of 1 places"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_just_beyond_is_refused_by_name(name):
    data, why = REFUSED[name]
    data = json.loads(json.dumps(data))
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        certificate.verify(data)
    assert why in str(error.value)
    assert not holds(data)


def test_symbols_are_those_of_the_specification():
    ten = ["Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m"]
    others = ["Ia", "fv", "fc", "fs", "fl", "fw", "fb", "fe", *(f"p{k}" for k in range(1, 10))]
    free = ["fo", "k", "k2", "k3", "gs", "gc", "fd", "rs", "rc", "rs2", "rc2"] + [
        f"u{k}" for k in range(1, 10)
    ]
    assert set(certificate.SIGNED) == set(others)
    assert {*ten, *others, *free, *(f"rotor_{s}" for s in ten)} == certificate.SYMBOLS


def test_limits_are_those_of_the_specification():
    own = certificate.LARGEST_FILE, certificate.MOST_WORK, certificate.LARGEST_MATRIX
    assert own == (2**24, 10**9, 64)
    assert (certificate.LONGEST_NAME, certificate.SMALLEST) == (200, 10**8)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        *((text, True) for text in ("9" * 3800 + "." + "9" * 400 + "e-999", "-999999999/999")),
        *((text, False) for text in ("9" * 3801, "0." + "9" * 401, "1e1000", "1e9999")),
        *((text, False) for text in ("1/1000", "1000000000/1", "1.", ".1", "+1", " 1", "1\n")),
        *((text, False) for text in ("nan", "inf", "0x1", "1_0", "\u0661")),
    ],
)
def test_numbers_are_those_of_the_specification(text, read):
    assert bool(certificate.NUMBER.fullmatch(text)) is read
    if not read:
        with pytest.raises(ValueError, match="not an exact number"):
            certificate.exact(text)


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_work_is_counted_and_bounded_before_it_is_done(size, monkeypatch):
    """s^3 operations on numbers of s b bits, b those of the integers over one denominator."""
    claim = certificate.Claim(FEASIBLE)
    bits, number = 130, Fraction(2**130 - 1, 2**69)
    matrix = [[number if i == j else Fraction(0) for j in range(size)] for i in range(size)]
    work = size**3 * (certificate.OVERHEAD + (size * bits // 64 + 1) ** 2)
    monkeypatch.setattr(certificate, "MOST_WORK", 2 * work)
    for _ in range(2):
        assert certificate.definiteness(matrix, claim.spend) == "positive definite"
    assert claim.work == 2 * work
    with pytest.raises(
        ValueError, match=f"too much work: {size**3} operations on numbers of {bits * size} bits"
    ):
        certificate.definiteness(matrix, claim.spend)


def test_what_is_wrong_is_shown_in_part():
    with pytest.raises(ValueError, match=f"^not an exact number: '{'x' * 60}'$"):
        certificate.exact("x" * 99)
    with pytest.raises(ValueError, match=f"^not a name: '{'x' * 60}'$"):
        certificate.read_name("x" * 999)
    with pytest.raises(ValueError, match=f"^'{'1' * 20}' is not one of 5 places$"):
        certificate.read_index(int("1" * 99), 5)
    data = put(IMPOSSIBLE, ("multipliers", 0, 0, 1), "x" * 999)
    with pytest.raises(ValueError, match=r"^there is no constraint .{60}, or it is there twice$"):
        certificate.verify(data)
    with pytest.raises(ValueError, match=r"^malformed certificate: .{177}$"):
        certificate.verify(put(FEASIBLE, ("consistency",), "x" * 999))


def test_files_are_read_up_to_their_limit(monkeypatch, tmp_path, capsys):
    path, text = tmp_path / "one.json", json.dumps(FEASIBLE)
    path.write_text(text)
    monkeypatch.setattr(certificate, "LARGEST_FILE", len(text))
    assert certificate.main([str(path)]) == 0
    monkeypatch.setattr(certificate, "LARGEST_FILE", len(text) - 1)
    assert certificate.main([str(path)]) == 1
    assert capsys.readouterr().out.count("REJECTED") == 1


def test_the_worst_of_many_files_is_the_exit_status(tmp_path, capsys):
    good, bad, absent = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "absent.json"
    good.write_text(json.dumps(FEASIBLE))
    bad.write_bytes(b"PK\x8e")
    with pytest.raises(CertificateError, match="no certificate: a binary file"):
        feasid.Certificate.load(bad)
    assert certificate.main([str(bad)]) == 1
    assert "feasid show checks the certificate of a saved fit" in capsys.readouterr().out
    bad.write_text("[" * 100_000)
    with pytest.raises(CertificateError, match="no certificate"):
        feasid.Certificate.load(bad)
    for names, status in (
        ([good, good], 0),
        ([good, bad, good], 1),
        ([bad, absent, good], 2),
        ([absent, bad], 2),
    ):
        assert certificate.main([str(name) for name in names]) == status
    told = capsys.readouterr()
    assert told.out.count("verified: feasible") == 5
    assert told.out.count("REJECTED") == 3
    assert told.err.count("cannot be read") == 2


def test_it_is_a_program(tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(FEASIBLE))
    bad.write_text("{}")
    for path, status in ((good, 0), (bad, 1)):
        monkeypatch.setattr(sys, "argv", ["certificate", str(path)])
        with pytest.raises(SystemExit) as done:
            runpy.run_path(certificate.__file__, run_name="__main__")
        assert done.value.code == status
    assert capsys.readouterr().out.count("verified") == 1


SAID = {
    "feasible": (
        FEASIBLE,
        [
            "feasible (full consistency): a point satisfies every constraint",
            "for the matrix in this file, which states 'one', none",
            "given: 1 equations on 10 parameters",
        ],
    ),
    "asked": (
        file(
            "feasible",
            margin="0.5",
            ties=[tie([[0, "1"], [3, "-1/2"]], "1", "round")],
            constraints=[
                rule([0, 0, [[9, "1"], [8, "2"]], "-1/4"], name="heavy"),
                rule(mass(), name="massive", strict=True),
                rule(mass(), [1, 1, [], "1"], size=2, name="two"),
                rule(mass(), [1, 1, [], "1"], size=2, name="both", strict=True),
            ],
        ),
        [
            "margin: 0.5 on every matrix and number, in SI",
            "asked: round: 1 a.Lxx + -1/2 a.Lyy = 1",
            "asked: heavy: 1 a.m + 2 a.lz + -1/4 >= 0",
            "asked: massive: 1 a.m + 0 > 0",
            "asked: two: a 2x2 matrix of a.m is positive semidefinite",
            "asked: both: a 2x2 matrix of a.m is positive definite",
        ],
    ),
    "infeasible": (
        IMPOSSIBLE,
        ["infeasible (full consistency): no parameters satisfy the constraints"],
    ),
    "boundary": (
        EDGE,
        [
            "boundary (full consistency): a point satisfies the constraints, but only with "
            "singular matrices"
        ],
    ),
    "frame": (FRAME, [f"asked: no {s}: 2 b.{s} = 0" for s in certificate.BODY]),
    "limit": (
        put(SMALL, ("limit", "length"), "2"),
        [
            "proved only up to 1e8 kg per body, 1e8 kg at 2 m in first and second moments, "
            "1e8 in joint terms"
        ],
    ),
    "bound": (
        file("bound", "2", floor="4"),
        ["bound (full consistency): no parameters fit better than 2; the point given reaches 4"],
    ),
    "rest": (
        file("bound", floor="0", data={**BOUND["data"], "rest": "5"}),
        ["bound (full consistency): no parameters fit better than 0; the point given reaches 3"],
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_sentences_are_the_statement_and_nothing_else(name):
    data, lines = SAID[name]
    said = certificate.verify(data).splitlines()
    assert [line for line in said if line in lines] == lines
    if name == "feasible":
        assert said == lines


@pytest.mark.parametrize(("floor", "root"), [("1", "1"), ("2", "1.41421356"), ("3", "1.73205079")])
def test_roots_of_floors_are_rounded_down(floor, root):
    said = (
        certificate.verify(file("bound", "2", floor=floor)).split("better than ")[1].split(";")[0]
    )
    assert said == root
    assert Fraction(said) ** 2 <= Fraction(floor)
