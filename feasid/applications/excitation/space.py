"""Constraints on postures: workspaces of frames, the floor, distances between links.

A point of a body that moves with its axes s has the derivative ``s_v + s_w x p`` by each joint, so
that a force f on it is the gradient ``s . (p x f, f)``: constraints only say which forces on which
points increase their margins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from feasid.applications.excitation.bounds import Bounds
from feasid.applications.excitation.drives import MotionGradient, Places
from feasid.applications.excitation.problem import MarginPullback, PostureConstraint, limit_margins
from feasid.applications.excitation.regressor_gradient import (
    MotionRegressor,
    RegressorEvaluation,
    cross,
    dot_product,
)
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.robot.description import Robot
from feasid.robot.formats.build import link_places
from feasid.robot.formats.registry import collision_meshes, collision_shapes
from feasid.robot.formats.shapes import (
    Polytope,
    enclosing_capsule,
    enclosing_polytope,
    hull_corners,
)

CONTAINMENT_TOLERANCE = 1e-9  #: A capsule within another of its body up to this [m] is left out.


@dataclass(frozen=True, eq=False)
class LinkFrame:
    """A link's frame: index of the body that carries it (-1: the ground) and its pose there."""

    name: str
    body: int
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Capsule:
    """All points within `radius` of a segment, on a body (-1: the ground), in its frame [m].

    A polytope inside a capsule may give a closer bound.
    """

    link: str
    body: int
    start: Array
    end: Array
    radius: float
    polytope: Polytope | None = None

    def contains(self, other: Capsule) -> bool:
        """Whether this capsule contains the other one."""
        along = self.end - self.start
        length = float(along @ along)
        for point in (other.start, other.end):
            share = np.clip((point - self.start) @ along / length, 0, 1) if length else 0.0
            distance = float(np.linalg.norm(point - self.start - share * along))
            if distance + other.radius > self.radius + CONTAINMENT_TOLERANCE:
                return False
        return True


def link_frames(robot: Robot) -> dict[str, LinkFrame]:
    """Every link's frame by name."""
    carriers = {None: -1} | {body.name: i for i, body in enumerate(robot.bodies)}
    places = link_places(robot).items()
    return {name: LinkFrame(name, carriers[body], *pose) for name, (body, *pose) in places}


def find_frame(robot: Robot, name: str) -> LinkFrame:
    """A link's frame, or an error with the closest name."""
    frames = link_frames(robot)
    if name not in frames:
        raise InputError(
            f"robot {robot.name!r} has no frame {name!r}{did_you_mean(name, frames)}; its links: "
            f"{', '.join(frames)}",
            frame=name,
        )
    return frames[name]


def link_capsules(
    robot: Robot,
    given: Mapping[str, Sequence[Any]] | None,
    notes: list[str],
    meshes: str | Path | None = None,
) -> tuple[Capsule, ...]:
    """Capsules around all links: the caller's, and elsewhere the description's shapes.

    ``given`` maps a link to its capsules (start, end, radius) in the link's frame; spheres have
    start and end alike. Meshes below the folder ``meshes`` count by their convex hulls; without
    it, and if a format does not give their names, they are left out with a note.
    """
    frames = link_frames(robot)
    out: list[Capsule] = []
    unknown = []
    files = {} if meshes is None else collision_meshes(robot)
    for name, entries in (given or {}).items():
        for entry in entries:
            at = find_frame(robot, name)
            try:
                start, end, radius = entry
                ends = [np.asarray(x, dtype=np.float64) for x in (start, end)]
                radius = float(radius)
            except (TypeError, ValueError) as error:
                text = f"capsules of link {name!r} are (start, end, radius), not {entry!r}"
                raise InputError(text, link=name) from error
            if any(x.shape != (3,) for x in ends) or not radius > 0:
                text = f"a capsule of link {name!r} needs two points and a positive radius, not "
                raise InputError(f"{text}{entry!r}", link=name)
            out.append(_attach_capsule(at, ends[0], ends[1], radius))
    for name, shapes in collision_shapes(robot).items():
        if name in frames and name not in (given or {}):
            out += [
                _attach_capsule(frames[name], *shape.enclosing_capsule())
                for shape in shapes
                if shape is not None
            ]
            named_meshes = [mesh for mesh in files.get(name, ()) if mesh.name]
            for mesh in named_meshes:
                hull, at = hull_corners(mesh, str(meshes)), frames[name]
                inside = enclosing_polytope(hull).transform(at.rotation, at.position)
                out.append(replace(_attach_capsule(at, *enclosing_capsule(hull)), polytope=inside))
            if sum(shape is None for shape in shapes) > len(named_meshes):
                unknown.append(name)
    if unknown:
        notes.append(
            f"meshes are ignored: {', '.join(unknown)}; give their folder in meshes=, or their "
            "capsules in capsules="
        )
    return _drop_contained_capsules(out)


