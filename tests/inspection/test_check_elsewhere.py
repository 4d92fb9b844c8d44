"""The check where model repositories use it: pre-commit, GitHub Actions, the example's table."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import check_models
import pytest
from action import PYTHON, STEPS, install, run_step
from arms import path_of
from robots import ARM, example_urdfs

import feasid
from feasid.cli import main

ROOT = Path(__file__).parents[2]

INSTALL = '"$FEASID_PYTHON" -P -m pip install -q --target "$RUNNER_TEMP/feasid"'
SOURCE = '"$FEASID_SOURCE/packaging/feasid-check"'
ROD = 'izz="0.0001"'


@pytest.fixture
def folder(here):
    (here / "models").mkdir()
    (here / "models" / "good arm.urdf").write_text(ARM)
    (here / "models" / "bad.urdf").write_text(ARM.replace(ROD, 'izz="0.1"'))
    return here


def test_the_pre_commit_hook_selects_and_refuses(folder, capsys):
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entry = re.search(r"entry: feasid (.*)", text)[1].split()
    files = re.search(r"files: (\\\.urdf\$)", text)[1]
    chosen = sorted(str(p) for p in folder.rglob("*") if re.search(files, str(p)))
    assert len(chosen) == 2
    assert main([*entry, *chosen]) == 1
    assert "models/bad.urdf" in capsys.readouterr().out
    assert main([*entry, chosen[1]]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs the action's bash")
def test_the_github_action_checks_globs_and_annotates(folder):
    """Both of its scripts run as they stand; what the first installs is enough for the second."""
    first, script = STEPS
    assert first.split() == [*INSTALL.split(), SOURCE]
    inputs = {"FEASID_FILES": "**/*.urdf", "FEASID_SARIF": "true"}
    done = run_step(script, folder, folder / "one", **inputs)
    assert done.returncode == 1, done.stderr
    assert "::error file=models/bad.urdf,line=" in done.stdout
    assert "good arm.urdf,line=" not in done.stdout.replace(
        "::warning file=models/good arm.urdf", ""
    )
    assert '"ruleId": "triangle"' in (folder / "one" / "runner" / "feasid.sarif").read_text()
    run_step(script, folder, folder / "two", FEASID_FILES="models/good*.urdf $(touch injected)")
    assert not (folder / "injected").exists()


def test_the_light_distribution_says_the_same_and_needs_numpy_only(folder, capsys):
    """Its own files and NumPy are all that Python finds besides the standard library."""
    install(folder / "light")
    paths = [*sorted(map(str, folder.glob("models/*"))), *map(str, example_urdfs()[::9])]

    def check(*arguments):
        command = [PYTHON, "-P", "-S", "-m", "feasid_check", *arguments]
        environment = {"PYTHONPATH": str(folder / "light"), "PATH": ""}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    for form in ("--verbose", "--format=json", "--format=sarif"):
        done = check(form, *paths)
        assert main(["check", form, *paths]) == done.returncode
        assert (done.stdout, done.stderr) == tuple(capsys.readouterr())
    assert "pip install feasid\n" in check("--control", paths[0]).stderr
    page = f"--report={folder / 'check.html'}"
    assert 'pip install "feasid-check[report]"' in check(page, paths[0]).stderr
    owned = {path.name for path in (folder / "light").iterdir() if "numpy" not in path.name}
    assert {name for name in owned if ".dist-info" not in name} == {"feasid_check"}


def test_the_hook_installs_no_dependency_but_numpy():
    """What pre-commit appends to its "pip install .", and the light distribution's own list."""
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    light = tomllib.loads((ROOT / "packaging/feasid-check/pyproject.toml").read_text())["project"]
    (numpy,) = light["dependencies"]
    assert hooks.count(f"additional_dependencies: [--no-deps, '{numpy}']") == hooks.count("- id:")
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert numpy in whole["dependencies"]
    extras = light["optional-dependencies"]
    assert extras.items() <= whole["optional-dependencies"].items()


@pytest.mark.slow
def test_the_example_judges_all_models(capsys, monkeypatch, tmp_path):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log here
    table = check_models.main([])
    assert len(table) > 60
    refused = ("A + B >= C", "positive eigenvalues")
    for row in table:
        if row.status == "infeasible":
            # MuJoCo takes a fixed link of inertia without mass, as the feet of a Bolt.
            codes = {link.verdict.code for link in feasid.check(row.path).infeasible}
            assert codes == {"massless"} or any(words in row.mujoco for words in refused), row
        elif any(words in row.mujoco for words in refused):
            assert row.mujoco.split("(")[-1].rstrip(")") in row.boundary
    assert "links are infeasible; judged in" in capsys.readouterr().out


COUNTED = """
import sys
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
sys.setprofile(count)
from feasid.cli import main
status = main(["check", sys.argv[1]])
sys.setprofile(None)
heavy = {"cvxpy", "pandas", "scipy", "matplotlib", "clarabel", "numpy.ma", "ssl"}
print(status, calls, len(heavy & sys.modules.keys()))
"""


def test_checking_a_seven_joint_arm_takes_little_work():
    """Imports included, in function calls: about .3 s, however busy the machine.

    Nothing is loaded that a check does not need.
    """
    command = [sys.executable, "-c", COUNTED, str(path_of("z1"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, calls, heavy = map(int, done.stdout.splitlines()[-1].split())
    assert (status, heavy) == (0, 0)
    assert calls < 400_000, calls
