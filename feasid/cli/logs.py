"""Commands on logs, and on motions that are worth logging: ``diagnose``, ``reduce``, ``replay`` and
``excite``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from feasid.cli import Answer
from feasid.cli.options import flag, options_of, read_options, takes, word
from feasid.cli.output import check_picture, write_outputs, write_picture
from feasid.cli.robot import LOAD, ROBOT, read_robot, robot_words
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError, LogError
from feasid.core.files import check_outputs, is_regular
from feasid.options.complete import select_options
from feasid.options.spelling import as_arguments, spell_as_arguments
from feasid.options.tables import DiagnoseOptions, ReadOptions, ReduceOptions, ReplayOptions
from feasid.robot.formats.fit_robot import with_drive_options
from feasid.robot.joint_terms import FRICTION

REDUCE = "identification.regression.reduce:reduce"
REPLAY = "applications.online.replay:replay"

EXIT_PARTIAL = 4  #: Exit status when some logs failed and the others were reduced.


@takes(
    word("log", "LOG", "CSV, Parquet, NPZ or bag", nargs="+"), *ROBOT, options_of(DiagnoseOptions)
)
def run_diagnose(arguments: argparse.Namespace) -> Answer:
    """Print the problems of a log: what, where, how certain, and how to fix them.

    Exit status 0 when nothing is wrong, 1 with errors or warnings.
    """
    from feasid.applications.diagnosis.advice import diagnose

    options = read_options(arguments, DiagnoseOptions, "feasid diagnose")
    robot = read_robot(arguments)
    diagnosis = diagnose(arguments.log, robot, **options)
    print(" ".join(arguments.log))
    if robot.constraint_summary:
        print(f"{robot.name}: {robot.constraint_summary}")
    print(spell_as_arguments(diagnosis.explain()))
    if diagnosis.options or diagnosis.ok:
        words = as_arguments({**options, **diagnosis.options})
        command = shlex.join(["feasid", "fit", *arguments.log, *robot_words(arguments)])
        print(f"\n{'fixed' if diagnosis.options else 'next'}: {command} {words}".rstrip())
    return 0 if diagnosis.ok else 1, lambda: {
        "ok": diagnosis.ok,
        "findings": [asdict(finding) for finding in diagnosis],
        "options": diagnosis.options,
    }


@takes(
    word("logs", "LOG", None, nargs="+"),
    *ROBOT,
    word("--out", "FILE.reduced", None, required=True),
    parameters_of(REDUCE, "workers"),
    flag("--resume", "add to an output that exists"),
    flag("--overwrite", "replace FILE.reduced"),
    options_of(ReduceOptions),
)
def run_reduce(arguments: argparse.Namespace) -> Answer:
    """Reduce logs to one small file that adds, saves and is fitted later.

    Every log is reduced by itself; one that fails is reported and left out (exit status 4). The
    result of each log is kept in a folder next to the output until the output is written. After an
    interruption, --resume continues from there, with bit-identical results. With --resume, logs
    whose content is in the output already are skipped, and the output is written again with what
    was added.
    """
    inputs = [*arguments.logs, arguments.robot]
    replaces = arguments.overwrite or arguments.resume
    check_outputs({"--out": arguments.out}, inputs, overwrite=replaces)
    options = read_options(arguments, ReduceOptions, "feasid reduce")
    robot = read_robot(arguments)
    from feasid.identification.regression.parallel import checkpoint_folder
    from feasid.identification.regression.reduce import logs_not_in, reduce
    from feasid.identification.regression.triangle import Reduced

    parts: list[Any] = list(arguments.logs)
    if arguments.resume and is_regular(arguments.out):
        so_far = Reduced.load(arguments.out)
        if len(so_far.digests) < len(so_far.sources):
            raise InputError(
                f"{arguments.out} was written by an older feasid and does not record the contents "
                "of its logs: reduce them again, with --overwrite instead of --resume",
                path=arguments.out,
            )
        parts = [so_far, *logs_not_in(so_far, arguments.logs)]
    failed: tuple[Any, ...] = ()
    place = Path(f"{arguments.out}.parts")

    text = f"finished log(s) are kept in {place}; the same command continues from there"
    with checkpoint_folder(
        place,
        fresh=not arguments.resume,
        report=lambda n: print(f"\nfeasid: {n} {text} with --resume", file=sys.stderr),
    ) as folder:
        try:
            workers = read_parameters(arguments, REDUCE, "workers")
            total = reduce(parts, robot, checkpoints=folder, **workers, **options)
        except LogError as error:
            if getattr(error, "partial", None) is None:
                raise
            total, failed = error.data["partial"], error.data["failed"]
        total.save(arguments.out, overwrite=replaces)
    for note in total.notes:
        print(f"  - {spell_as_arguments(note.with_code)}")
    print(f"wrote {arguments.out}: {total.samples} samples of {len(total.sources)} log(s)")
    for failure in failed:
        print(f"feasid: left out {failure.log}: {failure.message}", file=sys.stderr)
    return EXIT_PARTIAL if failed else 0, lambda: {
        "out": arguments.out,
        "samples": total.samples,
        "logs": total.sources,
        "notes": [str(n) for n in total.notes],
        "left_out": {str(f.log): f.message for f in failed},
    }


@takes(
    word("log", "LOG", "CSV, Parquet, NPZ or a bag with positions and torques"),
    *ROBOT,
    parameters_of(REPLAY, "window interval"),
    word("--plot", "PNG", "draw errors and gate over time"),
    flag("--overwrite", "replace the drawing if it exists"),
    options_of(ReplayOptions),
)
def run_replay(arguments: argparse.Namespace) -> Answer:
    """Replay a log through the online identifier: the estimates, and when the model could be used.

    Exit status 0 when the gate was open at the end, else 1.
    """
    inputs = arguments.log, arguments.robot
    check_outputs({"--plot": arguments.plot}, inputs, overwrite=arguments.overwrite)
    check_picture(arguments.plot)
    options = read_options(arguments, ReplayOptions, "feasid replay")
    robot = with_drive_options(read_robot(arguments), options)
    options = select_options(ReadOptions, options)
    from feasid.applications.online.replay import replay

    options |= read_parameters(arguments, REPLAY, "window interval")
    played = replay(
        arguments.log, robot, each=lambda so_far: print(so_far.line(-1), flush=True), **options
    )
    for change in played.online.changes:
        print(f"change at {change}")
    for cause, count in played.online.faults.items():
        print(f"{count} samples {cause}")
    print(played.estimates[-1].verified)
    write_outputs(arguments, plot=partial(write_picture, played.plot))
    return 0 if played.estimates[-1].decision.open else 1, lambda: {
        "estimates": [
            {"time": e.time, "r2": e.r2, "open": e.decision.open, "reasons": e.decision.reasons}
            for e in played.estimates
        ],
        "changes": [str(change) for change in played.online.changes],
        "faults": dict(played.online.faults),
    }


EXCITE = "applications.excitation.excite:excite"

SHOWN = (
    "duration harmonics objective family position velocity acceleration jerk torque floor "
    "clearance workspace meshes capsules noise drive_inertia slow rate seed rounds starts workers "
    "time_limit"
)
"""Parameters of `feasid.excite` that are typed by their names."""


@takes(
    word("robot", "ROBOT", "robot description or saved fit"),
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
    picture = partial(write_picture, motion.plot)
    write_outputs(arguments, out=motion.to_csv, ros=motion.to_ros, plot=picture)
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
