"""Meshes as shapes: capsules around their convex hulls, and designs that coal finds apart."""

import struct
from collections import Counter

import numpy as np
import pytest
from arms import FINGERS, path_of
from pinocchio_side import PinocchioModel
from scipy.spatial import ConvexHull

import feasid
from feasid.applications.excitation import space
from feasid.applications.excitation.bounds import resolve_bounds
from feasid.applications.excitation.drives import MotionGradient
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.core.errors import InputError
from feasid.robot.formats import shapes
from feasid.robot.formats.registry import collision_meshes

ROBOTS = ("ur5_robot", "ur3_robot", "ur10_robot", "panda", "xarm7")


def wheel_robot(stem):
    path = path_of(stem)
    folder = next(q for q in path.parents if (q / "example-robot-data").is_dir())
    return feasid.load_robot(path, lock=FINGERS if stem == "panda" else {}), folder


def distance(points, capsule):
    """From points (N, 3) to a capsule; negative inside."""
    start, end, radius = capsule
    along = end - start
    share = np.clip((points - start) @ along / max(float(along @ along), 1e-300), 0, 1)
    return np.linalg.norm(points - start - share[:, None] * along, axis=1) - radius


@pytest.mark.parametrize("stem", ROBOTS[:1])
def test_capsules_and_polytopes_contain_the_hull(stem):
    """Every face of a polytope touches it."""
    robot, folder = wheel_robot(stem)
    for meshes in collision_meshes(robot).values():
        for mesh in meshes:
            corners = shapes.hull_corners(mesh, folder)
            assert distance(corners, shapes.enclosing_capsule(corners)).max() <= TOUCHES
            body = shapes.enclosing_polytope(corners)
            room = body.offsets - corners @ body.normals.T
            assert room.min() >= 0
            assert room.min(axis=0).max() < TOUCHES
            assert (body.corners @ body.normals.T <= body.offsets + TOUCHES).all()
            assert ConvexHull(body.corners).volume < LARGER * ConvexHull(corners).volume


TOUCHES = 1e-8  # [m]
LARGER = 1.25  # volume of a polytope of 74 faces over that of a hull of hundreds


CORNERS = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3]])
FACES = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))


def tetrahedron(kind):
    """The same body in each format, as bytes."""
    if kind == "a.obj":
        return "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS).encode() + b"f 1 2 3\nvn 0 0 1\n"
    if kind == "ascii.stl":
        lines = (f"vertex {x} {y} {z}\n" for face in FACES for x, y, z in CORNERS[[*face]])
        return b"solid a\n" + "".join(lines).encode() + b"endsolid a\n"
    records = np.zeros(len(FACES), shapes.RECORD)
    records["corners"] = CORNERS[np.array(FACES)]
    return b"solid looks like text".ljust(80) + struct.pack("<I", len(FACES)) + records.tobytes()


@pytest.mark.parametrize("kind", ["a.obj", "ascii.stl", "binary.STL"])
def test_formats_of_meshes(kind, tmp_path):
    path = tmp_path / kind
    path.write_bytes(tetrahedron(kind))
    found = shapes.read_points(path)
    assert found == pytest.approx(CORNERS[np.lexsort(CORNERS.T[::-1])], abs=1e-7)
    path.write_bytes(tetrahedron(kind)[:60] + b"\nv 1 2 x\nvertex 1 2 x\n")
    with pytest.raises(InputError, match="is damaged"):
        shapes.read_points(path)


def test_meshes_are_found_below_their_folder_only(tmp_path):
    inner = tmp_path / "arm" / "meshes"
    inner.mkdir(parents=True)
    (inner / "a.stl").write_bytes(tetrahedron("a.stl"))
    for folder in (tmp_path, tmp_path / "arm", inner):
        assert shapes.find_mesh(folder, "package://arm/meshes/a.stl").samefile(inner / "a.stl")
    for name in ("package://arm/meshes/b.stl", "../arm/meshes/a.stl", "/etc/hostname"):
        with pytest.raises(InputError, match="is not below folder"):
            shapes.find_mesh(inner, name)
    (inner / "a.dae").write_bytes(b"<COLLADA/>")
    with pytest.raises(InputError, match="neither STL nor OBJ"):
        shapes.read_points(inner / "a.dae")


def collision_worlds(robot, folder):
    """Coal's meshes with their links, and the pairs on bodies that no joint joins."""
    coal = pytest.importorskip("coal")
    pytest.importorskip("pinocchio")
    loader, frames, out = coal.MeshLoader(), space.link_frames(robot), []
    for link, meshes in collision_meshes(robot).items():
        for mesh in meshes:
            shape = loader.load(str(shapes.find_mesh(folder, mesh.name)), mesh.scale)
            at = frames[link]
            turn = at.rotation @ mesh.rotation
            out.append((link, at.body, shape, turn, at.rotation @ mesh.position + at.position))
    joined = {frozenset((i, p)) for i, p in enumerate(robot.parents)}
    pairs = [
        (a, b)
        for a in range(len(out))
        for b in range(a)
        if out[a][1] != out[b][1] and frozenset((out[a][1], out[b][1])) not in joined
    ]
    return out, pairs


