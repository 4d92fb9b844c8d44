"""What a campaign has counted so far, kept in a file, and its table."""

import hashlib
import json
import os
import platform
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "numpy", "pandas", "pyarrow", "rosbags"
MARK = 10
"""Digits of the hash of the code that a table shows."""


@dataclass
class Count:
    """Of one kind: the number of the next input, inputs by stage and by code, and what failed."""

    next: int
    stages: Counter = field(default_factory=Counter)
    codes: Counter = field(default_factory=Counter)
    faults: list = field(default_factory=list)
    seconds: float = 0.0
    slowest: float = 0.0

    @property
    def inputs(self):
        return sum(self.stages.values())

    @property
    def past(self):
        """Inputs that passed the first check of their kind."""
        return self.inputs - self.stages[""]


def code():
    """Hash of the package as it stands."""
    text = hashlib.sha256()
    for path in sorted((ROOT / "feasid").rglob("*.py")):
        text.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return text.hexdigest()[:MARK]


def load(file, names, first):
    """Counts by kind: those of the file, and new ones."""
    kept = json.loads(Path(file).read_text()) if file and Path(file).exists() else {}
    counts = {}
    for name, data in kept.items():
        data |= {"stages": Counter(data["stages"]), "codes": Counter(data["codes"])}
        counts[name] = Count(**data)
    return {name: Count(first) for name in names if name not in counts} | counts


def save(file, counts):
    """Whole or not at all."""
    if file:
        beside = Path(f"{file}.part")
        beside.write_text(json.dumps({name: vars(c) for name, c in counts.items()}, indent=1))
        os.replace(beside, file)


def table(counts):
    """The counts as Markdown."""
    lines = [
        "| kind | inputs | past its first check | by last stage reached | slowest [s] "
        "| inputs per s | faults |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, c in counts.items():
        each = ", ".join(f"{stage or 'none'} {n}" for stage, n in c.stages.most_common())
        rate = c.inputs / c.seconds if c.seconds else 0.0
        lines.append(
            f"| {name} | {c.inputs} | {c.past} | {each} | {c.slowest:.2f} "
            f"| {rate:.0f} | {len(c.faults)} |"
        )
    every = counts.values()
    inputs, past, faults = (
        sum(c.inputs for c in every), sum(c.past for c in every), sum(len(c.faults) for c in every)
    )  # fmt: skip
    lines.append(
        f"| all | {inputs} | {past} | | "
        f"{max((c.slowest for c in every), default=0.0):.2f} | | {faults} |"
    )
    codes = sum((c.codes for c in every), Counter())
    ran = ", ".join(f"{mark} {n}" for mark, n in codes.items())
    lines.append(f"\nInputs by the package that they ran on (its hash), oldest first: {ran}.")
    packages = ", ".join(f"{p} {version(p)}" for p in PACKAGES)
    lines.append(f"\nPython {platform.python_version()}, {packages}; processor time.")
    return "\n".join(lines)
