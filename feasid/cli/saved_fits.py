"""Commands on a saved fit: show, errors, predict, ranges, report, sample, export."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli.options import add_options, argument_name, read_options
from feasid.cli.output import (
    add_output,
    errors_as_data,
    fit_as_data,
    print_display,
    print_json,
    redirect_sentences,
    spell_as_arguments,
)
from feasid.core.errors import InputError
from feasid.core.files import check_outputs, with_ending, write_atomically
from feasid.options.tables import RangeOptions

if TYPE_CHECKING:
    from feasid.identification.uncertainty.ranges import ParameterRanges

MAX_REPORT_FITS = 2  #: Fits on one report page.


def _load(path: str) -> Any:
    """A saved fit; what reads it is imported only then."""
    from feasid.applications.load import load

    return load(path)


def add_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid show``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument("--verbose", action="store_true", help="also tables and notes")
    add_output(parser)


CERTIFICATE = {
    True: "its certificate holds",
    False: "its certificate does not hold",
    None: "it was saved without a certificate: no proof of it was found",
}


def run_show(arguments: argparse.Namespace) -> int:
    """Show a saved fit: at a glance, as it showed itself, and whether its proof holds."""
    model = _load(arguments.model)
    holds = None if model.certificate is None else model.certificate.holds()
    if arguments.json:
        print_json(
            "show", fit_as_data(model) | {"certificate_holds": holds, "made": dict(model.made)}
        )
    else:
        print_display(replace(model.display(), more=""))
        text = f"\n{model.summary()}" if arguments.verbose else model.version_line
        print(spell_as_arguments(text))
        print(CERTIFICATE[holds])
    return {True: 0, False: 1, None: 3}[holds]


def add_errors_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid errors``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs with torques")
    add_output(parser)


def run_errors(arguments: argparse.Namespace) -> int:
    """Relative torque errors of a saved fit on logs, per joint and over all of them."""
    model = _load(arguments.model)
    found = {log: model.errors(log) for log in arguments.logs}
    if arguments.json:
        print_json("errors", {"errors": {log: errors_as_data(e) for log, e in found.items()}})
        return 0
    import pandas as pd

    table = 100 * pd.DataFrame({"fitted": model.relative_error, **found}).rename_axis(None)
    print(table.to_string(float_format="{:.2f}%".format))
    for log, errors in found.items():
        if errors.attrs.get("leakage"):
            print(f"{log}: {errors.attrs['leakage']}")
    if len(arguments.logs) > 1:
        from feasid.identification.prediction import compare_sources
        from feasid.identification.regression.reduce import open_sources

        compared, notes = compare_sources(model, open_sources(arguments.logs))
        print("\n".join(["", *([] if compared is None else [str(compared)]), *map(str, notes)]))
    return 0


def add_predict_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid predict``."""
    add = parser.add_argument
    add("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    add("log", metavar="LOG", help="positions at least")
    add("--out", required=True, metavar="CSV", help="write the torques here")
    add_output(parser, "replace an output that exists")


def run_predict(arguments: argparse.Namespace) -> int:
    """Joint torques that a saved fit predicts for the motion of a log, as CSV."""
    inputs = arguments.model, arguments.log
    check_outputs({"--out": arguments.out}, inputs, overwrite=arguments.overwrite)
    torques = _load(arguments.model).predict(arguments.log)
    content = torques.to_csv(index_label="row", float_format="%.9g").encode()
    write_atomically(arguments.out, content, overwrite=arguments.overwrite)
    if arguments.json:
        wrote = {"out": arguments.out, "rows": len(torques), "columns": list(torques.columns)}
        print_json("predict", wrote)
    else:
        print(f"wrote {arguments.out}: {len(torques)} rows of {', '.join(torques.columns)}")
    return 0


def add_simulate_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid simulate``."""
    add = parser.add_argument
    add("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    add("log", metavar="LOG", help="with torques, or with commands cmd_<joint>")
    add("--robot", metavar="FILE", help="simulate this file in place of the fitted model")
    add("--horizon", metavar="S,S", help="lengths of the windows [s]; default 0.1,0.3")
    add("--command", metavar="{position}", help="what the columns cmd_<joint> are")
    add("--kp", metavar="N,N", help="the servos' gains, one or one per joint [N m/rad]")
    add("--kd", metavar="N,N", help="their damping, one or one per joint [N m s/rad]")
    add("--delay", metavar="S", help="delay between the row of a command and its effect [s]")
    add_output(parser)


def run_simulate(arguments: argparse.Namespace) -> int:
    """Simulate windows of a log by a saved fit and by its description with fitted friction."""
    given: dict[str, Any] = _parse_numbers(arguments, ("horizon", "kp", "kd", "delay"))
    given |= {name: x[0] for name, x in given.items() if name != "horizon" and len(x) == 1}
    robot, command = arguments.robot, arguments.command
    found = _load(arguments.model).simulate(arguments.log, robot=robot, command=command, **given)
    if arguments.json:
        rows = found.table.reset_index().to_dict("records")
        print_json("simulate", {"verdict": found.verdict, "windows": found.windows, "rows": rows})
    else:
        print_display(found.display())
        print(found.table.to_string(float_format=lambda x: f"{x:.4g}"))
    return 0


def _parse_numbers(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, list[float]]:
    """The numbers of those of these arguments that were typed."""
    typed = ((name, getattr(arguments, name)) for name in names)
    numbers = {}
    for name, text in ((name, text) for name, text in typed if text is not None):
        try:
            numbers[name] = [float(x) for x in text.split(",")]
        except ValueError:
            option = argument_name(name)
            raise InputError(f"{option} needs numbers such as 0.1,0.3, not {text!r}") from None
    return numbers


def add_ranges_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid ranges``."""
    parser.add_argument("model", metavar="MODEL.feasid", help="what feasid fit --save wrote")
    forms = "such as forearm.m or 'forearm.m + 2 hand.m'; default all standard parameters"
    parser.add_argument("parameters", nargs="*", metavar="PARAMETER", help=forms)
    add_output(parser)
    add_options(parser, RangeOptions)


def run_ranges(arguments: argparse.Namespace) -> int:
    """The values that parameters have over all models that exist and fit the log, ends proved."""
    options = read_options(arguments, RangeOptions, "feasid ranges")
    found = _load(arguments.model).ranges(arguments.parameters or None, **options)
    if arguments.json:
        print_json("ranges", ranges_as_data(found))
    else:
        print(found.explain())
    return 0


RANGE = ("value", "lower", "upper", "marks", "mark", "limited")
"""What ``--json`` has of a range besides its name."""


def ranges_as_data(found: ParameterRanges) -> dict[str, Any]:
    """Ranges for ``--json``; null for an end that nothing determines."""
    return {
        "level": found.level,
        "budget": found.budget,
        "ranges": [{"parameter": r.name, **{k: getattr(r, k) for k in RANGE}} for r in found],
        "notes": [str(n) for n in found.notes],
    }


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid report``."""
    add = parser.add_argument
    add(
        "models", metavar="MODEL.feasid", nargs="+", help="what feasid fit --save wrote: one or two"
    )
    add("--log", metavar="LOG", action="append", default=[], help="draw this log's torques, too")
    add("--out", metavar="HTML", default="report.html", help="default report.html")
    add_output(parser, "replace an existing file")


def run_report(arguments: argparse.Namespace) -> int:
    """The report of a saved fit as an HTML page, or of two fits side by side."""
    if len(arguments.models) > MAX_REPORT_FITS:
        raise InputError(f"a page shows one fit or two, not {len(arguments.models)}")
    check_outputs({"--out": arguments.out}, arguments.models, overwrite=arguments.overwrite)
    from feasid.identification.regression.reduce import open_sources
    from feasid.results.report.contents import report_contents
    from feasid.results.report.page import write_report_contents

    logs = open_sources(arguments.log) if arguments.log else []
    contents = [report_contents(_load(path), fitted=logs) for path in arguments.models]
    write_report_contents(contents, arguments.out, overwrite=arguments.overwrite)
    with redirect_sentences(arguments.json):
        print(f"wrote {arguments.out}")
    if arguments.json:
        print_json("report", {"out": arguments.out, "reports": contents})
    return 0


DEVIATIONS = {
    "mass": "relative standard deviation of masses around a description; default 0.1",
    "density": "of a factor on mass and inertia alike; default 0",
    "centre": "standard deviation of each body's place along each axis [m]; default 0",
    "joint_terms": "relative standard deviation of joint terms; default 0",
}
"""Options of `feasid.sample` around a description."""


def add_sample_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid sample``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="MODEL.feasid of feasid fit --save; URDF, MJCF, SDF, USD")
    add("--count", type=int, default=100, metavar="N", help="robots; default 100")
    add("--out", required=True, metavar="FOLDER", help="write a model file of each here")
    add("--pattern", metavar="NAME", help="of the files; default robot_{:03} in the own format")
    add("--seed", type=int, default=0, metavar="N", help="default 0")
    add("--scale", metavar="X", help="factor on the log's standard errors; default 1")
    for name, text in DEVIATIONS.items():
        add(argument_name(name), metavar="X", help=text)
    add_output(parser, "replace files that exist")


def run_sample(arguments: argparse.Namespace) -> int:
    """Draw robots from the uncertainty of a saved fit, and write each to its own file.

    From a description file, robots around it: valid domain randomisation without a log.
    """
    saved = Path(arguments.model).suffix == ".feasid"
    around = tuple(DEVIATIONS)
    known, refused = (("scale",), around) if saved else (around, ("scale",))
    numbers = _parse_numbers(arguments, (*known, *refused))
    given = {name: entries[0] for name, entries in numbers.items()}
    if wrong := [name for name in refused if name in given]:
        what = "a saved fit, whose log decides" if saved else "a description, which has no log"
        raise InputError(f"{argument_name(wrong[0])} has no effect on {what}")
    if saved:
        found = _load(arguments.model).sample(arguments.count, seed=arguments.seed, **given)
    else:
        from feasid.results.export.samples import sample
        from feasid.robot.formats.load import load_robot

        found = sample(load_robot(arguments.model), arguments.count, seed=arguments.seed, **given)
    from feasid.robot.formats.registry import FORMATS

    name = found.robot.source.format if found.robot.source is not None else ""
    ending = FORMATS[name].suffixes[0] if name in FORMATS else ".urdf"
    pattern = arguments.pattern or f"robot_{{:03}}{ending}"
    files = found.write(arguments.out, pattern, overwrite=arguments.overwrite)
    if arguments.json:
        least = found.least_effective
        print_json("sample", {"files": files, "effective": least, "acceptance": found.acceptance})
    else:
        print(f"{found}\nwrote {files[0]} to {files[-1]}")
    return 0


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid export``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="MODEL.feasid of feasid fit --save; URDF, MJCF, SDF, USD")
    add("--c", required=True, metavar="FILE.c", help="write the code here")
    add("--float", action="store_true", help="single precision")
    folded = "functions take the base parameters as an argument; default folded into the code"
    add("--argument", action="store_true", help=folded)
    add_output(parser, "replace files that exist")


def run_export(arguments: argparse.Namespace) -> int:
    """The model as C99 code: inverse dynamics, gravity, friction, mass matrix, base regressor.

    The header is written to the folder of the source. Functions are named after the file: arm.c has
    arm_inverse_dynamics(q, dq, ddq, tau); arm_self_test() runs all of them on vectors in the file.
    """
    target = Path(arguments.c)
    outputs = {"the source": target, "its header": with_ending(target, ".h")}
    check_outputs(outputs, [arguments.model], overwrite=arguments.overwrite)
    from feasid.results.codegen.c import export_c
    from feasid.robot.formats.load import load_robot

    saved = Path(arguments.model).suffix == ".feasid"
    robot = _load(arguments.model).robot if saved else load_robot(arguments.model)
    code = export_c(robot, target, precision="float" if arguments.float else "double",
                    parameters="argument" if arguments.argument else "values",
                    overwrite=arguments.overwrite)  # fmt: skip
    if arguments.json:
        routines = {r.name: asdict(r.operations) for r in code.routines}
        print_json(
            "export", {"source": target, "header": target.with_suffix(".h"), "operations": routines}
        )
        return 0
    print(f"wrote {target} and {target.with_suffix('.h')}")
    for routine in code.routines:
        count = routine.operations
        print(
            f"  {code.name}_{routine.name:17} {count.multiplications:5} multiplications "
            f"{count.additions:5} additions {count.functions:3} functions"
        )
    return 0
