"""Hints in full: small links, worked out by hand, with every word that is said about them."""

import re

import pytest

from feasid.formats.registry import read_description
from feasid.formats.xml import parse_xml
from feasid.inspection.causes import _SIDES, causes, twin_name
from feasid.inspection.judge import judge_link

SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
CUBE = 'box size="1 1 1"'


def link(name, mass, moments, com=(0, 0, 0), *shapes):
    """A link; each shape stands at its own place, a pair of its kind and three numbers."""
    six = " ".join(f'{k}="{v}"' for k, v in zip(SIX, moments, strict=True))
    solids = "".join(
        f'<collision><origin xyz="{place}"/><geometry><{kind}/></geometry></collision>'
        for kind, place in shapes
    )
    xyz = " ".join(map(str, com))
    return (
        f'<link name="{name}"><inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        f"<inertia {six}/></inertial>{solids}</link>"
    )


def hints(*links):
    """What is said, by link and code; the links are fixed to the ground."""
    text = f"<robot name='r'><link name='ground'/>{''.join(links)}"
    for name in re.findall('link name="([^"]*)"', text):
        ends = f'<parent link="ground"/><child link="{name}"/>'
        text += f'<joint name="on_{name}" type="fixed">{ends}</joint>'
    model = read_description(parse_xml(f"{text}</robot>".encode()))
    found = causes(model, {x.name: judge_link(x) for x in model.links})
    assert all(set(c.evidence) for cs in found.values() for c in cs if c.code not in NO_EVIDENCE)
    return {name: {c.code: c.message for c in cs} for name, cs in found.items()}


NO_EVIDENCE = ("massless", "product-sign")


def said(mass, moments, com=(0, 0, 0), *shapes):
    """What is said of one link."""
    return hints(link("a", mass, moments, com, *shapes)).get("a", {})


PLACEHOLDER = "the inertia is {} times the identity: a placeholder?"
RESIDUE = "the largest moment is 5e-13 kg m^2 for 1 kg: rounding residue of a zero inertia"
ORDER = (
    "read in the order {} the six numbers are possible: they may have been copied from a tool "
    "that lists them so"
)
MISPLACED = (
    "{} equals {} to the last digit, and without it the inertia is possible: written to the wrong "
    "attribute?"
)
SIGN = (
    "with the signs of ixy, ixz and iyz turned the inertia is possible: some tools write the "
    "integrals of xy, xz, yz, URDF and MJCF their negatives"
)
FRAME = (
    "adding m (c x c), the parallel-axis term, makes the inertia possible: it may have been "
    "subtracted once too often, or the inertia belongs to another frame than the centre of mass"
)


@pytest.mark.parametrize(
    ("mass", "moments", "found"),
    [
        (1, (0.3, 0, 0, 0.4, 0, 0.5), {}),
        (1, (0, 0, 0, 0, 0, 0), {}),
        (0, (0, 0, 0, 0, 0, 0), {}),
        (0, (1, 0, 0, 1, 0, 0.5), {"massless": "has inertia but no mass, which no mass "
                                   "distribution has"}),
        (-1, (1, 0, 0, 1, 0, 5), {}),
        (-1, (1, 0, 0, 1, 0, 1), {"placeholder": PLACEHOLDER.format(1)}),
        (1, (5e-13, 0, 0, 5e-13, 0, 0), {"residue": RESIDUE}),
        (1, (0, 0, -5e-13, 0, 0, 0), {"residue": RESIDUE}),
        (1e-6, (1e-6, 0, 0, 1e-6, 0, 0), {}),
        (1, (1, 0, 0, 1, 0, 1), {"placeholder": PLACEHOLDER.format(1)}),
        (1, ("1e-2", 0, 0, "0.01", 0, 0.01), {"placeholder": PLACEHOLDER.format(0.01)}),
        (1, (0.02, 0, 0, 0.02, 0, 0.02), {}),
        (1, (1, 0, 0, 1, 0, 1.5), {}),
        (1, (1.5, 0, 0, 1, 0, 1), {}),
        *((1, tuple(0.1 if k == j else (1, 0, 0, 1, 0, 1)[j] for j in range(6)), {})
          for k in (1, 2, 4)),
        (-1, (-1, 0, 0, -1, 0, -1), {}),
    ],
)  # fmt: skip
def test_of_the_numbers_themselves(mass, moments, found):
    assert said(mass, moments) == found


