"""Words for joint terms, and a joint's drive with the terms that are wanted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feasid.robot.parts import Body, Drive, Feature, feature_symbols

FRICTION: dict[str, tuple[str, ...]] = {
    "viscous": ("fv",),
    "coulomb": ("fc",),
    "offset": ("fo",),
    "sqrt": ("fs",),
    "load": ("fl",),
    "stribeck": ("fb",),
    "direction": ("fd",),
    "spring": ("k", "k2", "k3"),
    "compensator": ("gs", "gc"),
}
"""Symbols by the words for joint terms; see `feasid.robot.parts.Drive`."""


def drive_like(
    known: Drive | None, body: Body, symbols: tuple[str, ...], features: tuple[Feature, ...]
) -> Drive:
    """A joint's drive with `symbols`, features and its spring, keeping the values that it had.

    A file that gives some terms says that the others are zero.
    """
    symbols = (*symbols, *feature_symbols(features))
    if known is None:
        return Drive(body.name, {body.joint: 1.0}, symbols, features=features)
    symbols = (*symbols, *(s for s in known.symbols if s == "k" and s not in symbols))
    values = None
    if known.values is not None:
        had = dict(zip(known.symbols, known.values, strict=True))
        if known.from_file or all(s in had for s in symbols):
            values = np.array([had.get(s, 0.0) for s in symbols])
    return replace(known, symbols=symbols, values=values, from_file=False, features=features)
