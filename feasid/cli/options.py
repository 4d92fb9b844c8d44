"""The parser of commands, and arguments made of options: described, read, and spelled."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, TypeAlias, TypeVar

from feasid.core.errors import InputError, did_you_mean
from feasid.core.files import read_whole
from feasid.options.option import NONE, Option
from feasid.options.spelling import argument_name

MAX_MATRIX_FILE_BYTES = 2**20  #: Bytes of a text file with a transmission matrix.
NO_TERMINAL = 80  #: Columns of help that no terminal shows.

METAVAR = {"number": "NUMBER", "count": "N", "flag": "YES/NO", "words": "LIST", "text": "NAME",
           "value": "VALUE", "mapping": "NAME=X,..."}  # fmt: skip


class _Formatter(argparse.HelpFormatter):
    """A formatter as wide as the terminal; the base class would import four compressors to find
    this width.
    """

    def __init__(self, prog: str) -> None:
        try:
            width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            width = NO_TERMINAL
        super().__init__(prog, width=(width or NO_TERMINAL) - 2)


class _HelpAll(argparse.Action):
    """Print the help with all arguments."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(argparse.ArgumentParser.format_help(parser), end="")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Refuses abbreviations, and names the nearest argument for one that does not exist."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False, formatter_class=_Formatter)
        self.rare: list[argparse.Action] = []  #: Arguments that ``--help`` leaves out.
        self._typed: list[str] = []

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Words such as ``-9.81,0,0`` behind an argument are its value, not another argument."""
        joined: list[str] = []
        for word in args or ():
            negative = len(word) > 1 and word[0] == "-" and (word[1].isdigit() or word[1] == ".")
            if negative and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        self._typed = [word.partition("=")[0] for word in joined if word.startswith("--")]
        return super().parse_args(joined, namespace)

    def format_help(self) -> str:
        """The usage and the arguments; where some are rare, the others with their first clause."""
        if not self.rare:
            return super().format_help()
        page = self._get_formatter()
        page.add_usage(f"{self.prog} LOG ... --robot FILE [options]", [], [])
        page.add_text(self.description)
        page.start_section("frequent arguments (--help-all: all, in groups)")
        for action in self._actions:
            if action not in self.rare:
                shown = copy(action)
                # Of several clauses the first, with the unit at the end.
                shown.help = re.sub(r";.*?( \[[^\]]*\])?$", r"\1", action.help or "")
                page.add_argument(shown)
        page.end_section()
        return page.format_help()

    def error(self, message: str) -> NoReturn:
        """Print the error, a suggestion and where to read on; exit status 2."""
        known = [s for action in self._actions for s in action.option_strings]
        wrong = next((flag for flag in self._typed if flag not in known and flag != "--"), "")
        if wrong and wrong not in message:
            message = f"unrecognized arguments: {wrong}"
        text = f"{self.prog}: error: {message}{did_you_mean(wrong, known) if wrong else ''}"
        self.exit(2, f"{text}\n{self.prog} --help lists the arguments\n")


Part: TypeAlias = Callable[[argparse.ArgumentParser], object]
"""What adds an argument of a command, or several."""

Run = TypeVar("Run", bound=Callable[..., Any])


def takes(*parts: Part) -> Callable[[Run], Run]:
    """Note with the function that runs a command what adds its arguments."""

    def note(run: Run) -> Run:
        run.parts = parts  # type: ignore[attr-defined]
        return run

    return note


def word(name: str, metavar: str | None, text: str | None, **settings: Any) -> Part:
    """An argument with a value."""
    return lambda parser: parser.add_argument(name, metavar=metavar, help=text, **settings)


def flag(name: str, text: str, *short: str) -> Part:
    """An argument that is there or not."""
    return lambda parser: parser.add_argument(name, *short, action="store_true", help=text)


def options_of(options: type, frequent: Sequence[str] = ()) -> Part:
    """One argument per option of a table, and ``--option NAME=VALUE`` for any of them.

    ``--help`` shows the `frequent` ones, where there are any, and ``--help-all`` all.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        from feasid.options.complete import option_groups

        for title, table in option_groups(options).items():
            group = parser.add_argument_group(title)
            for name, option in table.items():
                add_option(group, name, option, dest=f"option_{name}")
        group = parser.add_argument_group("any option")
        if frequent and isinstance(parser, Parser):
            group.add_argument("--help-all", action=_HelpAll, nargs=0, help="all options, and exit")
            seldom = (a for a in parser._actions if a.dest.removeprefix("option_") not in frequent)
            parser.rare = [action for action in seldom if action.dest != "help_all"]
        group.add_argument("--option", metavar="NAME=VALUE", action="append",
                           help="any other option, by its Python name")  # fmt: skip

    return add


