"""A display at the prompt: through rich where that is installed and somebody looks."""

from __future__ import annotations

import sys

from feasid.display import Display


def show(display: Display) -> None:
    """Print it, in colours on a terminal."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            Console().print(display.rich())
            return
    print(display.text())
