"""Design a motion whose log is worth fitting."""

from __future__ import annotations

import argparse
import json
from typing import Any

from feasid.cli.options import parse_locks, parse_vector
from feasid.cli.output import (
    add_output,
    check_picture,
    print_json,
    redirect_sentences,
    write_picture,
)
from feasid.core.errors import InputError
from feasid.core.files import check_outputs
from feasid.robot.joint_terms import FRICTION

LIMITS = ("position", "velocity", "acceleration", "jerk", "torque")

PASSED = (
    *("duration", "harmonics", "objective", "family", "floor", "clearance", "meshes", "noise"),
    *("friction", "slow", "rate", "seed", "rounds", "starts", "workers", "time_limit"),
)
"""Arguments that `feasid.excite` takes as they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``feasid excite``."""
    add = parser.add_argument
    add("robot", metavar="ROBOT", help="robot description (.urdf, .xml, .sdf)")
    add("--out", metavar="CSV", help="the motion: t, q, dq and ddq per joint")
    add("--ros", metavar="YAML", help="the motion as a ROS 2 JointTrajectory")
    add("--plot", metavar="PNG", help="positions, velocities, torques and their limits")
    add("--overwrite", action="store_true", help="replace files that exist")
    add("--duration", type=float, default=10.0, metavar="S", help="period (default 10 s)")
    add("--harmonics", type=int, default=5, help="of the Fourier series (default 5)")
    add("--objective", default="logdet", help="logdet (default), condition, prediction or gains")
    add("--family", default="fourier", help="fourier (default) or spline")
    for kind in LIMITS:
        add(f"--{kind}", action="append", metavar="JOINT=B", help=f"{kind} limit: B or LOW,HIGH")
    add("--lock", metavar="JOINT=Q", action="append", help="hold a joint, SI units")
    add("--gravity", metavar="X,Y,Z", help="gravity vector in the base frame [m/s^2]")
    add("--floor", type=float, metavar="Z", help="height that all links stay above [m]")
    add("--no-collision", action="store_true", help="links may meet each other")
    add("--clearance", type=float, default=0.01, metavar="M", help="between links (default 0.01)")
    add("--ignore", action="append", metavar="LINK,LINK", help="links that may touch")
    add("--workspace", metavar="JSON", help="boxes that links stay in: {link: [low, high]} [m]")
    add("--meshes", metavar="FOLDER", help="folder of the collision meshes (STL, OBJ)")
    add("--capsules", metavar="JSON", help="shapes: {link: [[start, end, radius], ...]} [m]")
    add("--given", nargs="+", default=[], metavar="REDUCED", help="logs that you already have")
    add("--noise", type=float, default=1.0, help="torque noise [N m] (default 1)")
    add("--friction", nargs="*", choices=[*FRICTION], help="friction terms of the joints")
    add("--drive-inertia", action="store_true", help="count the inertias of the drives, too")
    add("--no-rest", action="store_true", help="pass from period to period without a stop")
    add("--slow", type=float, default=0.0, help="0 to 1: slower in the middle, for friction")
    add("--rate", type=float, default=100.0, metavar="HZ", help="samples per second")
    add("--seed", type=int, default=0)
    add("--rounds", type=int, metavar="N",
        help="perturbed restarts after the starts; default until the time is over")  # fmt: skip
    add("--starts", type=int, metavar="N", help="random starts; default a quarter of the time")
    add("--workers", type=int, default=1, metavar="N", help="processes that search at once")
    add("--time-limit", type=float, default=60.0, metavar="S", help="of searching")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, print the certificate and write the files; returns the exit status."""
    from feasid.applications.excitation.excite import excite
    from feasid.identification.regression.triangle import Reduced
    from feasid.robot.formats.load import load_robot

    outputs = {"--out": arguments.out, "--ros": arguments.ros, "--plot": arguments.plot}
    inputs = [arguments.robot, *arguments.given]
    check_outputs(outputs, inputs, overwrite=arguments.overwrite)
    check_picture(arguments.plot)
    robot = load_robot(
        arguments.robot, lock=parse_locks(arguments.lock), gravity=parse_vector(arguments.gravity)
    )

    motion = excite(
        robot,
        **{name: getattr(arguments, name) for name in PASSED},
        collision=not arguments.no_collision,
        ignore=[tuple(pair.split(",")) for pair in arguments.ignore or ()],
        workspace=_parse_json(arguments.workspace, "--workspace"),
        capsules=_parse_json(arguments.capsules, "--capsules"),
        given=[Reduced.load(path) for path in arguments.given],
        drive_inertia=arguments.drive_inertia or None,
        rest=not arguments.no_rest,
        **{kind: _parse_limits(getattr(arguments, kind), kind) for kind in LIMITS},
    )
    with redirect_sentences(arguments.json):
        print(motion.summary())
        if arguments.out:
            motion.to_csv(arguments.out, overwrite=arguments.overwrite)
        if arguments.ros:
            motion.to_ros(arguments.ros, overwrite=arguments.overwrite)
        if arguments.plot:
            write_picture(motion.plot(), arguments.plot, overwrite=arguments.overwrite)
    if arguments.json:
        proof = motion.certificate
        told = {"robot": robot.name, "period": motion.period, "limits_kept": proof.limits_hold}
        told |= {"rank": proof.rank, "base_parameters": len(proof.expressions)}
        told |= {"condition_number": proof.condition_number, "log_det": proof.log_det}
        deviations = dict(zip(proof.expressions, proof.deviations.tolist(), strict=True))
        print_json("excite", {**told, "deviations": deviations, "notes": motion.notes})
    return 0


def _parse_json(text: str | None, option: str) -> Any:
    try:
        found = None if text is None else json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        found = text
    if found is not None and not isinstance(found, dict):
        raise InputError(f'{option} needs JSON such as {{"link": [...]}}, not {text!r}')
    return found


def _parse_limits(entries: list[str] | None, kind: str) -> Any:
    """``["elbow=2", "wrist=-1,1"]`` as a mapping; ``["2"]`` for all joints."""
    out: dict[str, Any] = {}
    for entry in entries or ():
        joint, _, text = entry.rpartition("=")
        try:
            numbers = tuple(float(x) for x in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) not in (1, 2):
            raise InputError(f"--{kind} needs JOINT=B or JOINT=LOW,HIGH, not {entry!r}")
        value = numbers[0] if len(numbers) == 1 else numbers
        if not joint:
            return value
        out[joint] = value
    return out or None
