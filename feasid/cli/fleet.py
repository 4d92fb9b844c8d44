"""Commands on many robots and many days: fleet, store; status 1 if a robot or a day stands out."""

from __future__ import annotations

import argparse

from feasid.cli import Answer
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.output import fit_as_data, print_display, write_outputs
from feasid.cli.robot import ROBOT, read_robot
from feasid.core.errors import InputError
from feasid.core.files import check_outputs
from feasid.core.notes import as_json
from feasid.options.complete import select_options
from feasid.options.tables import FitOptions, ReduceOptions


@takes(
    word("folder", "FOLDER", "one folder of logs, or one log, for each robot"),
    *ROBOT,
    word("--save", "FILE.feasid", "keep the type, for further robots"),
    word("--report", "HTML", "write a page of all robots here"),
    flag("--overwrite", "replace existing output files"),
    options_of(FitOptions),
)
def run_fleet(arguments: argparse.Namespace) -> Answer:
    """Fit robots of one type together, each by its own logs and by what all have in common.

    Every folder in FOLDER holds the logs of one robot; a file is the only log of one.
    """
    from feasid.applications.fleet.fleet import fit_fleet, logs_by_robot

    logs = logs_by_robot(arguments.folder)
    outputs = {"--save": arguments.save, "--report": arguments.report}
    inputs = [path for paths in logs.values() for path in paths]
    check_outputs(outputs, inputs, overwrite=arguments.overwrite)
    options = read_options(arguments, FitOptions, "feasid fleet")
    fleet = fit_fleet(logs, read_robot(arguments), **options)
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


NEEDS = {"add": ("name", "logs"), "drift": ("name",), "fit": ("name",), "list": ()}
"""Arguments that an action cannot do without."""

TAKES = {"add": ("day", "compact"), "drift": ("since", "report"), "fit": ("since", "save")}
"""Further arguments of an action."""


@takes(
    word("action", None, "what to do with the store", choices=[*NEEDS]),
    word("store", "STORE", "its folder"),
    word("logs", "LOG", "add: files, folders or patterns", nargs="*"),
    *ROBOT,
    word("--name", "NAME", "the robot that was logged, such as its serial number"),
    word("--day", "DAY", "add: day of the logs, 2026-11-28; default today (UTC)"),
    flag("--compact", "add: without folds, a tenth of the bytes"),
    word("--since", "DAY", "drift, fit: first day"),
    word("--report", "HTML", "drift: write a page here"),
    word("--save", "FILE.feasid", "fit: keep the fit"),
    flag("--overwrite", "replace existing output files"),
    options_of(FitOptions),
)
def run_store(arguments: argparse.Namespace) -> Answer:
    """Keep reduced logs by robot and day, name what drifts, and fit the logs of a robot."""
    action = arguments.action
    every = dict.fromkeys(name for names in (*NEEDS.values(), *TAKES.values()) for name in names)
    for name in every:
        needed, absent = name in NEEDS[action], not getattr(arguments, name)
        if needed == absent and name not in TAKES.get(action, ()):
            what = ("" if needed else "no ") + ("LOG" if name == "logs" else f"--{name}")
            raise InputError(f"feasid store {action} needs {what}", option=name)
    outputs = {"--report": arguments.report, "--save": arguments.save}
    check_outputs(outputs, [arguments.robot], overwrite=arguments.overwrite)
    options = read_options(arguments, FitOptions, "feasid store")
    robot = read_robot(arguments)
    from feasid.applications.fleet.store import LogStore

    store = LogStore(arguments.store, robot, **select_options(ReduceOptions, options))
    if action == "add":
        files = store.add(arguments.logs, arguments.name, arguments.day, compact=arguments.compact)
        print(f"added {len(files)} log(s) of {arguments.name} to {arguments.store}")
        return 0, lambda: {"files": [str(file) for file in files]}
    if action == "list":
        table = store.table.astype({"day": str})
        print(table.to_string(index=False))
        return 0, lambda: {"logs": table.to_dict("records")}
    if action == "fit":
        fitted = store.fit(arguments.name, arguments.since, **options)
        print_display(fitted.display())
        write_outputs(arguments, save=fitted.save)
        return 0, lambda: fit_as_data(fitted)
    drift = store.drift(arguments.name, arguments.since)
    print_display(drift.display())
    write_outputs(arguments, report=drift.report)
    return 1 if drift.notes else 0, lambda: {"findings": as_json(drift.notes)}
