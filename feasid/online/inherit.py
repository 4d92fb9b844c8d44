"""What stays known after a load was picked up: everything that the load cannot have changed.

A load delta_L fixed to a body changes the base parameters by K_L delta_L, K_L the body's columns
of K (Khalil, Gautier and Lemoine 2007). The equations before the change, R beta = rho, say of the
parameters beta' = beta + K_L delta_L after it

    min over delta_L of |R beta' - R K_L delta_L - rho|^2,

which is a triangle again: that of [R K_L | R | rho] below its first ten rows.
"""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.identifiability.base import BaseParameters


class Inherited:
    """CausalEquations from before the last change; they fade over a window.

    Parameters
    ----------
    base : BaseParameters
    carrier : str or None
        Body that a load is fixed to; default the last.
    fading : int
        Samples after which their squares have fallen to 1/e.
    """

    def __init__(self, base: BaseParameters, carrier: str | None, fading: int) -> None:
        robot = base.robot
        names = [b.name for b in robot.bodies]
        if carrier is not None and carrier not in names:
            raise InputError(
                f"robot {robot.name!r} has no body {carrier!r}{did_you_mean(carrier, names)}"
            )
        body = len(names) - 1 if carrier is None else names.index(carrier)
        self._load = np.asarray(base.K)[:, robot.inertial_columns[body]]
        self.fading = fading
        self._rows: tuple[Array, Array] | None = None
        self._left = 1.0

    def keep(self, R: Array, rho: Array) -> None:
        """Take over whitened equations, without what a load may have changed."""
        wide = np.column_stack([R @ self._load, R, rho])
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        kept = triangle[self._load.shape[1] :]
        self._rows = kept[:, self._load.shape[1] : -1], kept[:, -1]
        self._left = 1.0

    def fade(self, samples: int) -> None:
        """Let so many samples pass."""
        if self._rows is not None:
            self._left *= float(np.exp(-samples / self.fading))

    def added(self, R: Array, rho: Array) -> tuple[Array, Array]:
        """CausalEquations with the inherited ones."""
        if self._rows is None:
            return R, rho
        factor = np.sqrt(self._left)
        wide = np.vstack(
            [np.column_stack([R, rho]), factor * np.column_stack([self._rows[0], self._rows[1]])]
        )
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        size = R.shape[1]
        return triangle[:size, :size], triangle[:size, size]
