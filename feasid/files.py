"""Writing files so that nothing is ever half-written or silently replaced."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from feasid.errors import OutputError


def write_aside(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write to a temporary file beside `path`, flush it to disk, then rename it into place.

    Raises
    ------
    OutputError
        If `path` exists and `overwrite` is False, or the folder cannot be written; what was there
        before is intact.
    """
    target = Path(path)
    check_writable(target, overwrite=overwrite)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise OutputError(f"cannot write {target}: {error.strerror}", path=str(target)) from error


def check_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Say early that an output file cannot be written, before any long work is done."""
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder", path=str(target))
    if target.exists() and not overwrite:
        raise OutputError(
            f"{target} exists; pass overwrite=True (--overwrite) to replace it", path=str(target)
        )
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {target}: no folder {target.parent}", path=str(target))
