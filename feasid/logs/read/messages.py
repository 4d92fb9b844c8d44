"""Messages of bags, record by record: MCAP files and the SQLite databases of ROS 2.

Only records and plain tables are read. What a file says a second time about itself (indexes,
statistics, metadata, views) may contradict them and is not used, so that the cost of reading
follows from the sizes of the files.
"""

from __future__ import annotations

import os
import re
import sqlite3
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from feasid.core.errors import InputError, LimitError, LogError
from feasid.core.files import is_folder, is_regular, open_for_reading, read_whole

MOST_CHUNK = 2**28  #: Bytes that a record of an MCAP file may have, and that a chunk may unpack to.

MOST_RATIO, LEAST_LIMIT = 200, 2**26
"""A bag's chunks may together unpack to so many times its files' sizes, beyond so many bytes."""

STEP = 2**20  #: Bytes that are unpacked at a time.

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK = 3, 4, 5, 6

SQLITE_MAGIC = b"SQLite format 3\0"

METADATA = "metadata.yaml"
LISTED = re.compile(r"^\s*(?:-|path:) *['\"]?(?:.*/)?(.+\.(?:mcap|db3))['\"]?\s*$", re.MULTILINE)
"""File of a bag's folder that names its parts, and such a line."""

CHECKED_EVERY, FREE_STEPS, STEPS_PER_BYTE = 100_000, 10**7, 10
"""Steps of SQLite's machine between two checks, and the largest number for a query: damaged trees
of pages can contain more rows than a file holds. A row has 20 bytes and takes about 10 steps."""

Message: TypeAlias = tuple[str, int, bytes]
"""Topic, time of reception [ns] and content."""


