"""The model as C99 code: inverse dynamics, gravity, friction, mass matrix, base regressor.

The header goes beside the source. Functions are named after the file: arm.c has
arm_inverse_dynamics(q, dq, ddq, tau); arm_self_test() runs all of them on vectors in the file.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from feasid.cli.output import add_json, print_json
from feasid.core.files import check_outputs, with_ending


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``feasid export``."""
    parser.add_argument(
        "model", metavar="MODEL", help="MODEL.feasid of feasid fit --save; URDF, MJCF, SDF"
    )
    parser.add_argument("--c", required=True, metavar="FILE.c", help="write the code here")
    parser.add_argument("--float", action="store_true", help="single precision")
    parser.add_argument(
        "--argument",
        action="store_true",
        help="functions take the base parameters as an argument; default folded into the code",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write source and header; returns 0."""
    target = Path(arguments.c)
    outputs = {"the source": target, "its header": with_ending(target, ".h")}
    check_outputs(outputs, [arguments.model], overwrite=arguments.overwrite)
    from feasid.codegen.c import write_c
    from feasid.formats.load import load_robot
    from feasid.identification.archive import load

    saved = Path(arguments.model).suffix == ".feasid"
    robot = load(arguments.model).robot if saved else load_robot(arguments.model)
    code = write_c(
        robot,
        target,
        precision="float" if arguments.float else "double",
        parameters="argument" if arguments.argument else "values",
        overwrite=arguments.overwrite,
    )
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
