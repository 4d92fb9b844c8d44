"""The default fit on one hidden-truth world of each kind, with seeds drawn at run time."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

import feasid
from benchmarks.worlds import (
    CLEAN,
    EXAMPLES,
    RANDOM_TREE,
    coverage,
    draw_seed,
    efficiency,
    judge,
    make_world,
    predictor,
)

MAX_CLEAN_RATIO = 2.0
"""Largest error over the truth's on a clean log; 0.88 to 1.54 on 33 worlds of all robots."""
MIN_COVERAGE = 0.8
"""Mean share of base parameters inside their 95 % intervals on clean logs; 0.94 on 33 worlds."""
MAX_EFFICIENCY = 6.0
"""Median error over the Cramer-Rao bound; 1.2 to 3.0 on seven worlds."""
MAX_FALSE_ALARMS = 1
"""Clean logs, of one for each robot, whose fit may be called useless; none of 18 was."""
MAX_RATIOS = {
    "zeros": 2.5, "late": 4.0, "jitter": 2.5, "stribeck": 2.5, "elastic": 2.0, "backlash": 2.0,
    "quantised": 6.0, "50hz": 7.0, "5s": 8.0, "masses_doubled": 2.0, "masses_mixed": 2.0,
    "no_inertials": 2.5, "payload": 2.0, "gain": 60.0, "tilt": 40.0, "cable": 5.0, "drift": 2.2,
    "load_friction": 2.5, "ripple": 2.5,
}  # fmt: skip
"""Largest error over the truth's of the default fit of a ur5, by fault: about twice the largest of
three seeds."""
INCOMPLETE = ("elastic", "backlash")
"""Faults whose truth is judged as rigid joints, so that a fit may be better than it."""


def scored(robot, fault=CLEAN):
    """A world of a new seed, its default fit and the fit's score; the world is printed."""
    world = make_world(robot, fault, draw_seed())
    fit = feasid.fit(world.log, world.robot)
    score = judge(world, predictor(fit.robot))
    print(f"{world}: ratio {score.ratio:.3f}, coverage {coverage(world, fit):.2f}")
    return world, fit, score


@pytest.mark.slow
def test_clean_worlds():
    shares, alarms, errors = [], [], []
    for robot in (*EXAMPLES, RANDOM_TREE):
        world, fit, score = scored(robot)
        assert score.passes(MAX_CLEAN_RATIO), f"{world}: {score}"
        shares.append(coverage(world, fit))
        errors.append(efficiency(world, world.truth.parameters_off(fit.robot)))
        alarms += [f"{world}: {fit.quality.reasons}"] if fit.quality.level == "useless" else []
    assert np.mean(shares) >= MIN_COVERAGE, shares
    assert np.median(errors) <= MAX_EFFICIENCY, errors
    assert len(alarms) <= MAX_FALSE_ALARMS, alarms


@pytest.mark.slow
@pytest.mark.parametrize("fault", MAX_RATIOS)
def test_faulty_worlds(fault):
    world, _, score = scored("ur5", fault)
    assert score.ratio <= MAX_RATIOS[fault], f"{world}: {score}"
    assert score.credible or fault in INCOMPLETE, f"{world}: {score}"


HONEST = 2.0
"""Times the truth's error from which a verdict must not be good, as in the league's protocol."""


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["ur5", "panda", "z1", "xarm7"])
@pytest.mark.parametrize(
    "fault", ["drift", "load_friction", "ripple", "cable", "stribeck", "quantised"]
)
def test_no_fit_is_good_that_is_several_times_as_wrong_as_the_truth(robot, fault):
    world, fit, score = scored(robot, fault)
    assert score.ratio <= HONEST or fit.quality.level != "good", f"{world}: {fit.quality}"


NAMES = {
    "load_friction": "weight", "quantised": "coarse", "stribeck": "stribeck", "ripple": "ripple",
    "drift": "calibrated",
}  # fmt: skip
"""Codes of findings by fault."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", NAMES)
def test_what_a_log_shows_of_friction_encoders_and_gears_is_named(fault):
    world = make_world("ur5", fault, draw_seed())
    found = feasid.diagnose(world.log, world.robot)
    assert NAMES[fault] in {f.code for f in found}, f"{world}: {found}"
