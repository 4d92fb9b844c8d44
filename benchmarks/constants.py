"""What happens with a tenth and with ten times a tuned constant, on the packaged Unitree Z1 log.

    python benchmarks/constants.py [--only HUBER WEIGHT]

The log is fitted on every second tenth of its time and tested on the others. Prints the error on
the test part, the verdict and the codes of the notes.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import feasid

FACTORS = (0.1, 1.0, 10.0)

TUNED: dict[str, dict[str, Any]] = {
    "reduction.robust.HUBER": {"robust": "huber"},
    "identification.choice.GAIN": {},
    "identification.choice.UNEXPLAINED": {},
    "identification.calibration.LEAST_DEVIATIONS": {},
    "identification.noise.SMALLEST_DEVIATION": {},
    "identification.weighting.WEIGHT_FLOOR": {},
    "identification.priors.WEIGHT": {},
    "identification.priors.DOUBTED": {},
    "identification.log_check.LEAST_GAIN": {},
    "identification.large_mistakes.LEAST_FALL": {},
    "identification.large_mistakes.DEVIATION": {},
    "identification.large_mistakes.RIDGE": {},
    "identification.advice.WORTH": {},
    "diagnosis.score.FALSE_ALARMS": {},
    "diagnosis.score.FIRST_LEVEL": {},
}
"""Constants by module, and the options of `fit` with which each one matters."""


def replace_constant(name: str, value: float, module: ModuleType) -> None:
    """Set a constant where it stands and in the modules that import it by its name."""
    before = getattr(module, name)
    for other in [m for key, m in sys.modules.items() if key.startswith("feasid.")]:
        if getattr(other, name, None) is before:
            setattr(other, name, value)


def main() -> None:
    """Print a line per constant and factor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    only = parser.parse_args().only
    log = feasid.datasets.load("unitree_z1")
    robot = log.attrs["robot"]
    block = (10 * (log["t"] - log["t"].iloc[0]) / (log["t"].iloc[-1] + 1e-9)).astype(int)
    train, test = log[block % 2 == 0], log[block % 2 == 1]
    for constant, options in TUNED.items():
        place, name = constant.rsplit(".", 1)
        if only and name not in only:
            continue
        module = import_module(f"feasid.{place}")
        value = getattr(module, name)
        for factor in FACTORS:
            replace_constant(name, value * factor, module)
            fit = feasid.fit(train, robot, **options)
            error = 100 * fit.errors(test)["all"]
            codes = ", ".join(sorted({note.code for note in fit.notes if note.code}))
            head = f"{constant} = {value * factor:g}: test error {error:.2f} %"
            print(f"{head}, {fit.quality.level}; {codes}", flush=True)
        replace_constant(name, value, module)


if __name__ == "__main__":
    main()
