"""Check certificate files in exact rational arithmetic, without any solver.

Exit status: 0 every certificate holds, 1 one does not, 2 a file cannot be read.
"""

from __future__ import annotations

import argparse

from feasid import certificate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="certificate, JSON")


def run(arguments: argparse.Namespace) -> int:
    """Check the files; returns the exit status."""
    return certificate.main(arguments.files)