def test_all_six_alike():
    text = "all six moments are 0.25: a placeholder? Products of inertia are usually zero"
    assert said(-1, [0.25] * 6) == {"placeholder": text}
    assert said(1, [0.25] * 6)["placeholder"] == text
    assert said(1, [0] * 6) == {}


@pytest.mark.parametrize(
    ("moments", "names"),
    [((2, 2, 0, 2.5, 0, 3), ("ixy", "ixx")), ((3, 0, 2.4, 2.4, 0, 3.5), ("ixz", "iyy")),
     ((2.4, 0, 0, 3, 2.1, 2.1), ("iyz", "izz")), ((3, 3, 0, 3, 0, 2.5), ("ixy", "ixx"))],
)  # fmt: skip
def test_a_product_that_repeats_a_moment(moments, names):
    assert said(1, moments)["misplaced"] == MISPLACED.format(*names)


def test_of_two_misplaced_products_neither_is_named():
    assert "misplaced" not in said(1, (2, 2, 2.5, 2.5, 0, 3))


@pytest.mark.parametrize(
    ("order", "moments", "alike"),
    [
        ("xx yy zz xy xz yz", (3, 4, 5, 0.1, 0.2, 0.3), False),
        ("xx xy yy xz yz zz", (3, 0.1, 4, 0.2, 0.3, 5), False),
        ("xx yy zz xy xz yz", (4, 4, 4, 0, 0, 0), False),
        ("xx xy yy xz yz zz", (4, 4, 4, 4, 4, 4), True),
    ],
)
def test_moments_in_another_order(order, moments, alike):
    found = said(1, moments)
    assert found.get("order") == (None if alike else ORDER.format(order))


def test_signs_of_products():
    """The body along (1, 1, 1) with second moments 1.1 and 1 has negative products."""
    assert said(1, (2.2, 1, 1, 2.2, 1, 2.2)) == {"product-sign": SIGN}
    assert said(1, (2.2, -1, -1, 2.2, -1, 2.2)) == {}
    assert said(-1, (2.2, 1, 1, 2.2, 1, 2.2)) == {}


def test_a_parallel_axis_term_subtracted_twice():
    """A cube of moments 0.5 at x = 1: 2 kg m^2 less about y and z."""
    assert said(2, (0.5, 0, 0, -1.5, 0, -1.5), (1, 0, 0)) == {"frame": FRAME}
    assert said(2, (0.5, 0, 0, -1.6, 0, -1.8), (1, 0, 0)) == {"frame": FRAME}
    assert said(2, (0.5, 0, 0, -1.5, 0, -2.1), (1, 0, 0)) == {}
    assert said(2, (0.5, 0, 0, -1.5, 0, -1.5)) == {}


# -- against collision shapes ----------------------------------------------------------------------

UNIT = (10, 0, 0, 11, 0, 12)
"""Moments of 100 kg within a cube of one metre."""


@pytest.mark.parametrize(
    ("mass", "text"),
    [
        (50, None),
        (25_000, None),
        (49, "49 kg in collision shapes of 1 m^3 is 49 kg/m^3, outside 50 to 25000"),
        (25_500, "25500 kg in collision shapes of 1 m^3 is 2.55e+04 kg/m^3, outside 50 to 25000"),
        (50_000, "50000 kg in collision shapes of 1 m^3 is 5e+04 kg/m^3, outside 50 to 25000"
                 ": g instead of kg?"),
        (25e6, "2.5e+07 kg in collision shapes of 1 m^3 is 2.5e+07 kg/m^3, outside 50 to 25000"
               ": g instead of kg?"),
        (26e6, "2.6e+07 kg in collision shapes of 1 m^3 is 2.6e+07 kg/m^3, outside 50 to 25000"),
    ],
)  # fmt: skip
def test_density_of_the_shapes(mass, text):
    assert said(mass, UNIT, (0, 0, 0), (CUBE, "0 0 0")).get("density") == text


