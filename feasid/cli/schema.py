"""What ``--json`` prints: one object per command, with a version that changes when its form does.

Every object has ``schema``, ``command`` and ``feasid``, the version that printed it. Numbers
that are not finite are null. Whatever else a command says goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from feasid.core.notes import as_json

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.predictor import Predictor

SCHEMA = 2


def add_json(parser: argparse.ArgumentParser) -> None:
    """The argument ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, everything else aside")


def tell(command: str, data: Mapping[str, Any]) -> None:
    """Print a command's answer as JSON."""
    from feasid import __version__

    told = {"schema": SCHEMA, "command": command, "feasid": __version__, **data}
    print(json.dumps(as_json(told), indent=1, allow_nan=False))


def aside(instead: bool) -> redirect_stdout[Any]:
    """Where a command's sentences go: to standard error beside JSON."""
    return redirect_stdout(sys.stderr if instead else sys.stdout)


def described(model: Predictor) -> dict[str, Any]:
    """A fit, saved or not."""
    robot = model.robot
    table = model.base_table  # type: ignore[attr-defined]
    names = [".".join(name) for name in robot.parameter_names]
    return {
        "robot": robot.name,
        "joints": list(robot.coordinates),
        "parameters": dict(zip(names, robot.values.tolist(), strict=True)),
        "base_parameters": [
            {"expression": e, "value": float(v), "std": float(s)}
            for e, v, s in zip(table.index, table["value"], table["std"], strict=True)
        ],
        "errors": {"fitted": relative(model.relative_error)},
        "notes": [str(n) for n in getattr(model, "notes", ())],
    }


def relative(errors: pd.Series[float]) -> dict[str, float]:
    """Relative torque errors per joint and "all"; null where there is no torque."""
    return {str(k): float(v) for k, v in errors.items()}
