"""Arms of the example-robot-data wheel as motions are designed for them, and their shapes."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
from robots import example_urdfs

import feasid

FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


def path_of(name):
    return next(p for p in example_urdfs() if p.stem == name)


@cache
def panda():
    """All collision shapes are cylinders and spheres."""
    return feasid.load_robot(path_of("panda_collision"), lock=FINGERS)


@cache
def short_panda():
    """Its first four joints, and their base parameters with drive inertia."""
    robot = panda().without_joint_terms().locked(dict.fromkeys(panda().joints[4:], 0.3))
    return robot, feasid.base_parameters(robot.with_joint_terms(drive_inertia=True))


@cache
def ur5():
    """All collision shapes but the tool's are meshes."""
    return feasid.load_robot(path_of("ur5_robot"))


@cache
def ur5_capsules():
    """Capsules around the UR5's collision meshes, in its links' frames."""
    folder = path_of("ur5_robot").parent.parent / "meshes" / "ur5" / "collision"
    files = {
        "base_link": "base", "shoulder_link": "shoulder", "upper_arm_link": "upperarm",
        "forearm_link": "forearm", "wrist_1_link": "wrist1", "wrist_2_link": "wrist2",
        "wrist_3_link": "wrist3",
    }  # fmt: skip
    return {link: [around(vertices(folder / f"{file}.stl"))] for link, file in files.items()}


def vertices(path):
    """Corners of a binary STL file's triangles, shape (n, 3)."""
    data = path.read_bytes()
    (count,) = struct.unpack("<I", data[80:84])
    facets = np.frombuffer(data, np.dtype("<12f4,<u2"), count, 84)
    return facets["f0"].reshape(-1, 4, 3)[:, 1:].reshape(-1, 3).astype(float)


def around(points):
    """The thinnest capsule along a coordinate axis through the box's middle that holds points."""
    best = None
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    for axis in range(3):
        across = np.delete(points - middle, axis, axis=1)
        radius = np.linalg.norm(across, axis=1).max() * (1 + 1e-6)
        along = points[:, axis] - middle[axis]
        cap = np.sqrt(radius**2 - (across**2).sum(axis=1))
        half = max(0.0, (np.abs(along) - cap).max())
        if best is None or radius**2 * (half + radius) < best[2] ** 2 * (best[3] + best[2]):
            end = np.zeros(3)
            end[axis] = half
            best = (middle - end, middle + end, radius, half)
    return best[:3]


def limits(robot):
    """Accelerations are not in URDF files: as far as these arms are built for."""
    return {"acceleration": 8.0} if robot.name == "panda" else {"acceleration": 10.0}
