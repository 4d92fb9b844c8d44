"""One door for robot description files."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy.typing as npt

from feasid.robot.description import Robot
from feasid.robot.xmltext import LIMITS, ReadLimits, parse_xml, read_bytes


def load_robot(
    path: str | os.PathLike[str],
    floating: bool = False,
    lock: Mapping[str, float] | None = None,
    gravity: npt.ArrayLike | None = None,
    limits: ReadLimits = LIMITS,
) -> Robot:
    """Read a robot from a URDF file.

    Parameters
    ----------
    path : str or path
        The file. Only this file is opened, never a mesh.
    floating : bool
        Let the root link float; else it is fixed to the world.
    lock : mapping of str to float, optional
        Joints to hold at a position [rad or m]: their links become part of the link before.
    gravity : array_like, shape (3,), optional
        In the base frame [m/s^2]; default (0, 0, -9.81).
    limits : ReadLimits
        Size and depth beyond which a file is refused.

    Returns
    -------
    Robot
        With ``source``, the file's text, so that `write_urdf` can write it back.

    Raises
    ------
    InputError
        The file cannot be read.
    DescriptionError, UnsupportedJointError
        Names file, line, column, link or joint, and attribute.
    SecurityError, LimitError
        A document type declaration; a file beyond `limits`.

    Examples
    --------
    >>> robot = load_robot("arm.urdf", lock={"gripper": 0.0})  # doctest: +SKIP
    """
    from feasid.robot.lock import locked
    from feasid.robot.urdf import urdf_of
    from feasid.robot.urdf_tree import robot_from_urdf

    text = parse_xml(read_bytes(path, limits), os.fspath(path), limits)
    if text.root.tag not in ("robot",):
        text.fail(f"root is <{text.root.tag}>, expected <robot>", text.root)
    held = dict(lock or {})
    robot = robot_from_urdf(urdf_of(text), floating, held, gravity)
    return locked(robot, held) if held else robot
