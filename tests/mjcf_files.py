"""MJCF for tests: small own models, and those found in installed wheels."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from feasid.robot.inertia import to_mass_com_inertia


def model(body="", before="", joint="<joint/>", rest=""):
    inner = f'<body name="b" pos="0.1 0.2 0.3">{joint}{body}</body>{rest}'
    return f"<mujoco>{before}<worldbody>{inner}</worldbody></mujoco>"


def row(values):
    """Numbers of an attribute, with all their digits."""
    return " ".join(repr(float(v)) for v in np.ravel(values))


def inertial(ten):
    """The element of ten parameters."""
    mass, com, moments = to_mass_com_inertia(ten)
    full = moments[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return f'<inertial pos="{row(com)}" mass="{float(mass)!r}" fullinertia="{row(full)}"/>'


def write(tmp_path, text, name="model.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


FULL = 'pos="0.01 -0.02 0.3" mass="1.5" fullinertia="0.011 0.012 0.013 0.001 -0.002 0.0005"'


JOINTS = [
    '<joint axis="1 2 3" pos="0.1 0.2 0.3"/>', '<joint type="slide" axis="1 0 -1"/>',
    '<joint type="ball" pos="0.1 0 0"/>', "<freejoint/>", '<joint type="free"/>',
    '<joint ref="30" axis="0 1 0" pos="1 0 0"/>', '<joint type="slide" ref="0.3" axis="0 1 0"/>',
    '<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide"/><joint name="t"/>',
    '<joint name="x" range="-20 30" limited="true"/>',
]  # fmt: skip


TREE = (Path(__file__).parent / "data" / "models" / "tree.xml").read_text(encoding="utf-8")


def wheel_models():
    found = []
    for name in ("mujoco", "mujoco-core", "gymnasium", "dm-control"):
        try:
            wheel = distribution(name)
        except PackageNotFoundError:
            continue
        found += [Path(str(wheel.locate_file(f))) for f in wheel.files or () if f.suffix == ".xml"]
    return sorted(p for p in found if "<mujoco" in p.read_text(errors="replace"))
