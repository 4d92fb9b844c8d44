"""`feasid check` is exact, names causes with evidence, and starts in a blink."""

import cProfile
import json
import pstats
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_side import PinocchioModel
from robots import ARM, example_urdfs, replaced

import feasid
from benchmarks.closed import MECHANISMS
from feasid import load_robot
from feasid.applications.inspection.file_check import check_description, check_file
from feasid.applications.inspection.judge import judge_link
from feasid.applications.inspection.whole_robot import check_whole_robot, mass_matrix
from feasid.cli import main
from feasid.core.errors import FeasidError
from feasid.core.exact.poses import is_possible_inertia
from feasid.robot import inertia
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.xml import parse_xml

PLATE = '<inertia ixx="0.0002" ixy="0" ixz="0" iyy="0.0002" iyz="0" izz="0.0003"/>'
ROD = '<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.0001"/>'


def write(tmp_path, name, *replacements):
    path = tmp_path / name
    path.write_text(replaced(ARM, *replacements))
    return str(path)


@pytest.fixture
def check(tmp_path):
    """FileCheck on ARM with replacements made."""
    return lambda *replacements: check_file(write(tmp_path, "arm.urdf", *replacements))


def moments(xx, xy, xz, yy, yz, zz):
    values = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), (xx, xy, xz, yy, yz, zz), strict=True)
    return "<inertia " + " ".join(f'{k}="{v}"' for k, v in values) + "/>"


def rod(*values):
    return (ROD, moments(*values))


def link(report, name):
    return next(r for r in report.links if r.link.name == name)


# -- verdicts -------------------------------------------------------------------------------------


def test_a_possible_arm_is_feasible(check):
    report = check()
    assert report.status == "feasible"
    assert [r.verdict.status for r in report.links] == [*["feasible"] * 4, "none"]
    assert [b.body.name for b in report.weightless] == ["wheel"]


@pytest.mark.parametrize(
    ("mass", "values", "status", "code"),
    [
        ("0.3", (1, 0, 0, 1, 0, "1.9999999999999999999999999"), "feasible", ""),
        ("0.3", (1, 0, 0, 1, 0, 2), "boundary", "flat"),
        ("0.3", (1, 0, 0, 1, 0, "2.0000000000000000000000001"), "infeasible", "triangle"),
        ("0.3", (1, 0, 0, 1, 0, 0), "boundary", "rod"),
        ("0.3", (1, 0, 0, 1, 0, "-1e-40"), "infeasible", "inertia-negative"),
        ("0.3", (0, 0, 0, 0, 0, 0), "boundary", "point"),
        ("0.3", (1, 1, 1, 1, 1, 1), "infeasible", "triangle"),
        ("0.3", (1, 0, 0, 1, 0, 5), "infeasible", "triangle"),
        ("0.3", (1, 2, 0, 1, 0, 1), "infeasible", "inertia-negative"),
        ("-0.3", (1, 0, 0, 1, 0, 1), "infeasible", "mass-negative"),
        ("0", (1, 0, 0, 1, 0, 1), "infeasible", "massless"),
        ("0", (0, 0, 0, 0, 0, 0), "zero", ""),
        ("-0", (0, 0, 0, 0, 0, 0), "zero", ""),
    ],
)
def test_verdicts_are_exact(check, mass, values, status, code):
    """The last of 25 digits decides, where floats see a tie."""
    report = check(('<mass value="0.3"/>', f'<mass value="{mass}"/>'), rod(*values))
    verdict = link(report, "rod").verdict
    assert (verdict.status, verdict.code) == (status, code)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=6, max_size=6), st.integers(1, 3))
def test_verdicts_agree_with_eigenvalues_away_from_the_boundary(values, mass):
    text = ARM.replace(ROD, moments(*values)).replace('"0.3"', f'"{mass}"')
    model = read_description(parse_xml(text.encode()))
    status = judge_link(model.link("rod")).status
    tensor = inertia.rotational_inertia([*values, 0, 0, 0, 0])
    smallest = np.linalg.eigvalsh(np.trace(tensor) / 2 * np.eye(3) - tensor)[0]
    if abs(smallest) > 1e-9:
        assert status == ("feasible" if smallest > 0 else "infeasible")


