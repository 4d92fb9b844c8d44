"""What changes of a joint from log to log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from feasid.core.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

CHANGES: tuple[Literal["friction", "offset", "gain"], ...] = ("friction", "offset", "gain")
"""Differences of a joint that are followed from log to log."""


@dataclass(frozen=True, eq=False)
class JointChanges:
    """How friction, offset and gain of every joint depart from those of one model, log by log."""

    names: tuple[str, ...]  #: Of the logs: files, or numbers.
    joints: tuple[str, ...]  #: Coordinates.
    #: Of each log and joint the factor on its friction, its offset [N m or N] and the factor on its
    #: torque, in which it departs from the model of all, with deviations, (logs, dof, 3, 2).
    changes: Array

    @property
    def drift(self) -> pd.DataFrame:
        """How joints change from log to log: friction, offset and gain, each with its deviation.

        A row per log and joint. Friction and gain are factors on those of the common model, 1 where
        nothing changed; offsets [N m or N] are added to its own. Standard deviations come from one
        log's equations around this model; NaN if a joint has no such term.
        """
        import pandas as pd

        index = pd.MultiIndex.from_product([self.names, self.joints], names=["log", "joint"])
        columns = [f"{kind}{end}" for kind in CHANGES for end in ("", " std")]
        return pd.DataFrame(self.changes.reshape(len(index), -1), index=index, columns=columns)
