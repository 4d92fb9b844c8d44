"""The motion of the reconstructed WAM against the Fourier series it is named after."""

from math import cos, pi, sin

import numpy as np

from feasid.datasets import wam

ATOL = 1e-12


def test_the_motion_is_the_published_series_and_its_derivatives():
    table, (t, q, dq, ddq) = wam.tables()["table5"], wam.motion()
    frequency, harmonics = 0.1 * pi, 5
    for k in (0, 777, 30000):
        for joint in range(7):
            a, b = table["a"][joint], table["b"][joint]
            value, slope, bend = table["q0"][joint], 0.0, 0.0
            for n in range(1, harmonics + 1):
                w = frequency * n
                value += a[n - 1] / w * sin(w * t[k]) - b[n - 1] / w * cos(w * t[k])
                slope += a[n - 1] * cos(w * t[k]) + b[n - 1] * sin(w * t[k])
                bend += w * (b[n - 1] * cos(w * t[k]) - a[n - 1] * sin(w * t[k]))
            found = q[k, joint], dq[k, joint], ddq[k, joint]
            np.testing.assert_allclose(found, (value, slope, bend), atol=ATOL)
    period = round(20.0 / table["sample_time_s"])
    np.testing.assert_allclose(q[period], q[0], atol=ATOL)
