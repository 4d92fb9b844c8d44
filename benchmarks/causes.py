"""Is the cause of a damage named? Descriptions with one mistake each, and sound ones.

    python -m benchmarks.causes [--damaged 400] [--sound 60] [--seed 1] [--write]
    python -m benchmarks.causes --meshes 60 [--seed 1]

Robots are those of example-robot-data, damaged at links that raise no hint, and trees of bodies
made of mass points inside boxes and cylinders, mirrored to a left and a right arm, with primitives,
with meshes, or without shapes. Printed are the shares of damaged links whose first cause is the
damage, of all and of those that became impossible, and the number of sound robots with a cause.
Damage that changes no number by more than 2 % of the largest is drawn again. With ``--meshes`` so
many files whose only shapes are meshes are damaged, each in one of `UNITS`, and as many are not:
printed are how many raise a warning. A seed that is not given is drawn; ``--write`` puts the table
into docs/models.md.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import tempfile
import xml.etree.ElementTree as ET
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

import feasid
from benchmarks.pages import put_between

PAGE = Path(__file__).parents[1] / "docs/models.md"
MARKS = "<!-- causes -->", "<!-- end of causes -->"
TOTALS = ("impossible", "possible", "all")
SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
SHAPES = ("primitives", "meshes", "none")


def text(values):
    return " ".join(f"{x:.9g}" for x in values)


def six(tensor):
    return [tensor[place] for place in UPPER]


def matrix(values):
    a, b, c, d, e, f = values
    return np.array([[a, b, c], [b, d, e], [c, e, f]])


class Body:
    """Mass points inside a box or cylinder, or the uniform solid itself."""

    def __init__(self, rng):
        self.size = np.append(rng.uniform(0.05, 0.16, 2), rng.uniform(0.12, 0.4))
        self.kind = "box" if rng.random() < 0.6 else "cylinder"
        self.place = np.array([0, 0, -self.size[2] / 2]) + rng.normal(size=3) * 0.01
        points = rng.uniform(-0.5, 0.5, (12, 3))
        if self.kind == "cylinder":
            self.size[1] = self.size[0]
            angle = 2 * np.pi * points[:, 0]
            radius = np.sqrt(points[:, 1] + 0.5) / 2
            points[:, :2] = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        self.mass = float(np.prod(self.size)) * rng.uniform(600, 4000)
        weights = rng.dirichlet(np.full(12, 2.0))
        points = points * self.size + self.place
        self.com = weights @ points
        second = (points - self.com).T @ ((points - self.com) * weights[:, None])
        if rng.random() < 0.3:
            self.com = self.place
            share = (3, 3, 3) if self.kind == "box" else (4, 4, 3)
            second = np.diag((self.size / 2) ** 2 / share)
        self.inertia = self.mass * (np.trace(second) * np.eye(3) - second)

    def add_to(self, robot, name, side, shapes):
        link = ET.SubElement(robot, "link", name=name)
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "origin", xyz=text(self.com * side))
        ET.SubElement(inertial, "mass", value=f"{self.mass:.6g}")
        moments = six(np.outer(side, side) * self.inertia)
        stated = {k: f"{x:.6g}" for k, x in zip(SIX, moments, strict=True)}
        ET.SubElement(inertial, "inertia", stated)
        if shapes == "none":
            return
        collision = ET.SubElement(link, "collision")
        ET.SubElement(collision, "origin", xyz=text(self.place * side))
        geometry = ET.SubElement(collision, "geometry")
        if shapes == "meshes":
            ET.SubElement(geometry, "mesh", filename=f"{name}.stl")
        elif self.kind == "box":
            ET.SubElement(geometry, "box", size=text(self.size))
        else:
            size = {"radius": f"{self.size[0] / 2:.9g}", "length": f"{self.size[2]:.9g}"}
            ET.SubElement(geometry, "cylinder", size)


def two_armed(rng, shapes):
    """A sound robot: a trunk and two mirrored arms."""
    robot = ET.Element("robot", name="two_armed")
    ET.SubElement(robot, "link", name="base")

    def joint(parent, child, place):
        element = ET.SubElement(robot, "joint", name=f"to_{child}", type="continuous")
        ET.SubElement(element, "origin", xyz=text(place))
        ET.SubElement(element, "parent", link=parent)
        ET.SubElement(element, "child", link=child)
        ET.SubElement(element, "axis", xyz="0 1 0")

    Body(rng).add_to(robot, "trunk", np.ones(3), shapes)
    joint("base", "trunk", (0, 0, 0.1))
    carriers, place = {"left": "trunk", "right": "trunk"}, np.array([0, 0.2, 0.2])
    for k in range(int(rng.integers(2, 5))):
        body = Body(rng)
        for name, side in (("left", (1, 1, 1)), ("right", (1, -1, 1))):
            body.add_to(robot, f"{name}_{k}", np.array(side), shapes)
            joint(carriers[name], f"{name}_{k}", place * side)
            carriers[name] = f"{name}_{k}"
        place = np.array([0, 0, -body.size[2]])
    return robot


def published():
    """Files of example-robot-data that are read, and their links without a hint."""
    try:
        files = distribution("example-robot-data").files or []
    except PackageNotFoundError:
        return
    for file in sorted(str(x.locate()) for x in files if x.suffix == ".urdf"):
        try:
            check = feasid.check(file)
        except feasid.errors.FeasidError:
            continue
        sound = [r.link.name for r in check.links if r.verdict.possible and not r.causes]
        yield file, {name for name in sound if name}


def damage(link, robot, rng):
    """Damage a link; its kind and the codes that name it, or None where it does not apply."""
    inertial = link.find("inertial")
    origin, mass = inertial.find("origin"), inertial.find("mass")
    stated = inertial.find("inertia")
    old = [float(stated.get(k)) for k in SIX]
    where = {} if origin is None else origin.attrib
    com = np.array([float(x) for x in where.get("xyz", "0 0 0").split()])
    turned = any(float(x) for x in where.get("rpy", "0").split())
    k, tensor, new = int(rng.integers(6)), matrix(old), [*old]
    kind = str(rng.choice(sorted(DAMAGES)))
    if kind == "decimal":
        k = k if rng.random() < 0.3 else int(rng.choice([0, 3, 5]))
        new[k] *= 10.0 ** int(rng.choice([-3, -2, -1, 1, 2, 3, 4, 6]))
    elif kind == "sign":
        new[k] *= -1
    elif kind == "products":
        new = [-x if n in (1, 2, 4) else x for n, x in enumerate(old)]
    elif kind == "order":
        orders = ((0, 3, 5, 1, 2, 4), (0, 1, 3, 2, 4, 5), (0, 1, 2, 1, 3, 4))
        new = [old[n] for n in orders[int(rng.integers(3))]]
    elif kind == "axes":
        axes = [*itertools.permutations(range(3))][int(rng.integers(1, 6))]
        new = six(tensor[np.ix_(axes, axes)])
    elif kind == "unit of inertia":
        factor = rng.choice([1e3, 1e4, 1e6, 1e7, 1e9])
        new = [x * factor for x in old]
    elif kind == "frame" and not turned:
        term = float(mass.get("value")) * (com @ com * np.eye(3) - np.outer(com, com))
        new = six(tensor + rng.choice([-1, 1]) * term)
    elif kind == "unit of mass":
        mass.set("value", f"{1e3 * float(mass.get('value')):.9g}")
        factor = rng.choice([1, 1e3])
        new = [x * factor for x in old]
    elif kind == "unit of length" and np.linalg.norm(com) > 0.005:
        origin.set("xyz", text(1e3 * com))
    elif kind == "twin":
        own = link.get("name")
        name = own.translate({}).replace("left", "?").replace("right", "left").replace("?", "right")
        twin = next((x for x in robot.iter("link") if x.get("name") == name != own), None)
        if twin is not None and twin.find("inertial") is not None:
            new = [float(twin.find("inertial/inertia").get(k)) for k in SIX]
    apart = max(abs(a - b) for a, b in zip(old, new, strict=True))
    if not kind.startswith("unit of") and apart <= 0.02 * max(map(abs, old)):
        return None
    if kind == "unit of length" and np.linalg.norm(com) <= 0.005:
        return None
    for name, value in zip(SIX, new, strict=True):
        stated.set(name, f"{value:.9g}")
    return kind, DAMAGES[kind]


DAMAGES = {
    "decimal": {"decimal"},
    "sign": {"sign", "product-sign"},
    "products": {"product-sign"},
    "order": {"order"},
    "axes": {"axes", "order"},
    "frame": {"frame"},
    "unit of inertia": {"inertia-unit"},
    "unit of mass": {"mass-unit", "density"},
    "unit of length": {"com-outside"},
    "twin": {"twin", "product-sign"},
}
"""Codes of causes that name each damage."""


def has_usable_inertia(link):
    stated, mass = link.find("inertial/inertia"), link.find("inertial/mass")
    if stated is None or mass is None or float(mass.get("value")) < 0.02:
        return False
    return len({float(stated.get(k)) for k in ("ixx", "iyy", "izz")}) > 1


def damaged_robots(rng, count):
    """Kind of damage, kind of shapes, whether the link is impossible, and codes and right ones."""
    real = [*published()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        while count:
            shapes = str(rng.choice([*SHAPES, "published"] if real else SHAPES))
            if shapes == "published":
                file, sound = real[int(rng.integers(len(real)))]
                robot = ET.parse(file).getroot()
            else:
                robot = two_armed(rng, shapes)
                sound = {x.get("name") for x in robot.iter("link")}
            links = [x for x in robot.iter("link") if x.get("name") in sound]
            links = [x for x in links if has_usable_inertia(x)]
            if not links:
                continue
            link = links[int(rng.integers(len(links)))]
            drawn = damage(link, robot, rng)
            if drawn is None:
                continue
            path.write_bytes(ET.tostring(robot))
            reports = feasid.check(path).links
            report = next(r for r in reports if r.link.name == link.get("name"))
            yield drawn[0], shapes, not report.verdict.possible, report.causes, drawn[1]
            count -= 1


def causes_of_sound_robots(rng, count):
    """Causes that are named in each of so many sound robots."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        for k in range(count):
            path.write_bytes(ET.tostring(two_armed(rng, SHAPES[k % 3])))
            yield [cause for report in feasid.check(path).links for cause in report.causes]


