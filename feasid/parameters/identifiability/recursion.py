"""The Recursive Parameter Nullspace Algorithm: the directions of parameters that no motion of a
robot shows.

Wensing, Niemeyer and Slotine (2024), "RPNA". Going out from the base, each body gets the span V of
the velocities it can attain and the span K of the parameter combinations that its parents' torques
depend on. A change of the body's parameters, moved to its parent so that the total stays the same
(Sec. 3), is undetectable exactly when

    momentum   Phi' dI v = 0            for all v in V, and
    mapping    k' A(Phi) dx = 0         for all k in K as seen across the joint.

These rows are the local descriptor N_i, and the null vectors of all N_i together, each with its
transfer to the parent, are all the undetectable changes (Theorem 2). Subspaces come from the
spectrum of the joint's own screw (`feasid.parameters.identifiability.invariant_subspaces`).

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
joints beyond do are collected in ``functionals``; those of (a) in ``pair_functionals``; the
velocities of (b) and those of measured joints in ``observed_motion``. With all joints measured
they are V and K.

**Joints that are held.** A joint that stays where it is but whose forces may be measured (a base on
a force plate, a force-torque sensor in a wrist, a joint that an experiment locks) adds no velocity
and carries directions and functionals as they are. If it is measured, its row of the mass matrix
and d H_kl / d q_c must vanish like those of others, the derivative being a displacement that is
not made; so its screws count as ``observed_motion``, and ``pair_functionals`` must not change
along them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.parameters.identifiability.frames import (
    EMPTY_BASIS,
    GRAVITY_SET,
    ROTOR_SPIN,
    WHOLE_SPACE,
    ScaledExperiment,
)
from feasid.parameters.identifiability.invariant_subspaces import (
    ScrewAction,
    column_basis,
    cross_matrix,
    invariant_subspace,
    momentum_map,
    parameter_rate,
)
from feasid.robot.description import Robot


@dataclass(frozen=True, eq=False)
class AffineSet:
    """An affine set of vectors a + span(D) at a body, carried outwards."""

    point: Array
    differences: Array


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans at a body, in its working frame (columns).

    ``motion`` are velocities apart from those of the affine sets, ``observed_motion`` those that
    count at unmeasured joints, ``seeds`` the affine sets, ``functionals`` and ``pair_functionals``
    functionals on x; ``observed_motion`` and ``pair_functionals`` are None when every joint is
    measured. ``virtual`` are directions along which a nonholonomic joint feels momentum without
    moving, see `RecursionStep.lie_brackets`.
    """

    motion: Array
    seeds: dict[int, AffineSet]
    functionals: Array
    observed_motion: Array | None = None
    pair_functionals: Array | None = None
    virtual: Array = field(default_factory=lambda: EMPTY_BASIS[6])

    def velocities_and_gravity(self) -> Array:
        """Velocities and gravity (6, r), the V of the paper's algorithm."""
        carried = [x for s in self.seeds.values() for x in (s.point, s.differences)]
        return np.hstack([self.motion, *carried])


@dataclass(frozen=True, eq=False)
class JointConditions:
    """The conditions of a joint on its own columns."""

    #: Shape (r, d): rows on [x of the body, x of its rotor, own Ia, own fo], all in working units.
    rows: Array
    shared: Array  #: Shape (r, g): the same rows on the Ia and fo of drives that are nobody's own.
    state: Spans


