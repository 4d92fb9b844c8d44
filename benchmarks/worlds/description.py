"""URDF descriptions of the worlds: example arms, random trees, and edits of their inertials."""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

Array = NDArray[np.float64]

EXAMPLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "panda": ("panda_description/urdf/panda.urdf", ("panda_finger_joint1", "panda_finger_joint2")),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", ()),
    "z1": ("z1_description/urdf/z1.urdf", ("jointGripper",)),
    "so101": ("so_arm_description/urdf/so101.urdf", ()),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", ()),
}
"""File inside the example-robot-data wheel and the joints that are locked, by name."""

FINGERS = tuple(f"j2s6s200_joint_finger_{k}" for k in (1, 2, 3))
BLIND = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", ()),
    "kinova": ("kinova_description/robots/kinova.urdf", FINGERS),
}
"""Robots on which no threshold of the package was chosen."""

LEG = "leg"
"""A leg of Solo 12, whose other joints are locked."""

RANDOM_TREE = "random"
"""The robot name for which every seed makes another tree."""

LEG_FILE = (
    "solo_description/robots/solo12.urdf",
    tuple(f"{leg}_{joint}" for leg in ("FR", "HL", "HR") for joint in ("HAA", "HFE", "KFE")),
)

MAX_ANGLE = 2.5
"""Joints move within their limits and within this angle [rad], continuous joints within it."""

WRONG_MASS, WRONG_SHAPE, WRONG_CENTRE = 0.15, 0.15, 0.02
"""Deviations between description and truth: ln mass, ln axes of the mass distribution, CoM [m]."""

MIN_GYRATION = 0.02
"""Radius [m] below which the description's mass distribution is widened before it is perturbed."""

MIN_MASS = 1e-3
"""Links lighter than this [kg] are placeholders of the description and stay as they are."""

INERTIA_NAMES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def make_description(robot: str, rng: np.random.Generator) -> ET.Element:
    """URDF of an example arm, or a random tree, without meshes, damping and couplings.

    Raises `LookupError` for an unknown name and `PackageNotFoundError` without the wheel.
    """
    if robot == RANDOM_TREE:
        return random_tree(rng)
    files = EXAMPLES | BLIND | {LEG: LEG_FILE}
    if robot not in files:
        raise LookupError(f"robot {robot!r} is none of {', '.join((*files, RANDOM_TREE))}")
    file, locked = files[robot]
    wheel = distribution("example-robot-data")
    path = next(Path(str(wheel.locate_file(f))) for f in wheel.files or () if str(f).endswith(file))
    root = ET.parse(path).getroot()
    _remove(root, "transmission", "gazebo", "material", "ros2_control")
    for link in root.findall("link"):
        _remove(link, "visual", "collision")
    for joint in root.findall("joint"):
        _remove(joint, "dynamics", "mimic", "safety_controller")
        if joint.get("name") in locked:
            joint.set("type", "fixed")
        if joint.get("type") == "fixed":
            _remove(joint, "axis", "limit")
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            _remove(joint, "limit")
            ET.SubElement(joint, "limit", _limit(-MAX_ANGLE, MAX_ANGLE))
    return root


def random_tree(rng: np.random.Generator) -> ET.Element:
    """A tree of 4 to 7 links with branches; one joint in six slides; masses taper to the tips."""
    root = ET.Element("robot", name="random_tree")
    ET.SubElement(root, "link", name="base")
    names, length = ["base"], [0.1]
    for k in range(rng.integers(4, 8)):
        parent = len(names) - 1 if k < 2 or rng.random() < 0.75 else int(rng.integers(1, k + 1))
        mass = 6 * 0.65**k * np.exp(0.2 * rng.standard_normal())
        long, wide = 0.35 * 0.85**k * rng.uniform(0.6, 1.3), 0.12 * 0.88**k
        centre = np.array([0, 0, long / 2]) + 0.02 * rng.standard_normal(3)
        across, along = (long**2 + wide**2) * mass / 12, wide**2 * mass / 6
        link = ET.SubElement(root, "link", name=f"link{k}")
        _set_inertial(link, mass, centre, np.diag([across, across, along]))
        slides = k > 0 and rng.random() < 1 / 6
        joint = ET.SubElement(
            root, "joint", name=f"joint{k}", type="prismatic" if slides else "revolute"
        )
        ET.SubElement(joint, "parent", link=names[parent])
        ET.SubElement(joint, "child", link=f"link{k}")
        turn = rng.uniform(-0.3, 0.3, 3) + np.pi / 2 * rng.integers(-1, 2, 3)
        ET.SubElement(joint, "origin", xyz=_text([0, 0, length[parent]]), rpy=_text(turn))
        ET.SubElement(joint, "axis", xyz=_text(np.eye(3)[rng.integers(3) if k else 2]))
        reach = 0.6 if slides else MAX_ANGLE
        ET.SubElement(joint, "limit", _limit(-reach, reach))
        names.append(f"link{k}")
        length.append(long)
    return root


