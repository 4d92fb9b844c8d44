"""Verdicts on description files and base parameters, and models side by side: check, compare."""

from __future__ import annotations

import argparse
import glob
import json
import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from feasid import __version__
from feasid.applications.inspection import file_check as reports
from feasid.applications.inspection.file_check import FileCheck, check_file
from feasid.applications.inspection.judge import FEASIBLE, INCONCLUSIVE, INFEASIBLE
from feasid.cli import Answer, beta
from feasid.cli.options import flag, takes, word
from feasid.cli.output import print_display
from feasid.cli.robot import robot_words
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import FeasidError, InputError
from feasid.core.files import check_outputs
from feasid.core.progress import step

WORST = ("error", INFEASIBLE, INCONCLUSIVE)

EXIT = {FEASIBLE: 0, INFEASIBLE: 1, "error": 2, INCONCLUSIVE: 3}


@takes(
    word("files", "FILE", "URDF, MJCF, SDF or USD, also as *.urdf", nargs="*"),
    word("--format", None, "how to print what was found (default text)", default="text",
         choices=("text", "json", "sarif", "github")),
    flag("--verbose", "one line per warning", "-v"),
    flag("--quiet", "only what is infeasible", "-q"),
    flag("--control", "also check mass matrix and base parameters"),
    flag("--bodies", "check moving bodies, not the links of each"),
    flag("--strict", "count bodies without mass or volume"),
    word("--report", "HTML", "also write a page: links in 3-D, causes and cures"),
    flag("--overwrite", "replace an existing page"),
    *beta.ARGUMENTS,
)  # fmt: skip
def run_check(arguments: argparse.Namespace) -> Answer:
    """Is this model possible? Judge every link of URDF, MJCF and SDF files in exact arithmetic.

    With --beta and --robot: are these base parameters feasible? With a proof.

    Exit status: 0 every link is feasible, 1 some are not, 2 a file cannot be read, 3 undecided.
    """
    if arguments.beta is not None:
        return _judge_beta(arguments)
    beta.refuse_arguments(arguments, bool(arguments.files), "links are judged without a solver")
    if arguments.bodies:
        return _judge_bodies(arguments)
    results: list[tuple[str, FileCheck | FeasidError]] = []
    paths = expand_patterns(arguments.files)
    check_outputs({"--report": arguments.report}, paths, overwrite=arguments.overwrite)
    with step("checking files") as advance:
        for path in paths:
            try:
                results.append((path, check_file(path, model=arguments.model or "")))
            except FeasidError as error:
                results.append((path, error))
            advance(len(results), len(paths))
    if arguments.report is not None:
        from feasid.applications.inspection.check_page import write_check_page

        write_check_page(results, arguments.report, overwrite=arguments.overwrite)
    findings = (finding for path, result in results for finding in reports.findings(result, path))
    if arguments.format == "sarif":
        print(json.dumps(reports.sarif_log(findings, __version__), indent=2))
    elif arguments.format == "github":
        print("".join(f"{line}\n" for line in reports.github_commands(findings)), end="")
    elif arguments.format == "text" and not arguments.json:
        _print_text(results, arguments)
    statuses = {_status_word(result, arguments) for _, result in results}
    return EXIT[next((s for s in WORST if s in statuses), FEASIBLE)], lambda: {
        "consistency": "full",
        "files": [_file_as_data(path, result, arguments.control) for path, result in results],
    }


def _judge_beta(arguments: argparse.Namespace) -> Answer:
    """Judge base parameters (--beta) instead of files."""
    if arguments.files:
        raise InputError(f"--beta requires --robot; remove {arguments.files[0]} from the arguments")
    check_outputs({"--certificate": arguments.certificate}, (arguments.beta, arguments.robot))
    from feasid.parameters.feasibility.check import check

    values, base = beta.read_values_and_base(arguments)
    verdict = check(values, base, consistency=arguments.consistency, solver=arguments.solver)
    # The call is for Python; what saves the certificate names the command.
    print(verdict.explain().replace(": verdict.certificate.verify()", ""))
    beta.save_certificate(verdict.certificate, arguments.certificate)
    if verdict.feasible is False:
        words = ["--beta", arguments.beta, *robot_words(arguments), "--out", "corrected.csv"]
        print(f"corrected by: feasid correct {shlex.join(words)}")
    statuses = {True: FEASIBLE, False: INFEASIBLE, None: INCONCLUSIVE}
    return EXIT[statuses[verdict.feasible]], lambda: {
        "robot": arguments.robot,
        "consistency": verdict.consistency,
        "feasible": verdict.feasible,
        "explained": verdict.explain(),
    }


def expand_patterns(patterns: Iterable[str]) -> list[str]:
    """File names; a pattern that the shell left alone is expanded here."""
    paths: list[str] = []
    for pattern in patterns:
        if os.path.exists(pattern) or not glob.has_magic(pattern):
            matches = [pattern]
        else:
            matches = sorted(glob.glob(pattern, recursive=True))
            if not matches:
                raise InputError(f"no file matches {pattern!r}", path=pattern)
        paths += [p for p in matches if p not in paths]
    return paths