UNITS = {
    "kg and kg mm^2": (1, 1e6, 1),
    "kg and g mm^2": (1, 1e9, 1),
    "g and kg m^2": (1e3, 1, 1),
    "g and g mm^2": (1e3, 1e9, 1),
    "centres of mass in mm": (1, 1, 1e3),
    "one centre of mass at 0.9 m": (1, 1, None),
}
"""Factors of masses, moments and centres of mass of a whole file in other units."""


def in_units(robot, factors, rng):
    """Write all inertials of a robot in other units, or move one centre of mass; False if none."""
    links = [x for x in robot.iter("link") if has_usable_inertia(x)]
    masses, moments, lengths = factors
    centres = [x for link in links for x in link.findall("inertial/origin")]
    if not links or (lengths != 1 and not centres):
        return False
    for link in links:
        mass, tensor = link.find("inertial/mass"), link.find("inertial/inertia")
        mass.set("value", f"{masses * float(mass.get('value')):.9g}")
        for name in SIX:
            tensor.set(name, f"{moments * float(tensor.get(name, 0)):.9g}")
    if lengths is None:
        centres[int(rng.integers(len(centres)))].set("xyz", "0.9 0 0")
    for centre in centres if lengths else ():
        com = [lengths * float(x) for x in centre.get("xyz", "0 0 0").split()]
        centre.set("xyz", text(com))
    return lengths is None or any(float(x) for c in centres for x in c.get("xyz", "0").split())


