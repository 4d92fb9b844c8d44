"""How every node moves, as expressions: velocities, accelerations and their products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from feasid.codegen.expression import Expression, Graph
from feasid.codegen.steps import JointStep, zeros
from feasid.codegen.vectors import Vector, cross, dot, plus, scaled, vector
from feasid.dynamics.kinematics import Node


@dataclass(frozen=True, eq=False)
class NodeMotion:
    """Motion of a node in its own frame: omega, alpha, and the origin's acceleration less gravity.

    ``swing`` is U = S(alpha) + S(omega)^2 by rows: U r is the acceleration of a point r relative
    to the origin's.
    """

    omega: Vector
    alpha: Vector
    acceleration: Vector

    @cached_property
    def products(self) -> tuple[Expression, ...]:
        """x^2, y^2, z^2, x y, x z, y z of omega."""
        x, y, z = self.omega
        return x * x, y * y, z * z, x * y, x * z, y * z

    @cached_property
    def swing(self) -> tuple[Vector, Vector, Vector]:
        """U, by rows."""
        (x, y, z), (xx, yy, zz, xy, xz, yz) = self.alpha, self.products
        return (
            (-(yy + zz), xy - z, xz + y),
            (xy + z, -(xx + zz), yz - x),
            (xz - y, yz + x, -(xx + yy)),
        )

    def push(self, point: Vector) -> Vector:
        """U r."""
        x, y, z = (dot(row, point) for row in self.swing)
        return x, y, z

    def moment(self, ten: Sequence[Expression]) -> Vector:
        """L alpha + omega x L omega + l x a, on the products that U shares."""
        lxx, lxy, lxz, lyy, lyz, lzz = ten[:6]
        (x, y, z), (xx, yy, zz, xy, xz, yz) = self.alpha, self.products
        own = (
            lxx * x + (lzz - lyy) * yz + lxy * (y - xz) + lxz * (z + xy) + lyz * (yy - zz),
            lyy * y + (lxx - lzz) * xz + lxy * (x + yz) + lyz * (z - xy) + lxz * (zz - xx),
            lzz * z + (lyy - lxx) * xy + lxz * (x - yz) + lyz * (y + xz) + lxy * (xx - yy),
        )
        first = ten[6], ten[7], ten[8]
        return plus(own, cross(first, self.acceleration))

    def force(self, ten: Sequence[Expression]) -> Vector:
        """M a + U l."""
        swung = self.push((ten[6], ten[7], ten[8]))
        mass = ten[9]
        x, y, z = (mass * a + s for a, s in zip(self.acceleration, swung, strict=True))
        return x, y, z

    @cached_property
    def columns(self) -> tuple[tuple[Vector, Vector], ...]:
        """Moment and force of each of the ten parameters at unit value."""
        (x, y, z), (xx, yy, zz, xy, xz, yz) = self.alpha, self.products
        graph = x.graph
        none, one, nil = zeros(graph), graph.of(1.0), graph.of(0.0)
        moments: tuple[Vector, ...] = (
            (x, xz, -xy), (y - xz, x + yz, xx - yy), (z + xy, zz - xx, x - yz),
            (-yz, y, xy), (yy - zz, z - xy, y + xz), (yz, -xz, z),
        )  # fmt: skip
        units = ((one, nil, nil), (nil, one, nil), (nil, nil, one))
        firsts = [(cross(unit, self.acceleration), self.push(unit)) for unit in units]
        return (*((m, none) for m in moments), *firsts, (none, self.acceleration))


def moving(
    graph: Graph,
    nodes: Sequence[Node],
    steps: Sequence[JointStep],
    gravity: Sequence[float],
    rates: Sequence[Expression],
    pushes: Sequence[Expression],
) -> list[NodeMotion]:
    """Every node's motion, parents first; rates and pushes are those of all joint coordinates."""
    ground = NodeMotion(zeros(graph), zeros(graph), vector(graph, [-float(g) for g in gravity]))
    out: list[NodeMotion] = []
    for node, step in zip(nodes, steps, strict=True):
        base = out[node.parent] if node.parent >= 0 else ground
        rate, push = rates[node.own.start], pushes[node.own.start]
        carried = step.to_node(base.omega)
        spin, slide = scaled(rate, step.spin.tolist()), scaled(rate, step.slide.tolist())
        alpha = plus(step.to_node(base.alpha), scaled(push, step.spin.tolist()))
        alpha = plus(alpha, cross(carried, spin))
        swept = step.to_node(plus(base.acceleration, base.push(step.arm)))
        swept = plus(swept, scaled(push, step.slide.tolist()))
        coriolis = cross(carried, slide)
        swept = plus(swept, plus(coriolis, coriolis))
        turning = NodeMotion(plus(carried, spin), alpha, swept)
        out.append(NodeMotion(turning.omega, alpha, plus(swept, turning.push(step.lever))))
    return out
