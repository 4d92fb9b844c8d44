"""Options as they are typed: words of a shell command, also in messages that are about Python."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

ROBOT_NAMES = ("floating", "lock", "gravity", "ignore", "use_mujoco", "model", "sidecar")
"""Parameters of `feasid.load_robot` that are typed."""

OTHER_NAMES = (
    *ROBOT_NAMES,
    *("position", "velocity", "acceleration", "overwrite", "force", "offset_origin"),
)
"""Names that are spelled as arguments, too, though no table of options has them."""

PLAIN = ("overwrite", "force", "floating", "use_mujoco")  #: Arguments without a value.


def argument_name(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.strip('_').replace('_', '-')}"


def as_arguments(options: Mapping[str, Any]) -> str:
    """Options as words of a shell command."""
    words = []
    for name, value in options.items():
        if isinstance(value, bool):
            text = "yes" if value else "no"
        else:
            text = value if isinstance(value, str) else _as_list(value)
        words.append(f"{argument_name(name)} {shlex.quote(text)}")
    return " ".join(words)


def _as_list(value: Any) -> str:
    """Names as ``a,b``, plain entries as ``a=1,b=2``, anything else as JSON."""
    entries = [*value.items()] if isinstance(value, Mapping) else []
    flat = [*(str(k) for k, _ in entries), *(v for _, v in entries)]
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        flat = [*value]
    simple = all(isinstance(v, str | int | float) and not LISTED.search(str(v)) for v in flat)
    if not (flat and simple):
        return json.dumps(value, default=lambda x: x.tolist() if hasattr(x, "tolist") else list(x))
    return ",".join(f"{k}={v}" for k, v in entries) if entries else ",".join(flat)


LISTED = re.compile(r"""[,=\[\]"'\s]|^$|^none$""")
"""Characters that a name or a value in a comma list must not have."""


@cache
def option_names() -> frozenset[str]:
    """Options of tables, and `OTHER_NAMES`."""
    from feasid.options.complete import option_table
    from feasid.options.tables import CheckOptions, CorrectOptions, FitOptions

    tables = (FitOptions, CheckOptions, CorrectOptions)
    return frozenset(OTHER_NAMES).union(*map(option_table, tables))


SIMPLE = r"True|False|None|'[^']*'|\"[^\"]*\"|[-+]?\d[\d.]*(?:e[-+]?\d+)?(?<!\.)"

PLACEHOLDER = re.compile(r"['\"]([^'\"]+)['\"]: (\(low, high\)|bound)?")

INSIDE = r"[^()\[\]{}]"
for _ in range(3):  # brackets in brackets, as deep as options have them
    INSIDE = rf"(?:[^()\[\]{{}}]|[(\[{{]{INSIDE}*[)\]}}])"
LITERAL = rf"{SIMPLE}|[(\[{{]{INSIDE}*[)\]}}]"
"""A Python value, or one in brackets with words that the reader fills in."""


@cache
def option_pattern() -> re.Pattern[str]:
    """Finds an option, and its value where one follows."""
    # The longest first: an alternation takes the first that fits.
    words = "|".join(sorted(option_names(), key=len, reverse=True))
    return re.compile(rf"(?<![\w.'-])({words})(?:(=)({LITERAL})?|(?!\w))")


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
    return option_pattern().sub(_spell_option, text)


def _spell_option(match: re.Match[str]) -> str:
    name, sign, text = match.groups()
    if not text:
        return argument_name(name) if sign or "_" in name else str(name)
    known, value = read_literal(text)
    if not known:  # with words that the reader fills in
        value = text
        if text.startswith("{"):  # {'a': ..., 'b': (low, high)}: a=...,b=LOW,HIGH
            typed = {"(low, high)": "LOW,HIGH", "bound": "BOUND"}
            entries = PLACEHOLDER.findall(text)
            value = ",".join(f"{key}={typed.get(x, '...')}" for key, x in entries)
    if name in PLAIN and value is True:
        return argument_name(name)
    if name == "lock" and isinstance(value, dict):
        return " ".join(as_arguments({name: f"{joint}={q}"}) for joint, q in value.items())
    if name == "gravity" and isinstance(value, tuple):
        return f"--gravity={','.join(map(str, value))}"  # its first number may be negative
    return as_arguments({name: "none" if value is None or value in ((), []) else value})


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


def read_literal(text: str) -> tuple[bool, object]:
    """Whether a text is a Python literal, and its value; dots stand for something."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False, None
    return "..." not in text, value
