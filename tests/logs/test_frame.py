"""The log contract: what is accepted, what is derived, and what each fault is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feasid import Body, Robot
from feasid.core.errors import InputError, LogError, NotEnoughDataError
from feasid.logs.clock import read_time
from feasid.logs.frame import prepare

RATE = 200.0
FILTER_TOLERANCE = 2e-3
"""Relative error of derivatives well below the cut-off, away from the trimmed ends."""


def arm(names=("shoulder", "elbow")):
    links = [f"{name}_link" for name in names]
    chain = zip(links, [None, *links[:-1]], names, strict=True)
    return Robot([Body(link, parent, position=(0.3, 0, 0), joint=n) for link, parent, n in chain])


def log(samples=1000, names=("shoulder", "elbow"), rate=RATE):
    t = np.arange(samples) / rate
    data = {"t": t}
    for k, name in enumerate(names):
        data[f"q_{name}"] = np.sin((2 + k) * t)
        data[f"tau_{name}"] = np.cos((2 + k) * t)
    return pd.DataFrame(data)


def test_derives_velocity_and_acceleration_of_a_sine():
    run = prepare(log(2000), arm()).runs[0]
    middle = slice(100, -100)
    for k, w in enumerate((2.0, 3.0)):
        t = run.t[middle]
        np.testing.assert_allclose(run.dq[middle, k], w * np.cos(w * t), atol=FILTER_TOLERANCE * w)
        np.testing.assert_allclose(
            run.ddq[middle, k], -w * w * np.sin(w * t), atol=FILTER_TOLERANCE * w * w
        )


def test_arrays_are_contiguous_doubles_of_one_length():
    motion = prepare(log(), arm())
    run = motion.runs[0]
    for x in (run.q, run.dq, run.ddq, run.tau):
        assert x.shape == (motion.samples, 2)
        assert x.dtype == np.float64
        assert x.flags.c_contiguous


def test_notes_say_cutoff_and_derivation():
    motion = prepare(log(), arm())
    text = "\n".join(motion.notes)
    assert motion.cutoff is not None
    assert f"{motion.cutoff:g} Hz: " in text
    assert "accelerations: central differences of the positions" in text
    assert "trimmed" in text


def test_every_row_is_used_or_listed():
    df = log()
    motion = prepare(df, arm(), exclude=[(1.0, 1.5)])
    used = sum(len(run) for run in motion.runs)
    assert used + sum(block.count for block in motion.excluded) == len(df)
    rows = np.concatenate([run.rows for run in motion.runs])
    for block in motion.excluded:
        assert not np.isin(np.arange(block.first, block.last + 1), rows).any()


def test_measured_velocity_is_used():
    run = prepare(log().assign(dq_shoulder=7.0, dq_elbow=7.0), arm(), cutoff=8.0).runs[0]
    np.testing.assert_allclose(run.dq, 7.0, rtol=1e-9)
    np.testing.assert_allclose(run.ddq, 0.0, atol=1e-6)


def test_a_complete_log_is_used_as_it_is():
    df = log()
    rng = np.random.default_rng(1)
    for kind in ("dq", "ddq"):
        for name in ("shoulder", "elbow"):
            df[f"{kind}_{name}"] = rng.normal(size=len(df))
    motion = prepare(df, arm())
    assert motion.cutoff is None
    assert motion.samples == len(df)
    np.testing.assert_array_equal(motion.runs[0].ddq[:, 1], df["ddq_elbow"])
    assert "nothing was filtered" in motion.notes


def test_columns_by_number_and_by_pattern_agree_with_names():
    df = log()
    want = prepare(df, arm()).runs[0]
    numbered = df.rename(columns=lambda c: c.replace("shoulder", "1").replace("elbow", "2"))
    motion = prepare(numbered, arm())
    np.testing.assert_array_equal(motion.runs[0].tau, want.tau)
    assert any("1 = shoulder, 2 = elbow" in note for note in motion.notes)
    ros = df.rename(columns=lambda c: c.replace("q_", "position/").replace("tau_", "effort/"))
    mapped = prepare(ros, arm(), columns={"q": "position/{}", "tau": "effort/{}"})
    np.testing.assert_array_equal(mapped.runs[0].q, want.q)
    zero = {"q": "pos{}", "tau": "effort{}"}
    counted = df.rename(columns={f"{k}_{j}": f"{zero[k]}".format(n) for k in zero
                                 for n, j in enumerate(("shoulder", "elbow"))})  # fmt: skip
    np.testing.assert_array_equal(prepare(counted, arm(), columns=zero).runs[0].q, want.q)
    one = arm(("shoulder",))
    first = prepare(df[["t", "q_shoulder", "tau_shoulder"]], one).runs[0]
    only = prepare(counted[["t", "pos0", "effort0"]], one, columns=zero).runs[0]
    np.testing.assert_array_equal(only.tau, first.tau)
    current = df.rename(columns={"tau_elbow": "current"})
    single = prepare(current, arm(), columns={"tau_elbow": "current"})
    np.testing.assert_array_equal(single.runs[0].tau, want.tau)


def test_order_of_columns_and_extra_columns_do_not_matter():
    df = log()
    want = prepare(df, arm()).runs[0]
    other = df[["tau_elbow", "q_elbow", "q_shoulder", "tau_shoulder", "t"]].assign(note="text")
    np.testing.assert_array_equal(prepare(other, arm()).runs[0].q, want.q)


@pytest.mark.parametrize("dtype", ["float32", "Float64", "float64[pyarrow]"])
def test_other_float_dtypes_are_cast(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    df = log()
    cast = df.astype({c: dtype for c in df.columns if c != "t"})
    np.testing.assert_allclose(
        prepare(cast, arm()).runs[0].q, prepare(df, arm()).runs[0].q, atol=1e-6
    )


def test_units_are_those_of_a_kind_or_of_a_single_column():
    df = log()
    want = prepare(df, arm()).runs[0]
    odd = df.assign(q_elbow=np.rad2deg(df.q_elbow), tau_shoulder=-df.tau_shoulder)
    degrees = df.assign(q_shoulder=np.rad2deg(df.q_shoulder), q_elbow=odd.q_elbow, t=df.t * 1e3)
    single = {"q_elbow": "deg", "tau_shoulder": -1}
    for other, units in ((degrees, {"q": "deg", "t": "ms"}), (odd, single)):
        got = prepare(other, arm(), units=units).runs[0]
        np.testing.assert_allclose(got.q, want.q, atol=1e-12)
        np.testing.assert_allclose(got.ddq, want.ddq, atol=1e-9)
        np.testing.assert_allclose(got.tau, want.tau, atol=1e-12)
    with pytest.raises(LogError, match=r"unknown unit 'dge'.*did you mean 'deg'"):
        prepare(df, arm(), units={"q": "dge"})
    with pytest.raises(LogError, match=r"did you mean 'q_elbow'"):
        prepare(df, arm(), units={"q_elbwo": "deg"})


def test_time_may_be_the_index_or_the_rate():
    df = log()
    want = prepare(df, arm()).runs[0]
    np.testing.assert_array_equal(prepare(df.set_index("t"), arm()).runs[0].q, want.q)
    bare = df.drop(columns="t")
    np.testing.assert_allclose(prepare(bare, arm(), rate=RATE).runs[0].ddq, want.ddq, atol=1e-9)
    with pytest.raises(LogError, match=r"no time.*rate="):
        prepare(bare, arm())


def test_runs_are_never_filtered_together():
    a, b = log(), log()
    b[["q_shoulder", "q_elbow"]] += 5.0
    both = pd.concat([a.assign(run="a"), b.assign(run="b")], ignore_index=True)
    motion = prepare(both, arm(), cutoff=6.0)
    alone = prepare(b, arm(), cutoff=6.0).runs[0]
    assert [run.label for run in motion.runs] == ["a", "b"]
    np.testing.assert_array_equal(motion.runs[1].ddq, alone.ddq)


def test_nothing_is_differentiated_across_a_gap():
    df = log(1200)
    cut = pd.concat([df.iloc[:500], df.iloc[560:]])
    motion = prepare(cut, arm(), cutoff=6.0)
    assert len(motion.runs) == 2
    alone = prepare(df.iloc[560:], arm(), cutoff=6.0).runs[0]
    np.testing.assert_allclose(motion.runs[1].ddq, alone.ddq, atol=1e-9)
    assert any("1 gap" in note and "row 499" in note for note in motion.notes)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2), st.integers(300, 700), st.integers(1, 40))
def test_dropping_nan_rows_equals_cutting_them_out(column, first, count):
    df = log()
    holes = df.copy()
    name = ["q_elbow", "tau_shoulder", "q_shoulder"][column]
    holes.loc[first : first + count - 1, name] = np.nan
    got = prepare(holes, arm(), cutoff=6.0, nan="drop-segments")
    want = prepare(df.drop(index=range(first, first + count)), arm(), cutoff=6.0)
    assert got.samples == want.samples
    for a, b in zip(got.runs, want.runs, strict=True):
        np.testing.assert_array_equal(a.q, b.q)
        np.testing.assert_array_equal(a.t, b.t)
    assert sum(e.count for e in got.excluded if "finite" in e.reason) == count


def test_whole_turns_are_unwrapped_and_said():
    df = log(2000)
    turning = df.assign(q_elbow=0.8 * df.t + 2.0)
    want = prepare(turning, arm(), cutoff=8.0).runs[0]
    wrapped = turning.assign(q_elbow=(turning.q_elbow + np.pi) % (2 * np.pi) - np.pi)
    motion = prepare(wrapped, arm(), cutoff=8.0)
    np.testing.assert_allclose(motion.runs[0].dq, want.dq, atol=1e-9)
    assert any("'elbow'" in n and "unwrapped" in n for n in motion.notes)


def test_decimation_keeps_filtered_samples():
    full = prepare(log(), arm(), cutoff=6.0).runs[0]
    few = prepare(log(), arm(), cutoff=6.0, decimate=4).runs[0]
    np.testing.assert_array_equal(few.ddq, full.ddq[::4])
    assert few.rate == full.rate / 4


def test_prediction_needs_no_torque():
    df = log().drop(columns=["tau_elbow", "tau_shoulder"])
    assert np.isnan(prepare(df, arm(), torque=False).runs[0].tau).all()
    with pytest.raises(LogError, match=r"'tau_shoulder'; unused.*'position'(?!.*columns=)"):
        prepare(df, arm())


def test_motor_side_comes_to_joint_side():
    ratio = np.array([[30.0, 0.0], [10.0, -20.0]])
    df = log()
    q = df[["q_shoulder", "q_elbow"]].to_numpy() - [0.0, 0.5]
    tau = df[["tau_shoulder", "tau_elbow"]].to_numpy()
    motor = pd.DataFrame({"t": df.t})
    motor[["q_1", "q_2"]] = q @ ratio.T
    motor[["tau_1", "tau_2"]] = tau @ np.linalg.inv(ratio)
    got = prepare(motor, arm(), transmission=ratio, offsets={"elbow": 0.5}, cutoff=6.0).runs[0]
    want = prepare(df, arm(), cutoff=6.0).runs[0]
    np.testing.assert_allclose(got.q, want.q, atol=1e-12)
    np.testing.assert_allclose(got.tau, want.tau, atol=1e-12)


def test_excluded_flag_column():
    df = log()
    df["contact"] = (df.t > 2) & (df.t < 2.2)
    motion = prepare(df, arm(), exclude="contact", cutoff=8.0)
    t = np.concatenate([run.t for run in motion.runs])
    assert not ((t > 2) & (t < 2.2)).any()
    assert any("excluded by hand" in note for note in motion.notes)


def doubled_column(df):
    df.insert(1, "q_elbow2", df.q_elbow)
    return df.rename(columns={"q_elbow2": "q_elbow"})


def with_cell(column, row, value):
    def change(df):
        df[column] = df[column].astype(object) if isinstance(value, str) else df[column]
        df.loc[row, column] = value
        return df

    return change


FAULTS = {
    "misspelt": (lambda d: d.rename(columns={"q_elbow": "q_elbwo"}), ["q_elbow", "q_elbwo"]),
    "no torque": (lambda d: d.drop(columns="tau_elbow"), ["'elbow'", "tau_elbow"]),
    "no joint": (lambda d: d.drop(columns=["q_elbow", "tau_elbow"]), ["'elbow'", "lock="]),
    "no columns": (lambda d: d[["t"]], ["q_shoulder", "tau_shoulder", "columns="]),
    "nan": (with_cell("tau_elbow", 7, np.nan), ["tau_elbow", "'elbow'", "row 7", "1 cell"]),
    "inf": (with_cell("q_shoulder", 9, np.inf), ["q_shoulder", "row 9", "infinite"]),
    "unsorted": (
        lambda d: d.iloc[[0, 1, 2, 4, 3, *range(5, 900)]],
        ["row 4", "0.015", "sort=True"],
    ),
    "restart": (lambda d: pd.concat([d, d]), ["row 1000", "restarts", "run"]),
    "doubled time": (with_cell("t", 6, 5 / RATE), ["doubled", "row", "6", "0.025"]),
    "doubled column": (doubled_column, ["q_elbow", "columns 2 and 5"]),
    "text": (with_cell("q_elbow", 12, "#REF!"), ["q_elbow", "row 12", "#REF!", "'elbow'"]),
    "comma": (with_cell("q_elbow", 12, "1,5"), ["row 12", "1,5", "decimal"]),
    "objects": (lambda d: d.astype({"q_elbow": object}), ["q_elbow", "object", "to_numeric"]),
    "bool": (lambda d: d.assign(tau_elbow=True), ["tau_elbow", "bool"]),
    "empty": (lambda d: d.iloc[:0], ["no rows"]),
    "few": (lambda d: d.iloc[:20], ["too few samples", "20"]),
    "time nan": (with_cell("t", 5, np.nan), ["time", "row 5"]),
    "partial dq": (lambda d: d.assign(dq_elbow=0.0), ["'shoulder'", "dq_shoulder", "velocity"]),
    "lists as runs": (lambda d: d.assign(run=[[1]] * len(d)), ["'run' holds unhashable type"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_name_what_is_wrong(fault):
    change, names = FAULTS[fault]
    with pytest.raises(LogError) as caught:
        prepare(change(log()), arm())
    for name in names:
        assert name in str(caught.value)
    assert isinstance(caught.value, NotEnoughDataError) == (fault in ("few", "empty"))


def test_error_carries_joint_column_and_row():
    with pytest.raises(LogError) as caught:
        prepare(with_cell("tau_elbow", 7, np.nan)(log()), arm())
    expected = {"joint": "elbow", "column": "tau_elbow", "row": 7}
    assert caught.value.data.items() >= expected.items()


def test_shuffled_rows_can_be_sorted():
    df = log()
    shuffled = df.sample(frac=1.0, random_state=3)
    motion = prepare(shuffled.reset_index(drop=True), arm(), sort=True)
    np.testing.assert_allclose(motion.runs[0].q, prepare(df, arm()).runs[0].q, atol=1e-9)
    assert any("order of time" in note for note in motion.notes)
    rows = np.r_[np.arange(100), 101, 100, np.arange(102, len(df))]
    notes = prepare(df.iloc[rows], arm(), sort=True).notes
    assert [n.values for n in notes if n.code == "sorted"] == [{"rows": 2}]


def test_shuffled_seconds_stay_seconds():
    """Steps between rows that are out of order say nothing of the unit."""
    t = np.random.default_rng(0).permutation(np.arange(0.0, 20.0, 0.005))
    seconds, notes = read_time(pd.DataFrame({"t": t}), "t", None, None)
    np.testing.assert_array_equal(seconds, np.round(t - t[0], 9))  # whole nanoseconds
    assert not notes


def test_the_frame_is_not_changed():
    df = log()
    before = df.copy(deep=True)
    prepare(df, arm(), units={"q": "deg"}, offsets={"elbow": 1.0})
    pd.testing.assert_frame_equal(df, before)


@pytest.mark.parametrize("samples", [3, -2, 2.5])
def test_torques_that_run_ahead_are_delayed(samples):
    df = log()
    ahead = df.copy()
    for k, name in enumerate(("shoulder", "elbow")):
        ahead[f"tau_{name}"] = np.cos((2 + k) * (df.t + samples / RATE))
    got = prepare(ahead, arm(), delay=samples / RATE, cutoff=20.0)
    want = prepare(df, arm(), cutoff=20.0).runs[0]
    at = np.isin(want.rows, got.runs[0].rows)
    np.testing.assert_allclose(got.runs[0].tau, want.tau[at], atol=1e-3)
    assert any("delayed by" in note for note in got.notes)


def test_repeated_rows_are_dropped_and_said():
    df = log()
    twice = df.iloc[np.sort(np.r_[np.arange(len(df)), 10, 500])]
    motion = prepare(twice.reset_index(drop=True), arm())
    np.testing.assert_array_equal(motion.runs[0].q, prepare(df, arm()).runs[0].q)
    assert sum(e.count for e in motion.excluded if "repeats" in e.reason) == 2


def test_a_resting_joint_has_no_velocity_of_either_sign():
    df = log(2000)
    rng = np.random.default_rng(2)
    still = df.assign(q_elbow=0.3 + 1e-6 * rng.normal(size=len(df)))
    motion = prepare(still, arm(), cutoff=8.0)
    assert (motion.runs[0].dq[:, 1] == 0).all()
    assert (motion.runs[0].dq[:, 0] != 0).mean() > 0.99
    assert any("elbow (100%)" in note for note in motion.notes)
    as_is = prepare(still, arm(), cutoff=8.0, rest=0.0).runs[0]
    assert (as_is.dq[:, 1] != 0).any()


def test_corrupt_rows_are_left_out_when_asked_and_named():
    table = log(2000)
    table.loc[700, "tau_elbow"] = 1e282
    signals = table.columns[1:]
    table.loc[900:902, signals] = table.loc[899, signals].to_numpy()
    with pytest.raises(LogError, match=r"'tau_elbow'.*row 700.*corrupt='drop'"):
        prepare(table, arm())
    motion = prepare(table, arm(), corrupt="drop")
    found = {e.reason: (e.first, e.count) for e in motion.excluded}
    assert found["number beyond 1e+50"] == (700, 1)
    assert found["repeats the row before"] == (900, 3)
    assert any("number beyond 1e+50" in n for n in motion.notes)
    rows = np.concatenate([run.rows for run in motion.runs])
    assert not {700, 900, 901, 902} & {*rows.tolist()}


def test_dropping_corrupt_rows_of_a_clean_log_changes_nothing():
    for filtering in ("signals", "equations"):
        plain, dropped = (
            prepare(log(2000), arm(), filtering=filtering, corrupt=corrupt)
            for corrupt in ("error", "drop")
        )
        for a, b in zip(plain.runs, dropped.runs, strict=True):
            np.testing.assert_array_equal(a.tau, b.tau)
        assert plain.excluded == dropped.excluded


def test_corrupt_rows_do_not_hide_missing_cells():
    table = log(2000)
    table.loc[700, "tau_elbow"] = 1e282
    table.loc[1200, "tau_elbow"] = np.nan
    with pytest.raises(LogError, match="row 1200"):
        prepare(table, arm(), corrupt="drop")


def test_a_rate_below_twice_the_bandwidth_is_named():
    slow = log(400, rate=12.5)
    with pytest.raises(LogError, match=r"rate of 12.5 Hz is below twice .* 8 Hz.*cutoff=2.5"):
        prepare(slow, arm(), filtering="equations")
    assert prepare(slow, arm(), filtering="equations", cutoff=5.0).cutoff == 5.0


def test_a_derivative_cutoff_beside_filtered_signals_is_refused():
    with pytest.raises(InputError, match="derivative_cutoff has no effect"):
        prepare(log(), arm(), derivative_cutoff=40.0)
    assert prepare(log(), arm(), filtering="equations", derivative_cutoff=40.0).runs
