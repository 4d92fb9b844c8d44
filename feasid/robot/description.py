"""The robot: a tree of bodies with named parameters, in the order in which they are stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.closure import with_loops
from feasid.robot.couplings import Coupling, without_joint
from feasid.robot.dh import bodies_from_dh
from feasid.robot.joint_terms import DRIVE_SYMBOLS, FRICTION
from feasid.robot.layout import ParameterLayout
from feasid.robot.lock import hold
from feasid.robot.loops import Loop
from feasid.robot.order import parents_first
from feasid.robot.parts import Body, Drive, Feature, Member, Source, constant, drive_like

GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, eq=False)
class Robot(ParameterLayout):
    """A kinematic tree with named parameters, and what couples or closes it.

    Parameters
    ----------
    bodies : sequence of Body
        In any order; they are sorted so that parents come first and the order is otherwise kept.
    gravity : array_like, shape (3,)
        Acceleration of free fall in the base frame [m/s^2].
    name : str
    drives : sequence of Drive
        Joint terms; see `with_joint_terms`.
    source : Source or None
    fixed : sequence of Member
        Links that do not move (fixed to the world), remembered for writing back.
    load_model : ndarray, shape (n_bodies, 10), or None
        Inertial parameters by which load-dependent friction (fl) knows its load.
    couplings : sequence of Coupling
        Joints that follow others; see `feasid.robot.couplings`.
    loops, active, configuration
        Closed loops; see `with_loops`, which checks them.

    Raises
    ------
    DescriptionError
        Names the body or joint that is doubled, unknown or part of a cycle.
    """

    bodies: tuple[Body, ...]
    gravity: Array = field(default_factory=lambda: np.array(GRAVITY))
    name: str = "robot"
    drives: tuple[Drive, ...] = ()
    source: Source | None = None
    fixed: tuple[Member, ...] = ()
    load_model: Array | None = None
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    active: tuple[str, ...] = ()
    configuration: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "bodies", parents_first(tuple(self.bodies)))
        set_(self, "gravity", constant(self.gravity, (3,), "gravity"))
        set_(self, "drives", tuple(self.drives))
        set_(self, "couplings", tuple(self.couplings))
        if not self.dof:
            raise DescriptionError("every joint is held or coupled: nothing can move")
        for drive in self.drives:
            for joint in drive.coupling:
                if self.bodies[self.joint_index(joint)].dof != 1:
                    raise DescriptionError(f"drive {drive.name!r}: joint {joint!r} has several dof")
        names = self.parameter_names
        if self.load_model is not None:
            shape = len(self.bodies), 10
            set_(self, "load_model", constant(self.load_model, shape, "the load model"))
        elif any(d.loaded(s) for d in self.drives for s in d.symbols):
            raise DescriptionError("terms that depend on the load (fl) need a load_model")
        doubled = {n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else ()
        if doubled:
            raise DescriptionError(f"parameter names are doubled: {sorted(doubled)}")

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
        rows, convention, names
            See `feasid.robot.dh.bodies_from_dh`.
        gravity : array_like, shape (3,)
            Acceleration of free fall in the base frame [m/s^2].
        name : str

        Returns
        -------
        Robot

        Raises
        ------
        DescriptionError
            Names the row that cannot be used.
        """
        bodies = bodies_from_dh(rows, convention=convention, names=names)
        return cls(bodies, np.asarray(gravity, dtype=np.float64), name)

    # -- variations --------------------------------------------------------------------------

    def with_values(self, parameters: npt.ArrayLike) -> Robot:
        """The same robot with these standard parameters as its own.

        Parameters
        ----------
        parameters : array_like, shape (n,)

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            They are not n numbers, or one is not finite: which.
        """
        delta = self.check_parameters(parameters)
        bodies = [
            replace(
                body,
                inertial=delta[columns],
                rotor=body.rotor and replace(body.rotor, values=delta[self.rotor_columns(i)]),
            )
            for i, (columns, body) in enumerate(
                zip(self.inertial_columns, self.bodies, strict=True)
            )
        ]
        drives = [
            replace(drive, values=delta[list(self.drive_columns(k).values())])
            for k, drive in enumerate(self.drives)
        ]
        return replace(self, bodies=tuple(bodies), drives=tuple(drives))

    def with_loops(
        self,
        loops: Sequence[Loop],
        active: Sequence[str] = (),
        configuration: Mapping[str, float] | None = None,
    ) -> Robot:
        """The same robot with closed loops.

        Parameters
        ----------
        loops : sequence of Loop
            Points or frames that two bodies share; see `feasid.robot.loops`.
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
            When the loops do not close there, are singular there, or `active` cannot all be
            independent; with numbers.
        """
        return with_loops(self, loops, active, configuration)

    def with_gravity(self, gravity: npt.ArrayLike) -> Robot:
        """The same robot in another gravity field.

        Parameters
        ----------
        gravity : array_like, shape (3,)
            Acceleration of free fall in base coordinates [m/s^2].

        Returns
        -------
        Robot

        Raises
        ------
        DescriptionError
            It is not three finite numbers.
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
            Without these joints. The inertial parameters of a held body (and of its rotor) are
            added to its parent's; a body held to the base is listed in `Robot.fixed`. Drives
            lose the joint from their coupling, and disappear when it was their only one.

        Raises
        ------
        InputError
            Names the joint that does not exist or whose position is not a finite number.
        """
        positions = {}
        for name, value in joints.items():
            dof = self.bodies[self.joint_index(name)].dof
            positions[name] = constant(np.atleast_1d(value), (dof,), f"position of joint {name!r}")
        if len(positions) == len(self.bodies):
            last = [*positions][-1]
            raise InputError(f"locking joint {last!r} leaves no moving body", joint=last)
        if self.load_model is not None:
            raise InputError("lock joints before load-dependent friction is added")
        parts, couplings = (self.bodies, self.drives, self.fixed), self.couplings
        for name, position in positions.items():
            parts = hold(*parts, name, position)
            couplings = without_joint(couplings, name, float(position[0]))
        bodies, drives, fixed = parts
        return replace(
            self,
            bodies=bodies,
            drives=drives,
            fixed=fixed,
            couplings=couplings,
            active=tuple(joint for joint in self.active if joint not in positions),
            configuration={j: q for j, q in self.configuration.items() if j not in positions},
        )

    def with_joint_terms(
        self,
        friction: Sequence[str] = ("viscous", "coulomb", "offset"),
        drive_inertia: bool = False,
        couplings: Sequence[Drive] = (),
        joints: Sequence[str] | None = None,
        features: Mapping[str, Sequence[Feature]] | None = None,
    ) -> Robot:
        """The same robot with these terms on its one-degree-of-freedom joints.

        Parameters
        ----------
        friction : sequence of names of `feasid.robot.joint_terms.FRICTION`
            Terms of the friction fv dq + fc sign(dq) + fo and further ones; empty for none.
        drive_inertia : bool
            Add the drive inertia Ia seen by each joint.
        couplings : sequence of Drive
            Further drives, for motors that move several joints.
        joints : sequence of str, optional
            Only these joints; default all with one degree of freedom.
        features : mapping of str to sequence of Feature, optional
            Torques of the caller's own, by joint; springs and features that it has stay.

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            A friction term or joint that is not known, with the closest name.
        DescriptionError
            Terms that one drive cannot have.
        """
        if isinstance(friction, str):
            friction = (friction,)
        unknown = [f for f in friction if f not in FRICTION]
        if unknown:
            hint = did_you_mean(str(unknown[0]), FRICTION)
            raise InputError(f"unknown friction term {unknown[0]!r}{hint}: choose of {[*FRICTION]}")
        wanted = {s for f in friction for s in FRICTION[f]} | ({"Ia"} if drive_inertia else set())
        symbols = tuple(s for s in DRIVE_SYMBOLS if s in wanted)
        chosen = self.joints if joints is None else joints
        known = {d.name: d for d in self.drives if len(d.coupling) == 1}
        drives = []
        more = {self.joint_index(j): tuple(f) for j, f in (features or {}).items()}
        for i in sorted({*(self.joint_index(j) for j in chosen), *more}):
            body, own = self.bodies[i], known.get(self.bodies[i].name)
            mine = more.get(i, own.features if own is not None else ())
            if body.dof == 1 and (symbols or mine or (own is not None and "k" in own.symbols)):
                drives.append(drive_like(own, body, symbols, mine))
        load = self._loads() if any(d.loaded(s) for d in drives for s in d.symbols) else None
        return replace(self, drives=(*drives, *couplings), load_model=load)

    def _loads(self) -> Array:
        """Every body's own inertial parameters, by which friction shall know its load."""
        load = self.values[self.inertial_columns]
        if not np.isfinite(load).all():
            raise InputError(
                "load-dependent friction needs inertial parameters of every body, and the "
                f"description of robot {self.name!r} lacks some"
            )
        return np.asarray(load)

    def with_transition(self, speed: float) -> Robot:
        """The same robot with Coulomb friction that changes sign over this speed.

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
            It is negative or not finite.
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
            f"{'; ' + self.reduction if self.reduction else ''}>"
        )
