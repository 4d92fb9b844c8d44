"""Terms of servos besides kp and kd, selected by evidence: integrate, act on rates, or carry
weight.

A servo that carries the robot's weight by its maker's model leaves errors as small as one that
does not, with gains of a tenth: errors on held-out data do not distinguish them, and the evidence
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from feasid.identification.servos.equations import LawEquations, ServoLaw
from feasid.identification.servos.evidence import WIDTH, GainEvidence, GainPosterior, GainPrior
from feasid.identification.servos.rows import ServoRows
from feasid.logs.servo import TorqueLimits
from feasid.parameters.identifiability.base import BaseParameters

NATS = 20.0
"""Logarithm of the evidence that a further term must gain for each of its coefficients, besides
Schwarz's: noise of coarse encoders that is not white gained up to ten, terms that were there a
hundred."""

CLOSE = 10.0  #: Logarithm of the evidence by which a law is not much less likely than another.

SHARES = (0.5, 1.0)
"""Shares of the weight through whose evidence, and that of none, a parabola is laid."""

LEAST_SHARE, MOST_SHARE = 0.1, 1.5  #: Shares of the weight below and beyond which none is sought.

APART = 0.2
"""Difference of the logarithm of the mean gain from which two likely laws make a fit doubtful."""


@dataclass(frozen=True, eq=False)
class LawFit:
    """Gains with one law: its equations, the posterior, the negative log evidence."""

    equations: LawEquations
    posterior: GainPosterior
    score: float
    coefficients: int

    @property
    def law(self) -> ServoLaw:
        """The servo law of this fit."""
        return self.equations.law

    @property
    def mean_log(self) -> float:
        """Mean of the logarithms of the gains."""
        return float(self.posterior.logs.mean())


@dataclass(frozen=True, eq=False)
class GainProblem:
    """Rows without and with a known load, and what is known before."""

    base: BaseParameters
    data: tuple[ServoRows, ...]
    prior: GainPrior
    limits: TorqueLimits | None = None

    def fit(self, law: ServoLaw, near: LawFit | None = None) -> LawFit:
        """Gains with this law, with delays near those of another one."""
        start = None if near is None else near.equations.lags[0]
        equations = LawEquations(self.data, law, self.limits, start)
        blocks = equations.blocks(self.prior.unknowns)
        evidence = GainEvidence(self.prior, blocks, self.base.robot.dof)
        if near is None or near.law.share != law.share:
            # Logarithms of the gains with which the description explains each joint's errors best.
            robot = self.base.robot
            inertial = robot.inertial_columns.ravel()
            values = np.zeros(robot.size)
            values[inertial] = np.nan_to_num(robot.values[inertial])
            terms = self.base.K[:, np.setdiff1d(np.arange(robot.size), inertial)]
            described = np.column_stack([self.base.K @ values, terms])
            out = np.full(robot.dof, np.nan)
            signals = equations.signals(equations.lags[0])
            for joint in equations.joints[: robot.dof]:
                e, *extra = (joint.projector.T @ x for x in joint.select(signals))
                columns = np.column_stack([joint.projected @ described, *extra])
                norms = np.linalg.norm(columns, axis=0)
                norms[norms == 0] = np.inf
                x = np.linalg.lstsq(columns / norms, e, rcond=1e-9)[0]
                # A negative gain is none: those of the other joints stand in.
                if x[0] > 0 and np.isfinite(norms[0]):
                    out[joint.joint] = np.log(norms[0] / x[0])
            for j, (kp, _) in self.prior.trusted.items():
                out[j] = np.log(kp)
            middle = float(np.nanmedian(out)) if np.isfinite(out).any() else 0.0
            first = np.r_[np.where(np.isfinite(out), out, middle), np.log(WIDTH)]
        else:
            first = np.r_[near.posterior.logs, np.log(near.posterior.width)]
        posterior = evidence.maximise(first)
        count = len(law.terms) * self.base.robot.dof + (law.share != 0)
        score = posterior.score + equations.noise_score + count * self._penalty(equations)
        return LawFit(equations, posterior, score, count)

    def _penalty(self, equations: LawEquations) -> float:
        """Cost of a coefficient of a law: half the logarithm of the rows (Schwarz 1978)."""
        return 0.5 * float(np.log(np.mean([len(part.used) for part in equations.joints])))

    def choose(self, kind: str, terms: Sequence[str] | None) -> tuple[LawFit, list[LawFit]]:
        """The law with these terms, else the one by evidence; and all that were tried.

        A term is added where the evidence gains `NATS` for each of its coefficients, and the others
        are tried again with it.
        """
        best = self.fit(ServoLaw(kind))
        if terms is not None or kind != "position":
            names = tuple(t for t in terms or () if t != "weight")
            fit = self.fit(replace(best.law, terms=names), best) if names else best
            shared = self._with_share(fit) if "weight" in (terms or ()) else None
            return shared or fit, []
        tried = [best]
        # The integral at the start is that of a single run.
        single = len(self.data[0].stretches) == 1
        offers = ("rate", "gravity", "integral") if single else ("rate", "gravity")
        while True:
            carried = best.law.share or "gravity" in best.law.terms
            rest = [
                x for x in offers if x not in best.law.terms and not (x == "gravity" and carried)
            ]
            trials = [self.fit(replace(best.law, terms=(*best.law.terms, x)), best) for x in rest]
            if not carried and (shared := self._with_share(best)) is not None:
                trials.append(shared)
            tried += trials
            gains = {k: best.score - x.score for k, x in enumerate(trials)}
            least = {k: NATS * (x.coefficients - best.coefficients) for k, x in enumerate(trials)}
            better = [k for k, gain in gains.items() if gain > least[k]]
            if not better:
                break
            earlier, best = best.law.terms, trials[max(better, key=lambda k: gains[k])]
            for term in earlier:  # which the new one may make superfluous
                names = tuple(t for t in best.law.terms if t != term)
                less = self.fit(replace(best.law, terms=names), best)
                best = less if less.score < best.score + NATS * self.base.robot.dof else best
        return best, tried

    def _with_share(self, plain: LawFit) -> LawFit | None:
        """The fit whose servos carry the likeliest share of the weight; None where they do not."""
        fits = [plain, *(self.fit(replace(plain.law, share=s), plain) for s in SHARES)]
        scores = [f.score - (f.law.share != 0) * self._penalty(f.equations) for f in fits]
        bend, slope, _ = np.polyfit((0.0, *SHARES), scores, 2)
        if bend <= 0:
            return min(fits[1:], key=lambda f: f.score)
        share = float(np.clip(-slope / (2 * bend), -MOST_SHARE, MOST_SHARE))
        if abs(share) < LEAST_SHARE:
            return None
        fits.append(self.fit(replace(plain.law, share=share), plain))
        return min(fits[1:], key=lambda f: f.score)
