"""`feasid correct` writes the closest possible model and touches nothing else."""

import difflib
import json
import re
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import ARM, example_urdfs, without_geometry

import feasid
from feasid.applications.inspection.file_check import check_file
from feasid.applications.inspection.file_correction import FILL_MASS, FILL_RADIUS, correct_file
from feasid.applications.inspection.judge import MARGIN, Metric, closest_inertia
from feasid.cli import main
from feasid.core.errors import FeasidError, InputError, OutputError
from feasid.core.exact.poses import is_possible_inertia
from feasid.robot import inertia

METRICS = get_args(Metric)

ROD = '<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.0001"/>'
BAD = '<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.005"/>'


def fractions(values):
    return [Fraction(repr(float(v))) for v in values]


def tensor(moments):
    return inertia.rotational_inertia([*map(float, moments), 0, 0, 0, 0])


def second_moments(values):
    return np.trace(values) / 2 * np.eye(3) - values


six = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=6, max_size=6)


@settings(max_examples=200, deadline=None)
@given(six, st.sampled_from(METRICS), st.floats(1e-6, 1e3), st.sampled_from([MARGIN, 1e-15]))
def test_the_answer_is_exactly_possible(values, metric, scale, margin):
    """Also where the margin is less than the rounding of decimals."""
    if not any(values):
        values[0] = 1.0
    values = [v * scale for v in values]
    new = closest_inertia(Fraction(2), fractions(values), metric, margin, smallest=0.0)
    assert is_possible_inertia(Fraction(repr(new.mass)), fractions(new.moments))
    assert new.mass == 2.0


@settings(max_examples=100, deadline=None)
@given(six, st.integers(0, 2**32 - 1))
def test_no_possible_inertia_is_closer(values, seed):
    """Against random possible inertias, and against small steps from the answer."""
    if not any(values):
        values[0] = 1.0
    new = closest_inertia(Fraction(1), fractions(values))
    old, found = tensor(values), tensor(new.moments)
    distance = np.linalg.norm(found - old)
    assert distance == pytest.approx(new.distance * np.linalg.norm(old), abs=1e-9)
    rng = np.random.default_rng(seed)
    size = np.abs(np.linalg.eigvalsh(second_moments(old))).sum()
    for step in (1.0, 0.1, 1e-3):
        root = rng.normal(size=(20, 3, 3)) * step
        sigmas = second_moments(found) + root @ np.swapaxes(root, 1, 2)
        sigmas = np.concatenate([sigmas, (1 - step) * sigmas + step * np.eye(3)])
        for sigma in sigmas:
            if np.linalg.eigvalsh(sigma)[0] >= MARGIN * size:
                other = np.trace(sigma) * np.eye(3) - sigma
                assert np.linalg.norm(other - old) >= distance - 1e-9 * size


def test_a_hand_worked_projection():
    """(1, 1, 5): the excess 3 is shared along (-1, -1, 1), so (2, 2, 4) up to the margin."""
    new = closest_inertia(Fraction(1), fractions([1, 0, 0, 1, 0, 5]), margin=1e-9)
    np.testing.assert_allclose(np.diag(tensor(new.moments)), [2, 2, 4], rtol=1e-7)
    assert new.distance == pytest.approx(np.sqrt(3) / np.sqrt(27), rel=1e-7)


def test_entropy_stays_further_inside():
    flat = fractions([1, 0, 0, 1, 0, 5])
    near, inside = closest_inertia(Fraction(1), flat), closest_inertia(Fraction(1), flat, "barrier")
    smallest = [np.linalg.eigvalsh(second_moments(tensor(c.moments)))[0] for c in (near, inside)]
    assert smallest[1] > 10 * smallest[0]
    assert inside.distance > near.distance


def test_the_barrier_pushes_every_second_moment_with_one_weight():
    """The minimum of |r - s|^2 / 2 - w sum log r has (r - s) r = w for each of the three."""
    for x, y, z in ((0.001, 0.001, 0.005), (0.02, 0.03, 0.04)):
        given = np.array([x, y, z])
        found = closest_inertia(Fraction(1), fractions([x, 0, 0, y, 0, z]), "barrier")
        new = np.array(found.moments)[[0, 3, 5]]
        s, r = (x.sum() / 2 - x for x in (given, new))
        push = (r - s) * r
        assert push.min() > 0
        np.testing.assert_allclose(push, push[0], rtol=1e-3)  # moments have nine digits


