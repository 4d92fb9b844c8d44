"""The estimate of an online fit at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array
from feasid.identifiability.base import BaseParameters
from feasid.online.acceptance import Decision
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class OnlineEstimate:
    """A model that can exist, from the samples so far.

    Attributes
    ----------
    base : BaseParameters
    time : float
        Clock of the newest sample that is in it [s].
    rows : float
        CausalEquations per joint that are in it, weights counted.
    delta : ndarray, shape (n,)
        Standard parameters.
    covariance : ndarray, shape (nb, nb)
        Of the base parameters, as in `feasid.fit`.
    noise : ndarray, shape (dof,)
        Standard deviation of each joint's filtered torques [N m or N].
    r2 : float
        Coefficient of determination over the same rows, all joints: against zero torque, not
        against the mean, as the Valkyrie identification paper defines it.
    r2_joints : ndarray, shape (dof,)
    decision : Decision
        Whether the gate lets the model be used, and why not.
    verified : str
        What holds in exact arithmetic.
    seconds : float
        What the estimate took.
    age : float
        Time since the newest motion that is in it, while the robot stands still [s].
    fresh : bool
        False when the newest problem had no verified answer, and the last one that had stands.
    """

    base: BaseParameters
    time: float
    rows: float
    delta: Array
    covariance: Array = field(repr=False)
    noise: Array
    r2: float
    r2_joints: Array
    decision: Decision
    verified: str
    seconds: float
    age: float = 0.0
    fresh: bool = True

    @cached_property
    def beta(self) -> Array:
        """Base parameters, shape (nb,)."""
        return np.asarray(self.base.K @ self.delta)

    @property
    def std(self) -> Array:
        """Standard deviations of the base parameters, shape (nb,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_property
    def robot(self) -> Robot:
        """The robot with these parameters as its own."""
        return self.base.robot.with_values(self.delta)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Base parameters with their standard deviations."""
        import pandas as pd

        index = pd.Index(self.base.expressions, name="base parameter")
        return pd.DataFrame({"value": self.beta, "std": self.std}, index=index)

    def __repr__(self) -> str:
        stale = "" if self.fresh else " (older: the newest did not verify)"
        if self.age:
            stale += f" (nothing has moved for {self.age:.1f} s)"
        return (
            f"<OnlineEstimate at {self.time:.2f} s of {self.rows:.0f} rows: R2 {self.r2:.4f}, "
            f"{'open' if self.decision.open else 'closed'}{stale}>"
        )
