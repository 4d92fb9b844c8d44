"""Identify a robot's dynamic parameters from logs, feasibly, and write them back as URDF."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from feasid.cli.options import add_log_arguments, log_options, robot_of, settings
from feasid.cli.progress import step
from feasid.errors import InputError
from feasid.files import check_writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid fit``."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="CSV, Parquet, NPZ, bags, reduced")
    add_log_arguments(parser)
    parser.add_argument("--out", metavar="FILE", help="write the identified robot here")
    parser.add_argument("--test", metavar="LOG", action="append", help="log for errors, not fitted")
    parser.add_argument("--report", metavar="HTML", help="write a report page here")
    parser.add_argument("--parameters", metavar="CSV", help="write base parameters here")
    parser.add_argument("--certificate", metavar="JSON", help="write the proof of feasibility here")
    parser.add_argument("--friction", metavar="LIST", help="of viscous,coulomb,offset, or none")
    parser.add_argument(
        "--drive-inertia", action="store_true", help="fit a drive inertia per joint"
    )
    parser.add_argument("--wls", action="store_true", help="weigh joints by their residuals")
    parser.add_argument("--robust", choices=("huber", "tukey"), help="weigh bad stretches down")
    parser.add_argument("--momentum", action="store_true", help="fit without accelerations")
    parser.add_argument("--semi", action="store_true", help="the weaker 6x6 consistency")
    parser.add_argument("--total-mass", type=float, metavar="KG", help="upper bound")
    parser.add_argument("--joint-dynamics", action="store_true", help="write friction to the URDF")
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        help='any option of feasid.fit, values in JSON: delay=0.03, \'units={"q": "deg"}\'',
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing output files")


def run(arguments: argparse.Namespace) -> int:
    """Fit, print the summary, write what was asked; returns 0."""
    outputs = [arguments.out, arguments.report, arguments.parameters, arguments.certificate]
    for path in filter(None, outputs):
        check_writable(path, overwrite=arguments.overwrite)
    _refuse_same_file(arguments, outputs)
    with step("loading solvers"):
        from feasid.identification.identify import fit
        from feasid.reduction.reduce import reduce
    robot = robot_of(arguments)
    with step(f"fitting {', '.join(arguments.logs)}"):
        result = fit(_logs(arguments.logs), robot, **_options(arguments))
    test = None
    if arguments.test:
        with step("testing"):
            options = result.test_options()
            test = result.errors(
                reduce(_logs(arguments.test), result.description,
                       base=result.base_parameters, **options)
            )  # fmt: skip
    print(result.summary(test=test))
    if arguments.out:
        source = result.robot.source
        write = result.to_mjcf if source and source.format == "mjcf" else result.to_urdf
        write(arguments.out, joint_dynamics=arguments.joint_dynamics, overwrite=arguments.overwrite)
        print(f"\nwrote {arguments.out}: read back and verified in exact arithmetic")
    if arguments.parameters:
        from feasid.files import write_aside

        content = result.base.to_csv(float_format="%.17g").encode()
        write_aside(arguments.parameters, content, overwrite=arguments.overwrite)
        print(f"wrote {arguments.parameters}")
    if arguments.certificate:
        result.certificate.save(arguments.certificate, overwrite=arguments.overwrite)
        print(f"wrote {arguments.certificate}: check it with feasid verify")
    if arguments.report:
        only = arguments.test[0] if arguments.test and len(arguments.test) == 1 else None
        result.report(arguments.report, test=only, overwrite=arguments.overwrite)
        print(f"wrote {arguments.report}")
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {
        "drive_inertia": True if arguments.drive_inertia else None,
        "weights": "wls" if arguments.wls else None,
        "method": "momentum" if arguments.momentum else "torque",
        "robust": arguments.robust,
        "consistency": "semi" if arguments.semi else "full",
    }
    if arguments.friction is not None:
        words = [w for w in arguments.friction.split(",") if w]
        options["friction"] = [] if words == ["none"] else words
    if arguments.total_mass is not None:
        options["total_mass"] = arguments.total_mass
    return options | log_options(arguments) | settings(arguments.option)


def _logs(paths: Sequence[str]) -> list[Any]:
    """Paths as they are, files of reduced data opened."""
    from feasid.reduction.triangle import Reduced

    return [Reduced.load(p) if str(p).endswith(".reduced") else p for p in paths]


def _refuse_same_file(arguments: argparse.Namespace, outputs: Sequence[str | None]) -> None:
    inputs = [*arguments.logs, arguments.robot, *(arguments.test or [])]
    for path in filter(None, outputs):
        for source in inputs:
            if Path(path).resolve() == Path(source).resolve():
                raise InputError(f"{path} is an input; choose another output file", path=path)
