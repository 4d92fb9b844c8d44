"""Run the campaign; see the package."""

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import totals
from .registry import KINDS
from .totals import ROOT

PAGE = ROOT / "docs" / "faults.md"
COUNTS = ROOT / "benchmarks" / "campaign" / "counts.json"
BEGIN, END = "<!-- campaign -->", "<!-- end of campaign -->"

SILENCE = 300.0
"""Seconds without a word after which a process is taken to hang; it makes its seeds first."""


def started(heard, *order):
    """A process of the campaign."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = os.environ | one | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.campaign.child", *map(str, order)], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=heard, env=environment,
    )  # fmt: skip


def told(process, silence=SILENCE):
    """What a process says, line by line; kills it when it says nothing for long."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(silence):
                process.kill()
            if not (piece := os.read(process.stdout.fileno(), 2**16)):
                return
            *whole, rest = (rest + piece).split(b"\n")
            yield from map(json.loads, whole)


def turn(name, count, number, seconds, keep):
    """Let one process work on so many inputs of one kind, and count them."""
    mark, spent = totals.code(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = count.next
    order = name, begun, number, seconds, keep
    with tempfile.TemporaryFile() as heard, started(heard, *order) as process:
        for which, stage, took, *fault in told(process):
            count.next = which + 1
            count.stages[stage] += 1
            count.codes[mark] += 1
            count.slowest = max(count.slowest, took)
            if fault:
                count.faults.append([which, fault[0], Path(fault[1]).name])
                print(f"{name} {which}: {' '.join(fault)}", flush=True)
        process.wait()
        heard.seek(0)
        words = heard.read().decode(errors="replace")
    if process.returncode:
        if count.next == begun and begun % number == 0:
            raise SystemExit(f"{name}: the process does not start: {words}")
        end = (words.strip().splitlines() or ["no word"])[-1]
        fault = f"ended the process with status {process.returncode}: {end}"
        count.faults.append([count.next, fault, ""])
        print(f"{name} {count.next}: {fault}", flush=True)
        count.next += 1
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    count.seconds += now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime


def campaign(given, counts, chosen):
    """Let the kind that has come least far work, until the time is over or all is there."""
    over = time.monotonic() + 60 * given.minutes
    while (left := over - time.monotonic()) > 0:
        few = [name for name in chosen if counts[name].inputs < given.each]
        wanting = few or [name for name in chosen if counts[name].past < given.past]
        if not wanting and sum(c.inputs for c in counts.values()) >= given.total:
            return
        name = min(wanting or chosen, key=lambda name: counts[name].past)
        turn(name, counts[name], given.inputs, left, given.keep)
        totals.save(given.counts, counts)


def written(text):
    """Put the table into its page."""
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def main(argv=None):
    """Returns 0 when nothing failed."""
    raw = argparse.RawDescriptionHelpFormatter
    about = sys.modules[__package__].__doc__
    parser = argparse.ArgumentParser(
        "python -m benchmarks.campaign", None, about, formatter_class=raw
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--counts", default=COUNTS, help="where totals are kept and go on from")
    parser.add_argument("--past", type=int, default=50_000, help="that pass the first check, each")
    parser.add_argument("--each", type=int, default=20_000, help="of each kind, at least")
    parser.add_argument("--total", type=int, default=1_000_000, help="of all kinds")
    parser.add_argument("--inputs", type=int, default=10_000, help="per turn")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", default=str(ROOT / "campaign-failures"))
    parser.add_argument("--write", action="store_true", help="put the table into docs/faults.md")
    given = parser.parse_args(argv)
    chosen = given.kinds.split(",")
    if given.first and Path(given.counts).exists():
        parser.error(f"--first needs new counts: numbers go on from {given.counts}")
    counts = totals.load(given.counts, chosen, given.first)
    campaign(given, counts, chosen)
    text = totals.table(counts)
    print(text)
    if given.write:
        written(text)
    return int(any(c.faults for c in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
