"""Searches on several cores: the same motion, and nothing but a note when one of them dies."""

import subprocess
import sys
import threading
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
import pytest

import feasid
from feasid.applications.excitation import excite as excite_module
from feasid.applications.excitation import parallel_search

LIMITS = {"position": 1.0, "velocity": 2.0, "acceleration": 10.0}
FAST = {"starts": 1, "rounds": 2, "harmonics": 1, "time_limit": 300.0, **LIMITS}

SCRIPT = """
import feasid
robot = feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0), (1.0, 0.3, 0.2, 0)])
motion = feasid.excite(robot, 5.0, position=1.0, velocity=2.0, acceleration=10.0, harmonics=1,
                       starts=1, rounds=2, workers=2, time_limit=300.0)
print(repr(motion.certificate.log_det))
"""


@pytest.fixture(scope="module")
def robot():
    return feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0), (1.0, 0.3, 0.2, 0)])


@pytest.fixture(scope="module")
def alone(robot):
    return feasid.excite(robot, 5.0, **FAST)


@pytest.mark.slow
def test_workers_find_the_same_motion_in_a_script_without_main_guard(alone, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) == alone.certificate.log_det
    assert done.stderr == ""


@pytest.mark.slow
def test_searches_differ_and_the_best_comes_first(robot, monkeypatch):
    seen = []
    together = parallel_search._combine_results

    def watched(results):
        seen.append((results, together(results)))
        return seen[-1][1]

    monkeypatch.setattr(parallel_search, "_combine_results", watched)
    feasid.excite(robot, 5.0, **FAST)
    [(results, found)] = seen
    values = [one.value for one in results]
    assert len(set(values)) == 2
    assert found.candidates[0] is results[int(np.argmin(values))].candidates[0]
    assert len(found.candidates) == sum(len(one.candidates) for one in results)


def python(code):
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe)


def test_a_dead_process_loses_only_its_own_lane(robot, monkeypatch):
    monkeypatch.setattr(parallel_search, "start_worker", lambda job: python("pass"))
    motion = feasid.excite(robot, 5.0, workers=2, **FAST)
    assert motion.certificate.limits_hold
    assert "1 of 2 processes died or did not end: what they found is lost" in motion.notes


@pytest.mark.slow
def test_a_process_that_does_not_end_is_given_up(robot, monkeypatch):
    process = python("import time; time.sleep(600)")
    monkeypatch.setattr(parallel_search, "start_worker", lambda job: process)
    monkeypatch.setattr(parallel_search, "PROCESS_GRACE", -299.0)
    motion = feasid.excite(robot, 5.0, workers=2, **FAST)
    assert any("did not end" in note for note in motion.notes)
    assert process.poll() is not None


def test_interruption_ends_all_processes(robot, monkeypatch):
    born = []
    start = parallel_search.start_worker
    monkeypatch.setattr(
        parallel_search, "start_worker", lambda job: born.append(start(job)) or born[-1]
    )
    stop = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(excite_module, "step", lambda _: nullcontext(stop))
    before = threading.active_count()
    motion = feasid.excite(robot, 5.0, workers=2, **FAST)
    assert motion.certificate.limits_hold
    assert any("interrupted" in note for note in motion.notes)
    assert not any("died" in note for note in motion.notes)
    assert [process.poll() is not None for process in born] == [True]
    assert threading.active_count() == before
