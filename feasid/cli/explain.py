"""Say what the code of a finding means, and what to do; without a code, list all codes."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from textwrap import fill

from feasid.cli import Answer
from feasid.cli.options import takes, word
from feasid.core.display import line_width, truncate
from feasid.core.errors import InputError, did_you_mean

ENTRY = re.compile(r"^### (.+)\n((?:(?!#).*\n?)*)", re.M)
"""A code and its text in ``codes.md``, which is a page of the documentation, too."""


@takes(word("code", "CODE", "as it stands with a finding", nargs="?"))
def run(arguments: argparse.Namespace) -> Answer:
    """Print the text of a code, or all codes."""
    page = files("feasid.cli").joinpath("codes.md").read_text(encoding="utf-8")
    texts = {code: text.replace("*", "").strip() for code, text in ENTRY.findall(page)}
    code = arguments.code
    if code is not None and code not in texts:
        hint = did_you_mean(code, texts)
        raise InputError(f"no code {code!r}{hint}; feasid explain lists all", code=code)
    if code is None:
        starts = {code: text.splitlines()[0].partition(". ")[0] for code, text in texts.items()}
        lines = (f"  {code:22}{start}" for code, start in starts.items())
        print("\n".join(truncate(line, line_width()) for line in lines))
    else:
        print("\n".join(map(fill, texts[code].splitlines())))
    return 0, lambda: {"codes": texts if code is None else {code: texts[code]}}
