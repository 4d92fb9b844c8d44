"""Figures of a fit: torques, residuals, friction, motion, parameters and bodies.

Each is a matplotlib figure. Needs the extra "plot".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.display import BLUE, GREY, RED, YELLOW, add_title, new_figure, truncate
from feasid.core.errors import InputError
from feasid.identification.changes import JointChanges
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log
from feasid.results.report.contents import PredictedLog, select_recording
from feasid.results.report.robots import bounding_ball, robot_views
from feasid.results.report.summary import linear_form_table
from feasid.robot.inertia import pseudo_inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LINE_POINTS = 3000  #: Points drawn per line; longer logs are thinned, as no screen shows more.
MAX_TITLE_CHARACTERS = 32  #: Characters of a joint's name in a panel.


def panels(
    names: Sequence[str], alt: str, columns: int = 2, height: float = 2.1
) -> tuple[Figure, Any]:
    """A figure with a panel per name, and its axes in order; those left over are hidden."""
    rows = -(-len(names) // columns)
    figure = new_figure(11, 0.6 + height * rows, alt)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    return figure, axes


def label_panels(
    figure: Figure, axes: Any, below: Sequence[str], left: str, columns: int = 0
) -> None:
    """Label the last row and the left; a title, with a legend of the first panel in columns."""
    for axis, text in zip(axes[-len(below) :], below, strict=False):
        axis.set_xlabel(text, fontsize=8)
    figure.supylabel(left, fontsize=9)
    add_title(figure, axes[0] if columns else None, columns)


def style_panel(axis: Any, name: str, remark: str = "") -> None:
    """Set a panel's title, tick size and grid."""
    title = truncate(name, MAX_TITLE_CHARACTERS) + remark
    axis.set_title(title, fontsize=9, loc="left", parse_math=False)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)


