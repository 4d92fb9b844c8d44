"""Collision primitives: read from files, and within the capsules that stand for them."""

import numpy as np
import pytest
from arms import panda, ur5

import feasid
from feasid.robot.formats.registry import collision_shapes
from feasid.robot.formats.shapes import bounding_box, farthest_distance, primitive_shape
from feasid.robot.rotations import from_rpy

SIZES = {
    "box": (0.3, 0.1, 0.2), "sphere": (0.2,), "cylinder": (0.1, 0.5), "capsule": (0.1, 0.5),
    "ellipsoid": (0.1, 0.3, 0.2),
}  # fmt: skip

VOLUMES = {
    "box": 0.006, "sphere": 0.032 / 3 * np.pi, "cylinder": 0.005 * np.pi,
    "capsule": 0.005 * np.pi + 0.004 / 3 * np.pi, "ellipsoid": 0.008 * np.pi,
}  # fmt: skip

ROUNDING = 1e-12  #: Points on the surface of a shape may touch its capsule's.


def surface(kind, size, rng):
    """Points on a primitive's surface, in its own axes."""
    u = rng.normal(size=(4000, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    if kind == "box":
        return u / np.abs(u).max(axis=1, keepdims=True) * np.array(size) / 2
    if kind in ("sphere", "ellipsoid"):
        return u * (np.array(size) if kind == "ellipsoid" else size[0])
    radius, length = size
    z = rng.uniform(-length / 2, length / 2, len(u))
    ring = u[:, :2] / np.linalg.norm(u[:, :2], axis=1, keepdims=True) * radius
    wall = np.column_stack([ring, z])
    if kind == "cylinder":
        return wall
    caps = radius * u + np.sign(u[:, 2:]) * [0, 0, length / 2]
    return np.vstack([wall, caps])


@pytest.mark.parametrize("kind", SIZES)
def test_capsule_box_and_volume_are_those_of_the_shape(kind):
    rng = np.random.default_rng(0)
    rotation, position = from_rpy([0.3, -0.7, 1.1]), np.array([0.1, 0.2, -0.3])
    shape = primitive_shape(kind, SIZES[kind], rotation, position)
    assert shape.volume == pytest.approx(VOLUMES[kind])
    start, end, radius = shape.enclosing_capsule()
    turned = surface(kind, SIZES[kind], rng) @ rotation.T
    points = turned + position
    along = end - start
    share = np.clip((points - start) @ along / max(along @ along, 1e-300), 0, 1)
    distance = np.linalg.norm(points - start - share[:, None] * along, axis=1)
    assert distance.max() <= radius + ROUNDING
    if kind in ("sphere", "capsule"):  # these are their own capsules
        assert distance.min() >= radius - ROUNDING
    if kind == "box":
        assert distance.max() > radius - 0.03
    reach = shape.half_extents()
    assert (turned.max(axis=0) <= reach + ROUNDING).all()
    assert (turned.max(axis=0) > 0.95 * reach).all()  # the next of 4000 points is that near
    np.testing.assert_allclose(bounding_box([shape]), [position - reach, position + reach])
    farthest = np.linalg.norm(turned, axis=1).max()
    assert farthest_distance([shape], position) >= farthest - ROUNDING


@pytest.mark.parametrize("size", [[], [0.0], [-1.0], [np.inf], [np.nan]])
def test_shapes_without_volume_are_none(size):
    assert primitive_shape("sphere", size, np.eye(3), np.zeros(3)) is None


def test_an_sdf_file_has_its_shapes_where_a_urdf_has_them(tmp_path):
    sdf = {
        "box": "<size>0.3 0.1 0.2</size>", "sphere": "<radius>0.2</radius>",
        "cylinder": "<radius>0.1</radius><length>0.5</length>",
        "capsule": "<radius>0.1</radius><length>0.5</length>",
        "ellipsoid": "<radii>0.1 0.3 0.2</radii>", "mesh": "<uri>a.stl</uri>", "plane": "",
    }  # fmt: skip
    pose = "<pose>0.1 0.2 -0.3 0.3 -0.7 1.1</pose>"
    inertia = "<mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
    one = f"<collision name='{{0}}'>{pose}<geometry><{{0}}>{{1}}</{{0}}></geometry></collision>"
    solid = "".join(one.format(*item) for item in sdf.items())
    bad = "<collision name='bad'><geometry><box><size>1 2</size></box></geometry></collision>"
    path = tmp_path / "one.sdf"
    path.write_text(
        f"<sdf version='1.9'><model name='one'><link name='a'><inertial>{inertia}</inertial>"
        f"{solid}{bad}</link><joint name='j' type='revolute'><parent>world</parent>"
        f"<child>a</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
    )
    *known, mesh, plane, wrong = collision_shapes(feasid.load_robot(path))["a"]
    assert mesh is plane is wrong is None
    for (kind, size), shape in zip(SIZES.items(), known, strict=True):
        wanted = primitive_shape(kind, size, from_rpy([0.3, -0.7, 1.1]), np.array([0.1, 0.2, -0.3]))
        assert shape.kind == kind
        np.testing.assert_allclose(shape.half_extents(), wanted.half_extents(), rtol=ROUNDING)
        (start, *_), (wanted_start, *_) = shape.enclosing_capsule(), wanted.enclosing_capsule()
        np.testing.assert_allclose(start, wanted_start, rtol=ROUNDING)
        assert shape.volume == pytest.approx(wanted.volume)


def test_panda_is_made_of_capsules():
    shapes = collision_shapes(panda())
    assert {"panda_link0", "panda_link5", "panda_hand"} <= set(shapes)
    assert all(shape is not None for each in shapes.values() for shape in each)


def test_meshes_are_unknown():
    assert collision_shapes(ur5())["forearm_link"] == [None]


def test_mjcf_geoms_that_only_show_do_not_collide():
    robot = feasid.load_robot(
        "<mujoco><worldbody><body name='b'><joint name='j' axis='0 0 1'/>"
        "<geom type='capsule' size='0.1' fromto='0 0 0 0 0 1' mass='1'/>"
        "<geom type='sphere' size='0.3' contype='0' conaffinity='0' mass='1'/>"
        "</body></worldbody></mujoco>"
    )
    (shape,) = collision_shapes(robot)["b"]
    start, end, radius = shape.enclosing_capsule()
    assert np.allclose(sorted([start[2], end[2]]), [0, 1])
    assert radius == 0.1
