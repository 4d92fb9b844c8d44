"""Compare joint terms on stretches of a log that were not fitted: what friction does it show?"""

from __future__ import annotations

import argparse

from feasid.cli.options import add_options, add_robot_arguments, options_of, robot_from
from feasid.cli.schema import add_json, tell
from feasid.options.tables import ReduceOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid models``."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="CSV, Parquet, NPZ, bags, reduced")
    add_robot_arguments(parser)
    add_json(parser)
    add_options(parser, ReduceOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print the errors of every set of terms; returns 0."""
    options = options_of(arguments, ReduceOptions, "feasid models")
    from feasid.identification.identify import compare_models

    found = compare_models(arguments.logs, robot_from(arguments), **options)
    if arguments.json:
        chosen = {name: found.sets[k] for name, k in found.drives}
        rows = [{"terms": s, "errors": e} for s, e in zip(found.sets, found.errors, strict=True)]
        tell("models", {"joints": found.robot.coordinates, "models": rows, "chosen": chosen})
    else:
        print(found.explain())
    return 0
