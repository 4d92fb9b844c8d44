"""Loops and couplings of a URDF in a table beside it: what the file means, and what it may not."""

import json

import numpy as np
import pytest

import feasid
from feasid.core.errors import FeasidError, OutputError
from feasid.robot.formats.sidecar import loop_table_path
from feasid.robot.formats.write import write

LINK = """<link name="{0}"><inertial><origin xyz="0.1 0.01 0"/><mass value="{1}"/>
  <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.011"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{4}"><parent link="{1}"/><child link="{2}"/>
  <origin xyz="{3} 0 0"/><axis xyz="0 1 0"/></joint>"""
PARTS = [
    "<link name='base'/>",
    *(LINK.format(name, mass) for name, mass in (("crank", 1.0), ("rod", 0.8), ("rocker", 0.6))),
    "<link name='tip'/>",
    JOINT.format("motor", "base", "crank", 0.0, "continuous"),
    JOINT.format("elbow", "crank", "rod", 0.25, "continuous"),
    JOINT.format("knee", "rod", "rocker", 0.35, "continuous"),
    JOINT.format("end", "rocker", "tip", 0.3, "fixed"),
]
FOUR_BAR = f"<robot name='four-bar'>{''.join(PARTS)}</robot>"
GROUND = {"name": "ground", "first": "tip", "second": "base"}
GROUND |= {"first_position": [0, 0, 0], "second_position": [0.4, 0, 0]}
TABLE = {
    "format": "feasid loops",
    "version": 1,
    "loops": [GROUND],
    "active": ["motor"],
    "configuration": {"motor": -1.2, "elbow": 0.8, "knee": 1.4},
}
ONE_LEADER = {"joint": "knee", "factors": {"motor": 1.0, "elbow": -2.0}, "offset": 0.1}


def described(tmp_path, table=TABLE, name="bars.urdf"):
    path = tmp_path / name
    path.write_text(FOUR_BAR)
    loop_table_path(path).write_text(table if isinstance(table, str) else json.dumps(table))
    return path


def motions(robot):
    home = robot.closure.closed_configuration[robot.independent]
    s = home + np.linspace(-0.3, 0.3, 7)[:, None]
    return s, np.ones_like(s), 0.5 * np.ones_like(s)


def test_a_table_closes_the_loops_of_a_urdf(tmp_path):
    """As in code, the ends being any links, also fixed ones."""
    robot = feasid.load_robot(described(tmp_path))
    assert robot.coordinates == ("motor",)
    assert "1 loops, 0 couplings" in robot.source.notes[-1]
    tree = feasid.load_robot(described(tmp_path), sidecar=False)
    assert tree.is_tree
    loop = feasid.Loop("ground", "rocker", None, [0.3, 0, 0], [0.4, 0, 0])
    same = tree.with_loops([loop], ["motor"], TABLE["configuration"])
    ours, theirs = (feasid.inverse_dynamics(r, *motions(robot)) for r in (robot, same))
    np.testing.assert_array_equal(ours, theirs)


def test_a_table_couples_joints(tmp_path):
    table = {**TABLE, "loops": [], "active": [], "configuration": {}, "couplings": [ONE_LEADER]}
    robot = feasid.load_robot(described(tmp_path, table))
    assert robot.coordinates == ("motor", "elbow")
    np.testing.assert_allclose(robot.coupling_map.A[2], [1.0, -2.0])


def test_what_is_written_has_its_table_beside_it(tmp_path):
    robot = feasid.load_robot(described(tmp_path))
    heavier = robot.with_values(robot.values * 1.1)
    out = tmp_path / "out.urdf"
    write(heavier, out)
    read = feasid.load_robot(out)
    ours, theirs = (feasid.inverse_dynamics(r, *motions(robot)) for r in (read, robot))
    np.testing.assert_allclose(ours, 1.1 * theirs, rtol=1e-9)
    with pytest.raises(OutputError, match="exists"):
        write(heavier, out)
    write(feasid.load_robot(out, sidecar=False), out, overwrite=True)
    assert not loop_table_path(out).exists()


def loop(**changes):
    return {**TABLE, "loops": [GROUND | changes]}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("{", "not a table of loops"),
        ({**TABLE, "format": "x"}, "not a table of loops"),
        ({**TABLE, "version": 2}, "update feasid"),
        ({**TABLE, "loop": []}, "unknown entry 'loop'.*'loops'"),
        (loop(frist="tip"), "loop 'ground' has an unknown entry 'frist'.*'first'"),
        (loop(first="tipp"), "no link 'tipp'.*'tip'"),
        (loop(first_position=[1, 2]), "shape"),
        (loop(second_position=[4, 0, 0]), "do not close .* loop 'ground' stay"),
        (loop(kind="glue"), "'glue', expected one of"),
        ({**TABLE, "active": ["moter"]}, "no joint 'moter'.*'motor'"),
        ({**TABLE, "couplings": [{"joint": "knee"}]}, "not a table of loops.*factors"),
        ({**TABLE, "couplings": [{"joint": "knee", "factors": {"knee": 1.0}}]}, "circle"),
        ({**TABLE, "couplings": [ONE_LEADER, ONE_LEADER]}, "'knee' is coupled twice"),
    ],
)
def test_bad_tables_are_named(tmp_path, table, words):
    path = described(tmp_path, table)
    with pytest.raises(FeasidError, match=words) as caught:
        feasid.load_robot(path)
    assert str(loop_table_path(path)) in str(caught.value)
