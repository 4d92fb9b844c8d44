"""Fits are called good, doubtful or useless for a reason, and garbage leaves no model."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from evidence_of import evidence
from logs import arm_and_log
from thorough import some

import feasid
from benchmarks import faults
from feasid.cli import main
from feasid.cli.fit import EXIT_USELESS
from feasid.core.notes import Note
from feasid.identification.assessment import quality as uses
from feasid.identification.assessment.checks import (
    CARE,
    CHECKS,
    FEED_FORWARD,
    GRADED,
    GRAVITY,
    NO,
    UNKNOWN,
    YES,
    check,
)
from feasid.identification.assessment.compared_errors import (
    ComparedErrors,
    fit_joint_terms,
    held_out_errors,
)
from feasid.identification.assessment.evidence import GravityComparison
from feasid.identification.assessment.quality import STRUCTURED, judge, remarks
from feasid.identification.assessment.residuals import Structure, find_burst
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.noise import estimate_noise
from feasid.identification.regression.triangle import relative_errors
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.identifiability.base import base_parameters


def compared(factors, load=0.0, load_share=0.0, likeness=0.99, placeholder=False, difference=None):
    factors = np.asarray(factors, float)
    factor = float(np.nanmean(factors))
    difference = abs(factor - 1) if difference is None else difference
    return GravityComparison(factors, factor, 0.9, difference, likeness, load, load_share,
                      placeholder)  # fmt: skip


def compared_errors(model, squares, description=(0.9, 0.9)):
    return ComparedErrors(*map(np.asarray, (model, squares, description)),
                          np.array([1.0, 100.0]), True)  # fmt: skip


TABLE = {
    "good": ({}, "good", []),
    "a light joint": ({"error": (0.3, 0.5)}, "good", []),
    "more than friction holds": ({"gravity_error": np.array([0.1, 2.0])}, "doubtful", [GRAVITY]),
    "a fifth of the torque": ({"error": (0.1, 2.0)}, "doubtful", ["much-missed"]),
    "half of the torque": ({"error": (0.5, 6.0)}, "useless", ["little-explained"]),
    "amperes": ({"comparison": compared([0.06, 0.07])}, "useless", ["unit"]),
    "turned": ({"comparison": compared([-1.0, -1.1])}, "useless", ["unit"]),
    "x1.5": ({"comparison": compared([1.5, 1.45])}, "doubtful", ["torque-constant"]),
    "as a load": ({"comparison": replace(compared([1.5, 1.5], 5.0, 0.93), common=0.999)},
                  "doubtful", ["torque-constant"]),
    "one gain": ({"comparison": compared([0.75, 1.02]), "assumed": ("a",)}, "doubtful", ["gain"]),
    "one mass": ({"comparison": compared([0.75, 1.02]), "assumed": ("b",)}, "good", []),
    "all masses": ({"comparison": compared([0.75, 1.15]), "assumed": ("a", "b")}, "good", []),
    "a tenth of the torque": ({"error": (0.1, 0.9)}, "doubtful", ["feed-forward"]),
    "placeholders": ({"comparison": compared([1.2, 1.1], placeholder=True)}, "good", []),
    "times 1.5": ({"comparison": compared([1.5, 1.45], placeholder=True)}, "doubtful",
                  ["torque-constant"]),
    "times 1.5 or a load": ({"comparison": compared([1.5, 1.45], 2.0, 0.98),
                             "described": np.ones(2)}, "doubtful", ["torque-constant"]),
    "a load": ({"comparison": compared([1.5, 2.5], 2.0, 0.98), "described": np.ones(2)}, "good",
               []),
    "another robot": ({"comparison": compared([1, 1.1], likeness=0.1, difference=2.0)},
                      "useless", ["unlike"]),
    "one stands still": ({"joints": ("a", "b"), "still": ("a",)}, "useless", ["standstill"]),
    "735 kg": ({"masses": np.array([735.0, 2.0]), "described": np.array([9.1, 2.0])}, "useless",
               ["total-mass"]),
    "an offset": ({"offset": np.array([0.1, 9.0])}, "doubtful", ["offset"]),
    "short": ({"seconds": 5.0}, "doubtful", ["short"]),
    "worse than described": ({"errors": compared_errors([0.1, 0.05], [0.1, 0.05], [0.05, 0.04])},
                             "doubtful", ["worse-than-description"]),
    "feasibility at odds": ({"errors": compared_errors([0.3, 0.25], [0.1, 0.05])}, "doubtful",
                            ["constrained"]),
    "impossible": ({"errors": compared_errors([0.9, 0.9], [0.1, 0.1])}, "useless",
                   ["contradicted"]),
    "structured": ({"structure": (Structure(0.1), Structure(0.8, "path"))}, "doubtful",
                   ["structured"]),
    "pulses": ({"error": np.array([0.1, 0.06]), "structure": (
        Structure(0.8, "waves of position"),) * 2}, "doubtful", ["structured"]),
    "structured wrist": ({"structure": (Structure(0.9, "path"), Structure(0.3))}, "good", []),
    "fitted worse": ({"fitted_error": np.array([0.3, 1.5])}, "doubtful", ["fitted-worse"]),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_the_verdict_on_evidence(case):
    changes, level, codes = TABLE[case]
    quality = judge(evidence(**changes))
    assert quality.level == level, quality
    shown = [r.code for r in quality.reasons]
    assert shown[: len(codes)] == codes
    assert bool(shown) == bool(codes)
    assert level.upper() in repr(quality)
    if level == "useless":
        assert NO in quality.grades.values()


def test_a_confirmed_mistake_leaves_care_and_currents_leave_nothing():
    def level(note):
        return judge(evidence(notes=(note,))).level

    assert level(Note("late", "lag", level="warning")) == "good"
    assert level(Note("wrong sign", "sign", level="error", confirmed=True)) == "useless"
    assert level(Note("amperes", "currents", confirmed=True)) == "useless"


def test_structure_placeholders_and_light_joints_are_remarks():
    e = evidence((0.3, 0.5), structure=(Structure(0.8, "position"), Structure(0.1, "time")),
                 leverage=30.0, comparison=compared([1, 1], placeholder=True))  # fmt: skip
    said = " ".join(remarks(e))
    assert judge(e).level == "good"
    for part in ("a (position)", "carry little", "placeholders are", "Near the logged motion"):
        assert part in said


def test_an_error_of_a_second_is_a_contact_with_the_option_that_leaves_it_out():
    e = evidence((0.1, 2.0), structure=(Structure(0.0), Structure(0.0, burst=(10.0, 11.0))))
    assert "from 10 to 11 s, as of a contact: exclude=[(9.9, 11.1)]" in str(judge(e).reasons[0])


def test_gains_that_a_log_does_not_tell_leave_care_at_their_joints():
    e = evidence((0.02, 0.2), assumed=("b",))
    table = uses.Uses(judge(e), np.nan, np.ones(2), np.full(2, np.nan), 1).by_joint()
    assert table[FEED_FORWARD].to_list() == [YES, CARE]
    (said,) = [r for r in remarks(e) if r.startswith("Assumed")]
    assert "torque gain of b." in said
    assert "known load" in said
    assert not [r for r in remarks(evidence()) if r.startswith("Assumed")]


def test_errors_of_another_day_are_an_interval_and_its_upper_end_is_graded():
    e, ends = evidence((0.1, 0.5)), np.array(uses.ANOTHER_DAY)
    low, high = 100 * e.relative(e.error) * ends
    assert f"miss {low:.2g} to {high:.2g} %" in uses.feed_forward(e).why
    errors = [(0, 10 * k * x / ends[1]) for x in uses.LIMITS[FEED_FORWARD] for k in (0.98, 1.03)]
    grades = [judge(evidence(error)).grades[FEED_FORWARD] for error in errors]
    assert grades == [YES, CARE, CARE, NO]


def test_what_no_log_shows_is_not_known():
    unknown = np.full(2, np.nan)
    grades = judge(evidence(weighing=np.nan, gravity_error=unknown)).grades
    assert grades == {GRAVITY: UNKNOWN, FEED_FORWARD: YES, "weighing": UNKNOWN}


def test_a_check_is_one_entry():
    @check("heavy", dict.fromkeys(GRADED, CARE))
    def robot_is_heavy(e):
        return "The robot is heavy." if e.masses.sum() > 100 else ""

    try:
        assert judge(evidence()).level == "good"
        quality = judge(evidence(masses=np.array([99.0, 2.0]), described=np.array([99.0, 2.0])))
        assert [r.code for r in quality.reasons] == ["heavy"]
        assert quality.grades[GRAVITY] == CARE
        why = uses.Uses(quality, np.nan, np.ones(2), np.full(2, np.nan), 1).table()["why"]
        assert why[GRAVITY].endswith("Graded lower because of [heavy].")
        assert "because" not in why["masses"]
    finally:
        del CHECKS["heavy"]


MISTAKES = {
    "": lambda q, dq, tau, t: 0 * q,
    "position": lambda q, dq, tau, t: np.sin(2 * q),
    "speed": lambda q, dq, tau, t: dq**2,
    "time": lambda q, dq, tau, t: t,
    "path since its last reversal": lambda q, dq, tau, t: (
        q - np.array([*accumulate(q, lambda before, now: np.clip(before, now - 0.1, now + 0.1))])
    ),  # a block with play
}
"""Torques that no model of a fit has, by what they follow."""

SIZE = 0.3
"""Of them over a joint's torque."""


