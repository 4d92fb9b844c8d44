"""Motors that move two joints and are missing in the description: differentials, wrists.

A motor that turns with v = dq_j + r dq_k loads both joints with what it takes itself,

    tau_j += u,  tau_k += r u,    u = Ia (ddq_j + r ddq_k) + fv v + fc sign(v),    Ia, fv, fc >= 0.

Three numbers in the equations of two joints, with one sign, where each joint's own base parameters
and friction explain all they can: elasticity or a wrong friction law helps one joint or neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.joint_models import SMOOTH, FreeModel, held_out

RATIOS = np.concatenate([s * np.geomspace(0.25, 4.0, 9) for s in (1.0, -1.0)])
"""Ratios r that are tried first."""

SIMPLE = sorted(
    {(n / m, n + m) for n in range(1, 5) for m in range(1, 5) if np.gcd(n, m) == 1},
    key=lambda ratio: ratio[1],
)
"""Ratios that gears have, with how simple they are."""

AS_GOOD = 1.1
"""A simple ratio is taken when it leaves at most so much more than the best one."""

LEFT, EITHER = 0.6, 0.85
"""A motor must leave at most the square of the first share of the product of its joints' residuals,
and of neither more than the second, which another motor may have a hand in."""

NEIGHBOURS = 2
"""Joints at most so far apart share motors: those of a wrist, or a parallelogram's two."""

MOST = 3
"""Motors that are looked for."""

NEW = 1e-6
"""Terms of unit length of which less than this is new are known already."""

SMALLEST = 1e-4
"""Residuals below this share of the torque are rounding and filters."""


@dataclass(frozen=True)
class Motor:
    """One that turns with dq_j + ratio dq_k, and the share of each joint's residual it leaves."""

    j: int
    k: int
    ratio: float
    left: tuple[float, float]

    @property
    def factors(self) -> dict[int, float]:
        """Factor per joint."""
        return {self.j: 1.0, self.k: self.ratio}


def find_shared_motors(free: FreeModel, torque: Array, names: Sequence[str]) -> list[Finding]:
    """Pairs of joints whose torques ask for a motor that moves both.

    Parameters
    ----------
    free : Free
    torque : ndarray, shape (N, dof)
        At the samples, with all other corrections applied.
    names : sequence of str
    """
    robot = free.robot
    if robot.couplings or robot.loops or robot.dof != len(robot.bodies):
        return []
    findings: list[Finding] = []
    pairs = _Pairs(free, torque)
    while len(findings) < MOST and (motor := pairs.find_likeliest()) is not None:
        findings.append(_finding(motor, names))
        pairs.add(motor.factors)
    return findings


