"""What an experiment leaves unknown that a use needs, by library and at the prompt."""

import csv
import json

import numpy as np
import pytest
from robots import wam

import feasid
from benchmarks.mechanisms import exact_base, exact_echelon, random_mechanism
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.parameters.identifiability.experiment import Experiment
from feasid.parameters.identifiability.views import as_csv, as_dict, as_latex


def test_nothing_is_missing_for_the_experiment_itself():
    base = base_parameters(wam())
    gap = base.missing_for(base)
    assert gap.size == 0
    assert not gap.missing.any()
    assert "determines all" in str(gap)


def test_statics_do_not_tell_inertias():
    robot = wam()
    gap = base_parameters(robot, static=True).missing_for(base_parameters(robot))
    static, full = base_parameters(robot, static=True).size, base_parameters(robot).size
    assert gap.size == full - static  # what shows at rest shows in motion
    assert not any(r.startswith("7.l") for r in gap.by_body()["7"])


@pytest.mark.parametrize("seed", range(25))
def test_gap_is_exact(seed):
    """rank [K_A; K_B] - rank K_A over the prime field."""
    rng = np.random.default_rng([50, seed])
    mechanism = random_mechanism(rng, largest=6, terms=False)
    n = len(mechanism.joints)
    some = sorted(rng.choice(n, rng.integers(1, n + 1), replace=False).tolist())
    held = sorted(rng.choice(n, rng.integers(0, n), replace=False).tolist())
    robot = mechanism.robot()
    names = robot.joints
    experiment = base_parameters(
        robot, measured=[names[j] for j in some], held=[names[j] for j in held]
    )
    use = base_parameters(robot)
    gap = experiment.missing_for(use)
    _, a = exact_base(mechanism, seed, measured=some, held=held)
    _, b = exact_base(mechanism, seed)
    together = len(exact_echelon(np.vstack([a, b]))[0])
    assert gap.size == together - len(a)
    for r in range(len(b)):
        alone = len(exact_echelon(np.vstack([a, b[r : r + 1]]))[0]) - len(a)
        assert gap.missing[r] == bool(alone)


def test_robots_are_not_mixed():
    other = feasid.Robot.from_dh([(0, 1, 0, 0)])
    with pytest.raises(InputError, match="for one robot"):
        base_parameters(wam()).missing_for(base_parameters(other))


# -- experiments in words ---------------------------------------------------------------------


def test_an_experiment_is_written_in_words():
    asked = Experiment.parse(["measured=a,b", "held=c,d:1.5", "static", "gravity=0,0,-1.62"])
    assert asked.measured == ["a", "b"]
    assert asked.held == {"c": 0.0, "d": 1.5}
    assert asked.static
    assert asked.gravity == [0.0, 0.0, -1.62]
    assert Experiment.parse(["everything"]).measured is None


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("mesured=a", "did you mean 'measured'"),
        ("static=1", "static takes no value"),
        ("held", "held takes a value"),
        ("gravity=0,x", "gravity must be numbers"),
        ("held=a:x", "position of joint 'a' must be numbers"),
    ],
)
def test_wrong_words_are_refused(word, message):
    with pytest.raises(InputError, match=message):
        Experiment.parse([word])


# -- the prompt -------------------------------------------------------------------------------


def arm(links=3):
    """An arm whose axes turn by right angles."""
    parts = ['<robot name="arm"><link name="base"/>']
    for k in range(links):
        parent = f"l{k - 1}" if k else "base"
        parts.append(
            f'<link name="l{k}"/><joint name="j{k}" type="continuous"><parent link="{parent}"/>'
            f'<child link="l{k}"/><origin xyz="0.1 0 0.3" rpy="1.5707963267948966 0 0"/>'
            '<axis xyz="0 0 1"/></joint>'
        )
    return "".join([*parts, "</robot>"])


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(arm())
    return str(file)


def printed(capsys, *words, status=0):
    assert main(["base-parameters", *words]) == status
    return capsys.readouterr().out


def test_every_option_changes_the_answer(path, capsys):
    plain = printed(capsys, path)
    assert "base parameters of" in plain
    for option in (
        ["--lock", "j1=0.5"],
        ["--gravity", "9.81,0,0"],
        ["--no-gravity"],
        ["--friction", "viscous,coulomb"],
        ["--drive-inertia"],
        ["--measured", "j2"],
        ["--held", "j0"],
        ["--static"],
        ["--order", "l2.m"],
        ["--floating"],
        ["--table"],
        ["--explain", "l1.m"],
    ):
        assert printed(capsys, *option, path).split("checked in")[0] != plain.split("checked in")[0]


def test_lines_fit_into_a_terminal(tmp_path, capsys):
    file = tmp_path / "long.urdf"
    file.write_text(arm(30))
    assert max(map(len, printed(capsys, str(file), "--table").splitlines())) <= 100


def test_formats_hold_the_same_numbers(path, capsys):
    base = base_parameters(path)
    assert json.loads(printed(capsys, path, "--json"))["base_parameters"] == base.size
    rows = list(csv.DictReader(printed(capsys, path, "--csv").splitlines()))
    k = np.zeros_like(base.K)
    for row in rows:
        column = base.robot.parameter_names.index((row["body"], row["symbol"]))
        k[int(row["base_parameter"]) - 1, column] = float(row["coefficient"])
    np.testing.assert_array_equal(k, base.K)
    assert as_csv(base).count("\n") == len(rows) + 1
    assert len(as_dict(base)["status"]) == base.robot.size
    latex = printed(capsys, path, "--latex")
    assert latex.strip() == as_latex(base)
    assert latex.count("&") == base.size + 1
    assert r"L_{\mathrm{l0},zz}" in latex


def test_two_experiments_at_the_prompt(path, capsys):
    words = ["--experiment", "static", "--for", "everything"]
    out = printed(capsys, path, *words, status=1)
    assert "stay unknown" in out
    told = json.loads(printed(capsys, path, *words, "--json", status=1))
    robot = feasid.load_robot(path)
    gap = base_parameters(robot, static=True).missing_for(base_parameters(robot))
    assert told["unknown"] == gap.size
    assert told["by_body"] == gap.by_body()
    words = ["--experiment", "everything", "--for", "static"]
    assert "determines all" in printed(capsys, path, *words)
    assert main(["base-parameters", path, "--experiment", "static"]) == 2
    assert "require each other" in capsys.readouterr().err