@pytest.mark.parametrize("kind", some(MISTAKES, "", "path since its last reversal"))
def test_what_follows_the_motion_in_a_residual_is_named(kind, tmp_path):
    robot, log = arm_and_log(tmp_path, 4000, 0.1)
    joint = robot.joints[-1]
    q, dq, tau = (log[f"{k}_{joint}"].to_numpy() for k in ("q", "dq", "tau"))
    more = MISTAKES[kind](q, dq, tau, log["t"].to_numpy())
    size = SIZE * tau.std() / max(more.std(), 1e-300)
    log[f"tau_{joint}"] += size * (more - more.mean())
    found = feasid.fit(log, robot, diagnose=False, candidates=())
    left = found.evidence.structure
    own = left[-1]
    if kind:
        assert own.share > STRUCTURED, left
        assert own.correlate.endswith(kind), left  # waves of the position, too
    else:
        assert all(s.share < STRUCTURED for s in left), left


@pytest.mark.parametrize("name", some(["unitree_z1", "staubli_tx40", "simulated"], "unitree_z1"))
def test_fits_of_right_logs_are_good(name):
    df, robot, options = faults.recorded(name)
    found = feasid.fit(df, robot, **options).quality
    allowed = {"short"} if name == "staubli_tx40" else set()
    assert {r.code for r in found.reasons} <= allowed
    assert found.level == ("doubtful" if found.reasons else "good")


