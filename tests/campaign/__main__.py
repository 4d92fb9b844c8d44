"""Run the campaign; see the package."""

import argparse
import json
import os
import platform
import selectors
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "faults.md"
BEGIN, END = "<!-- campaign -->", "<!-- end of campaign -->"

NAMES = ("urdf", "mjcf", "csv", "npz", "parquet", "mcap", "reduced", "saved fit", "command")

SILENCE = 300.0
"""Seconds without a word after which a process is taken to hang; it makes its seeds first, and
tells of 100 inputs at once."""


def run(name, first, count, seconds, kept, silence=SILENCE):
    """Counts by stage and faults of one kind."""
    stages, faults, number = Counter(), [], first
    begun = time.monotonic()
    while number < first + count and time.monotonic() - begun < seconds:
        left = seconds - (time.monotonic() - begun)
        last, lines, hung, rest = number - 1, [], False, b""
        order = [name, number, first + count - number, left, kept]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.child", *map(str, order)], cwd=ROOT,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
                 "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        with selectors.DefaultSelector() as selector, process:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(silence):
                    hung = True
                    process.kill()
                if not (piece := os.read(process.stdout.fileno(), 2**16)):
                    break
                *whole, rest = (rest + piece).split(b"\n")
                lines += map(json.loads, whole)
            words = process.stderr.read().decode(errors="replace")
        for told in lines:
            stages[told["stage"]] += 1
            last = told["number"]
            if "fault" in told:
                faults.append((told["number"], told["fault"], told["file"]))
        if process.returncode == 0 and not hung:
            break
        end = words.strip().splitlines()[-1:] or ["no word"]
        what = "hangs" if hung else f"exit status {process.returncode}: {end[0]}"
        if last < number:
            raise SystemExit(f"{name}: the process does not start: {words}")
        faults.append((last + 1, f"the process ended after input {last}: {what}", ""))
        number = last + 2
    return stages, faults


def table(results, seed):
    """The counts as Markdown."""
    lines = [
        "| kind | inputs | past its first check | by last stage reached | faults |",
        "|---|---|---|---|---|",
    ]
    for name, (stages, faults) in results.items():
        total = sum(stages.values())
        each = ", ".join(f"{stage or 'none'} {n}" for stage, n in stages.most_common())
        lines.append(f"| {name} | {total} | {total - stages['']} | {each} | {len(faults)} |")
    total = sum(sum(s.values()) for s, _ in results.values())
    past = sum(sum(s.values()) - s[""] for s, _ in results.values())
    faults = sum(len(f) for _, f in results.values())
    lines.append(f"| all | {total} | {past} | | {faults} |")
    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "pandas", "pyarrow"))
    lines.append(f"\nSeed {seed}; Python {platform.python_version()}, {packages}.")
    return "\n".join(lines)


def main(argv=None):
    """Returns 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="numbers of inputs begin there")
    parser.add_argument("--inputs", type=int, default=10**9, help="at most so many per kind")
    parser.add_argument("--kinds", default=",".join(NAMES))
    parser.add_argument("--keep", default=str(ROOT / "campaign-failures"))
    parser.add_argument("--write", action="store_true", help="put the table into docs/faults.md")
    given = parser.parse_args(argv)
    chosen = given.kinds.split(",")
    share = 60 * given.minutes / len(chosen)
    results = {}
    for name in chosen:
        results[name] = run(name, given.seed, given.inputs, share, given.keep)
        for number, fault, file in results[name][1]:
            print(f"{name} {number}: {fault} {file}", flush=True)
    text = table(results, given.seed)
    print(text)
    if given.write:
        page = PAGE.read_text()
        head, rest = page.split(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return int(any(faults for _, faults in results.values()))


if __name__ == "__main__":
    sys.exit(main())
