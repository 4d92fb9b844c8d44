"""Output of commands: JSON, displays, and messages with options as they are typed.

``--json`` prints one object per command, with ``schema``, a version that changes when its form
does, ``command`` and ``feasid``, the version that printed it. Numbers that are not finite are null.
All other output of a command goes to standard error.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.cli.options import argument_name, as_arguments
from feasid.cli.robot import NAMES
from feasid.core.display import LOUD, Display
from feasid.core.errors import InputError, require
from feasid.core.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from feasid.identification.fitted import FittedModel

SCHEMA = 2
"""Version of the schema of ``--json``; it rises if a key changes its meaning or is removed."""


def fit_as_data(model: FittedModel) -> dict[str, Any]:
    """A fit, saved or not."""
    robot = model.robot
    table = model.base_table
    names = [".".join(name) for name in robot.parameter_names]
    return {
        "robot": robot.name,
        "joints": list(robot.coordinates),
        "parameters": dict(zip(names, robot.values.tolist(), strict=True)),
        "base_parameters": [
            {"expression": e, "value": float(v), "std": float(s)}
            for e, v, s in zip(table.index, table["value"], table["std"], strict=True)
        ],
        "errors": {"fitted": errors_as_data(model.relative_error)},
        "notes": [str(n) for n in model.notes],
    }


def check_picture(path: str | None) -> None:
    """Raise, before any work, where ``--plot`` names no picture."""
    if path is not None:
        require("plotting", "plot", "matplotlib")
        if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError("--plot takes a file that ends in .png, .svg or .pdf")


def write_picture(figure: Figure, path: str, *, overwrite: bool) -> None:
    """Write a figure in the format of the file's ending."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=Path(path).suffix[1:].lower())
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def write_outputs(arguments: argparse.Namespace, **writers: Callable[..., Any]) -> None:
    """Write each of these outputs that was asked for, by the function that writes it."""
    for name, write in writers.items():
        if path := getattr(arguments, name):
            write(path, overwrite=arguments.overwrite)
            print(f"wrote {path}")


def errors_as_data(errors: pd.Series[float]) -> dict[str, float]:
    """Relative torque errors per joint and "all"; null where there is no torque."""
    return {str(k): float(v) for k, v in errors.items()}


BOLD, RED, PLAIN_STYLE = "\x1b[1m", "\x1b[1;31m", "\x1b[0m"  #: Colours of terminals (ECMA-48).


def print_display(display: Display) -> None:
    """Print it, options spelled as they are typed; in colours on a terminal, without NO_COLOR."""
    troubles, remarks = (
        [spell_as_arguments(x) for x in part] for part in (display.troubles, display.remarks)
    )
    lines = replace(display, troubles=troubles, remarks=remarks).text().splitlines()
    in_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    terminal = getattr(sys.stdout, "stream", sys.stdout)
    for k, line in enumerate(lines):
        style = "" if not in_colour else BOLD if k == 0 else RED if line.startswith(LOUD) else ""
        # Control characters of a line itself are escaped by `EscapingStream`; these are ours.
        terminal.write(style)
        print(line, end="")
        terminal.write(PLAIN_STYLE * bool(style))
        print()


OTHER_NAMES = (
    *NAMES.split(),
    *("position", "velocity", "acceleration", "overwrite", "force", "offset_origin"),
)
"""Names that are spelled as arguments, too, though no table of options has them."""

PLAIN = ("overwrite", "force", "floating", "use_mujoco")  #: Arguments without a value.


@cache
def option_names() -> frozenset[str]:
    """Options of tables, and `OTHER_NAMES`."""
    from feasid.options.complete import option_table
    from feasid.options.tables import CheckOptions, CorrectOptions, FitOptions

    tables = (FitOptions, CheckOptions, CorrectOptions)
    return frozenset(OTHER_NAMES).union(*map(option_table, tables))


@cache
def option_pattern() -> re.Pattern[str]:
    """Finds an option, and whether a value follows."""
    words = "|".join(sorted(option_names(), key=len, reverse=True))
    return re.compile(rf"(?<![\w.'-])({words})(=|(?!\w))")


