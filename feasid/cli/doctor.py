"""Say what is wrong with a log: what, where, how sure, and what mends it."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from typing import Any

from feasid.cli.options import as_settings, locks, pairs, vector
from feasid.cli.progress import step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid doctor``."""
    parser.add_argument("log", metavar="LOG", nargs="+", help="CSV, Parquet, NPZ or bag; runs")
    parser.add_argument("--robot", required=True, metavar="URDF", help="the robot's description")
    parser.add_argument("--lock", metavar="JOINT=Q", action="append", help="hold a joint, SI units")
    parser.add_argument("--gravity", metavar="X,Y,Z", help="free fall in the base frame [m/s^2]")
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="low-pass; default automatic")
    parser.add_argument(
        "--rate", type=float, metavar="HZ", help="sampling rate without time column"
    )
    parser.add_argument(
        "--columns", metavar="OURS=THEIRS", action="append", help="q=position_{}, t=stamp ..."
    )
    parser.add_argument("--units", metavar="KIND=UNIT", action="append", help="q=deg, t=ms ...")
    parser.add_argument(
        "--transmission", metavar="FILE", help="matrix T of a motor-side log: q_motor = T q"
    )
    parser.add_argument(
        "--offset", metavar="JOINT=RAD", action="append", help="added to a joint's position"
    )
    parser.add_argument("--json", action="store_true", help="print findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; returns 0 when nothing is wrong, 1 with errors or warnings."""
    from feasid.logs.diagnosis import diagnose
    from feasid.logs.readers import read_log
    from feasid.robot.load import load_robot

    robot = load_robot(
        arguments.robot, lock=locks(arguments.lock), gravity=vector(arguments.gravity)
    )
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
        options["offsets"] = locks(arguments.offset)
    logs = arguments.log[0] if len(arguments.log) == 1 else arguments.log
    with step("reading"):
        df = read_log(logs)
    with step("diagnosing"):
        diagnosis = diagnose(df, robot, **options)
    if arguments.json:
        print(json.dumps([asdict(f) for f in diagnosis], indent=1))
    else:
        print(f"{' '.join(arguments.log)}\n{diagnosis!r}")
        if diagnosis.options:
            print(
                f"\nmended: {_command(arguments)} {as_settings({**options, **diagnosis.options})}"
            )
    return 0 if diagnosis.ok else 1


def _command(arguments: argparse.Namespace) -> str:
    """The fit of the same log and robot."""
    words = ["feasid", "fit", *arguments.log, "--robot", arguments.robot]
    for entry in arguments.lock or ():
        words += ["--lock", entry]
    if arguments.gravity:
        words.append(f"--gravity={arguments.gravity}")
    return shlex.join(words)


def matrix(path: str) -> list[list[float]]:
    """Numbers of a text file, rows by line, separated by commas or blanks."""
    from pathlib import Path

    from feasid.errors import InputError
    from feasid.logs.readers import missing_file

    if not Path(path).is_file():
        raise missing_file(Path(path))
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [line.replace(",", " ").split() for line in lines if line.strip()]
    try:
        return [[float(x) for x in row] for row in rows]
    except ValueError as error:
        raise InputError(f"{path}: a transmission matrix holds numbers only: {error}") from None
