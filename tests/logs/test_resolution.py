"""The resolution of logged positions, and the noise that it makes of accelerations."""

import numpy as np
import pytest
from logs import arm_and_log

import feasid
from feasid.logs.raw import read_raw
from feasid.logs.recording import acceleration_noise, signal_resolution

STEP = 2 * np.pi / 2**12
"""Of an encoder of 12 bits [rad]."""

RATE = 200.0
"""Of the log [Hz]."""

CLOSE = 0.05
"""Relative error of a deviation that 20 000 samples estimate, of which a tenth is independent."""


def rounded(log, kind, step):
    names = [c for c in log if c.startswith(f"{kind}_")]
    return log.assign(**{c: step * np.round(log[c] / step) for c in names})


def test_the_smallest_step_is_the_encoders(tmp_path):
    robot, log = arm_and_log(tmp_path, 4000, 0.0)
    fine, coarse = (signal_resolution(read_raw(x, robot)) for x in (log, rounded(log, "q", STEP)))
    np.testing.assert_allclose(coarse["q"], STEP, rtol=1e-9)
    assert (fine["q"] < 1e-3 * STEP).all()


@pytest.mark.parametrize(("kind", "order"), [("q", 2), ("dq", 1), ("ddq", 0)])
def test_noise_of_accelerations_is_that_of_rounding_below_the_cut_off(kind, order):
    rng, cutoff, n = np.random.default_rng(5), 8.0, 2**18
    spectrum = np.fft.rfft(rng.uniform(-0.5, 0.5, n) * STEP)
    f = np.fft.rfftfreq(n, 1 / RATE)
    noise = np.fft.irfft(np.where(f < cutoff, (2j * np.pi * f) ** order, 0) * spectrum, n)
    told = acceleration_noise({kind: np.array([STEP])}, RATE, cutoff)
    assert told[0] == pytest.approx(noise.std(), rel=CLOSE)


def test_positions_in_coarse_steps_make_a_fit_doubtful(tmp_path):
    robot, log = arm_and_log(tmp_path, 4000, 0.005)
    log = log.drop(columns=[c for c in log if c.startswith("dq_")])
    fine, coarse = (
        feasid.fit(x, robot, diagnose=False) for x in (log, rounded(log, "q", 4 * STEP))
    )
    assert "coarse" not in {n.code for n in fine.notes}
    (note,) = (n for n in coarse.notes if n.code == "coarse")
    assert note.values["deviations"] > 1
    assert coarse.quality.level == "doubtful"
    assert note in coarse.quality.reasons
    without = feasid.fit(rounded(log, "q", 4 * STEP), robot, diagnose=False, calibration=None)
    assert "coarse" not in {n.code for n in without.notes}
