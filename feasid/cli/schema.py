"""What ``--json`` prints of models: one schema, with a version that changes when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.predictor import Predictor

SCHEMA = 1


def described(model: Predictor) -> dict[str, Any]:
    """A fit, saved or not."""
    robot = model.robot
    table = model.base_table  # type: ignore[attr-defined]
    names = [".".join(name) for name in robot.parameter_names]
    return {
        "schema": SCHEMA,
        "robot": robot.name,
        "joints": list(robot.coordinates),
        "parameters": dict(zip(names, robot.values.tolist(), strict=True)),
        "base_parameters": [
            {"expression": e, "value": float(v), "std": _finite(s)}
            for e, v, s in zip(table.index, table["value"], table["std"], strict=True)
        ],
        "errors": {"fitted": relative(model.relative_error)},
        "notes": [str(n) for n in getattr(model, "notes", ())],
    }


def relative(errors: pd.Series[float]) -> dict[str, float | None]:
    """Relative torque errors per joint and "all"; None where there is no torque."""
    return {str(k): _finite(v) for k, v in errors.items()}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
