"""ROS 2 bags and MCAP files with ``sensor_msgs/msg/JointState`` as logs. Needs the extra "ros".

Messages are decoded with the standard definition of JointState and never with one that a file
brings along, so that a file cannot define what is executed.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import (
    InputError,
    LimitError,
    LogError,
    did_you_mean,
    missing_extra,
    refuse_damage,
)
from feasid.core.files import is_regular
from feasid.logs.read.formats import LogFormat, register_format
from feasid.logs.read.messages import BagReader

if TYPE_CHECKING:
    import pandas as pd

JOINT_STATE = "sensor_msgs/msg/JointState"

ZSTANDARD = b"\x28\xb5\x2f\xfd"  #: What compressed messages start with; encoded ones start with 0.

SIGNALS = {"position": "q", "velocity": "dq", "effort": "tau"}

MOST_JOINTS = 10_000  #: Names that one message, and all messages of a topic, may have.


@dataclass
class JointTrack:
    """Messages about one joint."""

    stamps: array[int] = field(default_factory=lambda: array("q"))
    signals: dict[str, array[float]] = field(default_factory=dict)

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """The stamps [ns]."""
        return np.array(self.stamps, dtype=np.int64)


def read_bag(
    path: str | Path, *, topic: str | None = None, joints: Collection[str] = ()
) -> pd.DataFrame:
    """Read the joint states of a bag, merged by joint name and time.

    `path`: an ``.mcap`` or ``.db3`` file, or the folder of a ROS 2 bag; `topic`: needed when there
    are joint states on several topics, and `joints` does not decide which; `joints`: those of the
    robot: without a `topic`, the one that holds them all is taken, with efforts where only one has
    these. Returns: ``t`` [s] from the first message, ``q_<joint>``, ``dq_<joint>``, ``tau_<joint>``
    for what the messages hold. Joints that come in messages of their own are matched by the nearest
    time within half a period; nothing is interpolated. ``attrs["notes"]`` lists what was done.
    Raises InputError: no joint states (with the topics that exist), several topics, compressed
    bags. Raises LogError: damaged files, or messages whose arrays do not match their names. Raises
    LimitError: files that unpack beyond reason.
    """
    tracks_by_topic: dict[str, dict[str, JointTrack]] = {}
    clocks: dict[str, set[str]] = {}
    notes: list[str] = []
    try:
        store = _standard_types()
    except ImportError:
        raise missing_extra("reading ROS bags", "rosbags", "ros") from None
    reader = BagReader(Path(path), JOINT_STATE, topic)
    with refuse_damage(path, "damaged or no ROS 2 bag"):
        for name, received, raw in reader.messages():
            if raw.startswith(ZSTANDARD):
                raise InputError(
                    f"{path}: compressed messages are not read; convert the bag first with 'ros2 "
                    "bag convert' to uncompressed storage or MCAP",
                    path=str(path),
                )
            message = store.deserialize_cdr(raw, JOINT_STATE)
            tracks = tracks_by_topic.setdefault(name, {})
            clocks.setdefault(name, set()).add(_append_message(message, received, tracks, path))
    topics = sorted({name for name, kind in reader.topics if kind == JOINT_STATE})
    if not topics:
        there = ", ".join(sorted(f"{name} ({kind})" for name, kind in reader.topics)) or "nothing"
        text = f"{path}: no topic of type {JOINT_STATE}; there is {there}"
        raise InputError(text, path=str(path))
    if topic is None and len(topics) > 1 and not joints:
        raise InputError(
            f"{path}: joint states on several topics; choose one, such as topic={topics[0]!r}: "
            f"{', '.join(topics)}",
            path=str(path),
        )
    if topic is not None and topic not in topics:
        hint = did_you_mean(topic, topics)
        raise InputError(f"{path}: no joint states on {topic!r}{hint}", path=str(path))
    if not tracks_by_topic:
        raise LogError(f"{path}: the topic has no messages", path=str(path))
    topic_of_joints = _find_topic_of_joints(tracks_by_topic, joints, str(path))
    if len(tracks_by_topic) > 1:
        notes.append(f"joint states on {len(tracks_by_topic)} topics: {topic_of_joints} is read")
    notes.append(f"time: {' and '.join(sorted(clocks[topic_of_joints]))}")
    tracks = tracks_by_topic[topic_of_joints]
    frame = _merge_tracks(tracks, notes, str(path))
    frame.attrs |= {"notes": notes, "topic": topic_of_joints}
    return frame


@cache
def _standard_types() -> Any:
    """The definitions of ROS 2, compiled once; no file adds to them."""
    types: Any = import_module("rosbags.typesys")
    return types.get_typestore(types.Stores.ROS2_HUMBLE)


def _find_topic_of_joints(
    found: Mapping[str, Mapping[str, JointTrack]], joints: Collection[str], path: str
) -> str:
    """The only topic, or that with all of these joints; with efforts where that decides."""
    if len(found) == 1:
        return next(iter(found))
    complete = [t for t, tracks in found.items() if set(joints) <= set(tracks)]
    efforts = {t: [found[t][j].signals["effort"] for j in joints] for t in complete}
    moved = [t for t, parts in efforts.items() if all(np.isfinite(x).any() for x in parts)]
    candidates = moved or complete
    if len(candidates) == 1:
        return candidates[0]
    listed = [f"{t} ({', '.join(list(tracks)[:8])})" for t, tracks in sorted(found.items())]
    why = "several hold" if complete else "none holds"
    raise InputError(
        f"{path}: joint states on several topics, of which {why} all of the robot's joints; choose "
        f"one, such as topic={(complete or [*found])[0]!r}: {', '.join(listed)}",
        path=path,
    )


def _append_message(
    message: Any, received: int, tracks: dict[str, JointTrack], path: str | Path
) -> str:
    """Append one message to the tracks of its joints; returns the clock it was stamped by."""
    stamp = message.header.stamp
    stamped = int(stamp.sec) * 10**9 + int(stamp.nanosec)
    when = stamped or int(received)
    values: Mapping[str, Any] = {s: getattr(message, s) for s in SIGNALS}
    for signal, numbers in values.items():
        if len(numbers) not in (0, len(message.name)):
            raise LogError(
                f"{path}: a message at {when} ns names {len(message.name)} joints but has "
                f"{len(numbers)} values of {signal}",
                path=str(path),
            )
    if max(len(message.name), len(tracks)) > MOST_JOINTS:
        raise LimitError(f"{path}: more than {MOST_JOINTS} joints on one topic", path=str(path))
    for k, name in enumerate(message.name):
        track = tracks.setdefault(str(name), JointTrack())
        track.stamps.append(when)
        for signal, numbers in values.items():
            series = track.signals.setdefault(signal, array("d"))
            series.append(float(numbers[k]) if len(numbers) else float("nan"))
    return "the messages' header stamps" if stamped else "when messages were received (no stamps)"


def _merge_tracks(tracks: dict[str, JointTrack], notes: list[str], path: str) -> pd.DataFrame:
    """One table on the stamps of the joint that was seen most often."""
    import pandas as pd

    # Stamps of a joint that go back are refused: sorted, two passes would be mixed.
    for name, track in tracks.items():
        stamps = track.times
        back = np.flatnonzero(np.diff(stamps) < 0)
        if back.size:
            k = int(back[0])
            raise LogError(
                f"{path}: the clock goes back: message {k + 2} about joint {name!r}, row {k + 1}, "
                f"is stamped {stamps[k + 1] * 1e-9:.9f} s after {stamps[k] * 1e-9:.9f} s "
                f"({back.size} such message(s)). A simulation was reset, a bag was played in a "
                "loop, or two nodes publish this joint: record a bag for each pass and node, and "
                "give them as a list of logs",
                path=path,
                joint=name,
                row=k + 1,
            )
    stamps = max(tracks.values(), key=lambda track: len(track.stamps)).times
    period = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0
    columns: dict[str, Array] = {"t": (stamps - stamps[0]) * 1e-9}
    absent: dict[str, list[str]] = {}
    for name, track in tracks.items():
        times = track.times
        # Of the two messages around each stamp the nearer one, if it is within half a period.
        right = np.clip(np.searchsorted(times, stamps), 1, max(1, len(times) - 1))
        before, right = right - 1, np.minimum(right, len(times) - 1)
        rows = np.where(stamps - times[before] <= times[right] - stamps, before, right)
        far = np.abs(times[rows] - stamps) > period / 2
        if far.any():
            notes.append(f"joint {name!r} has no message near {far.sum()} of {len(stamps)} times")
        for signal, word in SIGNALS.items():
            values = np.array(track.signals[signal])
            if np.isnan(values).all():
                absent.setdefault(signal, []).append(name)
                continue
            columns[f"{word}_{name}"] = np.where(far, np.nan, values[rows])
    notes += [f"{s} absent for {', '.join(names)}" for s, names in absent.items()]
    return pd.DataFrame(columns)


register_format(
    LogFormat(
        "bag",
        (".mcap", ".db3"),
        lambda path, how: read_bag(path, topic=how.topic, joints=how.joints),
        is_folder=lambda path: is_regular(path / "metadata.yaml"),
    )
)
