"""Keep reduced logs by robot and day, name what drifts, and fit the logs of a robot."""

from __future__ import annotations

import argparse
from typing import Any

from feasid.cli.options import add_options, add_robot_arguments, read_options, read_robot
from feasid.cli.output import add_output, fit_as_data, print_display, print_json, redirect_sentences
from feasid.core.errors import InputError
from feasid.core.files import check_outputs
from feasid.core.notes import as_json
from feasid.options.complete import select_options
from feasid.options.tables import FitOptions, ReduceOptions

NEEDS = {"add": ("name", "logs"), "drift": ("name",), "fit": ("name",), "list": ()}
"""Arguments that an action cannot do without."""

TAKES = {"add": ("day", "compact"), "drift": ("since", "report"), "fit": ("since", "save")}
"""Further arguments of an action."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid store``."""
    add = parser.add_argument
    add("action", choices=[*NEEDS], help="what to do with the store")
    add("store", metavar="STORE", help="its folder")
    add("logs", nargs="*", metavar="LOG", help="add: files, folders or patterns")
    add_robot_arguments(parser)
    add("--name", metavar="NAME", help="the robot that was logged, such as its serial number")
    add("--day", metavar="DAY", help="add: day of the logs, 2026-11-28; default today (UTC)")
    add("--compact", action="store_true", help="add: without folds, a tenth of the bytes")
    add("--since", metavar="DAY", help="drift, fit: first day")
    add("--report", metavar="HTML", help="drift: write a page here")
    add("--save", metavar="FILE.feasid", help="fit: keep the fit")
    add_output(parser, "replace existing output files")
    add_options(parser, FitOptions)


def run(arguments: argparse.Namespace) -> int:
    """Add logs, print a robot's drift (status 1 where something stands out), or fit its logs."""
    action = arguments.action
    for name in NEEDS[action]:
        if not getattr(arguments, name):
            raise InputError(f"feasid store {action} needs {_spell(name)}", option=name)
    used = {*NEEDS[action], *TAKES.get(action, ())}
    for name in {name for names in (*NEEDS.values(), *TAKES.values()) for name in names} - used:
        if getattr(arguments, name):
            raise InputError(f"feasid store {action} needs no {_spell(name)}", option=name)
    outputs = {"--report": arguments.report, "--save": arguments.save}
    check_outputs(outputs, [arguments.robot], overwrite=arguments.overwrite)
    options = read_options(arguments, FitOptions, "feasid store")
    robot = read_robot(arguments)
    from feasid.applications.fleet.store import LogStore

    store = LogStore(arguments.store, robot, **select_options(ReduceOptions, options))
    if action in ("add", "list"):
        if action == "add":
            day, how = arguments.day, arguments.compact
            files = store.add(arguments.logs, arguments.name, day, compact=how)
            data: dict[str, Any] = {"files": [str(file) for file in files]}
            text = f"added {len(files)} log(s) of {arguments.name} to {arguments.store}"
        else:
            table = store.table.astype({"day": str})
            data, text = {"logs": table.to_dict("records")}, table.to_string(index=False)
        if arguments.json:
            print_json("store", data)
        else:
            print(text)
        return 0
    if action == "fit":
        fitted = store.fit(arguments.name, arguments.since, **options)
    else:
        drift = store.drift(arguments.name, arguments.since)
    if arguments.json:
        notes = {} if action == "fit" else {"findings": as_json(drift.notes)}
        print_json("store", notes or fit_as_data(fitted))
    else:
        print_display(fitted.display() if action == "fit" else drift.display())
    with redirect_sentences(arguments.json):
        if arguments.save:
            fitted.save(arguments.save, overwrite=arguments.overwrite)
            print(f"wrote {arguments.save}")
        if arguments.report:
            drift.report(arguments.report, overwrite=arguments.overwrite)
            print(f"wrote {arguments.report}")
    return 1 if action == "drift" and drift.notes else 0


def _spell(name: str) -> str:
    """An argument as it is given."""
    return "LOG" if name == "logs" else f"--{name}"
