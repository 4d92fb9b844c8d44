"""Reduce logs to one small file that adds, saves and is fitted later.

Every log is reduced by itself; one that fails is reported and left out (exit status 4). What each
gave is kept beside the output until that is written: after an interruption, --resume goes on from
there, to the same bits. With --resume, logs whose content is in the output already are skipped,
and the output is written again with what was added.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_json, print_json, redirect_sentences, spell_as_arguments
from feasid.cli.terminal import progress_bar
from feasid.core.files import check_outputs, is_folder, is_regular
from feasid.errors import InputError, LogError
from feasid.options.tables import ReduceOptions
from feasid.robot.description import Robot

if TYPE_CHECKING:
    from feasid.reduction.triangle import Reduced

EXIT_PARTIAL = 4
"""Exit status when some logs failed and the others were reduced."""


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
    inputs = [*arguments.logs, arguments.robot]
    replaces = arguments.overwrite or arguments.resume
    check_outputs({"--out": arguments.out}, inputs, overwrite=replaces)
    options = read_options(arguments, ReduceOptions, "feasid reduce")
    robot = read_robot(arguments)
    parts = _parts(arguments)
    with _checkpoints(arguments) as folder:
        total, failed = _reduce_readable(parts, robot, arguments.workers, folder, options)
        total.save(arguments.out, overwrite=replaces)
    with redirect_sentences(arguments.json):
        for note in total.notes:
            print(f"  - {spell_as_arguments(str(note))}")
        print(f"wrote {arguments.out}: {total.samples} samples of {len(total.sources)} log(s)")
    for failure in failed:
        print(f"feasid: left out {failure.log}: {failure.message}", file=sys.stderr)
    if arguments.json:
        told = {"out": arguments.out, "samples": total.samples, "logs": total.sources}
        left = {str(f.log): f.message for f in failed}
        print_json("reduce", {**told, "notes": [str(n) for n in total.notes], "left_out": left})
    return EXIT_PARTIAL if failed else 0


def _parts(arguments: argparse.Namespace) -> list[Any]:
    """The logs, or what there is already and the logs that are not in it, by their content."""
    from feasid.logs.recording import Recording, content_digest
    from feasid.reduction.triangle import Reduced

    if not (arguments.resume and is_regular(arguments.out)):
        return list(arguments.logs)
    so_far = Reduced.load(arguments.out)
    if len(so_far.digests) < len(so_far.sources):
        raise InputError(
            f"{arguments.out} does not say what its logs held, it is of an older feasid: reduce "
            "them again, with --overwrite instead of --resume",
            path=arguments.out,
        )
    there = [p for p in arguments.logs if is_regular(p) or is_folder(p)]
    known = {p for p in there if content_digest(Recording(p)) in so_far.digests}
    return [so_far, *(p for p in arguments.logs if p not in known)]


@contextmanager
def _checkpoints(arguments: argparse.Namespace) -> Iterator[Path]:
    """A folder beside the output, removed when all is done and kept when there is use for it."""
    from feasid.reduction.fleet import begin_checkpoints, count_checkpoints, remove_checkpoints

    folder = Path(f"{arguments.out}.parts")
    begin_checkpoints(folder, fresh=not arguments.resume)
    try:
        yield folder
    except BaseException:
        if count := count_checkpoints(folder):
            text = f"{count} finished log(s) are kept in {folder}; the same command goes on there"
            print(f"\nfeasid: {text} with --resume", file=sys.stderr)
        else:
            remove_checkpoints(folder)
        raise
    remove_checkpoints(folder)


def _reduce_readable(
    parts: list[Any], robot: Robot, workers: int, folder: Path, options: dict[str, Any]
) -> tuple[Reduced, tuple[Any, ...]]:
    """The sum of those that could be reduced, and the others."""
    from feasid.reduction.reduce import reduce

    with progress_bar("reducing") as progress:
        try:
            total = reduce(
                parts, robot, workers=workers, progress=progress, checkpoints=folder, **options
            )
        except LogError as error:
            if getattr(error, "partial", None) is None:
                raise
            return error.data["partial"], error.data["failed"]
    return total, ()
