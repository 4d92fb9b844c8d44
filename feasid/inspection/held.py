"""Robots from files whose joints may mimic others."""

from __future__ import annotations

import os
from collections.abc import Iterable

from feasid.robot.description import Robot
from feasid.robot.load import load_robot
from feasid.robot.urdf.read import urdf_of
from feasid.robot.xml.text import parse_xml, read_bytes


def load_held(
    path: str | os.PathLike[str], ignore: Iterable[str] = ()
) -> tuple[Robot, tuple[str, ...]]:
    """Load a robot with every joint that mimics another held at zero; also those joints' names.

    Raises
    ------
    FeasidError
        As `feasid.robot.load.load_robot`, except for joints that mimic.
    """
    text = parse_xml(read_bytes(path), os.fspath(path))
    if text.root.tag != "robot":
        return load_robot(path, ignore=ignore), ()
    mimics = [j.name for j in urdf_of(text).joints.values() if j.mimic is not None]
    return load_robot(path, lock=dict.fromkeys(mimics, 0.0)), tuple(mimics)