def with_other_inertials(
    root: ET.Element, rng: np.random.Generator, centre: float | None = None
) -> ET.Element:
    """A copy whose links have other possible inertials: mass, shape and centre off at random.

    Centres move by `WRONG_CENTRE`, or by a share of their distance from the link's origin.
    """

    def other(m: float, c: Array, spread: Array) -> tuple[float, Array, Array]:
        w, V = np.linalg.eigh(spread)
        spread = V @ np.diag(np.maximum(w, m * MIN_GYRATION**2)) @ V.T
        stretch = 0.5 * WRONG_SHAPE * rng.standard_normal((3, 3))
        A = expm((stretch + stretch.T) / 2)
        factor = float(np.exp(WRONG_MASS * rng.standard_normal()))
        off = rng.standard_normal(3)
        far = WRONG_CENTRE if centre is None else centre * np.linalg.norm(c)
        return m * factor, c + far * off / np.linalg.norm(off), factor * A @ spread @ A.T

    return _changed(root, other)


def with_scaled_masses(root: ET.Element, factor: Callable[[], float]) -> ET.Element:
    """A copy in which mass and inertia of each link are multiplied by one call of `factor`."""

    def other(m: float, c: Array, spread: Array) -> tuple[float, Array, Array]:
        f = factor()
        return f * m, c, f * spread

    return _changed(root, other)


def with_payload(root: ET.Element, share: float) -> ET.Element:
    """A copy whose last link carries a ball of this share of the robot's mass."""
    root = copy.deepcopy(root)
    links = [x for x in root.findall("link") if _is_heavy(x)]
    payload = share * sum(_inertial(x)[0] for x in links)
    m, c, spread = _inertial(links[-1])
    at, radius = np.array([0.03, 0.0, 0.05]), 0.03
    total, first = m + payload, m * c + payload * at
    second = spread + m * np.outer(c, c) + payload * np.outer(at, at)
    second += payload * radius**2 / 5 * np.eye(3)
    _set_inertial(links[-1], total, first / total, _rotational(second, first, total))
    return root


def without_inertials(root: ET.Element) -> ET.Element:
    """A copy that says nothing about masses."""
    root = copy.deepcopy(root)
    for link in root.findall("link"):
        _remove(link, "inertial")
    return root


def _changed(
    root: ET.Element, change: Callable[[float, Array, Array], tuple[float, Array, Array]]
) -> ET.Element:
    root = copy.deepcopy(root)
    for link in root.findall("link"):
        if _is_heavy(link):
            m, c, spread = change(*_inertial(link))
            _set_inertial(link, m, c, np.trace(spread) * np.eye(3) - spread)
    return root


def _is_heavy(link: ET.Element) -> bool:
    mass = link.find("inertial/mass")
    return mass is not None and float(mass.get("value", "0")) >= MIN_MASS


def _inertial(link: ET.Element) -> tuple[float, Array, Array]:
    """Mass, centre of mass and second moment about it, in the link's axes."""
    mass, inertia = link.find("inertial/mass"), link.find("inertial/inertia")
    origin = link.find("inertial/origin")
    if mass is None or inertia is None:
        raise LookupError(f"link {link.get('name')!r} has an inertial without mass or inertia")
    place = {} if origin is None else origin.attrib
    c, rpy = (np.array(place.get(k, "0 0 0").split(), float) for k in ("xyz", "rpy"))
    xx, xy, xz, yy, yz, zz = (float(inertia.get(k, "0")) for k in INERTIA_NAMES)
    R = _rotation(rpy)
    about = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return float(mass.get("value", "0")), c, 0.5 * np.trace(about) * np.eye(3) - about


def _rotational(second: Array, first: Array, mass: float) -> Array:
    """Rotational inertia about the centre of mass from moments about the origin."""
    spread = second - np.outer(first, first) / mass
    return np.asarray(np.trace(spread) * np.eye(3) - spread)


def _set_inertial(link: ET.Element, mass: float, centre: Array, inertia: Array) -> None:
    _remove(link, "inertial")
    part = ET.SubElement(link, "inertial")
    ET.SubElement(part, "origin", xyz=_text(centre), rpy="0 0 0")
    ET.SubElement(part, "mass", value=repr(float(mass)))
    entries = [repr(float(inertia[i, j])) for i, j in zip(*np.triu_indices(3), strict=True)]
    ET.SubElement(part, "inertia", dict(zip(INERTIA_NAMES, entries, strict=True)))


def _rotation(rpy: Array) -> Array:
    """Rotation matrix of URDF's roll, pitch, yaw [rad]: about fixed x, then y, then z."""
    (a, b, c), (x, y, z) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1, 0, 0], [0, a, -x], [0, x, a]])
    about_y = np.array([[b, 0, y], [0, 1, 0], [-y, 0, b]])
    about_z = np.array([[c, -z, 0], [z, c, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


def to_text(root: ET.Element) -> str:
    """The URDF as text."""
    return ET.tostring(root, encoding="unicode")


def _remove(parent: ET.Element, *tags: str) -> None:
    for tag in tags:
        for child in parent.findall(tag):
            parent.remove(child)


def _limit(lower: float, upper: float) -> dict[str, str]:
    return {"lower": repr(lower), "upper": repr(upper), "effort": "100", "velocity": "5"}


def _text(values: Array | list[float]) -> str:
    return " ".join(repr(float(v)) for v in values)
