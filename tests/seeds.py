"""Seeds that are drawn when a test runs: drawn while tests are collected, workers would differ."""

import numpy as np

NEW_SEEDS = ("drawn", "drawn again")


def seed_of(value):
    """A seed as it is, or a new one for a word of `NEW_SEEDS`; printed, for a test that fails."""
    seed = value if isinstance(value, int) else int(np.random.SeedSequence().entropy % 10**6)
    print("seed", seed)
    return seed
