"""Reduce logs to one small file that adds, saves and is fitted later.

Every log is reduced by itself; one that fails is reported and left out (exit status 4). With
--resume, logs that are in the output already are skipped, and the output is written
again with what was added.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from feasid.cli.options import add_options, add_robot_arguments, options_of, robot_from
from feasid.cli.progress import bar
from feasid.cli.schema import add_json, aside, tell
from feasid.cli.speech import at_the_prompt
from feasid.errors import LogError
from feasid.files import check_outputs
from feasid.options.tables import ReduceOptions

EXIT_PARTIAL = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid reduce``."""
    parser.add_argument("logs", nargs="+", metavar="LOG")
    add_robot_arguments(parser)
    parser.add_argument("--out", required=True, metavar="FILE.reduced")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--resume", action="store_true", help="add to an output that exists")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE.reduced")
    add_json(parser)
    add_options(parser, ReduceOptions)


def run(arguments: argparse.Namespace) -> int:
    """Reduce, save; returns 0, or 4 when some logs failed."""
    from feasid.reduction.reduce import reduce
    from feasid.reduction.triangle import Reduced

    inputs = [*arguments.logs, arguments.robot]
    replaces = arguments.overwrite or arguments.resume
    check_outputs({"--out": arguments.out}, inputs, overwrite=replaces)
    options = options_of(arguments, ReduceOptions, "feasid reduce")
    robot = robot_from(arguments)
    parts: list[Any] = list(arguments.logs)
    if arguments.resume and Path(arguments.out).exists():
        so_far = Reduced.load(arguments.out)
        parts = [so_far, *(p for p in parts if Path(p).name not in so_far.sources)]
    failed: tuple[Any, ...] = ()
    with bar("reducing") as progress:
        try:
            total = reduce(parts, robot, workers=arguments.workers, progress=progress, **options)
        except LogError as error:
            failed = getattr(error, "failed", ())
            if getattr(error, "partial", None) is None:
                raise
            total = error.data["partial"]
    total.save(arguments.out, overwrite=arguments.overwrite or arguments.resume)
    with aside(arguments.json):
        for note in total.notes:
            print(f"  - {at_the_prompt(str(note))}")
        print(f"wrote {arguments.out}: {total.samples} samples of {len(total.sources)} log(s)")
    for failure in failed:
        print(f"feasid: left out {failure.log}: {failure.message}", file=sys.stderr)
    if arguments.json:
        told = {"out": arguments.out, "samples": total.samples, "logs": total.sources}
        left = {str(f.log): f.message for f in failed}
        tell("reduce", {**told, "notes": [str(n) for n in total.notes], "left_out": left})
    return EXIT_PARTIAL if failed else 0
