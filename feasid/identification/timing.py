"""By what part of a sample torques lag behind the motion they belong to.

A controller reads encoders and currents one after the other within a period, and which of them a
row of its log holds is rarely documented. Half a millisecond at 1 kHz is more than all noise of
half a minute: left alone, it biases inertia and viscous friction by several deviations. To first
order the true equations of a torque that is d late are

    W beta = tau + d dtau/dt,

one more unknown for all joints. Delays of more than a sample are left in the log and reported: the
expansion ends at first order, and so long a delay has a cause that the user should know of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.notes import Note
from feasid.identification.noise import estimate
from feasid.reduction.triangle import Reduced

EXPECTED = 0.5
"""Deviation of the delay before a log is seen, in samples."""

LONGEST = 1.0
"""Samples beyond which a delay is reported and not taken out."""

ROUNDS = 2
"""The noise is that of rows which are shifted already; the second round changes microseconds."""

TOLD = 3.0
"""Deviations from which a delay is worth a line."""


@dataclass(frozen=True)
class Delay:
    """How late torques are, and how well that is known [s].

    Attributes
    ----------
    value, deviation : float
        What was taken out, and its standard deviation.
    left : float
        What was measured and is too long to be taken out, then the others are 0. A lower bound:
        the expansion shortens delays of several samples.
    """

    value: float = 0.0
    deviation: float = 0.0
    left: float = 0.0

    def notes(self, period: float) -> list[Note]:
        """What was found, where it is more than chance; `period` of the samples [s]."""
        if self.left:
            way = "behind" if self.left > 0 else "ahead of"
            text = (
                f"torques are {1e3 * abs(self.left):.2g} ms or more {way} the motion "
                f"({abs(self.left) / period:.1f} samples): longer than a sample, so the fit does "
                f"not account for it; measure it and fit with delay=, or have the log checked "
                f"(feasid.diagnose)"
            )
            return [Note(text, "long-delay", delay=self.left)]
        if abs(self.value) < TOLD * self.deviation or not self.value:
            return []
        way = "behind" if self.value > 0 else "ahead of"
        text = (
            f"torques are {1e3 * abs(self.value):.2g} ms {way} the motion "
            f"({abs(self.value) / period:.2f} of a sample): estimated and accounted for"
        )
        return [Note(text, "sub-sample-delay", delay=self.value, deviation=self.deviation)]


def aligned(reduced: Reduced) -> tuple[Reduced, Delay]:
    """Torques shifted to their motion, and by how much.

    Parameters
    ----------
    reduced : Reduced
        Returned as it is where its equations were not filtered.
    """
    if not reduced.strata or not reduced.period:
        return reduced, Delay()
    delay = Delay()
    for _ in range(ROUNDS):
        delay = _next(reduced.shifted(delay.value), delay.value)
        if abs(delay.value) > LONGEST * reduced.period:
            certain = abs(delay.value) > TOLD * delay.deviation
            return reduced, Delay(left=delay.value if certain else 0.0)
    return reduced.shifted(delay.value), delay


def _next(reduced: Reduced, already: float) -> Delay:
    """The most probable delay, next to any base parameters."""
    noise, _ = estimate(reduced)
    left = noise.whole(reduced)[-2:, -2:]
    pull = 1.0 / (EXPECTED * reduced.period) ** 2
    known = float(left[:, 1] @ left[:, 1]) + pull
    further = -(float(left[:, 0] @ left[:, 1]) + pull * already) / known
    return Delay(already + further, 1.0 / np.sqrt(known))
