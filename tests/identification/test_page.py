"""The report: one page, no links, an outsider's names escaped; plots on any display."""

import re

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main
from feasid.errors import InputError, MissingExtraError, OutputError

matplotlib = pytest.importorskip("matplotlib")

NAME = "upper&lt;script&gt;"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "arm.urdf"
    path.write_text(ARM.replace('"upper"', f'"{NAME}"'))
    robot = feasid.load_robot(path)
    delta = arm_parameters(robot.with_joint_terms())
    log, test = (simulate(robot.with_joint_terms(), delta, s, noise=0.05) for s in (1, 2))
    return feasid.fit(log, robot), log, test


def test_page_stands_alone_and_escapes_names(case, tmp_path):
    fit, _, test = case
    path = tmp_path / "report.html"
    fit.report(path, test=test)
    text = path.read_text()
    assert "<script" not in text
    assert NAME in text
    assert text.count("<svg") == 2
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "Test log, not fitted" in text
    with pytest.raises(OutputError, match="exists"):
        fit.report(path)


def test_plot_shows_every_joint_with_its_error(case):
    fit, log, _ = case
    titles = " ".join(a.get_title(loc="left") for a in fit.plot().axes)
    for joint in fit.robot.joints:
        assert f"{joint}   ({100 * fit.relative_error[joint]:.1f} %)" in titles
    lines = fit.plot(log).axes[0].get_lines()
    np.testing.assert_allclose(lines[0].get_ydata(), log["tau_shoulder"], rtol=1e-12)


def test_reduced_data_have_nothing_to_draw(case):
    fit, log, _ = case
    again = feasid.fit(feasid.reduce(log, fit.description))
    with pytest.raises(InputError, match="pass the log"):
        again.plot()


def test_without_the_extra_the_command_is_named(case, monkeypatch, tmp_path):
    fit, _, _ = case
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r'pip install "feasid\[report\]"'):
        fit.report(tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_every_log_that_has_samples_is_drawn(case, tmp_path):
    fit, log, test = case
    both = feasid.fit([log, test], fit.description, diagnose=False)
    path = tmp_path / "both.html"
    both.report(path, test=[log, test])
    assert path.read_text().count("<svg") == 4
    reduced = feasid.fit(feasid.reduce(log, fit.description), diagnose=False)
    reduced.report(tmp_path / "reduced.html")
    assert "<svg" not in (tmp_path / "reduced.html").read_text()
    with pytest.raises(InputError, match="a log is"):
        fit.report(tmp_path / "wrong.html", log=3)
    assert not (tmp_path / "wrong.html").exists()


def test_two_tests_at_the_prompt_are_both_in_the_report(case, tmp_path, monkeypatch, capsys):
    _, log, test = case
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    for name, frame in (("log", log), ("one", test), ("two", test)):
        frame.to_csv(f"{name}.csv", index=False)
    words = ["fit", "log.csv", "--robot", "arm.urdf", "--test", "one.csv", "--test", "two.csv"]
    assert main([*words, "--report", "page.html", "--diagnose", "no", "--force"]) == 0
    text = (tmp_path / "page.html").read_text()
    assert "one.csv" in text
    assert "two.csv" in text
