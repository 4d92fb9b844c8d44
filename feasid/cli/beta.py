"""Base parameters in a file, and the robot that they belong to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from feasid.cli.options import word
from feasid.cli.robot import read_robot, refuse_robot, robot_arguments
from feasid.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from feasid.parameters.feasibility.proof.claim import Certificate
    from feasid.parameters.identifiability.base import BaseParameters

ARGUMENTS = (
    word("--beta", "CSV", "base parameters, as `feasid fit --parameters` writes them"),
    *robot_arguments("whose base parameters these are, URDF, MJCF, SDF or USD"),
    word("--certificate", "JSON", "write the proof here"),
    word("--consistency", None, "default full", choices=("full", "semi")),
    word("--solver", "NAME", "a solver that CVXPY knows; default Clarabel, then SCS"),
)
"""The arguments by which base parameters are given at the command line."""


def refuse_arguments(arguments: argparse.Namespace, named: bool, why: str) -> None:
    """Raise for arguments of base parameters where links of a file are meant, or nothing is."""
    if not named:
        raise InputError("neither FILE nor --beta and --robot were given")
    for name in ("certificate", "solver"):
        if getattr(arguments, name):
            raise InputError(f"--{name} belongs to --beta: {why}")
    refuse_robot(arguments, "--beta")


def read_values_and_base(arguments: argparse.Namespace) -> tuple[pd.Series[float], BaseParameters]:
    """The values of ``--beta`` and the base parameters of ``--robot`` that they belong to."""
    if arguments.robot is None:
        raise InputError("--beta needs --robot: whose base parameters are these?")
    import pandas as pd

    from feasid.applications.inspection.base_values import (
        NAME,
        find_matching_base,
        read_base_values,
    )

    values = read_base_values(arguments.beta)
    if isinstance(values.index, pd.RangeIndex):
        order = "its values are taken in the order of feasid base-parameters"
        print(f"feasid: {arguments.beta} has no column {NAME!r}: {order}", file=sys.stderr)
    return values, find_matching_base(read_robot(arguments), values)


def save_certificate(
    certificate: Certificate | None, path: str | None, overwrite: bool = False
) -> None:
    """Write the proof to the file that was named, and print its path."""
    if path is None:
        return
    if certificate is None:
        print("nothing was proved: no certificate is written")
        return
    certificate.save(Path(path), overwrite=overwrite)
    print(f"wrote {path}: check it with feasid verify")
