"""Held commands, pieces of long logs and small records, against what they stand for."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from robots import ARM

import feasid
from feasid.core.errors import InputError
from feasid.logs.frame import prepare
from feasid.logs.motion import (
    ExcludedRows,
    Motion,
    MotionTally,
    Run,
    excluded_blocks,
    excluded_notes,
)
from feasid.logs.raw import Signals
from feasid.logs.recording import acceleration_noise, blur_signals, signal_resolution
from feasid.logs.servo import Servo, TorqueLimits, command_rates, delay_commands
from feasid.logs.stream import _pieces_with_surroundings, stream_log

PERIOD = 0.01
FINE = 2000
"""Steps per sampling period of the sums that stand for integrals."""

SUMS = 2e-3
"""What such a sum leaves, as a share of the largest value."""

COMMANDS = np.random.default_rng(0).normal(size=(12, 2))


def held(t):
    """The command in force at times t, the first before the log begins."""
    return COMMANDS[np.clip(np.floor(t / PERIOD + 1e-9).astype(int), 0, len(COMMANDS) - 1)]


def around(k):
    """Times of the sampling period around a row."""
    return (k - 0.5 + (np.arange(FINE) + 0.5) / FINE) * PERIOD


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.005, 0.0125, 0.03])
def test_commands_are_held_and_delayed(delay):
    found = delay_commands(COMMANDS, delay, PERIOD)
    """As slow signals see them: means of a period are short by a 24th of the second difference."""
    means = np.array([held(around(k) - delay).mean(axis=0) for k in range(12)])
    expected = means.copy()
    expected[1:-1] -= np.diff(means, 2, axis=0) / 24
    np.testing.assert_allclose(found, expected, atol=SUMS * np.abs(COMMANDS).max())


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.0125])
@pytest.mark.parametrize("time", [0.004, 0.02])
def test_rates_of_commands_behind_a_low_pass(delay, time):
    """The filter's own equation, in small steps, begun in equilibrium."""
    steps = 12 * FINE
    t = (np.arange(steps) + 0.5) * PERIOD / FINE
    x, course = COMMANDS[0].copy(), [COMMANDS[0].copy()]
    share = 1 - np.exp(-PERIOD / FINE / time)
    for command in held(t):
        x = x + share * (command - x)
        course.append(x)
    at = np.array(course)
    lag = round(delay / PERIOD * FINE)
    ends = [np.clip(round((k + 0.5) * FINE) - lag, 0, steps) for k in range(-1, 12)]
    expected = np.diff(at[ends], axis=0) / PERIOD
    found = command_rates(COMMANDS, (delay, time), PERIOD)
    np.testing.assert_allclose(found[3:], expected[3:], atol=SUMS * np.abs(expected).max())


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.0125])
def test_errors_beyond_torque_limits_are_cut_off(delay):
    """A joint that moves evenly: the mean of what is within the limits, row by row."""
    speed, damping, most = np.array([0.7, -0.4]), np.array([0.05, 0.02]), np.array([0.4, np.inf])
    t = np.arange(12) * PERIOD
    q = 0.1 + t[:, None] * speed
    dq = np.tile(speed, (12, 1))
    error = np.array([held(around(k) - delay).mean(axis=0) for k in range(12)]) - q
    limits = TorqueLimits(most, damping)
    found = limits.limit_errors(error, (q, dq), COMMANDS, delay, PERIOD)
    expected = []
    for k in range(12):
        times = around(k)
        whole = held(times - delay) - 0.1 - times[:, None] * speed - damping * speed
        expected.append(np.clip(whole, -most, most).mean(axis=0) + damping * speed)
    np.testing.assert_allclose(found[1:-1], np.array(expected)[1:-1], atol=0.01)
    np.testing.assert_allclose(found[:, 1], error[:, 1], atol=1e-12)
    twice = limits.scale(2.0, 3.0)
    assert twice.error.tolist() == [0.8, np.inf]
    assert twice.damping == pytest.approx([0.15, 0.06])


@pytest.fixture(scope="module")
def arm():
    robot = feasid.load_robot(ARM)
    return robot.with_values(np.nan_to_num(robot.values, nan=0.1))


