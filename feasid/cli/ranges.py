"""The values that parameters have over all models that exist and fit the log, ends proved."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from feasid.cli.options import add_options, options_of
from feasid.cli.schema import add_json, tell
from feasid.options.set_tables import RangeOptions

if TYPE_CHECKING:
    from feasid.identification.ranges import Ranges


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid ranges``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument(
        "parameters",
        nargs="*",
        metavar="PARAMETER",
        help="such as forearm.m or 'forearm.m + 2 hand.m'; default all standard parameters",
    )
    add_json(parser)
    add_options(parser, RangeOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print the ranges; returns 0."""
    options = options_of(arguments, RangeOptions, "feasid ranges")
    from feasid.identification.archive import load

    found = load(arguments.model).ranges(arguments.parameters or None, **options)
    if arguments.json:
        tell("ranges", told(found))
    else:
        print(found.explain())
    return 0


def told(found: Ranges) -> dict[str, Any]:
    """Ranges for ``--json``; null for an end that nothing determines."""
    return {
        "level": found.level,
        "budget": found.budget,
        "ranges": [
            {
                "parameter": r.name,
                "value": r.value,
                "lower": r.lower,
                "upper": r.upper,
                "marks": list(r.marks),
                "mark": r.mark,
                "limited": list(r.limited),
            }
            for r in found
        ],
        "notes": [str(n) for n in found.notes],
    }
