"""Robots for tests: files of the example-robot-data wheel, small own ones, published and random."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import feasid
from feasid.robot.bodies import Body, Rotor


def example_urdfs() -> list[Path]:
    """All URDF files of the example-robot-data wheel, sorted."""
    wheel = distribution("example-robot-data")
    found = [Path(str(wheel.locate_file(f))) for f in wheel.files or () if f.suffix == ".urdf"]
    return sorted(found)


MODELS = Path(__file__).parent / "data" / "models"

ARM = (MODELS / "arm.urdf").read_text(encoding="utf-8")
"""Revolute, fixed, prismatic and continuous joints; turned inertials; a link without inertial."""


def replaced(text, *pairs):
    """A text with other words for some that it has exactly once."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def read_arm(folder):
    """The robot of `ARM`, read from a file of this folder."""
    (folder / "arm.urdf").write_text(ARM)
    return feasid.load_robot(folder / "arm.urdf")


def without_geometry(urdf: str) -> str:
    """A URDF's text without comments, visuals and collisions, for simulators that open meshes."""
    urdf = re.sub(r"<!--.*?-->", "", urdf, flags=re.DOTALL)
    shape = r"<(visual|collision)\b(?:[^>]*/>|.*?</\1>)"
    return re.sub(shape, "", urdf, flags=re.DOTALL)


RTOL = 1e-10  # the promise to users; both sides are double precision over some ten bodies


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_screw(rng, kind):
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    if kind == "prismatic":
        return np.r_[0, 0, 0, axis]
    if kind == "revolute":
        return np.r_[axis, 0, 0, 0]
    through = rng.standard_normal(3)
    pitch = 0.3 if kind == "helical" else 0.0
    return np.r_[axis, np.cross(through, axis) + pitch * axis]


def random_robot(rng, n, kinds=("revolute", "prismatic"), rotors=False):
    bodies = []
    for i in range(n):
        parent = None if i == 0 else f"b{rng.integers(max(0, i - 3), i)}"
        screw = random_screw(rng, rng.choice(kinds))
        rotor = None
        if rotors and rng.random() < 0.7:
            rotor = Rotor(
                -7.5, random_rotation(rng), rng.standard_normal(3), symmetric=rng.random() < 0.5
            )
        bodies.append(
            Body(f"b{i}", parent, random_rotation(rng), rng.standard_normal(3), screw, rotor=rotor)
        )
    return feasid.Robot(tuple(bodies), gravity=rng.standard_normal(3) * 9)


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def singular_values(rows):
    """Of rows whose columns are in units of their size."""
    sizes = np.linalg.norm(rows, axis=0)
    return np.linalg.svd(rows / sizes.clip(1e-6 * sizes.max()), compute_uv=False)


def clear_rank(s, floor, gap):
    """Rank at the widest gap of singular values; None where none is that wide."""
    s = np.r_[s.clip(floor * s[0]), floor * s[0]]
    ratios = s[:-1] / s[1:]
    k = int(np.argmax(ratios))
    return k + 1 if ratios[k] >= gap else None


PUBLISHED = json.loads((Path(__file__).parent / "data" / "sousa_base.json").read_text())
ANGLES = {"pi/2": np.pi / 2, "-pi/2": -np.pi / 2, "0": 0.0}


def wam(**terms):
    rows = [(ANGLES[alpha], a, d, 0.0) for alpha, a, d in PUBLISHED["wam7"]["dh"]]
    return feasid.Robot.from_dh(rows).with_joint_terms(**terms)


def yoshida():
    def about(*axis):
        return np.r_[axis, 0.0, 0.0, 0.0]

    bodies = (
        feasid.Body("1", None, motion=about(0.0, 1, 0)),
        feasid.Body("2", "1", motion=about(0.0, 0, 1)),
        feasid.Body("3", "2", position=[1, 0, 0], motion=about(0.0, 0, 1)),
    )
    return feasid.Robot(bodies, gravity=(0, -9.81, 0))
