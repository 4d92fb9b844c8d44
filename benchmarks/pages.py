"""Numbers that a script writes into a page, between two marks."""

from __future__ import annotations

import re
from pathlib import Path


def put_between(page: Path, start: str, end: str, text: str) -> None:
    """Replace what stands between two marks, which are lines of the page.

    Raises ValueError: the page has no such marks.
    """
    pattern, old = f"({re.escape(start)}\n).*?({re.escape(end)})", page.read_text(encoding="utf-8")
    new, count = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", old, flags=re.DOTALL)
    if not count:
        raise ValueError(f"{page} has no lines {start} and {end}: write both where the table goes")
    page.write_text(new, encoding="utf-8")
