"""ROS 2 bags and MCAP files with ``sensor_msgs/msg/JointState`` as logs. Needs the extra "ros".

Messages are decoded with the standard definition of JointState and never with one that a file
brings along, so that a file cannot define what is executed.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.files import is_regular, open_for_reading
from feasid.errors import InputError, LimitError, LogError, did_you_mean, missing_extra
from feasid.logs.read.formats import LogFormat, LogReading, register_format

if TYPE_CHECKING:
    import pandas as pd

JOINT_STATE = "sensor_msgs/msg/JointState"

SIGNALS = {"position": "q", "velocity": "dq", "effort": "tau"}

MOST_CHUNK = 2**28
"""Bytes that one chunk of an MCAP file may unpack to."""

MOST_RATIO = 200
"""An MCAP file may grow by this factor, beyond its first 64 MB, when it is unpacked."""

STEP = 2**20
"""Bytes that are unpacked at a time when a chunk's size is checked."""


@dataclass
class JointTrack:
    """What the messages say about one joint."""

    stamps: list[int] = field(default_factory=list)
    signals: dict[str, list[float]] = field(default_factory=dict)

    def has_signal(self, signal: str) -> bool:
        """Whether any message said this of the joint."""
        return bool(np.isfinite(self.signals[signal]).any())


def read_bag(
    path: str | Path, *, topic: str | None = None, joints: Collection[str] = ()
) -> pd.DataFrame:
    """Read the joint states of a bag, merged by joint name and time.

    Parameters
    ----------
    path : path
        Folder of a ROS 2 bag, a ``.db3`` within one, or an ``.mcap`` file.
    topic : str, optional
        Needed when there are joint states on several topics, and `joints` does not tell which.
    joints : collection of str
        Those of the robot: without a `topic`, the one that holds them all is taken, with efforts
        where only one has these.

    Returns
    -------
    DataFrame
        ``t`` [s] from the first message, ``q_<joint>``, ``dq_<joint>``, ``tau_<joint>`` for what
        the messages hold. Joints that come in messages of their own are matched by the nearest
        time within half a period; nothing is interpolated. ``attrs["notes"]`` says what was done.

    Raises
    ------
    InputError
        No joint states (with the topics that exist), several topics, compressed databases.
    LogError
        Damaged files, or messages whose arrays do not match their names.
    LimitError
        Files that unpack beyond reason.
    """
    where = Path(path)
    if where.suffix.lower() == ".mcap":
        check_mcap(where)
    found: dict[str, dict[str, JointTrack]] = {}
    notes: list[str] = []
    try:
        reader_class: Any = import_module("rosbags.rosbag2").Reader
        store = _standard_types()
    except ImportError:
        raise missing_extra("reading ROS bags", "rosbags", "ros") from None
    folder = where.parent if where.suffix.lower() == ".db3" else where
    try:
        with reader_class(folder) as reader:
            if getattr(reader, "compression_mode", None):
                raise InputError(
                    f"{path}: compressed bags are not read; convert it first with "
                    "'ros2 bag convert' to uncompressed storage or MCAP",
                    path=str(path),
                )
            connections = _topic_connections(reader.connections, topic, bool(joints), str(path))
            clocks: dict[str, set[str]] = {}
            for connection, received, raw in reader.messages(connections=connections):
                message = store.deserialize_cdr(raw, connection.msgtype)
                tracks = found.setdefault(connection.topic, {})
                clock = _append_message(message, received, tracks, str(path))
                clocks.setdefault(connection.topic, set()).add(clock)
    except (InputError, LogError):
        raise
    except Exception as error:  # the library's own errors have no common base
        raise LogError(f"{path}: damaged or no ROS 2 bag: {error}", path=str(path)) from error
    if not found:
        raise LogError(f"{path}: the topic has no messages", path=str(path))
    chosen = (
        next(iter(found)) if len(found) == 1 else _find_topic_of_joints(found, joints, str(path))
    )
    if len(found) > 1:
        notes.append(f"joint states on {len(found)} topics: {chosen} is read")
    notes.append(f"time: {' and '.join(sorted(clocks[chosen]))}")
    frame = _merge_tracks(found[chosen], notes)
    frame.attrs |= {"notes": notes, "topic": chosen}
    return frame


