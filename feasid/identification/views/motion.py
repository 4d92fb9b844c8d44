"""The motion of a log beside the limits of the description: what was used of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from feasid.core.display import shortened
from feasid.core.figures import BLUE, RED
from feasid.identification.fitted import Fitted
from feasid.identification.views.replay import Replay
from feasid.identification.views.torques import MOST_POINTS, panels, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("q", "dq", "ddq", "tau")
TITLES = ("position", "velocity", "acceleration", "torque")


def excitation(fit: Fitted, log: Any = None) -> Figure:
    """Positions, velocities, accelerations and torques with the description's limits."""
    replay = Replay.of(fit, log)
    names = replay.joints
    figure, axes = panels(
        [n for n in names for _ in KINDS], "motion of every joint beside its limits", 4, 1.3
    )
    limits = {}
    for body, rows in fit.description.moving:
        if rows.stop - rows.start == 1:
            own = body.limits
            limits[rows.start] = (
                (own.lower, own.upper), _both(own.velocity), (), _both(own.effort),
            )  # fmt: skip
    step = max(1, replay.motion.samples // MOST_POINTS)
    for j, name in enumerate(names):
        for c, (kind, title) in enumerate(zip(KINDS, TITLES, strict=True)):
            axis = axes[len(KINDS) * j + c]
            for run in replay.runs:
                axis.plot(run.t[::step], getattr(run, kind)[::step, j], color=BLUE, lw=0.9)
            for edge in limits.get(j, ((),) * 4)[c]:
                if edge is not None:
                    axis.axhline(edge, color=RED, lw=0.8, ls="--")
            titled(axis, title if j == 0 else "")
            axis.margins(x=0)
        axes[len(KINDS) * j].set_ylabel(shortened(name, 16), fontsize=8, parse_math=False)
    for axis in axes[-len(KINDS) :]:
        axis.set_xlabel("time [s]", fontsize=8)
    return figure


def _both(limit: float | None) -> tuple[float, ...]:
    return () if limit is None else (-limit, limit)
