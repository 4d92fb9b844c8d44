"""Hints at causes: none on uniform boxes, and the injected mistake by name."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from seeds import NEW_SEEDS, seed_of

from benchmarks.causes import causes_of_sound_robots, damaged_robots
from feasid.applications.inspection.causes import causes
from feasid.applications.inspection.judge import judge_link
from feasid.robot import inertia
from feasid.robot.formats.description import MOMENTS
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.xml import parse_xml
from feasid.robot.rotations import from_rpy

LINK = """<robot name="r"><link name="a"><inertial><origin xyz="{com}"/><mass value="{mass!r}"/>
<inertia ixx="{0!r}" ixy="{1!r}" ixz="{2!r}" iyy="{3!r}" iyz="{4!r}" izz="{5!r}"/></inertial>
<collision><origin xyz="{place}" rpy="{rpy}"/><geometry><{shape}/></geometry></collision>
</link></robot>"""


def numbers(values):
    return " ".join(repr(float(v)) for v in values)


def hints(mass, com, tensor, place, rpy, shape):
    moments = [float(tensor[r, c]) for r, c in inertia.UPPER]
    where = {"com": numbers(com), "place": numbers(place), "rpy": numbers(rpy)}
    text = LINK.format(*moments, mass=float(mass), shape=shape, **where)
    model = read_description(parse_xml(text.encode()))
    verdicts = {link.name: judge_link(link) for link in model.links}
    found = causes(model, verdicts).get("a", [])
    return {c.code: c.message for c in found}, verdicts["a"].status


@st.composite
def boxes(draw):
    """A uniform box somewhere: mass, centre, inertia about it, its angles and its shape."""

    def three(low, high):
        return np.array([draw(st.integers(low, high)) / 1000 for _ in range(3)])

    size, place, rpy = three(30, 500), three(-1000, 1000), three(-3000, 3000)
    mass = draw(st.integers(200, 8000)) * float(np.prod(size))
    rotation = from_rpy(rpy)
    moments = np.diag(mass / 12 * (np.sum(size**2) - size**2))
    tensor = rotation @ moments @ rotation.T
    return mass, place, (tensor + tensor.T) / 2, place, rpy, f'box size="{numbers(size)}"', size


@settings(max_examples=150, deadline=None)
@given(boxes())
def test_a_uniform_box_raises_no_hint(box):
    *link, _ = box
    assert hints(*link) == ({}, "feasible")


@settings(max_examples=100, deadline=None)
@given(boxes(), st.integers(0, 2**32 - 1))
def test_signs_of_products(box, seed):
    """Whenever turned signs make a body of usual thickness impossible, they are named first."""
    mass, com, _, place, rpy, _, size = box
    points = np.random.default_rng(seed).normal(size=(6, 3)) * np.linalg.norm(size) / 6
    second = points.T @ points * mass
    slender = np.linalg.eigvalsh(second)
    assume(slender[0] > 0.05 * slender[2])
    tensor = np.trace(second) * np.eye(3) - second
    flipped = 2 * np.diag(np.diag(tensor)) - tensor
    found, status = hints(mass, com, flipped, place, rpy, 'mesh filename="x"')
    if status == "infeasible":
        assert "product-sign" in found


@pytest.mark.parametrize(("density", "found"), [(21_500, set()), (30_000, {"density"})])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_the_ellipsoid_that_mass_and_moments_ask_for_has_its_density(density, found, data):
    """An ellipsoid of that density, of which a mesh hides the shape."""
    axes = np.array([data.draw(st.integers(40, 300)) / 1000 for _ in range(3)])
    assume(np.diff(np.sort(axes)).min() > 0.005)  # equal moments are placeholders
    mass = density * 4 / 3 * np.pi * float(np.prod(axes))
    moments = np.diag(mass / 5 * (np.sum(axes**2) - axes**2))
    nowhere = np.zeros(3)
    hint, _ = hints(mass, nowhere, moments, nowhere, nowhere, 'mesh filename="x"')
    assert set(hint) == found
    if found:
        said = float(hint["density"].split(" is ")[1].split(" kg/m^3")[0])
        assert said == pytest.approx(density, rel=0.05)  # two digits


@pytest.mark.slow
@pytest.mark.parametrize("seed", NEW_SEEDS)
def test_the_cause_of_a_damage_is_named_first_and_sound_robots_have_none(seed):
    """100 damaged descriptions and 30 sound ones; `benchmarks.causes` draws more."""
    rng = np.random.default_rng(seed_of(seed))
    drawn = [*damaged_robots(rng, 100)]
    named = [bool(own) and own[0].code in right for *_, own, right in drawn]
    assert sum(named) >= 84  # of 400 drawn, 92 %; some damage no number can show
    impossible = [x for x, damaged in zip(named, drawn, strict=True) if damaged[2]]
    assert sum(impossible) >= 0.9 * len(impossible) > 0
    assert sum(map(bool, causes_of_sound_robots(rng, 30))) <= 1


@pytest.mark.parametrize("name", ["ixy", "ixz", "iyz"])
def test_a_number_below_the_diagonal_that_contradicts_is_told(name):
    text = LINK.format(1, 0.0, 0.0, 1.1, 0.0, 1.2, com="0 0 0", mass=9, place="0 0 0", rpy="0 0 0",
                       shape="box size='1 1 1'")  # fmt: skip
    for below, told in (("0.0", False), ("0.2", True)):
        lower = text.replace('iyy="', f'i{name[2]}{name[1]}="{below}" iyy="').replace(
            '="0"', '="0.0"'
        )
        model = read_description(parse_xml(lower.encode()))
        found = causes(model, {x.name: judge_link(x) for x in model.links}).get("a", [])
        assert [c.evidence["attribute"] for c in found if c.code == "asymmetric"] == [name] * told


ROBOT = """<robot name="r"><link name="base"/><link name="a"/><link name="b"><inertial>
<origin xyz="{com}"/><mass value="{mass}"/><inertia {moments}/></inertial><collision>
<origin xyz="{place}"/><geometry>{shape}</geometry></collision></link>
<joint name="i" type="revolute"><parent link="base"/><child link="a"/></joint>
<joint name="j" type="revolute"><origin xyz="0 0 {offset}"/><parent link="a"/><child link="b"/>
</joint></robot>"""
MESH, CYLINDER = '<mesh filename="m.stl"/>', '<cylinder radius="0.06" length="0.4"/>'
BOX, BALL = '<box size="0.6 0.2 0.1"/>', '<sphere radius="0.1"/>'
TORSO = np.array([1.52, -0.21, 0.034, 1.47, 0.018, 0.6])
ROD, BRICK, ROUND = np.diag([0.0427, 0.0427, 0.0054]), np.diag([1, 7.4, 8]) / 24, np.eye(3) * 0.012
OFF = -(inertia.skew([0.1, 0.0, 0.3]) @ inertia.skew([0.1, 0.0, 0.3]))
MISTAKES = {
    "decimal": [TORSO * factor for factor in ([1, 1, 1, 1, 1, 1e3], [1e-2, 1, 1, 1, 1, 1],
                                              [1, 100, 1, 1, 1, 1])],
    "order": [TORSO[list(order)] for order in ((0, 1, 2, 1, 3, 4), (0, 3, 5, 1, 2, 4),
                                              (0, 1, 3, 2, 4, 5))],
    "axes": [(10, BRICK[np.ix_(k, k)], BOX) for k in ((1, 2, 0), (1, 0, 2), (2, 1, 0))],
    "frame": [(m, x + m * OFF, s) for m, x, s in ((3, ROD, CYLINDER), (10, BRICK, BOX),
                                                 (3, ROUND, BALL))],
    "inertia-unit": [(1.5, np.diag([2.7, 2.5, 1.2]) * x, MESH) for x in (1e3, 10, 1e6)],
}  # fmt: skip
"""By the code that names it: six moments of a torso, or mass, inertia and the shape of a link."""


@pytest.mark.parametrize(("code", "k"), [(code, k) for code in MISTAKES for k in range(3)])
def test_three_kinds_of_each_mistake_are_named_first(code, k):
    found = MISTAKES[code][k]
    mass, tensor, shape = found if isinstance(found, tuple) else (48.7, None, MESH)
    six = found if tensor is None else [tensor[place] for place in inertia.UPPER]
    place = "0.1 0 0.3" if code == "frame" else "0 0 0"
    moments = " ".join(f'{n}="{x:.9g}"' for n, x in zip(MOMENTS, six, strict=True))
    text = ROBOT.format(com=place, place=place, mass=mass, moments=moments, shape=shape,
                        offset=0.1 if mass == 1.5 else 0.4)  # fmt: skip
    model = read_description(parse_xml(text.encode()))
    named = causes(model, {x.name: judge_link(x) for x in model.links})["b"]
    assert named[0].code == code, named
