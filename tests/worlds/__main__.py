"""Print how far the default fit of a world is from its truth."""

import argparse
import time

import feasid

from . import CLEAN, EXAMPLES, FAULTS, RANDOM_TREE, coverage, judge, make_world, predictor


def main() -> None:
    """Make worlds, fit them, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description=__doc__)
    parser.add_argument("--robot", default="ur5", choices=[*EXAMPLES, RANDOM_TREE])
    parser.add_argument("--fault", nargs="+", default=[CLEAN], choices=list(FAULTS))
    parser.add_argument("--seed", type=int, help="drawn where left out")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    options = parser.parse_args()
    if options.list:
        for name, fault in FAULTS.items():
            print(f"{name:16}{fault.text}")
        return
    for name in options.fault:
        world = make_world(options.robot, name, options.seed)
        print(world)
        started = time.process_time()
        fit = feasid.fit(world.log, world.robot)
        seconds = time.process_time() - started
        score = judge(world, predictor(fit.robot))
        print(
            f"  error {score.error:.5f}, the truth's {score.truth_error:.5f}, "
            f"ratio {score.ratio:.3f}; base parameters inside their intervals "
            f"{coverage(world, fit):.0%}; quality {fit.quality.level}; {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
