"""The command ``excite``."""

from __future__ import annotations

import argparse

from feasid.cli import Answer
from feasid.cli.options import flag, takes, word
from feasid.cli.output import check_picture, write_picture
from feasid.cli.robot import LOAD
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.files import check_outputs
from feasid.robot.joint_terms import FRICTION

EXCITE = "applications.excitation.excite:excite"

SHOWN = (
    "duration harmonics objective family position velocity acceleration jerk torque floor "
    "clearance workspace meshes capsules noise drive_inertia slow rate seed rounds starts workers "
    "time_limit"
)
"""Parameters of `feasid.excite` that are typed by their names."""


@takes(
    word("robot", "ROBOT", "robot description (.urdf, .xml, .sdf)"),
    word("--out", "CSV", "the motion: t, q, dq and ddq per joint"),
    word("--ros", "YAML", "the motion as a ROS 2 JointTrajectory"),
    word("--plot", "PNG", "positions, velocities, torques and their limits"),
    flag("--overwrite", "replace files that exist"),
    parameters_of(LOAD, "lock gravity"),
    parameters_of(EXCITE, SHOWN),
    word("--no-collision", None, "links may meet each other", dest="collision",
         action="store_const", const="no"),
    word("--no-rest", None, "pass from period to period without a stop", dest="rest",
         action="store_const", const="no"),
    word("--friction", None, "friction terms of the joints", nargs="*", choices=[*FRICTION]),
    word("--ignore", "LINK,LINK", "links that may touch", action="append"),
    word("--given", "REDUCED", "logs that you already have", nargs="+", default=[]),
)  # fmt: skip
def run_excite(arguments: argparse.Namespace) -> Answer:
    """Design a motion whose log is worth fitting."""
    from feasid.applications.excitation.excite import excite
    from feasid.cli.robot import read_robot
    from feasid.identification.regression.triangle import Reduced

    outputs = {"--out": arguments.out, "--ros": arguments.ros, "--plot": arguments.plot}
    check_outputs(outputs, [arguments.robot, *arguments.given], overwrite=arguments.overwrite)
    check_picture(arguments.plot)
    robot = read_robot(arguments, "lock gravity")
    motion = excite(
        robot,
        **read_parameters(arguments, EXCITE, f"{SHOWN} collision rest"),
        friction=arguments.friction,
        ignore=[tuple(pair.split(",")) for pair in arguments.ignore or ()],
        given=[Reduced.load(path) for path in arguments.given],
    )
    print(motion.summary())
    if arguments.out:
        motion.to_csv(arguments.out, overwrite=arguments.overwrite)
    if arguments.ros:
        motion.to_ros(arguments.ros, overwrite=arguments.overwrite)
    if arguments.plot:
        write_picture(motion.plot(), arguments.plot, overwrite=arguments.overwrite)
    proof = motion.certificate
    return 0, lambda: {
        "robot": robot.name,
        "period": motion.period,
        "limits_kept": proof.limits_hold,
        "rank": proof.rank,
        "base_parameters": len(proof.expressions),
        "condition_number": proof.condition_number,
        "log_det": proof.log_det,
        "deviations": dict(zip(proof.expressions, proof.deviations.tolist(), strict=True)),
        "notes": motion.notes,
    }
