"""Does feasid-check say of 600 files what feasid says?

    python -m benchmarks.check_distribution [--files 600] [--seed 1]

The wheel of packaging/feasid-check is built and installed with its dependencies into an empty
environment, and the time that takes is printed. Files are those of example-robot-data, files
damaged as in `benchmarks.causes`, the same robots as MJCF and SDF with one number of an inertia
multiplied, and files cut short. Every form of output of both commands is compared, byte by byte.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import feasid
from benchmarks.causes import SHAPES, damage, has_usable_inertia, published, two_armed

ROOT = Path(__file__).parents[1]
FORMS = (["--json"], ["--format", "sarif"], ["--format", "github"], ["--verbose"], ["--quiet"])
INERTIA = re.compile(r'(?:diaginertia="|fullinertia="|<i[xyz]{2}>)([-.0-9e]+)')
"""The first number of an inertia of MJCF, and every number of one of SDF."""

PROGRESS = re.compile(rb"^checking files, .*\n", re.M)
"""Lines of progress, which tell seconds; on a slow machine some are printed."""


def damaged_urdf(rng: np.random.Generator, real: list[str]) -> bytes:
    """A URDF with one wrong link."""
    while True:
        if rng.random() < 0.5:
            robot = two_armed(rng, str(rng.choice(SHAPES)))
        else:
            robot = ET.parse(real[int(rng.integers(len(real)))]).getroot()
        links = [x for x in robot.iter("link") if has_usable_inertia(x)]
        if links and damage(links[int(rng.integers(len(links)))], robot, rng) is not None:
            return ET.tostring(robot)


def damaged_text(rng: np.random.Generator, text: str) -> str:
    """A text with one number of an inertia multiplied, or without its end."""
    places = [*INERTIA.finditer(text)]
    if not places or rng.random() < 0.1:
        return text[: int(rng.integers(len(text)))]
    start, end = places[int(rng.integers(len(places)))].span(1)
    factor = rng.choice([-1, 0.1, 3, 10, 1000])
    return f"{text[:start]}{float(text[start:end]) * factor:.9g}{text[end:]}"


def write_files(folder: Path, count: int, seed: int) -> Iterator[str]:
    """Names of files that are written into the folder."""
    rng = np.random.default_rng(seed)
    every = distribution("example-robot-data").files or []
    paths = sorted(str(x.locate()) for x in every if x.suffix == ".urdf")
    real = [path for path, _ in published()]
    others = []  # the robots in other formats
    for path in real:
        for suffix in (".xml", ".sdf"):
            name = folder / f"sound_{len(others)}{suffix}"
            try:
                feasid.write(feasid.load_robot(path), name)
            except feasid.FeasidError:
                continue
            others.append(name)
    for k in range(count):
        name = folder / f"{k:03}.urdf"
        if k < len(paths):
            name.write_bytes(Path(paths[k]).read_bytes())
        elif k % 2:
            name.write_bytes(damaged_urdf(rng, real))
        else:
            other = others[int(rng.integers(len(others)))]
            name = name.with_suffix(other.suffix)
            name.write_text(damaged_text(rng, other.read_text()))
        yield name.name


def install(folder: Path) -> Path:
    """Build and install the wheel into an empty environment; the command."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    subprocess.run([*build, str(ROOT / "packaging/feasid-check")], check=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "empty", with_pip=True)
    start = time.perf_counter()
    pip = [str(folder / "empty/bin/pip"), "install", "-q"]
    subprocess.run([*pip, str(wheel)], check=True)
    size = sum(f.stat().st_size for f in (folder / "empty").rglob("*") if f.is_file())
    print(f"wheel of {wheel.stat().st_size / 1e3:.0f} kB installed with what it needs in "
          f"{time.perf_counter() - start:.1f} s; environment {size / 1e6:.0f} MB")  # fmt: skip
    return folder / "empty/bin/feasid-check"


def main() -> int:
    """Print how many files have which status, and the forms of output that differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    different = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = [str(install(folder))]
        whole = [sys.executable, "-m", "feasid", "check"]
        (folder / "models").mkdir()
        files = [*write_files(folder / "models", given.files, given.seed)]
        alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        for form in FORMS:
            outputs = [
                subprocess.run(
                    [*command, *form, *files],
                    cwd=folder / "models",
                    env=environment,
                    capture_output=True,
                    check=False,
                )
                for command, environment in (
                    (small, alone),
                    (whole, {**os.environ, "PYTHONPATH": str(ROOT)}),
                )
            ]
            answers = [
                (done.returncode, done.stdout, PROGRESS.sub(b"", done.stderr)) for done in outputs
            ]
            different += [form] * (answers[0] != answers[1])
            if form == ["--json"]:
                told = json.loads(outputs[0].stdout)["files"]
                for kind, number in collections.Counter(
                    (Path(x["path"]).suffix, x["status"]) for x in told
                ).most_common():
                    print(f"{number:4d} {' '.join(kind)}")
    print(f"{len(files)} files in {len(FORMS)} forms: {len(different)} forms differ {different}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
