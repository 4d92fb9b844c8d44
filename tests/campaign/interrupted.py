"""Signals at random moments: outputs are whole or absent, inputs untouched, and work goes on.

    python -m tests.campaign.interrupted --moments 200 [--seed 0]

Each moment is drawn within the time that the command takes; SIGINT, SIGTERM and SIGKILL take
turns. Afterwards no output may be there that differs from the undisturbed command's, no input may
have changed, nothing may be left beside them (but after SIGKILL, which nobody can clean up after),
and `reduce --resume` must give the same bits.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from logs import arm_parameters, simulate
from robots import ARM

import feasid

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

BAD = ARM.replace('ixx="0.01"', 'ixx="5"', 1)

ROBOT = ["--robot", "arm.urdf"]
ORDERS = {
    "fit": ["fit", "log0.csv", *ROBOT, "--cutoff", "no", "--out", "out.urdf",
            "--parameters", "out.csv"],
    "reduce": ["reduce", *(f"log{k}.csv" for k in range(4)), *ROBOT, "--cutoff", "no",
               "--workers", "2", "--out", "out.reduced"],
    "correct": ["correct", "bad.urdf", "--out", "out.urdf"],
}  # fmt: skip


def prepared(folder):
    """Inputs of all commands."""
    (folder / "arm.urdf").write_text(ARM)
    (folder / "bad.urdf").write_text(BAD)
    robot = feasid.load_robot(folder / "arm.urdf").with_joint_terms()
    for k in range(4):
        log = simulate(robot, arm_parameters(robot), k, samples=250, noise=0.02)
        log.to_csv(folder / f"log{k}.csv", index=False)
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def started(order, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "feasid", *order], cwd=folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def left(folder, inputs):
    """What is there besides the inputs, which must be as they were."""
    there = {p.name: p for p in folder.iterdir()}
    for name, content in inputs.items():
        assert there.pop(name).read_bytes() == content, f"input {name} was changed"
    return there


def cleared(paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def one(name, folder, inputs, whole, length, number, rng):
    """One interruption; what became of it."""
    process = started(ORDERS[name], folder)
    time.sleep(rng.random() * length)
    process.send_signal(number)
    said = process.communicate()[1]
    there = left(folder, inputs)
    parts = [p for p in there.values() if p.name.endswith(".parts")]
    outputs = {n: p for n, p in there.items() if p not in parts}
    strays = [n for n in outputs if n.startswith(".feasid-")]
    if number == signal.SIGKILL:  # nobody cleans up after it
        for stray in strays:
            outputs.pop(stray).unlink()
    else:
        assert not strays, strays
    for output, path in outputs.items():
        assert path.read_bytes() == whole[output], f"{output} is not whole"
    if number != signal.SIGKILL and process.returncode in (130, 143):
        for output in outputs:
            assert output in said, f"{output} was written and not told: {said}"
        assert outputs or "nothing was written" in said, said
    if name == "reduce":
        cleared(outputs.values())
        again = started([*ORDERS[name], "--resume"], folder)
        assert again.communicate()[1] is not None
        assert again.returncode == 0
        assert (folder / "out.reduced").read_bytes() == whole["out.reduced"], "other bits"
    cleared(left(folder, inputs).values())
    return f"{signal.Signals(number).name}: exit status {process.returncode}"


def main(argv=None):
    """Returns 0; an assertion tells what was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", default=",".join(ORDERS))
    given = parser.parse_args(argv)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in given.commands.split(","):
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where)
            inputs = prepared(folder)
            began = time.monotonic()
            process = started(ORDERS[name], folder)
            said = process.communicate()[1]
            assert process.returncode == 0, said
            length = 1.1 * (time.monotonic() - began)
            there = left(folder, inputs)
            whole = {n: p.read_bytes() for n, p in there.items()}
            cleared(there.values())
            counts = Counter(
                one(name, folder, inputs, whole, length, SIGNALS[k % len(SIGNALS)],
                    random.Random(f"{name} {given.seed} {k}"))
                for k in range(given.moments)
            )  # fmt: skip
        print(f"{name}: {given.moments} moments within {length:.1f} s, nothing broken", flush=True)
        for what, count in sorted(counts.items()):
            print(f"  {count:4} {what}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
