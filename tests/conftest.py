"""Before NumPy is loaded: one BLAS thread, as on the command line."""

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
