"""Arguments of a robot's description, which are the parameters of `feasid.load_robot`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from feasid.cli.options import Part, word
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError
from feasid.options.spelling import ROBOT_NAMES, argument_name

if TYPE_CHECKING:
    from feasid.robot.description import Robot

LOAD = "robot.formats.load:load_robot"

NAMES = " ".join(ROBOT_NAMES)

SAVED = ".feasid"  #: Of saved fits; commands that take a description, too, know them by it.


def robot_arguments(text: str, required: bool = False) -> tuple[Part, ...]:
    """Arguments of the robot's description and of options that complete it."""
    return word("--robot", "FILE", text, required=required), parameters_of(LOAD, NAMES)


ROBOT = robot_arguments("the robot: URDF, MJCF, SDF, USD, or a saved fit", required=True)


def read_robot(arguments: argparse.Namespace, names: str = NAMES) -> Robot:
    """The robot that the arguments describe; of a lock without a position, at zero."""
    locks = arguments.lock or ()
    arguments.lock = [x if "=" in x or x.startswith("{") else f"{x}=0" for x in locks] or None
    return open_robot(arguments.robot, read_parameters(arguments, LOAD, names))


def open_robot(path: str, options: Mapping[str, Any] = MappingProxyType({})) -> Robot:
    """The robot of a description with these options of `LOAD`, or the one of a saved fit."""
    if not path.endswith(SAVED):
        from feasid.robot.formats.load import load_robot

        return load_robot(path, **options)
    from feasid.applications.load import load

    if options:
        typed = ", ".join(map(argument_name, options))
        raise InputError(f"{typed} would be ignored: a saved fit has a robot of its own")
    robot: Robot = load(path).robot
    return robot


def robot_words(arguments: argparse.Namespace) -> list[str]:
    """The typed arguments of `ROBOT`."""
    words = ["--robot", arguments.robot]
    for name in NAMES.split():
        value = getattr(arguments, name)
        if value is not None and name in ("floating", "use_mujoco"):
            words.append(argument_name(name))
        elif value is not None:
            texts = value if isinstance(value, list) else [value]
            words += [word for text in texts for word in (argument_name(name), text)]
    return words


def refuse_robot(arguments: argparse.Namespace, without: str) -> None:
    """Raise for arguments of a robot where none is asked about."""
    names = ["robot", *NAMES.split()]
    if without != "--robot":  # files have models, too
        names.remove("model")
    if typed := [argument_name(name) for name in names if getattr(arguments, name)]:
        raise InputError(f"{', '.join(typed)} would be ignored without {without}")
