"""How far a linear form reaches over feasible models that fit well enough, by an interior path.

    maximise c.x   over   F_k(x) > 0,   G x + h > 0,   |A x - b| < radius

The path of central points, the maximisers of ``c.x / mu`` plus the logarithms of all constraints,
is followed by Newton's method until its duality gap is a small share of the way. Its points are
strictly inside, and so are the multipliers that it gives: those of a proof that nothing reaches
further, with room for their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import SolverError
from feasid.feasibility.program.barrier import newton_step

TIGHT = 1e-3
"""Duality gap at which a path ends, as a share of the way from the centre."""

FASTER = 8.0
"""Factor between one mu and the next: fewer, longer steps cost more of Newton's."""

CENTRED = 0.05
"""Newton decrement at which a point counts as central: half its square is lost at most."""

MOST_STEPS = 400
SHORTEST = 1e-10

Group = tuple[npt.NDArray[np.intp], Array, Array]


@dataclass(frozen=True, eq=False)
class Reached:
    """The end of a path.

    Attributes
    ----------
    x : ndarray, shape (nx,)
        Strictly inside.
    w : ndarray, shape (rows,)
        Multiplier of the equations: ``c + sum_k F_k*(Z_k) + G'z = A'w``.
    blocks : tuple of ndarray
        Z_k, positive definite.
    prices : ndarray, shape (m,)
        z, positive.
    """

    x: Array
    w: Array
    blocks: tuple[Array, ...]
    prices: Array


@dataclass(frozen=True, eq=False)
class Inside:
    """The constraints, in units in which their numbers are near one.

    Attributes
    ----------
    members : tuple of tuple of int
        Which blocks each group holds, all of one shape.
    groups : tuple of (columns (g, c), basis (g, c, s, s), constant (g, s, s))
    G, h : ndarray, shapes (m, nx) and (m,)
    A, b : ndarray, shapes (rows, nx) and (rows,)
    radius : float
    """

    members: tuple[tuple[int, ...], ...]
    groups: tuple[Group, ...]
    G: Array
    h: Array
    A: Array
    b: Array
    radius: float

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(self.A.T @ self.A)

    @property
    def weight(self) -> float:
        """Duality gap of a central point, in units of mu."""
        sizes = sum(len(m) * constant.shape[1] for m, (_, _, constant) in self._paired)
        return float(sizes + len(self.h) + 2)

    @property
    def _paired(self) -> list[tuple[tuple[int, ...], Group]]:
        return list(zip(self.members, self.groups, strict=True))

    def value(self, x: Array) -> float:
        """Minus the sum of all logarithms; infinite outside."""
        numbers, error = self.G @ x + self.h, self.A @ x - self.b
        left = self.radius**2 - float(error @ error)
        if left <= 0 or (numbers <= 0).any():
            return np.inf
        total = -np.log(left) - float(np.log(numbers).sum())
        try:
            for group in self.groups:
                roots = np.diagonal(np.linalg.cholesky(_matrices(group, x)), axis1=1, axis2=2)
                total -= 2.0 * float(np.log(roots).sum())
        except np.linalg.LinAlgError:
            return np.inf
        return float(total)

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of `value`."""
        numbers, error = self.G @ x + self.h, self.A @ x - self.b
        left = self.radius**2 - float(error @ error)
        pull, scaled = self.A.T @ error * (2.0 / left), self.G / numbers[:, None]
        gradient = pull - scaled.sum(axis=0)
        hessian = self._squares * (2.0 / left) + np.outer(pull, pull) + scaled.T @ scaled
        for columns, basis, constant in self.groups:
            roots = np.linalg.inv(np.linalg.cholesky(_matrices((columns, basis, constant), x)))
            white = roots[:, None] @ basis @ roots.transpose(0, 2, 1)[:, None]
            flat = white.reshape(*white.shape[:2], -1)
            np.add.at(gradient, columns, -np.trace(white, axis1=2, axis2=3))
            bend = flat @ flat.transpose(0, 2, 1)
            np.add.at(hessian, (columns[:, :, None], columns[:, None, :]), bend)
        return gradient, hessian

    def centred(self, x: Array, tilt: Array) -> Array:
        """The minimiser of ``value(x) - tilt.x``, from a point inside."""
        current = self.value(x) - float(tilt @ x)
        for _ in range(MOST_STEPS):
            gradient, hessian = self.derivatives(x)
            step = newton_step(hessian, tilt - gradient)
            decrease = float((tilt - gradient) @ step)
            if not decrease > CENTRED**2:
                return x
            length = 1.0
            while length > SHORTEST:
                trial = x + length * step
                new = self.value(trial) - float(tilt @ trial)
                if new <= current - 0.1 * length * decrease:
                    break
                length *= 0.5
            else:
                return x
            x, current = trial, new
        raise SolverError("the path of central points was lost: Newton's method did not settle")

    def furthest(self, c: Array, centre: Array) -> Reached:
        """How far ``c.x`` reaches, from the centre of all constraints."""
        _, hessian = self.derivatives(centre)
        mu = float(np.sqrt(max(float(c @ newton_step(hessian, c)), 0.0)))
        x, start = centre, float(c @ centre)
        while mu > 0:
            x = self.centred(x, c / mu)
            if self.weight * mu <= TIGHT * (float(c @ x) - start):
                break
            mu /= FASTER
        return self._multipliers(x, c, mu)

    def _multipliers(self, x: Array, c: Array, mu: float) -> Reached:
        """Those of the nearly central x, linear in the step to the centre: they cancel exactly."""
        gradient, hessian = self.derivatives(x)
        step = newton_step(hessian, c / mu - gradient) if mu > 0 else np.zeros_like(x)
        error, moved = self.A @ x - self.b, self.A @ step
        left = self.radius**2 - float(error @ error)
        w = 2.0 / left * (error + moved) + 4.0 * float(error @ moved) / left**2 * error
        blocks: dict[int, Array] = {}
        for members, (columns, basis, constant) in self._paired:
            inverse = np.linalg.inv(_matrices((columns, basis, constant), x))
            change = inverse @ np.einsum("gc,gcij->gij", step[columns], basis) @ inverse
            for k, matrix in zip(members, inverse - change, strict=True):
                blocks[k] = mu * 0.5 * (matrix + matrix.T)
        numbers = self.G @ x + self.h
        prices = mu * (1.0 - self.G @ step / numbers) / numbers
        return Reached(x, mu * w, tuple(blocks[k] for k in sorted(blocks)), prices)


def _matrices(group: Group, x: Array) -> Array:
    columns, basis, constant = group
    return np.asarray(constant + np.einsum("gc,gcij->gij", x[columns], basis))
