"""The page of checked files: alone, escaped, each robot as its file has it."""

import re

import numpy as np
import pytest
from robots import ARM, replaced

import feasid
from feasid.applications.inspection import check_page
from feasid.applications.inspection.file_check import check_file
from feasid.cli import main

pytest.importorskip("jinja2")

HOSTILE = "rod&lt;script&gt;alert(1)&lt;/script&gt;"
BAD = [
    ('<mass value="0.3"/>', '<mass value="-0.3"/>'),
    ('ixx="0.0002" ixy="0" ixz="0" iyy', 'ixx="0.0009" ixy="0" ixz="0" iyy'),
]


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.urdf"
    path.write_text(replaced(ARM, *BAD).replace('"rod"', f'"{HOSTILE}"'))
    return path


def test_the_page_names_each_infeasible_link_with_cause_and_cure(bad, tmp_path, capsys):
    page, (good, broken) = tmp_path / "check.html", (tmp_path / n for n in ("a.urdf", "b.urdf"))
    good.write_text(ARM)
    broken.write_text("<robot>")
    assert main(["check", str(good), str(bad), str(broken), "--report", str(page)]) == 2
    said, text = capsys.readouterr().out, page.read_text()
    assert "1 of 3 files are infeasible" in text
    assert HOSTILE in text
    assert len(re.findall("<script", text)) == 1
    assert not re.findall(r'(?:src|href)="(?!data:|#file)', text)
    for report in check_file(bad).infeasible:
        assert f"bad.urdf:{report.link.line}" in text
        assert all(cause.message in said for cause in report.causes)
        numbers = map("{:.9g}".format, report.closest_possible_inertia().moments)
        assert all(number in text for number in numbers)
    assert text.count('class="impossible"') == 2
    places = [text.index(f"<h2>{x}</h2>") for x in (broken, bad, good)]
    assert places == sorted(places)
    assert main(["check", str(good), "--report", str(page)]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["check", str(good), "--report", str(good), "--overwrite"]) == 2
    assert good.read_text() == ARM


def test_links_stand_where_the_robot_has_them(bad, tmp_path):
    (good := tmp_path / "good.urdf").write_text(ARM)
    robot = feasid.load_robot(good)
    (view,) = check_page._views(check_file(good))
    frames = robot.pose()
    drawn = {body["name"]: body["centre"] for body in view.bodies}
    for body in robot.bodies:
        if body.name in drawn:
            rotation, position = frames[body.name]
            own = body.members[0].inertial if body.members else body.inertial
            np.testing.assert_allclose(drawn[body.name], position + rotation @ own[6:9] / own[9])
    written, cured = check_page._views(check_file(bad))
    assert [len(written.impossible), len(cured.impossible)] == [2, 0]
    assert [b["name"] for b in cured.bodies] == [b["name"] for b in view.bodies[:3]] + [
        "rod<script>alert(1)</script>"
    ]
    rod = view.bodies[3]  # the closest inertia of a negative mass turns its sign
    np.testing.assert_allclose(cured.bodies[3]["axes"], rod["axes"], rtol=1e-6)
