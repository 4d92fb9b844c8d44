"""Every argument of everything public with sixty bad values: refused by name, or on a list."""

import inspect
import itertools
import signal
import warnings

import numpy as np
import pytest
from public_calls import Subjects, bad_values, calls, parameters, public_callables

from feasid.errors import FeasidError

TIME_LIMIT = 60
"""Seconds after which a call counts as hanging; none takes a tenth of it when it works."""

SAMPLED = 200
"""Cases of the default suite."""


class HangError(BaseException):
    """A call took too long."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    return Subjects(tmp_path_factory.mktemp("subjects"))


def alarm(*_):
    raise HangError


def outcome(function, given, name, value):
    """How a call ends with one bad argument: "refused", "accepted", or what went wrong."""
    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(TIME_LIMIT)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = function(**{**given, name: value})
            if inspect.isgenerator(result):
                list(itertools.islice(result, 2))
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
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def cases(subjects):
    """(callable's name, parameter, value's name) of all cases."""
    for name, call in calls(subjects).items():
        function, given = call()
        for parameter in parameters(function, given):
            for value in bad_values():
                yield name, parameter, value


def run(subjects, chosen):
    """Outcomes of cases."""
    known = calls(subjects)
    out = {}
    for name, parameter, value in chosen:
        function, given = known[name]()
        given = {k: v for k, v in given.items() if k != parameter}
        out[name, parameter, value] = outcome(function, given, parameter, bad_values()[value])
    return out


RESULTS = (
    "BaseParameters", "Comparison", "Correction", "Diagnosis", "ExcitationProblem",
    "Finding", "Fit", "Fleet", "ControllerPayload", "OnlineEstimate", "Payload", "Replay", "Range",
    "ContactEstimate", "ParameterRanges", "Reduced", "FileCheck", "FileCorrection", "Samples",
    "Simulation", "TorqueConstants",
    "Trajectory", "Verdict",
)  # fmt: skip
"""Constructors that are not called: plain records, which functions fill with what they computed."""

OF_THE_ESTIMATOR = (
    "GaussianPrior", "Prior", "Payload.from_fit", "Reduced.from_file",
)  # fmt: skip
"""Methods that the estimator calls with its own problem, or that read an open file."""

NEVER = ("10**5000", "1j", "Odd", "complex array", "date array", "masked", "object array", "date")
"""Values that no argument accepts unless its annotation leaves it to the function (`Any`)."""


def left_to_the_function(function, parameter):
    """Whether an argument's annotation says nothing about its kind."""
    said = inspect.signature(function).parameters.get(parameter)
    return said is None or "Any" in str(said.annotation) or said.annotation is said.empty


OF_THE_CALLER = ("optimiser", "progress", "each")
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
    left = {
        name
        for name in public_callables()
        if name not in RESULTS and not name.startswith(OF_THE_ESTIMATOR)
    }
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
def test_bad_arguments_are_refused_by_name(subjects, folder):
    every = list(cases(subjects))
    assert len(every) >= 40_000
    assert judge(subjects, run(subjects, every)) == {}
