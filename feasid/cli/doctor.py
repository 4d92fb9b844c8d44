"""Say what is wrong with a log: what, where, how sure, and what mends it."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict

from feasid.cli.options import (
    add_options,
    add_robot_arguments,
    as_arguments,
    read_options,
    read_robot,
    robot_words,
)
from feasid.cli.output import add_json, print_json, spell_as_arguments
from feasid.cli.terminal import report_step
from feasid.options.tables import DiagnoseOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid doctor``."""
    parser.add_argument("log", metavar="LOG", nargs="+", help="CSV, Parquet, NPZ or bag; runs")
    add_robot_arguments(parser)
    add_json(parser)
    add_options(parser, DiagnoseOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; returns 0 when nothing is wrong, 1 with errors or warnings."""
    from feasid.identification.advice import diagnose
    from feasid.logs.recording import Recording

    options = read_options(arguments, DiagnoseOptions, "feasid doctor")
    robot = read_robot(arguments)
    logs = arguments.log[0] if len(arguments.log) == 1 else arguments.log
    with report_step("reading"):
        log = Recording(logs)
        log.table(robot, options.get("topic"))
    with report_step("diagnosing"):
        diagnosis = diagnose(log, robot, **options)
    if arguments.json:
        found = [asdict(f) for f in diagnosis]
        print_json("doctor", {"ok": diagnosis.ok, "findings": found, "options": diagnosis.options})
    else:
        print(" ".join(arguments.log))
        if robot.constraint_summary:
            print(f"{robot.name}: {robot.constraint_summary}")
        print(spell_as_arguments(diagnosis.explain()))
        if diagnosis.options or diagnosis.ok:
            words = as_arguments({**options, **diagnosis.options})
            command = shlex.join(["feasid", "fit", *arguments.log, *robot_words(arguments)])
            print(f"\n{'mended' if diagnosis.options else 'next'}: {command} {words}".rstrip())
    return 0 if diagnosis.ok else 1
