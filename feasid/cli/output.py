"""Output of commands: JSON, displays, and messages with options as they are typed.

``--json`` prints one object per command, with ``schema``, a version that changes when its form
does, ``command`` and ``feasid``, the version that printed it. Numbers that are not finite are null.
All other output of a command goes to standard error.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.core.display import LOUD, Display
from feasid.core.errors import InputError, require
from feasid.core.files import write_atomically
from feasid.options.spelling import spell_as_arguments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feasid.identification.fitted import FittedModel

SCHEMA = 2
"""Version of the schema of ``--json``; it rises if a key changes its meaning or is removed."""


def fit_as_data(model: FittedModel) -> dict[str, Any]:
    """A fit, saved or not."""
    robot = model.robot
    table = model.base_table[["value", "std"]].reset_index(names="expression")
    names = [".".join(name) for name in robot.parameter_names]
    return {
        "robot": robot.name,
        "joints": list(robot.coordinates),
        "parameters": dict(zip(names, robot.values.tolist(), strict=True)),
        "base_parameters": table.to_dict("records"),
        "errors": {"fitted": model.relative_error.to_dict()},
        "notes": [str(n) for n in model.notes],
    }


def check_picture(path: str | None) -> None:
    """Raise, before any work, where ``--plot`` names no picture."""
    if path is not None:
        require("plotting", "plot", "matplotlib")
        if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError("--plot takes a file that ends in .png, .svg or .pdf")


def write_picture(plot: Callable[[], Figure], path: str, *, overwrite: bool) -> None:
    """Draw a figure and write it in the format of the file's ending."""
    buffer = io.BytesIO()
    plot().savefig(buffer, format=Path(path).suffix[1:].lower())
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def write_outputs(arguments: argparse.Namespace, **writers: Callable[..., Any]) -> None:
    """Write each of these outputs that was asked for, by the function that writes it."""
    for name, write in writers.items():
        if path := getattr(arguments, name):
            write(path, overwrite=arguments.overwrite)
            print(f"wrote {path}")


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
