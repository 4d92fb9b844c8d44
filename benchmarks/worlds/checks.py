"""What every fault of the worlds is, as their log, their robot and MuJoCo's law show it.

A check gets the world with the fault and the same world without any; `tests/worlds` runs them all.
"""

import numpy as np
import pytest

from .faults import FOREIGN
from .judge import MARGIN, THINNED, TORQUE_CUTOFF, low_pass
from .world import TORQUE_NOISE

NOISE_FLOOR = TORQUE_NOISE * 0.1
"""What the judge's filter leaves of white torque noise: the square root of 2 * 5 Hz / 1 kHz."""


def columns(frame, kind):
    return frame.filter(regex=f"^{kind}_").to_numpy()


def law_error(physics, motion):
    """Relative error of a law's torques on what really happened, filtered as the judge filters."""
    q, dq = motion.q, motion.dq
    ddq = np.gradient(dq, motion.t, axis=0)
    kept = slice(MARGIN, -MARGIN, THINNED)
    predicted = low_pass(physics.torque(motion.t, q, dq, ddq), TORQUE_CUTOFF)[kept]
    torque = low_pass(motion.torque, TORQUE_CUTOFF)[kept]
    return np.linalg.norm(predicted - torque) / np.linalg.norm(torque)


LAWS = ("tilt", "tilt_y", "cable", "drift", "load_friction", "stribeck", "ripple", "payload",
        *FOREIGN)  # fmt: skip


def gain(made, clean):
    factor = columns(made.log, "tau") / columns(clean.log, "tau")
    np.testing.assert_allclose(np.abs(factor - 1), 0.05, atol=1e-9)
    np.testing.assert_array_equal(columns(made.test_log, "tau"), columns(clean.test_log, "tau"))


def tilt(made, clean):
    down = made.truth.physics.gravity / 9.81
    assert np.degrees(np.arccos(-down[2])) == pytest.approx(3.0, abs=1e-6)
    assert made.robot.gravity == pytest.approx(clean.robot.gravity)


def zeros(made, clean):
    for log in ("log", "test_log"):
        off = columns(getattr(made, log), "q") - columns(getattr(clean, log), "q")
        np.testing.assert_allclose(np.abs(off), np.radians(1), atol=2 * np.pi / 2**18)


def late(made, clean):
    t, torque = made.truth.motion.t, made.truth.motion.torque
    rows = np.searchsorted(t, made.log["t"].to_numpy() - 1e-6)
    logged = columns(made.log, "tau")
    lags = np.arange(0, 6e-3, 0.5e-3)
    off = []
    for lag in lags:
        shifted = np.stack([np.interp(t - lag, t, x) for x in torque.T], axis=1)[rows]
        off.append(np.sum((logged - shifted) ** 2))
    assert lags[np.argmin(off)] == pytest.approx(2.5e-3)


def jitter(made, clean):
    t = made.truth.motion.t
    rows = np.searchsorted(t, made.log["t"].to_numpy() - 1e-6)
    speed, moved = made.truth.motion.dq[rows], made.truth.motion.q[rows]
    fast = np.abs(speed) > 0.5
    late = (columns(made.log, "q") - moved)[fast] / speed[fast]
    assert np.std(late) == pytest.approx(0.3e-3, rel=0.05)


def springs(made, clean):
    truth = made.truth
    assert law_error(truth.physics, truth.motion) > 2 * law_error(
        clean.truth.physics, clean.truth.motion
    )


def quantised(made, clean):
    counts = columns(made.log, "q") / (2 * np.pi / 2**12)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)


def slow_rows(made, clean):
    np.testing.assert_allclose(np.diff(made.log["t"]), 0.02, atol=1e-9)


def lasts(seconds):
    def check(made, clean):
        assert made.log["t"].iloc[-1] == pytest.approx(seconds, abs=0.02)

    return check


def masses(robot):
    return np.array([body.inertial[9] for body in robot.bodies])


def doubled(made, clean):
    np.testing.assert_allclose(masses(made.robot), 2 * masses(clean.robot))
    np.testing.assert_allclose(made.truth.robot.values, clean.truth.robot.values)


def mixed(made, clean):
    factors = masses(made.robot) / masses(clean.robot)
    assert np.all((factors > 0.5 - 1e-9) & (factors < 2 + 1e-9) & (np.abs(factors - 1) > 0.1))


def massless(made, clean):
    assert "<inertial" not in made.description
    np.testing.assert_allclose(made.truth.robot.values, clean.truth.robot.values)


def payload(made, clean):
    share = masses(made.truth.robot).sum() / masses(clean.truth.robot).sum() - 1
    assert 0.1 < share < 0.2
    np.testing.assert_array_equal(masses(made.robot), masses(clean.robot))


def exact(made, clean):
    np.testing.assert_allclose(made.robot.values, made.truth.parameters(made.robot), rtol=1e-9)
    assert not np.allclose(clean.robot.values, clean.truth.parameters(clean.robot), rtol=1e-3)


def lost_rows(made, clean):
    lost = 1 - len(made.log) / len(made.truth.motion.t)
    assert lost == pytest.approx(made.fault.lost_rows, rel=0.3)


CHECKS = {
    "gain": gain, "tilt": tilt, "zeros": zeros, "late": late, "jitter": jitter,
    "elastic": springs, "backlash": springs, "quantised": quantised, "50hz": slow_rows,
    "5s": lasts(5.0), "10min": lasts(600.0), "masses_doubled": doubled, "masses_mixed": mixed,
    "no_inertials": massless, "payload": payload, "exact": exact, "all_rows": lost_rows,
    "half_lost": lost_rows,
}  # fmt: skip
