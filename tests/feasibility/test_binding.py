"""Certificates against what a reader holds: forgeries that hold as files are refused."""

from fractions import Fraction

import numpy as np
import pytest
from claims import signed
from feasibility_problems import energy, random_parameters, random_robot

import feasid
from benchmarks.second_checker import holds
from feasid.core.exact.numbers import shortest_text
from feasid.parameters.feasibility.check import _check_equations
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.proof.binding import HeldStatement, bind
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.question import ExactData, Question


class Reader:
    """A robot of three bodies, its base parameters, and the data of a log."""

    def __init__(self, seed=1, drives=False, noise=1.0):
        rng = np.random.default_rng(seed)
        self.robot = random_robot(rng, 3, drives=drives)
        self.base = feasid.base_parameters(self.robot)
        self.delta = random_parameters(rng, self.robot)
        self.beta = self.base.values(self.delta)
        self.K = np.asarray(self.base.K)
        self.feasible = feasible_set(self.robot)
        size = self.base.size
        self.R = np.triu(rng.normal(size=(size, size)))
        self.rho = self.R @ self.beta + noise * rng.normal(size=size)
        self.rng = rng

    def impossible(self, by=0.1):
        """Base parameters of which a motion would have negative energy."""
        y, beta = energy(self.rng, self.robot, self.base), self.beta.copy()
        i = int(np.argmax(np.abs(y * beta)))
        beta[i] -= (1 + by) * (y @ beta) / y[i]
        return beta

    def values(self, beta=None, K=None, **bounds):
        """The statement about these base parameters."""
        allowed = feasible_set(self.robot, **bounds)
        K, given = self.K if K is None else K, self.beta if beta is None else beta
        return HeldStatement(Question.from_doubles(self.robot, allowed, K, given), "beta.csv")

    def data(self):
        """The statement about the data."""
        question = Question.from_doubles(self.robot, self.feasible, self.K, None)
        return HeldStatement(question, "log.csv", ExactData.from_doubles(self.R, self.rho))

    def fit(self):
        return feasible_least_squares(self.R, self.rho, self.base, self.feasible)


def proved(robot, K, beta, **options):
    """The certificate of an answer about any equations."""
    margin = options.pop("margin", 0.0)
    labels = [str(i) for i in range(len(K))]
    allowed = feasible_set(robot, **options)
    return _check_equations(robot, allowed, K, beta, labels, margin, None).certificate


def changed(certificate, **parts):
    """With other parts and the digest of these."""
    return Certificate(signed({**certificate.data, **parts}))


def refusal(certificate, *holdings):
    """Why a file that holds, to both checkers, is not about what a reader holds."""
    certificate.verify()
    assert holds(certificate.data)
    binding = bind(certificate, holdings)
    assert binding.refused
    assert not binding.sentence
    return binding.refused[0]


def test_what_is_held_is_proved_in_one_sentence():
    reader = Reader()
    for beta, answer in ((reader.beta, "feasible"), (reader.impossible(), "infeasible")):
        certificate = proved(reader.robot, reader.K, beta)
        binding = bind(certificate, [reader.data(), reader.values(beta)])
        assert not binding.refused
        start = f"proves that the values are {answer} about beta.csv under full consistency"
        assert binding.sentence.startswith(start)
        assert ("masses up to" in binding.sentence) == (certificate.limit is not None)
    binding = bind(reader.fit().optimality, [reader.values(), reader.data()])
    assert "no parameters fit better than" in binding.sentence
    assert "about log.csv" in binding.sentence


def test_limits_that_were_named_are_in_the_sentence():
    reader = Reader()
    bounds = {"mass": {"b0": (0.1, 50.0)}, "known": {"b2": reader.delta[20:30]}}
    certificate = proved(reader.robot, reader.K, reader.beta, **bounds)
    binding = bind(certificate, [reader.values(**bounds)])
    assert "mass of b0" in binding.sentence
    assert "what is known of b2.Lxx" in binding.sentence
    assert "a tie that you did not name" in refusal(certificate, reader.values())
    without = proved(reader.robot, reader.K, reader.beta)
    assert "without the tie that you named" in refusal(without, reader.values(**bounds))