GARBAGE = {
    "random torques": (["tau"], lambda x: x.std(axis=0) * np.random.default_rng(0).normal(
        size=x.shape)),
    "flipped signs": (["tau"], np.negative),
    "exchanged columns": (["tau"], lambda x: np.roll(x, 1, axis=1)),
    "nothing moves": (["q", "dq"], lambda x: 0 * x + x[0]),
}  # fmt: skip


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("kind", some(GARBAGE, "flipped signs", "random torques"))
def test_garbage_leaves_no_model(kind, tmp_path, capsys):
    log, out = tmp_path / "log.csv", tmp_path / "out.urdf"
    faults.changed("unitree_z1", *GARBAGE[kind]).to_csv(log, index=False)
    urdf = feasid.datasets.CHECKOUT / "unitree_z1" / "z1.urdf"
    words = ["fit", *map(str, (log, "--robot", urdf, "--out", out)), "--lock", "jointGripper=-0.44"]
    assert main(words) == EXIT_USELESS
    out_text, err_text = capsys.readouterr()
    assert all(text in out_text for text in (": useless;", "DO NOT USE THIS MODEL")), out_text
    assert all(text in err_text for text in ("this fit is useless", "nothing was written"))
    assert not out.exists()
    if kind == "flipped signs":
        assert main([*words, "--force", "--diagnose", "no"]) == 0
        assert out.exists()


