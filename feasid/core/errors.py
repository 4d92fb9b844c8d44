"""Every error that feasid raises on purpose, each carrying the offending data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from feasid.core.text import escape_controls


class FeasidError(Exception):
    """Base of every error raised on purpose.

    Keyword arguments become attributes, so that a program need not parse the message:
    ``error.joint``, ``error.column``, ``error.row``, ``error.path``, ``error.line``. Control
    characters are escaped in the message, and not in the attributes.

    Parameters
    ----------
    message : str
    **data
        What was found, by name; also in the attribute ``data``.
    """

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(escape_controls(message))
        self.data: dict[str, Any] = data
        for key, value in data.items():
            setattr(self, key, value)


class InputError(FeasidError, ValueError):
    """A file, an argument or a value cannot be used."""


class DescriptionError(InputError):
    """A robot description is wrong: names file, line, column, link or joint, and attribute."""


class UnsupportedJointError(DescriptionError):
    """A joint of an unsupported kind; the message names it."""


class LogError(InputError):
    """A log is wrong: names the joint, column, row or time."""


class NotEnoughDataError(LogError):
    """Fewer usable rows than the problem has unknowns."""


class SecurityError(InputError):
    """An untrusted file tried something that is never allowed (entities, pickles, paths)."""


class LimitError(InputError):
    """A file is larger or deeper than a stated limit, which can be raised by an option."""


class OutputError(FeasidError, OSError):
    """A result cannot be written; an existing file is unchanged."""


class UselessFitError(FeasidError):
    """A fit that predicts no better than no model is not written unless it is forced."""


class InfeasibleConstraintsError(InputError):
    """Constraints contradict each other; ``conflict`` names a minimal set of them."""


class ExcitationError(FeasidError):
    """No motion that satisfies all constraints was found; ``broken`` lists the violated ones."""


class SolverError(FeasidError):
    """No solver answer passed verification; ``attempts`` lists what was tried."""


class CertificateError(FeasidError):
    """A certificate is malformed or does not prove what it claims."""


class RankError(FeasidError):
    """A count of identifiable combinations is not confirmed by random motions; names the joint."""


class MissingExtraError(FeasidError, ImportError):
    """An optional dependency is absent; the message is the command that installs it."""


DISTRIBUTION = "feasid"  #: The installed package that has the extras.


def missing_extra(need: str, package: str, extra: str) -> MissingExtraError:
    """Build the error for an absent optional package.

    `need`: what the user wanted, as the start of a sentence: ``"reading Parquet"``; `package`: the
    package that is absent; `extra`: the extra that installs it.
    """
    command = f'pip install "{DISTRIBUTION}[{extra}]"'
    return MissingExtraError(f"{need} needs {package}: {command}", package=package, extra=extra)


@contextmanager
def name_input(name: str) -> Iterator[None]:
    """Errors about one of several inputs begin with its name."""
    try:
        yield
    except FeasidError as error:
        raise type(error)(f"{name}: {error}", **error.data) from error


@contextmanager
def refuse_damage(path: object, what: str, kind: type[InputError] = LogError) -> Iterator[None]:
    """Errors of a library, which have no common base, as one that says what of a file is wrong."""
    try:
        yield
    except (FeasidError, MemoryError):
        raise
    except Exception as error:
        raise kind(f"{path}: {what}: {' '.join(str(error).split())}", path=str(path)) from error


def require(need: str, extra: str, *packages: str) -> None:
    """Raise `missing_extra` for the first of the packages that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise missing_extra(need, package, extra)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known name, else an empty string."""
    close = get_close_matches(str(name), [str(k) for k in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
