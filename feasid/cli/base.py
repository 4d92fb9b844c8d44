"""Which parameter combinations of a robot can be identified, from its geometry alone."""

from __future__ import annotations

import argparse

from feasid.identifiability.base import base_parameters
from feasid.robot.description import FRICTION
from feasid.robot.load import load_robot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``feasid base``."""
    add = parser.add_argument
    add("robot", metavar="ROBOT", help="robot description (.urdf)")
    add("--floating", action="store_true", help="the root link floats")
    add(
        "--friction",
        nargs="*",
        choices=[*FRICTION],
        default=[],
        help="friction terms of the joints (default none)",
    )
    add("--drive-inertia", action="store_true", help="the drives' inertias count too")
    add("--no-gravity", action="store_true", help="as if there were no gravity")
    add("--static", action="store_true", help="postures at rest only")
    add("--literal", action="store_true", help="take rounded angles like 1.5708 as they stand")
    add("--table", action="store_true", help="also what can be known of each parameter")
    add("--explain", nargs="+", metavar="PARAMETER", help="say why: forearm.m")
    add("--measured", nargs="+", metavar="JOINT", help="joints with measured torque (default all)")


def run(arguments: argparse.Namespace) -> int:
    """Print the base parameters; returns the exit status."""
    robot = load_robot(arguments.robot, floating=arguments.floating)
    if arguments.friction or arguments.drive_inertia:
        robot = robot.with_joint_terms(arguments.friction, arguments.drive_inertia)
    if arguments.no_gravity:
        robot = robot.with_gravity((0.0, 0.0, 0.0))
    base = base_parameters(
        robot,
        measured=arguments.measured,
        static=arguments.static,
        snap=None if arguments.literal else "file",
    )
    print(f"{robot.name}: {base.size} base parameters of {robot.size} standard parameters\n")
    print(base.listing())
    if base.snapped:
        print(f"\nthe file rounds its geometry: {base.rounding_note()}")
    if arguments.table:
        print(f"\n{base.table()}")
    for name in arguments.explain or ():
        print(f"\n{base.explain(name)}")
    for warning in base.warnings:
        print(f"\nwarning: {warning}")
    return 0
