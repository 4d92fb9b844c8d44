"""One process of the campaign: inputs of one kind by their numbers, watched."""

import hashlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from feasid.core.errors import FeasidError
from feasid.robot.formats.usd.read import TRIAL

from . import mutators
from .registry import KINDS

SECONDS = 5.0
"""Of processor time that an input may take."""

HANGS = 120.0
"""Seconds after which an input hangs, whatever the machine does besides."""

MEMORY = 2**30
TRIES = 300
"""Smaller inputs that are tried for one that fails."""

PLACES = ("/proc", "/sys")
"""Folders besides Python's own that libraries may look at."""

FOLDER = "/dev/shm"
"""Files in memory, where there is such a folder: opening one is most of the cost elsewhere."""

WATCHED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")


class Watch:
    """Sees what is opened while an input is worked on."""

    def __init__(self, folder):
        self.on = False
        self.seen = []
        self.allowed = [str(folder), sys.prefix, sys.base_prefix, *PLACES]
        self.allowed = tuple(self.allowed + [p for p in sys.path if p])
        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(arguments[0]))
            if not name.startswith(self.allowed) and name != os.devnull:
                self.seen.append(f"open {name}")
        elif event.startswith(WATCHED) and TRIAL not in str(arguments):
            self.seen.append(event)


def alarm(number, _):
    limit = SECONDS if number == signal.SIGPROF else HANGS
    raise TimeoutError(f"more than {limit} s")


def limited(seconds, hangs):
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, hangs)


def tried(kind, watch, folder, data):
    """(stage reached, what went wrong or None) of one input."""
    path = kind.write(folder, data)
    reached, value, fault = "", None, None
    watch.seen.clear()
    limited(SECONDS, HANGS)
    watch.on = True
    try:
        for name, stage in kind.stages:
            value = stage(path, value)
            reached = name
    except FeasidError:
        pass
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        fault = f"{type(error).__name__} in {place}: {error}"[:300]
    finally:
        watch.on = False
        limited(0, 0)
    if fault is None and watch.seen:
        fault = f"opened: {watch.seen[0]}"
    return reached, fault


def smallest(kind, watch, folder, data, fault):
    """The input with stretches left out for as long as it fails in the same way."""
    like, width, left = fault.split(":")[0], max(1, len(data) // 2), TRIES
    while width and left:
        k = 0
        while k < len(data) and left:
            left -= 1
            shorter = data[:k] + data[k + width :]
            other = tried(kind, watch, folder, shorter)[1]
            if other is not None and other.split(":")[0] == like:
                data = shorter
            else:
                k += width
        width //= 2
    return data


def kept(kind, name, watch, folder, data, fault, where):
    """Where the smallest input that fails in this way is."""
    small = smallest(kind, watch, folder, data, fault)
    mark = hashlib.sha256(small).hexdigest()[:12]
    file = Path(where) / f"{name.replace(' ', '_')}-{mark}{Path(kind.file).suffix}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(small)
    return str(file)


def warmed(name, folder, watch):
    """The kind; its seeds, which must pass every stage, import what it needs."""
    kind = KINDS[name](folder)
    kind.prepared(folder)
    for data in dict.fromkeys(kind.seeds):
        reached, fault = tried(kind, watch, folder, data)
        assert fault is None, (name, fault)
        assert reached == kind.stages[-1][0], (name, reached, data[:80])
    return kind


def main(argv):
    """Arguments: kind, first number, how many, seconds, folder of failures."""
    name, first, count, seconds, keep = argv[0], int(argv[1]), int(argv[2]), float(argv[3]), argv[4]
    warnings.simplefilter("ignore")
    parent = os.fdopen(os.dup(1), "w")  # libraries print into the stream itself
    os.dup2(2, 1)
    memory = FOLDER if os.access(FOLDER, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as where:
        folder = Path(where)
        tempfile.tempdir = where  # what readers unpack stays where it is watched
        watch = Watch(folder)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGPROF, alarm)
        kind = warmed(name, folder, watch)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        begun = time.monotonic()
        for number in range(first, first + count):
            if time.monotonic() - begun > seconds:
                break
            rng = random.Random(f"{name} {number}")
            data = mutators.several(rng, rng.choice(kind.seeds), kind.change)
            spent = time.process_time()
            reached, fault = tried(kind, watch, folder, data)
            told = [number, reached, round(time.process_time() - spent, 4)]
            if fault is not None:
                told += [fault, kept(kind, name, watch, folder, data, fault, keep)]
            print(json.dumps(told), file=parent, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
