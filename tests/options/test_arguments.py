"""Every argument of everything public with bad values: refused by name, or on a list."""

import numpy as np
import pytest
from arms import ur5

import feasid
from benchmarks.bad_arguments import cases, judge, run
from benchmarks.public_calls import Subjects, calls, public_callables
from feasid.core.errors import LimitError

SAMPLED = 200
"""Cases of a run; `python -m benchmarks.bad_arguments` makes all of them."""

LEAST = 60_000
"""Cases of the whole, so that nothing is lost unseen."""

OF_THE_ESTIMATOR = ("GaussianPrior", "Prior", "Reduced.from_bytes")
"""Methods that the estimator calls with its own problem, or that read an open file."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    return Subjects(tmp_path_factory.mktemp("subjects"))


def test_everything_public_has_a_good_call(subjects):
    names = {name for name in public_callables() if not name.startswith(OF_THE_ESTIMATOR)}
    assert names - set(calls(subjects)) == set()


def test_bad_arguments_are_refused_by_name(subjects, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a bad path may write
    every = list(cases(subjects))
    assert len(every) >= LEAST
    drawn = np.random.default_rng(0).choice(len(every), SAMPLED, replace=False)
    assert judge(subjects, run(subjects, [every[k] for k in drawn])) == {}


def test_arrays_beyond_the_memory_are_refused():
    """Broadcast arrays ask for gigabytes only when something is computed of them."""
    robot = ur5()
    huge = np.broadcast_to(0.5, (10**14, robot.dof))  # petabytes, which no machine gives
    for function in (feasid.inverse_dynamics, feasid.regressor):
        with pytest.raises(LimitError, match="more memory than there is"):
            function(robot, huge, huge, huge)
