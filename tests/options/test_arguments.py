"""Every argument of everything public with bad values: refused by name, or on a list."""

import inspect
import itertools
import signal
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from arms import ur5
from public_calls import Subjects, bad_values, calls, parameters, public_callables, spoilt

import feasid
from feasid.core.errors import FeasidError, LimitError

TIMERS = {signal.SIGPROF: (signal.ITIMER_PROF, 60), signal.SIGALRM: (signal.ITIMER_REAL, 600)}
"""Seconds of processor time after which a call counts as hanging, and on the clock; none takes a
tenth of them when it works."""

SAMPLED = 200
"""Cases of the default suite."""

LEAST = 60_000
"""Cases of the whole, so that nothing is lost unseen."""


class HangError(BaseException):
    """A call took too long."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    return Subjects(tmp_path_factory.mktemp("subjects"))


def alarm(*_):
    raise HangError


def show(result):
    """What a console and a notebook ask of a result."""
    repr(result)
    for name in ("_repr_html_", "summary", "to_dict"):
        if hasattr(result, name) and not isinstance(result, type | pd.DataFrame | pd.Series):
            getattr(result, name)()


def outcome(function, given, name, value):
    """How a call ends with one bad argument: "refused", "accepted", or what went wrong."""
    for number, (timer, seconds) in TIMERS.items():
        signal.signal(number, alarm)
        signal.setitimer(timer, seconds)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = function(**{**given, name: value})
            if inspect.isgenerator(result):
                list(itertools.islice(result, 2))
            show(result)
        return "accepted"
    except FeasidError:
        return "refused"
    except (TypeError, ValueError) as error:
        return "refused" if name in str(error) else f"raw {type(error).__name__}: {error}"
    except HangError:
        return "hang"
    except BaseException as error:
        return f"raw {type(error).__name__}: {error}"
    finally:
        for timer, _ in TIMERS.values():
            signal.setitimer(timer, 0)


def cases(subjects):
    """(callable's name, parameter, value's name) of all cases."""
    for name, call in calls(subjects).items():
        function, given = call()
        for parameter in parameters(function, given):
            for value in (*bad_values(), *spoilt(given.get(parameter))):
                yield name, parameter, value


def run(subjects, chosen):
    """Outcomes of cases."""
    known = calls(subjects)
    out = {}
    for name, parameter, value in chosen:
        function, given = known[name]()
        values = bad_values() | spoilt(given.get(parameter))
        out[name, parameter, value] = outcome(function, given, parameter, values[value])
    return out


OF_THE_ESTIMATOR = (
    "GaussianPrior", "Prior", "Reduced.from_bytes",
)  # fmt: skip
"""Methods that the estimator calls with its own problem, or that read an open file."""

NEVER = (
    *("10**5000", "1j", "Odd", "complex array", "date array", "masked", "object array", "date"),
    *("its complex", "its masked", "its texts"),
)
"""Values that no argument accepts unless its annotation leaves it to the function (`Any`)."""


def left_to_the_function(function, parameter):
    """Whether an argument's annotation says nothing about its kind."""
    said = inspect.signature(function).parameters.get(parameter)
    return said is None or "Any" in str(said.annotation) or said.annotation is said.empty


OF_THE_CALLER = ("optimiser", "progress", "each", "objectives")
"""Functions of the caller, whose own errors reach the caller; the value "class" is one that fails
when it is called."""


CALLED = {(name, "class") for name in OF_THE_CALLER}


def judge(subjects, outcomes):
    """Cases that ended as none may."""
    known = calls(subjects)
    outcomes = {c: end for c, end in outcomes.items() if c[1:] not in CALLED}
    wrong = {case: end for case, end in outcomes.items() if end.startswith("raw") or end == "hang"}
    for (name, parameter, value), end in outcomes.items():
        function = known[name]()[0]
        if end == "accepted" and value in NEVER and not left_to_the_function(function, parameter):
            wrong[name, parameter, value] = end
    return wrong


def test_everything_public_has_a_good_call(subjects):
    left = {name for name in public_callables() if not name.startswith(OF_THE_ESTIMATOR)}
    assert left - set(calls(subjects)) == set()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a bad path may write."""
    monkeypatch.chdir(tmp_path)


def test_bad_arguments_are_refused_by_name_sampled(subjects, folder):
    every = list(cases(subjects))
    chosen = np.random.default_rng(0).choice(len(every), SAMPLED, replace=False)
    assert judge(subjects, run(subjects, [every[k] for k in chosen])) == {}


@pytest.mark.slow
def test_bad_arguments_are_refused_by_name(subjects, folder, pytestconfig, capsys):
    """All of them, or as many as ``--calls`` says, from number ``--first`` on."""
    every = list(cases(subjects))
    assert len(every) >= LEAST
    first = pytestconfig.getoption("first", 0)
    count = pytestconfig.getoption("calls", None) or len(every)
    outcomes = run(subjects, every[first : first + count])
    wrong = judge(subjects, outcomes)
    with capsys.disabled():
        kinds = Counter(end.split(":")[0] for end in outcomes.values())
        print(
            f"\n{len(outcomes)} of {len(every)} calls from {first}: {dict(kinds)}",
            *wrong.items(),
            sep="\n",
        )
    assert wrong == {}


def test_arrays_beyond_the_memory_are_refused():
    """Broadcast arrays ask for gigabytes only when something is computed of them."""
    robot = ur5()
    huge = np.broadcast_to(0.5, (10**14, robot.dof))  # petabytes, which no machine gives
    for function in (feasid.inverse_dynamics, feasid.regressor):
        with pytest.raises(LimitError, match="more memory than there is"):
            function(robot, huge, huge, huge)
