"""Payloads of controllers, read back in each convention, exert the load's own forces."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import MODELS

import feasid
from feasid.applications.loads.controllers import CONVENTIONS, FRANKA_RATED_PAYLOAD
from feasid.applications.loads.payload import Payload
from feasid.core.errors import InputError
from feasid.robot import inertia
from feasid.robot.layout import find_link

pin = pytest.importorskip("pinocchio")

ROUNDING = 1e-9
"""Forces of a payload beside the load's, relative to the largest: controllers get twelve digits."""


def load(seed: int, mass: float = 1.3) -> Payload:
    """Some body that can exist: a handful of random point masses."""
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(0, 0.1, (6, 3)), rng.uniform(0.1, 1, 6)
    weights *= mass / weights.sum()
    homogeneous = np.c_[points, np.ones(6)]
    ten = inertia.from_pseudo_inertia(homogeneous.T * weights @ homogeneous)
    _, centre, about = inertia.to_mass_com_inertia(ten)
    return Payload(
        body="flange",
        mass=mass,
        mass_std=0.0,
        centre=centre,
        centre_std=np.zeros(3),
        inertia=about,
        inertia_std=np.zeros((3, 3)),
        parameters=ten,
        residual=(1.0, 0.0),
        verified="",
    )


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def read_franka(text):
    values = numbers(text)
    return values[0], values[1:4], np.reshape(values[4:], (3, 3), order="F")


def read_ur(text):
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers(text)
    return m, (x, y, z), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def read_kuka(text):
    m, x, y, z, a, b, c, *moments = numbers(text)
    turn = pin.rpy.rpyToMatrix(*np.radians([c, b, a]))
    return m, np.array([x, y, z]) / 1e3, turn @ np.diag(moments) @ turn.T


def read_ros2(text):
    inertial = ET.fromstring(f"<robot>{text}</robot>").find("link/inertial")
    i = {k: float(v) for k, v in inertial.find("inertia").attrib.items()}
    matrix = [
        [i["ixx"], i["ixy"], i["ixz"]],
        [i["ixy"], i["iyy"], i["iyz"]],
        [i["ixz"], i["iyz"], i["izz"]],
    ]
    return (
        float(inertial.find("mass").get("value")),
        numbers(inertial.find("origin").get("xyz")),
        matrix,
    )


READERS = {"franka": read_franka, "ur": read_ur, "kuka": read_kuka, "ros2": read_ros2}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(sorted(READERS)))
def test_a_card_exerts_the_loads_forces(seed, maker):
    """Pinocchio's Newton-Euler of what the controller is told equals the parameters' equations."""
    carried, rng = load(seed), np.random.default_rng(seed)
    mass, centre, about = READERS[maker](carried.to(maker).text)
    body = pin.Inertia(mass, np.array(centre), np.array(about))
    matrix = inertia.spatial_inertia(carried.parameters)  # angular part first
    for _ in range(5):
        speed, acceleration = rng.normal(size=(2, 6))
        theirs = body * pin.Motion(acceleration[3:], acceleration[:3])
        theirs += body.vxiv(pin.Motion(speed[3:], speed[:3]))
        momentum = matrix @ speed
        own = matrix @ acceleration
        own[:3] += np.cross(speed[:3], momentum[:3]) + np.cross(speed[3:], momentum[3:])
        own[3:] += np.cross(speed[:3], momentum[3:])
        found = np.r_[theirs.angular, theirs.linear]
        assert np.abs(found - own).max() <= ROUNDING * np.abs(own).max()


def test_kinova_takes_mass_and_centre():
    carried = load(1)
    payload = carried.to("kinova")
    assert payload.values["payload_mass"] == carried.mass
    assert [payload.values["payload_mass_center"][k] for k in "xyz"] == carried.centre.tolist()
    assert "no inertia" in repr(payload)


@pytest.mark.parametrize("maker", CONVENTIONS)
def test_every_card_says_its_frame_and_what_it_leaves_out(maker):
    said = repr(load(2).to(maker))
    assert "'flange'" in said
    assert "friction" in said


def test_limits_of_the_interfaces():
    assert f"{FRANKA_RATED_PAYLOAD:g} kg" in repr(load(3, mass=4.0).to("franka"))
    vast = replace(load(3), inertia=200.0 * np.eye(3))
    with pytest.raises(InputError, match="133"):
        vast.to("ur")
    with pytest.raises(InputError, match="did you mean 'franka'"):
        load(1).to("frank")


def test_a_load_at_a_link_is_in_its_frame():
    """The flange of a URDF, a link that does not move by itself, may carry the load."""
    robot = feasid.load_robot(MODELS / "flange.urdf")
    carried = load(4)
    place, link = find_link(robot, "flange")
    loaded = carried.on(robot)
    pose = pin.SE3(link.rotation, link.position)
    added = loaded.bodies[place].inertial - robot.bodies[place].inertial
    there = pose.act(pin.Inertia(carried.mass, carried.centre, carried.inertia))
    mass, centre, about = inertia.to_mass_com_inertia(added)
    assert mass == pytest.approx(carried.mass)
    assert np.allclose(centre, there.lever)
    assert np.allclose(about, there.inertia)
    with pytest.raises(InputError, match="did you mean 'flange'"):
        find_link(robot, "flang")
