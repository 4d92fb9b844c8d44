"""Reports as they are read: one file with a link of every kind, word for word."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from pinned import assert_pinned
from robots import ARM, replaced

import feasid
from feasid.applications.inspection.file_check import check_file, findings, report_lines
from feasid.applications.inspection.file_correction import _verify
from feasid.applications.inspection.judge import (
    LinkVerdict,
    closest_inertia,
    group_links,
    judge_body,
    judge_link,
)
from feasid.applications.inspection.whole_robot import MassMatrix, WholeRobotVerdict
from feasid.core.errors import InputError, OutputError
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.xml import parse_xml


def moments(xx, xy, xz, yy, yz, zz):
    return f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/>'


def inertial(mass, *six):
    return f'<inertial><mass value="{mass}"/>{moments(*six)}</inertial>'


REPLACED = [
    (moments("0.0002", 0, 0, "0.0002", 0, "0.0003"), moments(0.0002, 0, 0, 0.0002, 0, 0.0009)),
    (moments("0.001", 0, 0, "0.001", 0, "0.0001"), moments(-0.001, 0, 0, -0.002, 0, 0.0001)),
    ('<mass value="2.5"/>', '<mass value="-2.5"/>'),
    ('damping="0.7"', 'damping="-0.7"'),
]
ON_BASE = {"foot": "", "stand": inertial(1, 1, 0, 0, 1, 0, 1.5)}
MOVING = {
    "w0": inertial(0, 0, 0, 0, 0, 0, 0),
    "w1": inertial(1, 1, 0, 0, 1, 0, 0),
    "w2": inertial(1, 1, 0, 0, 1, 0, 1),
    "w3": inertial(1, 1, 0, 0, 1, 0, 1),
} | {f"w{k}": "" for k in range(4, 9)}


def placed(name, content, parent, kind):
    ends = f'<parent link="{parent}"/><child link="{name}"/>'
    joint = f'<joint name="{name}_j" type="{kind}">{ends}</joint>'
    return f'<link name="{name}">{content}</link>\n{joint}\n'


@pytest.fixture
def report(here):
    """Of a file in the working folder, so that no path is said."""
    text = replaced(ARM, *REPLACED)
    more = "".join(placed(n, x, "base", "fixed") for n, x in ON_BASE.items())
    more += "".join(placed(n, x, "upper", "revolute") for n, x in MOVING.items())
    (here / "a b.urdf").write_text(text.replace("</robot>", more + "</robot>"))
    return check_file("a b.urdf")


def test_the_report_word_for_word_its_findings_and_data(report):
    assert_pinned(
        "report-of-file",
        {
            "explain": report.explain().split("\n"),
            "lines": [x for part in report_lines(report) for x in part.split("\n")],
            "shown": str(report).split("\n"),
            "findings": [*findings(report)],
            "data": report.to_dict(),
        },
    )


def test_what_cannot_be_read_is_a_finding_at_its_place():
    error = InputError("wrong", path="x.urdf", line=3, column=7)
    assert [*findings(error, "y.urdf")] == [("error", "error", "x.urdf", 3, 7, "wrong")]
    assert [*findings(InputError("wrong"), "y.urdf")] == [
        ("error", "error", "y.urdf", 1, 1, "wrong")
    ]


# -- verdicts on bodies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "status", "code"),
    [
        ((), "none", ""),
        (("infeasible",), "infeasible", ""),
        (("boundary",), "boundary", ""),
        (("feasible", "by geometry"), "by geometry", ""),
        (("feasible", "boundary", "zero"), "feasible", ""),
        (("zero", "none"), "zero", ""),
        (("none", "none"), "none", ""),
        (("infeasible", "by geometry"), "inconclusive", "geometry"),
    ],
)
def test_bodies_of_links_that_decide_alone(links, status, code):
    assert judge_body(None, [LinkVerdict(s) for s in links]) == LinkVerdict(status, code)


def body(*parts):
    """Links of given inertia, each a metre further along x from the one before."""
    text = '<robot name="r"><link name="base"/>'
    for k, content in enumerate(parts):
        kind, parent = ("fixed", f"l{k - 1}") if k else ("revolute", "base")
        place = f'<origin xyz="{min(k, 1)} 0 0"/></joint>'
        text += placed(f"l{k}", content, parent, kind).replace("</joint>", place)
    description = read_description(parse_xml(f"{text}</robot>".encode()))
    _, (moving,) = group_links(description)
    return judge_body(moving, [judge_link(x) for x in moving.links])


POINT = inertial(1, 0, 0, 0, 0, 0, 0)


def test_points_along_a_line_have_no_volume_together():
    assert body(POINT, POINT, POINT) == LinkVerdict("boundary")
    assert body(POINT, inertial(1, 1, 0, 0, 1, 0, 1)) == LinkVerdict("feasible")


def test_places_add_up_along_the_chain():
    """4 kg of second moment -2.4 along x, and 1 kg at d metres, which adds 0.8 d^2 to it."""
    wrong, light = inertial(4, 1, 0, 0, "-1.9", 0, "-1.9"), inertial("1e-9", 0, 0, 0, 0, 0, 0)
    assert body(wrong, POINT) == LinkVerdict("infeasible", "lumped")
    assert body(wrong, light, POINT) == LinkVerdict("feasible")
    assert body(POINT, light, wrong) == LinkVerdict("feasible")


# -- corrections -----------------------------------------------------------------------------------


def exactly(*values):
    return [Fraction(str(v)) for v in values]


def test_a_product_that_stays_keeps_every_digit():
    """Too large a moment about z is mended in x and y alike: their product is as it was."""
    product = 0.0123456789012345
    new = closest_inertia(Fraction(1), exactly(1, product, 0, 1.2, 0, 5))
    assert new.moments[1] == product
    assert new.moments[2] == new.moments[4] == 0
    tensors = tensor(new.moments), tensor((1, product, 0, 1.2, 0, 5))
    ours, theirs = (np.linalg.eigvalsh(np.trace(t) / 2 * np.eye(3) - t) for t in tensors)
    assert ours[0] == pytest.approx(1e-6 * np.abs(theirs).sum(), rel=1e-5)


def tensor(six):
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def reported(mass=1, com=0.0, six=(1, 0, 0, 1, 0, 1), name="a"):
    link = SimpleNamespace(name=name, mass=mass, moments=six, com=np.array([com, 0, 0]))
    return SimpleNamespace(link=link)


@pytest.mark.parametrize(
    ("new", "touched", "fine"),
    [
        ({}, False, True),
        ({"mass": 2}, True, True),
        ({"mass": 2}, False, False),
        ({"six": (1, 0, 0, 1, 0, 1.5)}, False, False),
        ({"name": "b"}, False, False),
        ({"com": 0.1}, True, False),
        ({"com": 0.1}, False, False),
    ],
)
def test_a_correction_that_changes_more_is_not_written(new, touched, fine):
    before, after = (
        SimpleNamespace(links=(x,), infeasible=()) for x in (reported(), reported(**new))
    )
    changes = [SimpleNamespace(link=reported().link)] if touched else []
    if fine:
        _verify(before, after, changes)
        return
    with pytest.raises(OutputError, match="nothing was written: link 'a' would change"):
        _verify(before, after, changes)


def test_a_correction_that_leaves_a_link_infeasible_is_not_written():
    after = SimpleNamespace(links=(reported(),), infeasible=(reported(),))
    with pytest.raises(OutputError, match=r"\['a'\] would still be infeasible"):
        _verify(after, after, [])


# -- what control sees -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feasible", "bodies", "impossible", "weightless", "last"),
    [
        (True, (), 0, 1, None),
        (True, (), 1, 0, "  the base parameters are those of a possible robot, although links are "
                         "infeasible: inverse dynamics is usable, but simulators still reject the "
                         "links"),
        (False, tuple("abcde"), 0, 1, "  no possible robot moves like this model (a, b, c, d): "
         "proved in exact arithmetic"),
        (False, (), 1, 0, "  no possible robot moves like this model: proved in exact arithmetic"),
        (None, (), 1, 0, None),
        (None, (), 0, 1, "  moving bodies without mass or volume put it on the boundary: nothing "
         "is proved"),
    ],
)  # fmt: skip
def test_the_whole_robot_in_words(feasible, bodies, impossible, weightless, last):
    base = SimpleNamespace(status="status", feasible=feasible, bodies=bodies)
    said = list(
        WholeRobotVerdict(MassMatrix("singular", 1e-14, {}), base).lines(impossible, weightless)
    )
    assert said[:2] == [
        "mass matrix: singular (smallest eigenvalue 1e-14 of the largest, over 64 configurations)",
        "base parameters of the whole robot: status",
    ]
    assert said[2:] == ([] if last is None else [last])


def test_a_question_of_bodies_is_for_files():
    with pytest.raises(InputError, match="bodies=True is for files"):
        feasid.check(feasid.load_robot(ARM), bodies=True)
