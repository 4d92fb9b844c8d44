"""Where on a floating robot its sensors sit, and where it is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import numpy.typing as npt

from feasid.errors import InputError

Part = TypeVar("Part")


@dataclass(frozen=True)
class Touch:
    """Where a logged force acts.

    Attributes
    ----------
    body : str
    position : (float, float, float)
        Of the point in the body's frame [m].
    axes : {"world", "base"}
        In whose axes the force is logged.
    """

    body: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axes: Literal["world", "base"] = "world"


@dataclass(frozen=True)
class Imu:
    """Where an IMU sits on a floating base.

    Attributes
    ----------
    link : str
        A link of the base.
    rotation : array_like, shape (3, 3)
        The IMU's axes in the base's frame.
    position : array_like, shape (3,)
        In the base's frame [m].
    """

    link: str
    rotation: npt.ArrayLike = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1))
    position: npt.ArrayLike = (0.0, 0.0, 0.0)


def touch_of(given: Any) -> Touch:
    """A contact, as itself or as a mapping of its fields."""
    return given if isinstance(given, Touch) else _built(Touch, given, "a contact")


def imu_of(given: Any) -> Imu | None:
    """An IMU, as itself or as a mapping of its fields."""
    if given is None or isinstance(given, Imu):
        return given
    return _built(Imu, given, "an IMU")


def _built(kind: type[Part], given: Any, what: str) -> Part:
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if not isinstance(given, Mapping) or not given or not {*given} <= {*known}:
        raise InputError(f"{what} is a mapping of {', '.join(known)}, not {given!r}")
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
    except TypeError:
        raise InputError(f"{what} needs {known[0]!r}: {dict(given)!r}") from None
