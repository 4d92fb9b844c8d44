"""Workers that die, scripts without a guard, interruptions and what is kept of them."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import read_arm

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, LogError
from feasid.identification.regression.parallel import run_jobs
from feasid.identification.regression.triangle import Reduced

posix = pytest.mark.skipif(os.name != "posix", reason="signals")

JOBS = """
import os, pathlib, time
def job(log):
    if log == "deadly":
        os._exit(9)
    if log.startswith("once:"):
        mark = pathlib.Path(log[5:])
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
    if log.startswith("write:"):
        pathlib.Path(log[6:]).write_text(str(os.getpid()))
        time.sleep(60)
    print("what is printed is no answer")
    return log.upper()
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "jobs_of_a_test.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    import jobs_of_a_test

    return jobs_of_a_test.job


@pytest.mark.slow
def test_a_worker_that_dies_costs_one_log_and_is_tried_again(job, tmp_path):
    logs = ["a", "deadly", f"once:{tmp_path / 'mark'}", *"bcdef"]
    found = dict(run_jobs(job, logs, 2))
    assert sorted(found) == list(range(len(logs)))
    assert isinstance(found[1], LogError)
    assert "died 2 times (exit status 9)" in str(found[1])
    others = [k for k in range(len(logs)) if k != 1]
    assert [found[k] for k in others] == [logs[k].upper() for k in others]


def test_what_cannot_be_sent_is_named(job):
    found = dict(run_jobs(job, [lambda: 0, "a"], 2))
    assert "cannot be given to a worker process" in str(found[0])
    assert found[1] == "A"


@posix
def test_no_worker_outlives_its_reader(job, tmp_path):
    marks = [tmp_path / f"pid{k}" for k in range(2)]
    running = run_jobs(job, ["a", *(f"write:{m}" for m in marks)], 2)
    next(running)
    while not all(m.exists() and m.read_text() for m in marks):
        time.sleep(0.02)
    running.close()
    for mark in marks:
        with pytest.raises(ProcessLookupError):
            os.kill(int(mark.read_text()), 0)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A robot's file and six short logs, two folders of equal names among them."""
    folder = tmp_path_factory.mktemp("logs")
    robot = read_arm(folder).with_joint_terms()
    names = []
    for k in range(6):
        name = folder / f"d{k % 2}" / f"log{k // 2}.csv"
        name.parent.mkdir(exist_ok=True)
        log = simulate(robot, arm_parameters(robot), k, samples=300, noise=0.02)
        log.to_csv(name, index=False)
        names.append(str(name.relative_to(folder)))
    return folder, names


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(case, tmp_path):
    folder, names = case
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, feasid
            os.chdir({str(folder)!r})
            print("begun")
            total = feasid.reduce({names!r}, "arm.urdf", workers=2, cutoff=False)
            print(total.samples)
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout.split() == ["begun", "1800"]
    assert done.stderr == ""


def test_logs_are_told_apart_by_content_not_by_name(case, monkeypatch):
    folder, names = case
    monkeypatch.chdir(folder)
    order = ["--robot", "arm.urdf", "--cutoff", "no", "--out"]
    assert main(["reduce", *names, *order, "all.reduced"]) == 0
    assert main(["reduce", *names[::2], *order, "some.reduced"]) == 0  # log0, log1, log2 of d0
    assert main(["reduce", *names, *order, "some.reduced", "--resume"]) == 0
    resumed, whole = Reduced.load("some.reduced"), Reduced.load("all.reduced")
    assert resumed.samples == whole.samples == 1800
    assert sorted(resumed.digests) == sorted(whole.digests)
    before = (folder / "some.reduced").read_bytes()
    assert main(["reduce", *names, *order, "some.reduced", "--resume"]) == 0
    assert (folder / "some.reduced").read_bytes() == before
    assert not list(folder.glob("*.parts"))


def test_a_log_given_twice_is_refused(case, monkeypatch):
    folder, names = case
    monkeypatch.chdir(folder)
    d, e = (pd.read_csv(n) for n in names[:2])
    with pytest.raises(InputError, match=r"log 2 is in log 1 already.*twice"):
        feasid.fit([d, d.copy()], "arm.urdf")
    with pytest.raises(InputError, match=r"log 3 \(d0/log0.csv\) is in log 1"):
        feasid.reduce([names[0], names[1], names[0]], "arm.urdf")
    total = feasid.reduce(names[:2], "arm.urdf", cutoff=False)
    with pytest.raises(InputError, match="is in log 1 already"):
        feasid.reduce([total, names[1]], "arm.urdf", cutoff=False)
    with pytest.raises(InputError, match="is in log 1 already"):
        feasid.reduce([total, total], "arm.urdf", cutoff=False)
    assert feasid.reduce([d, e], "arm.urdf", cutoff=False).samples == 600


@pytest.mark.slow
@posix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_finished_logs_and_resuming_gives_the_same_bits(case, tmp_path, workers):
    folder, names = case
    out = tmp_path / "all.reduced"
    order = [sys.executable, "-m", "feasid", "reduce", *names, "--robot", "arm.urdf",
             "--cutoff", "no", "--workers", workers, "--out"]  # fmt: skip
    subprocess.run([*order, tmp_path / "whole.reduced"], cwd=folder, check=True)
    process = subprocess.Popen([*order, out], cwd=folder, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / "all.reduced.parts"
    while not (parts.exists() and list(parts.glob("*.part"))):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    if process.returncode == 130:  # else it was done before the signal came
        assert "finished log(s) are kept in" in said
        assert "interrupted; nothing was written" in said
        assert not out.exists()
        assert list(parts.glob("*.part"))
    else:
        out.unlink()
    subprocess.run([*order, out, "--resume"], cwd=folder, check=True)
    a, b = Reduced.load(out), Reduced.load(tmp_path / "whole.reduced")
    assert a.digests == b.digests
    assert a.samples == b.samples
    for x, y in zip(a.triangles, b.triangles, strict=True):
        np.testing.assert_array_equal(x, y)
    assert out.read_bytes() == (tmp_path / "whole.reduced").read_bytes()
    assert not parts.exists()
