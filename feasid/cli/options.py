"""Options that several commands share: the robot, and how its logs are read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from feasid.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.parts import Drive


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """The robot's description and how a log of it is read."""
    add = parser.add_argument
    add("--robot", required=True, metavar="URDF", help="the robot's description")
    add("--lock", metavar="JOINT=Q", action="append", help="hold a joint, SI units")
    add(
        "--coupling",
        metavar="NAME:JOINT=C,JOINT=C",
        action="append",
        help="a motor that moves several joints, its friction and inertia",
    )
    add("--gravity", metavar="X,Y,Z", help="free fall in the base frame [m/s^2]")
    add("--cutoff", type=float, metavar="HZ", help="low-pass; default automatic")
    add("--rate", type=float, metavar="HZ", help="sampling rate without time column")
    add("--columns", metavar="OURS=THEIRS", action="append", help="q=position_{}, t=stamp ...")
    add("--units", metavar="KIND=UNIT", action="append", help="q=deg, t=ms ...")
    add("--transmission", metavar="FILE", help="matrix T of a motor-side log: q_motor = T q")
    add("--offset", metavar="JOINT=RAD", action="append", help="added to a joint's position")


def robot_of(arguments: argparse.Namespace) -> Robot:
    """The robot that the arguments describe."""
    from feasid.robot.load import load_robot

    robot = load_robot(
        arguments.robot, lock=locks(arguments.lock), gravity=vector(arguments.gravity)
    )
    shared = [coupling(entry) for entry in arguments.coupling or ()]
    return robot.with_joint_terms((), couplings=shared) if shared else robot


def log_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Options of `feasid.logs.frame.prepare`."""
    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("cutoff", "rate")
        if getattr(arguments, name) is not None
    }
    for name in ("columns", "units"):
        if getattr(arguments, name):
            options[name] = pairs(getattr(arguments, name), f"--{name}")
    if arguments.transmission:
        options["transmission"] = matrix(arguments.transmission)
    if arguments.offset:
        options["offsets"] = locks(arguments.offset, "--offset")
    return options


def locks(entries: Sequence[str] | None, option: str = "--lock") -> dict[str, float]:
    """``["gripper=0.1"]`` as a mapping."""
    out = {}
    for entry in entries or ():
        joint, sign, value = entry.partition("=")
        try:
            out[joint] = float(value) if sign else 0.0
        except ValueError:
            raise InputError(f"{option} {entry}: {value!r} is not a number") from None
    return out


def coupling(entry: str) -> Drive:
    """``"wrist:joint_5=1,joint_6=1"`` as a drive with inertia and friction."""
    name, sign, factors = entry.partition(":")
    if not (name and sign and factors):
        raise InputError(f"--coupling needs NAME:JOINT=FACTOR,JOINT=FACTOR, not {entry!r}")
    return Drive(name, locks(factors.split(","), "--coupling"))


def vector(text: str | None) -> tuple[float, ...] | None:
    """``"0,0,-9.81"`` as numbers."""
    if text is None:
        return None
    try:
        numbers = tuple(float(x) for x in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise InputError(f"--gravity needs three numbers such as 0,0,-9.81, not {text!r}")
    return numbers


def pairs(entries: Sequence[str] | None, option: str) -> dict[str, str]:
    """``["q=deg"]`` as a mapping."""
    out = {}
    for entry in entries or ():
        key, sign, value = entry.partition("=")
        if not (key and sign and value):
            raise InputError(f"{option} needs NAME=VALUE, not {entry!r}")
        out[key] = value
    return out


def settings(entries: Sequence[str] | None) -> dict[str, Any]:
    """``["delay=0.03", 'units={"q": "deg"}']`` as options of `feasid.fit`; values are JSON."""
    out: dict[str, Any] = {}
    for key, value in pairs(entries, "--option").items():
        try:
            out[key] = json.loads(value)
        except json.JSONDecodeError:
            out[key] = value
    return out


def as_settings(options: Mapping[str, Any]) -> str:
    """The inverse, as words of a shell command."""
    import shlex

    words = []
    for key, value in options.items():
        text = value if isinstance(value, str) else json.dumps(value, default=_plain)
        words.append(f"--option {shlex.quote(f'{key}={text}')}")
    return " ".join(words)


def _plain(value: Any) -> Any:
    """Arrays and mappings as JSON knows them."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def matrix(path: str) -> list[list[float]]:
    """Numbers of a text file, rows by line, separated by commas or blanks."""
    from feasid.logs.read.readers import missing_file

    if not Path(path).is_file():
        raise missing_file(Path(path))
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [line.replace(",", " ").split() for line in lines if line.strip()]
    try:
        return [[float(x) for x in row] for row in rows]
    except ValueError as error:
        raise InputError(f"{path}: a transmission matrix holds numbers only: {error}") from None
