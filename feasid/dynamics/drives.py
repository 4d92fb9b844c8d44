"""What multiplies a drive's parameters: inertia, friction and spring of motors and gears."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.robot.parts import DRIVE_SYMBOLS, FREE_FEATURES, SIGNED_FEATURES, STRIBECK, Drive

SPRINGS = {"k": 1, "k2": 2, "k3": 3}
"""Power of the deflection that each spring's torque grows with."""


def drive_signal(
    drive: Drive,
    symbol: str,
    position: Array,
    velocity: Array,
    acceleration: Array,
    *,
    load: Array | None = None,
) -> Array:
    """Factor of a parameter; friction as in Sousa and Cortesao (2014) eq. (27).

    c.ddq, v, 1, c.q - rest, or with s = sign(v) or tanh(v / transition): s, s sqrt|v|, s |load|;
    the further ones are those of `feasid.robot.parts.Drive`.
    """
    if symbol not in DRIVE_SYMBOLS:
        raise InputError(f"unknown drive symbol {symbol!r}")
    if symbol == "Ia":
        return acceleration
    if symbol in SPRINGS:
        return np.asarray((position - drive.rest) ** SPRINGS[symbol])
    if symbol in ("gs", "gc"):
        return np.asarray(np.sin(position) if symbol == "gs" else np.cos(position))
    if symbol in SIGNED_FEATURES or symbol in FREE_FEATURES:
        return drive.feature(symbol).values(position, velocity, acceleration, load)
    if symbol == "fv":
        return velocity
    if symbol == "fo":
        return np.ones_like(velocity)
    if symbol == "fd":
        return np.abs(velocity)
    sign = np.tanh(velocity / drive.transition) if drive.transition else np.sign(velocity)
    if symbol == "fb":
        return np.asarray(sign * np.exp(-((velocity / STRIBECK) ** 2)))
    if symbol == "fs":
        return np.asarray(sign * np.sqrt(np.abs(velocity)))
    return np.asarray(sign * np.abs(load)) if symbol == "fl" and load is not None else sign
