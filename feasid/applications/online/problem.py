"""The feasible estimate, built once and solved again with other data from where it was.

    minimise  |R K delta - rho|^2 / 2 + sum over joint terms (delta / size)^2 / 2
              + weight * divergence(delta, nominal)      over the feasible set

as `feasid.fit` does (`feasid.identification.estimation.estimate`), but units, sizes and the nominal
model are fixed before the first sample, from random motions of the description, so that only R and
rho change. Each answer is verified in exact arithmetic before it is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import SolverError
from feasid.identification.estimation.estimator import NEGLIGIBLE_TERM, Estimator
from feasid.identification.estimation.newton import EntropicProblem
from feasid.identification.regression.folds import stack_triangles
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.reference import reference_model
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.archive.state import Kinds, real
from feasid.robot.dynamics.regressor import inverse_dynamics, mass_matrix
from feasid.robot.joint_terms import NONNEGATIVE
from feasid.robot.layout import random_configurations

POSES, SPEED, PUSH = 200, 1.0, 3.0
"""Random motions by which units are set: samples, rad/s or m/s, and per second."""

MIN_NOISE_SHARE = 1e-3
"""Smallest standard deviation of a joint's rows, as a share of its torque, for data without
noise."""

RIDGE_SHARE = 1e-5
"""Ridge of a joint's own least squares, as a share of its columns: it leaves out directions that
are not excited yet, and costs at most this share of the torque."""

ROUNDING_SHARE = 1e-9  #: Ridge as a share of the largest column; smaller columns are rounding.

MIN_ARMATURE_SHARE = 0.01  #: Smallest size of a drive inertia, as a share of the joints' mean one.

DETERMINED_DEVIATION = 1 / 3
"""Standard deviation of a direction, in units of usual torques, below which it counts as
determined. With it rows of a Panda at rest determine 23 to 29 % of its 69 directions, after 2 s of
motion 97 %; with a tenth of it 13 to 17 % and 80 to 94 %."""

NEWTON_STEPS = 24
"""Newton steps of one estimate at most, of .5 ms each with 69 parameters. From a neighbouring
problem 13 to 24 suffice on a KUKA's log; while there were fewer independent rows than parameters,
hundreds were taken. With a tenth of it no optimum is reached, with ten times an estimate takes up
to .15 s."""

TINY_TORQUE = 1e-12  #: Torque [N m or N] of a joint that the nominal model needs none for.

MIN_RESIDUAL_ROWS_SHARE = 0.05
"""Least share of the rows that counts as left for the noise, however many parameters a joint
has."""


@dataclass(frozen=True, eq=False)
class VerifiedModel:
    """A verified model."""

    delta: Array  #: Shape (n,).
    covariance: Array  #: Shape (nb, nb): of the base parameters.
    verified: str  #: What holds in exact arithmetic.
    converged: bool  #: Whether it is the optimum; if not, the next call goes on from it.


class FeasibleProblem:
    """See the module.

    `base`: its robot is the nominal model; bodies without parameters are generic, joint terms zero;
    `weight`: of the divergence from the nominal model, in units of the whitened residual; `nominal`
    (n,); `corrected`: infeasible bodies and drives of the description, which the nominal model
    replaces by the closest feasible ones.
    """

    def __init__(self, base: BaseParameters, feasible: FeasibleSet, weight: float) -> None:
        self.base, self.feasible, self.weight = base, feasible, weight
        # The description's parameters; where it has none, bodies are generic, joint terms zero.
        robot = base.robot
        still = problem_units(robot, feasible, base.K, np.zeros(len(base.K)))
        out = np.where(np.isnan(robot.values), reference_model(robot, still).delta, robot.values)
        terms = [c for k in range(len(robot.drives)) for c in robot.drive_columns(k).values()]
        out[terms] = np.nan_to_num(robot.values[terms])
        self.nominal, self.corrected = np.asarray(out), tuple[str, ...]()
        if feasible.violations(out):
            # Few descriptions need it, and it imports solvers.
            from feasid.parameters.feasibility.correct import correct

            model = correct(robot.with_values(out), feasible=feasible, metric="entropic")
            self.nominal, self.corrected = model.delta, model.changed
        described = base.robot.with_values(self.nominal)
        rng = np.random.default_rng(0)
        q = random_configurations(described, rng, POSES).T
        dq, ddq = rng.uniform(-1, 1, (2, *q.shape)) * np.array([SPEED, PUSH])[:, None, None]
        tau = inverse_dynamics(described, q, dq, ddq)
        columns = [int(c) for c in base.independent]
        motion = Reduced.from_samples(described, q, dq, ddq, tau, columns=columns)
        reference = self.nominal[base.robot.inertial_columns]
        task = Estimator(base, feasible, reference=reference).problem(motion)
        size = np.maximum(motion.torque_norms / np.sqrt(motion.rows), TINY_TORQUE)
        usual, _, _ = motion.triangle(1.0 / (size * np.sqrt(motion.rows)))
        self._from_usual = np.linalg.pinv(usual)
        # Without samples, the parameters would not be determined: a drive inertia that no motion
        # separates is as large as the body's inertia.
        robot, sizes = described, task.sizes.copy()
        poses = random_configurations(robot, np.random.default_rng(0), POSES // 10).T
        mass = np.mean(mass_matrix(robot, robot.values, poses), axis=0)
        floor = MIN_ARMATURE_SHARE * float(np.mean(np.diag(mass)))
        for k in range(len(robot.drives)):
            coupling = robot.coupling(k)[robot.independent]
            reflected = float(coupling @ mass @ coupling)
            for column in robot.drive_columns(k).values():
                if not np.isfinite(sizes[column]):
                    sizes[column] = max(reflected, floor)
        self.task = replace(task, sizes=sizes)
        size = base.size
        self._empty, _ = self.task.problem(np.zeros((size, size)), np.zeros(size), weight)
        start = self.task.reduce(self._strictly_feasible_model())
        self._start = self._empty.minimise(start, weight).delta

    def learnt(self) -> Kinds:
        """What is saved: where the next solution starts."""
        return {"_start": real(len(self._start))}

    def _strictly_feasible_model(self) -> Array:
        """A strictly feasible model: the nominal one with a small value of every signed term."""
        signed = np.array([symbol in NONNEGATIVE for _, symbol in self.base.robot.parameter_names])
        small = 1e-3 * self.task.scale.parameters
        return np.where(signed & ~(self.nominal > 0), small, self.nominal)

    def problem(self, R: Array, rho: Array) -> EntropicProblem:
        """The problem for whitened equations of the base parameters."""
        return self.task.problem(R, rho, self.weight)[0]

    def determined_share(self, R: Array) -> float:
        """Share of the directions of base parameters that equations determine; 0 to 1.

        Directions are orthogonal in the torques that they cause in the random motions of the
        nominal model, each joint's in units of its own root mean square. One is determined when
        its standard deviation is below `DETERMINED_DEVIATION` of that unit.

        `R` (k, nb): equations in units of their noise.
        """
        precision = np.linalg.svd(R @ self._from_usual, compute_uv=False)
        return float(np.count_nonzero(precision * DETERMINED_DEVIATION > 1.0) / self.base.size)

    def solve(self, R: Array, rho: Array) -> VerifiedModel:
        """The most probable model, from where the last one was.

        Raises SolverError: when the answer does not verify; the next call starts from the nominal
        model again.
        """
        problem = self.problem(R, rho)
        minimum, resumed_from = problem.resume(self._start, self.weight, NEWTON_STEPS)
        free, task = minimum.delta, self.task
        delta = task.expand(free)
        small = np.isfinite(task.sizes) & (np.abs(delta) < NEGLIGIBLE_TERM * task.scale.parameters)
        delta = task.expand(task.reduce(np.where(small, 0.0, delta)))
        if broken := self.feasible.violations(delta):
            start = task.reduce(self._strictly_feasible_model())
            self._start = self._empty.minimise(start, self.weight).delta
            raise SolverError(f"the answer violates {', '.join(broken)} in exact arithmetic")
        self._start = resumed_from
        covariance = task.full_covariance(problem.covariance(free, self.weight, self.weight))
        count = len(self.feasible.blocks), len(self.feasible.linear)
        verified = (
            f"{count[0]} matrices positive definite and {count[1]} limits kept, in exact rational "
            f"arithmetic ({self.feasible.consistency} consistency)"
        )
        K = self.base.K
        return VerifiedModel(delta, np.asarray(K @ covariance @ K.T), verified, minimum.settled)


def row_deviations(triangles: Sequence[Array], count: float, correlation: float) -> Array:
    """Standard deviation of each joint's rows as if they were independent, shape (dof,).

    Each joint's own least squares says how large its noise is; errors of consecutive rows are
    correlated, which `correlation`, rows per independent row, accounts for.
    """
    out = np.ones(len(triangles))
    for j, triangle in enumerate(triangles):
        rows = count / correlation
        degrees_of_freedom = max(rows - (triangle.shape[0] - 1), MIN_RESIDUAL_ROWS_SHARE * rows)
        torque = float(np.linalg.norm(triangle[:, -1])) / np.sqrt(max(count, 1.0))
        if degrees_of_freedom > 0:
            sizes = np.linalg.norm(triangle, axis=0)
            ridge = RIDGE_SHARE * sizes + ROUNDING_SHARE * sizes.max(initial=0.0)
            ridge[-1] = 0.0
            unexplained = abs(float(stack_triangles([triangle, np.diag(ridge)])[-1, -1]))
            noise = unexplained / np.sqrt(degrees_of_freedom * correlation)
            out[j] = max(noise, MIN_NOISE_SHARE * torque) or 1.0
    return np.asarray(out * np.sqrt(correlation))