def _attach_capsule(at: LinkFrame, start: Array, end: Array, radius: float) -> Capsule:
    start, end = (at.rotation @ p + at.position for p in (start, end))
    return Capsule(at.name, at.body, start, end, radius)


def _drop_contained_capsules(capsules: list[Capsule]) -> tuple[Capsule, ...]:
    """Capsules that are not inside another one of the same body."""
    capsules_left: list[Capsule] = []
    # No capsule lies within a thinner one. One with a polytope is not all there, and contains none.
    for capsule in sorted(capsules, key=lambda c: -c.radius):
        others = (k for k in capsules_left if k.body == capsule.body and k.polytope is None)
        if not any(k.contains(capsule) for k in others):
            capsules_left.append(capsule)
    return tuple(capsules_left)


DISTANCE_UNIT = 0.05  #: Distances between links and to the floor count in units of 5 cm.

OVERLAP_POSTURES = 300
"""Number of random postures in which links are checked for overlaps that no motion changes."""

NEAR = 0.05  #: Distance between capsules [m] below which the polytopes inside are compared.
TOGETHER = 512  #: Postures whose polytopes are compared at once.

MIN_AXIS_DISTANCE = 1e-9
"""Shortest distance [m] between the axes of two capsules whose direction is used."""


def _add_force_gradient(
    evaluation: RegressorEvaluation, body: int, points: Array, forces: Array, out: MotionGradient
) -> None:
    """Add the gradient of forces on world points (3, m, N) of a body."""
    if body < 0:
        return
    # Virtual work: the derivative by a joint is the wrench along its axis.
    wrench = np.concatenate([cross(points, forces).sum(axis=1), forces.sum(axis=1)])
    carriers = np.flatnonzero(evaluation.dynamics.topology.path[:, body])
    out.q[evaluation.dynamics.topology.rows[carriers]] += dot_product(
        evaluation.flow.axes[:, :, carriers], wrench[:, :, None]
    ).T


def _world_points(evaluation: RegressorEvaluation, body: int, points: Array) -> Array:
    """World coordinates (3, m, N) of points (3, m) fixed to a body."""
    turn, place = _body_pose(evaluation, body, slice(None))
    return np.asarray(np.einsum("ijn,jm->imn", turn, points) + place[:, None])


def _capsule_ends(evaluation: RegressorEvaluation, capsules: Sequence[Capsule]) -> list[Array]:
    """Both ends of every capsule in the world, (3, 2, N) each."""
    return [_world_points(evaluation, c.body, np.stack([c.start, c.end], 1)) for c in capsules]


