"""Parameters with their uncertainty, and what the prior, the bounds and the constraints did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.estimation.bounds import MASS_RATIO, BoundsTest, bodies_of
from feasid.identification.estimation.noise import Noise
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.least_squares import FeasibleFit

Triangle = tuple[Array, Array, float]
"""R (nb, nb), rho (nb,) and the norm of the residual."""

WLS_NOTE = Note(
    "weights='wls': rows near standstill, of which no model of friction holds, count as all "
    "others; intervals of 95 % hold 65 to 85 % of true base parameters of arms in simulation; "
    "weights='noise', the default, avoids it.",
    "wls",
    biased=True,
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters and how sure they are; n standard parameters, nb base parameters."""

    solution: FeasibleFit  #: verified in exact arithmetic; negligible joint terms are zero
    delta: Array  #: the minimiser itself, strictly feasible, (n,)
    gap: float  #: bound of how far the objective is above its minimum; NaN without a prior
    triangle: Triangle  #: weighted equations that were solved
    weights: Array  #: factors on the joints' equations, those of fast rows, (dof,)
    noise: Noise
    base_covariance: Array  #: of the base parameters as they are printed, (nb, nb)
    row_deviation: float = 1.0  #: standard deviation of a row of `triangle`
    prior_weight: float = 0.0
    evidence_weight: float = 0.0  #: the weight with the largest evidence
    evidence: tuple[tuple[float, float], ...] = ()  #: (weight, log evidence)
    covariance: Array | None = None  #: of the standard parameters, (n, n); None without a prior
    #: `covariance` without errors that another log of the same robot has too
    prediction_covariance: Array | None = None
    #: how parameters follow k errors of unit variance that all rows share; in both, (n, k)
    systematic: Array = field(default_factory=lambda: np.zeros((0, 0)))
    bounds: BoundsTest = field(default_factory=BoundsTest)  #: what the log says of plausible bounds
    near: Array | None = None  #: a model that similar minima are sought from, (n,)
    inconsistent: tuple[str, ...] = ()  #: bodies whose description the log contradicts
    notes: tuple[Note, ...] = ()
    #: constrained least squares, where it was solved: `FittedModel.optimum` solves it on request
    optimum: FeasibleFit | None = None

    def value_and_deviation(self, column: int) -> tuple[float, float]:
        """One standard parameter, of a fit with a prior."""
        assert self.covariance is not None  # as the prior
        return float(self.delta[column]), float(np.sqrt(self.covariance[column, column]))

    def with_systematic(self, sensitivity: Array, *, recurring: bool = False) -> Estimate:
        """The estimate with errors that all rows share: ``sensitivity`` (n, k) of unit variance.

        Another log has the `recurring` ones too, so errors predicted for it do not contain them.
        """
        if self.covariance is None or not sensitivity.shape[1]:
            return self
        more = sensitivity @ sensitivity.T
        # Rows of weighed parameters come after those of base parameters.
        K = np.asarray(self.solution.problem.base.K, dtype=np.float64)
        base = K[: len(self.base_covariance)] @ sensitivity
        predicted = self.prediction_covariance
        assert predicted is not None  # as the covariance
        return replace(
            self,
            covariance=self.covariance + more,
            base_covariance=self.base_covariance + base @ base.T,
            prediction_covariance=predicted if recurring else predicted + more,
            systematic=np.hstack([self.systematic, sensitivity]),
        )

    def with_notes(self, prior: str, feasible: FeasibleSet, weights: str | Array) -> Estimate:
        """The same with notes on a prior of this name, on bounds, constraints and weights."""
        notes = _bound_notes(self)
        if self.inconsistent:
            text = (
                f"inertials of {', '.join(self.inconsistent)}: the log contradicts the description "
                "of these bodies, or of neighbours that move with them, more than that of the "
                "others; the standard errors of their parameters are widened"
            )
            notes.append(Note(text, "description-doubted", bodies=self.inconsistent))
        weight, best = self.prior_weight, self.evidence_weight
        text = f"{prior} prior of weight {weight:.3g} in units of the whitened residual"
        if self.evidence and best != weight:
            text += f" (the log's evidence would choose {best:.3g})"
        notes.append(Note(text, "prior", weight=weight, evident=best))
        wls = isinstance(weights, str) and weights != "noise"
        return replace(self, notes=(*notes, *uncertified_notes(feasible), *[WLS_NOTE] * wls))


def with_deviation(value: float, deviation: float) -> str:
    """A value and its deviation, which has two digits; a value without one has three decimals."""
    places = max(1 - int(np.floor(np.log10(deviation))), 0) if deviation > 0 else 3
    return f"{value:.{places}f} +- {deviation:.{places}f}"


def _bound_notes(estimate: Estimate) -> list[Note]:
    """Notes on bodies at their plausible bounds, or beyond them, and the cost of the bounds."""
    ratio, active = estimate.bounds.likelihood_ratio, estimate.bounds.active
    rejected = estimate.bounds.rejected
    at_bound = (
        f"at a cost of {ratio:.2g} in the squared whitened residual; no action needed: the log "
        "allows it"
    )
    beyond = (
        f"the data reject the bound (it would cost {ratio:.3g} in the squared whitened residual)"
    )
    heavy = f"at its bound, {MASS_RATIO:g} times the description's or a third of it"
    edge = "its centre is at the edge of the collision or visual shape"
    heavier = f"more than {MASS_RATIO:g} times the description's or less than a third: {beyond}; "
    heavier += "check the masses in the description"
    outside = f"its centre is outside its collision or visual shape: {beyond}; check the "
    outside += "description"
    notes = [
        ("mass-bound", bodies_of(active, "mass"), f"{heavy} (plausible=True), {at_bound}"),
        ("shape-bound", bodies_of(active, "shape"), f"{edge} (plausible=True), {at_bound}"),
        ("mass-released", bodies_of(rejected, "mass"), heavier),
        ("shape-released", bodies_of(rejected, "shape"), outside),
    ]
    # A mass and a shape of one body may both be excluded, and are one sentence.
    excluded = tuple(dict.fromkeys(b.body for b in estimate.bounds.excluded))
    text = "the given bounds exclude its plausible values (plausible=True)"
    notes.append(("bound-excluded", excluded, f"{text}; yours are kept"))
    return [
        Note(f"mass of {', '.join(bodies)}: {text}", code, bodies=bodies, price=ratio)
        for code, bodies, text in notes
        if bodies
    ]


def uncertified_notes(feasible: FeasibleSet) -> tuple[Note, ...]:
    """Note on constraints that no certificate covers."""
    if not feasible.convex:
        return ()
    listed = ", ".join(c.name for c in feasible.convex)
    text = "kept in floating point, outside the certificate, because not affine"
    return (Note(f"{listed}: {text}", "outside-certificate"),)
