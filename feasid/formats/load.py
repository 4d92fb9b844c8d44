"""One door for robot description files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from feasid.errors import InputError
from feasid.formats.locate import described, expanded, is_xacro
from feasid.formats.loop_table import with_loop_table
from feasid.formats.mjcf.compiled import compile_mjcf, robot_from_mjmodel
from feasid.formats.mjcf.effects import check_ignored
from feasid.formats.mjcf.read import mjcf_of
from feasid.formats.mjcf.tree import robot_from_mjcf
from feasid.formats.pinocchio import is_pinocchio, robot_from_pinocchio
from feasid.formats.sidecar import with_sidecar
from feasid.formats.urdf.read import urdf_of
from feasid.formats.urdf.tree import robot_from_urdf
from feasid.formats.xml import LIMITS, TEXT, ReadLimits, XmlText, parse_xml, read_bytes
from feasid.robot.description import Robot, Source


def load_robot(
    path: Any,
    floating: bool | None = None,
    lock: Mapping[str, float] | None = None,
    gravity: npt.ArrayLike | None = None,
    use_mujoco: bool = False,
    limits: ReadLimits = LIMITS,
    ignore: Iterable[str] = (),
    sidecar: bool = True,
) -> Robot:
    """Read a robot from a URDF or MJCF file; the root element decides which it is.

    Parameters
    ----------
    path : str, path, pinocchio.Model, mujoco.MjSpec or mujoco.MjModel
        The file. Only this file and its sidecar are opened, and for MJCF what it includes from
        its own folder; never a mesh. A string that starts with ``<`` is the description itself,
        as ROS passes it in ``robot_description``; models of Pinocchio and MuJoCo are taken as
        they are. A ``.xacro`` file is expanded when xacro is installed, and a bare name such as
        ``panda_description`` is looked up in ``robot_descriptions`` when that is.
    floating : bool, optional
        Let the root link of a URDF float, or fix it to the world; by default it floats where no
        joint moves, as of a quadrotor, and a note says so. In MJCF a free joint says so.
    lock : mapping of str to float, optional
        Joints to hold at a position [rad or m]: their links become part of the link before.
    gravity : array_like, shape (3,), optional
        In the base frame [m/s^2]; default the file's, or (0, 0, -9.81).
    use_mujoco : bool
        Let MuJoCo compile an MJCF file, for masses from meshes and for what only its compiler
        expands. It opens the meshes and textures that the file names.
    limits : ReadLimits
        Size and depth beyond which a file is refused.
    ignore : sequence of str
        Forces of an MJCF file that are not modelled and may be left out: "tendon", "fluid",
        "gravcomp", "actuator", "nonlinear", "multidof", "flex", "plugin" (see
        `feasid.formats.mjcf.effects`). What is not named here is refused.
    sidecar : bool
        Also read the file's sidecar, in which `feasid.write` puts what the format cannot hold, and
        the table of loops beside it (``arm.urdf.loops.json``, see `feasid.formats.loop_table`);
        False reads the file as other programs do.

    Returns
    -------
    Robot
        With ``source``: the file's text, so that it can be written back, and notes on what was
        repaired, read and left out. Friction, drive inertia and springs that the file gives
        joints are drives with these values.

    Raises
    ------
    InputError
        The file cannot be read.
    DescriptionError, UnsupportedJointError
        Names file, line, column, link or joint, and attribute.
    SecurityError, LimitError
        A document type declaration, an include from elsewhere; a file beyond `limits`.
    MissingExtraError
        The file needs MuJoCo's compiler.

    Examples
    --------
    >>> robot = load_robot("arm.urdf", lock={"gripper": 0.0})  # doctest: +SKIP
    """
    held, ignore = dict(lock or {}), check_ignored(ignore)
    robot = _from_memory(path, gravity, ignore)
    if robot is not None:
        return robot.locked(held) if held else robot
    text = _parsed(described(path), limits)
    if text.root.tag == "mujoco":
        robot = _from_mjcf(text, floating, gravity, use_mujoco, limits, ignore)
    elif text.root.tag == "robot":
        robot = robot_from_urdf(urdf_of(text), floating, gravity)
    else:
        text.fail(
            f"root is <{text.root.tag}>, expected <robot> (URDF) or <mujoco> (MJCF)", text.root
        )
    if sidecar and text.path != TEXT:
        robot = with_sidecar(robot, text.path, text.data)
        robot = with_loop_table(robot, text.path)
    reading = {
        "floating": floating,
        "lock": held,
        "gravity": gravity,
        "use_mujoco": use_mujoco,
        "limits": limits,
        "ignore": tuple(ignore),
    }
    if robot.source is not None:
        robot = replace(robot, source=replace(robot.source, reading=reading))
    return robot.locked(held) if held else robot


def _from_memory(model: Any, gravity: npt.ArrayLike | None, ignore: Iterable[str]) -> Robot | None:
    """The robot of a model that another program has read; None for anything else."""
    if is_pinocchio(model):
        return robot_from_pinocchio(model, gravity)
    if hasattr(model, "worldbody") and hasattr(model, "to_xml"):  # mujoco.MjSpec
        compiled = model.compile()
        source = Source(f"<{model.modelname}>", "mjcf", model.to_xml().encode())
        return robot_from_mjmodel(compiled, gravity, source, ignore)
    if hasattr(model, "body_inertia") and hasattr(model, "jnt_type"):  # mujoco.MjModel
        return robot_from_mjmodel(model, gravity, ignore=ignore)
    return None


def _parsed(path: Any, limits: ReadLimits) -> XmlText:
    """A file, or a description given as text."""
    if isinstance(path, str) and path.lstrip().startswith("<"):
        return parse_xml(path.strip().encode(), TEXT, limits)
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"a robot is read from a file name, a path, a description's text, a Pinocchio or a "
            f"MuJoCo model, not from {type(path).__name__}"
        )
    if is_xacro(path):
        return expanded(path, limits)
    return parse_xml(read_bytes(path, limits), os.fspath(path), limits)


def _from_mjcf(
    text: XmlText,
    floating: bool | None,
    gravity: npt.ArrayLike | None,
    use_mujoco: bool,
    limits: ReadLimits,
    ignore: Iterable[str],
) -> Robot:
    if floating:
        raise InputError("floating=True is for URDF: in MJCF the file has a <freejoint> itself")
    if use_mujoco:
        source = Source(text.path, "mjcf", text.data)
        return robot_from_mjmodel(compile_mjcf(text), gravity, source, ignore)
    return robot_from_mjcf(mjcf_of(text, limits), gravity, ignore)
