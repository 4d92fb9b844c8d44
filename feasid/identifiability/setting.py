"""A robot prepared for the recursion: drives, rotors and what each joint does to spans."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import UnsupportedJointError
from feasid.identifiability.frames import SYMMETRIC, Frames, axis_of, congruence, motion_transform
from feasid.identifiability.spectral import (
    ROOT2,
    WEAK,
    Action,
    Spectrum,
    joined,
    momentum,
    parameter_spectrum,
    span,
    velocity_spectrum,
)
from feasid.robot.description import Robot
from feasid.robot.parts import Rotor

Key = tuple[bytes, bool, bool]
"""An axis through the origin, whether a screw turns about it and whether it shifts along it."""

GRAVITY_SEED = -1
"""Key of gravity among the seeds; other keys are the joints that share a drive."""

NEAR = (1e-13, 1e-5)
"""Singular values in between are neither zero nor safely not: the geometry is near-degenerate."""

FULL = {m: np.eye(m) for m in (6, 10)}
"""Whole spaces: bodies beyond one that can move and be felt in every way need no more ranks."""

NONE = {m: np.zeros((m, 0)) for m in (6, 10)}
"""Empty spaces."""

SPIN = np.array([0.0, 0, 1, 0, 0, 0])
"""A rotor's own screw, in its frame."""


@dataclass(frozen=True, eq=False)
class Near:
    """A singular value that decides the rank at a joint but is suspiciously small."""

    body: int
    what: str
    value: float


