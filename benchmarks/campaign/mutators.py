"""Changes of valid inputs: of their bytes, of their words, and of what an archive holds."""

# ruff: noqa: E501

import io
import json
import re
import zipfile
from datetime import date, datetime

NUMBERS = [
    b"0", b"-0.0", b"1", b"-1", b"nan", b"inf", b"-inf", b"1e999", b"1e308", b"-1e-320", b"1,5", b"0x10",
    b"1_000", b"9" * 400, b"1e-9999", b"", b" ", b"1.2.3", b"--1", b"+", b"1e", b"True", b"None", b"3.7kg",
]  # fmt: skip

WORDS = [
    b"", b"a", b"base", b"upper", b"\x1b[2J", b"\xc2\x9b31m", b"\xff", b"\x00", b"../../etc/passwd",
    b"file:///etc/passwd", b"http://localhost:9/", b"x" * 300, b"{}", b"%s", b"${x}", b"$j_{$", b"<b>",
    b"&amp;", b"\xe2\x80\xae", b"NaN", b"run", b"t", b"q_shoulder", b"__class__", b"\r", b"\n", b"\"",
]  # fmt: skip

VALUES = [
    None, True, -1, 0, 1.5, 1e308, 2**62, float("nan"), float("inf"), "", "x", "\x1b", "../a", b"", b"PK\5\6",
    [], [1.0], {"a": 1}, date(1, 1, 1), date(9999, 12, 31), datetime(2026, 11, 28),
]  # fmt: skip
"""What a value of a table becomes."""

STORED = 0.8
"""Share of archives that are packed again without compression, which costs more than the readers."""

NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
LINE = re.compile(rb"[^\n]*\n?")
ELEMENT = re.compile(rb"<[^<>]*>")
ATTRIBUTE = re.compile(rb'\s[a-z_]+="[^"]*"')


def replaced(rng, data, pattern, choices):
    """One match of the pattern by one of the choices."""
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(choices) + data[match.end() :]


def moved(rng, data, pattern):
    """A match left out, doubled, or put where another one stands."""
    found = [m for m in pattern.finditer(data) if m.group()]
    if len(found) < 2:
        return data
    a, b = sorted(rng.sample(found, 2), key=lambda m: m.start())
    kind = rng.randrange(3)
    if kind == 0:
        return data[: a.start()] + data[a.end() :]
    if kind == 1:
        return data[: b.start()] + a.group() + data[b.start() :]
    middle = data[a.end() : b.start()]
    return data[: a.start()] + b.group() + middle + a.group() + data[b.end() :]


def flipped(rng, data):
    """A bit, a byte, a stretch left out, doubled, or cut off; bytes after the end, or it twice."""
    if not data:
        return bytes([rng.randrange(256)])
    k = rng.randrange(len(data))
    kind = rng.randrange(13) // 2
    if kind == 6:
        return data + rng.choice((b"\0", bytes(rng.randrange(1, 600)), b"more", data))
    if kind == 0:
        return data[:k] + bytes([data[k] ^ (1 << rng.randrange(8))]) + data[k + 1 :]
    if kind == 1:
        return data[:k] + bytes([rng.randrange(256)]) + data[k + 1 :]
    if kind == 2:
        return data[:k]
    stop = min(len(data), k + rng.choice((1, 2, 8, 64, 1024)))
    if kind == 3:
        return data[:k] + data[stop:]
    if kind == 4:
        return data[:stop] + data[k:]
    width = rng.choice((2, 4, 8))
    extreme = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)) % 2 ** (8 * width)
    return data[:k] + extreme.to_bytes(width, "little") + data[k + width :]


def xml(rng, data):
    """Of an XML text; most results are still well formed."""
    kind = rng.randrange(10)
    if kind < 4:
        return replaced(rng, data, NUMBER, NUMBERS)
    if kind < 6:
        return replaced(rng, data, WORD, [m.group() for m in WORD.finditer(data)])
    if kind < 7:
        return moved(rng, data, ATTRIBUTE)
    if kind < 8:
        leaves = re.compile(rb"<[a-z_]+(?:\s[^<>]*)?/>")
        return moved(rng, data, leaves)
    if kind < 9:
        return replaced(rng, data, WORD, WORDS)
    return rng.choice((flipped(rng, data), moved(rng, data, ELEMENT)))


