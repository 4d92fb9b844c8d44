"""Bodies inside what their shapes allow, until a log insists."""

import numpy as np
import pytest
from logs import simulate, values_for

import feasid
from feasid.identification.estimation.bounds import SHAPE_ROOM, plausible_bounds
from feasid.robot import inertia
from feasid.robot.formats.registry import shape_boxes_by_body

WORDS = ("viscous", "coulomb", "offset")
SIZE = (0.1, 0.08, 0.4)
CENTRE = (0.0, 0.0, 0.2)

LINK = """
  <link name="{name}">
    <inertial>
      <origin xyz="{com}"/><mass value="2"/>
      <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.004"/>
    </inertial>
    {shapes}
  </link>
  <joint name="{name}_joint" type="revolute">
    <parent link="{parent}"/><child link="{name}"/><origin xyz="0 0 {up}"/>
    <axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="2" effort="50"/>
  </joint>"""

BOX = '<{kind}><origin xyz="0 0 0.2"/><geometry><box size="0.1 0.08 0.4"/></geometry></{kind}>'
MESH = '<collision><geometry><mesh filename="arm.stl"/></geometry></collision>'


def text(shapes, com="0 0 0.2"):
    first = LINK.format(name="upper", parent="base", com=com, up=0.3, axis="0 1 0", shapes=shapes)
    place = {"parent": "upper", "com": "0 0 0.2", "up": 0.4, "axis": "1 0 0"}
    second = LINK.format(name="fore", shapes=shapes, **place)
    return f'<robot name="boxes"><link name="base"/>{first}{second}</robot>'


COLLISION = BOX.format(kind="collision")


def arm(tmp_path, shapes=COLLISION, com="0 0 0.2"):
    (tmp_path / "arm.urdf").write_text(text(shapes, com))
    return feasid.load_robot(tmp_path / "arm.urdf")


def log_of(robot, com, noise=0.02, samples=2000, mass=2.0):
    """A log of the arm whose second link has its centre elsewhere [m]."""
    true = robot.with_joint_terms(WORDS)
    values = true.values.copy()
    for k in range(2):
        values[list(true.drive_columns(k).values())] = 0.5, 0.3, 0.0
    spread = np.diag([0.03, 0.03, 0.004])
    values[true.inertial_columns[1]] = inertia.from_mass_com_inertia(mass, com, spread)
    return simulate(true, values, 0, samples=samples, noise=noise)


def test_point_masses_inside_a_box_keep_every_bound_and_none_outside_does(tmp_path):
    robot = arm(tmp_path)
    bounds = plausible_bounds(robot, robot.values)
    (shape,) = [b for b in bounds if (b.body, b.kind) == ("fore", "shape")]
    rng = np.random.default_rng(0)
    half = np.array(SIZE) / 2
    room = SHAPE_ROOM[0] * np.array(SIZE) + SHAPE_ROOM[1]
    for _ in range(200):
        points = np.array(CENTRE) + rng.uniform(-1, 1, (8, 3)) * (half + room)
        masses = rng.uniform(0.1, 0.5, 8)
        delta = np.zeros(robot.size)
        J = np.einsum("k,ki,kj->ij", masses, np.c_[points, np.ones(8)], np.c_[points, np.ones(8)])
        delta[robot.inertial_columns[1]] = inertia.from_pseudo_inertia(J)
        assert shape.smallest_value(delta) >= -1e-12
        far = points[0] + (2.2 * (half + room) + 0.01) * np.eye(3)[rng.integers(3)]
        delta[robot.inertial_columns[1]] = inertia.from_pseudo_inertia(
            2.0 * np.outer(np.append(far, 1.0), np.append(far, 1.0))
        )
        assert shape.smallest_value(delta) < 0


@pytest.mark.parametrize(("shapes", "boxes"), [
    (BOX.format(kind="collision"), 2), (BOX.format(kind="visual"), 2), (MESH, 0),
    (MESH + BOX.format(kind="collision"), 0), ("", 0),
])  # fmt: skip
def test_boxes_are_those_of_links_all_of_whose_shapes_are_known(tmp_path, shapes, boxes):
    found = shape_boxes_by_body(arm(tmp_path, shapes))
    assert len(found) == boxes
    for low, high, volume in found.values():
        np.testing.assert_allclose(high - low, SIZE)
        np.testing.assert_allclose(0.5 * (high + low), CENTRE)
        assert volume == pytest.approx(np.prod(SIZE))


def test_a_link_leaves_its_shape_when_the_log_insists_and_the_summary_says_so_first(tmp_path):
    robot = arm(tmp_path)
    log = log_of(robot, (0.0, 0.25, 0.2), noise=0.1, samples=1000)
    fit = feasid.fit(log, robot, diagnose=False, friction=WORDS)
    (note,) = [n for n in fit.notes if n.code == "shape-released"]
    assert note.values["bodies"] == ("fore",)
    assert note.values["price"] > 0
    assert str(fit.summary()).startswith(str(note))
    column = fit.robot.parameter_names.index(("fore", "ly"))
    assert fit.delta[column] == pytest.approx(2.0 * 0.25, rel=0.1)


def test_a_log_that_says_little_leaves_links_in_their_shapes(tmp_path):
    """With hardly any prior the noise of a short log would carry masses away."""
    robot = arm(tmp_path)
    log = log_of(robot, (0.0, 0.0, 0.2), noise=0.5, samples=400)
    options = {"prior_weight": 1e-4, "diagnose": False, "friction": WORDS}
    free = feasid.fit(log, robot, plausible=False, **options)
    held = feasid.fit(log, robot, **options)
    shapes = [b for b in plausible_bounds(robot, robot.values) if b.kind == "shape"]

    def worst(fit):
        return min(b.smallest_value(values_for(robot, fit.robot)) for b in shapes)

    assert worst(free) < 0 <= worst(held)
    (note,) = [n for n in held.notes if n.code == "shape-bound"]
    assert str(held.summary()).startswith("mass of")
    assert str(note) in str(held.summary()).split("feasible fit")[0]
    assert held.range(f"{note.values['bodies'][0]}.m").mark in ("from prior", "from feasibility")


def test_a_description_outside_its_own_shape_is_not_held_to_it(tmp_path):
    robot = arm(tmp_path, com="0.5 0 0.2")
    bounds = plausible_bounds(robot, robot.values)
    assert ("upper", "shape") not in [(b.body, b.kind) for b in bounds]


def test_nothing_is_said_where_nothing_binds(tmp_path):
    robot = arm(tmp_path)
    log = log_of(robot, (0.01, 0.0, 0.21))
    fit = feasid.fit(log, robot, diagnose=False, friction=WORDS)
    assert not [n for n in fit.notes if n.code.startswith(("shape-", "mass-"))]
