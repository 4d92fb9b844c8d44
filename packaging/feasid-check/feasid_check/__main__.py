"""``python -m feasid_check`` is the ``feasid-check`` command."""

import sys

from feasid_check import run

sys.exit(run())
