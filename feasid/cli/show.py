"""Show a saved fit: what it printed, what its proof says, where it came from."""

from __future__ import annotations

import argparse

from feasid.cli.schema import add_json, described, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid show``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the model; returns 0, or 1 when its certificate does not hold."""
    from feasid.identification.saved import load

    model = load(arguments.model)
    holds = model.certificate is not None and model.certificate.holds()
    if arguments.json:
        tell("show", described(model) | {"certificate_holds": holds, "made": dict(model.made)})
    else:
        print(model.summary())
        print("its certificate holds" if holds else "its certificate does not hold")
    return 0 if holds else 1
