"""Do all data sets load and all examples run after the README's install, with and without extras?

    python benchmarks/install.py [--extras mujoco,plot]

A clone of this repository gets a virtual environment of its own in a temporary folder, by the
README's command. Every data set is loaded, and every example run, in the clone. Without its extra
an example has to say in one line what to install; with the extras all have to run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 1800
"""After which an example counts as failed."""

HELPERS = ("extras.py",)
"""Files of examples/ that are imported only."""

LOAD = "import feasid\nfor name in feasid.datasets.names():\n    feasid.datasets.load(name)"


def readme_install(extras: str) -> str:
    """The README's lines that make an environment and install the clone, with the extras."""
    line = re.search(r"^python3 -m venv feasid-env && feasid-env/bin/pip install -q \.",
                     (ROOT / "README.md").read_text(), re.M)  # fmt: skip
    if line is None:
        raise SystemExit("README.md has no command that installs the clone")
    return line[0] + (f"[{extras}]" if extras else "")


def outcome(command: list[str], folder: Path, extras: str) -> tuple[bool, str]:
    """Whether a command did what it should, and its last line."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"not done after {SECONDS} s"
    if done.returncode == 0:
        return True, "runs"
    said = done.stderr.strip().splitlines() or [f"ends with {done.returncode}"]
    return not extras and len(said) == 1 and "pip install" in said[0], said[-1]


def main() -> None:
    """Print a line per data set and example; the status is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--extras", default="", help="such as mujoco,plot")
    extras = parser.parse_args().extras
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "feasid"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        subprocess.run(["bash", "-c", readme_install(extras)], cwd=clone, check=True)
        python = str(clone / "feasid-env" / "bin" / "python")
        commands = {"all data sets": [python, "-c", LOAD]}
        for path in sorted((clone / "examples").glob("*.py")):
            if path.name not in HELPERS:
                commands[path.name] = [python, str(path.relative_to(clone))]
        for what, command in commands.items():
            good, said = outcome(command, clone, extras)
            failed += not good
            print(f"{what:28} {'ok' if good else 'FAILED':8} {said}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
