"""Figures of a fit: torques, residuals, friction, motion, parameters and bodies.

Functions return charts, which pages draw as SVG and `Plots` with Matplotlib, of the extra "plot".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.charts import (
    BLUE,
    GREY,
    PALETTE,
    RED,
    YELLOW,
    Chart,
    Panel,
    Series,
    motion_chart,
    segments,
)
from feasid.core.display import truncate
from feasid.core.errors import InputError
from feasid.core.figures import draw, new_figure
from feasid.identification.changes import JointChanges
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log
from feasid.results.report.contents import PredictedLog, select_recording
from feasid.results.report.robots import HALF_WIDTH, robot_drawings, robot_views
from feasid.results.report.summary import count_precise, linear_form_table
from feasid.robot.inertia import pseudo_inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LINE_POINTS = 3000  #: Points drawn per line; longer logs are thinned, as no screen shows more.

SPECTRUM_SAMPLES = 1024  #: Samples of a window of the spectrum.

MAX_SCATTER_POINTS = 1500  #: Samples drawn per panel.

FRICTION_BINS, MIN_BIN_SAMPLES = 40, 5  #: Bins of a mean, and samples that one needs.


def friction_chart(fit: FittedModel, log: Any = None) -> Chart:
    """Torque that rigid bodies do not explain, over velocity and load; see `Plots.friction`."""
    prediction = PredictedLog.from_fit(fit, log)
    dq = np.concatenate([run.dq for run in prediction.runs])
    rigid = np.concatenate(prediction.frictionless)
    friction = np.concatenate([run.tau for run in prediction.runs]) - rigid
    law = np.concatenate(prediction.predicted_torques) - rigid
    panels = []
    for k, name in enumerate(prediction.joints):
        brake = np.sign(dq[:, k])
        for title, x, sign, below in (
            ("over velocity", dq[:, k], 1.0, "velocity [rad/s or m/s]"),
            ("against the motion, over load", np.abs(rigid[:, k]), brake, "load [N m or N]"),
        ):
            data, fitted = sign * friction[:, k], sign * law[:, k]
            step = max(1, len(x) // MAX_SCATTER_POINTS)
            series = [Series(x[::step], data[::step], GREY, "samples", mark=".", opacity=0.4)]
            # The means in bins of x that hold equally many samples.
            bins = np.array_split(np.argsort(x), FRICTION_BINS)
            bins = [b for b in bins if len(b) >= MIN_BIN_SAMPLES]
            places = [x[b].mean() for b in bins]
            for curve, color, label in ((data, BLUE, "their mean"), (fitted, RED, "fitted law")):
                mean = [curve[b].mean() for b in bins]
                series.append(Series(places, mean, color, label, width=1.4))
            panels.append(Panel(series, f"{name}: {title}", below, "friction [N m or N]"))
    means = [(np.asarray(p.series[1].y), np.asarray(p.series[2].y)) for p in panels[::2]]
    missed = [float(np.abs(data - fitted).max(initial=0.0)) for data, fitted in means]
    worst = int(np.argmax(missed))
    most = float(np.abs(means[worst][0]).max(initial=0.0))
    return Chart(
        f"The law misses the mean friction of {prediction.joints[worst]} by up to "
        f"{missed[worst]:.2g} of {most:.2g} N m or N, the most of all joints",
        "friction over velocity and over load, measured and as fitted, a row per joint",
        panels,
    )


KINDS = {
    "q": "position [rad, m]",
    "dq": "velocity [rad/s, m/s]",
    "ddq": "acceleration [rad/s\u00b2, m/s\u00b2]",
    "tau": "torque [N m, N]",
}

LINEAR_DEVIATIONS = 3.0  #: Deviations up to which the axis is linear; beyond it is logarithmic.
MAX_EXPRESSION_CHARACTERS = 44  #: Largest number of characters of an expression at the axis.


def parameter_chart(fit: FittedModel, rows: int | None = None) -> Chart:
    """Base parameters in their standard errors from the fitted values; see `Plots.parameters`.

    `rows`: only so many, half of which are the least known, and half differ most from the
    description.
    """
    table = linear_form_table(fit, np.asarray(fit.base.K, float), list(fit.base_table.index))
    table["ols"] = fit.base_table["ols"].to_numpy()
    table = table[np.isfinite(table["std. err."]) & (table["std. err."] > 0)]
    scale = table["std. err."]
    if rows is not None and len(table) > rows:
        # ``-rows // 2`` rounds to the larger half: both halves together are `rows`.
        unknown = (scale / table["value"].abs()).sort_values().index[-rows // 2 :]
        moved = ((table["description"] - table["value"]).abs() / scale).drop(unknown)
        few = {*unknown, *moved.sort_values(na_position="first").index[-(rows // 2) :]}
        table = table[[name in few for name in table.index]]
        scale = table["std. err."]
    away = table[["[2.5 %", "97.5 %]", "description", "ols"]].sub(table["value"], axis=0)
    low, high, description, least = (away[c].to_numpy() / scale.to_numpy() for c in away)
    # The first row stands at the top.
    places = np.arange(len(table))[::-1].astype(float)
    series = [Series(*segments(places, low, high), BLUE, "95 % interval", width=4, opacity=0.4)]
    for values, color, label, mark in (
        (description, YELLOW, "description", "s"),
        (least, RED, "least squares", "x"),
    ):
        shown = np.isfinite(values)
        if shown.any():
            series.append(Series(values[shown], places[shown], color, label, mark))
    names = [truncate(e, MAX_EXPRESSION_CHARACTERS) for e in table.index[::-1]]
    panel = Panel(
        series,
        below="difference from the fitted value, in standard errors",
        scales=(LINEAR_DEVIATIONS, ""),
        names=((), names),
        lines=((0, 0.0, BLUE),),
    )
    some = f"; of {len(fit.beta)}, {len(table)} are drawn" if len(table) < len(fit.beta) else ""
    shows = f"base parameters with intervals, compared with description and least squares{some}"
    return Chart(f"{count_precise(fit)} are known", shows, [panel], 1, 0.8 + 0.17 * len(table), 8.5)


def _scaled_eigenvalues(ten: Array) -> Array:
    """Of the pseudo-inertia with mass 1 and root-mean-square radius 1."""
    pseudo, mass = pseudo_inertia(ten), ten[9]
    length = np.sqrt(abs(np.trace(pseudo[:3, :3])) / mass) or 1.0
    scale = np.sqrt(mass) * np.array([length, length, length, 1.0])
    return np.asarray(np.linalg.eigvalsh(pseudo / np.outer(scale, scale)), dtype=np.float64)


def eigenvalue_chart(fit: FittedModel) -> Chart:
    """Eigenvalues of every body's pseudo-inertia, fitted and described; see `Plots`."""
    robot = fit.robot
    heavy = [i for i, body in enumerate(robot.bodies) if not body.massless][::-1]
    columns = robot.inertial_columns[heavy]
    fitted = [_scaled_eigenvalues(ten) for ten in fit.delta[columns]]
    before = [
        _scaled_eigenvalues(ten) if np.isfinite(ten).all() and ten[9] > 0 else np.zeros(0)
        for ten in fit.description.values[columns]
    ]
    series = [Series(v, np.full(4, float(row)), BLUE, "fitted", "o")
              for row, v in enumerate(fitted)]  # fmt: skip
    series += [Series(v, np.full(len(v), row - 0.25), YELLOW, "description", "s")
               for row, v in enumerate(before) if len(v)]  # fmt: skip
    names = [robot.bodies[i].name for i in heavy]
    least = [v.min() for v in (*fitted, *before) if len(v) and v.min() > 0]
    panel = Panel(
        series,
        below="eigenvalues, in units of the body's mass and size; left of the line: impossible",
        scales=(10.0 ** np.floor(np.log10(max(min(least), 1e-12))), ""),
        names=((), names),
        lines=((0, 0.0, RED),),
    )
    refused = [name for name, v in zip(names, before, strict=True) if len(v) and v.min() < 0]
    remark = f"; described, {len(refused)} were not: {', '.join(refused)}" if refused else ""
    return Chart(
        f"All {len(heavy)} bodies are possible{remark}",
        "eigenvalues of the bodies' pseudo-inertias, positive where a body is possible",
        [panel],
        1,
        0.8 + 0.32 * len(heavy),
        8.5,
    )


