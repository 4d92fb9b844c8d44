"""One thing that may be wrong with a log: what it leaves of the residuals, and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.screen import Screen

EXPLAINED = 0.6
"""A joint whose relative residual is below this is taken for understood."""

CLEAR = 0.15
"""When all joints' residuals are below this, neither positions nor geometry are doubted."""

OBJECTION = 1.15
"""A change that concerns many joints must not raise the residual of any by more than this."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change of the log or the description that would explain the torques better.

    Attributes
    ----------
    share : float
        What is left of the product of all joints' residuals.
    finding : Finding
    mended : callable
        The screen with the change made.
    unknowns : float
        How much was chosen to fit: a torque's sign or column 0, an angle 1, a direction 2.
    """

    share: float
    finding: Finding
    mended: Callable[[], Screen]
    unknowns: float = 0.0


UNKNOWN = 0.7
"""What an unknown more must leave of the residuals' product to be believed."""


def likeliest(candidates: Iterable[Hypothesis]) -> Hypothesis | None:
    """The one that explains most; of those that explain as much, the one that assumes least."""
    return min(candidates, key=lambda h: h.share / UNKNOWN**h.unknowns, default=None)


def clear(screen: Screen) -> bool:
    """Whether all torques are explained so well that nothing more is looked for."""
    return bool((screen.residuals < CLEAR).all())


def contradicted(screen: Screen, after: Array) -> bool:
    """Whether a joint that is understood, before or after, loses by a change."""
    own = screen.residuals
    understood = np.minimum(own, after) < EXPLAINED
    return bool((after > OBJECTION * own)[understood].any())
