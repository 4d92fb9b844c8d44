"""What is beside a description and is no sidecar of it is an error with its name."""

import json

import pytest
from robots import ARM

import feasid
from feasid.errors import DescriptionError
from feasid.formats.sidecar import sidecar_bytes, sidecar_path


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


@pytest.mark.parametrize("key", ["rotors", "inertials", "drives", "load_model"])
@pytest.mark.parametrize("value", [3, "x", [1], [[]], {"upper": 1}, {"upper": {"gear": "x"}}, True])
def test_parts_of_another_kind(arm, key, value):
    robot = feasid.load_robot(arm).with_joint_terms()
    data = json.loads(sidecar_bytes(robot, arm.read_bytes(), True))
    sidecar_path(arm).write_text(json.dumps(data | {key: value}))
    with pytest.raises(DescriptionError, match=r"arm\.urdf\.feasid.* does not fit robot 'arm'"):
        feasid.load_robot(arm)


@pytest.mark.parametrize("value", [1e999, [[1]], None])
def test_a_version_that_is_none(arm, value):
    data = json.loads(sidecar_bytes(feasid.load_robot(arm), arm.read_bytes(), True))
    sidecar_path(arm).write_text(json.dumps(data | {"version": value}))
    with pytest.raises(DescriptionError, match="is not a sidecar"):
        feasid.load_robot(arm)
