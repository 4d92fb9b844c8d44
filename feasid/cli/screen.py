"""A display at the prompt: through rich where that is installed and somebody looks."""

from __future__ import annotations

import sys
from dataclasses import replace

from feasid.cli.speech import at_the_prompt
from feasid.core.display import Display


def show(display: Display) -> None:
    """Print it, in colours on a terminal, options spelled as they are typed."""
    troubles, remarks = (
        [at_the_prompt(x) for x in part] for part in (display.troubles, display.remarks)
    )
    display = replace(display, troubles=troubles, remarks=remarks)
    if sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            # A display is harmless already, and rich's colours must not be made so.
            Console(file=getattr(sys.stdout, "stream", sys.stdout)).print(display.rich())
            return
    print(display.text())
