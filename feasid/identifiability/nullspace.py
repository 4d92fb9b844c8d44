"""The Recursive Parameter Nullspace Algorithm: what no motion of a robot can ever show.

Wensing, Niemeyer and Slotine (2024), "RPNA". Going out from the base, each body gets the span V of
the velocities it can attain and the span K of the parameter combinations that its parents can
feel. A change of the body's parameters, moved to its parent so that the total stays the same
(Sec. 3), is undetectable exactly when

    momentum   Phi' dI v = 0            for all v in V, and
    mapping    k' A(Phi) dx = 0         for all k in K as seen across the joint.

These rows are the local descriptor N_i, and the null vectors of all N_i together, each with its
transfer to the parent, are all the undetectable changes (Theorem 2). Subspaces come from the
spectrum of the joint's own screw (`feasid.identifiability.spectral`).

**Gravity** is a vector that is carried out like a velocity (Sec. 6.5). Its directions at body i
over all configurations form an *affine* set a + D: a is one of them, D the span of their
differences. Without offset friction the row of a is one more momentum row.

**Joint terms.** A drive adds ``c c' Ia`` to the mass matrix and ``c fo`` to the gravity torques,
both constant in q; fv and fc multiply functions that are odd in dq, which nothing else produces.
A change (dx, dIa, dfo) is therefore undetectable exactly when

    Phi_i' dI_i^C(q) iX_j(q) Phi_j + sum_k c_ki c_kj dIa_k = 0  for all q and j up to i, and
    Phi_i' dI_i^C(q) iX_0(q) a_g   + sum_k c_ki dfo_k      = 0  for all q,

with a_g the acceleration opposite to gravity and dI_i^C the change of the composite inertia beyond
joint i. Each left part must be *constant*.

1. *Mapping rows are unchanged.* They state that derivatives with respect to the joints beyond i
   vanish, for every functional that a parent can feel; the derivative of a constant is zero, so
   the drive terms drop out, and so K and its recursion stay as they are. Then dI_i^C(q) may be
   replaced by its value at home, dI_i, in all of these expressions (induction from the tips,
   as in App. C).
2. *Momentum rows split.* For fixed j the vectors iX_j(q) Phi_j run through an affine set a + D
   like gravity's. An expression that is linear in v is constant on a + D if and only if it
   vanishes on D, and its constant is its value at a. So the rows of D stay, and the row of a
   becomes ``Phi_i' dI_i a + (drive terms) = 0``.
3. For joints that share no drive the drive terms are zero except for j = i, where the set is the
   single point Phi_i: ``Phi_i' dI_i Phi_i + dIa_i = 0``, while all other rows, also those of
   velocities that arrive from the parents and happen to be along Phi_i, stay. If i and j share a
   drive, joint j's velocities are carried separately (`Seed`) from all others; if they are on
   different branches the left part is zero and ``sum_k c_ki c_kj dIa_k = 0`` remains.

**Rotors** (Sec. 8, App. I) are stacked with the body of their joint: V gets the rotor's velocities
below the body's, the two turn with speeds 1 : gear, and what is left of x has 14 or 20 entries.
A symmetric rotor needs its spin velocity and its four parameters only, which its rotation leaves
alone. The gear's sign stays in Phi.

**Only some joints measured.** With torques of the joints j in a set S the mass matrix must satisfy
H_jk = 0 for j in S and all k and, from the Coriolis terms, d H_kl / d q_j = 0 for j in S and all
k, l. By the product rule the second says (a) at a measured joint c, the functionals of *all* pairs
k, l before c do not change across c; (b) at an unmeasured joint k, beyond a measured joint j,
Phi_k' dI_k kX_j (Phi_j x) v = 0 for all v before j. Functionals that must vanish whatever the
joints beyond do are collected in ``firm``; those of (a) in ``felt``; the velocities of (b) and
those of measured joints in ``heard``. With all joints measured they are V and K.

**Joints that are held.** A joint that stays where it is but whose forces may be measured (a base on
a force plate, a force-torque sensor in a wrist, a joint that an experiment locks) adds no velocity
and carries directions and functionals as they are. If it is measured, its row of the mass matrix
and d H_kl / d q_c must vanish like those of others, the derivative being a displacement that is
not made; so its screws are ``heard``, and ``felt`` functionals must not change along them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.identifiability.setting import GRAVITY_SEED, NONE, Setting
from feasid.identifiability.step import Local, Seed, Spans, Step
from feasid.robot.description import Robot


@dataclass(frozen=True, eq=False)
class Recursion(Setting):
    """One run of the algorithm."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        measured: Collection[int] | None,
        static: bool,
        held: Collection[int],
    ) -> Recursion:
        """Run for these measured joints; all of them when None."""
        every = range(len(robot.bodies))
        chosen = frozenset(every if measured is None else measured)
        whole = len(chosen) == len(every) and not held
        return cls(robot, None if whole else chosen, static, frozenset(held))

    def again(self, robot: Robot) -> Recursion:
        """The same question of another robot with the same joints."""
        return Recursion(robot, self.measured, self.static, self.held)

    @cached_property
    def ground(self) -> Spans:
        """What holds at the base."""
        gravity = np.r_[0.0, 0, 0, -self.frames.gravity][:, None]  # the base accelerates upwards
        partly = self.measured is not None
        kinetic = partly and not self.static
        heard, felt = (NONE[6], NONE[10]) if kinetic else (None, None)
        if self.frames.pull == 0:
            return Spans(NONE[6], {}, NONE[10], heard, felt)
        offsets = any("fo" in drive.symbols for drive in self.robot.drives)
        if not partly and not offsets:  # then gravity is one more velocity, Sec. 6.5
            return Spans(gravity, {}, NONE[10])
        seeds = {GRAVITY_SEED: Seed(gravity, NONE[6])}
        return Spans(NONE[6], seeds, NONE[10], heard, felt)

    @cached_property
    def run(self) -> tuple[Local, ...]:
        """Conditions and spans of every joint, parents first: Alg. 1 to 3 in one."""
        out: list[Local] = []
        for i, p in enumerate(self.robot.parents):
            out.append(Step(self, i, out[p].state if p >= 0 else self.ground).local())
        return tuple(out)
