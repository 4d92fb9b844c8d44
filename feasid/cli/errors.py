"""Relative torque errors of a saved fit on logs, per joint and over all of them."""

from __future__ import annotations

import argparse

from feasid.cli.schema import add_json, relative, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid errors``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs with torques")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a column per log; returns 0."""
    from feasid.identification.archive import load

    model = load(arguments.model)
    found = {log: model.errors(log) for log in arguments.logs}
    if arguments.json:
        tell("errors", {"errors": {log: relative(e) for log, e in found.items()}})
        return 0
    columns = {"fitted": model.relative_error, **found}
    width = max(len(str(j)) for j in model.relative_error.index)
    print(f"{'':{width}}  " + "  ".join(f"{name:>12}" for name in columns))
    for joint in model.relative_error.index:
        cells = (f"{100 * e[joint]:11.2f}%".rjust(max(12, len(n))) for n, e in columns.items())
        print(f"{joint:{width}}  " + "  ".join(cells))
    for log, errors in found.items():
        if errors.attrs.get("leakage"):
            print(f"{log}: {errors.attrs['leakage']}")
    return 0
