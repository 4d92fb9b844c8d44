"""What lies in the folder of the logs or of a checkout is never executed."""

import importlib
import sys
from pathlib import Path

import pytest
from action import STEPS, run_step
from logs import arm_parameters, simulate
from robots import ARM, read_arm

import feasid
from feasid.identification.regression.parallel import start_worker
from feasid.robot.formats.usd.read import open_layer

ROOT = Path(__file__).parents[2]
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
    from feasid.applications.excitation import parallel_search

    assert parallel_search.start_worker is start_worker


def test_no_other_module_starts_python():
    starts = [p for p in (ROOT / "feasid").rglob("*.py") if "sys.executable" in p.read_text()]
    assert {p.name for p in starts} == {"parallel.py", "read.py"}
    assert all('[sys.executable, "-P", ' in p.read_text() for p in starts)


def test_a_binary_layer_is_tried_with_nothing_of_the_working_folder(trapped, monkeypatch):
    folder, mark = trapped
    pytest.importorskip("pxr.Sdf").Layer.CreateNew(str(folder / "empty.usdc")).Save()
    (folder / "pxr.py").write_text(TRAP.format(mark=str(mark)))
    monkeypatch.chdir(folder)
    open_layer((folder / "empty.usdc").read_bytes(), "empty.usdc")
    assert not mark.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs the action's bash")
@pytest.mark.parametrize("script", STEPS, ids=["install", "check"])
def test_the_action_imports_nothing_of_the_checkout(trapped, tmp_path, script):
    folder, mark = trapped
    (folder / "arm.urdf").write_text(ARM)
    run_step(script, folder, tmp_path)
    assert not mark.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs the action's bash")
def test_the_action_writes_nothing_into_the_checkout(tmp_path):
    """A link of the checkout may lead anywhere; what the runner uploads stands elsewhere."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "arm.urdf").write_text(ARM)
    for name in ("true", "feasid.sarif"):
        (checkout / name).symlink_to(tmp_path / "secret")
    run_step(STEPS[1], checkout, tmp_path, FEASID_SARIF="true")
    assert sorted(p.name for p in checkout.iterdir()) == ["arm.urdf", "feasid.sarif", "true"]
    assert not (tmp_path / "secret").exists()
    assert '"version": "2.1.0"' in (tmp_path / "runner" / "feasid.sarif").read_text()
