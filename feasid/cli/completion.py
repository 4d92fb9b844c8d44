"""A script that completes commands and options: feasid completion bash > feasid.bash."""

from __future__ import annotations

import argparse
from typing import Any

from feasid.cli import Answer
from feasid.cli.options import Parser, takes, word
from feasid.core.errors import missing_extra

SHELLS = ("bash", "zsh", "fish")

FILES = ("LOG", "FILE", "HTML", "CSV", "JSON", "URDF", "ROBOT", "MODEL", "PATH")
"""Words in the placeholder of an argument that takes a path."""


@takes(word("shell", None, None, choices=SHELLS))
def run(arguments: argparse.Namespace) -> Answer:
    """Print the script."""
    try:
        import shtab
    except ImportError as error:
        raise missing_extra("completion", "shtab", "completion") from error
    print(shtab.complete(build_full_parser(shtab.FILE), arguments.shell))
    return 0, dict


def build_full_parser(paths: Any) -> argparse.ArgumentParser:
    """All commands in one parser, as no command needs it; `paths` completes files."""
    from feasid.cli import COMMANDS, load_command

    class Completed(Parser):
        """Marks its arguments as paths."""

        def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
            action = super().add_argument(*names, **settings)
            if any(word in str(settings.get("metavar", "")) for word in FILES):
                action.complete = paths  # type: ignore[attr-defined]
            return action

    parser = argparse.ArgumentParser(prog="feasid")
    parser.add_argument("--version", action="store_true", help="print the version")
    kinds = parser.add_subparsers(parser_class=Completed, metavar="COMMAND")
    for name, line in COMMANDS.items():
        load_command(name).add_arguments(kinds.add_parser(name, help=line))
    return parser
