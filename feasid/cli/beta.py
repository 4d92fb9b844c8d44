"""Base parameters in a file: which robot's, and what they are."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from feasid.errors import InputError
from feasid.files import read_whole

if TYPE_CHECKING:
    from feasid.arrays import Array
    from feasid.feasibility.proof.claim import Certificate
    from feasid.identifiability.base import BaseParameters
    from feasid.robot.description import Robot

LARGEST = 2**26
"""Bytes of a file of base parameters."""

VALUE = "value"
"""The column that holds them; else the last one does."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments by which base parameters are given at the prompt."""
    parser.add_argument(
        "--beta", metavar="CSV", help="base parameters, as `feasid fit --parameters` writes them"
    )
    parser.add_argument("--robot", metavar="FILE", help="whose base parameters these are")
    parser.add_argument("--certificate", metavar="JSON", help="write the proof here")
    parser.add_argument("--consistency", choices=("full", "semi"), help="default full")


def read(path: str) -> Array:
    """The values in a CSV file: its column "value", or its last one.

    Raises
    ------
    InputError
        Names the file, and the row that is not a number.
    """
    import numpy as np
    import pandas as pd

    from feasid.logs.read.digits import exactly

    try:
        table: pd.DataFrame = pd.read_csv(io.BytesIO(read_whole(path, LARGEST)), **exactly())
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: cannot be read: {error}", path=path) from error
    column = table[VALUE] if VALUE in table.columns else table[table.columns[-1]]
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    for row in np.flatnonzero(~np.isfinite(values)):
        raise InputError(
            f"{path}: row {int(row) + 2} is no number: {column.iloc[row]!r}", path=path
        )
    return values


def variants(path: str) -> Iterator[Robot]:
    """The robot of a file, as it is and with the joint terms that fits add."""
    from feasid.robot.load import load_robot

    robot = load_robot(path)
    yield robot
    yield robot.with_joint_terms()
    yield robot.with_joint_terms(drive_inertia=True)
    yield robot.with_joint_terms(friction=(), drive_inertia=True)


def matching(path: str, values: Array) -> BaseParameters:
    """The base parameters of a file's robot of which there are that many.

    Raises
    ------
    InputError
        Says how many there are with which joint terms.
    """
    from feasid.identifiability.base import base_parameters

    sizes = []
    for robot in variants(path):
        base = base_parameters(robot)
        if len(base.K) == len(values):
            return base
        sizes.append(len(base.K))
    raise InputError(
        f"{path} has {sizes[0]} base parameters, {sizes[1]} with friction, {sizes[2]} with drive "
        f"inertia, too, {sizes[3]} with that alone, but there are {len(values)} values",
        path=path,
    )


def given(arguments: argparse.Namespace) -> tuple[Array, BaseParameters]:
    """What the arguments name."""
    if arguments.robot is None:
        raise InputError("--beta needs --robot: whose base parameters are these?")
    values = read(arguments.beta)
    return values, matching(arguments.robot, values)


def save(certificate: Certificate | None, path: str | None, overwrite: bool = False) -> None:
    """Write the proof where it was asked for, and say so."""
    if path is None:
        return
    if certificate is None:
        print("nothing was proved: no certificate is written")
        return
    certificate.save(Path(path), overwrite=overwrite)
    print(f"wrote {path}: check it with feasid verify")
