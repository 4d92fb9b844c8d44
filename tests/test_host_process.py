"""Many fits at once in one host: the same bits as one alone, and the host as it was."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from logs import arm_and_log

import feasid
from feasid.core.threads import one_thread

AT_ONCE = 16


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    return folder, *arm_and_log(folder, 250, 0.02)


def bits(fit):
    return fit.solution.delta.tobytes() + fit.covariance.tobytes()


def limits():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    pools = (x for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas")
    return sorted((x["filepath"], x["num_threads"]) for x in pools)


@pytest.mark.slow
def test_sixteen_fits_at_once_in_threads_give_the_bits_of_one(case):
    _, robot, log = case
    threadpoolctl = pytest.importorskip("threadpoolctl")
    alone = bits(feasid.fit(log, robot, diagnose=False))
    with threadpoolctl.threadpool_limits(3):
        before = limits()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            fits = pool.map(lambda _: bits(feasid.fit(log, robot, diagnose=False)), range(AT_ONCE))
            assert {*fits} == {alone}
        assert limits() == before


FIT = """
import hashlib, sys, feasid
fit = feasid.fit("log.csv", "arm.urdf", diagnose=False)
print(hashlib.sha256(fit.solution.delta.tobytes() + fit.covariance.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_sixteen_fits_at_once_in_processes_give_the_bits_of_one(case):
    order = [sys.executable, "-c", FIT]
    settings = {"cwd": case[0], "stdout": subprocess.PIPE, "text": True}
    alone = subprocess.run(order, **settings, check=True).stdout
    crowd = [subprocess.Popen(order, **settings) for _ in range(AT_ONCE)]
    assert {process.communicate()[0] for process in crowd} == {alone}


READ = """
import os, feasid, pandas as pd
pd.read_csv("log.csv").to_parquet("log.parquet")
before = len(os.listdir("/proc/self/task"))
store = feasid.LogStore("store", "arm.urdf")
store.add("log.parquet", "a"), store.table, store.logs("a")
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux counts threads")
def test_files_of_arrow_are_read_without_threads(case):
    """One that still started when its process ended aborted it, with status 134."""
    assert subprocess.check_output([sys.executable, "-c", READ], cwd=case[0]) == b"0\n"


def test_a_thread_that_outlives_the_one_that_set_the_limit_leaves_none():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    np.linalg.qr(np.eye(3))
    with threadpoolctl.threadpool_limits(4):
        before = limits()
        first, second = threading.Event(), threading.Event()

        def outlive():
            with one_thread():
                first.set()
                second.wait()

        thread = threading.Thread(target=outlive)
        with one_thread():
            thread.start()
            first.wait()
            with one_thread():
                pass
            assert {n for _, n in limits()} == {1}
        second.set()
        thread.join()
        assert limits() == before
