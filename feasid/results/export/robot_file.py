"""A fit written as a model file, and measured as a client of the file reads it.

The file holds the fitted bodies: masses, first moments and inertias are those of the fit. Joint
terms that its format has a place for have their fitted values; viscous and Coulomb friction also
approximate friction that no format holds, see `feasid.results.export.file_terms`. What the format
cannot hold (offsets, drive inertia in URDF) is left out of the file, listed in `Export`, and kept
in a sidecar that `feasid.load_robot` reads with the file. No other parameter is estimated again,
because bodies would absorb a missing term; but where a search added springs the file is fitted
without.

Errors of the file are those of its clients, by the laws of `feasid.results.export.clients`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import OutputError
from feasid.identification.assessment.quality import Quality
from feasid.identification.fitted import FittedModel
from feasid.identification.regression.reduce import reduce
from feasid.identification.regression.triangle import Reduced
from feasid.logs.recording import Recording
from feasid.results.export.clients import LAWS, ClientRows
from feasid.results.export.file_terms import (
    Offset,
    describe_offsets,
    fit_without_added_springs,
    friction_as_files_hold,
    joint_values,
    servo_damping,
    servos_to_write,
)
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import mass_matrix
from feasid.robot.formats.description import Extras
from feasid.robot.formats.load import load_robot
from feasid.robot.formats.programs import programs_of, unread_symbols, unread_terms
from feasid.robot.formats.registry import FORMATS
from feasid.robot.formats.terms import sum_drives
from feasid.robot.formats.write import (
    Written,
    format_of,
    representable_part,
    unrepresentable_terms,
    write,
)
from feasid.robot.inertia import change_frame
from feasid.robot.joint_terms import RIPPLE, TERMS
from feasid.robot.layout import random_configurations

if TYPE_CHECKING:
    import pandas as pd


MAX_LISTED_JOINTS = 8  #: Joints that a line on missing terms names; the others are counted.
FOR = "for "  #: Beginning of a line on what one program does not read, although the file has it.

STANDS_FOR = "viscous and Coulomb friction in the file stand for it"

MISSING_TERMS = {
    "fc": (
        "the gradual change of sign of Coulomb friction (fc)",
        "the file has its size, and clients change its sign at once",
    ),
    "ripple": ("ripple (rs rc rs2 rc2)", "a client has to add it"),
    "rotor": ("the rotors' own inertial parameters", "a client has to add their torques"),
    "shared": (
        "the terms of motors that move several joints",
        "friction in the file stands for theirs, and a client has to add their inertia",
    ),
}
"""Terms that a file lacks, and advice to its clients."""


@dataclass(frozen=True, eq=False)
class Export:
    """A fit that was written to a file."""

    written: Written  #: Path, format, sidecar, and the terms that clients of the file do not see.
    #: One line for each kind of term that the file does not hold: what, of which joints, and what a
    #: client has to do about it. What a simulation lacks comes first.
    missing: tuple[str, ...]
    #: Relative torque errors, joints and "all" by row: of the fit, and of the file as clients read
    #: it that change the sign of dry friction at once ("file, hard sign") and as MuJoCo does
    #: ("file, MuJoCo's law"), offsets of sensors subtracted; where drive inertia is lacking also
    #: with `feasid.Fit.actuators` beside it ("with actuators, ..."), and as a program reads it that
    #: ignores a term ("file in Gazebo"); on the fitted log and on the test. Where no rows of a log
    #: are kept, "file" changes signs as the fit does.
    errors: pd.DataFrame
    offsets: tuple[Offset, ...] = ()  #: Joints with torque offsets, and the origin of each offset.

    def __str__(self) -> str:
        w = self.written
        content = "every term of the fitted model"
        if w.lost:
            content = f"the fitted bodies and the joint terms that {w.format.upper()} holds"
        lines = [f"wrote {w.path}: {content}; read back and verified in exact arithmetic"]
        lines += [f"not in {w.path}{'' if x.startswith(FOR) else ':'} {x}" for x in self.missing]
        lines += describe_offsets(self.offsets, FORMATS[w.format].holds_forces)
        if w.sidecar is not None:
            lines.append(f"the whole model is in {w.sidecar}, which feasid reads with the file")
        total = self.errors.loc["all"]
        shown = "; ".join(f"{name} {100 * value:.2f} %" for name, value in total.items())
        lines.append(f"torque error of the fit, and of the file by friction law: {shown}")
        return "\n".join(lines)

    __repr__ = __str__


def write_fit(
    model: FittedModel,
    path: str | os.PathLike[str],
    offsets: tuple[Offset, ...],
    extensions: tuple[str, ...],
    *,
    overwrite: bool = False,
    test: Any = None,
    for_: str | None = None,
) -> Export:
    """Write the part of a model that a file may hold, and measure its errors as clients read it."""
    form, fitted = format_of(model.robot, path), model.robot
    rigid = fitted.with_values(fit_without_added_springs(model))
    robot = fitted.with_values(
        friction_as_files_hold(rigid, model.solution.problem, form.holds_shared)
    )
    postures = random_configurations(fitted, np.random.default_rng(0), POSTURES).T
    lost = unrepresentable_terms(rigid, form)
    servo = None if model.servo is None else model.servo.servo
    servos = servos_to_write(fitted, servo, path)
    damping = servo_damping(fitted, servos)
    same = np.array_equal(robot.values, fitted.values) and not damping.any()
    reference = fitted if lost or not same else None
    armatures = dict(zip(robot.joints, joint_values(robot, robot.values)["Ia"], strict=True))
    forces = {x.joint: -x.value for x in offsets if x.origin == "joint"}
    extras = Extras(
        forces if form.holds_forces else {},
        {joint: float(value) for joint, value in armatures.items() if value},
        extensions,
        servos,
    )
    robot = robot.with_values(robot.values - damping)
    part = representable_part(robot, form)
    written = write(part, path, overwrite=overwrite, complete=reference, extras=extras, for_=for_)
    advice = _armature_advice(robot, postures)
    lines = missing_lines(rigid, lost, advice)
    for program in programs_of(part, form, for_):
        unread = [".".join(name) for name in unread_terms(part, program, form)]
        lines += missing_lines(part, unread, advice, f"{FOR}{program.title}: ")
        parts = written.unread[program.title].split("; ") if for_ else ()
        others = [x for x in parts if x and not any(f"({symbol})" in x for symbol in TERMS)]
        lines += (f"{FOR}{program.title}: {'; '.join(others)}",) if others else ()
    lines += (written.left_out,) if written.left_out and not for_ else ()
    if any(drive.spring_range for drive in fitted.drives):
        lines += ("springs that the log shows: bodies and friction of the file are fitted without",)
    zeros = model.calibration.correction.values_by_joint("zero")
    if zeros and _edits_description(model.robot, path):  # a new file takes the log's positions
        lines += ("the log's joint zeros: a client adds those of fit.calibration to its positions",)
    if law := model.calibration.correction.friction_per_kelvin(fitted):
        text = ", ".join(f"{joint} at {origin:g}" for joint, (_, _, origin, *_) in law.items())
        text = f"friction's change with the temperature; the file has that of {text} degrees C"
        lines += (text,)
    if servo is not None and not servos:
        lines += (
            "the servos' gains and delay: masses of this file carry the common factor of the gains "
            "that were found (fit.servo.table); with other gains it does not follow commands as "
            "the robot does",
        )
    columns = _file_errors(model, robot, written.path, offsets, test, damping, for_)
    return Export(written, lines, columns, offsets)


TOLD_ACCELERATION = 0.05
"""Excess of the joints' acceleration without armature from which it is reported: models of one
robot differ by as much."""

POSTURES = 64  #: Number of postures over which a robot's inertia is compared.


def _armature_advice(robot: Robot, postures: Array) -> str:
    """Error of a simulation that reads the file alone."""
    # Mean over postures of the mass matrix's diagonal, with and without drive inertia.
    armatures = [symbol == "Ia" for _, symbol in robot.parameter_names]
    models = robot.values, np.where(armatures, 0.0, robot.values)
    matrices = (mass_matrix(robot, x, postures) for x in models)
    mass, rigid = (np.diagonal(m, axis1=1, axis2=2).mean(axis=0) for m in matrices)
    ratio = mass / np.where(rigid > 0, rigid, np.inf)  # a motor behind a spring has no body
    worst = int(np.argmax(ratio))
    joint, times = robot.coordinates[worst], float(ratio[worst])
    if times < 1 + TOLD_ACCELERATION:
        return f"no joint accelerates {TOLD_ACCELERATION:.0%} too fast without this armature"
    return (
        f"without it a simulation is wrong: joint {joint} accelerates {times:.3g} times as fast as "
        "it should; an MJCF file (.xml) holds it"
    )


def _file_errors(
    model: FittedModel,
    robot: Robot,
    path: str,
    offsets: tuple[Offset, ...],
    test: Any,
    damping: Array,
    for_: str | None,
) -> pd.DataFrame:
    """Torque errors of the fit and of a written file, on the fitted log and on a test."""
    import pandas as pd

    values = parameters_read_by_client(model, path) + damping
    reread, form = model.robot.with_values(values), format_of(robot, path)
    columns = {"fit": model.relative_error}
    logs = {"": (model.reduced, tuple(model.logs))}
    if test is not None:
        other = reduce(test, base=model.base, **model.test_options())
        columns["fit on the test"] = model.errors_of(other)
        sources = test if isinstance(test, list | tuple) else [test]
        has_rows = not any(isinstance(x, Reduced) for x in sources)
        recordings = tuple(Recording.from_source(x) for x in sources) if has_rows else ()
        logs[" on the test"] = other, recordings
    for where, (reduced, recordings) in logs.items():
        if not (recordings and reread.is_tree and reread.dof == len(reread.joints)):
            # Without samples friction changes its sign as in the fit.
            read = values + _subtracted_offsets(model.robot, offsets, form.holds_forces)
            columns[f"file{where}"] = model.errors_of(reduced, model.base.K @ read)
        else:
            # Of clients that read the file alone, and of clients that add the drive inertia.
            alone = joint_values(reread, reread.values)
            rows = ClientRows.from_logs(model, reread, alone["fc"], recordings)
            subtracted = _subtracted_offsets(robot, offsets, form.holds_forces)
            alone["fo"] = joint_values(robot, subtracted)["fo"]
            armature = joint_values(robot, robot.values)["Ia"]
            out = {f"file, {law}{where}": rows.errors(alone, law) for law in LAWS}
            if not np.allclose(alone["Ia"], armature):
                beside = alone | {"Ia": armature}
                out |= {f"with actuators, {law}{where}": rows.errors(beside, law) for law in LAWS}
            for program in programs_of(robot, form, for_):
                unread = unread_symbols(program, form)
                if unread or for_:
                    terms = alone | dict.fromkeys(unread, np.zeros(len(armature)))
                    if program.joints_alone:  # forces and servos of MJCF are actuators
                        sensors = _subtracted_offsets(robot, offsets, held=False)
                        terms["fo"] = joint_values(robot, sensors)["fo"]
                        terms["fv"] = terms["fv"] - joint_values(robot, damping)["fv"]
                    law = "MuJoCo's law" if program.title == "MuJoCo" else "hard sign"
                    out[f"file in {program.title}{where}"] = rows.errors(terms, law)
            columns |= out
    return pd.DataFrame(columns)


def _subtracted_offsets(robot: Robot, offsets: tuple[Offset, ...], held: bool) -> Array:
    """Standard parameters that clients subtract from measured torques or, held, read as forces."""
    values = {x.joint: x.value for x in offsets if held or x.origin == "sensor"}
    out = np.zeros(robot.size)
    for k, drive in enumerate(robot.drives):
        columns = robot.drive_columns(k)
        if "fo" in columns and len(drive.coupling) == 1:
            out[columns["fo"]] = values.get(next(iter(drive.coupling)), 0.0)
    return out


def missing_lines(
    whole: Robot, lost: Sequence[str], armature: str, program: str = ""
) -> tuple[str, ...]:
    """One line for each kind of the terms ("shoulder.fo") that a file of a model lacks.

    Drive inertia comes first, with the remark in `armature`. Offsets have lines of their own,
    see `describe_offsets`. `program`: beginning of lines on terms that a program ignores.
    """
    joints = {body.name: body.joint for body in whole.bodies}
    ends = {
        d.name: [j for j in d.coupling if j not in whole.sensors.values()] for d in whole.drives
    }
    joints |= {drive: " with ".join(moved) for drive, moved in ends.items()}
    shared = {drive.name for drive in whole.drives if len(drive.coupling) > 1}
    names_by_kind: dict[str, list[str]] = {}
    for name in (n for n in lost if n != "gravity"):
        part, symbol = name.rsplit(".", 1)
        kind = "rotor" if symbol.startswith("rotor_") else symbol
        kind = "ripple" if symbol in RIPPLE else kind
        listed = names_by_kind.setdefault("shared" if part in shared else kind, [])
        if joints[part] not in listed:
            listed.append(joints[part])
    lines = []
    names_by_kind.pop("fo", None)
    for kind, names in sorted(names_by_kind.items(), key=lambda item: item[0] != "Ia"):
        name = f"{program}{TERMS[kind].name if kind in TERMS else 'custom terms'} ({kind})"
        friction = not program and kind in TERMS and TERMS[kind].varies_with == "dq"
        term, advice = name, STANDS_FOR if friction else "a client has to add it"
        if kind in MISSING_TERMS and (not program or kind == "shared"):
            term = program + MISSING_TERMS[kind][0]
            advice = "a client has to add them" if program else MISSING_TERMS[kind][1]
        advice = armature if kind == "Ia" else advice
        more = len(names) - MAX_LISTED_JOINTS
        listed = names[:MAX_LISTED_JOINTS] + ([f"{more} more"] if more > 0 else [])
        lines.append(f"{term} of {', '.join(listed)}; {advice}")
    if "gravity" in lost:
        vector = ", ".join(f"{x:g}" for x in whole.gravity)
        lines.append(f"gravity, ({vector}) m/s^2 in the base frame; a client has to set it")
    return tuple(lines)


def reason_not_to_write(verdict: Quality) -> str:
    """The reason why a model is good for no use."""
    return str(verdict.reasons[0]) if verdict.level == "useless" else ""


def _edits_description(robot: Robot, path: str | os.PathLike[str]) -> bool:
    """Whether a file is the description with other numbers, not a new one of another format."""
    return robot.source is not None and robot.source.format == format_of(robot, path).name


def parameters_read_by_client(fit: FittedModel, path: str | os.PathLike[str]) -> Array:
    """Standard parameters, in the fit's order, of a file as clients read it: without the sidecar.

    Raises OutputError: the file has other joints or another geometry than the fitted robot.
    """
    source = fit.robot.source
    edits = _edits_description(fit.robot, path)
    reading = dict(source.reading) if source is not None and edits else {}
    reread = load_robot(path, **{**reading, "sidecar": False})
    terms = sum_drives(replace(drive, rest=0.0) for drive in reread.drives)
    delta = np.zeros(fit.robot.size)
    # Inertial parameters of a file's bodies in the robot's frames, which may be others. Where joint
    # zeros are corrected, the described file is at zero where the log says minus the correction; a
    # new file takes the log's positions.
    robot, joints = fit.robot.without_torque_sensors(), {b.joint: b for b in reread.bodies}
    zeros = fit.calibration.correction.values_by_joint("zero") if edits else {}
    ours, theirs = robot.pose({robot.joints[j]: -z for j, z in zeros.items()}), reread.pose()
    for body in robot.bodies:
        other = joints.get(body.joint)
        if other is None:
            raise OutputError(f"{path} was written, but joint {body.joint!r} is not read back")
        (turn, place), (their_turn, their_place) = ours[body.name], theirs[other.name]
        rotation, position = turn.T @ their_turn, turn.T @ (their_place - place)
        angular = rotation @ other.motion[:3]
        linear = rotation @ other.motion[3:] + np.cross(position, angular.T).T
        motion = np.vstack([angular, linear])
        if np.abs(motion - body.motion).max() > format_of(robot, path).agreement:
            raise OutputError(
                f"{path} was written, but joint {body.joint!r} is read back elsewhere: it moves by "
                f"{motion.tolist()}, not {body.motion.tolist()}"
            )
        ten = np.zeros(10) if other.inertial is None else other.inertial
        columns = fit.robot.inertial_columns[fit.robot.joint_index(body.joint)]
        delta[columns] = change_frame(rotation, position) @ ten
    for k, drive in enumerate(fit.robot.drives):
        along = tuple(sorted((j, c) for j, c in drive.coupling.items() if j in robot.joints))
        if not along:  # the offset of a torque sensor
            continue
        factor = along[0][1] if len(along) == 1 else 1.0
        # A file has the terms of a joint, the model those of its motor.
        numbers = terms.pop(along if len(along) > 1 else ((along[0][0], 1.0),), {})
        for symbol, column in fit.robot.drive_columns(k).items():
            scaling = TERMS[symbol].scaling(factor) if symbol in TERMS else None
            delta[column] = numbers.pop(symbol, 0.0) / (scaling or 1.0)
    return delta