def test_a_negative_mass_is_turned_and_said():
    new = closest_inertia(Fraction(-2), fractions([1, 0, 0, 1, 0, 1]))
    assert new.mass == 2.0
    assert "negative" in new.note


@pytest.mark.parametrize(("metric", "margin", "words"), [
    ("euclidian", MARGIN, "metric must be .*did you mean"), (np.eye(3), MARGIN, "metric must be"),
    *(("euclidean", margin, "margin must be .* at most 0.333") for margin in (0.0, 0.5, np.nan)),
])  # fmt: skip
def test_options_are_checked(metric, margin, words):
    with pytest.raises(InputError, match=words):
        correct_file("no.urdf", metric, margin)


def test_a_plate_that_mujoco_rounds_to_an_impossible_one_is_thickened(tmp_path):
    """A + B = C exactly, on axes that its decimals do not show."""
    path, mujoco = tmp_path / "arm.urdf", pytest.importorskip("mujoco")
    plate = 'ixx="9e-6" ixy="-1e-6" ixz="0" iyy="1e-6" iyz="0" izz="1e-5"'
    path.write_text(ARM.replace(re.findall("<inertia ([^/]*)/>", ARM)[-1], plate))
    assert not correct_file(path).changes
    assert correct_file(path, for_="mujoco").changes[0].new.distance < 1e-5
    mujoco.MjModel.from_xml_string(correct_file(path, for_="mujoco").data.decode())


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("path", example_urdfs(), ids=lambda p: p.stem)
def test_every_real_file_comes_out_possible_and_otherwise_the_same(path, metric, tmp_path):
    pinocchio, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    try:
        repair = correct_file(path, metric)
    except FeasidError:
        if "<link" not in path.read_text():
            return
        repair = correct_file(path, metric, fill=True)  # a link has an inertia and no mass
    ready = correct_file(path, metric, for_="mujoco")
    assert ready.after.status == "feasible"
    mujoco.MjModel.from_xml_string(without_geometry(ready.data.decode()))
    data = path.read_bytes()
    if repair.before.status == "feasible":
        assert repair.data == data
        return
    assert {c.link.name for c in repair.changes} == {r.link.name for r in repair.before.infeasible}
    out = tmp_path / "fixed.urdf"
    repair.write(out)
    assert not check_file(out).infeasible  # bodies without volume stay on the boundary
    numbers = re.compile(rb'\b(?:value|i[xyz]{2})\s*=\s*"[^"]*"')
    assert numbers.sub(b"", out.read_bytes()) == numbers.sub(b"", data)
    old, new = data.decode().splitlines(), out.read_text().splitlines()
    changed = [x[2:] for x in difflib.ndiff(old, new) if x[0] in "+-"]
    assert all("<inertia" in line or "<mass" in line for line in changed)
    pinocchio.buildModelFromUrdf(str(out))


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "bad.urdf"
    path.write_text(ARM.replace(ROD, BAD))
    return path, tmp_path / "fixed.urdf"


