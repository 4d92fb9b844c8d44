"""Ranges hold for every model that exists and fits: against CVXPY, proofs and hidden truth."""

import json
import warnings

import cvxpy as cp
import numpy as np
import pytest
from logs import arm_parameters, simulate, values_for, with_terms
from robots import ARM

import feasid
from benchmarks.range_checks import share_of_truths
from feasid.certificate import digest
from feasid.cli import main
from feasid.core.errors import CertificateError, InputError, SolverError
from feasid.identification.assessment.residuals import Structure
from feasid.identification.uncertainty.ranges import find_ranges, linear_form, systematic_notes
from feasid.parameters.feasibility.proof.optimality import RangeEndProver
from feasid.parameters.feasibility.region import RELATIVE_GAP
from feasid.robot.inertia import pseudo_inertia

SOLVED = 1e-4
"""Share of a range within which CVXPY's optimum is trusted: its own tolerances at these scales."""

LEVEL = 0.999
DRAWS = 2
HELD = 0.99
"""Least share of hidden parameters that ranges must contain; the level promises .999 of all."""


def test_ranges_say_which_errors_they_do_not_include(fit):
    name = fit.base.robot.parameter_names[9]
    structure = [Structure(0.8, "speed"), Structure(0.2, "")]
    (note,) = systematic_notes(structure, ("a", "b"))
    assert "residual of a (80 %)" in note
    assert systematic_notes(structure[1:], ("b",)) == ()
    assert [n.code for n in systematic_notes((), ())] == ["systematic-unknown"]
    for shift, said in ((0.0, []), (10.0, ["fit-outside"])):
        found = find_ranges(fit.residual, fit.delta + shift, [name])
        assert [n.code for n in found.notes] == said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranges")
    (folder / "arm.urdf").write_text(ARM)
    return folder


@pytest.fixture(scope="module")
def robot(folder):
    return feasid.load_robot(folder / "arm.urdf")


@pytest.fixture(scope="module")
def true(robot):
    terms = robot.with_joint_terms()
    return terms.with_values(arm_parameters(terms))


def log_of(true, seed, samples=1500, noise=0.1):
    return simulate(true, true.values, seed, samples, noise)


USUAL = {"diagnose": False, "friction": ("viscous", "coulomb", "offset")}
PUBLISHED = {"diagnose": False, **feasid.SOUSA_2014, "cutoff": None}


@pytest.fixture(scope="module")
def fit(robot, true):
    return feasid.fit(log_of(true, 0), robot, **USUAL)


@pytest.fixture(scope="module")
def found(fit):
    return fit.ranges()


def optimum(fit, form, level=LEVEL):
    """The largest value of a form by CVXPY, in units of each body, without plausibility; None
    where its solver stops early, as Clarabel 0.9 does at one of them.
    """
    residual, unit = fit.residual, fit.optimum.problem.units.parameters
    x = cp.Variable(len(unit))
    delta = cp.multiply(unit, x)
    A = residual.equations.A * unit
    rules = [cp.norm(A @ x - residual.equations.rho) <= np.sqrt(residual.budget(level))]
    for columns in fit.robot.inertial_columns:
        size = unit[columns[9]] * np.diag([unit[columns[0]] / unit[columns[9]]] * 3 + [1.0])
        root = np.linalg.inv(np.sqrt(size))
        basis = np.einsum("ij,cjk,kl->cil", root, pseudo_inertia(np.eye(10)), root)
        flat = basis.reshape(10, 16).T @ delta[columns]
        rules.append(cp.reshape(flat, (4, 4), order="C") >> 0)
    signed = [j for j, (_, s) in enumerate(fit.robot.parameter_names) if s in ("Ia", "fv", "fc")]
    rules.append(x[signed] >= 0)
    size = float(np.abs(form) @ unit)
    problem = cp.Problem(cp.Maximize((form * unit / size) @ x), rules)
    with warnings.catch_warnings(action="ignore"):
        problem.solve(solver=cp.CLARABEL)
    return size * problem.value if problem.status == "optimal" else None


@pytest.mark.sampled(0.34, of="file")
def test_ends_are_those_of_another_program(fit):
    """Proved bounds lie beyond CVXPY's optimum, the models reached before it, both close by."""
    names = fit.robot.parameter_names
    tried = 0
    for column in range(0, len(names), 5):
        span = fit.range(names[column], plausible=False)
        form = np.eye(len(names))[column]
        width = span.upper - span.lower
        for sign, bound, model in zip((-1, 1), (-span.lower, span.upper), span.models, strict=True):
            if not np.isfinite(width):
                continue
            if (best := optimum(fit, sign * form)) is None:
                continue
            assert bound >= best - SOLVED * width
            assert bound <= best + (RELATIVE_GAP + SOLVED) * width
            assert sign * model[column] <= best + SOLVED * width
            tried += 1
    assert tried > 6


