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

from feasid.errors import FeasidError

from . import mutators
from .kinds import PLACES, kinds

SECONDS = 10
MEMORY = 2**30
TRIES = 300
"""Smaller inputs that are tried for one that fails."""


class Watch:
    """Sees what is opened while an input is worked on."""

    def __init__(self, folder):
        self.on = False
        self.seen = []
        self.allowed = [str(folder), sys.prefix, sys.base_prefix, *map(str, PLACES)]
        self.allowed += [p for p in sys.path if p]
        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(arguments[0]))
            if not name.startswith(tuple(self.allowed)) and name != os.devnull:
                self.seen.append(f"open {name}")
        elif event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
            self.seen.append(event)


def alarm(*_):
    raise TimeoutError(f"more than {SECONDS} s")


def tried(kind, watch, folder, data):
    """(stage reached, what went wrong or None) of one input."""
    path = kind.write(folder, data)
    reached, value = "", None
    watch.seen.clear()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    watch.on = True
    try:
        for name, stage in kind.stages:
            value = stage(path, value)
            reached = name
        fault = None
    except FeasidError:
        fault = None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"[
            :300
        ]
    finally:
        watch.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
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


def main(argv):
    """Arguments: kind, first number, how many, seconds, folder of failures."""
    name, first, count, seconds, kept = argv[0], int(argv[1]), int(argv[2]), float(argv[3]), argv[4]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        kind = kinds(folder)[name]
        watch = Watch(folder)
        signal.signal(signal.SIGALRM, alarm)
        for data in kind.seeds:  # imports what it needs
            reached, fault = tried(kind, watch, folder, data)
            assert fault is None, (name, fault)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        begun = time.monotonic()
        for number in range(first, first + count):
            if time.monotonic() - begun > seconds:
                break
            rng = random.Random(f"{name} {number}")
            data = mutators.several(rng, rng.choice(kind.seeds), kind.change)
            reached, fault = tried(kind, watch, folder, data)
            told = {"number": number, "stage": reached}
            if fault is not None:
                small = smallest(kind, watch, folder, data, fault)
                mark = hashlib.sha256(small).hexdigest()[:12]
                file = Path(kept) / f"{name.replace(' ', '_')}-{mark}{kind.suffix}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(small)
                told |= {"fault": fault, "file": str(file)}
            print(json.dumps(told), file=sys.__stdout__, flush=fault is not None)
            if number % 100 == 0:
                sys.__stdout__.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