def only_meshes(file):
    """The robot of a file without shapes other than meshes, which are not opened."""
    root = ET.parse(file).getroot()
    meshes = root.findall(".//mesh")
    plain = [root.find(f".//{kind}") for kind in ("box", "cylinder", "sphere")]
    return root if meshes and all(x is None for x in plain) else None


def meshes(rng, count):
    """Per kind of units, and for sound files, how many raise a warning and how many there are."""
    found, tried = collections.Counter(), collections.Counter()
    real = []  # published files without a warning before

    def warned(robot, kind, path):
        path.write_bytes(ET.tostring(robot))
        check = feasid.check(path)
        tried[kind] += 1
        hint = any(r.causes or not r.verdict.possible for r in check.links)
        found[kind] += hint
        return hint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        for file, _ in published():
            root = only_meshes(file)
            if root is not None and not warned(root, "as published", path):
                real.append(root)
        first = tried.total()
        while (number := tried.total() - first) < count:
            kind = [*UNITS][number % len(UNITS)]
            take = real and rng.random() < 0.5
            robot = real[int(rng.integers(len(real)))] if take else two_armed(rng, "meshes")
            robot = ET.fromstring(ET.tostring(robot))
            if in_units(robot, UNITS[kind], rng):
                warned(robot, kind, path)
        for _ in range(count):
            warned(two_armed(rng, "meshes"), "sound, drawn", path)
    return found, tried


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--damaged", type=int, default=400)
    parser.add_argument("--sound", type=int, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--meshes", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 10**6) if given.seed is None else given.seed
    rng = np.random.default_rng(seed)
    if given.meshes:
        found, tried = meshes(rng, given.meshes)
        for kind, number in tried.items():
            print(f"{kind:28s} {found[kind]:3d} of {number:3d} warned")
        return
    rows, tried, found = collections.Counter(), collections.Counter(), collections.Counter()
    for kind, _, impossible, causes, right in damaged_robots(rng, given.damaged):
        named = bool(causes) and causes[0].code in right
        for group in (kind, "all", "impossible" if impossible else "possible"):
            tried[group] += 1
            found[group] += named
        rows[kind, causes[0].code if causes else "none"] += 1
    for group, number in sorted(tried.items()):
        others = {code: n for (kind, code), n in rows.items() if kind == group}
        print(f"{group:16s} {found[group]:4d} of {number:4d} named first  {others or ''}")
    wrong = sum(map(bool, causes_of_sound_robots(rng, given.sound)))
    print(f"{wrong} of {given.sound} sound robots have a cause")
    if given.write:
        lines = [f"Seed {seed}; {wrong} of {given.sound} sound robots have a cause.", ""]
        lines += ["| damage | drawn | cause named first |", "|---|---|---|"]
        groups = [*sorted({*tried} - {*TOTALS}), *(x for x in TOTALS if x in tried)]
        lines += [f"| {g} | {tried[g]} | {100 * found[g] / tried[g]:.0f} % |" for g in groups]
        put_between(PAGE, *MARKS, "\n".join(lines))


if __name__ == "__main__":
    main()
