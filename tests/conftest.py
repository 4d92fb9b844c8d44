"""Before NumPy is loaded: one BLAS thread, as on the command line."""

import os
import random
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from feasid.core.threads import limit_before_numpy
from tests.costs import BUDGET, left_out

limit_before_numpy()


settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")  # how long an example takes is no property of the code


OPTIONAL = {
    *("dask", "distributed", "example-robot-data", "flint", "gymnasium", "h5py", "importlinter"),
    *("jinja2", "pxr"),
    *("matplotlib", "mujoco", "nbclient", "pinocchio", "polars", "pyarrow", "rosbags"),
}
"""Modules and distributions without which tests are skipped instead of collection stopping."""


def pytest_addoption(parser):
    """Where the cost of each test is noted."""
    parser.addoption("--costs", help="add the processor time of each test to this file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note what a test costs where it is asked for."""
    start = sum(os.times()[:4])  # processor time, of processes that it waited for, too
    done = yield
    if path := item.config.getoption("--costs"):
        with Path(path).open("a") as file:
            file.write(f"{sum(os.times()[:4]) - start:.2f} {item.nodeid}\n")
    return done


QUICK = (
    *("codegen", "control", "options", "robot", "test_structure.py"),
    *("dynamics/test_energy.py", "dynamics/test_regressor.py", "dynamics/test_coupled.py"),
    *("feasibility/test_cone.py", "feasibility/test_problems.py", "feasibility/test_sets.py"),
    *("formats/test_sources.py", "formats/test_urdf.py", "identifiability/test_nullspace.py"),
    *("identification/test_bad_input.py", "identification/test_statistics.py"),
    *("logs/test_frame.py", "read/test_readers.py", "regression/test_regression.py"),
)
"""Folders and files of tests that are quick: the mark needs nothing more."""


SLOW_EXAMPLES = (
    "feasid.results.fit.Fit.sample",
    "feasid.applications.control.external_torque.ExternalTorque",
)
"""Examples in docstrings that fit a real log, as examples on pages of the documentation do."""


def pytest_collection_modifyitems(config, items):
    """Mark what is quick by where it is, and what this run's draw of cases leaves out as slow."""
    for item in [*drawn_out(config, items)]:
        item.add_marker(pytest.mark.slow)
    for item in items:
        if item.nodeid.endswith(SLOW_EXAMPLES):
            item.add_marker(pytest.mark.slow)
        slow = item.get_closest_marker("slow")
        if not slow and is_quick(item.path):
            item.add_marker(pytest.mark.quick)


@cache
def is_quick(path):
    """Whether a file's tests are quick."""
    return any(path.is_relative_to(Path(__file__).parent / place) for place in QUICK)


def drawn_out(config, items):
    """Cases of tests marked `sampled` beyond their share, drawn by the seed of the run's order.

    Of tests with ``of="file"`` the share is of all cases in the file that are marked so. A case
    that is named on the command line always runs, ``-m slow`` runs all of them.
    """
    seed = getattr(config.option, "randomly_seed", 0)
    every = config.option.markexpr == "slow"  # which runs what any draw leaves out
    if not any(word.endswith(".py") or "::" in word for word in config.args):
        often = [item for item in items if not item.get_closest_marker("slow")]
        yield from left_out(often, seed, 0 if every else BUDGET)
    cases = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        slow = item.get_closest_marker("slow")
        if marker and not slow and not any("::" in word for word in config.args):
            name = item.nodeid.split("::" if marker.kwargs.get("of") == "file" else "[")[0]
            cases.setdefault((name, marker.args[0]), []).append(item)
    for (name, share), all_cases in cases.items():
        kept = 0 if every else max(1, round(share * len(all_cases)))
        yield from random.Random(f"{seed} {name}").sample(all_cases, len(all_cases) - kept)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A working folder of its own: MuJoCo writes its warnings to a log there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("log"))
        yield


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The test's folder, which is the working folder, too."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A test module that needs an absent optional wheel is skipped, and says which."""
    report = yield
    error = report.call.excinfo.value if report.call.excinfo else None
    if not isinstance(error, ImportError):
        error = getattr(error, "__cause__", None)
    missing = getattr(error, "name", "")
    if report.failed and str(missing).split(".")[0] in OPTIONAL:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {missing} is not installed")
    return report
