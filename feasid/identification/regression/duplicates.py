"""Logs with the same content: a log that is given twice, and test logs that were fitted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import is_folder, is_regular
from feasid.identification.regression.triangle import Reduced
from feasid.logs.recording import Recording, content_digest, read_signals
from feasid.options.complete import select_options
from feasid.options.tables import ReadOptions
from feasid.robot.description import Robot


def refuse_repeated_logs(sources: Sequence[Recording | Reduced]) -> None:
    """Raise when two of the logs hold the same; only those of one extent are compared."""

    @cache
    def digest(k: int) -> str:
        """Of the content; equal for equal logs or equal reduced data."""
        if isinstance(source := sources[k], Recording):
            return content_digest(source)
        return hashlib.sha256(b"".join(t.tobytes() for t in source.triangles)).hexdigest()

    known: dict[Hashable, list[int]] = {}
    inside = {d: k for k, s in enumerate(sources) if isinstance(s, Reduced) for d in s.digests}
    for k, source in enumerate(sources):
        file = isinstance(source, Recording) and is_regular(source.name)
        if inside and file and (other := inside.get(digest(k))) is not None:
            raise _overlap_error(sources, k, other)
        # A key that is equal for equal logs, without reading them.
        extent: Hashable
        if isinstance(source, Reduced):
            extent = "reduced", source.fingerprint, source.samples
        elif not source.name and not hasattr(source.source, "dask"):
            extent = source.frame.shape
        elif is_folder(source.name):
            extent = os.path.realpath(source.name)
        elif file:
            extent = os.stat(source.name).st_size
        else:
            continue
        same = known.setdefault(extent, [])
        for earlier in same:
            if digest(earlier) == digest(k):
                raise _overlap_error(sources, k, earlier)
        same.append(k)


def _overlap_error(sources: Sequence[Recording | Reduced], k: int, other: int) -> InputError:
    # Numbers of logs, counted from one, with their names where they have them.
    names = [getattr(source, "name", "") for source in sources]
    again, known = (f"log {i + 1}{f' ({names[i]})' if names[i] else ''}" for i in (k, other))
    text = f"{again} is in {known} already: its rows would count twice; give it once"
    return InputError(text, logs=(other, k))


SAME_ROWS = 1e-9  #: Relative difference of all second moments below which two logs are the same.

SHARED = 0.1
"""Share of a test log's rows that may be rows of the fitted log: postures at rest repeat."""

SAME_MOTION = 0.1
"""Relative difference of the regressors' second moments that two runs of one motion leave."""

ROUNDING = 1e-20  #: Second moment, relative to the largest, below which a column is rounding.

THE_SAME = "the test log is the fitted log: its errors say nothing about other motions"


def find_leakage(fitted: Reduced, test: Reduced) -> str | None:
    """A note if a test log holds the fitted rows or repeats the fitted motion."""
    if fitted.fingerprint != test.fingerprint:
        return None
    pairs = [*zip(fitted.triangles, test.triangles, strict=True)]
    if max(_moment_distance(a, b) for a, b in pairs) < SAME_ROWS:
        return THE_SAME
    motion = max(_moment_distance(a[:, :-1], b[:, :-1]) for a, b in pairs if a.shape[1] > 1)
    if motion < SAME_MOTION:
        return (
            "the test log repeats the fitted motion: its errors show that the fit repeats, not "
            "that it extrapolates"
        )
    return None


def find_shared_rows(
    fitted: Sequence[Recording],
    test: Sequence[Recording | Reduced],
    robot: Robot,
    options: tuple[Any, Any],
    measured: Sequence[str] | None = None,
) -> str | None:
    """A note if rows of a test log are rows of a fitted one; streamed logs are not compared.

    `options` are those with which the fitted logs and the test logs are read.
    """
    import pandas as pd

    def hashes(recording: Recording, options: Any) -> npt.NDArray[np.uint64]:
        """A hash per row of positions and torques."""
        torque = True if measured is None else measured
        raw = read_signals(recording, robot, torque=torque, **select_options(ReadOptions, options))
        cells = pd.DataFrame(np.hstack([raw.values["q"], raw.values["tau"]]))
        return np.asarray(pd.util.hash_pandas_object(cells, index=False), dtype=np.uint64)

    ours = [r for r in fitted if not r.streamed]
    theirs = [r for r in test if isinstance(r, Recording) and not r.streamed]
    if not ours or not theirs:
        return None
    known = np.unique(np.concatenate([hashes(r, options[0]) for r in ours]))
    tested = np.unique(np.concatenate([hashes(r, options[1]) for r in theirs]))
    share = float(np.isin(tested, known).mean())
    if share == 1.0 and len(tested) == len(known):
        return THE_SAME
    if share <= SHARED:
        return None
    return (
        f"{100 * share:.0f} % of the test log's rows are rows of the fitted log: its errors say "
        "little about other motions"
    )


def _moment_distance(a: Array, b: Array) -> float:
    """Relative difference of mean second moments a'a / n and b'b / n."""
    first, second = a.T @ a, b.T @ b
    power = np.diag(first)
    power = np.where(power > ROUNDING * power.max(), power, np.inf)  # columns that are nothing
    scale = np.sqrt(np.outer(power, power))
    # Logs may differ in length: moments are compared up to a common factor.
    ratio = np.trace(first / scale) / max(float(np.trace(second / scale)), 1e-300)
    return float(np.abs((first - ratio * second) / scale).max())