@pytest.mark.sampled(0.34, of="file")
def test_models_at_the_ends_exist_and_fit(fit, found):
    for span in found[::4]:
        for model in span.models:
            assert not fit.feasible.violations(model)
            error = fit.residual.equations.A @ model - fit.residual.equations.rho
            assert error @ error <= found.budget
            # What is reached may be past an end by the rounding of its printing, never more.
            value = linear_form(fit.base, span.name)[1] @ model
            assert span.lower <= value <= span.upper


def test_the_identified_model_is_in_every_range(found):
    assert all(span.value in span for span in found)


def test_ends_are_proved_to_a_checker_that_knows_no_solver(found):
    proved = 0
    for span in found[::6]:
        for end, mark in zip(("lower", "upper"), span.marks, strict=True):
            certificate = span.certificate(end)
            if mark == "not determined":
                assert certificate is None
                continue
            if certificate is None:  # the end itself is attained, such as friction of zero
                assert (span.lower if end == "lower" else span.upper) == 0.0
                continue
            said = certificate.verify()
            assert "no parameters" in said
            proved += 1
    assert proved > 6


def test_a_narrower_end_is_not_proved(found):
    span = next(s for s in found if s.mark == "from data")
    data = json.loads(json.dumps(span.certificate("upper").data))
    end = data["constraints"][-1]
    assert end["name"] == "at the end of the range"
    inside = 0.5 * (span.upper + span.value)
    end["entries"][0][3] = repr(-inside)
    data["digest"] = digest(data)
    with pytest.raises(CertificateError):
        feasid.Certificate(data).verify()


@pytest.mark.sampled(0.34, of="file")
def test_marks_say_what_an_end_needs():
    """A log cannot know the mass of the first link of an arm on a vertical axis."""
    upper = feasid.Robot.from_dh(
        [(np.pi / 2, 0.0, 0.3, 0.0), (0.0, 0.4, 0.0, 0.0)], gravity=(0.0, 0.0, -9.81)
    ).with_joint_terms(("viscous", "coulomb", "offset"))
    values = np.zeros(upper.size)
    values[upper.inertial_columns] = [0.05, 0, 0, 0.05, 0, 0.05, 0.01, 0.02, 0, 2.0]
    values = with_terms(upper.with_values(values), fv=0.3, fc=0.2, fo=0.0).values
    log = simulate(upper, values, 3, samples=1500, noise=0.01)
    model = feasid.fit(log, upper, diagnose=False)
    free = model.range("1.m", plausible=False)
    assert free.mark == "not determined"
    assert (free.lower, free.upper) == (0.0, np.inf)
    assert free.marks == ("from feasibility", "not determined")
    assert model.range("m1").name == "m1"
    for expression, value in zip(model.base.expressions, model.base.K @ values, strict=True):
        span = model.range(expression)
        assert value in span
        assert np.isfinite([span.lower, span.upper]).all()
    held = feasid.fit(log, upper, diagnose=False, mass={"1": (1.0, 4.0)}).range("1.m")
    assert held.mark == "from prior"
    assert held.upper == pytest.approx(4.0, rel=2 * RELATIVE_GAP)


def test_a_smaller_budget_is_a_smaller_range(fit):
    name = fit.base.expressions[0]
    wide, narrow = fit.range(name), fit.range(name, level=0.5)
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_spellings_and_sums_are_one(fit, robot):
    rod, upper = (f"{b}.m" for b in ("rod", "upper"))
    one = fit.range(f"{rod} + 2 {upper}")
    same = fit.range({("rod", "m"): 1.0, ("upper", "m"): 2.0})
    less = fit.range("2.0 * m upper + rod.m")
    for other in (same, less):
        assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper))
    difference = fit.range(f"{upper} - {rod}")
    assert difference.value == pytest.approx(fit.range(upper).value - fit.range(rod).value)


@pytest.mark.parametrize(
    ("wanted", "level", "said"),
    [
        ("uper.m", 0.9, "did you mean 'upper.m'"),
        ("upper.m - upper.m", 0.9, "no sum"),
        ({}, 0.9, "no sum"),
        *(("upper.m", level, "level") for level in (0.0, 1.0, 2.0, "high")),
    ],
)
def test_what_is_no_parameter_or_level_is_named(fit, wanted, level, said):
    with pytest.raises(InputError, match=said):
        fit.range(wanted, level=level)


