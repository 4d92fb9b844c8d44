"""The robot: a tree of bodies with named parameters, couplings and loops, and its variations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Measured, Numbers, checked
from feasid.core.arrays import Array
from feasid.core.codec import TRANSIENT
from feasid.core.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.bodies import Body, Member, bodies_from_dh, read_only_array
from feasid.robot.couplings import Coupling, Loop, without_joint
from feasid.robot.drives import CustomJointTerm, Drive, drive_with_terms, hold_joint
from feasid.robot.joint_terms import DRIVE_SYMBOLS, FRICTION, USUAL_SYMBOLS
from feasid.robot.layout import RobotLayout
from feasid.robot.tree import parents_first

GRAVITY = (0.0, 0.0, -9.81)
"""Free fall in the base frame unless the description says otherwise [m/s^2]."""


@dataclass(frozen=True)
class Source:
    """The text a robot was read from, kept so that it can be written back with few changes."""

    path: str
    format: str
    text: bytes = field(repr=False)
    notes: tuple[str, ...] = ()
    """What was repaired while reading, each naming file, line and joint; which joint terms were
    read; and in one line everything in the file that the robot leaves out, by name."""
    reading: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Options of `load_robot` with which it was read."""


@checked
@dataclass(frozen=True, eq=False)
class Robot(RobotLayout):
    """A kinematic tree with named parameters, couplings and loop closures.

    Raises
    ------
    DescriptionError
        A body or joint occurs twice, is unknown, or is part of a cycle; the message names it.
    """

    #: In any order; they are sorted so that parents come first and the order is otherwise kept.
    bodies: tuple[Body, ...]
    #: Shape (3,): gravity vector in the base frame [m/s^2].
    gravity: Numbers = field(default_factory=lambda: np.array(GRAVITY))
    name: str = "robot"  #: As messages call it.
    drives: tuple[Drive, ...] = ()  #: Joint terms; see `with_joint_terms`.
    source: Source | None = field(default=None, metadata=TRANSIENT)  #: The file it came from.
    #: Links that do not move (fixed to the world), remembered for writing back.
    fixed: tuple[Member, ...] = ()
    #: Shape (n_bodies, 10): inertial parameters from which the load of load friction (fl) is
    #: computed.
    load_model: Numbers | None = None
    #: Joints that follow others; see `feasid.robot.couplings`.
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()  #: Closed loops; see `with_loops`, which checks them.
    active: tuple[str, ...] = ()  #: See `loops`.
    #: Joints without a motor: their torque is exactly zero, whatever a log says. See
    #: `with_passive_joints` and `with_elastic_joints`.
    passive: tuple[str, ...] = ()
    configuration: Mapping[str, float] = field(default_factory=dict)  #: See `loops`.

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "bodies", parents_first(tuple(self.bodies)))
        set_(self, "gravity", read_only_array(self.gravity, (3,), "gravity"))
        set_(self, "drives", tuple(self.drives))
        set_(self, "couplings", tuple(self.couplings))
        if not self.dof:
            raise DescriptionError("every joint is held or coupled: nothing can move")
        for drive in self.drives:
            for joint in drive.coupling:
                if self.bodies[self.joint_index(joint)].dof != 1:
                    raise DescriptionError(f"drive {drive.name!r}: joint {joint!r} has several dof")
        set_(self, "passive", tuple(self.passive))
        if {self.joint_index(joint) for joint in self.passive}.issuperset(range(len(self.bodies))):
            raise DescriptionError("every joint is passive: no torque shows how heavy bodies are")
        if self.load_model is not None:
            shape = len(self.bodies), 10
            set_(self, "load_model", read_only_array(self.load_model, shape, "the load model"))
        elif any(d.depends_on_load for d in self.drives):
            raise DescriptionError("terms that depend on the load (fl) need a load_model")
        doubled = sorted(name for name, n in Counter(self.parameter_names).items() if n > 1)
        if doubled:
            raise DescriptionError(f"parameter names are doubled: {doubled}")

    @classmethod
    def from_dh(
        cls,
        rows: Sequence[Sequence[Any] | Mapping[str, Any]],
        *,
        convention: str = "standard",
        gravity: npt.ArrayLike = GRAVITY,
        names: Sequence[str] | None = None,
        name: str = "robot",
    ) -> Robot:
        """Build a serial arm from a Denavit-Hartenberg table.

        Parameters
        ----------
        rows
            Per joint ``(alpha, a, d, theta[, type])`` or a mapping with these keys; angles in rad,
            lengths in m; ``type`` is "revolute" (default) or "prismatic".
        convention : {"standard", "modified"}
            "standard" is Rz(theta) Tz(d) Tx(a) Rx(alpha), "modified" Rx(alpha) Tx(a) Rz(theta)
            Tz(d).
        names : sequence of str, optional
            Of bodies and joints; default "1", "2", ...
        gravity : array_like, shape (3,)
            Gravity vector in the base frame [m/s^2].
        name : str

        Returns
        -------
        Robot

        Raises
        ------
        DescriptionError
            A row cannot be used; the message names it.
        """
        bodies = bodies_from_dh(rows, convention=convention, names=names)
        return cls(bodies, np.asarray(gravity, dtype=np.float64), name)

    # -- variations --------------------------------------------------------------------------

    def with_values(self, parameters: Measured) -> Robot:
        """Copy of the robot with these standard parameters.

        Parameters
        ----------
        parameters : array_like, shape (n,)

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            `parameters` does not have n entries, or an entry is not finite; the message names it.
        """
        return replace_values(self, self.check_parameters(parameters))

    def with_loops(
        self,
        loops: Sequence[Loop],
        active: Sequence[str] = (),
        configuration: Mapping[str, float] | None = None,
    ) -> Robot:
        """Copy of the robot with closed loops.

        Parameters
        ----------
        loops : sequence of Loop
            Points or frames that two bodies share; see `feasid.robot.couplings`.
        active : sequence of str
            Joints that are to be independent: those with motors. By default the first that the
            loops leave free.
        configuration : mapping of str to float, optional
            Joint positions [rad or m] from which the loops are assembled; default zero. It
            chooses the branch: which way a knee bends.

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            The loops do not close or are singular at `configuration`, or the joints in `active` are
            not independent.
        """
        for joint in (*active, *(configuration or {})):
            self.joint_index(joint)
        closed = replace(
            self, loops=tuple(loops), active=tuple(active), configuration=dict(configuration or {})
        )
        closure = closed.closure
        if closure is None:
            return closed
        active_names = {closure.names[k] for k in closure.active}
        missing = [joint for joint in active if joint not in active_names]
        if missing:
            hint = did_you_mean(missing[0], active_names)
            raise InputError(
                f"the loops of robot {self.name!r} leave {len(closure.active)} independent "
                f"joint(s): with {', '.join(active)} asked for, {missing[0]!r} cannot be one{hint}",
                joint=missing[0],
            )
        closure.check_mobility()
        return closed

    def with_gravity(self, gravity: npt.ArrayLike) -> Robot:
        """Copy of the robot in another gravity field.

        Parameters
        ----------
        gravity : array_like, shape (3,)
            Gravity vector in base coordinates [m/s^2].

        Returns
        -------
        Robot

        Raises
        ------
        DescriptionError
            `gravity` is not three finite numbers.
        """
        return replace(self, gravity=np.asarray(gravity, dtype=np.float64))

    def locked(self, joints: Mapping[str, npt.ArrayLike]) -> Robot:
        """The robot with these joints held at these positions.

        Parameters
        ----------
        joints : mapping of str to float
            Position per joint name [rad or m]; a vector of n_d numbers for a joint of several
            degrees of freedom.

        Returns
        -------
        Robot
            A robot without these joints, and without joints that follow only these. The inertial
            parameters of a held body (and of its rotor) are added to its parent's; a body held to
            the base is listed in `Robot.fixed`. Drives lose the joint from their coupling; a drive
            of this joint alone is removed. If the robot came from a file, ``source.reading``
            records the held joints.

        Raises
        ------
        InputError
            A joint does not exist, or its position is not finite; the message names it.
        """
        positions = {}
        for name, value in joints.items():
            dof = self.bodies[self.joint_index(name)].dof
            positions[name] = read_only_array(
                np.atleast_1d(value), (dof,), f"position of joint {name!r}"
            )
        for joint in positions.keys() & self.elastic.keys():
            positions.setdefault(self.elastic[joint], positions[joint])  # its spring is slack
            if joint in self.sensors:
                positions.setdefault(self.sensors[joint], np.zeros(1))
        # Joints that follow held ones alone are held, too.
        couplings = self.couplings
        leading = {c.joint for c in couplings if c.factors}
        waiting = [*positions]
        for joint in waiting:
            couplings = without_joint(couplings, joint, float(positions[joint][0]))
            for coupling in couplings:
                name = coupling.joint
                if not coupling.factors and name in leading and name not in positions:
                    positions[name] = np.array([coupling.offset])
                    waiting.append(name)
        if len(positions) == len(self.bodies):
            last = [*positions][-1]
            raise InputError(f"locking joint {last!r} leaves no moving body", joint=last)
        parts = self.bodies, self.drives, self.fixed
        for name, position in positions.items():
            parts = hold_joint(*parts, name, position)
        bodies, drives, members = parts
        load, source = self.load_model, self.source
        if load is not None:
            rows = zip(self.bodies, load, strict=True)
            loads = tuple(replace(b, inertial=row, rotor=None) for b, row in rows)
            alone = replace(self, bodies=loads, drives=(), load_model=None, loops=(), active=())
            load = np.array([b.inertial for b in alone.locked(joints).bodies])
        if source is not None:
            seen = {j: x.tolist() if len(x) > 1 else float(x[0]) for j, x in positions.items()}
            held = {**source.reading.get("lock", {}), **seen}
            source = replace(source, reading={**source.reading, "lock": held})
        return replace(
            self,
            bodies=bodies,
            drives=drives,
            source=source,
            fixed=members,
            load_model=load,
            couplings=couplings,
            active=tuple(joint for joint in self.active if joint not in positions),
            passive=tuple(joint for joint in self.passive if joint not in positions),
            configuration={j: q for j, q in self.configuration.items() if j not in positions},
        )

    def with_joint_terms(
        self,
        friction: Sequence[str] = ("viscous", "coulomb", "offset"),
        drive_inertia: bool = False,
        couplings: Sequence[Drive] = (),
        joints: Sequence[str] | None = None,
        features: Mapping[str, Sequence[CustomJointTerm]] | None = None,
    ) -> Robot:
        """Copy of the robot with these terms on its one-degree-of-freedom joints.

        Parameters
        ----------
        friction : sequence of names of `feasid.robot.joint_terms.FRICTION`
            Terms of the friction fv dq + fc sign(dq) + fo and further ones; empty for none.
        drive_inertia : bool
            Add the drive inertia Ia seen by each joint.
        couplings : sequence of Drive
            Further drives, for motors that move several joints, in place of those it has.
        joints : sequence of str, optional
            Only these joints; default all with one degree of freedom.
        features : mapping of str to sequence of CustomJointTerm, optional
            Custom terms by joint; springs and custom terms that the robot already has are kept.

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            A friction term or joint is unknown; the message gives the closest name.
        DescriptionError
            A drive cannot have these terms together.
        """
        if isinstance(friction, str):
            friction = (friction,)
        if unknown := [f for f in friction if f not in FRICTION]:
            hint = did_you_mean(unknown[0], FRICTION)
            raise InputError(f"unknown friction term {unknown[0]!r}{hint}: choose of {[*FRICTION]}")
        wanted = {s for f in friction for s in FRICTION[f]} | ({"Ia"} if drive_inertia else set())
        symbols = tuple(s for s in DRIVE_SYMBOLS if s in wanted)
        names = self.joints if joints is None else joints
        drives_by_name = {d.name: d for d in self.drives if len(d.coupling) == 1}
        drives = []
        more = {self.joint_index(j): tuple(f) for j, f in (features or {}).items()}
        for i in sorted({*(self.joint_index(j) for j in names), *more}):
            body, drive = self.bodies[i], drives_by_name.get(self.bodies[i].name)
            mine = more.get(i, drive.features if drive is not None else ())
            # What a passive joint turns has no motor, whose inertia would be a drive's.
            here = tuple(s for s in symbols if s != "Ia" or body.joint not in self.passive)
            here = ("fo",) if body.joint in self.sensors.values() else here
            if body.dof == 1 and (here or mine or (drive is not None and "k" in drive.symbols)):
                drives.append(drive_with_terms(drive, body, here, mine))
        load = None
        if any(d.depends_on_load for d in drives):
            load = self.values[self.inertial_columns]
            if not np.isfinite(load).all():
                raise InputError(
                    "load-dependent friction needs inertial parameters of every body, and the "
                    f"description of robot {self.name!r} lacks some"
                )
        shared = [d for d in self.drives if len(d.coupling) > 1 and d not in couplings]
        springs = [drive for drive in shared if "k" in drive.symbols]
        return replace(self, drives=(*drives, *springs, *couplings), load_model=load)

    def with_passive_joints(self, joints: Sequence[str]) -> Robot:
        """Copy of the robot with joints that no motor moves: pendulums, casters, trailers.

        Their torque is exactly zero. A fit takes these equations besides those of the motors; the
        log needs their positions and no torque.

        Parameters
        ----------
        joints : sequence of str

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            A joint does not exist; the message gives the closest name.
        DescriptionError
            No joint with a motor is left.
        """
        return replace(self, passive=tuple(dict.fromkeys((*self.passive, *joints))))

    def with_elastic_joints(self, joints: Sequence[str]) -> Robot:
        """Copy of the robot with springs between the motors of these joints and their links.

        Motor and link are two coordinates, theta and q, after Spong (1987, "Modeling and control
        of elastic joint robots", J. Dyn. Sys. Meas. Control): the motor's torque is ``Ia
        ddtheta + friction + k (theta - q) + d (dtheta - dq)``, and the link's equations, in which
        the spring pulls at its other end, hold without a torque. ``<joint>`` is the link's
        coordinate, with friction of its bearing, ``<joint>_motor`` that of the motor, on the
        link's side of the gear, and ``<joint>_spring`` has stiffness ``k`` and damping ``fv``.

        A log needs both positions, ``q_<joint>`` of the link and ``theta_<joint>`` of the motor,
        and the motor's torque ``tau_<joint>``. One encoder alone does not show a stiffness.

        Parameters
        ----------
        joints : sequence of str
            With one degree of freedom each.

        Returns
        -------
        Robot
            All joints with one degree of freedom that had no joint terms get the usual ones.

        Raises
        ------
        InputError
            A joint does not exist, has several degrees of freedom, or is elastic already.

        Examples
        --------
        >>> import feasid
        >>> arm = feasid.Robot.from_dh([(0, 0, 0.3, 0), (1.57, 0.4, 0, 0)])
        >>> arm.with_elastic_joints(["2"]).coordinates
        ('2_motor', '1', '2')
        """
        bodies = {j: self.bodies[self.joint_index(j)] for j in joints}
        if bad := [j for j, b in bodies.items() if b.dof != 1 or j in self.passive]:
            raise InputError(
                f"joint {bad[0]!r} is passive, elastic already, or has several degrees of freedom",
                joint=bad[0],
            )
        motors, drives = [], list(self.drives)
        for body in self.bodies:
            drive = next((d for d in drives if d.coupling.keys() == {body.joint}), None)
            if drive is not None:
                drives.remove(drive)
            if body.dof > 1:
                continue
            if drive is None or drive.from_file:
                without = {"Ia"} if body.joint in self.passive else set()
                symbols = tuple(s for s in USUAL_SYMBOLS if s not in without)
                drive = drive_with_terms(drive, body, symbols, ())
            if body.joint not in bodies:
                drives.append(drive)
                continue
            # A rotor that has drive inertia alone moves nothing else, wherever it is.
            motor, turn = f"{body.joint}_motor", body.motion[:3].any()
            axis = np.array([[0.0, 0, turn, 0, 0, not turn]]).T
            motors.append(Body(motor, None, motion=axis, massless=True))
            drives += [
                replace(drive, name=motor, coupling={motor: 1.0}),
                Drive(body.name, {body.joint: 1.0}, ("fv", "fc", "fo")),
                Drive(f"{body.joint}_spring", {body.joint: 1.0, motor: -1.0}, ("fv", "k")),
            ]
        robot = replace(self, bodies=(*motors, *self.bodies), drives=tuple(drives))
        return robot.with_passive_joints(joints)

    def without_elastic_joints(self) -> Robot:
        """The robot with rigid joints in place of elastic ones, their terms those of both sides."""
        robot, elastic = self.without_torque_sensors(), self.elastic
        single = [k for k, d in enumerate(robot.drives) if len(d.coupling) == 1]
        places, drives = {j: k for k in single for j in robot.drives[k].coupling}, []
        for k, drive in enumerate(robot.drives):
            if drive.coupling.keys() & {*elastic.values()}:
                continue
            (joint, *others) = drive.coupling
            if joint in elastic and not others:
                motor = places[elastic[joint]]
                sides = robot.drive_columns(motor), robot.drive_columns(k)
                symbols = tuple({**sides[0], **sides[1]})
                values = np.array([sum(robot.values[x[s]] for x in sides if s in x)
                                   for s in symbols])  # fmt: skip
                drive = replace(
                    robot.drives[motor], name=drive.name, coupling=drive.coupling, symbols=symbols,
                    values=values if np.isfinite(values).all() else None,
                )  # fmt: skip
            drives.append(drive)
        return replace(
            robot,
            bodies=tuple(b for b in robot.bodies if b.joint not in elastic.values()),
            drives=tuple(drives),
            passive=tuple(joint for joint in robot.passive if joint not in elastic),
        )

    def with_torque_sensors(self, joints: Sequence[str]) -> Robot:
        """Copy of the robot with a torque sensor between the spring and the link of these joints.

        By the principle of virtual work it measures the torque along a cut through the joint,
        coordinate ``<joint>_sensor``, which stays at zero: ``k (theta - q) + d (dtheta - dq)`` and
        an offset ``<joint>_sensor.fo``. The equations of motor and link stay as they are.

        Parameters
        ----------
        joints : sequence of str
            Elastic ones.

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            A joint is not elastic, or has a sensor already.

        Examples
        --------
        >>> import feasid
        >>> arm = feasid.Robot.from_dh([(0, 0, 0.3, 0), (1.57, 0.4, 0, 0)])
        >>> arm.with_elastic_joints(["2"]).with_torque_sensors(["2"]).coordinates
        ('2_sensor', '2_motor', '1', '2')
        """
        if bad := [j for j in joints if j not in self.elastic or j in self.sensors]:
            raise InputError(
                f"joint {bad[0]!r} is not elastic, or has a torque sensor already", joint=bad[0]
            )
        sensors, drives = [], [*self.drives]
        for joint in joints:
            motor, sensor = self.elastic[joint], f"{joint}_sensor"
            sensors.append(replace(self.bodies[self.joint_index(motor)], name=sensor, joint=sensor))
            place = [[*d.coupling] for d in drives].index([joint, motor])
            along = drives[place].coupling
            drives[place] = replace(drives[place], coupling={**along, sensor: along[motor]})
            drives.append(Drive(sensor, {sensor: 1.0}, ("fo",)))
        return replace(self, bodies=(*sensors, *self.bodies), drives=tuple(drives))

    def without_torque_sensors(self) -> Robot:
        """The robot that moves: without coordinates of sensors, which have no mass."""
        sensors = {*self.sensors.values()}
        bodies = tuple(b for b in self.bodies if b.joint not in sensors)
        ends = [({j: c for j, c in d.coupling.items() if j not in sensors}, d) for d in self.drives]
        drives = tuple(replace(d, coupling=coupling) for coupling, d in ends if coupling)
        return replace(self, bodies=bodies, drives=drives) if sensors else self

    def require_motors(self) -> None:
        """Raise `InputError` if a joint is passive: nothing can be asked of it."""
        if self.passive:
            joint = self.passive[0]
            way = f"lock it, load_robot(..., lock={{{joint!r}: 0.0}})"
            if joint in self.elastic:
                way = "take the rigid robot, its description or robot.without_elastic_joints()"
            raise InputError(
                f"joint {joint!r} has no motor, which could make it follow: {way}", joint=joint
            )

    def with_transition(self, speed: float) -> Robot:
        """Copy of the robot with Coulomb friction that changes sign over this speed.

        Parameters
        ----------
        speed : float
            [rad/s or m/s]; 0 for a sign that jumps.

        Returns
        -------
        Robot

        Raises
        ------
        DescriptionError
            `speed` is negative or not finite.
        """
        return replace(self, drives=tuple(replace(d, transition=speed) for d in self.drives))

    def without_joint_terms(self) -> Robot:
        """The rigid bodies alone: no drives, hence no friction, drive inertia or springs."""
        return replace(self, drives=(), load_model=None)

    def __repr__(self) -> str:
        terms = sorted({s for d in self.drives for s in d.symbols}, key=DRIVE_SYMBOLS.index)
        return (
            f"<Robot {self.name!r}: {len(self.bodies)} bodies, {self.dof} dof, {self.size} "
            f"parameters{', joint terms ' + ' '.join(terms) if terms else ''}"
            f"{'; ' + self.constraint_summary if self.constraint_summary else ''}>"
        )


def replace_values(robot: Robot, delta: Array) -> Robot:
    """The robot with these standard parameters, (n,); what has NaN among its own gets none."""

    def finite_or_none(part: Array) -> Array | None:
        return part if np.isfinite(part).all() else None

    bodies = []
    for i, body in enumerate(robot.bodies):
        values = finite_or_none(delta[robot.rotor_columns(i)])
        rotor = body.rotor and replace(body.rotor, values=values)
        ten = finite_or_none(delta[robot.inertial_columns[i]])
        bodies.append(replace(body, inertial=ten, rotor=rotor))
    drives = tuple(
        replace(drive, values=finite_or_none(delta[list(robot.drive_columns(k).values())]))
        for k, drive in enumerate(robot.drives)
    )
    return replace(robot, bodies=tuple(bodies), drives=drives)
