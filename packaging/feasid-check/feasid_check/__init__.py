"""``feasid check`` by itself: needs NumPy only.

The modules of feasid that the check reaches lie in the folder ``source`` beside this file, and only
this command's own process has that folder on its path. So this distribution and feasid own no
common file, and one environment can have both, in different versions.
"""

import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "source"


def run() -> int:
    """Run ``feasid check`` with the arguments of this process; returns the exit status."""
    sys.path.insert(0, str(SOURCE))
    from feasid.core import errors

    errors.DISTRIBUTION = "feasid-check"
    from feasid.cli import main

    try:
        return main(["check", *sys.argv[1:]])
    except ModuleNotFoundError:  # what the wheel leaves out needs solvers
        print(
            "feasid-check: error: --beta, --bodies and --control need the whole package: "
            "pip install feasid",
            file=sys.stderr,
        )
        return 2
