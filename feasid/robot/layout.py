"""Which coordinates of a robot are independent, and which column belongs to which parameter."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Measured, checked_methods
from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, did_you_mean
from feasid.robot import inertia
from feasid.robot.bodies import Body, Member
from feasid.robot.closure import Closure
from feasid.robot.drives import Drive
from feasid.robot.tree import KinematicTree

if TYPE_CHECKING:
    import pandas as pd

LOOP_POSITION_RANGES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
"""Half ranges of independent joints with loops, in units of pi rad or of the robot's length, tried
in turn until enough configurations close."""

TRIES_PER_MOTION = 2  #: Configurations drawn per one that is needed, in each range.

BRANCH_PROBES = 60  #: Configurations that are drawn to find out whether a loop changes its branch.


@checked_methods
class RobotLayout(KinematicTree):
    """Independent coordinates, and standard parameters in their order.

    Parameters stand body by body: its ten, its rotor's and its drive's.
    """

    drives: tuple[Drive, ...]

    # -- coordinates -------------------------------------------------------------------------

    @property
    def dof(self) -> int:
        """Number of generalised coordinates: the joint coordinates that are independent."""
        return len(self.independent)

    @cached_property
    def closure(self) -> Closure | None:
        """Coordinates that the loops determine; None without loops."""
        return Closure(self) if self.loops else None

    @property
    def is_tree(self) -> bool:
        """Whether every joint moves by itself."""
        return not self.couplings and not self.loops

    @property
    def is_plain(self) -> bool:
        """Whether every joint moves by itself along one coordinate."""
        return self.is_tree and self.axes == len(self.bodies)

    @cached_property
    def independent(self) -> npt.NDArray[np.intp]:
        """Which joint coordinates the generalised ones are, shape (dof,)."""
        free = self.coupling_map.independent
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
    def moving_bodies(self) -> tuple[tuple[Body, slice], ...]:
        """Bodies on independent joints, and their rows among the generalised coordinates."""
        place = {int(i): k for k, i in enumerate(self.independent)}
        pairs = zip(self.bodies, self.rows, strict=True)
        starts = [(body, place.get(rows.start)) for body, rows in pairs]
        return tuple((b, slice(k, k + b.dof)) for b, k in starts if k is not None)

    @cached_property
    def elastic(self) -> dict[str, str]:
        """The motor of each elastic joint, by the joint of the link."""
        ends = [[*d.coupling] for d in self.drives if "k" in d.symbols and len(d.coupling) > 1]
        return {link: motor for link, motor, *_ in ends if motor == f"{link}_motor"}

    @cached_property
    def sensors(self) -> dict[str, str]:
        """The coordinate of the torque sensor of elastic joints that have one, likewise."""
        named = {link: f"{link}_sensor" for link in self.elastic}
        return {link: sensor for link, sensor in named.items() if sensor in self.joints}

    @cached_property
    def moves(self) -> Mask:
        """Which coordinates are not those of torque sensors, shape (dof,)."""
        return ~np.isin(self.coordinates, [*self.sensors.values()])

    @property
    def constraint_texts(self) -> list[str]:
        """Couplings and loops as text with every digit: what decides how joints move together."""
        out = [
            f"{c.joint} {sorted(c.factors.items())!r} {float(c.offset)!r}" for c in self.couplings
        ]
        for loop in self.loops:
            first, second = loop.first_rotation, loop.second_rotation
            poses = loop.first_position, first, loop.second_position, second
            numbers = [float(x) + 0.0 for array in poses for x in array.ravel()]  # no -0.0
            out.append(f"{loop.kind} {loop.first} {loop.second} {numbers!r}")
        if self.closure is not None:
            # Last digits of a solution by Newton's method differ between machines.
            home = self.closure.closed_configuration.round(6).tolist()
            out.append(f"{self.coordinates!r} {home!r}")
        return out

    @property
    def constraint_summary(self) -> str:
        """Coupled joints, loops and virtual links in a phrase; empty without any."""
        parts = []
        if not self.is_tree:
            parts.append(f"{len(self.bodies)} joints, {self.dof} independent")
        if self.closure is not None:
            count, rank = self.closure.conditions.count, self.closure.rank
            spare = f", {count - rank} of them redundant" if rank < count else ""
            parts.append(f"{len(self.loops)} closed loops with {count} conditions{spare}")
            if self.branch_point:
                at = ", ".join(f"{j} = {x:.2f}" for j, x in self.branch_point.items())
                parts.append(f"a loop can change its branch, as near {at}: no sample goes beyond")
        virtual = sum(body.massless for body in self.bodies)
        if virtual:
            parts.append(f"{virtual} virtual links without parameters")
        return "; ".join(parts)

    @cached_property
    def position_limits(self) -> Array:
        """Lower and upper limits of all joints [rad or m], infinite without; (2, axes, 1).

        Those that the assembled configuration of closed loops exceeds are moved there.
        """
        out = np.repeat([[[-np.inf]], [[np.inf]]], self.axes, axis=1)
        for body, rows in zip(self.bodies, self.rows, strict=True):
            lower, upper = body.limits.lower, body.limits.upper
            if body.dof == 1:
                out[0, rows] = -np.inf if lower is None else lower
                out[1, rows] = np.inf if upper is None else upper
        if self.closure is not None:
            home = self.closure.closed_configuration[:, None]
            out[0], out[1] = np.minimum(out[0], home), np.maximum(out[1], home)
        return out

    @cached_property
    def branch_point(self) -> dict[str, float]:
        """Positions of independent joints at which loops can change their branch; may be empty.

        There the passive joints can move by themselves although the loops close on either side,
        as in a parallelogram laid flat.
        """
        if self.closure is None:
            return {}
        home = self.closure.closed_configuration[self.independent][:, None]
        reach = np.pi * coordinate_units(self, 1.0)
        lower, upper = self.position_limits[:, self.independent]
        low, high = np.maximum(lower, home - reach), np.minimum(upper, home + reach)
        s = low + (high - low) * np.random.default_rng(0).uniform(0, 1, (self.dof, BRANCH_PROBES))
        q, closed = self.closure.solve_by_continuation(s)
        s, q = s[:, ~closed], q[:, ~closed]
        change = self.closure.passes_singularity(s, q)
        change &= ((self.position_limits[0] <= q) & (q <= self.position_limits[1])).all(axis=0)
        if not change.any():
            return {}
        at = q[self.independent][:, int(np.flatnonzero(change)[0])]
        return dict(zip(self.coordinates, at.tolist(), strict=True))

    # -- parameters --------------------------------------------------------------------------

    @cached_property
    def _column_layout(self) -> tuple[list[tuple[str, str]], list[int], list[int], list[int]]:
        """Names, and the first column of each body, rotor (-1: none) and drive."""
        names: list[tuple[str, str]] = []
        first_body, first_rotor = [], []
        first_drive = [-1] * len(self.drives)

        def append_symbols(owner: str, symbols: Iterable[str]) -> int:
            first = len(names)
            names.extend((owner, symbol) for symbol in symbols)
            return first

        # A drive of one joint that has its body's name stands behind that body; others are last.
        drive_of_joint = {
            self.joint_index(next(iter(d.coupling))): k
            for k, d in enumerate(self.drives)
            if len(d.coupling) == 1 and d.name == self.bodies[self.joint_index(*d.coupling)].name
        }
        for i, body in enumerate(self.bodies):
            first_body.append(append_symbols(body.name, inertia.SYMBOLS))
            first_rotor.append(append_symbols(body.name, body.rotor.symbols) if body.rotor else -1)
            if i in drive_of_joint:
                k = drive_of_joint[i]
                first_drive[k] = append_symbols(body.name, self.drives[k].symbols)
        for k, drive in enumerate(self.drives):
            if first_drive[k] < 0:
                first_drive[k] = append_symbols(drive.name, drive.symbols)
        return names, first_body, first_rotor, first_drive

    @cached_property
    def parameter_names(self) -> tuple[tuple[str, str], ...]:
        """(body, symbol) of each body's ten, its rotor's, its drive's; shared drives last."""
        return tuple(self._column_layout[0])

    @cached_property
    def names(self) -> pd.MultiIndex:
        """`parameter_names` as a pandas MultiIndex with levels body and symbol."""
        import pandas as pd

        return pd.MultiIndex.from_tuples(self.parameter_names, names=["body", "symbol"])

    @property
    def size(self) -> int:
        """Number of standard parameters, n."""
        return len(self.parameter_names)

    @cached_property
    def inertial_columns(self) -> npt.NDArray[np.intp]:
        """Columns of each body's ten parameters; int array, shape (n_bodies, 10)."""
        return np.array(self._column_layout[1])[:, None] + np.arange(10)

    def rotor_columns(self, body: int) -> slice:
        """Columns of a body's rotor parameters; empty when it has no rotor.

        Parameters
        ----------
        body : int
            Index among `bodies`.

        Returns
        -------
        slice

        Raises
        ------
        InputError
            The body does not exist.
        """
        body = _check_index(body, len(self.bodies), "body")
        rotor, first = self.bodies[body].rotor, self._column_layout[2][body]
        return slice(first, first + len(rotor.symbols)) if rotor else slice(0, 0)

    def drive_columns(self, drive: int) -> dict[str, int]:
        """Column per symbol of a drive.

        Parameters
        ----------
        drive : int
            Index among `drives`.

        Returns
        -------
        dict of str to int

        Raises
        ------
        InputError
            The drive does not exist.
        """
        drive = _check_index(drive, len(self.drives), "drive")
        first = self._column_layout[3][drive]
        return {s: first + k for k, s in enumerate(self.drives[drive].symbols)}

    def coupling(self, drive: int) -> Array:
        """The drive's vector c over the joint velocities.

        Parameters
        ----------
        drive : int
            Index among `drives`.

        Returns
        -------
        ndarray, shape (axes,)

        Raises
        ------
        InputError
            The drive does not exist.
        """
        drive = _check_index(drive, len(self.drives), "drive")
        c = np.zeros(self.axes)
        for joint, factor in self.drives[drive].coupling.items():
            c[self.rows[self.joint_index(joint)].start] = factor
        return c

    @cached_property
    def values(self) -> Array:
        """The description's own parameters, shape (n,); NaN where it does not say."""
        out = np.full(self.size, np.nan)
        for i, body in enumerate(self.bodies):
            if body.inertial is not None:
                out[self.inertial_columns[i]] = body.inertial
            if body.rotor is not None and body.rotor.values is not None:
                out[self.rotor_columns(i)] = body.rotor.values
        for k, drive in enumerate(self.drives):
            if drive.values is not None:
                out[list(self.drive_columns(k).values())] = drive.values
        out.setflags(write=False)
        return out

    def check_parameters(self, parameters: Measured) -> Array:
        """Return `parameters` as a finite vector of length n, or say which entry is wrong.

        Parameters
        ----------
        parameters : array_like, shape (n,)

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InputError
            `parameters` does not have n entries, or an entry is not finite; the message names it.
        """
        delta = np.asarray(parameters, dtype=np.float64)
        if delta.shape != (self.size,):
            raise InputError(
                f"parameters have shape {delta.shape}, but robot {self.name!r} has {self.size} "
                f"({len(self.bodies)} bodies, {len(self.drives)} drives): see robot.names"
            )
        bad = np.flatnonzero(~np.isfinite(delta))
        if bad.size:
            body, symbol = self.parameter_names[int(bad[0])]
            raise InputError(
                f"parameter {body}.{symbol} is {delta[bad[0]]}", body=body, symbol=symbol
            )
        return delta