@dataclass(frozen=True)
class RecursionStep:
    """The algorithm at one joint, given what holds at its parent."""

    run: ScaledExperiment
    i: int
    parent: Spans

    @cached_property
    def is_measured(self) -> bool:
        """Whether this joint's torque is measured."""
        return self.run.measured is None or self.i in self.run.measured

    @cached_property
    def is_held(self) -> bool:
        """Whether this joint stays where it is."""
        return self.i in self.run.held

    @cached_property
    def moves(self) -> bool:
        """Whether this joint has velocities."""
        return not self.is_held and not self.run.static

    @cached_property
    def screw_actions(self) -> tuple[list[ScrewAction], list[ScrewAction]]:
        """Actions of the joint on velocities and on functionals."""
        return self.run.screw_actions(self.i)

    @cached_property
    def velocity_map_from_parent(self) -> Array:
        """Parent's velocities to those of body and rotor, shape (6 + r, 6)."""
        body, rotor = self.run.frames.motion_transforms[self.i], self.run.rotor_views[self.i]
        return body if rotor is None else np.vstack([body, rotor.lift])

    @cached_property
    def functional_map_from_parent(self) -> Array:
        """Parent's functionals to those on body and rotor, shape (10 + p, 10)."""
        body, rotor = self.run.frames.parameter_transforms[self.i].T, self.run.rotor_views[self.i]
        return body if rotor is None else np.vstack([body, rotor.inertia.T])

    @cached_property
    def stacked_screws(self) -> Array:
        """Screws of joint (unit) and rotor together, shape (6 + r, dof)."""
        screw, rotor = self.run.frames.screws[self.i].T, self.run.rotor_views[self.i]
        if rotor is None:
            return screw
        spin = ROTOR_SPIN if rotor.lift.shape[0] == 6 else np.ones(1)
        return np.asarray(np.r_[screw[:, 0], rotor.speed * spin][:, None])

    @cached_property
    def momentum_maps(self) -> list[Array]:
        """W per screw with the functional v' W, shape (6 + r, 10 + p)."""
        frames, rotor, i = self.run.frames, self.run.rotor_views[self.i], self.i
        if rotor is None:
            if self.stacked_screws.shape[1] == 1:
                return [frames.momentum_maps[i]]
            return list(momentum_map(frames.screws[i]))
        r, p = rotor.momentum.shape
        out = np.zeros((6 + r, 10 + p))
        out[:6, :10] = frames.momentum_maps[i]
        out[6:, 10:] = rotor.speed * rotor.momentum
        return [out]

    @cached_property
    def lie_brackets(self) -> Array:
        """Directions that a joint's screws reach only by going to and fro, shape (6, k).

        Empty if the screws span a group, as for all usual joints. For others (two axes of
        rotation that are fixed in the body) the joint is nonholonomic: Phi_a' (I a + v x* I v)
        contains the momentum along the commutator of Phi_a with the joint's own velocity.
        """
        screws = self.run.frames.screws[self.i]
        if len(screws) in (1, 6) or not self.moves:
            return EMPTY_BASIS[6]
        pairs = [cross_matrix(a) @ b for k, a in enumerate(screws) for b in screws[k + 1 :]]
        q = np.linalg.qr(screws.T)[0]
        beyond = np.stack(pairs, axis=1)
        return column_basis(beyond - q @ (q.T @ beyond))[0]

    def conditions(self) -> JointConditions:
        """Rows of the joint, Wensing et al. (2024) eq. (50), (51), and the spans at its body."""
        parent, run, i = self.parent, self.run, self.i
        carried = self._propagate_motion(parent.motion)
        seeds = {key: self._propagate_affine_set(seed) for key, seed in parent.seeds.items()}
        inner = [x for k, s in seeds.items() if k >= 0 for x in (s.point, s.differences)]
        arriving = np.hstack([carried, *inner]) if inner else carried
        observed_motion = parent.observed_motion
        if observed_motion is not None:
            observed_motion = self._propagate_motion(observed_motion)
        zero = self._zero_momentum_directions(carried, seeds, observed_motion)
        through = [*self.momentum_maps]
        if self.is_measured and self.lie_brackets.shape[1]:
            through += list(momentum_map(self.lie_brackets.T))
        momentum = np.vstack([zero.T @ w for w in through])  # rows without drive terms
        virtual = self._propagate_motion(parent.virtual)
        if self.is_measured and not self.is_held:
            unmoved = [virtual]
            if observed_motion is not None and run.held:
                unmoved.append(observed_motion)
            felt = [x.T @ w for x in unmoved for w in self.momentum_maps]
            momentum = np.vstack([momentum, *felt])
        special, drive_rows, rows_of_shared = self._drive_term_rows(seeds)
        constant, mapping = self._propagate_functionals(parent.functionals)
        conditions = [momentum, special, mapping.T]
        pair_functionals = None
        if parent.pair_functionals is not None:
            still_felt, moving_felt = self._propagate_functionals(parent.pair_functionals)
            if self.is_measured:
                changes = self._displacement_rates(still_felt) if self.is_held else moving_felt
                conditions.append(changes.T)
            every = np.hstack([arriving, self.stacked_screws])
            pairs = [w.T @ every for w in self.momentum_maps] if self.moves else []
            pair_functionals = run.span_basis(np.hstack([still_felt, moving_felt, *pairs])[:10], i)
        x_rows = np.vstack(conditions)
        rows = np.zeros((len(x_rows), x_rows.shape[1] + drive_rows.shape[1]))
        rows[:, : x_rows.shape[1]] = x_rows
        rotor = run.rotor_views[i]
        if rotor is not None:
            rows[:, 10 : x_rows.shape[1]] *= rotor.parameter_units
        at = slice(len(momentum), len(momentum) + len(special))
        rows[at, x_rows.shape[1] :] = drive_rows
        shared_rows = np.zeros((len(rows), rows_of_shared.shape[1]))
        shared_rows[at] = rows_of_shared
        if constant is WHOLE_SPACE[10]:
            functionals = constant
        else:
            functionals = run.span_basis(np.hstack([constant, x_rows.T])[:10], i)
        state = self._body_spans(
            carried, arriving, observed_motion, seeds, functionals, pair_functionals
        )
        if self.is_measured and self.lie_brackets.shape[1]:
            virtual = np.hstack([virtual, self.lie_brackets])
        if virtual.shape[1]:
            virtual = run.span_basis(virtual[:6], i)
        return JointConditions(rows, shared_rows, replace(state, virtual=virtual[:6]))

    # -- across the joint --------------------------------------------------------------------

    def _propagate_motion(self, x: Array) -> Array:
        """Directions of the parent as this body and its rotor get them in every posture."""
        if x is WHOLE_SPACE[6] and self.run.rotor_views[self.i] is None:
            return x
        if self.is_held or x.shape[1] == 0:
            return self.velocity_map_from_parent @ x
        return invariant_subspace(self.velocity_map_from_parent @ x, self.screw_actions[0])

    def _propagate_affine_set(self, seed: AffineSet) -> AffineSet:
        motion_orbit = self._propagate_motion(seed.differences)
        point = self.velocity_map_from_parent @ seed.point
        if self.is_held:
            return AffineSet(point, motion_orbit)
        orbit = invariant_subspace(point, self.screw_actions[0])
        swept = np.hstack([a.split_orbits(orbit)[1] for a in self.screw_actions[0]])
        if len(self.screw_actions[0]) == 1:
            point = self.screw_actions[0][0].still @ point
        return AffineSet(point, self.run.span_basis(np.hstack([motion_orbit, swept]), self.i))

    def _propagate_functionals(self, k: Array) -> tuple[Array, Array]:
        """Functionals of the parent across the joint: the part that stays, the part that moves."""
        run, i = self.run, self.i
        if self.is_held or k.shape[1] == 0:
            return self.functional_map_from_parent @ k, self.functional_map_from_parent @ k[:, :0]
        if k is WHOLE_SPACE[10] and run.rotor_views[i] is None:
            screws = run.frames.screws[i]
            if len(screws) == 1:
                return k, run.frames.parameter_rates[i].T
            return k, np.hstack([a.T for a in parameter_rate(screws)])
        if len(self.screw_actions[1]) == 1:
            return self.screw_actions[1][0].split_orbits(self.functional_map_from_parent @ k)
        carried = invariant_subspace(self.functional_map_from_parent @ k, self.screw_actions[1])
        span = run.span_basis(carried, i)
        return span, np.hstack([a.split_orbits(span)[1] for a in self.screw_actions[1]])

    def _displacement_rates(self, k: Array) -> Array:
        run, rotor = self.run, self.run.rotor_views[self.i]
        turned = [a.T @ k[:10] for a in parameter_rate(run.frames.screws[self.i])]
        if rotor is None:
            return np.hstack(turned)
        if len(k) < 20:  # a symmetric rotor
            return np.vstack([turned[0], np.zeros_like(k[10:])])
        return np.vstack([turned[0], rotor.speed * parameter_rate(ROTOR_SPIN).T @ k[10:]])

    # -- momentum rows -----------------------------------------------------------------------

    def _zero_momentum_directions(
        self, carried: Array, seeds: dict[int, AffineSet], observed_motion: Array | None
    ) -> Array:
        """Directions along which the joint must have no momentum."""
        out = [carried] if self.is_measured else []
        if observed_motion is not None and not self.is_held and not self.is_measured:
            out.append(observed_motion)
        if self.is_measured and self.moves and self.stacked_screws.shape[1] > 1:
            out.append(self.stacked_screws)
        for key, seed in seeds.items():
            if self._is_observed(key):
                out.append(seed.differences)
                if self.stacked_screws.shape[1] > 1:  # no drives: the point is one more direction
                    out.append(seed.point)
        return np.hstack([carried[:, :0], *out])

    def _is_observed(self, key: int) -> bool:
        """Whether the torque of this joint, or the one of the seed's joint, is measured."""
        theirs = key >= 0 and key in (self.run.measured or ())
        return self.is_measured or (theirs and not self.is_held)

    def _drive_term_rows(self, seeds: dict[int, AffineSet]) -> tuple[Array, Array, Array]:
        """Rows that contain drive terms: on x, on the own (Ia, fo), on the shared ones."""
        run, i = self.run, self.i
        own_symbols = run.drive_symbols(i)
        points = list[tuple[Array, str | None, int]]()
        if self.stacked_screws.shape[1] == 1:
            if self.is_measured and self.moves:
                points.append((self.stacked_screws[:, 0], "Ia", i))
            for key, seed in seeds.items():
                if self._is_observed(key):
                    points.append((seed.point[:, 0], "fo" if key == GRAVITY_SET else None, key))
            if self.is_measured and GRAVITY_SET not in seeds:
                points.append((np.zeros(len(self.velocity_map_from_parent)), "fo", GRAVITY_SET))
        x_rows = np.zeros((len(points), self.momentum_maps[0].shape[1]))
        own_rows = np.zeros((len(points), len(own_symbols)))
        shared_rows = np.zeros((len(points), len(run.shared_drive_columns)))
        for r, (v, symbol, key) in enumerate(points):
            x_rows[r] = v @ self.momentum_maps[0]
            if symbol in own_symbols:
                own_rows[r, own_symbols.index(symbol)] = 1.0
            shared_rows[r] = run.shared_drive_terms(i, key)
            if key == i:  # the gear enters squared
                x_rows[r] /= run.gear_ratio_sizes[i]
                shared_rows[r] /= run.gear_ratio_sizes[i]
        return x_rows, own_rows, shared_rows

    # -- spans at the body -------------------------------------------------------------------

    def _body_spans(
        self,
        carried: Array,
        arriving: Array,
        observed_motion: Array | None,
        seeds: dict[int, AffineSet],
        functionals: Array,
        pair_functionals: Array | None,
    ) -> Spans:
        run, i = self.run, self.i
        screw = run.frames.screws[i].T
        body_sets = {k: AffineSet(s.point[:6], s.differences[:6]) for k, s in seeds.items()}
        motion = carried[:6]
        if i in run.coupled_joints:
            body_sets[i] = AffineSet(self.stacked_screws[:6], EMPTY_BASIS[6])
        elif self.moves:
            motion = motion if motion is WHOLE_SPACE[6] else np.hstack([motion, screw])
        if motion is not WHOLE_SPACE[6] and motion.shape[1]:
            motion = run.span_basis(motion, i)
        if observed_motion is not None:
            more = [observed_motion[:6]]
            if self.is_measured:
                more += [cross_matrix(phi) @ arriving[:6] for phi in screw.T]
                # The velocity of joints that share a drive is an affine set, not a direction.
                more += [] if i in run.coupled_joints else [screw]
                more.append(self.lie_brackets)
            observed_motion = run.span_basis(np.hstack(more), i)
        return Spans(motion, body_sets, functionals, observed_motion, pair_functionals)


