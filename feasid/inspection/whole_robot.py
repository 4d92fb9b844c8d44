"""`check` of a file, robot or fit; what a controller notices: mass matrix and base parameters.

Single links decide whether a simulator accepts a model. Inverse dynamics sees less: only the base
parameters ``beta = K delta`` of the whole robot, to which each link adds its share. So links that
cannot exist alone may still add up to base parameters that a possible robot has, too; then some
other, possible set of links moves in exactly the same way. When even the base parameters are
infeasible, no possible robot moves like this model, and its mass matrix may fail to be positive
definite somewhere, which makes controllers unstable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics
from feasid.errors import InputError
from feasid.feasibility.check import Verdict
from feasid.feasibility.check import check as check_parameters
from feasid.formats.load import load_robot
from feasid.formats.terms import EFFECTS
from feasid.inspection.report import Report, inspect
from feasid.robot.description import Robot
from feasid.robot.layout import random_configurations

SAMPLES = 64
"""Configurations at which the mass matrix is looked at."""

ROUNDING = 1e-12
"""Relative to its largest eigenvalue, below which one of the mass matrix counts as zero."""


@dataclass(frozen=True, eq=False)
class MassMatrix:
    """Smallest eigenvalue of M(q) over sampled configurations.

    Attributes
    ----------
    status : {"positive definite", "singular", "indefinite"}
        "positive definite" means at every sampled configuration.
    smallest : float
        Smallest eigenvalue found, over the largest at the same configuration.
    configuration : dict of str to list of float
        Where it was found, by joint.
    """

    status: str
    smallest: float
    configuration: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class WholeRobotVerdict:
    """What matters to control, for one robot."""

    mass_matrix: MassMatrix
    base: Verdict
    """Base parameter feasibility test, eq. (51) of Sousa and Cortesao (2014)."""

    def lines(self, impossible: int, weightless: int) -> Iterator[str]:
        """In words, given how many links cannot exist alone and how many bodies are limits."""
        mass = self.mass_matrix
        yield (
            f"mass matrix: {mass.status} (smallest eigenvalue {mass.smallest:.2g} of the largest, "
            f"over {SAMPLES} configurations)"
        )
        yield f"base parameters of the whole robot: {self.base.status}"
        if self.base.feasible and impossible:
            yield (
                "  infeasible links add up to base parameters that a possible robot has, "
                "too: inverse dynamics is that of a possible robot, simulators still refuse the "
                "links"
            )
        elif self.base.feasible is False:
            clash = f" ({', '.join(self.base.bodies[:4])})" if self.base.bodies else ""
            yield f"  no possible robot moves like this model{clash}: proved in exact arithmetic"
        elif self.base.feasible is None and weightless:
            yield "  moving bodies without mass or volume put it on the boundary: nothing is proved"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        mass = self.mass_matrix
        return {
            "mass_matrix": {
                "status": mass.status,
                "smallest": mass.smallest,
                "configuration": mass.configuration,
            },
            "base_parameters": {
                "status": self.base.status,
                "margin": self.base.margin,
                "bodies": list(self.base.bodies),
            },
        }


def check_whole_robot_of_file(path: str | os.PathLike[str]) -> WholeRobotVerdict:
    """Judge the robot in a file.

    Raises
    ------
    FeasidError
        The file cannot be read, has no moving joint, or needs MuJoCo's compiler.
    """
    return check_whole_robot(load_robot(path, ignore=EFFECTS))


def check_whole_robot(robot: Robot) -> WholeRobotVerdict:
    """Judge a robot's own parameters as a controller sees them; those not given count as zero."""
    from feasid.identifiability.base import base_parameters

    values = np.where(np.isnan(robot.values), 0.0, robot.values)
    base = base_parameters(robot)
    return WholeRobotVerdict(
        mass_matrix(robot, values), check_parameters(base.values(values), base)
    )


def mass_matrix(robot: Robot, values: Array, samples: int = SAMPLES) -> MassMatrix:
    """Look at M(q), the inertial part of the joint torques, at random configurations.

    Column j of M(q) is inverse dynamics at rest without gravity for a unit acceleration of j.
    """
    rng = np.random.default_rng(0)
    configurations = random_configurations(robot, rng, samples).T
    if robot.closure is None:
        configurations[0] = np.clip(0.0, configurations.min(axis=0), configurations.max(axis=0))
    dof = robot.dof
    q = np.repeat(configurations, dof, axis=0)
    ddq = np.tile(np.eye(dof), (samples, 1))
    still = robot.with_gravity(np.zeros(3))
    torques = inverse_dynamics(still, q, np.zeros_like(q), ddq, parameters=values)
    matrices = torques.reshape(samples, dof, dof)
    eigenvalues = np.linalg.eigvalsh((matrices + np.swapaxes(matrices, 1, 2)) / 2)
    relative = eigenvalues[:, 0] / np.abs(eigenvalues).max(axis=1).clip(min=np.finfo(float).tiny)
    worst = int(np.argmin(relative))
    smallest = float(relative[worst])
    status = "positive definite" if smallest > ROUNDING else "singular"
    status = "indefinite" if smallest < -ROUNDING else status
    where = {
        name: [float(x) for x in configurations[worst, rows]]
        for name, rows in ((body.joint, rows) for body, rows in robot.moving_bodies)
    }
    return MassMatrix(status, smallest, where)


@overload
def check(subject: str | os.PathLike[str], *, bodies: Literal[False] = False) -> Report: ...


@overload
def check(subject: Any, base: Any = None, *, bodies: bool = False, **options: Any) -> Verdict: ...


@checked
def check(
    subject: Any, base: Any = None, *, bodies: bool = False, **options: Any
) -> Verdict | Report:
    """Decide whether a model can exist, and prove the answer.

    Parameters
    ----------
    subject : path, Robot, Fit, or array_like of shape (nb,)
        Of a file every link is judged, from its own decimals, as ``feasid check`` does: a `Report`.
        Of a robot its moving bodies, of a fit the parameters it found, of an array the base
        parameters of `base`: a `Verdict`, see `feasid.feasibility.check.check`.
    base : BaseParameters, optional
        What the entries of an array mean.
    bodies : bool
        Of a file, judge the moving bodies instead, as ``feasid check --bodies`` does: links that
        move as one may be possible together although one of them is not.
    **options
        Of `feasid.feasibility.check.check`; bounds are on moving bodies.

    Returns
    -------
    Report or Verdict
        Both have ``feasible``, ``status`` and ``explain()``.

    Raises
    ------
    InputError
        A file that cannot be read, an option that has no effect here, or `bodies` without a file.
    SolverError
        See `feasid.feasibility.check.check`.

    Examples
    --------
    >>> import feasid
    >>> body = feasid.Body("link", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])
    >>> feasid.check(feasid.Robot((body,))).feasible
    False
    """
    if isinstance(subject, str | os.PathLike):
        if not bodies and base is None and not options:
            return inspect(subject)
        if not bodies:
            name = next(iter(options), "base")
            raise InputError(
                f"{name}= is asked of moving bodies, and a file is judged link by link: "
                "say bodies=True, or load the robot"
            )
        subject = load_robot(subject)
    elif bodies:
        raise InputError("bodies=True is for files: robots and fits are judged by moving bodies")
    return check_parameters(subject, base, **options)