def changes_chart(logs: JointChanges) -> Chart:
    """Friction, offset and gain of every joint, log by log, with names of at most eight logs."""
    some = {*np.unique(np.linspace(0, len(logs.names) - 1, 8).astype(int)).tolist()}
    names = [name if k in some else "" for k, name in enumerate(logs.names)]
    x, panels = np.arange(len(logs.names)).astype(float), []
    titles = ("friction, as a factor", "offset [N m or N]", "torque, as a factor")
    for k, title in enumerate(titles):
        series = []
        for j, joint in enumerate(logs.joints):
            color, (value, deviation) = PALETTE[j % len(PALETTE)], logs.changes[:, j, k].T
            ends, places = segments(x, value - deviation, value + deviation)
            series += [
                Series(x, value, color, joint),
                Series(x, value, color, mark="."),
                Series(places, ends, color, width=0.8),
            ]
        panels.append(Panel(series, title, names=(names, ())))
    friction = np.ptp(logs.changes[:, :, 0, 0], axis=0)
    most = int(np.nanargmax(friction)) if np.isfinite(friction).any() else 0
    return Chart(
        f"Friction of {logs.joints[most]} changes most, by {friction[most]:.2g} of its size",
        "changes of every joint from log to log",
        panels,
        columns=1,
        height=2.4,
    )


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
        prediction = PredictedLog.from_fit(self.fit, log)
        errors = self.fit.relative_error
        if log is not None:
            recording = select_recording(self.fit, log)
            errors = errors_on_log(self.fit, recording, self.fit.test_options())
        step = max(1, prediction.motion.samples // MAX_LINE_POINTS)
        panels = []
        for k, name in enumerate(prediction.joints):
            curves = []
            if prediction.cutoff is not None:
                curves = [
                    Series(r.t[::step], r.tau[::step, k], BLUE, "as logged", width=0.6, opacity=0.3)
                    for r in prediction.runs
                ]
            for t, measured, predicted in prediction.compared_torques:
                for label, curve, color, width in (
                    ("measured", measured, BLUE, 1.8),
                    ("predicted", predicted, RED, 0.9),
                    ("difference", measured - predicted, GREY, 0.7),
                ):
                    curves.append(Series(t[::step], curve[::step, k], color, label, width=width))
            title = f"{name}   ({100 * errors[name]:.1f} %)"
            panels.append(Panel(curves, title, "time [s]", "torque [N m], force [N]"))
        joints = errors[list(prediction.joints)]
        chart = Chart(
            f"The model misses {100 * joints.max():.1f} % of the torque of {joints.idxmax()}, "
            "the largest share of all joints",
            "measured and predicted torque over time, and their difference; relative error "
            + ", ".join(f"{n} {100 * e:.1f} %" for n, e in joints.items()),
            panels,
        )
        return draw(chart)

    def spectra(self, log: Any = None) -> Figure:
        """Spectra of measured and residual torque per joint: where motion ends and noise starts."""
        from scipy.signal import welch

        prediction = PredictedLog.from_fit(self.fit, log)
        rate, cutoff = prediction.runs[0].rate, prediction.motion.cutoff
        place = int(np.argmax([len(run) for run in prediction.runs]))
        tau, residuals = prediction.runs[place].tau, prediction.residuals[place]
        window, panels = min(SPECTRUM_SAMPLES, len(tau)), []
        explained = np.inf  # frequency up to which most of the power is explained at every joint
        for name, *signals in zip(prediction.joints, tau.T, residuals.T, strict=True):
            f, powers = welch(np.array(signals), rate, nperseg=window)
            # Without the mean, which has no place on a logarithmic axis.
            f, powers = f[1:], np.maximum(powers[:, 1:], np.finfo(float).tiny)
            missed = powers[1] > 0.5 * powers[0]
            explained = min(explained, f[missed.argmax()] if missed.any() else f[-1])
            curves = [Series(f, powers[0], BLUE, "measured"), Series(f, powers[1], RED, "residual")]
            below = "frequency [Hz]; dashed: cut-off of the fit"
            beside = "power density [(N m)\u00b2/Hz]"
            lines = () if cutoff is None else ((0, cutoff, GREY),)
            panels.append(Panel(curves, name, below, beside, ("log", "log"), lines=lines))
        title = f"Up to {explained:.2g} Hz the model explains most of the power at every joint"
        return draw(Chart(title, "spectra of measured and residual torque", panels))

    def friction(self, log: Any = None) -> Figure:
        """Torque that rigid bodies do not explain, over velocity and load, with the fitted law.

        Dots are samples, the blue line their mean in bins, the red line the mean of the fitted law
        at the same samples. On the right the load is the torque of the rigid bodies and the drive,
        and friction counts against the motion: positive where it brakes.
        """
        return draw(friction_chart(self.fit, log))

    def excitation(self, log: Any = None) -> Figure:
        """Positions, velocities, accelerations and torques with the description's limits."""
        prediction = PredictedLog.from_fit(self.fit, log)
        runs, joints = prediction.runs, prediction.joints
        limits = {kind: np.full((2, len(joints)), np.nan) for kind in ("q", "dq", "tau")}
        for body, rows in self.fit.description.moving_bodies:
            if rows.stop - rows.start == 1:
                at, j = body.limits, rows.start
                limits["q"][:, j] = at.lower, at.upper
                for kind, most in (("dq", at.velocity), ("tau", at.effort)):
                    limits[kind][:, j] = (np.nan, np.nan) if most is None else (-most, most)
        step = max(1, prediction.motion.samples // MAX_LINE_POINTS)
        fastest = np.max([np.abs(run.dq).max(axis=0) for run in runs], axis=0)
        slow = int(fastest.argmin())
        chart = motion_chart(
            f"{joints[slow]} moves least: at most {fastest[slow]:.2g} rad/s or m/s",
            joints,
            {KINDS[k]: [(run.t[::step], getattr(run, k)[::step]) for run in runs] for k in KINDS},
            {KINDS[kind]: edges for kind, edges in limits.items()},
        )
        return draw(chart)

    def parameters(self) -> Figure:
        """Base parameters with intervals, against the description and unconstrained least squares.

        Every row is in its own standard deviations from the fitted value, so that metres and
        kilograms share an axis. Intervals end at zero where a parameter cannot be negative.
        """
        return draw(parameter_chart(self.fit))

    def eigenvalues(self) -> Figure:
        """Eigenvalues of every body's pseudo-inertia against the smallest one allowed.

        In units of the body's own mass and length, where a body with volume has four positive ones.
        Those of the description are drawn below them; impossible ones are left of the line.
        """
        return draw(eigenvalue_chart(self.fit))

    def bodies(self, pose: Mapping[str, float] | None = None) -> Figure:
        """The robot as described, as fitted, and as least squares has it, with ellipsoids.

        An impossible body has no ellipsoid: its name stands in red at the joint. Needs no meshes.
        """
        from matplotlib.patches import Ellipse

        figure = new_figure(12, 4.8, "the robot with an ellipsoid of equal inertia for each body")
        views = [vars(view) for view in robot_views(self.fit, pose)]
        axes = figure.subplots(1, len(views))
        for axis, view in zip(axes, robot_drawings(views), strict=True):
            count = len(view["impossible"])
            below = f"{count} of {len(view['links'])} bodies impossible" if count else ""
            color = RED if count else "black"
            axis.set_title(f"{view['title']}\n{below}", fontsize=10, color=color)
            for shape in view["shapes"]:
                x, y, *more = shape["paper"]
                if shape["kind"] == "link":
                    axis.plot([x, more[0]], [y, more[1]], color=GREY, lw=3)
                elif shape["kind"] == "name":
                    axis.text(x, y, truncate(shape["body"]["name"], 12), color=RED, fontsize=8)
                else:
                    size, skin = (2 * more[0], 2 * more[1]), shape["body"]["color"] % len(PALETTE)
                    look: dict[str, Any] = {"color": RED, "fill": False, "ls": "--"}
                    if shape["kind"] != "impossible":
                        solid = shape["kind"] == "body"
                        look = {"color": PALETTE[skin], "alpha": 0.45, "fill": solid}
                    axis.add_patch(Ellipse((x, y), *size, angle=more[2], **look))
            axis.set(xlim=(-HALF_WIDTH, HALF_WIDTH), ylim=(HALF_WIDTH, -HALF_WIDTH), aspect="equal")
            axis.set_axis_off()
        return figure

    def drift(self) -> Figure:
        """How friction, offsets and gains change from log to log, of a fit of several logs."""
        logs = self.fit.comparison
        if logs is None:
            raise InputError("drift is drawn of a fit of several logs: feasid.fit([first, second])")
        return draw(changes_chart(logs))
