"""Read a robot from a description file, from its text, or from a model in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feasid.core.arguments import Vector3, checked
from feasid.core.errors import DescriptionError, InputError, did_you_mean, missing_extra
from feasid.robot.description import Robot, Source
from feasid.robot.formats.build import build_robot
from feasid.robot.formats.description import import_when_called
from feasid.robot.formats.pinocchio import robot_from_pinocchio
from feasid.robot.formats.registry import format_of_text, remember_description
from feasid.robot.formats.sidecar import with_loop_table, with_sidecar
from feasid.robot.formats.terms import check_ignored
from feasid.robot.formats.xml import LIMITS, TEXT, ReadLimits, XmlText, parse_xml, read_bytes

describe_mjmodel = import_when_called("feasid.robot.formats.mjcf.compiled:describe_mjmodel")


@checked
def load_robot(
    path: Any,
    floating: bool | None = None,
    lock: Mapping[str, float] | None = None,
    gravity: Vector3 | None = None,
    use_mujoco: bool = False,
    limits: ReadLimits = LIMITS,
    ignore: Iterable[str] = (),
    sidecar: bool = True,
    model: str = "",
) -> Robot:
    """Read a robot from a URDF, MJCF, SDF or USD file; the content of the file decides which.

    Parameters
    ----------
    path : str, path, pinocchio.Model, mujoco.MjSpec or mujoco.MjModel
        The file. Only this file and its sidecar are opened, and files of the same folder that an
        MJCF file includes; meshes are not opened. A string that starts with ``<`` is the
        description itself, as ROS passes it in ``robot_description``; models of Pinocchio and
        MuJoCo are used directly. A ``.xacro`` file is expanded when xacro is installed, and a bare
        name such as ``panda_description`` is looked up in ``robot_descriptions`` if that is
        installed.
    floating : bool, optional
        Let the root link of a URDF float, or fix it to the world; by default it floats only if the
        robot has no moving joint, like a quadrotor, and a note reports it. In MJCF a free joint
        defines this.
    lock : mapping of str to float, optional
        Joints to hold at a position [rad or m]: their links become part of the link before.
    gravity : array_like, shape (3,), optional
        Gravity vector in the base frame [m/s^2]; default the file's, or (0, 0, -9.81).
    use_mujoco : bool
        Let MuJoCo compile an MJCF file, for masses from meshes and for elements that only its
        compiler expands. It opens the meshes and textures that the file names.
    limits : ReadLimits
        Size and depth beyond which a file is rejected.
    ignore : sequence of str
        Forces of an MJCF file that are not modelled and may be left out: "tendon", "fluid",
        "gravcomp", "actuator", "nonlinear", "multidof", "flex", "plugin" (see
        `feasid.robot.formats.terms.EFFECTS`). Forces that are not named here raise an error.
    sidecar : bool
        Also read the file's sidecar, ``arm.urdf.feasid.json``, in which `feasid.write` puts what
        the format cannot hold, and the table of loops in the same folder
        (``arm.urdf.loops.json``, see `feasid.robot.formats.sidecar`); False reads the file as other
        programs do.
    model : str
        Which of several models of an SDF file, or which prim of a USD file with several robots.

    Returns
    -------
    Robot
        Its attribute ``source`` keeps the file's text, so that it can be written back, and notes on
        what was corrected, read and left out. Friction, drive inertia and springs in the file
        become drives with these values.

    Raises
    ------
    InputError
        The file cannot be read.
    DescriptionError, UnsupportedJointError
        The description is invalid; the message names file, line, column, link or joint, and
        attribute.
    SecurityError, LimitError
        The file has a document type declaration, includes a file from another folder, or exceeds
        `limits`.
    MissingExtraError
        The file needs MuJoCo's compiler.

    Examples
    --------
    >>> robot = load_robot("arm.urdf", lock={"gripper": 0.0})  # doctest: +SKIP
    """
    locks, ignored = dict(lock or {}), check_ignored(ignore)
    robot: Robot | None = None
    if hasattr(path, "jointPlacements") and hasattr(path, "inertias"):  # pinocchio.Model
        robot = robot_from_pinocchio(path, gravity)
    elif hasattr(path, "worldbody") and hasattr(path, "to_xml"):  # mujoco.MjSpec
        source = Source(f"<{path.modelname}>", "mjcf", path.to_xml().encode())
        description = describe_mjmodel(path.compile(), source.path)
        robot = build_robot(description, source, None, gravity, ignored)
    elif hasattr(path, "body_inertia") and hasattr(path, "jnt_type"):  # mujoco.MjModel
        description = describe_mjmodel(path)
        source = Source(description.path, "mujoco", b"", reading={"compiled": path})
        robot = build_robot(description, source, None, gravity, ignored)
    if robot is not None:
        return robot.locked(locks) if locks else robot
    text = replace(_parse_source(path, limits), model=model)
    form = format_of_text(text)
    if model and not form.several:
        raise InputError(f"{text.path}: model={model!r} is for SDF and USD: {form.title} has one")
    reading = {
        "floating": floating,
        "lock": locks,
        "gravity": gravity,
        "use_mujoco": use_mujoco,
        "limits": limits,
        "ignore": tuple(sorted(ignored)),  # sets have another order in every process
        **({"model": model} if model else {}),
    }
    source = Source(text.path, form.name, text.data, text.notes, reading)
    if use_mujoco:
        if form.compiled is None:
            raise InputError(f"{text.path}: use_mujoco=True is not for {form.title}")
        description = form.compiled(text)
    else:
        description = form.read(text)
        remember_description(source, description)
    robot = build_robot(description, source, floating, gravity, ignored)
    if sidecar and text.path != TEXT:
        robot = with_loop_table(robot, text.path)
        return with_sidecar(robot, text.path, text.data, locks, gravity)
    return robot.locked(locks) if locks else robot


def _parse_source(path: Any, limits: ReadLimits) -> XmlText:
    """A file, a description given as text, or a robot that ``robot_descriptions`` has."""
    if isinstance(path, str) and path.lstrip().startswith("<"):
        return parse_xml(path.strip().encode(), TEXT, limits)
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        what = repr(path) if path is None or isinstance(path, str) else type(path).__name__
        raise InputError(
            f"a robot is read from a file name, a path, a description's text, a Pinocchio or a "
            f"MuJoCo model, not from {what}"
        )
    if isinstance(path, str) and path.isidentifier() and not os.path.exists(path):
        # A bare name such as "panda_description"; the package downloads it at its first use.
        spec = find_spec("robot_descriptions")
        folders = (spec and spec.submodule_search_locations) or ()
        packages = [p.stem for folder in folders for p in Path(folder).glob("*_description.py")]
        if spec and path not in packages:
            hint = did_you_mean(path, packages)
            raise InputError(
                f"{path} is neither a file nor a robot of robot_descriptions{hint}", name=path
            )
        if spec:
            module = import_module(f"robot_descriptions.{path}")
            path = getattr(module, "URDF_PATH", None) or module.MJCF_PATH
    if os.fspath(path).endswith(".xacro"):
        # Xacro evaluates expressions of the file, so expand only files that you trust.
        name = os.fspath(path)
        # For its errors alone: no such file, a pipe, too large.
        read_bytes(name, limits)
        try:
            import xacro  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError as error:
            raise missing_extra("reading xacro", "xacro", "xacro") from error
        try:
            text = xacro.process_file(name).toprettyxml(indent="  ")
        except Exception as error:  # whatever the file's own expressions raise
            raise DescriptionError(f"{name}: xacro refuses the file: {error}", path=name) from error
        return parse_xml(text.encode(), name, limits)
    return parse_xml(read_bytes(path, limits), os.fspath(path), limits)