def test_links_that_move_together_are_judged_together(check):
    """An impossible plate on a heavy upper arm: the sum that moves is possible."""
    report = check((PLATE, moments(0.0002, 0, 0, 0.0002, 0, 0.0009)))
    assert link(report, "plate").verdict.status == "infeasible"
    body = next(b for b in report.bodies if b.body.name == "upper")
    assert [x.name for x in body.body.links] == ["upper", "plate"]
    assert body.verdict.status == "feasible"
    report = check((PLATE, moments(0.0002, 0, 0, 0.0002, 0, 0.9)))
    body = next(b for b in report.bodies if b.body.name == "upper")
    assert (body.verdict.status, body.verdict.code) == ("infeasible", "lumped")
    assert report.status == "infeasible"


@pytest.mark.parametrize("path", example_urdfs()[::5], ids=lambda p: p.stem)
def test_lumped_verdicts_agree_with_eigenvalues(path):
    """The enclosure of sixty digits against floats, on bodies whose links are not all possible."""
    try:
        model = read_description(parse_xml(path.read_bytes(), str(path)))
    except FeasidError:
        return
    for report in check_description(model).bodies:
        total = np.zeros(10)
        for part in report.body.parts:
            if part.link.mass is None:
                continue
            mass, com, tensor = float(part.link.mass), part.link.com, part.link.tensor
            own = inertia.from_mass_com_inertia(mass, com, tensor)
            while part.place is not None:
                own = inertia.change_frame(part.place.rotation, part.place.position) @ own
                part = report.body.parts[part.parent]
            total = total + own
        smallest = np.linalg.eigvalsh(inertia.pseudo_inertia(total))[0]
        if report.verdict.status == "feasible":
            assert smallest > -1e-12 * max(1, np.abs(total).max())
        if report.verdict.status == "infeasible":
            assert smallest < 1e-12 * max(1, np.abs(total).max())


# -- the command ----------------------------------------------------------------------------------


BAD = rod(1, 0, 0, 1, 0, 5)


def test_exit_status(tmp_path, capsys):
    good, bad = write(tmp_path, "good.urdf"), write(tmp_path, "bad.urdf", BAD)
    broken = write(tmp_path, "broken.urdf", ('value="1.25"', 'value="nan"'))
    assert main(["check", good]) == 0
    assert main(["check", "--strict", good]) == 1
    assert main(["check", good, bad]) == 1
    assert main(["check", bad, broken, good]) == 2
    out = capsys.readouterr()
    assert "broken.urdf:22:20" in out.err
    assert "3 files: 1 in error, 1 feasible, 1 infeasible" in out.out
    assert main(["check", str(tmp_path / "nothing.urdf")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_globs_are_expanded_here(tmp_path, capsys):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    write(folder, "x.urdf")
    write(tmp_path, "y.urdf")
    assert main(["check", str(tmp_path / "**" / "*.urdf")]) == 0
    assert "2 files: 2 feasible" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "*.mjcf")]) == 2
    assert "no file matches" in capsys.readouterr().err


def test_text_names_file_line_link_and_hint(tmp_path, capsys):
    main(["check", write(tmp_path, "bad.urdf", BAD)])
    out = capsys.readouterr().out
    line = ARM[: ARM.index(ROD)].count("\n") - 2
    assert f"bad.urdf:{line}: link 'rod': triangle inequality violated by 60 %" in out
    assert "bad.urdf: infeasible (1 of 5 links are infeasible, 1 of 3 moving bodies)" in out
    assert "feasid correct" in out
    assert "other link" not in out
    plate = PLATE, moments(0.0002, 0, 0, 0.0002, 0, 0.0009)
    main(["check", write(tmp_path, "plate.urdf", plate)])
    out = capsys.readouterr().out
    assert "it moves with 1 other link as 'upper', which is possible" in out
    assert "the closest physically consistent inertia differs by 30.6 %" in out


