"""Modules of extras: imported, or the command that installs them as one line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


def need(module: str, extra: str) -> ModuleType:
    """Import a module, or end with what to install: ``pip install "feasid[extra]"``."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        sys.exit(f'{Path(sys.argv[0]).name} needs {module}: pip install "feasid[{extra}]"')