@pytest.mark.sampled(0.34, of="file")
def test_known_and_tied_parameters_have_the_ranges_that_they_leave(robot, true):
    masses = true.values[true.inertial_columns[:, 9]]
    known = {"rod": [np.nan] * 9 + [masses[1]]}
    fit = feasid.fit(log_of(true, 1, noise=0.05), robot, known=known, **PUBLISHED)
    assert fit.unknowns.unknowns == fit.base.unknowns - 1
    assert f"{fit.unknowns.size} base of {fit.unknowns.unknowns} unknown" in str(fit.summary())
    mass = fit.range("rod.m")
    assert mass.lower == pytest.approx(known["rod"][9]) == mass.upper
    assert masses[0] in fit.range("upper.m")
    positive = [n for n in fit.robot.parameter_names if n[1] in ("m", "Lzz", "fv", "fc")]
    assert all(span.lower >= 0 for span in fit.ranges(positive))


@pytest.mark.sampled(0.34, of="file")
def test_fits_without_a_prior_have_ranges_in_units_of_their_residual(robot, true):
    fit = feasid.fit(log_of(true, 2), robot, **PUBLISHED)
    value = fit.base.K @ values_for(fit.base.robot, true)
    for true_value, span in zip(value, fit.ranges(fit.base.expressions), strict=True):
        assert true_value in span


@pytest.mark.slow
def test_hidden_parameters_are_in_their_ranges(robot, true):
    """Two logs with noise of their own, each with all parameters."""
    inside = []
    for seed in range(DRAWS):
        fit = feasid.fit(log_of(true, seed, samples=600), robot, **USUAL)
        spans = fit.ranges(fit.robot.parameter_names[::3])
        truth = values_for(fit.robot, true)[::3]
        inside += [value in span for value, span in zip(truth, spans, strict=True)]
    assert np.mean(inside) >= HELD


@pytest.mark.slow
@pytest.mark.parametrize("stiction", [False, True])
def test_ranges_hold_the_truth_of_an_arm_in_mujoco(stiction):
    """Of two seeds; `benchmarks.range_checks` counts those of ten and of every arm."""
    assert share_of_truths("ur5", stiction, 2) >= HELD


def test_a_saved_fit_has_the_same_ranges(fit, folder, capsys):
    fit.save(folder / "arm.feasid", overwrite=True)
    model, wanted = feasid.load(folder / "arm.feasid"), ["upper.m", "rod.lx"]
    for one, two in zip(fit.ranges(wanted), model.ranges(wanted), strict=True):
        assert two.marks == one.marks
        assert (two.lower, two.upper) == pytest.approx((one.lower, one.upper), rel=3 * RELATIVE_GAP)
    assert main(["ranges", str(folder / "arm.feasid"), *wanted, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [r["parameter"] for r in told["ranges"]] == wanted
    assert main(["ranges", str(folder / "arm.feasid"), "uper.m"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["ranges", str(folder / "arm.feasid"), "upper.m", "--level", "2"]) == 2


@pytest.mark.slow
def test_a_fit_at_the_prompt_tells_its_ranges(fit, true, folder, capsys):
    log_of(true, 0).to_csv(folder / "log.csv", index=False)
    order = ["fit", str(folder / "log.csv"), "--robot", str(folder / "arm.urdf"), "--ranges"]
    order += ["--diagnose", "no", "--friction", "viscous,coulomb,offset"]
    assert main([*order, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["ranges"]
    assert [r["parameter"] for r in told["ranges"]] == [
        ".".join(name) for name in fit.robot.parameter_names
    ]
    assert any(r["upper"] is None for r in told["ranges"] if r["mark"] == "not determined") or all(
        r["mark"] != "not determined" for r in told["ranges"]
    )


def test_an_end_without_a_proof_is_infinite_and_named(fit, robot, monkeypatch):
    name = robot.parameter_names[9]
    column, prove = 9, RangeEndProver.prove

    def fail_upwards(self, form, w, multipliers):
        if form[column] > 0:
            raise SolverError("no proof")
        return prove(self, form, w, multipliers)

    monkeypatch.setattr(RangeEndProver, "prove", fail_upwards)
    ranges = fit.ranges([".".join(name), ".".join(robot.parameter_names[19])])
    open_ended, other = ranges
    assert open_ended.upper == np.inf
    assert np.isfinite(open_ended.lower)
    assert open_ended.mark == "not proved"
    assert open_ended.certificate("upper") is None
    assert open_ended.certificate("lower") is not None
    assert other.mark != "not proved"
    (note,) = [n for n in ranges.notes if n.code == "unproved"]
    assert note.values["parameters"] == [open_ended.name]
    assert "not proved" in str(ranges)
