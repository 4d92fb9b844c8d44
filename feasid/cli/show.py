"""Show a saved fit: at a glance, as it showed itself, and whether its proof holds."""

from __future__ import annotations

import argparse
from dataclasses import replace

from feasid.cli.schema import add_json, described, tell
from feasid.cli.screen import show
from feasid.cli.speech import at_the_prompt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid show``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument("--verbose", action="store_true", help="also tables and notes")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the model; returns 0, or 1 when its certificate does not hold."""
    from feasid.identification.archive import load

    model = load(arguments.model)
    holds = model.certificate is not None and model.certificate.holds()
    if arguments.json:
        tell("show", described(model) | {"certificate_holds": holds, "made": dict(model.made)})
    else:
        show(replace(model.display(), more=""))
        print(f"\n{at_the_prompt(model.summary())}" if arguments.verbose else model.saved)
        print("its certificate holds" if holds else "its certificate does not hold")
    return 0 if holds else 1
