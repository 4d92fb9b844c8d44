"""Ten million samples of seven joints from Parquet: memory, and the same triangle every way.

    python benchmarks/stream.py [--samples 10000000] [--folder DIR]

Writes a log of positions and torques (1.2 GB, deleted afterwards), reduces it streamed in a
process of its own, in one piece, and through a Dask cluster of two workers, of which one is
killed on the way, and prints peak memories, times and the distances between the triangles.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reduction import peak

import feasid
from feasid.datasets import wam
from feasid.identification.regression.triangle import Reduced

FILES = 10
RATE = 1000.0
CUTOFF = 10.0
SECONDS_TO_KILL = 2.0  #: After the work began.


def signals(first: int, count: int, robot: feasid.Robot) -> dict[str, np.ndarray]:
    """A motion that never repeats, with torques of its inverse dynamics and noise."""
    t = (first + np.arange(count)) / RATE
    rng = np.random.default_rng(1)
    frequency, phase = rng.uniform(0.3, 2.0, (2, 3, robot.dof))
    amplitude = rng.uniform(0.2, 0.5, (3, robot.dof))
    q = sum(
        a * np.sin(np.outer(t, f) + p) for a, f, p in zip(amplitude, frequency, phase, strict=True)
    )
    tau = np.random.default_rng(first).standard_normal(q.shape) + 5 * q
    data = {"t": t}
    for kind, values in {"q": q, "tau": tau}.items():
        data |= {f"{kind}_{j}": values[:, k] for k, j in enumerate(robot.joints)}
    return data


def write(folder: Path, samples: int, robot: feasid.Robot) -> list[Path]:
    """The log as one file, and as `FILES` files."""
    each = samples // FILES
    paths = [folder / f"part_{k}.parquet" for k in range(FILES)]
    writer = None
    for k, path in enumerate(paths):
        table = pa.table(signals(k * each, each, robot))
        pq.write_table(table, path)
        writer = writer or pq.ParquetWriter(folder / "all.parquet", table.schema)
        writer.write_table(table)
    writer.close()
    return paths


def distance(a: Reduced, b: Reduced) -> float:
    """Largest difference of R'R, relative to the columns' norms."""
    full = []
    for reduced in (a, b):
        r, rho, residual = reduced.triangle()
        wide = np.zeros((len(rho) + 1,) * 2)
        wide[:-1, :-1], wide[:-1, -1], wide[-1, -1] = r, rho, residual
        full.append(wide.T @ wide)
    scale = np.sqrt(np.diag(full[1]))
    return float(np.abs((full[0] - full[1]) / np.outer(scale, scale)).max())


def streamed(path: str, out: str) -> None:
    """Reduce one file, save the result, print time and peak memory."""
    start = time.perf_counter()
    reduced = feasid.reduce(path, wam.robot(), cutoff=CUTOFF)
    seconds = time.perf_counter() - start
    reduced.save(out)
    print(f"streamed: {reduced.samples} samples, {seconds:.1f} s, peak memory {peak():.0f} MB")


def in_one_piece(path: Path, robot: feasid.Robot) -> Reduced:
    import pandas as pd

    return feasid.reduce(pd.read_parquet(path), robot, cutoff=CUTOFF)


def on_cluster(paths: list[Path], robot: feasid.Robot, kill: bool) -> Reduced:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def kill_one() -> None:
            victim = next(iter(cluster.workers.values())).worker_address
            client.run(os._exit, 1, workers=[victim], on_error="ignore")
            print("a worker was killed")

        if kill:
            threading.Timer(SECONDS_TO_KILL, kill_one).start()
        start = time.perf_counter()
        reduced = feasid.reduce(paths, robot, client=client, cutoff=CUTOFF)
        print(f"Dask, 2 workers: {reduced.samples} samples, {time.perf_counter() - start:.1f} s")
    return reduced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--streamed", nargs=2, metavar=("PARQUET", "OUT"))
    arguments = parser.parse_args()
    if arguments.streamed:
        streamed(*arguments.streamed)
        return
    robot = wam.robot()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        paths = write(folder, arguments.samples, robot)
        single, out = folder / "all.parquet", folder / "all.reduced"
        subprocess.run([sys.executable, __file__, "--streamed", str(single), str(out)], check=True)
        whole = in_one_piece(single, robot)
        print(f"streamed against one piece: {distance(Reduced.load(out), whole):.1e}")
        alone = feasid.reduce(paths, robot, cutoff=CUTOFF)
        print(f"Dask against one process: {distance(on_cluster(paths, robot, False), alone):.1e}")
        again = on_cluster(paths, robot, True)
        print(f"Dask with one worker killed against one process: {distance(again, alone):.1e}")


if __name__ == "__main__":
    main()