def add_option(parser: Any, name: str, option: Option, dest: str) -> None:
    """The argument of one option; a flag that is off needs no word."""
    unit = f" [{option.unit}]" if option.unit else ""
    default = option.default
    if isinstance(default, bool):
        default = "yes" if default else "no"
    words = "" if default in (None, (), "") else f"; default {default}"
    # argparse fills help in by %.
    text = f"{option.doc}{unit}{words}".replace("%", "%%")
    # Tables speak of Python's values; at the prompt None is an argument that is not there.
    absent = "left out:" if option.default is None else "none:"
    for value, typed in {"None": absent, "False": "no:", r"\(\)": "none:"}.items():
        text = re.sub(rf"(^|; ){value} ", rf"\1{typed} ", text)
    choices = ",".join(w for w in option.words if w)
    word = "PATH" if "Path" in str(option.annotation) else METAVAR.get(option.syntax)
    settings: dict[str, Any] = {"metavar": word or f"{{{choices}}}"}
    if option.syntax in ("mapping", "value"):
        settings["action"] = "append"
    if option.syntax == "flag":
        settings |= {"nargs": "?", "const": "yes"}
    parser.add_argument(argument_name(name), dest=dest, help=text, **settings)


def read_options(arguments: argparse.Namespace, options: type, function: str) -> dict[str, Any]:
    """The options that were typed, by their Python names, each checked.

    Raises InputError: in the prompt's spelling.
    """
    from feasid.options.complete import check_options, option_table

    table = option_table(options)
    typed = ((name, getattr(arguments, f"option_{name}")) for name in table)
    words = {name: (argument_name(name), text) for name, text in typed if text is not None}
    for entry in arguments.option or ():
        name, sign, text = entry.partition("=")
        if not (name and sign and text):
            raise InputError(f"--option needs NAME=VALUE, not {entry!r}")
        if name not in table:
            typed_as = f": use {argument_name(name)}" if hasattr(arguments, name) else ""
            hint = typed_as or did_you_mean(name, table)
            raise InputError(f"--option {name}: no such option{hint}")
        words[name] = f"--option {name}", text
    if "transmission" in words:
        label, typed_text = words["transmission"]
        text = typed_text[-1] if isinstance(typed_text, list) else typed_text
        if text.lstrip()[:1] not in ("[", "") and text.strip().lower() not in NONE:
            # A text file of the matrix: rows by line, numbers separated by commas or blanks.
            lines = read_whole(text, MAX_MATRIX_FILE_BYTES).decode(errors="replace").splitlines()
            rows = [line.replace(",", " ").split() for line in lines if line.strip()]
            try:
                text = json.dumps([[float(x) for x in row] for row in rows])
            except ValueError as error:
                message = f"{text}: a transmission matrix holds numbers only: {error}"
                raise InputError(message) from None
        words["transmission"] = label, text
    values = {name: parse_argument(label, table[name], x) for name, (label, x) in words.items()}
    return check_options(options, values, function)


def parse_argument(label: str, option: Option, text: str | list[str]) -> Any:
    """The value of an option from its word, or from several, whose mappings are joined.

    Raises InputError: with an example, where the words are more than a number or a choice.
    """
    words = [text] if isinstance(text, str) else text
    try:
        values = [option.parse(label, word) for word in words]
    except InputError as error:
        if not option.example or option.syntax not in ("mapping", "value", "words"):
            raise
        example = f"such as {label} {shlex.quote(option.example)}"
        raise InputError(f"{error}; {example}", **error.data) from None
    if all(isinstance(value, Mapping) for value in values):
        return {key: item for value in values for key, item in value.items()}
    return values[-1]
