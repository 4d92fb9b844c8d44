"""What comes out does not depend on how links and joints are called."""

import re
import unicodedata

import numpy as np
import pytest
from logs import simulate
from robots import ARM

import feasid
from feasid.core.errors import FeasidError

LINKS = ("base", "upper", "plate", "rod", "wheel")
JOINTS = ("shoulder", "plate_joint", "slide", "wheel_joint")

ODD = (
    "no-break\u00a0space", "tab\tin", "\u202egnirts", "x" * 200, "'quoted\"", "*/ int x; /*",
    "a.b", "<b>&amp;", "%s{}", "名前", "e\u0301", "\u00e9", "-1", "t", "a b", "\u200b",
    "~0123456789abcdef",
    "\U0001f916", "__class__", "None", "$(reboot)", "..", "a/b", "=1+1", "nan", "1e5", "\u2028",
)  # fmt: skip
"""Names that something may trip over; whether a description may have them is for it to say."""

ROUNDING = 1e-9
"""Relative difference of numbers: sums are taken in the same order, whatever the names are."""

SAMPLED = 2
"""Namings of the default suite besides the odd names; the whole test takes 500."""


def quoted(name):
    entities = {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;"}
    return "".join(entities.get(c, c) for c in name)


def renamed(names):
    text = ARM
    for old, new in names.items():
        text = re.sub(rf'(name|link)="{old}"', lambda m, new=new: f'{m[1]}="{quoted(new)}"', text)
    return text


def random_names(rng):
    """A new name for everything, of characters from all of Unicode that XML knows."""
    out, taken = {}, set()
    for old in (*LINKS, *JOINTS):
        while True:
            if rng.random() < 0.5:
                new = str(rng.choice(ODD)) + str(rng.integers(9))
            else:
                codes = rng.integers(0x20, 0x3000, rng.integers(1, 40))
                new = "".join(chr(c) for c in codes)
            if new not in taken:
                break
        taken.add(new)
        out[old] = new
    return out


def outcome(folder, text, names=None):
    """What is made of an arm, with names taken back."""
    (folder / "arm.urdf").write_text(text)
    robot = feasid.load_robot(folder / "arm.urdf")
    impossible = robot.with_values(-np.abs(np.nan_to_num(robot.values, nan=0.1)))
    true = robot.with_joint_terms()
    delta = np.nan_to_num(true.values, nan=0.1)
    for columns in robot.inertial_columns:
        delta[columns] = [1e-2, 0, 0, 1e-2, 0, 1e-2, 0, 0, 0, 0.5]
    log = simulate(true, delta, 3, samples=160, noise=0.01)
    fit = feasid.fit(log, robot, diagnose=False, candidates=())
    verdict, refused = feasid.check(fit), feasid.check(impossible)
    closest = feasid.correct(impossible)
    proofs = [verdict.certificate, refused.certificate, fit.certificate]
    for proof in proofs:
        assert proof is not None
        proof.verify()
    fit.report(folder / "report.html", overwrite=True)
    written = []
    for name in ("out.urdf", "out.xml"):
        feasid.write(fit.robot, folder / name, overwrite=True)
        written.append(feasid.load_robot(folder / name))
    code = feasid.export_c(fit.robot, folder / "out.c", routines=["gravity"], overwrite=True)
    fit.save(folder / "out.feasid", overwrite=True)
    saved = feasid.load(folder / "out.feasid")
    for shown in (repr(fit), str(fit.summary()), fit.base.table(), repr(saved), repr(refused)):
        assert not [c for c in shown if c not in "\n\t" and not harmless(c)]
    numbers = [fit.delta, fit.relative_error, closest.delta, saved.robot.values, refused.margin]
    numbers += [w.values[: 10 * len(robot.bodies)] for w in written]
    return [
        (verdict.status, refused.status, len(code.text.splitlines())),
        np.concatenate([np.ravel(np.nan_to_num(np.asarray(x))) for x in numbers]),
    ]


def harmless(character):
    """Whether a terminal prints it and does nothing else."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return outcome(tmp_path_factory.mktemp("plain"), ARM)


def compare(names, plain, folder):
    text = renamed(names)
    (folder / "given.urdf").write_text(text)
    try:
        feasid.load_robot(folder / "given.urdf")
    except FeasidError:
        return False
    said, numbers = outcome(folder, text)
    assert said == plain[0]
    np.testing.assert_allclose(numbers, plain[1], rtol=ROUNDING, atol=ROUNDING)
    return True


def test_odd_names_change_nothing(plain, tmp_path):
    names = dict(zip((*LINKS, *JOINTS), ODD, strict=False))
    assert compare(names, plain, tmp_path)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("seed", range(SAMPLED))
def test_random_names_change_nothing(seed, plain, tmp_path):
    compare(random_names(np.random.default_rng(seed)), plain, tmp_path)


@pytest.mark.slow
def test_five_hundred_names_change_nothing(plain, tmp_path):
    taken = sum(
        compare(random_names(np.random.default_rng([1, k])), plain, tmp_path) for k in range(500)
    )
    assert taken > 100, "the names that descriptions accept are hardly tried"