def _check_index(number: int, count: int, what: str) -> int:
    """A place in a list of so many."""
    if not 0 <= number < count:
        raise InputError(f"no {what} {number!r}: there are {count}, counted from 0")
    return number


def coordinate_units(robot: RobotLayout, length: float) -> Array:
    """Units in which independent coordinates compare, (dof, 1): 1 rad, or this length [m]."""
    return np.where(_is_angle(robot)[robot.independent], 1.0, length)[:, None]


def _is_angle(robot: RobotLayout) -> Mask:
    """Mask of the joint coordinates that are angles, shape (axes,)."""
    turns = [body.motion[:3, k].any() for body in robot.bodies for k in range(body.dof)]
    return np.array(turns, dtype=bool)


def squares_in_common_unit(robot: RobotLayout, squares: Array) -> Array:
    """Squares of forces of all coordinates (dof,), so that they may be added to each other.

    Where all are [(N m)^2], or all [N^2], they are what they were. Otherwise those of one unit are
    divided by their sum and multiplied by their number; the six of a floating base, which no motor
    moves, count by themselves.
    """
    bodies = robot.bodies
    base = np.repeat([body.floats for body in bodies], [body.dof for body in bodies])
    code = (2 * base + _is_angle(robot))[robot.independent]
    if len({*code}) < 2:
        return squares
    sums = np.bincount(code, squares, 4)
    return np.asarray(squares / np.where(sums > 0, sums, 1.0)[code] * np.bincount(code)[code])


