"""Figures of a fit: measured and predicted torque per joint. Needs the extra "plot"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.errors import InputError, missing_extra
from feasid.identification.result import Fit
from feasid.logs.frame import prepare
from feasid.logs.motion import Motion
from feasid.reduction.triangle import Reduced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, PREDICTED, RESIDUAL = "#4477aa", "#ee6677", "#888888"
"""Paul Tol's bright palette, told apart by the colour-blind and in print."""

MOST_POINTS = 3000
"""Points drawn per line; longer logs are thinned, as no screen shows more."""


def torques(fit: Fit, log: Any = None, title: str = "") -> Figure:
    """Measured torque, predicted torque and their difference, a panel per joint.

    Parameters
    ----------
    fit : Fit
    log : DataFrame or path, optional
        Default the fitted log, when that was not reduced data.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        With torques in N m (N for sliding joints) over time in s; no window is opened.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plotting", "matplotlib", "plot") from error
    from feasid.dynamics.regressor import inverse_dynamics

    motion = _motion(fit, log)
    names = motion.coordinates
    rows = -(-len(names) // 2)
    figure = Figure(figsize=(11, 0.6 + 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
    step = max(1, motion.samples // MOST_POINTS)
    for number, run in enumerate(motion.runs):
        predicted = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)[::step]
        t, measured = run.t[::step], run.tau[::step]
        label = number == 0
        for k, axis in enumerate(axes[: len(names)]):
            axis.plot(
                t, measured[:, k], color=MEASURED, lw=1.2, label="measured" if label else None
            )
            axis.plot(
                t, predicted[:, k], color=PREDICTED, lw=1.0, label="predicted" if label else None
            )
            axis.plot(t, (measured - predicted)[:, k], color=RESIDUAL, lw=0.7,
                      label="difference" if label else None)  # fmt: skip
    errors = fit.relative_error if log is None else fit.errors(log)
    for axis, name in zip(axes, names, strict=False):
        axis.set_title(f"{name}   ({100 * errors[name]:.1f} %)", fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
        axis.margins(x=0)
        axis.grid(alpha=0.25)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    axes[0].legend(fontsize=8, ncols=3, frameon=False, loc="best")
    for axis in axes[max(0, len(names) - 2) : len(names)]:
        axis.set_xlabel("time [s]", fontsize=8)
        axis.xaxis.set_tick_params(labelbottom=True)
    figure.supylabel("torque [N m], force [N]", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _motion(fit: Fit, log: Any) -> Motion:
    from feasid.reduction.sources import open_log

    chosen = fit.data if log is None else log
    if isinstance(chosen, list | tuple) and len(chosen) == 1:
        chosen = chosen[0]
    if chosen is None or isinstance(chosen, Reduced | list | tuple):
        raise InputError("reduced data hold no samples to draw: pass the log, fit.plot(log)")
    motion = prepare(open_log(chosen), fit.robot, **fit.test_options())
    if not all(np.isfinite(run.tau).all() for run in motion.runs):
        raise InputError("the log has no torques to draw")
    return motion
