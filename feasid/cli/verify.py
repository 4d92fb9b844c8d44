"""Check certificate files in exact rational arithmetic, without any solver.

With --robot also whether a certificate is about that robot: with --beta about these base
parameters, with --log about the fit of that log with the options given, else about the values in
the robot's own file. Its statement is computed again from these and from the limits named here; a
file with anything else is rejected. Exit status: 0 every certificate holds, 1 one does not, 2 a
file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from feasid import certificate
from feasid.cli import Answer, beta
from feasid.cli.options import argument_name, options_of, read_options, takes, word
from feasid.cli.robot import read_robot, refuse_robot, robot_arguments
from feasid.core.errors import CertificateError, InputError
from feasid.core.files import open_for_reading
from feasid.options.complete import select_options
from feasid.options.tables import BoundOptions, FitOptions, SetOptions
from feasid.parameters.feasibility.check import check_base_values, feasible_set_from_options
from feasid.parameters.feasibility.proof.binding import HeldStatement, bind
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.question import ExactData, Question
from feasid.robot.description import Robot


@takes(
    word("files", "FILE", "certificate, JSON", nargs="+"),
    *robot_arguments("compare with this robot, URDF, MJCF, SDF or USD"),
    word("--beta", "CSV", "compare with these base parameters"),
    word("--log", "LOG", "compare with the fit of this log"),
    word("--margin", "NUMBER", "absolute margin that was asked for, SI", type=float),
    options_of(FitOptions),
)
def run(arguments: argparse.Namespace) -> Answer:
    """Check the files."""
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
    holdings = list(_held_statements(arguments, options)) if readable else []
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


def _held_statements(
    arguments: argparse.Namespace, options: dict[str, Any]
) -> Iterator[HeldStatement]:
    """The statements that certificates make about the robot, log or values in the arguments."""
    robot = read_robot(arguments)
    if arguments.log:
        # The fit of a log: its model is feasible, and no feasible model fits much better.
        from feasid.results.fit import fit

        fitted = fit(arguments.log, robot, **options)
        problem = fitted.optimum.problem
        K = np.asarray(problem.base.K, dtype=np.float64)
        question = Question.from_doubles(
            problem.base.robot, problem.feasible, K, None, problem.margin or 0.0
        )
        about = f"{arguments.log} of {arguments.robot}"
        yield HeldStatement(
            question, about, ExactData.from_doubles(problem.R, problem.rho, fitted.triangle[2])
        )
        yield from _statements_of_model(
            fitted.robot, fitted.feasible, fitted.delta, f"the fit of {about}", arguments.margin
        )
    elif arguments.beta:
        # Base parameters in a file: whether they are feasible, and the closest feasible ones.
        given, margin = beta.read_beta(arguments.beta), arguments.margin or 0.0
        base = beta.find_matching_base(robot, given)
        consistency, bounds = options.get("consistency"), select_options(BoundOptions, options)
        allowed = feasible_set_from_options(base.robot, consistency, None, bounds)
        K = np.asarray(base.K, dtype=np.float64)
        values = check_base_values(given, base, allowed)
        about = f"the {len(K)} base parameters in {arguments.beta} of {arguments.robot}"
        yield HeldStatement(Question.from_doubles(base.robot, allowed, K, values, margin), about)
        distance = Question.from_doubles(base.robot, allowed, K, None, margin)
        yield HeldStatement(distance, about, ExactData.from_doubles(np.eye(len(K)), values))
    else:
        allowed = feasible_set_from_options(
            robot, options.get("consistency"), None, select_options(BoundOptions, options)
        )
        yield from _statements_of_model(
            robot, allowed, robot.values, f"the values in {arguments.robot}", arguments.margin
        )


def _statements_of_model(
    robot: Robot, feasible: Any, delta: Any, about: str, margin: float | None
) -> Iterator[HeldStatement]:
    """Standard parameters, as far as they are known."""
    known = np.isfinite(delta)
    if known.any():
        question = Question.from_doubles(
            robot, feasible, np.eye(robot.size)[known], delta[known], margin or 0.0
        )
        yield HeldStatement(question, about)
