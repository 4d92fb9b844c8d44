"""The closest physically consistent inertia of one link, in closed form.

Mass and centre of mass are kept: they are easy to know and a small change of the inertia always
suffices. Moving the inertia only along its own principal axes is no loss, since both distances
used here do not depend on the axes. With the second moments ``Sigma = tr(I)/2 1 - I`` (a link is
possible when they are positive definite) and their eigenvalues s:

- "euclidean": minimise ``|I' - I|`` (Frobenius) subject to ``s'_k >= margin * sum |s|`` (and
  `SMALLEST`). In the principal moments this is the projection of three numbers on a cone of three
  faces.
- "barrier": minimise ``1/2 |Sigma' - Sigma|^2 - w log det Sigma'``, with
  ``w = (ENTROPY sum |s|)^2``: distance against the entropy of the mass distribution, whose answer
  ``s' = (s + sqrt(s^2 + 4 w)) / 2`` stays well inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, OutputError, did_you_mean
from feasid.exact.inertia import can_exist
from feasid.formats.xml import shortest_decimal
from feasid.robot import inertia

METRICS = ("euclidean", "barrier")

MARGIN = 1e-6
"""Smallest second moment over the sum of all, by default: a plate a thousand times as wide as thick
passes, and rounding in simulators does no harm."""  # fmt: skip

DIGITS = 12
"""Significant digits of corrected moments: far finer than the correction, and short to read."""

SMALLEST = 1e-13
"""Second moment [kg m^2] that a corrected link has at least: below 1e-15 simulators see zero."""

ENTROPY = 1e-2
"""How much entropy counts against distance: a flat body becomes about 1 : 10 thick."""

_FACES = np.full((3, 3), 0.5) - np.eye(3)  # s = _FACES @ principal moments


@dataclass(frozen=True)
class Corrected:
    """A possible inertia near an impossible one.

    Attributes
    ----------
    mass : float
    moments : tuple of float
        xx xy xz yy yz zz about the centre of mass, in the file's axes [kg m^2].
    distance : float
        Frobenius norm of the inertia's change over that of the inertia.
    note : str
        What could not be decided by distance alone.
    """

    mass: float
    moments: tuple[float, ...]
    distance: float
    note: str = ""


def closest_inertia(
    mass: Fraction,
    moments: Sequence[Fraction],
    metric: str = "euclidean",
    margin: float = MARGIN,
    smallest: float = SMALLEST,
) -> Corrected:
    """The closest possible inertia; its decimals, as written, are exactly possible.

    Parameters
    ----------
    mass : Fraction
        [kg]; of a negative mass the sign is turned, since the closest positive one is nothing.
    moments : sequence of Fraction, shape (6,)
        xx xy xz yy yz zz about the centre of mass [kg m^2].
    metric : {"euclidean", "barrier"}
    margin : float
        Smallest second moment over their sum, in (0, 1/3).
    smallest : float
        Smallest second moment [kg m^2].

    Raises
    ------
    InputError
        Unknown metric, margin out of range, or zero mass.
    """
    if metric not in METRICS:
        raise InputError(
            f"metric {metric!r} is not one of {METRICS}{did_you_mean(metric, METRICS)}"
        )
    if not 0 < margin < 1 / 3:
        raise InputError(f"margin {margin} must lie between 0 and 1/3", margin=margin)
    if mass == 0:
        raise InputError("without mass there is no closest possible link")
    tensor = inertia.rotational_inertia([*map(float, moments), 0, 0, 0, 0])
    values, axes = np.linalg.eigh(tensor)
    second = _FACES @ values
    size = float(np.abs(second).sum())
    least = max(margin * size, smallest)
    if metric == "euclidean":
        new = _project(values, least)
    else:
        weight = max((ENTROPY * size) ** 2, least**2)
        raised = (second + np.sqrt(second**2 + 4 * weight)) / 2
        new = raised.sum() - raised
    note = "the mass was negative and its sign was turned: check it" if mass < 0 else ""
    positive = abs(float(mass))
    for lift in (0.0, 1e-15, 1e-12, 1e-9):
        nearby = axes @ np.diag(new + lift * max(size, least)) @ axes.T
        entries = tuple(_entry(nearby, tensor, k) for k in range(6))
        exact = [Fraction(shortest_decimal(v)) for v in (positive, *entries)]
        if can_exist(exact[0], exact[1:]):
            whole = float(np.linalg.norm(tensor)) or float(np.linalg.norm(nearby))
            distance = float(np.linalg.norm(nearby - tensor)) / whole
            return Corrected(positive, entries, distance, note)
    raise OutputError("no exactly possible decimals were found near this inertia")


def _entry(new: Array, old: Array, k: int) -> float:
    """One of the six moments, to `DIGITS` digits; what differs by rounding keeps its value."""
    r, c = inertia.UPPER[k]
    size = 10.0**-DIGITS * float(np.abs(new).max())
    if abs(new[r, c] - old[r, c]) <= 0.1 * size:
        return float(old[r, c])
    return 0.0 if abs(new[r, c]) <= size else float(f"{new[r, c]:.{DIGITS}g}")


def _project(values: Array, least: float) -> Array:
    """Nearest principal moments whose second moments are at least `least`.

    The active faces of the optimum are among the eight subsets of three; the nearest point that
    satisfies all faces is the projection on one of the subsets' planes.
    """
    best, best_distance = np.full(3, np.inf), np.inf
    for count in range(4):
        for active in combinations(range(3), count):
            faces = _FACES[list(active)]
            step = np.zeros(3)
            if count:
                step = faces.T @ np.linalg.solve(faces @ faces.T, least - faces @ values)
            point = values + step
            tolerance = 1e-12 * (least + float(np.abs(values).max()))
            distance = float(step @ step)
            if (_FACES @ point >= least - tolerance).all() and distance < best_distance:
                best, best_distance = point, distance
    return best
