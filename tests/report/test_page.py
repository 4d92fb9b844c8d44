"""The report: one page that loads nothing, an outsider's names escaped, its numbers beside it."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, MissingExtraError, OutputError
from feasid.identification.assessment.quality import joints_that_follow
from feasid.results.report.contents import VERSION
from feasid.results.report.page import torque_curves, write_report_contents
from feasid.results.report.robots import AZIMUTH, ELEVATION, HALF_WIDTH, robot_drawings
from feasid.results.report.template import format_number as page_number
from feasid.robot.joint_terms import TERMS

pytest.importorskip("matplotlib")

NAME = "upper&lt;script&gt;alert(1)&lt;/script&gt;"

ROBOTS = 3
"""Pictures of the robot: described, fitted, least squares."""

LARGEST = 3_000_000
"""Bytes of a page."""


@pytest.fixture(scope="module")
def logs():
    terms = feasid.load_robot(ARM.replace('"slide"', f'"{NAME}"')).with_joint_terms()
    return [simulate(terms, arm_parameters(terms), seed, noise=0.05) for seed in (1, 2)]


@pytest.fixture(scope="module")
def fit(logs):
    renamed = ARM.replace('"upper"', f'"{NAME}"').replace('"slide"', f'"{NAME}"')
    return feasid.fit(logs[0], feasid.load_robot(renamed))


@pytest.fixture(scope="module")
def folder(fit, logs, tmp_path_factory):
    """With a report and a saved fit."""
    folder = tmp_path_factory.mktemp("page")
    fit.report(folder / "report.html", test=logs[1], command="feasid fit <b>")
    fit.save(folder / "arm.feasid")
    return folder


@pytest.fixture(scope="module")
def contents(folder):
    """The numbers beside the page."""
    return json.loads((folder / "report.json").read_text(), parse_constant=pytest.fail)


def test_page_stands_alone_and_escapes_names(fit, folder):
    text = (folder / "report.html").read_text()
    assert len(text.encode()) < LARGEST
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == text.count("<script") == 1
    assert f"script-src 'sha256-{digest}'" in text
    assert NAME in text
    assert "feasid fit &lt;b&gt;" in text
    assert not re.findall(r'src="(?!data:)|href="(?!data:|https://feasid.readthedocs.io/)', text)
    assert text.count('role="img"') == (2 + 2) * fit.robot.dof + ROBOTS + 3
    assert "<img" not in text
    with pytest.raises(OutputError, match="exists"):
        fit.report(folder / "report.html")


def test_verdicts_are_apart_and_numbers_are_beside_the_page(fit, folder, contents):
    assert (contents["schema"], contents["version"]) == ("feasid report", VERSION)
    assert contents["feasibility"]["feasible"] is True
    errors = fit.quality.errors
    assert contents["prediction"]["error"] == errors.overall_error(errors.model)
    assert contents["prediction"]["level"] == fit.quality.level
    assert contents["prediction"]["test"] < 0.05
    np.testing.assert_array_equal([r[1] for r in contents["bodies"]["rows"]], fit.bodies["mass"])
    assert {c["by"].split()[1] for c in contents["claims"]} >= {"certificate", "diagnosis,", "test"}
    assert contents["made"]["feasid"] == feasid.__version__
    assert len(contents["made"]["logs"][0]["sha256"]) == 64
    page = (folder / "report.html").read_text()
    assert "Physically consistent?" in page
    assert "Evidence for these results" in page
    simulated = contents["simulation"]
    assert simulated["verdict"] == "cannot tell"  # torques drive it
    assert len(simulated["table"]["rows"]) == 2 * fit.robot.dof
    assert "as always in open loop" in page
    assert "over_shuffled" not in page
    columns = contents["joint_terms"]["columns"]
    assert [f"({TERMS[c].name})" in page for c in columns] == [True] * len(columns)
    (claim,) = [c["claim"] for c in contents["claims"] if c["by"].startswith("the diagnosis")]
    follow = joints_that_follow(fit.evidence)
    assert f"lacks a term at {len(follow)} of" in claim if follow else "lacks" not in claim
    assert ("lacks a term" in claim) == (
        "lacks a term" in " ".join(contents["prediction"]["remarks"])
    )
    assert [page_number(x, ".3g", (x, 2.0)) for x in (1e-9, 0.1)] == ["0", "0.1"]


def test_curves_are_the_torques_that_the_fit_compares(fit, contents):
    joint = contents["curves"][0]["joints"][1]
    run = joint["runs"][0]
    measured, predicted = np.array(run["measured"]), np.array(run["predicted"])
    error = np.linalg.norm(measured - predicted) / np.linalg.norm(measured)
    assert error == pytest.approx(fit.relative_error[joint["joint"]], rel=0.05)
    found = torque_curves(joint["runs"])
    (x0, x1), (y0, y1), (wide, high) = found["x"], found["y"], found["size"]
    points = np.array([p.split(",") for p in found["paths"]["measured"][1:].split()], float)
    np.testing.assert_allclose(x0 + points[:, 0] / wide * (x1 - x0), run["t"], atol=0.1)
    np.testing.assert_allclose(y1 - points[:, 1] / high * (y1 - y0), measured,
                               atol=0.06 / high * (y1 - y0))  # fmt: skip


def test_outlines_of_bodies_hold_their_ellipsoids_and_touch_them(fit, contents):
    drawings = {view["title"]: view for view in robot_drawings(contents["robots"])}
    shapes = [s for s in drawings["fitted"]["shapes"] if s["kind"] == "body"]
    assert {s["body"]["name"] for s in shapes} == {b.name for b in fit.robot.bodies}
    directions = np.random.default_rng(0).normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    s, c, t, d = np.sin(AZIMUTH), np.cos(AZIMUTH), np.sin(ELEVATION), np.cos(ELEVATION)
    for shape in shapes:
        centre, axes = np.split(np.array(shape["space"]), [3])
        x, y, z = (centre + directions @ axes.reshape(3, 3)).T
        paper = np.array([c * y - s * x, t * (c * x + s * y) - d * z])
        assert np.abs(paper).max() <= HALF_WIDTH
        u, v, long, short, angle = shape["paper"]
        turn = np.exp(-1j * np.radians(angle)) * (paper[0] - u + 1j * (paper[1] - v))
        reach = np.hypot(turn.real / long, turn.imag / short)
        assert reach.max() == pytest.approx(1, abs=1e-3)
        assert reach.max() <= 1 + 1e-9


@pytest.mark.slow
def test_reduced_data_have_no_curves(fit, logs, tmp_path):
    reduced = feasid.fit(feasid.reduce(logs[0], fit.description), diagnose=False)
    reduced.report(tmp_path / "reduced.html")
    assert (tmp_path / "reduced.html").read_text().count('class="curve"') == 0
    with pytest.raises(InputError, match="a log is"):
        fit.report(tmp_path / "wrong.html", log=3)
    assert not (tmp_path / "wrong.html").exists()
    with pytest.raises(InputError, match="another name than its numbers"):
        fit.report(tmp_path / "report.json")


@pytest.mark.slow
def test_without_the_extra_the_command_is_named(fit, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r'pip install "feasid\[report\]"'):
        fit.report(tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_two_saved_fits_stand_side_by_side(fit, folder, here, capsys):
    model = str(folder / "arm.feasid")
    assert main(["report", model]) == 0
    assert (here / "report.html").read_text().count("<svg") == ROBOTS
    fit.logs[0].frame.to_csv(here / "log.csv", index=False)
    assert main(["report", model, "--log", "log.csv", "--overwrite"]) == 0
    assert (here / "report.html").read_text().count("<svg") == fit.robot.dof + ROBOTS
    assert main(["report", model, model, "--out", "two.html"]) == 0
    text = (here / "two.html").read_text()
    assert text.count("Physically consistent?") == 2
    assert text.count("<script") == 1
    assert main(["report", model, model, model]) == 2
    assert "one fit or two" in capsys.readouterr().err


@pytest.mark.parametrize("damage", [
    {"schema": "something else"}, {"version": VERSION + 1}, {"prediction": {}},
    {"curves": [{"caption": "x", "joints": [{"joint": "a", "runs": [{"t": ["<b>"]}]}]}]},
    {"bodies": {"index": "body", "columns": 3, "rows": [[1]]}},
    {"robots": [{"title": "x", "links": [[1]], "bodies": [], "impossible": []}]},
    {"robots": [{"title": "x"}]},
])  # fmt: skip
def test_damaged_reports_are_refused(contents, tmp_path, damage):
    with pytest.raises(InputError):
        write_report_contents([contents | damage], tmp_path / "x.html", overwrite=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_tests_at_the_prompt_are_both_in_the_report(logs, here, capsys):
    log = logs[0]
    (here / "arm.urdf").write_text(ARM)
    frame = log.rename(columns=lambda c: "_".join([c.split("_")[0], "slide"]) if "<" in c else c)
    for name, part in (("log", frame[:1000]), ("one", frame[1000:1500]), ("two", frame[1500:])):
        part.to_csv(f"{name}.csv", index=False)
    words = ["fit", "log.csv", "--robot", "arm.urdf", "--test", "one.csv", "--test", "two.csv",
             "--diagnose", "no", "--force"]  # fmt: skip
    assert main([*words, "--report", "page.html", "--certificate", "page.json"]) == 2
    assert "same file" in capsys.readouterr().err
    assert main([*words, "--report", "page.html"]) == 0
    text = (here / "page.html").read_text()
    assert "one.csv" in text
    assert "two.csv" in text
    assert "feasid fit log.csv --robot arm.urdf" in text
