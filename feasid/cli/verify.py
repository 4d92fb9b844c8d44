"""Check certificate files in exact rational arithmetic, without any solver.

With --robot also whether a certificate is about that robot, whose K it rounds, with --beta about
these base parameters, and with --log about the data of that log, fitted with the options given.
Exit status: 0 every certificate holds, 1 one does not, 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from feasid import certificate
from feasid.cli import beta
from feasid.cli.options import (
    add_options,
    add_robot_arguments,
    options_of,
    refuse_robot,
    robot_from,
)
from feasid.cli.schema import add_json, tell
from feasid.core.arrays import Array
from feasid.core.files import reading
from feasid.errors import InputError
from feasid.feasibility.proof import survival
from feasid.feasibility.proof.claim import Certificate, mark
from feasid.identifiability.base import base_parameters
from feasid.options.tables import FitOptions
from feasid.robot.description import Robot

SAME = 1e-9
"""Relative difference of K and values that rounding explains."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="certificate, JSON")
    add_robot_arguments(parser, "compare with this robot, URDF or MJCF")
    parser.add_argument("--beta", metavar="CSV", help="compare with these base parameters")
    parser.add_argument("--log", metavar="LOG", help="compare with the fit of this log")
    add_options(parser, FitOptions)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the files; returns the exit status."""
    if arguments.log and not arguments.robot:
        raise InputError("--log needs --robot: whose log is this?")
    if not arguments.robot:
        refuse_robot(arguments, "--robot")
    if not arguments.json:
        return _checked(arguments)
    with redirect_stdout(StringIO()) as said:
        status = _checked(arguments)
    tell("verify", {"holds": status == 0, "files": arguments.files, "said": said.getvalue()})
    return status


def _checked(arguments: argparse.Namespace) -> int:
    status, readable = 0, []
    for path in arguments.files:
        try:
            with reading(path, certificate.LARGEST_FILE):
                readable.append(path)
        except InputError as error:
            print(f"feasid: error: {error}", file=sys.stderr)
            status = 2
    status = max(status, certificate.main(readable))
    if status or not (arguments.robot or arguments.beta):
        return status
    for path in arguments.files:
        proof = Certificate.load(path)
        robot = robot_from(arguments) if arguments.robot else None
        about = compared(proof, robot, arguments.robot, arguments.beta)
        for holds, line in (*about, *_logged(proof, robot, arguments)):
            print(f"  {'' if holds else 'NOT '}{line}")
            status = max(status, int(not holds))
    return status


def compared(
    proof: Certificate, robot: Robot | None, robot_path: str | None, beta_path: str | None
) -> Iterator[tuple[bool, str]]:
    """Whether a certificate is about a robot and its base parameters, line by line."""
    data = proof.data
    if robot is not None:
        names = [(owner, symbol) for owner, symbol in data["parameters"]]
        robots = [r for r in beta.variants(robot, names) if [*r.parameter_names] == names]
        same = [r for r in robots if mark(r) == data["robot"]["digest"]]
        yield (
            bool(same),
            f"of {robot_path}: its geometry, gravity and joint terms, to the last digit",
        )
        for own in (same or robots)[:1]:
            yield from survival.told(proof, own, _base(own))
    if beta_path is not None:
        values = np.asarray(beta.read(beta_path), dtype=np.float64)
        shown = np.array([float(certificate.exact(v)) for v in data.get("values", [])])
        if len(shown) != len(values):
            yield False, f"for the {len(values)} values of {beta_path}: it speaks of {len(shown)}"
            return
        error = _difference(shown, values)
        yield error <= SAME, f"for the values of {beta_path}: relative difference {error:.1e}"


def _logged(
    proof: Certificate, robot: Robot | None, arguments: argparse.Namespace
) -> Iterator[tuple[bool, str]]:
    """Whether a bound's data are what a fit of the log, with the same options, minimises."""
    if not arguments.log:
        return
    if proof.claim != "bound":
        yield False, f"of {arguments.log}: a certificate of what is {proof.claim} holds no data"
        return
    from feasid.identification.identify import fit

    found = fit(arguments.log, robot, **options_of(arguments, FitOptions, "feasid fit"))
    problem = found.optimum.problem
    holds, said = survival.triangles(proof, problem.R, problem.rho)
    yield holds, f"of {arguments.log}, {said}"


def _base(robot: Robot) -> Array:
    return np.asarray(base_parameters(robot).K, dtype=np.float64)


def _difference(a: Array, b: Array) -> float:
    size = float(np.abs(b).max(initial=0.0)) or 1.0
    return float(np.abs(a - b).max(initial=0.0)) / size
