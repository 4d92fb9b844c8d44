"""The library's sentences as they are said at the prompt: options in its spelling."""

from __future__ import annotations

import ast
import re

from feasid.cli.options import as_words, spelled
from feasid.options.complete import table_of
from feasid.options.set_tables import CheckOptions, CorrectOptions
from feasid.options.tables import FitOptions

NAMES = {name for t in (FitOptions, CheckOptions, CorrectOptions) for name in table_of(t)} | {
    "lock",
    "gravity",
    "floating",
    "overwrite",
    "force",
    "equivalent_friction",
}

PLAIN = ("overwrite", "force", "floating", "equivalent_friction")
"""Arguments without a value."""

OPTION = re.compile(rf"(?<![\w.'-])({'|'.join(sorted(NAMES, key=len, reverse=True))})(=|(?!\w))")

SIMPLE = re.compile(r"True|False|None|'[^']*'|\"[^\"]*\"|[-+]?\d[\d.]*(?:e[-+]?\d+)?(?<!\.)")

PAIRS = {"(": ")", "[": "]", "{": "}"}

CALL = re.compile(r"load_robot\(\.\.\., ((?:[^()]|\([^()]*\))*)\)")
"""Where an option of the robot belongs in Python."""


def at_the_prompt(text: str) -> str:
    """``delay=0.03`` as ``--delay 0.03``, ``friction=()`` as ``--friction none``."""
    text = CALL.sub(r"\1", text)
    out, at = [], 0
    while match := OPTION.search(text, at):
        name, start, end = match[1], match.start(), match.end()
        out.append(text[at:start])
        if match[2]:
            length, value = _value(text[end:])
            out.append(_argument(name, value) if length else spelled(name))
            end += length
        else:
            out.append(spelled(name) if "_" in name else name)
        at = end
    return "".join([*out, text[at:]])


def _argument(name: str, value: object) -> str:
    if name in PLAIN and value is True:
        return spelled(name)
    if name == "lock" and isinstance(value, dict):
        return " ".join(as_words({name: f"{joint}={q}"}) for joint, q in value.items())
    if name == "gravity" and isinstance(value, tuple):
        return f"--gravity={','.join(map(str, value))}"  # its first number may be negative
    if value is None or value in ((), []):
        value = "none"
    return as_words({name: value})


def _value(text: str) -> tuple[int, object]:
    """Length and value of the Python literal that a text starts with; length 0 without one."""
    simple = SIMPLE.match(text)
    length = simple.end() if simple else _balanced(text)
    try:
        value = ast.literal_eval(text[:length])
    except (ValueError, SyntaxError):
        return 0, None
    return (0, None) if "..." in text[:length] else (length, value)  # dots stand for something


def _balanced(text: str) -> int:
    """Length of the bracket that a text starts with."""
    expected = []
    for k, letter in enumerate(text):
        if letter in PAIRS:
            expected.append(PAIRS[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
        if not expected:
            return k + 1 if letter in PAIRS.values() else 0
    return 0
