"""Models of parts of a log, their errors on the others, and the thresholds of decisions.

Blocks of a log are compared one by one: the logarithms of their losses' ratios have a mean and a
deviation over blocks, so that a loud block decides no more than a quiet one (on one half of the
Unitree Z1's log differences of squared losses give its true delay 3.3 deviations, log ratios 15.7).
Every threshold of such a decision is in `RULES`, with what it was measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.core.errors import SolverError
from feasid.identification.estimation.noise import Noise, squared_residuals
from feasid.identification.regression.folds import FOLDS
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import BaseParameters

Places = npt.NDArray[np.intp]

FoldSolver = Callable[[tuple[Array, Array, float]], Array]
"""From a whitened triangle to standard parameters (n,)."""

SMALL = 1e-3
"""Share of the mean loss of a block that is added to each: blocks without motion have none."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Squared errors of rows that a model did not see, by block of a log and joint."""

    squared: Array  #: (blocks, joints) [(N m)^2 or N^2], or in one unit of each joint

    @classmethod
    def from_rows(cls, residual: Array, block: Places, joint: Places) -> HeldOut:
        """Squared residuals of rows (rows,) summed by block and joint, both indices (rows,)."""
        # Joints without a sensor have no rows, and no column among the errors.
        _, place = np.unique(joint, return_inverse=True)
        squared = np.zeros((int(block.max()) + 1, int(place.max()) + 1))
        np.add.at(squared, (block, place.ravel()), residual**2)
        return cls(squared)

    def gain(self, over: HeldOut) -> Gain:
        """How much smaller these errors are than another model's of the same rows."""
        return Gain(over.squared, self.squared)


@dataclass(frozen=True, eq=False)
class Gain:
    """How much smaller held-out errors are with one model (after) than with another (before)."""

    before: Array  #: squared errors, (blocks, joints)
    after: Array

    @cached_property
    def _joints(self) -> tuple[Array, Mask]:
        """Sums by joint, and which joints have errors in both."""
        sums = np.stack([self.before.sum(axis=0), self.after.sum(axis=0)])
        return sums, np.asarray((sums > 0).all(axis=0))

    @cached_property
    def by_joint(self) -> Array:
        """Share by which the error of each joint falls, (joints,); 0 where one has none."""
        (old, new), alive = self._joints
        return np.asarray(1.0 - np.sqrt(np.where(alive, new, 1.0) / np.where(alive, old, 1.0)))

    @property
    def share(self) -> float:
        """Share by which the geometric mean over joints falls: it does not depend on scales."""
        alive = self._joints[1]
        if not alive.any():
            return 0.0
        return 1.0 - float(np.exp(np.mean(np.log(1.0 - self.by_joint[alive]))))

    @property
    def most(self) -> float:
        """Share by which the error of the joint falls that gains most."""
        alive = self._joints[1]
        return float(self.by_joint[alive].max()) if alive.any() else 0.0

    @property
    def total(self) -> float:
        """Share by which the error of all torques together falls."""
        (old, new), _ = self._joints
        return 1.0 - float(np.sqrt(new.sum() / old.sum())) if old.sum() > 0 else 0.0

    @property
    def deviations(self) -> float:
        """Mean of log(loss before / loss after) over blocks, in deviations of that mean.

        The loss of a block is the mean over joints, so that others do not hide the gain of one
        joint.
        """
        _, alive = self._joints
        before, after = self.before[:, alive], self.after[:, alive]
        used = (before + after).any(axis=1)
        if used.sum() < 2 or not alive.any():
            return 0.0
        # Of each joint by itself, so that a joint of small torques keeps a small floor.
        floor = SMALL * before[used].mean(axis=0)
        ratio = np.log((before[used] + floor) / (after[used] + floor)).mean(axis=1)
        return float(ratio.mean() / (ratio.std(ddof=1) / np.sqrt(len(ratio)) + 1e-300))


@dataclass(frozen=True)
class Rule:
    """Conditions on a gain for an effect to enter a fit, or to be advised."""

    evidence: str  #: Data on which the numbers were measured.
    share: float = 0.0  #: The least share, as the geometric mean over joints,
    one_joint: float = np.inf  #: or of one joint, where the mean does not rise;
    total: float = -np.inf  #: the least share of all torques together;
    deviations: float = -np.inf  #: the least number of deviations over blocks.

    def accepts(self, gain: Gain) -> bool:
        """Whether a gain satisfies all conditions; cheap ones come first."""
        enough = gain.share > self.share or (gain.most > self.one_joint and gain.share > 0)
        return (
            enough
            and (self.total == -np.inf or gain.total > self.total)
            and (self.deviations == -np.inf or gain.deviations > self.deviations)
        )

    def refuses(self, gain: Gain) -> str:
        """Why a gain does not pass, in words; empty where it does."""
        if self.accepts(gain):
            return ""
        if gain.share <= self.share:
            return f"held-out errors fall by {gain.share:.1%}, less than {self.share:.0%}"
        return f"{gain.deviations:.1f} standard errors over blocks, less than {self.deviations:g}"