class _Pairs:
    """What shared motors leave of the joints' torques; those that were found count as known."""

    def __init__(self, free: FreeModel, torque: Array) -> None:
        self.samples, self.torque = free.samples, torque
        self.columns, self.bases, self.rest = list(free.columns), list(free.bases), [*torque.T]
        for j in range(free.robot.dof):
            self._add_known_terms(j, self._own_terms(j))
        for drive in free.robot.drives:
            places = {free.robot.joint_index(n): c for n, c in drive.coupling.items()}
            if len(places) > 1:
                self.add(places)

    def _add_known_terms(self, j: int, columns: Array) -> None:
        """Joint j may have these terms besides."""
        self.columns[j] = np.hstack([self.columns[j], columns])
        left, singular, _ = np.linalg.svd(self._project_out(j, columns), full_matrices=False)
        self.bases[j] = np.hstack([self.bases[j], left[:, singular > NEW]])
        self.rest[j] = self._project_out(j, self.torque[:, j])

    def _own_terms(self, j: int) -> Array:
        """All terms that a joint's own motor and gear may have, of unit length."""
        dq, ddq = self.samples.dq[:, j], self.samples.ddq[:, j]
        sign = _smooth_sign(dq)
        terms = [ddq, dq, sign, sign * np.sqrt(np.abs(dq)), np.ones(len(dq))]
        return _unit_columns(np.stack(terms, axis=1))

    def _project_out(self, j: int, signals: Array) -> Array:
        return np.asarray(signals - self.bases[j] @ (self.bases[j].T @ signals))

    def find_likeliest(self) -> Motor | None:
        """The motor that leaves least, if both joints and other stretches of the log agree."""
        size = np.linalg.norm(self.torque, axis=0)
        open_ = [j for j, rest in enumerate(self.rest) if np.linalg.norm(rest) > SMALLEST * size[j]]
        found = [
            Motor(j, k, float(r), self.residual_shares(j, k, float(r)))
            for j, k in combinations(open_, 2)
            if k - j <= NEIGHBOURS
            for r in RATIOS
        ]
        telling = [m for m in found if _is_significant(m.left)]
        if not telling:
            return None
        motor = self._refine_ratio(min(telling, key=_residual_product))
        return motor if _is_significant(self._held_out(motor)) else None

    def _refine_ratio(self, motor: Motor) -> Motor:
        """The motor with the best ratio nearby, or with a simple ratio that is as good."""

        def at(ratio: float) -> Motor:
            return Motor(motor.j, motor.k, ratio, self.residual_shares(motor.j, motor.k, ratio))

        sign, middle = np.sign(motor.ratio), np.log(abs(motor.ratio))
        step = np.log(RATIOS[1] / RATIOS[0])
        best = minimize_scalar(
            lambda x: np.log(_residual_product(at(sign * np.exp(x)))),
            bounds=(middle - step, middle + step),
            method="bounded",
            options={"xatol": 1e-3},
        )
        free = at(float(sign * np.exp(best.x)))
        simple = (at(float(sign * ratio)) for ratio, _ in SIMPLE)
        return next(
            (m for m in simple if _residual_product(m) <= AS_GOOD * _residual_product(free)), free
        )

    def residual_shares(self, j: int, k: int, ratio: float) -> tuple[float, float]:
        """Share of the residuals of joints j and k that a motor of this ratio leaves."""
        own = self._terms({j: 1.0, k: ratio})
        sides = [self._project_out(j, own), self._project_out(k, ratio * own)]
        sizes = [np.linalg.norm(self.rest[i]) for i in (j, k)]
        columns = np.vstack([a / s for a, s in zip(sides, sizes, strict=True)])
        target = np.concatenate([self.rest[i] / s for i, s in zip((j, k), sizes, strict=True)])
        scale = np.linalg.norm(columns, axis=0)
        columns /= np.where(scale > 0, scale, 1.0)
        q, r = np.linalg.qr(columns)
        solution, _ = nnls(r, q.T @ target)
        after = np.split(target - columns @ solution, 2)
        return float(np.linalg.norm(after[0])), float(np.linalg.norm(after[1]))

    def _terms(self, factors: Mapping[int, float]) -> Array:
        """Columns a, v and sign(v) of a motor, of unit length, shape (N, 3)."""
        joints, along = [*factors], np.array([*factors.values()])
        v = self.samples.dq[:, joints] @ along
        a = self.samples.ddq[:, joints] @ along
        return _unit_columns(np.stack([a, v, _smooth_sign(v)], axis=1))

    def _held_out(self, motor: Motor) -> list[float]:
        """The same shares on stretches that were not fitted, each joint by itself."""
        out = []
        own = self._terms(motor.factors)
        for i in motor.factors:
            columns, tau = self.columns[i], self.torque[:, i]
            after = held_out(np.hstack([columns, own]), tau)
            out.append(after / max(held_out(columns, tau), 1e-300))
        return out

    def add(self, factors: Mapping[int, float]) -> None:
        """Count a motor as known: each of its joints may have its terms."""
        own = self._terms(factors)
        for i in factors:
            self._add_known_terms(i, own)


def _smooth_sign(v: Array) -> Array:
    return np.asarray(np.tanh(v / (SMOOTH * max(float(np.abs(v).max()), 1e-9))))


def _unit_columns(columns: Array) -> Array:
    return np.asarray(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))


def _is_significant(left: Sequence[float]) -> bool:
    return left[0] * left[1] < LEFT**2 and max(left) < EITHER


def _residual_product(motor: Motor) -> float:
    return motor.left[0] * motor.left[1]


def _finding(motor: Motor, names: Sequence[str]) -> Finding:
    joints = names[motor.j], names[motor.k]
    factors = {joints[0]: 1.0, joints[1]: float(f"{motor.ratio:.2g}")}
    name = "_".join(joints)
    sign = "-" if motor.ratio < 0 else "+"
    return Finding(
        "coupling",
        "warning",
        f"a motor moves both joints: with inertia and friction along dq[{joints[0]}] {sign} "
        f"{abs(motor.ratio):.2g} dq[{joints[1]}] what is not explained of their torques falls to "
        f"{motor.left[0]:.0%} and {motor.left[1]:.0%}",
        f"couplings={{{name!r}: {factors}}}",
        joints,
        tuple(f"tau_{n}" for n in joints),
        options={"couplings": {name: factors}},
        values={"ratio": motor.ratio, "left": motor.left},
    )