class BagReader:
    """Messages of one type.

    `path`: an ``.mcap`` or ``.db3`` file, or a folder of some; `kind`: type of the messages;
    `topic`: the only one that is read; `topics`: as keys, (topic, type) of all that have been seen
    so far.
    """

    def __init__(self, path: Path, kind: str, topic: str | None = None) -> None:
        self.kind, self.topic = kind, topic
        self.topics: dict[tuple[str, str], None] = {}
        self.files = storage_files(path)
        sizes = [os.stat(file).st_size if file.exists() else 0 for file in self.files]
        self.left = LEAST_LIMIT + MOST_RATIO * sum(sizes)

    def messages(self) -> Iterator[Message]:
        """The messages, file after file, in the order in which they were written.

        Raises LogError: damaged; `sqlite3.Error`, `struct.error` and errors of decompressors come
        through. Raises LimitError: it unpacks beyond reason.
        """
        for file in self.files:
            read = self._mcap_messages if file.suffix.lower() == ".mcap" else self._rows
            yield from read(file)

    def _is_wanted(self, topic: str, kind: str) -> bool:
        self.topics[topic, kind] = None
        return kind == self.kind and self.topic in (None, topic)

    # -- MCAP --------------------------------------------------------------------------------

    def _mcap_messages(self, path: Path) -> Iterator[Message]:
        schemas: dict[int, str] = {}
        channels: dict[int, str] = {}
        with open_for_reading(path, sys.maxsize) as file:
            for kind, length, start in top_level_records(file, path):
                if kind not in (SCHEMA, CHANNEL, MESSAGE, CHUNK):
                    continue
                if length > MOST_CHUNK:
                    raise _too_large(path, start, length, MOST_CHUNK)
                file.seek(start)
                body = memoryview(file.read(length))
                records: Iterable[tuple[int, memoryview]] = [(kind, body)]
                if kind == CHUNK:
                    records = _chunk_records(self._unpack_chunk(body, path, start), path, start)
                for inner, content in records:
                    if inner == MESSAGE:
                        channel, _, received, _ = struct.unpack_from("<HIQQ", content)
                        # Behind the channel, a number and two times of eight bytes.
                        if channel in channels:
                            yield channels[channel], received, bytes(content[22:])
                    elif inner == SCHEMA:
                        (number,) = struct.unpack_from("<H", content)
                        schemas[number] = _string(content, 2)
                    else:
                        number, schema = struct.unpack_from("<HH", content)
                        topic = _string(content, 4)
                        if self._is_wanted(topic, schemas.get(schema, "no type")):
                            channels[number] = topic

    def _unpack_chunk(self, body: memoryview, path: Path, start: int) -> memoryview:
        """A chunk's records; refused before it is unpacked when it says that it is too large."""
        *_, declared, checksum, length = struct.unpack_from("<QQQII", body)
        compression = bytes(body[32 : 32 + length]).decode()
        (packed,) = struct.unpack_from("<Q", body, 32 + length)
        data = body[40 + length : 40 + length + packed]
        self.left -= declared
        if declared > MOST_CHUNK or self.left < 0:
            raise _too_large(path, start, declared, min(MOST_CHUNK, self.left + declared))
        content = unpack(data, compression, declared) if compression else bytes(data)
        if len(content) > declared:
            raise _too_large(path, start, len(content), declared)
        if len(content) < declared or (checksum and zlib.crc32(content) != checksum):
            raise LogError(
                f"{path}: damaged: the chunk at byte {start} is not what it says", path=str(path)
            )
        return memoryview(content)

    # -- SQLite ------------------------------------------------------------------------------

    def _rows(self, path: Path) -> Iterator[Message]:
        with open_for_reading(path, sys.maxsize) as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
                raise LogError(f"{path}: no SQLite database", path=str(path))
        for log in (path.with_name(f"{path.name}-{end}") for end in ("wal", "journal")):
            if log.exists() and log.stat().st_size:
                text = f"sqlite3 {path.name} 'PRAGMA wal_checkpoint(TRUNCATE)' moves them into it"
                raise LogError(f"{path}: last messages are in {log.name}: {text}", path=str(path))
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(size, MOST_CHUNK))
            # SQLite stops where this is true: a file of this size would not take so many looks.
            looks = iter(range((FREE_STEPS + STEPS_PER_BYTE * size) // CHECKED_EVERY))
            database.set_progress_handler(lambda: next(looks, None) is None, CHECKED_EVERY)
            (pages,), (each,) = (database.execute(f"PRAGMA page_{x}").fetchone()
                                 for x in ("count", "size"))  # fmt: skip
            if pages * each != size:
                raise LogError(
                    f"{path}: damaged: it has {size} bytes and says {pages * each}; copy it again",
                    path=str(path),
                )
            for table in ("topics", "messages"):
                # Views, virtual tables and computed columns execute code of the file.
                query = "SELECT sql FROM sqlite_master WHERE lower(name) = ?"
                texts = [str(sql) for (sql,) in database.execute(query, [table])]
                columns = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
                is_plain = len(texts) == 1 and texts[0].startswith("CREATE TABLE")
                if not is_plain or any(hidden for *_, hidden in columns):
                    text = f"{path}: damaged or no ROS 2 bag: no plain table {table!r}"
                    raise LogError(text, path=str(path))
            channels = {}
            for number, topic, kind in database.execute("SELECT id, name, type FROM topics"):
                if self._is_wanted(str(topic), str(kind)):
                    channels[number] = str(topic)
            marks = ",".join("?" * len(channels))
            query = f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({marks})"
            for number, received, data in database.execute(query, [*channels]):
                size -= len(data)
                if not isinstance(data, bytes) or type(received) is not int or size < 0:
                    raise LogError(f"{path}: damaged: messages larger than the file, or none")
                yield channels[number], received, data


def storage_files(path: Path) -> list[Path]:
    """The files of a bag, in the order of their names."""
    if not is_folder(path):
        return [path]
    files = sorted(path.iterdir())
    if packed := [f.name for f in files if f.suffix in (".zstd", ".zst")]:
        raise InputError(
            f"{path}: compressed bags are not read ({packed[0]}); convert it first with 'ros2 bag "
            "convert' to uncompressed storage or MCAP",
            path=str(path),
        )
    storages = [f for f in files if f.suffix.lower() in (".mcap", ".db3")]
    for file in storages:
        if file.resolve().parent != path.resolve():
            raise InputError(
                f"{file} is a link to a file outside of the bag's folder; name that file itself",
                path=str(file),
            )
    kinds = {f.suffix.lower() for f in storages}
    if len(kinds) != 1:
        what = "both .mcap and .db3 files: name the one to read" if kinds else "no .mcap or .db3"
        raise LogError(f"{path}: there are {what}", path=str(path))
    if is_regular(path / METADATA):
        listed = LISTED.findall(read_whole(path / METADATA, MOST_CHUNK).decode(errors="replace"))
        if missing := sorted({*listed} - {f.name for f in storages}):
            raise LogError(
                f"{path}: {METADATA} lists {', '.join(missing[:8])}, not in this folder: a part of "
                "the recording is missing; put it there, or give the files that are to be read",
                path=str(path),
            )
    return storages


def top_level_records(file: BinaryIO, path: Path) -> Iterator[tuple[int, int, int]]:
    """Kind, length and start of every top-level record of an MCAP file."""
    end = os.fstat(file.fileno()).st_size - len(MAGIC)
    if file.read(len(MAGIC)) != MAGIC:
        raise LogError(f"{path}: no MCAP file (it does not start as one)", path=str(path))
    file.seek(max(end, 0))
    is_closed, at = file.read() == MAGIC, len(MAGIC)
    while at < end or not is_closed:
        file.seek(at)
        kind, length = struct.unpack("<BQ", file.read(9)) if at + 9 <= end else (0, 0)
        if at + 9 + length > end or not kind or not is_closed:
            raise LogError(
                f"{path}: damaged MCAP file: the record at byte {at} ends beyond the file, or the "
                "file was never closed; repair it with 'mcap recover'",
                path=str(path),
                offset=at,
            )
        yield kind, length, at + 9
        at += 9 + length


def unpack(data: memoryview, compression: str, most: int) -> bytes:
    """Unpack frame after frame in small steps; stop when there are more than `most` bytes."""
    pieces, total, remaining = [], 0, bytes(data)
    while remaining and total <= most:
        decompressor = _decompressor(compression)
        piece = decompressor.decompress(remaining, max_length=STEP)
        while piece:
            pieces.append(piece)
            total += len(piece)
            done = decompressor.eof or total > most
            piece = b"" if done else decompressor.decompress(b"", max_length=STEP)
        remaining = (decompressor.unused_data or b"") if decompressor.eof else b""
    return b"".join(pieces)


def _decompressor(compression: str) -> Any:
    if compression == "lz4":
        return import_module("lz4.frame").LZ4FrameDecompressor()
    if compression != "zstd":
        raise LogError(f"damaged, or an unknown compression {compression!r}")
    try:
        return import_module("compression.zstd").ZstdDecompressor()
    except ImportError:
        return import_module("backports.zstd").ZstdDecompressor()


def _chunk_records(content: memoryview, path: Path, start: int) -> Iterator[tuple[int, memoryview]]:
    """Kind and content of a chunk's records: schemas, channels and messages, nothing else."""
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<BQ", content, at)
        if kind not in (SCHEMA, CHANNEL, MESSAGE) or at + 9 + length > len(content):
            raise LogError(
                f"{path}: damaged: the chunk at byte {start} holds a record that belongs in none",
                path=str(path),
                offset=start,
            )
        yield kind, content[at + 9 : at + 9 + length]
        at += 9 + length


def _string(content: memoryview, at: int) -> str:
    (length,) = struct.unpack_from("<I", content, at)
    return bytes(content[at + 4 : at + 4 + length]).decode()


def _too_large(path: Path, start: int, size: int, most: int) -> LimitError:
    return LimitError(
        f"{path}: the record at byte {start} unpacks to {size} bytes or more, at most {most} are "
        "allowed: what it says, 256 MB, and 200 times the bag in all",
        path=str(path),
        offset=start,
        limit=most,
    )
