"""Run the main job on a real log inside the package: diagnose, fit one part, test on the other.

The log is of a Unitree Z1 arm with six joints; the identified robot is written as URDF.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from feasid.cli.output import (
    add_json,
    errors_as_data,
    fit_as_data,
    print_display,
    print_json,
    redirect_sentences,
    spell_as_arguments,
)
from feasid.cli.terminal import report_step
from feasid.core.files import check_outputs

MORE = "more: --verbose for tables and notes"

BLOCKS = 10
"""The log is cut into this many stretches; every second one is fitted, the others test."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid demo``."""
    add = parser.add_argument
    add("--out", default="z1_identified.urdf", metavar="URDF")
    add("--overwrite", action="store_true", help="replace an existing file")
    add("--verbose", action="store_true", help="print tables, doubts and notes too")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fit the packaged log, print the summary, write the identified URDF; returns 0."""
    check_outputs({"--out": arguments.out}, (), overwrite=arguments.overwrite)
    with report_step("loading solvers"):
        from feasid import datasets
        from feasid.identification.advice import diagnose
        from feasid.identification.identify import fit
    log = datasets.load("unitree_z1")
    block = (BLOCKS * (log["t"] - log["t"].iloc[0]) / (log["t"].iloc[-1] + 1e-9)).astype(int)
    train, test = log[block % 2 == 0], log[block % 2 == 1]
    robot = log.attrs["robot"]
    with report_step("diagnosing"):
        diagnosis = diagnose(train, robot)
    with report_step("fitting"):
        result = fit(train, robot, **diagnosis.options)
    errors = result.errors(test)
    with redirect_sentences(arguments.json):
        print(f"feasid doctor says of the log:\n{spell_as_arguments(diagnosis.explain())}\n")
        print_display(replace(result.display(errors), more=MORE))
        if arguments.verbose:
            print(f"\n{spell_as_arguments(result.summary(test=errors))}")
        print()
        result.to_urdf(arguments.out, overwrite=arguments.overwrite)
        print(f"wrote {Path(arguments.out)}: read back and verified in exact arithmetic")
    if arguments.json:
        told = fit_as_data(result)
        told["errors"] |= {"test": errors_as_data(errors)}
        print_json("demo", {**told, "out": arguments.out})
    return 0
