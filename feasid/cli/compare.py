"""Two models side by side: base parameters, and whether they move alike.

Exit status: 0 dynamically equivalent, 1 different, 2 error.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from feasid.cli.output import add_json, print_json
from feasid.inspection.comparison import TOLERANCE, Comparison, compare_files
from feasid.inspection.report import plain

ROWS = 20
"""Differing base parameters shown without --all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.add_argument("a", metavar="A", help="URDF, MJCF or SDF")
    parser.add_argument("b", metavar="B", help="URDF, MJCF or SDF")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        help="relative difference that counts as equal (default %(default)g)",
    )
    parser.add_argument("--all", action="store_true", help="every base parameter, also equal ones")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare two files; returns the exit status."""
    found = compare_files(arguments.a, arguments.b, arguments.tolerance)
    if arguments.json:
        print_json("compare", found.to_dict())
    else:
        print("\n".join(_lines(found, arguments.all)))
    return 0 if found.equivalent else 1


def _lines(found: Comparison, everything: bool) -> Iterator[str]:
    a, b = found.names
    yield f"A = {a}\nB = {b}"
    if found.kinematics:
        yield "the kinematics differ:"
        yield from (f"  {text}" for text in found.kinematics)
    rows = found.rows if everything else found.different[:ROWS]
    if rows:
        width = max(len(_short(row.expression)) for row in rows)
        yield f"\n{'base parameter':{width}}  {'A':>12}  {'B':>12}  difference"
        for row in rows:
            off = f"{100 * row.relative:.2g} %"
            yield f"{_short(row.expression):{width}}  {row.a:12.5g}  {row.b:12.5g}  {off}"
        left = len(found.different) - len(rows)
        if left > 0 and not everything:
            yield f"and {left} more (--all)"
        yield ""
    if found.torques:
        worst = max(found.torques, key=found.torques.__getitem__)
        yield f"largest torque difference: {100 * found.torques[worst]:.3g} % on joint {worst!r}"
    yield _conclusion(found)


def _conclusion(found: Comparison) -> str:
    if found.equivalent:
        return (
            f"dynamically equivalent: all {len(found.rows)} base parameters, joint terms included, "
            f"agree to {found.tolerance:g}"
        )
    if found.kinematics:
        return "different: the kinematics are not the same"
    return f"different: {len(found.different)} of {len(found.rows)} base parameters"


def _short(expression: str, width: int = 60) -> str:
    expression = plain(expression)
    return expression if len(expression) <= width else expression[: width - 3] + "..."
