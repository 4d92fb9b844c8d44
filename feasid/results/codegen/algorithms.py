"""Inverse dynamics, gravity, mass matrix and regressor of one robot as expressions.

The recursive Newton-Euler algorithm and the composite rigid body algorithm (Featherstone 2008,
sections 5.3 and 6.2) run on expressions instead of numbers. Parameters that depend on others are
set to zero: base parameters as the values of the leading columns give the same torques, see
`feasid.base_parameters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.results.codegen.expression import Expression, Graph
from feasid.results.codegen.recursion import (
    Expressions,
    JointTransform,
    NodeMotion,
    constant_vector,
    joint_transform,
    symmetric_matrix,
)
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import Node, nodes
from feasid.robot.joint_terms import AT_REST, TERMS, JointState, deflections

Composite = tuple[Expressions, Expressions, Expression]
"""Inertia (3, 3), first moment (3,) and mass of rigidly joined bodies about an origin."""


@dataclass(frozen=True, eq=False)
class Algorithms:
    """One robot's dynamics on expressions of a graph.

    Raises InputError: the robot has closed loops.
    """

    graph: Graph
    robot: Robot  #: A tree; joints may follow other joints.
    delta: Sequence[Expression]  #: All standard parameters; zeros are skipped.
    q: Sequence[Expression]  #: Of the independent coordinates.
    dq: Sequence[Expression]  #: See `q`.
    ddq: Sequence[Expression]  #: See `q`.

    def __post_init__(self) -> None:
        if self.robot.loops:
            raise InputError(
                f"code is generated for kinematic trees only, and robot {self.robot.name!r} has "
                "closed loops"
            )

    @cached_property
    def _tree(self) -> tuple[Node, ...]:
        return nodes(self.robot)

    def _joint_values(self, values: Sequence[Expression], offset: bool = False) -> list[Expression]:
        coupled = self.robot.coupling_map
        out = constant_matrix_times(coupled.A, values)
        return [o + float(b) for o, b in zip(out, coupled.b, strict=True)] if offset else out

    @cached_property
    def _positions(self) -> list[Expression]:
        return self._joint_values(self.q, offset=True)

    @cached_property
    def _transforms(self) -> list[JointTransform]:
        return [joint_transform(self.graph, n, self._positions[n.own]) for n in self._tree]

    def _node_parameters(self, node: Node, delta: Sequence[Expression]) -> Expressions:
        ten = constant_matrix_times(node.reduction, [delta[c] for c in node.columns])
        return np.array(ten, dtype=object)

    def _node_motions(
        self, gravity: Array, dq: list[Expression], ddq: list[Expression]
    ) -> list[NodeMotion]:
        """Every node's motion, parents first, from velocities and accelerations of all joints."""
        still = constant_vector(self.graph, np.zeros(3))
        ground = NodeMotion(still, still, constant_vector(self.graph, -gravity))
        out: list[NodeMotion] = []
        for node, joint in zip(self._tree, self._transforms, strict=True):
            base = out[node.parent] if node.parent >= 0 else ground
            rate = np.array(dq[node.own], dtype=object)
            push = np.array(ddq[node.own], dtype=object)
            carried = joint.to_node(base.omega)
            spin, slide = joint.spin @ rate, joint.slide @ rate
            alpha = joint.to_node(base.alpha) + joint.spin @ push + np.cross(carried, spin)
            swept = (
                joint.to_node(base.acceleration + base.acceleration_matrix @ joint.arm)
                + joint.slide @ push
            )
            # Twice, without a product.
            coriolis = np.cross(carried, slide)
            swept = swept + (coriolis + coriolis)
            # One coordinate turns and slides along the same axis.
            if len(rate) > 1:
                swept = swept + np.cross(spin, slide)
            turning = NodeMotion(carried + spin, alpha, swept)
            acceleration = swept + turning.acceleration_matrix @ joint.lever
            out.append(NodeMotion(turning.omega, alpha, acceleration))
        return out

    @cached_property
    def _sample_motion(self) -> list[NodeMotion]:
        coordinates = map(self._joint_values, (self.dq, self.ddq))
        return self._node_motions(self.robot.gravity, *coordinates)

    @cached_property
    def _resting_motion(self) -> list[NodeMotion]:
        still = [self.graph.as_expression(0.0)] * self.robot.axes
        return self._node_motions(self.robot.gravity, still, still)

    def _project_torques(self, torques: Sequence[Expression]) -> list[Expression]:
        """Torques of the independent coordinates from those of all joints."""
        return constant_matrix_times(self.robot.coupling_map.A.T, torques)

    # -- torques -----------------------------------------------------------------------------

    def inverse_dynamics(self) -> list[Expression]:
        """Torques, friction included."""
        rigid = self._newton_euler(self._sample_motion, self.delta)
        torques = [a + b for a, b in zip(rigid, self._drive_torques(), strict=True)]
        return self._project_torques(torques)

    def gravity(self) -> list[Expression]:
        """Torques that hold the bodies still, without friction and springs."""
        return self._project_torques(self._newton_euler(self._resting_motion, self.delta))

    def friction(self) -> list[Expression]:
        """Friction and springs, by the base parameters that lead their combinations."""
        return self._project_torques(self._drive_torques(without="Ia"))

    def _newton_euler(
        self, motion: Sequence[NodeMotion], delta: Sequence[Expression]
    ) -> list[Expression]:
        out = [self.graph.as_expression(0.0)] * self.robot.axes
        wrenches = self._subtree_wrenches(motion, delta)
        for node, joint, wrench in zip(self._tree, self._transforms, wrenches, strict=True):
            for row, torque in enumerate(joint.axis_torques(*wrench), node.own.start):
                out[row] = out[row] + torque
        return out

    def _subtree_wrenches(
        self, motion: Sequence[NodeMotion], delta: Sequence[Expression]
    ) -> list[tuple[Expressions, Expressions]]:
        """Moment and force on each node and all that it carries, about its own origin."""
        bodies = [self._node_parameters(n, delta) for n in self._tree]
        wrenches = [(m.moment(t), m.force(t)) for m, t in zip(motion, bodies, strict=True)]
        for i in range(len(self._tree) - 1, -1, -1):
            parent = self._tree[i].parent
            if parent >= 0:
                more, base = self._transforms[i].wrench_to_parent(*wrenches[i]), wrenches[parent]
                wrenches[parent] = base[0] + more[0], base[1] + more[1]
        return wrenches

    def momentum(self) -> tuple[list[Expression], list[Expression]]:
        """The momentum M dq, and its rate less the applied torques, C' dq - gravity - friction.

        By the recursion of De Luca and Ferrajoli (2009): velocities propagate as accelerations
        from rest do, and the axis S of a joint turns with its body, dS/dt = v x S, so that
        (C' dq)_j is the product of v x S with the momentum of all that the joint carries.

        Raises InputError: names a joint of several degrees of freedom.
        """
        for body in self.robot.bodies:
            if body.dof != 1:
                raise InputError(
                    f"a momentum observer is for joints of one degree of freedom, and joint "
                    f"{body.joint!r} of robot {self.robot.name!r} has several",
                    joint=body.joint,
                )
        zeros = [self.graph.as_expression(0.0)] * self.robot.axes
        rates, none = self._joint_values(self.dq), np.zeros(3)
        motion = self._node_motions(none, zeros, rates)
        momenta, change = list(zeros), list(zeros)
        wrenches = self._subtree_wrenches(motion, self.delta)
        parts = zip(self._tree, self._transforms, motion, wrenches, strict=True)
        for node, joint, at, (spun, linear) in parts:
            torques = zip(joint.axes, joint.axis_torques(spun, linear), strict=True)
            for row, ((spin, slide), along) in enumerate(torques, node.own.start):
                turning = np.cross(at.alpha, spin)
                sliding = np.cross(at.alpha, slide) + np.cross(at.acceleration, spin)
                momenta[row] = momenta[row] + along
                bent = self.graph.sum_terms([*(turning * spun), *(sliding * linear)])
                change[row] = change[row] + bent
        for k in range(len(self.robot.drives)):
            column = self.robot.drive_columns(k).get("Ia")
            if column is not None:
                share = self.robot.coupling(k)
                rotor = self.delta[column] * constant_matrix_times(share[None], rates)[0]
                momenta = [p + float(c) * rotor for p, c in zip(momenta, share, strict=True)]
        rubbing = self._drive_torques(without="Ia")
        generalised = self._project_torques([a - b for a, b in zip(change, rubbing, strict=True)])
        rate = [a - b for a, b in zip(generalised, self.gravity(), strict=True)]
        return self._project_torques(momenta), rate

    def _drive_torques(self, without: str = "") -> list[Expression]:
        out = [self.graph.as_expression(0.0)] * self.robot.axes
        for k in range(len(self.robot.drives)):
            signals = self._drive_term_factors(k)
            torque = self.graph.sum_terms(
                self.delta[column] * signals[symbol]
                for symbol, column in self.robot.drive_columns(k).items()
                if symbol != without
            )
            for r, factor in enumerate(self.robot.coupling(k).tolist()):
                out[r] = out[r] + factor * torque
        return out

    def _drive_term_factors(self, k: int) -> dict[str, Expression]:
        graph, drive = self.graph, self.robot.drives[k]
        if drive.features:
            raise InputError(
                f"custom term {drive.features[0].name!r} of {drive.name} is a Python function, "
                "which cannot be exported"
            )
        row = self.robot.coupling(k)[None, :]
        motion = self._positions, self._joint_values(self.dq), self._joint_values(self.ddq)
        position, rate, push = (constant_matrix_times(row, values)[0] for values in motion)
        sign = graph.apply_function("sign", rate)
        if drive.transition:
            sign = graph.apply_function("tanh", rate * (1.0 / drive.transition))
        joint, ends = int(np.flatnonzero(row[0])[0]), drive.spring_ends
        springs = deflections(position, drive.rest, *ends, np.clip)

        def factor(symbol: str) -> Any:
            load = None
            if drive.needs_load(symbol):
                load = self._load_torques[symbol in AT_REST][joint]
            state = JointState(position, *springs, drive.ripple, rate, push, sign, load, np)
            return TERMS[symbol].factor(state)

        return {s: graph.as_expression(factor(s)) for s in drive.symbols}

    @cached_property
    def _load_torques(self) -> dict[bool, list[Expression]]:
        """Torques of the load model, at rest (True) and in motion, of those that a term needs."""
        model, out = np.zeros(self.robot.size), dict[bool, list[Expression]]()
        if self.robot.load_model is not None:
            model[self.robot.inertial_columns] = self.robot.load_model
        delta = [self.graph.as_expression(float(v)) for v in model]
        terms = ((drive, symbol) for drive in self.robot.drives for symbol in drive.symbols)
        for at_rest in {s in AT_REST for drive, s in terms if drive.needs_load(s)}:
            motion = self._resting_motion if at_rest else self._sample_motion
            out[at_rest] = self._newton_euler(motion, delta)
        return out

    # -- mass matrix -------------------------------------------------------------------------

    def mass_matrix(self) -> list[Expression]:
        """Row by row, drive inertia included; shape (dof, dof)."""
        size = self.robot.axes
        entries = [[self.graph.as_expression(0.0)] * size for _ in range(size)]
        tens = (self._node_parameters(node, self.delta) for node in self._tree)
        bodies: list[Composite] = [(symmetric_matrix(*ten[:6]), ten[6:9], ten[9]) for ten in tens]
        for i in range(len(bodies) - 1, -1, -1):  # each becomes the sum of all that it carries
            p = self._tree[i].parent
            if p >= 0:
                joint = self._transforms[i]
                inertia, first, mass = about_other_origin(bodies[i], joint.lever)
                turned = joint.inertia_to_parent(inertia), joint.to_parent(first), mass
                inertia, first, mass = about_other_origin(turned, joint.arm)
                bodies[p] = bodies[p][0] + inertia, bodies[p][1] + first, bodies[p][2] + mass
        # Torques that a unit acceleration of node i causes at all joints that carry it.
        for i, (inertia, first, mass) in enumerate(bodies):
            axes = self._transforms[i].axes
            for push, (spin, slide) in enumerate(axes, self._tree[i].own.start):
                moment = inertia @ spin + np.cross(first, slide)
                force = slide * mass - np.cross(first, spin)
                at = i
                while at >= 0:
                    joint, start = self._transforms[at], self._tree[at].own.start
                    for row, term in enumerate(joint.axis_torques(moment, force), start):
                        entries[row][push] = entries[row][push] + term
                        if at != i and row != push:
                            entries[push][row] = entries[push][row] + term
                    moment, force = joint.wrench_to_parent(moment, force)
                    at = self._tree[at].parent
        for k in range(len(self.robot.drives)):
            column = self.robot.drive_columns(k).get("Ia")
            if column is not None:
                c = self.robot.coupling(k).tolist()
                for r, s in np.ndindex(size, size):
                    entries[r][s] = entries[r][s] + (c[r] * c[s]) * self.delta[column]
        half = [self._project_torques(row) for row in entries]
        columns = [self._project_torques([row[k] for row in half]) for k in range(self.robot.dof)]
        return [columns[c][r] for r in range(self.robot.dof) for c in range(self.robot.dof)]

    # -- accelerations -----------------------------------------------------------------------

    def forward_dynamics(self, tau: Sequence[Expression]) -> list[Expression]:
        """Accelerations that torques cause, from ``self.ddq`` zero: ``M^-1 (tau - h)``.

        M = L' D L, from the last row to the first, keeps the zeros between branches of a tree
        (Featherstone 2008, section 6.5).
        """
        n, zero = self.robot.dof, self.graph.as_expression(0.0)
        flat = self.mass_matrix()
        L = [flat[k * n : k * n + k + 1] for k in range(n)]
        x = [t - b for t, b in zip(tau, self.inverse_dynamics(), strict=True)]
        inverse = [zero] * n
        for k in reversed(range(n)):
            inverse[k] = self.graph.apply_function("inverse", L[k][k])
            row = L[k][:k]
            L[k] = [entry * inverse[k] for entry in row]
            for i in range(k):
                for j in range(i + 1):
                    L[i][j] = L[i][j] - L[k][i] * row[j]
                x[i] = x[i] - L[k][i] * x[k]
        out: list[Expression] = []
        for k in range(n):
            known = self.graph.sum_terms(a * b for a, b in zip(L[k], out, strict=True))
            out.append(inverse[k] * x[k] - known)
        return out

    # -- regressor ---------------------------------------------------------------------------

    def regressor(self, columns: Sequence[int]) -> list[Expression]:
        """Row by row, for these standard parameters; shape (dof, len(columns))."""
        places = {c: k for k, c in enumerate(columns)}
        zero = self.graph.as_expression(0.0)
        entries = [[zero] * len(columns) for _ in range(self.robot.axes)]
        carried: list[dict[int, tuple[Expressions, Expressions]]] = []
        parts = zip(self._tree, self._transforms, self._sample_motion, strict=True)
        for node, joint, motion in parts:
            # Spatial axes of the rows that carry the node, at its origin and in its frame.
            axes, above = {}, carried[node.parent] if node.parent >= 0 else {}
            for row, (turn, shift) in above.items():
                angular = joint.to_node(turn)
                linear = joint.to_node(shift + np.cross(turn, joint.arm))
                axes[row] = angular, linear + np.cross(angular, joint.lever)
            none = constant_vector(self.graph, np.zeros(3))
            for row, axis in enumerate(joint.axes, node.own.start):
                angular, linear = axes.get(row, (none, none))
                axes[row] = angular + axis[0], linear + axis[1]
            carried.append(axes)
            for k, column in enumerate(node.columns):
                if column not in places:
                    continue
                shares = node.reduction[:, k].tolist()
                wrenches = [*zip(motion.parameter_columns, shares, strict=True)]
                for row, (turn, shift) in axes.items():
                    entries[row][places[column]] = self.graph.sum_terms(
                        share * (turn @ moment + shift @ force)
                        for (moment, force), share in wrenches
                        if share
                    )
        for k in range(len(self.robot.drives)):
            signals = self._drive_term_factors(k)
            for symbol, column in self.robot.drive_columns(k).items():
                if column in places:
                    for r, factor in enumerate(self.robot.coupling(k).tolist()):
                        entries[r][places[column]] = factor * signals[symbol]
        torques = [self._project_torques([row[k] for row in entries]) for k in range(len(columns))]
        return [column[r] for r in range(self.robot.dof) for column in torques]


def constant_matrix_times(rows: Array, values: Sequence[Expression]) -> list[Expression]:
    """``rows @ values`` with constant rows."""
    return list(rows @ np.array(values, dtype=object))


def about_other_origin(body: Composite, arm: Expressions) -> Composite:
    """Express the bodies about a new origin; the old origin is at `arm` from it."""
    inertia, first, mass = body
    shifted = first + arm * mass
    reach = arm @ (first + shifted)  # arm . (2 l + m arm)
    xx, xy, xz, yy, yz, zz = (
        arm[r] * first[c] + shifted[r] * arm[c] for r, c in zip(*np.triu_indices(3), strict=True)
    )
    more = symmetric_matrix(reach - xx, -xy, -xz, reach - yy, -yz, reach - zz)
    return inertia + more, shifted, mass
