"""Figures of a fit: measured and predicted torque per joint. Needs the extra "plot"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.dynamics.regressor import inverse_dynamics
from feasid.errors import InputError, missing_extra
from feasid.identification.fitted import Fitted
from feasid.logs.motion import Motion
from feasid.logs.recording import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, PREDICTED, RESIDUAL = "#4477aa", "#ee6677", "#888888"
"""Paul Tol's bright palette, told apart by the colour-blind and in print."""

MOST_POINTS = 3000
"""Points drawn per line; longer logs are thinned, as no screen shows more."""


def torques(fit: Fitted, log: Any = None, title: str = "") -> Figure:
    """Measured torque, predicted torque and their difference, a panel per joint.

    Parameters
    ----------
    fit : Fitted
    log : DataFrame, path or Recording, optional
        Default the first fitted log that was not reduced before.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        With torques in N m (N for sliding joints) over time in s; no window is opened.

    Raises
    ------
    InputError
        When only reduced data were fitted, or the log has no torques.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plotting", "matplotlib", "plot") from error
    recording = _recording(fit, log)
    motion = recording.motion(fit.description, **fit.test_options())
    if not all(np.isfinite(run.tau).all() for run in motion.runs):
        raise InputError("the log has no torques to draw")
    names = motion.coordinates
    rows = -(-len(names) // 2)
    figure = Figure(figsize=(11, 0.6 + 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
    _draw(axes, motion, fit)
    _label(axes, names, fit.relative_error if log is None else fit.errors(recording))
    figure.supylabel("torque [N m], force [N]", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _recording(fit: Fitted, log: Any) -> Recording:
    if log is not None:
        return Recording.of(log)
    if not fit.recordings:
        raise InputError("reduced data hold no samples to draw: pass the log, fit.plot(log)")
    return fit.recordings[0]


def _draw(axes: Any, motion: Motion, fit: Fitted) -> None:
    step = max(1, motion.samples // MOST_POINTS)
    for number, run in enumerate(motion.runs):
        t, measured = run.t[::step], run.tau[::step]
        q, dq, ddq = run.q[::step], run.dq[::step], run.ddq[::step]
        predicted = inverse_dynamics(fit.robot, q, dq, ddq)
        curves = (
            ("measured", measured, MEASURED, 1.2),
            ("predicted", predicted, PREDICTED, 1.0),
            ("difference", measured - predicted, RESIDUAL, 0.7),
        )
        for k, axis in enumerate(axes[: len(motion.coordinates)]):
            for label, curve, color, width in curves:
                named = label if number == 0 else None
                axis.plot(t, curve[:, k], color=color, lw=width, label=named)


def _label(axes: Any, names: Sequence[str], errors: Any) -> None:
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
