"""Mutated inputs of every reader and of the command line: nothing but `FeasidError` escapes.

    python -m benchmarks.campaign --minutes 60 [--counts FILE] [--past 50000] [--total 1000000]
        [--kinds urdf,csv] [--inputs 10000] [--first 0] [--write]

Kinds of inputs take turns, each in a process of its own with a limit on memory, an alarm, and a
hook that sees every file and socket that is opened. What fails is made as small as it still fails
and kept. Totals are kept in counts.json or another file after every turn, and the next run goes on
from there, so that a campaign may be stopped at any time; inputs are counted by the code that they
ran on. With --write the table goes into docs/faults.md.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # their helpers, without pytest
