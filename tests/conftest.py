"""Before NumPy is loaded: one BLAS thread, as on the command line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from feasid.core.threads import limit_before_numpy

limit_before_numpy()


settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")  # how long an example takes is no property of the code


OPTIONAL = {
    *("dask", "distributed", "example-robot-data", "flint", "gymnasium", "importlinter", "jinja2"),
    *("matplotlib", "mujoco", "nbclient", "pinocchio", "polars", "pyarrow", "rich", "rosbags"),
}
"""Modules and distributions without which tests are skipped instead of collection stopping."""


QUICK = (
    *("codegen", "control", "options", "robot", "test_structure.py"),
    *("dynamics/test_energy.py", "dynamics/test_regressor.py", "dynamics/test_coupled.py"),
    *("feasibility/test_cone.py", "feasibility/test_problems.py", "feasibility/test_sets.py"),
    *("formats/test_sources.py", "formats/test_urdf.py", "identifiability/test_nullspace.py"),
    *("identification/test_bad_input.py", "identification/test_statistics.py"),
    *("logs/test_frame.py", "logs/test_readers.py", "reduction/test_reduction.py"),
)
"""Folders and files of tests that are quick: the mark needs nothing more."""


def pytest_collection_modifyitems(items):
    """Mark what is quick by where it is."""
    here = Path(__file__).parent
    for item in items:
        slow = item.get_closest_marker("slow")
        if not slow and any(item.path.is_relative_to(here / place) for place in QUICK):
            item.add_marker(pytest.mark.quick)


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
