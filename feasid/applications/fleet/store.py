"""A store of reduced logs by robot and day: files in a folder that grow record by record.

Every log is one Parquet file, ``ROBOT/DAY_NUMBER_DIGEST.parquet``, with its robot, day, name,
seconds and the reduced data in two sizes, so that ``SELECT robot, day, seconds FROM
'store/*/*.parquet'`` works in DuckDB and a year of triangles is read without folds. A record is
written whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote, unquote

from feasid.applications.fleet.drift import Drift, find_drift
from feasid.core.arguments import checked_methods
from feasid.core.errors import (
    FeasidError,
    InputError,
    LogError,
    NotEnoughDataError,
    refuse_damage,
    require,
)
from feasid.core.files import open_for_reading, write_atomically
from feasid.core.threads import one_thread
from feasid.identification.regression.reduce import open_sources, reduce
from feasid.identification.regression.triangle import LARGEST_FILE, Reduced
from feasid.logs.recording import content_digest
from feasid.options.complete import check_options
from feasid.options.tables import FitOptions, LogOptions, ReduceOptions
from feasid.results.fit import Fit, fit
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import resolve_robot

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".parquet"

DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[1-9]) *(\..*)?", re.IGNORECASE | re.DOTALL)
"""Names that Windows gives to devices, with any ending: no folder can have them."""

OTHERS, LATEST = 8, 12
"""Robots that say what changes from day to day is usual, and how many of their last logs do."""


@checked_methods
class LogStore:
    """Reduced logs of robots of one type in a folder, by robot and day.

    Parameters
    ----------
    folder : path
        It is made when the first log is added.
    robot : Robot or path
        The description of the type. A record of another description is refused when it is read.
    **options
        Options of `feasid.reduce`, the same for all logs of the store. An automatic cut-off is that
        of the first log.

    Raises
    ------
    MissingExtraError
        pyarrow is not installed.
    InputError
        An option is unknown, or has a value that it cannot have.
    """

    def __init__(
        self, folder: str | Path, robot: Robot | str | Path, **options: Unpack[ReduceOptions]
    ) -> None:
        require("a store of logs", "parquet", "pyarrow")
        self.folder = Path(folder)
        self.robot = resolve_robot(None, robot)
        self.options = options
        check_options(ReduceOptions, options, "a store of logs")

    @property
    def robots(self) -> list[str]:
        """Names of the robots that have logs."""
        return sorted({unquote(path.parent.name) for path in self.folder.glob(f"*/*{SUFFIX}")})

    @property
    def table(self) -> pd.DataFrame:
        """One row per log: robot, day, name, samples and seconds."""
        import pandas as pd

        columns = ["robot", "day", "log", "samples", "seconds"]
        rows = [_read(path, columns) for path in sorted(self.folder.glob(f"*/*{SUFFIX}"))]
        return pd.DataFrame(rows, columns=columns)

    def add(
        self, data: Any, robot: str, day: str | None = None, *, compact: bool = False
    ) -> list[Path]:
        """Reduce logs, one record each.

        Parameters
        ----------
        data : DataFrame, mapping of arrays, path, folder, pattern, or many of these
            As `feasid.reduce` takes them.
        robot : str
            Name of the robot that was logged, such as its serial number.
        day : str, optional
            Of the log, ``"2026-11-28"``; default today, in UTC.
        compact : bool
            Keep triangles of the whole log alone, a tenth of the bytes: enough for `drift`. A fit
            of compact logs has no held-out errors.

        Returns
        -------
        list of Path
            The new files, one for each log. If a log fails, those before it are in the store.

        Raises
        ------
        LogError, NotEnoughDataError, InputError
            A log is not usable, or is in the store already; the message names it.
        OutputError
            A file cannot be written.
        """
        when = datetime.now(UTC).date() if day is None else _as_date(day)
        place, written = self.folder / quote(robot, safe=" "), list[Path]()
        names = {path.name.casefold(): unquote(path.name) for path in self.folder.glob("*")}
        alike = names.get(place.name.casefold(), robot)
        why = f"only case tells it from {alike!r}" if alike != robot else ""
        why = why or "trim its ends" * (not robot or robot != robot.strip(". "))
        why = why or "Windows has a device of this name" * bool(DEVICE.fullmatch(robot))
        if why:
            raise InputError(f"{robot!r} is no robot's name, give another: {why}", option="robot")
        for source in open_sources(data):
            if isinstance(source, Reduced):
                raise InputError("a store reduces logs itself: give the log, not reduced data")
            name, digest = source.name or "a table", content_digest(source)
            if there := [*place.glob(f"*_{digest[:16]}{SUFFIX}")]:
                raise InputError(f"{name} is in the store already, as {there[0]}", log=name)
            options, first = self.options, next(self.folder.glob(f"*/*{SUFFIX}"), None)
            if first and options.get("cutoff") is None:  # that of the logs before this one
                options = {**options, "cutoff": _read(first, ["cutoff"])["cutoff"] or False}
            try:
                reduced = reduce([source], self.robot, **options)
            except FeasidError as error:
                raise LogError(f"{name}: {error}", log=name) from error
            place.mkdir(parents=True, exist_ok=True)
            # By names, the records of a robot are in the order of days and of their addition.
            number = len([*place.glob(f"{when}_*{SUFFIX}")]) + 1
            path = place / f"{when}_{number:04d}_{digest[:16]}{SUFFIX}"
            head = {"robot": robot, "day": when, "log": Path(name).name, "digest": digest}
            write_atomically(path, _as_record(head, reduced, compact))
            written.append(path)
        return written

    def logs(self, robot: str, since: str | None = None) -> dict[str, Reduced]:
        """Reduced logs of a robot by day and name, with folds where all have them.

        Parameters
        ----------
        robot : str
        since : str, optional
            First day, ``"2026-11-28"``.

        Returns
        -------
        dict of Reduced

        Raises
        ------
        NotEnoughDataError
            The store has no log of this robot since then.
        InputError
            A record is damaged; `fit` and `drift` refuse one of another description, too.
        """
        return _load(self._paths(robot, since), "folds", "triangles")

    def fit(self, robot: str, since: str | None = None, **options: Unpack[FitOptions]) -> Fit:
        """Fit all logs of a robot, or those since a day.

        Parameters
        ----------
        robot : str
        since : str, optional
        **options
            Options of `feasid.fit`; joint terms are those of the store unless they are given.

        Returns
        -------
        Fit

        Raises
        ------
        NotEnoughDataError, InputError
            As `logs`, and as `feasid.fit`.
        """
        terms: Any = {k: v for k, v in self.options.items() if k not in LogOptions.__annotations__}
        return fit([*self.logs(robot, since).values()], self.robot, **terms | options)

    @one_thread()
    def drift(self, robot: str, since: str | None = None) -> Drift:
        """How friction, offsets and gains of a robot change from day to day.

        Parameters
        ----------
        robot : str
        since : str, optional

        Returns
        -------
        Drift
            Around one model of all these logs. What is usual from day to day follows from the
            last logs of other robots in the store.

        Raises
        ------
        NotEnoughDataError, InputError
            As `logs`.
        """
        mine, others = _load(self._paths(robot, since), "triangles"), {}
        for name in [other for other in self.robots if other != robot][:OTHERS]:
            others[name] = _load(self._paths(name, None)[-LATEST:], "triangles")
        first = next(iter(mine.values()))
        for name, logs in {robot: mine, **others}.items():
            for log, reduced in logs.items():
                if reduced.fingerprint != first.fingerprint:
                    text = f"{log} of {name!r} was reduced with another description or options"
                    raise InputError(f"{text} than {next(iter(mine))} of {robot!r}", log=log)
        model = reduce([first], self.robot, **self.options).robot  # verifies that it belongs to it
        assert model is not None
        return find_drift(robot, mine, others, model)

    def _paths(self, robot: str, since: str | None) -> list[Path]:
        """Records of a robot, the oldest first."""
        first = "" if since is None else str(_as_date(since))
        every = sorted((self.folder / quote(robot, safe=" ")).glob(f"*{SUFFIX}"))
        if paths := [path for path in every if path.name >= first]:
            return paths
        what = f" since {since}" if every else f"; it has {', '.join(self.robots) or 'none'}"
        raise NotEnoughDataError(f"{self.folder} has no log of {robot!r}{what}")


def _load(paths: Sequence[Path], *columns: str) -> dict[str, Reduced]:
    """Logs by day and name, from the first of the columns that all records have."""
    records = {path: _read(path, ["day", "log", *columns]) for path in paths}
    column = next(c for c in columns if all(record[c] for record in records.values()))
    out = dict[str, Reduced]()
    for path, record in records.items():
        name = f"{record['day']} {record['log']}"
        name += f" ({len(out) + 1})" * (name in out)  # logs of a day may have one name
        out[name] = Reduced.from_bytes(record[column], str(path))
    return out


def _as_date(day: str) -> date:
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise InputError(f"day {day!r} must be like 2026-11-28", option="day") from None


def _as_record(head: Mapping[str, Any], reduced: Reduced, compact: bool) -> bytes:
    """A Parquet file of one row."""
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    row = {
        **head,
        "samples": reduced.samples,
        "seconds": reduced.samples * reduced.period,
        "cutoff": reduced.cutoff,
        "triangles": reduced.compact().to_bytes(),
        "folds": None if compact else reduced.to_bytes(),
    }
    kinds = {"day": pa.date32(), "cutoff": pa.float64(), "folds": pa.binary()}
    table = pa.table({k: pa.array([v], kinds.get(k)) for k, v in row.items()})
    buffer = pa.BufferOutputStream()
    # Archives are compressed already.
    pq.write_table(table, buffer, compression="none", write_page_checksum=True)
    return bytes(buffer.getvalue())


def _read(path: Path, columns: list[str]) -> dict[str, Any]:
    """Some columns of a record."""
    pq: Any = import_module("pyarrow.parquet")
    damage = refuse_damage(path, "no record of a store", InputError)
    with open_for_reading(path, LARGEST_FILE) as file, damage:
        # Threads of Arrow's that still start when the process ends would abort it.
        record = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
        (row,) = record.read(columns, use_threads=False).to_pylist()
        return {name: row[name] for name in columns}
