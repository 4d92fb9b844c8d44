"""The report of a saved fit as an HTML page, or of two fits side by side."""

from __future__ import annotations

import argparse

from feasid.cli.schema import add_json, aside, tell
from feasid.core.files import check_outputs
from feasid.errors import InputError

MOST = 2
"""Fits on a page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid report``."""
    add = parser.add_argument
    add(
        "models", metavar="MODEL.feasid", nargs="+", help="what feasid fit --save wrote: one or two"
    )
    add("--out", metavar="HTML", default="report.html", help="default report.html")
    add("--overwrite", action="store_true", help="replace an existing file")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; returns 0."""
    if len(arguments.models) > MOST:
        raise InputError(f"a page shows one fit or two, not {len(arguments.models)}")
    check_outputs({"--out": arguments.out}, arguments.models, overwrite=arguments.overwrite)
    from feasid.identification.archive import load
    from feasid.identification.report.page import write_told

    models = [load(path) for path in arguments.models]
    for path, model in zip(arguments.models, models, strict=True):
        if not model.told:
            raise InputError(
                f"{path} keeps no report: it was saved by an older feasid; fit and save it again",
                path=path,
            )
    write_told([m.told for m in models], arguments.out, overwrite=arguments.overwrite)
    with aside(arguments.json):
        print(f"wrote {arguments.out}")
    if arguments.json:
        tell("report", {"out": arguments.out, "reports": [m.told for m in models]})
    return 0