def test_the_command_writes_and_prints_before_and_after(files, capsys):
    bad, fixed = files
    assert main(["correct", str(bad), "--out", str(fixed)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"rod +before +0.3 +0.001 +0.001 +0.005\n +after +0.3 +0.002 +0.002 ", out)
    assert "33.3 %" in out
    assert main(["check", str(fixed)]) == 0
    lines = difflib.ndiff(bad.read_text().splitlines(), fixed.read_text().splitlines())
    assert len([x for x in lines if x[0] in "+-"]) == 2


def test_names_stay_on_their_line(tmp_path, capsys):
    path = tmp_path / "bad.urdf"
    path.write_text(ARM.replace(ROD, BAD).replace('"rod"', '"ro&#10;d"'))
    assert main(["correct", str(path), "--out", str(tmp_path / "out.urdf")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_possible_file_is_copied(tmp_path, capsys):
    good, out = tmp_path / "good.urdf", tmp_path / "out.urdf"
    good.write_text(ARM)
    assert main(["correct", str(good), "--out", str(out)]) == 0
    assert out.read_bytes() == good.read_bytes()
    assert "unchanged" in capsys.readouterr().out


def test_json_lists_the_changes(files, capsys):
    bad, fixed = files
    assert main(["correct", str(bad), "--out", str(fixed), "--json", "--metric", "barrier"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["link"] == "rod"
    assert change["before"]["moments"][5] == 0.005
    mass, moments = (change["after"][name] for name in ("mass", "moments"))
    assert is_possible_inertia(Fraction(repr(mass)), fractions(moments))


def test_bodies_without_mass_are_filled_when_asked(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    repair = correct_file(path, fill=True)
    assert [c.link.name for c in repair.changes] == ["wheel"]
    assert repair.after.weightless == ()
    with pytest.raises(ValueError, match="mjMINVAL"):
        mujoco.MjModel.from_xml_string(ARM)
    mujoco.MjModel.from_xml_string(repair.data.decode())
    filled = repair.after.links[-1].link
    assert filled.name == "wheel"
    assert float(filled.mass) == FILL_MASS
    principal = np.array([float(filled.moments[k]) for k in (0, 3, 5)])
    second = principal.sum() / 2 - principal
    assert second.min() >= FILL_MASS * FILL_RADIUS**2 * (1 - 1e-9)


def test_correct_takes_a_path_as_check_does(tmp_path):
    path = tmp_path / "wrong.urdf"
    path.write_text(ARM.replace('izz="0.003"', 'izz="0.3"'))
    correction = feasid.correct(path)
    assert [c.link.name for c in correction.changes] == ["upper"]
    assert "changed links" in repr(correction)
    assert not (tmp_path / "right.urdf").exists()
    feasid.correct(path, out=tmp_path / "right.urdf", metric="barrier")
    assert feasid.check(tmp_path / "right.urdf").feasible
    with pytest.raises(OutputError, match="exists"):
        feasid.correct(path, out=tmp_path / "right.urdf")
    robot = feasid.load_robot(path)
    assert feasid.correct(path, bodies=True).changed == feasid.correct(robot).changed


TOTAL = 24.5
SAME_MASS = 1e-9  # of sums of decimals that were written with all their digits


def panda():
    return next(p for p in example_urdfs() if p.match("panda_description/urdf/panda.urdf"))


def test_a_robot_that_was_weighed_is_scaled_in_proportion():
    robot = feasid.load_robot(panda())
    given = robot.values[robot.inertial_columns]
    corrected = feasid.correct(robot, total_mass=TOTAL)
    scaled = corrected.robot.values[robot.inertial_columns]
    assert scaled[:, 9].sum() == pytest.approx(TOTAL, rel=SAME_MASS)
    np.testing.assert_allclose(scaled, given * TOTAL / given[:, 9].sum(), rtol=1e-6, atol=1e-9)
    assert feasid.check(corrected.robot).feasible
    same = feasid.correct(robot, total_mass=(1.0, 100.0)).robot
    np.testing.assert_array_equal(same.values[robot.inertial_columns], given)


@pytest.mark.parametrize("broken", [False, True])
def test_links_of_a_file_are_scaled_to_what_the_robot_weighs(tmp_path, broken, capsys):
    path, out = tmp_path / "arm.urdf", tmp_path / "heavy.urdf"
    path.write_text(ARM.replace(ROD, BAD) if broken else ARM)
    words = ["correct", str(path), "--out", str(out), "--total-mass", str(TOTAL)]
    assert main(words) == 0
    assert "scaled by" in capsys.readouterr().out
    masses = [[float(x.link.mass) for x in check_file(p).links if x.link.mass] for p in (path, out)]
    assert sum(masses[1]) == pytest.approx(TOTAL, rel=SAME_MASS)
    np.testing.assert_allclose(np.array(masses[1]) / masses[0], TOTAL / sum(masses[0]), rtol=1e-9)
    assert check_file(out).feasible
    same = feasid.correct(path, total_mass=TOTAL)
    assert same.data == out.read_bytes()
