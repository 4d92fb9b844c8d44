"""Play a log back as if the robot ran: what is learnt, and when the model could be used."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_json, redirect_sentences
from feasid.cli.output import print_json as tell_json
from feasid.core.files import check_writable
from feasid.errors import InputError
from feasid.formats.fit_robot import with_motors
from feasid.options.tables import WatchOptions

if TYPE_CHECKING:
    from feasid.online.playback import Playback


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid watch``."""
    add = parser.add_argument
    add("log", metavar="LOG", help="CSV, Parquet, NPZ or a bag with positions and torques")
    add_robot_arguments(parser)
    add("--window", type=float, default=10.0, metavar="S", help="time remembered; default 10 s")
    add("--interval", type=float, default=1.0, metavar="S", help="between lines; default 1 s")
    add("--plot", metavar="PNG", help="draw errors and gate over time")
    add("--overwrite", action="store_true", help="replace the drawing if it exists")
    add_json(parser)
    add_options(parser, WatchOptions)


def run(arguments: argparse.Namespace) -> int:
    """Print a line per interval; returns 0 when the gate was open at the end, else 1."""
    if arguments.plot:
        check_writable(arguments.plot, overwrite=arguments.overwrite)
        if Path(arguments.plot).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError("--plot takes a file that ends in .png, .svg or .pdf")
    options = read_options(arguments, WatchOptions, "feasid watch")
    robot = with_motors(read_robot(arguments), options.pop("couplings", None))
    from feasid.online.playback import watch

    def tell(so_far: Playback) -> None:
        print(so_far.line(len(so_far.estimates) - 1), flush=True)

    with redirect_sentences(arguments.json):
        played = watch(
            arguments.log,
            robot,
            window=arguments.window,
            interval=arguments.interval,
            each=tell,
            **options,
        )
        for change in played.online.changes:
            print(f"change at {change}")
        for cause, count in played.online.faults.items():
            print(f"{count} samples {cause}")
        print(played.estimates[-1].verified)
        if arguments.plot:
            played.plot(arguments.plot)
            print(f"wrote {arguments.plot}")
    if arguments.json:
        tell_json("watch", _playback_data(played))
    return 0 if played.estimates[-1].decision.open else 1


def _playback_data(played: Playback) -> dict[str, Any]:
    """Every estimate, changes and faults, as plain data."""
    return {
        "estimates": [
            {"time": e.time, "r2": e.r2, "open": e.decision.open, "reasons": e.decision.reasons}
            for e in played.estimates
        ],
        "changes": [str(change) for change in played.online.changes],
        "faults": dict(played.online.faults),
    }
