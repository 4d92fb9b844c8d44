"""Changes of the robot: loads that come and go, friction that jumps.

Changes show in prediction errors. Rows are predicted before they are learnt; errors e of half a
second of motion, whitened, and the torques x = Y d that a change d of the base parameters would
cause give the least-squares estimate of its size,

    m = x' e / x' x,    var(m) = s (1 + (Y' x)' C (Y' x) / x' x) max(1, X / x' x),

with C the covariance of the parameters that predict and X the usual x' x. Changes are a mass at
the carrier's centre of mass, and friction of a joint by a share of what it was. Noise that is
correlated in time, stiction and whatever else the model lacks scatter these estimates alike, so
that s is the mean square of the estimates before (batch means: Schmeiser 1982, Batch size effects
in the analysis of simulation output, Operations Research 30), and m is judged by Student's
distribution. Another half second of errors then decides which change it is, and how large.

A model that learns follows slow drifts of friction by itself.

After a change, everything stays known that it cannot have touched (`InvariantEquations`). A load
delta_L fixed to a body changes the base parameters by K_L delta_L, K_L the body's columns of K
(Khalil, Gautier and Lemoine 2007), and so does friction with its own columns. The equations before
the change, R beta = rho, say of the parameters beta' = beta + K_L delta_L after it

    min over delta_L of |R beta' - R K_L delta_L - rho|^2,

which is a triangle again: that of [R K_L | R | rho] below its first rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.special import stdtrit

from feasid.core.arguments import NonNegative, Share, number
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.archive.state import Kinds, Time, real, several
from feasid.robot.inertia import from_mass_com_inertia
from feasid.robot.joint_terms import TERMS

BATCH_SECONDS = 0.5
"""Motion whose rows make one estimate of a load [s]: longer than errors of friction and of flexible
joints last. With a tenth of it each estimate holds one row or two, with ten times loads are found
after 5 s."""

LEARNING_SECONDS = 2.0
"""Length of motion, at the start and after a change, before prediction errors are used [s]. With a
tenth of it, the first errors, of a model from a few rows, hide a load for 10 s."""

MIN_BATCHES = 4.0
"""Number of estimates of a load before it is judged: fewer do not show their scatter."""

JUDGED_BATCHES = 4
"""Newest batches that are not yet counted as usual: those in which a load can be found. Without
them, a load that is added during a batch would hide itself."""

REMEMBERED_BATCHES = 20.0
"""Estimates of loads by whose scatter a new one is judged, older ones weigh less. With a tenth of
it, a load must be six times larger to be distinguished from chance."""

LEAST_SCATTER = 0.005
"""Ordinary variation of a joint's friction, as a share: with a smaller value, slow drifts, which
the model follows, would be reported as jumps."""

RANK_SHARE = 1e-6
"""Share of the largest singular value below which a direction is counted as not seen."""

TINY_MASS = 1e-12  #: Mass [kg] of a body that has none.


@dataclass(frozen=True)
class ModelChange:
    """A load that was added or removed, or friction that changed."""

    time: float  #: When it was noticed, by the samples' clock [s].
    kind: Literal["load", "friction"]
    where: str  #: Body that the load is fixed to, or joint.
    #: Of a load the estimate of its mass, negative when it went [kg]; of friction its change, as a
    #: share of the former value.
    size: float
    deviations: float  #: The same in units of the usual scatter of such estimates.

    def __str__(self) -> str:
        what = (
            f"a load of {self.size:+.2g} kg on {self.where}"
            if self.kind == "load"
            else f"friction of {self.where} changed by {100 * self.size:+.0f} %"
        )
        return f"{self.time:.2f} s: {what}, {abs(self.deviations):.0f} times the usual deviation"


class PossibleChanges:
    """Changes that can be detected: a load on one body, and friction of each drive.

    `carrier`: body that a load is fixed to; default the last; `names`: tuple of (kind, where).
    """

    def __init__(self, base: BaseParameters, carrier: str | None) -> None:
        robot, K = base.robot, np.asarray(base.K)
        bodies = [b.name for b in robot.bodies]
        if carrier is not None and carrier not in bodies:
            raise InputError(
                f"robot {robot.name!r} has no body {carrier!r}{did_you_mean(carrier, bodies)}"
            )
        body = len(bodies) - 1 if carrier is None else bodies.index(carrier)
        self._load = robot.inertial_columns[body]
        self._K = K
        self._drives = []
        self.names: tuple[tuple[Literal["load", "friction"], str], ...] = (("load", bodies[body]),)
        for k, drive in enumerate(robot.drives):
            columns = robot.drive_columns(k)
            friction_symbols = [s for s in columns if s in TERMS and TERMS[s].kind == "friction"]
            if friction_symbols:
                odd = [columns[s] for s in friction_symbols if TERMS[s].odd]
                self._drives.append((odd, [columns[s] for s in friction_symbols]))
                self.names += (("friction", "+".join(drive.coupling)),)

    def directions(self, delta: Array) -> Array:
        """Change of the base parameters by 1 kg, or by as much friction as there is, (nb, k)."""
        mass = delta[self._load]
        one = from_mass_com_inertia(1.0, mass[6:9] / max(mass[9], TINY_MASS), np.zeros((3, 3)))
        friction = [self._K[:, odd] @ delta[odd] for odd, _ in self._drives]
        return np.column_stack([self._K[:, self._load] @ one, *friction])

    def subspace(self, k: int) -> Array:
        """Base parameters that the k-th of `names` may change in any way, (nb, m)."""
        return self._K[:, self._drives[k - 1][1] if k else self._load]


class ChangeDetector:
    """Tests whether something changed.

    `possible`: half of the false alarms are left to the load; `supports`: base parameters in each
    joint's rows; `false_alarms`: expected number of them per hour of motion, of all changes
    together; `alarm`: since something is known to have changed, until it is known what: the time,
    the deviations, and the parameters and directions by which errors are judged.
    """

    def __init__(
        self, possible: PossibleChanges, supports: Sequence[Sequence[int]], false_alarms: float
    ) -> None:
        self._possible, self._size = possible, len(possible.subspace(0))
        self._supports = [list(s) for s in supports]
        count = len(possible.names)
        share = np.full(count, 0.5 / max(count - 1, 1))
        share[0] = 1.0 - share[1:].sum()
        self._levels = share * false_alarms * BATCH_SECONDS / 3600.0
        self._least = np.array([0.0] + (count - 1) * [LEAST_SCATTER**2])
        self._moved = self._batches = 0.0
        self._scatter, self._own = np.zeros((2, count))
        self._power: Array | None = None
        self._latest: deque[tuple[Array, Array, Array]] = deque()
        self.alarm: tuple[float, Array, Array, Array] | None = None
        self.begin_batch()

    def learnt(self) -> Kinds:
        """What is saved; an unfinished batch is not."""
        dof, changes = len(self._supports), len(self._possible.names)
        power, change = real(dof), real(changes)
        return {
            "_moved": NonNegative,
            "_scatter": change,
            "_own": change,
            "_batches": Annotated[float, number(0.0, REMEMBERED_BATCHES)],
            "_power": power | None,
            "_latest": several(several(change, change, power), ...),
            "alarm": several(Time, change, real(self._size), real(self._size, changes)) | None,
        }

    def begin_batch(self) -> None:
        """Begin a batch of rows; those of an unfinished one do not count."""
        self._seconds, count = 0.0, len(self._possible.names)
        self._rows: list[tuple[Array, Array]] = []
        self._score = np.zeros(count)
        self._directions, self._information = np.zeros((2, self._size, count))
        self._squares = np.zeros(len(self._supports))

    def update(
        self,
        rows: Sequence[Array],
        noise: Array,
        seconds: float,
        directions: Array,
        beta: Array,
        covariance: Array,
        time: float,
    ) -> ModelChange | None:
        """Take rows that were not learnt yet; the change when there is one.

        `rows` (len(support) + 1, n): per joint; `noise` (dof,): smallest standard deviation of
        their torques [N m or N]; `seconds`: length of the motion that they are from [s];
        `directions` (nb, k): changes of the base parameters of size one; `beta` (nb,), `covariance`
        (nb, nb): what predicts them; `time`: [s].
        """
        self._moved += seconds
        if self._moved < LEARNING_SECONDS:
            return None
        if self.alarm is not None:
            beta, directions = self.alarm[2:]
        if not self._seconds:
            self._directions = directions
        errors = [r[-1] - beta[s] @ r[:-1] for s, r in zip(self._supports, rows, strict=True)]
        power = np.array([np.mean(e**2) for e in errors])
        weights = 1.0 / np.maximum(power if self._power is None else self._power, noise**2)
        for w, s, r, e in zip(weights, self._supports, rows, errors, strict=True):
            caused = self._directions[s].T @ r[:-1]
            self._score += w * (caused @ e)
            self._information[s] += w * (r[:-1] @ caused.T)
            padded = np.zeros((self._size, len(e)))
            padded[s] = r[:-1]
            self._rows.append((np.sqrt(w) * padded, np.sqrt(w) * e))
        self._squares += power * seconds
        self._seconds += seconds
        return self._judge(beta, covariance, time) if self._seconds >= BATCH_SECONDS else None

    def _judge(self, beta: Array, covariance: Array, time: float) -> ModelChange | None:
        """Compare the batch's estimates with those before it, and begin another batch."""
        score, information, D = self._score, self._information, self._directions
        power, rows = self._squares / self._seconds, self._rows
        self.begin_batch()
        projected = np.sum(D * information, axis=0)
        observable = projected > 0
        projected = np.where(observable, projected, 1.0)
        unsure = 1.0 + np.einsum("ik,ij,jk->k", information, covariance, information) / projected
        factor = unsure * np.maximum(1.0, self._own / projected)
        size = score / projected
        if self.alarm is not None:
            noticed, deviations, _, _ = self.alarm
            # The changed robot is learnt for a while before it is tested again.
            self.alarm, self._moved = None, 0.0
            # The change whose parameters explain most of the errors, each for as much as chance
            # does, by the criterion of Schwarz (1978), Estimating the dimension of a model.
            Y = np.hstack([y for y, _ in rows])
            errors, costs = np.concatenate([e for _, e in rows]), []
            for n in range(len(self._possible.names)):
                X = Y.T @ self._possible.subspace(n)
                solution, _, rank, _ = np.linalg.lstsq(X, errors, rcond=RANK_SHARE)
                misfit = max(float(np.sum((errors - X @ solution) ** 2)), np.finfo(np.float64).tiny)
                costs.append(len(errors) * np.log(misfit) + rank * np.log(len(errors)))
            k = int(np.argmin(costs))
            kind, where = self._possible.names[k]
            return ModelChange(noticed, kind, where, float(size[k]), float(deviations[k]))
        if self._batches >= MIN_BATCHES and self._levels.any():
            usual = factor * np.maximum(self._scatter, 1.0 / projected)
            deviations = size / np.sqrt(np.maximum(usual, self._least))
            large = np.abs(deviations) > -stdtrit(self._batches, self._levels / 2.0)
            if (observable & large).any():
                # The latest batches may already have had a part of it.
                self._latest.clear()
                self.alarm = time, deviations, beta, D
                return None
        square = np.where(observable, size**2 / factor, self._scatter)
        self._latest.append((square, np.where(observable, projected, self._own), power))
        if len(self._latest) > JUDGED_BATCHES:  # then its first is a usual one
            square, spread, power = self._latest.popleft()
            self._batches = min(self._batches + 1.0, REMEMBERED_BATCHES)
            self._scatter = self._scatter + (square - self._scatter) / self._batches
            self._own = self._own + (spread - self._own) / self._batches
            before = power if self._power is None else self._power
            self._power = before + (power - before) / self._batches
        return None


