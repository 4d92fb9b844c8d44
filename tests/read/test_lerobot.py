"""LeRobot datasets: what the numbers of joints are, by the steps of their encoders."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import feasid
from feasid.core.errors import LimitError, LogError
from feasid.logs.lerobot import COUNTS, encoder_scale
from feasid.logs.read.lerobot import MOST_INFO
from feasid.logs.recording import read_signals
from feasid.logs.servo import Servo, rows_at_stops
from feasid.logs.stream import stream_log

pytest.importorskip("pyarrow")

COUNT = 2 * np.pi / COUNTS

ARM = """<robot name="arm"><link name="base"/>{}</robot>"""
LINK = """<link name="l{k}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><axis xyz="0 1 0"/>
<limit lower="{low}" upper="{high}" effort="9" velocity="9"/></joint>"""
RANGES = (-1.0, 1.4), (-0.2, 1.7)


def arm():
    links = [
        LINK.format(k=k, parent="base" if k == 0 else f"l{k - 1}", low=low, high=high)
        for k, (low, high) in enumerate(RANGES)
    ]
    return feasid.load_robot(ARM.format("".join(links)))


def counts(size, seed=0, rows=900):
    """Counts of a joint within a calibrated range of this size, as it moves."""
    rng, t = np.random.default_rng(seed), np.arange(rows) / 30
    wave = np.sin(np.outer(t, rng.uniform(0.5, 3.0, 3))).sum(axis=1) / 3.2
    return np.round(0.5 * size * (1 + 0.9 * wave)).astype(int)


def as_written(counts, size, unit):
    """Numbers that LeRobot writes of counts above the lower end of a joint's range."""
    made = {
        "-100 .. 100": counts / size * 200 - 100, "0 .. 100": counts / size * 100,
        "degrees": (counts - size / 2) * 360 / (COUNTS - 1),
        "degrees before 2025": counts * 360 / COUNTS, "radians": counts * COUNT,
    }  # fmt: skip
    return made[unit].astype(np.float32).astype(np.float64)


@given(
    size=st.integers(300, COUNTS - 1).filter(lambda n: n % 500),
    seed=st.integers(0, 2**16),
    unit=st.sampled_from(["-100 .. 100", "0 .. 100", "degrees", "degrees before 2025"]),
)
def test_the_step_of_a_joint_says_its_unit(size, seed, unit):
    scale = encoder_scale(as_written(counts(size, seed), size, unit))
    assert scale is not None
    low, high = as_written(np.array([0, size]), size, unit)
    assert scale.factor * (high - low) == pytest.approx(size * COUNT, rel=3e-4)
    same = size == 2275 and unit == "-100 .. 100"  # one count is 360 / 4095 in both units
    if unit.endswith("100") and not same:
        assert scale.counts == size
    low, high = -size / 2 * COUNT, size / 2 * COUNT
    zero = {"0 .. 100": "lower", "degrees before 2025": ""}.get(unit, "middle")
    assert scale.zero == zero
    if zero:
        assert scale.ends(low, high) == pytest.approx((low, high), abs=2 * COUNT)


@pytest.mark.parametrize("values", [
    as_written(counts(2000), 2000, "radians"), np.round(np.linspace(-80, 80, 900), 1),
    np.random.default_rng(0).uniform(-100, 100, 900), np.repeat([0.0, 100.0], 450),
    np.full(900, np.nan), np.zeros(0),
])  # fmt: skip
def test_numbers_that_say_no_unit_have_none(values):
    assert encoder_scale(values) is None


def dataset(folder, units, states, sizes, file="data/chunk-000/episode_000000.parquet"):
    """A dataset's folder as its writer lays it out; commands lie three counts above the states."""
    columns = {
        name: np.stack(
            [as_written(c + more, s, u) for c, s, u in zip(states, sizes, units, strict=True)],
            axis=1,
        )
        for name, more in (("observation.state", 0), ("action", 3))
    }
    (folder / "meta").mkdir(parents=True)
    (folder / file).parent.mkdir(parents=True)
    features = {name: {"names": ["j0.pos", "j1.pos"]} for name in columns}
    (folder / "meta" / "info.json").write_text(json.dumps({"features": features}))
    table = {k: [*x.astype(np.float32)] for k, x in columns.items()}
    times = {"timestamp": np.arange(len(states[0])) / 30, "episode_index": 0}
    pd.DataFrame({**table, **times}).to_parquet(folder / file)
    return folder