def _judge_bodies(arguments: argparse.Namespace) -> Answer:
    """Check the moving bodies instead, each the sum of its links."""
    from feasid.applications.inspection.check_and_correct import check
    from feasid.robot.formats.load import load_robot

    others = [name for name in ("control", "strict", "report") if getattr(arguments, name)]
    if others or arguments.format not in ("text", "json"):
        name = others[0] if others else f"format {arguments.format}"
        raise InputError(f"--{name} applies to links: it has no effect with --bodies")
    statuses, answers = set(), []
    for path in expand_patterns(arguments.files):
        try:
            verdict = check(load_robot(path, model=arguments.model or ""))
        except FeasidError as error:
            print(f"{path}: {error}", file=sys.stderr)
            statuses.add("error")
            answers.append({"path": path, "status": "error", "error": str(error)})
        else:
            statuses.add(verdict.status)
            explanation = verdict.explain()
            answers.append({"path": path, "status": verdict.status, "explained": explanation})
            if not (arguments.quiet and verdict.feasible):
                print(f"{path}, moving bodies: {explanation}")
    status = EXIT[next((s for s in WORST if s in statuses), FEASIBLE)]
    return status, lambda: {"bodies": True, "files": answers}


def _status_word(result: FileCheck | FeasidError, arguments: argparse.Namespace) -> str:
    if isinstance(result, FeasidError):
        return "error"
    if arguments.strict and result.status not in WORST and result.weightless:
        return INFEASIBLE
    return result.status


Results = list[tuple[str, FileCheck | FeasidError]]


def _print_text(results: Results, arguments: argparse.Namespace) -> None:
    counts: dict[str, int] = {}
    for path, result in results:
        status = _status_word(result, arguments)
        counts[status] = counts.get(status, 0) + 1
        if isinstance(result, FeasidError):
            # Most errors name their file themselves.
            start = "" if str(result).startswith(path) else f"{path}: "
            print(f"{start}{result}", file=sys.stderr)
        elif status in WORST or not arguments.quiet:
            headline, *others = reports.report_lines(result, arguments.verbose)
            reduced = reports.describe_lost_freedom(result)
            print("\n".join([headline, *([f"  {reduced}"] if reduced else []), *others]))
            if arguments.control:
                verdict = _check_whole_robot(path)
                lines: Iterable[str] = [f"control: not judged: {verdict}"]
                if not isinstance(verdict, FeasidError):
                    lines = verdict.lines(len(result.infeasible), len(result.weightless))
                print("\n".join(f"  {line}" for line in lines))
    if len(results) > 1:
        parts = [f"{n} {'in error' if s == 'error' else s}" for s, n in sorted(counts.items())]
        print(f"{len(results)} files: {', '.join(parts)}")


def _file_as_data(path: str, result: FileCheck | FeasidError, control: bool) -> dict[str, Any]:
    if isinstance(result, FeasidError):
        place = {k: v for k, v in result.data.items() if k in ("line", "column")}
        return {"path": path, "status": "error", "error": str(result), **place}
    data = {**result.to_dict(), "reduction": reports.describe_lost_freedom(result)}
    if control:
        robot = _check_whole_robot(path)
        failure = isinstance(robot, FeasidError)
        data["control"] = {"error": str(robot)} if failure else robot.to_dict()
    return data


def _check_whole_robot(path: str) -> Any:
    """The mass matrix and base parameters of a file's robot, or why they are not judged."""
    from feasid.applications.inspection.whole_robot import check_whole_robot

    try:
        return check_whole_robot(reports.load_bodies(path))
    except FeasidError as error:
        return error


COMPARE = "applications.inspection.comparison:compare"


@takes(
    word("a", "A", "URDF, MJCF, SDF or USD"),
    word("b", "B", "URDF, MJCF, SDF or USD"),
    parameters_of(COMPARE, "tolerance"),
    flag("--all", "print every base parameter, also equal ones"),
    word("--model", "NAME", "which of several models of SDF and USD files; twice: of A and of B",
         action="append", default=[]),
)  # fmt: skip
def run_compare(arguments: argparse.Namespace) -> Answer:
    """Two models side by side: base parameters, and whether they move alike.

    Exit status: 0 dynamically equivalent, 1 different, 2 error.
    """
    from feasid.applications.inspection.comparison import compare

    models = arguments.model if len(arguments.model) > 1 else "".join(arguments.model)
    tolerance = read_parameters(arguments, COMPARE, "tolerance")
    comparison = compare(arguments.a, arguments.b, model=models, **tolerance)
    print_display(replace(comparison.display(), more=""))
    for row in comparison.rows if arguments.all else ():
        off = f"{100 * row.relative:.2g} %"
        print(f"{row.a:12.5g}  {row.b:12.5g}  {off:>8}  {row.expression}")
    return 0 if comparison.equivalent else 1, comparison.to_dict
