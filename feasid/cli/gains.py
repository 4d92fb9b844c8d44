"""Torque per unit of motor current, per joint, from logs whose torque columns hold currents."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_json, print_json, redirect_sentences
from feasid.cli.terminal import report_step
from feasid.core.arrays import Array
from feasid.core.files import check_outputs, read_whole, write_atomically
from feasid.errors import InputError
from feasid.options.tables import LoadOptions
from feasid.robot.inertia import from_mass_com_inertia

SHAPES = {"mass": (), "centre": (3,), "inertia": (3, 3)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid gains``."""
    add = parser.add_argument
    add("logs", nargs="+", metavar="LOG", help="currents: CSV, Parquet, NPZ, bags, reduced")
    add("--loaded", nargs="+", metavar="LOG", help="the same with a load that is known")
    add(
        "--load",
        metavar="JSON",
        help="that load: mass [kg], centre [m] and, about it, inertia [kg m2] in the axes of the "
        "body that carries it, as feasid payload --out writes them",
    )
    add_robot_arguments(parser)
    add("--body", metavar="NAME", help="what carries the load; default the last body")
    add("--out", metavar="JSON", help="write the factors here, by column")
    add_json(parser)
    add("--overwrite", action="store_true", help="replace an existing output file")
    add_options(parser, LoadOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print the constants; returns 0."""
    if bool(arguments.loaded) != bool(arguments.load):
        raise InputError("a known load needs both: logs with it, --loaded, and what it is, --load")
    inputs = [*arguments.logs, *(arguments.loaded or ()), arguments.load, arguments.robot]
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    options = read_options(arguments, LoadOptions, "feasid gains")
    load = _load(arguments.load) if arguments.load else None
    with report_step("loading solvers"):
        from feasid.identification.gains import torque_constants
        from feasid.reduction.reduce import open_sources
    robot = read_robot(arguments)
    with report_step("identifying torque constants"):
        found = torque_constants(
            open_sources(arguments.logs),
            robot,
            loaded=open_sources(arguments.loaded) if arguments.loaded else None,
            load=load,
            body=arguments.body,
            **options,
        )
    told = [
        {"joint": j, "constant": k, "deviation": s}
        for j, k, s in zip(found.joints, found.constants, found.deviations, strict=True)
    ]
    with redirect_sentences(arguments.json):
        print(found)
        if arguments.out:
            text = json.dumps(found.units, indent=1).encode()
            write_atomically(arguments.out, text, overwrite=arguments.overwrite)
            print(f"wrote {arguments.out}")
        if found.units:
            factors = ",".join(f"{column}={k:.6g}" for column, k in found.units.items())
            print(f"fit these logs with --units {factors}")
    if arguments.json:
        print_json("gains", {"constants": told, "units": found.units})
    return 0


def _load(path: str) -> Array:
    """Ten parameters of the load that a file tells.

    Raises
    ------
    InputError
        Names the file and what it lacks.
    """
    try:
        data: Any = json.loads(read_whole(path))
        mass, centre, inertia = (np.array(data[key], dtype=np.float64) for key in SHAPES)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: a load is JSON with {', '.join(SHAPES)}") from error
    for key, value in zip(SHAPES, (mass, centre, inertia), strict=True):
        if value.shape != SHAPES[key] or not np.isfinite(value).all():
            raise InputError(f"{path}: {key} must be finite, of shape {SHAPES[key]}")
    return from_mass_com_inertia(mass, centre, inertia)