def test_json_says_the_same(tmp_path, capsys):
    bad = write(tmp_path, "bad.urdf", BAD)
    missing = str(tmp_path / "none.urdf")
    assert main(["check", "--json", bad, missing]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["consistency"] == "full"
    first, second = found["files"]
    assert (first["status"], second["status"]) == ("infeasible", "error")
    (wrong,) = [x for x in first["links"] if x["status"] == "infeasible"]
    assert (wrong["name"], wrong["code"], wrong["body"]) == ("rod", "triangle", "rod")
    assert wrong["violation"] == pytest.approx(0.6)
    mass, *six = (
        Fraction(repr(v)) for v in (wrong["nearest"]["mass"], *wrong["nearest"]["moments"])
    )
    assert is_possible_inertia(mass, six)


def test_sarif_and_annotations_point_at_the_line(tmp_path, capsys):
    bad = write(tmp_path, "bad arm.urdf", BAD)
    assert main(["check", "--format", "sarif", bad]) == 1
    log = json.loads(capsys.readouterr().out)
    run = log["runs"][0]
    errors = [r for r in run["results"] if r["level"] == "error"]
    assert [r["ruleId"] for r in errors] == ["triangle"]
    place = errors[0]["locations"][0]["physicalLocation"]
    line = ARM[: ARM.index(ROD)].count("\n") - 2
    assert place["region"] == {"startLine": line, "startColumn": 5}
    assert place["artifactLocation"]["uri"].endswith("bad%20arm.urdf")
    assert {r["ruleId"] for r in run["results"]} <= {
        r["id"] for r in run["tool"]["driver"]["rules"]
    }
    assert main(["check", "--format", "github", bad]) == 1
    assert f"line={line},col=5,title=feasid triangle::link 'rod'" in capsys.readouterr().out


def test_names_cannot_break_out_of_the_output(tmp_path, capsys):
    name = "a&#10;::error::x&lt;script>"
    links = [f'{kind}="rod"' for kind in ("link name", "child link", "parent link")]
    renamed = [(old, old.replace("rod", name)) for old in links]
    bad = write(tmp_path, "bad.urdf", BAD, *renamed)
    assert main(["check", "--format", "github", bad]) == 1
    assert all(x.startswith("::") for x in capsys.readouterr().out.splitlines())
    assert main(["check", bad]) == 1
    assert "\n::error" not in capsys.readouterr().out


# -- what control sees ----------------------------------------------------------------------------


def test_impossible_links_may_have_possible_base_parameters(tmp_path, capsys):
    """The first link of an arm on a vertical axis shows only its moment about that axis."""
    one = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="{izz}"/></inertial></link>
      <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
      <limit lower="-1" upper="2" velocity="1" effort="1"/></joint></robot>"""
    path = tmp_path / "one.urdf"
    path.write_text(one.format(izz=5))
    assert main(["check", "--control", str(path)]) == 1
    out = capsys.readouterr().out
    assert "mass matrix: positive definite" in out
    assert "base parameters of the whole robot: feasible" in out
    assert "simulators still reject" in out
    path.write_text(one.format(izz=-5))
    assert main(["check", "--control", "--json", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)["files"][0]["control"]
    assert found["mass_matrix"]["status"] == "indefinite"
    assert found["mass_matrix"]["smallest"] == pytest.approx(-1)
    assert -1 <= found["mass_matrix"]["configuration"]["j"][0] <= 2
    assert found["base_parameters"].pop("margin") < 0
    assert found["base_parameters"] == {"status": "infeasible", "bodies": ["a"]}


def test_the_mass_matrix_equals_pinocchios(tmp_path):
    wheel = f'<link name="wheel"><inertial><mass value="1"/>{moments(1, 0, 0, 1, 0, 1)}</inertial>'
    path = write(tmp_path, "arm.urdf", ('<link name="wheel"/>', f"{wheel}</link>"))
    robot = load_robot(path)
    found = mass_matrix(robot, robot.values)
    q = [found.configuration[j][0] for j in robot.joints]
    values = np.linalg.eigvalsh(PinocchioModel(robot, path).mass_matrix(q))
    assert found.smallest == pytest.approx(values[0] / values[-1], rel=1e-9)
    assert found.status == "positive definite"


def test_a_line_says_what_was_reduced(tmp_path, capsys):
    text = ('<parent link="rod"/>', '<parent link="rod"/><mimic joint="slide"/>')
    path = write(tmp_path, "m.urdf", text)
    assert main(["check", "--control", path]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "  3 joints, 2 independent"
    assert any("mass matrix: positive definite" in line for line in out)
    assert main(["check", "--json", path]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["reduction"] == out[1].strip()


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", ["five-bar", "parallel gripper"])
def test_closed_loops_as_control_sees_them(name):
    robot = load_robot(MECHANISMS[name])
    found = check_whole_robot(robot)
    assert found.mass_matrix.status == "positive definite"
    assert found.base.feasible
    verdict = feasid.check(robot.with_values(-robot.values))
    assert verdict.feasible is False
    assert verdict.certificate.verify().startswith("infeasible")


def test_control_of_what_does_not_move_is_not_judged(tmp_path, capsys):
    path = tmp_path / "still.xml"
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    path.write_text(f"<mujoco><worldbody><body>{inertial}</body></worldbody></mujoco>")
    assert main(["check", "--control", str(path)]) == 0
    assert "control: not judged" in capsys.readouterr().out
    assert main(["check", "--control", "--json", str(path)]) == 0
    assert "no moving joint" in capsys.readouterr().out


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("path", example_urdfs(), ids=lambda path: path.stem)
def test_mujoco_refuses_each_infeasible_link_alone_and_takes_the_nearest(path):
    mujoco = pytest.importorskip("mujoco")

    def compiled(mass, six):
        full = " ".join(repr(float(six[k])) for k in (0, 3, 5, 1, 2, 4))
        inertial = f'<inertial pos="0 0 0" mass="{float(mass)!r}" fullinertia="{full}"/>'
        text = f"<mujoco><worldbody><body><freejoint/>{inertial}</body></worldbody></mujoco>"
        return mujoco.MjModel.from_xml_string(text)

    if "<link" not in path.read_text():
        pytest.skip("a template without links")
    for found in check_file(path).infeasible:
        with pytest.raises(ValueError, match=r"inertia|mass"):
            compiled(found.link.mass, found.link.moments)
        if not found.link.mass:
            continue  # without a mass no inertia is near
        nearest = found.closest_possible_inertia()
        assert compiled(nearest.mass, nearest.moments).body_mass[1] == nearest.mass


MOST_WORK = 11  #: Of ten times the links: what loading takes once does not grow.


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("kind", ["fixed", "revolute"])
def test_long_chains_cost_work_in_proportion(tmp_path, kind):
    """Ten times the links, about ten times the function calls."""
    calls = []
    for count in (100, 1000):
        links = "".join(
            f'<link name="l{k}"><inertial><mass value="1"/>'
            f"{moments(1, 0, 0, 1, 0, 5 if k == 1 else 1)}</inertial></link>"
            for k in range(count)
        )
        joints = "".join(
            f'<joint name="j{k}" type="{kind if k else "revolute"}"><parent link="l{k}"/>'
            f'<child link="l{k + 1}"/><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/></joint>'
            for k in range(count - 1)
        )
        path = tmp_path / "chain.urdf"
        path.write_text(f"<robot>{links}{joints}</robot>")
        with cProfile.Profile() as profile:
            assert check_file(path).status == "infeasible"
        calls.append(pstats.Stats(profile).total_calls)
    assert calls[1] < MOST_WORK * calls[0]


def test_one_question_one_answer(tmp_path, capsys):
    """The plate cannot exist; together with the arm that it is fixed to it can."""
    path = write(tmp_path, "lumped.urdf", (PLATE, moments(0.0002, 0, 0, 0.0002, 0, 0.0009)))
    found = feasid.check(path)
    assert (found.feasible, found.status) == (False, "infeasible")
    assert "plate" in found.explain()
    assert main(["check", str(path)]) == 1
    assert feasid.check(path, bodies=True).feasible is True
    assert main(["check", "--bodies", str(path)]) == 0
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot>")
    assert main(["check", "--bodies", str(path), str(broken)]) == 2
    assert feasid.check(path, bodies=True, total_mass=1.0).feasible is False


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("path", example_urdfs(), ids=lambda p: p.stem)
def test_library_and_prompt_say_the_same(path, capsys):
    status = main(["check", str(path)])
    try:
        said = feasid.check(path).status
    except FeasidError:
        said = "error"
    assert status == {"feasible": 0, "infeasible": 1, "error": 2, "inconclusive": 3}[said]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.urdf", ARM.replace('damping="0.7"', 'damping="-0.7"')),
        (
            "a.xml",
            '<mujoco><worldbody><body name="b"><joint name="shoulder" damping="-0.7"/>'
            '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>',
        ),
    ],
)
def test_joint_terms_that_no_passive_joint_has_are_noted(tmp_path, capsys, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "joint 'shoulder' has negative viscous friction -0.7" in out
    assert "rigid bodies only" in out
