"""Mass matrix and base parameters of a whole robot: all that a controller notices.

Single links decide whether a simulator accepts a model. Inverse dynamics sees less: only the base
parameters ``beta = K delta`` of the whole robot, to which each link adds its share. So links that
are infeasible alone may still add up to base parameters that a possible robot has, too; then some
other, possible set of links moves in exactly the same way. When even the base parameters are
infeasible, no possible robot moves like this model, and its mass matrix may fail to be positive
definite somewhere, which makes controllers unstable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.parameters.feasibility.check import Verdict
from feasid.parameters.feasibility.check import check as check_parameters
from feasid.robot.description import Robot
from feasid.robot.dynamics import regressor as dynamics
from feasid.robot.layout import random_configurations

SAMPLES = 64  #: Number of configurations at which the mass matrix is computed.

ROUNDING = 1e-12
"""Relative to its largest eigenvalue, below which one of the mass matrix counts as zero."""


@dataclass(frozen=True, eq=False)
class MassMatrix:
    """Smallest eigenvalue of M(q) over sampled configurations."""

    #: One of "positive definite", "singular", "indefinite": "positive definite" means at every
    #: sampled configuration.
    status: str
    smallest: float  #: Smallest eigenvalue found, over the largest at the same configuration.
    configuration: dict[str, list[float]]  #: Where it was found, by joint.


@dataclass(frozen=True, eq=False)
class WholeRobotVerdict:
    """Verdict on one robot for control."""

    mass_matrix: MassMatrix
    base: Verdict
    """Base parameter feasibility test, eq. (51) of Sousa and Cortesao (2014)."""

    def lines(self, impossible: int, weightless: int) -> Iterator[str]:
        """The verdict in words, given the numbers of infeasible links and of limiting bodies."""
        mass = self.mass_matrix
        yield (
            f"mass matrix: {mass.status} (smallest eigenvalue {mass.smallest:.2g} of the largest, "
            f"over {SAMPLES} configurations)"
        )
        yield f"base parameters of the whole robot: {self.base.status}"
        if self.base.feasible and impossible:
            yield (
                "  the base parameters are those of a possible robot, although links are "
                "infeasible: inverse dynamics is usable, but simulators still reject the links"
            )
        elif self.base.feasible is False:
            clash = f" ({', '.join(self.base.bodies[:4])})" if self.base.bodies else ""
            yield f"  no possible robot moves like this model{clash}: proved in exact arithmetic"
        elif self.base.feasible is None and weightless:
            yield "  moving bodies without mass or volume put it on the boundary: nothing is proved"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        base = {name: getattr(self.base, name) for name in ("status", "margin")}
        base["bodies"] = list(self.base.bodies)
        return {"mass_matrix": vars(self.mass_matrix), "base_parameters": base}


def check_whole_robot(robot: Robot) -> WholeRobotVerdict:
    """Judge a robot's own parameters as a controller sees them; those not given count as zero."""
    from feasid.parameters.identifiability.base import base_parameters

    values = np.where(np.isnan(robot.values), 0.0, robot.values)
    base = base_parameters(robot)
    verdict = check_parameters(base.values(values), base)
    return WholeRobotVerdict(mass_matrix(robot, values), verdict)


def mass_matrix(robot: Robot, values: Array) -> MassMatrix:
    """Compute eigenvalues of the mass matrix M(q) at random configurations."""
    configurations = random_configurations(robot, np.random.default_rng(0), SAMPLES).T
    # One configuration is zero, or as near to it as the limits allow; loops need not close there.
    if robot.closure is None:
        configurations[0] = np.clip(0.0, configurations.min(axis=0), configurations.max(axis=0))
    still = robot.with_gravity(np.zeros(3))  # so that no rounding of weights is left
    matrices = dynamics.mass_matrix(still, values, configurations)
    eigenvalues = np.linalg.eigvalsh((matrices + np.swapaxes(matrices, 1, 2)) / 2)
    relative = eigenvalues[:, 0] / np.abs(eigenvalues).max(axis=1).clip(min=np.finfo(float).tiny)
    worst = int(np.argmin(relative))
    smallest = float(relative[worst])
    status = "positive definite" if smallest > ROUNDING else "singular"
    status = "indefinite" if smallest < -ROUNDING else status
    where = {body.joint: configurations[worst, rows].tolist() for body, rows in robot.moving_bodies}
    return MassMatrix(status, smallest, where)
