"""Thousands of short logs: memory of one process, and the same bits on every engine.

    python benchmarks/many_files.py [--files 2000] [--shared 200] [--folder DIR]

Writes logs of a seven-joint arm, 10 s at 100 Hz each, and reduces them from a pattern: all of them
in a process of its own, of which the peak memory is printed; then the first `--shared` in one
process, on threads, on processes, and on a Dask cluster of two workers, of which one is killed on
the way. Processor times of the workers count. `MALLOC_TRIM_THRESHOLD_` is what Dask sets for its
workers; with it one process is slower as well.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reduction import peak
from stream import on_cluster, signals

import feasid
from feasid.datasets import wam
from feasid.identification.regression.parallel import BLOCK_OF_LOGS

SAMPLES, STEP, CUTOFF = 1000, 10, 10.0
"""Samples of a log, every how many samples of the kilohertz signals is one, cut-off [Hz]."""


def write(folder: Path, count: int) -> None:
    """Logs, each of another stretch of one motion."""
    robot = wam.robot()
    for k in range(count):
        data = signals(k * SAMPLES * STEP, SAMPLES * STEP, robot)
        table = pa.table({name: values[::STEP] for name, values in data.items()})
        pq.write_table(table, folder / f"log_{k:05d}.parquet")


def report(name: str, begun: tuple[float, float], reduced: Any, first: Any = None) -> None:
    """A line: seconds, processor seconds, and whether the bits are those of the first."""
    wall, cpu = (now - then for now, then in zip(clocks(), begun, strict=True))
    same = "" if first is None else f", equal to the bit: {bits(reduced) == bits(first)}"
    print(f"{name}: {wall:.0f} s, {cpu:.0f} s of processor{same}", flush=True)


def bits(reduced: Any) -> list[bytes]:
    """All triangles, of folds too."""
    strata = [part.triangles.tobytes() for part in reduced.strata]
    return [*(t.tobytes() for t in reduced.triangles), *strata]


def clocks() -> tuple[float, float]:
    """Seconds of the clock, and of the processor with children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in usage)


def alone(pattern: str) -> Any:
    """One process."""
    begun = clocks()
    reduced = feasid.reduce(pattern, wam.robot(), cutoff=CUTOFF)
    report(f"one process, {len(reduced.sources)} logs, peak memory {peak():.0f} MB", begun, reduced)
    return reduced


@contextmanager
def executors() -> Iterator[dict[str, Any]]:
    """Threads and processes of the standard library."""
    fresh = get_context("spawn")
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, fresh) as processes:
        yield {"two threads": threads, "two processes": processes}


def report_cluster(paths: list[Path], first: Any) -> None:
    """Dask's processor time once its workers stand, over that of one process just before."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        feasid.reduce(paths[:8], wam.robot(), cutoff=CUTOFF, client=client)  # imports, and the job
        begun = time.process_time()
        feasid.reduce(paths, wam.robot(), cutoff=CUTOFF)
        one, begun = time.process_time() - begun, time.process_time()
        there = sum(client.run(time.process_time).values())
        reduced = feasid.reduce(paths, wam.robot(), cutoff=CUTOFF, client=client)
        there = sum(client.run(time.process_time).values()) - there
        here = time.process_time() - begun
    megabytes = len(pickle.dumps(feasid.reduce(paths[0], wam.robot(), cutoff=CUTOFF))) / 1e6
    print(
        f"Dask: {there:.0f} s of processor in its workers and {here:.0f} s in this process, "
        f"{(there + here) / one:.2f} times one process; {megabytes:.1f} MB come back of up to "
        f"{BLOCK_OF_LOGS} logs; equal to the bit: {bits(reduced) == bits(first)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--shared", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--alone", metavar="PATTERN")
    given = parser.parse_args()
    if given.alone:
        alone(given.alone)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        write(folder, given.files)
        run = [sys.executable, __file__, "--alone", f"{folder}/*.parquet"]
        subprocess.run(run, check=True)
        trimmed = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
        for k in range(given.shared, given.files):
            (folder / f"log_{k:05d}.parquet").unlink()
        print("with MALLOC_TRIM_THRESHOLD_=65536: ", end="", flush=True)
        subprocess.run(run, check=True, env=trimmed)
        first, paths = alone(f"{folder}/*.parquet"), sorted(folder.glob("*.parquet"))
        for kind in ("two threads", "two processes"):
            begun = clocks()
            with executors() as engines:
                reduced = feasid.reduce(paths, wam.robot(), cutoff=CUTOFF, executor=engines[kind])
            report(kind, begun, reduced, first)
        report_cluster(paths, first)
        begun = clocks()
        reduced = on_cluster(paths, wam.robot(), kill=True)
        report("Dask with its start, one worker killed", begun, reduced, first)


if __name__ == "__main__":
    main()
