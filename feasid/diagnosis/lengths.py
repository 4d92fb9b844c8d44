"""Diagnosis of distances between joints that the description has wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from feasid.diagnosis.findings import Finding
from feasid.diagnosis.hypothesis import Hypothesis, clear, contradicted
from feasid.diagnosis.positions import FEW
from feasid.diagnosis.screen import Screen
from feasid.robot.description import Robot

LEAST = 0.02
"""Shorter distances do not matter [m]."""

TRIED = (0.5, 2.0)
"""Factors of a distance at the first look; the best is refined."""

RANGE = 2.3
"""Factors are sought within so many times the first."""

GAIN = 0.3
"""Another length must leave at most this share of the product of all residuals."""

FACTOR = 1.2
"""Lengths that are off by less are not told from masses that are off."""


def lengths(screen: Screen) -> Iterator[Hypothesis]:
    """A body whose joint stands nearer to, or farther from, its parent's than described."""
    if screen.cad is None or clear(screen):
        return
    few = Screen(screen.robot, screen.samples.thinned(max(1, len(screen.samples.t) // FEW)))
    long = [
        k
        for k, body in enumerate(screen.robot.bodies)
        if body.parent is not None and np.linalg.norm(body.position) > LEAST
    ]
    shares = {(k, f): few.share(_stretched(few, k, f)) for k in long for f in TRIED}
    if not shares:
        return
    k, first = min(shares, key=lambda key: shares[key])
    if shares[k, first] > 2 * GAIN:
        return
    best = minimize_scalar(
        lambda x: few.share(_stretched(few, k, float(np.exp(x)))),
        bounds=(np.log(first / RANGE), np.log(first * RANGE)),
        method="bounded",
        options={"xatol": 0.02, "maxiter": 15},
    )
    factor = float(np.exp(best.x))
    other = _stretched(screen, k, factor)
    share = screen.share(other)
    if share > GAIN or 1 / FACTOR < factor < FACTOR or contradicted(screen, other.residuals):
        return
    body = screen.robot.bodies[k]
    described = float(np.linalg.norm(body.position))
    finding = Finding(
        "length",
        "warning",
        f"the joint looks {factor * described:.3g} m away from the one before it, the "
        f"description says {described:.3g} m: the product of all residuals falls to {share:.0%}",
        "measure it and mend the description: geometry is not fitted",
        (body.joint,),
        values={"factor": factor, "share": share},
    )
    yield Hypothesis(share, finding, lambda: other, unknowns=3.0)


def _stretched(screen: Screen, k: int, factor: float) -> Screen:
    """The screen of a robot whose k-th body stands this many times as far from its parent."""
    robot: Robot = screen.robot
    body = robot.bodies[k]
    moved = replace(body, position=factor * np.asarray(body.position))
    bodies = (*robot.bodies[:k], moved, *robot.bodies[k + 1 :])
    return Screen(replace(robot, bodies=bodies), screen.samples)
