"""Numbers that a script writes into a page, between two marks."""

from __future__ import annotations

import re
from pathlib import Path


def put_between(page: Path, start: str, end: str, text: str) -> None:
    """Replace what stands between two marks, which are lines of the page."""
    pattern = f"(?<={re.escape(start)}\n).*?(?=\n{re.escape(end)})"
    content = page.read_text(encoding="utf-8")
    page.write_text(re.sub(pattern, lambda _: text, content, flags=re.DOTALL), encoding="utf-8")