def by_stretches(change):
    """The Z1's log with its torques changed, its equations kept by stretches, and their verdict."""
    _, robot, options = faults.recorded("unitree_z1")
    base = base_parameters(robot)
    log = faults.changed("unitree_z1", ["tau"], change)
    reduced = feasid.reduce(log, base=base, **options)
    noise, beta = estimate_noise(reduced)
    estimator = Estimator(base, feasible_set(robot), noise=noise).for_comparison(noise)
    return held_out_errors(estimator.cross_validate(reduced), beta), reduced.residuals(beta)


def test_stretches_are_predicted_from_the_others():
    errors, fitted = by_stretches(lambda x: x)
    assert errors.unseen
    # What was fitted to a stretch errs less on it than what was fitted to the others.
    assert (errors.least_squares > fitted / np.sqrt(errors.power)).all()
    noise, _ = by_stretches(GARBAGE["random torques"][1])
    assert noise.least_squares.min() > 1.0


def test_forces_and_torques_never_make_one_percentage():
    """An arm on a rail in other units of length: N and N m change by other factors, errors not."""
    cart = feasid.Body("cart", None, motion=[0, 0, 0, 1, 0, 0])
    robot = feasid.Robot([cart, feasid.Body("pole", "cart", motion=[0, 1, 0, 0, 0, 0])])
    missed, squares = np.array([0.04, 9.0]), np.array([1.0, 100.0])
    errors = relative_errors(robot, missed, squares)
    assert errors == pytest.approx([0.2, 0.3, np.sqrt((0.2**2 + 0.3**2) / 2)])
    shorter = np.array([1e4, 1e8])
    assert relative_errors(robot, missed * shorter, squares * shorter) == pytest.approx(errors)
    arm = feasid.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)])
    assert relative_errors(arm, missed, squares)[-1] == pytest.approx(np.sqrt(9.04 / 101))


def test_the_description_is_judged_with_joint_terms_that_can_exist(tmp_path):
    """A log whose friction would be negative: the description's error is that without any."""
    robot, log = arm_and_log(tmp_path, 2000, 0.0)
    robot = robot.with_values(np.nan_to_num(robot.values))
    for joint in robot.joints:
        log[f"tau_{joint}"] -= 9.0 * np.gradient(log[f"q_{joint}"], log["t"])
    base = base_parameters(robot.with_joint_terms(("viscous",)))
    reduced = feasid.reduce(log, base=base)
    ten = base.robot.values[base.robot.inertial_columns]
    delta = fit_joint_terms(base, ten, *reduced.triangle()[:2])
    viscous = [n == "fv" for _, n in base.robot.parameter_names]
    assert delta == pytest.approx(np.where(viscous, 0.0, np.nan_to_num(base.robot.values)))


def test_exchanged_torques_are_what_a_fit_names_first():
    df, _ = faults.clean("simulated")
    log = df.assign(tau_2=df["tau_3"], tau_3=df["tau_2"])
    display = feasid.fit(log, df.attrs["robot"]).display()
    assert "the torques of 2, 3 look exchanged" in display.troubles[1]


def test_the_unit_of_torques_is_named_after_a_model_that_explains_little():
    df, _ = faults.clean("simulated")
    noise = np.random.default_rng().normal(scale=0.01, size=len(df))
    log = df.assign(**{c: np.roll(noise, k) for k, c in enumerate(df) if c.startswith("tau_")})
    display = feasid.fit(log, df.attrs["robot"]).display()
    assert "[little-explained]" in display.troubles[1]


def test_a_contact_is_dated_although_other_rows_have_large_errors():
    t = np.arange(0.0, 20.0, 0.05)
    error = np.random.default_rng().normal(size=len(t))
    error[(t > 10) & (t < 11)] = 40.0
    error[[60, 360]] = 20.0
    begin, end = find_burst(t, error)
    assert 10 < begin < end < 11