SIMPLE = re.compile(r"True|False|None|'[^']*'|\"[^\"]*\"|[-+]?\d[\d.]*(?:e[-+]?\d+)?(?<!\.)")

PLACEHOLDER = re.compile(r"['\"]([^'\"]+)['\"]: (\(low, high\)|bound)?")

INSIDE = r"[^()\[\]{}]"
for _ in range(3):  # brackets in brackets, as deep as options have them
    INSIDE = rf"(?:[^()\[\]{{}}]|[(\[{{]{INSIDE}*[)\]}}])"
BRACKET = re.compile(rf"[(\[{{]{INSIDE}*[)\]}}]")

CALL = re.compile(r"load_robot\((?:\.\.\.|path|'[^']*'), ((?:[^()]|\([^()]*\))*)\)")
"""The Python function that has an option of the robot."""


COMMAND = re.compile(
    r"feasid\.(diagnose|excite|correct|simulate|torque_constants)\b(?:\([^()]*\))?"
)
"""Functions that have a command of their name."""


def spell_as_arguments(text: str) -> str:
    """``delay=0.03`` as ``--delay 0.03``, ``friction=()`` as ``--friction none``."""
    text = CALL.sub(r"\1", text)
    text = text.replace("fit.notes", "--verbose")
    text = COMMAND.sub(lambda m: f"feasid {m[1].replace('_', '-')}", text)
    out, at = [], 0
    while match := option_pattern().search(text, at):
        name, start, end = match[1], match.start(), match.end()
        out.append(text[at:start])
        if match[2]:
            length, value = _leading_literal(text[end:])
            bracket = BRACKET.match(text, end)
            if not length and bracket:  # with words that the reader fills in
                length, value = len(bracket[0]), bracket[0]
                if value.startswith("{"):  # {'a': ..., 'b': (low, high)}: a=...,b=LOW,HIGH
                    typed = {"(low, high)": "LOW,HIGH", "bound": "BOUND"}
                    entries = PLACEHOLDER.findall(value)
                    value = ",".join(f"{key}={typed.get(x, '...')}" for key, x in entries)
            out.append(_spell_argument(name, value) if length else argument_name(name))
            end += length
        else:
            out.append(argument_name(name) if "_" in name else name)
        at = end
    return "".join([*out, text[at:]])


TYPED = {r"True or False": "yes or no", "True": "yes", "False": "no", "None": "none",
         r"\(lower, upper\)": "LOWER,UPPER"}  # fmt: skip
"""Values as Python and as a command has them."""


def spell_error(message: str, words: Sequence[str]) -> str:
    """An error's message about an argument and its values as they are typed, of these words."""
    text = spell_as_arguments(message)
    name, space, sentence = text.partition(" ")
    if any(word.partition("=")[0] == argument_name(name) for word in words):
        text = f"{argument_name(name)}{space}{sentence}"
    for value, typed in TYPED.items() if text.startswith("--") else ():
        text = re.sub(rf"(?<!['\w]){value}(?!['\w])", typed, text)
    return text


def _spell_argument(name: str, value: object) -> str:
    if name in PLAIN and value is True:
        return argument_name(name)
    if name == "lock" and isinstance(value, dict):
        return " ".join(as_arguments({name: f"{joint}={q}"}) for joint, q in value.items())
    if name == "gravity" and isinstance(value, tuple):
        return f"--gravity={','.join(map(str, value))}"  # its first number may be negative
    if value is None or value in ((), []):
        value = "none"
    return as_arguments({name: value})


def _leading_literal(text: str) -> tuple[int, object]:
    """Length and value of the Python literal that a text starts with; length 0 without one."""
    start = SIMPLE.match(text) or BRACKET.match(text)
    length = start.end() if start else 0
    try:
        value = ast.literal_eval(text[:length])
    except (ValueError, SyntaxError):
        return 0, None
    return (0, None) if "..." in text[:length] else (length, value)  # dots stand for something
