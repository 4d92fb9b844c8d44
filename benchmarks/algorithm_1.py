"""Time of the regressor by Algorithm 1 of the Valkyrie paper, beside the batched one, against n.

python -m benchmarks.algorithm_1
"""

from __future__ import annotations

import time

import numpy as np

import feasid
from benchmarks.spatial_oracle import SpatialDynamics

SIZES = (4, 8, 16, 32)
SAMPLES = 1000


def main() -> None:
    spent = []
    for n in SIZES:
        robot = feasid.Robot.from_dh([(0.3, 0.2, 0.1, 0.0)] * n)
        motion = np.random.default_rng(n).uniform(-1, 1, (3, SAMPLES, n))
        began = time.perf_counter()
        SpatialDynamics(robot).regressor(*motion[:, 0])
        one = time.perf_counter() - began
        began = time.perf_counter()
        feasid.regressor(robot, *motion)
        many = (time.perf_counter() - began) / SAMPLES
        spent.append((one, many))
        print(
            f"{n:3} joints: Algorithm 1 {1e3 * one:9.2f} ms a sample, "
            f"batched {1e3 * many:8.4f} ms a sample"
        )
    slopes = np.polyfit(np.log(SIZES), np.log(spent), 1)[0]
    print(f"time grows as n^{slopes[0]:.2f} and n^{slopes[1]:.2f}")


if __name__ == "__main__":
    main()
