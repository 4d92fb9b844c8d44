"""Mass and inertia of MJCF's primitive geoms of uniform density."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.inertia import from_mass_com_inertia

DENSITY = 1000.0
"""MuJoCo's default density [kg/m^3]."""

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
"""Numbers that a primitive's size needs: radius, then half length; half axes."""

WEIGHTLESS = ("plane", "hfield")


@dataclass(frozen=True)
class GeomInertia:
    """Mass [kg] and principal moments [kg m^2] about the geom's centre, in its axes."""

    mass: float
    moments: tuple[float, float, float]


def volume(kind: str, size: Sequence[float]) -> float:
    """Volume of a primitive [m^3]."""
    if kind == "sphere":
        return 4 / 3 * math.pi * size[0] ** 3
    if kind == "capsule":
        return math.pi * size[0] ** 2 * (2 * size[1] + 4 / 3 * size[0])
    if kind == "cylinder":
        return math.pi * size[0] ** 2 * 2 * size[1]
    if kind == "ellipsoid":
        return 4 / 3 * math.pi * math.prod(size[:3])
    return 8 * math.prod(size[:3])


def solid(kind: str, size: Sequence[float], mass: float) -> GeomInertia:
    """Inertia of a primitive filled uniformly with this mass."""
    if kind == "sphere":
        moment = 2 / 5 * mass * size[0] ** 2
        return GeomInertia(mass, (moment, moment, moment))
    if kind in ("box", "ellipsoid"):
        x, y, z = (s * s for s in size[:3])
        share = mass / (3 if kind == "box" else 5)
        return GeomInertia(mass, (share * (y + z), share * (x + z), share * (x + y)))
    r, h = size[0], size[1]
    if kind == "cylinder":
        across = mass * (3 * r**2 + 4 * h**2) / 12
        return GeomInertia(mass, (across, across, mass * r**2 / 2))
    # A capsule is a cylinder and two half balls, whose centres of mass are 3/8 r off the faces.
    ball = mass * (4 / 3 * r) / (4 / 3 * r + 2 * h)
    rod = mass - ball
    across = rod * (3 * r**2 + 4 * h**2) / 12 + ball * (2 / 5 * r**2 + h**2 + 3 / 4 * r * h)
    return GeomInertia(mass, (across, across, rod * r**2 / 2 + 2 / 5 * ball * r**2))


def about_origin(geom: GeomInertia, rotation: Array, position: Array) -> Array:
    """Ten parameters of a placed geom in its body's frame, shape (10,)."""
    tensor = rotation @ np.diag(geom.moments) @ rotation.T
    return from_mass_com_inertia(geom.mass, position, tensor)
