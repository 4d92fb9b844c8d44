"""The command ``verify``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from typing import Any

from feasid import certificate
from feasid.cli import Answer, beta
from feasid.cli.options import options_of, read_options, takes, word
from feasid.cli.robot import read_robot, refuse_robot, robot_arguments
from feasid.core.errors import CertificateError, InputError
from feasid.core.files import open_for_reading
from feasid.options.complete import select_options
from feasid.options.spelling import argument_name
from feasid.options.tables import FitOptions, SetOptions
from feasid.parameters.feasibility.proof.binding import HeldStatement, bind
from feasid.parameters.feasibility.proof.claim import Certificate


@takes(
    word("files", "FILE", "certificate, JSON", nargs="+"),
    *robot_arguments("compare with this robot, URDF, MJCF, SDF or USD"),
    word("--beta", "CSV", "compare with these base parameters"),
    word("--log", "LOG", "compare with the fit of this log"),
    word("--margin", "NUMBER", "absolute margin that was asked for, SI", type=float),
    options_of(FitOptions),
)
def run_verify(arguments: argparse.Namespace) -> Answer:
    """Check certificate files in exact rational arithmetic, without any solver.

    With --robot also whether a certificate is about that robot: with --beta about these base
    parameters, with --log about the fit of that log with the options given, else about the values
    in the robot's own file. Its statement is computed again from these and from the limits named
    here; a file with anything else is rejected. Exit status: 0 every certificate holds, 1 one does
    not, 2 a file cannot be read.
    """
    options = read_options(arguments, FitOptions, "feasid verify")
    # Arguments that have no effect without others.
    for name in ("log", "beta"):
        if getattr(arguments, name) and not arguments.robot:
            raise InputError(f"--{name} needs --robot: whose {name} is this?")
    if arguments.log and arguments.beta:
        raise InputError("a certificate is about a log or about base parameters: --log or --beta")
    ignored, without = [], "--log"
    if not arguments.robot:
        refuse_robot(arguments, "--robot")
        ignored = [*options, *(["margin"] if arguments.margin is not None else [])]
        without = "--robot"
    elif not arguments.log:
        ignored = [*options.keys() - select_options(SetOptions, options).keys()]
    if ignored:
        raise InputError(f"{argument_name(min(ignored))} would be ignored without {without}")
    sentences = StringIO()  # with --json a part of the answer
    with redirect_stdout(sentences) if arguments.json else nullcontext():
        status = _check_proofs(arguments, options)
    files = arguments.files
    return status, lambda: {"holds": status == 0, "files": files, "said": sentences.getvalue()}


def _check_proofs(arguments: argparse.Namespace, options: dict[str, Any]) -> int:
    status, readable = 0, []
    for path in arguments.files:
        try:
            with open_for_reading(path, certificate.LARGEST_FILE):
                readable.append(path)
        except InputError as error:
            print(f"feasid: error: {error}", file=sys.stderr)
            status = 2
    if not arguments.robot:
        return max(status, certificate.main(readable))
    from feasid.applications.inspection import statements

    # What certificates may state about the robot, log or values in the arguments.
    holdings: Iterable[HeldStatement] = []
    margin = arguments.margin or 0.0
    if readable and arguments.beta:
        values, base = beta.read_values_and_base(arguments)
        about = f"the {base.size} base parameters in {arguments.beta} of {arguments.robot}"
        holdings = statements.statements_of_base(values, base, about, options, margin)
    elif readable and arguments.log:
        robot, about = read_robot(arguments), f"{arguments.log} of {arguments.robot}"
        holdings = statements.statements_of_log(arguments.log, robot, about, options, margin)
    elif readable:
        robot, about = read_robot(arguments), f"the values in {arguments.robot}"
        holdings = statements.statements_of_robot(robot, about, options, margin)
    holdings = [*holdings]
    named = arguments.log or arguments.beta
    hint = [] if named else ["a certificate of a fit needs --log, one of base parameters --beta"]
    for path in readable:
        try:
            binding = bind(Certificate.load(path), holdings)
        except CertificateError as error:
            print(f"{path}: REJECTED: {error}")
            status = max(status, 1)
            continue
        if binding.refused:
            first, *others = binding.refused
            print("\n  ".join([f"{path}: NOT about your data: {first}", *others, *hint]))
            status = max(status, 1)
        else:
            print(f"{path}: {binding.sentence}")
    return status
