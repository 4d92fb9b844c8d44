"""How long the base parameters of a robot take: ``python benchmarks/rpna.py``.

Times are of the processor, one thread, the shortest of several runs from a `Robot` to its ranks and
leading parameters, tried on random motions (the check's own share is the next column); then with
the sparse matrix K; last the peer, a QR of a random regressor by NumPy, in the same run. Below: K
of 1000 bodies with its memory, and a floating tree of 30 bodies from samples to a feasible model.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import feasid

QUARTER = np.pi / 2

HUMANOID_RATE = 500.0
"""Samples per second of the humanoid's log [Hz]."""


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
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def by_qr(robot: feasid.Robot) -> int:
    """The peer: rank of a random regressor by NumPy's QR, as usually done."""
    rng = np.random.default_rng(0)
    count = -(-(robot.size + 40) // robot.dof) + robot.size // 8
    y = feasid.regressor(robot, *rng.normal(size=(3, count, robot.dof)))
    r = np.linalg.qr(y.reshape(-1, robot.size), mode="r")
    s = np.linalg.svd(r, compute_uv=False)
    return int((s > 1e-9 * s[0]).sum())


def peak(n: int) -> tuple[float, float]:
    """Seconds of sparse K of a chain of n, and the peak megabytes of a process that does it."""
    code = (
        "import time; from rpna import chain; import feasid\n"
        f"robot = chain({n}); feasid.base_parameters(chain(5)).matrix\n"
        "start = time.process_time(); feasid.base_parameters(robot).matrix\n"
        "spent = time.process_time() - start\n"
        "peak = next(x for x in open('/proc/self/status') if x.startswith('VmHWM'))\n"
        "print(spent, int(peak.split()[1]) / 1024)"
    )
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def humanoid(samples: int = 20_000) -> None:
    """A floating tree of 30 bodies from a log to a feasible model, both sides filtered, by step."""
    from feasid.identification.regression.parallel import reduce_motions
    from feasid.logs.motion import Motion, Run

    robot = tree(30)
    rng = np.random.default_rng(1)
    ten = np.array([0.02, 0, 0, 0.02, 0, 0.02, 0.01, 0, 0.01, 1.0])
    robot = robot.with_values(np.tile(ten, len(robot.bodies)))
    t = np.arange(samples) / HUMANOID_RATE
    rates, phases = rng.uniform(1, 20, robot.dof), rng.uniform(0, 6, robot.dof)
    angle = np.outer(t, rates) + phases
    motion = np.sin(angle), rates * np.cos(angle), -(rates**2) * np.sin(angle)
    tau = feasid.inverse_dynamics(robot, *motion)
    tau += 0.05 * tau.std(axis=0) * rng.normal(size=tau.shape)
    run = Run("log", HUMANOID_RATE, np.arange(samples), t, *motion, tau)
    log = Motion(robot.coordinates, (run,), 8.0, (), rows=samples, filtering="equations")
    start = time.process_time()
    base = feasid.base_parameters(robot)
    told = time.process_time()
    reduced = reduce_motions([log], robot, [int(c) for c in base.independent])
    shrunk = time.process_time()
    fit = feasid.fit(reduced, robot, friction=())
    done = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"\n30 bodies, {samples} samples, {base.size} of {robot.size}: base parameters "
        f"{told - start:.2f} s, regressor and reduction {shrunk - told:.2f} s, feasible fit "
        f"{done - shrunk:.2f} s, total {done - start:.2f} s; peak memory of the process, with the "
        f"samples, {memory:.2f} GB; feasible: {bool(feasid.check(fit.robot).feasible)}"
    )


def main() -> None:
    """Print the table, K of 1000 bodies, and a humanoid."""
    cases = [("PUMA 560", puma())]
    for n in (10, 30, 100, 300, 1000):
        cases.append((f"chain of {n}", chain(n)))
    cases += [(f"parallel chain of {n}", chain(n, planar=True)) for n in (100, 1000)]
    cases += [(f"floating tree of {n}", tree(n)) for n in (100, 1000)]
    head = ("robot", "base of standard", "checked [ms]", "check [ms]", "with K [ms]", "QR [ms]")
    print(f"| {' | '.join(head)} |")
    print("|---|---|---|---|---|---|")
    for name, robot in cases:
        repeats = 20 if len(robot.bodies) <= 100 else 3
        base = feasid.base_parameters(robot)

        def answer(robot: feasid.Robot = robot) -> object:
            return feasid.base_parameters(robot)

        def whole(robot: feasid.Robot = robot) -> object:
            return feasid.base_parameters(robot).matrix

        ms, full, peer = shortest(answer, repeats), shortest(whole, 3), "-"
        if len(robot.bodies) <= 100:
            peer = f"{shortest(lambda robot=robot: by_qr(robot), 3):.1f}"
        spent = 1e3 * base.check.seconds
        times = f"{ms:.1f} | {spent:.1f} | {full:.1f} | {peer}"
        print(f"| {name} | {base.size} of {robot.size} | {times} |")
    seconds, megabytes = peak(1000)
    print(f"\nK of 1000 bodies: {seconds:.2f} s, {megabytes:.0f} MB in all, imports included")
    humanoid()


if __name__ == "__main__":
    main()
