"""Whether the identified model may be used: decisions with their evidence.

The coefficient of determination of the Valkyrie identification paper is necessary but easily met by
a wrong model. A further criterion is the prediction error, each row predicted before it is learnt,
compared with that of the nominal model.

`examples/valkyrie.py` has the rules of that paper's online experiment, for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arguments import Count, checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.archive.state import Kinds
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd


@checked
@dataclass(frozen=True)
class AcceptanceRules:
    """Conditions under which an identified model is accepted."""

    #: Coefficient of determination over the window: to open, and below which an open gate closes.
    r2: float = 0.95
    r2_closing: float = 0.9  #: See `r2`.
    #: Error of prediction over the nominal model's, all joints, each in units of its noise.
    ratio: float = 0.9
    ratio_closing: float = 1.2  #: See `ratio`.
    worst: float = 1.5  #: The same for any single joint whose error is above its noise.
    #: Smallest and largest eigenvalue of the mass matrix over the nominal one's.
    inertia: tuple[float, float] = (0.1, 10.0)
    patience: int = 3  #: Decisions in a row that must agree before the gate moves.
    #: Share of unusable samples, of the last second, above which it closes at once.
    bad: float = 0.1
    #: Share of the directions of parameter space that the log has to determine before the gate
    #: opens, see `feasid.applications.online.problem.FeasibleProblem.determined_share`. Moving arms
    #: of 4 and 7 joints reach 0.97 within two seconds, the same arms at rest 0.3 (tests/online).
    known: float = 0.7

    def __post_init__(self) -> None:
        ordered = self.r2_closing <= self.r2 <= 1.0 and 0 < self.ratio <= self.ratio_closing
        low, high = self.inertia
        if not (ordered and 0 < low < high and self.worst > 0 and self.patience >= 1):
            raise InputError(
                f"the rules that open the gate must be stricter than those that close it: {self}"
            )


@dataclass(frozen=True, eq=False)
class Evidence:
    """Numbers on which a decision is based."""

    time: float  #: Clock of the newest sample [s].
    full: bool  #: Whether as many rows as were asked for are in.
    r2: float
    error: Array  #: Shape (dof,): root mean square of predictions in units of each joint's noise.
    nominal_error: Array  #: See `error`.
    #: Smallest and largest eigenvalue of the mass matrix, over those of the nominal model's, at the
    #: latest posture.
    inertia: tuple[float, float]
    bad: float  #: Share of unusable samples among the newest ones.
    verified: bool  #: Whether there is an estimate, verified in exact arithmetic.
    known: float = 1.0  #: Share of the directions of parameter space that the rows determine.
    still: float = 0.0  #: Time for which nothing has moved, so that nothing was learnt [s].
    clock: str = ""  #: How the time stamps contradict the rate; empty if they agree.
    #: Whether the estimate is the optimum, not a feasible model on the way to it.
    converged: bool = True
    #: Whether the robot has changed, and it is not known yet how: the model is that from before.
    changed: bool = False

    @property
    def ratio(self) -> float:
        """Error over the nominal model's, all joints."""
        error, below = np.linalg.norm(self.error), np.linalg.norm(self.nominal_error)
        return float(error / below) if np.isfinite(error) and below > 0 else np.inf


@dataclass(frozen=True, eq=False)
class Decision:
    """Whether the gate is open, which rules are violated, and the evidence."""

    open: bool
    reasons: tuple[str, ...]
    evidence: Evidence = field(repr=False)

    def __str__(self) -> str:
        state = "identified model" if self.open else "nominal model"
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.evidence.time:.2f} s, {state}{why}"


class ModelGate:
    """Opens and closes with hysteresis."""

    def __init__(self, rules: AcceptanceRules | None = None) -> None:
        self.rules = AcceptanceRules() if rules is None else rules
        self.open = False
        self._agreeing = 0

    def learnt(self) -> Kinds:
        """What is saved."""
        return {"open": bool, "_agreeing": Count}

    def decide(self, evidence: Evidence) -> Decision:
        """Update the gate with evidence; its new state, and the rules that are violated.

        While nothing moves there is no new evidence: the decision stays, except for events that
        close the gate immediately.
        """
        low, high = evidence.inertia
        least, most = self.rules.inertia
        events = (
            (not evidence.verified, "no verified estimate"),
            (bool(evidence.clock), evidence.clock),
            (evidence.bad > self.rules.bad, f"{100 * evidence.bad:.0f} % of the last second's "
             "samples are unusable"),
            (not (low >= least and high <= most), "the mass matrix's eigenvalues are "
             f"{low:.2g} and {high:.2g} times the nominal ones"),
        )  # fmt: skip
        at_once = tuple(text for happened, text in events if happened)
        if evidence.still and not at_once:
            still = f"nothing has moved for {evidence.still:.1f} s"
            return Decision(self.open, (still, *self._violated_rules(evidence)), evidence)
        reasons = (*at_once, *self._violated_rules(evidence))
        accepts = not reasons
        self._agreeing = self._agreeing + 1 if accepts != self.open else 0
        if at_once or self._agreeing >= self.rules.patience:
            self.open, self._agreeing = accepts, 0
        return Decision(self.open, reasons, evidence)

    def _violated_rules(self, e: Evidence) -> tuple[str, ...]:
        rules, closed = self.rules, not self.open
        least, most = (rules.r2, rules.ratio) if closed else (rules.r2_closing, rules.ratio_closing)
        conditions = (
            (closed and not e.full, "the buffer is not full"),
            (closed and not e.converged, "the estimate has not reached the optimum yet"),
            (closed and e.changed, "the robot has changed, and it is not known yet how"),
            (closed and not e.known >= rules.known, f"the motion determines {100 * e.known:.0f} % "
             "of the directions of parameters"),
            (not e.r2 >= least, f"R2 of {e.r2:.3f} is below {least:g}"),
            (not e.ratio <= most, f"errors of prediction are {e.ratio:.2f} times the nominal "
             "model's"),
        )  # fmt: skip
        out = [text for violated, text in conditions if violated]
        # In units of noise: below twice that, an error says nothing against a joint.
        above = e.error > np.maximum(rules.worst * e.nominal_error, 2.0)
        if closed and above.any():
            out.append(f"joint {int(np.argmax(e.error / np.maximum(e.nominal_error, 1e-9)))} is "
                       "predicted worse than by the nominal model")  # fmt: skip
        return tuple(out)


@checked_methods
@dataclass(frozen=True, eq=False)
class OnlineEstimate:
    """A physically consistent model, estimated from the samples so far."""

    base: BaseParameters  #: Base parameters of `beta`.
    time: float  #: Clock of the newest sample that is in it [s].
    rows: float  #: CausalEquations per joint that are in it, weights counted.
    delta: Array  #: Shape (n,): standard parameters.
    #: Shape (nb, nb): of the base parameters, as in `feasid.fit`.
    covariance: Array = field(repr=False)
    noise: Array  #: Shape (dof,): standard deviation of each joint's filtered torques [N m or N].
    #: Coefficient of determination over the same rows, all joints: against zero torque, not against
    #: the mean, as the Valkyrie identification paper defines it.
    r2: float
    r2_joints: Array  #: Shape (dof,).
    decision: Decision  #: Whether the gate lets the model be used, and why not.
    verified: str  #: Statement that was verified in exact arithmetic.
    seconds: float  #: Time that the estimate took [s].
    #: Time since the newest motion that is in it, while the robot stands still [s].
    age: float = 0.0
    #: False when the newest problem had no verified answer, and the last one that had stands.
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
        """The robot with these parameters."""
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
