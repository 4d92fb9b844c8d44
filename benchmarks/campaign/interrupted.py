"""Signals at random moments: outputs are whole or absent, inputs untouched, and work goes on.

    python -m benchmarks.campaign.interrupted --moments 200 [--seed 0]
        [--commands fit,reduce,correct]

SIGINT, SIGTERM and SIGKILL take turns. Half of the moments are times within what the command
takes; half are accesses to files, at one of which the command gets the signal, for there what it
leaves behind is decided. One in ten commands is a process of its own from the start, with its
imports; the others are forked from this one. Afterwards no output may be there that differs from
the undisturbed command's, no input may have changed, nothing may be left beside them (but after
SIGKILL, which nobody can clean up after), and `reduce --resume` must give the same bits.
"""

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main as command

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
SAID = (130, 143)
"""Exit statuses of a command that was interrupted and says what it has written."""

BEFORE = 99
"""Exit status of a forked process that was interrupted before its command began."""

ACCESSES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod"}

FRESH = 10
"""One of so many commands pays for its imports."""

LOGS = 4
SAMPLES = 250

BAD = ARM.replace('ixx="0.01"', 'ixx="5"', 1)

ROBOT = ["--robot", "arm.urdf", "--cutoff", "no"]
REDUCE = ["reduce", *(f"log{k}.csv" for k in range(LOGS)), *ROBOT, "--out", "out.reduced"]
ORDERS = {
    "fit": ["fit", "log0.csv", *ROBOT, "--out", "out.urdf", "--parameters", "out.csv"],
    "reduce": REDUCE,
    "reduce --workers 2": [*REDUCE, "--workers", "2"],
    "correct": ["correct", "bad.urdf", "--out", "out.urdf"],
}


def prepared(folder):
    """Inputs of all commands."""
    (folder / "arm.urdf").write_text(ARM)
    (folder / "bad.urdf").write_text(BAD)
    robot = feasid.load_robot(folder / "arm.urdf").with_joint_terms()
    for k in range(LOGS):
        log = simulate(robot, arm_parameters(robot), k, samples=SAMPLES, noise=0.02)
        log.to_csv(folder / f"log{k}.csv", index=False)
    return {p.name: p.read_bytes() for p in folder.iterdir()}


class Signalled:
    """Counts accesses to files, and sends this process a signal at one of them."""

    def __init__(self, at=0, number=0):
        self.count, self.at, self.number = 0, at, number

    def __call__(self, event, _):
        if event in ACCESSES:
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), self.number)


def run(order, watch):
    """In a forked process: the command; ends the process."""
    status = BEFORE
    try:
        sys.addaudithook(watch)
        status = command(order)
    except SystemExit as stop:
        status = stop.code
    except KeyboardInterrupt:  # before the command, or after it
        pass
    finally:
        sys.stderr.flush()
        os._exit(status)


def begun(order, folder, heard, watch=None):
    """Id of a process in the folder that runs a command; `watch` None: one of its own."""
    if (child := os.fork()) == 0:
        os.chdir(folder)
        os.setpgid(0, 0)
        for stream, name in ((1, os.devnull), (2, heard)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        if watch is None:
            os.execv(sys.executable, [sys.executable, "-m", "feasid", *order])
        run(order, watch)
    return child


def ended(child):
    """Exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def left(folder, inputs):
    """What is there besides the inputs, which must be as they were."""
    there = {p.name: p for p in folder.iterdir()}
    for name, content in inputs.items():
        assert there.pop(name).read_bytes() == content, f"input {name} was changed"
    return there


def cleared(paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def whole_or_absent(there, whole, number):
    """Names of the outputs that are there and whole; asserts that there is nothing else."""
    outputs = {n: p for n, p in there.items() if not n.endswith(".parts")}
    strays = [n for n in outputs if n.startswith(".feasid-")]
    if number == signal.SIGKILL:  # nobody cleans up after it
        for stray in strays:
            outputs.pop(stray).unlink()
    else:
        assert not strays, strays
    for output, path in outputs.items():
        assert path.read_bytes() == whole[output], f"{output} is not whole"
    return outputs


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class Victim:
    """One command, and what it does when nobody disturbs it."""

    def __init__(self, name, folder, heard):
        self.name, self.folder, self.heard = name, folder, heard
        self.order, self.inputs = ORDERS[name], prepared(folder)
        self.seconds = {}
        with contextlib.chdir(folder), quiet():
            assert command(self.order) == 0  # imports what forked processes need
        cleared(left(folder, self.inputs).values())
        for fresh in (True, False):
            start = time.monotonic()
            assert ended(begun(self.order, folder, heard, None if fresh else Signalled())) == 0
            self.seconds[fresh] = 1.1 * (time.monotonic() - start)
            there = left(folder, self.inputs)
            self.whole = {n: p.read_bytes() for n, p in there.items()}
            cleared(there.values())
        self.accesses = self.counted()

    def counted(self):
        """How often the command opens, renames, removes."""
        reader, writer = os.pipe()

        class Told(Signalled):
            def __call__(self, event, arguments):
                super().__call__(event, arguments)
                if event in ACCESSES:
                    os.write(writer, b".")

        child = begun(self.order, self.folder, self.heard, Told())
        os.close(writer)
        count = 0
        while piece := os.read(reader, 2**16):
            count += len(piece)
        os.close(reader)
        assert ended(child) == 0
        cleared(left(self.folder, self.inputs).values())
        return count

    def interrupted(self, k, rng):
        """One interruption; what became of it."""
        number = SIGNALS[k % len(SIGNALS)]
        fresh, by_access = k % FRESH == FRESH - 1, k % 2 == 0
        if by_access:
            at = rng.randint(1, self.accesses)
            child = begun(self.order, self.folder, self.heard, Signalled(at, number))
        else:
            child = begun(self.order, self.folder, self.heard, None if fresh else Signalled())
            time.sleep(rng.random() * self.seconds[fresh])
            os.kill(child, number)  # not waited for yet: it is there, if only as a zombie
        status = ended(child)
        said = self.heard.read_text()
        outputs = whole_or_absent(left(self.folder, self.inputs), self.whole, number)
        if number != signal.SIGKILL and status in SAID:
            for output in outputs:
                assert output in said, f"{output} was written and not told: {said}"
            assert outputs or "nothing was written" in said, said
        if self.name.startswith("reduce"):
            self.resumed(outputs)
        cleared(left(self.folder, self.inputs).values())
        return f"{number.name}: exit status {status}"

    def resumed(self, outputs):
        cleared(outputs.values())
        again = begun([*REDUCE, "--resume"], self.folder, self.heard, Signalled())
        assert ended(again) == 0, self.heard.read_text()
        assert (self.folder / "out.reduced").read_bytes() == self.whole["out.reduced"], "other bits"


def main(argv=None):
    """Returns 0; an assertion tells what was broken."""
    parser = argparse.ArgumentParser("python -m benchmarks.campaign.interrupted")
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", default=",".join(ORDERS))
    given = parser.parse_args(argv)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in given.commands.split(","):
        with tempfile.TemporaryDirectory() as where, tempfile.TemporaryDirectory() as beside:
            victim = Victim(name, Path(where), Path(beside) / "heard")
            counts = Counter(
                victim.interrupted(k, random.Random(f"{name} {given.seed} {k}"))
                for k in range(given.moments)
            )
        print(
            f"{name}: {given.moments} moments within {victim.seconds[False]:.2f} s and "
            f"{victim.accesses} accesses, nothing broken"
        )
        for what, count in sorted(counts.items()):
            print(f"  {count:4} {what}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
