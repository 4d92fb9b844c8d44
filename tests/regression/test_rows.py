"""Equations of a log are formed and summed once per robot, whoever reads them."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from feasid.identification.regression import parallel
from feasid.identification.regression import rows as rows_module
from feasid.identification.regression.equations import EquationReducer, reduce_rows
from feasid.identification.regression.rows import RowFormer, Rows

ROUNDING = 1e-12
"""Relative: the same numbers, summed in other groups."""


@pytest.mark.parametrize("name", ["double_pendulum", "kinova_gen3"])
def test_a_fit_and_its_print_form_and_sum_the_rows_of_a_robot_once(name, monkeypatch):
    formed, summed = [], []
    form, add_up = RowFormer.form, parallel.reduce_motions

    def count_form(former, run):
        formed.append((former._key, id(run.q)))
        return form(former, run)

    def count_sum(motions, robot, columns, keep=False):
        summed.append(RowFormer(robot, columns, 0.0)._key)
        return add_up(motions, robot, columns, keep)

    monkeypatch.setattr(RowFormer, "form", count_form)
    monkeypatch.setattr(parallel, "reduce_motions", count_sum)
    log = feasid.datasets.load(name)
    str(feasid.fit(log, **log.attrs.get("options", {})))
    assert len(formed) == len({*formed}) > 0
    assert len(summed) == len({*summed}) > 0


def log_rows(joints=None):
    log = feasid.datasets.load("double_pendulum")
    base = feasid.base_parameters(log.attrs["robot"])
    columns = [int(c) for c in base.independent]
    recording = feasid.Recording(log)
    motion = recording.motion(base.robot, filtering="equations", **log.attrs.get("options", {}))
    measured = range(base.robot.dof) if joints is None else joints
    return motion, Rows(base.robot, columns, motion.cutoff, motion.runs, measured)


def test_rows_sum_to_the_reduced_log():
    motion, rows = log_rows()
    reducer = EquationReducer(rows.robot, rows.base_columns, rows.cutoff)
    for run in motion.runs:
        reducer.add(run)
    log = reducer.result(motion.notes)
    same = reduce_rows(rows, rows.torque, log)
    for ours, theirs in zip(same.triangles, log.triangles, strict=True):
        np.testing.assert_allclose(
            ours.T @ ours, theirs.T @ theirs, rtol=0, atol=ROUNDING * np.max(theirs.T @ theirs)
        )
    assert (same.rows, same.samples, same.period) == (log.rows, log.samples, log.period)


def test_rows_are_in_the_order_that_they_say():
    _, rows = log_rows()
    assert [*rows.joint] == sorted(rows.joint)
    part = rows.parts[0]
    for j in rows.joints:
        own = (rows.joint == j) & (rows.run == 0)
        np.testing.assert_array_equal(rows.t[own], part.t)
        np.testing.assert_array_equal(rows.torque[own], part.filtered[j][-1])
        first = rows.by_joint(rows.run == 0)[j]
        np.testing.assert_array_equal(rows.regressors[j][first], part.filtered[j][:-1].T)


def test_rows_of_other_torques_are_those_of_their_runs():
    """Scaled torques, whose rows are scaled; regressors are not formed again."""
    motion, rows = log_rows()
    doubled = rows.of_runs([replace(run, tau=2 * run.tau) for run in motion.runs])
    np.testing.assert_allclose(doubled.torque, 2 * rows.torque, rtol=ROUNDING)
    np.testing.assert_allclose(doubled.slope, 2 * rows.slope, rtol=ROUNDING, atol=1e-12)
    for j, columns in rows.regressors.items():
        np.testing.assert_array_equal(doubled.regressors[j], columns)
    assert not any(run.derived for run in (replace(r, tau=r.tau) for r in motion.runs))


def test_rows_of_the_measured_joints_only():
    _, rows = log_rows(joints=(1,))
    _, all_rows = log_rows()
    assert {*rows.joint} == {1}
    np.testing.assert_array_equal(rows.torque, all_rows.torque[all_rows.joint == 1])


@pytest.mark.parametrize("most", [150, 10**6])
def test_a_sample_has_rows_of_the_log_from_all_over_it(most, monkeypatch):
    monkeypatch.setattr(rows_module, "SEGMENT", 8)
    _, rows = log_rows()
    some, kept = rows.sample(most)
    assert 0.8 * most < len(some) / len(some.joints) <= most or kept.all()
    np.testing.assert_array_equal(some.t, rows.t[kept])
    np.testing.assert_array_equal(some.torque, rows.torque[kept])
    for j, columns in some.regressors.items():
        np.testing.assert_array_equal(columns, rows.regressors[j][rows.by_joint(kept)[j]])
    # Columns that are formed of the sample alone are those of the whole log.
    own, whole = ([p.filter_signal(p.run.q.T) for p in r.parts] for r in (some, rows))
    shown = np.hstack(whole)[:, rows.by_joint(kept)[0]]
    np.testing.assert_allclose(np.hstack(own), shown, rtol=0, atol=ROUNDING * np.abs(shown).max())
    assert some.t[0] == rows.t[0]
    places = np.flatnonzero(rows.by_joint(kept)[0])
    assert np.diff(places).max() < 2 * 8 * len(rows.by_joint(kept)[0]) / len(places)
