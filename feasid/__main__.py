"""``python -m feasid`` is the ``feasid`` command."""

import gc
import sys

from feasid.cli import main

OBJECTS = 50_000
"""Number of new objects after which garbage is collected; imports create many objects and hardly
any garbage."""


def run() -> int:
    """Run one command in this process; returns the exit status."""
    gc.set_threshold(OBJECTS)
    status = main()
    gc.freeze()  # or Python looks through everything for garbage before it ends
    return status


if __name__ == "__main__":
    sys.exit(run())
