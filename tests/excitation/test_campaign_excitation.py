"""What designed motions are worth: the published arm, a real log, arms of the example wheel."""

import numpy as np
import pytest

import feasid
from feasid.datasets import wam

PUBLISHED_CONDITION, PUBLISHED_LOG_DET = 96.7, 71.3
"""Of one period of the Table 5 motion of Sousa and Cortesao (2014)."""

TIMES = 20 * 8000
"""Times per period at which limits are checked: twenty times those of the finest search grid."""


def wam_limits():
    _, *motion = wam.motion()
    kinds = ("position", "velocity", "acceleration")
    period = [x[:20_000] for x in motion]
    return {k: (x.min(axis=0), x.max(axis=0)) for k, x in zip(kinds, period, strict=True)}


def design(objective, seed=0, **options):
    return feasid.excite(
        wam.robot(), 20.0, objective=objective, seed=seed, time_limit=3600.0,
        **wam_limits(), **options,
    )  # fmt: skip


def limits_are_kept(motion):
    t = np.linspace(0, motion.period, TIMES)
    return all(
        (low <= x).all() and (x <= high).all()
        for x, (low, high) in zip(motion.at(t), wam_limits().values(), strict=True)
    )


def test_published_motion_is_what_we_think():
    base = feasid.base_parameters(wam.robot())
    _, *motion = wam.motion()
    w = feasid.regressor(wam.robot(), *(x[:20_000:10] for x in motion), columns=base.independent)
    flat = w.reshape(-1, base.size)
    assert np.isclose(np.linalg.cond(flat), PUBLISHED_CONDITION, atol=0.05)
    log_det = np.linalg.slogdet(flat.T @ flat / len(w))[1]
    assert np.isclose(log_det, PUBLISHED_LOG_DET, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["condition", "logdet"])
def test_published_motion_is_beaten_within_seconds(objective):
    motion = design(objective, starts=1, rounds=0)
    assert limits_are_kept(motion)
    if objective == "condition":
        assert motion.condition_number < PUBLISHED_CONDITION
    else:
        assert motion.certificate.log_det > PUBLISHED_LOG_DET


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_condition_number_of_the_published_arm(seed):
    motion = design("condition", seed, rounds=80, rest=False)  # like the published one
    assert motion.condition_number <= 55
    assert limits_are_kept(motion)


@pytest.mark.slow
def test_a_real_log_is_complemented():
    """Ten seconds more reduce the worst predicted deviation of the Z1 log at least fivefold."""
    frame = feasid.datasets.load("unitree_z1")
    robot = frame.attrs["robot"]
    log = feasid.reduce(frame, robot)
    r = log.triangle()[0] * np.sqrt(log.samples / log.rows)
    before = np.sqrt(np.diag(np.linalg.inv(r.T @ r)))
    rate = len(frame) / float(np.ptp(frame["t"]))
    motion = feasid.excite(
        robot, 10.0, given=log, acceleration=15.0, rate=rate, rounds=0, time_limit=3600.0
    )
    assert motion.certificate.deviations.max() <= before.max() / 5