def test_torques_of_a_servo(arm):
    """Proportional, with an integral, and as currents: each in the order of the robot."""
    rng = np.random.default_rng(1)
    t = np.arange(12) * PERIOD
    q, commands = rng.normal(size=(2, 12, 3))
    names = tuple(reversed(arm.joints))
    kp = (2.0, 3.0, 5.0)
    mine = np.array(kp[::-1])
    late = delay_commands(commands, 0.004, PERIOD)
    plain = Servo(names, kp, 0.004)
    np.testing.assert_allclose(plain.torques(arm, t, q, commands), mine * (late - q))
    assert plain.has_only_gain_and_damping
    assert plain.gains == dict(zip(names, kp, strict=True))
    speed = Servo(names, kp, 0.004, "velocity")
    np.testing.assert_allclose(speed.torques(arm, t, q, commands), mine * late)
    assert not speed.has_only_gain_and_damping
    current = Servo(names, kp, 0.004, "current")
    np.testing.assert_allclose(current.torques(arm, t, q, commands), mine * commands)
    more = Servo(names, kp, 0.004, terms={"integral": (1.0, 0.5, 0.2)})
    sums = np.cumsum(late - q, axis=0) * PERIOD * [0.2, 0.5, 1.0]
    np.testing.assert_allclose(more.torques(arm, t, q, commands), mine * (late - q + sums))
    assert not more.has_only_gain_and_damping
    weight = Servo(names, kp, 0.004, terms={"gravity": (0.0, 0.0, 0.1)})
    bare = feasid.inverse_dynamics(arm.without_joint_terms(), q, 0 * q, 0 * q)
    expected = mine * (late - q + bare * [0.1, 0.0, 0.0])
    np.testing.assert_allclose(weight.torques(arm, t, q, commands), expected)
    wide = Servo(names, kp, 0.004, limit=(1e9,) * 3, kd=(0.1,) * 3)
    np.testing.assert_allclose(wide.torques(arm, t, q, commands), mine * (late - q), atol=1e-6)
    assert not wide.has_only_gain_and_damping
    assert Servo(names).torques(arm, t, q, commands) is commands
    one = plain.torques(arm, t[:1], q[:1], commands[:1])
    np.testing.assert_allclose(one, mine * (commands[:1] - q[:1]))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"joints": ["shoulder"], "kp": [1.0]}, "servo needs a gain kp for each of"),
        ({"joints": [], "kp": []}, "and has none"),
        ({"kp": [1.0] * 3, "terms": {"x": [1.0] * 3}}, "terms ['x']"),
        ({"kq": [1.0] * 3}, "servo has no 'kq'"),
    ],
)
def test_servos_that_are_none(arm, option, words):
    with pytest.raises(InputError) as error:
        Servo.from_option(option, arm)
    assert words in str(error.value)


def test_servos_of_options(arm):
    found = Servo.from_option({"kp": {j: k for k, j in enumerate(arm.joints, 1)}}, arm)
    assert Servo.from_option(found, arm) is found
    assert (found.joints, found.kp, found.delay, found.law) == (
        arm.joints, (1.0, 2.0, 3.0), 0.0, "position",
    )  # fmt: skip
    found = Servo.from_option(
        {"kp": [1, 2, 3], "delay": 0.1, "rate_time": 0.2, "limit": [4] * 3, "kd": [5] * 3,
         "terms": {"rate": [1, 1, 1]}, "law": "velocity"}, arm,
    )  # fmt: skip
    assert (found.delay, found.rate_time) == (0.1, 0.2)
    assert (found.limit, found.kd) == ((4.0,) * 3, (5.0,) * 3)
    assert found.terms == {"rate": (1.0, 1.0, 1.0)}


# -- pieces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("around", [1, 3, 7])
@pytest.mark.parametrize("sizes", [[10, 10, 10], [10, 2, 2, 10, 1], [4], [], [10, 2]])
def test_pieces_hold_every_row_once_with_what_surrounds_it(sizes, around):
    edges = np.cumsum([0, *sizes]).tolist()
    frames = [pd.DataFrame({"x": np.arange(a, b)}) for a, b in pairwise(edges)]
    pieces = list(_pieces_with_surroundings(iter(frames), around))
    own = [p.frame["x"].iloc[p.first : p.last].tolist() for p in pieces]
    assert [x for part in own for x in part] == list(range(edges[-1]))
    for p, rows in zip(pieces, own, strict=True):
        whole = p.frame["x"].tolist()
        assert p.offset == whole[0]
        first, last = max(rows[0] - around, 0), min(rows[-1] + around, edges[-1] - 1)
        assert whole == list(range(first, last + 1))
        assert p.frame.index.tolist() == list(range(len(whole)))


