"""Pictures of a fit, each a matplotlib figure. Needs the extra "plot"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from feasid.identification.fitted import Fitted
from feasid.identification.views import (
    friction,
    motion,
    parameters,
    residuals,
    skeleton,
    torques,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plots:
    """Pictures of a fit: ``fit.plot()`` and ``fit.plot.friction()``.

    Each returns a ``matplotlib.figure.Figure`` that no window belongs to; notebooks show it, and
    ``figure.savefig("picture.png")`` keeps it. Those that draw samples take a log, by default the
    first fitted one that was not reduced before, and raise `InputError` when there is none or it
    has no torques; all raise `MissingExtraError` without matplotlib.
    """

    fit: Fitted

    def __call__(self, log: Any = None) -> Figure:
        """Measured and predicted torque and their difference [N m or N] over time [s]."""
        return torques.torques(self.fit, log)

    def torques(self, log: Any = None) -> Figure:
        """The same as calling: Figure 6 of Sousa and Cortesao (2014)."""
        return torques.torques(self.fit, log)

    def histograms(self, log: Any = None) -> Figure:
        """Distribution of the residual torque, a panel per joint."""
        return residuals.histograms(self.fit, log)

    def spectra(self, log: Any = None) -> Figure:
        """Spectra of torque and residual, and the residual's autocorrelation, per joint."""
        return residuals.spectra(self.fit, log)

    def friction(self, log: Any = None) -> Figure:
        """What rigid bodies do not explain over velocity and load, with the fitted law."""
        return friction.friction(self.fit, log)

    def excitation(self, log: Any = None) -> Figure:
        """The log's motion beside the limits of the description."""
        return motion.excitation(self.fit, log)

    def parameters(self) -> Figure:
        """Base parameters with intervals, the description and unconstrained least squares."""
        return parameters.parameters(self.fit)

    def eigenvalues(self) -> Figure:
        """Eigenvalues of the pseudo-inertias against what can exist."""
        return parameters.eigenvalues(self.fit)

    def bodies(self, pose: Mapping[str, float] | None = None) -> Figure:
        """The robot at a pose with centres of mass and inertia ellipsoids, before and after."""
        return skeleton.bodies(self.fit, pose)

    def identifiability(self) -> Figure:
        """What can be known of each parameter of each body."""
        return self.fit.base.plot()