@dataclass(frozen=True, eq=False)
class RotorView:
    """A rotor as its joint's parent sees it: transforms to it, and its action and momentum."""

    lift: Array  # (r, 6) velocities of the parent to those of the rotor
    inertia: Array  # (10, p) parameters of the rotor to the parent's x
    speed: float
    velocity: Spectrum
    parameter: Spectrum
    momentum: Array  # (r, p)

    @property
    def scale(self) -> Array:
        """Working units of the rotor's parameters, (p,): those felt through the gear are small."""
        felt = np.abs(self.momentum).max(axis=0) > 0
        return np.where(felt & (self.speed != 0), 1 / abs(self.speed or 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the recursion needs to know of a robot, in working units.

    Parameters
    ----------
    robot : Robot
    measured : collection of int, optional
        Bodies whose joint torques are measured; default all.
    static : bool
        Only postures at rest (Remark 8, App. F).
    held : collection of int
        Bodies whose joints stay where they are, at their home position.
    """

    robot: Robot
    measured: frozenset[int] | None = None
    static: bool = False
    held: frozenset[int] = frozenset()
    near_notes: list[Near] = field(default_factory=list)
    _spectra: dict[Key, tuple[Spectrum, Spectrum]] = field(default_factory=dict)
    _orbits: dict[Key, tuple[list[Action], list[Action]]] = field(default_factory=dict)

    @cached_property
    def frames(self) -> Frames:
        """Working frames."""
        return Frames.of(self.robot)

    # -- drives ------------------------------------------------------------------------------

    @cached_property
    def own_drives(self) -> tuple[int | None, ...]:
        """For each body the drive that is its joint's own, None without."""
        owner: list[int | None] = [None] * len(self.robot.bodies)
        for k, drive in enumerate(self.robot.drives):
            if len(drive.coupling) == 1:
                i = self.robot.joint_index(next(iter(drive.coupling)))
                if owner[i] is None and drive.name == self.robot.bodies[i].name:
                    owner[i] = k
        return tuple(owner)

    @cached_property
    def other_drives(self) -> tuple[int, ...]:
        """Drives of several joints, or further ones of a joint."""
        own = set(self.own_drives)
        return tuple(k for k in range(len(self.robot.drives)) if k not in own)

    @cached_property
    def shared_columns(self) -> tuple[tuple[int, str, int], ...]:
        """(drive, symbol, parameter column) of every Ia and fo that is nobody's own."""
        return tuple(
            (k, symbol, column)
            for k in self.other_drives
            for symbol, column in self.robot.drive_columns(k).items()
            if symbol in ("Ia", "fo")
        )

    @cached_property
    def couplings(self) -> dict[int, dict[int, float]]:
        """Factor per body of every drive that is nobody's own."""
        return {
            k: {self.robot.joint_index(j): c for j, c in self.robot.drives[k].coupling.items()}
            for k in self.other_drives
        }

    @cached_property
    def coupled(self) -> frozenset[int]:
        """Joints that share a drive's inertia with another joint."""
        out: set[int] = set()
        for k, symbol, _ in self.shared_columns:
            if symbol == "Ia" and len(self.couplings[k]) > 1 and not self.static:
                out |= set(self.couplings[k])
        return frozenset(out)

    @cached_property
    def shared_units(self) -> Array:
        """Size of a working unit of each of `shared_columns`."""
        units = []
        for k, symbol, _ in self.shared_columns:
            largest = max(abs(c) / self.sizes[i] for i, c in self.couplings[k].items())
            units.append(1 / largest**2 if symbol == "Ia" else (self.frames.pull or 1.0) / largest)
        return np.array(units)

    def shared_row(self, i: int, key: int) -> Array:
        """Drive terms of joint i that belong to a seed, shape (g,)."""
        out = np.zeros(len(self.shared_columns))
        for g, (k, symbol, _) in enumerate(self.shared_columns):
            factor = self.couplings[k].get(i, 0.0) / self.sizes[i]
            if symbol == "Ia" and key >= 0 and not self.static:
                factor *= self.couplings[k].get(key, 0.0) / self.sizes[key]
            elif symbol == "fo" and key == GRAVITY_SEED:
                factor /= self.frames.pull or 1.0
            else:
                factor = 0.0
            out[g] = factor * self.shared_units[g]
        return out

    # -- rotors ------------------------------------------------------------------------------

    @cached_property
    def rotors(self) -> tuple[RotorView | None, ...]:
        """Rotors in working units."""
        return tuple(self._rotor(i, b.rotor) for i, b in enumerate(self.robot.bodies))

    def _rotor(self, i: int, rotor: Rotor | None) -> RotorView | None:
        if rotor is None:
            return None
        body = self.robot.bodies[i]
        if body.dof != 1:
            raise UnsupportedJointError(
                f"joint {body.joint!r} has a rotor but {body.dof} degrees of freedom: a rotor "
                "turns at a ratio of one joint position",
                joint=body.joint,
            )
        f, p = self.frames, self.robot.parents[i]
        origin = f.origins[p] if p >= 0 else body.position
        position = (rotor.position - origin) / f.length
        lift = motion_transform(rotor.rotation, position)
        inertia = ROOT2[:, None] * congruence(rotor.rotation, position) / ROOT2
        speed = rotor.gear / float(f.speeds[i][0])
        if rotor.symmetric:
            still_v, still_p = Spectrum(np.eye(1), {}, None, 1), Spectrum(np.eye(4), {}, None, 1)
            spin = np.array([[0.0, 1.0, 0.0, 0.0]])
            return RotorView(
                lift[2:3], inertia @ (ROOT2[:, None] * SYMMETRIC), speed, still_v, still_p, spin
            )
        velocity, parameter = self._spectrum(SPIN)
        return RotorView(lift, inertia, speed, velocity, parameter, momentum(SPIN))

    @cached_property
    def sizes(self) -> Array:
        """Per joint what a working unit of its torque is: length times speed."""
        return np.array([self.frames.size(i) for i in range(len(self.robot.bodies))])

    @cached_property
    def gears(self) -> Array:
        """Per joint the size of its gear ratio, at least 1."""
        return np.array([1.0 if r is None else max(1.0, abs(r.speed)) for r in self.rotors])

    # -- the recursion -----------------------------------------------------------------------

    def _spectrum(self, screw: Array) -> tuple[Spectrum, Spectrum]:
        axis, turns, shifts = axis_of(screw)
        key = (axis.tobytes(), turns, shifts)
        if key not in self._spectra:
            pair = velocity_spectrum(axis, turns, shifts), parameter_spectrum(axis, turns, shifts)
            self._spectra[key] = pair
            self._orbits[key] = [pair[0].action()], [pair[1].action()]
        return self._spectra[key]

    def actions(self, i: int) -> tuple[list[Action], list[Action]]:
        """Actions of joint i's screws on velocities and on functionals, rotor included."""
        rotor = self.rotors[i]
        if rotor is not None:
            v, k = self._spectrum(self.frames.screws[i][0])
            return (
                [joined(v, rotor.velocity, rotor.speed)],
                [joined(k, rotor.parameter, rotor.speed)],
            )
        if self.robot.bodies[i].dof == 1:
            self._spectrum(self.frames.screws[i][0])
            axis, turns, shifts = axis_of(self.frames.screws[i][0])
            return self._orbits[axis.tobytes(), turns, shifts]
        return _screw_actions(self, self.frames.screws[i])

    def basis(self, columns: Array, body: int, what: str) -> Array:
        """Basis of a span, noting what is nearly degenerate."""
        out, s = span(columns)
        if s.size and s[-1] < NEAR[1]:
            for value in s[(s > NEAR[0]) & (s < NEAR[1])].tolist():
                self.near_notes.append(Near(body, what, value))
        m = columns.shape[0]
        return FULL[m] if m in FULL and out.shape[1] == m and s[-1] >= WEAK else out


def _screw_actions(run: Setting, screws: Array) -> tuple[list[Action], list[Action]]:
    """Actions of each screw of a joint of several degrees of freedom.

    A screw whose axis misses the working origin is moved there and back.
    """
    velocity, parameter = [], []
    for screw in screws:
        w, v = screw[:3], screw[3:]
        centre = np.cross(w, v) if w.any() else np.zeros(3)
        moved = np.r_[w, v + np.cross(w, centre)]
        a, b = (s.action() for s in run._spectrum(moved))
        if np.abs(centre).max() > 0:
            x = motion_transform(np.eye(3)[None], centre[None])[0]
            back = motion_transform(np.eye(3)[None], -centre[None])[0]
            a = Action(back @ a.still @ x, back @ a.moving @ x)
            t = ROOT2[:, None] * congruence(np.eye(3), -centre) / ROOT2
            t_back = ROOT2[:, None] * congruence(np.eye(3), centre) / ROOT2
            b = Action(t.T @ b.still @ t_back.T, t.T @ b.moving @ t_back.T)
        velocity.append(a)
        parameter.append(b)
    return velocity, parameter