@cache
def _standard_types() -> Any:
    """The definitions of ROS 2, compiled once; no file adds to them."""
    types: Any = import_module("rosbags.typesys")
    return types.get_typestore(types.Stores.ROS2_HUMBLE)


def _find_topic_of_joints(
    found: Mapping[str, Mapping[str, JointTrack]], joints: Collection[str], path: str
) -> str:
    """The topic that has all of these joints; with efforts where that decides."""
    whole = [t for t, tracks in found.items() if set(joints) <= set(tracks)]
    moved = [t for t in whole if all(found[t][j].has_signal("effort") for j in joints)]
    chosen = moved or whole
    if len(chosen) == 1:
        return chosen[0]
    listed = [f"{t} ({', '.join(list(tracks)[:8])})" for t, tracks in sorted(found.items())]
    why = "several hold" if whole else "none holds"
    raise InputError(
        f"{path}: joint states on several topics, of which {why} all of the robot's joints; choose "
        f"one, such as topic={(whole or [*found])[0]!r}: {', '.join(listed)}",
        path=path,
    )


def check_mcap(path: Path) -> None:
    """Refuse an MCAP file whose chunks say that they unpack beyond reason, before unpacking."""
    total = 0
    with open_for_reading(path, sys.maxsize) as file:
        if file.read(8) != b"\x89MCAP0\r\n":
            raise LogError(f"{path}: no MCAP file (it does not start as one)", path=str(path))
        size = os.fstat(file.fileno()).st_size
        for kind, length, start in _top_level_records(file, size, str(path)):
            if kind == 0x06 and length >= 24:
                file.seek(start)
                (unpacked,) = struct.unpack_from("<Q", file.read(24), 16)
                total += unpacked
                if unpacked > MOST_CHUNK or total > 2**26 + MOST_RATIO * size:
                    raise LimitError(
                        f"{path}: the chunk at byte {start} says it unpacks to {unpacked} bytes "
                        f"({total} so far, the file has {size})",
                        path=str(path),
                        offset=start,
                    )
                file.seek(start)
                _check_chunk(file.read(length), unpacked, path, start)


def _check_chunk(record: bytes, declared: int, path: Path, offset: int) -> None:
    """Refuse a chunk that unpacks to more than it says: the reader unpacks without a limit."""
    try:
        (length,) = struct.unpack_from("<I", record, 28)
        compression = bytes(record[32 : 32 + length]).decode("ascii", errors="replace")
    except struct.error:
        return  # too short to be a chunk: the reader says so
    if compression and _unpacks_beyond(record[40 + length :], compression, declared):
        raise LimitError(
            f"{path}: the chunk at byte {offset} unpacks to more than the {declared} bytes that it "
            "says",
            path=str(path),
            offset=offset,
        )


def _unpacks_beyond(data: bytes, compression: str, limit: int) -> bool:
    """Unpack frame after frame in small steps, keeping nothing, until the limit is passed."""
    total = 0
    while data and total <= limit:
        try:
            decompressor = _decompressor(compression)
            piece = decompressor.decompress(data, max_length=STEP)
            total += len(piece)
            while not decompressor.eof and piece and total <= limit:
                piece = decompressor.decompress(b"", max_length=STEP)
                total += len(piece)
        except Exception:  # damaged, or an unknown compression: the reader says so
            return False
        data = (decompressor.unused_data or b"") if decompressor.eof else b""
    return total > limit


def _decompressor(compression: str) -> Any:
    if compression == "lz4":
        return import_module("lz4.frame").LZ4FrameDecompressor()
    if compression != "zstd":
        raise ValueError(compression)
    try:
        return import_module("compression.zstd").ZstdDecompressor()
    except ImportError:
        return import_module("backports.zstd").ZstdDecompressor()


def _top_level_records(file: Any, size: int, path: str) -> Iterator[tuple[int, int, int]]:
    """Kind, length and start of every top-level record."""
    at = 8
    while at + 9 <= size:
        file.seek(at)
        kind, length = struct.unpack("<BQ", file.read(9))
        if at + 9 + length > size:
            raise LogError(
                f"{path}: damaged MCAP file: the record at byte {at} ends beyond the file (cut "
                "short, or never closed; repair it with 'mcap recover')",
                path=path,
                offset=at,
            )
        yield kind, length, at + 9
        at += 9 + length


