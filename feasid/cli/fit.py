"""The commands ``fit`` and ``demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli import Answer
from feasid.cli.beta import save_certificate
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.output import fit_as_data, print_display
from feasid.cli.robot import ROBOT, read_robot
from feasid.cli.saved_fits import ranges_as_data
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError, require
from feasid.core.files import check_outputs, with_ending, write_atomically
from feasid.core.progress import step
from feasid.core.text import in_percent
from feasid.options.spelling import argument_name, spell_as_arguments
from feasid.options.tables import FitOptions
from feasid.robot.formats.sidecar import sidecar_path

if TYPE_CHECKING:
    from feasid.results.fit import Fit

WRITE = "results.fit:Fit.write"

OUTPUTS = ("out", "save", "report", "parameters", "certificate", "optimality")

FREQUENT = (
    *("help", "logs", "robot", "lock", "out", "save", "report", "test", "json", "verbose"),
    *("overwrite", "columns", "units", "cutoff", "nan", "friction", "couplings", "prior_weight"),
    *("robust", "mass", "total_mass", "command"),
)
"""Arguments that ``feasid fit --help`` shows."""

EXIT_USELESS = 5  #: Exit status of a fit that is useless and was not written.

MORE = "more: --verbose, --report FILE.html, --save FILE.feasid, feasid explain CODE [in brackets]"

NOTHING_WRITTEN = (
    "feasid: nothing was written; fix the log (feasid diagnose reports how), or write it all the "
    "same with --force"
)


@takes(
    word("logs", "LOG", "CSV, Parquet, NPZ, bags, reduced", nargs="+"),
    word("--without", "LOG", "leave these logs out of the fit", nargs="+"),
    *ROBOT,
    word("--out", "FILE", "write the identified robot"),
    word("--verify-with", None, "replay the log in this program", action="append",
         choices=("pinocchio", "mujoco")),
    word("--save", "FILE.feasid", "save the fit, for feasid show, errors, predict"),
    parameters_of(WRITE, "offset_origin for_"),
    word("--extensions", None, "extension elements in a written URDF", nargs="+", default=(),
         choices=("drake", "mujoco")),
    flag("--verbose", "print coefficient tables and notes, too"),
    flag("--ranges", "certified range of each parameter"),
    word("--test", "LOG", "compute errors on this log, which is not fitted", action="append"),
    word("--report", "HTML", "write a report page"),
    word("--parameters", "CSV", "write the base parameters"),
    word("--certificate", "JSON", "write the certificate of physical consistency"),
    word("--optimality", "JSON", "write the certificate that no consistent model fits much better"),
    flag("--overwrite", "replace existing output files"),
    flag("--force", "write the model even if it is useless"),
    options_of(FitOptions, FREQUENT),
)  # fmt: skip
def run_fit(arguments: argparse.Namespace) -> Answer:
    """Identify a robot's dynamic parameters from logs, feasibly, and write them back."""
    logs, without = arguments.logs, arguments.without or ()
    for name in without:
        if not any(name in (log, Path(log).name) for log in logs):
            raise InputError(f"--without {name}: no such log among {', '.join(logs)}")
    arguments.logs = [x for x in logs if not {x, Path(x).name}.intersection(without)]
    if logs and not arguments.logs:
        raise InputError("--without leaves no log to fit")
    # That all outputs can be written is checked before anything is read.
    outputs: dict[str, Any] = {f"--{name}": getattr(arguments, name) for name in OUTPUTS}
    if arguments.out:
        outputs["the sidecar of --out"] = sidecar_path(arguments.out)
    if arguments.report:
        outputs["the numbers of --report"] = with_ending(arguments.report, ".json")
    inputs = *arguments.logs, arguments.robot, sidecar_path(arguments.robot)
    check_outputs(outputs, [*inputs, *(arguments.test or ())], overwrite=arguments.overwrite)
    if arguments.report:
        require("writing a report", "report", "jinja2")
    for option in ("verify_with", "offset_origin", "extensions", "for_"):
        if getattr(arguments, option) and not arguments.out:
            raise InputError(f"{argument_name(option)} requires a written file: name it with --out")
    options = read_options(arguments, FitOptions, "feasid fit")
    how = read_parameters(arguments, WRITE, "offset_origin for_")
    how |= {"extensions": arguments.extensions, "overwrite": arguments.overwrite}
    from feasid.identification.regression.reduce import open_sources
    from feasid.results.export.robot_file import reason_not_to_write
    from feasid.results.fit import fit

    robot = read_robot(arguments)
    if options.get("command"):
        from feasid.identification.servos.prior import describe_factors

        weighed = any(options.get(name) for name in ("gains", "moments", "loaded"))
        lines = describe_factors(robot)[: 1 if weighed else None]
        print("\n".join(spell_as_arguments(line) for line in lines), flush=True)
    result = fit(arguments.logs, robot, **options)
    # Opened once, for the errors, the written file and the page.
    tests = open_sources(arguments.test) if arguments.test else []
    errors = result.errors(tests) if tests else None
    print_display(replace(result.display(errors), more=MORE))
    if arguments.verbose:
        print(f"\n{spell_as_arguments(str(result.summary(test=errors)))}")
    if arguments.ranges:
        print(f"\n{result.ranges().explain()}")

    def data() -> dict[str, Any]:
        answer = fit_as_data(result)
        answer["errors"] |= {} if errors is None else {"test": errors.to_dict()}
        answer["quality"] = {"level": result.quality.level, "reasons": result.quality.reasons}
        answer["uses"] = result.uses.reset_index().to_dict("records")
        return answer | ({"ranges": ranges_as_data(result.ranges())} if arguments.ranges else {})

    useless = reason_not_to_write(result.quality)
    if useless and not arguments.force:
        reason = spell_as_arguments(useless)
        print(f"feasid: this fit is useless: {reason}\n{NOTHING_WRITTEN}", file=sys.stderr)
        return EXIT_USELESS, data
    _write_results(result, arguments, tests or None, how)
    return 0, data


