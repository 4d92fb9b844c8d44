"""Notes: sentences for people that carry a code and their numbers for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from feasid.core.arguments import checked
from feasid.core.text import escape_controls


@checked
class Note(str):
    """A sentence with a code and values.

    A note is a string with escaped control characters. Programs use ``note.code`` and
    ``note.values`` instead of parsing the sentence.

    Attributes
    ----------
    code : str
        The kind of note; empty for a plain string.
    values : dict
        Its numbers by name.

    Examples
    --------
    >>> note = Note("2 rows are not used", "unused", rows=2)
    >>> f"{note} ({note.code})", note.values
    ('2 rows are not used (unused)', {'rows': 2})
    """

    code: str
    values: dict[str, Any]

    def __new__(cls, text: str, code: str = "", **values: Any) -> Note:
        """A note; the keywords are its numbers."""
        note = super().__new__(cls, escape_controls(text))
        note.code = code
        note.values = values
        return note

    @property
    def with_code(self) -> str:
        """The sentence with its code, which ``feasid explain`` explains, behind the first line."""
        first, *others = self.splitlines()
        return "\n".join([f"{first} [{self.code}]" if self.code else first, *others])


def as_notes(items: Iterable[str]) -> tuple[Note, ...]:
    """Each note once, in order; plain strings become notes without a code."""
    return tuple(n if isinstance(n, Note) else Note(n) for n in dict.fromkeys(items))


def as_json(value: Any) -> Any:
    """Numbers, words, lists and mappings of JSON; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    # NumPy's arrays and single numbers, and pandas' series, have it.
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
