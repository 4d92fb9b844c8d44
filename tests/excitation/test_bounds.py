"""Limits as callers give them: each form, what it comes to, and what is refused."""

import re

import numpy as np
import pytest
from robots import ARM

import feasid
from feasid.applications.excitation.bounds import resolve_bounds
from feasid.core.errors import InputError

inf = np.inf


@pytest.fixture(scope="module")
def arm():
    """Shoulder -1.5 to 1.5 at 2, slide 0 to 0.2 at 1, and a wheel that has no limits."""
    return feasid.load_robot(ARM)


WHEEL = {"position": {"wheel_joint": 3.0}, "velocity": {"wheel_joint": (-4.0, 5.0)}}


def test_limits_of_the_description_and_of_the_caller(arm):
    found, notes = resolve_bounds(arm, **WHEEL)
    np.testing.assert_array_equal(found.position, [[-1.5, 0, -3], [1.5, 0.2, 3]])
    np.testing.assert_array_equal(found.velocity, [[-2, -1, -4], [2, 1, 5]])
    np.testing.assert_array_equal(found.acceleration, [[-inf] * 3, [inf] * 3])
    np.testing.assert_array_equal(found.torque, [[-inf] * 3, [inf] * 3])
    assert notes == ["torque limits are ignored, because the description has no inertials"]
    assert found.middle_posture.tolist() == [0.0, 0.1, 0.0]
    full = arm.with_values(np.nan_to_num(arm.values, nan=0.1))
    found, notes = resolve_bounds(full, **WHEEL)
    np.testing.assert_array_equal(found.torque, [[-40, -10, -inf], [40, 10, inf]])
    assert notes == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2.0, [[-2] * 3, [2] * 3]), ((-1.0, 3.0), [[-1] * 3, [3] * 3]),
        ([1.0, 2.0, 3.0], [[-1, -2, -3], [1, 2, 3]]),
        (([-1.0, -2.0, -3.0], 4.0), [[-1, -2, -3], [4] * 3]),
        (np.array([[-1.0, -2, -3], [4, 5, 6]]), [[-1, -2, -3], [4, 5, 6]]),
        ({"slide": 2.0}, [[-inf, -2, -inf], [inf, 2, inf]]),
        (inf, [[-inf] * 3, [inf] * 3]), (1e9, [[-1e9] * 3, [1e9] * 3]),
    ],
)  # fmt: skip
def test_forms_of_limits(arm, value, expected):
    found, _ = resolve_bounds(arm, **WHEEL, jerk=value)
    np.testing.assert_array_equal(found.jerk, expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"jerk": "x"}, "jerk must be a bound, a tuple (low, high) or an array of shape (3,), not"),
        ({"jerk": [1.0, 2.0]}, "jerk must be a bound"),
        ({"jerk": {"slide": [1.0, 2.0]}}, "jerk of joint 'slide' must be a bound"),
        ({"jerk": np.nan}, "jerk has an entry that is NaN: nan"),
        ({"jerk": 1.01e9}, "jerk is larger than"),
        ({"jerk": {"slidr": 1.0}}, "no joint 'slidr' (did you mean 'slide'?)"),
        ({"position": {"wheel_joint": None}}, "joint 'wheel_joint' has an entry that is NaN"),
        ({"position": None}, "joint 'wheel_joint' has no position limits: pass position={"),
        ({"velocity": None}, "joint 'wheel_joint' has neither velocity nor acceleration limits"),
        ({"position": {"slide": (-inf, 1.0)}},
         "joints 'slide', 'wheel_joint' have no position limits: pass position={'slide': (low, "
         "high), 'wheel_joint': (low, high)}"),
        ({"velocity": {"wheel_joint": (-1.0, inf)}}, "has neither velocity nor acceleration"),
        ({"jerk": (1.0, 2.0)}, "jerk limits of joint 'shoulder', 1 to 2 [per s^3], "
         "exclude standstill, which a period needs"),
        ({"jerk": (0.0, 2.0)}, "exclude standstill"),
        ({"position": (2.0, 2.0)}, "position limits of joint 'shoulder', 2 to 2 [rad or m], leave "
         "no room"),
        ({"torque": 5.0}, "torque limits need inertials, which the description of 'arm' lacks"),
    ],
)  # fmt: skip
def test_limits_that_cannot_be_kept(arm, given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        resolve_bounds(arm, **{**WHEEL, **given})
    wide = {**WHEEL, "velocity": None, "acceleration": 3.0}
    assert np.isfinite(resolve_bounds(arm, **wide)[0].acceleration).all()


def test_positions_of_the_wheel_alone_leave_room(arm):
    found, _ = resolve_bounds(arm, **{**WHEEL, "position": {"wheel_joint": (1.0, 2.0)}})
    assert found.position[:, 2].tolist() == [1.0, 2.0]
