"""Plots: every picture draws what it says, shows itself in notebooks, and says so in words."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.core.charts import Chart, Panel, Series
from feasid.core.errors import InputError, MissingExtraError
from feasid.core.figures import draw, figure_class
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.parameters.identifiability.views import identifiability_map
from feasid.results.report.contents import PredictedLog
from feasid.results.report.figures import Plots
from feasid.results.report.robots import semi_axes

pytest.importorskip("matplotlib")

PICTURES = ["__call__", *(x for x in vars(Plots) if not x.startswith("_") and x != "fit")]

PER_JOINT = {"__call__": 1, "spectra": 1, "friction": 2, "excitation": 4}
"""Panels per joint."""


@pytest.fixture(scope="module")
def fit():
    robot = feasid.load_robot(ARM.replace('"upper"', '"upper&lt;script&gt;$\\x$"'))
    terms = robot.with_joint_terms()
    return feasid.fit(simulate(terms, arm_parameters(terms), 1, noise=0.05), robot)


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("name", [n for n in PICTURES if n != "drift"])  # of several logs
def test_every_picture_is_drawn_and_shows_itself(fit, name):
    figure = getattr(fit.plot, name)()
    shown = [axis for axis in figure.axes if axis.axison]
    assert len(shown) == PER_JOINT.get(name, 0) * 3 or name not in PER_JOINT
    assert all(axis.get_legend() is None for axis in shown)  # legends stand above the panels
    assert figure._repr_png_().startswith(b"\x89PNG")
    page = figure._repr_html_()
    assert page.startswith('<img alt="')
    assert len(figure.get_label().split()) >= 4
    assert "<script" not in page
    assert name == "bodies" or figure.get_suptitle() or figure.legends[0].get_title().get_text()
    assert parts_outside(figure) == []


def parts_outside(figure):
    """Panels, legends and texts that a reader would see cut."""
    figure.draw_without_rendering()
    parts = [
        *figure.legends,
        *(t for t in figure.texts if t.get_text()),
        *(a for a in figure.axes if a.axison),
    ]
    low, high = np.array([figure.bbox.min - 1, figure.bbox.max + 1])
    boxes = [(part, part.get_tightbbox()) for part in parts]
    return [part for part, b in boxes if (b.min < low).any() or (b.max > high).any()]


@pytest.mark.parametrize("joints", [1, 6, 30])
def test_legends_and_labels_stay_inside_for_any_number_of_joints(joints):
    names = [f"joint_{k}_with_a_name_of_some_length" for k in range(joints)]
    marks = {"m": ["★", "●", "○", "✕", "="] * joints, "Lxx": ["✕"] * 5 * joints}
    curve = Series([0, 1], [0, 1], label="as measured by the sensors $\\x$ of the robot")
    panels = [Panel([curve], name, "time [s]", "torque [N m], force [N]") for name in names]
    chart = Chart("A sentence about $\\x$ the curves", "curves of every joint", panels)
    for drawn in (draw(chart), draw(identifiability_map(marks, names * 5))):
        assert parts_outside(drawn) == []


def test_torques_are_compared_behind_the_low_pass_of_the_fit(fit):
    log = fit.logs[0].frame
    prediction = PredictedLog.from_fit(fit)
    (t, measured, predicted), run = prediction.compared_torques[0], prediction.runs[0]
    taps = GaussianLowPass(prediction.cutoff, run.rate).taps
    means = np.convolve(log["tau_shoulder"], taps, "valid")
    np.testing.assert_allclose(measured[:, 0], means, atol=1e-10)
    axis = fit.plot().axes[0]
    logged, seen, modelled, difference = axis.get_lines()
    np.testing.assert_allclose(logged.get_ydata(), log["tau_shoulder"], rtol=1e-12)
    np.testing.assert_array_equal(seen.get_ydata(), measured[:, 0])
    np.testing.assert_array_equal(difference.get_ydata(), (measured - predicted)[:, 0])
    assert len(t) == len(modelled.get_xdata())
    # What is drawn is what the error counts, which keeps every n-th of these rows.
    error = np.linalg.norm(measured - predicted, axis=0) / np.linalg.norm(measured, axis=0)
    np.testing.assert_allclose(error, fit.relative_error.drop("all"), rtol=0.05)


def test_friction_is_the_difference_that_friction_makes(fit):
    prediction = PredictedLog.from_fit(fit)
    run = prediction.runs[0]
    law = (prediction.predicted_torques[0] - prediction.frictionless[0])[:, 1]
    own = fit.joint_terms.loc["rod"]
    v, drive = run.dq[:, 1], fit.robot.drives[1]
    sign = np.tanh(v / drive.transition) if drive.transition else np.sign(v)
    np.testing.assert_allclose(law, own["fv"] * v + own["fc"] * sign + own["fo"], atol=1e-9)


def test_ellipsoids_are_those_of_solid_bodies():
    axes = np.array([0.3, 0.2, 0.1])
    moments = 2.0 / 5 * np.diag([axes[1] ** 2 + axes[2] ** 2, axes[0] ** 2 + axes[2] ** 2,
                                 axes[0] ** 2 + axes[1] ** 2])  # fmt: skip
    squares, _ = semi_axes(2.0, moments)
    np.testing.assert_allclose(squares, np.sort(axes**2), rtol=1e-12)
    assert semi_axes(2.0, np.diag([1.0, 1.0, 5.0]))[0].min() < 0


def test_eigenvalues_of_the_fit_are_right_of_the_impossible(fit):
    lines = [x for x in fit.plot.eigenvalues().axes[0].get_lines() if x.get_marker() == "o"]
    assert len(lines) == 3
    assert min(line.get_xdata().min() for line in lines) > 0


def test_the_map_has_a_mark_per_parameter(fit):
    marks = sum(len(x.get_xdata()) for x in fit.base.plot().axes[0].get_lines())
    assert marks == fit.robot.size


def test_reduced_data_and_missing_extras_are_said(fit, monkeypatch):
    log = fit.logs[0].frame
    reduced = feasid.fit(feasid.reduce(log, fit.description), diagnose=False)
    assert reduced.plot.parameters().axes
    with pytest.raises(InputError, match="pass the log"):
        reduced.plot.friction()
    figure_class.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r'pip install "feasid\[plot\]"'):
        fit.plot()


def test_bodies_of_least_squares_are_named_as_impossible(tmp_path):
    """On a short, noisy log the unconstrained optimum has bodies that nobody can build."""
    log = feasid.datasets.load("arm")
    rng = np.random.default_rng(0)
    noisy = log[log["t"] < 1].copy()
    columns = [c for c in noisy if c.startswith("tau_")]
    noisy[columns] += rng.normal(scale=0.5, size=(len(noisy), len(columns)))
    fit = feasid.fit(noisy, log.attrs["robot"], candidates=(), diagnose=False)
    described, fitted, least = (axis.get_title() for axis in fit.plot.bodies().axes)
    assert "impossible" not in described + fitted
    assert "bodies impossible" in least


def test_a_verdict_draws_what_breaks_it():
    robot = feasid.datasets.load("arm").attrs["robot"]
    values = robot.values.copy()
    values[5] = 0.4
    for model, sign in ((robot, 1), (robot.with_values(values), -1)):
        verdict = feasid.check(model)
        ends = [bar.get_xdata()[-1] for bar in verdict.plot().axes[0].get_lines()[:-1]]
        assert np.sign(min(ends)) == sign


def test_intervals_that_are_drawn_end_where_the_tables_end(fit):
    drawn = fit.plot.parameters().axes[0].get_lines()[0].get_xdata().reshape(-1, 3)[:, :2]
    table = fit.summary().tables["base parameters"]
    table = table[table["std. err."] > 0]
    for segment, (_, row) in zip(drawn, table.iterrows(), strict=True):
        ends = row["value"] + row["std. err."] * segment
        np.testing.assert_allclose(ends, [row["[2.5 %"], row["97.5 %]"]], rtol=1e-6, atol=1e-9)
