"""Fits are called good, doubtful or useless for a reason, and garbage leaves no model."""

from __future__ import annotations

import faults
import numpy as np
import pytest
from logs import arm_and_log
from thorough import some

import feasid
from feasid.assessment.quality import (
    STRUCTURED,
    ComparedErrors,
    baseline_parameters,
    judge_errors,
    judge_fit,
)
from feasid.assessment.residuals import Structure, unexplained_structure
from feasid.cli import main
from feasid.cli.fit import EXIT_USELESS
from feasid.core.notes import Note
from feasid.estimation.estimator import Estimator
from feasid.estimation.noise import estimate_noise
from feasid.feasibility.constraints.sets import feasible_set
from feasid.identifiability.base import base_parameters
from feasid.logs.frame import prepare
from feasid.regression.equations import EquationReducer
from feasid.regression.triangle import relative_errors


def verdict(model, least_squares, description, *more):
    """Of a robot whose second joint carries ten times the first's torque."""
    power = np.array([1.0, 100.0])
    errors = ComparedErrors(*(np.asarray(x, float) for x in (model, least_squares, description)),
                     power, True)  # fmt: skip
    return judge_errors(errors, ("a", "b"), *more)


TABLE = {
    "good": (([0.1, 0.05], [0.1, 0.05], [0.2, 0.1]), "good", []),
    "nothing known of the description": (([0.1, 0.05], [0.1, 0.05], [np.nan] * 2), "good", []),
    "one joint lost": (([1.1, 0.05], [0.9, 0.05], [1.2, 0.1]), "useless", ["nothing-explained"]),
    "feasibility at odds": (([0.3, 0.05], [0.1, 0.05], [0.5, 0.1]), "doubtful", ["constrained"]),
    "worse than described": (
        ([0.1, 0.05], [0.1, 0.05], [0.05, 0.1]), "doubtful", ["worse-than-description"],
    ),
    "hardly anything": (([0.8, 0.05], [0.7, 0.05], [0.9, 0.1]), "doubtful", ["little-explained"]),
    "impossible": (
        ([0.9, 0.9], [0.1, 0.1], [1.2, 1.2]), "useless",
        ["contradicted", "contradicted", "contradicted"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_the_verdict_on_errors(case):
    errors, level, codes = TABLE[case]
    found = verdict(*errors)
    assert found.level == level
    assert [r.code for r in found.reasons] == codes
    assert level.upper() in repr(found)


def test_a_finding_alone_never_makes_a_fit_useless():
    fine = ([0.1, 0.05], [0.1, 0.05], [0.2, 0.1])
    for level in ("warning", "error"):
        assert verdict(*fine, [Note("late", "lag", level=level)]).level == "good"
    found = verdict(*fine, [Note("wrong sign", "sign", level="error", confirmed=True)])
    assert found.level == "doubtful"
    assert [r.code for r in found.reasons] == ["sign"]


def test_nothing_is_good_with_a_joint_far_off_structure_left_or_errors_foretold():
    small, large = ([0.1, 0.05], [0.1, 0.05], [0.2, 0.1]), ([0.24, 0.05], [0.23, 0.05], [0.3, 0.1])
    assert [r.code for r in verdict(*large).reasons] == ["little-explained"]
    told = [Structure(0.8, "position"), Structure(0.1, "time")]
    found = verdict(*small, (), told)
    assert (found.level, [r.code for r in found.reasons]) == ("doubtful", ["structured"])
    assert "position" in str(found.reasons[0])
    found = verdict(*small, (), (), np.array([0.3, 0.06, 0.06]))
    assert (found.level, [r.code for r in found.reasons]) == ("doubtful", ["foretold"])
    assert (
        verdict(*small, (), [Structure(0.3, "position")] * 2, np.array([0.12, 0.06, 0.06])).level
        == "good"
    )


MISTAKES = {
    "": lambda q, dq, tau, t: 0 * q,
    "position": lambda q, dq, tau, t: np.sin(2 * q),
    "speed": lambda q, dq, tau, t: dq**2,
    "time": lambda q, dq, tau, t: t,
}
"""Torques that no model of a fit has, by what they follow."""

SIZE = 0.3
"""Of them over a joint's torque."""


@pytest.mark.parametrize("kind", some(MISTAKES, "", "position"))
def test_what_follows_the_motion_in_a_residual_is_named(kind, tmp_path):
    robot, log = arm_and_log(tmp_path, 4000, 0.1)
    joint = robot.joints[-1]
    q, dq, tau = (log[f"{k}_{joint}"].to_numpy() for k in ("q", "dq", "tau"))
    more = MISTAKES[kind](q, dq, tau, log["t"].to_numpy())
    size = SIZE * tau.std() / max(more.std(), 1e-300)
    log[f"tau_{joint}"] += size * (more - more.mean())
    found = feasid.fit(log, robot, diagnose=False, candidates=())
    models = found.estimator.cross_validate(found.reduced)
    left = unexplained_structure(models, found.recordings[0].motion(robot).runs)
    own = left[-1]
    if kind:
        assert own.share > STRUCTURED, left
        assert own.correlate == kind, left
    else:
        assert all(s.share < STRUCTURED for s in left), left


@pytest.mark.parametrize("name", some(["unitree_z1", "staubli_tx40", "simulated"], "unitree_z1"))
def test_fits_of_right_logs_are_good(name):
    df, robot, options = faults.recorded(name)
    found = feasid.fit(df, robot, **options).quality
    # The Z1's first joint lacks friction that would not hold it at rest, and its residual shows it.
    allowed = {"structured"} if name == "unitree_z1" else set()
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
@pytest.mark.parametrize("kind", some(GARBAGE, "flipped signs", "nothing moves"))
def test_garbage_leaves_no_model(kind, tmp_path, capsys):
    log, out = tmp_path / "log.csv", tmp_path / "out.urdf"
    faults.changed("unitree_z1", *GARBAGE[kind]).to_csv(log, index=False)
    urdf = feasid.datasets.HERE / "unitree_z1" / "z1.urdf"
    words = ["fit", str(log), "--robot", str(urdf), "--lock", "jointGripper=-0.44"]
    words += ["--out", str(out)]
    assert main(words) == EXIT_USELESS
    said = capsys.readouterr()
    assert ": useless;" in said.out
    assert "!! CROSS-VALIDATION ERROR" in said.out
    assert "this fit is useless" in said.err
    assert "nothing was written" in said.err
    assert not out.exists()
    if kind == "flipped signs":
        assert main([*words, "--force"]) == 0
        assert out.exists()


@pytest.mark.parametrize("kind", some(["random torques", "flipped signs"], "random torques"))
def test_garbage_is_told_without_a_diagnosis(kind):
    _, robot, options = faults.recorded("unitree_z1")
    log = faults.changed("unitree_z1", *GARBAGE[kind])
    assert feasid.fit(log, robot, diagnose=False, **options).quality.level == "useless"


def by_stretches(change):
    """The Z1's log with its torques changed, its equations kept by stretches, and their verdict."""
    _, robot, options = faults.recorded("unitree_z1")
    base = base_parameters(robot)
    log = faults.changed("unitree_z1", ["tau"], change)
    motion = prepare(log, robot, filtering="equations", **options)
    reducer = EquationReducer(robot, [int(c) for c in base.independent], motion.cutoff)
    for run in motion.runs:
        reducer.add(run)
    reduced = reducer.result()
    noise, beta = estimate_noise(reduced)
    estimator = Estimator(base, feasible_set(robot), noise=noise).for_comparison(noise)
    return judge_fit(estimator.cross_validate(reduced), beta), reduced.residuals(beta)


def test_stretches_are_predicted_from_the_others():
    found, fitted = by_stretches(lambda x: x)
    assert found.errors.unseen
    assert found.level == "good"
    # What was fitted to a stretch errs less on it than what was fitted to the others.
    assert (found.errors.least_squares > fitted / np.sqrt(found.errors.power)).all()
    noise, _ = by_stretches(GARBAGE["random torques"][1])
    assert noise.level == "useless"
    assert noise.errors.least_squares.min() > 1.0


def test_forces_and_torques_never_make_one_percentage():
    """An arm on a rail in other units of length: N and N m change by other factors, errors not."""
    bodies = [
        feasid.Body("cart", None, motion=[0, 0, 0, 1, 0, 0]),
        feasid.Body("pole", "cart", motion=[0, 1, 0, 0, 0, 0]),
    ]
    robot = feasid.Robot(bodies)
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
    beta = baseline_parameters(base, *reduced.triangle()[:2])
    viscous = [n == "fv" for _, n in base.robot.parameter_names]
    assert beta == pytest.approx(base.K @ np.where(viscous, 0.0, np.nan_to_num(base.robot.values)))
