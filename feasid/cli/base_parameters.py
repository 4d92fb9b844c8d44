"""The command ``base-parameters``."""

from __future__ import annotations

import argparse
from textwrap import fill

from feasid.cli import Answer
from feasid.cli.options import flag, takes, word
from feasid.cli.robot import LOAD, read_robot
from feasid.cli.signatures import parameters_of
from feasid.core.errors import InputError
from feasid.options.spelling import spell_as_arguments
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.parameters.identifiability.experiment import Experiment
from feasid.parameters.identifiability.views import as_csv, as_dict, as_latex
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION

WIDTH = 96  #: Columns of the terminal that lines are wrapped to.

GEOMETRY = "floating lock gravity"
"""Parameters of `feasid.load_robot` that decide what can be identified."""


@takes(
    word("robot", "ROBOT", "robot description or saved fit"),
    parameters_of(LOAD, GEOMETRY),
    flag("--no-gravity", "as if there were no gravity"),
    word("--friction", "LIST", f"of {','.join(FRICTION)} (default none)", default=""),
    flag("--drive-inertia", "count the inertias of the drives, too"),
    word("--measured", "LIST", "joints with measured torque", action="append"),
    word("--held", "LIST", "joints that do not move, JOINT or JOINT:Q", action="append"),
    flag("--static", "postures at rest only"),
    word("--order", "LIST", "parameters that name the combinations: left, paper, or a list",
         default="left"),
    flag("--literal", "do not replace rounded angles like 1.5708 by exact ones"),
    flag("--table", "also list what can be known of each parameter"),
    flag("--servos", "also list what logs without torques leave unknown"),
    word("--explain", "LIST", "say why: forearm.m", action="append"),
    flag("--csv", "coefficients as CSV"),
    flag("--latex", "combinations as a LaTeX table"),
    word("--experiment", "WORD",
         "of an experiment: measured=A,B held=C,D:1.57 static gravity=X,Y,Z everything", nargs="+"),
    word("--for", "WORD", "describe the use of the model, in the same words", nargs="+",
         dest="use"),
)  # fmt: skip
def run_base_parameters(arguments: argparse.Namespace) -> Answer:
    """Which parameter combinations of a robot can be identified, from its geometry alone.

    With --experiment and --for: what one experiment leaves unknown that a use of the model needs.
    """
    if arguments.no_gravity:
        arguments.gravity = ["0,0,0"]
    robot = read_robot(arguments, GEOMETRY)
    friction = [w for w in arguments.friction.split(",") if w and w != "none"]
    if friction or arguments.drive_inertia:
        robot = robot.with_joint_terms(friction, arguments.drive_inertia)
    if arguments.experiment or arguments.use:
        if not (arguments.experiment and arguments.use):
            raise InputError("--experiment and --for require each other; both accept 'everything'")
        experiment = _base_of_experiment(robot, arguments.experiment, arguments)
        use = _base_of_experiment(robot, arguments.use, arguments)
        gap = experiment.missing_for(use)
        print(fill(f"{robot.name}: {gap}", WIDTH), end="\n\n")
        for line in gap.table().splitlines():
            print(fill(line, WIDTH, subsequent_indent="      ", drop_whitespace=True))
        return 1 if gap.size else 0, lambda: {
            "robot": robot.name,
            "needed": use.size,
            "unknown": gap.size,
            "by_body": gap.by_body(),
        }
    words = ["static"] if arguments.static else []
    words += [f"{k}={','.join(v)}" for k in ("measured", "held") if (v := getattr(arguments, k))]
    base = _base_of_experiment(robot, words, arguments)
    factors: list[str] = []  # what positions and commands determine, and what has to be weighed
    if arguments.servos:
        from feasid.identification.servos.prior import describe_factors

        factors = describe_factors(robot)
    if arguments.csv:
        print(as_csv(base), end="")
    elif arguments.latex:
        print(as_latex(base))
    else:
        print(f"{robot.name}: {base.size} base parameters of {base.unknowns} standard parameters")
        print(f"{robot.constraint_summary}\n" if robot.constraint_summary else "")
        indent = " " * (len(str(base.size)) + 6)
        for line in base.listing().splitlines():
            print(fill(line, WIDTH, subsequent_indent=indent, break_long_words=False))
        if base.roundings:
            print(f"\n{fill(f'the file rounds its geometry: {base.rounding_note()}', WIDTH)}")
        if arguments.table:
            print(f"\n{base.table()}")
        for name in (n for entry in arguments.explain or () for n in entry.split(",")):
            print(f"\n{fill(base.explain(name), WIDTH)}")
        for warning in base.warnings:
            print(f"\n{fill(f'warning: {warning}', WIDTH)}")
        print(f"\n{fill(str(base.check), WIDTH)}")
        for line in ["", *factors] if factors else ():
            print(fill(spell_as_arguments(line), WIDTH))

    return 0, lambda: as_dict(base) | ({"servos": factors} if factors else {})


def _base_of_experiment(
    robot: Robot, words: list[str], arguments: argparse.Namespace
) -> BaseParameters:
    """Base parameters of an experiment in words."""
    experiment, order = Experiment.parse(words), arguments.order
    return base_parameters(robot, measured=experiment.measured, held=experiment.held,
                           static=experiment.static, gravity=experiment.gravity,
                           order=order if order in ("left", "paper") else order.split(","),
                           snap=None if arguments.literal else "file")  # fmt: skip
