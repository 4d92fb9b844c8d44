"""Deviations that a fit prints, over those of a block bootstrap of a recorded log.

    PYTHONPATH=.:tests python -m benchmarks.bootstrap [--draws 16]

The log is cut into blocks of time, each reduced by itself; as many as there are are drawn with
replacement, added, and fitted. What is printed counts besides how far the truth may lie from the
reference, which no drawing of rows can show: parameters that the prior holds are left out. Prints
the median ratio and its 5 % quantile, by log.
"""

from __future__ import annotations

import argparse
import operator
from functools import reduce

import numpy as np

import feasid
from benchmarks.faults import recorded
from feasid.core.errors import NotEnoughDataError

USUAL = ("viscous", "coulomb", "offset")

LOGS = {"unitree_z1": 1.0, "kuka_lwr4": 1.0, "staubli_tx40": 0.5}
"""Lengths of their blocks [s]. The Kinova's runs leave six blocks, too few to draw from."""

TOLD = 1.25
"""Least squares' deviation over the printed one, up to which the log tells a parameter."""


def blocks(log, base, seconds, options):
    """Reductions of stretches of the log, those that the filter does not fit into left out."""
    number = np.floor((log["t"] - log["t"].iloc[0]) / seconds).astype(int)
    keys = ["run", number] if "run" in log else number
    for _, part in log.groupby(keys, sort=False):
        try:
            yield feasid.reduce(
                part.reset_index(drop=True), base=base, filtering="equations", **options
            )
        except NotEnoughDataError:
            continue


def ratios(log, robot, draws, seconds=1.0, options=None, friction=None):
    """Printed over bootstrap deviations of all base parameters that the log tells."""
    base = feasid.fit(log, robot, diagnose=False, friction=friction, **(options or {})).base
    parts = list(blocks(log, base, seconds, options or {}))

    def fitted(chosen):
        return feasid.fit(reduce(operator.add, chosen), base.robot, diagnose=False)

    whole = fitted(parts)
    assert whole.base.expressions == base.expressions
    rng = np.random.default_rng(0)
    drawn = [
        fitted([parts[k] for k in rng.integers(0, len(parts), len(parts))]).beta
        for _ in range(draws)
    ]
    printed = whole.base_table["std"].to_numpy()
    found = np.std(drawn, axis=0, ddof=1)
    alone = np.linalg.norm(np.linalg.pinv(whole.triangle[0]), axis=1)
    told = (alone < TOLD * printed) & (found > 0)
    return printed[told] / found[told]


def main():
    """Print the ratios of every log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=16)
    draws = parser.parse_args().draws
    for name, seconds in LOGS.items():
        log, robot, options = recorded(name)
        found = ratios(log, robot, draws, seconds, options, USUAL)
        print(f"{name}: median {np.median(found):.2f}, 5 % {np.quantile(found, 0.05):.2f}")


if __name__ == "__main__":
    main()
