"""Every argument of everything public with sixty bad values: refused by name, or on a list."""

import inspect
import itertools
import signal
import warnings

import numpy as np
import pytest
from public_calls import Subjects, bad_values, calls, parameters

from feasid.errors import FeasidError

TIME_LIMIT = 60
"""Seconds after which a call counts as hanging; none takes a tenth of it when it works."""

SAMPLED = 700
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
        known_path = given.get("path")
        if known_path is not None and "new" in str(known_path):
            given["path"] = subjects.new(known_path.suffix)
        out[name, parameter, value] = outcome(function, given, parameter, bad_values()[value])
    return out