def _write_results(
    result: Fit, arguments: argparse.Namespace, test: Any, how: Mapping[str, Any]
) -> None:
    if arguments.out:
        # The caller has rejected a useless fit already, unless it was forced.
        written = result.write(arguments.out, test=test, force=True, **how)
        print(f"\n{spell_as_arguments(str(written))}")
        for client in arguments.verify_with or ():
            errors = result.verify(arguments.out, client, test).loc["all"]
            print(f"{client} reads it: error {100 * errors[client]:.2f}%")
    if arguments.parameters:
        content = result.base_table.to_csv(float_format="%.17g").encode()
        write_atomically(arguments.parameters, content, overwrite=arguments.overwrite)
        print(f"wrote {arguments.parameters}")
    if arguments.certificate:
        save_certificate(result.certificate, arguments.certificate, arguments.overwrite)
    if arguments.optimality:
        with step("proving that nothing fits much better"):
            proof = result.optimality
        save_certificate(proof, arguments.optimality, arguments.overwrite)
    if arguments.save:
        result.save(arguments.save, overwrite=arguments.overwrite)
        print(f"wrote {arguments.save}: see feasid show, feasid errors, feasid predict")
    if arguments.report:
        result.report(
            arguments.report, test=test, command=arguments.typed, overwrite=arguments.overwrite
        )
        print(f"wrote {arguments.report}, and its numbers to a JSON file of the same name")


ABOUT = """\
A Kinova Gen3 arm: three runs of 9 s in all, and its URDF.
Three models of it, judged on motion that they were not fitted to:
"""


@takes(
    word("--out", "FILE", "URDF, MJCF or SDF", default="kinova_identified.xml"),
    flag("--overwrite", "replace existing files"),
)
def run_demo(arguments: argparse.Namespace) -> Answer:
    """Fit a real log inside the package, of a Kinova Gen3 arm, and compare the model with two
    others: its URDF, and least squares without constraints.
    """
    report = with_ending(arguments.out, ".html") if find_spec("jinja2") else None
    outputs = {"--out": arguments.out, "its report": report}
    check_outputs(outputs, (), overwrite=arguments.overwrite)
    from feasid import datasets
    from feasid.results.fit import fit
    from feasid.results.report.robots import compare_models

    result = fit(datasets.load("kinova_gen3"))
    models = compare_models(result)
    print(f"{ABOUT}\n{models.to_string(formatters={'torque error': in_percent})}\n")
    print_display(replace(result.display(), more="more: feasid explain CODE [in brackets]"))
    result.write(arguments.out, overwrite=arguments.overwrite)
    print(f"\nwrote {arguments.out}: read back and verified in exact arithmetic")
    if report:
        result.report(report, command=arguments.typed, overwrite=arguments.overwrite)
        print(f"wrote {report}: open it in a browser to see the three models")
    rows = models.reset_index(names="model").to_dict("records")
    return 0, lambda: {**fit_as_data(result), "out": arguments.out, "models": rows}