RULES = {
    "effect": Rule(
        "Anything that enters a fit: sensor errors, joint terms, features. Shares are of errors; "
        "squared, .08 (.04: the worst of 40 real pairs is 1.58 times the plain fit's error; .16: "
        "1.73; .08: 1.12) and three deviations (2: 1.158 of the errors of before on packaged "
        "logs, the worst 15.6; 4.5: 1.04 on real ones, the worst 1.64).",
        share=0.04,
        deviations=3.0,
    ),
    "abrupt": Rule(
        "Coulomb friction that changes its sign at once, which has no coefficient to follow noise "
        "with. On 15 simulated arms with such friction: .015 to .10, by 2.8 deviations at least, "
        "and errors on other motion fall by up to a fifth; none of 19 pairs of real logs gains by "
        "it, and for friction that changes gradually its sign is impossible.",
        share=0.01,
        deviations=2.0,
    ),
    "gain": Rule(
        "Torque gains and long delays. No log tells the factor that gains share, and those of one "
        "joint hardly from masses: gains off by 5 % in simulation lower the error by .1 to .4 at "
        "one joint alone and by more at all, those that stood for elastic joints or for friction "
        "that grows with the load by .05.",
        share=0.1,
        deviations=3.0,
    ),
    "one-gain": Rule(
        "The gain of one joint, which real logs show where a load or elasticity is not modelled: "
        "on 40 real pairs the robot without its corrections was 1.25 times as wrong with such "
        "gains as without. A gain that is wrong by a fifth halves its joint's error in simulation.",
        share=np.inf,
        one_joint=0.5,
        deviations=3.0,
    ),
    "fit": Rule("All that entered together: feasible fits must not be worse than the plain fit."),
    "refused": Rule(
        "An error of the log that the search selects and no feasible fit confirms, from which the "
        "fit is in doubt: tilts of 3 degrees lower the error by .5 to .9 on arms in simulation, "
        "and the fits without them were 7 to 60 times as wrong.",
        share=0.3,
    ),
    "advice": Rule("An option that the check of a log proposes.", share=0.03),
    "preparation": Rule(
        "Signs, orders, units and right angles, of which many are tried: on parts of the log "
        "of a KUKA arm whose wrist torques are mostly noise, a right angle that is not there "
        "promised .2.",
        share=0.25,
    ),
    "exchange": Rule(
        "An exchange of two torques, which leaves the other joints as they are. Exchanges that "
        "were none promised up to .12 on logs of the KUKA, one of two torques of a Unitree Z1 .2.",
        share=0.03,
        total=0.15,
    ),
    "log": Rule(
        "In what one log differs from the others of its robot. Payloads, friction and gains in "
        "simulation lower the errors of a joint by .3 or more.",
        share=0.1,
        one_joint=0.2,
    ),
    "feature": Rule("A feature of which a warning is made; below, it is a note.", share=0.05),
}
"""Every threshold of a decision on held-out data."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """For every fold of a log's time, the model of the other folds.

    All models come from one estimator with fixed decisions; see `Estimator.keep`.
    """

    base: BaseParameters
    reduced: Reduced
    noise: Noise
    solve: FoldSolver

    @property
    def folds(self) -> list[int]:
        """Folds that were predicted; none where equations were not filtered."""
        return [*self.models]

    @cached_property
    def folds_with_rows(self) -> list[int]:
        """Numbers of the folds that have rows."""
        strata = self.reduced.strata
        return [f for f in range(FOLDS) if strata and strata[0].counts[:, f].any()]

    def training_equations(self, fold: int) -> tuple[Array, Array, float]:
        """Whitened triangle of the other folds."""
        others = [f for f in self.folds_with_rows if f != fold]
        return self.noise.whitened_triangle(self.reduced, others)

    @cached_property
    def models(self) -> dict[int, Array]:
        """Base parameters per fold, of the feasible model of the others; none if one is missing."""
        if not (folds := self.folds_with_rows):
            return {}
        try:
            return {f: self.base.K @ self.solve(self.training_equations(f)) for f in folds}
        except SolverError:  # errors of the other folds alone would look smaller than they are
            return {}

    def squared_errors(
        self, models: Mapping[int, Array] | None = None, tested: Reduced | None = None
    ) -> Array:
        """Squared errors of every fold, shape (folds, dof) [(N m)^2 or N^2].

        `models`: other models of the folds' rests; -1 stands for all of the log; `tested`: another
        preparation of the same folds.
        """
        log = self.reduced if tested is None else tested
        parameters = self.models if models is None else models
        joints = range(len(log.triangles))
        return np.array(
            [
                [float(squared_residuals(log, j, b, None if f < 0 else [f]).sum()) for j in joints]
                for f, b in parameters.items()
            ]
        )

    @property
    def errors(self) -> Array:
        """Relative torque error of every joint on folds that were not fitted, shape (dof,)."""
        return relative_error(self.squared_errors().sum(axis=0), self.reduced.torque_norms)


def relative_error(squared: Array, norms: Array) -> Array:
    """Roots of sums of squared errors over norms of torques; 0 where there is no torque."""
    return np.asarray(np.sqrt(squared) / np.where(norms > 0, norms, 1.0) * (norms > 0))
