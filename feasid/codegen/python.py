"""Routines as Python functions of plain floats, compiled from source that we write ourselves."""

from __future__ import annotations

import math
from collections.abc import Callable

from feasid.codegen.expression import FUNCTIONS
from feasid.codegen.routine import Routine
from feasid.codegen.writing import Language, statements

LANGUAGE = Language(
    number=repr,
    function=lambda name, x: f"{name}({x})",
    input=lambda name: name.replace("[", "").replace("]", ""),
)

NAMES = {name: getattr(math, name, function) for name, function in FUNCTIONS.items()}


def python_source(routine: Routine) -> str:
    """A function of sequences of floats that returns a list of floats."""
    lines = [f"def {routine.name}({', '.join(name for name, _ in routine.inputs)}):"]
    for name, length in routine.inputs:
        if name in routine.used:
            lines.append(f"    [{', '.join(f'{name}{k}' for k in range(length))}] = {name}")
    results = []
    for variable, text in statements(routine, LANGUAGE):
        if variable:
            lines.append(f"    {variable} = {text}")
        else:
            results.append(text)
    return "\n".join([*lines, f"    return [{', '.join(results)}]", ""])


def python_function(routine: Routine) -> Callable[..., list[float]]:
    """The function itself; inputs must be sequences of Python floats."""
    space: dict[str, object] = {**NAMES, "__builtins__": {"abs": abs}}
    exec(compile(python_source(routine), f"<feasid {routine.name}>", "exec"), space)
    function: Callable[..., list[float]] = space[routine.name]  # type: ignore[assignment]
    return function
