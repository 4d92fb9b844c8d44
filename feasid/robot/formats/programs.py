"""Description files as the programs read them for which they are written.

One table of what each program takes from a file; `write`, `fit` and `correct` ask it. Measured with
Drake 1.58, MuJoCo 4.0, Pinocchio 4.1 and Bullet 3.2 (``python -m benchmarks.programs``); Gazebo's
and Isaac's entries follow from their documentation (sdformat.org/spec; PhysX schemas).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from feasid.core.errors import InputError, did_you_mean
from feasid.robot.description import GRAVITY, Robot
from feasid.robot.formats.description import Description, Format
from feasid.robot.formats.terms import LeftOut
from feasid.robot.inertia import to_mass_com_inertia


@dataclass(frozen=True)
class TargetProgram:
    """What a program takes from description files."""

    title: str
    #: Symbols of joint terms that it reads, per format; the first format is its usual one.
    reads: Mapping[str, str]
    massless: str = ""  #: What it does with a moving link without mass.
    impossible: str = ""  #: What it does with an impossible inertia.
    #: Second moments that it takes for none, relative to their sum and in kg m^2.
    thin: tuple[float, float] = (0.0, 0.0)
    least: float = 0.0  #: Smallest principal moment of a moving link that it takes [kg m^2].
    free_joints: bool = True  #: Joints of URDF that follow others, move by themselves there.
    floats: bool = True  #: A URDF's joint of type floating floats.
    usual: bool = True  #: It is named without being asked for.
    joints_alone: bool = False  #: Of MJCF it reads bodies and joints, not tendons and actuators.


PROGRAMS: Mapping[str, TargetProgram] = {
    "gazebo": TargetProgram(
        "Gazebo",
        {"sdf": "fv fc k", "urdf": "fv fc"},
        massless="left out",
        impossible="refused",
        free_joints=False,
        floats=False,
    ),
    "drake": TargetProgram(
        "Drake", {"sdf": "Ia fv k", "urdf": "fv"}, impossible="replaced", free_joints=False
    ),
    "mujoco": TargetProgram(
        "MuJoCo",
        {"mjcf": "Ia fv fc k", "urdf": "fv fc"},
        massless="refused",
        impossible="refused",
        thin=(1e-9, 1e-14),
        least=1e-15,
    ),
    "isaac": TargetProgram("Isaac Sim", {"usd": "Ia fv fc"}, free_joints=False),
    "pinocchio": TargetProgram(
        "Pinocchio", {"urdf": "fv fc", "mjcf": "Ia fv fc"}, joints_alone=True
    ),
    "bullet": TargetProgram("Bullet", {"urdf": "fv"}, floats=False, usual=False),
}


def find_program(name: str) -> TargetProgram:
    """The program of this name.

    Raises InputError: there is none.
    """
    if name not in PROGRAMS:
        hint = did_you_mean(name, PROGRAMS)
        raise InputError(f"for_={name!r}{hint}: known are {', '.join(PROGRAMS)}", option="for_")
    return PROGRAMS[name]


def programs_of(robot: Robot, form: Format, name: str | None = None) -> list[TargetProgram]:
    """The program that is asked for, else those whose usual format this is.

    Of a robot that moves several joints by one drive, also those that do not read it in the file.

    Raises InputError: the program does not read the format; names those that it reads.
    """
    if name is None:
        shared = form.holds_shared and any(len(drive.coupling) > 1 for drive in robot.drives)
        usual = (p for p in PROGRAMS.values() if p.usual and next(iter(p.reads)) == form.name)
        return [*usual, *(p for p in PROGRAMS.values() if shared and p.joints_alone)]
    program = find_program(name)
    if form.name not in program.reads:
        known = " and ".join(x.upper() for x in program.reads)
        raise InputError(
            f"for_={name!r} does not read {form.title}: give the file the suffix of {known}",
            option="for_",
        )
    return [program]


def unread_symbols(program: TargetProgram, form: Format) -> list[str]:
    """Joint terms that the format holds and a program does not read."""
    return [x for x in form.holds if x not in program.reads[form.name].split()]


def unread_terms(robot: Robot, program: TargetProgram, form: Format) -> Iterator[tuple[str, str]]:
    """Names of a robot's terms, if not zero, that the format holds and a program does not read."""
    symbols = unread_symbols(program, form)
    shared = {d.name for d in robot.drives if program.joints_alone and len(d.coupling) > 1}
    for (part, symbol), value in zip(robot.parameter_names, robot.values, strict=True):
        if value and not np.isnan(value) and (symbol in symbols or part in shared):
            yield part, symbol


def unread_parts(
    robot: Robot, program: TargetProgram, form: Format, description: Description
) -> Iterator[LeftOut]:
    """What a program does not take of a robot's file as it is, besides joint terms."""
    for link in description.links if program.impossible else ():
        if not (link.by_geometry or link.is_harmless):
            yield LeftOut(f"link of impossible inertia, which is {program.impossible}", link.name)
    for body in robot.bodies if program.massless else ():
        ten = body.inertial  # None: as in the file, where a shape may give a mass
        links = [description.by_name.get(m.name) for m in body.members or (body,)]
        heavy = any(x and (x.mass or (x.mass is None and x.drawings())) for x in links)
        if not (heavy if ten is None else ten[9] > 0):
            yield LeftOut(f"moving link without mass, which is {program.massless}", body.name)
        elif ten is not None and np.linalg.eigvalsh(to_mass_com_inertia(ten)[2])[0] < program.least:
            yield LeftOut(f"moving link without inertia, which is {program.massless}", body.name)
    alone = form.name == "mjcf" and program.joints_alone
    if form.name == "urdf":
        for body in robot.bodies if not program.floats else ():
            if body.floats:
                yield LeftOut("joint that floats, which is held", body.joint)
    free = program.free_joints and (form.name == "urdf" or alone)
    for coupling in robot.couplings if free else ():
        yield LeftOut("joint that follows another, which moves by itself", coupling.joint)
    if not ((form.holds_gravity and not alone) or np.array_equal(robot.gravity, GRAVITY)):
        yield LeftOut("gravity", ", ".join(f"{x:g}" for x in robot.gravity))
