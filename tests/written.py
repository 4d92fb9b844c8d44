"""What files are rewritten with, and what of them changed."""

import difflib
import json
import zipfile

import numpy as np
from robots import relative

import feasid
from feasid.robot import inertia
from feasid.robot.description import Source
from feasid.robot.formats.build import build_robot
from feasid.robot.formats.registry import FORMATS, read_description
from feasid.robot.formats.rewrite import patch_source
from feasid.robot.formats.xml import LIMITS, parse_xml


def robot_of_text(data, path="<text>", limits=LIMITS, **options):
    """The robot of a description that is given as bytes."""
    description = read_description(parse_xml(data, path, limits))
    return build_robot(description, Source(path, description.format, data), **options)


def own_text(robot):
    """The text from which a robot was read, with its numbers."""
    return patch_source(robot, robot.source, FORMATS[robot.source.format])


def model_of_archive(path):
    """What a saved fit says in words."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("model.json"))


def changed_archive(source, target, **members):
    """A copy of an archive with other members; None leaves one out."""
    with zipfile.ZipFile(source) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in (content | members).items():
            if data is not None:
                archive.writestr(name, data)
    return target


def random_parameters(rng, count):
    """Inertias of random clouds of point masses: always possible, never special."""
    out = []
    for _ in range(count):
        points = np.c_[rng.normal(size=(6, 3)) * rng.uniform(0.02, 0.5), np.ones(6)]
        masses = rng.uniform(0.01, 2.0, 6)
        out.append(inertia.from_pseudo_inertia(points.T * masses @ points))
    return np.array(out)


def with_random_inertia(robot, seed=0):
    """The robot with other inertias of its bodies, virtual ones between joints aside."""
    values = np.where(np.isnan(robot.values), 0.0, robot.values)
    real = [i for i, body in enumerate(robot.bodies) if not body.massless]
    values[robot.inertial_columns[real]] = random_parameters(np.random.default_rng(seed), len(real))
    return robot.with_values(values)


def torque_difference(robot, again, seed=0):
    """Largest relative difference of torques of random motions, coordinates matched by name."""
    assert sorted(again.coordinates) == sorted(robot.coordinates)
    order = [robot.coordinates.index(c) for c in again.coordinates]
    motion = np.random.default_rng(seed).uniform(-2, 2, (3, 20, robot.dof))
    ours = feasid.inverse_dynamics(robot, *motion)[:, order]
    return relative(feasid.inverse_dynamics(again, *motion[..., order]), ours)


def changed_lines(old, new):
    lines = difflib.ndiff(old.decode().splitlines(), new.decode().splitlines())
    return [line[2:] for line in lines if line[0] in "+-"]