def test_volumes_add_up():
    """Two cubes side by side halve the density; the first alone would be too dense."""
    cubes = (CUBE, "-0.5 0 0"), (CUBE, "0.5 0 0")
    assert "density" not in said(50_000, UNIT, (0, 0, 0), *cubes)
    found = said(60, UNIT, (0, 0, 0), *cubes)["density"]
    assert found.startswith("60 kg in collision shapes of 2 m^3 is 30 kg/m^3")


def test_a_gram_that_is_too_dense_is_no_kilogram():
    small = 'box size="0.02 0.01 0.0001"'
    text = "1 kg in collision shapes of 2e-08 m^3 is 5e+07 kg/m^3, outside 50 to 25000"
    assert said(1, UNIT, (0, 0, 0), (small, "0 0 0"))["density"] == text
    text = "1 kg in collision shapes of 2e-05 m^3 is 5e+04 kg/m^3, outside 50 to 25000"
    assert said(1, UNIT, (0, 0, 0), ('box size="0.2 0.01 0.01"', "0 0 0"))["density"] == text


@pytest.mark.parametrize(("size", "marks"), [("0.005", True), ("0.007", False)])
def test_small_shapes_mark_a_frame(size, marks):
    """A box of five millimetres has a diagonal of nine, one of seven has twelve."""
    shape = f'box size="{size} {size} {size}"'
    assert ("density" in said(1, UNIT, (0, 0, 0), (shape, "0 0 0"))) != marks


@pytest.mark.parametrize(
    ("com", "text"),
    [
        ((0.5, 0.5, 0.5), None),
        ((0.53, 0, 0), None),
        ((0, -0.534, 0), None),
        ((0, 0, 0.6), "the centre of mass lies 0.1 m outside the box around the collision shapes"),
        ((-0.8, 0.9, 0), "the centre of mass lies 0.5 m outside the box around the collision "
                         "shapes"),
        ((0, 180, 0), "the centre of mass lies 180 m outside the box around the collision shapes "
                      "(mm instead of m?)"),
    ],
)  # fmt: skip
def test_a_centre_of_mass_outside(com, text):
    found = said(100, (300, 0, 0, 310, 0, 320), com, (CUBE, "0 0 0"))
    assert found.get("com-outside") == text


UNITS = {
    1e3: "g m^2 instead of kg m^2",
    1e4: "kg cm^2 instead of kg m^2",
    1e6: "kg mm^2 instead of kg m^2",
    1e7: "g cm^2 instead of kg m^2",
    1e9: "g mm^2 instead of kg m^2",
}


WIDE = (
    "the radius of gyration is {} m, but no collision shape is farther than 0.866 m from the "
    "centre of mass"
)


@pytest.mark.parametrize("factor", [14.1, 14.5, 20, *UNITS, 1e11])
def test_a_radius_of_gyration_beyond_the_shapes(factor):
    """100 kg with 12 kg m^2 have 0.346 m; the corners of the cube are 0.866 m away."""
    found = said(100, [x * factor for x in UNIT], (0, 0, 0), (CUBE, "0 0 0"))
    fits = (f": {unit}?" for f, unit in UNITS.items() if 0.05 < 0.4 * (factor / f) ** 0.5 < 1)
    text = WIDE.format(f"{(0.12 * factor) ** 0.5:.3g}") + next(fits, "")
    assert found == {"inertia-unit": text}


def test_a_radius_of_gyration_half_as_far_again_as_the_shapes_is_fine():
    assert said(100, [x * 14 for x in UNIT], (0, 0, 0), (CUBE, "0 0 0")) == {}


