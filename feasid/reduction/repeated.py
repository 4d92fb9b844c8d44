"""A log that is given twice would count twice."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

from feasid.core.files import is_regular
from feasid.errors import InputError
from feasid.logs import digest
from feasid.logs.recording import Recording
from feasid.reduction.triangle import Reduced


def refuse_repeated(sources: Sequence[Recording | Reduced]) -> None:
    """Raise when two of the logs hold the same; only those of one extent are compared.

    Raises
    ------
    InputError
        Names both.
    """
    known: dict[Hashable, list[int]] = {}
    inside = {d: k for k, s in enumerate(sources) if isinstance(s, Reduced) for d in s.digests}
    for k, source in enumerate(sources):
        file = isinstance(source, Recording) and is_regular(source.name)
        if inside and file and (other := inside.get(_mark(source))) is not None:
            raise _repeated(sources, k, other)
        extent = _extent(source)
        if extent is None:
            continue
        same = known.setdefault(extent, [])
        if same and (mark := _mark(source)) in (marks := [_mark(sources[j]) for j in same]):
            raise _repeated(sources, k, same[marks.index(mark)])
        same.append(k)


def _repeated(sources: Sequence[Recording | Reduced], k: int, other: int) -> InputError:
    return InputError(
        f"{_called(sources, k)} is in {_called(sources, other)} already: its rows would count "
        "twice; give it once",
        logs=(other, k),
    )


def _called(sources: Sequence[Recording | Reduced], k: int) -> str:
    name = getattr(sources[k], "name", "")
    return f"log {k + 1}{f' ({name})' if name else ''}"


def _extent(source: Recording | Reduced) -> Hashable:
    if isinstance(source, Reduced):
        return "reduced", source.fingerprint, source.samples
    return digest.extent(source)


def _mark(source: Recording | Reduced) -> str:
    if isinstance(source, Recording):
        return digest.digest(source)
    found = hashlib.sha256()
    for triangle in source.triangles:
        found.update(triangle.tobytes())
    return found.hexdigest()