@dataclass(frozen=True, eq=False)
class WorkspaceBox:
    """A frame's origin stays in a box of the base frame; corners (3,), infinite where open."""

    frame: LinkFrame
    low: Array
    high: Array

    @property
    def margin_names(self) -> tuple[str, ...]:
        """Name of each margin."""
        return tuple(f"workspace of {self.frame.name!r}, {'xyz'[k]}" for k, _, _ in self._box_sides)

    @cached_property
    def _box_sides(self) -> list[tuple[int, float, float]]:
        """Axis, edge, and signed margin per metre of every side."""
        span = self.high - self.low
        # As for joints, in units of half the range; an open box has none.
        unit = np.where(np.isfinite(span), 2 / span, 1 / DISTANCE_UNIT)
        sides = [
            (k, float(edge), float(sign * unit[k]))
            for k in range(3)
            for edge, sign in ((self.low[k], 1.0), (self.high[k], -1.0))
        ]
        return [side for side in sides if np.isfinite(side[1])]

    def __call__(self, evaluation: RegressorEvaluation) -> tuple[Array, MarginPullback]:
        """See `feasid.applications.excitation.problem.PostureConstraint`."""
        point = _world_points(evaluation, self.frame.body, self.frame.position[:, None])

        def pull_back(bar: Array, out: MotionGradient) -> None:
            force = np.zeros_like(point)
            for (k, _, unit), row in zip(self._box_sides, bar, strict=True):
                force[k, 0] += unit * row
            _add_force_gradient(evaluation, self.frame.body, point, force, out)

        margins = [unit * (point[k, 0] - edge) for k, edge, unit in self._box_sides]
        return np.stack(margins), pull_back


@dataclass(frozen=True, eq=False)
class FloorDistance:
    """Capsules stay above a height of the base frame [m]."""

    height: float
    capsules: tuple[Capsule, ...]

    @property
    def margin_names(self) -> tuple[str, ...]:
        """Name of each margin."""
        return tuple(f"floor under link {c.link!r}" for c in self.capsules for _ in range(2))

    def __call__(self, evaluation: RegressorEvaluation) -> tuple[Array, MarginPullback]:
        """See `feasid.applications.excitation.problem.PostureConstraint`."""
        ends = _capsule_ends(evaluation, self.capsules)

        def pull_back(bar: Array, out: MotionGradient) -> None:
            for k, (capsule, points) in enumerate(zip(self.capsules, ends, strict=True)):
                force = np.zeros_like(points)
                force[2] = bar[2 * k : 2 * k + 2] / DISTANCE_UNIT
                _add_force_gradient(evaluation, capsule.body, points, force, out)

        heights = [p[2] - c.radius - self.height for c, p in zip(self.capsules, ends, strict=True)]
        return np.concatenate(heights) / DISTANCE_UNIT, pull_back


@dataclass(frozen=True, eq=False)
class LinkDistance:
    """Capsules of different bodies keep this clearance [m]; pairs are places in `capsules`."""

    capsules: tuple[Capsule, ...]
    pairs: Places
    clearance: float

    @property
    def margin_names(self) -> tuple[str, ...]:
        """Name of each margin."""
        links = [c.link for c in self.capsules]
        return tuple(f"distance between {links[a]!r} and {links[b]!r}" for a, b in self.pairs)

    def __call__(self, evaluation: RegressorEvaluation) -> tuple[Array, MarginPullback]:
        """See `feasid.applications.excitation.problem.PostureConstraint`."""
        ends = _capsule_ends(evaluation, self.capsules)
        start, end = np.stack(ends, axis=2).swapaxes(0, 1)
        a, b = self.pairs.T
        first_point, second_point = closest_points(start[:, a], end[:, a], start[:, b], end[:, b])
        radii = np.array([c.radius for c in self.capsules])[self.pairs].sum(axis=1)
        between = first_point - second_point
        length = np.sqrt(dot_product(between, between))
        apart = between / np.maximum(length, MIN_AXIS_DISTANCE)
        gap = length - radii[:, None]
        for k, (first, second) in enumerate(self.pairs):
            closer = _polytope_gaps(evaluation, self.capsules[first], self.capsules[second], gap[k])
            for at, room, direction, point in closer:
                # Its gradient is that of one corner along the normal of the other body's face.
                gap[k, at], apart[:, k, at] = room, direction
                first_point[:, k, at] = second_point[:, k, at] = point

        def pull_back(bar: Array, out: MotionGradient) -> None:
            force = apart * (bar / DISTANCE_UNIT)
            bodies = np.array([c.body for c in self.capsules])[self.pairs]
            for body in np.unique(bodies):
                first, second = (bodies == body).T
                points = np.concatenate([first_point[:, first], second_point[:, second]], axis=1)
                forces = np.concatenate([force[:, first], -force[:, second]], axis=1)
                _add_force_gradient(evaluation, int(body), points, forces, out)

        return (gap - self.clearance) / DISTANCE_UNIT, pull_back