def test_a_placeholder_is_not_measured_against_shapes():
    assert list(said(100, (1e4, 0, 0, 1e4, 0, 1e4), (0, 0, 0), (CUBE, "0 0 0"))) == ["placeholder"]
    assert list(said(1e6, (1, 0, 0, 1, 0, 1))) == ["placeholder"]


def test_an_inertia_about_the_origin():
    """100 kg at x = 3: 900 kg m^2 more about y and z than UNIT."""
    found = said(100, (10, 0, 0, 911, 0, 912), (3, 0, 0), (CUBE, "3 0 0"))
    assert found == {
        "frame": "the radius of gyration is 3.02 m, but no collision shape is farther than 0.866 m "
        "from the centre of mass; taken about the link's origin the inertia fits (radius 0.346 m): "
        "it may be given about the link frame"
    }
    for wide in ((10, 0, 0, 1011, 0, 1012), (10, 0, 0, 911, 0, 950)):
        found = said(100, wide, (3, 0, 0), (CUBE, "3 0 0"))
        assert list(found) == ["inertia-unit"]


def test_denser_than_any_material():
    """One kilogram of moments 1e-9 is a grain of 50 micrometres."""
    assert said(1, (1e-9, 0, 0, 1.2e-9, 0, 1.3e-9)) == {
        "density": "1 kg with these moments of inertia fill at most 6.4e-13 m^3, 1.6e+12 kg/m^3, "
        "denser than any material"
    }
    assert said(1, (1e-9, 0, 0, 1.2e-9, 0, 1.3e-9), (0, 0, 0), ('mesh filename="x"', "0 0 0"))
    assert said(1, (1e-9, 0, 0, 1.2e-9, 0, 2.3e-9)) == {}  # negative second moment


# -- against other links ---------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), _SIDES)
def test_both_sides_find_each_other(a, b):
    for pattern in ("{}_leg", "leg_{}", "leg_{}_1", "my-{}.x"):
        one, other = pattern.format(a), pattern.format(b)
        known = dict.fromkeys((one, other))
        if pattern == "my-{}.x" and len(a) <= 2:
            assert twin_name(one, known) == other
        assert (twin_name(one, known), twin_name(other, known)) == (other, one)
        assert twin_name(one, {one: None}) is None
    assert twin_name("spell_b", dict.fromkeys(("spell_b", "spelr_b"))) is None


def test_only_the_first_short_side_is_turned():
    assert twin_name("l_arm_l", dict.fromkeys(("r_arm_l", "r_arm_r"))) == "r_arm_l"
    assert twin_name("left_left", dict.fromkeys(("right_right", "right_left"))) == "right_right"


LEG = (0.02, 0.002, 0.003, 0.021, 0.001, 0.01)
TURNED = (0.02, -0.002, 0.003, 0.021, -0.001, 0.01)
MIRROR = (
    "the products of inertia have signs that no mirroring of {!r} gives, although mass, centre of "
    "mass and principal diagonal agree"
)


@pytest.mark.parametrize(
    ("mass", "com", "moments", "told"),
    [
        (2, (0.01, -0.03, 0.1), TURNED, False),
        (2, (0.01, -0.03, 0.1), LEG, True),
        (2.0019, (0.01, -0.03, 0.1), LEG, True),
        (2.003, (0.01, -0.03, 0.1), LEG, False),
        (2, (0.0109, -0.03, 0.1), LEG, True),
        (2, (0.012, -0.03, 0.1), LEG, False),
        (2, (0.01, -0.03, 0.102), LEG, False),
        (2, (0.01, -0.03, 0.1), (0.02, 0.002, 0.003, 0.02102, 0.001, 0.01), True),
        (2, (0.01, -0.03, 0.1), (0.02, 0.002, 0.003, 0.02104, 0.001, 0.01), False),
        (2, (0.01, -0.03, 0.1), (0.02, 0.00202, 0.003, 0.021, 0.001, 0.01), True),
        (2, (0.01, -0.03, 0.1), (0.02, 0.00204, 0.003, 0.021, 0.001, 0.01), False),
        (2, (0.01, 0.03, 0.1), LEG, False),
    ],
)
def test_products_of_mirrored_links(mass, com, moments, told):
    pair = link("left", 2, LEG, (0.01, 0.03, 0.1)), link("right", mass, moments, com)
    found = hints(*pair)
    expected = {"left": MIRROR.format("right"), "right": MIRROR.format("left")} if told else {}
    assert {n: h.get("mirror-sign") for n, h in found.items() if "mirror-sign" in h} == expected


