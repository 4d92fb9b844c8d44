"""Friction as the log has it and as the fitted law has it, over velocity and over load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.display import shortened
from feasid.core.figures import BLUE, GREY, RED
from feasid.identification.fitted import Fitted
from feasid.identification.views.replay import Replay
from feasid.identification.views.torques import NAME, panels, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS = 1500
"""Samples drawn per panel."""

BINS, FEWEST = 40, 5
"""Bins of a mean, and samples that one needs."""


def friction(fit: Fitted, log: Any = None) -> Figure:
    """Torque that rigid bodies do not explain, and the fitted friction, per joint.

    Dots are samples, the blue line their mean in bins, the red line the mean of the fitted law at
    the same samples. On the right the load is the torque of the rigid bodies and the drive, and
    friction counts against the motion: positive where it brakes.
    """
    replay = Replay.of(fit, log)
    dq = replay.all([run.dq for run in replay.runs])
    rigid = replay.all(replay.frictionless)
    left = replay.all([run.tau for run in replay.runs]) - rigid
    law = replay.all(replay.predicted) - rigid
    names = [n for name in replay.joints for n in (name, name)]
    figure, axes = panels(
        names, "friction over velocity and over load, measured and as fitted, a row per joint"
    )
    for k, name in enumerate(replay.joints):
        brake = np.sign(dq[:, k])
        _panel(axes[2 * k], dq[:, k], left[:, k], law[:, k])
        _panel(axes[2 * k + 1], np.abs(rigid[:, k]), brake * left[:, k], brake * law[:, k])
        titled(axes[2 * k], f"{shortened(name, NAME)}: over velocity")
        titled(axes[2 * k + 1], f"{shortened(name, NAME)}: against the motion, over load")
    axes[0].legend(fontsize=8, frameon=False)
    axes[len(names) - 2].set_xlabel("velocity [rad/s or m/s]", fontsize=8)
    axes[len(names) - 1].set_xlabel("load [N m or N]", fontsize=8)
    figure.supylabel("friction torque [N m], force [N]", fontsize=9)
    return figure


def _panel(axis: Any, x: Array, seen: Array, law: Array) -> None:
    step = max(1, len(x) // DOTS)
    axis.plot(x[::step], seen[::step], ".", ms=2, color=GREY, alpha=0.4, label="samples")
    for curve, color, label in ((seen, BLUE, "their mean"), (law, RED, "fitted law")):
        axis.plot(*_binned(x, curve), color=color, lw=1.4, label=label)


def _binned(x: Array, y: Array) -> tuple[Array, Array]:
    """Means of y in bins of x with as many samples each."""
    order = np.argsort(x)
    parts = [p for p in np.array_split(order, BINS) if len(p) >= FEWEST]
    return np.array([x[p].mean() for p in parts]), np.array([y[p].mean() for p in parts])
