"""Advice names what exists, and following it does no harm."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import feasid
from benchmarks.advice import CASES, HARM, harm, harm_of_case, sizes_of
from benchmarks.faults import KINDS, clean, halves, inject, resample
from feasid.logs.checks import findings
from feasid.logs.frame import prepare
from feasid.robot.formats.load import load_robot

pytestmark = pytest.mark.slow  # a minute of simulations and searches

FAULTY = ("kuka_lwr4", "unitree_z1", "simulated")

QUICK = {"friction": ("viscous", "coulomb", "offset"), "drive_inertia": True}
"""Fits of the sample choose no friction terms, which takes two thirds of their time."""


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_following_any_advice_does_no_harm(name, fault):
    assert harm_of_case(name, fault) <= HARM


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FAULTY)
def test_following_advice_on_random_faults_does_no_harm(name, kind):
    rng = np.random.default_rng([FAULTY.index(name), KINDS.index(kind)])
    log, options = clean(name)
    first, second = halves(log)
    robot, undone = log.attrs["robot"], None
    if kind in ("stuck", "saturated", "gap", "nan"):
        broken, _ = inject(kind, resample(first, rng, 0.9), name, rng)
    else:
        part = resample(log, rng, 0.9)
        undone = part, robot
        broken, second = halves(inject(kind, part, name, rng)[0])
    sizes = sizes_of(log, robot, options)
    assert harm(broken, second, robot, options, QUICK, sizes, undone) <= HARM


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
    of_sensors = {
        field.name
        for kind in (feasid.floating.Imu, feasid.floating.ContactSensor)
        for field in fields(kind)
    }
    pandas_own = {"subset"}
    assert named
    assert named <= of_reading | of_robots | of_fit | of_sensors | pandas_own
