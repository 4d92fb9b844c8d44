"""What lies in the folder of the logs or of a checkout is never executed."""

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM, read_arm

import feasid
from feasid.regression.parallel import start_worker

ROOT = Path(__file__).parents[2]
STEPS = [
    textwrap.dedent(step.split("    - name:")[0])
    for step in (ROOT / "action.yml").read_text().split("      run: |\n")[1:]
]
TRAP = "import pathlib\npathlib.Path({mark!r}).write_text(__name__)\nraise SystemExit(9)\n"
MODULES = ("pip", "pickle", "struct", "json", "re", "numpy", "sitecustomize", "feasid")


@pytest.fixture
def trapped(tmp_path):
    """A folder whose modules leave a mark when they are imported, and the mark."""
    folder, mark = tmp_path / "trapped", tmp_path / "executed"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text(TRAP.format(mark=str(mark)))
    for name in ("feasid", "pip"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
        (folder / name / "__main__.py").write_text(TRAP.format(mark=str(mark)))
    return folder, mark


@pytest.mark.parametrize("path", [None, ""])
def test_workers_import_nothing_of_the_working_folder(trapped, monkeypatch, path):
    folder, mark = trapped
    robot = read_arm(folder).with_joint_terms()
    logs = [folder / f"{seed}.csv" for seed in range(2)]
    for seed, log in enumerate(logs):
        simulate(robot, arm_parameters(robot), seed, samples=300).to_csv(log, index=False)
    monkeypatch.chdir(folder)
    if path is not None:  # as in an interactive Python
        monkeypatch.setattr(sys, "path", [path, *sys.path])
    importlib.invalidate_caches()
    reduced = feasid.reduce(logs, robot=robot, workers=2)
    assert reduced.samples > 0
    assert not mark.exists()


def test_a_search_starts_the_same_workers():
    from feasid.excitation import parallel_search

    assert parallel_search.start_worker is start_worker


def test_no_other_module_starts_python():
    starts = [p for p in (ROOT / "feasid").rglob("*.py") if "sys.executable" in p.read_text()]
    assert [p.name for p in starts] == ["parallel.py"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs the action's bash")
@pytest.mark.parametrize("script", STEPS, ids=["install", "check"])
def test_the_action_imports_nothing_of_the_checkout(trapped, tmp_path, script):
    folder, mark = trapped
    (folder / "arm.urdf").write_text(ARM)
    run(script, folder, tmp_path)
    assert not mark.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs the action's bash")
def test_the_action_writes_nothing_into_the_checkout(tmp_path):
    """A link of the checkout may lead anywhere; what the runner uploads stands elsewhere."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "arm.urdf").write_text(ARM)
    for name in ("true", "feasid.sarif"):
        (checkout / name).symlink_to(tmp_path / "secret")
    run(STEPS[1], checkout, tmp_path, FEASID_SARIF="true")
    assert sorted(p.name for p in checkout.iterdir()) == ["arm.urdf", "feasid.sarif", "true"]
    assert not (tmp_path / "secret").exists()
    assert '"version": "2.1.0"' in (tmp_path / "runner" / "feasid.sarif").read_text()


def run(script, folder, tmp_path, **inputs):
    """Run a step of the action as it stands, with what its first step would have installed."""
    installed = tmp_path / "runner" / "feasid"
    installed.mkdir(parents=True, exist_ok=True)
    packages = [ROOT / "feasid", Path(np.__file__).parent]
    packages += Path(np.__file__).parent.parent.glob("numpy.libs")
    for package in packages:
        (installed / package.name).symlink_to(package)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "FEASID_PYTHON": str(Path(sys.base_prefix) / f"bin/python3.{sys.version_info.minor}"),
        "FEASID_SOURCE": str(tmp_path / "nothing to install"),
        "FEASID_FILES": "*.urdf",
        "FEASID_STRICT": "false",
        "FEASID_SARIF": "",
        **inputs,
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True
    )
