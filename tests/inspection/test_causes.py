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


@settings(max_examples=60, deadline=None)
@given(boxes())
def test_an_inertia_about_the_link_frame(box):
    mass, com, tensor, place, rpy, shape, size = box
    assume(np.linalg.norm(com) > 2 * np.linalg.norm(size))
    cross = inertia.skew(com)
    found, status = hints(mass, com, tensor - mass * cross @ cross, place, rpy, shape)
    assert status == "feasible"
    assert "link frame" in found["frame"]


@settings(max_examples=60, deadline=None)
@given(boxes())
def test_a_parallel_axis_term_subtracted_once_too_often(box):
    mass, com, tensor, place, rpy, shape, _ = box
    cross = inertia.skew(com)
    found, status = hints(mass, com, tensor + mass * cross @ cross, place, rpy, shape)
    assume(status == "infeasible")
    assert "subtracted once too often" in found["frame"]


@pytest.mark.parametrize(("factor", "unit"), [(1e6, "kg mm^2"), (1e9, "g mm^2"), (1e4, "kg cm^2")])
@settings(max_examples=40, deadline=None)
@given(box=boxes())
def test_units_of_inertia(box, factor, unit):
    mass, com, tensor, place, rpy, shape, _ = box
    found, _ = hints(mass, com, tensor * factor, place, rpy, shape)
    assert "radius of gyration" in found["inertia-unit"]
    if factor == 1e6:
        assert unit in found["inertia-unit"]


@settings(max_examples=60, deadline=None)
@given(boxes())
def test_units_of_mass_and_length(box):
    mass, com, tensor, place, rpy, shape, size = box
    found, _ = hints(mass * 1000, com, tensor * 1000, place, rpy, shape)
    assert "density" in found
    assume(np.linalg.norm(com) > 0.2 * np.linalg.norm(size))
    found, _ = hints(mass, com * 1000, tensor, place, rpy, shape)
    assert "m outside" in found["com-outside"]


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


def test_a_sphere_that_is_as_dense_as_lead_in_grams_is_told():
    """Eleven tons in a litre: eleven kilograms."""
    shape, nowhere = 'sphere radius="0.062"', np.zeros(3)
    for mass, told in ((11_340.0, True), (1e9, False)):
        hint, _ = hints(mass, nowhere, np.eye(3) * mass * 1e-3, nowhere, nowhere, shape)
        assert ("g instead of kg?" in hint["density"]) == told


@pytest.mark.parametrize(("factor", "told"), [(10, False), (1000, True)])
def test_a_centre_of_mass_in_millimetres_is_told(factor, told):
    size = np.array([0.1, 0.2, 0.3])
    moments = np.diag(6.0 / 12 * (np.sum(size**2) - size**2))
    place = np.array([0.04, 0.05, 0.06])
    shape = f'box size="{numbers(size)}"'
    hint, _ = hints(6.0, place * factor, moments, place, np.zeros(3), shape)
    assert ("mm instead of m?" in hint["com-outside"]) == told
    outside = np.maximum(place * factor - place - size / 2, 0)
    assert f"{np.linalg.norm(outside):.3g} m outside" in hint["com-outside"]


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


def test_a_number_below_the_diagonal_that_contradicts_is_told():
    text = LINK.format(1, 0.0, 0, 1.1, 0, 1.2, com="0 0 0", mass=9, place="0 0 0", rpy="0 0 0",
                       shape="box size='1 1 1'").replace('iyy="', 'iyx="{}" iyy="')  # fmt: skip
    for below, told in (("0.0", False), ("0.2", True)):
        model = read_description(parse_xml(text.format(below).encode()))
        found = causes(model, {x.name: judge_link(x) for x in model.links}).get("a", [])
        assert [c.evidence["attribute"] for c in found if c.code == "asymmetric"] == ["ixy"] * told
