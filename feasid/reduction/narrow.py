"""Reduced data of a robot with fewer joint terms, without reading the log again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feasid.arrays import Array
from feasid.errors import InputError
from feasid.identifiability.base import BaseParameters
from feasid.reduction.fingerprint import fingerprint
from feasid.reduction.strata import Strata, triangular
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot


def narrowed(reduced: Reduced, wide: Robot, base: BaseParameters) -> Reduced:
    """The reduction that the robot of `base` would have got from the same log.

    Parameters
    ----------
    reduced : Reduced
        Of `wide`.
    wide : Robot
    base : BaseParameters
        Of the same robot with some of its joint terms left out.

    Raises
    ------
    InputError
        When a base parameter is not among the columns of `reduced`.
    """
    names = [wide.parameter_names[c] for c in reduced.columns]
    columns = tuple(int(c) for c in base.independent)
    wanted = [base.robot.parameter_names[c] for c in columns]
    missing = [w for w in wanted if w not in names]
    if missing:
        body, symbol = missing[0]
        raise InputError(f"the reduced data have no column {body}.{symbol}", body=body)
    old = [names.index(w) for w in wanted]
    place = {o: k for k, o in enumerate(old)}
    supports, chosen = [], []
    for support in reduced.supports:
        kept = sorted((place[s], i) for i, s in enumerate(support) if s in place)
        supports.append(tuple(k for k, _ in kept))
        chosen.append([i for _, i in kept] + [len(support)])
    return replace(
        reduced,
        fingerprint=fingerprint(base.robot, columns),
        columns=columns,
        supports=tuple(supports),
        triangles=tuple(
            triangular(t[:, c]) for t, c in zip(reduced.triangles, chosen, strict=True)
        ),
        strata=tuple(_strata(s, c) for s, c in zip(reduced.strata, chosen, strict=True)),
        robot=base.robot,
    )


def _strata(strata: Strata, chosen: list[int]) -> Strata:
    """The strata of some entries of the rows, in this order."""
    cells = strata.triangles.shape[:2]
    triangles = np.array(
        [[_part(strata.triangles[c, f], chosen) for f in range(cells[1])] for c in range(cells[0])]
    )
    return replace(
        strata,
        triangles=triangles,
        products=strata.products[:, chosen][:, :, chosen],
        raw=_part(strata.raw, chosen),
    )


def _part(triangle: Array, chosen: list[int]) -> Array:
    return triangular(triangle[:, chosen])
