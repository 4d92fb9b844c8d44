"""Hints in full: small links, worked out by hand, with every word that is said about them.

The words are in `tests/data/pinned/hints.json`, by the names of `CASES`.
"""

import re

import pytest
from pinned import assert_pinned

from feasid.applications.inspection.causes import _SIDES, causes, twin_name
from feasid.applications.inspection.judge import judge_link
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.xml import parse_xml

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


NO_EVIDENCE = ("sign",)
UNIT = (10, 0, 0, 11, 0, 12)
"""Moments of 100 kg within a cube of one metre, whose corners are 0.866 m away."""
LEG, TURNED = (0.02, 0.002, 0.003, 0.021, 0.001, 0.01), (0.02, -0.002, 0.003, 0.021, -0.001, 0.01)
THIN, ONE = (0.02, 0.01, 0.0001), (1, 0, 0, 1, 0, 1)


def one(mass, moments, com=(0, 0, 0), *shapes):
    return [link("a", mass, moments, com, *shapes)]


def cubed(mass, moments=UNIT, com=(0, 0, 0), place="0 0 0"):
    return one(mass, moments, com, (CUBE, place))


def boxed(mass, x, y, z):
    return one(mass, UNIT, (0, 0, 0), (f'box size="{x} {y} {z}"', "0 0 0"))


def legs(mass=2, com=(0.01, -0.03, 0.1), moments=LEG):
    return [link("left", 2, LEG, (0.01, 0.03, 0.1)), link("right", mass, moments, com)]


def twins(moments, other=(1, 0, 0, 1, 0, 6), mass=2):
    return [link("left", mass, moments), link("right", 2, other)]


def changed(moments, **new):
    return tuple(new.get(k, v) for k, v in zip(SIX, moments, strict=True))


def copies(count, mass=1, moments=(0.012, 0, 0, 0.013, 0, 0.014), shapes=True):
    solids = [[(f'sphere radius="{0.1 + 0.02 * k}"', "0 0 0")] * shapes for k in range(count)]
    return [link(f"p{k}", mass, moments, (0, 0, 0), *x) for k, x in enumerate(solids)]