def test_equations_that_are_not_those_of_k_are_refused():
    """Rows permuted, single parameters, a row twice with another value, a few of the rows."""
    reader, impossible = Reader(), Reader().impossible()
    K, beta, count = reader.K, reader.beta, len(reader.K)
    order = np.roll(np.arange(count), 1)
    first, last = np.eye(reader.robot.size)[:count], np.eye(reader.robot.size)[-count:]
    for rows, given, held, why in (
        (K[order], beta, beta, "equation 0 is not row 0 of K"),
        (K[order], beta[order], beta, "equation 0 is not row 0 of K"),
        (first, beta, beta, "is not row"),
        (last, beta, beta, "is not row"),
        (np.vstack([K, K[:1]]), np.r_[beta, beta[0] + 1], beta, "equations, where K has"),
        (K[:2], impossible[:2], impossible, "2 equations, where K has"),
    ):
        assert why in refusal(proved(reader.robot, rows, given), reader.values(held))


def test_a_zero_made_negative_is_refused():
    reader = Reader(drives=True)
    place = next(i for i, row in enumerate(reader.K) if np.count_nonzero(row) == 1)
    reader.beta[place] = 0.0
    below = reader.beta.copy()
    below[place] = -1e-10
    certificate = proved(reader.robot, reader.K, below)
    assert certificate.claim == "infeasible"
    why = refusal(certificate, reader.values())
    assert why == f"value {place} is -0.0000000001, not 0"


def bound_of(reader, data, floor):
    """A bound on data without rows: nothing fits better than what is not touched."""
    proof = {"data": data, "weights": ["-1"] * len(data["rows"]), "floor": floor}
    proof |= {"multipliers": [], "limit": None, "tied": []}
    proof["point"] = reader.fit().optimality.data["point"]
    return reader.data().question.unchecked_certificate("bound", **proof)


def test_a_bound_of_other_data_is_refused():
    reader = Reader()
    square = Fraction(float(reader.rho @ reader.rho)).limit_denominator(10**6)
    size = f"{float(np.linalg.norm(reader.rho)):.12g}"
    nothing = {"rows": [[]], "target": [size], "rest": "0"}
    floor = f"{float(square) * (1 - 1e-9):.9f}"
    assert "1 rows of data, not" in refusal(bound_of(reader, nothing, floor), reader.data())
    target = [repr(abs(x)) for x in reader.rho.tolist()]
    empty = {"rows": [[] for _ in target], "target": target, "rest": "0"}
    assert "row 0 of the data" in refusal(bound_of(reader, empty, "0"), reader.data())


def test_a_rest_added_to_bound_and_data_is_refused():
    reader = Reader()
    certificate = reader.fit().optimality
    data = {**certificate.data["data"], "rest": "1000000"}
    floor = shortest_text(Fraction(certificate.data["floor"]) + 10**6)
    forged = changed(certificate, data=data, floor=floor)
    assert "a rest of 1000000 in the squared residual, not 0" in refusal(forged, reader.data())


def test_data_of_another_log_are_refused():
    reader = Reader()
    certificate = reader.fit().optimality
    reader.rho = reader.rho * (1 + 1e-9)
    assert "of the data differs" in refusal(certificate, reader.data())
    assert "compared with anything" in refusal(certificate, reader.values())


def test_limits_that_the_robot_does_not_imply_are_refused():
    reader = Reader()
    beta = reader.impossible()
    certificate = proved(reader.robot, reader.K, beta)
    limit = reader.values().question.size_limits(10**8)
    for part, value in (("length", "1e-200"), ("mass", "123456789"), ("terms", "100000001")):
        forged = changed(certificate, limit={**limit, part: value})
        assert "a limit of masses up to" in refusal(forged, reader.values(beta))


