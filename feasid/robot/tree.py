"""The kinematic tree: bodies, their joints' coordinates, and poses."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array, require_finite
from feasid.core.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling, CouplingMap, Loop, resolve_couplings
from feasid.robot.rotations import compose, exponential


@checked_methods
class KinematicTree:
    """Kinematic tree of a robot's bodies and couplings, and the loops that are to be closed."""

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

    @cached_property
    def coupling_map(self) -> CouplingMap:
        """All joint coordinates from those that no coupling determines."""
        return resolve_couplings(self.joints, self.rows, self.couplings)

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
        if joint not in self.joints:
            hint = did_you_mean(joint, self.joints)
            raise InputError(
                f"robot {self.name!r} has no joint {joint!r}{hint}; its joints: "
                f"{', '.join(self.joints)}",
                joint=joint,
            )
        return self.joints.index(joint)

    def pose(
        self, positions: Mapping[str, npt.ArrayLike] | None = None
    ) -> dict[str, tuple[Array, Array]]:
        """Rotation and position of each body in the base frame.

        Parameters
        ----------
        positions : mapping of str to float or array_like, optional
            By joint [rad or m], one per degree of freedom; zero for the others.

        Returns
        -------
        dict of str to (ndarray, ndarray)
            By body, shapes (3, 3) and (3,) [m].

        Raises
        ------
        InputError
            A joint does not exist (the message gives the closest name), or a position is not
            finite.
        """
        values = {}
        for joint, position in (positions or {}).items():
            i = self.joint_index(joint)
            shape = () if np.ndim(position) == 0 else (self.bodies[i].dof,)
            values[i] = require_finite(position, shape, f"position of {joint!r}")
        out: dict[str, tuple[Array, Array]] = {}
        for i, body in enumerate(self.bodies):
            q = np.zeros(body.dof) + values.get(i, 0.0)
            home = compose(body.rotation, body.position, *exponential(body.motion @ q))
            base = (np.eye(3), np.zeros(3)) if body.parent is None else out[body.parent]
            out[body.name] = compose(*base, *home)
        return out


def parents_first(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
    """Sort bodies so that parents come first and the order is otherwise kept.

    Raises DescriptionError: names bodies or joints that are doubled, have an unknown parent or form
    a cycle.
    """
    if not bodies:
        raise DescriptionError("a robot needs at least one body that moves")
    for kind in ("name", "joint"):
        count = Counter(getattr(b, kind) for b in bodies)
        doubled = sorted(name for name, n in count.items() if n > 1)
        if doubled:
            raise DescriptionError(f"two bodies have the same {kind}: {doubled}")
    children: dict[str | None, list[int]] = {None: [], **{body.name: [] for body in bodies}}
    for i, body in enumerate(bodies):
        if body.parent not in children:
            hint = did_you_mean(body.parent, [b.name for b in bodies])
            raise DescriptionError(f"body {body.name!r} has unknown parent {body.parent!r}{hint}")
        children[body.parent].append(i)
    ready, order = children[None], []
    # Of the bodies whose parents are placed, the heap gives the first in the given order.
    while ready:
        body = bodies[heapq.heappop(ready)]
        order.append(body)
        for child in children[body.name]:
            heapq.heappush(ready, child)
    if len(order) < len(bodies):
        raise DescriptionError(
            f"bodies form a cycle: {sorted({b.name for b in bodies} - {b.name for b in order})}"
        )
    return tuple(order)
