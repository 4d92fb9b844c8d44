"""Reading files and writing them, each in one function that all others use.

What is read is a regular file, or standard input for ``-``: it is opened once and inspected through
its handle. So a pipe or device cannot block or feed without end, and replacing the file in between
has no effect. Outputs are written to a temporary file in the same folder and then renamed.
"""

from __future__ import annotations

import errno
import glob
import inspect
import io
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from feasid.core.errors import InputError, LimitError, OutputError, did_you_mean

STDIN = "-"  #: Stands for standard input where a file is read.
MOST_BYTES = 2**30  #: Largest number of bytes read of a file, unless a smaller limit is given.
PIECE = 2**24  #: Bytes that are read at a time.
ASIDE = ".feasid-"  #: Beginning of the names of files that are written aside and then renamed.
MOST_NAMES = 10_000  #: Largest number of names in a folder that are compared with a missing file's.

# O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

# O_EXCL: a file or link of this name that somebody else puts there is not written to.
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

DEFERRED = [s for s in signal.Signals if s.name[3:] in ("HUP", "INT", "QUIT", "TERM", "XCPU")]
"""Signals that wait while a file is written."""

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Error numbers of file systems without hard links."""

Name = str | os.PathLike[str]

AnyName = TypeVar("AnyName", bound=Name)

Function = TypeVar("Function", bound=Callable[..., Any])

PARAMETERS = "\n\nParameters\n----------\n"

OUTPUT = """path : path
{}overwrite : bool
    Whether a file that exists is replaced.

Raises
------
OutputError
    `path` exists and `overwrite` is False, or it cannot be written. An existing file is unchanged.
"""
"""End of the docstring of what writes one file, with its other parameters."""


def document_output(function: Function) -> Function:
    """Add `OUTPUT` to the docstring of a function that writes one file, before its own errors."""
    text, _, errors = (inspect.getdoc(function) or "").partition("\n\nRaises\n------\n")
    head, _, parameters = f"{text}\n".partition(PARAMETERS)
    function.__doc__ = f"{head.strip()}{PARAMETERS}{OUTPUT.format(parameters)}{errors}"
    return function


# -- reading --------------------------------------------------------------------------------------


@contextmanager
def open_for_reading(path: Name, most: int = MOST_BYTES) -> Iterator[BinaryIO]:
    """Open a regular file, or standard input for ``-``, of at most `most` bytes.

    Raises InputError: no such file (with the nearest name that exists), a folder, a pipe or device,
    or unreadable. Raises LimitError: it is larger than `most`.
    """
    if os.fspath(path) == STDIN:
        yield io.BytesIO(read_rest(sys.stdin.buffer, "standard input", most))
        return
    # A handle of a regular file.
    try:
        _refuse_irregular(path, os.stat(path).st_mode)  # opening a device may already do something
        handle = os.open(path, READ)
    except FileNotFoundError as error:
        raise missing_file_error(path) from error
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(path, error) from error
    try:
        _refuse_irregular(path, os.fstat(handle).st_mode)
    except InputError:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        if os.fstat(handle).st_size > most:
            raise too_large_error(path, most)
        try:
            yield file
        except OSError as error:
            if isinstance(error, InputError | OutputError):
                raise
            raise _unreadable(path, error) from error


def read_whole(path: Name, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file that `reading` opens; at most `most`, should it grow meanwhile."""
    with open_for_reading(path, most) as file:
        return read_rest(file, path, most)


def read_rest(file: IO[bytes], path: Name, most: int) -> bytes:
    """Read the rest of an open file, at most `most` bytes; memory is taken for what is there."""
    pieces, size = [], 0
    while piece := file.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise too_large_error(path, most)
    return b"".join(pieces)


