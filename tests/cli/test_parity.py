"""Options that Python has, the prompt has, and the other way round."""

import argparse
import inspect

import pytest

import feasid
from feasid.applications.excitation.excite import excite
from feasid.cli import load_command
from feasid.cli.options import Parser

FUNCTIONS = {
    "fit": (feasid.fit,), "reduce": (feasid.reduce,), "diagnose": (feasid.diagnose,),
    "payload": (feasid.payload, feasid.payload_from_wrench),
    "torque-constants": (feasid.torque_constants,), "base-parameters": (feasid.base_parameters,),
    "compare": (feasid.compare,), "excite": (excite,),
}  # fmt: skip

ROBOT = {"lock", "gravity", "floating"}
"""Of `feasid.load_robot`; the prompt reads files, once, and writes what it is told to."""

INPUTS = {"data", "log", "loaded", "unloaded", "robot", "a", "b"}
"""What a function works on: names of files at the prompt."""

ONLY_PYTHON = {
    "reduce": {
        "base": "a value of the program",
        "client": "a value of the program",
        "executor": "a value of the program; --workers",
        "checkpoints": "--resume",
        "on_error": "logs that fail are left out and told, exit status 4",
    },
    "base-parameters": {
        "snap": "--literal",
        "static": "--static",
        "known": "values of a program; feasid.fit --known",
        "equal": "values of a program; feasid.fit --equal",
        "mirrored": "values of a program; feasid.fit --mirrored",
    },
    "payload": {
        "channels": "--sensor",
        "rotation": "the sensor's axes, a matrix",
        "position": "the sensor's place",
    },
    "excite": {
        "collision": "--no-collision",
        "rest": "--no-rest",
        "prior": "a vector of the program's base parameters",
        "task": "motions of a program",
        "optimiser": "a function of a program",
    },
}
"""Keywords without an argument of their name, and what stands for them."""


def arguments_of(command):
    parser = Parser(prog=command)
    load_command(command).add_arguments(parser)
    actions = [a for a in parser._actions if not isinstance(a, argparse._HelpAction)]
    return {s.lstrip("-").replace("-", "_") for a in actions for s in a.option_strings}


def keywords_of(functions):
    out = set()
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        out |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    return out - INPUTS


@pytest.mark.parametrize("command", FUNCTIONS)
def test_what_python_has_the_prompt_has(command):
    missing = keywords_of(FUNCTIONS[command]) - arguments_of(command)
    assert missing - set(ONLY_PYTHON.get(command, {})) == set()


@pytest.mark.parametrize("command", FUNCTIONS)
def test_what_stands_for_a_keyword_exists(command):
    for name, stead in ONLY_PYTHON.get(command, {}).items():
        assert name in keywords_of(FUNCTIONS[command])
        if stead.startswith("--"):
            assert stead.lstrip("-").replace("-", "_") in arguments_of(command)


@pytest.mark.parametrize(
    "command", ["fit", "reduce", "diagnose", "payload", "torque-constants", "base-parameters"]
)
def test_robots_are_read_with_the_same_options(command):
    """Where a command reads a robot to work with, it can hold joints and turn gravity."""
    assert arguments_of(command) >= ROBOT
