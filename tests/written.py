"""What files are rewritten with, and what of them changed."""

import difflib

import numpy as np

from feasid.robot import inertia


def random_parameters(rng, count):
    """Inertias of random clouds of point masses: always possible, never special."""
    out = []
    for _ in range(count):
        points = np.c_[rng.normal(size=(6, 3)) * rng.uniform(0.02, 0.5), np.ones(6)]
        masses = rng.uniform(0.01, 2.0, 6)
        out.append(inertia.from_pseudo_inertia(points.T * masses @ points))
    return np.array(out)


def changed_lines(old, new):
    lines = difflib.ndiff(old.decode().splitlines(), new.decode().splitlines())
    return [line[2:] for line in lines if line[0] in "+-"]
