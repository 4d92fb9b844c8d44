"""Every argument of everything public with bad values: refused by name, or accepted with a reason.

    PYTHONPATH=.:tests python -m benchmarks.bad_arguments [--calls 60000] [--first 0]

Prints how the calls end, and each that ends as none may: in an error that is not the package's and
does not name the argument, in an endless search, or in a result of what no argument can be.
"""

import argparse
import inspect
import itertools
import os
import signal
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import feasid
from benchmarks.public_calls import Subjects, bad_values, calls, parameters, spoilt
from feasid.core.errors import FeasidError

TIMERS = {signal.SIGPROF: (signal.ITIMER_PROF, 60), signal.SIGALRM: (signal.ITIMER_REAL, 600)}
"""Seconds of processor time after which a call counts as hanging, and on the clock; none takes a
tenth of them when it works."""


class HangError(BaseException):
    """A call took too long."""


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
        feasid.set_progress(False)  # a class is a function of a line, too, and would stay
    return out


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


def main():
    """Print how all calls end, or some of them, and what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, help="so many of them, instead of all")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subjects = Subjects(Path(folder))
        os.chdir(folder)  # where a bad path may write
        every = list(cases(subjects))
        count = arguments.calls or len(every)
        outcomes = run(subjects, every[arguments.first : arguments.first + count])
        wrong = judge(subjects, outcomes)
    kinds = Counter(end.split(":")[0] for end in outcomes.values())
    print(f"{len(outcomes)} of {len(every)} calls from {arguments.first}: {dict(kinds)}")
    print(*wrong.items(), sep="\n")


if __name__ == "__main__":
    main()
