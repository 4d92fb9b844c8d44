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

MOST_INFO = 2**24
"""Bytes of the file that describes a dataset."""

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
    df = pd.concat(frames, ignore_index=True)
    labels = {
        f"{name}_{k + 1}": f"{name}_{joint}"
        for name, joints in _names_of_lists(path).items()
        if name in LISTS and {*how.joints} <= {*joints}
        for k, joint in enumerate(joints)
    }
    return df.rename(columns=labels if how.joints else {})


def _names_of_lists(path: Path) -> dict[str, list[str]]:
    """Names of joints in the order of every list, as far as the dataset says them."""
    file = path / "meta" / "info.json"
    text = read_whole(file, MOST_INFO)
    try:
        features = json.loads(text)["features"].items()
        lists = {str(name): feature.get("names") or [] for name, feature in features}
        for name, joints in lists.items():
            if isinstance(joints, dict):  # lists by group
                lists[name] = [
                    j for group in joints.values() if isinstance(group, list) for j in group
                ]
        return {name: [ENDINGS.sub("", str(j)) for j in joints] for name, joints in lists.items()}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise LogError(f"{file}: no description of a LeRobot dataset", path=str(file)) from error


register_format(
    LogFormat(
        "lerobot", (), read_lerobot, is_folder=lambda path: is_regular(path / "meta" / "info.json")
    )
)
