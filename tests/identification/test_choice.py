"""Friction terms that fit slow motion as Coulomb friction does do not take its place."""

from types import SimpleNamespace

import numpy as np
import pytest

from feasid.identification.choice import _rests
from feasid.robot.drives import Drive

PLAIN = {"fv": 2.0, "fc": 1.0, "fo": 0.1}
CASES = {
    "beside Coulomb friction": ({**PLAIN, "fc": 0.3, "fs": 0.5}, True),
    "in Coulomb friction's place": ({**PLAIN, "fc": 0.03, "fs": 2.0}, False),
    "in both's place": ({**PLAIN, "fv": 0.0, "fc": 0.4, "fs": 3.4}, False),
    "in viscous friction's place": ({**PLAIN, "fv": 0.0, "fc": 0.6, "fs": 3.4}, True),
    "load friction of a gear": ({**PLAIN, "fl": 0.2}, True),
    "load friction that locks itself": ({**PLAIN, "fl": 7.85}, False),
    "other terms are not asked": ({"fv": 0.0, "fc": 0.0, "fb": 1.0}, True),
    "a joint without usual friction": ({"fs": 1.0}, True),
}


def models(coefficients):
    """What the choice reads of fitted models, for one drive."""
    columns = {symbol: k for k, symbol in enumerate(coefficients)}
    drive = Drive("1", {"1": 1.0}, tuple(coefficients))
    robot = SimpleNamespace(drives=(drive,), drive_columns=lambda k: columns)
    task = SimpleNamespace(base=SimpleNamespace(robot=robot))
    return SimpleNamespace(task=task, fitted=np.array([*coefficients.values()]))


@pytest.mark.parametrize("case", CASES)
def test_friction_must_hold_a_joint_at_rest(case):
    coefficients, wanted = CASES[case]
    plain = {"Ia": 0.1} if "without usual" in case else PLAIN
    assert _rests(models(coefficients), models(plain)) == [wanted]