CASES = {
    "fine": one(1, (0.3, 0, 0, 0.4, 0, 0.5)), "nothing": one(1, (0, 0, 0, 0, 0, 0)),
    "no mass, no inertia": one(0, (0, 0, 0, 0, 0, 0)), "massless": one(0, (1, 0, 0, 1, 0, 0.5)),
    "negative mass": one(-1, (1, 0, 0, 1, 0, 5)), "negative, alike": one(-1, ONE),
    "residue": one(1, (5e-13, 0, 0, 5e-13, 0, 0)),
    "residue of product": one(1, (0, 0, -5e-13, 0, 0, 0)),
    "small and light": one(1e-6, (1e-6, 0, 0, 1e-6, 0, 0)), "placeholder": one(1, ONE),
    "placeholder by text": one(1, ("1e-2", 0, 0, "0.01", 0, 0.01)),
    "no round number": one(1, (0.02, 0, 0, 0.02, 0, 0.02)),
    "zz alone": one(1, (1, 0, 0, 1, 0, 1.5)),
    "xx alone": one(1, (1.5, 0, 0, 1, 0, 1)), "all negative": one(-1, (-1, 0, 0, -1, 0, -1)),
    **{f"product {k}": one(1, changed(ONE, **{k: 0.1})) for k in ("ixy", "ixz", "iyz")},
    "six alike, negative mass": one(-1, [0.25] * 6), "six alike": one(1, [0.25] * 6),
    "xy is xx": one(1, (2, 2, 0, 2.5, 0, 3)), "xz is yy": one(1, (3, 0, 2.4, 2.4, 0, 3.5)),
    "yz is zz": one(1, (2.4, 0, 0, 3, 2.1, 2.1)), "xy is xx and yy": one(1, (3, 3, 0, 3, 0, 2.5)),
    "two misplaced": one(1, (2, 2, 2.5, 2.5, 0, 3)),
    "moments first": one(1, (3, 4, 5, 0.1, 0.2, 0.3)),
    "by columns": one(1, (3, 0.1, 4, 0.2, 0.3, 5)),
    "moments first, equal": one(1, (4, 4, 4, 0, 0, 0)), "all equal": one(1, [4] * 6),
    "products turned": one(1, (2.2, 1, 1, 2.2, 1, 2.2)),
    "along (1, 1, 1)": one(1, (2.2, -1, -1, 2.2, -1, 2.2)),
    "products turned, negative mass": one(-1, (2.2, 1, 1, 2.2, 1, 2.2)),
    "frame, of a cube": one(2, (0.5, 0, 0, -1.5, 0, -1.5), (1, 0, 0)),
    "frame, uneven": one(2, (0.5, 0, 0, -1.6, 0, -1.8), (1, 0, 0)),
    "frame, impossible": one(2, (0.5, 0, 0, -1.5, 0, -2.1), (1, 0, 0)),
    "frame, at the origin": one(2, (0.5, 0, 0, -1.5, 0, -1.5)),
    **{f"{m:g} kg in a cube": cubed(m) for m in (49, 50, 25e3, 25500, 50e3, 25e6, 26e6)},
    **{f"{m} kg in two cubes": one(m, UNIT, (0, 0, 0), (CUBE, "-0.5 0 0"), (CUBE, "0.5 0 0"))
       for m in (60, 50_000)},
    "dense plate": boxed(1, *THIN), "dense bar": boxed(1, 0.2, 0.01, 0.01),
    **{f"box of {x} m": boxed(1, x, x, x) for x in (0.005, 0.007)},
    **{f"centre at {c}": cubed(100, (300, 0, 0, 310, 0, 320), c)
       for c in ((0.5, 0.5, 0.5), (0.53, 0, 0), (0, -0.534, 0), (0, 0, 0.6), (-0.8, 0.9, 0),
                (0, 180, 0))},
    **{f"inertia times {f:g}": cubed(100, [x * f for x in UNIT])
       for f in (14, 14.1, 14.5, 20, 1e3, 1e4, 1e6, 1e7, 1e9, 1e11)},
    "placeholder in a cube": cubed(100, (1e4, 0, 0, 1e4, 0, 1e4)),
    "heavy placeholder": one(1e6, ONE),
    "about the origin": cubed(100, (10, 0, 0, 911, 0, 912), (3, 0, 0), "3 0 0"),
    "too wide for the origin": cubed(100, (10, 0, 0, 1011, 0, 1012), (3, 0, 0), "3 0 0"),
    "too uneven for the origin": cubed(100, (10, 0, 0, 911, 0, 950), (3, 0, 0), "3 0 0"),
    "a grain of 50 micrometres": one(1, (1e-9, 0, 0, 1.2e-9, 0, 1.3e-9)),
    "a grain with a mesh": one(1, (1e-9, 0, 0, 1.2e-9, 0, 1.3e-9), (0, 0, 0),
        ('mesh filename="x"', "0 0 0")),
    "an impossible grain": one(1, (1e-9, 0, 0, 1.2e-9, 0, 2.3e-9)),
    "mirrored": legs(moments=TURNED), "same signs": legs(), "mass near": legs(2.0019),
    "mass off": legs(2.003), "centre near": legs(com=(0.0109, -0.03, 0.1)),
    "centre off": legs(com=(0.012, -0.03, 0.1)), "height off": legs(com=(0.01, -0.03, 0.102)),
    "no mirror image": legs(com=(0.01, 0.03, 0.1)),
    **{f"mirrored, {k} {v}": legs(moments=changed(LEG, **{k: v}))
       for k, v in (("iyy", 0.02102), ("iyy", 0.02104), ("ixy", 0.00202), ("ixy", 0.00204))},
    **{f"small product {x}": [link(n, 2, (0.02, x, 0, 0.021, 0, 0.01), (0.01, y, 0.1))
                              for n, y in (("left", 0.03), ("right", -0.03))]
       for x in (0.00019, 0.00021)},
    "twin excels": twins(LEG, (0.02, -0.002, 0.0302, 0.021, -0.001, 0.1)),
    "twin excels, negative": twins(LEG, (0.02, -0.00202, 0.00304, 0.021, 0, -0.03)),
    **{f"twin {m}": twins(m) for m in ((1, 0, 0, 1, 0, 2), (0, 0, 0, 0, 0, 0), (1, 0, 0, 1, 0, 5))},
    **{f"twin of {m} kg": twins(LEG, mass=m) for m in (0, -2)},
    "empty twin": ['<link name="left"/>', link("right", 2, (1, 0, 0, 1, 0, 6))],
    **{f"{n} copies": copies(n) for n in (2, 3, 4, 5, 6)},
    "copies without inertia": copies(3, 1, [0] * 6), "copies without mass": copies(3, 0, [0] * 6),
    "copies without shapes": copies(4, 1, UNIT, shapes=False),
}  # fmt: skip


def test_every_hint_and_its_words():
    assert_pinned("hints", {name: hints(*links) for name, links in CASES.items()})


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
