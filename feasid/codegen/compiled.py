"""Routines as machine code: our C through the system's compiler, called without allocation."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from feasid.codegen.c import CCode
from feasid.codegen.routine import CodedModel
from feasid.core.arrays import Array
from feasid.errors import InputError

FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared")

COMPILER_TIMEOUT = 120.0
"""After which a compiler is given up."""


def find_compiler() -> str | None:
    """The C compiler: ``$CC``, or the first of cc, gcc, clang; None without one."""
    return next(
        (c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c)), None
    )


def compile_routines(source: CodedModel, kinds: tuple[str, ...]) -> dict[str, Callable[..., Array]]:
    """Functions of arrays, by kind.

    Each returns the same array at every call, overwritten by the next.

    Raises
    ------
    InputError
        There is no compiler, or it fails; with its words.
    """
    command = find_compiler()
    if command is None:
        raise InputError("no C compiler was found: install one or set CC, or use backend='python'")
    code = CCode(source, "robot", "double", kinds)
    with tempfile.TemporaryDirectory(prefix="feasid-", ignore_cleanup_errors=True) as folder:
        file, library = Path(folder, "robot.c"), Path(folder, "robot.so")
        file.write_text(code.text)
        Path(folder, "robot.h").write_text(code.header)
        _compile([command, *FLAGS, str(file), "-o", str(library), "-lm"])
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            raise InputError(f"what {command} compiled cannot be loaded: {error}") from error
    return {
        routine.name: _callable(loaded, routine.name, routine.inputs, len(routine.outputs))
        for routine in code.routines
    }


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILER_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the C compiler {command[0]!r} did not work: {error}") from error
    if done.returncode:
        raise InputError(f"{command[0]} could not compile the code: {done.stderr[:500]}")


def _callable(
    library: ctypes.CDLL, name: str, inputs: tuple[tuple[str, int], ...], size: int
) -> Callable[..., Array]:
    """A function that copies its arguments into arrays of its own and calls the code."""
    function = getattr(library, f"robot_{name}")
    function.restype = None
    buffers = [np.zeros(length) for _, length in inputs]
    out = np.zeros(size)
    pointers = [ctypes.c_void_p(b.ctypes.data) for b in (*buffers, out)]

    def call(*arguments: Array) -> Array:
        for buffer, argument in zip(buffers, arguments, strict=True):
            buffer[:] = argument
        function(*pointers)
        return out

    return call