def _draw_torques(axes: Any, prediction: PredictedLog) -> None:
    step = max(1, prediction.motion.samples // MAX_LINE_POINTS)
    for k, axis in enumerate(axes):
        if prediction.cutoff is not None:
            for n, run in enumerate(prediction.runs):
                axis.plot(run.t[::step], run.tau[::step, k], color=BLUE, alpha=0.3, lw=0.6,
                          label=None if n else "as logged")  # fmt: skip
        for n, (t, measured, predicted) in enumerate(prediction.compared_torques):
            for label, curve, color, width in (
                ("measured", measured, BLUE, 1.8),
                ("predicted", predicted, RED, 0.9),
                ("difference", measured - predicted, GREY, 0.7),
            ):
                axis.plot(t[::step], curve[::step, k], color=color, lw=width,
                          label=None if n else label)  # fmt: skip


SPECTRUM_SAMPLES = 1024  #: Samples of a window of the spectrum.
MAX_LAG = 1.0  #: Longest lag of the autocorrelation [s].

MAX_SCATTER_POINTS = 1500  #: Samples drawn per panel.

FRICTION_BINS, MIN_BIN_SAMPLES = 40, 5
"""Bins of a mean, and samples that one needs."""


def _draw_friction(axis: Any, x: Array, seen: Array, law: Array) -> None:
    step = max(1, len(x) // MAX_SCATTER_POINTS)
    axis.plot(x[::step], seen[::step], ".", ms=2, color=GREY, alpha=0.4, label="samples")
    # Means in bins of x that hold equally many samples.
    bins = [b for b in np.array_split(np.argsort(x), FRICTION_BINS) if len(b) >= MIN_BIN_SAMPLES]
    places = [x[b].mean() for b in bins]
    for curve, color, label in ((seen, BLUE, "their mean"), (law, RED, "fitted law")):
        axis.plot(places, [curve[b].mean() for b in bins], color=color, lw=1.4, label=label)


KINDS = {
    "q": "position [rad, m]",
    "dq": "velocity [rad/s, m/s]",
    "ddq": "acceleration [rad/s\u00b2, m/s\u00b2]",
    "tau": "torque [N m, N]",
}


LINEAR_DEVIATIONS = 3.0  #: Deviations up to which the axis is linear; beyond it is logarithmic.
MAX_EXPRESSION_CHARACTERS = 44  #: Largest number of characters of an expression at the axis.


def _scaled_eigenvalues(ten: Array) -> Array:
    """Of the pseudo-inertia with mass 1 and root-mean-square radius 1."""
    pseudo, mass = pseudo_inertia(ten), ten[9]
    length = np.sqrt(abs(np.trace(pseudo[:3, :3])) / mass) or 1.0
    scale = np.sqrt(mass) * np.array([length, length, length, 1.0])
    return np.asarray(np.linalg.eigvalsh(pseudo / np.outer(scale, scale)), dtype=np.float64)


RINGS, SPOKES = 13, 24
"""Lines of an ellipsoid."""

SKINS = ("#4477aa", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#0077bb", "#999933")
"""Colours of bodies in their order, distinguishable for the colour-blind."""


@checked_methods
@dataclass(frozen=True)
class Plots:
    """Pictures of a fit: ``fit.plot()`` and ``fit.plot.friction()``.

    Each returns a ``matplotlib.figure.Figure`` that no window belongs to; notebooks show it, and
    ``figure.savefig("picture.png")`` keeps it. Those that draw samples take a log, by default the
    first fitted one that was not reduced before, and raise `InputError` when there is none or it
    has no torques; all raise `MissingExtraError` without matplotlib.
    """

    fit: FittedModel

    def __call__(self, log: Any = None) -> Figure:
        """Measured and predicted torque and their difference [N m or N] over time [s].

        As the fit compares them: behind the same low-pass. The torque as it was logged is paler.
        Figure 6 of Sousa and Cortesao (2014).
        """
        fit, prediction = self.fit, PredictedLog.from_fit(self.fit, log)
        names = prediction.joints
        errors = (
            fit.relative_error
            if log is None
            else errors_on_log(fit, select_recording(fit, log), fit.test_options())
        )
        figure, axes = panels(
            names,
            "measured and predicted torque over time, and their difference; relative error "
            + ", ".join(f"{n} {100 * errors[n]:.1f} %" for n in names),
        )
        axes = axes[: len(names)]
        _draw_torques(axes, prediction)
        for axis, name in zip(axes, names, strict=True):
            style_panel(axis, name, f"   ({100 * errors[name]:.1f} %)")
            axis.margins(x=0)
        label_panels(figure, axes, ["time [s]"] * 2, "torque [N m], force [N]", 4)
        return figure

    def spectra(self, log: Any = None) -> Figure:
        """Spectra of measured and residual torque, and the residual's autocorrelation, per joint.

        White noise has a flat spectrum and no autocorrelation. If the residual is correlated,
        standard errors that assume independent samples are too small.
        """
        from scipy.signal import welch

        prediction = PredictedLog.from_fit(self.fit, log)
        names = [n for name in prediction.joints for n in (name, name)]
        figure, axes = panels(
            names, "spectra of measured and residual torque, and the residual's autocorrelation"
        )
        rate = prediction.runs[0].rate
        place = int(np.argmax([len(run) for run in prediction.runs]))
        tau, residuals = prediction.runs[place].tau, prediction.residuals[place]
        white = 2 / np.sqrt(len(tau))
        for k, name in enumerate(prediction.joints):
            left, right = axes[2 * k], axes[2 * k + 1]
            for curve, color, label in (
                (tau[:, k], BLUE, "measured"),
                (residuals[:, k], RED, "residual"),
            ):
                f, power = welch(curve, rate, nperseg=min(SPECTRUM_SAMPLES, len(curve)))
                f, power = f[1:], np.maximum(power[1:], np.finfo(float).tiny)
                left.loglog(f, power, color=color, lw=1, label=label)
            if prediction.motion.cutoff is not None:
                left.axvline(prediction.motion.cutoff, color=GREY, lw=0.8, ls="--")
            centred = residuals[:, k] - residuals[:, k].mean()
            count = min(len(centred), max(2, round(MAX_LAG * rate)))
            power = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
            memory = np.fft.irfft(power)[:count]
            memory = memory / memory[0] if memory[0] > 0 else memory
            right.plot(np.arange(count) / rate, memory, color=RED, lw=1)
            right.axhspan(-white, white, color=GREY, alpha=0.3)
            style_panel(left, name, ": spectrum")
            style_panel(right, name, ": autocorrelation of the residual")
            right.set_ylim(-1, 1.05)
        below = ("frequency [Hz]; dashed: cut-off of the fit", "lag [s]; band: white noise")
        label_panels(figure, axes, below, "power density [(N m)$^2$/Hz]", 2)
        return figure

    def friction(self, log: Any = None) -> Figure:
        """Torque that rigid bodies do not explain, over velocity and load, with the fitted law.

        Dots are samples, the blue line their mean in bins, the red line the mean of the fitted law
        at the same samples. On the right the load is the torque of the rigid bodies and the drive,
        and friction counts against the motion: positive where it brakes.
        """
        prediction = PredictedLog.from_fit(self.fit, log)
        dq = np.concatenate([run.dq for run in prediction.runs])
        rigid = np.concatenate(prediction.frictionless)
        left = np.concatenate([run.tau for run in prediction.runs]) - rigid
        law = np.concatenate(prediction.predicted_torques) - rigid
        names = [n for name in prediction.joints for n in (name, name)]
        figure, axes = panels(
            names, "friction over velocity and over load, measured and as fitted, a row per joint"
        )
        for k, name in enumerate(prediction.joints):
            brake = np.sign(dq[:, k])
            _draw_friction(axes[2 * k], dq[:, k], left[:, k], law[:, k])
            _draw_friction(
                axes[2 * k + 1], np.abs(rigid[:, k]), brake * left[:, k], brake * law[:, k]
            )
            style_panel(axes[2 * k], name, ": over velocity")
            style_panel(axes[2 * k + 1], name, ": against the motion, over load")
        below = ("velocity [rad/s or m/s]", "load [N m or N]")
        label_panels(figure, axes, below, "friction torque [N m], force [N]", 3)
        return figure

    def excitation(self, log: Any = None) -> Figure:
        """Positions, velocities, accelerations and torques with the description's limits."""
        prediction = PredictedLog.from_fit(self.fit, log)
        names = prediction.joints
        figure, axes = panels(
            [n for n in names for _ in KINDS], "motion of every joint with its limits", 4, 1.3
        )
        limits = {}
        for body, rows in self.fit.description.moving_bodies:
            if rows.stop - rows.start == 1:
                low, high = body.limits.lower, body.limits.upper
                both = (
                    () if x is None else (-x, x) for x in (body.limits.velocity, body.limits.effort)
                )
                limits[rows.start] = ((low, high), next(both), (), next(both))
        step = max(1, prediction.motion.samples // MAX_LINE_POINTS)
        for j, name in enumerate(names):
            for c, (kind, title) in enumerate(KINDS.items()):
                axis = axes[len(KINDS) * j + c]
                for run in prediction.runs:
                    axis.plot(run.t[::step], getattr(run, kind)[::step, j], color=BLUE, lw=0.9)
                for edge in limits.get(j, ((),) * 4)[c]:
                    if edge is not None:
                        axis.axhline(edge, color=RED, lw=0.8, ls="--")
                style_panel(axis, title if j == 0 else "")
                axis.margins(x=0)
            axes[len(KINDS) * j].set_ylabel(truncate(name, 16), fontsize=8, parse_math=False)
        label_panels(figure, axes, ["time [s]"] * len(KINDS), "")
        return figure

    def parameters(self) -> Figure:
        """Base parameters with intervals, against the description and unconstrained least squares.

        Every row is in its own standard deviations from the fitted value, so that metres and
        kilograms share an axis. Intervals end at zero where a parameter cannot be negative.
        """
        fit = self.fit
        table = linear_form_table(fit, np.asarray(fit.base.K, float), list(fit.base_table.index))
        std, values = table["std. err."].to_numpy(), table["value"].to_numpy()
        usable = np.isfinite(std) & (std > 0)
        scale = np.where(usable, std, 1.0)
        rows = np.arange(len(values))[::-1]
        figure = new_figure(
            8.5, 1.4 + 0.17 * len(values), "base parameters with intervals, compared"
        )
        axis = figure.subplots()
        low, high = ((table[e].to_numpy() - values) / scale for e in ("[2.5 %", "97.5 %]"))
        axis.hlines(rows[usable], low[usable], high[usable], color=BLUE, alpha=0.4, lw=4,
                    label="95 % interval")  # fmt: skip
        axis.axvline(0, color=BLUE, lw=1.2, label="fitted")
        for other, color, mark, label in (
            (table["description"].to_numpy(), YELLOW, "s", "description"),
            (fit.base_table["ols"].to_numpy(), RED, "x", "least squares"),
        ):
            shown = usable & np.isfinite(other)
            axis.plot(((other - values) / scale)[shown], rows[shown], mark, color=color, ms=4,
                      label=label)  # fmt: skip
        axis.set_xscale("symlog", linthresh=LINEAR_DEVIATIONS)
        axis.set_yticks(rows, [truncate(e, MAX_EXPRESSION_CHARACTERS) for e in table.index],
                        fontsize=7, parse_math=False)  # fmt: skip
        axis.set_ylim(-1, len(values))
        figure.supxlabel("difference from the fitted value, in standard errors", fontsize=8)
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(alpha=0.25, axis="x")
        add_title(figure, axis)
        return figure

    def eigenvalues(self) -> Figure:
        """Eigenvalues of every body's pseudo-inertia against the smallest one allowed.

        In units of the body's own mass and length, where a body with volume has four positive ones.
        Those of the description are drawn next to them; impossible ones are left of the line.
        """
        robot = self.fit.robot
        heavy = [i for i, body in enumerate(robot.bodies) if not body.massless]
        columns = robot.inertial_columns[heavy]
        found, told = self.fit.delta[columns], self.fit.description.values[columns]
        figure = new_figure(
            8.5, 1.4 + 0.32 * len(heavy), "eigenvalues of the bodies' pseudo-inertias"
        )
        axis = figure.subplots()
        smallest = np.inf
        for row, (ten, before) in enumerate(zip(found, told, strict=True)):
            values = _scaled_eigenvalues(ten)
            smallest = min(smallest, float(values.min()))
            axis.plot(
                values, np.full(4, -row), "o", color=BLUE, ms=5, label=None if row else "fitted"
            )
            if np.isfinite(before).all() and before[9] > 0:
                old = _scaled_eigenvalues(before)
                smallest = min(smallest, float(old.min()) if old.min() > 0 else np.inf)
                axis.plot(old, np.full(4, -row - 0.25), "s", color=YELLOW, ms=3,
                          label=None if row else "description")  # fmt: skip
        axis.set_xscale("symlog", linthresh=max(smallest, 1e-12))
        axis.axvline(0, color=RED, lw=1.5, label="infeasible left of this")
        names = [truncate(robot.bodies[i].name, MAX_EXPRESSION_CHARACTERS) for i in heavy]
        axis.set_yticks(-np.arange(len(heavy)), names, fontsize=8, parse_math=False)
        figure.supxlabel("eigenvalues, in units of the body's mass and size", fontsize=8)
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(alpha=0.25, axis="x", color=GREY)
        add_title(figure, axis)
        return figure

    def bodies(self, pose: Mapping[str, float] | None = None) -> Figure:
        """The robot as described, as fitted, and as least squares has it, with ellipsoids.

        An impossible body has no ellipsoid: its name stands in red at the joint. Needs no meshes.
        """
        figure = new_figure(12, 4.8, "the robot with an ellipsoid of equal inertia for each body")
        views = robot_views(self.fit, pose)
        up, around = np.meshgrid(np.linspace(0, np.pi, RINGS), np.linspace(0, 2 * np.pi, SPOKES))
        sphere = np.array([np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)])
        centre, radius = bounding_ball([vars(view) for view in views])
        for k, view in enumerate(views):
            axis: Any = figure.add_subplot(1, len(views), k + 1, projection="3d")
            count = len(view.impossible)
            below = f"{count} of {len(view.links)} bodies impossible" if count else ""
            axis.set_title(f"{view.title}\n{below}", fontsize=10, color=RED if count else "black")
            for ends in view.links:
                axis.plot(*ends.T, color=GREY, lw=3, solid_capstyle="round")
                axis.plot(*ends[:1].T, "o", color="black", ms=3)
            for body in view.bodies:
                color = SKINS[body["color"] % len(SKINS)]
                points = body["centre"][:, None, None] + np.tensordot(body["axes"].T, sphere, 1)
                axis.plot_surface(*points, color=color, alpha=0.45, linewidth=0, shade=True)
            for body in view.impossible:
                axis.text(*body["joint"], f" {truncate(body['name'], 12)}", color=RED, fontsize=8)
            for name, c in zip("xyz", centre, strict=True):
                getattr(axis, f"set_{name}lim")(c - 0.85 * radius, c + 0.85 * radius)
            axis.set_box_aspect((1, 1, 1), zoom=1.5)
            axis.set_axis_off()
        return figure

    def drift(self) -> Figure:
        """How friction, offsets and gains change from log to log, of a fit of several logs."""
        logs = self.fit.comparison
        if logs is None:
            raise InputError("drift is drawn of a fit of several logs: feasid.fit([first, second])")
        return draw_changes(logs)

    def identifiability(self) -> Figure:
        """Identifiability of each parameter of each body."""
        return self.fit.base.plot()


def draw_changes(logs: JointChanges) -> Figure:
    """Friction, offset and gain of every joint, log by log, with names of at most eight logs."""
    titles = ("friction, as a factor", "offset [N m or N]", "torque, as a factor")
    figure, axes = panels(titles, "changes of every joint from log to log", columns=1, height=2.4)
    x = np.arange(len(logs.names))
    some = np.unique(np.linspace(0, len(x) - 1, 8).astype(int))
    for k, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        for j, joint in enumerate(logs.joints):
            value, deviation = logs.changes[:, j, k].T
            axis.errorbar(x, value, deviation, label=joint, marker="o", markersize=3, capsize=2)
        style_panel(axis, title)
        names = [logs.names[i] for i in some] if axis is axes[-1] else []
        axis.set_xticks(some if names else [], names, fontsize=8, rotation=15 * (len(x) > 4))
    add_title(figure, axes[0], 6)
    return figure