def _topic_connections(
    known: Sequence[Any], topic: str | None, every: bool, path: str
) -> list[Any]:
    states = [c for c in known if c.msgtype == JOINT_STATE]
    topics = sorted({c.topic for c in states})
    if not states:
        found = sorted({f"{c.topic} ({c.msgtype})" for c in known})
        raise InputError(
            f"{path}: no topic of type {JOINT_STATE}; there is {', '.join(found) or 'nothing'}",
            path=path,
        )
    if topic is None and len(topics) > 1 and not every:
        raise InputError(
            f"{path}: joint states on several topics; choose one, such as topic={topics[0]!r}: "
            f"{', '.join(topics)}",
            path=path,
        )
    chosen = [c for c in states if topic is None or c.topic == topic]
    if not chosen:
        hint = did_you_mean(str(topic), topics)
        raise InputError(f"{path}: no joint states on {topic!r}{hint}", path=path)
    return chosen


def _append_message(message: Any, received: int, tracks: dict[str, JointTrack], path: str) -> str:
    """Append one message to the tracks of its joints; returns the clock it was stamped by."""
    stamp = message.header.stamp
    own = int(stamp.sec) * 10**9 + int(stamp.nanosec)
    when = own or int(received)
    values: Mapping[str, Any] = {s: getattr(message, s) for s in SIGNALS}
    for signal, array in values.items():
        if len(array) not in (0, len(message.name)):
            raise LogError(
                f"{path}: a message at {when} ns names {len(message.name)} joints but has "
                f"{len(array)} values of {signal}",
                path=path,
            )
    for k, name in enumerate(message.name):
        track = tracks.setdefault(str(name), JointTrack())
        track.stamps.append(when)
        for signal, array in values.items():
            series = track.signals.setdefault(signal, [])
            series.append(float(array[k]) if len(array) else float("nan"))
    return "the messages' header stamps" if own else "when messages were received (no stamps)"


def _merge_tracks(tracks: dict[str, JointTrack], notes: list[str]) -> pd.DataFrame:
    """One table on the stamps of the joint that was seen most often."""
    import pandas as pd

    leader = max(tracks, key=lambda name: len(tracks[name].stamps))
    order = np.argsort(np.array(tracks[leader].stamps, dtype=np.int64), kind="stable")
    stamps = np.array(tracks[leader].stamps, dtype=np.int64)[order]
    period = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0
    columns: dict[str, Array] = {"t": (stamps - stamps[0]) * 1e-9}
    absent: dict[str, list[str]] = {}
    for name, track in tracks.items():
        own = np.array(track.stamps, dtype=np.int64)
        rows, missed = _nearest_messages(own, stamps, period)
        if missed:
            notes.append(f"joint {name!r} has no message near {missed} of {len(stamps)} times")
        for signal, word in SIGNALS.items():
            values = np.array(track.signals[signal])
            if np.isnan(values).all():
                absent.setdefault(signal, []).append(name)
                continue
            columns[f"{word}_{name}"] = np.where(rows >= 0, values[rows], np.nan)
    notes += [f"{s} absent for {', '.join(names)}" for s, names in absent.items()]
    return pd.DataFrame(columns)


def _nearest_messages(own: Any, wanted: Any, period: float) -> tuple[Any, int]:
    """Index of the message nearest to each wanted time within half a period, else -1."""
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    right = np.clip(np.searchsorted(ordered, wanted), 1, max(1, len(own) - 1))
    left = right - 1
    right = np.minimum(right, len(own) - 1)
    closer = np.where(wanted - ordered[left] <= ordered[right] - wanted, left, right)
    far = np.abs(ordered[closer] - wanted) > period / 2
    return np.where(far, -1, order[closer]), int(far.sum())


def _is_bag(path: Path) -> bool:
    return is_regular(path / "metadata.yaml")


def _read_bag(path: Path, how: LogReading) -> pd.DataFrame:
    return read_bag(path, topic=how.topic, joints=how.joints)


register_format(LogFormat("bag", (".mcap", ".db3"), _read_bag, is_folder=_is_bag, topics=True))
