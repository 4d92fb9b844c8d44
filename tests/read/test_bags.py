"""ROS 2 bags and MCAP files: joints by name, whatever their order, and nothing executed."""

import contextlib
import struct

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import read_arm

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, LimitError, LogError, MissingExtraError
from feasid.logs.read import bags
from feasid.logs.read.bags import read_bag
from feasid.logs.read.messages import STEP, unpack

pytest.importorskip("rosbags")

from recorded import JOINT_STATE, MAGIC, START, STORE, batches, chunk, message, write
from rosbags.rosbag2 import StoragePlugin, Writer


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return read_arm(tmp_path_factory.mktemp("bags"))


@pytest.fixture(scope="module")
def log(robot):
    terms = robot.with_joint_terms()
    log = simulate(terms, arm_parameters(terms), 1, samples=1500, noise=0.02)
    return log[[c for c in log if not c.startswith("ddq_")]]


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("plugin", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_shuffled_joints_fit_like_the_csv(robot, log, tmp_path, plugin):
    path = write(tmp_path / "bag", batches(log, robot.joints, np.random.default_rng(0)), plugin)
    log.to_csv(tmp_path / "log.csv", index=False)
    from_bag = feasid.fit(path, robot, cutoff=8.0)
    from_csv = feasid.fit(tmp_path / "log.csv", robot, cutoff=8.0)
    scale = np.abs(from_csv.base.K) @ np.abs(from_csv.delta)
    scale[scale == 0] = 1.0  # friction that is not there
    # Nanosecond stamps round the time of each sample; nothing else differs.
    np.testing.assert_allclose(from_bag.beta / scale, from_csv.beta / scale, atol=1e-6)
    frame = read_bag(path)
    assert any("header stamps" in n for n in frame.attrs["notes"])
    single = next(path.glob("*.mcap" if plugin is StoragePlugin.MCAP else "*.db3"))
    assert read_bag(single).equals(frame)


def test_partial_messages_are_matched_by_time(robot, log, tmp_path):
    log = log.iloc[:400]
    first, rest = robot.joints[:1], robot.joints[1:]
    late = log.assign(t=log["t"] + 0.001)
    merged = sorted([*batches(log, first), *batches(late, rest)], key=lambda b: b[0])
    frame = read_bag(write(tmp_path / "bag", merged))
    for column in log:
        np.testing.assert_allclose(frame[column], log[column], atol=1e-9)


def test_joints_that_pause_leave_holes_and_a_note(robot, log, tmp_path):
    log = log.iloc[:400]
    first, rest = robot.joints[:1], robot.joints[1:]
    merged = [*batches(log, first), *batches(log.iloc[:300], rest)]
    frame = read_bag(write(tmp_path / "bag", sorted(merged, key=lambda b: b[0])))
    assert frame[f"q_{rest[0]}"].isna().sum() == 100
    assert any("no message near 100 of 400" in n for n in frame.attrs["notes"])


@pytest.mark.parametrize("shift", [0, 3_000_000])
def test_a_clock_that_goes_back_is_refused(shift, robot, log, tmp_path):
    """Two passes in one bag, on the same stamps or between them: sorted, they would be mixed."""
    one = [*batches(log.iloc[:300], robot.joints)]
    two = [(when + shift, *rest) for when, *rest in batches(log.iloc[:200], robot.joints)]
    path = write(tmp_path / "bag", [*one, *two])
    with pytest.raises(LogError, match=r"message 301 about joint .*, row 300, is") as caught:
        feasid.read_log(path)
    assert caught.value.data["joint"] in robot.joints
    assert caught.value.data["row"] == 300


def test_a_bag_with_a_part_missing_is_refused(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:50], robot.joints))
    (part,) = path.glob("*.mcap")
    part.rename(part.with_name("a part of it.mcap"))
    with pytest.raises(LogError, match=r"metadata\.yaml lists .*bag\.mcap, not in this folder"):
        read_bag(path)
    assert len(read_bag(path / "a part of it.mcap")) == 50


