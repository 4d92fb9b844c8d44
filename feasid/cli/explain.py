"""Commands about codes of findings and about the commands themselves: explain, completion."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from textwrap import fill
from typing import Any

from feasid.cli import COMMANDS, Answer, load_command
from feasid.cli.options import Parser, takes, word
from feasid.core.display import line_width, truncate
from feasid.core.errors import InputError, did_you_mean, missing_extra

ENTRY = re.compile(r"^### (.+)\n((?:(?!#).*\n?)*)", re.M)
"""A code and its text in ``codes.md``, which is a page of the documentation, too."""


@takes(word("code", "CODE", "as it stands with a finding", nargs="?"))
def run_explain(arguments: argparse.Namespace) -> Answer:
    """Say what the code of a finding means, and what to do; without a code, list all codes."""
    page = files("feasid.cli").joinpath("codes.md").read_text(encoding="utf-8")
    texts = {code: text.replace("*", "").strip() for code, text in ENTRY.findall(page)}
    code = arguments.code
    if code is not None and code not in texts:
        hint = did_you_mean(code, texts)
        raise InputError(f"no code {code!r}{hint}; feasid explain lists all", code=code)
    if code is None:
        starts = {code: text.splitlines()[0].partition(". ")[0] for code, text in texts.items()}
        lines = (f"  {code:22}{start}" for code, start in starts.items())
        print("\n".join(truncate(line, line_width()) for line in lines))
    else:
        print("\n".join(map(fill, texts[code].splitlines())))
    return 0, lambda: {"codes": texts if code is None else {code: texts[code]}}


SHELLS = ("bash", "zsh", "fish")

FILES = ("LOG", "FILE", "HTML", "CSV", "JSON", "URDF", "ROBOT", "MODEL", "PATH")
"""Words in the placeholder of an argument that takes a path."""


@takes(word("shell", None, None, choices=SHELLS))
def run_completion(arguments: argparse.Namespace) -> Answer:
    """A script that completes commands and options: feasid completion bash > feasid.bash."""
    try:
        import shtab
    except ImportError as error:
        raise missing_extra("completion", "shtab", "completion") from error
    print(shtab.complete(build_full_parser(shtab.FILE), arguments.shell))
    return 0, dict


def build_full_parser(paths: Any) -> argparse.ArgumentParser:
    """All commands in one parser, as no command needs it; `paths` completes files."""

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
