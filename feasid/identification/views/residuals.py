"""What is left of the torques: its distribution, its spectrum, its memory."""

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

BINS = 60

WINDOW = 1024
"""Samples of a window of the spectrum."""

LAG = 1.0
"""Longest lag of the autocorrelation [s]."""


def histograms(fit: Fitted, log: Any = None) -> Figure:
    """Distribution of the residual torque per joint, beside a normal one of the same spread.

    Behind the low-pass of the fit, as the fit compares torques.
    """
    replay = Replay.of(fit, log)
    residuals = replay.all([measured - model for _, measured, model in replay.compared])
    figure, axes = panels(replay.joints, "distribution of the residual torque per joint", 3)
    for k, name in enumerate(replay.joints):
        own, spread = residuals[:, k], float(residuals[:, k].std())
        axes[k].hist(own, BINS, density=True, color=BLUE, alpha=0.6)
        if spread > 0:
            x = np.linspace(own.min(), own.max(), 200)
            normal = np.exp(-0.5 * ((x - own.mean()) / spread) ** 2) / spread / np.sqrt(2 * np.pi)
            axes[k].plot(x, normal, color=RED, lw=1)
        titled(axes[k], f"{shortened(name, NAME)}   (deviation {spread:.2g})")
    figure.supxlabel("residual torque [N m], force [N]; line: normal, same mean and deviation",
                     fontsize=9)  # fmt: skip
    return figure


def spectra(fit: Fitted, log: Any = None) -> Figure:
    """Spectra of measured and residual torque, and the residual's autocorrelation, per joint.

    White noise has a flat spectrum and no memory; what the residual remembers is not noise, and
    the deviations of parameters that count samples as independent are too small by its length.
    """
    replay = Replay.of(fit, log)
    names = [n for name in replay.joints for n in (name, name)]
    figure, axes = panels(
        names, "spectra of measured and residual torque, and the residual's autocorrelation"
    )
    rate = replay.runs[0].rate
    for k, name in enumerate(replay.joints):
        left, right = axes[2 * k], axes[2 * k + 1]
        longest = max(replay.runs, key=len)
        place = next(i for i, run in enumerate(replay.runs) if run is longest)
        for curve, color, label in (
            (longest.tau[:, k], BLUE, "measured"),
            (replay.residuals[place][:, k], RED, "residual"),
        ):
            f, power = _spectrum(curve, rate)
            left.loglog(f, power, color=color, lw=1, label=label)
        if replay.motion.cutoff is not None:
            left.axvline(replay.motion.cutoff, color=GREY, lw=0.8, ls="--")
        lag, memory = _autocorrelation(replay.residuals[place][:, k], rate)
        right.plot(lag, memory, color=RED, lw=1)
        right.axhspan(-2 / np.sqrt(len(longest)), 2 / np.sqrt(len(longest)), color=GREY, alpha=0.3)
        titled(left, f"{shortened(name, NAME)}: spectrum")
        titled(right, f"{shortened(name, NAME)}: autocorrelation of the residual")
        right.set_ylim(-1, 1.05)
    axes[0].legend(fontsize=8, frameon=False)
    axes[len(names) - 2].set_xlabel("frequency [Hz]; dashed: cut-off of the fit", fontsize=8)
    axes[len(names) - 1].set_xlabel("lag [s]; band: white noise", fontsize=8)
    figure.supylabel("power density [(N m)^2/Hz]", fontsize=9)
    return figure


def _spectrum(curve: Array, rate: float) -> tuple[Array, Array]:
    from scipy.signal import welch

    f, power = welch(curve, rate, nperseg=min(WINDOW, len(curve)))
    return f[1:], np.maximum(power[1:], np.finfo(float).tiny)


def _autocorrelation(curve: Array, rate: float) -> tuple[Array, Array]:
    centred = curve - curve.mean()
    count = min(len(curve), max(2, round(LAG * rate)))
    padded = np.fft.rfft(centred, 2 * len(centred))
    memory = np.fft.irfft(np.abs(padded) ** 2)[:count]
    return np.arange(count) / rate, memory / memory[0] if memory[0] > 0 else memory
