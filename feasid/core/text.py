"""Escape control characters in untrusted text before it is printed or drawn.

Names in files may come from untrusted sources. Printed raw, a joint called ``ESC ]0;...`` retitles
a terminal, U+009B starts an escape sequence by itself, U+202E turns the rest of a line around, and
a lone surrogate (an undecodable byte of a file's name) ends in a traceback.
"""

from __future__ import annotations

import unicodedata

LAYOUT = "\n\t"  #: Control characters that texts of several lines need.

MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
SPACED = str.maketrans({"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})

LONGEST_QUOTE = 80  #: Largest number of characters of a value in a message.


def escape_controls(text: str, *, keep: str = LAYOUT) -> str:
    r"""The text with every character that does not print written as an escape.

    `keep`: control characters that stay; none for a name within a line.
    """
    if text.isprintable():
        return text
    # To Python no space but U+0020 is printable; names hold others, which harm nothing.
    shown = {*keep, *(c for c in text if c.isprintable() or unicodedata.category(c) == "Zs")}
    escaped = ((c, c.encode("unicode_escape", "surrogatepass").decode("ascii")) for c in text)
    return "".join(c if c in shown else code for c, code in escaped)


def escape_markup(text: str) -> str:
    """The text inside an XML element. The standard library's module for it imports a web client."""
    return text.translate(MARKUP)


def quote_attribute(text: str) -> str:
    """The text as an XML attribute's value, in the quotes that it does not hold itself."""
    markup = escape_markup(text).translate(SPACED)
    if '"' in markup and "'" not in markup:
        return f"'{markup}'"
    return '"' + markup.replace('"', "&quot;") + '"'


def quote(value: object) -> str:
    """A value for a message: its representation, cut, or its type where it has none."""
    kind = f"a value of type {type(value).__name__}"
    try:
        # The first cells of a table say nothing.
        text = kind if hasattr(value, "iloc") else " ".join(repr(value).split())
    except Exception:  # a number of too many digits, or a foreign object
        text = kind
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}..."


def in_percent(share: float, digits: int = 3) -> str:
    """A share of 1 as text; beyond tenfold, where digits say nothing, only that."""
    return "over 1000 %" if share > 10 else f"{100 * share:.{digits}g} %"


def in_two_digits(value: float) -> str:
    """A number as text, rounded to two digits: 120, where formats write 1.2e+02."""
    return f"{float(f'{value:.2g}'):g}"