class InvariantEquations:
    """Equations from before the last change; they fade over a window.

    `fading`: samples after which their squares have fallen to 1/e; `size`: base parameters.
    """

    def __init__(self, fading: int, size: int) -> None:
        self.fading, self._width = fading, size + 1
        self._rows: Array | None = None
        self._left = 1.0

    def learnt(self) -> Kinds:
        """What is saved."""
        return {"_rows": real("rows", self._width) | None, "_left": Share}

    def set_from(self, rows: Array, changed: Array) -> None:
        """Keep whitened [R | rho] except along directions that may have changed: columns, shape
        (nb, m).
        """
        # Rows of the triangle below those of the changed directions do not depend on them.
        wide = np.column_stack([rows[:, :-1] @ changed, rows])
        width = changed.shape[1]
        self._rows = np.asarray(np.linalg.qr(wide, mode="r"))[width:, width:]
        self._left = 1.0

    def fade(self, samples: int) -> None:
        """Lower the weight of the rows before the change by ``exp(-samples / fading)``."""
        if self._rows is not None:
            self._left *= float(np.exp(-samples / self.fading))

    def combined_with(self, R: Array, rho: Array) -> tuple[Array, Array]:
        """Equations with those from before the change, R and rho of their triangle."""
        if self._rows is None:
            return R, rho
        wide = np.vstack([np.column_stack([R, rho]), np.sqrt(self._left) * self._rows])
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        size = R.shape[1]
        return triangle[:size, :size], triangle[:size, size]