def test_a_database_that_lost_its_last_byte_is_refused(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:200], robot.joints), StoragePlugin.SQLITE3)
    (part,) = path.glob("*.db3")
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(LogError, match="damaged: it has"):
        read_bag(part)


def test_empty_effort_is_said(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:100], robot.joints, effort=False))
    frame = read_bag(path)
    assert not [c for c in frame if c.startswith("tau_")]
    assert any(n.startswith("effort absent for shoulder") for n in frame.attrs["notes"])
    with pytest.raises(LogError, match="shoulder"):
        feasid.fit(path, robot)


def test_messages_without_stamps_use_the_time_of_reception(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:50], robot.joints), stamped=False)
    frame = read_bag(path)
    assert any("received" in n for n in frame.attrs["notes"])
    np.testing.assert_allclose(frame["t"], log["t"].iloc[:50], atol=1e-9)


def test_topics_are_named(robot, log, tmp_path):
    sides, rows = ("/left/joint_states", "/right/joint_states"), log.iloc[:3]
    path = two_topics(tmp_path / "bag", robot, rows, *sides, batches(rows, robot.joints))
    with pytest.raises(InputError, match=r"choose one, such as topic='/left.*right"):
        read_bag(path)
    assert len(read_bag(path, topic="/left/joint_states")) == 3
    with pytest.raises(InputError, match="did you mean '/left/joint_states'"):
        read_bag(path, topic="/lef/joint_states")
    with pytest.raises(InputError, match=r"several hold all of the robot's joints.*topic="):
        read_bag(path, joints=robot.joints)
    other = tmp_path / "other"
    with Writer(other, version=9) as writer:
        kind = "std_msgs/msg/String"
        connection = writer.add_connection("/chatter", kind, typestore=STORE)
        writer.write(connection, 1, STORE.serialize_cdr(STORE.types[kind]("hi"), kind))
    with pytest.raises(InputError, match=r"no topic of type .*/chatter \(std_msgs/msg/String\)"):
        read_bag(other)


def two_topics(path, robot, log, arm_topic, other_topic, other):
    """A bag in which the arm's joint states and others come on topics of their own."""
    with Writer(path, version=9) as writer:
        sent = []
        for topic, rows in ((arm_topic, batches(log, robot.joints)), (other_topic, other)):
            connection = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
            sent += [(when, connection, content) for when, *content in rows]
        for when, connection, content in sorted(sent, key=lambda s: s[0]):
            raw = STORE.serialize_cdr(message(when, *content), JOINT_STATE)
            writer.write(connection, when, raw)
    return path


def test_the_topic_that_holds_the_robots_joints_is_read(robot, log, tmp_path):
    gripper = [(START + round(t * 1e9), ["left", "right"], [0.1, 0.2]) for t in log["t"]]
    path = two_topics(tmp_path / "bag", robot, log, "/arm", "/gripper", gripper)
    fit = feasid.fit(path, robot, diagnose=False)
    assert any("2 topics: /arm is read" in str(n) for n in fit.notes)
    assert len(fit.predict(path)) > 0
    named = feasid.fit(path, robot, topic="/arm", diagnose=False)
    np.testing.assert_array_equal(named.beta, fit.beta)
    with pytest.raises(LogError, match="shoulder"):
        feasid.fit(path, robot, topic="/gripper")
    with pytest.raises(InputError, match="did you mean '/gripper'"):
        feasid.fit(path, robot, topic="/griper")
    wanted = [(START + round(t * 1e9), list(robot.joints), [0, 0, 0]) for t in log["t"]]
    path = two_topics(tmp_path / "both", robot, log, "/states", "/commands", wanted)
    measured = feasid.fit(path, robot, diagnose=False)  # the one with efforts
    np.testing.assert_array_equal(measured.beta, fit.beta)
    strange = [(START, ["x", "y"], [0, 0])]
    other = two_topics(tmp_path / "none", robot, log.head(0), "/states", "/more", strange * 3)
    with pytest.raises(LogError, match="shoulder"):
        feasid.fit(other, robot)