def test_pieces_of_a_file_are_its_runs(tmp_path, arm):
    t = np.arange(60) / 100
    kinds = ("q", "dq", "ddq", "tau")
    log = pd.DataFrame({"t": t} | {f"{k}_{j}": np.sin(t) for k in kinds for j in arm.joints})
    log.loc[22:26, f"tau_{arm.joints[0]}"] = np.nan
    log.to_parquet(path := tmp_path / "log.parquet")
    options = {"cutoff": False, "nan": "drop-segments"}
    expected = prepare(log, arm, **options)
    pieces = [*stream_log(path, arm, options, rows=25)]
    runs = [run for piece in pieces for run in piece.runs]
    assert [len(run) for run in runs] == [22, 23, 10]
    assert [(run.anchor, run.own) for run in runs] == [(0, None), (27, None), (50, None)]
    for signal in ("t", "q", "tau"):
        joined = (
            np.concatenate([getattr(r, signal) for r in part]) for part in (runs, expected.runs)
        )
        np.testing.assert_allclose(*joined, atol=1e-12)
    assert [block.count for piece in pieces for block in piece.excluded] == [3, 2]


def test_rows_that_are_not_used():
    assert excluded_blocks(np.array([], dtype=int), "a") == []
    found = excluded_blocks(np.array([1, 2, 3, 7, 9, 10]), "a")
    assert found == [ExcludedRows("a", *rows) for rows in ((1, 3, 3), (7, 7, 1), (9, 10, 2))]
    more = [ExcludedRows("b", *rows) for rows in ((20, 24, 5), (30, 30, 1))]
    (note,) = excluded_notes([*found, *more], 50)
    assert note == "12 of 50 rows are not used: 6 (a), 6 (b)"
    assert note.values == {"rows": 12, "of": 50}
    assert excluded_notes([], 50) == []
    tally = MotionTally()
    for rows, used, cutoff in ((30, True, 5.0), (20, False, 7.0)):
        x = np.zeros((4, 1))
        runs = (Run("log", 100.0, x[:, 0], x[:, 0], x, x, x, x),) if used else ()
        tally.count(Motion(("a",), runs, cutoff, (note,), tuple(found), rows))
    assert (tally.rows, tally.cutoff) == (50, 5.0)
    assert tally.notes == (note, "12 of 50 rows are not used: 12 (a)")


def test_steps_of_signals_and_what_they_leave_of_accelerations():
    """The noise of rounding itself: `test_resolution`."""
    rate, cutoff, step = 1000.0, 10.0, 1e-3
    alone = {"dq": np.array([step])}
    both = {"q": np.array([1.0]), **alone}
    assert acceleration_noise(both, rate, cutoff) == acceleration_noise(alone, rate, cutoff)
    values = {"q": np.array([[0.0, 1.0], [0.3, 1.0], [0.1, np.nan]]), "tau": np.ones((3, 2))}
    found = {k: v.tolist() for k, v in signal_resolution(signals_of(values)).items()}
    assert found == {"q": [pytest.approx(0.1), 0.0]}


def signals_of(values):
    fields = dict.fromkeys(Signals.__dataclass_fields__)
    return Signals(**{**fields, "t": np.arange(3.0), "values": values})


def test_blurred_signals_stay_within_half_a_step():
    raw = signals_of({"q": np.zeros((3, 2)), "tau": np.ones((3, 2))})
    steps = {"q": np.array([0.2, 0.0])}
    moved = blur_signals(raw, steps, 0)
    np.testing.assert_array_equal(moved.values["q"], blur_signals(raw, steps, 0).values["q"])
    assert (np.abs(moved.values["q"][:, 0]) <= 0.1).all()
    assert np.abs(moved.values["q"][:, 0]).min() > 0
    assert (moved.values["q"][:, 1] == 0).all()
    assert moved.values["tau"] is raw.values["tau"]
    assert (blur_signals(raw, steps, 1).values["q"] != moved.values["q"]).any()
