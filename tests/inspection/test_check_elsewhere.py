"""The check where model repositories use it: pre-commit, GitHub Actions, the example's table."""

import re
import subprocess
import sys
from pathlib import Path

import check_models
import pytest
from action import STEPS, run_step
from robots import ARM, example_urdfs

from feasid.cli import main

ROOT = Path(__file__).parents[2]

INSTALL = '"$FEASID_PYTHON" -P -m pip install -q --no-deps --target "$RUNNER_TEMP/feasid"'
ROD = 'izz="0.0001"'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "good arm.urdf").write_text(ARM)
    (tmp_path / "models" / "bad.urdf").write_text(ARM.replace(ROD, 'izz="0.1"'))
    return tmp_path


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
    install, script = STEPS
    assert install.split() == [*INSTALL.split(), '"$FEASID_SOURCE"', "numpy"]
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


@pytest.mark.slow
def test_the_example_judges_all_models(capsys, monkeypatch, tmp_path):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log here
    table = check_models.main([])
    assert len(table) > 60
    refused = ("A + B >= C", "positive eigenvalues")
    for row in table:
        if row.status == "infeasible":
            assert any(words in row.mujoco for words in refused)
        elif any(words in row.mujoco for words in refused):
            assert row.mujoco.split("(")[-1].rstrip(")") in row.singular
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
print(status, calls)
"""


def test_checking_a_seven_joint_arm_takes_little_work():
    """Imports included, in function calls: about .3 s, however busy the machine."""
    (path,) = [p for p in example_urdfs() if p.stem == "z1"]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(path)], capture_output=True, text=True, check=True
    )
    status, calls = map(int, done.stdout.splitlines()[-1].split())
    assert status == 0
    assert calls < 400_000, calls
