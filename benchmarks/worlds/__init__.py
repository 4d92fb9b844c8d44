"""Hidden-truth logs in MuJoCo with one fault at a time, and a judge; needs MuJoCo.

A world is made by ``make_world("ur5", "tilt")``; ``judge(world, predictor(fit.robot)).ratio`` is
the error of a fit of ``world.log`` with ``world.robot`` over the truth's, on a faster motion.
"""

from .description import EXAMPLES, RANDOM_TREE
from .faults import CLEAN, FAULTS, FOREIGN, Fault
from .judge import Score, coverage, efficiency, judge, predictor
from .world import Truth, World, draw_seed, make_world

__all__ = [
    "CLEAN",
    "EXAMPLES",
    "FAULTS",
    "FOREIGN",
    "RANDOM_TREE",
    "Fault",
    "Score",
    "Truth",
    "World",
    "coverage",
    "draw_seed",
    "efficiency",
    "judge",
    "make_world",
    "predictor",
]
