"""What happens with a tenth and with ten times a tuned constant, on the packaged Unitree Z1 log.

    python benchmarks/constants.py

The log is fitted on every second tenth of its time and tested on the others. What the constants'
docstrings say of a tenth and ten times comes from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import feasid
from feasid.diagnosis import diagnose, dynamics_checks, torque_columns
from feasid.reduction import robust

FACTORS = (0.1, 1.0, 10.0)


@contextmanager
def scaled(module: ModuleType, name: str, factor: float) -> Iterator[float]:
    """A constant times a factor meanwhile."""
    before = getattr(module, name)
    value = type(before)(before * factor)
    setattr(module, name, value)
    try:
        yield value
    finally:
        setattr(module, name, before)


def codes(log: Any, robot: Any) -> dict[str, int]:
    """How often each kind of finding is made."""
    found = [finding.code for finding in feasid.diagnose(log, robot)]
    return {code: found.count(code) for code in sorted(set(found))}


def main() -> None:
    """Print a line per constant and factor."""
    log = feasid.datasets.load("unitree_z1")
    robot = log.attrs["robot"]
    block = (10 * (log["t"] - log["t"].iloc[0]) / (log["t"].iloc[-1] + 1e-9)).astype(int)
    train, test = log[block % 2 == 0], log[block % 2 == 1]
    for factor in FACTORS:
        with scaled(robust, "HUBER", factor) as value:
            errors = feasid.fit(train, robot, robust="huber").errors(test)
        print(f"HUBER = {value:g}: test error {100 * errors['all']:.2f} %", flush=True)
    for factor in FACTORS:
        with scaled(dynamics_checks, "LEAST_LAG_SAMPLES", factor) as value:
            print(f"LEAST_LAG_SAMPLES = {value:g}: {codes(log, robot)}", flush=True)
    for factor in FACTORS:
        with scaled(diagnose, "MOST_SAMPLES", factor) as value:
            said = [str(f) for f in feasid.diagnose(log, robot) if "condition" in str(f)]
            print(f"MOST_SAMPLES = {value}: {said}", flush=True)
    columns = [c for c in log.columns if c.startswith("tau")]
    for factor in FACTORS:
        with scaled(torque_columns, "SIGN_EXPLAINED", factor) as value:
            found = 0
            for column in columns:
                flipped = log.copy()
                flipped[column] = -flipped[column]
                found += bool(codes(flipped, robot).get("sign"))
            print(f"SIGN_EXPLAINED = {value:g}: {found} of {len(columns)} flips found", flush=True)


if __name__ == "__main__":
    main()
