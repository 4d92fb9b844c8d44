"""Interruptions at random moments: outputs are the old or the new ones, and nothing is left.

    python -m benchmarks.campaign.interrupted --moments 200 [--seed 0] [--acts fit,reduce] [--write]

SIGINT, SIGTERM, SIGHUP, SIGKILL, a full disk (a limit on the size of files) and little memory (a
limit on it) take turns. Half of the signals come at times within what the act takes; half at
accesses to files, for there what is left behind is decided. One in ten commands is a process of its
own from the start, with its imports; the others are forked from this one. Half of the acts replace
an output that exists. Afterwards every output must be the undisturbed act's or the old one, no
input may have changed, nothing may be left beside them (but after SIGKILL, which nobody can clean
up after), the exit status must say what happened, and `reduce --resume` must give the same bits.
`--write` puts the counts into the table of docs/faults.md.
"""

import argparse
import contextlib
import ctypes
import io
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from logs import arm_parameters, simulate
from robots import ARM

import feasid
from benchmarks.faults_page import write_row
from feasid.cli import main as command
from feasid.datasets.arm import described

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
DISK, MEMORY = "full disk", "little memory"
FAULTS = (*SIGNALS, DISK, MEMORY)
SAID = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""Exit statuses of a command that was interrupted and says what it has written."""

REFUSED, BEFORE = 2, 99
"""Exit statuses of an error, and of a forked process that was interrupted before its act began."""

ACCESSES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod"}

FRESH = 10
"""One of so many commands pays for its imports."""

LEAST_FILE, MOST_MEMORY = 600, 2**19
"""Bytes of the smallest file that fits on the disk, and largest rest of the memory."""

LOGS, ROBOTS = 4, 2
SAMPLES = 250

BAD = ARM.replace('ixx="0.01"', 'ixx="5"', 1)
OLD = b"what was there before"

ROBOT = ["--robot", "arm.urdf", "--cutoff", "no"]
REDUCE = ["reduce", *(f"log{k}.csv" for k in range(LOGS)), *ROBOT, "--out", "out.reduced"]
FIT = ["fit", "log0.csv", *ROBOT, "--out", "out.urdf", "--parameters", "out.csv"]
SEARCH = ["--duration", "4", "--harmonics", "2", "--rounds", "1", "--starts", "1", "--seed", "0"]
ONE_JOINT = ["--lock", "shoulder=0", "--lock", "elbow=0.3"]


def write(overwrite):
    """Of a description, with its sidecar."""
    robot = feasid.load_robot("excited.urdf").with_joint_terms()
    feasid.write(robot, "out.xml", overwrite=overwrite)


def save_online(overwrite):
    """Of a fit that learns on meanwhile."""
    fit = feasid.OnlineFit(feasid.load_robot("arm.urdf").with_joint_terms(), 100.0)
    log = feasid.read_log("log0.csv")
    q, tau = (log[[f"{name}_{j}" for j in fit.robot.joints]].to_numpy() for name in ("q", "tau"))
    for _ in range(4):
        fit.extend(q, tau)
    fit.save("out.feasid", overwrite=overwrite)


ACTS = {
    "fit": FIT,
    "reduce": REDUCE,
    "reduce --workers 2": [*REDUCE, "--workers", "2"],
    "correct": ["correct", "bad.urdf", "--out", "out.urdf"],
    "excite": ["excite", "excited.urdf", "--out", "out.csv", *SEARCH, *ONE_JOINT],
    "store": ["store", "add", "out.store", "log0.csv", "log1.csv", *ROBOT, "--name", "one"],
    "fleet": ["fleet", "robots", *ROBOT, "--diagnose", "no", "--save", "out.feasid"],
    "write": write,
    "online save": save_online,
}


def acted(act, overwrite):
    """Exit status of an act in this process."""
    if isinstance(act, list):
        return command([*act, "--overwrite"] if overwrite else act)
    try:
        act(overwrite)
    except (feasid.FeasidError, MemoryError):
        return REFUSED
    except KeyboardInterrupt:
        return SAID[signal.SIGINT]
    return 0


def prepared(folder):
    """Inputs of all acts."""
    (folder / "arm.urdf").write_text(ARM)
    (folder / "bad.urdf").write_text(BAD)
    robot = feasid.load_robot(folder / "arm.urdf").with_joint_terms()
    feasid.write(described(), folder / "excited.urdf")
    (folder / "robots").mkdir()
    for k in range(LOGS):
        log = simulate(robot, arm_parameters(robot), k, samples=SAMPLES, noise=0.02)
        log.to_csv(folder / f"log{k}.csv", index=False)
        if k < ROBOTS:
            log.to_csv(folder / "robots" / f"log{k}.csv", index=False)
    return {name: path.read_bytes() for name, path in files(folder).items()}


def files(folder):
    """Paths of all files below a folder, by their names from there."""
    return {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}


def content(data):
    """What a file says, without the time of a saved fit."""
    return re.sub(rb'"created": "[^"]*"', b"", data)


class Signalled:
    """Counts accesses to files, and sends this process a signal at one of them."""

    def __init__(self, at=0, number=0):
        self.count, self.at, self.number = 0, at, number

    def __call__(self, event, _):
        if event in ACCESSES:
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), self.number)


def limited(fault, amount):
    """Limit this process as a full disk or little memory does."""
    if fault == DISK:
        resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))
    if fault == MEMORY:
        ctypes.CDLL(None).malloc_trim(0)  # what earlier acts used is not free for this one
        with open("/proc/self/statm") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + amount
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run(act, overwrite, watch, fault, amount):
    """In a forked process: the act; ends the process."""
    status = BEFORE
    try:
        sys.addaudithook(watch)
        limited(fault, amount)
        status = acted(act, overwrite)
    except SystemExit as stop:
        status = stop.code
    except KeyboardInterrupt:  # before the command, or after it
        pass
    finally:
        sys.stderr.flush()
        os._exit(status)


def begun(act, folder, heard, watch=None, overwrite=False, fault=None, amount=0):
    """Id of a process in the folder that runs an act; `watch` None: one of its own."""
    if (child := os.fork()) == 0:
        os.chdir(folder)
        os.setpgid(0, 0)
        for stream, name in ((1, os.devnull), (2, heard)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        if watch is None:
            words = [*act, *["--overwrite"] * overwrite]
            os.execv(sys.executable, [sys.executable, "-m", "feasid", *words])
        run(act, overwrite, watch, fault, amount)
    return child


def ended(child):
    """Exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def left(folder, inputs):
    """Files that are there besides the inputs, which must be as they were."""
    there = files(folder)
    for name, data in inputs.items():
        assert there.pop(name).read_bytes() == data, f"input {name} was changed"
    return there


