"""Short displays of results.

A display has a title, measures with their goals, and warnings. A measure that misses its goal is
marked and in capitals. One value, two printers: text for the prompt (20 lines of 80 columns), and
HTML for notebooks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap
from urllib.parse import quote

from feasid.core.text import escape_controls

WIDTH, HEIGHT = 80, 20  #: Columns and lines of a display; terminals that are wider are used.


def line_width() -> int:
    """Columns of a line: those of the terminal, of at least `WIDTH`, which also files have."""
    try:
        return max(WIDTH, os.get_terminal_size(1).columns if os.isatty(1) else WIDTH)
    except OSError:
        return WIDTH


FOLDED = 3  #: Largest number of lines of one warning.

LOUD, QUIET, REMEDY = "!! ", "   ", "->"

LOUD_STYLE = 'style="background:#b3261e;color:#fff;padding:0 .3em"'
"""Background colour, because that of a notebook is unknown."""


def plain(text: object) -> str:
    """An outsider's text on one line."""
    return escape_controls(str(text), keep="")


def truncate(text: object, width: int) -> str:
    """Plain text of at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else f"{line[: width - 3]}..."


@dataclass(frozen=True)
class Measure:
    """A number and its goal."""

    name: str
    value: str
    goal: str = ""  #: Empty when nothing is asked of it.
    met: bool = True
    folded: bool = False  #: Whether a value that is too long takes a second line.


@dataclass(frozen=True)
class Display:
    """A result at a glance."""

    title: str
    measures: Sequence[Measure] = ()
    troubles: Sequence[str] = ()  #: What is wrong, the gravest first; shown before `remarks`.
    remarks: Sequence[str] = ()  #: Lines that are good to know; left out first where room is short.
    more: str = ""  #: Calls that show more.

    @property
    def good(self) -> bool:
        """Whether all goals are met and nothing is wrong."""
        return not self.troubles and all(m.met for m in self.measures)

    def text(self) -> str:
        """At most `HEIGHT` lines of `line_width` columns."""
        lines = [truncate(self.title, line_width())]
        for measure in self.measures:
            mark, name = (QUIET, measure.name) if measure.met else (LOUD, measure.name.upper())
            first = max(len(m.name) for m in self.measures if m.folded == measure.folded)
            start, value = f"{mark}{name:<{first}}  ", plain(measure.value)
            if measure.folded:
                width = line_width() - len(start)
                head, *others = wrap(value, width) or [""]
                below = [" " * len(start) + truncate(" ".join(others), width)] if others else []
                lines += [start + head, *below]
                continue
            if measure.goal:
                second = max(len(m.value) for m in self.measures if m.goal)
                missed = "  NOT MET" * (not measure.met)
                value = f"{value:<{second}}  (goal {measure.goal}){missed}"
            lines.append(truncate(start + value, line_width()))
        last = [QUIET + line for line in _wrap_lines(self.more)] if self.more else []
        room = HEIGHT - len(lines) - len(last)
        lines += _fit_parts(
            [[LOUD + lead for lead in part[:1]] + [QUIET + x for x in part[1:]]
             for part in map(_wrap_lines, self.troubles)],
            room,
        )  # fmt: skip
        room = HEIGHT - len(lines) - len(last)
        remarks = [[QUIET + line for line in _wrap_lines(r)] for r in self.remarks]
        return "\n".join([*lines, *_fit_parts(remarks, room), *last])

    def html(self, tag: str = "strong") -> str:
        """A small table for notebooks, under a title in this element; everything is escaped."""
        parts = [f"<{tag}>{escape(plain(self.title))}</{tag}>", "<table><tbody>"]
        for m in self.measures:
            goal = f"goal {escape(plain(m.goal))}" if m.goal else ""
            mark = f"{goal} \N{HEAVY CHECK MARK}" if goal else ""
            if not m.met:
                mark = f"<strong {LOUD_STYLE}>{f'{goal} NOT MET' if goal else '!!'}</strong>"
            cells = (escape(plain(m.name)), escape(plain(m.value)), mark)
            row = (f'<td style="text-align:left;padding-right:1em">{c}</td>' for c in cells)
            parts.append(f"<tr>{''.join(row)}</tr>")
        parts.append("</tbody></table>")
        if self.troubles:
            mark = f"<strong {LOUD_STYLE}>!!</strong>"
            items = "".join(f"<li>{mark} {escape(plain(t))}</li>" for t in self.troubles)
            parts.append(f"<ul>{items}</ul>")
        if self.remarks:
            text = "\n".join(plain(r) for r in self.remarks)
            parts.append(f"<details><summary>details</summary><pre>{escape(text)}</pre></details>")
        return "".join(parts)


class Displayed:
    """A result that shows its `display` at the prompt and in notebooks."""

    def display(self) -> Display:
        """The result at a glance."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.display().text()

    def _repr_html_(self) -> str:
        return self.display().html()


def _wrap_lines(text: str) -> list[str]:
    """Lines with room for a mark; prose of more than `FOLDED` lines is cut, a `REMEDY` is not."""
    parts = [plain(part).strip() for part in str(text).splitlines()]
    width, prose = line_width() - 3, [part for part in parts if not part.startswith(REMEDY)]
    glued = (re.sub(r"(--[\w-]+) ", "\\1\xa0", part) for part in prose)  # flags and their values
    folded = (line for part in glued for line in wrap(part, width, break_on_hyphens=False))
    lines = [line.replace("\xa0", " ") for line in folded]
    if len(lines) > FOLDED:
        lines = [*lines[: FOLDED - 1], truncate(lines[FOLDED - 1] + " " * width, width)]
    return [*lines, *(part for part in parts if part.startswith(REMEDY))]


def _fit_parts(parts: Sequence[Sequence[str]], room: int) -> list[str]:
    """Take as many whole parts as there is room for, and count those left out."""
    if sum(map(len, parts)) <= room:
        return [line for part in parts for line in part]
    out: list[str] = []
    for number, part in enumerate(parts):
        if len(out) + len(part) + 1 > room:
            return [*out, f"{QUIET}... and {len(parts) - number} more"] if room > 0 else []
        out += part
    return out


@dataclass(frozen=True)
class Page:
    """An HTML file that was written."""

    path: Path

    def __fspath__(self) -> str:
        """Return the path, for functions that open files."""
        return str(self.path)

    def _repr_html_(self) -> str:
        """Return a link and a preview; notebooks open files in and below their folder only."""
        address = escape(quote(self.path.as_posix()))
        return (
            f'<p><a href="{address}" target="_blank">{escape(plain(self.path))}</a></p>'
            f'<iframe src="{address}" width="100%" height="480" sandbox="allow-scripts"></iframe>'
        )
