"""Identify a tool or load, from a log with it and one without, or from a wrist sensor."""

from __future__ import annotations

import argparse
import json

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_json, print_json, redirect_sentences
from feasid.cli.terminal import report_step
from feasid.core.files import check_outputs, write_atomically
from feasid.errors import InputError
from feasid.options.tables import LoadOptions, LogOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid payload``."""
    add = parser.add_argument
    add("loaded", nargs="+", metavar="LOG", help="with the load: CSV, Parquet, NPZ, bags, reduced")
    add("--without", nargs="+", metavar="LOG", help="the same without it")
    add(
        "--sensor",
        metavar="FX,FY,FZ,TX,TY,TZ",
        help="instead: columns of a wrist sensor, what it exerts on the load",
    )
    add_robot_arguments(parser)
    add("--body", metavar="NAME", help="body or link that carries the load; default the last body")
    add("--card", metavar="MAKER", help="print it as franka, ur, kuka, kinova or ros2 wants it")
    add("--out", metavar="JSON", help="write the load's parameters here")
    add_json(parser)
    add("--overwrite", action="store_true", help="replace an existing output file")
    add_options(parser, LoadOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print the load; returns 0."""
    if bool(arguments.without) == bool(arguments.sensor):
        raise InputError("a load needs a log without it, --without, or the columns of a --sensor")
    inputs = [*arguments.loaded, *(arguments.without or ()), arguments.robot]
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    table = LogOptions if arguments.sensor else LoadOptions
    options = read_options(arguments, LoadOptions, "feasid payload")
    with report_step("loading solvers"):
        from feasid.identification.payload import payload, payload_from_wrench
        from feasid.options.complete import check_options
        from feasid.reduction.reduce import open_sources
    options = check_options(
        table, options, "feasid payload --sensor" if arguments.sensor else "payload"
    )
    robot = read_robot(arguments)
    with report_step("identifying the load"):
        if arguments.sensor:
            if len(arguments.loaded) > 1:
                raise InputError("--sensor takes one log")
            found = payload_from_wrench(
                arguments.loaded[0],
                robot,
                channels=arguments.sensor.split(","),
                body=arguments.body,
                **options,
            )
        else:
            logs = open_sources(arguments.loaded), open_sources(arguments.without)
            found = payload(*logs, robot, body=arguments.body, **options)
    told = {
        "body": found.body,
        "mass": found.mass,
        "centre": found.centre.tolist(),
        "inertia": found.inertia.tolist(),
        "mass_std": found.mass_std,
        "centre_std": found.centre_std.tolist(),
    }
    card = found.to(arguments.card) if arguments.card else None
    if card:
        told["card"] = dict(card.values)
    with redirect_sentences(arguments.json):
        print(found)
        if card:
            print(card)
        if arguments.out:
            text = json.dumps(told, indent=1).encode()
            write_atomically(arguments.out, text, overwrite=arguments.overwrite)
            print(f"wrote {arguments.out}")
    if arguments.json:
        print_json("payload", told)
    return 0
