"""Bags whose files are no files, unpack without end, run queries of their own or lie."""

import os
import sqlite3
import struct
import subprocess
import sys

import numpy as np
import pytest
from logs import log_frame

import feasid
from feasid.core.errors import InputError

pytest.importorskip("rosbags")

from recorded import JOINT_STATE, MAGIC, STORE, batches, chunk, message, record, write
from rosbags.rosbag2 import StoragePlugin

zstd = pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")

JOINTS = ("a", "b")
SECONDS = 5.0
MEMORY = 2**30

READ = """
import resource, sys, time
import feasid
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
begun = time.process_time()
try:
    print(len(feasid.read_log(sys.argv[1])))
except feasid.FeasidError as error:
    print(type(error).__name__, error)
with open("/proc/self/status") as file:  # ru_maxrss would count the parent's memory, too
    peak = next(line.split()[1] for line in file if line.startswith("VmHWM"))
print(time.process_time() - begun, int(peak) * 1024)
"""


@pytest.fixture
def log():
    time = np.arange(50) * 0.01
    signals = {w: np.sin(time + k)[:, None] * [1, 1] for k, w in enumerate(("q", "dq", "tau"))}
    return log_frame(time, JOINTS, **signals)


@pytest.fixture(params=[StoragePlugin.MCAP, StoragePlugin.SQLITE3], ids=["mcap", "db3"])
def bag(request, tmp_path, log):
    return write(tmp_path / "bag", batches(log, JOINTS), request.param)


@pytest.fixture
def mcap(tmp_path, log):
    return write(tmp_path / "bag", batches(log, JOINTS), StoragePlugin.MCAP)


@pytest.fixture
def database(tmp_path, log):
    return write(tmp_path / "bag", batches(log, JOINTS), StoragePlugin.SQLITE3)


def storage(folder):
    return next(p for p in folder.iterdir() if p.suffix in (".mcap", ".db3"))


