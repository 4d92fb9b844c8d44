"""A feasible set as plain data: what was asked besides what the robot's parameters imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import DISSIPATES, FeasibleSet, feasible_set
from feasid.robot.description import Robot
from feasid.robot.known import Equality


def as_plain(feasible: FeasibleSet) -> dict[str, Any]:
    """Lists, numbers and strings that `of_plain` reads back."""
    return {
        "consistency": feasible.consistency,
        "blocks": [
            {
                "name": b.name,
                "body": b.body,
                "columns": b.columns.tolist(),
                "basis": b.basis.tolist(),
                "constant": b.constant.tolist(),
                "powers": list(b.powers),
                "strict": b.strict,
            }
            for b in feasible.blocks
            if b.role == "asked"
        ],
        "linear": [
            {
                "name": c.name,
                "columns": c.columns.tolist(),
                "coefficients": c.coefficients.tolist(),
                "constant": c.constant,
                "opposite": c.opposite,
            }
            for c in feasible.linear
            if c.role == "asked" and not c.name.startswith(DISSIPATES)
        ],
        "equalities": [
            {
                "name": e.name,
                "columns": [int(j) for j in e.columns],
                "coefficients": [float(c) for c in e.coefficients],
                "value": e.value,
            }
            for e in feasible.equalities
        ],
    }


def of_plain(robot: Robot, data: Mapping[str, Any]) -> FeasibleSet:
    """The set of this robot; ValueError or TypeError for data that are not one."""
    whole = feasible_set(robot, data["consistency"])
    blocks = tuple(
        Block(
            str(b["name"]),
            "matrix",
            int(b["body"]),
            _columns(b["columns"], whole.size),
            np.array(b["basis"], dtype=np.float64),
            np.array(b["constant"], dtype=np.float64),
            tuple(b["powers"]),
            bool(b["strict"]),
        )
        for b in data["blocks"]
    )
    linear = tuple(
        Linear(
            str(c["name"]),
            _columns(c["columns"], whole.size),
            np.array(c["coefficients"], dtype=np.float64),
            float(c["constant"]),
            int(c["opposite"]),
        )
        for c in data["linear"]
    )
    ties = tuple(
        Equality(str(e["name"]), tuple(e["columns"]), tuple(e["coefficients"]), float(e["value"]))
        for e in data["equalities"]
    )
    return replace(
        whole, blocks=(*whole.blocks, *blocks), linear=(*whole.linear, *linear), equalities=ties
    )


def _columns(places: list[int], size: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    index = np.array(places, dtype=np.intp)
    if not len(index) or index.min() < 0 or index.max() >= size:
        raise ValueError(f"a constraint is on parameters {places} of {size}")
    return index
