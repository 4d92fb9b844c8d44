"""How a robot's bodies hang together, and which joint coordinates are independent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, finite
from feasid.errors import InputError, did_you_mean
from feasid.robot.closure import Closure
from feasid.robot.couplings import Coupled, Coupling, coupled
from feasid.robot.loops import Loop
from feasid.robot.lump import compose
from feasid.robot.parts import Body
from feasid.robot.rotations import exponential


class Structure:
    """What follows from a robot's bodies, couplings and loops alone."""

    name: str
    bodies: tuple[Body, ...]
    couplings: tuple[Coupling, ...]
    loops: tuple[Loop, ...]
    active: tuple[str, ...]
    configuration: Mapping[str, float]

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each body's parent, -1 for the base."""
        index = {body.name: i for i, body in enumerate(self.bodies)}
        return tuple(-1 if b.parent is None else index[b.parent] for b in self.bodies)

    @cached_property
    def ancestors(self) -> tuple[tuple[int, ...], ...]:
        """For each body the bodies on the way from the base to it, itself last."""
        ways: list[tuple[int, ...]] = []
        for i, p in enumerate(self.parents):
            ways.append((*(ways[p] if p >= 0 else ()), i))
        return tuple(ways)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Joint names, one per body."""
        return tuple(b.joint for b in self.bodies)

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """For each body its joint's coordinates among all `axes`."""
        ends = np.cumsum([0, *(b.dof for b in self.bodies)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def axes(self) -> int:
        """Number of joint coordinates, those of coupled joints included."""
        return sum(b.dof for b in self.bodies)

    @property
    def dof(self) -> int:
        """Number of generalised coordinates: the joint coordinates that are independent."""
        return len(self.independent)

    @cached_property
    def coupled(self) -> Coupled:
        """All joint coordinates from those that no coupling determines."""
        return coupled(self.joints, self.rows, self.couplings)

    @cached_property
    def closure(self) -> Closure | None:
        """What the loops determine; None without loops."""
        return Closure(self) if self.loops else None

    @property
    def is_tree(self) -> bool:
        """Whether every joint moves by itself."""
        return not self.couplings and not self.loops

    @cached_property
    def independent(self) -> npt.NDArray[np.intp]:
        """Which joint coordinates the generalised ones are, shape (dof,)."""
        free = self.coupled.independent
        return free if self.closure is None else free[self.closure.active]

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """One name per generalised coordinate: the joint's, with ``_1``, ``_2`` if several."""
        names = [
            body.joint if body.dof == 1 else f"{body.joint}_{k + 1}"
            for body in self.bodies
            for k in range(body.dof)
        ]
        return tuple(names[i] for i in self.independent)

    @cached_property
    def moving(self) -> tuple[tuple[Body, slice], ...]:
        """Bodies on independent joints, and their rows among the generalised coordinates."""
        place = {int(i): k for k, i in enumerate(self.independent)}
        starts = [
            (body, place.get(r.start)) for body, r in zip(self.bodies, self.rows, strict=True)
        ]
        return tuple((b, slice(k, k + b.dof)) for b, k in starts if k is not None)

    @property
    def ties(self) -> list[str]:
        """Couplings and loops as text with every digit: what decides how joints move together."""
        out = [
            f"{c.joint} {sorted(c.factors.items())!r} {float(c.offset)!r}" for c in self.couplings
        ]
        for loop in self.loops:
            poses = (
                loop.first_position,
                loop.first_rotation,
                loop.second_position,
                loop.second_rotation,
            )
            numbers = [float(x) + 0.0 for array in poses for x in array.ravel()]
            out.append(f"{loop.kind} {loop.first} {loop.second} {numbers!r}")
        if self.closure is not None:
            out.append(f"{self.coordinates!r} {self.closure.assembled.round(6).tolist()!r}")
        return out

    @property
    def reduction(self) -> str:
        """What is less than it looks: coupled joints, loops, virtual links; empty for none."""
        parts = []
        if not self.is_tree:
            parts.append(f"{len(self.bodies)} joints, {self.dof} independent")
        if self.closure is not None:
            count, rank = self.closure.conditions.count, self.closure.rank
            spare = f", {count - rank} of them redundant" if rank < count else ""
            parts.append(f"{len(self.loops)} closed loops with {count} conditions{spare}")
        virtual = sum(body.massless for body in self.bodies)
        if virtual:
            parts.append(f"{virtual} virtual links without parameters")
        return "; ".join(parts)

    def joint_index(self, joint: str) -> int:
        """Index of the body on this joint.

        Parameters
        ----------
        joint : str

        Returns
        -------
        int

        Raises
        ------
        InputError
            With the closest name.
        """
        try:
            return self.joints.index(joint)
        except ValueError:
            hint = did_you_mean(joint, self.joints)
            raise InputError(
                f"robot {self.name!r} has no joint {joint!r}{hint}; its joints: "
                f"{', '.join(self.joints)}",
                joint=joint,
            ) from None

    def pose(self, positions: Mapping[str, float] | None = None) -> dict[str, tuple[Array, Array]]:
        """Rotation and position of each body in the base frame.

        Parameters
        ----------
        positions : mapping of str to float, optional
            By joint [rad or m]; zero for the others.

        Returns
        -------
        dict of str to (ndarray, ndarray)
            By body, shapes (3, 3) and (3,) [m].

        Raises
        ------
        InputError
            There is no such joint (with the closest name), or a position is no finite number.
        """
        given = {}
        for joint, position in (positions or {}).items():
            shape = () if np.ndim(position) == 0 else (self.bodies[self.joint_index(joint)].dof,)
            given[self.joint_index(joint)] = finite(position, shape, f"position of {joint!r}")
        out: dict[str, tuple[Array, Array]] = {}
        for i, body in enumerate(self.bodies):
            q = np.zeros(body.dof) + given.get(i, 0.0)
            home = compose(body.rotation, body.position, *exponential(body.motion @ q))
            base = (np.eye(3), np.zeros(3)) if body.parent is None else out[body.parent]
            out[body.name] = compose(*base, *home)
        return out
