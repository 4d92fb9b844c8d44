"""Every option that an error or a finding prints is tried as it is printed, at both places.

A case is a log or a call that is refused. Each option in the message, with its value, is added
to the call, alone: at the prompt as the prompt spells it, in Python as Python does.
"""

import re
import shlex
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from logs import arm_log
from robots import ARM

import feasid
from feasid.cli import main
from feasid.core.errors import FeasidError
from feasid.options.spelling import option_names, option_pattern, read_literal

ROWS = 700


@pytest.fixture(scope="module")
def log():
    _, made = arm_log(1, samples=ROWS, noise=0.02)
    return made.drop(columns=[c for c in made if c.startswith(("ddq_", "dq_"))])


def renamed(log, **names):
    return log.rename(columns=lambda c: re.sub("^(q|tau)(?=_)", lambda m: names[m[0]], c))


def with_cell(log, row, value):
    out = log.copy()
    out.loc[row, "q_slide"] = value
    return out


CASES = {
    "no time": (lambda x: x.drop(columns="t"), {}, 1),
    "time of another name": (lambda x: x.rename(columns={"t": "clock"}), {}, 2),
    "all names": (lambda x: renamed(x, q="position", tau="effort"), {}, 1),
    "names of a UR": (
        lambda x: pd.DataFrame(
            {"timestamp": x["t"]}
            | {f"{w}_q_{k}": np.nan for w in ("target", "model", "cmptd") for k in range(3)}
            | {f"actual_q_{k}": x.filter(regex="^q_").iloc[:, k] for k in range(3)}
            | {f"actual_current_{k}": x.filter(regex="^tau_").iloc[:, k] for k in range(3)}
        ),
        {},
        1,
    ),
    "names of a Franka": (
        lambda x: pd.DataFrame(
            {"time": x["t"]}
            | {f"q_d[{k}]": np.nan for k in range(3)}
            | {f"q[{k}]": x.filter(regex="^q_").iloc[:, k] for k in range(3)}
            | {f"tau_J[{k}]": x.filter(regex="^tau_").iloc[:, k] for k in range(3)}
            | {f"tau_ext_hat_filtered[{k}]": np.nan for k in range(3)}
        ),
        {},
        1,
    ),
    "names of torques": (lambda x: renamed(x, q="q", tau="effort"), {}, 1),
    "a name that says position": (lambda x: x.rename(columns={"q_slide": "pos_slide"}), {}, 1),
    "positions are missing": (lambda x: x.drop(columns="q_slide"), {}, 0),
    "a joint is missing": (lambda x: x.drop(columns=["tau_slide", "q_slide"]), {}, 1),
    "holes": (lambda x: with_cell(x, 400, np.nan), {}, 1),
    "no physical number": (lambda x: with_cell(x, 400, 1e300), {}, 1),
    "shuffled rows": (lambda x: x.iloc[np.r_[:300, 302, 300, 301, 303 : len(x)]], {}, 1),
    "rounded stamps": (lambda x: x.assign(t=x["t"].round(2)), {}, 1),
    "few samples": (lambda x: x.iloc[:60], {"filtering": "signals", "cutoff": 4.0}, 2),
    "slow log": (lambda x: x.iloc[::20], {}, 1),
}
"""What is done to the log, options that are given, options that the message prints at least."""

FITTED = {
    "short block": (lambda x: x, {"robust": "huber", "block": 0.01}, 1),
    "block without robust": (lambda x: x, {"block": 0.3}, 2),
    "long block": (lambda x: x, {"robust": "huber", "block": 2.0}, 1),
}
"""The same of options that only a fit has."""

SLOW = [pytest.param(case, marks=pytest.mark.slow) for case in FITTED]


def printed_options(message):
    """Options with literal values in a message of Python, and how often `load_robot` has them."""
    text = re.sub(r"load_robot\([^,]*, ", "load_robot(", message)
    found = []
    for match in option_pattern().finditer(text):
        known, value = read_literal(match[3] or "...")
        if known:
            found.append((match[1], value))
    return found


@pytest.mark.parametrize("case", [*CASES, *SLOW])
def test_options_in_errors_are_good_in_python(log, case):
    change, options, least = (CASES | FITTED)[case]
    frame, robot = change(log), feasid.load_robot(ARM)
    use = partial(feasid.fit, diagnose=False) if case in FITTED else feasid.reduce
    with pytest.raises(FeasidError) as caught:
        use(frame, robot, **options)
    advised = [(n, v) for n, v in printed_options(str(caught.value)) if options.get(n) != v]
    assert len(advised) >= least, caught.value
    for name, value in advised:
        if name == "lock":
            use(frame, robot.locked(value), **options)
            continue
        given = options.get(name)
        value = {**given, **value} if isinstance(given, dict) else value
        use(frame, robot, **{**options, name: value})


@pytest.mark.parametrize("case", [*CASES, *SLOW])
def test_options_in_errors_are_good_at_the_prompt(log, case, here, capsys):
    change, options, least = (CASES | FITTED)[case]
    (here / "arm.urdf").write_text(ARM)
    change(log).to_csv("log.csv", index=False)
    order = ["fit" if case in FITTED else "reduce", "log.csv", "--robot", "arm.urdf"]
    order += ["--diagnose", "no"] if case in FITTED else ["--out", "log.npz", "--overwrite"]
    for name, value in options.items():
        words = ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        order += [f"--{name.replace('_', '-')}", str(words)]
    assert main(order) == 2
    said = capsys.readouterr().err
    assert said.startswith("feasid: error: ")
    advised = [x for x in typed_options(said) if x not in list(map(list, pairwise(order)))]
    assert len(advised) >= least, said
    for words in advised:
        assert main([*order, *words]) == 0, (words, capsys.readouterr().err)


def typed_options(said):
    """Arguments with values in a message of the prompt, as a shell splits them."""
    flags = "|".join(f"--{name.replace('_', '-')}" for name in option_names())
    for match in re.finditer(rf"(?<!\S)(?:{flags})(?!\S)", said):
        start = match.start()
        word = re.match(r"\s+('[^']*'|\S+)", said[match.end() :])
        value = re.sub(r"[,.;:)]+$", "", word[1])
        if "..." not in value and not value.startswith(("-", "(")):
            yield shlex.split(f"{said[start : match.end()]} {value}")