def file_size(file: IO[bytes]) -> int:
    """Bytes of an open file, which is left at its start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


is_regular, is_folder = os.path.isfile, os.path.isdir
"""Whether one is there; no name is too long or too odd to be asked about."""


def missing_file_error(path: Name) -> InputError:
    """The error for a file that does not exist, with the nearest name that does."""
    file = Path(path)
    if not is_folder(file.parent):
        return InputError(
            f"{file}: no such file, and no folder {str(file.parent)!r}", path=str(file)
        )
    try:
        names = sorted(os.listdir(file.parent))[:MOST_NAMES]
    except OSError:
        names = []
    return InputError(f"{file}: no such file{did_you_mean(file.name, names)}", path=str(file))


def too_large_error(path: Name, most: int) -> LimitError:
    """The error for a file of more than `most` bytes."""
    return LimitError(f"{path}: more than the limit of {most} bytes", path=str(path), limit=most)


def _refuse_irregular(path: Name, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
    advice = f"; what comes through a pipe is read as standard input, {STDIN}"
    raise InputError(
        f"{path}: {what}, expected a file{advice if stat.S_ISFIFO(mode) else ''}", path=str(path)
    )


def _unreadable(path: Name, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{path}: cannot be read: {reason}", path=str(path))


# -- writing --------------------------------------------------------------------------------------


class Journal:
    """Outputs that were put into place, and the files that they replaced.

    It asks the file system, so it is right in the middle of an interruption, too.
    """

    def __init__(self) -> None:
        self._noted: list[tuple[Path, int, bytes | None]] = []

    def note(self, target: Path, inode: int, overwrite: bool) -> None:
        """Remember a file before it is put into place."""
        before = target.read_bytes() if overwrite and target.exists() else None
        self._noted.append((target, inode, before))

    def files(self) -> list[str]:
        """Paths of the files that still exist."""
        return [str(path) for path, inode, _ in self._noted if _inode(path) == inode]

    def take_back(self) -> list[str]:
        """Remove the outputs, or restore the files that they replaced; returns the paths that could
        not be removed.
        """
        for entry in self._noted[::-1]:
            path, inode, content = entry
            if _inode(path) != inode:
                continue
            with suppress(OSError):
                path.unlink()
                if content is not None:
                    write_atomically(path, content, noted=False)
                self._noted.remove(entry)  # what was restored may have the same inode
        return self.files()


_JOURNAL: ContextVar[Journal | None] = ContextVar("journal", default=None)


def write_atomically(
    path: Name, content: bytes, *, overwrite: bool = False, noted: bool = True
) -> None:
    """Write a temporary file, flush it to disk, then rename it to `path`.

    Links are followed: the file that a link points to is replaced, the link stays. A file that is
    replaced keeps its mode and, where permitted, its owner. Without `overwrite` the file is
    created atomically, so that one that appears meanwhile is not replaced. Without `noted` the
    file is in no `journal`: the user did not ask for it. Ctrl-C, SIGTERM and a closed terminal take
    effect after the file is written.

    Raises OutputError: if `path` exists and `overwrite` is False, is no regular file, or cannot be
    written; an existing file is unchanged, and no temporary file remains.
    """
    write_together({path: content}, overwrite=overwrite, noted=noted)


def write_together(
    contents: Mapping[AnyName, bytes], *, overwrite: bool = False, noted: bool = True
) -> None:
    """Write files by their paths that belong together, as `write_atomically`: all or none.

    All are on disk before the first is put into place; if a later one fails, those before it are
    removed again.
    """
    together = Journal()
    # A single file leaves nothing to take back, so that the file it replaces is not read.
    journals = [together] * (len(contents) > 1) + [j for j in (_JOURNAL.get(),) if noted and j]
    staged: list[tuple[Name, Path, Path]] = []
    with _defer_signals():
        try:
            for path, content in contents.items():
                target, status = _target(path, overwrite)
                beside = target.with_name(f"{ASIDE}{os.urandom(8).hex()}")
                staged.append((path, target, beside))
                with _named_errors(path):
                    _write_synced(beside, content)
                    if status is not None:
                        # Mode and, where permitted, owner and group are those of the replaced file.
                        now = beside.stat()
                        if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
                            with suppress(OSError):
                                os.chown(beside, status.st_uid, status.st_gid)
                        os.chmod(beside, stat.S_IMODE(status.st_mode))
            for name, target, beside in staged:
                with _named_errors(name):
                    for journal in journals:
                        journal.note(target, beside.stat().st_ino, overwrite)
                    _put_into_place(beside, target, overwrite)
        except BaseException:
            together.take_back()
            raise
        finally:
            for _, _, beside in staged:
                with suppress(OSError):
                    beside.unlink(missing_ok=True)


@contextmanager
def _named_errors(path: Name) -> Iterator[None]:
    """Errors of the system as those of an output."""
    try:
        yield
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_synced(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, CREATE, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_into_place(beside: Path, target: Path, overwrite: bool) -> None:
    """Give a finished file its name: without `overwrite` unless that is taken."""
    if overwrite:
        os.replace(beside, target)
        return
    try:
        os.link(beside, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Without hard links an empty file reserves the name, unless there is one.
        os.close(os.open(target, CREATE, 0o666))
        os.replace(beside, target)


def with_ending(path: Name, ending: str) -> Path:
    """The path with another ending; `OutputError` where it has no name, such as ``.``."""
    try:
        return Path(path).with_suffix(ending)
    except ValueError as error:
        raise _unwritable(repr(os.fspath(path)), ValueError("it names no file")) from error


def check_writable(path: Name, *, overwrite: bool = False) -> None:
    """Check that an output file can be written, before any long work is done."""
    target, _ = _target(path, overwrite)
    probe = target.with_name(f"{ASIDE}{os.urandom(8).hex()}")
    with _defer_signals():
        try:
            os.close(os.open(probe, CREATE, 0o666))
        except OSError as error:
            raise _unwritable(path, error) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Defer signals that would end the process, so that no temporary file remains.

    A signal mask is not enough, because the system delivers a process's signals to any thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    waiting: list[int] = []
    handlers = {number: signal.getsignal(number) for number in DEFERRED}
    try:
        for number, handler in handlers.items():
            if handler is not None:  # None: it was set outside Python and could not be restored
                signal.signal(number, lambda waited, _: waiting.append(waited))
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        for waited in waiting:
            signal.raise_signal(waited)


def check_outputs(
    outputs: Mapping[str, Name | None], inputs: Iterable[Name | None], *, overwrite: bool = False
) -> None:
    """Check all outputs of a command before it begins.

    `outputs`: from what the user calls an output, such as ``--out``, to its path; None is left out;
    `inputs`: files, folders and patterns that are read. Raises OutputError: an output cannot be
    written. Raises InputError: it is an input, or lies inside an input folder; or two are one file.
    """
    sources = set[str]()
    for text in (os.fspath(name) for name in inputs if name is not None):
        # What matches nothing may be a file with brackets in its name.
        matches = glob.glob(text, recursive=True) if glob.has_magic(text) else []
        sources |= {os.path.realpath(path) for path in matches or [text]}
    named_paths: dict[str, str] = {}
    for label, path in outputs.items():
        if path is None:
            continue
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError) as error:
            raise _unwritable(path, error) from error
        # The next run would read an output in an input folder as an input.
        if any(
            _is_same_file(real, s) or (is_folder(s) and Path(s) in Path(real).parents)
            for s in sources
        ):
            raise InputError(f"{label}: {path} is an input; choose another output", path=str(path))
        clash = next(
            (name for known, name in named_paths.items() if _is_same_file(real, known)), None
        )
        if clash is not None:
            raise InputError(f"{clash} and {label} are the same file, {path}", path=str(path))
        check_writable(path, overwrite=overwrite)
        named_paths[real] = label


@contextmanager
def record_written_files() -> Iterator[Journal]:
    """Yield a journal of the files that are put into place meanwhile."""
    journal = Journal()
    token = _JOURNAL.set(journal)
    try:
        yield journal
    finally:
        _JOURNAL.reset(token)


def _target(path: Name, overwrite: bool) -> tuple[Path, os.stat_result | None]:
    """The path with links resolved, and the file that is there now."""
    try:
        target = Path(os.path.realpath(path))
        status = target.stat()
    except FileNotFoundError:
        status = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise OutputError(f"cannot write {path}: it is a folder", path=str(path))
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OutputError(f"cannot write {path}: it is no regular file", path=str(path))
    if status is not None and not overwrite:
        raise _exists(path)
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {path}: no folder {target.parent}", path=str(path))
    return target, status


def _is_same_file(a: str, b: str) -> bool:
    try:
        return a == b or os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _exists(path: Name) -> OutputError:
    return OutputError(f"{path} exists; pass overwrite=True to replace it", path=str(path))


def _unwritable(path: Name, error: Exception) -> OutputError:
    reason = getattr(error, "strerror", None) or error
    return OutputError(f"cannot write {path}: {reason}", path=str(path))
