"""Commands on a saved fit: show, errors, predict, ranges, report, sample, export."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli import Answer
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.output import fit_as_data, print_display
from feasid.cli.robot import SAVED, open_robot
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError
from feasid.core.files import check_outputs, with_ending, write_atomically
from feasid.options.spelling import argument_name, spell_as_arguments
from feasid.options.tables import RangeOptions

if TYPE_CHECKING:
    from feasid.identification.uncertainty.ranges import ParameterRanges

MAX_REPORT_FITS = 2  #: Fits on one report page.


def _load(path: str) -> Any:
    """A saved fit; what reads it is imported only then."""
    from feasid.applications.load import load

    return load(path)


MODEL = word("model", "MODEL.feasid", "what feasid fit --save wrote")


CERTIFICATE = {
    True: "its certificate holds",
    False: "its certificate does not hold",
    None: "it was saved without a certificate: no proof of it was found",
}


@takes(MODEL, flag("--verbose", "also tables and notes"))
def run_show(arguments: argparse.Namespace) -> Answer:
    """Show a saved fit: at a glance, as it showed itself, and whether its proof holds."""
    model = _load(arguments.model)
    holds = None if model.certificate is None else model.certificate.holds()
    print_display(replace(model.display(), more=""))
    print(spell_as_arguments(f"\n{model.summary()}" if arguments.verbose else model.version_line))
    print(CERTIFICATE[holds])
    return {True: 0, False: 1, None: 3}[holds], lambda: {
        **fit_as_data(model),
        "certificate_holds": holds,
        "made": dict(model.made),
    }


@takes(MODEL, word("logs", "LOG", "logs with torques", nargs="+"))
def run_errors(arguments: argparse.Namespace) -> Answer:
    """Relative torque errors of a saved fit on logs, per joint and over all of them."""
    model = _load(arguments.model)
    errors_by_log = {log: model.errors(log) for log in arguments.logs}
    import pandas as pd

    table = 100 * pd.DataFrame({"fitted": model.relative_error, **errors_by_log}).rename_axis(None)
    print(table.to_string(float_format="{:.2f}%".format))
    for log, errors in errors_by_log.items():
        leakage = errors.attrs.get("leakage")
        for text in (*([leakage] if leakage else []), *errors.attrs.get("notes", ())):
            print(f"{log}: {text}")
    if len(arguments.logs) > 1:
        from feasid.identification.prediction import compare_sources
        from feasid.identification.regression.reduce import open_sources

        compared, notes = compare_sources(model, open_sources(arguments.logs))
        print("\n".join(["", *([] if compared is None else [str(compared)]), *map(str, notes)]))
    return 0, lambda: {"errors": {log: e.to_dict() for log, e in errors_by_log.items()}}


@takes(
    MODEL,
    word("log", "LOG", "positions at least"),
    word("--out", "CSV", "write the torques here", required=True),
    flag("--overwrite", "replace an output that exists"),
)
def run_predict(arguments: argparse.Namespace) -> Answer:
    """Joint torques that a saved fit predicts for the motion of a log, as CSV."""
    out, inputs = arguments.out, (arguments.model, arguments.log)
    check_outputs({"--out": out}, inputs, overwrite=arguments.overwrite)
    torques = _load(arguments.model).predict(arguments.log)
    content = torques.to_csv(index_label="row", float_format="%.9g").encode()
    write_atomically(out, content, overwrite=arguments.overwrite)
    columns = list(torques.columns)
    lines = [f"wrote {out}: {len(torques)} rows of {', '.join(columns)}", *torques.attrs["notes"]]
    print(*lines, sep="\n")
    return 0, lambda: {"out": out, "rows": len(torques), "columns": columns}


METHOD = "results.fit:Fit.simulate"
FUNCTION = "identification.assessment.simulation:simulate"


@takes(
    MODEL,
    word("log", "LOG", "with torques, or with commands cmd_<joint>"),
    parameters_of(METHOD, "robot horizon command kp kd"),
    parameters_of(FUNCTION, "delay"),
)
def run_simulate(arguments: argparse.Namespace) -> Answer:
    """Simulate windows of a log by a saved fit and by its description with fitted friction."""
    parameters = read_parameters(arguments, METHOD, "robot horizon command kp kd")
    parameters |= read_parameters(arguments, FUNCTION, "delay")
    comparison = _load(arguments.model).simulate(arguments.log, **parameters)
    print_display(comparison.display())
    print(comparison.table.to_string(float_format=lambda x: f"{x:.4g}"))
    return 0, lambda: {
        "verdict": comparison.verdict,
        "windows": comparison.windows,
        "rows": comparison.table.reset_index().to_dict("records"),
    }


@takes(
    MODEL,
    word("parameters", "PARAMETER",
         "such as forearm.m or 'forearm.m + 2 hand.m'; default all standard parameters", nargs="*"),
    options_of(RangeOptions),
)  # fmt: skip
def run_ranges(arguments: argparse.Namespace) -> Answer:
    """The values that parameters have over all models that exist and fit the log, ends proved."""
    options = read_options(arguments, RangeOptions, "feasid ranges")
    ranges = _load(arguments.model).ranges(arguments.parameters or None, **options)
    print(ranges.explain())
    return 0, lambda: ranges_as_data(ranges)


RANGE = ("value", "lower", "upper", "marks", "mark", "limited")
"""What ``--json`` has of a range besides its name."""


def ranges_as_data(ranges: ParameterRanges) -> dict[str, Any]:
    """Ranges for ``--json``; null for an end that nothing determines."""
    return {
        "level": ranges.level,
        "budget": ranges.budget,
        "ranges": [{"parameter": r.name, **{k: getattr(r, k) for k in RANGE}} for r in ranges],
        "notes": [str(n) for n in ranges.notes],
    }


@takes(
    word("models", "MODEL.feasid", "what feasid fit --save wrote: one or two", nargs="+"),
    word("--log", "LOG", "draw this log's torques, too", action="append", default=[]),
    word("--out", "HTML", "default report.html", default="report.html"),
    flag("--overwrite", "replace an existing file"),
)
def run_report(arguments: argparse.Namespace) -> Answer:
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
    print(f"wrote {arguments.out}")
    return 0, lambda: {"out": arguments.out, "reports": contents}


OF_FIT = "results.fit:Fit.sample", "count seed scale"
OF_DESCRIPTION = "results.export.samples:sample", "count seed mass density centre joint_terms"


@takes(
    word("model", "MODEL", "MODEL.feasid of feasid fit --save; URDF, MJCF, SDF, USD"),
    word("--out", "FOLDER", "write a model file of each here", required=True),
    word("--pattern", "NAME", "of the files; default robot_{:03} in the own format"),
    flag("--overwrite", "replace files that exist"),
    parameters_of(*OF_FIT),
    parameters_of(OF_DESCRIPTION[0], "mass density centre joint_terms"),
)
def run_sample(arguments: argparse.Namespace) -> Answer:
    """Draw robots from the uncertainty of a saved fit, and write each to its own file.

    From a description file, robots around it: valid domain randomisation without a log.
    """
    saved = arguments.model.endswith(SAVED)
    takes, others = (OF_FIT, OF_DESCRIPTION) if saved else (OF_DESCRIPTION, OF_FIT)
    for name in others[1].split():
        if name not in takes[1].split() and getattr(arguments, name) is not None:
            what = "a saved fit, whose log decides" if saved else "a description, which has no log"
            raise InputError(f"{argument_name(name)} has no effect on {what}")
    parameters = {"count": 100, **read_parameters(arguments, *takes)}
    if saved:
        samples = _load(arguments.model).sample(**parameters)
    else:
        from feasid.results.export.samples import sample

        samples = sample(open_robot(arguments.model), **parameters)
    from feasid.robot.formats.registry import FORMATS

    name = samples.robot.source.format if samples.robot.source is not None else ""
    ending = FORMATS[name].suffixes[0] if name in FORMATS else ".urdf"
    pattern = arguments.pattern or f"robot_{{:03}}{ending}"
    files = samples.write(arguments.out, pattern, overwrite=arguments.overwrite)
    print(f"{samples}\nwrote {files[0]} to {files[-1]}")
    return 0, lambda: {
        "files": files,
        "effective": samples.least_effective,
        "acceptance": samples.acceptance,
    }


@takes(
    word("model", "MODEL", "MODEL.feasid of feasid fit --save; URDF, MJCF, SDF, USD"),
    word("--c", "FILE.c", "write the code here", required=True),
    flag("--float", "single precision"),
    flag("--argument",
         "functions take the base parameters as an argument; default folded into the code"),
    flag("--overwrite", "replace files that exist"),
)  # fmt: skip
def run_export(arguments: argparse.Namespace) -> Answer:
    """The model as C99 code: inverse dynamics, gravity, friction, mass matrix, base regressor.

    The header is written to the folder of the source. Functions are named after the file: arm.c has
    arm_inverse_dynamics(q, dq, ddq, tau); arm_self_test() runs all of them on vectors in the file.
    """
    target = Path(arguments.c)
    header = with_ending(target, ".h")
    outputs = {"the source": target, "its header": header}
    check_outputs(outputs, [arguments.model], overwrite=arguments.overwrite)
    from feasid.results.codegen.c import export_c

    robot = open_robot(arguments.model)
    code = export_c(robot, target, precision="float" if arguments.float else "double",
                    parameters="argument" if arguments.argument else "values",
                    overwrite=arguments.overwrite)  # fmt: skip
    print(f"wrote {target} and {header}")
    for routine in code.routines:
        count = routine.operations
        print(
            f"  {code.name}_{routine.name:17} {count.multiplications:5} multiplications "
            f"{count.additions:5} additions {count.functions:3} functions"
        )
    return 0, lambda: {
        "source": target,
        "header": header,
        "operations": {r.name: asdict(r.operations) for r in code.routines},
    }
