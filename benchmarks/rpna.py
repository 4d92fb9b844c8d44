"""How long the base parameters of a robot take: ``python benchmarks/rpna.py``.

Times are the shortest of several runs from a `Robot` to its ranks and leading parameters
(``base.independent``); the last column adds the dense matrix K, which grows with the square of
the number of bodies.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import feasid

QUARTER = np.pi / 2


def puma() -> feasid.Robot:
    """Six joints, the proportions of a PUMA 560."""
    alphas = (QUARTER, 0, -QUARTER, QUARTER, -QUARTER, 0)
    a = (0, 0.43, 0.02, 0, 0, 0)
    d = (0.66, 0, 0.15, 0.43, 0, 0.06)
    return feasid.Robot.from_dh([(al, x, z, 0.0) for al, x, z in zip(alphas, a, d, strict=True)])


def chain(n: int, planar: bool = False, seed: int = 0) -> feasid.Robot:
    """A chain of n revolute joints: all parallel, or turned by right angles at random."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        alpha = 0.0 if planar else float(rng.choice([0, QUARTER, -QUARTER]))
        rows.append((alpha, rng.uniform(0.1, 0.5), 0 if planar else rng.uniform(0, 0.4), 0.0))
    return feasid.Robot.from_dh(rows, gravity=(0, -9.81, 0) if planar else (0, 0, -9.81))


def tree(n: int, seed: int = 0) -> feasid.Robot:
    """A floating body with limbs of six joints each."""
    rng = np.random.default_rng(seed)
    bodies = [feasid.Body("trunk", None, motion=np.eye(6))]
    for k in range(n - 1):
        parent = "trunk" if k % 6 == 0 else f"b{k - 1}"
        axis = np.zeros(6)
        axis[rng.integers(3)] = 1.0
        bodies.append(feasid.Body(f"b{k}", parent, position=rng.uniform(-0.3, 0.3, 3), motion=axis))
    return feasid.Robot(bodies)


def shortest(action: Callable[[], object], repeats: int) -> float:
    """Shortest time of several runs [ms]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    """Print the table."""
    cases = [("PUMA 560", puma())]
    for n in (10, 30, 100, 300, 1000):
        cases.append((f"chain of {n}", chain(n)))
    cases += [(f"parallel chain of {n}", chain(n, planar=True)) for n in (100, 1000)]
    cases += [(f"floating tree of {n}", tree(n)) for n in (100, 1000)]
    print("| robot | base of standard | ranks [ms] | with K [ms] |")
    print("|---|---|---|---|")
    for name, robot in cases:
        repeats = 20 if len(robot.bodies) <= 100 else 3
        size = feasid.base_parameters(robot).size

        def ranks(robot: feasid.Robot = robot) -> object:
            return feasid.base_parameters(robot).independent

        def dense(robot: feasid.Robot = robot) -> object:
            return feasid.base_parameters(robot).K

        ms, full = shortest(ranks, repeats), "-"
        if len(robot.bodies) <= 300:
            full = f"{shortest(dense, 3):.1f}"
        print(f"| {name} | {size} of {robot.size} | {ms:.1f} | {full} |")


if __name__ == "__main__":
    main()
