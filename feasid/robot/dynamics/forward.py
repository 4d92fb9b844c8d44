"""Forward dynamics of many motions of one robot at once, with dry friction that holds at rest.

The mass matrix is the power by which all that a joint carries resists an acceleration along another
joint's axis; it and the torques without acceleration follow from one sweep over all motions.

A step of length h solves, with velocities taken at its middle where that is stable,

    M (v' - v) = h (tau - bias - D v_m - K q_m - kp (q_m - ref) - kd v_m) - h c sign(v')

for v'. Dry friction of size c is a set at v' = 0: the solution is the minimum of a convex function,
``v' A v' / 2 - b v' + h sum c |v'|``, so that a joint rests until what pushes it exceeds c, as in
MuJoCo's limit of stiff ``solreffriction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.drives import Drive, factor_of
from feasid.robot.dynamics.kinematics import Node, nodes
from feasid.robot.dynamics.newton_euler import WorldMotion, carried_nodes, load_torques
from feasid.robot.dynamics.regressor import require_values
from feasid.robot.dynamics.spatial import CHUNK
from feasid.robot.joint_terms import AT_REST, TERMS

LINEAR = ("Ia", "fv", "k")  #: Terms of drives along several joints that are simulated.

MAX_SPEED = 100.0  #: Joint speed [rad/s or m/s] beyond which a motion counts as lost.
BREAKING_SPEED = 1e-9  #: Speed [rad/s or m/s] at which dry friction at rest is evaluated.

SWEEPS, MOST_ROUNDS = 3, 300
"""Sweeps over all joints before testing whether the sets of moving and resting joints are right
(mostly they are), and the largest number of tests: ill-conditioned masses need many."""

HELD = 1e-9  #: Share of the largest push within which a resting joint counts as held: rounding.

STIFF = 1.0
"""Damping of a step over the joint's inertia from which the step takes the velocity at its end."""


@dataclass(frozen=True, eq=False)
class Feedback:
    """Torques ``kp (position - q) + kd (velocity - dq)`` in addition to the driving ones."""

    kp: Array  #: Shape (dof,): gains [N m / rad or N / m, and s times that].
    kd: Array  #: See `kp`.
    position: Array  #: Shape (windows, steps, dof): references at the middle of each step.
    velocity: Array  #: See `position`.


class _AlikeTerms(NamedTuple):
    """Joint terms whose factor is the same function of the position and speed of their drives."""

    drive: Drive  #: One of k.
    symbol: str
    along: Array  #: (k, axes): factors of the joints' positions in the drives' positions.
    pulls: Array  #: (k, dof): torques of the coordinates per unit of the factor.
    needs_load: bool


