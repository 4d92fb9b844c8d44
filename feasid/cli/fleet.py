"""Fit robots of one type together, each by its own logs and by what all have in common.

Every folder in FOLDER holds the logs of one robot; a file is the only log of one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_output, print_display, print_json, redirect_sentences
from feasid.core.errors import InputError
from feasid.core.files import check_outputs
from feasid.options.tables import FitOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid fleet``."""
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="one folder of logs, or one log, for each robot")
    add_robot_arguments(parser)
    add("--save", metavar="FILE.feasid", help="keep the type, for further robots")
    add("--report", metavar="HTML", help="write a page of all robots here")
    add_output(parser, "replace existing output files")
    add_options(parser, FitOptions)


def run(arguments: argparse.Namespace) -> int:
    """Fit, print the table, write the outputs; returns 1 if a robot is unusual."""
    folder, logs = Path(arguments.folder), {}  # logs by the name of their folder, or of the file
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: it holds one folder of logs for each robot")
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        logs[path.name if path.is_dir() else path.stem] = [str(f) for f in files]
    outputs = {"--save": arguments.save, "--report": arguments.report}
    inputs = [path for paths in logs.values() for path in paths]
    check_outputs(outputs, inputs, overwrite=arguments.overwrite)
    options = read_options(arguments, FitOptions, "feasid fleet")
    robot = read_robot(arguments)
    from feasid.applications.fleet.fleet import fit_fleet

    fleet = fit_fleet(logs, robot, **options)
    if arguments.json:
        table = fleet.table.reset_index().to_dict("records")
        found = [{"robot": name, "text": str(n), "code": n.code, **n.values}
                 for name, notes in fleet.outliers.items() for n in notes]  # fmt: skip
        sizes = dict(fleet.sizes)
        print_json("fleet", {"robots": table, "deviations": sizes, "standing out": found})
    else:
        print_display(fleet.display())
        print(f"\n{fleet.table.to_string(float_format='{:.3g}'.format)}")
    with redirect_sentences(arguments.json):
        if arguments.save:
            fleet.save(arguments.save, overwrite=arguments.overwrite)
            print(f"wrote {arguments.save}")
        if arguments.report:
            fleet.report(arguments.report, overwrite=arguments.overwrite)
            print(f"wrote {arguments.report}")
    return 1 if fleet.outliers else 0
