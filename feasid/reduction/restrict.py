"""Reduced data of a robot with fewer joint terms, without reading the log again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.errors import InputError
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.reduction.strata import Strata, triangular
from feasid.reduction.triangle import Reduced, fingerprint_of
from feasid.robot.description import Robot


def restrict_terms(reduced: Reduced, wide: Robot, base: BaseParameters) -> Reduced:
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
        When `base` has a parameter that `wide` does not have.
    """
    columns = tuple(int(c) for c in base.independent)
    change = _column_change(reduced, wide, base)
    supports, maps = [], []
    for support in reduced.supports:
        own = change[list(support)]
        kept = np.flatnonzero(own.any(axis=0))
        supports.append(tuple(kept.tolist()))
        maps.append(_beside_one(own[:, kept]))
    return replace(
        reduced,
        fingerprint=fingerprint_of(base.robot, columns),
        columns=columns,
        supports=tuple(supports),
        triangles=tuple(
            _changed_triangle(t, m) for t, m in zip(reduced.triangles, maps, strict=True)
        ),
        strata=tuple(_changed_strata(s, m) for s, m in zip(reduced.strata, maps, strict=False)),
        robot=base.robot,
    )


def without_rows(reduced: Reduced, rows: Collection[int]) -> Reduced:
    """The same data with 0 = 0 in place of the equations of these coordinates."""
    triangles = tuple(0.0 * t if r in rows else t for r, t in enumerate(reduced.triangles))
    strata = tuple(s.with_zero_rows() if r in rows else s for r, s in enumerate(reduced.strata))
    return replace(reduced, triangles=triangles, strata=strata)


def measured_rows(reduced: Reduced) -> Mask:
    """Which coordinates have equations other than 0 = 0, shape (dof,)."""
    return np.array([t.any() for t in reduced.triangles])


def _column_change(reduced: Reduced, wide: Robot, base: BaseParameters) -> Array:
    """The columns of `base` by those of `reduced`: single ones where they are among these."""
    names = [wide.parameter_names[c] for c in reduced.columns]
    wanted = [base.robot.parameter_names[c] for c in base.independent]
    out = np.zeros((len(names), len(wanted)))
    if set(wanted) <= set(names):
        out[[names.index(w) for w in wanted], np.arange(len(wanted))] = 1.0
        return out
    place = {name: c for c, name in enumerate(wide.parameter_names)}
    missing = [w for w in wanted if w not in place]
    if missing:
        body, symbol = missing[0]
        raise InputError(f"the reduced data have no column {body}.{symbol}", body=body)
    whole = base_parameters(wide, measured=base.experiment.measured)
    return np.asarray(whole.K[:, [place[w] for w in wanted]])


def _beside_one(own: Array) -> Array:
    """The change of a row's entries when a further one, its last, stays."""
    out = np.zeros((own.shape[0] + 1, own.shape[1] + 1))
    out[:-1, :-1], out[-1, -1] = own, 1.0
    return out


def _changed_strata(strata: Strata, change: Array) -> Strata:
    """The strata of changed rows."""
    cells = strata.triangles.shape[:2]
    whole = _beside_one(change)
    triangles = np.array(
        [
            [_changed_triangle(strata.triangles[c, f], whole) for f in range(cells[1])]
            for c in range(cells[0])
        ]
    )
    return replace(
        strata,
        triangles=triangles,
        products=whole.T @ strata.products @ whole,
        raw=_changed_triangle(strata.raw, change),
    )


def _changed_triangle(triangle: Array, change: Array) -> Array:
    return triangular(triangle @ change)
