"""Measured against predicted torque, as in Figure 6 of Sousa and Cortesao (2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from feasid.core.display import shortened
from feasid.core.figures import BLUE, GREY, RED, picture
from feasid.identification.fitted import Fitted
from feasid.identification.views.replay import Replay, chosen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 3000
"""Points drawn per line; longer logs are thinned, as no screen shows more."""

NAME = 32
"""Characters of a joint's name in a panel."""


def torques(fit: Fitted, log: Any = None, title: str = "") -> Figure:
    """Measured torque, predicted torque and their difference, a panel per joint.

    As the fit compares them: behind the same low-pass. The torque as it was logged is paler.
    """
    replay = Replay.of(fit, log)
    names = replay.joints
    errors = fit.relative_error if log is None else fit.errors(chosen(fit, log))
    figure, axes = panels(
        names,
        "measured and predicted torque over time, and their difference; relative error "
        + ", ".join(f"{n} {100 * errors[n]:.1f} %" for n in names),
    )
    _draw(axes, replay)
    for axis, name in zip(axes, names, strict=False):
        titled(axis, f"{shortened(name, NAME)}   ({100 * errors[name]:.1f} %)")
    axes[0].legend(fontsize=8, ncols=4, frameon=False, loc="best")
    label_time(axes, names)
    figure.supylabel("torque [N m], force [N]", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def panels(
    names: Sequence[str], alt: str, columns: int = 2, height: float = 2.1
) -> tuple[Figure, Any]:
    """A figure with a panel per name, and its axes in order; those left over are hidden."""
    rows = -(-len(names) // columns)
    figure = picture(11, 0.6 + height * rows, alt)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    return figure, axes


def titled(axis: Any, title: str) -> None:
    """A panel's title, and the manners of all panels."""
    axis.set_title(title, fontsize=9, loc="left", parse_math=False)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)


def label_time(axes: Any, names: Sequence[str]) -> None:
    """Time below the last panels."""
    for axis in axes[: len(names)]:
        axis.margins(x=0)
    for axis in axes[max(0, len(names) - 2) : len(names)]:
        axis.set_xlabel("time [s]", fontsize=8)


def _draw(axes: Any, replay: Replay) -> None:
    step = max(1, replay.motion.samples // MOST_POINTS)
    for k, axis in enumerate(axes[: len(replay.joints)]):
        if replay.cutoff is not None:
            for n, run in enumerate(replay.runs):
                axis.plot(run.t[::step], run.tau[::step, k], color=BLUE, alpha=0.3, lw=0.6,
                          label=None if n else "as logged")  # fmt: skip
        for n, (t, measured, predicted) in enumerate(replay.compared):
            for label, curve, color, width in (
                ("measured", measured, BLUE, 1.8),
                ("predicted", predicted, RED, 0.9),
                ("difference", measured - predicted, GREY, 0.7),
            ):
                axis.plot(t[::step], curve[::step, k], color=color, lw=width,
                          label=None if n else label)  # fmt: skip
