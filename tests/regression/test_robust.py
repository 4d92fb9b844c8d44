"""Robust weights: a spoilt stretch is found, named and does not move the estimate."""

import itertools
import re

import numpy as np
import pytest
from logs import arm_log

import feasid
from feasid.core.errors import InputError
from feasid.identification.regression import robust
from feasid.identification.regression.parallel import reduce_motions


@pytest.fixture(scope="module")
def case():
    robot, clean = arm_log(1, samples=4000, noise=0.02)
    hit = clean.copy()
    rows = (hit["t"] > 6.0) & (hit["t"] < 7.5)  # somebody leans on the arm
    hit.loc[rows, "tau_shoulder"] += 3 * hit["tau_shoulder"].std()
    return robot, clean, hit


@pytest.mark.parametrize("kind", ["huber", "tukey"])
def test_a_collision_is_named_and_costs_little(case, kind):
    robot, clean, hit = case
    test = clean.iloc[2000:]
    plain = feasid.fit(hit, robot).errors(test)["all"]
    fit = feasid.fit(hit, robot, robust=kind)
    floor = feasid.fit(clean, robot).errors(test)["all"]
    assert fit.errors(test)["all"] - floor < 0.5 * (plain - floor)
    note = next(n for n in fit.notes if f"{kind} weights" in n)
    # The collision lies in three blocks; the low-pass carries it into their neighbours.
    assert re.search("[345] of 120", note)
    assert all(f"shoulder {s}" in note for s in ("6-6.5", "6.5-7", "7-7.5"))
    assert "slide" not in note
    assert fit.relative_error["all"] > fit.errors(test)["all"]  # told on all of the log


def test_clean_logs_keep_their_estimate(case):
    robot, clean, _ = case
    ordinary, weighted = (feasid.fit(clean, robot, robust=r) for r in (None, "huber"))
    deviation = ordinary.base_table["std"].to_numpy()
    assert np.abs((weighted.beta - ordinary.beta) / deviation).max() < 1.0
    assert any("0 of" in n for n in weighted.notes if "huber" in n)


def test_blocks_are_the_log(case):
    robot, clean, _ = case
    columns = [int(c) for c in feasid.base_parameters(robot).independent]
    motion = feasid.Recording(clean).motion(robot, filtering="equations")
    blocks = robust.reduce_blocks(motion, robot, columns, 0.7)
    (run,) = motion.runs
    assert blocks[0].start <= run.t[0] < run.t[-1] <= blocks[-1].end
    gaps = [b.start - a.end for a, b in itertools.pairwise(blocks)]
    np.testing.assert_allclose(gaps, 0.0, atol=1e-9)
    total = robust.weighted_sum(blocks, np.ones((len(blocks), robot.dof)))
    whole = reduce_motions([motion], robot, columns, False)
    assert total.rows == whole.rows
    for a, b in zip(total.triangles, whole.triangles, strict=True):
        scale = np.linalg.norm(b, axis=0)
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-12 * scale.max() ** 2)


def test_weights_are_one_inside_and_fall_outside():
    u = np.array([0.0, 1.0, robust.HUBER, 2 * robust.HUBER])
    np.testing.assert_allclose(robust.WEIGHTS["huber"](u), [1, 1, 1, 0.5])
    residuals = np.array([0.0, robust.TUKEY, 99.0])
    np.testing.assert_allclose(robust.WEIGHTS["tukey"](residuals), [1, 0, 0])


def test_mistakes_are_named(case):
    robot, clean, _ = case
    with pytest.raises(InputError, match="hold no time"):
        feasid.fit(feasid.reduce(clean, robot), robust="huber")
    with pytest.raises(InputError, match="block must be a number above 0"):
        feasid.fit(clean, robot, robust="huber", block=0.0)
    with pytest.raises(InputError, match=r"shorter than the filter at 8 Hz.*give block="):
        feasid.fit(clean, robot, robust="huber", block=0.05)
    with pytest.raises(InputError, match="at least 8 blocks"):
        feasid.fit(clean.iloc[:300], robot, robust="huber", block=1.0)