def test_small_products_are_not_compared():
    """A hundredth of the largest moment."""
    for product, told in ((0.00019, False), (0.00021, True)):
        moments = (0.02, product, 0, 0.021, 0, 0.01)
        pair = (link(n, 2, moments, (0.01, y, 0.1)) for n, y in (("left", 0.03), ("right", -0.03)))
        assert ("mirror-sign" in hints(*pair).get("left", {})) == told


def test_a_link_that_its_twin_excels():
    wrong = (0.02, -0.002, 0.0302, 0.021, -0.001, 0.1)
    found = hints(link("left", 2, LEG), link("right", 2, wrong))
    assert found["right"]["twin"] == (
        "its mirror image 'left' is possible; they differ in ixz (0.0302 here, 0.003 there: a "
        "factor 10), izz (0.1 here, 0.01 there: a factor 10)"
    )
    assert "twin" not in found.get("left", {})
    wrong = (0.02, -0.00202, 0.00304, 0.021, 0, -0.03)
    found = hints(link("left", 2, LEG), link("right", 2, wrong))
    assert found["right"]["twin"].endswith(
        "they differ in ixz (0.00304 here, 0.003 there), iyz (0 here, 0.001 there), "
        "izz (-0.03 here, 0.01 there)"
    )


@pytest.mark.parametrize("moments", [(1, 0, 0, 1, 0, 2), (0, 0, 0, 0, 0, 0), (1, 0, 0, 1, 0, 5)])
def test_a_twin_that_is_no_better_is_not_named(moments):
    found = hints(link("left", 2, moments), link("right", 2, (1, 0, 0, 1, 0, 6)))
    assert "twin" not in found.get("right", {})


def test_twins_without_mass_are_not_compared():
    for mass in (0, -2):
        found = hints(link("left", mass, LEG), link("right", 2, (1, 0, 0, 1, 0, 6)))
        assert "twin" not in found.get("right", {})
    found = hints('<link name="left"/>', link("right", 2, (1, 0, 0, 1, 0, 6)))
    assert "twin" not in found.get("right", {})


@pytest.mark.parametrize(
    ("count", "shown"),
    [(2, None), (3, "p0, p1"), (4, "p0, p1, p2"), (5, "p0, p1, p2, ..."), (6, "p0, p1, p2, ...")],
)
def test_copies_name_three_others(count, shown):
    """The last link's message."""
    parts = [
        link(f"p{k}", 1, (0.012, 0, 0, 0.013, 0, 0.014), (0, 0, 0),
             (f'sphere radius="{0.1 + 0.02 * k}"', "0 0 0"))
        for k in range(count)
    ]  # fmt: skip
    found = hints(*parts).get(f"p{count - 1}", {}).get("copied")
    assert found == (shown and (
        f"mass and inertia equal those of {count - 1} other links ({shown}), whose shapes differ: "
        "copied?"
    ))  # fmt: skip
    if count == 6:
        assert "(p1, p2, p3, ...)" in hints(*parts)["p0"]["copied"]


def test_copies_without_mass_or_inertia_are_none():
    spheres = [(f'sphere radius="{r}"', "0 0 0") for r in (0.1, 0.12, 0.14)]
    for mass, moments in ((1, [0] * 6), (0, [0] * 6)):
        links = [link(f"p{k}", mass, moments, (0, 0, 0), s) for k, s in enumerate(spheres)]
        assert hints(*links) == {}
    bare = [link(f"p{k}", 1, UNIT) for k in range(4)]
    assert hints(*bare) == {}
