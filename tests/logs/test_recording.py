"""A log is one thing: opened once, prepared once per set of options, whatever it is."""

import numpy as np
import pytest
from logs import arm_and_log

import feasid
from feasid.core.errors import InputError, LogError
from feasid.logs import recording as recordings
from feasid.logs.recording import hashable_key

SAME = 1e-9  # the same numbers on another way, where sums come in another order


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    robot, log = arm_and_log(folder, 4000, 0.02)
    log.to_parquet(folder / "log.parquet")
    return folder, robot, log


def test_a_fit_reads_its_file_once_and_prepares_it_once(case, monkeypatch):
    folder, robot, _ = case
    read, prepared = [], []
    real_read, real_prepare = recordings.read_log, recordings.motion_from_signals
    monkeypatch.setattr(
        recordings, "read_log", lambda p, **how: read.append(p) or real_read(p, **how)
    )
    monkeypatch.setattr(
        recordings, "motion_from_signals", lambda *a: prepared.append(a) or real_prepare(*a)
    )
    fit = feasid.fit(str(folder / "log.csv"), robot)
    fit.plot()
    fit.summary()
    assert len(read) == 1
    options = [hashable_key(a[3]) for a in prepared]
    assert len(options) == len(set(options))


def test_frames_of_a_mapping_are_matched_by_label(case):
    _, robot, log = case
    frames = {"t": log["t"]}
    for k in ("q", "tau"):
        frames[k] = log.filter(regex=f"^{k}_").rename(columns=lambda name: name.split("_", 1)[1])
    other = frames | {"tau": frames["tau"].iloc[:, ::-1]}
    few = {"diagnose": False, "candidates": (), "calibration": None, "prior": None}
    fits = [feasid.fit(given, robot, **few) for given in (frames, other)]
    np.testing.assert_array_equal(fits[0].beta, fits[1].beta)
    with pytest.raises(LogError, match="tau_"):
        feasid.fit(frames | {"tau": frames["tau"].add_prefix("x")}, robot, **few)


def test_a_tuple_of_arrays_is_one_log(case):
    _, robot, log = case
    q, dq, tau = (log.filter(regex=f"^{k}_").to_numpy() for k in ("q", "dq", "tau"))
    t = log["t"].to_numpy()
    same = feasid.fit(log, robot, diagnose=False)
    fit = feasid.fit((t, q, dq, tau), robot, diagnose=False)
    np.testing.assert_allclose(fit.beta, same.beta, rtol=0, atol=SAME * np.abs(same.beta).max())
    halves = [tuple(a[part] for a in (t, q, tau)) for part in (slice(2000), slice(2000, None))]
    two = feasid.fit(halves, robot, diagnose=False)
    np.testing.assert_allclose(
        two.beta, feasid.fit((t, q, tau), robot, diagnose=False).beta, rtol=0.1, atol=0.1
    )
    assert two.reduced.samples > 0.9 * fit.reduced.samples
    assert len(fit.predict((t, q))) > 0
    assert fit.errors((t, q, dq, tau))["all"] < 0.1
    with pytest.raises(LogError, match=r"one of \(t, q\).*not 6 arrays"):
        feasid.fit((t,) * 6, robot)
    with pytest.raises(LogError, match=r"shape \(N, dof\); got t \(4000,\), q \(3999, 3\)"):
        feasid.fit((t, q[1:], tau), robot)


def test_lazy_tables_are_collected_first(case):
    _, robot, log = case
    table = pytest.importorskip("polars").from_pandas(log)
    with pytest.raises(InputError, match="not LazyFrame"):
        feasid.fit(table.lazy(), robot)


def test_what_was_reduced_is_fitted(case):
    _, robot, log = case
    fit = feasid.fit(log, robot, diagnose=False)
    again = feasid.fit(feasid.reduce(log, robot), diagnose=False)
    np.testing.assert_allclose(again.beta, fit.beta, rtol=0, atol=SAME * np.abs(fit.beta).max())
    rigid = feasid.fit(feasid.reduce(log, robot, friction=(), drive_inertia=False))
    assert not rigid.robot.drives


def test_what_is_no_log_is_said(case):
    _, robot, _ = case
    for wrong in (3, None, object()):
        with pytest.raises(InputError, match="a log is a DataFrame"):
            feasid.fit(wrong, robot)


def test_keys_tell_options_apart():
    assert hashable_key({"a": 1, "b": [1, 2]}) == hashable_key({"b": (1, 2), "a": 1})
    assert hashable_key(1) != hashable_key(1.5) != hashable_key("1") != hashable_key(True)
    assert hashable_key(np.arange(3)) != hashable_key(np.arange(3.0))