def random_configurations(
    robot: RobotLayout,
    rng: np.random.Generator,
    count: int,
    length: float = 1.0,
    *,
    limits: bool = True,
) -> Array:
    """Random independent coordinates, (dof, count) [rad or m], within the joints' limits.

    Loops close there on the branch on which they are assembled, and none is singular. Joints
    without limits turn by half a turn either way, or slide by pi times the length [m]. Raises
    InputError: where loops close too seldom.
    """
    endless = np.full((robot.axes, 1), np.inf)
    lower, upper = robot.position_limits if limits else (-endless, endless)
    reach, home = np.pi * coordinate_units(robot, length), np.zeros((robot.dof, 1))
    least, most = lower[robot.independent], upper[robot.independent]
    if robot.closure is None:
        home = np.clip(home, least, most)
        low, high = np.maximum(least, home - reach), np.minimum(most, home + reach)
        return np.asarray(low + (high - low) * rng.uniform(0, 1, (robot.dof, count)))
    home = robot.closure.closed_configuration[robot.independent][:, None]
    configurations = np.zeros((robot.dof, 0))
    for share in LOOP_POSITION_RANGES:
        low = np.maximum(least, home - share * reach)
        high = np.minimum(most, home + share * reach)
        s = low + (high - low) * rng.uniform(0, 1, (robot.dof, TRIES_PER_MOTION * count))
        q, closed = robot.closure.solve_by_continuation(s)
        stuck = q[robot.independent][:, ~closed]  # up to there, its way is free
        s[:, ~closed] = home + rng.uniform(0, 1, stuck.shape[1]) * (stuck - home)
        q[:, ~closed], closed[~closed] = robot.closure.solve_by_continuation(s[:, ~closed])
        closed &= ((lower <= q) & (q <= upper)).all(axis=0)
        closed[closed] &= robot.closure.is_regular(q[:, closed])
        configurations = np.hstack([configurations, s[:, closed]])[:, :count]
        if configurations.shape[1] == count:
            return configurations
    raise InputError(
        f"the loops of robot {robot.name!r} close at too few configurations around the one in "
        "which they are assembled: its base parameters cannot be determined"
    )


def find_link(robot: RobotLayout, name: str | None) -> tuple[int, Member]:
    """Place of the body that a body's or link's name belongs to, and the link in it.

    The default is the last body; unknown names are refused.
    """
    if name is None:
        return len(robot.bodies) - 1, Member(robot.bodies[-1].name)
    links = {
        link.name: (k, link)
        for k, body in enumerate(robot.bodies)
        for link in (*body.members, Member(body.name))
    }
    if name not in links:
        raise InputError(
            f"robot {robot.name!r} has no moving body or link {name!r}{did_you_mean(name, links)}",
            link=name,
        )
    return links[name]
