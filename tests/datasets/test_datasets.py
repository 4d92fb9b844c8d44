"""The datasets load, fit their robots, and are what their conversion scripts make."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import feasid
from feasid import datasets
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.logs.frame import prepare

RECORDED = ["unitree_z1", "kuka_lwr4", "staubli_tx40", "kinova_gen3", "double_pendulum", "so101"]
RECORDED += ["ur3", "ur5"]
ROOT = Path(__file__).parents[2]
PROVENANCE = ROOT / "datasets" / "PROVENANCE.md"
MOST_BYTES_IN_WHEEL = 700_000  # one real log with its robot, and published tables


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_logs_keep_the_contract(name):
    df = datasets.load(name)
    robot = df.attrs["robot"]
    motion = prepare(df, robot, **df.attrs["options"])
    assert motion.coordinates == robot.joints
    assert motion.samples > 0.8 * len(df)
    assert all(np.isfinite(run.tau).all() for run in motion.runs)


def test_the_robot_survives_selecting_a_run():
    df = datasets.load("kuka_lwr4")
    first = df[df.run == "measurement_1"]
    assert first.attrs["robot"].dof == 7
    assert len(prepare(first, first.attrs["robot"]).runs) == 1


def test_z1_torque_is_the_command_of_its_arm_joints():
    df = datasets.load("unitree_z1")
    assert [c for c in df if c.startswith("tau")] == [f"tau_joint{k}" for k in range(1, 7)]
    assert df.attrs["robot"].dof == 6


def test_every_file_of_data_has_a_line_with_its_holder_and_the_text_of_its_licence():
    rows = re.findall(r"^\| `(.*)` \|.*\| (.+) \| (.+) \| `(.*)` \|$", PROVENANCE.read_text(), re.M)
    for _, holder, licence, text in rows:
        assert "" not in (holder.strip(), licence.strip())
        assert "opyright" in (ROOT / text).read_text() or "CC0" in licence
    places = [*(ROOT / "datasets").glob("*/*"), *(ROOT / "feasid" / "datasets").rglob("*")]
    data = {
        str(p.relative_to(ROOT)) for p in places if p.suffix in (".gz", ".urdf", ".json", ".csv")
    }
    assert {row[0] for row in rows} == data


def test_unknown_and_absent_datasets_say_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="did you mean 'unitree_z1'"):
        datasets.load("unitree_z")
    absent = datasets.Recorded(tmp_path / "gone", ("a.csv",), "a.urdf", "nowhere", "LGPL-3.0")
    monkeypatch.setitem(datasets.DATASETS, "gone", absent)
    with pytest.raises(InputError, match=r"LGPL-3\.0.*gone, since.*repository"):
        datasets.load("gone")


README_COMMANDS = [
    pytest.param(words[1:], id=f"{page.parent.name}-{words[1]}")
    for page in sorted(ROOT.glob("datasets/*/README.md"))
    for line in page.read_text().replace("\\\n", " ").splitlines()
    if line.startswith("    feasid ") and (words := shlex.split(line))
]


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("words", README_COMMANDS)
def test_commands_beside_a_log_succeed(words, here):
    (here / "datasets").symlink_to(ROOT / "datasets")
    assert main(words) in (0, 1)  # found something wrong with the log


def test_what_is_in_the_wheel_is_small_and_free():
    files = [p for p in datasets.HERE.rglob("*") if p.is_file() and p.suffix != ".pyc"]
    assert sum(p.stat().st_size for p in files) < MOST_BYTES_IN_WHEEL
    assert not any("kuka" in str(p.relative_to(datasets.HERE)) for p in files)
    for p in files:
        if p.name.startswith("LICENSE"):
            assert "BSD" in p.read_text() or "CC0" in p.read_text()


LOAD = "import feasid; print(feasid.__file__); print(len(feasid.datasets.load('double_pendulum')))"


def test_an_installed_package_has_the_data_of_the_clone_that_it_runs_in(tmp_path):
    """As after `pip install .`; beside it lies another package that is named datasets."""
    site, script = tmp_path / "site", tmp_path / "script.py"
    shutil.copytree(datasets.HERE.parent, site / "feasid", ignore=lambda *_: ["__pycache__"])
    (site / "datasets").mkdir()
    script.write_text(LOAD)

    def run(folder):
        return subprocess.run(
            [sys.executable, str(script)],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    for folder in (ROOT, ROOT / "examples"):
        place, rows = run(folder).stdout.split()
        assert Path(place).is_relative_to(site)
        assert int(rows) == len(datasets.load("double_pendulum"))
    elsewhere = run(tmp_path)
    assert elsewhere.returncode == 1
    assert "clone feasid's repository" in elsewhere.stderr
    assert "run inside the clone" in elsewhere.stderr


def test_conversion_script_writes_the_contract(tmp_path):
    rng = np.random.default_rng(5)
    source, target = tmp_path / "up.npz", tmp_path / "log.csv.gz"
    arrays = {k: rng.normal(size=(9, 7)) for k in ("positions", "velocities", "torques")}
    np.savez(source, times=1.4e9 + 0.005 * np.arange(9), **arrays)
    script = datasets.CHECKOUT / "kuka_lwr4" / "convert.py"
    subprocess.run([sys.executable, script, source, target], check=True)
    lines = gzip.decompress(target.read_bytes()).decode().splitlines()
    assert lines[0].split(",")[:2] == ["t", "q_lwr_0_joint"]
    written = np.array([line.split(",") for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(written[:, 1:], np.hstack([*arrays.values()]), rtol=1e-8)


def test_tx40_from_its_motors_with_a_coupled_wrist():
    df = datasets.load("staubli_tx40")
    half = len(df) // 2
    fit = feasid.fit(df.iloc[:half], diagnose=False, **df.attrs["options"])
    other = fit.errors(df.iloc[half:])
    assert fit.relative_error["all"] < 0.06
    assert other["all"] < 0.13
    assert fit.joint_terms.loc["wrist_motor"][["Ia", "fv", "fc"]].gt(0).all()


@pytest.mark.slow
def test_kinova_lacks_a_payload():
    diagnosis = feasid.diagnose(datasets.load("kinova_gen3"))
    assert not diagnosis.errors
    assert "lacks" in next(f for f in diagnosis if f.code == "payload").message


@pytest.mark.slow
def test_kuka_has_no_mistake():
    """What its third joint leaves follows the position, which is told; nothing is to be mended."""
    df = datasets.load("kuka_lwr4")
    for label in ("measurement_1", "measurement_2"):
        found = feasid.diagnose(df[df.run == label])
        assert not found.errors
        assert not found.options
