"""``python -m feasid`` is the ``feasid`` command."""

import sys

from feasid.cli import main

sys.exit(main())
