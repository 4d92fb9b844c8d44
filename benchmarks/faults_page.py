"""The table of tries in docs/faults.md: a row for each script, which writes it itself."""

import shlex
import sys
from datetime import date
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "faults.md"
BEGIN, END = "<!-- tries -->", "<!-- end of tries -->"


def write_row(fault, tries, outcome):
    """Put what a script counted, and the command that ran, in place of its last row."""
    head, rest = PAGE.read_text().split(BEGIN)
    table, tail = rest.split(END)
    lines = [line for line in table.strip().splitlines() if not line.startswith(f"| {fault} |")]
    PAGE.write_text("\n".join([f"{head}{BEGIN}", *lines, _row(fault, tries, outcome), END + tail]))


def _row(fault, tries, outcome):
    script = Path(sys.argv[0]).resolve().relative_to(PAGE.parents[1])
    module = ".".join(script.with_suffix("").parts).removesuffix(".__main__")
    words = [word for word in sys.argv[1:] if word != "--write"]
    command = shlex.join(["python", "-m", module, *words])
    return f"| {fault} | {tries} | {outcome} | {date.today():%-d %B %Y} | `{command}` |"
