"""Joint torques that a saved fit predicts for the motion of a log, as CSV."""

from __future__ import annotations

import argparse

from feasid.cli.schema import add_json, tell
from feasid.core.files import check_outputs, write_aside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid predict``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument("log", metavar="LOG", help="positions at least")
    parser.add_argument("--out", required=True, metavar="CSV", help="write the torques here")
    parser.add_argument("--overwrite", action="store_true", help="replace an output that exists")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the torques; returns 0."""
    inputs = arguments.model, arguments.log
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    from feasid.identification.archive import load

    torques = load(arguments.model).predict(arguments.log)
    content = torques.to_csv(index_label="row", float_format="%.9g").encode()
    write_aside(arguments.out, content, overwrite=arguments.overwrite)
    if arguments.json:
        wrote = {"out": arguments.out, "rows": len(torques), "columns": list(torques.columns)}
        tell("predict", wrote)
    else:
        print(f"wrote {arguments.out}: {len(torques)} rows of {', '.join(torques.columns)}")
    return 0
