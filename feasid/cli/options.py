"""Options that several commands share: the robot, and those of the table by kind."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn

from feasid.core.errors import InputError, did_you_mean
from feasid.core.files import read_whole

if TYPE_CHECKING:
    from feasid.options.option import Option
    from feasid.robot.description import Robot

MAX_MATRIX_FILE_BYTES = 2**20  #: Bytes of a text file with a transmission matrix.
NO_TERMINAL = 80  #: Columns of help that no terminal shows.

METAVAR = {"number": "NUMBER", "count": "N", "flag": "YES/NO", "words": "LIST", "value": "VALUE",
           "mapping": "NAME=VALUE,..."}  # fmt: skip


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
        said = f"{self.prog}: error: {message}{did_you_mean(wrong, known) if wrong else ''}"
        self.exit(2, f"{said}\n{self.prog} --help lists the arguments\n")


def add_robot_arguments(parser: argparse.ArgumentParser, what: str | None = None) -> None:
    """Arguments of the robot's description and of options that complete it; optional if `what` is
    given.
    """
    add, said = parser.add_argument, what or "the robot's description, URDF, MJCF, SDF or USD"
    add("--robot", required=what is None, metavar="FILE", help=said)
    add("--floating", action="store_true", help="the root link of a URDF floats")
    add("--lock", metavar="JOINT=Q", action="append", help="hold a joint, SI units")
    add("--gravity", metavar="X,Y,Z", help="gravity vector in the base frame [m/s^2]")
    add("--ignore", metavar="LIST", help="effects of the description that are left out")
    add("--use-mujoco", action="store_true", help="read the description by MuJoCo's compiler")
    add("--model", metavar="NAME", help="which of several models of an SDF or USD file")
    add("--sidecar", choices=("yes", "no"), help="read FILE.feasid.json too; default yes")


def add_options(
    parser: argparse.ArgumentParser, options: type, frequent: Sequence[str] = ()
) -> None:
    """One argument per option of a table, and ``--option NAME=VALUE`` for any of them.

    ``--help`` shows the `frequent` ones, where there are any, and ``--help-all`` all.
    """
    from feasid.options.complete import option_groups

    for title, table in option_groups(options).items():
        group = parser.add_argument_group(title)
        for name, option in table.items():
            settings = _argument_settings(option)
            group.add_argument(argument_name(name), dest=f"option_{name}", **settings)
    group = parser.add_argument_group("any option")
    if frequent and isinstance(parser, Parser):
        group.add_argument("--help-all", action=_HelpAll, nargs=0, help="all options, and exit")
        seldom = (a for a in parser._actions if a.dest.removeprefix("option_") not in frequent)
        parser.rare = [action for action in seldom if action.dest != "help_all"]
    group.add_argument("--option", metavar="NAME=VALUE", action="append",
                       help="any other option, by its Python name")  # fmt: skip


def argument_name(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.replace('_', '-')}"


def _argument_settings(option: Option) -> dict[str, Any]:
    unit = f" [{option.unit}]" if option.unit else ""
    default = option.default
    if isinstance(default, bool):
        default = "yes" if default else "no"
    words = "" if default in (None, ()) else f"; default {default}"
    text = f"{option.doc}{unit}{words}".replace("%", "%%")
    absent = "left out:" if default is None else "none:"
    for value, typed in {"None": absent, "False": "no:", r"\(\)": "none:"}.items():
        text = re.sub(rf"(^|; ){value} ", rf"\1{typed} ", text)
    out: dict[str, Any] = {"help": text}
    if option.syntax == "choice":
        out["metavar"] = "{" + ",".join(w for w in option.words if w) + "}"
    else:
        out["metavar"] = METAVAR[option.syntax]
    if option.syntax == "mapping":
        out["action"] = "append"
    if option.syntax == "flag":
        out |= {"nargs": "?", "const": "yes"}
    return out


def read_options(arguments: argparse.Namespace, options: type, function: str) -> dict[str, Any]:
    """The options that were typed, by their Python names, each checked.

    Raises InputError: in the prompt's spelling.
    """
    from feasid.options.complete import check_options, option_table

    table = option_table(options)
    typed: dict[str, Any] = {}
    for name, option in table.items():
        text = getattr(arguments, f"option_{name}")
        if text is not None:
            typed[name] = _parse_argument(argument_name(name), option, text)
    pairs = {}
    for entry in arguments.option or ():
        key, sign, value = entry.partition("=")
        if not (key and sign and value):
            raise InputError(f"--option needs NAME=VALUE, not {entry!r}")
        pairs[key] = value
    for name, text in pairs.items():
        if name not in table:
            typed_as = f": use {argument_name(name)}" if hasattr(arguments, name) else ""
            hint = typed_as or did_you_mean(name, table)
            raise InputError(f"--option {name}: no such option{hint}")
        typed[name] = _parse_argument(f"--option {name}", table[name], text)
    if isinstance(typed.get("transmission"), str):
        # Numbers of a text file, rows by line, separated by commas or blanks.
        path = typed["transmission"]
        lines = read_whole(path, MAX_MATRIX_FILE_BYTES).decode(errors="replace").splitlines()
        rows = [line.replace(",", " ").split() for line in lines if line.strip()]
        try:
            typed["transmission"] = [[float(x) for x in row] for row in rows]
        except ValueError as error:
            raise InputError(f"{path}: a transmission matrix holds numbers only: {error}") from None
    return check_options(options, typed, function)


def _parse_argument(label: str, option: Option, text: str | list[str]) -> Any:
    if isinstance(text, str):
        return option.parse(label, text)
    merged: dict[str, Any] = {}
    for entry in text:
        merged |= option.parse(label, entry) or {}
    return merged


def read_robot(arguments: argparse.Namespace) -> Robot:
    """The robot that the arguments describe."""
    from feasid.robot.formats.load import load_robot

    return load_robot(arguments.robot, floating=arguments.floating,
                      lock=parse_locks(arguments.lock), gravity=parse_vector(arguments.gravity),
                      ignore=arguments.ignore.split(",") if arguments.ignore else (),
                      use_mujoco=arguments.use_mujoco,
                      sidecar=arguments.sidecar != "no", model=arguments.model or "")  # fmt: skip


def robot_words(arguments: argparse.Namespace) -> list[str]:
    """The typed arguments of `add_robot_arguments`."""
    words = ["--robot", arguments.robot]
    words += [argument_name(k) for k in ("floating", "use_mujoco") if getattr(arguments, k)]
    words += [word for entry in arguments.lock or () for word in ("--lock", entry)]
    given = ((name, getattr(arguments, name)) for name in ("gravity", "ignore", "sidecar", "model"))
    return [*words, *(f"--{name}={value}" for name, value in given if value)]


def refuse_robot(arguments: argparse.Namespace, without: str) -> None:
    """Raise for arguments of a robot where none is asked about."""
    names = ["robot", "floating", "lock", "gravity", "ignore", "use_mujoco", "sidecar"]
    names += ["model"] * (without == "--robot")  # files have models, too
    if given := [argument_name(name) for name in names if getattr(arguments, name)]:
        raise InputError(f"{', '.join(given)} would be ignored without {without}")


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


def parse_locks(entries: Sequence[str] | None) -> dict[str, float]:
    """``["gripper=0.1"]`` as a mapping."""
    out = {}
    for entry in entries or ():
        joint, sign, value = entry.partition("=")
        try:
            out[joint] = float(value) if sign else 0.0
        except ValueError:
            raise InputError(f"--lock {entry}: {value!r} is not a number") from None
    return out


def parse_vector(text: str | None) -> tuple[float, ...] | None:
    """``"0,0,-9.81"`` as numbers."""
    if text is None:
        return None
    try:
        numbers = tuple(float(x) for x in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise InputError(f"--gravity needs three numbers such as 0,0,-9.81, not {text!r}")
    return numbers