def cleared(folder, inputs):
    for path in left(folder, inputs).values():
        path.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class Victim:
    """One act, and what it does when nobody disturbs it."""

    def __init__(self, name, folder, heard):
        self.name, self.folder, self.heard = name, folder, heard
        self.act, self.inputs = ACTS[name], prepared(folder)
        self.seconds, wholes = {}, []
        with contextlib.chdir(folder), quiet():
            assert acted(self.act, False) == 0  # imports what forked processes need
        cleared(folder, self.inputs)
        self.can_be_fresh = isinstance(self.act, list)
        for fresh in (True, False) if self.can_be_fresh else (False, False):
            start = time.monotonic()
            child = begun(self.act, folder, heard, None if fresh else Signalled())
            assert ended(child) == 0, heard.read_text()
            self.seconds[fresh] = 1.1 * (time.monotonic() - start)
            there = left(folder, self.inputs)
            wholes.append({n: content(p.read_bytes()) for n, p in there.items()})
            cleared(folder, self.inputs)
        assert wholes[0] == wholes[1], "the act gives other bits each time"
        self.whole, self.replaces = wholes[0], name != "store"
        self.largest = max(map(len, self.whole.values()))
        self.accesses = self.counted()

    def counted(self):
        """How often the act opens, renames, removes."""
        reader, writer = os.pipe()

        class Told(Signalled):
            def __call__(self, event, arguments):
                super().__call__(event, arguments)
                if event in ACCESSES:
                    os.write(writer, b".")

        child = begun(self.act, self.folder, self.heard, Told())
        os.close(writer)
        count = 0
        while piece := os.read(reader, 2**16):
            count += len(piece)
        os.close(reader)
        assert ended(child) == 0
        cleared(self.folder, self.inputs)
        return count

    def interrupted(self, k, rng):
        """One interruption; what became of it."""
        fault, replaced = FAULTS[k % len(FAULTS)], self.replaces and rng.random() < 0.5
        for name in self.whole if replaced else ():
            (self.folder / name).write_bytes(OLD)
        options = {"overwrite": replaced}
        if fault in (DISK, MEMORY):
            most = self.largest if fault == DISK else MOST_MEMORY
            least = min(LEAST_FILE, most) if fault == DISK else 0
            amount = rng.randint(least, most)
            options |= {"fault": fault, "amount": amount}
            child = begun(self.act, self.folder, self.heard, Signalled(), **options)
        elif rng.random() < 0.5:
            watch = Signalled(rng.randint(1, self.accesses), fault)
            child = begun(self.act, self.folder, self.heard, watch, **options)
        else:
            fresh = self.can_be_fresh and k % FRESH == FRESH - 1
            watch = None if fresh else Signalled()
            child = begun(self.act, self.folder, self.heard, watch, **options)
            time.sleep(rng.random() * self.seconds[fresh])
            os.kill(child, fault)  # not waited for yet: it is there, if only as a zombie
        status = ended(child)
        self.judge(fault, status, replaced)
        if self.name.startswith("reduce"):
            self.resumed()
        return f"{getattr(fault, 'name', fault)}: exit status {status}"

    def is_new(self, name, data):
        """Whether this is the act's output; a search that is interrupted gives its best motion."""
        if self.name != "excite":
            return data == self.whole[name]
        one, other = ([len(line.split(b",")) for line in x.splitlines()]
                      for x in (data, self.whole[name]))  # fmt: skip
        return one == other

    def judge(self, fault, status, replaced):
        """Assert that nothing is lost, nothing is left, and the exit status says so."""
        said, new = self.heard.read_text(), []
        for name, path in left(self.folder, self.inputs).items():
            if ".parts" in name or (fault == signal.SIGKILL and ".feasid-" in name):
                continue
            assert name in self.whole, f"{name} is left over"
            data = path.read_bytes()
            if not (replaced and data == OLD):
                assert self.is_new(name, content(data)), f"{name} is neither old nor new"
                new.append(name)
        if status == 0:
            assert len(new) == len(self.whole), f"exit status 0 with {new}"
        elif status == SAID.get(fault) and self.can_be_fresh:
            for name in new:
                assert Path(name).name in said, f"{name} was written and not told: {said}"
            assert new or "nothing was written" in said, said
        elif status == REFUSED or fault == MEMORY:
            assert not new or self.name == "store", f"exit status {status} with {new}: {said}"
        else:
            expected = (-fault, SAID.get(fault)) if isinstance(fault, int) else (REFUSED,)
            assert status in (*expected, BEFORE), f"exit status {status}: {said}"

    def resumed(self):
        """The same bits as without an interruption."""
        (self.folder / "out.reduced").unlink(missing_ok=True)
        again = begun([*REDUCE, "--resume"], self.folder, self.heard, Signalled())
        assert ended(again) == 0, self.heard.read_text()
        assert (self.folder / "out.reduced").read_bytes() == self.whole["out.reduced"], "other bits"