@dataclass(frozen=True, eq=False)
class Recursion(ScaledExperiment):
    """Result of one run of the algorithm."""

    def with_robot(self, robot: Robot) -> Recursion:
        """Ask the question of another robot with the same joints."""
        return Recursion(robot, self.measured, self.static, self.held)

    @cached_property
    def base_spans(self) -> Spans:
        """Spans at the base."""
        motion, seeds = EMPTY_BASIS[6], dict[int, AffineSet]()
        partly = self.measured is not None
        if self.frames.gravity_size > 0:
            upwards = np.r_[0.0, 0, 0, -self.frames.gravity][:, None]  # the base accelerates so
            if partly or any("fo" in drive.symbols for drive in self.robot.drives):
                seeds[GRAVITY_SET] = AffineSet(upwards, EMPTY_BASIS[6])
            else:  # then gravity is one more velocity, Sec. 6.5
                motion = upwards
        if partly and not self.static:
            return Spans(motion, seeds, EMPTY_BASIS[10], EMPTY_BASIS[6], EMPTY_BASIS[10])
        return Spans(motion, seeds, EMPTY_BASIS[10])

    @cached_property
    def joint_conditions(self) -> tuple[JointConditions, ...]:
        """Conditions and spans of every joint, parents first: Alg. 1 to 3 in one."""
        out: list[JointConditions] = []
        for i, p in enumerate(self.robot.parents):
            parent = out[p].state if p >= 0 else self.base_spans
            out.append(RecursionStep(self, i, parent).conditions())
        return tuple(out)
