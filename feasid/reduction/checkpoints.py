"""What was reduced stays reduced: each log's result in a folder, by the content of the log.

Work that was interrupted goes on where it was, and gives the same bits: the results are the same
and are added in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from feasid.core.files import is_folder, is_regular, write_aside
from feasid.errors import FeasidError, OutputError
from feasid.logs.digest import digest
from feasid.logs.recording import Recording, key_of
from feasid.reduction.archive import FORMAT
from feasid.reduction.fingerprint import fingerprint
from feasid.reduction.task import Work, reduce_task
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot

SUFFIX = ".part"


def checkpointed(
    task: Work,
    robot: Robot,
    columns: Sequence[int],
    folder: Path,
    measured: Sequence[str] | None = None,
) -> Reduced:
    """Reduce one log, or read what it gave before with this robot and these options."""
    if not isinstance(task.source, Recording) or hasattr(task.source.source, "dask"):
        return reduce_task(task, robot, columns, measured)
    own = key_of({**task.options, "measured": measured})
    meaning = FORMAT, fingerprint(robot, columns), digest(task.source), own
    path = folder / f"{hashlib.sha256(repr(meaning).encode()).hexdigest()}{SUFFIX}"
    if is_regular(path):
        with suppress(FeasidError):  # damaged: it is made again
            return Reduced.load(path)
    reduced = reduce_task(task, robot, columns, measured)
    write_aside(path, reduced.to_bytes(), overwrite=True, noted=False)
    return reduced


def begin(folder: Path, fresh: bool) -> None:
    """Make the folder; when `fresh`, nothing in it is used again.

    Raises
    ------
    OutputError
        It cannot be made.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {error.strerror}", path=str(folder)) from error
    if fresh:
        _empty(folder)


def finish(folder: Path) -> None:
    """Remove the folder; what is not ours in it stays."""
    if is_folder(folder):
        _empty(folder)
        with suppress(OSError):
            folder.rmdir()


def kept(folder: Path) -> int:
    """How many logs have results in the folder."""
    return len(list(folder.glob(f"*{SUFFIX}")))


def _empty(folder: Path) -> None:
    for part in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            part.unlink()
