"""The command line: thin commands over the library, each in a module of its own.

A command's module has ``add_arguments(parser)`` and ``run(arguments)``,
which returns the exit status. Only the chosen command's module is imported, so that
``feasid check`` starts without solvers or pandas.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from feasid.cli.terminal import gated, give_up_output
from feasid.core.files import journal
from feasid.core.threads import limit_before_numpy
from feasid.errors import FeasidError, did_you_mean

COMMANDS = {
    "fit": "identify a robot from its log, feasibly, and write it back as URDF",
    "reduce": "shrink logs to a small file that adds and is fitted later",
    "demo": "do that on a real log inside the package",
    "doctor": "say what is wrong with a log and what mends it",
    "payload": "identify a tool or load, from logs with and without it or a wrist sensor",
    "gains": "torque per unit of motor current, by a known load or the description",
    "report": "a saved fit as an HTML page, or two side by side",
    "show": "what a saved fit says, and whether its proof holds",
    "errors": "torque errors of a saved fit on other logs",
    "models": "which friction a log shows: joint terms compared on stretches held out",
    "ranges": "the values that parameters can have, given a saved fit's log: ends proved",
    "predict": "torques of a saved fit for the motion of a log",
    "watch": "a log played back: what is learnt while the robot runs, and when to use it",
    "export": "the model as C code: dynamics, mass matrix, regressor",
    "check": "is this model possible? exact verdicts on URDF and MJCF files",
    "correct": "the closest model that can exist, with a minimal change of the file",
    "compare": "two models' base parameters side by side: do they move alike?",
    "excite": "a motion that makes the log worth fitting",
    "base": "which parameter combinations of a robot can be identified",
    "verify": "check a certificate exactly, without any solver",
    "completion": "a script that completes commands and options in bash, zsh or fish",
}

EXIT_ERROR = 2
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM: everything is cleaned up as after Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, 2 for any error that has a message."""
    argv = list(sys.argv[1:] if argv is None else argv)
    limit_before_numpy()
    with journal() as written, _termination():
        try:
            with gated():
                return _guarded(argv, written)
        except BrokenPipeError:
            give_up_output()
        except OSError as error:
            print(f"feasid: error: cannot print: {error.strerror or error}", file=sys.stderr)
            give_up_output()
    return EXIT_ERROR


def _guarded(argv: list[str], written: Callable[[], list[str]]) -> int:
    try:
        status = _dispatch(argv)
        sys.stdout.flush()
        return status
    except FeasidError as error:
        from feasid.cli.speech import at_the_prompt

        print(f"feasid: error: {at_the_prompt(str(error))}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt as error:
        ended = isinstance(error, Terminated)
        files = written()
        kept = f"written before, whole: {', '.join(files)}" if files else "nothing was written"
        print(f"\nfeasid: {'terminated' if ended else 'interrupted'}; {kept}", file=sys.stderr)
        return EXIT_TERMINATED if ended else EXIT_INTERRUPTED


@contextmanager
def _termination() -> Iterator[None]:
    """SIGTERM raises meanwhile, in a command that runs in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(_usage())
        return 0 if argv else EXIT_ERROR
    if argv[0] in ("-V", "--version"):
        from feasid import __version__

        print(f"feasid {__version__}")
        return 0
    name = argv[0]
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        print(f"feasid: error: no command {name!r}{hint}\n\n{_usage()}", file=sys.stderr)
        return EXIT_ERROR
    module = import_module(f"feasid.cli.{name}")
    from feasid.cli.options import Parser

    parser = Parser(prog=f"feasid {name}", description=module.__doc__)
    module.add_arguments(parser)
    arguments = parser.parse_args(argv[1:])
    arguments.typed = shlex.join(["feasid", *argv])
    return int(module.run(arguments))


def _usage() -> str:
    lines = [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: feasid COMMAND ...", "", *lines, "feasid COMMAND --help tells more."])