@pytest.mark.parametrize("consistency", ["full", "semi"])
def test_a_proof_by_a_bound_on_masses_needs_that_bound(consistency):
    """Rounding leaves room for the largest limit on sizes; without the multiplier, or with a looser
    bound, nothing is proved, and a tighter bound is none that the reader named.
    """
    reader = Reader()
    bounds = {"total_mass": 0.05 * float(reader.delta[reader.robot.inertial_columns[:, 9]].sum())}
    certificate = proved(reader.robot, reader.K, reader.beta, consistency=consistency, **bounds)
    data = certificate.data
    assert data["claim"] == "infeasible"
    limit = data.get("limit")  # some roundings leave room for a proof without any
    assert limit is None or limit["mass"] == str(10**12)
    named = [item["name"] for item in data["constraints"]]
    assert named == ["total mass upper"]
    others = [item for item in data["multipliers"] if item[0] != ["asked", "0"]]
    assert len(others) == len(data["multipliers"]) - 1
    assert not changed(certificate, multipliers=others).holds()
    assert not holds(changed(certificate, multipliers=others).data)

    def bounded(factor):
        (item,) = data["constraints"]
        ((row, column, terms, _),) = item["entries"]
        number = shortest_text(Fraction(str(bounds["total_mass"])) * factor)
        entries = [[row, column, terms, number]]
        return changed(certificate, constraints=[{**item, "entries": entries}])

    for looser in (20, 10**9):
        assert not bounded(looser).holds()
        assert not holds(bounded(looser).data)
    held = reader.values(consistency=consistency, **bounds)
    assert not bind(certificate, [held]).refused
    assert "total mass upper" in refusal(bounded(Fraction(1, 10)), held)
    limit = {"mass": "27", "length": "1", "terms": "100000000"}
    assert not changed(certificate, limit=limit).holds()  # a limit is never a robot's own size


def test_contradicting_ties_are_refused():
    reader = Reader()
    statement = reader.values().question
    ties = [{"name": "asked", "row": [[9, "1"]], "value": v} for v in ("1", "2")]
    proof = {"limit": None, "multipliers": [], "tied": ["1", "-1"]}
    proof["combination"] = ["0"] * len(reader.K)
    forged = changed(statement.unchecked_certificate("infeasible", **proof), ties=ties)
    assert "a tie that you did not name: asked: 1 b0.m = 1" in refusal(forged, reader.values())


def test_margins_and_consistency_that_were_not_asked_for_are_refused():
    reader = Reader()
    certificate = proved(reader.robot, reader.K, reader.beta, margin=1e6)
    assert certificate.claim == "infeasible"
    assert "a margin of 1000000, not 0" in refusal(certificate, reader.values())
    semi = proved(reader.robot, reader.K, reader.beta, consistency="semi")
    assert "semi consistency, not full" in refusal(semi, reader.values())


def test_another_robot_is_refused():
    one, other = Reader(1), Reader(2)
    certificate = proved(one.robot, one.K, one.beta)
    assert "another geometry" in refusal(certificate, other.values(one.beta))


@pytest.mark.parametrize("by", [0.3, 1e-3])
def test_a_proof_holds_for_coefficients_that_another_machine_rounds_otherwise(by):
    reader = Reader()
    beta = reader.impossible(by)
    for given in (reader.beta, beta):
        certificate = proved(reader.robot, reader.K, given)
        for share, accepted in ((1e-15, True), (1e-6, False)):
            holding = reader.values(given)
            K = reader.K * (1 + share * (np.abs(reader.K) % 0.5 > 0))
            assert not bind(certificate, [holding]).refused
            binding = bind(certificate, [reader.values(given, K)])
            assert bool(binding.sentence) == accepted
            if accepted:
                assert "coefficients as computed here" in binding.sentence


def test_models_are_compared_with_the_values_of_their_parameters():
    reader = Reader()
    single = np.eye(reader.robot.size)
    certificate = proved(reader.robot, single, reader.delta)
    assert bind(certificate, [reader.values(reader.delta, single)]).sentence
    other = reader.delta.copy()
    other[9] = np.nextafter(other[9], 9)
    assert "value 9 is" in refusal(certificate, reader.values(other, single))


SAMPLE, CAMPAIGN = 60, 20_000
"""Mutants in the default suite and in the slow one."""


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(CAMPAIGN, marks=pytest.mark.slow)])
def test_no_mutant_is_taken_for_what_a_reader_holds(count):
    """A false acceptance raises; what the binding refuses holds as a file."""
    pytest.importorskip("pinocchio")
    from benchmarks.binding_mutants import campaign

    found = campaign(count, seed=count)
    assert found["mutants"] == count
    refused = sum(n for what, n in found.items() if what.startswith("refused by the binding"))
    assert refused > count / 2, found
