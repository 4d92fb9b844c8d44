"""Commands about known and unknown loads: payload, torque-constants."""

from __future__ import annotations

import argparse
import json
from typing import Any

from feasid.cli import Answer
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.robot import ROBOT, read_robot
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError
from feasid.core.files import check_outputs, write_atomically
from feasid.core.notes import as_json
from feasid.options.spelling import as_arguments, spell_as_arguments
from feasid.options.tables import LoadOptions, LogOptions

WRIST = "applications.loads.wrist:payload_from_wrench"


@takes(
    word("loaded", "LOG", "with the load: CSV, Parquet, NPZ, bags, reduced", nargs="+"),
    word("--without", "LOG", "the same without it", nargs="+"),
    word("--sensor", "FX,FY,FZ,TX,TY,TZ",
         "instead: columns of a wrist sensor, force and moment that it exerts on the load"),
    parameters_of(WRIST, "calibration"),
    *ROBOT,
    word("--body", "NAME", "body or link that carries the load; default the last body"),
    word("--controller", "MAKER", "print it as franka, ur, kuka, kinova or ros2 wants it"),
    word("--out", "JSON", "write the load's parameters here"),
    flag("--overwrite", "replace an existing output file"),
    flag("--force", "print --controller also for a doubtful load"),
    options_of(LoadOptions),
)  # fmt: skip
def run_payload(arguments: argparse.Namespace) -> Answer:
    """Identify a tool or load, from a log with it and one without, or from a wrist sensor."""
    if bool(arguments.without) == bool(arguments.sensor):
        raise InputError("a load needs a log without it, --without, or the columns of a --sensor")
    if arguments.without and arguments.calibration:
        raise InputError("--calibration needs --sensor")
    inputs = [*arguments.loaded, *(arguments.without or ()), arguments.robot]
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    options = read_options(arguments, LoadOptions, "feasid payload")
    from feasid.applications.loads.controllers import require_maker
    from feasid.applications.loads.payload import WRITTEN, payload
    from feasid.applications.loads.wrist import payload_from_wrench
    from feasid.identification.regression.reduce import open_sources
    from feasid.options.complete import check_options

    if arguments.sensor:
        options = check_options(LogOptions, options, "feasid payload --sensor")
    if arguments.controller:
        require_maker(arguments.controller)
    robot = read_robot(arguments)
    if arguments.sensor:
        if len(arguments.loaded) > 1:
            raise InputError("--sensor takes one log")
        log, channels = arguments.loaded[0], arguments.sensor.split(",")
        options |= read_parameters(arguments, WRIST, "calibration")
        load = payload_from_wrench(log, robot, channels=channels, body=arguments.body, **options)
    else:
        logs = open_sources(arguments.loaded), open_sources(arguments.without)
        load = payload(*logs, robot, body=arguments.body, **options)
    values = {name: getattr(load, name) for name in WRITTEN}
    if load.sensor is not None:
        values["sensor"] = vars(load.sensor)
    print(load)  # also where a controller does not get it
    if arguments.controller:
        converted = load.to(arguments.controller, force=arguments.force)
        values["controller"] = dict(converted.values)
        print(converted)
    _write_json(arguments, values)
    return 0, lambda: values


@takes(
    word("logs", "LOG", "currents: CSV, Parquet, NPZ, bags, reduced", nargs="+"),
    word("--loaded", "LOG", "the same with a load that is known", nargs="+"),
    word("--load", "KG|JSON", "that load: its mass [kg], or a file with mass, centre [m] and, "
         "about it, inertia [kg m2] in the axes of the body that carries it, as feasid payload "
         "--out writes them"),
    *ROBOT,
    word("--body", "NAME", "body with the load; default the file's, or the last body"),
    word("--out", "JSON", "write the factors here, by column"),
    flag("--overwrite", "replace an existing output file"),
    options_of(LoadOptions),
)  # fmt: skip
def run_torque_constants(arguments: argparse.Namespace) -> Answer:
    """Torque per unit of motor current, per joint, from logs whose torque columns hold currents."""
    if bool(arguments.loaded) != bool(arguments.load):
        raise InputError(
            "a known load needs both --loaded (logs with it) and --load (its parameters)"
        )
    inputs = [*arguments.logs, *(arguments.loaded or ()), arguments.load, arguments.robot]
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    options = read_options(arguments, LoadOptions, "feasid torque-constants")
    from feasid.applications.loads.torque_constants import read_load, torque_constants
    from feasid.identification.regression.reduce import open_sources

    load, body = read_load(arguments.load) if arguments.load else (None, None)
    if arguments.body and body and body != arguments.body:
        raise InputError(
            f"{arguments.load} describes a load at {body!r}, not --body {arguments.body!r}"
        )
    robot = read_robot(arguments)
    estimate = torque_constants(
        open_sources(arguments.logs),
        robot,
        loaded=open_sources(arguments.loaded) if arguments.loaded else None,
        load=load,
        body=arguments.body or body,
        **options,
    )
    print(spell_as_arguments(str(estimate)))
    _write_json(arguments, estimate.units)
    if estimate.units:
        units = {column: float(f"{k:.6g}") for column, k in estimate.units.items()}
        print(f"fit these logs with {as_arguments({'units': units})}")
    rows = zip(estimate.joints, estimate.constants, estimate.deviations, strict=True)
    return 0, lambda: {
        "constants": [{"joint": j, "constant": k, "deviation": s} for j, k, s in rows],
        "units": estimate.units,
    }


def _write_json(arguments: argparse.Namespace, values: Any) -> None:
    """Write what was identified to ``--out``."""
    if arguments.out:
        text = json.dumps(as_json(values), indent=1).encode()
        write_atomically(arguments.out, text, overwrite=arguments.overwrite)
        print(f"wrote {arguments.out}")
