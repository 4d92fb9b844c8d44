"""Fit robots of one type together, each by its own logs and by what all have in common.

Every folder in FOLDER holds the logs of one robot; a file is the only log of one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from feasid.cli import Answer
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.output import print_display, write_outputs
from feasid.cli.robot import ROBOT, read_robot
from feasid.core.errors import InputError
from feasid.core.files import check_outputs
from feasid.options.tables import FitOptions


@takes(
    word("folder", "FOLDER", "one folder of logs, or one log, for each robot"),
    *ROBOT,
    word("--save", "FILE.feasid", "keep the type, for further robots"),
    word("--report", "HTML", "write a page of all robots here"),
    flag("--overwrite", "replace existing output files"),
    options_of(FitOptions),
)
def run(arguments: argparse.Namespace) -> Answer:
    """Fit, print the table, write the outputs; status 1 if a robot is unusual."""
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
    print_display(fleet.display())
    print(f"\n{fleet.table.to_string(float_format='{:.3g}'.format)}")
    write_outputs(arguments, save=fleet.save, report=fleet.report)
    return 1 if fleet.outliers else 0, lambda: {
        "robots": fleet.table.reset_index().to_dict("records"),
        "deviations": dict(fleet.sizes),
        "standing out": [
            {"robot": name, "text": str(n), "code": n.code, **n.values}
            for name, notes in fleet.outliers.items()
            for n in notes
        ],
    }
