"""The covering array and random triples of options, and where each row ends.

    python -m benchmarks.together --anew                       # another covering array
    python -m benchmarks.together --more                       # rows of a new option or act
    python -m benchmarks.together --triples 500 [--seed N] [--array] [--acts store,fleet]

A row ends right, in doubt, refused by a name, or in one of the ways that must not be: wrong
without a word, another fit after saving and reading, a refusal without a name, an error of another
package, or more than five minutes of processor time. NumPy's warnings are errors. Ctrl-C and
SIGTERM end a run, which counts its rows until then. `--ends FILE` appends how each row ended, and
on which package (its hash), and goes on after the rows that are in it. `--write` puts the count
into the table of docs/faults.md, with the acts of rows whose fit was not refused.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import numpy as np

from benchmarks.campaign.totals import code
from benchmarks.faults_page import write_row
from feasid.core.errors import FeasidError

from .judge import UnequalError
from .rows import ARRAY, covering_array, random_triples, read_array

SECONDS = 300
BROKEN = ("wrong", "unequal", "unnamed", "raw")
FINE = ("right", "in doubt", "refused")


@dataclass(frozen=True)
class End:
    """How a row ends, what it says where that is no answer, and the hash of the package."""

    word: str
    said: str
    package: str = "earlier"

    @property
    def reaches_act(self):
        """Whether there was a fit, so that something was done with it."""
        return not (self.word == "refused" and self.said.startswith("fit: "))


def too_long(*_):
    raise TimeoutError(f"more than {SECONDS} s")


def end_of(row):
    """How a row ends, and what it says where that is no answer."""
    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return row.end(Path(folder))
    except UnequalError as error:
        return "unequal", str(error)
    except AssertionError as error:
        unnamed = "none of [" in str(error) or isinstance(error.__context__, FeasidError)
        return "unnamed" if unnamed else "wrong", str(error)
    except Exception as error:
        return "raw", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def read_ends(path):
    """How rows ended that were run before, by the row."""
    lines = path.read_text().splitlines() if path and path.exists() else ()
    return {row: End(*end) for row, *end in map(json.loads, lines)}


def report(rows, ends):
    """How many rows ended how, on which packages, and what was done with their fits."""
    counts = Counter(end.word for end in ends)
    packages = Counter(end.package for end in ends)
    acts = Counter(row.act for row, end in zip(rows, ends, strict=False) if end.reaches_act)
    words = ", ".join(f"{counts[word]} {word}" for word in (*FINE, *BROKEN))
    hashes = ", ".join(f"{count} on {package}" for package, count in packages.items())
    done = ", ".join(f"{act} {count}" for act, count in sorted(acts.items()))
    return f"{words}; by package: {hashes}; acts done: {done}"


def main(argv=None):
    """Returns 0 where every row ends as it may."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m benchmarks.together", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--anew", action="store_true", help="write the covering array anew")
    parser.add_argument("--more", action="store_true", help="add rows for pairs without any")
    parser.add_argument("--array", action="store_true", help="run the covering array")
    parser.add_argument("--acts", default="", help="only rows of the array with these acts")
    parser.add_argument("--triples", type=int, default=0, help="rows of three options at once")
    parser.add_argument("--seed", type=int, help="of the triples; default: a new one")
    parser.add_argument("--ends", type=Path, help="file of rows that were run")
    parser.add_argument("--write", action="store_true", help="put the count into docs/faults.md")
    given = parser.parse_args(argv)
    if given.anew or given.more:
        rows = covering_array(() if given.anew else read_array())
        ARRAY.write_text("".join(f"{row}\n" for row in rows))
    seed = int(np.random.SeedSequence().entropy % 10**6) if given.seed is None else given.seed
    acts = given.acts.split(",") if given.acts else ()
    array = [row for row in read_array() if given.array and (not acts or row.act in acts)]
    rows = [*array, *random_triples(given.triples, seed)]
    warnings.simplefilter("error")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"{len(rows)} rows, seed {seed}", flush=True)
    ran, package, begun = read_ends(given.ends), code(), time.process_time()
    ends = []
    with contextlib.suppress(KeyboardInterrupt):  # what was run until then is counted
        for number, row in enumerate(rows):
            end = ran.get(str(row)) or End(*end_of(row), package)
            ends.append(end)
            if end.word in BROKEN:
                print(f"{number}: {row}: {end.word}: {end.said}", flush=True)
            if given.ends and str(row) not in ran:
                with given.ends.open("a") as file:
                    file.write(json.dumps([str(row), *astuple(end)]) + "\n")
    if rows:
        what, seconds = report(rows, ends), time.process_time() - begun
        print(f"{len(ends)} of {len(rows)} rows, seed {seed}, {seconds:.0f} s: {what}")
        if given.write:
            kind = "pairs of option, robot, log and act" if array else "three options at once"
            write_row(f"{kind}: {' or '.join(BROKEN)}", len(ends), f"seed {seed}: {what}")
    return int(any(end.word in BROKEN for end in ends))


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
