"""The command line: thin commands over the library.

A-COMMAND is a function ``run_a_command(arguments)``, which prints sentences and returns the exit
status with the data of ``--json``; `feasid.cli.options.takes` notes its arguments. Only that
command's module is imported, so that ``feasid check`` starts without solvers or pandas.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from feasid import __version__
from feasid.cli.terminal import discard_output, escape_streams
from feasid.core.errors import FeasidError, did_you_mean
from feasid.core.files import Journal, record_written_files
from feasid.core.progress import set_progress
from feasid.core.threads import limit_before_numpy

GROUPS = {
    "identify": {
        "fit": "identify physically consistent parameters from logs; write URDF, MJCF, SDF",
        "fleet": "fit robots of one type together, one folder or file of logs each",
        "demo": "fit a real log that is shipped with the package",
        "ranges": "certified ranges of parameters of a saved fit",
        "payload": "identify a payload from logs with and without it, or from a wrist sensor",
        "torque-constants": "estimate the torque per unit of motor current",
        "base-parameters": "list the identifiable parameter combinations of a robot",
    },
    "logs": {
        "diagnose": "find problems in logs and suggest fixes",
        "excite": "design an exciting trajectory",
        "reduce": "compress logs for later or combined fits",
        "store": "keep reduced logs by robot and day; their drift, and a fit",
        "replay": "replay a log through the online identifier",
    },
    "model files": {
        "check": "check URDF, MJCF and SDF files for physical consistency",
        "correct": "write the closest consistent model",
        "compare": "compare the base parameters of two models",
    },
    "saved fits": {
        "show": "print a saved fit and verify its certificate",
        "errors": "print the torque errors of a saved fit on other logs, one row a log",
        "report": "write an HTML page of a saved fit, or of two side by side",
        "predict": "predict torques for the motion of a log",
        "simulate": "simulate a log with a saved fit or a written file",
        "sample": "draw robots from a saved fit or around a description",
        "export": "generate C code: dynamics, mass matrix, regressor",
    },
    "other": {
        "explain": "say what the code of a finding means, and what to do",
        "verify": "verify a certificate without a solver",
        "completion": "print a completion script for bash, zsh or fish",
    },
}
"""Commands by purpose, and what each does."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

SHARED_MODULES = {
    "check": "check compare", "logs": "diagnose excite reduce replay", "fit": "fit demo",
    "fleet": "fleet store", "explain": "explain completion", "loads": "payload torque-constants",
    "saved_fits": "show errors predict simulate ranges report sample export",
}  # fmt: skip
"""Modules of several commands; any other command has a module of its name."""

Answer: TypeAlias = tuple[int, Callable[[], Mapping[str, Any]]]
"""Exit status of a command, and what makes the data that ``--json`` prints."""

EXIT_ERROR = 2  #: Exit status of a command that ended with an error message.
ENDINGS = [s for s in signal.Signals if s.name in ("SIGHUP", "SIGTERM")]  #: As Ctrl-C does.


class Command(NamedTuple):
    """One command, and the function that runs it, whose docstring says what it does."""

    name: str
    run: Callable[[Any], Answer]

    def add_arguments(self, parser: Any) -> None:
        """Add its arguments; those of all commands last."""
        for add in self.run.parts:  # type: ignore[attr-defined]
            add(parser)
        if self.name != "completion":  # prints a script for shells
            text = "print JSON on stdout and everything else on stderr"
            parser.add_argument("--json", action="store_true", help=text)


def load_command(name: str) -> Command:
    """Import the module of a command."""
    word = name.replace("-", "_")
    shared = (module for module, names in SHARED_MODULES.items() if name in names.split())
    module = import_module(f"feasid.cli.{next(shared, word)}")
    return Command(name, getattr(module, f"run_{word}"))


class Terminated(KeyboardInterrupt):
    """A signal of `ENDINGS`, by its number: everything is cleaned up as after Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, 2 for any error that has a message."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # closed: the first file that is opened would take its place
        print("feasid: error: cannot print: standard output is closed", file=sys.stderr)
        return EXIT_ERROR
    limit_before_numpy()
    set_progress(True)
    with record_written_files() as written, _raise_on_endings():
        try:
            with escape_streams():
                return _run_command(argv, written)
        except OSError as error:
            print(f"feasid: error: cannot print: {error.strerror or error}", file=sys.stderr)
            discard_output(sys.stdout)
        finally:
            set_progress(False)
    return EXIT_ERROR


def _run_command(argv: list[str], written: Journal) -> int:
    try:
        status = _dispatch(argv)
        sys.stdout.flush()
        return status
    except (FeasidError, MemoryError) as error:
        from feasid.options.spelling import spell_error

        print("feasid: error:", spell_error(str(error) or "no memory", argv), file=sys.stderr)
        # The outputs of a command appear together or not at all.
        files = written.files()
        stayed = written.take_back()
        gone = ", ".join(path for path in files if path not in stayed)
        why = "removed again, because the outputs of a command appear together or not at all"
        parts = [f"{why}: {gone}"] * bool(gone)
        parts += [f"could not be removed: {', '.join(stayed)}"] * bool(stayed)
        if parts:
            print(f"feasid: {'; '.join(parts)}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt as error:
        number: int = error.args[0] if isinstance(error, Terminated) else signal.SIGINT
        files = written.files()
        outcome = f"written before, whole: {', '.join(files)}" if files else "nothing was written"
        word = "interrupted" if number == signal.SIGINT else "terminated"
        with suppress(OSError):  # the terminal may be closed
            print(f"\nfeasid: {word}; {outcome}", file=sys.stderr)
        # As shells report a process that a signal ended.
        return 128 + number


@contextmanager
def _raise_on_endings() -> Iterator[None]:
    """Signals of `ENDINGS` raise meanwhile, in the main thread; one that is ignored stays so."""

    def terminate(number: int, _: object) -> None:
        raise Terminated(number)

    main = threading.current_thread() is threading.main_thread()
    heard = [s for s in ENDINGS if main and signal.getsignal(s) not in (None, signal.SIG_IGN)]
    before = {s: signal.signal(s, terminate) for s in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: feasid COMMAND ...\n\nfeasid COMMAND --help shows the options of a command")
        for title, commands in GROUPS.items():
            print(f"\n{title}:")
            for name, line in commands.items():
                print(f"  {name:16} {line}")
        return 0 if argv else EXIT_ERROR
    if argv[0] in ("-V", "--version"):
        print(f"feasid {__version__}")
        return 0
    name = argv[0]
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        print(
            f"feasid: error: no command {name!r}{hint}\nfeasid --help lists the commands",
            file=sys.stderr,
        )
        return EXIT_ERROR
    command = load_command(name)
    from feasid.cli.options import Parser

    parser = Parser(prog=f"feasid {name}", description=command.run.__doc__)
    command.add_arguments(parser)
    arguments = parser.parse_args(argv[1:])
    arguments.typed = shlex.join(["feasid", *argv])
    # A check prints in several formats, of which JSON is one.
    if not (vars(arguments).get("json") or vars(arguments).get("format") == "json"):
        return command.run(arguments)[0]
    from feasid.cli.output import SCHEMA
    from feasid.core.notes import as_json

    # Standard output holds one object and no sentence, so that programs can read it.
    with redirect_stdout(sys.stderr):
        status, data = command.run(arguments)
    answer = {"schema": SCHEMA, "command": name, "feasid": __version__, **data()}
    print(json.dumps(as_json(answer), indent=1, allow_nan=False))
    return status
