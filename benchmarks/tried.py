"""Changes made in the running process: Pytest collects its tests once, a fork of it tries a change.

Functions keep their identity and get the changed code, so that nothing is imported again. What
changes a class needs a process of its own, which reads the changed file.
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

HANGS = 60
"""Processor time beyond which a change counts as noticed [s]: without it tests take far less."""

WAITS = 240
"""Time after which a test that waits for what never comes counts as one that notices [s]."""

PLAIN = (int, float, str, type(None))
"""Types of the constants that may follow from a changed one."""


def functions(code: CodeType) -> Iterator[CodeType]:
    """Codes of a module's functions and methods, without those inside functions."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & inspect.CO_OPTIMIZED:
                yield inner
            else:
                yield from functions(inner)


def living(module: dict[str, Any]) -> dict[str, list[FunctionType]]:
    """The functions that exist with this namespace, by qualified name."""
    out: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__globals__ is module:
            out.setdefault(thing.__qualname__, []).append(thing)
    return out


def put(module: ModuleType, before: str, after: str) -> bool:
    """Put a change into a module that is loaded; False where that cannot be done."""
    old, new = (compile(text, module.__file__ or "", "exec") for text in (before, after))
    pairs = list(zip(functions(old), functions(new), strict=True))
    here = living(vars(module))
    done = False
    for a, b in pairs:
        for function in here.get(a.co_qualname, ()) if a != b else ():
            function.__code__ = b
            done = True
    return done or renewed(module, old, new, here, assigned(before, after))


def assigned(before: str, after: str) -> set[str]:
    """Constants of a module whose own statement differs."""
    pairs = zip(ast.parse(before).body, ast.parse(after).body, strict=True)
    differ = [b for a, b in pairs if ast.dump(a) != ast.dump(b)]
    inside = (n for s in differ if isinstance(s, ast.Assign | ast.AnnAssign) for n in ast.walk(s))
    return {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def renewed(
    module: ModuleType,
    old: CodeType,
    new: CodeType,
    here: dict[str, list[FunctionType]],
    changed: set[str],
) -> bool:
    """Put changed constants and defaults where they are, and where they were imported to."""
    first, second = ({"__name__": module.__name__, "__file__": module.__file__} for _ in range(2))
    exec(old, first), exec(new, second)
    done = False
    for name, value in second.items():
        before = first.get(name)
        own = name in changed and isinstance(value, (*PLAIN, tuple, dict))
        if (own or isinstance(value, PLAIN)) and not name.startswith("__") and value != before:
            for other in [m for m in sys.modules.values() if vars(m).get(name) == before]:
                setattr(other, name, value)
            done = True
    for name, (function, *_) in living(second).items():
        (original, *_) = living(first)[name]
        for part in ("__defaults__", "__kwdefaults__"):
            if getattr(function, part) != getattr(original, part):
                for own in here.get(name, ()):
                    setattr(own, part, getattr(function, part))
                    done = True
    return done


class Tried:
    """A plugin of Pytest: once all is collected, `work` is called in place of the tests."""

    def __init__(self, work: Callable[[Tried], None]) -> None:
        self.work = work
        self.failed: list[str] = []
        self.items: dict[str, pytest.Item] = {}

    def pytest_sessionstart(self) -> None:
        """A failure is enough, Hypothesis need not find its simplest form."""
        from hypothesis import Phase, settings

        settings.register_profile("first", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("first")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try everything, each in a fork."""
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    def failing(self, names: Sequence[str], change: Callable[[], bool]) -> str | None:
        """The first of these tests that fails with a change, None when all pass.

        Raises
        ------
        LookupError
            The change cannot be made here.
        """
        names = [name for name in names if name in self.items]
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            self.ended(names, change, write)
        os.close(write)
        with os.fdopen(read) as pipe:
            told = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == IMPOSSIBLE:
            raise LookupError
        return (told or f"exit status {status}") if status else None

    def ended(self, names: Sequence[str], change: Callable[[], bool], write: int) -> None:
        """Run the tests in this process up to a failure, and end it."""
        status = FAILED
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            limit = int(time.process_time()) + HANGS
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            signal.alarm(WAITS)
            status = IMPOSSIBLE if not change() else self.status(names)
            os.write(write, "".join(self.failed[:1]).encode())
        finally:
            os._exit(status)

    def status(self, names: Sequence[str]) -> int:
        """Run tests up to the first that fails."""
        items = [self.items[name] for name in names]
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                return FAILED
        return 0


FAILED, IMPOSSIBLE = 1, 3


def apart(where: Path, names: Sequence[str]) -> str | None:
    """The same in a process of its own, which reads the files of the copy."""
    order = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:randomly"]
    done = subprocess.run([*order, *names], cwd=where, capture_output=True, text=True)
    return done.stdout.splitlines()[-2] if done.returncode else None