def mesh_places(robot, geometry, postures):
    """Coal's places of the meshes in each posture, by pinocchio's kinematics of the file."""
    import coal

    theirs = PinocchioModel(robot, robot.source.path)
    for q in postures:
        theirs.pin.forwardKinematics(theirs.model, theirs.data, theirs.configuration(q))
        bases = [*(theirs.data.oMi[joint] for joint in theirs.ids), theirs.pin.SE3.Identity()]
        yield [
            coal.Transform3s(
                bases[body].rotation @ turn,
                bases[body].rotation @ position + bases[body].translation,
            )
            for _, body, _, turn, position in geometry
        ]


def collisions(robot, folder, postures):
    """Pairs of links that coal finds in each other, and in how many postures."""
    import coal

    geometry, pairs = collision_worlds(robot, folder)
    met = Counter()
    for places in mesh_places(robot, geometry, postures):
        for a, b in pairs:
            request, result = coal.CollisionRequest(), coal.CollisionResult()
            if coal.collide(geometry[a][2], places[a], geometry[b][2], places[b], request, result):
                met[frozenset((geometry[a][0], geometry[b][0]))] += 1
    return met


def coal_distances(robot, folder, postures):
    """Of every pair of links, per posture [m]."""
    import coal

    geometry, pairs = collision_worlds(robot, folder)
    for places in mesh_places(robot, geometry, postures):
        yield {
            frozenset((geometry[a][0], geometry[b][0])): coal.distance(
                geometry[a][2], places[a], geometry[b][2], places[b],
                coal.DistanceRequest(), coal.DistanceResult(),
            )
            for a, b in pairs
        }  # fmt: skip


def link_distance(robot, folder):
    """The constraint of a design, and what it is evaluated with."""
    bounds, _ = resolve_bounds(robot, acceleration=6.0)
    dynamics = MotionRegressor(robot, ())
    (constraint,) = space.posture_constraints(
        dynamics, bounds, workspace=None, floor=None, capsules=None, meshes=folder,
        collision=True, clearance=0.0, ignore=(), notes=[],
    )  # fmt: skip
    return bounds, dynamics, constraint


def margins(dynamics, constraint, q):
    still = np.zeros_like(q)
    evaluation = dynamics.evaluate(q, still, still)
    return evaluation, *constraint(evaluation)


def test_distances_of_hulls_are_below_those_of_meshes():
    robot, folder = wheel_robot(ROBOTS[0])
    pytest.importorskip("coal")
    bounds, dynamics, constraint = link_distance(robot, folder)
    q = space.draw_postures(bounds, np.random.default_rng(1), 30)
    found = margins(dynamics, constraint, q)[1] * space.DISTANCE_UNIT
    links = [c.link for c in constraint.capsules]
    closest = []
    for k, true in enumerate(coal_distances(robot, folder, q.T)):
        for (a, b), low in zip(constraint.pairs, found[:, k], strict=True):
            mesh = true.get(frozenset((links[a], links[b])), np.inf)  # boxes are no meshes
            assert low <= max(mesh, 0.0) + 1e-9
            closest += [mesh - low] if 0 < mesh < space.NEAR else []
    assert np.median(closest) < SLACK


SLACK = 0.02  # [m], what bodies of 74 faces and holes in meshes cost where links are near


def test_gradients_of_distances_are_their_derivatives():
    robot, folder = wheel_robot(ROBOTS[0])
    bounds, dynamics, constraint = link_distance(robot, folder)
    rng = np.random.default_rng(2)
    q = space.draw_postures(bounds, rng, 6)
    _, value, pull_back = margins(dynamics, constraint, q)
    bar, way, step = rng.standard_normal(value.shape), rng.standard_normal(q.shape), 1e-7
    out = MotionGradient.zeros(*q.shape)
    pull_back(bar, out)
    ends = [margins(dynamics, constraint, q + sign * step * way)[1] for sign in (1, -1)]
    slope = np.sum(bar * (ends[0] - ends[1])) / (2 * step)
    assert np.sum(out.q * way) == pytest.approx(slope, rel=1e-4)


def design(stem):
    robot, folder = wheel_robot(stem)
    options = {"acceleration": 6.0, "harmonics": 2, "starts": 3, "rounds": 0}
    return robot, folder, feasid.excite(robot, 8.0, meshes=folder, **options)


@pytest.mark.slow
@pytest.mark.parametrize("stem", ROBOTS)
def test_links_of_a_design_are_apart_by_coal(stem):
    robot, folder, motion = design(stem)
    assert motion.certificate.limits_hold
    assert not [n for n in motion.notes if "too close" in n or "ignored" in n]
    times = np.arange(POSTURES) * motion.period / POSTURES
    assert collisions(robot, folder, motion.at(times)[0]) == {}
    assert np.abs(np.array(motion.at([0.0, motion.period]))[1:]).max() < 1e-9


POSTURES = 10_000
