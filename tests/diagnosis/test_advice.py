"""Advice names what exists, and following it does no harm."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from faults import WHOLE, changed, recorded

import feasid
from feasid.diagnosis import findings
from feasid.logs.frame import prepare
from feasid.robot.load import load_robot

LOGS = ("kuka_lwr4", "unitree_z1", "kinova_gen3" + WHOLE, "staubli_tx40", "simulated")

HARM = 1.03
"""Held-out error with the advice over that without it."""

BANDWIDTH = 5.0
"""Cut-off of all fits that are compared [Hz]."""


def halves(df):
    """Two halves by time; of a log with runs, the last run and those before it."""
    if "run" in df:
        last = df.run == df.run.iloc[-1]
        return tuple(part.reset_index(drop=True) for part in (df[~last], df[last]))
    at = len(df) // 2
    return tuple(part.reset_index(drop=True) for part in (df.iloc[:at], df.iloc[at:]))


def held_out(first, second, robot, options):
    """Error on the second half of a log of a fit to its first half."""
    fitted = feasid.fit(first, robot, diagnose=False, **{"cutoff": BANDWIDTH, **options})
    return fitted.errors(second, exclude=())["all"]


FAULTS = {
    "as it is": lambda name: recorded(name)[0],
    "sign": lambda name: changed(name, ["tau"], np.negative, [1]),
    "all signs": lambda name: changed(name, ["tau"], np.negative),
    "reversed": lambda name: changed(name, ["q", "dq"], np.negative, [2]),
    "degrees": lambda name: changed(name, ["q"], np.rad2deg, [1]),
    "exchanged": lambda name: changed(name, ["tau"], lambda x: x[:, ::-1], [1, 2]),
    "late": lambda name: changed(name, ["tau"], lambda x: np.roll(x, 12, axis=0)).iloc[100:],
    "spike": lambda name: changed(name, ["tau"], spiked, [1]),
    "clipped": lambda name: changed(name, ["tau"], clipped, [1]),
    "stuck": lambda name: changed(name, ["tau"], frozen, [2]),
}


def spiked(x):
    out = x.copy()
    out[len(x) // 4] += 30 * x.std()
    return out


def clipped(x):
    return np.clip(x, -np.inf, np.quantile(x, 0.9))


def frozen(x):
    out = x.copy()
    at = len(x) // 5
    out[at : at + len(x) // 20] = out[at]
    return out


PASSING = ("spike", "clipped", "stuck")
"""Faults of the moment: what was learnt is judged on a stretch without them."""


def harm(name, fault):
    df, robot, options = recorded(name)
    first, second = halves(FAULTS[fault](name))
    if fault in PASSING:
        second = halves(df)[1]
    advised = findings.merged([options, feasid.diagnose(first, robot, **options).options])
    if advised == options:
        return 1.0
    before = held_out(first, second, robot, options)
    return held_out(first, second, robot, advised) / before


CASES = [(name, fault) for name in LOGS for fault in FAULTS]
SAMPLE = [
    ("unitree_z1", "as it is"), ("simulated", "late"), ("simulated", "exchanged"),
    ("simulated", "clipped"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fault"), SAMPLE)
def test_following_advice_does_no_harm(name, fault):
    assert harm(name, fault) <= HARM


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), [c for c in CASES if c not in SAMPLE])
def test_following_any_advice_does_no_harm(name, fault):
    assert harm(name, fault) <= HARM


def strings(tree):
    """Texts in code, formatted ones with their holes left out, without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "x" for v in node.values)


def advice():
    """All texts of the diagnosis that could be advice."""
    folder = Path(findings.__file__).parent
    return [t for p in sorted(folder.glob("*.py")) for t in strings(ast.parse(p.read_text()))]


def test_advice_names_functions_that_exist():
    named = {m for text in advice() for m in re.findall(r"\bfeasid\.([a-z_]+)\(", text)}
    assert named <= set(feasid.__all__)


def test_advice_names_options_that_exist():
    of_reading = set(inspect.signature(prepare).parameters)
    of_robots = set(inspect.signature(load_robot).parameters)
    of_fit = set(inspect.signature(feasid.fit).parameters)
    named = {
        m
        for text in advice()
        for m in re.findall(r"(?<![\w.])([a-z_]+)=(?=[\[{'\"(,x0-9 T]|$)", text)
    }
    pandas_own = {"subset"}
    assert named
    assert named <= of_reading | of_robots | of_fit | pandas_own
