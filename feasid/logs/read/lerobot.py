"""Folders of LeRobot datasets, versions 2 and 3: all their episodes as runs of one log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from feasid.core.errors import LimitError, LogError
from feasid.core.files import is_regular, read_whole
from feasid.logs.lerobot import LISTS
from feasid.logs.read.arrays import read_parquet
from feasid.logs.read.formats import LogFormat, LogReading, register_format

if TYPE_CHECKING:
    import pandas as pd

MOST_INFO = 2**24  #: Bytes of the file that describes a dataset.

ENDINGS = re.compile(r"(\.pos|\.vel|\.effort|_pos|_vel)\Z")
"""Endings that LeRobot appends to the names of joints."""


def read_lerobot(path: Path, how: LogReading) -> pd.DataFrame:
    """All episodes of a dataset; its lists by the joints' names where it has the robot's."""
    import pandas as pd

    files = sorted(f for f in (path / "data").glob("**/*.parquet") if is_regular(f))
    if not files:
        raise LogError(f"{path}: a LeRobot dataset without files data/*/*.parquet", path=str(path))
    frames, size = [], 0
    for file in files:
        frame = read_parquet(file, how)
        size += int(frame.memory_usage().sum())
        if size > how.max_bytes:
            raise LimitError(
                f"{path}: its episodes need more than the limit of {how.max_bytes} bytes",
                path=str(path),
            )
        frames.append(frame)
    file, labels = path / "meta" / "info.json", dict[str, str]()
    text = read_whole(file, MOST_INFO)
    try:
        for name, feature in json.loads(text)["features"].items():
            parts = feature.get("names") or []
            if isinstance(parts, dict):  # lists by group
                parts = [j for group in parts.values() if isinstance(group, list) for j in group]
            joints = [ENDINGS.sub("", str(j)) for j in parts]
            if how.joints and name in LISTS and {*how.joints} <= {*joints}:
                labels |= {f"{name}_{k}": f"{name}_{joint}" for k, joint in enumerate(joints, 1)}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise LogError(f"{file}: no description of a LeRobot dataset", path=str(file)) from error
    return pd.concat(frames, ignore_index=True).rename(columns=labels)


register_format(
    LogFormat(
        "lerobot", (), read_lerobot, is_folder=lambda path: is_regular(path / "meta" / "info.json")
    )
)
