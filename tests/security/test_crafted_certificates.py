"""Certificates that are made to claim what is false: signed anew, and wrong in one place."""

import copy

import pytest
from claims import bodies, common

from feasid.certificate import digest, verify

POINT = ["2", "0", "0", "2", "0", "2", "0", "0", "0", "1", "1"]
"""A body of 1 kg, all second moments 2 kg m^2; then the denominator."""

TRIANGLE = ["0"] * 9 + ["1"]
"""A multiplier of the mass alone."""


def feasible():
    """The mass is 1 kg."""
    data = common(bodies(1), claim="feasible", matrix=[[[9, "1"]]], values=["1"], point=POINT)
    return {k: v for k, v in data.items() if k not in ("limit", "multipliers", "tied")}


def infeasible(mass="-1"):
    """The mass is -1 kg."""
    proof = {"multipliers": [[["body", "b0"], TRIANGLE]], "combination": ["1"]}
    return common(bodies(1), claim="infeasible", matrix=[[[9, "1"]]], values=[mass], **proof)


def bound():
    """The mass is measured as -1 kg: no body is nearer than 1 kg."""
    data = {"rows": [[[0, "1"]]], "target": ["-1"], "rest": "0"}
    proof = {"multipliers": [[["body", "b0"], TRIANGLE]], "weights": ["1"], "floor": "1"}
    return common(bodies(1), claim="bound", matrix=[[[9, "1"]]], data=data, point=POINT, **proof)


def signed(data):
    return {**data, "digest": digest(data)}


@pytest.mark.parametrize("honest", [feasible, infeasible, bound])
def test_what_is_true_is_verified(honest):
    assert honest.__name__ in verify(signed(honest()))


def put(*path, to):
    """A change of one place."""

    def change(data):
        data = copy.deepcopy(data)
        *inner, last = path
        place = data
        for key in inner:
            place = place[key]
        place[last] = to
        return data

    return change


def together(*changes):
    def change(data):
        for one in changes:
            data = one(data)
        return data

    return change


ASKED = {"name": "x", "strict": True, "size": 1, "entries": [[0, 0, [[9, "1"]], "0"]]}
LIMIT = {"mass": "1e9", "length": "1e3", "terms": "1e9"}
TIE = {"name": "no mass", "row": [[9, "1"]], "value": "0"}

FALSE = {
    "a multiplier that is negative": (
        lambda: infeasible("1"),
        together(
            put("multipliers", 0, 1, to=["0"] * 9 + ["-1"]), put("combination", 0, to="-1")
        ),
    ),
    "multipliers that do not cancel": (lambda: infeasible("1"), put("combination", 0, to="-1")),
    "multipliers that are all zero": (
        lambda: infeasible("0"),
        together(put("multipliers", 0, 1, to=["0"] * 10), put("combination", 0, to="0")),
    ),
    "a multiplier of a body that is not there": (
        infeasible, put("multipliers", 0, 0, to=["body", "b1"])
    ),
    "a multiplier of a constraint that nobody asked": (
        infeasible, put("multipliers", 0, 0, to=["asked", "0"])
    ),
    "one multiplier twice": (
        infeasible, put("multipliers", to=[[["body", "b0"], TRIANGLE]] * 2)
    ),
    "a limit below any robot": (
        lambda: infeasible("1"),
        together(put("combination", 0, to="-1"), put("limit", to=LIMIT | {"mass": "1e-9"})),
    ),
    "a limit whose length is negative": (
        lambda: infeasible("1"),
        together(put("combination", 0, to="-1"), put("limit", to=LIMIT | {"length": "-1e9"})),
    ),
    "a limit that costs more than is proved": (
        lambda: infeasible("1"),
        together(put("combination", 0, to="-1"), put("limit", to=LIMIT)),
    ),
    "a sum of zero by a sign that may be zero": (
        lambda: infeasible("0"),
        together(
            put("parameters", to=[*bodies(1), ["b0", "fv"]]),
            put("matrix", 0, to=[[10, "1"]]),
            put("multipliers", 0, to=[["sign", "b0", "fv"], ["1"]]),
        ),
    ),
    "a boundary that is a contradiction": (
        infeasible, together(put("claim", to="boundary"), put("point", to=POINT))
    ),
    "a number that is none": (infeasible, put("values", 0, to="-inf")),
    "a number that no decimal is": (infeasible, put("values", 0, to=-1.0)),
    "a place from the end": (infeasible, put("matrix", 0, to=[[-1, "1"]])),
    "a place that is a truth value": (infeasible, put("matrix", 0, to=[[True, "1"]])),
    "a parameter twice": (infeasible, put("parameters", 8, to=["b0", "m"])),
    "a body without its mass": (infeasible, put("parameters", 9, to=["b0", "fo"])),
    "no body at all": (
        feasible,
        together(
            put("parameters", to=[["j", "fo"]]), put("matrix", 0, to=[[0, "1"]]),
            put("point", to=["1", "1"]),
        ),
    ),
    "another consistency": (feasible, put("consistency", to="none")),
    "a point that turns all signs": (
        feasible, together(put("point", to=[*POINT[:10], "-1"]), put("values", 0, to="-1"))
    ),
    "a point over zero": (feasible, put("point", 10, to="0")),
    "a point without mass": (
        feasible, together(put("point", 9, to="0"), put("values", 0, to="0"))
    ),
    "a point beside its equation": (feasible, put("point", 9, to="1.0000000000000000000001")),
    "a point beside its tie": (feasible, put("ties", to=[TIE])),
    "a point of an inertia that no mass has": (feasible, put("point", 0, to="9")),
    "a margin below zero": (
        feasible,
        together(
            put("margin", to="-5"), put("point", 9, to="-1"), put("values", 0, to="-1")
        ),
    ),
    "a margin that the point does not keep": (feasible, put("margin", to="1.5")),
    "a constraint below the diagonal": (
        feasible, put("constraints", to=[ASKED | {"size": 2, "entries": [[1, 0, [[9, "1"]], "0"]]}])
    ),
    "a constraint that says one entry twice": (
        feasible, put("constraints", to=[ASKED | {"entries": ASKED["entries"] * 2}])
    ),
    "a constraint on nothing": (
        feasible, put("constraints", to=[ASKED | {"entries": [[0, 0, [], "1"]]}])
    ),
    "a bound above what is proved": (bound, put("floor", to="1.0000000001")),
    "a bound by weights of another sign": (bound, put("weights", 0, to="-1")),
    "a bound below a rest that cannot be": (bound, put("data", "rest", to="-1")),
    "a bound of more rows than weights": (bound, put("data", "target", to=["-1", "-9"])),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refused(name):
    honest, change = FALSE[name]
    with pytest.raises(ValueError, match=r".") as raised:
        verify(signed(change(honest())))
    assert "digest" not in str(raised.value)


def test_what_is_changed_and_not_signed_is_refused():
    with pytest.raises(ValueError, match="digest"):
        verify(put("values", 0, to="-2")(signed(infeasible())))


def test_a_frame_is_named_as_what_was_asked():
    """A body all of whose parameters are tied to zero needs no inertia; the answer says so."""
    ties = [{"name": f"no {s}", "row": [[10 + j, "1"]], "value": "0"}
            for j, (_, s) in enumerate(bodies(1))]  # fmt: skip
    data = feasible() | {"parameters": bodies(2), "ties": ties}
    data["point"] = [*POINT[:10], *["0"] * 10, "1"]
    assert verify(signed(data)).count("asked: no ") == 10
    with pytest.raises(ValueError, match="violates constraint 'body b1'"):
        verify(signed(data | {"ties": ties[:9]}))