def table(rng, data):
    """Of a CSV text."""
    kind = rng.randrange(10)
    if kind < 4:
        return replaced(rng, data, NUMBER, NUMBERS)
    if kind < 5:
        return replaced(rng, data, WORD, WORDS)
    if kind < 7:
        return moved(rng, data, LINE)
    if kind < 8:
        head, feed, rest = data.partition(b"\n")
        return replaced(rng, head, WORD, [m.group() for m in WORD.finditer(head)]) + feed + rest
    if kind < 9:
        old, new = rng.sample((b",", b";", b"\t", b"|", b"\n", b"\r\n", b"\r", b".", b'"'), 2)
        return data.replace(old, new, rng.choice((1, -1)))
    return flipped(rng, data)


def archive(rng, data):
    """Of what a ZIP archive holds, packed again; or of its bytes."""
    if rng.random() < 0.1:
        return flipped(rng, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            content = {m.filename: file.read(m) for m in file.infolist()}
    except Exception:  # damaged by a change before
        return flipped(rng, data)
    if not content:
        return flipped(rng, data)
    name = rng.choice(sorted(content))
    kind = rng.randrange(12)
    if kind == 0:
        del content[name]
    elif kind == 1:
        content[rng.choice(sorted(content))] = content[name]
    elif name.endswith(".npz"):
        content[name] = archive(rng, content[name])
    elif name.endswith(".npy"):
        content[name] = array(rng, content[name])
    elif name.endswith(".json"):
        content[name] = notation(rng, content[name])
    else:
        content[name] = rng.choice((xml, flipped))(rng, content[name])
    buffer = io.BytesIO()
    packing = zipfile.ZIP_STORED if rng.random() < STORED else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(buffer, "w", packing, compresslevel=1) as file:
        for key, value in content.items():
            file.writestr(key, value)
    return buffer.getvalue()


def record(rng, data):
    """Of a Parquet table of one row: a value becomes another or is left out; or of its bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.3:
        return flipped(rng, data)
    try:
        table = pq.read_table(io.BytesIO(data))
        row = table.slice(0, 1).to_pylist()[0]
    except Exception:  # damaged by a change before
        return flipped(rng, data)
    archives = sorted(key for key, value in row.items() if isinstance(value, bytes))
    name = rng.choice(archives if archives and rng.random() < 0.6 else sorted(row))
    value, kind = row[name], rng.randrange(10)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = rng.choice((table.slice(0, 0), pa.concat_tables([table, table])))
    else:
        other = archive(rng, value) if isinstance(value, bytes) else rng.choice(VALUES)
        column = table.column_names.index(name)
        table = table.set_column(column, name, pa.array([other] * len(table)))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none")
    return buffer.getvalue()


def array(rng, data):
    """Of a NumPy array: its header as text, its numbers as bytes."""
    start = 10 + int.from_bytes(data[8:10], "little")
    head, body = data[:start], data[start:]
    kind = rng.randrange(4)
    if kind == 0:
        return replaced(rng, head, NUMBER, NUMBERS) + body
    if kind == 1:
        return head.replace(rng.choice((b"<f8", b"<i8", b"<U", b"False")), rng.choice(
            (b"<f4", b"|O", b">f8", b"<i8", b"|S8", b"<M8[ns]", b"<c16", b"True", b"<U1"))) + body  # fmt: skip
    if kind == 2 and len(body) >= 8:
        k = 8 * rng.randrange(len(body) // 8)
        special = rng.choice(
            (
                "7ff0000000000000",
                "7ff8000000000000",
                "ffefffffffffffff",
                "0" * 16,
                "ffffffffffffffff",
            )
        )
        return head + body[:k] + bytes.fromhex(special)[::-1] + body[k + 8 :]
    return head + flipped(rng, body)


def notation(rng, data):
    """Of a JSON text: one value somewhere becomes another, is left out, or is named otherwise."""
    try:
        tree = json.loads(data)
    except ValueError:
        return flipped(rng, data)
    node, path = tree, []
    while isinstance(node, dict | list) and node and (not path or rng.random() < 0.85):
        key = rng.choice(sorted(node)) if isinstance(node, dict) else rng.randrange(len(node))
        path.append((node, key))
        node = node[key]
    if not path:
        return flipped(rng, data)
    where, key = path[-1]
    kind = rng.randrange(8)
    if kind == 0:
        del where[key]
    elif kind == 1 and isinstance(where, dict):
        where[rng.choice(WORDS).decode("latin-1")] = where.pop(key)
    elif kind == 2:
        where[key] = [node] * rng.choice((0, 1, 2, 3))
    else:
        where[key] = rng.choice(
            (None, True, -1, 0, 1.5, 1e308, 2**70, float("nan"), "", "x", "\x1b", [], {}, node)
        )
    return json.dumps(tree).encode()


def several(rng, data, change):
    """One change, sometimes a few."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3, 5))):
        data = change(rng, data)
    return data