def test_a_description_of_a_dataset_beyond_its_limit_is_refused(tmp_path):
    folder = dataset(tmp_path / "set", ("degrees",), [counts(900)], [900])
    with (folder / "meta" / "info.json").open("a") as file:
        file.write(" " * MOST_INFO)
    with pytest.raises(LimitError, match=str(MOST_INFO)):
        read_signals(feasid.Recording(folder), arm())


@pytest.mark.parametrize("file", ["data/chunk-000/episode_000000.parquet", "data/c-0/f-0.parquet"])
@pytest.mark.parametrize("unit", ["-100 .. 100", "degrees"])
def test_positions_and_commands_are_in_radians_by_the_descriptions_zeros(tmp_path, file, unit):
    """Folders of version 2.1, a file an episode, and of version 3, as pandas writes lists."""
    robot, sizes = arm(), [round((b - a) / COUNT) for a, b in RANGES]
    states = [counts(s, k) for k, s in enumerate(sizes)]
    folder = dataset(tmp_path / "set", (unit, "0 .. 100"), states, sizes, file)
    read = read_signals(feasid.Recording(folder), robot, servo=Servo(robot.joints))
    truth = np.stack([low + s * COUNT for (low, _), s in zip(RANGES, states, strict=True)], axis=1)
    np.testing.assert_allclose(read.values["q"], truth, atol=2 * COUNT)
    np.testing.assert_allclose(read.values["tau"] - read.values["q"], 3 * COUNT, atol=COUNT / 10)
    notes = {n.code: n for n in read.notes}
    assert f"j1 0 .. 100 of {sizes[1]} counts" in notes["lerobot"]
    assert notes["lerobot-zeros"].values["offsets"] == pytest.approx({"j0": 0.2, "j1": -0.2})


def test_rows_of_all_episodes_are_numbered_through(tmp_path):
    sizes = [1000, 1000]
    states = [counts(s, k) for k, s in enumerate(sizes)]
    folder = dataset(tmp_path / "set", ("degrees", "0 .. 100"), states, sizes)
    first = folder / "data/chunk-000/episode_000000.parquet"
    (folder / "data/chunk-000/episode_000001.parquet").write_bytes(first.read_bytes())
    assert [*feasid.read_log(folder).index] == [*range(2 * len(states[0]))]


def test_a_joint_whose_unit_is_not_shown_is_asked_for(tmp_path):
    robot, still = arm(), np.full(900, 500)
    folder = dataset(tmp_path / "set", ("degrees", "0 .. 100"), [counts(900), still], (900, 900))
    with pytest.raises(LogError, match="'q_j1' is in 'LeRobot', which is no known unit"):
        read_signals(feasid.Recording(folder), robot, servo={"kp": {"j0": 1.0, "j1": 1.0}})


def test_pieces_of_a_streamed_dataset_have_the_units_of_the_first(tmp_path):
    """The last piece is too short to show them."""
    robot, sizes = arm(), (1501, 1201)
    states = [counts(s, k) for k, s in enumerate(sizes)]
    dataset(tmp_path / "set", ("-100 .. 100", "0 .. 100"), states, sizes)
    path = tmp_path / "set" / "data" / "chunk-000" / "episode_000000.parquet"
    servo = Servo(robot.joints, (1.0, 1.0))
    options = {"filtering": "equations", "servo": servo, "cutoff": 5.0}
    whole = feasid.Recording(path).motion(robot, **options).runs[-1]
    pieces = [m.runs[-1] for m in stream_log(path, robot, options, rows=890)]
    assert len(pieces) == 2
    np.testing.assert_allclose(pieces[-1].q[-10:], whole.q[-10:], atol=1e-6)


def test_rows_at_rest_at_the_end_of_a_range_are_left_out():
    t, ends = np.arange(600) / 100, np.array([[-1.0, 1.0], [-np.inf, np.inf]])
    q = np.stack([np.clip(1.5 * np.sin(np.pi * t), -0.99, 0.99), np.full(600, 0.3)], axis=1)
    rows = rows_at_stops(t, q, ends)
    rests = np.abs(q[:, 0]) > 0.985
    assert rows[rests].all()
    assert rows.sum() < 1.2 * rests.sum()
    assert not rows_at_stops(t, 0.5 * q, ends).any()
    turning = np.stack([0.99 * np.sin(np.pi * t)] * 2, axis=1)
    assert not rows_at_stops(t, turning, ends).any()