@pytest.mark.slow
def test_a_topic_at_the_prompt_is_chosen_in_its_spelling(robot, log, here, capsys):
    read_arm(here)
    short = log.iloc[:1500]
    two_topics(here / "bag", robot, short, "/left", "/right", batches(short, robot.joints))
    order = ["--robot", "arm.urdf", "--diagnose", "no"]
    assert main(["fit", "bag", *order]) == 2
    said = capsys.readouterr().err
    assert "choose one, such as --topic /left" in said
    assert "topic=" not in said
    assert main(["fit", "bag", *order, "--topic", "/left"]) == 0
    assert main(["diagnose", "bag", *order[:2], "--topic", "/left"]) in (0, 1)


def test_damaged_files_are_errors(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:200], robot.joints))
    single = next(path.glob("*.mcap"))
    content = single.read_bytes()
    single.write_bytes(content[: len(content) // 2])
    with pytest.raises(LogError, match="byte"):
        read_bag(single)
    single.write_bytes(b"nothing")
    with pytest.raises(LogError, match="no MCAP file"):
        read_bag(single)
    with pytest.raises(LogError, match="names 2 joints but has 1 values of position"):
        read_bag(write(tmp_path / "odd", [(START, ["a", "b"], [1.0], [], [])]))


def test_mutated_files_end_in_a_table_or_an_error(robot, log, tmp_path):
    path = write(tmp_path / "bag", batches(log.iloc[:20], robot.joints))
    single = next(path.glob("*.mcap"))
    content = bytearray(single.read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(150):
        mutated = bytearray(content)
        for at in rng.integers(0, len(content), rng.integers(1, 6)):
            mutated[at] = rng.integers(0, 256)
        single.write_bytes(bytes(mutated))
        with contextlib.suppress(feasid.FeasidError):
            read_bag(single)


def test_bombs_are_refused_before_unpacking(tmp_path):
    bomb = file_of_chunk(tmp_path / "bomb.mcap", 2**40, "zstd", b"")
    with pytest.raises(LimitError, match="unpacks to 1099511627776"):
        read_bag(bomb)


def test_without_the_extra_the_command_is_named(robot, log, tmp_path, monkeypatch):
    path = write(tmp_path / "bag", batches(log.iloc[:3], robot.joints))
    bags._standard_types.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "rosbags.typesys", None)
    with pytest.raises(MissingExtraError, match=r"feasid\[ros\]"):
        read_bag(path)


def file_of_chunk(path, declared, compression, data):
    path.write_bytes(MAGIC + chunk(data, declared, compression.encode()) + MAGIC)
    return path


def test_unknown_compression_is_said(tmp_path):
    with pytest.raises(LogError, match="unknown compression 'brot'"):
        read_bag(file_of_chunk(tmp_path / "odd.mcap", 10, "brot", b"abc"))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_chunk_that_says_less_than_it_unpacks_to_is_refused(tmp_path, compression, frames):
    if compression == "lz4":
        pack = pytest.importorskip("lz4.frame").compress
    else:
        pack = pytest.importorskip("backports.zstd").compress
    schema = struct.pack("<BQ", 3, 5_000_000 - 9) + bytes(5_000_000 - 9)
    data = pack(schema) * frames
    with pytest.raises(LimitError, match="at most 1000 are allowed"):
        read_bag(file_of_chunk(tmp_path / "lie.mcap", 1000, compression, data))
    with pytest.raises(InputError, match="no topic"):
        read_bag(file_of_chunk(tmp_path / "true.mcap", frames * 5_000_000, compression, data))


@pytest.mark.parametrize("size", [999, 1000, 1001, STEP - 1, STEP + 1, 3 * STEP])
def test_unpacking_stops_beyond_the_limit(size):
    """In steps, and over several frames."""
    pack = pytest.importorskip("lz4.frame").compress
    frame = pack(bytes(size))
    for count in (1, 2):
        for most in (count * size, count * size - 1, size // 2):
            content = unpack(frame * count, "lz4", most)
            assert most < len(content) <= most + STEP or content == bytes(count * size)