def _polytope_gaps(
    evaluation: RegressorEvaluation, first: Capsule, second: Capsule, gap: Array
) -> Iterator[tuple[Places, Array, Array, Array]]:
    """Raise the gaps (N,) of capsules where the polytopes inside are farther apart.

    A face of one has all corners of the other (and its radius) at least so far beyond it: a lower
    bound of the distance, and of the missing distance if they overlap. Yields samples, gaps,
    directions from the second to the first body (3, n), and points (3, n) in the world.
    """
    for one, second_hull, sign in ((first, second, -1.0), (second, first, 1.0)):
        all_near = np.flatnonzero(gap < NEAR)
        if one.polytope is None or not len(all_near):
            continue
        if second_hull.polytope is None:
            corners, radius = np.stack([second_hull.start, second_hull.end]), second_hull.radius
        else:
            corners, radius = second_hull.polytope.corners, 0.0
        for chunk in np.array_split(all_near, -(-len(all_near) // TOGETHER)):
            own_turn, own_place = _body_pose(evaluation, second_hull.body, chunk)
            points = np.einsum("ijn,mj->imn", own_turn, corners) + own_place[:, None]
            turn, place = _body_pose(evaluation, one.body, chunk)
            local = np.einsum("jin,jmn->imn", turn, points - place[:, None])
            height = (one.polytope.normals @ local.reshape(3, -1)).reshape(-1, *local.shape[1:])
            corner = height.argmin(axis=1)
            room = np.take_along_axis(height, corner[:, None], axis=1)[:, 0]
            room -= one.polytope.offsets[:, None] + radius
            # Of the faces that separate the bodies, the one that does so most.
            face, n = room.argmax(axis=0), np.arange(len(chunk))
            better = room[face, n] > gap[chunk]
            at, face, n = chunk[better], face[better], n[better]
            direction = np.einsum("ijn,nj->in", turn[:, :, n], one.polytope.normals[face])
            reach = points[:, corner[face, n], n] - radius * direction
            yield at, room[face, n], sign * direction, reach


def _body_pose(
    evaluation: RegressorEvaluation, body: int, samples: Places | slice
) -> tuple[Array, Array]:
    """Rotation (3, 3, n) and origin (3, n) of a body in the base frame at these samples."""
    flow = evaluation.flow
    if body < 0:
        count = len(flow.rate[samples])
        return np.repeat(np.eye(3)[:, :, None], count, axis=2), np.zeros((3, count))
    return flow.turn[..., samples, body], flow.place[..., samples, body]


def closest_points(p0: Array, p1: Array, r0: Array, r1: Array) -> tuple[Array, Array]:
    """Nearest points of segments p0 p1 and r0 r1, arrays (3, ..., N); points count as segments.

    Of the lines' nearest points the first is clamped to its segment, then the second, then the
    first again (Ericson, Real-Time Collision Detection, 5.1.9).
    """
    u, v, w = p1 - p0, r1 - r0, p0 - r0
    uu, vv, uv = dot_product(u, u), dot_product(v, v), dot_product(u, v)
    uw, vw = dot_product(u, w), dot_product(v, w)
    tiny = MIN_AXIS_DISTANCE**2
    denominator = uu * vv - uv * uv
    skew = denominator > tiny
    s = np.where(skew, (uv * vw - vv * uw) / np.where(skew, denominator, 1.0), 0.0)
    s = np.where(uu > tiny, np.clip(s, 0, 1), 0.0)
    t = np.where(vv > tiny, (uv * s + vw) / np.maximum(vv, tiny), 0.0)
    t = np.clip(t, 0, 1)
    s = np.where(uu > tiny, np.clip((uv * t - uw) / np.maximum(uu, tiny), 0, 1), 0.0)
    return p0 + s * u, r0 + t * v


def collision_pairs(
    capsules: Sequence[Capsule], parents: Sequence[int], ignored: Sequence[tuple[str, str]]
) -> Places:
    """Pairs that can meet: on different bodies that no joint connects, and not to be ignored."""
    skip = {frozenset(pair) for pair in ignored}
    out = []
    for a, first in enumerate(capsules):
        for b, second in enumerate(capsules[:a]):
            bodies = {first.body, second.body}
            joined = any(parents[i] in bodies - {i} for i in bodies if i >= 0)
            if len(bodies) == 2 and not joined and frozenset((first.link, second.link)) not in skip:
                out.append((a, b))
    return np.array(out, dtype=np.intp).reshape(-1, 2)


def posture_constraints(
    dynamics: MotionRegressor,
    bounds: Bounds,
    *,
    workspace: Mapping[str, Any] | None,
    floor: float | None,
    capsules: Mapping[str, Sequence[Any]] | None,
    meshes: str | Path | None = None,
    collision: bool,
    clearance: float,
    ignore: Sequence[tuple[str, str]],
    notes: list[str],
) -> tuple[PostureConstraint, ...]:
    """Constraints on postures from the caller's options and the description's shapes.

    Pairs of links that overlap in every one of many random postures are left out with a note;
    capsules whose height no joint changes are left out.
    """
    robot = dynamics.robot
    out: list[PostureConstraint] = []
    for name, box in (workspace or {}).items():
        at = find_frame(robot, name)
        try:
            low, high = (np.broadcast_to(np.asarray(x, dtype=np.float64), (3,)) for x in box)
        except (TypeError, ValueError) as error:
            text = f"workspace of {name!r} must be (low, high), two corners, not {box!r}"
            raise InputError(text, frame=name) from error
        if not (low < high).all():
            text = f"workspace of {name!r} is empty: {low.tolist()} to {high.tolist()}"
            raise InputError(text, frame=name)
        out.append(WorkspaceBox(at, low, high))
    for name in (name for pair in ignore for name in pair):
        find_frame(robot, name)  # raises the error that names what is closest
    if not collision and floor is None:
        return tuple(out)
    capsules_by_link = link_capsules(robot, capsules, notes, meshes)
    if floor is not None and not capsules_by_link:
        raise InputError(
            "floor needs shapes: the description has no collision primitives; pass meshes= or "
            "capsules="
        )
    # A seed of their own: which pairs are left out must not depend on the search's.
    still = draw_postures(bounds, np.random.default_rng(0), OVERLAP_POSTURES)
    evaluation = dynamics.evaluate(still, np.zeros_like(still), np.zeros_like(still))
    if floor is not None:
        mobile = tuple(c for c in capsules_by_link if c.body >= 0)
        heights = [FloorDistance(floor, (c,))(evaluation)[0] for c in mobile]
        swings = [np.ptp(m, axis=1).max() for m in heights]
        moved = tuple(c for c, s in zip(mobile, swings, strict=True) if s > MIN_AXIS_DISTANCE)
        out.append(FloorDistance(floor, moved))
    if collision and not capsules_by_link:
        text = "collisions between links are not avoided: no collision primitives, no capsules="
        notes.append(text)
    pairs = collision_pairs(capsules_by_link, robot.parents, ignore)
    if collision and len(pairs):
        always = (LinkDistance(capsules_by_link, pairs, clearance)(evaluation)[0] < 0).all(axis=1)
        for a, b in pairs[always]:
            names = f"{capsules_by_link[a].link!r} and {capsules_by_link[b].link!r}"
            notes.append(
                f"capsules of links {names} are too close in every posture: not kept apart"
            )
        if not always.all():
            out.append(LinkDistance(capsules_by_link, pairs[~always], clearance))
    return tuple(out)


POSTURES = 2000  #: Number of postures drawn at first, and in every round around the best one.
REFINEMENT_ROUNDS = 12  #: Rounds, each with half the spread of the one before.
FIRST_SPREAD = 0.25  #: Spread of the first round, as a share of the position range.


def posture_margins(
    dynamics: MotionRegressor, bounds: Bounds, constraints: Sequence[PostureConstraint], q: Array
) -> Array:
    """Margins of postures q (dof, N) at rest, a row per limit; see `margin_names`."""
    still = np.zeros_like(q)
    evaluation = dynamics.evaluate(q, still, still, torque=True)
    rows = [
        limit_margins(q, bounds.position)[0],
        limit_margins(evaluation.torques[: len(q)], bounds.torque)[0],
    ]
    return np.vstack([*rows, *(part(evaluation)[0] for part in constraints)])


def margin_names(
    dynamics: MotionRegressor, bounds: Bounds, constraints: Sequence[PostureConstraint]
) -> list[str]:
    """Names of the rows of `posture_margins`."""
    out = []
    for kind, limit in (("position", bounds.position), ("torque", bounds.torque)):
        for low_or_high in limit:
            rows = np.flatnonzero(np.isfinite(low_or_high))
            out += [f"{kind} limit of joint {dynamics.robot.joints[j]!r}" for j in rows]
    return [*out, *(name for part in constraints for name in part.margin_names)]


def draw_postures(bounds: Bounds, rng: np.random.Generator, count: int = POSTURES) -> Array:
    """Postures drawn uniformly within the position limits, shape (dof, count)."""
    low, high = bounds.position[..., None]
    return np.asarray(low + (high - low) * rng.random((len(low), count)))


def find_rest_posture(
    dynamics: MotionRegressor,
    bounds: Bounds,
    constraints: Sequence[PostureConstraint],
    rng: np.random.Generator,
) -> Array:
    """The posture with the largest smallest margin that was found, shape (dof,).

    Raises InputError: no posture satisfies all constraints at rest; names those that are violated.
    """
    low, high = bounds.position
    if not constraints and not np.isfinite(bounds.torque).any():
        return bounds.middle_posture
    q = np.hstack([bounds.middle_posture[:, None], draw_postures(bounds, rng)])
    spread, most = FIRST_SPREAD, np.full(0, -np.inf)
    for _ in range(REFINEMENT_ROUNDS):
        margins = posture_margins(dynamics, bounds, constraints, q)
        most = margins.max(axis=1) if not most.size else np.maximum(most, margins.max(axis=1))
        best = q[:, [int(np.argmax(margins.min(axis=0)))]]
        step = spread * (high - low)[:, None] * rng.standard_normal((len(low), POSTURES))
        # The best posture stays among the drawn ones, so that no round loses it.
        q = np.hstack([best, np.clip(best + step, low[:, None], high[:, None])])
        spread /= 2
    room_left = posture_margins(dynamics, bounds, constraints, best)[:, 0]
    if room_left.min() <= 0:
        names = margin_names(dynamics, bounds, constraints)
        never = [n for n, m in zip(names, most, strict=True) if m <= 0]
        violations = [n for n, m in zip(names, room_left, strict=True) if m <= 0]
        why = (
            f"none of {REFINEMENT_ROUNDS * POSTURES} postures satisfies: "
            f"{'; '.join(dict.fromkeys(never))}"
            if never
            else f"no posture satisfies all limits; the closest one violates: "
            f"{'; '.join(violations[:4])}"
        )
        raise InputError(f"the robot cannot even stand still: {why}", broken=never or violations)
    return np.asarray(best[:, 0])