def main(argv=None):
    """Returns 0 where nothing was lost."""
    parser = argparse.ArgumentParser("python -m benchmarks.campaign.interrupted")
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--acts", default=",".join(ACTS))
    parser.add_argument("--write", action="store_true", help="put the counts into docs/faults.md")
    given = parser.parse_args(argv)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's "&" and nohup ignore
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lost = 0
    for name in given.acts.split(","):
        with tempfile.TemporaryDirectory() as where, tempfile.TemporaryDirectory() as beside:
            victim, counts = Victim(name, Path(where), Path(beside) / "heard"), Counter()
            broken = 0
            for k in range(given.moments):
                try:
                    rng = random.Random(f"{name} {given.seed} {k}")
                    counts[victim.interrupted(k, rng)] += 1
                except AssertionError as error:
                    broken += 1
                    print(f"{name} {k} ({FAULTS[k % len(FAULTS)]!s}): {error}", flush=True)
                cleared(victim.folder, victim.inputs)
        print(
            f"{name}: {given.moments} moments within {victim.seconds[False]:.2f} s and "
            f"{victim.accesses} accesses, {broken} broken"
        )
        for what, count in sorted(counts.items()):
            print(f"  {count:4} {what}", flush=True)
        if given.write:
            write_row(f"{name}, interrupted", given.moments, f"{broken} lost; {summed(counts)}")
        lost += broken
    return int(lost > 0)


def summed(counts):
    """Exit statuses of all faults."""
    by_status = Counter()
    for what, count in counts.items():
        by_status[int(what.rsplit(" ", 1)[1])] += count
    return "exit statuses " + ", ".join(f"{s}: {n}" for s, n in sorted(by_status.items()))


if __name__ == "__main__":
    sys.exit(main())
