"""Robots as plain data: lists, numbers and names, without code, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

import numpy as np

from feasid.errors import DescriptionError, OutputError
from feasid.robot.bodies import Body, Limits, Member, Rotor
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot
from feasid.robot.drives import Drive, Feature

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Robot, Body, Rotor, Drive, Member, Limits, Coupling, Loop)
}

KIND, OWN_KIND = "kind", "own kind"
"""What a part is, and a field of that name: a loop's."""

UNSAVED_FIELDS = ("source",)
"""The file that a robot was read from is kept beside its data, not inside."""


def to_data(value: Any) -> Any:
    """A robot, or a part of one, as what JSON can hold."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        if isinstance(value, Feature):
            raise OutputError(
                f"feature {value.name!r} is code, which no file holds: save a model without it",
                feature=value.name,
            )
        if kind not in KINDS:
            raise DescriptionError(f"a {kind} cannot be saved")
        parts = {
            f.name: getattr(value, f.name) for f in fields(value) if f.name not in UNSAVED_FIELDS
        }
        named = {OWN_KIND if name == KIND else name: to_data(v) for name, v in parts.items()}
        return {KIND: kind, **named}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {KIND: "mapping", "entries": {str(k): to_data(v) for k, v in value.items()}}
    if isinstance(value, tuple | list):
        return [to_data(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def robot_from_data(data: Any) -> Robot:
    """The robot that `to_data` made plain.

    Raises
    ------
    DescriptionError
        Something is missing, of another kind, or not known to this version.
    """
    try:
        robot = _from_data(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DescriptionError(f"this is not a saved robot: {error}") from error
    if not isinstance(robot, Robot):
        raise DescriptionError("this is not a saved robot")
    return robot


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        parts = tuple(_from_data(v) for v in data)
        numbers = bool(parts) and all(isinstance(v, int | float | np.ndarray) for v in parts)
        return np.array(parts, dtype=np.float64) if numbers else parts
    if not isinstance(data, dict):
        return data
    named = {KIND if name == OWN_KIND else name: v for name, v in data.items() if name != KIND}
    if data[KIND] == "mapping":
        return {k: _from_data(v) for k, v in data["entries"].items()}
    kind = KINDS[data[KIND]]
    known = {f.name: f for f in fields(kind)}
    unknown = set(named) - set(known)
    if unknown:
        raise DescriptionError(
            f"a saved {data[KIND]} has {sorted(unknown)}, unknown to this feasid: update it"
        )
    needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
    if needed - set(named):
        raise ValueError(f"a {data[KIND]} lacks {sorted(needed - set(named))}")
    for name, value in named.items():
        if known[name].type == "str" and not isinstance(value, str):
            raise ValueError(f"the {name} of a {data[KIND]} is {value!r}, which is no text")
    return kind(**{name: _from_data(value) for name, value in named.items()})


def with_source(robot: Robot, source: Any) -> Robot:
    """The robot with the file that it came from."""
    return replace(robot, source=source)