@dataclass(frozen=True, eq=False)
class ForwardModel:
    """A robot whose motion can be computed from torques.

    Raises InputError: the robot has something that is not simulated; the message names it.
    """

    #: With values for all parameters; joints of one degree of freedom, no loops, and no friction of
    #: motors that move several joints but viscous one. Dry friction changes its sign at once,
    #: whatever the transition.
    robot: Robot

    def __post_init__(self) -> None:
        robot = self.robot
        many = [body.name for body in robot.bodies if body.dof != 1]
        if many:
            raise InputError(
                f"only joints of one degree of freedom are simulated, and body {many[0]!r} has "
                "another",
                body=many[0],
            )
        if robot.loops:
            raise InputError("robots with closed loops are not simulated")
        shared_drives = [
            drive.name
            for k, drive in enumerate(robot.drives)
            if np.sum(self._drive_direction(k) != 0) > 1
            and ({*drive.symbols} - {*LINEAR} or drive.rest)
        ]
        if shared_drives:
            raise InputError(
                f"drive {shared_drives[0]!r} moves several independent joints by more than "
                "inertia, a spring and viscous friction, which is not simulated",
                drive=shared_drives[0],
            )
        require_values(robot, "a simulation needs all of them, see robot.with_values(...)")

    def _drive_direction(self, drive: int) -> Array:
        """Velocity of a drive per velocity of each independent coordinate."""
        return np.asarray(self.robot.coupling_map.A.T @ self.robot.coupling(drive))

    @cached_property
    def _linear_terms(self) -> dict[tuple[str, bool], Array]:
        """Those of drives along one coordinate (False) or several (True), (dof, dof)."""
        shape = self.robot.dof, self.robot.dof
        out = {(symbol, shared): np.zeros(shape) for symbol in LINEAR for shared in (False, True)}
        for k in range(len(self.robot.drives)):
            direction = self._drive_direction(k)
            shared = bool(np.count_nonzero(direction) > 1)
            for symbol, column in self.robot.drive_columns(k).items():
                if symbol in LINEAR:
                    square = np.outer(direction, direction)
                    out[symbol, shared] += self.robot.values[column] * square
        return out

    @cached_property
    def viscous_damping(self) -> Array:
        """Damping of each coordinate, shape (dof,) [N m s or N s]."""
        return np.diagonal(self._linear_terms["fv", False])

    @cached_property
    def armature(self) -> Array:
        """Drive inertia of each coordinate, shape (dof,) [kg m^2 or kg]."""
        return np.diagonal(self._linear_terms["Ia", False])

    @cached_property
    def _terms(self) -> dict[bool, list[_AlikeTerms]]:
        """Dry friction (True); springs, offsets and features (False); without linear terms."""
        alike = dict[Any, list[tuple[Drive, Array, Array]]]()
        for k, drive in enumerate(self.robot.drives):
            direction, at_once = self._drive_direction(k), replace(drive, transition=0.0)
            for symbol, column in self.robot.drive_columns(k).items():
                value = float(self.robot.values[column])
                if np.count_nonzero(direction) > 1 or not value or symbol in ("Ia", "fv"):
                    continue
                spring = symbol in TERMS and TERMS[symbol].kind == "spring"
                law = (drive.rest, drive.spring_range) if spring else (drive.ripple, drive.features)
                term = at_once, self.robot.coupling(k), value * direction
                alike.setdefault((symbol, *law), []).append(term)
        out: dict[bool, list[_AlikeTerms]] = {True: [], False: []}
        for (symbol, *_), terms in alike.items():
            (drive, *_), along, pulls = zip(*terms, strict=True)
            group = drive, symbol, np.array(along), np.array(pulls), drive.needs_load(symbol)
            out[is_dry_friction(symbol)].append(_AlikeTerms(*group))
        return out

    @cached_property
    def _tree(self) -> tuple[Node, ...]:
        return nodes(self.robot)

    def mass_and_bias(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Mass matrices (N, dof, dof), and torques without acceleration or dissipation (N, dof)."""
        coupled, gravity = self.robot.coupling_map, self.robot.gravity
        motion = coupled.positions(q.T), coupled.A @ dq.T, np.zeros((self.robot.axes, len(q)))
        mass, tau = np.empty((len(q), self.robot.dof, self.robot.dof)), np.empty(q.shape)
        # Of two nodes one carries the other, or neither feels the other.
        carries = carried_nodes(self._tree)
        steps = coupled.A[[node.own.start for node in self._tree]]
        for first in range(0, len(q), CHUNK):
            part = slice(first, first + CHUNK)
            chunk = [x[:, part] for x in motion]
            world = WorldMotion.from_joints(self._tree, gravity, self.robot.values, chunk)
            below = world.masses * carries.T[:, :, None]
            above = below * (1.0 - np.eye(len(steps)))[:, :, None]
            mass[part] = steps.T @ np.moveaxis(below + above.swapaxes(0, 1), 2, 0) @ steps
            tau[part] = world.torques.T @ steps
        mass += self._linear_terms["Ia", False] + self._linear_terms["Ia", True]
        return mass, tau + self._sum_terms(self._terms[False], q, dq)

    def _sum_terms(self, terms: Sequence[_AlikeTerms], q: Array, dq: Array) -> Array:
        """Torques of joint terms at constant velocity, shape (N, dof)."""
        out, coupled = np.zeros_like(q), self.robot.coupling_map
        x, dx = coupled.positions(q.T), coupled.A @ dq.T
        motion = x, dx, np.zeros_like(x)
        loaded = [(p.drive, p.symbol) for p in terms if p.needs_load]
        loads = load_torques(self.robot, self._tree, motion, loaded)
        for p in terms:
            load, state = None, ((p.along @ part).ravel() for part in motion)
            if p.needs_load:
                load = loads[p.symbol in AT_REST][np.argmax(p.along != 0, axis=1)].ravel()
            factors = factor_of(p.drive, p.symbol, *state, load=load)
            out += factors.reshape(len(p.along), -1).T @ p.pulls
        return out

    def dry_friction(self, q: Array, dq: Array) -> Array:
        """Size of dry friction (N, dof) [N m or N]; at rest the torque that holds the joint."""
        return np.abs(self._sum_terms(self._terms[True], q, np.maximum(np.abs(dq), BREAKING_SPEED)))

    def roll_out(
        self, q0: Array, dq0: Array, torque: Array, step: float, feedback: Feedback | None = None
    ) -> Array:
        """Positions after each step, from many starts at once.

        `q0`, `dq0` (windows, dof): positions and velocities at the start [rad or m, per s];
        `torque` (windows, steps, dof): driving torques in the middle of each step [N m or N];
        `step`: [s]. Returns (windows, steps + 1, dof), NaN after the time when a joint became
        faster than `MAX_SPEED`. Raises InputError: a joint has no inertia at one of the starts.
        """
        mass, _ = self.mass_and_bias(q0[:1], np.zeros_like(q0[:1]))
        if not np.linalg.eigvalsh(mass[0])[0] > 0:
            joint = self.robot.coordinates[int(np.argmin(np.diag(mass[0])))]
            raise InputError(
                f"joint {joint!r} has no inertia, so that no torque gives it a finite "
                "acceleration: the model lacks its armature (drive inertia), or is infeasible",
                joint=joint,
            )
        count, steps, dof = torque.shape
        out = np.full((count, steps + 1, dof), np.nan)
        out[:, 0] = q0
        q, v, last_velocity = q0.copy(), dq0.copy(), dq0.copy()
        alive, places = np.ones(count, bool), np.arange(dof)
        K, D = self._linear_terms["k", True], self._linear_terms["fv", True]
        between = 0.5 * step * D + 0.25 * step**2 * K  # velocities at the middle of the step
        for k in range(steps):
            # Position and velocity in the middle of the step: errors are of second order.
            half = q + 0.5 * step * v
            mass, bias = self.mass_and_bias(half, 1.5 * v - 0.5 * last_velocity)
            inertia = np.einsum("nii->ni", mass)
            damping, stiffness = self.viscous_damping, np.zeros_like(self.viscous_damping)
            push = torque[:, k] - bias
            if feedback is not None:
                damping, stiffness = damping + feedback.kd, feedback.kp
                push = push + feedback.kp * (feedback.position[:, k] - q)
                push += feedback.kd * feedback.velocity[:, k]
            # The weight of the end velocity in the velocity of the step.
            late = np.where(step * (damping + step * stiffness) > STIFF * inertia, 1.0, 0.5)
            early = step * damping * (1 - late) + step**2 * stiffness * late * (1 - late)
            push -= q @ K
            b = np.einsum("nij,nj->ni", mass, v) + step * push - early * v - v @ between
            mass[:, places, places] += step * damping * late + step**2 * stiffness * late**2
            mass += between
            last_velocity = v
            new = _minimise_with_friction(mass, b, step * self.dry_friction(half, v), v)
            alive &= np.isfinite(new).all(axis=1) & (np.abs(new) < MAX_SPEED).all(axis=1)
            v = np.where(alive[:, None], new, 0.0)
            # A motion that is lost stands at its start, where matrices are finite.
            q = np.where(alive[:, None], q + step * ((1 - late) * last_velocity + late * v), q0)
            out[alive, k + 1] = q[alive]
        return out


def is_dry_friction(symbol: str) -> bool:
    """Whether a joint term is friction whose torque does not vanish with the velocity's size."""
    term = TERMS.get(symbol)
    return term is not None and term.varies_with == "dq" and term.odd and term.degree != 1.0


def _minimise_with_friction(A: Array, b: Array, c: Array, start: Array) -> Array:
    """Minima of ``v' A v / 2 - b' v + sum c |v|`` for many A (N, n, n), positive definite.

    Most motions keep the signs of their velocities, and their joints at rest. The others descend
    coordinate by coordinate until the joints that move and rest are right: with these sets the
    minimum follows exactly; it is one where moving joints keep their signs and nothing pushes a
    resting joint by more than c.
    """
    v = start.copy()
    solvable = np.flatnonzero(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(b).all(axis=1))
    for round_number in range(MOST_ROUNDS):
        mass, force, drag = A[solvable], b[solvable], c[solvable]
        descended, diagonal = v[solvable], np.einsum("nii->ni", mass)
        for j in [*range(b.shape[1])] * (SWEEPS if round_number else 0):
            free = force[:, j] - np.einsum("nk,nk->n", mass[:, j], descended)
            free += diagonal[:, j] * descended[:, j]
            size = np.maximum(np.abs(free) - drag[:, j], 0.0)
            descended[:, j] = np.sign(free) * size / diagonal[:, j]
        sign = np.sign(descended)
        moves = (sign != 0) | (drag == 0)
        both = moves[:, :, None] & moves[:, None, :]
        among = np.where(both, mass, 0.0) + np.eye(b.shape[1]) * ~moves[:, :, None]
        right = np.where(moves, force - drag * sign, 0.0)
        exact = np.linalg.solve(among, right[..., None])[..., 0]
        push = np.abs(force - np.einsum("nij,nj->ni", mass, exact))
        holds = push <= drag + HELD * np.abs(force).max(axis=1, keepdims=True)
        verified = np.where(moves, (np.sign(exact) == sign) | (drag == 0), holds).all(axis=1)
        v[solvable] = np.where(verified[:, None], exact, descended)
        solvable = solvable[~verified]
        if not len(solvable):
            break
    return v