def said(path):
    """What reading says, in a process; it takes less than five seconds and a gigabyte."""
    command = [sys.executable, "-c", READ, str(path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    *answer, costs = done.stdout.splitlines()
    seconds, memory = map(float, costs.split())
    assert seconds < SECONDS
    assert memory < MEMORY
    return "\n".join(answer)


HEAD = MAGIC + record(1, struct.pack("<I", 4) + b"ros2" + struct.pack("<I", 0))
TAIL = record(15, bytes(4)) + record(2, bytes(20)) + MAGIC


def test_a_bag_is_read_as_it_is(bag, log):
    for path in (bag, storage(bag)):
        frame = feasid.read_log(path)
        for column in log:
            np.testing.assert_allclose(frame[column], log[column], atol=1e-8)


@pytest.mark.skipif(os.name != "posix", reason="pipes")
@pytest.mark.parametrize("name", ["storage", "metadata.yaml"])
def test_a_pipe_in_a_bag_is_refused(bag, name):
    file = storage(bag) if name == "storage" else bag / name
    file.unlink()
    os.mkfifo(file)
    answer = said(bag)
    assert answer.startswith("InputError") or (name != "storage" and "Error" in answer)


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_out_of_a_bag_is_not_followed(bag, tmp_path):
    file = storage(bag)
    file.rename(tmp_path / file.name)
    file.symlink_to(tmp_path / file.name)
    with pytest.raises(InputError, match="outside"):
        feasid.read_log(bag)


def test_a_chunk_of_a_bag_is_checked_as_that_of_a_file(mcap):
    """Half a gigabyte of nothing in fifty kilobytes."""
    data = zstd.compress(bytes(2**29))
    storage(mcap).write_bytes(HEAD + chunk(data, 2**29) + TAIL)
    assert said(mcap).startswith("LimitError")
    assert said(storage(mcap)).startswith("LimitError")


def test_all_files_of_a_bag_share_one_limit(mcap):
    data = zstd.compress(bytes(2**25))
    for k in range(8):
        (mcap / f"part_{k}.mcap").write_bytes(HEAD + chunk(data, 2**25, b"zstd") + TAIL)
    assert "Error" in said(mcap)


def test_an_index_that_lies_changes_nothing(mcap, log):
    """Compression, sizes and places of chunks are said twice; an index may name one often."""
    file = storage(mcap)
    content = file.read_bytes()
    at = content.rindex(b"\x89MCAP0\r\n") - 20
    (summary,) = struct.unpack_from("<Q", content, at)
    index = None
    while content[summary] != 2:
        length = struct.unpack_from("<Q", content, summary + 1)[0]
        if content[summary] == 8:
            index = content[summary : summary + 9 + length]
        summary += 9 + length
    lies = index[:-29] + index[-29:].replace(b"\x00" * 8, struct.pack("<Q", 2**40), 1)
    (start,) = struct.unpack_from("<Q", content, at)
    file.write_bytes(content[:start] + (index + lies) * 500 + content[start:])
    assert said(mcap).split() == [str(len(log))]


@pytest.mark.parametrize("kind", [0, 8, 200])
def test_many_empty_records_cost_little(mcap, kind):
    data = record(kind, b"") * (2**26 // 9)
    storage(mcap).write_bytes(HEAD + chunk(zstd.compress(data), len(data)) + TAIL)
    assert said(mcap).startswith("LogError")


@pytest.mark.parametrize("same", [False, True])
def test_messages_of_many_names_are_refused_before_they_take_memory(mcap, same):
    names = [f"j{0 if same else k}" for k in range(2_000_000)]
    raw = bytes(STORE.serialize_cdr(message(1, names, []), JOINT_STATE))
    schema = b"".join(struct.pack("<I", len(s)) + s for s in (JOINT_STATE.encode(), b"", b""))
    channel = b"".join(struct.pack("<I", len(s)) + s for s in (b"/a", b"cdr", b""))
    data = record(3, struct.pack("<H", 1) + schema)
    data += record(4, struct.pack("<HH", 1, 1) + channel)
    data += record(5, struct.pack("<HIQQ", 1, 0, 1, 1) + raw)
    storage(mcap).write_bytes(HEAD + chunk(zstd.compress(data), len(data)) + TAIL)
    assert "Error" in said(mcap)


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
@pytest.mark.parametrize("spelling", ["compressed", "as it was"])
def test_compressed_bags_are_refused_before_anything_is_unpacked(bag, mode, spelling, tmp_path):
    metadata = bag / "metadata.yaml"
    text = metadata.read_text()
    text = text.replace("compression_mode: ''", f"compression_mode: {mode}")
    text = text.replace("compression_format: ''", "compression_format: zstd")
    file = storage(bag)
    bomb = zstd.compress(bytes(2**28))
    packed = bag / (f"{file.name}.zstd" if spelling == "compressed" else file.name)
    file.unlink()
    packed.write_bytes(bomb)
    metadata.write_text(text.replace(file.name, packed.name))
    unpacked = tmp_path / "temporary"
    unpacked.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(unpacked))
        answer = said(bag)
    assert answer.startswith(("InputError", "LogError"))
    if spelling == "compressed":
        assert "ros2 bag convert" in answer


ENDLESS = """WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
SELECT x AS id, 1 AS topic_id, x AS timestamp, zeroblob(9) AS data, 4 AS schema_version FROM n
WHERE x < 0"""


def change(path, *statements):
    """Run statements of SQL, each alone or with its values, on a database."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))
    connection.close()


@pytest.mark.parametrize("table", ["messages", "topics", "schema", "Messages"])
def test_a_view_in_place_of_a_table_is_not_asked(database, table):
    view = f"CREATE VIEW {table} AS {ENDLESS}"
    change(storage(database), f"DROP TABLE {table}", view)
    answer = said(database)
    assert answer.startswith("LogError") or answer.split() == ["50"]


def test_a_table_that_is_a_view_by_another_name_is_not_asked(database):
    """The kind of an entry and its text are said twice, too."""
    update = "UPDATE sqlite_master SET sql = ?, rootpage = 0 WHERE name = 'messages'"
    view = f"CREATE VIEW messages AS {ENDLESS}"
    change(storage(database), "PRAGMA writable_schema = ON", (update, [view]))
    assert said(database).startswith("LogError")


def test_a_column_that_is_computed_is_refused(database):
    change(
        storage(database),
        "DROP TABLE messages",
        "CREATE TABLE messages(id INTEGER, topic_id INTEGER, timestamp INTEGER, "
        "data BLOB GENERATED ALWAYS AS (zeroblob(900000000)))",
        "INSERT INTO messages VALUES (1, 1, 1), (2, 1, 2)",
    )
    assert said(database).startswith("LogError")


def test_pages_that_stand_for_many_rows_are_refused(tmp_path):
    """A tree whose branches all lead to one page has rows without end in a few kilobytes."""
    path = tmp_path / "tree.db3"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)")
        connection.execute("INSERT INTO topics VALUES (1, '/a', 'sensor_msgs/msg/JointState')")
        connection.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data)"
        )
        connection.executemany(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES (2, ?, ?)",
            ((k, bytes(60)) for k in range(3000)),
        )
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()
    connection.close()
    content = bytearray(path.read_bytes())

    def children(page):
        start = (page - 1) * 512
        if content[start] != 5:
            return []
        count = struct.unpack_from(">H", content, start + 3)[0]
        cells = [struct.unpack_from(">H", content, start + 12 + 2 * k)[0] for k in range(count)]
        return [start + c for c in cells] + [start + 8]

    level = [root]
    while pages := [struct.unpack_from(">I", content, at)[0] for p in level for at in children(p)]:
        for p in level:
            for at in children(p):
                struct.pack_into(">I", content, at, pages[0])
        level = pages[:1]
    path.write_bytes(content)
    assert said(path).startswith(("LogError", "InputError"))
